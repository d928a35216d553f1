//! Whether a computed eigensystem of a tridiagonal matrix is one, at the cost of reading it twice.
//!
//! Each vector is tried on the matrix, and all together on a vector of random signs: a wrong, missing or
//! repeated vector shows.

use lapax_core::Real;
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::divide_and_conquer::{limit, sign};
use crate::householder::dot;
use crate::simd::sub_scaled;

/// Whether T·Z = Z·diag(w) and ZᵀZ = I as far as can be seen, for the T of order 1 with diagonal `d` and
/// `e` beside it; w ascends, and nothing is NaN. `sums` has n elements.
pub(crate) fn is_eigensystem<R: Real + Scalar>(
    d: &[R],
    e: &[R],
    w: &[R],
    z: &[R],
    sums: &mut [R],
) -> bool {
    Arch::new().dispatch(Check { d, e, w, z, sums })
}

struct Check<'a, R> {
    d: &'a [R],
    e: &'a [R],
    w: &'a [R],
    z: &'a [R],
    sums: &'a mut [R],
}

impl<R: Real + Scalar> WithSimd for Check<'_, R> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let Self { d, e, w, z, sums } = self;
        let n = d.len();
        let limit = limit::<R>(n, n);
        if !w.windows(2).all(|pair| pair[0] <= pair[1]) {
            return false;
        }
        sums.fill(R::ZERO);
        for (j, (column, &w)) in z.chunks_exact(n).zip(w).enumerate() {
            if !is_eigenvector(d, e, w, column, limit) {
                return false;
            }
            sub_scaled::<S, R>(sums, -sign::<R>(j), column);
        }
        z.chunks_exact(n).enumerate().all(|(j, column)| {
            let error = dot::<S, R>(column, sums) - sign::<R>(j);
            error.abs() <= limit
        })
    }
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
