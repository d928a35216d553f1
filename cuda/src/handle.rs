//! Handles of NVIDIA's libraries: made in the initialize stage or at first use, kept for each device
//! and stream, lent to a call; and the workspaces of cuSOLVER's 64-bit functions.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::driver;
use crate::error::Error;
use crate::gpu::{Gpu, Scratch};
use crate::library::{Arguments, CUBLAS, CUSOLVER, CUSPARSE, Library};

/// A kind of handle.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Maker {
    name: &'static str,
    create: &'static CStr,
    set_stream: &'static CStr,
}

impl Maker {
    fn library(&self) -> &'static Library {
        match self.name {
            "blas" => &CUBLAS,
            "sparse" => &CUSPARSE,
            _ => &CUSOLVER,
        }
    }
}

pub(crate) static DENSE: Maker =
    Maker { name: "dense", create: c"cusolverDnCreate", set_stream: c"cusolverDnSetStream" };
pub(crate) static SPARSE_SOLVER: Maker = Maker {
    name: "sparse solver",
    create: c"cusolverSpCreate",
    set_stream: c"cusolverSpSetStream",
};
pub(crate) static BLAS: Maker =
    Maker { name: "blas", create: c"cublasCreate_v2", set_stream: c"cublasSetStream_v2" };
pub(crate) static SPARSE: Maker =
    Maker { name: "sparse", create: c"cusparseCreate", set_stream: c"cusparseSetStream" };

/// Library, context, stream.
type Key = (&'static Maker, usize, usize);

/// Addresses of handles that no call has.
fn idle() -> &'static Mutex<HashMap<Key, Vec<usize>>> {
    static IDLE: OnceLock<Mutex<HashMap<Key, Vec<usize>>>> = OnceLock::new();
    IDLE.get_or_init(Mutex::default)
}

/// A handle on a call's stream.
pub(crate) struct Handle {
    key: Key,
    raw: *mut c_void,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut idle = idle().lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(self.key).or_default().push(self.raw.expose_provenance());
    }
}

impl Handle {
    /// Calls a function of the handle's library; the handle is its first argument, as `raw`.
    ///
    /// # Safety
    /// As [`Library::call`].
    pub(crate) unsafe fn call(
        &self,
        function: &'static CStr,
        arguments: impl Arguments,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.key.0.library().call(function, arguments) }
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl Gpu<'_> {
    /// A handle on this stream: one that is idle, or a new one.
    pub(crate) fn handle(&self, maker: &'static Maker) -> Result<Handle, Error> {
        let key = (maker, self.context().addr(), self.stream().addr());
        let known = {
            let mut idle = idle().lock().unwrap_or_else(PoisonError::into_inner);
            idle.get_mut(&key).and_then(Vec::pop)
        };
        let handle = match known {
            Some(address) => Handle { key, raw: std::ptr::with_exposed_provenance_mut(address) },
            None => {
                let mut raw: *mut c_void = null_mut();
                driver::within(self.context(), || {
                    // SAFETY: takes the place of a handle.
                    unsafe { maker.library().call(maker.create, (&raw mut raw,)) }
                })?;
                Handle { key, raw }
            }
        };
        // A stream of this address may be another one than when the handle was made.
        // SAFETY: takes a handle and a stream of its device.
        unsafe { handle.call(maker.set_stream, (handle.raw, self.stream()))? };
        Ok(handle)
    }

    /// Makes a handle, so that a call finds it.
    pub(crate) fn prepare(&self, maker: &'static Maker) -> Result<(), Error> {
        self.handle(maker).map(|_| ())
    }

    /// Workspaces as a function asks for them: bytes on the device, bytes on the host.
    pub(crate) fn workspace(
        &self,
        ask: impl FnOnce(*mut usize, *mut usize) -> Result<(), Error>,
    ) -> Result<Workspace<'_>, Error> {
        let (mut device, mut host) = (0_usize, 0_usize);
        ask(&raw mut device, &raw mut host)?;
        Ok(Workspace {
            device: self.scratch(device)?,
            host_bytes: host,
            host: vec![0; host.div_ceil(size_of::<u128>())],
        })
    }
}

/// Scratch of a 64-bit function of cuSOLVER.
pub(crate) struct Workspace<'a> {
    device: Scratch<'a, u8>,
    host: Vec<u128>,
    host_bytes: usize,
}

impl Workspace<'_> {
    /// The four arguments that say where it is: device address and bytes, host address and bytes.
    pub(crate) fn arguments(&mut self) -> (*mut c_void, usize, *mut c_void, usize) {
        let host = if self.host.is_empty() { null_mut() } else { self.host.as_mut_ptr() };
        (self.device.as_ptr().cast(), self.device.len(), host.cast(), self.host_bytes)
    }
}

/// cuSOLVER's parameters of its 64-bit functions, which are all defaults.
pub(crate) fn parameters() -> Result<*mut c_void, Error> {
    static PARAMETERS: OnceLock<Result<usize, Error>> = OnceLock::new();
    let made = PARAMETERS.get_or_init(|| {
        let mut parameters: *mut c_void = null_mut();
        // SAFETY: takes the place of a handle.
        unsafe { CUSOLVER.call(c"cusolverDnCreateParams", (&raw mut parameters,))? };
        Ok(parameters.expose_provenance())
    });
    made.clone().map(std::ptr::with_exposed_provenance_mut)
}

/// Settings of Jacobi's methods, which are all defaults.
pub(crate) struct Settings {
    create: &'static CStr,
    destroy: &'static CStr,
}

pub(crate) static SYEVJ: Settings =
    Settings { create: c"cusolverDnCreateSyevjInfo", destroy: c"cusolverDnDestroySyevjInfo" };
pub(crate) static GESVDJ: Settings =
    Settings { create: c"cusolverDnCreateGesvdjInfo", destroy: c"cusolverDnDestroyGesvdjInfo" };

/// Settings for the time of a call; cuSOLVER reads them while it queues.
pub(crate) struct Info {
    raw: *mut c_void,
    destroy: &'static CStr,
}

impl Info {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut raw: *mut c_void = null_mut();
        // SAFETY: takes the place of a handle.
        unsafe { CUSOLVER.call(settings.create, (&raw mut raw,))? };
        Ok(Self { raw, destroy: settings.destroy })
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and used by nobody now. There is nobody to tell of a failure.
        let _ = unsafe { CUSOLVER.call(self.destroy, (self.raw,)) };
    }
}
