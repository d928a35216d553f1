//! What a handler of a device needs besides: operands that lie in its memory, the stream that its
//! work goes to, and scratch.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::buffer::AnyBuffer;
use crate::context::Context;
use crate::error::{Error, ErrorCode, destroy, struct_size, take};
use crate::frame::Raw;
use crate::{Element, sys};

/// An argument in a device's memory, which the host cannot read.
#[derive(Debug)]
pub struct Device<'f, T> {
    data: *const T,
    len: usize,
    borrow: PhantomData<&'f [T]>,
}

/// A result in a device's memory, which the host cannot write.
#[derive(Debug)]
pub struct DeviceMut<'f, T> {
    data: *mut T,
    len: usize,
    borrow: PhantomData<&'f mut [T]>,
}

/// An argument in a device's memory and the result that may share it.
#[derive(Debug)]
pub struct DeviceInOut<'f, T> {
    /// The argument, where it lies elsewhere; None: it already lies in `dst`.
    pub src: Option<Device<'f, T>>,
    /// The result, of the same length.
    pub dst: DeviceMut<'f, T>,
}

macro_rules! pointer {
    ($name:ident, $pointer:ty) => {
        impl<T> $name<'_, T> {
            /// The address of the first element; dangling where there is none.
            pub fn as_ptr(&self) -> $pointer {
                self.data
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }
        }
    };
}

pointer!(Device, *const T);
pointer!(DeviceMut, *mut T);

impl<'f, T: Element> Device<'f, T> {
    pub(crate) fn of(buffer: AnyBuffer<'f>) -> Option<Self> {
        let (data, len) = buffer.extent::<T>()?;
        Some(Device { data, len, borrow: PhantomData })
    }
}

impl<'f, T: Element> DeviceMut<'f, T> {
    pub(crate) fn of(buffer: AnyBuffer<'f>) -> Option<Self> {
        let (data, len) = buffer.extent::<T>()?;
        Some(DeviceMut { data, len, borrow: PhantomData })
    }
}

impl<'f, T: Element, const R: usize> Raw<'f, T, R> {
    /// The elements of `batch` problems; `dims` as for [`Raw::slice`].
    pub fn device(self, dims: [usize; R], batch: usize) -> Option<Device<'f, T>> {
        let (data, len) = self.extent(dims, batch)?;
        Some(Device { data, len, borrow: PhantomData })
    }

    /// The elements of `batch` problems, to be written.
    pub fn device_mut(self, dims: [usize; R], batch: usize) -> Option<DeviceMut<'f, T>> {
        let (data, len) = self.extent(dims, batch)?;
        Some(DeviceMut { data, len, borrow: PhantomData })
    }

    /// This result together with the argument whose memory it may share.
    pub fn device_in_out(
        self,
        argument: Raw<'f, T, R>,
        dims: [usize; R],
        batch: usize,
    ) -> Option<DeviceInOut<'f, T>> {
        let (dst, src) = (self.device_mut(dims, batch)?, argument.device(dims, batch)?);
        let shared = std::ptr::eq(dst.data, src.data);
        Some(DeviceInOut { src: (!shared).then_some(src), dst })
    }
}

/// Memory of the device that the host lends for the time of a call, and may reuse for what its
/// stream does after the call. Given back when dropped, which must be before the handler returns.
pub struct Scratch<'c> {
    context: &'c Context<'c>,
    data: Option<NonNull<c_void>>,
    bytes: usize,
}

impl Scratch<'_> {
    /// The address; null where no byte was asked for.
    pub fn as_ptr(&self) -> *mut c_void {
        self.data.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }
}

/// What the host aligns scratch to: the most that XLA grants, and enough for every element type.
const ALIGNMENT: usize = 16;

