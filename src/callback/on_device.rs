//! Host callbacks on CUDA: operands pass through memory of the host, for which the call waits, since an
//! error of the function must be the call's.

use xla_ffi::{AnyBuffer, AnyBufferMut, Context, Error, Rest};

use super::{Function, Held, TARGET};
use crate::ops::on_host::on_host;

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

/// Calls the function with copies of the arguments, and copies its results to the device.
fn staged(
    function: &Function,
    args: &[AnyBuffer<'_>],
    rets: &mut [AnyBufferMut<'_>],
    context: &Context<'_>,
) -> Result<(), Error> {
    on_host(context, args, rets, |args, rets| {
        // SAFETY: copies hold the bytes of their operands and do not overlap; the dimensions are the
        // call's.
        let (args, mut rets): (Vec<_>, Vec<_>) = unsafe {
            (
                args.iter().map(|copy| AnyBuffer::from_raw(copy)).collect(),
                rets.iter().map(|copy| AnyBufferMut::from_raw(copy)).collect(),
            )
        };
        function(&args, &mut rets)
    })
}
