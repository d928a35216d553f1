//! Targets of the platform CUDA: one name for all element types, operands on the device, and what an
//! operation's `cuda = { … }` says.

use lapax_cuda::memory::{self, Input, Output};
use lapax_cuda::{Gpu, Kind, Lent, Memory};
use xla_ffi::{Context, Error, ErrorCode};

/// The targets of one operation on CUDA.
///
/// ```text
/// cuda = (none: "why");
/// cuda = host;                                // the CPU's kernel, by copies on the host
/// cuda = { "name", captured,                  // or: queued, where XLA may not record it
///     load(module::load_it::<T>),             // what the initialize stage does, for each T
///     run(|call, gpu| module::it(gpu, …)),
/// };
/// cuda = { "name" or { sections }, …, run(…), or(…) };
/// cuda = { "name" over [f32, f64] { the sections of xla_ffi::signature! }, … };
/// cuda = { "name" over [f32, f64] { sections } or { sections }, …, run(…), or(…) };
/// ```
///
/// The first braces are a call of the operation's own shape, and `OnDevice` is generated from the same
/// sections; `over` states another wire form. With `or` there is a second one, which is not in the
/// table. A comment in front is about the target alone.
macro_rules! cuda {
    ((none: $why:literal), $($rest:tt)*) => {
        &[]
    };
    (
        host, [$($scalar:tt),+], { $($struct:tt)+ },
        { $call:ident, any($name:literal), $run:expr }
    ) => {
        &[crate::ops::host_target!($name, [$($scalar),+], { $($struct)+ }, $call, $run)]
    };
    (
        {
            $(#[doc = $doc:literal])*
            $name:literal $(or { $($other:tt)* })?,
            $promise:ident, load($load:expr), run($run:expr) $(, or($instead:expr))? $(,)?
        },
        [$($scalar:tt),+],
        { $($struct:tt)+ },
        $on_the_cpu:tt
    ) => {
        &[crate::ops::cuda_target!(
            $name, concat!($($doc, "\n"),*), $promise, $load, [$($scalar),+], { $($struct)+ }, $run,
            [$({
                /// The call in its other form.
                device struct Other<T: Scalar> { $($other)* }
            } $instead)?]
        )]
    };
    (
        {
            $(#[doc = $doc:literal])*
            $name:literal over [$($scalar:tt),+] $(where $t:ident: $bound:ident)?
                { $($signature:tt)* } $(or { $($other:tt)* })?,
            $promise:ident, load($load:expr), run($run:expr) $(, or($instead:expr))? $(,)?
        },
        [$($ignored:tt),+],
        { $($as_on_the_cpu:tt)+ },
        $on_the_cpu:tt
    ) => {
        &[crate::ops::cuda_target!(
            $name, concat!($($doc, "\n"),*), $promise, $load, [$($scalar),+], {
                /// The call on a device.
                device struct OnDevice<T $(: $bound)?> { $($signature)* }
            }, $run, [$({
                /// The call in its other form.
                device struct Other<T: Scalar> { $($other)* }
            } $instead)?]
        )]
    };
}

/// One target: its handler, monomorphic in each element type.
macro_rules! cuda_target {
    ($name:expr, $doc:expr, $promise:ident, $load:expr, [$($scalar:tt),+], { $($struct:tt)+ },
     $run:expr, $other:tt) => {{
        xla_ffi::signature! { $($struct)+ }
        crate::ops::cuda::other_struct!($other);

        struct Handler;

        impl xla_ffi::Handler for Handler {
            const NAME: &'static str = $name;
            const TRAITS: xla_ffi::sys::XLA_FFI_Handler_Traits =
                crate::ops::cuda::Promise::$promise.traits();
            const SIGNATURES: &'static [&'static xla_ffi::Signature] = &[$(
                <crate::ops::of!(OnDevice, 'static, $scalar) as xla_ffi::Call<'static>>::SIGNATURE
            ),+];

            fn call<'f>(
                frame: xla_ffi::Frame<'f>,
                context: &xla_ffi::Context<'f>,
            ) -> xla_ffi::Outcome<'f> {
                let dtypes = [frame.arg_dtype(0), frame.arg_dtype(1)];
                $(if Self::SIGNATURES.len() == 1 || crate::ops::is!(dtypes, $scalar) {
                    #[allow(dead_code, reason = "only another form names it")]
                    type T = crate::ops::cuda::first!($scalar);
                    type Call<'f> = crate::ops::of!(OnDevice, 'f, $scalar);
                    let run: crate::ops::cuda::Run<Call<'f>> = $run;
                    if let Some(call) = <Call<'f> as xla_ffi::Call<'f>>::decode(frame) {
                        return crate::ops::cuda::answer(context, |gpu| run(call, gpu));
                    }
                    crate::ops::cuda::other!(frame, context, T, $other, 'f);
                    return xla_ffi::Outcome::Mismatch;
                })+
                xla_ffi::Outcome::Mismatch
            }

            fn initialize(context: &xla_ffi::Context<'_>) -> Result<(), xla_ffi::Error> {
                crate::ops::cuda::with_gpu(context, |gpu| {
                    $({
                        #[allow(dead_code, reason = "not every load depends on the type")]
                        type T = crate::ops::cuda::first!($scalar);
                        $load(gpu)?;
                    })+
                    Ok(())
                })
            }
        }

        crate::table::Target {
            name: $name,
            platform: crate::table::Platform::Cuda,
            doc: $doc,
            handler: Some(xla_ffi::execute::<Handler>),
            initialize: Some(xla_ffi::initialize::<Handler>),
            captured: <Handler as xla_ffi::Handler>::TRAITS != 0,
            signatures: <Handler as xla_ffi::Handler>::SIGNATURES,
        }
    }};
}

