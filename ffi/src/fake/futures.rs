//! The fake host's futures. Each is made and waited for on the thread that calls the handler, and
//! completed once on any.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::Failure;
use crate::sys;

/// How long a call may take before the test fails: no handler under test is slower.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    /// Futures that handlers called on this thread have asked for.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// Shared by the call that waits and the handler that completes; each has one reference.
#[derive(Default)]
struct Future {
    result: Mutex<Option<Result<(), Failure>>>,
    completed: Condvar,
}

/// Fills the table's slots.
pub(super) fn offer(api: &mut sys::XLA_FFI_Api) {
    api.XLA_FFI_Future_Create = Some(create);
    api.XLA_FFI_Future_SetAvailable = Some(set_available);
    api.XLA_FFI_Future_SetError = Some(set_error);
}

/// How many futures handlers have asked for on this thread.
pub(super) fn made() -> usize {
    MADE.get()
}

/// What the future in a frame is completed with.
pub(super) fn wait(future: *mut sys::XLA_FFI_Future) -> Result<(), Failure> {
    // SAFETY: a future of this host; this is the call's reference.
    let future = unsafe { Arc::from_raw(future.cast_const().cast::<Future>()) };
    let result = future.result.lock().expect("no panic");
    let (mut result, _) = future
        .completed
        .wait_timeout_while(result, PATIENCE, |result| result.is_none())
        .expect("no panic");
    result.take().expect("the handler completes its future")
}

unsafe extern "C" fn create(args: *mut sys::XLA_FFI_Future_Create_Args) -> *mut sys::XLA_FFI_Error {
    let future = Arc::<Future>::default();
    let handler = Arc::into_raw(Arc::clone(&future));
    assert!(std::ptr::eq(Arc::into_raw(future), handler));
    // SAFETY: the caller's struct.
    unsafe { (*args).future = handler.cast_mut().cast() };
    MADE.set(MADE.get() + 1);
    std::ptr::null_mut()
}

unsafe extern "C" fn set_available(
    args: *mut sys::XLA_FFI_Future_SetAvailable_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct with a future of this host.
    unsafe { complete((*args).future, Ok(())) }
}

unsafe extern "C" fn set_error(
    args: *mut sys::XLA_FFI_Future_SetError_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct with a future and an error of this host, which it gives away.
    unsafe { complete((*args).future, Err(Failure::from_error((*args).error))) }
}

/// # Safety
/// A future of this host that was not completed before.
unsafe fn complete(
    future: *mut sys::XLA_FFI_Future,
    result: Result<(), Failure>,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: this is the handler's reference.
    let future = unsafe { Arc::from_raw(future.cast_const().cast::<Future>()) };
    let before = future.result.lock().expect("no panic").replace(result);
    assert!(before.is_none(), "a future is completed once");
    future.completed.notify_all();
    std::ptr::null_mut()
}
