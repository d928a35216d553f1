//! The CUDA driver: whether it is there, what a device offers, copies and launches on a stream.
//!
//! cudarc opens libcuda when it is first used, and panics where there is none: `present` asks before.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;

use crate::error::{Error, Kind};

/// The CUDA release of the oldest driver that reads this build's kernels, times 1000, as the driver
/// counts: nvcc 13.0 writes for CUDA 13.
const OLDEST_DRIVER: c_int = 13_000;

/// Whether the driver can be used.
///
/// # Errors
/// UNAVAILABLE where libcuda is not found or does not start.
pub fn present() -> Result<(), Error> {
    static PRESENT: OnceLock<Result<(), Error>> = OnceLock::new();
    PRESENT
        .get_or_init(|| {
            found()?;
            // SAFETY: the library is there; the call takes no pointers.
            check(unsafe { sys::cuInit(0) }, || "starting the NVIDIA driver".to_owned())
        })
        .clone()
}

/// Whether there is a libcuda.
fn found() -> Result<(), Error> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens and closes the library; its initialisers are NVIDIA's.
    if *FOUND.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Ok(());
    }
    Err(Error::unavailable(
        "the NVIDIA driver's libcuda.so.1 was not found: is the driver installed, and visible in \
         this container?",
    ))
}

/// The CUDA release that the driver supports: 13000 is 13.0. Does not start the driver.
///
/// # Errors
/// UNAVAILABLE where libcuda is not found.
pub fn version() -> Result<c_int, Error> {
    found()?;
    let mut version = 0;
    // SAFETY: the address of an integer. The driver answers before cuInit, too.
    check(unsafe { sys::cuDriverGetVersion(&raw mut version) }, || {
        "the driver's version".to_owned()
    })?;
    Ok(version)
}

/// Whether the driver reads this build's kernels. Does not start it.
///
/// A driver reads machine code of its own major release of CUDA and of earlier ones, so one for CUDA 12
/// reads none of nvcc 13's. (NVIDIA's package for forward compatibility brings a libcuda that does, and
/// that is the one which answers here.)
///
/// # Errors
/// UNAVAILABLE, with both versions, where it is too old, and as [`version`].
pub fn runs_kernels() -> Result<(), Error> {
    too_old(version()?).map_or(Ok(()), |reason| Err(Error::unavailable(reason)))
}

/// Why the driver does not read this build's kernels, with both versions. None where it does, where there
/// is none, and where it does not tell. Does not start it.
pub fn unfit() -> Option<String> {
    too_old(version().ok()?)
}

fn too_old(version: c_int) -> Option<String> {
    let dotted = |version: c_int| format!("{}.{}", version / 1000, version % 1000 / 10);
    (version < OLDEST_DRIVER).then(|| {
        format!(
            "the NVIDIA driver supports CUDA {}, but lapax's kernels need a driver for CUDA {} (580 \
             or later)",
            dotted(version),
            dotted(OLDEST_DRIVER)
        )
    })
}

/// What a device offers to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of streaming multiprocessors.
    pub processors: usize,
    /// Bytes of shared memory that a block can have, the kernel's own among them.
    pub shared_memory: usize,
    /// The compute capability, major and minor.
    pub capability: (usize, usize),
}

/// The limits of a context's device.
pub(crate) fn limits(context: sys::CUcontext) -> Result<Limits, Error> {
    use sys::CUdevice_attribute as Attribute;
    static LIMITS: OnceLock<Mutex<HashMap<usize, Limits>>> = OnceLock::new();
    let known = LIMITS.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(limits) = known.get(&context.addr()) {
        return Ok(*limits);
    }
    let found = within(context, || {
        let device = current_device()?;
        let read = |attribute| {
            let mut value = 0;
            // SAFETY: the address of an integer, and a device of the driver.
            let read = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
            check(read, || "a property of the device".to_owned())?;
            Ok::<usize, Error>(usize::try_from(value).unwrap_or(0))
        };
        let processors = read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1);
        let shared_memory = read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let major = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(Limits { processors, shared_memory, capability: (major, minor) })
    })?;
    known.insert(context.addr(), found);
    Ok(found)
}

/// The context of a stream.
pub(crate) fn context(stream: sys::CUstream) -> Result<sys::CUcontext, Error> {
    present()?;
    let mut context = null_mut();
    // SAFETY: the stream is the caller's, made by this driver (Gpu::new).
    let got = unsafe { sys::cuStreamGetCtx(stream, &raw mut context) };
    check(got, || "the context of XLA's stream".to_owned())?;
    Ok(context)
}

