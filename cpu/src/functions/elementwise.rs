//! What happens to each number of some matrices, by the vectors of the processor.

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::exponential::Halvings;

/// X ← 2⁻ʰ·A.
pub(super) struct Halve<'a, T> {
    pub(super) halvings: i32,
    pub(super) from: &'a [T],
    pub(super) to: &'a mut [T],
}

impl<T: Scalar> WithSimd for Halve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let halvings = Halvings::new(self.halvings);
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = halvings.of(from);
        }
    }
}

/// X ← 2ᵏ·…·2ᵏ·X, one by one: the product of all may overflow where X vanishes.
pub(super) struct Double<'a, T> {
    pub(super) doublings: i32,
    pub(super) times: usize,
    pub(super) x: &'a mut [T],
}

impl<T: Scalar> WithSimd for Double<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let double = Halvings::new(-self.doublings);
        for x in self.x {
            for _ in 0..self.times {
                *x = double.of(*x);
            }
        }
    }
}

/// Two matrices ← factor·power, or plus this.
pub(super) struct Combine<'a, T: Scalar> {
    pub(super) add: bool,
    pub(super) power: &'a [T],
    pub(super) factors: [T::Real; 2],
    pub(super) to: [&'a mut [T]; 2],
}

impl<T: Scalar> WithSimd for Combine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { add, power, factors, to: [even, odd] } = self;
        for ((even, odd), x) in even.iter_mut().zip(odd).zip(power) {
            let (x, y) = (x.scale(factors[0]), x.scale(factors[1]));
            if add {
                *even += x;
                *odd += y;
            } else {
                (*even, *odd) = (x, y);
            }
        }
    }
}

/// V ← V − U and U ← 2·U.
pub(super) struct Sides<'a, T> {
    pub(super) v: &'a mut [T],
    pub(super) u: &'a mut [T],
}

impl<T: Scalar> WithSimd for Sides<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (v, u) in self.v.iter_mut().zip(self.u) {
            (*v, *u) = (*v - *u, *u + *u);
        }
    }
}
