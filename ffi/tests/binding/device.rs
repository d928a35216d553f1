//! Handlers of a device: operands that are not read here, a stream, scratch, traits, initialize.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use xla_ffi::fake::{Call, Host, limit_scratch, scratch_lent};
use xla_ffi::sys::XLA_FFI_Handler;
use xla_ffi::sys::{
    XLA_FFI_Api, XLA_FFI_ExecutionStage_INITIALIZE,
    XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE,
};
use xla_ffi::{Context, Error, Frame, Handler, Outcome, Signature, signature};

signature! {
    /// y = x, moved by whoever reads device memory.
    device struct Move {
        dims { n }
        args { x: f64 [n], w: f64 [n] }
        rets { y: f64 [n], w_out: f64 [n] = w }
    }
}

struct MoveHandler;

static INITIALIZED: AtomicUsize = AtomicUsize::new(0);

impl Handler for MoveHandler {
    const NAME: &'static str = "move";
    const TRAITS: u32 = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
    const SIGNATURES: &'static [&'static Signature] = &[<Move as xla_ffi::Call>::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, context: &Context<'f>) -> Outcome<'f> {
        let Some(call) = <Move as xla_ffi::Call>::decode(frame) else { return Outcome::Mismatch };
        Outcome::Done(work(&call, context))
    }

    fn initialize(context: &Context<'_>) -> Result<(), Error> {
        INITIALIZED.fetch_add(1, SeqCst);
        context.stream().map(|_| ())
    }
}

fn work(call: &Move<'_>, context: &Context<'_>) -> Result<(), Error> {
    assert!(!context.stream()?.is_null());
    assert!(context.scratch(0)?.as_ptr().is_null());
    let bytes = size_of::<f64>() * call.x.len();
    let scratch = context.scratch(bytes)?;
    assert!(call.x.is_empty() == call.y.is_empty() && scratch_lent() >= 1);
    assert!(scratch.as_ptr().cast::<f64>().is_aligned());
    assert_eq!((call.batch * call.n, call.w_out.dst.len()), (call.y.len(), call.x.len()));
    let moved =
        call.w_out.src.as_ref().map_or(call.w_out.dst.as_ptr().cast_const(), |w| w.as_ptr());
    // SAFETY: the fake device's memory is the process's; all have `len` elements.
    unsafe {
        scratch.as_ptr().cast::<f64>().copy_from(call.x.as_ptr(), call.x.len());
        call.y.as_ptr().copy_from(scratch.as_ptr().cast(), call.x.len());
        call.w_out.dst.as_ptr().copy_from(moved, call.x.len());
    }
    Ok(())
}

const EXECUTE: XLA_FFI_Handler = Some(xla_ffi::execute::<MoveHandler>);
const INITIALIZE: XLA_FFI_Handler = Some(xla_ffi::initialize::<MoveHandler>);

/// The calls that have scratch, one at a time: what is lent is counted in the whole process.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_device_handler_has_operands_a_stream_and_scratch() {
    let _one = ONE.lock().unwrap();
    let (x, w) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    let (mut y, mut w_out) = ([0.0; 4], [0.0; 4]);
    let dims = [2, 2];
    let call = Call::new().arg(&dims, &x).arg(&dims, &w).ret(&dims, &mut y).ret(&dims, &mut w_out);
    let host = Host::new();
    assert_eq!(host.execute(EXECUTE, &call), Ok(()));
    limit_scratch(31);
    let refused = host.execute(EXECUTE, &call).unwrap_err();
    limit_scratch(usize::MAX);
    drop(call);
    assert_eq!((y, w_out), (x, w));
    assert_eq!(refused.code, xla_ffi::ErrorCode::ResourceExhausted as u32);
    let expected =
        "move: 32 bytes of device memory for scratch: the host says: out of memory: 32 bytes";
    assert_eq!(refused.message, expected);
    assert_eq!(scratch_lent(), 0);
}

#[test]
fn a_result_in_its_arguments_memory_has_no_source() {
    let _one = ONE.lock().unwrap();
    let x = [1.0, 2.0];
    let (mut y, mut w) = ([0.0; 2], [3.0, 4.0]);
    let call = Call::new().arg(&[2], &x).ret(&[2], &mut y).shared(&[2], &mut w);
    assert_eq!(Host::new().execute(EXECUTE, &call), Ok(()));
    drop(call);
    assert_eq!((y, w), ([1.0, 2.0], [3.0, 4.0]));
}

#[test]
fn without_a_device_there_is_no_stream() {
    let (x, mut y, mut w) = ([1.0], [0.0], [0.0]);
    let call = Call::new().arg(&[1], &x).arg(&[1], &x).ret(&[1], &mut y).ret(&[1], &mut w);
    let host = Host::new().aged(0, std::mem::offset_of!(XLA_FFI_Api, XLA_FFI_Stream_Get));
    let refused = host.execute(EXECUTE, &call).unwrap_err();
    assert_eq!(refused.code, xla_ffi::ErrorCode::Unavailable as u32);
    assert_eq!(refused.message, "move: this host has no stream: this is not a device's call");
}

#[test]
fn initialize_is_a_stage_of_its_own() {
    let call = Call::new().stage(XLA_FFI_ExecutionStage_INITIALIZE);
    assert_eq!(Host::new().execute(INITIALIZE, &call), Ok(()));
    assert_eq!(INITIALIZED.load(SeqCst), 1);
    let wrong = Host::new().execute(INITIALIZE, &Call::new()).unwrap_err();
    assert_eq!(wrong.message, "move: expected execution stage initialize, got execute");
    let wrong = Host::new().execute(EXECUTE, &call).unwrap_err();
    assert_eq!(wrong.message, "move: expected execution stage execute, got initialize");
}

signature! {
    /// y = α x, α one number for all problems.
    struct Scale { dims { n } args { x: f64 [n], alpha: f64 } rets { y: f64 [n] } }
}

struct ScaleHandler;

impl Handler for ScaleHandler {
    const NAME: &'static str = "scale";
    const SIGNATURES: &'static [&'static Signature] = &[<Scale as xla_ffi::Call>::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        let Some(call) = <Scale as xla_ffi::Call>::decode(frame) else { return Outcome::Mismatch };
        call.y.iter_mut().zip(call.x).for_each(|(y, x)| *y = call.alpha[0] * x);
        Outcome::Done(Ok(()))
    }
}

#[test]
fn an_operand_alone_has_no_batch() {
    let handler = Some(xla_ffi::execute::<ScaleHandler> as unsafe extern "C" fn(_) -> _);
    let (x, mut y) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
    let call = Call::new().arg(&[2, 2], &x).arg(&[], &[3.0]).ret(&[2, 2], &mut y);
    assert_eq!(Host::new().execute(handler, &call), Ok(()));
    drop(call);
    assert_eq!(y, [3.0, 6.0, 9.0, 12.0]);
    let call = Call::new().arg(&[2, 2], &x).arg(&[1], &[3.0]).ret(&[2, 2], &mut y);
    let refused = Host::new().execute(handler, &call).unwrap_err();
    assert_eq!(refused.message, "scale: argument 1 `alpha`: expected f64 [], got f64 [1]");
}

#[test]
fn traits_are_announced_for_every_stage() {
    for handler in [EXECUTE, INITIALIZE] {
        assert_eq!(Host::new().metadata(handler, true).traits, MoveHandler::TRAITS);
    }
}
