//! The kernels in this build: a module for each `.cu`, loaded once for all devices; their functions,
//! once for each context.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;

use crate::driver::{self, check};
use crate::error::Error;

/// A compiled `.cu`: machine code for several GPUs in one image.
#[derive(Debug)]
pub struct Module {
    /// The file's stem.
    pub name: &'static str,
    image: &'static Image<[u8]>,
    /// What ptxas reported of each kernel for each architecture, and the threads that its blocks may have.
    pub report: &'static str,
}

impl Module {
    /// The fatbin.
    pub fn image(&self) -> &'static [u8] {
        &self.image.0
    }
}

/// The driver wants images aligned.
#[derive(Debug)]
#[repr(C, align(16))]
struct Image<B: ?Sized>(B);

/// The modules of this build; none where it found no nvcc.
#[cfg(kernels)]
pub static MODULES: &[Module] = &include!(concat!(env!("OUT_DIR"), "/modules.rs"));
/// The modules of this build; none where it found no nvcc.
#[cfg(not(kernels))]
pub static MODULES: &[Module] = &[];

/// A kernel by the stem of its file and its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    pub(crate) module: &'static str,
    pub(crate) name: &'static CStr,
}

/// A kernel's function in one context.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) handle: sys::CUfunction,
    /// Bytes of shared memory that a launch may ask for: what a block can have, less the kernel's own.
    pub(crate) shared_memory: usize,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Function {}

struct Library(sys::CUlibrary);

// SAFETY: as above.
unsafe impl Send for Library {}

/// The function of a kernel in a context. Found once, best before a stream is captured.
pub(crate) fn function(context: sys::CUcontext, kernel: Kernel) -> Result<Function, Error> {
    static FUNCTIONS: OnceLock<Mutex<HashMap<(usize, Kernel), Function>>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(Mutex::default);
    let key = (context.addr(), kernel);
    let mut functions = functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(function) = functions.get(&key) {
        return Ok(*function);
    }
    let found = find(context, kernel)?;
    functions.insert(key, found);
    Ok(found)
}

fn find(context: sys::CUcontext, kernel: Kernel) -> Result<Function, Error> {
    use sys::CUfunction_attribute as Attribute;
    let library = library(kernel.module)?;
    let what = || format!("kernel {}", kernel.name.to_string_lossy());
    let mut handle = null_mut();
    let mut function = null_mut();
    const OWN: Attribute = Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    const ASKED: Attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the library is loaded and the name a C string; the handle is the kernel's.
    unsafe {
        let found = sys::cuLibraryGetKernel(&raw mut handle, library, kernel.name.as_ptr());
        check(found, what)?;
        driver::within(context, || {
            check(sys::cuKernelGetFunction(&raw mut function, handle), what)?;
            let device = driver::current_device()?;
            let mut own = 0;
            check(sys::cuKernelGetAttribute(&raw mut own, OWN, handle, device), what)?;
            // A kernel may use all the shared memory that a block can have if it asks for it.
            let most = driver::limits(context)?.shared_memory;
            let shared_memory = most.saturating_sub(usize::try_from(own).unwrap_or(0));
            let bytes = i32::try_from(shared_memory).unwrap_or(i32::MAX);
            check(sys::cuKernelSetAttribute(ASKED, bytes, handle, device), what)?;
            Ok(Function { handle: function, shared_memory })
        })
    }
}

/// The driver's library of a module.
fn library(name: &'static str) -> Result<sys::CUlibrary, Error> {
    static LIBRARIES: OnceLock<Mutex<HashMap<&'static str, Library>>> = OnceLock::new();
    let libraries = LIBRARIES.get_or_init(Mutex::default);
    let mut libraries = libraries.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = libraries.get(name) {
        return Ok(library.0);
    }
    let module = MODULES.iter().find(|module| module.name == name).ok_or_else(missing)?;
    driver::present()?;
    driver::runs_kernels()?;
    let (mut library, image) = (null_mut(), module.image().as_ptr().cast::<c_void>());
    // SAFETY: the image is a whole fatbin and never freed; no options are passed.
    let loaded = unsafe {
        let (none, nothing) = (null_mut(), null_mut());
        sys::cuLibraryLoadData(&raw mut library, image, none, nothing, 0, null_mut(), null_mut(), 0)
    };
    check(loaded, || format!("loading the kernels of {name}"))?;
    libraries.insert(name, Library(library));
    Ok(library)
}

fn missing() -> Error {
    Error::unavailable(
        "this build of lapax has no CUDA kernels, because no nvcc that works was found when it was \
         built; install a wheel, or build with LAPAX_CUDA=require to see what is missing",
    )
}

/// The kernel of a scalar's type: `kernel!(T, "module", "name")` is `name_f32` and so on, the name in one
/// piece or several.
macro_rules! kernel {
    ($t:ty, $module:literal, $($name:literal),+) => {{
        const NAMES: [&std::ffi::CStr; 4] = [
            crate::module::c_name(concat!($($name),+, "_f32\0")),
            crate::module::c_name(concat!($($name),+, "_f64\0")),
            crate::module::c_name(concat!($($name),+, "_c64\0")),
            crate::module::c_name(concat!($($name),+, "_c128\0")),
        ];
        let name = NAMES[<$t as crate::scalar::Scalar>::INDEX];
        crate::module::Kernel { module: $module, name }
    }};
    ($module:literal, $name:literal) => {
        crate::module::Kernel { module: $module, name: crate::module::c_name(concat!($name, "\0")) }
    };
}

pub(crate) use kernel;

pub(crate) const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only NUL"),
    }
}
