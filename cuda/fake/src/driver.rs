//! A CUDA driver of one device whose memory is the process's own.
//!
//! What is queued runs at once, on the calling thread. What a stream in capture may not do is refused
//! as the real driver refuses it; tests can make any function fail.

#![allow(non_snake_case, reason = "the driver's names")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::emulator;
use crate::libraries::Slots;

/// `CUresult`s, as the driver numbers them.
#[allow(missing_docs)]
pub mod status {
    use std::ffi::c_uint;

    pub const SUCCESS: c_uint = 0;
    pub const INVALID_VALUE: c_uint = 1;
    pub const OUT_OF_MEMORY: c_uint = 2;
    pub const NOT_FOUND: c_uint = 500;
    pub const LAUNCH_FAILED: c_uint = 719;
    pub const STREAM_CAPTURE_UNSUPPORTED: c_uint = 900;
}

/// The device as tests set it, and what it counts.
#[derive(Clone, Debug)]
pub struct State {
    /// What cuDriverGetVersion answers.
    pub version: c_int,
    /// Streaming multiprocessors.
    pub processors: c_int,
    /// Bytes of shared memory that a block can have.
    pub shared_memory: c_int,
    /// Whether a stream is being captured.
    pub capturing: bool,
    /// Shuffles the threads of each launch; 0 leaves them in order.
    pub seed: c_uint,
    /// Kernels that were launched.
    pub launches: HashMap<String, usize>,
    /// Statuses that functions are to answer, by name, each once.
    pub failures: HashMap<&'static str, c_uint>,
    /// Why the emulator stopped last.
    pub error: Option<String>,
    /// Calls that waited for the device.
    pub waits: usize,
}

/// The device's state.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    let state = STATE.get_or_init(|| {
        Mutex::new(State {
            version: 13_000,
            processors: 4,
            shared_memory: 227 << 10,
            capturing: false,
            seed: 0,
            launches: HashMap::new(),
            failures: HashMap::new(),
            error: None,
            waits: 0,
        })
    });
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The status that a test wants of this function, once.
pub(crate) fn injected(name: &'static str) -> Option<c_uint> {
    state().failures.remove(name)
}

/// What the functions of `symbols/cuda.txt` are.
pub(crate) fn functions() -> Slots {
    macro_rules! list {
        ($($name:ident)*) => {
            HashMap::from([$((stringify!($name), $name as *const c_void)),*])
        };
    }
    list! {
        cuCtxGetDevice cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuDeviceGetAttribute cuDriverGetVersion
        cuGetErrorName cuGetErrorString cuInit cuKernelGetAttribute cuKernelGetFunction
        cuKernelSetAttribute cuLaunchKernel cuLibraryGetKernel cuLibraryLoadData cuMemAllocHost_v2
        cuMemcpyDtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2 cuMemsetD8Async cuStreamGetCtx
        cuStreamSynchronize
    }
}

/// The one context.
const CONTEXT: usize = 0xc0_0000;
/// Shared memory that a block has without asking.
const SHARED_UNASKED: usize = 48 << 10;
/// Shared memory that every kernel has of its own: what is left for launches is not all of a block's.
const SHARED_OWN: c_int = 64;

/// The status that a test wants, or that a capture forces, or success.
fn status(name: &'static str, captured: bool) -> c_uint {
    let mut state = state();
    if let Some(failure) = state.failures.remove(name) {
        return failure;
    }
    if state.capturing && !captured {
        return status::STREAM_CAPTURE_UNSUPPORTED;
    }
    status::SUCCESS
}

