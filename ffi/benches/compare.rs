//! What a call costs in this binding and in C++: the same handlers, compiled here from the headers of
//! a jaxlib, called on the same frames of 2 arguments, 3 results and 4 attributes.
//!
//! `XLA_FFI_INCLUDE=$(python -c 'import jax; print(jax.ffi.include_dir())') cargo bench -p xla-ffi
//! --features fake`; `-- --check` fails where a row that has a goal takes longer.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use xla_ffi::fake::{Attr, Call as FakeCall, Host};
use xla_ffi::sys::{XLA_FFI_CallFrame, XLA_FFI_Error_Destroy_Args};
use xla_ffi::{AnyBuffer, AnyBufferMut, Buffer, BufferMut, Dictionary, StageFn};
use xla_ffi::{Call, Context, Frame, Handler, Outcome, Signature, signature};

xla_ffi::attribute! {
    struct Params<'f> { alpha: i64, mode: u8, name: &'f str, perm: &'f [i64] }
}

/// Addresses and numbers of a call, added up, so that nothing is optimised away.
macro_rules! consume {
    ($call:ident, [$($operand:ident),*], $($number:expr),*) => {
        black_box(0 $(+ $call.$operand.as_ptr().addr())* $(+ $number)*)
    };
}

xla_ffi::handler! {
    fn typed(call: Typed<'f>, _context) in Execute {
        args { a: Buffer<'f, f64, 2>, b: Buffer<'f, i32, 1> }
        rets { c: BufferMut<'f, f64, 2>, d: BufferMut<'f, i32, 1>, e: BufferMut<'f, i32, 0> }
        attrs { alpha: i64, mode: u8, name: &'f str, perm: &'f [i64] }
    } => {
        let numbers = call.name.len() + call.perm.len() + usize::from(call.mode);
        consume!(call, [a, b, c, d, e], numbers, usize::from(call.alpha == 42));
        Ok(())
    }
}

xla_ffi::handler! {
    fn any(call: Any<'f>, _context) in Execute {
        args { a: AnyBuffer<'f>, b: AnyBuffer<'f> }
        rets { c: AnyBufferMut<'f>, d: AnyBufferMut<'f>, e: AnyBufferMut<'f> }
        attrs { alpha: i64, mode: u8, name: &'f str, perm: &'f [i64] }
    } => {
        let numbers = call.name.len() + call.perm.len() + usize::from(call.mode);
        let results = [call.c.shape(), call.d.shape(), call.e.shape()];
        black_box(results.map(|ret| ret.as_ptr()));
        consume!(call, [a, b], numbers, usize::from(call.alpha == 42));
        Ok(())
    }
}

xla_ffi::handler! {
    fn structure(call: Structure<'f>, _context) in Execute {
        args { a: Buffer<'f, f64, 2>, b: Buffer<'f, i32, 1> }
        rets { c: BufferMut<'f, f64, 2>, d: BufferMut<'f, i32, 1>, e: BufferMut<'f, i32, 0> }
        all params: Params<'f>;
    } => {
        let Params { alpha, mode, name, perm } = &call.params;
        let numbers = name.len() + perm.len() + usize::from(*mode);
        consume!(call, [a, b, c, d, e], numbers, usize::from(*alpha == 42));
        Ok(())
    }
}

xla_ffi::handler! {
    fn dictionary(call: Dict<'f>, _context) in Execute {
        args { a: Buffer<'f, f64, 2>, b: Buffer<'f, i32, 1> }
        rets { c: BufferMut<'f, f64, 2>, d: BufferMut<'f, i32, 1>, e: BufferMut<'f, i32, 0> }
        all attrs: Dictionary<'f>;
    } => {
        let numbers = call.attrs.get::<&str>("name")?.len()
            + usize::from(call.attrs.get::<u8>("mode")?)
            + usize::from(call.attrs.get::<i64>("alpha")? == 42);
        consume!(call, [a, b, c, d, e], numbers);
        Ok(())
    }
}

xla_ffi::handler! {
    fn nothing(_call: Nothing<'f>, _context) in Execute {} => { Ok(()) }
}

signature! {
    /// The same shapes, with leading dimensions, and dimensions that must agree.
    struct Signed {
        dims { n }
        args { a: f64 [n, n], b: i32 [n] }
        attrs { alpha: i64, mode: u8, name: &str, perm: &[i64] }
        rets { c: f64 [n, n], d: i32 [n], e: i32 [] }
    }
}

struct SignedHandler;

impl Handler for SignedHandler {
    const NAME: &'static str = "signed";
    const SIGNATURES: &'static [&'static Signature] = &[Signed::SIGNATURE];

    #[inline]
    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        let Some(call) = Signed::decode(frame) else { return Outcome::Mismatch };
        let numbers = call.name.len() + call.perm.len() + usize::from(call.mode);
        consume!(call, [a, b, c, d, e], numbers, usize::from(call.alpha == 42));
        Outcome::Done(Ok(()))
    }
}

/// One comparison.
struct Row {
    what: &'static str,
    /// C++'s handler in compare.cc.
    theirs: &'static str,
    ours: StageFn,
    /// Whether the first argument is of a wrong type.
    wrong: bool,
    /// Whether ours may take a third of C++'s time at most. What has none does more than C++'s, which
    /// knows no leading dimensions and does not look at addresses, or nothing that could be saved.
    goal: bool,
}

const ROWS: [Row; 7] = [
    row("nothing: no operands looked at", "cpp_nothing", nothing, false),
    row("typed buffers, 4 attributes", "cpp_typed", typed, true),
    row("the same by signature!", "cpp_typed", xla_ffi::execute::<SignedHandler>, false),
    row("any buffers, 4 attributes", "cpp_any", any, false),
    row("typed buffers, attributes as a struct", "cpp_struct", structure, true),
    row("typed buffers, 3 of a dictionary", "cpp_dictionary", dictionary, true),
    Row { wrong: true, ..row("an argument of the wrong type", "cpp_typed", typed, true) },
];

const fn row(what: &'static str, theirs: &'static str, ours: StageFn, goal: bool) -> Row {
    Row { what, theirs, ours, wrong: false, goal }
}

fn main() -> ExitCode {
    let check = std::env::args().any(|word| word == "--check");
    match compare() {
        Ok(within) if within || !check => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("a row takes more than a third of C++'s time");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the rows; whether each holds its goal.
fn compare() -> Result<bool, Box<dyn Error>> {
    /// Rounds of all rows, of which each row's best counts: on a shared machine slow spells last longer
    /// than a row does.
    const ROUNDS: usize = 4;
    let library = compile()?;
    // SAFETY: a library of handlers, which stays loaded.
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library)? }));
    let mut best = [(f64::INFINITY, f64::INFINITY); ROWS.len()];
    for _ in 0..ROUNDS {
        for (best, row) in best.iter_mut().zip(&ROWS) {
            // SAFETY: a handler of compare.cc.
            let theirs = unsafe { *library.get::<StageFn>(row.theirs.as_bytes())? };
            let found = rows(theirs, row.ours, row.wrong)?;
            *best = (best.0.min(found.0), best.1.min(found.1));
        }
    }
    println!("{:<40}{:>10}{:>10}{:>8}", "ns per call", "C++", "xla-ffi", "ratio");
    for ((theirs, ours), row) in best.iter().zip(&ROWS) {
        println!("{:<40}{theirs:>10.1}{ours:>10.1}{:>8.2}", row.what, ours / theirs);
    }
    let held = |(best, row): (&(f64, f64), &Row)| !row.goal || best.1 * 3.0 <= best.0;
    Ok(best.iter().zip(&ROWS).all(held))
}

/// The C++ handlers as a shared library.
fn compile() -> Result<PathBuf, Box<dyn Error>> {
    let include = std::env::var("XLA_FFI_INCLUDE").map_err(
        |_| "set XLA_FFI_INCLUDE to the folder of jaxlib's headers: jax.ffi.include_dir()",
    )?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/compare.cc");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcompare.so");
    let compiler = std::env::var("CXX").unwrap_or("c++".to_owned());
    let done = Command::new(&compiler)
        .args(["-O3", "-std=c++17", "-w", "-shared", "-fPIC", "-isystem", &include, "-o"])
        .args([&library, &source])
        .status()?;
    if done.success() { Ok(library) } else { Err(format!("{compiler} failed").into()) }
}

