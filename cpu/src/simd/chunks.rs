//! Columns cut into parts of as many rows as a register takes, the last filled up with zeros: loops
//! over them have no odd end.

use pulp::Simd;

use super::loops::sub_mul;
use crate::Scalar;

/// The columns that go together. One column of a symmetric product took 1.48 us at n = 64 and 225 us
/// at n = 1024 in f64, four together 0.55 us and 162 us.
pub(crate) const TOGETHER: usize = 4;
/// Elements that go together: a compiler makes vectors of eight, of sixteen often not (f32 and
/// n = 256: 4.9 us and 13 us).
pub(crate) const PARTS: usize = 8;

/// Neighbouring elements of a column.
pub(crate) type Part<T> = [T; PARTS];

/// So many parts of zeros.
pub(crate) fn zeros<T: Scalar>(count: usize) -> Vec<Part<T>> {
    vec![[T::ZERO; PARTS]; count]
}

/// y ← y − a·x.
#[inline(always)]
pub(crate) fn sub_scaled<S: Simd, T: Scalar>(y: &mut [Part<T>], a: T, x: &[Part<T>]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = less::<S, T>(*y, a, x);
    }
}

/// y − a·x. Parts are worked on as values, and each of them by a loop of its own: else a compiler makes
/// no vectors.
#[inline(always)]
pub(crate) fn less<S: Simd, T: Scalar>(mut y: Part<T>, a: T, x: &Part<T>) -> Part<T> {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = sub_mul::<S, T>(*y, a, x);
    }
    y
}

/// x ← a·x.
#[inline(always)]
pub(crate) fn scale<T: Scalar>(x: &mut [Part<T>], a: T) {
    x.iter_mut().for_each(|x| x.iter_mut().for_each(|x| *x *= a));
}
