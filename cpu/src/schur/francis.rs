//! The QR iteration with two shifts at a time, from Hessenberg to Schur form: H = Q·T·Qᴴ.
//!
//! Francis, "The QR transformation" (Computer J. 4, 1961 and 1962), for real matrices; complex ones
//! begin with one shift at a time, in `single_shift`. A subdiagonal element is neglected by the
//! criterion of Ahues and Tisseur (LAPACK Working Note 122, 1997), and every tenth iteration
//! without progress takes Wilkinson and Reinsch's exceptional shifts, as in LAPACK's xLAHQR.

use std::ops::Range;

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use super::bulge::{Bulges, ROWS, TOGETHER, step};
use super::two_by_two::{Square, eigenvalues, standardised};
use crate::Scalar;
use crate::simd::arch::Arch;

/// The order of a block from which several reflectors of a sweep go together; whether vectors are wanted does not
/// matter, so that values have the same bits. On one core with AVX-512 `schur` of 30 of 64 in f64 takes 7.9 ms from 16
/// on, 8.4 from 32 and 8.7 one by one, `eigvals` 5.9, 6.4 and 7.1.
const FAR: usize = 16;

/// A Hessenberg matrix on its way to Schur form, and what its transformations are collected in.
pub(crate) struct Iteration<'a, T> {
    /// Column-major of order n. Below the first subdiagonal it is zero.
    pub(crate) h: &'a mut [T],
    pub(crate) n: usize,
    /// Q ← Q·G for each transformation H ← Gᴴ·H·G; columns of length `rows`.
    pub(crate) q: Option<&'a mut [T]>,
    /// The rows of Q.
    pub(crate) rows: usize,
    /// Whether all of T is wanted, or only its diagonal blocks.
    pub(crate) schur: bool,
}

impl<T: Scalar> Iteration<'_, T> {
    /// Brings the rows and columns `active` to Schur form, in at most so many sweeps per row.
    ///
    /// Real 2 × 2 blocks are in standard form. A complex block that one shift at a time does not
    /// split goes on with two. `Err(stop)` where there is no convergence: rows and columns from
    /// `stop` on are done.
    pub(crate) fn run(
        &mut self,
        active: Range<usize>,
        sweeps: usize,
        arch: Arch,
    ) -> Result<(), usize> {
        let first = active.start;
        let mut dispatch = |active, one_shift| {
            let q = self.q.as_deref_mut();
            let (h, n, rows, schur) = (&mut *self.h, self.n, self.rows, self.schur);
            let iteration = Iteration { h, n, q, rows, schur };
            arch.dispatch(Run { iteration, active, sweeps, one_shift })
        };
        match dispatch(active, T::IS_COMPLEX) {
            Err(stop) if T::IS_COMPLEX => dispatch(first..stop, false),
            outcome => outcome,
        }
    }

    /// The columns that a change of the rows of an active block reaches.
    #[inline(always)]
    pub(crate) fn right(&self, stop: usize) -> usize {
        if self.schur { self.n } else { stop }
    }

    /// The first row that a change of the columns of an active block reaches.
    #[inline(always)]
    pub(crate) fn top(&self, start: usize) -> usize {
        if self.schur { 0 } else { start }
    }

    /// The first row of the unreduced block that ends before `stop`; what couples it is set to
    /// zero.
    #[inline(always)]
    pub(crate) fn unreduced(&mut self, first: usize, stop: usize) -> usize {
        let Self { h, n, .. } = self;
        let n = *n;
        let ulp = T::Real::EPSILON + T::Real::EPSILON;
        let order = T::Real::from_f64(f64::from(u32::try_from(stop - first).unwrap_or(u32::MAX)));
        let smallest = T::Real::SAFE_MIN * (order / ulp);
        for i in (first + 1..stop).rev() {
            let at = |i: usize, j: usize| h[i + j * n];
            let sub = at(i, i - 1).abs1();
            let neglected = sub <= smallest || {
                let (above, here) = (at(i - 1, i - 1), at(i, i));
                let mut size = above.abs1() + here.abs1();
                if size == T::Real::ZERO {
                    if i >= first + 2 {
                        size += at(i - 1, i - 2).abs1();
                    }
                    if i + 1 < stop {
                        size += at(i + 1, i).abs1();
                    }
                }
                sub <= ulp * size && {
                    let (ab, ba) = sorted::<T>(sub, at(i - 1, i).abs1());
                    let (aa, bb) = sorted::<T>(here.abs1(), (above - here).abs1());
                    let s = aa + ab;
                    let bound = ulp * (bb * (aa / s));
                    ba * (ab / s) <= if smallest > bound { smallest } else { bound }
                }
            };
            if neglected {
                h[i + (i - 1) * n] = T::ZERO;
                return i;
            }
        }
        first
    }

    /// Brings the 2 × 2 block at `k` to Schur form.
    #[inline(always)]
    pub(crate) fn split(&mut self, k: usize) {
        let (right, top) = (self.right(k + 2), self.top(k));
        let Self { h, n, q, rows, .. } = self;
        let n = *n;
        let block = [h[k + k * n], h[k + (k + 1) * n], h[k + 1 + k * n], h[k + 1 + (k + 1) * n]];
        let ([a, b, c, d], g) = standardised(block);
        (h[k + k * n], h[k + (k + 1) * n]) = (a, b);
        (h[k + 1 + k * n], h[k + 1 + (k + 1) * n]) = (c, d);
        g.rows(&mut h[(k + 2) * n..right.max(k + 2) * n], n, k);
        let (x, y) = h[k * n..(k + 2) * n].split_at_mut(n);
        g.columns(&mut x[top..k], &mut y[top..k]);
        if let Some(q) = q {
            let (x, y) = q[k * *rows..(k + 2) * *rows].split_at_mut(*rows);
            g.columns(x, y);
        }
    }
}

