//! A positive definite tridiagonal system with one right-hand side, eliminated from both ends towards the middle.
//!
//! Steps from the two ends do not wait for each other (see [`crate::tridiagonal`]). The pivots are those of L·D·Lᴴ
//! of a matrix whose rows and columns come in another order: all are positive just where A is definite.

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::loops::sub_mul;

/// Solves A·x = b for A of order 2 or more; `false`, and no x, where A may not be positive definite, or
/// its elements are so large or small that squares lose digits.
pub(crate) struct Solve<'a, T> {
    pub(super) diagonal: &'a [T],
    /// A(i + 1, i) at i, or its conjugate.
    pub(super) beside: &'a [T],
    pub(super) conjugate: bool,
    pub(super) b: &'a [T],
    pub(super) x: &'a mut [T],
    /// n rows.
    pub(super) rows: &'a mut [Row<T>],
}

/// A row over its pivot: x = rhs − next·x′ for the unknown x′ that is eliminated after x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<T> {
    rhs: T,
    next: T,
}

impl<T: Scalar> Row<T> {
    pub(super) const ZERO: Self = Self { rhs: T::ZERO, next: T::ZERO };
}

/// The row that an elimination has come to.
struct Front<T: Scalar> {
    pivot: T::Real,
    rhs: T,
    /// The smallest and the largest pivot.
    least: T::Real,
    most: T::Real,
}

impl<T: Scalar> Front<T> {
    fn new(diagonal: T, rhs: T) -> Self {
        let pivot = diagonal.re();
        Self { pivot, rhs, least: pivot, most: pivot }
    }

    /// Eliminates the unknown of this row from the next, `[beside, diagonal]` with its right-hand side.
    #[inline(always)]
    fn step<S: Simd>(&mut self, [beside, diagonal]: [T; 2], rhs: T) -> Row<T> {
        let reciprocal = T::Real::ONE / self.pivot;
        let row = Row { rhs: self.rhs.scale(reciprocal), next: beside.conj().scale(reciprocal) };
        let square = beside.re() * beside.re() + beside.im() * beside.im();
        // What the next step waits for needs the reciprocal alone.
        self.pivot = if S::IS_SCALAR {
            diagonal.re() - square * reciprocal
        } else {
            diagonal.re().fused_add(-square, reciprocal)
        };
        self.rhs = sub_mul::<S, T>(rhs, beside, row.rhs);
        // A NaN is kept.
        self.least = if self.pivot >= self.least { self.least } else { self.pivot };
        self.most = if self.pivot <= self.most { self.most } else { self.pivot };
        row
    }
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { diagonal, beside, conjugate, b, x, rows } = self;
        let n = diagonal.len();
        let (beside, b) = (&beside[..n - 1], &b[..n]);
        let (x, rows) = (&mut x[..n], &mut rows[..n]);
        // A(i + 1, i).
        let below = |i: usize| if conjugate { beside[i].conj() } else { beside[i] };
        let mut down = Front::new(diagonal[0], b[0]);
        let mut up = Front::new(diagonal[n - 1], b[n - 1]);
        let middle = n / 2;
        for i in 0..middle {
            rows[i] = down.step::<S>([below(i), diagonal[i + 1]], b[i + 1]);
            let k = n - 1 - i;
            if k > middle {
                rows[k] = up.step::<S>([below(k - 1).conj(), diagonal[k - 1]], b[k - 1]);
            }
        }
        // Both have come to the row in the middle, and each has subtracted its part from it.
        let pivot = down.pivot + (up.pivot - diagonal[middle].re());
        let rhs = down.rhs + (up.rhs - b[middle]);
        let least = T::Real::SAFE_MIN.sqrt().sqrt();
        let sound = |size| size >= least && size <= T::Real::ONE / least;
        let pivots = [down.least, up.least, down.most, up.most, pivot];
        if !pivots.into_iter().all(sound) {
            return false;
        }
        let found = rhs.scale(T::Real::ONE / pivot);
        x[middle] = found;
        let (mut above, mut under) = (found, found);
        for i in 1..=middle {
            let k = middle - i;
            above = sub_mul::<S, T>(rows[k].rhs, rows[k].next, above);
            x[k] = above;
            let k = middle + i;
            if k < n {
                under = sub_mul::<S, T>(rows[k].rhs, rows[k].next, under);
                x[k] = under;
            }
        }
        x.iter().fold(true, |finite, x| finite & x.is_finite())
    }
}
