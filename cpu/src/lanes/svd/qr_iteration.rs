//! Implicit QR steps, with shift or without, on a real upper bidiagonal matrix in each lane.
//!
//! Demmel and Kahan, "Accurate singular values of bidiagonal matrices" (SIAM J. Sci. Stat. Comput.
//! 11, 1990; LAPACK working note 3). Each lane has a block of its own, from row `first` to row `end`,
//! and a rotation that a lane does not need leaves its bits as they are.

use std::ops::Range;

use pulp::Simd;

use crate::lanes::rotations::rotate;
use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Mask, Vector};

/// Steps per singular value after which a lane counts as not converged; two are usual.
const STEPS: usize = 30;
/// Roundings that an element above the diagonal may amount to beside its neighbours to be dropped,
/// as for single matrices.
const ROUNDINGS: f64 = 8.0;
/// Roundings of itself, per row, that a step with shift may cost the smallest value, as for single matrices.
pub(crate) const SPREAD_ROUNDINGS: f64 = 10.0;
/// How much larger than a value the sum of the parts of its Rayleigh quotient may be where values are spread.
const CANCELLED: f64 = 4.0;
/// Steps whose rotations are applied together, so that those rows stay in the nearest cache.
const PENDING: usize = 8;

/// Real numbers of scratch for a matrix of order n: rotations, and a copy of B.
pub(crate) fn rotations_scratch(n: usize) -> usize {
    (PENDING * 4 + 2) * n
}

/// B = X·S·Yᵀ of each lane, of a norm near 1.
pub(crate) struct BidiagonalQr<'a, S: Simd, R: LaneReal> {
    /// The diagonal; on return the singular values, descending.
    pub(crate) d: &'a mut [R::Reg<S>],
    /// Element i stands right of diagonal element i; the last one is scratch.
    pub(crate) e: &'a mut [R::Reg<S>],
    /// n × n each, row by row; written.
    pub(crate) x: &'a mut [R::Reg<S>],
    pub(crate) y: &'a mut [R::Reg<S>],
    /// Scratch: [`rotations_scratch`] numbers, two rotations of two for each row and step among them.
    pub(crate) rotations: &'a mut [R::Reg<S>],
}

/// Where each lane stands.
#[derive(Clone, Copy)]
struct Block<S: Simd, R: LaneReal> {
    first: Vector<S, R>,
    /// Zero where all is done.
    end: Vector<S, R>,
    /// The smaller singular value of the last two rows.
    shift: Vector<S, R>,
}