/// One target whose calls the host computes.
macro_rules! host_target {
    ($name:literal, [$($scalar:tt),+], { $($struct:tt)+ }, $call:ident, $run:expr) => {{
        xla_ffi::signature! { $($struct)+ }

        struct Handler;

        impl xla_ffi::Handler for Handler {
            const NAME: &'static str = $name;
            const TRAITS: xla_ffi::sys::XLA_FFI_Handler_Traits =
                crate::ops::cuda::Promise::queued.traits();
            const SIGNATURES: &'static [&'static xla_ffi::Signature] = &[$(
                <crate::ops::of!(OnDevice, 'static, $scalar) as xla_ffi::Call<'static>>::SIGNATURE
            ),+];

            fn call<'f>(
                frame: xla_ffi::Frame<'f>,
                context: &xla_ffi::Context<'f>,
            ) -> xla_ffi::Outcome<'f> {
                if let Err(refusal) = crate::backend::in_force() {
                    return xla_ffi::Outcome::Done(Err(refusal.into()));
                }
                let dtypes = [frame.arg_dtype(0), frame.arg_dtype(1)];
                $(if Self::SIGNATURES.len() == 1 || crate::ops::is!(dtypes, $scalar) {
                    type Device<'f> = crate::ops::of!(OnDevice, 'f, $scalar);
                    type Call<'f> = crate::ops::of!($call, 'f, $scalar);
                    if <Device<'f> as xla_ffi::Call<'f>>::decode(frame).is_none() {
                        return xla_ffi::Outcome::Mismatch;
                    }
                    let run: for<'h> fn(Call<'h>, &dyn lapax_core::Threads) -> _ = $run;
                    return xla_ffi::Outcome::Done(crate::ops::on_host::answer(
                        context,
                        frame,
                        |frame| match <Call<'_> as xla_ffi::Call<'_>>::decode(frame) {
                            Some(call) => {
                                run(call, &crate::ops::cuda::host_threads()).map_err(crate::ops::misuse)
                            }
                            None => Err(xla_ffi::Error::invalid_argument("no such call on the CPU")),
                        },
                    ));
                })+
                xla_ffi::Outcome::Mismatch
            }
        }

        crate::table::Target {
            name: $name,
            platform: crate::table::Platform::Cuda,
            doc: " On CUDA the host computes it, and the call waits for the device.\n",
            handler: Some(xla_ffi::execute::<Handler>),
            initialize: Some(xla_ffi::initialize::<Handler>),
            captured: false,
            signatures: <Handler as xla_ffi::Handler>::SIGNATURES,
        }
    }};
}

/// The other form of a call, where there is one.
macro_rules! other_struct {
    ([]) => {};
    ([{ $($struct:tt)+ } $instead:expr]) => {
        xla_ffi::signature! { $($struct)+ }
    };
}

/// Tries the other form of a call, where there is one.
macro_rules! other {
    ($frame:ident, $context:ident, $t:ident, [], $f:lifetime) => {};
    ($frame:ident, $context:ident, $t:ident, [$struct:tt $instead:expr], $f:lifetime) => {
        let run: crate::ops::cuda::Run<Other<$f, $t>> = $instead;
        if let Some(call) = <Other<$f, $t> as xla_ffi::Call<$f>>::decode($frame) {
            return crate::ops::cuda::answer($context, |gpu| run(call, gpu));
        }
    };
}

/// The first of the element types of a call.
macro_rules! first {
    (($t:ident, $u:ident)) => {
        $t
    };
    ($t:ident) => {
        $t
    };
}

pub(crate) use {cuda, cuda_target, first, host_target, other, other_struct};

