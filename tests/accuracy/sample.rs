//! The scalar types under test, each with the wider type in which its residuals are computed, and
//! the random numbers that fill matrices.

use lapax_core::{Real, Scalar};
use num_complex::Complex;

/// What every compiled backend asks of a scalar type.
#[cfg(not(feature = "lapack"))]
use lapax_cpu::Scalar as Kernels;
#[cfg(feature = "lapack")]
use lapax_cpu::lapack::Routines as Kernels;

/// A scalar type under test.
pub(crate) trait Sample: Kernels<Real: lapax_cpu::Scalar> {
    /// f64 or `Complex<f64>`.
    type Wide: Scalar<Real = f64>;
    /// 2 to this power is just above the largest finite number.
    const MAX_EXPONENT: i32;
    /// 2 to this power is the smallest normal number.
    const MIN_EXPONENT: i32;
    /// 2 to this power is the smallest positive number.
    const DENORMAL_EXPONENT: i32;
    const NAME: &'static str;

    fn epsilon() -> f64 {
        <Self as Scalar>::Real::EPSILON.to_f64()
    }

    /// The same number, times 2 to the power `exponent`.
    fn widen(self, exponent: i32) -> Self::Wide {
        Self::Wide::from_parts(
            times_power(self.re().to_f64(), exponent),
            times_power(self.im().to_f64(), exponent),
        )
    }

    /// The nearest number to `wide` times 2 to the power `exponent`.
    fn narrow(wide: Self::Wide, exponent: i32) -> Self {
        let part = |x| <Self as Scalar>::Real::from_f64(times_power(x, exponent));
        Self::from_parts(part(wide.re()), part(wide.im()))
    }

    fn from_f64(re: f64) -> Self {
        Self::from_real(<Self as Scalar>::Real::from_f64(re))
    }

    fn nan() -> Self {
        Self::from_f64(f64::NAN)
    }

    fn bits(self) -> (u64, u64) {
        (self.re().to_f64().to_bits(), self.im().to_f64().to_bits())
    }
}

macro_rules! sample {
    ($($scalar:ty, $real:ident, $wide:ty, $name:literal;)+) => {$(
        impl Sample for $scalar {
            type Wide = $wide;
            const MAX_EXPONENT: i32 = $real::MAX_EXP;
            const MIN_EXPONENT: i32 = $real::MIN_EXP - 1;
            const DENORMAL_EXPONENT: i32 =
                $real::MIN_EXP - ($real::MANTISSA_DIGITS).cast_signed();
            const NAME: &'static str = $name;
        }
    )+};
}

sample! {
    f32, f32, f64, "f32";
    f64, f64, f64, "f64";
    Complex<f32>, f32, Complex<f64>, "c64";
    Complex<f64>, f64, Complex<f64>, "c128";
}

/// x times 2 to a power that need not itself be a number.
pub(crate) fn times_power(x: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    x * 2.0_f64.powi(half) * 2.0_f64.powi(exponent - half)
}

/// Every bit of every element, so that two results compare equal only if they are the same.
pub(crate) fn bits<T: Sample>(x: &[T]) -> Vec<(u64, u64)> {
    x.iter().map(|x| x.bits()).collect()
}

/// `SplitMix64` (Steele, Lea and Flood 2014): every seed starts another sequence.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [-1, 1).
    pub(crate) fn real(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Uniform in the square around zero; a real scalar has no second part.
    pub(crate) fn scalar<W: Scalar<Real = f64>>(&mut self) -> W {
        W::from_parts(self.real(), self.real())
    }

    /// Uniform in `0..limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }
}
