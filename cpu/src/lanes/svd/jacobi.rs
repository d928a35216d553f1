//! One-sided Jacobi rotations: columns made orthogonal, in each lane.
//!
//! Hestenes, "Inversion of matrices by biorthogonalization and related results" (J. SIAM 6, 1958);
//! the criterion is Demmel and Veselić's, "Jacobi's method is more accurate than QR" (SIAM J. Matrix
//! Anal. Appl. 13, 1992). Pairs are met in rounds of disjoint ones, so that the long chains of
//! operations that make their rotations overlap.

use lapax_core::{Real, Scalar as _};
use pulp::Simd;

use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Sweeps over all pairs before a lane counts as not converged; six to ten are usual.
const SWEEPS: usize = 30;

/// The columns to be made orthogonal, and a matrix that is rotated along.
pub(crate) struct Columns<'a, S: Simd, X: Lane<S>> {
    /// n columns of `rows` numbers.
    pub(crate) x: &'a mut [Reg<S, X>],
    pub(crate) rows: usize,
    pub(crate) n: usize,
    /// n columns of n numbers; none where only the columns' norms are wanted.
    pub(crate) v: Option<&'a mut [Reg<S, X>]>,
    /// n numbers: the squared norms on return.
    pub(crate) norms: &'a mut [Reg<S, Vector<S, X::Real>>],
    /// The cosine below which columns are orthogonal: what rounding makes of a product of columns.
    pub(crate) tolerance: X::Real,
    /// The lanes in which a product or a norm is too small to be told from zero.
    pub(crate) lost: Mask<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Columns<'_, S, X> {
    /// Rotates until all columns are orthogonal to working accuracy, then sorts them by falling
    /// norm; returns the lanes that did not converge, or in which squares of what is small are lost.
    #[inline(always)]
    pub(crate) fn orthogonalize(&mut self, simd: S) -> Mask<S, X::Real> {
        let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
        let never = zero.less(zero);
        let mut sweeps = 0;
        let failed = loop {
            self.measure(simd);
            let rotated = self.sweep(simd);
            if !rotated.any() {
                break never;
            }
            sweeps += 1;
            if sweeps == SWEEPS {
                break rotated;
            }
        };
        self.measure(simd);
        self.find_lost(simd);
        self.sort(simd);
        failed.or(self.lost)
    }

    /// Columns that are not zero, and whose squared norm may be.
    #[inline(always)]
    fn find_lost(&mut self, simd: S) {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let least = splat(X::Real::SAFE_MIN / X::Real::EPSILON);
        for (column, &norm) in self.x.chunks_exact(self.rows * X::PARTS).zip(&*self.norms) {
            let small = Vector::from_reg(simd, norm).less(least);
            if !small.any() {
                continue;
            }
            let mut largest = splat(X::Real::ZERO);
            for x in column.chunks_exact(X::PARTS) {
                let x = X::load(simd, x, 0);
                largest = x.re().abs().max(largest);
                if X::PARTS > 1 {
                    largest = x.im().abs().max(largest);
                }
            }
            self.lost = self.lost.or(small.and(splat(X::Real::ZERO).less(largest)));
        }
    }

    /// The squared norms of the columns.
    #[inline(always)]
    fn measure(&mut self, simd: S) {
        let columns = self.x.chunks_exact(self.rows * X::PARTS);
        for (column, norm) in columns.zip(&mut *self.norms) {
            let mut sum = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
            for i in 0..self.rows {
                let x = X::load(simd, column, i);
                sum = sum.add_mul(x.re(), x.re());
                if X::PARTS > 1 {
                    sum = sum.add_mul(x.im(), x.im());
                }
            }
            *norm = sum.reg();
        }
    }

    /// Meets each pair once; returns the lanes in which any was rotated.
    #[inline(always)]
    fn sweep(&mut self, simd: S) -> Mask<S, X::Real> {
        let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
        let mut rotated = zero.less(zero);
        // A tournament: the first player stays, the others move round; an odd one out rests.
        let players = self.n + self.n % 2;
        for round in 0..players.saturating_sub(1) {
            let seat = |k: usize| if k == 0 { 0 } else { 1 + (k - 1 + round) % (players - 1) };
            for k in 0..players / 2 {
                let (p, q) = (seat(k), seat(players - 1 - k));
                let (p, q) = (p.min(q), p.max(q));
                if q < self.n {
                    rotated = rotated.or(self.meet(simd, p, q));
                }
            }
        }
        rotated
    }

    /// Makes columns p < q orthogonal; returns the lanes that were not.
    #[inline(always)]
    fn meet(&mut self, simd: S, p: usize, q: usize) -> Mask<S, X::Real> {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let stride = self.rows * X::PARTS;
        let (left, right) = self.x.split_at_mut(q * stride);
        let (xp, xq) = (&mut left[p * stride..(p + 1) * stride], &mut right[..stride]);
        let mut dot = X::from_real(zero);
        for i in 0..self.rows {
            dot = dot.add_mul(X::load(simd, xp, i).conj(), X::load(simd, xq, i));
        }
        let (a, b) = (Vector::from_reg(simd, self.norms[p]), Vector::from_reg(simd, self.norms[q]));
        // |xpᴴ·xq| ≤ tolerance·‖xp‖·‖xq‖ is orthogonal.
        let square = dot.norm_squared();
        let tolerance = splat(self.tolerance);
        // Below the least square that is accurate, a product is negligible beside norms near 1, and may not be beside
        // those of its columns.
        let least = splat(X::Real::SAFE_MIN / X::Real::EPSILON);
        let bound = (tolerance * a) * (tolerance * b);
        let on = least.max(bound).less(square);
        self.lost = self.lost.or(bound.less(square).and(on.not()));
        if !on.any() {
            return on;
        }
        // t = tan of the angle that annihilates the product of xp and xq·conj(phase).
        let size = Vector::choose(on, square, one).sqrt();
        let phase = dot.scale(one / size);
        let (d, h) = (b - a, size + size);
        let t = h.with_sign(d) / (d.abs() + (d * d).add_mul(h, h).sqrt());
        let c = one / one.add_mul(t, t).sqrt();
        let (c, t) = (Vector::choose(on, c, one), Vector::choose(on, t, zero));
        let s = c * t;
        self.norms[p] = a.sub_mul(t, size).reg();
        self.norms[q] = b.add_mul(t, size).reg();
        let one = X::from_real(one);
        let phase = X::choose(on, phase, one).conj();
        let rotation = Rotation { c, s, phase, lanes: on };
        rotate::<S, X>(simd, rotation, xp, xq);
        if let Some(v) = &mut self.v {
            let stride = self.n * X::PARTS;
            let (left, right) = v.split_at_mut(q * stride);
            rotate::<S, X>(
                simd,
                rotation,
                &mut left[p * stride..(p + 1) * stride],
                &mut right[..stride],
            );
        }
        on
    }

    /// Sorts the columns by falling norm.
    #[inline(always)]
    fn sort(&mut self, simd: S) {
        for p in 0..self.n {
            for q in p + 1..self.n {
                let a = Vector::<S, X::Real>::from_reg(simd, self.norms[p]);
                let b = Vector::<S, X::Real>::from_reg(simd, self.norms[q]);
                let swap = a.less(b);
                if !swap.any() {
                    continue;
                }
                self.norms[p] = Vector::choose(swap, b, a).reg();
                self.norms[q] = Vector::choose(swap, a, b).reg();
                exchange::<S, X>(simd, swap, self.x, self.rows, (p, q));
                if let Some(v) = &mut self.v {
                    exchange::<S, X>(simd, swap, v, self.n, (p, q));
                }
            }
        }
    }
}