/// What runs a decoded call.
pub(crate) type Run<C> = fn(C, &Gpu<'_>) -> Result<(), lapax_cuda::Error>;

/// The answer to a call.
pub(crate) fn answer<'f>(
    context: &Context<'f>,
    body: impl FnOnce(&Gpu<'_>) -> Result<(), lapax_cuda::Error>,
) -> xla_ffi::Outcome<'f> {
    xla_ffi::Outcome::Done(with_gpu(context, body))
}

/// What a target promises of its work.
#[allow(non_camel_case_types, reason = "words of `cuda!`")]
#[derive(Clone, Copy)]
pub(crate) enum Promise {
    /// The same launches for the same shapes, and nothing else: XLA may record them.
    captured,
    /// Work on the stream, with scratch or in a library that does not promise as much.
    queued,
}

impl Promise {
    pub(crate) const fn traits(self) -> xla_ffi::sys::XLA_FFI_Handler_Traits {
        match self {
            Self::captured => xla_ffi::sys::XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE,
            Self::queued => 0,
        }
    }
}

/// XLA's allocator as the operations see it.
struct XlaMemory<'c, 'f>(&'c Context<'f>);

struct Scratch<'c>(xla_ffi::Scratch<'c>);

impl Lent for Scratch<'_> {
    fn address(&self) -> *mut std::ffi::c_void {
        self.0.as_ptr()
    }
}

impl Memory for XlaMemory<'_, '_> {
    fn lend(&self, bytes: usize) -> Result<Box<dyn Lent + '_>, lapax_cuda::Error> {
        match self.0.scratch(bytes) {
            Ok(scratch) => Ok(Box::new(Scratch(scratch))),
            Err(error) => {
                let kind = match error.code() {
                    ErrorCode::ResourceExhausted => Kind::ResourceExhausted,
                    _ => Kind::Unavailable,
                };
                Err(lapax_cuda::Error::new(kind, error.message()))
            }
        }
    }
}

/// Runs `body` with the call's stream and allocator.
pub(crate) fn with_gpu(
    context: &Context<'_>,
    body: impl FnOnce(&Gpu<'_>) -> Result<(), lapax_cuda::Error>,
) -> Result<(), Error> {
    let memory = XlaMemory(context);
    let stream = context.stream()?;
    // SAFETY: XLA's stream of a call on the platform CUDA is a CUstream, and its operands and scratch
    // are on that stream's device.
    let gpu = unsafe { Gpu::new(stream, &memory) };
    gpu.and_then(|gpu| body(&gpu)).map_err(|error| {
        let code = match error.kind() {
            Kind::InvalidArgument => ErrorCode::InvalidArgument,
            Kind::Unavailable => ErrorCode::Unavailable,
            Kind::ResourceExhausted => ErrorCode::ResourceExhausted,
            Kind::Internal => ErrorCode::Internal,
        };
        Error::new(code, error.message())
    })
}

/// The binding's operands as the operations see them.
pub(crate) fn input<T>(operand: &xla_ffi::Device<'_, T>) -> Input<T> {
    // SAFETY: XLA's promise about a call's arguments, which the decoder has checked.
    unsafe { Input::new(operand.as_ptr(), operand.len()) }
}

/// A result.
pub(crate) fn output<T>(operand: &xla_ffi::DeviceMut<'_, T>) -> Output<T> {
    // SAFETY: XLA's promise about a call's results, which the decoder has checked.
    unsafe { Output::new(operand.as_ptr(), operand.len()) }
}

/// An argument and the result that may share its memory.
pub(crate) fn in_out<T>(operand: &xla_ffi::DeviceInOut<'_, T>) -> memory::InOut<T> {
    memory::InOut { src: operand.src.as_ref().map(input), dst: output(&operand.dst) }
}

/// The triangle of a flag.
pub(crate) fn triangle(lower: bool) -> lapax_core::Uplo {
    if lower { lapax_core::Uplo::Lower } else { lapax_core::Uplo::Upper }
}

/// What a flag asks for.
pub(crate) fn vectors(wanted: bool) -> lapax_core::Vectors {
    if wanted { lapax_core::Vectors::Wanted } else { lapax_core::Vectors::None }
}

/// The host's processors, for what runs there: XLA lends a call on CUDA no threads.
pub(crate) fn host_threads() -> lapax_core::Spawned {
    lapax_core::Spawned(std::thread::available_parallelism().map_or(1, usize::from))
}

/// The host's side of a result.
pub(crate) fn zeros<T: Clone + Default>(operand: &xla_ffi::DeviceMut<'_, T>) -> Vec<T> {
    vec![T::default(); operand.len()]
}

/// What a target loads that runs on the host.
pub(crate) fn nothing(_: &Gpu<'_>) -> Result<(), lapax_cuda::Error> {
    Ok(())
}
