//! Accuracy of the CPU kernels: LAPACK's residual ratios, with one limit for every scalar type.
//!
//! A ratio is a residual over (size · norm · ε), ε the unit roundoff. It is computed in f64, which
//! for f32 is exact enough to be called exact. `ratio < LIMIT` is what is asserted, so a NaN fails.
#![allow(clippy::cast_precision_loss, reason = "sizes here are small")]
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use lapax as _;

mod backend;
mod banded;
mod block_tridiagonal;
mod block_tridiagonal_lu;
mod cholesky;
mod cholesky_update;
mod definite;
mod eig;
mod eigh;
mod forward;
mod functions;
mod generalised_schur;
mod hessenberg;
mod kinds;
mod ldl;
mod lu;
mod many;
mod matrix;
mod permutation;
mod phase;
mod pivoted_qr;
mod products;
mod qr;
mod ratios;
mod sample;
mod schur;
mod sizes;
mod solve;
mod spectrum;
mod svd;
mod sweep;
mod triangular;
mod tridiagonal;
mod tridiagonal_eigh;
mod tridiagonalize;

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

/// Runs a generic test for each real scalar type, as one test each.
macro_rules! for_each_real {
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
        }
    )+};
}
use for_each_real;

/// Runs a generic test for each complex scalar type, as one test each.
macro_rules! for_each_complex {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
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
use for_each_complex;

/// Runs a generic test, whose argument is a backend, for each backend and scalar type.
macro_rules! for_each_backend {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            crate::backend_tests!($test, native, Native);
            #[cfg(feature = "lapack")]
            crate::backend_tests!($test, lapack, Lapack);
        }
    )+};
}
use for_each_backend;

macro_rules! backend_tests {
    ($test:ident, $module:ident, $backend:ident) => {
        mod $module {
            use super::super::$test as test;
            use crate::backend::Backend::$backend;

            #[test]
            fn f32() {
                test::<f32>($backend);
            }

            #[test]
            fn f64() {
                test::<f64>($backend);
            }

            #[test]
            fn c64() {
                test::<num_complex::Complex<f32>>($backend);
            }

            #[test]
            fn c128() {
                test::<num_complex::Complex<f64>>($backend);
            }
        }
    };
}
use backend_tests;