impl<S: Simd, R: LaneReal> BidiagonalQr<'_, S, R> {
    /// Returns the lanes that did not converge.
    #[inline(always)]
    pub(crate) fn diagonalize(&mut self, simd: S) -> Mask<S, R> {
        let n = self.d.len();
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let zero = splat(R::ZERO);
        for z in [&mut *self.x, &mut *self.y] {
            for (p, z) in z[..n * n].iter_mut().enumerate() {
                *z = splat(if p % (n + 1) == 0 { R::ONE } else { R::ZERO }).reg();
            }
        }
        let rotations = std::mem::take(&mut self.rotations);
        let (rotations, copy) = rotations.split_at_mut(PENDING * 4 * n);
        self.rotations = rotations;
        copy[..n].copy_from_slice(self.d);
        copy[n..2 * n].copy_from_slice(self.e);
        let turned = self.turn(simd);
        let end = splat(row::<R>(n - 1));
        let mut block = Block { first: zero, end, shift: zero };
        let floor = self.floor(simd);
        let bounds = bounds::<S, R>(simd, self.d, self.e);
        let condition = splat(row::<R>(n) * R::from_f64(SPREAD_ROUNDINGS));
        let spread = (condition * bounds.smallest).less(bounds.largest);
        // Below, elements of a rotation would be taken for zero.
        let lost = bounds.smallest_some.less(splat(R::from_f64(8.0) * R::LOW.sqrt()));
        let mut failed = zero.less(zero);
        let (mut pending, mut ranges) = (0, [(0, 0); PENDING]);
        for step in 0..STEPS * n + 1 {
            block = self.split(simd, block, floor, spread);
            let active = zero.less(block.end).and(lost.not());
            if !active.any() {
                break;
            }
            if step == STEPS * n {
                failed = active;
                break;
            }
            let (mut lo, mut hi) = (0, n - 1);
            while lo + 1 < hi && !active.and(block.first.less(splat(row(lo + 1)))).any() {
                lo += 1;
            }
            while hi > lo + 1 && !active.and(splat(row(hi - 1)).less(block.end)).any() {
                hi -= 1;
            }
            self.step(simd, block, active, lo..hi, pending * 4 * n);
            ranges[pending] = (lo, hi);
            pending += 1;
            if pending == PENDING {
                self.rotate(simd, &ranges);
                pending = 0;
            }
        }
        self.rotate(simd, &ranges[..pending]);
        self.turn_back(simd, turned);
        self.refine(simd, copy, spread);
        self.sort(simd);
        failed.or(lost)
    }

    /// s ← s + xᵀB·y − s·(xᵀx + yᵀy)/2, the Rayleigh quotient, for each singular value and its vectors: each step left
    /// a rounding of the norm in s, but no more than that, squared over the distance to the next one, is left by what
    /// is wrong with the vectors. Values of f32 against those of f64, n = 128, largest error over ε·‖A‖: 44 without.
    ///
    /// Not where values are spread and the quotient's parts cancel: steps found those to a few roundings of themselves.
    #[inline(always)]
    fn refine(&mut self, simd: S, b: &[R::Reg<S>], wide: Mask<S, R>) {
        let n = self.d.len();
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let load = |reg: R::Reg<S>| Vector::<S, R>::from_reg(simd, reg);
        let (zero, half) = (splat(R::ZERO), splat(R::from_f64(0.5)));
        let (d, e) = b.split_at(n);
        let (sums, sizes) = self.rotations.split_at_mut(n);
        let (sums, sizes) = (sums, &mut sizes[..n]);
        sums.fill(zero.reg());
        sizes.fill(zero.reg());
        for i in 0..n {
            // Beside B's last row stands nothing.
            let below = (i + 1).min(n - 1);
            let (d, e) = (load(d[i]), if i + 1 < n { load(e[i]) } else { zero });
            let (x, y) = (&self.x[i * n..(i + 1) * n], &self.y[i * n..(i + 1) * n]);
            let y_below = &self.y[below * n..(below + 1) * n];
            let rows = x.iter().zip(y).zip(y_below).zip(&*self.d);
            for ((((&x, &y), &y_below), &s), (sum, size)) in
                rows.zip(sums.iter_mut().zip(&mut *sizes))
            {
                let (x, y, half) = (load(x), load(y), half * load(s));
                let (own, beside) = (d * y, e * load(y_below));
                let part = (own + beside).sub_mul(half, x);
                *sum = load(*sum).add_mul(x, part).sub_mul(half * y, y).reg();
                *size = load(*size).add_mul(x.abs(), own.abs() + beside.abs()).reg();
            }
        }
        for ((s, sum), size) in self.d.iter_mut().zip(sums).zip(sizes) {
            let old = load(*s);
            let certain = load(*size).less_or_equal(splat(R::from_f64(CANCELLED)) * old.abs());
            *s = Vector::choose(wide.not().or(certain), old + load(*sum), old).reg();
        }
    }

    /// What is nothing beside the matrix, and too small to be squared.
    #[inline(always)]
    fn floor(&self, simd: S) -> Vector<S, R> {
        let mut largest = Vector::<S, R>::splat(simd, R::ZERO);
        for &x in self.d.iter().chain(&*self.e) {
            largest = Vector::from_reg(simd, x).abs().max(largest);
        }
        let relative = largest * Vector::splat(simd, R::EPSILON * R::EPSILON);
        relative.max(Vector::splat(simd, (R::LOW + R::LOW).sqrt() / R::EPSILON))
    }

    /// Turns and transposes the matrices that grow towards their ends; returns which.
    #[inline(always)]
    fn turn(&mut self, simd: S) -> Mask<S, R> {
        let n = self.d.len();
        self.e[n - 1] = Vector::<S, R>::splat(simd, R::ZERO).reg();
        let load = |reg: R::Reg<S>| Vector::<S, R>::from_reg(simd, reg);
        let turned = load(self.d[0]).abs().less(load(self.d[n - 1]).abs());
        if turned.any() {
            for (x, n) in [(&mut *self.d, n), (&mut *self.e, n - 1)] {
                for i in 0..n / 2 {
                    let (a, b) = (load(x[i]), load(x[n - 1 - i]));
                    x[i] = Vector::choose(turned, b, a).reg();
                    x[n - 1 - i] = Vector::choose(turned, a, b).reg();
                }
            }
        }
        turned
    }

    /// X and Y of what was turned: with J·Bᵀ·J = X·S·Yᵀ, B = (J·Y)·S·(J·X)ᵀ.
    #[inline(always)]
    fn turn_back(&mut self, simd: S, turned: Mask<S, R>) {
        let n = self.d.len();
        if !turned.any() {
            return;
        }
        let load = |reg: R::Reg<S>| Vector::<S, R>::from_reg(simd, reg);
        for i in 0..n.div_ceil(2) {
            let j = n - 1 - i;
            for c in 0..n {
                let (i, j) = (i * n + c, j * n + c);
                let (x_i, x_j) = (load(self.x[i]), load(self.x[j]));
                let (y_i, y_j) = (load(self.y[i]), load(self.y[j]));
                self.x[i] = Vector::choose(turned, y_j, x_i).reg();
                self.x[j] = Vector::choose(turned, y_i, x_j).reg();
                self.y[i] = Vector::choose(turned, x_j, y_i).reg();
                self.y[j] = Vector::choose(turned, x_i, y_j).reg();
            }
        }
    }

    /// Drops what is negligible above the diagonal; finds the blocks, and their shifts.
    #[inline(always)]
    fn split(
        &mut self,
        simd: S,
        block: Block<S, R>,
        floor: Vector<S, R>,
        wide: Mask<S, R>,
    ) -> Block<S, R> {
        let n = self.d.len();
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let rounding = splat(R::from_f64(ROUNDINGS) * R::EPSILON);
        let (mut end, mut first) = (block.end, zero);
        let (mut f, mut g, mut h) = (one, zero, one);
        let (mut least, mut most) = (one, one);
        let mut found = zero.less(zero);
        let mut below = Vector::from_reg(simd, self.d[n - 1]).abs();
        // Where values are spread: the bound of the smallest one from the last row up, and of those of the block, and
        // the largest element.
        let some_wide = wide.any();
        let (mut mu, mut smallest, mut norm) = (below, one, one);
        for i in (0..n - 1).rev() {
            let at = splat(row(i));
            let (d, e) = (Vector::from_reg(simd, self.d[i]), Vector::from_reg(simd, self.e[i]));
            let (d, size) = (d.abs(), e.abs());
            let mut small = size.less_or_equal(rounding * (d + below).max(floor));
            if some_wide {
                // What changes no value by more than a few roundings of itself.
                let beside_mu = size.less_or_equal(rounding * mu);
                small = wide.and(beside_mu).or(wide.not().and(small));
            }
            self.e[i] = Vector::choose(small, zero, e).reg();
            let last = end.equal(at + one);
            end = Vector::choose(last.and(small), at, end);
            let kept = last.and(small.not());
            f = Vector::choose(kept, d, f);
            g = Vector::choose(kept, size, g);
            h = Vector::choose(kept, below, h);
            let inside = small.or(found).not().and(at.less(end));
            (least, most) = (Vector::choose(kept, below, least), Vector::choose(kept, below, most));
            least = Vector::choose(inside.and(d.less(least)), d, least);
            most = Vector::choose(inside, d.max(most), most);
            if some_wide {
                let next = Vector::choose(small, d, next_bound(simd, mu, size, d));
                (smallest, norm) =
                    (Vector::choose(kept, mu, smallest), Vector::choose(kept, below, norm));
                smallest = Vector::choose(inside.and(next.less(smallest)), next, smallest);
                norm = Vector::choose(inside, size.max(d.max(norm)), norm);
                mu = next;
            }
            let begins = small.and(found.not()).and((at + one).less(end));
            first = Vector::choose(begins, at + one, first);
            found = found.or(begins);
            below = d;
        }
        // σ₁·σ₂ = f·h and (σ₁ ± σ₂)² = (f ± h)² + g².
        let (large, little) = (f.max(h), Vector::choose(f.less(h), f, h));
        let (sum, difference) = (large + little, large - little);
        let square = g * g;
        let sigma = square.add_mul(sum, sum).sqrt() + square.add_mul(difference, difference).sqrt();
        let sigma = (large / sigma) * (little + little);
        // As in a single matrix, no shift comes past a zero on the diagonal.
        let mut shifted = zero.less(sigma).and((splat(R::EPSILON) * most).less(least));
        if some_wide {
            let condition = splat(row::<R>(n) * R::from_f64(SPREAD_ROUNDINGS));
            shifted = shifted.and(wide.not().or(norm.less_or_equal(condition * smallest)));
        }
        Block { first, end, shift: Vector::choose(shifted, sigma, zero) }
    }

    /// Applies the rotations of some steps to X and Y.
    #[inline(always)]
    fn rotate(&mut self, simd: S, ranges: &[(usize, usize)]) {
        let n = self.d.len();
        rotate::<S, R, 0>(simd, self.y, self.rotations, ranges, n);
        rotate::<S, R, 2>(simd, self.x, self.rotations, ranges, n);
    }

    /// One step, from the first row of each block down, whose rotations are stored from `to` on.
    #[inline(always)]
    fn step(
        &mut self,
        simd: S,
        block: Block<S, R>,
        active: Mask<S, R>,
        rows: Range<usize>,
        to: usize,
    ) {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let Block { first, end, shift } = block;
        let (mut f, mut g) = (zero, zero);
        let mut unshifted = zero.less(zero);
        let (mut c_last, mut s_last) = (one, zero);
        let mut d = Vector::from_reg(simd, self.d[rows.start]);
        let mut e = Vector::from_reg(simd, self.e[rows.start]);
        let mut at = splat(row(rows.start));
        for i in rows {
            let begin = active.and(at.equal(first));
            let inside = active.and(first.less_or_equal(at)).and(at.less(end));
            if begin.any() {
                // (d² − shift²)/d; without a shift that would be lost in d² or is zero.
                let relative = shift / d.abs();
                let square = relative * relative;
                let some = splat(R::EPSILON).less_or_equal(square);
                let some = some.and(square.less_or_equal(splat(R::ONE / R::EPSILON)));
                let start = (d.abs() - shift) * (one.with_sign(d) + shift / d);
                f = Vector::choose(begin, Vector::choose(some, start, d), f);
                g = Vector::choose(begin, e, g);
                unshifted = begin.and(some.not()).or(unshifted.and(begin.not()));
            }
            // Without a shift f and g are d and e times one number, the tangent of the last rotation, which is zero
            // behind a zero of B, and may be small.
            let lost = unshifted.and((f * f).add_mul(g, g).less(splat(R::LOW)));
            let (from_f, from_g) = (Vector::choose(lost, d, f), Vector::choose(lost, e, g));
            let (c, s, r) = rotation(simd, from_f, from_g, inside);
            if i > 0 {
                let kept = Vector::from_reg(simd, self.e[i - 1]);
                let inner = inside.and(begin.not());
                let r = if lost.any() {
                    let tangent = Vector::choose(c_last.equal(zero), zero, s_last / c_last);
                    Vector::choose(lost, r * tangent, r)
                } else {
                    r
                };
                self.e[i - 1] = Vector::choose(inner, r, kept).reg();
            }
            let below = Vector::from_reg(simd, self.d[i + 1]);
            let beside = Vector::from_reg(simd, self.e[i + 1]);
            let f_left = (c * d).add_mul(s, e);
            let rest = Vector::choose(unshifted, zero, (c * e).sub_mul(s, d));
            let (g_left, next) = (s * below, c * below);
            let (c_left, s_left, r) = rotation(simd, f_left, g_left, inside);
            (c_last, s_last) = (c_left, s_left);
            self.d[i] = Vector::choose(inside, r, d).reg();
            f = (c_left * rest).add_mul(s_left, next);
            let next = (c_left * next).sub_mul(s_left, rest);
            g = s_left * beside;
            self.e[i] = Vector::choose(inside, f, e).reg();
            d = Vector::choose(inside, next, below);
            at = at + one;
            e = Vector::choose(inside.and(at.less(end)), c_left * beside, beside);
            let rotations = &mut self.rotations[to + 4 * i..to + 4 * i + 4];
            for (x, rotation) in rotations.iter_mut().zip([c, s, c_left, s_left]) {
                *x = rotation.reg();
            }
            self.d[i + 1] = d.reg();
            self.e[i + 1] = e.reg();
        }
    }

    /// Makes the singular values positive and descending, and moves their vectors with them.
    #[inline(always)]
    fn sort(&mut self, simd: S) {
        let n = self.d.len();
        let load = |reg: R::Reg<S>| Vector::<S, R>::from_reg(simd, reg);
        let one = Vector::<S, R>::splat(simd, R::ONE);
        for (j, d) in self.d.iter_mut().enumerate() {
            let sign = one.with_sign(load(*d));
            *d = load(*d).abs().reg();
            for y in self.y[j..n * n].iter_mut().step_by(n) {
                *y = (load(*y) * sign).reg();
            }
        }
        // Masked exchanges were measured to be sooner than permutations lane by lane.
        for p in 0..n {
            for q in p + 1..n {
                let (a, b) = (load(self.d[p]), load(self.d[q]));
                let swap = a.less(b);
                if !swap.any() {
                    continue;
                }
                self.d[p] = Vector::choose(swap, b, a).reg();
                self.d[q] = Vector::choose(swap, a, b).reg();
                for z in [&mut *self.x, &mut *self.y] {
                    for row in z[..n * n].chunks_exact_mut(n) {
                        let (a, b) = (load(row[p]), load(row[q]));
                        row[p] = Vector::choose(swap, b, a).reg();
                        row[q] = Vector::choose(swap, a, b).reg();
                    }
                }
            }
        }
    }
}

