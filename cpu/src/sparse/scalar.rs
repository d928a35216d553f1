//! What sparse matrices consist of: values of six types, and indices of two.

use std::fmt::Debug;

use num_complex::Complex;
use pulp::Simd;

use crate::simd::loops::sub_mul;

/// An element of a sparse matrix: `i32`, `i64`, `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait SparseScalar: Copy + Debug + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;

    /// self + a·b; fused where S has vectors; of integers modulo 2³² or 2⁶⁴.
    #[doc(hidden)]
    fn add_mul<S: Simd>(self, a: Self, b: Self) -> Self;

    /// self + other, of integers as above.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl SparseScalar for $float {
            const ZERO: Self = <$float as lapax_core::Scalar>::ZERO;

            #[inline(always)]
            fn add_mul<S: Simd>(self, a: Self, b: Self) -> Self {
                sub_mul::<S, Self>(self, -a, b)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }
    )*};
}

floats!(f32, f64, Complex<f32>, Complex<f64>);

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl SparseScalar for $integer {
            const ZERO: Self = 0;

            #[inline(always)]
            fn add_mul<S: Simd>(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

integers!(i32, i64);

/// An index as it is stored: `i32` or `i64`.
pub trait Index: Copy + Debug + Send + Sync + 'static {
    /// The number.
    fn number(self) -> i64;

    /// The number as a place in a slice; a negative one is past the end of any.
    #[inline(always)]
    fn position(self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }
}

impl Index for i32 {
    #[inline(always)]
    fn number(self) -> i64 {
        self.into()
    }
}

impl Index for i64 {
    #[inline(always)]
    fn number(self) -> i64 {
        self
    }
}
