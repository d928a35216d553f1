//! The fake host's registry, one for the process: the C API's function is told of no host.

use std::sync::Mutex;

use super::Failure;
use crate::error::struct_size;
use crate::sys;

/// Name, platform, and the stages' addresses.
type Entry = (Vec<u8>, Vec<u8>, [usize; 5]);

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Fills the table's slot.
pub(super) fn offer(api: &mut sys::XLA_FFI_Api) {
    api.XLA_FFI_Handler_Register = Some(register);
}

/// As XLA does: the same again is fine, another handler of the name is refused. The struct's size
/// tells whether the caller took this for a host with a record stage.
unsafe extern "C" fn register(
    args: *mut sys::XLA_FFI_Handler_Register_Args,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: both structs are the same up to the bundle's fifth handler.
    let entry = unsafe {
        let new =
            (*args).struct_size >= struct_size(sys::XLA_FFI_Handler_Register_Args_STRUCT_SIZE);
        let old = (*args.cast::<sys::HandlerRegisterArgsV3>()).bundle;
        let record = if new { (*args).bundle.record } else { None };
        let stages = [old.instantiate, old.prepare, old.initialize, old.execute, record];
        let address = |stage: sys::XLA_FFI_Handler| stage.map_or(0, |stage| stage as usize);
        (bytes((*args).name), bytes((*args).platform), stages.map(address))
    };
    let mut entries = ENTRIES.lock().expect("no panic");
    let known = entries.iter().find(|known| known.0 == entry.0 && known.1 == entry.1);
    match known {
        Some(known) if known.2 == entry.2 => std::ptr::null_mut(),
        Some(_) => {
            let message = format!("Duplicate handler for {}", String::from_utf8_lossy(&entry.0));
            let code = sys::XLA_FFI_Error_Code_INVALID_ARGUMENT;
            Failure { code, message }.into_error()
        }
        None => {
            entries.push(entry);
            std::ptr::null_mut()
        }
    }
}

/// The names under which handlers were registered for a platform, in the order of registration.
pub(super) fn names(platform: &str) -> Vec<String> {
    let entries = ENTRIES.lock().expect("no panic");
    let of = entries.iter().filter(|entry| entry.1 == platform.as_bytes());
    of.map(|entry| String::from_utf8_lossy(&entry.0).into_owned()).collect()
}

/// # Safety
/// The span points to its bytes.
unsafe fn bytes(span: sys::XLA_FFI_ByteSpan) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(span.ptr.cast::<u8>(), span.len) }.to_vec()
}
