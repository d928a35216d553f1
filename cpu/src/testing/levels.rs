//! Operands at random, and how close results are.

use crate::{Real, Scalar};

/// Numbers between −1 and 1.
pub(crate) fn random<T: Scalar>(length: usize) -> Vec<T> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bits = u32::try_from(state >> 40).unwrap_or(0);
        T::Real::from_f64(f64::from(bits) / f64::from(1_u32 << 23) - 1.0)
    };
    (0..length).map(|_| T::from_parts(next(), next())).collect()
}

pub(crate) fn close<T: Scalar>(a: &[T], b: &[T], size: usize, what: &str) {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().map(|b| b.abs().to_f64()).fold(1.0, f64::max);
    let limit = 30.0 * size as f64 * T::Real::EPSILON.to_f64() * scale;
    for (a, b) in a.iter().zip(b) {
        let error = (*a - *b).abs().to_f64();
        assert!(error < limit, "{what}: {a:?} and {b:?} differ by {error:e}, limit {limit:e}");
    }
}
