//! What the binding costs: a handler with 2 arguments, 3 results and 4 attributes that does
//! nothing, called on the frame on which the C++ binding of jaxlib's headers takes about 50 ns.
//!
//! `cargo bench --bench decode`

use std::hint::black_box;
use std::time::Instant;

use xla_ffi::fake::{Attr, Call as FakeCall, Host};
use xla_ffi::sys::{XLA_FFI_CallFrame, XLA_FFI_Error, XLA_FFI_Handler};
use xla_ffi::{Call, Context, Frame, Handler, Outcome, Signature, signature};

#[derive(Debug)]
enum Mode {
    Lower,
    Upper,
}

impl TryFrom<u8> for Mode {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        match code {
            b'L' => Ok(Mode::Lower),
            b'U' => Ok(Mode::Upper),
            _ => Err(()),
        }
    }
}

signature! {
    /// Two matrices, two vectors and a scalar.
    pub struct Sample {
        dims { n }
        args { a: f64 [n, n], b: i32 [n] }
        attrs { alpha: i64, mode: Mode as u8, name: &str, perm: &[i64] }
        rets { c: f64 [n, n], d: i32 [n], e: i32 [] }
    }
}

struct SampleHandler;

impl Handler for SampleHandler {
    const NAME: &'static str = "sample";
    const SIGNATURES: &'static [&'static Signature] = &[Sample::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        let Some(call) = Sample::decode(frame) else { return Outcome::Mismatch };
        consume(&call);
        Outcome::Done(Ok(()))
    }
}

/// The body: uses every operand and attribute, so that none is optimised away.
#[inline(always)]
fn consume(call: &Sample<'_>) {
    let slices = call.a.len() + call.b.len() + call.c.len() + call.d.len() + call.e.len();
    let attrs = call.name.len() + call.perm.len() + usize::from(matches!(call.mode, Mode::Upper));
    black_box(slices + attrs + call.a.as_ptr().addr() + usize::from(call.alpha == 42));
}

unsafe extern "C" fn nothing(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    black_box(frame);
    std::ptr::null_mut()
}

/// The decoder alone, with its checks; a bad frame would be seen as an error.
unsafe extern "C" fn decode_only(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    // SAFETY: the frame is the fake host's.
    let frame = unsafe { Frame::new(&*frame) };
    match Sample::decode(frame) {
        Some(call) => {
            consume(&call);
            std::ptr::null_mut()
        }
        None => std::process::abort(),
    }
}

fn main() {
    let host = Host::new();
    let n = 64;
    let (a, b) = (vec![0.0; n * n], vec![0; n]);
    let (mut c, mut d, mut e) = (vec![0.0; n * n], vec![0; n], vec![0; 1]);
    let call = FakeCall::new()
        .arg(&[64, 64], &a)
        .arg(&[64], &b)
        .ret(&[64, 64], &mut c)
        .ret(&[64], &mut d)
        .ret(&[], &mut e)
        .attr("alpha", Attr::I64(42))
        .attr("mode", Attr::U8(b'L'))
        .attr("name", Attr::String("hello".to_owned()))
        .attr("perm", Attr::I64s(vec![0, 1, 2]));
    call.with_frame(&host, |frame| {
        let empty = measure(&host, Some(nothing), frame);
        let decode = measure(&host, Some(decode_only), frame);
        let whole = measure(&host, Some(xla_ffi::execute::<SampleHandler>), frame);
        println!("a call that does nothing                       {empty:6.1} ns");
        println!("decoding 2 args, 3 results, 4 attrs            {decode:6.1} ns");
        println!("the same with panic guard and IEEE mode        {whole:6.1} ns");
    });
}

/// Nanoseconds per call: the least of several runs' averages, since everything else on the machine
/// only adds.
fn measure(host: &Host, handler: XLA_FFI_Handler, frame: &mut XLA_FFI_CallFrame) -> f64 {
    const CALLS: u32 = 10_000;
    let mut run = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            let outcome = host.invoke(black_box(handler), frame);
            assert!(outcome.is_ok(), "{outcome:?}");
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..2000).map(|_| run()).fold(f64::INFINITY, f64::min)
}