/// A rotation of some lanes by an angle, and the phase that the second column is multiplied by before it.
#[derive(Clone, Copy)]
struct Rotation<S: Simd, X: Lane<S>> {
    c: Vector<S, X::Real>,
    s: Vector<S, X::Real>,
    phase: X,
    lanes: Mask<S, X::Real>,
}

/// (x, y) ← (c·x − s·y', s·x + c·y') for y' = phase·y, in the lanes that have a rotation.
#[inline(always)]
fn rotate<S: Simd, X: Lane<S>>(
    simd: S,
    rotation: Rotation<S, X>,
    x: &mut [Reg<S, X>],
    y: &mut [Reg<S, X>],
) {
    let Rotation { c, s, phase, lanes } = rotation;
    for (x, y) in x.chunks_exact_mut(X::PARTS).zip(y.chunks_exact_mut(X::PARTS)) {
        let (p, old) = (X::load(simd, x, 0), X::load(simd, y, 0));
        let q = if X::PARTS > 1 { old * phase } else { old.scale(phase.re()) };
        // By a mask: with an angle of zero, 0·q would change signs of zeros.
        X::choose(lanes, p.scale(c) - q.scale(s), p).store(x, 0);
        X::choose(lanes, p.scale(s) + q.scale(c), old).store(y, 0);
    }
}

/// Exchanges columns p < q of m rows in the lanes that are told to.
#[inline(always)]
fn exchange<S: Simd, X: Lane<S>>(
    simd: S,
    swap: Mask<S, X::Real>,
    a: &mut [Reg<S, X>],
    m: usize,
    (p, q): (usize, usize),
) {
    for i in 0..m {
        let (x, y) = (X::load(simd, a, p * m + i), X::load(simd, a, q * m + i));
        X::choose(swap, y, x).store(a, p * m + i);
        X::choose(swap, x, y).store(a, q * m + i);
    }
}
