//! The QZ iteration, from Hessenberg-triangular to Schur form.
//!
//! Moler and Stewart, "An algorithm for generalized matrix eigenvalue problems" (SIAM J. Numer. Anal. 10, 1973);
//! Golub and Van Loan, "Matrix computations", section 7.7: two shifts at a time for real pairs, one for complex ones.
//! A subdiagonal element is neglected beside its neighbours on the diagonal, a diagonal element of T beside T, as in
//! LAPACK's xHGEQZ; what the latter leaves, an infinite eigenvalue, goes to an end of its block and is split off.

use std::ops::Range;

use lapax_core::{Real as _, Scalar as _};

use super::pencil::{Pencil, eliminating};
use crate::Scalar;
use crate::blas::householder::reflector;
use crate::schur::two_by_two::square_root;

/// Sweeps per row before an iteration is given up: xHGEQZ's.
const SWEEPS: usize = 30;
/// Sweeps over a block, after which one takes other shifts: xHGEQZ's.
const STALLED: usize = 10;
/// Sweeps over a block, after which an element is neglected beside all of S: other shifts had their turn twice.
const PATIENCE: usize = 20;

/// There was no convergence.
#[derive(Debug)]
pub(crate) struct NotConverged;

impl<T: Scalar> Pencil<'_, T> {
    /// From Hessenberg-triangular to Schur form, the diagonal of T not negative.
    pub(crate) fn iterate(&mut self) -> Result<(), NotConverged> {
        let ulp = T::Real::EPSILON + T::Real::EPSILON;
        let tolerance = |norm: T::Real| {
            let roundoff = ulp * norm;
            if roundoff > T::Real::SAFE_MIN { roundoff } else { T::Real::SAFE_MIN }
        };
        let (of_s, of_t) = (tolerance(norm(self.s)), tolerance(norm(self.t)));
        let (mut stop, mut stalled, mut sweeps) = (self.n, 0, SWEEPS.saturating_mul(self.n));
        while stop > 0 {
            let floor = if stalled < PATIENCE { T::Real::SAFE_MIN } else { of_s };
            let start = self.unreduced(stop, floor);
            for i in start..stop {
                if self.t(i, i).abs1() <= of_t {
                    self.clear_t(i, i);
                }
            }
            let infinite = (start..stop).find(|&i| self.t(i, i) == T::ZERO);
            if stop - start == 1 {
                (stop, stalled) = (start, 0);
            } else if let Some(row) = infinite {
                self.split_infinite(row, start..stop);
            } else if !T::IS_COMPLEX && stop - start == 2 {
                if self.standardise(start) {
                    (stop, stalled) = (start, 0);
                }
            } else {
                if sweeps == 0 {
                    return Err(NotConverged);
                }
                (sweeps, stalled) = (sweeps - 1, stalled + 1);
                if T::IS_COMPLEX {
                    self.single_sweep(start..stop, stalled);
                } else {
                    self.double_sweep(start..stop, stalled);
                }
            }
        }
        (0..self.n).for_each(|i| self.make_row_positive(i));
        Ok(())
    }

    /// The first row of the unreduced block that ends before `stop`; what couples it is set to zero.
    fn unreduced(&mut self, stop: usize, floor: T::Real) -> usize {
        let ulp = T::Real::EPSILON + T::Real::EPSILON;
        for i in (1..stop).rev() {
            let around = ulp * (self.s(i, i).abs1() + self.s(i - 1, i - 1).abs1());
            let sub = self.s(i, i - 1).abs1();
            if sub <= around || sub <= floor {
                self.clear_s(i, i - 1);
                return i;
            }
        }
        0
    }

    /// Splits off the infinite eigenvalue that a zero in this row on T's diagonal is.
    fn split_infinite(&mut self, row: usize, block: Range<usize>) {
        let Range { start, end: stop } = block;
        let last = stop - 1;
        if row == start {
            // Column `row` of T is zero in the block: rows can be rotated.
            self.left(eliminating(self.s(row, row), self.s(row + 1, row)), row, row, row);
            self.clear_s(row + 1, row);
            return;
        }
        for k in row..last {
            self.left(eliminating(self.t(k, k + 1), self.t(k + 1, k + 1)), k, k - 1, k + 1);
            self.clear_t(k + 1, k + 1);
            self.right_by_s(k + 1, (k, k - 1), k + 2, k);
        }
        self.right_by_s(last, (last, last - 1), stop, last);
    }

    /// One sweep of a complex block with one shift.
    fn single_sweep(&mut self, block: Range<usize>, stalled: usize) {
        let Range { start, end: stop } = block;
        let shift = self.shift(start, stop - 1, stalled);
        let mut pair =
            (self.s(start, start) - shift * self.t(start, start), self.s(start + 1, start));
        for k in start..stop - 1 {
            let from = if k > start { k - 1 } else { k };
            if k > start {
                pair = (self.s(k, k - 1), self.s(k + 1, k - 1));
            }
            self.left(eliminating(pair.0, pair.1), k, from, k);
            if k > start {
                self.clear_s(k + 1, k - 1);
            }
            self.right_by_t(k + 1, (k + 1, k), (k + 3).min(stop), k + 2);
        }
    }

    /// The eigenvalue of the last block of order 2 of S·T⁻¹ nearer to its last element (Wilkinson).
    fn shift(&self, start: usize, last: usize, stalled: usize) -> T {
        let before = last - 1;
        let over = |i: usize, j: usize| self.s(i, j).divide(self.t(j, j));
        let part = |x: T| T::from_real(x.abs1().scale(T::Real::from_f64(0.75)));
        if stalled.is_multiple_of(STALLED) && (stalled / STALLED).is_multiple_of(2) {
            return over(start, start) + part(over(start + 1, start));
        }
        let u = self.t(before, last).divide(self.t(last, last));
        let (a, c) = (over(before, before), over(last, before));
        let (b, d) = (over(before, last) - u * a, over(last, last) - u * c);
        if stalled.is_multiple_of(STALLED) {
            return d + part(c);
        }
        let wide = |x: T| T::Complex::from_parts(x.re(), x.im());
        let coupling = square_root::<T>(wide(b)) * square_root::<T>(wide(c));
        if coupling.abs1() == T::Real::ZERO {
            return d;
        }
        // d − u²/(x ± √(x² + u²)), the sign that makes the divisor larger.
        let x = wide(a - d).scale(T::Real::from_f64(0.5));
        let size = if coupling.abs1() > x.abs1() { coupling.abs1() } else { x.abs1() };
        let (x_part, u_part) = (x.unscale(size), coupling.unscale(size));
        let mut root = square_root::<T>(x_part * x_part + u_part * u_part);
        if x_part.re() * root.re() + x_part.im() * root.im() < T::Real::ZERO {
            root = -root;
        }
        let shift = wide(d) - coupling * coupling.divide(x + root.scale(size));
        T::from_parts(shift.re(), shift.im())
    }

    /// One sweep of a real block of order 3 or more with two shifts.
    fn double_sweep(&mut self, block: Range<usize>, stalled: usize) {
        let Range { start, end: stop } = block;
        let mut v = self.first_column(start, stop - 1, stalled);
        for k in start..stop - 2 {
            let from = if k > start { k - 1 } else { k };
            if k > start {
                v = [self.s(k, k - 1), self.s(k + 1, k - 1), self.s(k + 2, k - 1)];
            }
            let tau = reflected(&mut v);
            self.reflect_left(v, tau, k, (from, k));
            if k > start {
                self.clear_s(k + 1, k - 1);
                self.clear_s(k + 2, k - 1);
            }
            // The last of three columns takes what T has in row k + 2.
            let mut v = [self.t(k + 2, k + 2), self.t(k + 2, k), self.t(k + 2, k + 1)];
            let tau = reflected(&mut v);
            let s_rows = (k + 4).min(stop);
            self.reflect_right([v[1], v[2], v[0]], tau, k, (s_rows, k + 3));
            self.clear_t(k + 2, k);
            self.clear_t(k + 2, k + 1);
            self.right_by_t(k + 1, (k + 1, k), s_rows, k + 2);
        }
        let k = stop - 2;
        self.left(eliminating(self.s(k, k - 1), self.s(k + 1, k - 1)), k, k - 1, k);
        self.clear_s(k + 1, k - 1);
        self.right_by_t(k + 1, (k + 1, k), stop, k + 2);
    }

    /// A multiple of the first column of (M − σ₁·I)·(M − σ₂·I) for M = S·T⁻¹ and the eigenvalues of its last block of
    /// order 2, by differences, as Moler and Stewart have it.
    fn first_column(&self, start: usize, last: usize, stalled: usize) -> [T; 3] {
        if stalled.is_multiple_of(STALLED) {
            // Shifts of no meaning: those of EISPACK's QZIT.
            return [T::ZERO, T::ONE, T::from_real(T::Real::from_f64(1.1605))];
        }
        let over = |i: usize, j: usize| self.s(i, j).divide(self.t(j, j));
        let above = |j: usize| self.t(j, j + 1).divide(self.t(j + 1, j + 1));
        let before = last - 1;
        let (a, b, c, d) =
            (over(before, before), over(before, last), over(last, before), over(last, last));
        let u = above(before);
        let (first, second) = (start, start + 1);
        let (m11, m21, m32) = (over(first, first), over(second, first), over(start + 2, second));
        let u_first = above(first);
        let m12 = over(first, second) - m11 * u_first;
        let m22 = over(second, second) - m21 * u_first;
        let sum = (a - m11) * (d - m11) - b * c + c * u * m11 + m12 * m21;
        let next = (m22 - m11) - (a - m11) - (d - m11) + c * u;
        let v = [sum, next * m21, m32 * m21];
        let size =
            v.iter().fold(T::Real::ZERO, |size, x| if x.abs1() > size { x.abs1() } else { size });
        if size == T::Real::ZERO || !size.finite() {
            [T::ZERO, T::ONE, T::ONE]
        } else {
            v.map(|x| x.unscale(size))
        }
    }
}

/// The reflector that takes x to a multiple of its first element, v in its place; the factor.
fn reflected<T: Scalar>(x: &mut [T]) -> T {
    let Some((head, tail)) = x.split_first_mut() else { return T::ZERO };
    let tau = reflector::<pulp::Scalar, T>(*head, tail).tau;
    *head = T::ONE;
    tau
}

/// ‖A‖_F of elements that are not larger than two.
fn norm<T: Scalar>(a: &[T]) -> T::Real {
    a.iter().fold(T::Real::ZERO, |sum, x| sum + x.re() * x.re() + x.im() * x.im()).sqrt()
}
