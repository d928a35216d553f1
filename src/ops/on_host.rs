//! Calls on CUDA that the host computes: their operands pass through its memory.

use std::ffi::c_void;

use xla_ffi::bind::{FromArg, FromRet};
use xla_ffi::sys::XLA_FFI_Buffer;
use xla_ffi::{AnyBuffer, AnyBufferMut, Context, Error, Frame, Rest};

use super::cuda::with_gpu;

/// Answers a call on the device by `run`, which has the same call with operands on the host.
///
/// The call waits for the device, since an error of what runs must be its own.
pub(crate) fn answer<'f>(
    context: &Context<'f>,
    frame: Frame<'f>,
    run: impl FnOnce(Frame<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let args = <Rest<'f, AnyBuffer<'f>>>::from_arg(&mut frame.args());
    // SAFETY: each is taken once, and only its address and dimensions are looked at.
    let rets = <Rest<'f, AnyBufferMut<'f>>>::from_ret(&mut unsafe { frame.rets() });
    let (Some(args), Some(mut rets)) = (args, rets) else {
        return Err(Error::invalid_argument("expected buffers alone"));
    };
    // Arguments may be large all the same.
    if rets.iter().all(|ret| ret.shape().byte_size() == Some(0)) {
        return Ok(());
    }
    on_host(context, &args, &mut rets, |args, rets| {
        // SAFETY: copies of all operands, which are buffers, in memory of their own.
        unsafe { frame.with_copies(args, rets, run) }
    })
}

/// Calls `body` with copies of the operands on the host, and copies the results to the device.
pub(crate) fn on_host(
    context: &Context<'_>,
    args: &[AnyBuffer<'_>],
    rets: &mut [AnyBufferMut<'_>],
    body: impl FnOnce(&[XLA_FFI_Buffer], &[XLA_FFI_Buffer]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (places, bytes) = places(args.iter().copied().chain(rets.iter().map(AnyBufferMut::shape)))?;
    let (arg_places, ret_places) = places.split_at(args.len());
    let mut outcome = Ok(());
    with_gpu(context, |gpu| {
        let mut staging = gpu.staging(bytes)?;
        for (arg, place) in args.iter().zip(arg_places) {
            let from: *const c_void = arg.as_ptr().cast();
            // SAFETY: an argument of the call has the bytes of its dimensions.
            unsafe { staging.fetch(place.offset, from, place.bytes) }?;
        }
        staging.wait()?;
        // Places do not overlap. Memory of results was written before, by what ran or the driver, or is
        // zero.
        let copy = |operand: AnyBuffer<'_>, place: &Place| {
            operand.moved(staging.as_ptr().wrapping_add(place.offset))
        };
        let arg_copies: Vec<XLA_FFI_Buffer> =
            args.iter().zip(arg_places).map(|(arg, place)| copy(*arg, place)).collect();
        let ret_copies: Vec<XLA_FFI_Buffer> =
            rets.iter().zip(ret_places).map(|(ret, place)| copy(ret.shape(), place)).collect();
        outcome = body(&arg_copies, &ret_copies);
        if outcome.is_ok() {
            for (ret, place) in rets.iter_mut().zip(ret_places) {
                let to: *mut c_void = ret.as_mut_ptr().cast();
                // SAFETY: a result of the call has the bytes of its dimensions.
                unsafe { staging.send(to, place.offset, place.bytes) }?;
            }
        }
        Ok(())
    })?;
    outcome
}

/// An operand, and where its copy is.
struct Place {
    offset: usize,
    bytes: usize,
}

/// The places of operands, and the bytes of all.
fn places<'f>(operands: impl Iterator<Item = AnyBuffer<'f>>) -> Result<(Vec<Place>, usize), Error> {
    /// A processor's line of cache: enough for every element type.
    const ALIGNMENT: usize = 64;
    let mut end = 0_usize;
    let places = operands.map(|operand| {
        let bytes = operand.byte_size().filter(|bytes| *bytes <= isize::MAX.unsigned_abs());
        let place = bytes.and_then(|bytes| {
            let offset = end.checked_next_multiple_of(ALIGNMENT)?;
            end = offset.checked_add(bytes)?;
            Some(Place { offset, bytes })
        });
        place.ok_or_else(|| {
            Error::invalid_argument(format!("expected an operand of known size, got {operand}"))
        })
    });
    let places = places.collect::<Result<_, _>>()?;
    Ok((places, end))
}
