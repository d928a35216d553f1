//! Operands in the device's memory: where they lie and how many elements they have. Nothing here reads
//! them.

use std::fmt;

/// An argument.
pub struct Input<T> {
    data: *const T,
    len: usize,
}

/// A result.
pub struct Output<T> {
    data: *mut T,
    len: usize,
}

/// An argument and the result that may share its memory.
pub struct InOut<T> {
    /// The argument, where it lies elsewhere.
    pub src: Option<Input<T>>,
    /// The result.
    pub dst: Output<T>,
}

macro_rules! operand {
    ($name:ident, $pointer:ty) => {
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:p}, {})"), self.data, self.len)
            }
        }

        impl<T> $name<T> {
            /// # Safety
            /// `len` elements lie there, in the memory of the device of every stream that is used
            /// with this, until the work queued by then is done; nothing else writes them meanwhile,
            /// nor reads them if this is a result.
            pub unsafe fn new(data: $pointer, len: usize) -> Self {
                Self { data, len }
            }

            /// The first element's address.
            pub fn as_ptr(self) -> $pointer {
                self.data
            }

            /// The address of problem `index` of a batch, each of `size` elements.
            pub(crate) fn item(self, index: usize, size: usize) -> $pointer {
                self.data.wrapping_add(index * size)
            }

            /// Problem `index` of a batch, each of `size` elements.
            pub fn problem(self, index: usize, size: usize) -> Self {
                debug_assert!((index + 1) * size <= self.len, "a problem of the batch");
                Self { data: self.item(index, size), len: size }
            }

            /// Problem `index` of a batch of so many, all of one size.
            pub(crate) fn of(self, index: usize, batch: usize) -> Self {
                self.problem(index, self.len / batch.max(1))
            }

            /// Number of elements.
            pub fn len(self) -> usize {
                self.len
            }

            /// Whether there are none.
            pub fn is_empty(self) -> bool {
                self.len == 0
            }
        }
    };
}

operand!(Input, *const T);
operand!(Output, *mut T);

impl<T> Clone for InOut<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InOut<T> {}

impl<T> fmt::Debug for InOut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InOut").field("src", &self.src).field("dst", &self.dst).finish()
    }
}

impl<T> InOut<T> {
    /// Where the argument's values are.
    pub fn source(self) -> Input<T> {
        self.src.unwrap_or(Input { data: self.dst.data, len: self.dst.len })
    }
}