/// Writes an answer where the status is success.
///
/// # Safety
/// The address is null or a place for the answer.
unsafe fn answer<T>(status: c_uint, to: *mut T, value: T) -> c_uint {
    if status != status::SUCCESS {
        return status;
    }
    if to.is_null() {
        return status::INVALID_VALUE;
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    status
}

extern "C" fn cuInit(_flags: c_uint) -> c_uint {
    status("cuInit", true)
}

unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_uint {
    let value = state().version;
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuDriverGetVersion", true), version, value) }
}

/// Names as the driver's; of the statuses that occur here.
unsafe extern "C" fn cuGetErrorName(error: c_uint, name: *mut *const c_char) -> c_uint {
    let text = match error {
        status::INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        status::OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        status::NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        status::LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
        status::STREAM_CAPTURE_UNSUPPORTED => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        _ => c"CUDA_ERROR_UNKNOWN",
    };
    // SAFETY: the driver's contract.
    unsafe { answer(status::SUCCESS, name, text.as_ptr()) }
}

unsafe extern "C" fn cuGetErrorString(_error: c_uint, text: *mut *const c_char) -> c_uint {
    // SAFETY: the driver's contract.
    unsafe { answer(status::SUCCESS, text, c"as the test wants".as_ptr()) }
}

unsafe extern "C" fn cuStreamGetCtx(stream: *mut c_void, context: *mut *mut c_void) -> c_uint {
    if stream.is_null() {
        return status::INVALID_VALUE;
    }
    let value = std::ptr::without_provenance_mut(CONTEXT);
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuStreamGetCtx", true), context, value) }
}

thread_local! {
    /// How many contexts are pushed.
    static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> c_uint {
    assert_eq!(context.addr(), CONTEXT, "the context of the stream");
    DEPTH.set(DEPTH.get() + 1);
    status::SUCCESS
}

unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> c_uint {
    DEPTH.set(DEPTH.get().checked_sub(1).expect("a context that was pushed"));
    // SAFETY: the driver's contract.
    unsafe { answer(status::SUCCESS, context, std::ptr::without_provenance_mut(CONTEXT)) }
}

unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_uint {
    assert!(DEPTH.get() > 0, "the device of no context");
    // SAFETY: the driver's contract.
    unsafe { answer(status::SUCCESS, device, 0) }
}

unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_uint,
    _device: c_int,
) -> c_uint {
    const PROCESSORS: c_uint = 16;
    const SHARED_MEMORY: c_uint = 97;
    const MAJOR: c_uint = 75;
    const MINOR: c_uint = 76;
    let known = match attribute {
        PROCESSORS => state().processors,
        SHARED_MEMORY => state().shared_memory,
        MAJOR => 9,
        MINOR => 0,
        _ => return status::INVALID_VALUE,
    };
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuDeviceGetAttribute", true), value, known) }
}

unsafe extern "C" fn cuLibraryLoadData(
    library: *mut *mut c_void,
    image: *const c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: c_uint,
    _: *mut c_void,
    _: *mut c_void,
    _: c_uint,
) -> c_uint {
    const FATBIN: u32 = 0xba55_ed50;
    assert!(image.cast::<[u64; 2]>().is_aligned(), "an image is aligned to 16 bytes");
    // SAFETY: an image starts with its magic number.
    if unsafe { image.cast::<u32>().read() } != FATBIN {
        return status::INVALID_VALUE;
    }
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuLibraryLoadData", false), library, image.cast_mut()) }
}

/// A kernel, for which its name stands, and whether it may have much shared memory.
struct Kernel {
    name: std::ffi::CString,
    shared: Mutex<usize>,
}

unsafe extern "C" fn cuLibraryGetKernel(
    kernel: *mut *mut c_void,
    library: *mut c_void,
    name: *const c_char,
) -> c_uint {
    assert!(!library.is_null());
    // SAFETY: the driver's contract: a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if !emulator::has(name) {
        return status::NOT_FOUND;
    }
    let handle = Box::new(Kernel { name: name.to_owned(), shared: Mutex::new(SHARED_UNASKED) });
    // SAFETY: the driver's contract.
    unsafe {
        answer(status("cuLibraryGetKernel", false), kernel, Box::into_raw(handle).cast::<c_void>())
    }
}

unsafe extern "C" fn cuKernelGetFunction(
    function: *mut *mut c_void,
    kernel: *mut c_void,
) -> c_uint {
    assert!(DEPTH.get() > 0, "a function in no context");
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuKernelGetFunction", false), function, kernel) }
}

unsafe extern "C" fn cuKernelGetAttribute(
    value: *mut c_int,
    attribute: c_uint,
    _kernel: *mut c_void,
    _device: c_int,
) -> c_uint {
    const SHARED: c_uint = 1;
    assert_eq!(attribute, SHARED);
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuKernelGetAttribute", true), value, SHARED_OWN) }
}