/// The larger, and the smaller.
#[inline(always)]
fn sorted<T: Scalar>(x: T::Real, y: T::Real) -> (T::Real, T::Real) {
    if x > y { (x, y) } else { (y, x) }
}

struct Run<'a, T> {
    iteration: Iteration<'a, T>,
    active: Range<usize>,
    /// Sweeps per row before giving up.
    sweeps: usize,
    /// Whether a sweep has one shift, which only complex matrices can.
    one_shift: bool,
}

impl<T: Scalar> WithSimd for Run<'_, T> {
    type Output = Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        /// The fewest rows that are reckoned with.
        const FEWEST: usize = 10;
        let Self { mut iteration, active, sweeps, one_shift } = self;
        let (first, mut stop) = (active.start, active.end);
        let mut budget = sweeps * active.len().max(FEWEST);
        let mut stalled = 0_usize;
        if one_shift {
            iteration.make_real(active);
        }
        while stop > first {
            let start = iteration.unreduced(first, stop);
            match stop - start {
                1 => {}
                2 if !one_shift => iteration.split(start),
                _ if budget == 0 => return Err(stop),
                _ => {
                    budget -= 1;
                    stalled += 1;
                    if one_shift {
                        let shift = iteration.shift(start..stop, stalled);
                        iteration.single_sweep(start..stop, shift);
                    } else {
                        let shifts = iteration.shifts(start, stop, stalled);
                        iteration.sweep(simd, start, stop, shifts);
                    }
                    continue;
                }
            }
            (stop, stalled) = (start, 0);
        }
        Ok(())
    }
}

/// Two shifts: a conjugate pair, or two real ones, if the matrix is real.
pub(crate) type Shifts<T> =
    (<T as lapax_core::Scalar>::Complex, <T as lapax_core::Scalar>::Complex);

