//! Small formulas that several families share: roots, rotations, matrices of order one.

use std::cmp::Ordering;

use lapax_core::{Real, Scalar as _};
use pulp::Simd;

use super::scalar::nan;
use crate::Scalar;

/// Products that are summed before they are taken from an element of A, which is at least as large as their sum
/// is on the diagonal: rounded beside A, n of them cost √n roundings of it. L in f32 against f64, n = 128, median of the
/// largest errors over ε times the largest element: 4.8 one by one, 1.9 with 8, 1.4 with 16, 1.2 with 32, 1.0 with 64.
pub(crate) const SUMMED: usize = 32;

/// √pivot and its reciprocal, which never overflows; `None` unless the pivot is positive.
#[inline(always)]
pub(crate) fn root<R: Real>(pivot: R) -> Option<(R, R)> {
    let positive = pivot.partial_cmp(&R::ZERO) == Some(Ordering::Greater);
    let root = pivot.sqrt();
    positive.then_some((root, R::ONE / root))
}

/// A matrix of order one as its eigenvalue or its triangular form, and its vector; NaN where it is not finite.
///
/// What the routines allocate takes longer than all the rest: a call of `eigh` in a program took 0.63 us, of
/// `schur` 0.82, and of one that looks at an operand and returns 0.25.
pub(crate) fn of_order_one<T: lapax_core::Scalar>(a: T) -> (T, T) {
    if a.is_finite() { (a, T::ONE) } else { (nan(), nan()) }
}

/// Nanoseconds that a matrix of order one takes.
pub(crate) const OF_ORDER_ONE: usize = 2;

/// [c s; -s̄ c]·[x; v].
#[inline(always)]
pub(crate) fn rotate<S: Simd, T: Scalar>(c: T::Real, s: T, x: T, v: T) -> (T, T) {
    if S::IS_SCALAR {
        (x.scale(c) + s * v, v.scale(c) - s.conj() * x)
    } else {
        (x.scale(c).fused_add(s, v), v.scale(c).fused_add(-s.conj(), x))
    }
}

/// The rotation [c s; -s̄ c] with [c s; -s̄ c]·[f; g] = [r; 0] and c real, for g ≠ 0.
///
/// c = |f|/h, s = phase(f)·ḡ/h and r = phase(f)·h with h = √(|f|² + |g|²), which is LAPACK's choice
/// (Anderson, "Algorithm 978: safe scaling in the level 1 BLAS", ACM TOMS 44, 2017). Every quotient
/// is at most 1 and the moduli are computed with scaling, so nothing overflows that need not.
pub(crate) fn rotation<T: lapax_core::Scalar>(f: T, g: T) -> (T::Real, T, T) {
    let (f_size, g_size) = (f.abs(), g.abs());
    let norm = f_size.hypot(g_size);
    let phase = if f_size == T::Real::ZERO { T::ONE } else { f.unscale(f_size) };
    (f_size.divide(norm), phase * g.conj().unscale(norm), phase.scale(norm))
}

/// √x: NaN for a negative real number, with positive imaginary part for a negative complex one.
pub(crate) fn square_root<T: lapax_core::Scalar>(x: T) -> T {
    let (re, im) = (x.re(), x.im());
    if im == T::Real::ZERO {
        let zero = T::Real::ZERO;
        return if T::IS_COMPLEX && re < zero {
            T::from_parts(zero, (-re).sqrt())
        } else {
            T::from_parts(re.sqrt(), zero)
        };
    }
    if x.abs1() < T::Real::SAFE_MIN {
        let unit = T::Real::EPSILON;
        return square_root(x.unscale(unit * unit)).scale(unit);
    }
    // Halved, so that the modulus does not overflow.
    let half = T::Real::from_f64(0.5);
    let larger = (x.scale(half).abs() + (re * half).abs()).sqrt();
    let smaller = im.abs() / (larger + larger);
    let (re, size) = if re >= T::Real::ZERO { (larger, smaller) } else { (smaller, larger) };
    T::from_parts(re, size * im.signum())
}
