//! A device at work for one call: the stream that everything is queued on, and scratch.

use std::ffi::c_void;
use std::marker::PhantomData;

use cudarc::driver::sys;

use crate::driver::{self, Limits, check};
use crate::error::{Error, product};
use crate::memory::{InOut, Input, Output};
use crate::module::{self, Kernel};
use crate::scalar::Plain;

/// Device memory that somebody lends for the time of a call: XLA, or a test.
pub trait Memory {
    /// So many bytes, at least one, aligned to 16, for the work that is queued until the guard is
    /// dropped.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED where there is not so much.
    fn lend(&self, bytes: usize) -> Result<Box<dyn Lent + '_>, Error>;
}

/// A loan of device memory, which ends when this is dropped.
pub trait Lent {
    /// Where it lies.
    fn address(&self) -> *mut c_void;
}

/// The stream of a call, and who lends it scratch.
#[derive(Clone, Copy)]
pub struct Gpu<'a> {
    stream: sys::CUstream,
    context: sys::CUcontext,
    memory: &'a dyn Memory,
}

impl<'a> Gpu<'a> {
    /// # Safety
    /// `stream` is a live stream of the CUDA driver, whose device has the memory that is lent and all
    /// operands that are passed with this.
    ///
    /// # Errors
    /// UNAVAILABLE where there is no driver.
    pub unsafe fn new(stream: *mut c_void, memory: &'a dyn Memory) -> Result<Self, Error> {
        let stream = stream.cast();
        Ok(Self { stream, context: driver::context(stream)?, memory })
    }

    pub(crate) fn stream(&self) -> sys::CUstream {
        self.stream
    }

    pub(crate) fn context(&self) -> sys::CUcontext {
        self.context
    }

    /// What the device offers.
    pub(crate) fn limits(&self) -> Result<Limits, Error> {
        driver::limits(self.context)
    }

    /// Scratch for `len` elements.
    pub(crate) fn scratch<T>(&self, len: usize) -> Result<Scratch<'a, T>, Error> {
        let bytes = product("scratch", &[len, size_of::<T>()])?;
        let lent = if bytes == 0 { None } else { Some(self.memory.lend(bytes)?) };
        Ok(Scratch { lent, len, element: PhantomData })
    }

    /// The result, holding the argument's values: copied if they lie elsewhere.
    pub(crate) fn initialized<T>(&self, operand: InOut<T>) -> Result<Output<T>, Error> {
        if let Some(src) = operand.src {
            let (to, from) = (operand.dst.as_ptr().cast(), src.as_ptr().cast());
            driver::copy(self.stream, to, from, size_of::<T>() * src.len())?;
        }
        Ok(operand.dst)
    }

    /// An argument's values on the host. Waits for the device.
    ///
    /// # Errors
    /// Where the device fails.
    pub fn read<T: Plain>(&self, operand: Input<T>) -> Result<Vec<T>, Error> {
        let mut values = vec![T::default(); operand.len()];
        let bytes = size_of_val(values.as_slice());
        // SAFETY: plain numbers, as bytes.
        let target =
            unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), bytes) };
        driver::read(self.stream, target, operand.as_ptr().cast())?;
        Ok(values)
    }

    /// Sets a result from the host. Waits for the device.
    ///
    /// # Errors
    /// Where the device fails, or there are not as many values as the result has.
    pub fn write<T: Plain>(&self, operand: Output<T>, values: &[T]) -> Result<(), Error> {
        if values.len() != operand.len() {
            let text = format!("{} values for a result of {}", values.len(), operand.len());
            return Err(Error::internal(text));
        }
        // SAFETY: plain numbers, as bytes.
        let source = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        driver::write(self.stream, operand.as_ptr().cast(), source)
    }

    /// Loads a kernel, so that launching it loads nothing.
    pub(crate) fn load(&self, kernel: Kernel) -> Result<(), Error> {
        module::function(self.context, kernel).map(|_| ())
    }

    /// Bytes of shared memory that a launch of a kernel may ask for.
    pub(crate) fn shared_memory(&self, kernel: Kernel) -> Result<usize, Error> {
        module::function(self.context, kernel).map(|function| function.shared_memory)
    }

    /// Queues a kernel. Nothing is queued where the grid is empty.
    ///
    /// # Safety
    /// `arguments` have the types of the kernel's parameters, in order; what they point to is the
    /// call's operands or scratch, as large as the kernel's contract says.
    pub(crate) unsafe fn launch(
        &self,
        launch: &Launch,
        arguments: impl Arguments,
    ) -> Result<(), Error> {
        let Launch { kernel, grid, block: [x, y, z], shared } = *launch;
        if grid == 0 {
            return Ok(());
        }
        let function = module::function(self.context, kernel)?;
        let queued = arguments.with_addresses(|list| {
            let (list, none) = (list.as_mut_ptr(), std::ptr::null_mut());
            let (function, stream) = (function.handle, self.stream);
            // SAFETY: the function is the kernel's in the stream's context; the caller's promise.
            unsafe {
                sys::cuLaunchKernel(function, grid, 1, 1, x, y, z, shared, stream, list, none)
            }
        });
        check(queued, || format!("launching {}", kernel.name.to_string_lossy()))
    }
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    /// Blocks.
    pub(crate) grid: u32,
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
}

/// The values of a kernel's parameters, in order: a tuple of numbers and addresses.
pub(crate) trait Arguments {
    /// Calls `body` with the address of each.
    fn with_addresses<R>(self, body: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

macro_rules! arguments {
    ($($value:ident)+) => {
        #[allow(non_snake_case, reason = "a type parameter's name is also its value's")]
        impl<$($value: Copy),+> Arguments for ($($value,)+) {
            fn with_addresses<R>(self, body: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                let ($(mut $value,)+) = self;
                body(&mut [$((&raw mut $value).cast::<c_void>()),+])
            }
        }
    };
}

arguments!(A);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H);
arguments!(A B C D E F G H I);
arguments!(A B C D E F G H I J);
arguments!(A B C D E F G H I J K L M N O);

/// Blocks for so many pieces of work: one each up to a few for each processor, which then take more.
pub(crate) fn blocks(pieces: usize, limits: Limits) -> u32 {
    /// A grid-stride loop takes the rest; the cost of a block's start is then spread.
    const BLOCKS_PER_PROCESSOR: usize = 32;
    let most = limits.processors.saturating_mul(BLOCKS_PER_PROCESSOR);
    u32::try_from(pieces.min(most)).unwrap_or(u32::MAX)
}

/// Scratch of a call.
pub(crate) struct Scratch<'a, T> {
    lent: Option<Box<dyn Lent + 'a>>,
    len: usize,
    element: PhantomData<T>,
}

impl<T> Scratch<'_, T> {
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.lent.as_ref().map_or(std::ptr::null_mut(), |lent| lent.address().cast())
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
