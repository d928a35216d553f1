//! NVIDIA's libraries, opened at run time by the names under which their ABI is fixed.
//!
//! A copy that the process has loaded, as JAX's plugin does, is found by its name; else the loader
//! searches, beginning with the run paths of the library that this is linked into. A bare
//! `libcusolver.so` is never tried: a system's would be mixed with the wheels'.

use std::collections::HashMap;
use std::ffi::{CStr, c_uint, c_void};
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::error::{Error, Kind};

/// One library.
#[derive(Debug)]
pub struct Library {
    /// NVIDIA's name for it.
    pub name: &'static str,
    /// Sonames, the newest first.
    pub sonames: &'static [&'static str],
    /// The package on PyPI that brings the newest.
    pub package: &'static str,
    /// Its status codes, by number.
    statuses: &'static [(c_uint, &'static str)],
    opened: OnceLock<Result<Opened, Error>>,
}

#[derive(Debug)]
struct Opened {
    library: libloading::Library,
    soname: &'static str,
    /// Addresses of functions that were used before.
    functions: RwLock<HashMap<&'static CStr, usize>>,
}

const fn library(
    name: &'static str,
    sonames: &'static [&'static str],
    package: &'static str,
    statuses: &'static [(c_uint, &'static str)],
) -> Library {
    Library { name, sonames, package, statuses, opened: OnceLock::new() }
}

