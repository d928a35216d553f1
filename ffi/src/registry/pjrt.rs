//! PJRT's FFI extension, through which a plugin takes handlers.
//!
//! Its register function swallows XLA's refusals and takes no other stage than execute. But XLA asks
//! a handler for its metadata while it is registered, in a call frame that has the plugin's function
//! table: a handler that does nothing else is registered to learn it, and all real ones through it.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr::NonNull;

use super::StageFn;
use crate::error::{Error, ErrorCode};
use crate::handler::{About, answer_metadata};
use crate::sys;

/// The beginning of every `PJRT_Api`.
#[repr(C)]
pub(super) struct Api {
    struct_size: usize,
    extension_start: *const Base,
    version_struct_size: usize,
    version_extension: *const c_void,
    major: c_int,
    minor: c_int,
    error_destroy: Option<unsafe extern "C" fn(*mut ErrorDestroyArgs)>,
    error_message: Option<unsafe extern "C" fn(*mut ErrorMessageArgs)>,
}

#[repr(C)]
struct Base {
    struct_size: usize,
    kind: c_int,
    next: *const Base,
}

/// `PJRT_FFI_Extension` since August 2025.
#[repr(C)]
struct FfiExtension {
    base: Base,
    type_register: *const c_void,
    user_data_add: *const c_void,
    register_handler: Option<Register>,
}

type Register = unsafe extern "C" fn(*mut RegisterArgs) -> *mut c_void;

#[repr(C)]
struct RegisterArgs {
    struct_size: usize,
    target_name: *const c_char,
    target_name_size: usize,
    handler: *const c_void,
    platform_name: *const c_char,
    platform_name_size: usize,
    traits: u32,
}

#[repr(C)]
struct ErrorDestroyArgs {
    struct_size: usize,
    extension_start: *const c_void,
    error: *mut c_void,
}

#[repr(C)]
struct ErrorMessageArgs {
    struct_size: usize,
    extension_start: *const c_void,
    error: *mut c_void,
    message: *const c_char,
    message_size: usize,
}

/// `PJRT_Extension_Type_FFI`.
const FFI: c_int = 5;

/// A plugin's FFI extension that takes handlers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    api: NonNull<Api>,
    register: Register,
}

thread_local! {
    /// The function table that `learn` was last passed.
    static LEARNT: Cell<*const sys::XLA_FFI_Api> = const { Cell::new(std::ptr::null()) };
}

impl Extension {
    /// # Errors
    /// UNIMPLEMENTED where the plugin takes no handlers.
    ///
    /// # Safety
    /// The plugin's table, which lives as long as the process.
    pub(super) unsafe fn find(api: NonNull<Api>) -> Result<Self, Error> {
        let end = offset_of!(FfiExtension, register_handler) + size_of::<usize>();
        // SAFETY: the caller's promise; extensions form a list that null ends.
        unsafe {
            let mut extension = (*api.as_ptr()).extension_start;
            while !extension.is_null() && (*extension).kind != FFI {
                extension = (*extension).next;
            }
            let version = ((*api.as_ptr()).major, (*api.as_ptr()).minor);
            if extension.is_null() {
                return Err(none(version, "it has no FFI extension"));
            }
            let size = (*extension).struct_size;
            if !sys::reaches(size, end) {
                let why = format!(
                    "expected an FFI extension of at least {end} bytes, as plugins have it since \
                     August 2025, got {size}"
                );
                return Err(none(version, &why));
            }
            match (*extension.cast::<FfiExtension>()).register_handler {
                Some(register) => Ok(Extension { api, register }),
                None => Err(none(version, "its FFI extension has no function for it")),
            }
        }
    }

