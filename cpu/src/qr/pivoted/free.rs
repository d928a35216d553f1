//! The columns that are free to be chosen, and what is left of their norms.

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::householder::norm;

/// The norm of what is left of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm<R> {
    /// As downdated.
    now: R,
    /// As it was when it was last computed from the column.
    computed: R,
}

/// Moves the fixed columns to the front, sets `jpvt` accordingly, and returns their number.
pub(crate) fn move_fixed<T>(a: &mut [T], m: usize, jpvt: &mut [i32]) -> usize {
    let mut fixed = 0;
    for (j, number) in (0..jpvt.len()).zip(1..) {
        let is_fixed = jpvt[j] != 0;
        jpvt[j] = number;
        if is_fixed {
            swap_columns(a, m, fixed, j);
            jpvt.swap(fixed, j);
            fixed += 1;
        }
    }
    fixed
}

/// Swaps columns i <= j.
#[inline(always)]
fn swap_columns<T>(a: &mut [T], m: usize, i: usize, j: usize) {
    if i < j {
        let (left, right) = a.split_at_mut(j * m);
        left[i * m..(i + 1) * m].swap_with_slice(&mut right[..m]);
    }
}

/// The free columns, and the factors of their reflectors; rows before `row` are rows of R already.
pub(crate) struct Free<'a, T: Scalar> {
    pub(crate) a: &'a mut [T],
    pub(crate) m: usize,
    pub(crate) row: usize,
    pub(crate) jpvt: &'a mut [i32],
    pub(crate) norms: &'a mut [Norm<T::Real>],
    pub(crate) tau: &'a mut [T],
}

impl<'a, T: Scalar> Free<'a, T> {
    /// The first `count` columns and their factors, and what is free once these are factored.
    pub(crate) fn split(self, count: usize) -> (&'a mut [T], &'a mut [T], Self) {
        let Self { a, m, row, jpvt, norms, tau } = self;
        let ((left, a), (left_tau, tau)) = (a.split_at_mut(count * m), tau.split_at_mut(count));
        let (jpvt, norms) = (&mut jpvt[count..], &mut norms[count..]);
        (left, left_tau, Self { a, m, row: row + count, jpvt, norms, tau })
    }

    /// Brings the column of largest norm to position j.
    #[inline(always)]
    pub(crate) fn pivot(&mut self, j: usize) {
        let pivot = j + largest(&self.norms[j..]);
        swap_columns(self.a, self.m, j, pivot);
        self.jpvt.swap(j, pivot);
        self.norms[pivot] = self.norms[j];
    }
}

/// Computes the norms of columns from row `row` on.
pub(crate) struct Norms<'a, T: Scalar> {
    pub(crate) a: &'a [T],
    pub(crate) m: usize,
    pub(crate) row: usize,
    pub(crate) norms: &'a mut [Norm<T::Real>],
}

impl<T: Scalar> WithSimd for Norms<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, m, row, norms } = self;
        for (norm, column) in norms.iter_mut().zip(a.chunks_exact(m)) {
            *norm = Norm::of::<S, T>(&column[row..]);
        }
    }
}

/// The index of the first norm that is largest.
#[inline(always)]
pub(crate) fn largest<R: lapax_core::Real>(norms: &[Norm<R>]) -> usize {
    let mut first = 0;
    for (i, norm) in norms.iter().enumerate() {
        if norm.exceeds(&norms[first]) {
            first = i;
        }
    }
    first
}

impl<R: lapax_core::Real> Norm<R> {
    pub(crate) const ZERO: Self = Self { now: R::ZERO, computed: R::ZERO };

    /// Whether the norm is larger than another; NaN is larger than any number.
    #[inline(always)]
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        self.now > other.now || (self.now.is_nan() && !other.now.is_nan())
    }

    /// A column's norm, computed.
    #[inline(always)]
    pub(crate) fn of<S: Simd, T: Scalar<Real = R>>(column: &[T]) -> Self {
        let now = norm::<S, T>(column);
        Self { now, computed: now }
    }

    /// The norm without an element of this modulus; false where rounding may have spoilt it.
    ///
    /// ‖x‖² − |x₀|² loses what the norm has lost since it was computed; √ε is LAWN 176's limit.
    #[inline(always)]
    pub(crate) fn downdate(&mut self, element: R) -> bool {
        if self.now == R::ZERO {
            return true;
        }
        let quotient = element / self.now;
        let left = R::ONE - quotient * quotient;
        let ratio = self.now / self.computed;
        // A comparison that is false for NaN, which is computed anew.
        if left * (ratio * ratio) > R::EPSILON.sqrt() {
            self.now *= left.sqrt();
            true
        } else {
            false
        }
    }
}
