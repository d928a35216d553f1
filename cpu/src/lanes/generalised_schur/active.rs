//! Where the QZ iteration of each lane stands, and its shifts.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use super::pair::Pair;
use crate::lanes::schur::active::Block;
use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Sweeps over a block, after which an element is neglected beside all of S: other shifts had their turn twice.
const PATIENCE: usize = 20;
/// Sweeps over a block, after which a lane is left to the iteration for one pair.
const GIVEN_UP: usize = 30;

/// What is nothing beside S, and beside T, of each lane.
#[derive(Clone, Copy)]
pub(super) struct Tolerance<S: Simd, R: LaneReal> {
    of_s: Vector<S, R>,
    pub(super) of_t: Vector<S, R>,
}

/// Of the last block of order 2 in each lane S's columns over T's diagonal, [a b; c d], and so T's element above the
/// diagonal, u: the block of S·T⁻¹ is [a b − u·a; c d − u·c].
#[derive(Clone, Copy)]
pub(super) struct Corner<X> {
    pub(super) block: [X; 4],
    pub(super) u: X,
}

impl<S: Simd, X: Lane<S>> Pair<'_, S, X> {
    #[inline(always)]
    pub(super) fn tolerance(&self, simd: S) -> Tolerance<S, X::Real> {
        Tolerance { of_s: self.roundoff(simd, self.s), of_t: self.roundoff(simd, self.t) }
    }

    /// What is nothing beside ‖A‖_F.
    #[inline(always)]
    fn roundoff(&self, simd: S, a: &[Reg<S, X>]) -> Vector<S, X::Real> {
        let mut sum = Vector::splat(simd, X::Real::ZERO);
        for column in a.chunks_exact(self.ld * X::PARTS) {
            for x in column[..self.n * X::PARTS].chunks_exact(X::PARTS) {
                sum = sum + X::load(simd, x, 0).norm_squared();
            }
        }
        let ulp = Vector::splat(simd, X::Real::EPSILON + X::Real::EPSILON);
        (ulp * sum.sqrt()).max(Vector::splat(simd, X::Real::SAFE_MIN))
    }

    /// Drops what is negligible below S's diagonal, and leaves blocks of up to `width` rows behind. Returns the last
    /// block of order 2 of each lane that is left, and the lanes for which the iteration for one pair has to do:
    /// those with an element on T's diagonal that is negligible, or without progress.
    ///
    /// What was left behind stays as it is, and so do the lanes that are done: their patience runs out while others
    /// are at work.
    #[inline(always)]
    pub(super) fn split(
        &mut self,
        simd: S,
        block: &mut Block<S, X::Real>,
        tolerance: Tolerance<S, X::Real>,
        width: usize,
    ) -> (Corner<X>, Mask<S, X::Real>) {
        let n = self.n;
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let nothing = X::from_real(zero);
        let ulp = splat(X::Real::EPSILON + X::Real::EPSILON);
        let late = splat(row(PATIENCE)).less_or_equal(block.stalled);
        let floor = Vector::choose(late, tolerance.of_s, splat(X::Real::SAFE_MIN));
        let wide = splat(row(width - 1));
        let before = *block;
        let mut left = zero.less_or_equal(block.last);
        let mut singular = left.not().and(left);
        let mut corner = Corner { block: [nothing; 4], u: nothing };
        for i in (0..n).rev() {
            let at = splat(row(i));
            let open = left.and(at.less_or_equal(block.last));
            singular =
                singular.or(open.and(self.t(simd, i, i).abs1().less_or_equal(tolerance.of_t)));
            if i == 0 {
                break;
            }
            let ends = open.and(at.equal(block.last));
            if ends.any() {
                corner.take(simd, self, ends, i);
            }
            let (above, here) = (self.s(simd, i - 1, i - 1), self.s(simd, i, i));
            let below = self.s(simd, i, i - 1);
            let size = above.abs1() + here.abs1();
            let small = open.and(below.abs1().less_or_equal((ulp * size).max(floor)));
            if !small.any() {
                continue;
            }
            self.set_s(i, i - 1, X::choose(small, nothing, below));
            let closes = small.and(block.last.less_or_equal(at + wide));
            block.last = Vector::choose(closes, at - one, block.last);
            let opens = small.and(closes.not());
            block.first = Vector::choose(opens, at, block.first);
            left = left.and(opens.not());
        }
        block.first = Vector::choose(left, zero, block.first);
        let closes = left.and(block.last.less_or_equal(wide));
        block.last = Vector::choose(closes, -one, block.last);
        let again = before.last.equal(block.last).and(before.first.equal(block.first));
        let lost = singular.or(again.and(splat(row(GIVEN_UP)).less_or_equal(block.stalled)));
        let lost = lost.and(zero.less_or_equal(before.last));
        block.last = Vector::choose(lost, -one, block.last);
        block.stalled = Vector::choose(again, block.stalled + one, one);
        (corner, lost)
    }
}

impl<X> Corner<X> {
    /// The same of numbers that are real.
    #[inline(always)]
    pub(super) fn real<S: Simd>(self) -> Corner<Vector<S, X::Real>>
    where
        X: Lane<S>,
    {
        let [a, b, c, d] = self.block;
        Corner { block: [a.re(), b.re(), c.re(), d.re()], u: self.u.re() }
    }

    /// That of the block which ends in row i of some lanes.
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, pair: &Pair<'_, S, X>, lanes: Mask<S, X::Real>, i: usize)
    where
        X: Lane<S>,
    {
        let h = i - 1;
        let (first, second) = (pair.t(simd, h, h).reciprocal(), pair.t(simd, i, i).reciprocal());
        let u = pair.t(simd, h, i) * second;
        let (a, c) = (pair.s(simd, h, h) * first, pair.s(simd, i, h) * first);
        let (b, d) = (pair.s(simd, h, i) * second, pair.s(simd, i, i) * second);
        for (corner, x) in self.block.iter_mut().zip([a, b, c, d]) {
            *corner = X::choose(lanes, x, *corner);
        }
        self.u = X::choose(lanes, u, self.u);
    }
}
