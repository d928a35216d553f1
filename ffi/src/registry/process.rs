//! What libraries of this process have, found by their symbols: XLA's function table, or a PJRT plugin's API.

use std::ffi::{CStr, c_void};

use crate::error::{Error, ErrorCode};
use crate::sys;

/// XLA's C function, and the C++ function that every build of XLA has.
const SYMBOLS: [&CStr; 2] = [c"XLA_FFI_GetApi", c"_ZN3xla3ffi12GetXlaFfiApiEv"];

/// Of every PJRT plugin.
const PLUGIN: &CStr = c"GetPjrtApi";

/// A function that returns a table.
type GetApi = unsafe extern "C" fn() -> *const c_void;

/// What the first symbol that exists returns; sought in `library`, or among the symbols that are
/// global in this process.
///
/// # Safety
/// A symbol of one of these names is XLA's.
pub(super) unsafe fn function_table(
    library: Option<&CStr>,
) -> Result<*const sys::XLA_FFI_Api, Error> {
    let place = Place::of(library)?;
    for symbol in SYMBOLS {
        if let Some(address) = place.find(symbol) {
            // SAFETY: the caller's promise: a function without arguments that returns the table.
            return Ok(unsafe { address() }.cast());
        }
    }
    let [c, cpp] = SYMBOLS.map(|symbol| symbol.to_string_lossy());
    let place = library.map_or("this process".into(), CStr::to_string_lossy);
    Err(not_found(format!(
        "{place} has neither the symbol {c} nor {cpp}: XLA is not in it, or hidden"
    )))
}

/// The `PJRT_Api` of a plugin that is loaded.
///
/// # Safety
/// A symbol `GetPjrtApi` of the library is a PJRT plugin's.
pub(super) unsafe fn plugin(path: &CStr) -> Result<*const c_void, Error> {
    let Some(get) = Place::of(Some(path))?.find(PLUGIN) else {
        let (path, symbol) = (path.to_string_lossy(), PLUGIN.to_string_lossy());
        return Err(not_found(format!("{path} is no PJRT plugin: it has no symbol {symbol}")));
    };
    // SAFETY: the caller's promise: a function without arguments that returns the API.
    Ok(unsafe { get() })
}

fn not_found(message: String) -> Error {
    Error::new(ErrorCode::NotFound, message)
}

#[cfg(unix)]
struct Place(*mut c_void);

#[cfg(unix)]
impl Place {
    fn of(library: Option<&CStr>) -> Result<Self, Error> {
        let Some(name) = library else { return Ok(Place(libc::RTLD_DEFAULT)) };
        // SAFETY: a C string; a library that is not loaded stays so.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            let name = name.to_string_lossy();
            return Err(not_found(format!("{name} is not loaded in this process")));
        }
        Ok(Place(handle))
    }

    fn find(&self, symbol: &CStr) -> Option<GetApi> {
        // SAFETY: a handle of dlopen's, or the process.
        let address = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        // SAFETY: null is None, and what bears one of these names is such a function.
        unsafe { std::mem::transmute::<*mut c_void, Option<GetApi>>(address) }
    }
}

/// Elsewhere a program passes its function table itself.
#[cfg(not(unix))]
struct Place;

#[cfg(not(unix))]
impl Place {
    fn of(_: Option<&CStr>) -> Result<Self, Error> {
        let text = "libraries are searched for symbols on Unix alone; pass the table itself";
        Err(Error::new(ErrorCode::Unimplemented, text))
    }

    fn find(&self, _: &CStr) -> Option<GetApi> {
        None
    }
}