impl<T: Scalar> Iteration<'_, T> {
    /// The shifts of the next sweep over rows `start..stop`.
    #[inline(always)]
    fn shifts(&self, start: usize, stop: usize, stalled: usize) -> Shifts<T> {
        let (h, n) = (&*self.h, self.n);
        let at = |i: usize, j: usize| h[i + j * n];
        if stalled.is_multiple_of(10) {
            // From the bottom and from the top by turns.
            let (corner, next, further) = if stalled.is_multiple_of(20) {
                (at(stop - 1, stop - 1), at(stop - 1, stop - 2), at(stop - 2, stop - 3))
            } else {
                (at(start, start), at(start + 1, start), at(start + 2, start + 1))
            };
            return eigenvalues(exceptional(corner, next.abs1() + further.abs1()));
        }
        let last = stop - 1;
        let block =
            [at(last - 1, last - 1), at(last - 1, last), at(last, last - 1), at(last, last)];
        let (one, other) = eigenvalues(block);
        if !T::IS_COMPLEX && one.im() != T::Real::ZERO {
            return (one, other);
        }
        // Of two that could stand alone, twice the one nearer to the corner.
        let corner = T::Complex::from_parts(block[3].re(), block[3].im());
        let nearer = |x: T::Complex| (x - corner).abs1();
        let shift = if nearer(one) <= nearer(other) { one } else { other };
        (shift, shift)
    }

    /// One sweep: a bulge of order 3 from row `start`, or a later one where that does, to the end.
    #[inline(always)]
    fn sweep<S: Simd>(&mut self, simd: S, start: usize, stop: usize, shifts: Shifts<T>) {
        let (right, top) = (self.right(stop), self.top(start));
        let (mut begin, mut v) = (start, [T::ZERO; 3]);
        for k in (start..stop - 2).rev() {
            v = first_column(&*self.h, self.n, k, shifts);
            begin = k;
            if k == start || self.decoupled(k, v) {
                break;
            }
        }
        let (n, rows) = (self.n, self.rows);
        let (mut k, mut column) = (begin, Some(v));
        while k < stop - 1 {
            let first = column.take();
            let (tau, next);
            if k + ROWS <= stop && stop - start >= FAR {
                let bulges = Bulges::near(self.h, n, k, first, stop);
                bulges.rows(simd, self.h, n, k + ROWS..right, stop);
                bulges.columns(simd, self.h, n, top..k);
                if let Some(q) = &mut self.q {
                    bulges.columns(simd, q, rows, 0..rows);
                }
                (tau, next) = (bulges.0[0].tau, k + TOGETHER);
            } else {
                let length = (stop - k).min(3);
                let bulge = step(self.h, n, k, first, length, top..right, stop);
                if let Some(q) = &mut self.q {
                    bulge.columns(q, rows, 0..rows, length);
                }
                (tau, next) = (bulge.tau, k + 1);
            }
            if first.is_some() && k > start {
                self.h[k + (k - 1) * n] *= T::ONE - tau.conj();
            }
            k = next;
        }
    }

    /// Whether a bulge that starts at row k with this column leaves the element before it alone.
    #[inline(always)]
    fn decoupled(&self, k: usize, v: [T; 3]) -> bool {
        let at = |i: usize, j: usize| self.h[i + j * self.n].abs1();
        let ulp = T::Real::EPSILON + T::Real::EPSILON;
        let below = at(k, k - 1) * (v[1].abs1() + v[2].abs1());
        below <= ulp * v[0].abs1() * (at(k - 1, k - 1) + at(k, k) + at(k + 1, k + 1))
    }
}

/// The matrix whose eigenvalues are the exceptional shifts.
pub(crate) fn exceptional<T: Scalar>(corner: T, size: T::Real) -> Square<T> {
    let real = |factor| T::from_real(size * T::Real::from_f64(factor));
    let diagonal = corner + real(0.75);
    [diagonal, real(-0.4375), real(1.0), diagonal]
}

/// A multiple of the first column of (H − s₁)·(H − s₂), for the H from row and column k on.
#[inline(always)]
pub(crate) fn first_column<T: Scalar>(h: &[T], n: usize, k: usize, (s1, s2): Shifts<T>) -> [T; 3] {
    let at = |i: usize, j: usize| h[k + i + (k + j) * n];
    let wide = |x: T| T::Complex::from_parts(x.re(), x.im());
    let narrow = |x: T::Complex| T::from_parts(x.re(), x.im());
    let size = (wide(at(0, 0)) - s2).abs1() + at(1, 0).abs1();
    if size == T::Real::ZERO {
        return [T::ZERO; 3];
    }
    let below = at(1, 0).unscale(size);
    let product = (wide(at(0, 0)) - s1) * (wide(at(0, 0)) - s2).unscale(size);
    let v = [
        narrow(product) + at(0, 1) * below,
        below * (at(0, 0) + at(1, 1) - narrow(s1 + s2)),
        below * at(2, 1),
    ];
    let size = v.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs1());
    if size == T::Real::ZERO { v } else { v.map(|x| x.unscale(size)) }
}