/// Dense factorisations, and the sparse solver.
pub(crate) static CUSOLVER: Library = library(
    "cuSOLVER",
    &["libcusolver.so.12", "libcusolver.so.11"],
    "nvidia-cusolver",
    &[
        (1, "CUSOLVER_STATUS_NOT_INITIALIZED"),
        (2, "CUSOLVER_STATUS_ALLOC_FAILED"),
        (3, "CUSOLVER_STATUS_INVALID_VALUE"),
        (4, "CUSOLVER_STATUS_ARCH_MISMATCH"),
        (5, "CUSOLVER_STATUS_MAPPING_ERROR"),
        (6, "CUSOLVER_STATUS_EXECUTION_FAILED"),
        (7, "CUSOLVER_STATUS_INTERNAL_ERROR"),
        (8, "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED"),
        (9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    ],
);
/// Dense products.
pub(crate) static CUBLAS: Library = library(
    "cuBLAS",
    &["libcublas.so.13", "libcublas.so.12"],
    "nvidia-cublas",
    &[
        (1, "CUBLAS_STATUS_NOT_INITIALIZED"),
        (3, "CUBLAS_STATUS_ALLOC_FAILED"),
        (7, "CUBLAS_STATUS_INVALID_VALUE"),
        (8, "CUBLAS_STATUS_ARCH_MISMATCH"),
        (11, "CUBLAS_STATUS_MAPPING_ERROR"),
        (13, "CUBLAS_STATUS_EXECUTION_FAILED"),
        (14, "CUBLAS_STATUS_INTERNAL_ERROR"),
        (15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    ],
);
/// Sparse products and tridiagonal systems.
pub(crate) static CUSPARSE: Library = library(
    "cuSPARSE",
    &["libcusparse.so.12"],
    "nvidia-cusparse",
    &[
        (1, "CUSPARSE_STATUS_NOT_INITIALIZED"),
        (2, "CUSPARSE_STATUS_ALLOC_FAILED"),
        (3, "CUSPARSE_STATUS_INVALID_VALUE"),
        (4, "CUSPARSE_STATUS_ARCH_MISMATCH"),
        (5, "CUSPARSE_STATUS_MAPPING_ERROR"),
        (6, "CUSPARSE_STATUS_EXECUTION_FAILED"),
        (7, "CUSPARSE_STATUS_INTERNAL_ERROR"),
        (8, "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED"),
        (10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
        (11, "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"),
    ],
);

/// All of them.
pub static LIBRARIES: [&Library; 3] = [&CUSOLVER, &CUBLAS, &CUSPARSE];

impl Library {
    /// The file that it was opened from, where the system tells.
    ///
    /// # Errors
    /// UNAVAILABLE where it cannot be opened, with the names that were tried, what the loader said and
    /// what to install.
    pub fn file(&self) -> Result<Option<String>, Error> {
        let soname = self.open()?.soname;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mut files = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
        Ok(files.find(|file| file.rsplit('/').next() == Some(soname)).map(str::to_owned))
    }

    fn open(&self) -> Result<&Opened, Error> {
        let opened = self.opened.get_or_init(|| {
            let mut refusals = Vec::new();
            for soname in self.sonames {
                // SAFETY: the initialisers are NVIDIA's, which may run at any time.
                match unsafe { libloading::Library::new(*soname) } {
                    Ok(library) => {
                        let functions = RwLock::default();
                        return Ok(Opened { library, soname, functions });
                    }
                    Err(refusal) => {
                        let said = std::error::Error::source(&refusal);
                        refusals.push(said.map_or(refusal.to_string(), ToString::to_string));
                    }
                }
            }
            let (name, package) = (self.name, self.package);
            let refusals = refusals.join("; ");
            let text = format!(
                "{name} was not found: {refusals}. `pip install {package}` brings it for CUDA 13, \
                 `pip install {package}-cu12` for CUDA 12"
            );
            Err(Error::unavailable(text))
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// Whether the library is there and has this function.
    pub(crate) fn has(&self, function: &'static CStr) -> bool {
        self.address(function).is_ok()
    }

    /// Calls a function that returns a status.
    ///
    /// # Safety
    /// The arguments are those that the library's header declares, in number and in type; what they
    /// point to is as large as it says, and on the device or the host where it says so.
    pub(crate) unsafe fn call(
        &self,
        function: &'static CStr,
        arguments: impl Arguments,
    ) -> Result<(), Error> {
        let address = self.address(function)?;
        // SAFETY: the caller's promise.
        let status = unsafe { arguments.call(address) };
        if status == 0 { Ok(()) } else { Err(self.failure(function, status)) }
    }

    #[cold]
    fn failure(&self, function: &CStr, status: c_uint) -> Error {
        let known = self.statuses.iter().find(|(code, _)| *code == status);
        let name = known.map_or_else(|| format!("status {status}"), |(_, name)| (*name).to_owned());
        let (kind, hint) = match name.rsplit_once("STATUS_").map_or("", |(_, word)| word) {
            "ALLOC_FAILED" | "INSUFFICIENT_RESOURCES" => (
                Kind::ResourceExhausted,
                ": the GPU has no memory left for it; XLA takes most of it at the start \
                 (XLA_PYTHON_CLIENT_MEM_FRACTION)",
            ),
            "NOT_INITIALIZED" => (
                Kind::Unavailable,
                ": there is no GPU that it can use, the driver is too old for it, or no memory was \
                 left",
            ),
            "ARCH_MISMATCH" => (Kind::Unavailable, ": it does not support this GPU"),
            _ => (Kind::Internal, ""),
        };
        let function = function.to_string_lossy();
        Error::new(kind, format!("{function} of {}: {name}{hint}", self.name))
    }

    /// The address of a function.
    fn address(&self, function: &'static CStr) -> Result<*const c_void, Error> {
        let opened = self.open()?;
        let known = opened.functions.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = known.get(function) {
            return Ok(std::ptr::with_exposed_provenance(*address));
        }
        drop(known);
        // SAFETY: the address alone; who calls it gives it its type.
        let found = unsafe { opened.library.get::<*const c_void>(function.to_bytes_with_nul()) };
        let Ok(found) = found.map(|found| *found) else {
            return Err(Error::unavailable(format!(
                "this {} ({}) has no {}; a newer one has: pip install --upgrade {}",
                self.name,
                opened.soname,
                function.to_string_lossy(),
                self.package
            )));
        };
        let mut known = opened.functions.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(function, found.expose_provenance());
        Ok(found)
    }
}

/// The arguments of a C function that returns a status.
pub(crate) trait Arguments {
    /// Calls the function at this address.
    ///
    /// # Safety
    /// It takes arguments of these types, and returns an int.
    unsafe fn call(self, function: *const c_void) -> c_uint;
}

macro_rules! arguments {
    ($($value:ident)+) => {
        #[allow(non_snake_case, reason = "a type parameter's name is also its value's")]
        impl<$($value: Copy),+> Arguments for ($($value,)+) {
            unsafe fn call(self, function: *const c_void) -> c_uint {
                let ($($value,)+) = self;
                // SAFETY: the caller's promise.
                unsafe {
                    let function: unsafe extern "C" fn($($value),+) -> c_uint =
                        std::mem::transmute(function);
                    function($($value),+)
                }
            }
        }
    };
}

/// One implementation for each number of arguments from one on.
macro_rules! all_arguments {
    ($first:ident) => {
        arguments!($first);
    };
    ($first:ident $($rest:ident)+) => {
        arguments!($first $($rest)+);
        all_arguments!($($rest)+);
    };
}

all_arguments!(A B C D E F G H I J K L M N O P Q R S T U V W X);
