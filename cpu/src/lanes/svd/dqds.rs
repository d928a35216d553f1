//! The squared singular values of a real bidiagonal matrix in each lane, by the differential
//! quotient-difference algorithm with shifts.
//!
//! Fernando and Parlett, "Accurate singular values and differential qd algorithms" (Numer. Math. 67,
//! 1994); deflation and the recovery from shifts that are too large are those of Parlett and Marques,
//! "An implementation of the dqds algorithm" (LAPACK working note 155). Each lane has a block of its
//! own, from row `first` to row `end`; a row that lies in no lane's block is not visited.

use pulp::Simd;

use super::dqds_shift::{TRAIL, Trail, negligible, pair, retreat, shift};
use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Mask, Vector};

/// Sweeps per value after which a lane counts as not converged; two to three are usual.
const SWEEPS: usize = 30;
/// What a sweep finds for each row: its squares, ‖z‖² and the smallest pivot.
pub(crate) const ROW: usize = 4;

/// B's squares: the diagonal `q`, and `e` above it, of which the last is scratch.
///
/// The largest are far above the least normal number, below which squares count as zero, and below
/// the largest one.
pub(crate) struct Dqds<'a, S: Simd, R: LaneReal> {
    pub(crate) q: &'a mut [R::Reg<S>],
    pub(crate) e: &'a mut [R::Reg<S>],
    /// `ROW`·n numbers of scratch.
    pub(crate) next: &'a mut [R::Reg<S>],
    /// n numbers of scratch: the shift of the block that ends with each row.
    pub(crate) shifts: &'a mut [R::Reg<S>],
}

/// Where each lane stands.
#[derive(Clone, Copy)]
struct State<S: Simd, R: LaneReal> {
    first: Vector<S, R>,
    /// −1 where all is done.
    end: Vector<S, R>,
    /// The sum of the block's shifts so far, and what rounding took from it.
    sigma: Vector<S, R>,
    lost: Vector<S, R>,
    /// The next shift.
    tau: Vector<S, R>,
}

/// What a sweep came to.
#[derive(Clone, Copy)]
struct Outcome<S: Simd, R: LaneReal> {
    /// A pivot is below zero, or NaN: the shift was too large. And whether any but the last is.
    bad: Mask<S, R>,
    early: Mask<S, R>,
    /// The first row of the block, below new zeros.
    first: Vector<S, R>,
}

