//! Buffers of any or fixed element type and rank, and tokens: what `handler!` decodes operands to.
//! `signature!` has slices whose shapes depend on each other instead.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::data_type::{DataType, Element};
use crate::frame::{dims, element_count};
use crate::sys;

/// Stands for the rank of buffers of any rank.
pub const ANY_RANK: usize = usize::MAX;

/// A buffer of whatever element type and rank.
#[derive(Clone, Copy)]
pub struct AnyBuffer<'f>(pub(crate) &'f sys::XLA_FFI_Buffer);

/// A result of whatever element type and rank.
pub struct AnyBufferMut<'f>(pub(crate) AnyBuffer<'f>);

// SAFETY: a view of memory that nobody writes for 'f, or that is the handler's alone.
unsafe impl Send for AnyBuffer<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyBuffer<'_> {}

impl<'f> AnyBuffer<'f> {
    /// A buffer as the C API has it.
    ///
    /// # Safety
    /// It has so many dimensions, and memory for their elements, to which nobody writes during `'f`.
    pub unsafe fn from_raw(buffer: &'f sys::XLA_FFI_Buffer) -> Self {
        AnyBuffer(buffer)
    }

    /// A buffer of the same type and dimensions in other memory, as the C API has it.
    pub fn moved(&self, data: *mut u8) -> sys::XLA_FFI_Buffer {
        sys::XLA_FFI_Buffer { data: data.cast(), ..*self.0 }
    }

    /// The element type.
    #[inline(always)]
    pub fn dtype(&self) -> DataType {
        DataType::from_code(self.0.dtype)
    }

    /// The dimensions.
    #[inline(always)]
    pub fn dims(&self) -> &'f [i64] {
        dims(self.0)
    }

    /// Number of dimensions.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// Number of elements; None where it does not fit, or a dimension is negative.
    #[inline(always)]
    pub fn element_count(&self) -> Option<usize> {
        let mut dims = self.dims().iter();
        dims.try_fold(1_usize, |count, dim| count.checked_mul(usize::try_from(*dim).ok()?))
    }

    /// Number of bytes; None where it does not fit, or the element type is unknown.
    pub fn byte_size(&self) -> Option<usize> {
        self.element_count()?.checked_mul(self.dtype().byte_width()?)
    }

    /// Says what it is: `f64 [3, 3]`.
    pub(crate) fn describe(&self, text: &mut impl fmt::Write) -> fmt::Result {
        self.dtype().describe(text)?;
        text.write_str(" [")?;
        for (at, dim) in self.dims().iter().enumerate() {
            text.write_str(if at == 0 { "" } else { ", " })?;
            write!(text, "{dim}")?;
        }
        text.write_char(']')
    }

    /// Where it lies, in the memory of the platform that the call runs on.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const u8 {
        self.0.data.cast()
    }

    /// The elements, on the CPU; None where they are of another type, or the memory cannot be.
    #[inline(always)]
    pub fn as_slice<T: Element>(&self) -> Option<&'f [T]> {
        let (data, len) = self.extent::<T>()?;
        // SAFETY: XLA's buffers hold the elements of their dimensions, and no writer exists
        // (`Operands`: results share no memory with arguments).
        Some(unsafe { std::slice::from_raw_parts(data, len) })
    }

    #[inline(always)]
    pub(crate) fn extent<T: Element>(&self) -> Option<(*mut T, usize)> {
        self.memory(element_count::<T, 0>(self.element_count()?, |_| 1)?)
    }

    /// Where so many elements of `T`, which memory can hold, start.
    #[inline(always)]
    fn memory<T: Element>(&self, len: usize) -> Option<(*mut T, usize)> {
        let data = self.0.data.cast::<T>();
        if self.0.dtype != T::DTYPE.code() {
            return None;
        }
        if !data.is_aligned() {
            return None;
        }
        if data.is_null() {
            // XLA may pass any pointer for an empty buffer.
            return (len == 0).then_some((NonNull::dangling().as_ptr(), 0));
        }
        Some((data, len))
    }

    /// The memory of a buffer of this type and rank.
    #[inline(always)]
    fn typed<T: Element, const RANK: usize>(self) -> Option<(*mut T, usize)> {
        if RANK == ANY_RANK {
            return self.extent();
        }
        // The type before the dimensions: between two loads each check is a branch of its own, which is
        // foreseen, and costs one operation.
        if i64::try_from(RANK) != Ok(self.0.rank) || self.0.dtype != T::DTYPE.code() {
            return None;
        }
        // A negative dimension becomes one that is too large.
        // SAFETY: a buffer has `rank` dimensions.
        let dim = |at| usize::try_from(unsafe { *self.0.dims.add(at) }.cast_unsigned());
        self.memory(element_count::<T, RANK>(1, |at| dim(at).unwrap_or(usize::MAX))?)
    }
}

