//! Where handlers are registered: a host's function table, however the program came by it.

mod pjrt;
mod process;

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use crate::error::{Error, struct_size};
use crate::sys;

/// A host, as far as handlers are registered in it. Every PJRT plugin and every program that XLA is
/// linked into has its own; what is registered in one is unknown to the others.
///
/// ```no_run
/// use xla_ffi::{Registry, Stages};
/// # use xla_ffi::{Context, Frame, Handler, Outcome, Signature};
/// # struct Axpy;
/// # impl Handler for Axpy {
/// #     const NAME: &'static str = "axpy";
/// #     const SIGNATURES: &'static [&'static Signature] = &[];
/// #     fn call<'f>(_: Frame<'f>, _: &Context<'f>) -> Outcome<'f> { Outcome::Done(Ok(())) }
/// # }
/// # let plugin = std::ptr::null(); // what the plugin's GetPjrtApi returned
/// // SAFETY: the plugin is loaded, and is never unloaded.
/// let registry = unsafe { Registry::of_plugin(plugin) }?;
/// // SAFETY: `execute` keeps the promises of a handler.
/// unsafe { registry.register("axpy", "Host", Stages::execute(xla_ffi::execute::<Axpy>)) }?;
/// # Ok::<(), xla_ffi::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Registry(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A function table of XLA's.
    Table(NonNull<sys::XLA_FFI_Api>),
    /// A plugin that tells its function table to no handler: plugins of API 0.1.
    Plugin(pjrt::Extension),
}

// SAFETY: function tables are constants of the host, and registering is thread-safe in XLA.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

/// A function that XLA calls in one stage.
pub type StageFn = unsafe extern "C" fn(*mut sys::XLA_FFI_CallFrame) -> *mut sys::XLA_FFI_Error;

/// The handlers of one target, one for each stage that it has; `execute` is never missing.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "the stages of API 0.5; new ones would be a new API")]
pub struct Stages {
    /// Once for each call in a program, when that is compiled or loaded.
    pub instantiate: sys::XLA_FFI_Handler,
    /// Before each run of the program, on GPUs: to ask for resources.
    pub prepare: sys::XLA_FFI_Handler,
    /// After all calls have prepared.
    pub initialize: sys::XLA_FFI_Handler,
    /// Each call.
    pub execute: StageFn,
    /// To write the call into a command buffer; known to hosts from API 0.4 on.
    pub record: sys::XLA_FFI_Handler,
}

impl Stages {
    /// A target with an execute stage alone.
    pub const fn execute(execute: StageFn) -> Self {
        Stages { instantiate: None, prepare: None, initialize: None, execute, record: None }
    }
}

impl Registry {
    /// The registry of a function table: what `xla::ffi::GetXlaFfiApi()` returns in C++, or what a
    /// call frame holds.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a null pointer, FAILED_PRECONDITION for a table of another major
    /// version or too small to register anything.
    ///
    /// # Safety
    /// `api` is null or a function table of XLA's FFI that lives as long as the process.
    pub unsafe fn of_api(api: *const sys::XLA_FFI_Api) -> Result<Self, Error> {
        let Some(table) = NonNull::new(api.cast_mut()) else {
            return Err(Error::invalid_argument("expected an XLA_FFI_Api, got a null pointer"));
        };
        // SAFETY: the caller's promise.
        unsafe { table::check(table) }?;
        Ok(Registry(Kind::Table(table)))
    }

    /// The registry of a PJRT plugin, given what its `GetPjrtApi` returned.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a null pointer, UNIMPLEMENTED for a plugin that takes no handlers: it
    /// has no FFI extension, or one from before August 2025.
    ///
    /// # Safety
    /// `api` is null or the `PJRT_Api` of a plugin that is never unloaded.
    pub unsafe fn of_plugin(api: *const c_void) -> Result<Self, Error> {
        let Some(api) = NonNull::new(api.cast_mut().cast()) else {
            return Err(Error::invalid_argument("expected a PJRT_Api, got a null pointer"));
        };
        // SAFETY: the caller's promise.
        let extension = unsafe { pjrt::Extension::find(api) }?;
        match extension.function_table()? {
            // SAFETY: the plugin passed it to a handler, and is never unloaded.
            Some(table) => unsafe { Self::of_api(table.as_ptr()) },
            None => Ok(Registry(Kind::Plugin(extension))),
        }
    }

