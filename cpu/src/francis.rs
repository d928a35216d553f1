//! The QR iteration with two shifts at a time, from Hessenberg to Schur form: H = Q·T·Qᴴ.
//!
//! Francis, "The QR transformation" (Computer J. 4, 1961 and 1962), for real matrices; complex ones
//! begin with one shift at a time, in `single_shift`. A subdiagonal element is neglected by the
//! criterion of Ahues and Tisseur (LAPACK Working Note 122, 1997), and every tenth iteration
//! without progress takes Wilkinson and Reinsch's exceptional shifts, as in LAPACK's xLAHQR.

use std::ops::Range;

use lapax_core::{Real as _, Scalar as _};
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::householder::reflector;
use crate::standard::{Square, eigenvalues, standardised};

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
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
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
                        iteration.sweep(start, stop, shifts);
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
    fn sweep(&mut self, start: usize, stop: usize, shifts: Shifts<T>) {
        let (right, top) = (self.right(stop), self.top(start));
        let (mut begin, mut v) = (start, [T::ZERO; 3]);
        for k in (start..stop - 2).rev() {
            v = first_column(&*self.h, self.n, k, shifts);
            begin = k;
            if k == start || self.decoupled(k, v) {
                break;
            }
        }
        for k in begin..stop - 1 {
            let length = (stop - k).min(3);
            let column = k.wrapping_sub(1);
            if k > begin {
                let at = k + column * self.n;
                v = [T::ZERO; 3];
                v[..length].copy_from_slice(&self.h[at..at + length]);
            }
            let [head, tail @ ..] = &mut v;
            let reflector = reflector::<pulp::Scalar, T>(*head, &mut tail[..length - 1]);
            if k > begin {
                let at = k + column * self.n;
                self.h[at] = T::from_real(reflector.beta);
                self.h[at + 1..at + length].fill(T::ZERO);
            } else if k > start {
                self.h[k + column * self.n] *= T::ONE - reflector.tau.conj();
            }
            let bulge = Bulge { k, tau: reflector.tau, v: v[1], w: v[2] };
            bulge.rows(&mut self.h[..right * self.n], self.n, length);
            bulge.columns(self.h, self.n, top..(k + 4).min(stop), length);
            if let Some(q) = &mut self.q {
                bulge.columns(q, self.rows, 0..self.rows, length);
            }
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

/// The reflector I − tau·x·xᴴ with x = [1; v; w] in rows k, k + 1, k + 2.
#[derive(Clone, Copy)]
pub(crate) struct Bulge<T> {
    pub(crate) k: usize,
    pub(crate) tau: T,
    pub(crate) v: T,
    pub(crate) w: T,
}

impl<T: Scalar> Bulge<T> {
    /// A ← (I − tau·x·xᴴ)ᴴ·A from column k on; `length` rows are left, or 3.
    #[inline(always)]
    pub(crate) fn rows(self, a: &mut [T], ld: usize, length: usize) {
        self.rows_from(self.k, a, ld, length);
    }

    /// The same from another column on.
    #[inline(always)]
    pub(crate) fn rows_from(self, first: usize, a: &mut [T], ld: usize, length: usize) {
        let Self { k, tau, v, w } = self;
        let [t, tv, tw] = [tau.conj(), tau.conj() * v, tau.conj() * w];
        let (v, w) = (v.conj(), w.conj());
        if length == 3 {
            for column in a[first * ld..].chunks_exact_mut(ld) {
                if let [x, y, z] = &mut column[k..k + 3] {
                    let sum = *x + v * *y + w * *z;
                    *x -= sum * t;
                    *y -= sum * tv;
                    *z -= sum * tw;
                }
            }
        } else {
            for column in a[first * ld..].chunks_exact_mut(ld) {
                if let [x, y] = &mut column[k..k + 2] {
                    let sum = *x + v * *y;
                    *x -= sum * t;
                    *y -= sum * tv;
                }
            }
        }
    }

    /// A ← A·(I − tau·x·xᴴ) for some rows; `length` columns are left, or 3.
    #[inline(always)]
    pub(crate) fn columns(self, a: &mut [T], ld: usize, rows: Range<usize>, length: usize) {
        let Self { k, tau, v, w } = self;
        let [t, tv, tw] = [tau, tau * v.conj(), tau * w.conj()];
        let (x, rest) = a[k * ld..].split_at_mut(ld);
        let (y, rest) = rest.split_at_mut(ld);
        let (x, y) = (&mut x[rows.clone()], &mut y[rows.clone()]);
        if length == 3 {
            let z = &mut rest[..ld][rows];
            for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
                let sum = *x + *y * v + *z * w;
                *x -= sum * t;
                *y -= sum * tv;
                *z -= sum * tw;
            }
        } else {
            for (x, y) in x.iter_mut().zip(y) {
                let sum = *x + *y * v;
                *x -= sum * t;
                *y -= sum * tv;
            }
        }
    }
}
