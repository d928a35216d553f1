//! Accuracy of the CPU kernels: LAPACK's residual ratios, with one limit for every scalar type.
//!
//! A ratio is a residual over (size · norm · ε), ε the unit roundoff. It is computed in f64, which
//! for f32 is exact enough to be called exact. `ratio < LIMIT` is what is asserted, so a NaN fails.
#![allow(clippy::cast_precision_loss, reason = "sizes here are small")]
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod cholesky;
mod cholesky_update;
mod eig;
mod eigh;
mod hessenberg;
mod kinds;
mod lu;
mod matrix;
mod permutation;
mod pivoted_qr;
mod qr;
mod sample;
mod schur;
mod svd;
mod threads;
mod triangular;
mod tridiagonal;

/// LAPACK's own tests accept a ratio below 30.
const LIMIT: f64 = 30.0;

/// The worst ratio of a test, with the case it came from.
#[derive(Default)]
struct Worst {
    ratio: f64,
    case: String,
}

impl Worst {
    /// Fails unless the ratio is below the limit.
    fn check(&mut self, ratio: f64, case: impl Fn() -> String) {
        assert!(ratio < LIMIT, "ratio {ratio} of {} is not below {LIMIT}", case());
        if ratio >= self.ratio {
            (self.ratio, self.case) = (ratio, case());
        }
    }
}

impl Drop for Worst {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            println!("worst ratio {:.2}: {}", self.ratio, self.case);
        }
    }
}

/// Runs a generic test for each scalar type, as one test each.
macro_rules! for_each_scalar {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            #[test]
            fn f32() {
                super::$test::<f32>();
            }

            #[test]
            fn f64() {
                super::$test::<f64>();
            }

            #[test]
            fn c64() {
                super::$test::<num_complex::Complex<f32>>();
            }

            #[test]
            fn c128() {
                super::$test::<num_complex::Complex<f64>>();
            }
        }
    )+};
}
use for_each_scalar;