    /// The same of a plugin that this process has loaded, by its path as `dlopen` takes it, for hosts
    /// that keep the `PJRT_Api` to themselves. On Unix.
    ///
    /// # Errors
    /// NOT_FOUND where the library is not loaded or has no symbol `GetPjrtApi`, and those of
    /// [`of_plugin`](Self::of_plugin).
    ///
    /// # Safety
    /// The library, where it has that symbol, is a PJRT plugin, and is never unloaded.
    pub unsafe fn of_loaded_plugin(path: &CStr) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::of_plugin(process::plugin(path)?) }
    }

    /// The registry of the XLA that this program, or a library that is loaded already, has inside:
    /// the symbol `XLA_FFI_GetApi`, or C++'s `xla::ffi::GetXlaFfiApi`.
    ///
    /// # Errors
    /// NOT_FOUND where the library is not loaded or has neither symbol.
    ///
    /// # Safety
    /// A symbol of one of these names is XLA's, and what holds it is never unloaded.
    pub unsafe fn of_process(library: Option<&CStr>) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::of_api(process::function_table(library)?) }
    }

    /// The FFI's API version that the host speaks; None where it does not say.
    pub fn version(self) -> Option<(i32, i32)> {
        match self.0 {
            // SAFETY: a table begins with its version (`of_api`).
            Kind::Table(table) => Some(unsafe { table::version(table) }),
            Kind::Plugin(_) => None,
        }
    }

    /// The host's function table; null where it is not known.
    pub fn as_ptr(self) -> *const sys::XLA_FFI_Api {
        match self.0 {
            Kind::Table(table) => table.as_ptr(),
            Kind::Plugin(_) => std::ptr::null(),
        }
    }

    /// Registers a target. `platform` is XLA's name: `Host`, `CUDA`, `ROCM`; XLA accepts every
    /// other text, too, and never finds what is registered under it. To register the same stages
    /// again is harmless.
    ///
    /// # Errors
    /// The host's, above all where another handler has the name. UNIMPLEMENTED where the target has
    /// stages that the host does not know. A plugin of API 0.1 reports nothing.
    ///
    /// # Safety
    /// The stages keep the promises of the C API, for as long as the host lives.
    pub unsafe fn register(self, name: &str, platform: &str, stages: Stages) -> Result<(), Error> {
        match self.0 {
            // SAFETY: the table is the host's; the stages are the caller's promise.
            Kind::Table(table) => unsafe { table::register(table, name, platform, stages) },
            Kind::Plugin(extension) => {
                let Stages { instantiate, prepare, initialize, execute, record } = stages;
                if [instantiate, prepare, initialize, record].iter().any(Option::is_some) {
                    return Err(Error::new(
                        crate::ErrorCode::Unimplemented,
                        "this plugin, of API 0.1, takes targets with an execute stage alone",
                    ));
                }
                // SAFETY: the caller's promise.
                unsafe { extension.register(name, platform, execute) }
            }
        }
    }
}

/// A text as the C API has it.
fn span(text: &str) -> sys::XLA_FFI_ByteSpan {
    sys::XLA_FFI_ByteSpan { ptr: text.as_ptr().cast(), len: text.len() }
}

mod table {
    //! Registration through a function table.

    use std::mem::offset_of;

    use super::{Error, NonNull, Stages, span, struct_size, sys};
    use crate::ErrorCode;
    use crate::error::take;

    /// # Safety
    /// The pointer is a function table of XLA's.
    pub(super) unsafe fn version(table: NonNull<sys::XLA_FFI_Api>) -> (i32, i32) {
        // SAFETY: every table begins with its sizes and version.
        let version = unsafe { (*table.as_ptr()).api_version };
        (version.major_version, version.minor_version)
    }

    /// # Safety
    /// The pointer is a function table of XLA's.
    pub(super) unsafe fn check(table: NonNull<sys::XLA_FFI_Api>) -> Result<(), Error> {
        let end = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Handler_Register) + size_of::<usize>();
        // SAFETY: the caller's promise.
        let (size, (major, minor)) = unsafe { ((*table.as_ptr()).struct_size, version(table)) };
        let ours = crate::API_VERSION.0;
        // SAFETY: the field is read only where the table reaches it.
        let registers = sys::reaches(size, end)
            && unsafe { (*table.as_ptr()).XLA_FFI_Handler_Register }.is_some();
        if major == ours && registers {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::FailedPrecondition,
            format!(
                "expected an XLA_FFI_Api of version {ours}.x with at least {end} bytes, got \
                 version {major}.{minor} with {size} bytes"
            ),
        ))
    }

    /// # Safety
    /// The table passed `check`; the stages keep the promises of the C API.
    pub(super) unsafe fn register(
        table: NonNull<sys::XLA_FFI_Api>,
        name: &str,
        platform: &str,
        stages: Stages,
    ) -> Result<(), Error> {
        let Stages { instantiate, prepare, initialize, execute, record } = stages;
        let execute = Some(execute);
        let null = std::ptr::null_mut();
        let (name, platform) = (span(name), span(platform));
        // SAFETY: `check` saw the version and this function.
        let (minor, register) =
            unsafe { (version(table).1, (*table.as_ptr()).XLA_FFI_Handler_Register) };
        let Some(register) = register else {
            return Err(Error::internal("a function table that was checked has changed"));
        };
        let mut new = sys::XLA_FFI_Handler_Register_Args {
            struct_size: struct_size(sys::XLA_FFI_Handler_Register_Args_STRUCT_SIZE),
            extension_start: null,
            name,
            platform,
            bundle: sys::XLA_FFI_Handler_Bundle {
                instantiate,
                prepare,
                initialize,
                execute,
                record,
            },
            traits: 0,
        };
        let mut old = sys::HandlerRegisterArgsV3 {
            struct_size: offset_of!(sys::HandlerRegisterArgsV3, traits) + size_of::<u32>(),
            extension_start: null,
            name,
            platform,
            bundle: sys::HandlerBundleV3 { instantiate, prepare, initialize, execute },
            traits: 0,
        };
        let args = if minor >= sys::RECORD_MINOR { &raw mut new } else { (&raw mut old).cast() };
        if minor < sys::RECORD_MINOR && record.is_some() {
            return Err(Error::new(
                ErrorCode::Unimplemented,
                format!("this host, of API 0.{minor}, has no record stage"),
            ));
        }
        // SAFETY: the struct is the one of the host's version, and the texts live during the call.
        match NonNull::new(unsafe { register(args) }) {
            None => Ok(()),
            // SAFETY: an error of this host that is ours.
            Some(error) => Err(unsafe { take(table.as_ptr(), error) }),
        }
    }
}
