//! The same on NVIDIA GPUs: kernels/rms_norm.cu, launched on XLA's stream.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use cudarc::driver::sys;
use xla_ffi::{Context, Device, DeviceMut, Error, ErrorCode};

use crate::row_length;

xla_ffi::handler! {
    /// [`rms_norm`](crate::rms_norm) on a GPU.
    #[unsafe(no_mangle)]
    pub fn rms_norm_cuda(call: RmsNorm<'f>, context) in Execute {
        target "rms_norm";
        args { x: Device<'f, f32> }
        rets { y: DeviceMut<'f, f32>, s: DeviceMut<'f, f32> }
        attrs { eps: f32 }
        traits xla_ffi::sys::XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
    } => {
        let RmsNorm { x, y, s, mut eps, .. } = call;
        let mut n = row_length(s.len(), &[x.len(), y.len()])?;
        let (rows, mut x, mut y, mut s) = (s.len(), x.as_ptr(), y.as_ptr(), s.as_ptr());
        let args = [at(&mut x), at(&mut y), at(&mut s), at(&mut n), at(&mut eps)];
        // SAFETY: the kernel's parameters in their order; operands of rows · n numbers.
        unsafe { launch(context, &FORWARD, rows, args) }
    }
}

xla_ffi::handler! {
    /// [`rms_norm_backward`](crate::rms_norm_backward) on a GPU.
    #[unsafe(no_mangle)]
    pub fn rms_norm_backward_cuda(call: Backward<'f>, context) in Execute {
        target "rms_norm_backward";
        args { s: Device<'f, f32>, x: Device<'f, f32>, ct: Device<'f, f32> }
        rets { ct_x: DeviceMut<'f, f32> }
        attrs {}
        traits xla_ffi::sys::XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
    } => {
        let Backward { s, x, ct, ct_x, .. } = call;
        let mut n = row_length(s.len(), &[x.len(), ct.len(), ct_x.len()])?;
        let (rows, mut s, mut x) = (s.len(), s.as_ptr(), x.as_ptr());
        let (mut ct, mut ct_x) = (ct.as_ptr(), ct_x.as_ptr());
        let args = [at(&mut s), at(&mut x), at(&mut ct), at(&mut ct_x), at(&mut n)];
        // SAFETY: as above.
        unsafe { launch(context, &BACKWARD, rows, args) }
    }
}

xla_ffi::handler! {
    /// The initialize stage of both: loads the kernels, which a call may not do that XLA records into a
    /// CUDA graph.
    #[unsafe(no_mangle)]
    pub fn rms_norm_load(_call: Load<'f>, _context) in Initialize {} => {
        FORWARD.find()?;
        BACKWARD.find().map(drop)
    }
}

/// A kernel, found once in this process.
struct Kernel {
    name: &'static CStr,
    found: OnceLock<Result<usize, Error>>,
}

static FORWARD: Kernel = Kernel { name: c"rms_norm_rows", found: OnceLock::new() };
static BACKWARD: Kernel = Kernel { name: c"rms_norm_backward_rows", found: OnceLock::new() };

impl Kernel {
    /// What cuLaunchKernel takes: since CUDA 12 a kernel of a library, of no context yet.
    fn find(&self) -> Result<sys::CUfunction, Error> {
        let found = self.found.get_or_init(|| {
            let (library, mut kernel) = (library()?, null_mut());
            // SAFETY: a loaded library, and a C string.
            check("finding a kernel", unsafe {
                sys::cuLibraryGetKernel(&raw mut kernel, library, self.name.as_ptr())
            })?;
            Ok(kernel.expose_provenance())
        });
        found.clone().map(std::ptr::with_exposed_provenance_mut)
    }
}

/// The kernels as nvcc made them (build.rs).
#[cfg(kernels)]
const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rms_norm.fatbin"));
#[cfg(not(kernels))]
const IMAGE: &[u8] = &[];

/// Loads the kernels, for the GPUs of all contexts.
fn library() -> Result<sys::CUlibrary, Error> {
    static LIBRARY: OnceLock<Result<usize, Error>> = OnceLock::new();
    let loaded = LIBRARY.get_or_init(|| {
        // SAFETY: opens the driver's library.
        if IMAGE.is_empty() || !unsafe { sys::is_culib_present() } {
            let missing =
                if IMAGE.is_empty() { "nvcc when this was built" } else { "libcuda.so.1" };
            return Err(Error::new(ErrorCode::Unavailable, format!("there was no {missing}")));
        }
        // Aligned, as the driver wants it, and there as long as the process.
        let image = vec![0_u128; IMAGE.len().div_ceil(size_of::<u128>())].leak().as_mut_ptr();
        let (mut library, none, values) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the image fits, and is whole when the driver reads it; there are no options.
        check("loading the kernels", unsafe {
            image.cast::<u8>().copy_from_nonoverlapping(IMAGE.as_ptr(), IMAGE.len());
            let (image, options) = (image.cast(), null_mut());
            sys::cuLibraryLoadData(&raw mut library, image, none, values, 0, options, null_mut(), 0)
        })?;
        Ok(library.expose_provenance())
    });
    loaded.clone().map(std::ptr::with_exposed_provenance_mut)
}

/// Queues a kernel on the call's stream, a warp for each row.
///
/// # Safety
/// `args` point to the kernel's parameters.
unsafe fn launch<const N: usize>(
    context: &Context<'_>,
    kernel: &Kernel,
    rows: usize,
    mut args: [*mut c_void; N],
) -> Result<(), Error> {
    let rows = u32::try_from(rows).ok().filter(|rows| *rows <= i32::MAX.unsigned_abs());
    let rows = rows.ok_or_else(|| Error::invalid_argument("more than 2^31 - 1 rows"))?;
    let (function, stream) = (kernel.find()?, context.stream()?.cast());
    // SAFETY: the caller's promise; XLA's stream is a CUstream, whose context is current.
    check("launching a kernel", unsafe {
        let (args, none) = (args.as_mut_ptr(), null_mut());
        sys::cuLaunchKernel(function, rows, 1, 1, 32, 1, 1, 0, stream, args, none)
    })
}

/// Where a parameter lies.
fn at<T>(parameter: &mut T) -> *mut c_void {
    (&raw mut *parameter).cast()
}

fn check(what: &str, status: sys::CUresult) -> Result<(), Error> {
    if status == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::internal(format!("{what}: {status:?}")))
}

#[cfg(all(test, kernels))]
mod tests {
    use xla_ffi::StageFn;
    use xla_ffi::fake::{Attr, Call, Host};
    use xla_ffi::sys::XLA_FFI_ExecutionStage_INITIALIZE;

    use super::*;

    /// On a fake device, whose memory is the process's own: see cuda/fake.
    #[test]
    fn a_gpu_gives_what_the_cpu_gives() {
        if let Err(reason) = lapax_cuda_fake::install() {
            return println!("skipped: a_gpu_gives_what_the_cpu_gives: {reason}");
        }
        let host = Host::new();
        let load = Call::new().stage(XLA_FFI_ExecutionStage_INITIALIZE);
        assert_eq!(host.execute(Some(rms_norm_load), &load), Ok(()));
        let x: Vec<f32> = (0_u8..210).map(|i| f32::from(i % 17) - 6.5).collect();
        let ct: Vec<f32> = x.iter().rev().map(|x| x - 1.0).collect();
        for rows in [1_u8, 2, 3, 7, 30] {
            let forward = |handler: StageFn| {
                let (mut y, mut s) = (vec![0.0_f32; 210], vec![0.0_f32; usize::from(rows)]);
                let shape = [i64::from(rows)];
                let call = Call::new().arg(&[210], &x).ret(&[210], &mut y).ret(&shape, &mut s);
                let call = call.attr("eps", Attr::F32(1e-5));
                assert_eq!(host.execute(Some(handler), &call), Ok(()));
                drop(call);
                (y, s)
            };
            let (expected, found) = (forward(crate::rms_norm), forward(rms_norm_cuda));
            close(&expected.0, &found.0);
            close(&expected.1, &found.1);
            let backward = |handler: StageFn| {
                let mut ct_x = vec![0.0_f32; 210];
                let shape = [i64::from(rows)];
                let call = Call::new().arg(&shape, &expected.1).arg(&[210], &x);
                let call = call.arg(&[210], &ct).ret(&[210], &mut ct_x);
                assert_eq!(host.execute(Some(handler), &call), Ok(()));
                drop(call);
                ct_x
            };
            close(&backward(crate::rms_norm_backward), &backward(rms_norm_backward_cuda));
        }
    }

    /// Sums in another order differ by some roundings.
    fn close(expected: &[f32], found: &[f32]) {
        let size = expected.iter().fold(0.0_f32, |size, x| size.max(x.abs()));
        for (expected, found) in expected.iter().zip(found) {
            assert!((expected - found).abs() <= 1e-5 * size, "{expected} {found}");
        }
    }
}
