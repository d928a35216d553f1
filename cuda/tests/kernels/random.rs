//! Numbers for the tests, the same in every run.

use lapax_core::Real as _;

/// A scalar of both backends.
pub(crate) trait Number: lapax_cuda::Scalar + lapax_cpu::Scalar {}

impl<T: lapax_cuda::Scalar + lapax_cpu::Scalar> Number for T {}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of 0, …, `bound` − 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// Uniform in −1 to 1.
    pub(crate) fn number(&mut self) -> f64 {
        let bits = u32::try_from(self.bits() >> 32).unwrap();
        f64::from(bits) / f64::from(u32::MAX) * 2.0 - 1.0
    }

    pub(crate) fn scalar<T: Number>(&mut self) -> T {
        let (re, im) = (self.number(), self.number());
        T::from_parts(T::Real::from_f64(re), T::Real::from_f64(im))
    }

    pub(crate) fn scalars<T: Number>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| self.scalar()).collect()
    }
}

/// The largest |x − y| over the largest |y|, in units of the roundoff.
pub(crate) fn distance<T: Number>(x: &[T], y: &[T]) -> f64 {
    assert_eq!(x.len(), y.len());
    let size = y.iter().map(|y| y.abs().to_f64()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let each = x.iter().zip(y).map(|(&x, &y)| if x == y { 0.0 } else { (x - y).abs().to_f64() });
    // A NaN is no distance: it fails every comparison.
    let largest = each.fold(0.0, |a: f64, b| if b <= a { a } else { b });
    largest / size / T::Real::EPSILON.to_f64()
}
