//! What a handler may ask of the host besides threads, streams and scratch: which run, which device,
//! the program's options, and extensions by their number.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::context::Context;
use crate::dictionary::Dictionary;
use crate::error::{Error, ErrorCode, struct_size, take};
use crate::frame::Entries;
use crate::sys;

/// An extension of the host's, of a struct that its number and version define.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'c> {
    extension: NonNull<sys::XLA_FFI_Extension>,
    call: PhantomData<&'c ()>,
}

impl Extension<'_> {
    /// Its version: a host of the same major and a later minor version has all fields of this one.
    pub fn version(&self) -> (i32, i32) {
        // SAFETY: the host's extension, valid during the call.
        let id = unsafe { self.extension.as_ref() }.id;
        (id.major_version, id.minor_version)
    }

    /// Bytes of its struct.
    pub fn size(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.extension.as_ref() }.struct_size
    }

    /// Where it lies.
    pub fn as_ptr(&self) -> *const sys::XLA_FFI_Extension {
        self.extension.as_ptr()
    }
}

/// Declares functions that ask the host through one slot of its table.
macro_rules! ask {
    ($context:expr, $slot:ident, $what:literal, $args:ident { $($field:ident: $value:expr),* }) => {{
        const END: usize = offset_of!(sys::XLA_FFI_Api, $slot) + size_of::<usize>();
        let context: &Context<'_> = $context;
        // SAFETY: the slot ends at END.
        let ask = unsafe { context.slot(END, |api| api.$slot) };
        let ask = ask.ok_or_else(|| unknown($what))?;
        let mut args = sys::$args {
            struct_size: asked_size::<sys::$args>(),
            extension_start: std::ptr::null_mut(),
            ctx: context.raw(),
            $($field: $value),*
        };
        // SAFETY: the host's function with the struct it asks for.
        match NonNull::new(unsafe { ask(&raw mut args) }) {
            None => Ok(args),
            // SAFETY: an error of this host that is ours.
            Some(error) => Err(unsafe { take(context.api(), error) }),
        }
    }};
}

pub(crate) use ask;

/// The size of a struct as C has it in `…_STRUCT_SIZE`; a struct's padding may be counted, since hosts
/// ask for no less.
pub(crate) const fn asked_size<T>() -> usize {
    size_of::<T>()
}

pub(crate) fn unknown(what: &str) -> Error {
    Error::new(ErrorCode::Unimplemented, format!("this host does not tell {what}"))
}

impl Context<'_> {
    /// The number of this run of the program: the same for all its calls, on all its devices.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the host does not tell.
    pub fn run_id(&self) -> Result<i64, Error> {
        let args = ask!(self, XLA_FFI_RunId_Get, "the run", XLA_FFI_RunId_Get_Args { run_id: 0 });
        args.map(|args| args.run_id)
    }

    /// The number of the device that the call runs on.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the host does not tell.
    pub fn device_ordinal(&self) -> Result<i32, Error> {
        let args = ask!(
            self,
            XLA_FFI_DeviceOrdinal_Get,
            "the device",
            XLA_FFI_DeviceOrdinal_Get_Args { device_ordinal: 0 }
        );
        args.map(|args| args.device_ordinal)
    }

    /// The options that the program was compiled with for custom calls; None where the host has none
    /// to give: those before API 0.5.
    ///
    /// # Errors
    /// The host's.
    pub fn custom_options(&self) -> Result<Option<Dictionary<'_>>, Error> {
        let ask = || -> Result<_, Error> {
            ask!(
                self,
                XLA_FFI_CustomOptions_Get,
                "its options",
                XLA_FFI_CustomOptions_Get_Args { attrs: std::ptr::null() }
            )
        };
        match ask() {
            // SAFETY: the host's attributes, valid during the call.
            Ok(args) => Ok(unsafe { args.attrs.as_ref() }
                // SAFETY: sorted by name, as all of XLA's are.
                .map(|attrs| Dictionary::new(unsafe { Entries::new(attrs) }))),
            Err(error) if error.code() == ErrorCode::Unimplemented => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The host's extension of this number (128 records into command buffers, 129 has collectives),
    /// of this major version and at least this minor one; None where there is none.
    pub fn extension(&self, number: i64, (major, minor): (i32, i32)) -> Option<Extension<'_>> {
        let find = || -> Result<_, Error> {
            ask!(
                self,
                XLA_FFI_InvokeContext_FindExtension,
                "its extensions",
                XLA_FFI_InvokeContext_FindExtension_Args {
                    extension_type: number,
                    extension: std::ptr::null()
                }
            )
        };
        let found = NonNull::new(find().ok()?.extension.cast_mut())?;
        let extension = Extension { extension: found, call: PhantomData };
        let (its_major, its_minor) = extension.version();
        (its_major == major && its_minor >= minor).then_some(extension)
    }
}

const _: () = assert!(struct_size(sys::XLA_FFI_RunId_Get_Args_STRUCT_SIZE) == 32);
