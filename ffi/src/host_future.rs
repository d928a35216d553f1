//! A future of the host: made, and completed once. On the host's side of `future`.

use std::mem::offset_of;

use crate::error::{Error, destroy, struct_size};
use crate::sys;

type SetAvailable =
    unsafe extern "C" fn(*mut sys::XLA_FFI_Future_SetAvailable_Args) -> *mut sys::XLA_FFI_Error;
type SetError =
    unsafe extern "C" fn(*mut sys::XLA_FFI_Future_SetError_Args) -> *mut sys::XLA_FFI_Error;

/// A future of the host that is not completed.
#[derive(Debug)]
pub(crate) struct HostFuture {
    future: *mut sys::XLA_FFI_Future,
    /// The handler's name, for its errors.
    name: &'static str,
    api: *const sys::XLA_FFI_Api,
    set_available: SetAvailable,
    set_error: SetError,
}

// SAFETY: the C API's futures are made to be completed on another thread than the handler's, and
// its function table is a constant of the host.
unsafe impl Send for HostFuture {}

impl HostFuture {
    /// None where the host has no futures or refuses one.
    ///
    /// # Safety
    /// `api` is null or the host's function table.
    pub(crate) unsafe fn new(api: *const sys::XLA_FFI_Api, name: &'static str) -> Option<Self> {
        let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Future_SetError) + size_of::<usize>();
        // SAFETY: a non-null table is readable up to its struct_size.
        let (create, set_available, set_error) = unsafe {
            if api.is_null() || !sys::reaches((*api).struct_size, end) {
                return None;
            }
            let api = &*api;
            let (available, error) = (api.XLA_FFI_Future_SetAvailable, api.XLA_FFI_Future_SetError);
            (api.XLA_FFI_Future_Create?, available?, error?)
        };
        let mut args = sys::XLA_FFI_Future_Create_Args {
            struct_size: struct_size(sys::XLA_FFI_Future_Create_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            future: std::ptr::null_mut(),
        };
        // SAFETY: the host's function with the struct it asks for.
        let error = unsafe { create(&raw mut args) };
        if !error.is_null() {
            // SAFETY: the error is ours to destroy.
            unsafe { destroy(api, error) };
            return None;
        }
        let future = args.future;
        (!future.is_null()).then_some(HostFuture { future, name, api, set_available, set_error })
    }

    /// What goes into the call frame.
    pub(crate) fn pointer(&self) -> *mut sys::XLA_FFI_Future {
        self.future
    }

    /// Tells the host that the call is over. The host may run the rest of the program in here.
    pub(crate) fn complete(self, result: Result<(), Error>) {
        let error = match result {
            Ok(()) => std::ptr::null_mut(),
            // SAFETY: the host's function table.
            Err(error) => unsafe { error.of(self.name).into_host(self.api) },
        };
        let refused = if error.is_null() {
            let mut args = sys::XLA_FFI_Future_SetAvailable_Args {
                struct_size: struct_size(sys::XLA_FFI_Future_SetAvailable_Args_STRUCT_SIZE),
                extension_start: std::ptr::null_mut(),
                future: self.future,
            };
            // SAFETY: the host's function with the struct it asks for; `self` is used up, so that
            // the future is completed once.
            unsafe { (self.set_available)(&raw mut args) }
        } else {
            let mut args = sys::XLA_FFI_Future_SetError_Args {
                struct_size: struct_size(sys::XLA_FFI_Future_SetError_Args_STRUCT_SIZE),
                extension_start: std::ptr::null_mut(),
                future: self.future,
                error,
            };
            // SAFETY: as above; the error is the host's from here on.
            unsafe { (self.set_error)(&raw mut args) }
        };
        if !refused.is_null() {
            // SAFETY: the error is ours to destroy. There is nobody to tell.
            unsafe { destroy(self.api, refused) };
        }
    }
}
