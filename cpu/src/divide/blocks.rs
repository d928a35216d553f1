//! The blocks of a real symmetric tridiagonal matrix, between the elements beside its diagonal that are nothing.
//!
//! Each is brought to order 1 by itself, so that what is small in T as a whole keeps its digits, as in LAPACK's xSTEQR
//! and xSTERF.

use std::ops::Range;

use lapax_core::Real;

/// The block that begins with row `first`: it ends where an element is within a rounding of the geometric mean of its
/// neighbours on the diagonal, without which eigenvalues of all sizes keep their digits.
pub(crate) fn block_from<R: Real>(d: &[R], e: &[R], first: usize) -> Range<usize> {
    let nothing = |&k: &usize| {
        let mean = d[k].abs().sqrt() * d[k + 1].abs().sqrt();
        e[k].abs() <= R::EPSILON * mean
    };
    let last = (first..e.len()).find(nothing).unwrap_or(e.len());
    first..last + 1
}

/// The largest element of T in magnitude.
pub(crate) fn largest<R: Real>(d: &[R], e: &[R]) -> R {
    let larger = |size: R, x: &R| if x.abs() > size { x.abs() } else { size };
    d.iter().chain(e).fold(R::ZERO, larger)
}

/// T times a number.
pub(crate) fn scale<R: Real>(d: &mut [R], e: &mut [R], factor: R) {
    if factor != R::ONE {
        d.iter_mut().chain(e).for_each(|x| *x *= factor);
    }
}