impl Context<'_> {
    /// The stream of the device that the call's work goes to: a `CUstream` on CUDA.
    ///
    /// # Errors
    /// UNAVAILABLE where the host has none, as on the CPU.
    pub fn stream(&self) -> Result<*mut c_void, Error> {
        const END: usize = offset_of!(sys::XLA_FFI_Api, XLA_FFI_Stream_Get) + size_of::<usize>();
        // SAFETY: an optional function is all that may be in the slot.
        let get = unsafe { self.slot(END, |api| api.XLA_FFI_Stream_Get) };
        let get = get.ok_or_else(|| unavailable("no stream: this is not a device's call"))?;
        let mut args = sys::XLA_FFI_Stream_Get_Args {
            struct_size: struct_size(sys::XLA_FFI_Stream_Get_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            ctx: self.raw(),
            stream: std::ptr::null_mut(),
        };
        // SAFETY: the host's function with the struct it asks for.
        let error = unsafe { get(&raw mut args) };
        self.refused(error, ErrorCode::Unavailable, "no stream")?;
        Ok(args.stream)
    }

    /// Scratch of so many bytes in the device's memory, aligned for every element type; none for 0.
    /// Not for handlers that are recorded into command buffers.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where the host has not so much, UNAVAILABLE where it has none to lend.
    pub fn scratch(&self, bytes: usize) -> Result<Scratch<'_>, Error> {
        const END: usize =
            offset_of!(sys::XLA_FFI_Api, XLA_FFI_DeviceMemory_Free) + size_of::<usize>();
        if bytes == 0 {
            return Ok(Scratch { context: self, data: None, bytes });
        }
        // SAFETY: an optional function is all that may be in the slot.
        let allocate = unsafe { self.slot(END, |api| api.XLA_FFI_DeviceMemory_Allocate) };
        let allocate = allocate.ok_or_else(|| unavailable("no device memory to lend"))?;
        let mut args = sys::XLA_FFI_DeviceMemory_Allocate_Args {
            struct_size: struct_size(sys::XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            ctx: self.raw(),
            size: bytes,
            alignment: ALIGNMENT,
            data: std::ptr::null_mut(),
        };
        // SAFETY: the host's function with the struct it asks for.
        let error = unsafe { allocate(&raw mut args) };
        let what = format!("{bytes} bytes of device memory for scratch");
        self.refused(error, ErrorCode::ResourceExhausted, &what)?;
        match NonNull::new(args.data) {
            Some(data) => Ok(Scratch { context: self, data: Some(data), bytes }),
            None => Err(Error::new(ErrorCode::ResourceExhausted, what + ": the host gave none")),
        }
    }

    /// The host's error, if there is one, with this code and what was asked for in front.
    fn refused(
        &self,
        error: *mut sys::XLA_FFI_Error,
        code: ErrorCode,
        what: &str,
    ) -> Result<(), Error> {
        let Some(error) = NonNull::new(error) else { return Ok(()) };
        // SAFETY: the error came from this table, and is ours to read and destroy.
        let error = unsafe { take(self.api(), error) };
        Err(Error::new(code, format!("{what}: the host says: {error}")))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let Some(data) = self.data else { return };
        // SAFETY: scratch was lent only by a host whose table reaches this slot.
        let free = unsafe { (*self.context.api()).XLA_FFI_DeviceMemory_Free };
        let Some(free) = free else { return };
        let mut args = sys::XLA_FFI_DeviceMemory_Free_Args {
            struct_size: struct_size(sys::XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE),
            extension_start: std::ptr::null_mut(),
            ctx: self.context.raw(),
            size: self.bytes,
            data: data.as_ptr(),
        };
        // SAFETY: the host's function, with memory of its own that nobody uses after the call.
        let error = unsafe { free(&raw mut args) };
        if !error.is_null() {
            // SAFETY: the error is ours to destroy. There is nobody left to tell.
            unsafe { destroy(self.context.api(), error) };
        }
    }
}

#[cold]
fn unavailable(what: &str) -> Error {
    Error::new(ErrorCode::Unavailable, format!("this host has {what}"))
}
