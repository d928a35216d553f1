//! exp of numbers, and its divided differences, in double precision.

use lapax_core::{Real, Scalar};
use num_complex::Complex;

/// 2⁻ʰ as two factors: it may be no normal number itself.
#[derive(Clone, Copy)]
pub(crate) struct Halvings<R>([R; 2]);

impl<R: Real> Halvings<R> {
    pub(crate) fn new(halvings: i32) -> Self {
        let first = halvings / 2;
        Self([first, halvings - first].map(|e| R::from_f64(power_of_two(-e))))
    }

    /// 2⁻ʰ·x.
    #[inline(always)]
    pub(crate) fn of<T: Scalar<Real = R>>(self, x: T) -> T {
        x.scale(self.0[0]).scale(self.0[1])
    }
}

/// 2⁻ʰ·x.
pub(crate) fn halved<T: Scalar>(x: T, halvings: i32) -> T {
    Halvings::new(halvings).of(x)
}

/// 2ᵉ, where that is a normal number.
#[inline(always)]
pub(crate) fn power_of_two(e: i32) -> f64 {
    let biased = i64::from(e.clamp(-1022, 1023)) + 1023;
    f64::from_bits(biased.cast_unsigned() << 52)
}

/// The least k ≥ 0 with x ≤ 2ᵏ; 0 where x is NaN.
#[inline(always)]
pub(crate) fn doublings(x: f64) -> i32 {
    if x > 1.0 {
        let bits = x.to_bits();
        let (biased, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        i32::try_from(biased).unwrap_or(i32::MAX) - 1023 + i32::from(fraction != 0)
    } else {
        0
    }
}

/// exp(2⁻ʰ·x).
pub(crate) fn exp<T: Scalar>(x: T, halvings: i32) -> T {
    if T::IS_COMPLEX {
        narrow(exp_wide(halved(widen::<T, Complex<f64>>(x), halvings)))
    } else {
        narrow(exp_wide(halved(widen::<T, f64>(x), halvings)))
    }
}

/// (exp(y) − exp(x))/(y − x) for 2⁻ʰ times the given numbers, and exp(x) where they are the same.
pub(crate) fn exp_difference<T: Scalar>(x: T, y: T, halvings: i32) -> T {
    if T::IS_COMPLEX {
        narrow(difference_wide([x, y].map(|x| halved(widen::<T, Complex<f64>>(x), halvings))))
    } else {
        narrow(difference_wide([x, y].map(|x| halved(widen::<T, f64>(x), halvings))))
    }
}

fn widen<T: Scalar, D: Scalar<Real = f64>>(x: T) -> D {
    D::from_parts(x.re().to_f64(), x.im().to_f64())
}

fn narrow<T: Scalar, D: Scalar<Real = f64>>(x: D) -> T {
    T::from_parts(T::Real::from_f64(x.re()), T::Real::from_f64(x.im()))
}

fn exp_wide<D: Scalar<Real = f64>>(x: D) -> D {
    let size = x.re().exp();
    // Infinity times the sine of zero is zero here.
    if x.im() == 0.0 {
        return D::from_parts(size, x.im());
    }
    let (sine, cosine) = x.im().sin_cos();
    D::from_parts(size * cosine, size * sine)
}

/// Where they are close it is exp((x + y)/2)·sinh(z)/z with z = (y − x)/2 (Higham, "Functions of Matrices", SIAM 2008,
/// (10.17)).
fn difference_wide<D: Scalar<Real = f64>>([x, y]: [D; 2]) -> D {
    let half = (y - x).scale(0.5);
    if half.abs1() < 1.0 {
        exp_wide((x + y).scale(0.5)) * sinh_quotient(half)
    } else {
        (exp_wide(y) - exp_wide(x)).divide(half.scale(2.0))
    }
}

/// sinh(z)/z for |z| < 1.
fn sinh_quotient<D: Scalar<Real = f64>>(z: D) -> D {
    /// The first term that is left out is below 2·10⁻²⁰.
    const TERMS: u32 = 10;
    let square = z * z;
    (1..TERMS).rev().fold(D::ONE, |sum, k| {
        let k = f64::from(2 * k);
        D::ONE + (square * sum).scale(1.0 / (k * (k + 1.0)))
    })
}
