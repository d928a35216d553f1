//! The four scalars of LAPACK behind one trait, and LAPACK's machine constants.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use num_complex::Complex;

use crate::division::divide;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for num_complex::Complex<f32> {}
    impl Sealed for num_complex::Complex<f64> {}
}

/// `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar:
    sealed::Sealed
    + Copy
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + 'static
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// The type of the real part.
    type Real: Real;
    /// The complex type with this real part; the type itself where it is complex.
    type Complex: Scalar<Real = Self::Real, Complex = Self::Complex>;

    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// re + i·im; a real scalar drops `im`.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part; zero for a real scalar.
    fn im(self) -> Self::Real;

    /// A real number.
    #[inline(always)]
    fn from_real(re: Self::Real) -> Self {
        Self::from_parts(re, Self::Real::ZERO)
    }

    /// The complex conjugate.
    #[inline(always)]
    fn conj(self) -> Self {
        Self::from_parts(self.re(), -self.im())
    }

    /// |re| + |im|, by which LAPACK compares pivots.
    #[inline(always)]
    fn abs1(self) -> Self::Real {
        if Self::IS_COMPLEX { self.re().abs() + self.im().abs() } else { self.re().abs() }
    }

    /// The modulus, without needless overflow.
    #[inline(always)]
    fn abs(self) -> Self::Real {
        if Self::IS_COMPLEX { self.re().hypot(self.im()) } else { self.re().abs() }
    }

    /// The product with a real number.
    #[inline(always)]
    fn scale(self, factor: Self::Real) -> Self {
        Self::from_parts(self.re() * factor, self.im() * factor)
    }

    /// The quotient by a real number, part by part.
    #[inline(always)]
    fn unscale(self, divisor: Self::Real) -> Self {
        Self::from_parts(self.re() / divisor, self.im() / divisor)
    }

    /// self + a·b, each part of each product rounded together with its sum. Fast only where the
    /// code around it is compiled for a processor with fused multiply-add.
    fn fused_add(self, a: Self, b: Self) -> Self;

    /// The quotient, without overflow or underflow that the result itself does not have.
    fn divide(self, divisor: Self) -> Self;

    /// Whether neither part is infinite or NaN.
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.re().finite() && self.im().finite()
    }

    /// Whether a part is NaN.
    #[inline(always)]
    fn is_nan(self) -> bool {
        // A NaN is the only number that differs from itself.
        self.re().partial_cmp(&self.re()).is_none() || self.im().partial_cmp(&self.im()).is_none()
    }
}

/// `f32` or `f64`.
pub trait Real: Scalar<Real = Self> + PartialOrd + Div<Output = Self> {
    /// LAPACK's `eps`: the unit roundoff, half the distance from 1 to the next number (2⁻²⁴, 2⁻⁵³).
    const EPSILON: Self;
    /// LAPACK's `safmin`: the smallest normal number, whose reciprocal does not overflow.
    const SAFE_MIN: Self;
    /// The largest finite number.
    const MAX: Self;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number.
    fn to_f64(self) -> f64;
    /// √self.
    fn sqrt(self) -> Self;
    /// √(self² + other²), without needless overflow or underflow.
    fn hypot(self, other: Self) -> Self;
    /// 1 with the sign of `self`.
    fn signum(self) -> Self;
    /// Whether the number is neither infinite nor NaN.
    fn finite(self) -> bool;
}

macro_rules! real {
    ($real:ident) => {
        impl Scalar for $real {
            type Real = $real;
            type Complex = Complex<$real>;

            const IS_COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn from_parts(re: $real, _: $real) -> Self {
                re
            }

            #[inline(always)]
            fn re(self) -> $real {
                self
            }

            #[inline(always)]
            fn im(self) -> $real {
                0.0
            }

            #[inline(always)]
            fn abs(self) -> $real {
                <$real>::abs(self)
            }

            #[inline(always)]
            fn abs1(self) -> $real {
                <$real>::abs(self)
            }

            #[inline(always)]
            fn fused_add(self, a: Self, b: Self) -> Self {
                a.mul_add(b, self)
            }

            #[inline(always)]
            fn divide(self, divisor: Self) -> Self {
                self / divisor
            }
        }

        impl Real for $real {
            const EPSILON: Self = $real::EPSILON / 2.0;
            const SAFE_MIN: Self = $real::MIN_POSITIVE;
            const MAX: Self = $real::MAX;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                #[allow(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
                {
                    value as $real
                }
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                <$real>::sqrt(self)
            }

            #[inline(always)]
            fn hypot(self, other: Self) -> Self {
                <$real>::hypot(self, other)
            }

            #[inline(always)]
            fn signum(self) -> Self {
                <$real>::signum(self)
            }

            #[inline(always)]
            fn finite(self) -> bool {
                <$real>::is_finite(self)
            }
        }

        impl Scalar for Complex<$real> {
            type Real = $real;
            type Complex = Self;

            const IS_COMPLEX: bool = true;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };

            #[inline(always)]
            fn from_parts(re: $real, im: $real) -> Self {
                Complex { re, im }
            }

            #[inline(always)]
            fn re(self) -> $real {
                self.re
            }

            #[inline(always)]
            fn im(self) -> $real {
                self.im
            }

            #[inline(always)]
            fn fused_add(self, a: Self, b: Self) -> Self {
                Complex {
                    re: (-a.im).mul_add(b.im, a.re.mul_add(b.re, self.re)),
                    im: a.im.mul_add(b.re, a.re.mul_add(b.im, self.im)),
                }
            }

            fn divide(self, divisor: Self) -> Self {
                divide(self, divisor)
            }
        }
    };
}

real!(f32);
real!(f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_lapacks() {
        assert_eq!(<f64 as Real>::EPSILON, 2.0_f64.powi(-53));
        assert_eq!(<f32 as Real>::EPSILON, 2.0_f32.powi(-24));
        assert!((1.0 / <f64 as Real>::SAFE_MIN).is_finite());
    }
}