    /// The plugin's function table of XLA's FFI; None where it shows it to no handler.
    pub(super) fn function_table(self) -> Result<Option<NonNull<sys::XLA_FFI_Api>>, Error> {
        LEARNT.set(std::ptr::null());
        // Of its own for each library that has this code, since each has its own `learn`.
        let name = format!("xla-ffi.learn.{:x}", (learn as StageFn as *const c_void).addr());
        // SAFETY: a handler that answers its metadata and refuses calls.
        let refused = unsafe { self.register(&name, "Host", learn) };
        match NonNull::new(LEARNT.get().cast_mut()) {
            Some(table) => Ok(Some(table)),
            None => refused.map(|()| None),
        }
    }

    /// Registers a handler of the execute stage. The plugin reports few refusals.
    ///
    /// # Safety
    /// The handler keeps the promises of the C API.
    pub(super) unsafe fn register(
        self,
        name: &str,
        platform: &str,
        handler: StageFn,
    ) -> Result<(), Error> {
        let mut args = RegisterArgs {
            struct_size: offset_of!(RegisterArgs, traits) + size_of::<u32>(),
            target_name: name.as_ptr().cast(),
            target_name_size: name.len(),
            handler: handler as *const c_void,
            platform_name: platform.as_ptr().cast(),
            platform_name_size: platform.len(),
            traits: 0,
        };
        // SAFETY: the plugin's function with the struct it asks for.
        match NonNull::new(unsafe { (self.register)(&raw mut args) }) {
            None => Ok(()),
            Some(error) => Err(self.take(error)),
        }
    }

    /// The text of an error of the plugin's, which is destroyed.
    fn take(self, error: NonNull<c_void>) -> Error {
        let (extension_start, error) = (std::ptr::null(), error.as_ptr());
        let mut message = ErrorMessageArgs {
            struct_size: size_of::<ErrorMessageArgs>(),
            extension_start,
            error,
            message: std::ptr::null(),
            message_size: 0,
        };
        let mut destroy =
            ErrorDestroyArgs { struct_size: size_of::<ErrorDestroyArgs>(), extension_start, error };
        // SAFETY: the plugin's first functions with the structs they ask for; the text lives until
        // the error is destroyed.
        unsafe {
            if let Some(ask) = (*self.api.as_ptr()).error_message {
                ask(&raw mut message);
            }
            let text = if message.message.is_null() {
                "the plugin refused a handler without a message".to_owned()
            } else {
                let bytes =
                    std::slice::from_raw_parts(message.message.cast::<u8>(), message.message_size);
                String::from_utf8_lossy(bytes).into_owned()
            };
            if let Some(release) = (*self.api.as_ptr()).error_destroy {
                release(&raw mut destroy);
            }
            Error::invalid_argument(text)
        }
    }
}

fn none((major, minor): (c_int, c_int), why: &str) -> Error {
    let text = format!("this plugin, of PJRT {major}.{minor}, takes no handlers: {why}");
    Error::new(ErrorCode::Unimplemented, text)
}

/// A handler that remembers the function table with which its metadata is asked for.
unsafe extern "C" fn learn(frame: *mut sys::XLA_FFI_CallFrame) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the host passes a frame; these fields are in every one that was ever defined, and an
    // extension starts with its size and type.
    unsafe {
        let (extension, api) = ((*frame).extension_start, (*frame).api);
        if !extension.is_null() && (*extension).type_ == sys::XLA_FFI_Extension_Metadata {
            LEARNT.set(api);
            let about = &About { name: "xla-ffi", traits: 0, state: None };
            return answer_metadata(extension.cast(), api, about);
        }
        let text = "this target is not to be called: it tells which function table the host has";
        Error::new(ErrorCode::FailedPrecondition, text).into_host(api)
    }
}

// PJRT's C API, all versions that have the extension: (what, offset or size).
const _: () = {
    assert!(offset_of!(Api, extension_start) == 8 && offset_of!(Api, major) == 32);
    assert!(offset_of!(Api, error_destroy) == 40 && offset_of!(Api, error_message) == 48);
    assert!(offset_of!(FfiExtension, register_handler) == 40);
    assert!(offset_of!(RegisterArgs, traits) == 48);
};
