//! Memory of the host for copies of operands: page-locked, so that the device copies at full speed and
//! in the stream's order, and kept for later calls, since locking pages takes long.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;

use crate::driver;
use crate::error::Error;
use crate::gpu::Gpu;

/// Memory of the host for the time of a call.
#[derive(Debug)]
pub struct Staging {
    memory: Memory,
    stream: sys::CUstream,
}

#[derive(Clone, Copy, Debug)]
struct Memory {
    context: usize,
    address: usize,
    bytes: usize,
}

/// What no call has.
static IDLE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// The least that is asked for: a page.
const LEAST: usize = 4096;

impl Gpu<'_> {
    /// Memory of the host for so many bytes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where there is not so much.
    pub fn staging(&self, bytes: usize) -> Result<Staging, Error> {
        let context = self.context();
        let fits = |memory: &Memory| memory.context == context.addr() && memory.bytes >= bytes;
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = (0..idle.len()).filter(|at| fits(&idle[*at])).min_by_key(|at| idle[*at].bytes);
        let known = found.map(|at| idle.swap_remove(at));
        drop(idle);
        let memory = match known {
            Some(memory) => memory,
            None => {
                // Sizes that differ little share memory.
                let bytes = bytes.max(LEAST).checked_next_power_of_two().unwrap_or(bytes);
                let address = driver::page_locked(context, bytes)?.expose_provenance();
                Memory { context: context.addr(), address, bytes }
            }
        };
        Ok(Staging { memory, stream: self.stream() })
    }
}

impl Staging {
    /// Where it starts, aligned to a page.
    pub fn as_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.memory.address)
    }

    /// Queues a copy of so many bytes from the device to this offset.
    ///
    /// # Errors
    /// The driver's; INVALID_ARGUMENT where they do not fit.
    ///
    /// # Safety
    /// `from` are so many bytes of the stream's device.
    pub unsafe fn fetch(
        &mut self,
        offset: usize,
        from: *const c_void,
        bytes: usize,
    ) -> Result<(), Error> {
        let to = self.at(offset, bytes)?;
        // SAFETY: memory of this, which waits before it is given back.
        if bytes == 0 { Ok(()) } else { unsafe { driver::fetch(self.stream, to, from, bytes) } }
    }

    /// Queues a copy of so many bytes from this offset to the device.
    ///
    /// # Errors
    /// As [`Staging::fetch`].
    ///
    /// # Safety
    /// `to` are so many bytes of the stream's device.
    pub unsafe fn send(
        &mut self,
        to: *mut c_void,
        offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        let from = self.at(offset, bytes)?;
        // SAFETY: memory of this, which waits before it is given back.
        if bytes == 0 { Ok(()) } else { unsafe { driver::send(self.stream, to, from, bytes) } }
    }

    /// Waits for all that is queued.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait(&self) -> Result<(), Error> {
        driver::wait(self.stream)
    }

    fn at(&self, offset: usize, bytes: usize) -> Result<*mut c_void, Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.memory.bytes => Ok(self.as_ptr().wrapping_add(offset).cast()),
            _ => Err(Error::new(
                crate::Kind::InvalidArgument,
                format!("{bytes} bytes at {offset} of {} of staging", self.memory.bytes),
            )),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Copies may be queued still. Where waiting fails the device is lost, and the memory with it.
        if self.wait().is_ok() {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.memory);
        }
    }
}