/// Nanoseconds of both, measured in turns.
fn rows(cpp: StageFn, ours: StageFn, wrong: bool) -> Result<(f64, f64), String> {
    let host = Host::new();
    let n = 64;
    let (a, b) = (vec![0.0; n * n], vec![0; n]);
    let other = vec![0.0_f32; n * n];
    let (mut c, mut d, mut e) = (vec![0.0; n * n], vec![0; n], vec![0; 1]);
    let call = FakeCall::new();
    let call = if wrong { call.arg(&[64, 64], &other) } else { call.arg(&[64, 64], &a) };
    let call = call
        .arg(&[64], &b)
        .ret(&[64, 64], &mut c)
        .ret(&[64], &mut d)
        .ret(&[], &mut e)
        .attr("alpha", Attr::I64(42))
        .attr("mode", Attr::U8(b'L'))
        .attr("name", Attr::String("hello".to_owned()))
        .attr("perm", Attr::I64s(vec![0, 1, 2]));
    call.with_frame(&host, |frame| {
        let mut best = (f64::INFINITY, f64::INFINITY);
        for _ in 0..if wrong { 20 } else { 200 } {
            best.0 = best.0.min(measure(cpp, frame, wrong)?);
            best.1 = best.1.min(measure(ours, frame, wrong)?);
        }
        Ok(best)
    })
}

/// Nanoseconds per call, the average of one run.
fn measure(handler: StageFn, frame: &mut XLA_FFI_CallFrame, wrong: bool) -> Result<f64, String> {
    const CALLS: u32 = 10_000;
    let start = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: the fake host's frame.
        let error = unsafe { black_box(handler)(black_box(frame)) };
        if error.is_null() == wrong {
            return Err("a handler answered otherwise than expected".to_owned());
        }
        if !error.is_null() {
            let mut args = XLA_FFI_Error_Destroy_Args {
                struct_size: size_of::<XLA_FFI_Error_Destroy_Args>(),
                extension_start: std::ptr::null_mut(),
                error,
            };
            // SAFETY: the host's function, and an error of its.
            unsafe {
                if let Some(destroy) = (*frame.api).XLA_FFI_Error_Destroy {
                    destroy(&raw mut args);
                }
            }
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS))
}
