//! Errors of a handler, and their way into XLA.

use std::ffi::{CStr, CString};
use std::fmt::{self, Write as _};
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::sys;

/// XLA's status codes, without OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The operation was cancelled.
    Cancelled = sys::XLA_FFI_Error_Code_CANCELLED,
    /// No better code applies.
    Unknown = sys::XLA_FFI_Error_Code_UNKNOWN,
    /// The call does not fit the handler.
    InvalidArgument = sys::XLA_FFI_Error_Code_INVALID_ARGUMENT,
    /// Not done in time.
    DeadlineExceeded = sys::XLA_FFI_Error_Code_DEADLINE_EXCEEDED,
    /// Something named does not exist.
    NotFound = sys::XLA_FFI_Error_Code_NOT_FOUND,
    /// Something to be made exists.
    AlreadyExists = sys::XLA_FFI_Error_Code_ALREADY_EXISTS,
    /// Not allowed.
    PermissionDenied = sys::XLA_FFI_Error_Code_PERMISSION_DENIED,
    /// Out of memory or of another resource.
    ResourceExhausted = sys::XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
    /// The system is not in the state that the call needs.
    FailedPrecondition = sys::XLA_FFI_Error_Code_FAILED_PRECONDITION,
    /// Aborted.
    Aborted = sys::XLA_FFI_Error_Code_ABORTED,
    /// A value outside its range.
    OutOfRange = sys::XLA_FFI_Error_Code_OUT_OF_RANGE,
    /// Not implemented, on purpose.
    Unimplemented = sys::XLA_FFI_Error_Code_UNIMPLEMENTED,
    /// A bug of the handler.
    Internal = sys::XLA_FFI_Error_Code_INTERNAL,
    /// A library or device that is missing.
    Unavailable = sys::XLA_FFI_Error_Code_UNAVAILABLE,
    /// Data was lost.
    DataLoss = sys::XLA_FFI_Error_Code_DATA_LOSS,
    /// No valid credentials.
    Unauthenticated = sys::XLA_FFI_Error_Code_UNAUTHENTICATED,
}

impl ErrorCode {
    /// All of them, in the order of their numbers, which are 1 to 16.
    pub const ALL: [ErrorCode; 16] = [
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The code with this number in the C API; None for 0, which is OK, and for unknown ones.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == code)
    }
}

/// Why a call failed: a status code and a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
}

impl Error {
    /// An error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error { code, message: message.into() }
    }

    /// The call does not fit the handler.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// A bug of the handler.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The status code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with `name: ` in front.
    pub(crate) fn of(self, name: &str) -> Self {
        // One more for the NUL that ends it in C.
        let mut message = String::with_capacity(name.len() + ": ".len() + self.message.len() + 1);
        for part in [name, ": ", &self.message] {
            message.push_str(part);
        }
        Error { code: self.code, message }
    }

    /// Hands the error to the host, which owns what is returned. Null, which XLA reads as success,
    /// only where the host offers no way to make an error: it has no function table.
    ///
    /// # Safety
    /// `api` is null or a host's function table, valid for this call.
    pub(crate) unsafe fn into_host(self, api: *const sys::XLA_FFI_Api) -> *mut sys::XLA_FFI_Error {
        // SAFETY: the caller guarantees that a non-null table is readable up to its struct_size.
        let create = unsafe {
            let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Error_Create) + size_of::<usize>();
            if api.is_null() || !sys::reaches((*api).struct_size, end) {
                None
            } else {
                (*api).XLA_FFI_Error_Create
            }
        };
        let Some(create) = create else { return std::ptr::null_mut() };
        // A C string ends at its first NUL.
        let message = CString::new(self.message).unwrap_or_else(|error| {
            let text = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\\0");
            CString::new(text).unwrap_or_default()
        });
        let mut args = sys::XLA_FFI_Error_Create_Args {
            struct_size: struct_size(sys::XLA_FFI_Error_Create_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            message: message.as_ptr(),
            errc: self.code as u32,
        };
        // SAFETY: a function of the host's table, called with the struct it asks for; it copies
        // the message.
        unsafe { create(&raw mut args) }
    }
}

/// An error that the host made, as one of ours; destroys the host's.
///
/// # Safety
/// `api` is the host's function table, and the error came from it.
#[cold]
pub(crate) unsafe fn take(
    api: *const sys::XLA_FFI_Api,
    error: NonNull<sys::XLA_FFI_Error>,
) -> Error {
    let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Error_GetDetails) + size_of::<usize>();
    let mut args = sys::XLA_FFI_Error_GetDetails_Args {
        struct_size: struct_size(sys::XLA_FFI_Error_GetDetails_Args_STRUCT_SIZE),
        extension_start: std::ptr::null_mut(),
        error: error.as_ptr(),
        message: std::ptr::null(),
        // Hosts before API 0.4 tell the message alone.
        errc: ErrorCode::Unknown as u32,
    };
    // SAFETY: the table is readable up to its struct_size; the struct is at least as long as the
    // host's; the message lives until the error is destroyed.
    unsafe {
        let ask = sys::reaches((*api).struct_size, end).then(|| (*api).XLA_FFI_Error_GetDetails);
        if let Some(ask) = ask.flatten() {
            ask(&raw mut args);
        }
        let message = if args.message.is_null() {
            "an error of the host without a message".to_owned()
        } else {
            CStr::from_ptr(args.message).to_string_lossy().into_owned()
        };
        destroy(api, error.as_ptr());
        Error::new(ErrorCode::from_code(args.errc).unwrap_or(ErrorCode::Unknown), message)
    }
}

/// Destroys an error that the host made.
///
/// # Safety
/// `api` is the host's function table, and the error came from it.
pub(crate) unsafe fn destroy(api: *const sys::XLA_FFI_Api, error: *mut sys::XLA_FFI_Error) {
    let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Error_Destroy) + size_of::<usize>();
    // SAFETY: the table is readable up to its struct_size.
    let destroy = unsafe {
        sys::reaches((*api).struct_size, end).then(|| (*api).XLA_FFI_Error_Destroy).flatten()
    };
    let Some(destroy) = destroy else { return };
    let mut args = sys::XLA_FFI_Error_Destroy_Args {
        struct_size: struct_size(sys::XLA_FFI_Error_Destroy_Args_STRUCT_SIZE),
        extension_start: std::ptr::null_mut(),
        error,
    };
    // SAFETY: the host's function with the struct it asks for.
    unsafe { destroy(&raw mut args) };
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds a number to a text.
pub(crate) fn push_number(text: &mut String, number: impl fmt::Display) {
    // Writing to a String does not fail.
    let _ = write!(text, "{number}");
}

/// A struct size of the C API as a `usize`. Sizes of structs fit.
pub(crate) const fn struct_size(size: u32) -> usize {
    size as usize
}
