//! Registration for hosts in C: by XLA's function table or by a PJRT plugin's.

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::catch_unwind;

use xla_ffi::{Error, Registry};

use crate::registration::Registration;
use crate::table::{Platform, targets};

/// Registers targets in the host whose `XLA_FFI_Api` this is. Null on success, else a sentence to be
/// freed by `lapax_free`.
///
/// `names`: null for all targets, or target names with commas or spaces between them; `platform`:
/// null for all, or JAX's or XLA's name of one; `prefix`: null, or what comes in front of each name.
/// To register the same again is harmless; where the host refuses targets, the others are registered.
///
/// # Safety
/// `api` is null or a function table of XLA's FFI that lives as long as the process; the texts are
/// null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_register(
    api: *const c_void,
    names: *const c_char,
    platform: *const c_char,
    prefix: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    sentence(|| unsafe { register(Registry::of_api(api.cast())?, names, platform, prefix) })
}

/// The same in a PJRT plugin, given what its `GetPjrtApi` returned.
///
/// # Safety
/// `api` is null or the `PJRT_Api` of a plugin that is never unloaded; the texts as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_register_pjrt(
    api: *const c_void,
    names: *const c_char,
    platform: *const c_char,
    prefix: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    sentence(|| unsafe { register(Registry::of_plugin(api)?, names, platform, prefix) })
}

/// The same in a PJRT plugin that the host has loaded from this path, where the host keeps the `PJRT_Api` to
/// itself.
///
/// # Safety
/// The library, where it has a symbol `GetPjrtApi`, is a PJRT plugin that is never unloaded; the texts
/// are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_register_plugin(
    path: *const c_char,
    names: *const c_char,
    platform: *const c_char,
    prefix: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    sentence(|| unsafe {
        if path.is_null() {
            let text = "expected the path of a PJRT plugin, got a null pointer";
            return Err(Error::invalid_argument(text));
        }
        register(Registry::of_loaded_plugin(CStr::from_ptr(path))?, names, platform, prefix)
    })
}

/// The same in the XLA that this program, or the loaded library of this name, has inside; null means
/// the program's global symbols.
///
/// # Safety
/// The symbols `XLA_FFI_GetApi` and `_ZN3xla3ffi12GetXlaFfiApiEv`, where they exist, are XLA's; the
/// texts as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_register_process(
    library: *const c_char,
    names: *const c_char,
    platform: *const c_char,
    prefix: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    sentence(|| unsafe {
        let library = (!library.is_null()).then(|| CStr::from_ptr(library));
        register(Registry::of_process(library)?, names, platform, prefix)
    })
}

/// The `XLA_FFI_Handler*` of a target's execute stage, for hosts that register handlers themselves;
/// null where there is no such target. A null platform means the first that has the name.
///
/// # Safety
/// The texts are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lapax_handler(
    name: *const c_char,
    platform: *const c_char,
) -> *const c_void {
    // SAFETY: the caller's promise.
    let (name, platform) = unsafe { (text(name), text(platform)) };
    let (Ok(Some(name)), Ok(platform)) = (name, platform) else { return std::ptr::null() };
    let platform = platform.map(Platform::from_name);
    let mut named = targets().map(|(_, target)| target).filter(|target| {
        target.name == name && platform.is_none_or(|wanted| wanted == Some(target.platform))
    });
    let handler = named.next().and_then(|target| target.handler);
    handler.map_or(std::ptr::null(), |handler| handler as *const c_void)
}

/// # Safety
/// The texts are null or C strings.
unsafe fn register(
    registry: Registry,
    names: *const c_char,
    platform: *const c_char,
    prefix: *const c_char,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let (names, platform, prefix) = unsafe { (text(names)?, text(platform)?, text(prefix)?) };
    let mut registration = Registration::all().prefix(prefix.unwrap_or_default());
    if let Some(name) = platform {
        let known: Vec<&str> = Platform::ALL.iter().map(|it| it.name()).collect();
        registration = registration.platform(Platform::from_name(name).ok_or_else(|| {
            let known = known.join(", ");
            Error::invalid_argument(format!("no platform {name:?}: expected one of {known}"))
        })?);
    }
    let between = |it: char| it == ',' || it.is_whitespace();
    let names: Option<Vec<&str>> =
        names.map(|names| names.split(between).filter(|name| !name.is_empty()).collect());
    if let Some(names) = &names {
        registration = registration.names(names);
    }
    registration.register(registry).map(drop)
}

/// # Safety
/// Null or a C string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    let bad = |_| Error::invalid_argument(format!("not UTF-8: {}", text.to_string_lossy()));
    text.to_str().map(Some).map_err(bad)
}

/// Null, or the error's sentence for the caller to free.
fn sentence(body: impl FnOnce() -> Result<(), Error> + std::panic::UnwindSafe) -> *mut c_char {
    let error = match catch_unwind(body) {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "a bug in lapax".to_owned(),
    };
    CString::new(error.replace('\0', "\\0")).unwrap_or_default().into_raw()
}