unsafe extern "C" fn cuKernelSetAttribute(
    attribute: c_uint,
    value: c_int,
    kernel: *mut c_void,
    _device: c_int,
) -> c_uint {
    const SHARED: c_uint = 8;
    assert_eq!(attribute, SHARED);
    if value > state().shared_memory - SHARED_OWN {
        return status::INVALID_VALUE;
    }
    // SAFETY: kernels are made by cuLibraryGetKernel and never freed.
    let kernel = unsafe { &*kernel.cast::<Kernel>() };
    *kernel.shared.lock().unwrap_or_else(PoisonError::into_inner) =
        usize::try_from(value).unwrap_or(0);
    status("cuKernelSetAttribute", true)
}

#[allow(clippy::too_many_arguments, reason = "the driver's")]
unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: *mut c_void,
    arguments: *mut *mut c_void,
    extra: *mut c_void,
) -> c_uint {
    assert!(!stream.is_null() && extra.is_null(), "work goes to XLA's stream");
    // SAFETY: kernels are made by cuLibraryGetKernel and never freed.
    let kernel = unsafe { &*function.cast::<Kernel>() };
    let bytes = usize::try_from(shared).unwrap_or(usize::MAX);
    let granted = *kernel.shared.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = status("cuLaunchKernel", true);
    if bytes > granted || x == 0 || y == 0 || z == 0 {
        return status::INVALID_VALUE;
    }
    if refused != status::SUCCESS {
        return refused;
    }
    let seed = state().seed;
    let (blocks, threads) = ([x, y, z], [block_x, block_y, block_z]);
    // SAFETY: the driver's contract.
    let ran = unsafe { emulator::launch(&kernel.name, blocks, threads, bytes, arguments, seed) };
    let mut state = state();
    *state.launches.entry(kernel.name.to_string_lossy().into_owned()).or_default() += 1;
    match ran {
        Ok(()) => status::SUCCESS,
        Err(error) => {
            state.error = Some(error);
            status::LAUNCH_FAILED
        }
    }
}

/// The most bytes of page-locked memory that one call gets.
pub const PAGE_LOCKED: usize = 64 << 20;

/// Never freed.
unsafe extern "C" fn cuMemAllocHost_v2(memory: *mut *mut c_void, bytes: usize) -> c_uint {
    const PAGE: usize = 4096;
    assert!(DEPTH.get() > 0, "page-locked memory in no context");
    if bytes > PAGE_LOCKED {
        return status::OUT_OF_MEMORY;
    }
    let layout = std::alloc::Layout::from_size_align(bytes.max(1), PAGE).expect("a size");
    // SAFETY: at least a byte is asked for.
    let made = unsafe { std::alloc::alloc_zeroed(layout) };
    assert!(!made.is_null(), "out of memory");
    // SAFETY: the driver's contract.
    unsafe { answer(status("cuMemAllocHost_v2", false), memory, made.cast()) }
}

unsafe fn copy(
    name: &'static str,
    captured: bool,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> c_uint {
    let status = status(name, captured);
    if status == status::SUCCESS {
        // SAFETY: the driver's contract: both hold so many bytes, apart from each other.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.cast(), bytes) };
    }
    status
}

unsafe extern "C" fn cuMemcpyDtoDAsync_v2(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _stream: *mut c_void,
) -> c_uint {
    // SAFETY: the driver's contract.
    unsafe { copy("cuMemcpyDtoDAsync_v2", true, to, from, bytes) }
}

unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _stream: *mut c_void,
) -> c_uint {
    // SAFETY: the driver's contract.
    unsafe { copy("cuMemcpyDtoHAsync_v2", false, to, from, bytes) }
}

unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _stream: *mut c_void,
) -> c_uint {
    // SAFETY: the driver's contract.
    unsafe { copy("cuMemcpyHtoDAsync_v2", false, to, from, bytes) }
}

unsafe extern "C" fn cuMemsetD8Async(
    to: *mut c_void,
    value: u8,
    bytes: usize,
    _stream: *mut c_void,
) -> c_uint {
    let status = status("cuMemsetD8Async", true);
    if status == status::SUCCESS {
        // SAFETY: the driver's contract.
        unsafe { to.cast::<u8>().write_bytes(value, bytes) };
    }
    status
}

extern "C" fn cuStreamSynchronize(_stream: *mut c_void) -> c_uint {
    state().waits += 1;
    status("cuStreamSynchronize", false)
}
