//! Which matrices of a tile are finite, and the powers of two that bring their norms near 1.

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::simd::lane::numbers;
use crate::simd::lane_real::LaneReal;
use crate::simd::range::power_near_reciprocal;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// The size of each lane's matrix, element by element.
pub(crate) struct Extent<S: Simd, X: Lane<S>> {
    largest: Vector<S, X::Real>,
    not_finite: Vector<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Extent<S, X> {
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let zero = Vector::splat(simd, X::Real::ZERO);
        Self { largest: zero, not_finite: zero }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, x: X) {
        // x − x is NaN for an infinite x, and so is every sum with it.
        self.not_finite = self.not_finite + (x.re() - x.re());
        self.largest = x.re().abs().max(self.largest);
        if X::PARTS > 1 {
            self.not_finite = self.not_finite + (x.im() - x.im());
            self.largest = x.im().abs().max(self.largest);
        }
    }

    /// Scales matrices whose norms are far from 1, and makes those that are not finite zero; returns
    /// the latter and those in which small elements lost digits by that, and the powers of two.
    #[inline(always)]
    pub(crate) fn normalize(
        self,
        simd: S,
        a: &mut [Reg<S, X>],
    ) -> (Mask<S, X::Real>, Vector<S, X::Real>) {
        let scaling = self.scaling(simd);
        let lost = scaling.apply(simd, a);
        (scaling.failed.or(lost), scaling.powers)
    }

    /// What brings the largest part of any element near 1.
    #[inline(always)]
    pub(crate) fn scaling_to_one(self, simd: S) -> Scaling<S, X> {
        let failed = self.not_finite.is_nan();
        let powers = Vector::read(simd, &numbers(self.largest).map(power_near_reciprocal));
        let one = Vector::splat(simd, X::Real::ONE);
        Scaling { failed, powers: Vector::choose(failed, one, powers), needed: true }
    }

    /// What brings norms near 1.
    #[inline(always)]
    pub(crate) fn scaling(self, simd: S) -> Scaling<S, X> {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let one = splat(X::Real::ONE);
        let failed = self.not_finite.is_nan();
        let near = splat(X::Real::SMALL).less_or_equal(self.largest);
        let near = near.and(self.largest.less_or_equal(splat(X::Real::ONE / X::Real::SMALL)));
        if near.and(failed.not()).all() {
            return Scaling { failed, powers: one, needed: false };
        }
        let lanes = numbers(self.largest).map(power_near_reciprocal);
        let far = Vector::choose(near, one, Vector::read(simd, &lanes));
        Scaling { failed, powers: Vector::choose(failed, one, far), needed: true }
    }
}

/// The matrices that are not finite, and the powers of two for the others.
pub(crate) struct Scaling<S: Simd, X: Lane<S>> {
    pub(crate) failed: Mask<S, X::Real>,
    pub(crate) powers: Vector<S, X::Real>,
    needed: bool,
}

impl<S: Simd, X: Lane<S>> Scaling<S, X> {
    /// Scales elements, and makes those of matrices that are not finite zero; returns the matrices of which an element
    /// is not what it was when it is scaled back.
    #[inline(always)]
    pub(crate) fn apply(&self, simd: S, a: &mut [Reg<S, X>]) -> Mask<S, X::Real> {
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let zero = real(X::Real::ZERO);
        let mut lost = zero.less(zero);
        if !self.needed {
            return lost;
        }
        let back = real(X::Real::ONE) / self.powers;
        let zero = X::from_real(zero);
        for x in a.chunks_exact_mut(X::PARTS) {
            let element = X::load(simd, x, 0);
            let scaled = element.scale(self.powers);
            let again = scaled.scale(back);
            lost = lost.or(again.re().equal(element.re()).not());
            if X::PARTS > 1 {
                lost = lost.or(again.im().equal(element.im()).not());
            }
            X::choose(self.failed, zero, scaled).store(x, 0);
        }
        lost
    }
}
