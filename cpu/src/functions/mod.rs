//! Functions of matrices: exp(A) = Σ Aᵏ/k!, by scaling and squaring.
//!
//! exp(A) = r(2⁻ˢA)^(2ˢ) with a diagonal Padé approximant r, its degree and s chosen for each matrix (Al-Mohy and Higham,
//! SIAM J. Matrix Anal. Appl. 31, 2009). Matrices lie by rows; a function of the transpose is the transpose of the
//! function, so that nothing is transposed.

mod exponential;
pub(crate) mod route;

use lapax_core::{Items, ItemsMut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::simd::kind::Kind;
use crate::{Error, Scalar, Serial, Threads};
use exponential::exponential;
use route::{Route, products, route};

/// exp(A) of each n × n matrix of a batch, by rows.
///
/// A matrix that is not finite gives NaN. Triangular ones have the exact exponentials of their diagonals, and of those
/// beside them.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn expm<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (Items::new("a", batch, &[n, n], a)?, ItemsMut::new("x", batch, &[n, n], x)?);
    let outcome = Outcome::default();
    let time = nanoseconds::<T>(products(n));
    match route(Kind::of::<T>(), batch, n) {
        Route::Lanes => {
            let kernel = lanes::exponential::Exponential { n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Single => {
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (a, x)| {
                    outcome.take(exponential(n, a, x, &Serial));
                },
            );
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, x), threads| {
                outcome.take(exponential(n, a, x, threads));
            });
        }
    }
    outcome.into_result()
}