/// c and s with c·f + s·g = r and c·g − s·f = 0, and r; in other lanes, and where f and g are
/// negligible, the identity and f.
#[inline(always)]
fn rotation<S: Simd, R: LaneReal>(
    simd: S,
    f: Vector<S, R>,
    g: Vector<S, R>,
    lanes: Mask<S, R>,
) -> (Vector<S, R>, Vector<S, R>, Vector<S, R>) {
    let splat = |x| Vector::<S, R>::splat(simd, x);
    let (zero, one) = (splat(R::ZERO), splat(R::ONE));
    let square = (f * f).add_mul(g, g);
    let on = lanes.and(splat(R::LOW).less_or_equal(square));
    let square = Vector::choose(on, square, one);
    // A root and a division that do not wait for each other.
    let (root, reciprocal) = (square.sqrt(), one / square);
    let reciprocal = root * reciprocal;
    let (c, s) = (f * reciprocal, g * reciprocal);
    (Vector::choose(on, c, one), Vector::choose(on, s, zero), Vector::choose(on, root, f))
}

/// What B says of its singular values.
#[derive(Clone, Copy)]
pub(super) struct Bounds<S: Simd, R: LaneReal> {
    /// A lower bound of the smallest one, and one that is not zero, of what is beside zeros of B.
    smallest: Vector<S, R>,
    pub(super) smallest_some: Vector<S, R>,
    /// The largest element.
    largest: Vector<S, R>,
}

