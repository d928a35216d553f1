//! NVIDIA's libraries, opened at run time by the names under which their ABI is fixed.
//!
//! A copy that the process has loaded, as JAX's plugin does, is found by its name; else the loader
//! searches, beginning with the run paths of the library that this is linked into. A bare
//! `libcusolver.so` is never tried: a system's would be mixed with the wheels'.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use crate::error::Error;

/// One library.
#[derive(Debug)]
pub struct Library {
    /// NVIDIA's name for it.
    pub name: &'static str,
    /// Sonames, the newest first.
    pub sonames: &'static [&'static str],
    /// The package on PyPI that brings the newest.
    pub package: &'static str,
    opened: OnceLock<Result<Opened, Error>>,
}

#[derive(Debug)]
struct Opened {
    library: libloading::Library,
    soname: &'static str,
}

const fn library(
    name: &'static str,
    sonames: &'static [&'static str],
    package: &'static str,
) -> Library {
    Library { name, sonames, package, opened: OnceLock::new() }
}

/// Dense factorisations, and the sparse solver.
pub(crate) static CUSOLVER: Library =
    library("cuSOLVER", &["libcusolver.so.12", "libcusolver.so.11"], "nvidia-cusolver");
/// Dense products.
pub(crate) static CUBLAS: Library =
    library("cuBLAS", &["libcublas.so.13", "libcublas.so.12"], "nvidia-cublas");
/// Sparse products and tridiagonal systems.
pub(crate) static CUSPARSE: Library =
    library("cuSPARSE", &["libcusparse.so.12"], "nvidia-cusparse");

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
                    Ok(library) => return Ok(Opened { library, soname }),
                    Err(refusal) => refusals.push(refusal.to_string()),
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

    /// The address of a function.
    pub(crate) fn address(&self, symbol: &CStr) -> Result<*const c_void, Error> {
        let opened = self.open()?;
        // SAFETY: the address alone; who calls it gives it its type.
        let found = unsafe { opened.library.get::<*const c_void>(symbol.to_bytes_with_nul()) };
        match found {
            Ok(found) => Ok(*found),
            Err(_) => Err(Error::unavailable(format!(
                "this {} ({}) has no {}; a newer one has: pip install --upgrade {}",
                self.name,
                opened.soname,
                symbol.to_string_lossy(),
                self.package
            ))),
        }
    }
}
/// A function of a library, found at its first use: `function!(CUSOLVER, "name": fn(i32) -> i32)`.
macro_rules! function {
    ($library:ident, $name:literal: fn($($argument:ty),* $(,)?)) => {{
        static ADDRESS: std::sync::OnceLock<Result<usize, crate::error::Error>> =
            std::sync::OnceLock::new();
        let find = || crate::library::$library.address(crate::module::c_name(concat!($name, "\0")));
        let address = ADDRESS.get_or_init(|| find().map(|it| it.expose_provenance())).clone();
        address.map(|address| {
            let function = std::ptr::with_exposed_provenance::<std::ffi::c_void>(address);
            // SAFETY: the type is that of the library's header.
            unsafe {
                std::mem::transmute::<
                    *const std::ffi::c_void,
                    unsafe extern "C" fn($($argument),*) -> std::ffi::c_uint,
                >(function)
            }
        })
    }};
}

pub(crate) use function;