impl<'f> AnyBufferMut<'f> {
    /// A result as the C API has it.
    ///
    /// # Safety
    /// As for [`AnyBuffer::from_raw`], and nobody else looks there during `'f`.
    pub unsafe fn from_raw(buffer: &'f sys::XLA_FFI_Buffer) -> Self {
        AnyBufferMut(AnyBuffer(buffer))
    }

    /// The same, only to be looked at.
    pub fn shape(&self) -> AnyBuffer<'f> {
        self.0
    }

    /// Where it lies, in the memory of the platform that the call runs on.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.0.data.cast()
    }

    /// The elements, on the CPU; None where they are of another type, or the memory cannot be.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        let (data, len) = self.0.extent::<T>()?;
        // SAFETY: as for arguments; a result is the handler's alone, and this is its only view.
        Some(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }
}

impl fmt::Display for AnyBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

impl fmt::Debug for AnyBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for AnyBufferMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An argument of element type `T`, of any rank or of `RANK`: a slice that knows its dimensions.
#[derive(Clone, Copy)]
pub struct Buffer<'f, T, const RANK: usize = ANY_RANK> {
    any: AnyBuffer<'f>,
    elements: &'f [T],
}

/// A result of element type `T`, of any rank or of `RANK`. It may serve as temporary memory: XLA
/// frees a result that the program does not use when the call is over.
pub struct BufferMut<'f, T, const RANK: usize = ANY_RANK> {
    any: AnyBuffer<'f>,
    elements: &'f mut [T],
}

impl<'f, T: Element, const RANK: usize> Buffer<'f, T, RANK> {
    #[inline(always)]
    pub(crate) fn new(any: AnyBuffer<'f>) -> Option<Self> {
        let (data, len) = any.typed::<T, RANK>()?;
        // SAFETY: as in `AnyBuffer::as_slice`.
        Some(Buffer { any, elements: unsafe { std::slice::from_raw_parts(data, len) } })
    }
}

impl<'f, T: Element, const RANK: usize> BufferMut<'f, T, RANK> {
    #[inline(always)]
    pub(crate) fn new(any: AnyBuffer<'f>) -> Option<Self> {
        let (data, len) = any.typed::<T, RANK>()?;
        // SAFETY: as in `AnyBufferMut::as_mut_slice`; each result is taken once.
        Some(BufferMut { any, elements: unsafe { std::slice::from_raw_parts_mut(data, len) } })
    }
}

impl<'f, T, const RANK: usize> Buffer<'f, T, RANK> {
    /// The dimensions.
    #[inline(always)]
    pub fn dims(&self) -> &'f [i64] {
        self.any.dims()
    }

    /// The elements for the whole call.
    #[inline(always)]
    pub fn as_slice(&self) -> &'f [T] {
        self.elements
    }

    /// The same without its type.
    pub fn as_any(&self) -> AnyBuffer<'f> {
        self.any
    }
}

impl<'f, T, const RANK: usize> BufferMut<'f, T, RANK> {
    /// Its element type and dimensions.
    pub(crate) fn as_any(&self) -> AnyBuffer<'f> {
        self.any
    }

    /// The dimensions.
    #[inline(always)]
    pub fn dims(&self) -> &'f [i64] {
        self.any.dims()
    }

    /// The elements for the whole call.
    #[inline(always)]
    pub fn into_slice(self) -> &'f mut [T] {
        self.elements
    }
}

macro_rules! sizes {
    ($buffer:ident) => {
        impl<T, const RANK: usize> $buffer<'_, T, RANK> {
            /// The dimensions as an array.
            #[inline(always)]
            pub fn sizes(&self) -> [usize; RANK] {
                const { assert!(RANK != ANY_RANK, "sizes() is of buffers with a fixed rank") };
                let mut sizes = [0; RANK];
                for (size, dim) in sizes.iter_mut().zip(self.any.dims()) {
                    // The slice was made of these dimensions: none is negative.
                    *size = usize::try_from(*dim).unwrap_or(0);
                }
                sizes
            }
        }

        impl<T, const RANK: usize> Deref for $buffer<'_, T, RANK> {
            type Target = [T];

            #[inline(always)]
            fn deref(&self) -> &[T] {
                self.elements
            }
        }

        impl<T, const RANK: usize> fmt::Debug for $buffer<'_, T, RANK> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.any, f)
            }
        }
    };
}

sizes!(Buffer);
sizes!(BufferMut);

impl<T, const RANK: usize> DerefMut for BufferMut<'_, T, RANK> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

/// A token: no data, only order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'f>(pub(crate) PhantomData<&'f ()>);

/// What is left of the arguments (`T = AnyBuffer`) or results (`T = AnyBufferMut`), however many.
#[derive(Debug)]
pub struct Rest<'f, T>(pub(crate) Vec<T>, pub(crate) PhantomData<&'f ()>);

impl<T> Deref for Rest<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Rest<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> IntoIterator for Rest<'_, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