impl<S: Simd, R: LaneReal> Dqds<'_, S, R> {
    /// Leaves the squared values in `q`, unordered; returns the lanes that did not converge.
    #[inline(always)]
    pub(crate) fn values(&mut self, simd: S) -> Mask<S, R> {
        let n = self.q.len();
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let zero = splat(R::ZERO);
        self.e[n - 1] = zero.reg();
        self.turn(simd);
        let end = splat(row::<R>(n) - R::ONE);
        let mut state = State { first: zero, end, sigma: zero, lost: zero, tau: zero };
        let mut failed = zero.less(zero);
        let (mut lo, mut hi) = (0, n - 1);
        for _ in 0..SWEEPS * n {
            let active = zero.less_or_equal(state.end).and(failed.not());
            if !active.any() {
                return failed;
            }
            while hi > 0 && !active.and(state.end.less(splat(row(hi))).not()).any() {
                hi -= 1;
            }
            while lo < hi && !active.and(state.first.less_or_equal(splat(row(lo)))).any() {
                lo += 1;
            }
            let outcome = self.sweep(simd, state, active, lo..hi + 1);
            let bad = outcome.bad;
            let good = active.and(bad.not());
            let trail = self.trail(simd, state, active, hi);
            if good.any() {
                self.commit(simd, good, lo..hi + 1);
                state.first = Vector::choose(good, outcome.first, state.first);
                if self.advance(simd, &mut state, trail, good, hi) {
                    lo = 0;
                }
            }
            if bad.any() {
                failed = failed.or(bad.and(state.tau.equal(zero)));
                let smaller = retreat(simd, state.tau, trail.least[0], outcome.early);
                state.tau = Vector::choose(bad, smaller, state.tau);
            }
        }
        failed.or(zero.less_or_equal(state.end))
    }

    /// Turns the matrices that grow towards their ends.
    #[inline(always)]
    fn turn(&mut self, simd: S) {
        let n = self.q.len();
        let load = |reg: &[R::Reg<S>], i: usize| Vector::<S, R>::from_reg(simd, reg[i]);
        let turned = load(self.q, 0).less(load(self.q, n - 1));
        if !turned.any() {
            return;
        }
        for (x, n) in [(&mut *self.q, n), (&mut *self.e, n - 1)] {
            for i in 0..n / 2 {
                let (a, b) = (load(x, i), load(x, n - 1 - i));
                x[i] = Vector::choose(turned, b, a).reg();
                x[n - 1 - i] = Vector::choose(turned, a, b).reg();
            }
        }
    }

    /// The transform with shift tau of the blocks, into `next`.
    #[inline(always)]
    fn sweep(
        &mut self,
        simd: S,
        state: State<S, R>,
        active: Mask<S, R>,
        rows: std::ops::Range<usize>,
    ) -> Outcome<S, R> {
        if S::IS_SCALAR {
            return self.sweep_one(simd, state, rows);
        }
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let State { first, end, sigma, tau, .. } = state;
        let (never, floor) = (zero.less(zero), splat(R::SAFE_MIN));
        let mut outcome = Outcome { bad: never, early: never, first };
        let (mut d, mut norm, mut least, mut begins) = (zero, one, zero, never);
        let mut at = splat(row(rows.start));
        let (q, e, shifts) = (&self.q[..rows.end], &mut self.e[..], &mut self.shifts[..]);
        let mut after = Vector::from_reg(simd, q[rows.start]);
        let next = self.next[rows.start * ROW..].chunks_exact_mut(ROW);
        for (i, next) in rows.zip(next) {
            let q_at = after;
            if i + 1 < q.len() {
                after = Vector::from_reg(simd, q[i + 1]);
            }
            let e_at = Vector::from_reg(simd, e[i]).max(zero);
            let (open, last) = (at.less(end), at.equal(end));
            let inside = active.and(first.less_or_equal(at)).and(open.or(last));
            let begin = begins.or(at.equal(first));
            d = Vector::choose(begin, q_at - tau, d);
            norm = Vector::choose(begin, one, norm);
            least = Vector::choose(begin.or(d.less(least)), d, least);
            let hat = d + e_at;
            let bad = inside.and(zero.less_or_equal(Vector::choose(open, d, hat)).not());
            outcome.early = outcome.early.or(bad.and(open));
            outcome.bad = outcome.bad.or(bad);
            let reciprocal = one / hat.max(floor);
            // Neither ratio to `hat` exceeds one, so that nothing overflows.
            let above = (e_at * reciprocal) * after;
            // An element this small may be dropped: the block ends here, and another one begins.
            begins = e_at.less_or_equal(negligible(simd, d + sigma));
            let above_kept = Vector::choose(begins.or(last), -one, above);
            next[0] = Vector::choose(inside, hat, q_at).reg();
            next[1] = Vector::choose(inside, above_kept, Vector::from_reg(simd, e[i])).reg();
            next[2] = norm.reg();
            next[3] = least.reg();
            let splits = inside.and(begins).and(open);
            if splits.any() {
                let shift = Vector::from_reg(simd, shifts[i]);
                shifts[i] = Vector::choose(splits, sigma + tau, shift).reg();
                outcome.first = Vector::choose(splits, at + one, outcome.first);
            }
            d = (-tau).add_mul(d * reciprocal, after);
            norm = one.add_mul(above * reciprocal, norm);
            at = at + one;
        }
        outcome
    }

    /// The same for one matrix, whose block has just these rows: branches that are hardly ever taken, where
    /// a choice by mask would be waited for. On one core, f64, all values of n = 64 150 us by masks and 118 by
    /// branches, of n = 128 660 and 430, of n = 256 2.5 and 1.9 ms.
    #[inline(always)]
    fn sweep_one(
        &mut self,
        simd: S,
        state: State<S, R>,
        rows: std::ops::Range<usize>,
    ) -> Outcome<S, R> {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one, floor) = (splat(R::ZERO), splat(R::ONE), splat(R::SAFE_MIN));
        let State { first, sigma, tau, .. } = state;
        let never = zero.less(zero);
        let mut outcome = Outcome { bad: never, early: never, first };
        let (q, e, shifts) = (&self.q[..rows.end], &self.e[..rows.end], &mut self.shifts[..]);
        let last = rows.end - 1;
        let mut d = Vector::from_reg(simd, q[rows.start]) - tau;
        let (mut norm, mut least) = (one, d);
        let next = self.next[rows.start * ROW..].chunks_exact_mut(ROW);
        for (i, next) in rows.zip(next) {
            let e_at = Vector::from_reg(simd, e[i]).max(zero);
            if d.less(least).any() {
                least = d;
            }
            let hat = d + e_at;
            let good = zero.less_or_equal(if i < last { d } else { hat });
            if !good.any() {
                outcome.bad = good.not();
                outcome.early = if i < last { outcome.bad } else { outcome.early };
            }
            next[0] = hat.reg();
            next[2] = norm.reg();
            next[3] = least.reg();
            if i == last {
                next[1] = (-one).reg();
                break;
            }
            let after = Vector::from_reg(simd, q[i + 1]);
            let reciprocal = one / if hat.less(floor).any() { floor } else { hat };
            let above = (e_at * reciprocal) * after;
            next[1] = above.reg();
            let begins = e_at.less_or_equal(negligible(simd, d + sigma));
            if begins.any() {
                next[1] = (-one).reg();
                shifts[i] = (sigma + tau).reg();
                outcome.first = splat(row(i + 1));
                d = after - tau;
                (norm, least) = (one, d);
                continue;
            }
            d = (-tau).add_mul(d * reciprocal, after);
            norm = one.add_mul(above * reciprocal, norm);
        }
        outcome
    }

    /// What the last sweep left at the end of the blocks; zeros for rows before a block, where it left
    /// what other lanes' blocks made of them.
    #[inline(always)]
    fn trail(&self, simd: S, state: State<S, R>, active: Mask<S, R>, hi: usize) -> Trail<S, R> {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let zero = [splat(R::ZERO); TRAIL];
        let mut trail = Trail { q: zero, e: zero, norm: zero, least: zero };
        for i in (0..hi + 1).rev() {
            let next = &self.next[i * ROW..(i + 1) * ROW];
            let inside = state.first.less_or_equal(splat(row(i)));
            for k in 0..TRAIL {
                let here = inside.and(state.end.equal(splat(row(i + k))));
                let parts = [&mut trail.q, &mut trail.e, &mut trail.norm, &mut trail.least];
                for (part, &next) in parts.into_iter().zip(next) {
                    part[k] = Vector::choose(here, Vector::from_reg(simd, next), part[k]);
                }
            }
            if !active.and(state.end.less(splat(row(i + TRAIL - 1)))).any() {
                break;
            }
        }
        trail
    }

    /// Takes over what a sweep found in the lanes whose shift was good.
    #[inline(always)]
    fn commit(&mut self, simd: S, good: Mask<S, R>, rows: std::ops::Range<usize>) {
        for i in rows {
            for (x, next) in [(&mut self.q[i], i * ROW), (&mut self.e[i], i * ROW + 1)] {
                let next = Vector::<S, R>::from_reg(simd, self.next[next]);
                *x = Vector::choose(good, next, Vector::from_reg(simd, *x)).reg();
            }
        }
    }

    /// Deflates where a sweep made it possible, and chooses the next shifts; whether any lane goes
    /// on to another block.
    #[inline(always)]
    fn advance(
        &mut self,
        simd: S,
        state: &mut State<S, R>,
        mut trail: Trail<S, R>,
        good: Mask<S, R>,
        hi: usize,
    ) -> bool {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let sum = state.sigma + state.tau;
        // Knuth's exact error of the sum.
        let part = sum - state.sigma;
        let error = (state.sigma - (sum - part)) + (state.tau - part);
        state.lost = Vector::choose(good, state.lost + error, state.lost);
        state.sigma = Vector::choose(good, sum, state.sigma);
        // An e beside BBᵀ's last row stays in its diagonal, q + e: only √(q·e) is dropped with it.
        let small = trail.e[1].less_or_equal(negligible(simd, trail.q[0] + state.sigma));
        let product = trail.e[1] * (trail.q[0] / state.sigma);
        let small = small.or(product.less_or_equal(negligible(simd, state.sigma)));
        let ones = good.and(small.or(state.end.equal(state.first)));
        let mut left = zero;
        if ones.any() {
            self.settle(simd, state, ones, (zero, hi), trail.q[0]);
            left = Vector::choose(ones, trail.e[1], zero);
            trail.drop(ones);
            state.end = Vector::choose(ones, state.end - one, state.end);
        }
        let whole = state.end.equal(state.first + one);
        let small = trail.e[2].less_or_equal(negligible(simd, trail.q[1] + state.sigma));
        let pairs = good.and(whole.or(small)).and(state.first.less(state.end));
        if pairs.any() {
            let [a, b] = pair(simd, trail.q[1], trail.e[1], trail.q[0], left);
            self.settle(simd, state, pairs, (zero, hi), b);
            self.settle(simd, state, pairs, (one, hi), a);
            trail.drop(pairs);
            trail.drop(pairs);
            state.end = Vector::choose(pairs, state.end - (one + one), state.end);
        }
        let done = good.and(state.end.less(state.first));
        state.tau = Vector::choose(good, shift(simd, &trail), state.tau);
        if done.any() {
            self.descend(simd, state, done, hi);
        }
        done.any()
    }

    /// Writes sigma + `value` to row `end` − `before`.
    #[inline(always)]
    fn settle(
        &mut self,
        simd: S,
        state: &State<S, R>,
        lanes: Mask<S, R>,
        (before, hi): (Vector<S, R>, usize),
        value: Vector<S, R>,
    ) {
        let value = state.sigma + (state.lost + value);
        let target = state.end - before;
        for i in (0..hi + 1).rev() {
            let at = Vector::splat(simd, row(i));
            let here = lanes.and(target.equal(at));
            self.q[i] = Vector::choose(here, value, Vector::from_reg(simd, self.q[i])).reg();
            if !lanes.and(target.less(at)).any() {
                break;
            }
        }
    }

    /// Goes on to the blocks above.
    #[inline(always)]
    fn descend(&mut self, simd: S, state: &mut State<S, R>, lanes: Mask<S, R>, hi: usize) {
        let zero = Vector::splat(simd, R::ZERO);
        state.tau = Vector::choose(lanes, zero, state.tau);
        state.lost = Vector::choose(lanes, zero, state.lost);
        state.first = Vector::choose(lanes, zero, state.first);
        for i in 0..hi + 1 {
            let at = Vector::splat(simd, row(i));
            let above = Vector::from_reg(simd, self.e[i]).less(zero).and(at.less(state.end));
            let first = Vector::splat(simd, row(i + 1));
            state.first = Vector::choose(lanes.and(above), first, state.first);
            let here = lanes.and(at.equal(state.end));
            let shift = Vector::from_reg(simd, self.shifts[i]);
            state.sigma = Vector::choose(here, shift, state.sigma);
        }
    }
}
