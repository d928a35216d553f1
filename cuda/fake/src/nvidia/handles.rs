//! Handles, and whether a stream was set.

use std::ffi::{c_int, c_uint, c_void};

use crate::Slots;
use crate::driver::injected;

/// What every handle points to.
#[derive(Default)]
pub(crate) struct Handle {
    stream: usize,
    pub(crate) scalars_on_device: bool,
}

/// The handle of a call, on which a stream was set.
///
/// # Safety
/// A handle that `create` made.
pub(crate) unsafe fn checked<'a>(handle: *mut c_void) -> &'a Handle {
    assert!(!handle.is_null(), "a handle");
    // SAFETY: the caller's promise.
    let handle = unsafe { &*handle.cast::<Handle>() };
    assert_ne!(handle.stream, 0, "a stream is set before a handle is used");
    handle
}

/// # Safety
/// The place of a handle.
unsafe fn create(name: &'static str, to: *mut *mut c_void) -> c_uint {
    if let Some(status) = injected(name) {
        return status;
    }
    // SAFETY: the caller's promise.
    unsafe { *to = Box::into_raw(Box::<Handle>::default()).cast() };
    0
}

macro_rules! creators {
    ($($function:ident = $name:literal;)*) => {
        $(unsafe extern "C" fn $function(to: *mut *mut c_void) -> c_uint {
            // SAFETY: the library's contract.
            unsafe { create($name, to) }
        })*
    };
}

creators! {
    dense = "cusolverDnCreate";
    solver_of_sparse = "cusolverSpCreate";
    blas = "cublasCreate_v2";
    sparse = "cusparseCreate";
    parameters = "cusolverDnCreateParams";
    syevj = "cusolverDnCreateSyevjInfo";
    gesvdj = "cusolverDnCreateGesvdjInfo";
    description = "cusparseCreateMatDescr";
}

unsafe extern "C" fn set_stream(handle: *mut c_void, stream: *mut c_void) -> c_uint {
    // SAFETY: a handle that `create` made.
    unsafe { (*handle.cast::<Handle>()).stream = stream.addr() };
    0
}

unsafe extern "C" fn set_pointer_mode(handle: *mut c_void, mode: c_int) -> c_uint {
    // SAFETY: a handle that `create` made.
    unsafe { (*handle.cast::<Handle>()).scalars_on_device = mode == 1 };
    0
}

unsafe extern "C" fn destroy(handle: *mut c_void) -> c_uint {
    // SAFETY: made by `create`, destroyed once.
    drop(unsafe { Box::from_raw(handle.cast::<Handle>()) });
    0
}

pub(crate) fn list(slots: &mut Slots) {
    slots.extend([
        ("cusolverDnCreate", dense as *const c_void),
        ("cusolverDnSetStream", set_stream as *const c_void),
        ("cusolverDnCreateParams", parameters as *const c_void),
        ("cusolverSpCreate", solver_of_sparse as *const c_void),
        ("cusolverSpSetStream", set_stream as *const c_void),
        ("cublasCreate_v2", blas as *const c_void),
        ("cublasSetStream_v2", set_stream as *const c_void),
        ("cublasSetPointerMode_v2", set_pointer_mode as *const c_void),
        ("cusparseCreate", sparse as *const c_void),
        ("cusparseSetStream", set_stream as *const c_void),
        ("cusparseCreateMatDescr", description as *const c_void),
        ("cusolverDnCreateSyevjInfo", syevj as *const c_void),
        ("cusolverDnDestroySyevjInfo", destroy as *const c_void),
        ("cusolverDnCreateGesvdjInfo", gesvdj as *const c_void),
        ("cusolverDnDestroyGesvdjInfo", destroy as *const c_void),
    ]);
}
