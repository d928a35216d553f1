//! Whether a computed eigensystem of a tridiagonal matrix, or an SVD of a bidiagonal one, is one, at the
//! cost of reading it twice.
//!
//! Each vector is tried on the matrix, and all together on a vector of random signs: a wrong, missing or
//! repeated vector shows.

use lapax_core::Real;
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::householder::dot;
use crate::simd::arch::Arch;
use crate::simd::loops::sub_scaled;

/// LAPACK's own tests accept 30 times n·ε·‖A‖; what exceeds this is computed anew.
const ACCEPTED: f64 = 10.0;

/// Whether T·Z = Z·diag(w) and ZᵀZ = I as far as can be seen, for the T of order 1 with diagonal `d` and
/// `e` beside it; w ascends, and nothing is NaN. `sums` has n elements.
pub(crate) fn is_eigensystem<R: Real + Scalar>(
    d: &[R],
    e: &[R],
    w: &[R],
    z: &[R],
    sums: &mut [R],
) -> bool {
    Arch::new().dispatch(Eigensystem { d, e, w, z, sums })
}

struct Eigensystem<'a, R> {
    d: &'a [R],
    e: &'a [R],
    w: &'a [R],
    z: &'a [R],
    sums: &'a mut [R],
}

impl<R: Real + Scalar> WithSimd for Eigensystem<'_, R> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { d, e, w, z, sums } = self;
        let n = d.len();
        let limit = limit::<R>(n);
        if !w.windows(2).all(|pair| pair[0] <= pair[1]) {
            return false;
        }
        z.chunks_exact(n).zip(w).all(|(column, &w)| is_eigenvector(d, e, w, column, limit))
            && are_orthogonal::<S, R>(z, sums, limit)
    }
}

/// Whether QᵀQ = I, tried on signs.
#[inline(always)]
fn are_orthogonal<S: Simd, R: Real + Scalar>(q: &[R], sums: &mut [R], limit: R) -> bool {
    let n = sums.len();
    sums.fill(R::ZERO);
    for (j, column) in q.chunks_exact(n).enumerate() {
        sub_scaled::<S, R>(sums, -sign::<R>(j), column);
    }
    q.chunks_exact(n).enumerate().all(|(j, column)| {
        let error = dot::<S, R>(column, sums) - sign::<R>(j);
        error.abs() <= limit
    })
}

/// Whether no element of T·x − w·x is larger than `limit`, or NaN.
#[inline(always)]
fn is_eigenvector<R: Real>(d: &[R], e: &[R], w: R, x: &[R], limit: R) -> bool {
    let n = d.len();
    let within = |residual: R| residual.abs() <= limit;
    if n < 3 {
        return (0..n).all(|i| {
            let other = if n == 2 { e[0] * x[1 - i] } else { R::ZERO };
            within((d[i] - w) * x[i] + other)
        });
    }
    let inner = e[..n - 2].iter().zip(&x[..n - 2]).zip(d[1..n - 1].iter().zip(&x[1..n - 1]));
    let inner = inner.zip(e[1..].iter().zip(&x[2..])).fold(true, |all, ((above, own), below)| {
        all & within(*above.0 * *above.1 + (*own.0 - w) * *own.1 + *below.0 * *below.1)
    });
    inner
        && within((d[0] - w) * x[0] + e[0] * x[1])
        && within(e[n - 2] * x[n - 2] + (d[n - 1] - w) * x[n - 1])
}

/// Whether B·Y = X·diag(s), XᵀX = I and YᵀY = I as far as can be seen, for the B of order 1 with diagonal
/// `d` and `e` above it; s descends to no less than 0, and nothing is NaN. `sums` has n elements.
pub(crate) fn is_svd<R: Real + Scalar>(
    (d, e): (&[R], &[R]),
    s: &[R],
    x: &[R],
    y: &[R],
    sums: &mut [R],
) -> bool {
    Arch::new().dispatch(Svd { d, e, s, x, y, sums })
}

struct Svd<'a, R> {
    d: &'a [R],
    e: &'a [R],
    s: &'a [R],
    x: &'a [R],
    y: &'a [R],
    sums: &'a mut [R],
}

impl<R: Real + Scalar> WithSimd for Svd<'_, R> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { d, e, s, x, y, sums } = self;
        let n = d.len();
        let limit = limit::<R>(n);
        let descends = s.windows(2).all(|pair| pair[0] >= pair[1]);
        if !descends || !s.last().is_none_or(|&s| s >= R::ZERO) {
            return false;
        }
        let mut pairs = s.iter().zip(x.chunks_exact(n).zip(y.chunks_exact(n)));
        pairs.all(|(&s, (x, y))| {
            let (Some(last), above) = (n.checked_sub(1), d.iter().zip(e).zip(x)) else {
                return true;
            };
            let mut within = (d[last] * y[last] - s * x[last]).abs() <= limit;
            for (((&d, &e), &x), y) in above.zip(y.windows(2)) {
                within &= (d * y[0] + e * y[1] - s * x).abs() <= limit;
            }
            within
        }) && [x, y].iter().all(|q| are_orthogonal::<S, R>(q, sums, limit))
    }
}

/// The largest error of one element of a product with signs.
fn limit<R: Real>(n: usize) -> R {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let n = n as f64;
    R::from_f64(ACCEPTED * n * n.sqrt()) * R::EPSILON
}

/// A sign that looks random: a bit of Weyl's sequence for the golden ratio, scrambled once.
fn sign<R: Real>(i: usize) -> R {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let x = (i as u64).wrapping_add(1).wrapping_mul(GOLDEN);
    if (x ^ (x >> 29)).wrapping_mul(GOLDEN).leading_zeros() == 0 { R::ONE } else { -R::ONE }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "23 bits")]
pub(crate) mod tests {
    /// Numbers that look random, in [-1, 1).
    pub(crate) fn random(seed: usize) -> impl Iterator<Item = f64> {
        let mut state = seed as u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / (1_u64 << 23) as f64 - 1.0
        })
    }
}
