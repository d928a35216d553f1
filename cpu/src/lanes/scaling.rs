//! Which matrices of a tile are finite, and the powers of two that bring their norms near 1.

use lapax_core::Scalar as _;
use pulp::Simd;

use super::{Lane, LaneReal, Mask, Reg, Vector, numbers};
use crate::normal_range::power_near_reciprocal;

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
    /// the latter, and the powers of two.
    #[inline(always)]
    pub(crate) fn normalize(
        self,
        simd: S,
        a: &mut [Reg<S, X>],
    ) -> (Mask<S, X::Real>, Vector<S, X::Real>) {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let failed = self.not_finite.is_nan();
        let near = splat(X::Real::SMALL).less_or_equal(self.largest);
        let near = near.and(self.largest.less_or_equal(splat(X::Real::ONE / X::Real::SMALL)));
        if near.and(failed.not()).all() {
            return (failed, one);
        }
        let lanes = numbers(self.largest).map(power_near_reciprocal);
        let far = Vector::choose(near, one, Vector::read(simd, &lanes));
        let powers = Vector::choose(failed, one, far);
        for x in a.chunks_exact_mut(X::PARTS) {
            let scaled = X::load(simd, x, 0).scale(powers);
            X::choose(failed, X::from_real(zero), scaled).store(x, 0);
        }
        (failed, powers)
    }
}