/// Demmel and Kahan's bounds are the least of μ(0) = |d(0)| and μ(k + 1) = |d(k + 1)|·μ(k)/(μ(k) + |e(k)|).
#[inline(always)]
pub(crate) fn bounds<S: Simd, R: LaneReal>(
    simd: S,
    d: &[R::Reg<S>],
    e: &[R::Reg<S>],
) -> Bounds<S, R> {
    let load = |reg: R::Reg<S>| Vector::<S, R>::from_reg(simd, reg).abs();
    let (zero, most) = (Vector::splat(simd, R::ZERO), Vector::splat(simd, R::MAX));
    let mut mu = load(d[0]);
    let (mut smallest, mut largest) = (mu, mu);
    let mut smallest_some = Vector::choose(zero.less(mu), mu, most);
    for (&d, &e) in d[1..].iter().zip(e) {
        let (d, e) = (load(d), load(e));
        mu = next_bound(simd, mu, e, d);
        smallest = Vector::choose(mu.less(smallest), mu, smallest);
        let less = zero.less(mu).and(mu.less(smallest_some));
        smallest_some = Vector::choose(less, mu, smallest_some);
        largest = d.max(e.max(largest));
    }
    Bounds { smallest, smallest_some, largest }
}

/// Demmel and Kahan's bound for one row more.
#[inline(always)]
pub(crate) fn next_bound<S: Simd, R: LaneReal>(
    simd: S,
    mu: Vector<S, R>,
    e: Vector<S, R>,
    d: Vector<S, R>,
) -> Vector<S, R> {
    let sum = mu + e;
    let some = Vector::splat(simd, R::ZERO).less(sum);
    Vector::choose(some, d * (mu / sum), d)
}
