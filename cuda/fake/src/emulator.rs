//! The emulator's C entry points.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

unsafe extern "C" {
    fn emulator_launch(
        name: *const c_char,
        blocks: *const c_uint,
        threads: *const c_uint,
        shared_bytes: usize,
        arguments: *mut *mut c_void,
        seed: c_uint,
        error: *mut c_char,
        error_size: usize,
    ) -> c_int;
    fn emulator_has(name: *const c_char) -> c_int;
}

/// Whether there is a kernel of this name.
pub(crate) fn has(name: &CStr) -> bool {
    // SAFETY: a C string.
    unsafe { emulator_has(name.as_ptr()) != 0 }
}

/// Runs a kernel; `seed` shuffles the order of its threads.
///
/// # Safety
/// The arguments are those of the kernel, as for cuLaunchKernel.
pub(crate) unsafe fn launch(
    name: &CStr,
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared_bytes: usize,
    arguments: *mut *mut c_void,
    seed: c_uint,
) -> Result<(), String> {
    let mut error = vec![0_u8; 1024];
    // SAFETY: the caller's promise; the buffer is as long as it says.
    let failed = unsafe {
        let (at, size) = (error.as_mut_ptr().cast(), error.len());
        let (blocks, threads) = (blocks.as_ptr(), threads.as_ptr());
        emulator_launch(name.as_ptr(), blocks, threads, shared_bytes, arguments, seed, at, size)
    };
    if failed == 0 {
        return Ok(());
    }
    let text = CStr::from_bytes_until_nul(&error).unwrap_or(c"").to_owned();
    Err(CString::into_string(text).unwrap_or_default())
}