/// Runs `body` with this context current.
pub(crate) fn within<R>(
    context: sys::CUcontext,
    body: impl FnOnce() -> Result<R, Error>,
) -> Result<R, Error> {
    // SAFETY: a context of this driver; popped below.
    let pushed = unsafe { sys::cuCtxPushCurrent_v2(context) };
    check(pushed, || "entering the context of XLA's stream".to_owned())?;
    let result = body();
    let mut popped = null_mut();
    // SAFETY: the address of a handle.
    let left = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
    check(left, || "leaving the context of XLA's stream".to_owned())?;
    result
}

pub(crate) fn current_device() -> Result<sys::CUdevice, Error> {
    let mut device = 0;
    // SAFETY: the address of an integer.
    check(unsafe { sys::cuCtxGetDevice(&raw mut device) }, || "the current device".to_owned())?;
    Ok(device)
}

/// Copies bytes within the device, in the stream's order.
pub(crate) fn copy(
    stream: sys::CUstream,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (address(to), address(from));
    // SAFETY: operands of the call hold so many bytes (memory), on this stream's device.
    let queued = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
    check(queued, || format!("copying {bytes} bytes within the device"))
}

/// Copies bytes from the device and waits for them.
pub(crate) fn read(stream: sys::CUstream, to: &mut [u8], from: *const c_void) -> Result<(), Error> {
    if to.is_empty() {
        return Ok(());
    }
    // SAFETY: `to` lives until the stream has been waited for.
    unsafe { fetch(stream, to.as_mut_ptr().cast(), from, to.len()) }?;
    wait(stream)
}

/// Copies bytes to the device and waits until they are there.
pub(crate) fn write(stream: sys::CUstream, to: *mut c_void, from: &[u8]) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    // SAFETY: `from` lives until the stream has been waited for.
    unsafe { send(stream, to, from.as_ptr().cast(), from.len()) }?;
    wait(stream)
}

/// Copies bytes, at least one, from the device to the host, in the stream's order.
///
/// # Safety
/// Both hold so many, until the stream is there.
pub(crate) unsafe fn fetch(
    stream: sys::CUstream,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let queued = unsafe { sys::cuMemcpyDtoHAsync_v2(to, address(from), bytes, stream) };
    check(queued, || format!("copying {bytes} bytes from the device"))
}

/// Copies bytes, at least one, from the host to the device, in the stream's order.
///
/// # Safety
/// As for [`fetch`].
pub(crate) unsafe fn send(
    stream: sys::CUstream,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let queued = unsafe { sys::cuMemcpyHtoDAsync_v2(address(to), from, bytes, stream) };
    check(queued, || format!("copying {bytes} bytes to the device"))
}

/// Page-locked memory of the host.
pub(crate) fn page_locked(context: sys::CUcontext, bytes: usize) -> Result<*mut c_void, Error> {
    within(context, || {
        let mut memory = null_mut();
        // SAFETY: the address of a pointer, in a current context.
        let made = unsafe { sys::cuMemAllocHost_v2(&raw mut memory, bytes) };
        check(made, || format!("{bytes} bytes of page-locked memory"))?;
        Ok(memory)
    })
}

/// Sets bytes of the device, in the stream's order.
pub(crate) fn fill(
    stream: sys::CUstream,
    to: *mut c_void,
    value: u8,
    bytes: usize,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: an operand of the call, or scratch, of so many bytes.
    let queued = unsafe { sys::cuMemsetD8Async(address(to), value, bytes, stream) };
    check(queued, || format!("setting {bytes} bytes of the device"))
}

/// Waits until the stream has done all that is queued.
pub(crate) fn wait(stream: sys::CUstream) -> Result<(), Error> {
    // SAFETY: the stream is the caller's.
    check(unsafe { sys::cuStreamSynchronize(stream) }, || "waiting for the device".to_owned())
}

fn address<T>(pointer: *const T) -> sys::CUdeviceptr {
    const { assert!(size_of::<usize>() == size_of::<sys::CUdeviceptr>()) };
    pointer.addr() as sys::CUdeviceptr
}

/// An error with the status's name and sentence, and what was being done.
pub(crate) fn check(status: sys::CUresult, what: impl FnOnce() -> String) -> Result<(), Error> {
    if status == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let text = |get: unsafe fn(sys::CUresult, *mut *const std::ffi::c_char) -> sys::CUresult| {
        let mut text = null();
        // SAFETY: the address of a pointer, which becomes that of a constant C string or null.
        unsafe {
            get(status, &raw mut text);
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy()) }
        }
    };
    let name = text(sys::cuGetErrorName).unwrap_or("an unknown status".into());
    let sentence = text(sys::cuGetErrorString).unwrap_or_default();
    let kind = match status {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Kind::ResourceExhausted,
        sys::CUresult::CUDA_ERROR_NO_DEVICE
        | sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | sys::CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | sys::CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => Kind::Unavailable,
        _ => Kind::Internal,
    };
    Err(Error::new(kind, format!("{}: {name} ({sentence})", what())))
}
