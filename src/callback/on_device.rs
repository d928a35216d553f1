//! Host callbacks on CUDA: operands pass through memory of the host, for which the call waits, since an
//! error of the function must be the call's.

use std::ffi::c_void;

use xla_ffi::sys::XLA_FFI_Buffer;
use xla_ffi::{AnyBuffer, AnyBufferMut, Context, Error, Rest};

use super::{Function, Held, TARGET};
use crate::ops::cuda::with_gpu;

xla_ffi::handler! {
    /// Calls it with copies of the operands.
    pub fn execute_on_device(call: CalledOnDevice<'f>, context) in Execute {
        target TARGET;
        args { args: Rest<'f, AnyBuffer<'f>> }
        rets { rets: Rest<'f, AnyBufferMut<'f>> }
        attrs { callback: i64 }
    } => {
        let CalledOnDevice { args, mut rets, .. } = call;
        staged(&*context.state::<Held>()?.0, &args, &mut rets, context)
    }
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

/// Calls the function with copies of the arguments, and copies its results to the device.
fn staged(
    function: &Function,
    args: &[AnyBuffer<'_>],
    rets: &mut [AnyBufferMut<'_>],
    context: &Context<'_>,
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
        let copy = |operand: AnyBuffer<'_>, place: &Place| {
            operand.moved(staging.as_ptr().wrapping_add(place.offset))
        };
        let arg_copies: Vec<XLA_FFI_Buffer> =
            args.iter().zip(arg_places).map(|(arg, place)| copy(*arg, place)).collect();
        let ret_copies: Vec<XLA_FFI_Buffer> =
            rets.iter().zip(ret_places).map(|(ret, place)| copy(ret.shape(), place)).collect();
        // SAFETY: places do not overlap and hold the bytes of their operands; the dimensions are the
        // call's. Memory of results was written before, by the function or the driver, or is zero.
        let (host_args, mut host_rets): (Vec<_>, Vec<_>) = unsafe {
            (
                arg_copies.iter().map(|copy| AnyBuffer::from_raw(copy)).collect(),
                ret_copies.iter().map(|copy| AnyBufferMut::from_raw(copy)).collect(),
            )
        };
        outcome = function(&host_args, &mut host_rets);
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
