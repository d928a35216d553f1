//! The fake host's device: its memory is the process's own, its stream an address.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::Failure;
use crate::sys;

/// The stream of every call.
pub(super) const STREAM: usize = 0x57ea_0000;

/// More scratch than this is refused, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Scratch that is lent: address and words.
static LENT: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Fills the table's slots.
pub(super) fn offer(api: &mut sys::XLA_FFI_Api) {
    api.XLA_FFI_Stream_Get = Some(stream);
    api.XLA_FFI_DeviceMemory_Allocate = Some(allocate);
    api.XLA_FFI_DeviceMemory_Free = Some(free);
}

/// Sets how many bytes of scratch one call can have at once, in the whole process.
pub fn limit_scratch(bytes: usize) {
    LIMIT.store(bytes, SeqCst);
}

/// How many pieces of scratch are lent, in the whole process.
pub fn scratch_lent() -> usize {
    LENT.lock().expect("no panic").len()
}

unsafe extern "C" fn stream(args: *mut sys::XLA_FFI_Stream_Get_Args) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    unsafe { (*args).stream = std::ptr::without_provenance_mut(STREAM) };
    std::ptr::null_mut()
}

unsafe extern "C" fn allocate(
    args: *mut sys::XLA_FFI_DeviceMemory_Allocate_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    let args = unsafe { &mut *args };
    assert!(args.alignment.is_power_of_two() && args.alignment <= 16, "XLA grants up to 16");
    if args.size > LIMIT.load(SeqCst) {
        let message = format!("out of memory: {} bytes", args.size);
        let code = sys::XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
        return Failure { code, message }.into_error();
    }
    // What is there is nobody's: no number that a computation could use.
    let memory = vec![u128::MAX; args.size.div_ceil(16)].into_boxed_slice();
    let words = memory.len();
    let data = Box::into_raw(memory).cast::<u128>();
    LENT.lock().expect("no panic").push((data.expose_provenance(), words));
    args.data = data.cast();
    std::ptr::null_mut()
}

unsafe extern "C" fn free(
    args: *mut sys::XLA_FFI_DeviceMemory_Free_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's struct.
    let (data, size): (*mut c_void, usize) = unsafe { ((*args).data, (*args).size) };
    let mut lent = LENT.lock().expect("no panic");
    let place = lent.iter().position(|(address, _)| *address == data.addr());
    let (_, words) = lent.swap_remove(place.expect("scratch of this host, given back once"));
    assert_eq!(words, size.div_ceil(16), "the size that was asked for");
    let memory = std::ptr::slice_from_raw_parts_mut(data.cast::<u128>(), words);
    // SAFETY: a slice that `allocate` leaked, and that was in the list until now.
    drop(unsafe { Box::from_raw(memory) });
    std::ptr::null_mut()
}
