//! The scalars that these kernels serve: LAPACK's four, each with faer's matrix product.

use faer::{Accum, Conj, MatMut, MatRef, Par};
use num_complex::Complex;

/// `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar: lapax_core::Scalar {
    /// dst ← dst + alpha·op(lhs)·op(rhs), where op conjugates if it is told to.
    #[doc(hidden)]
    fn add_product(
        dst: MatMut<'_, Self>,
        lhs: (MatRef<'_, Self>, Conj),
        rhs: (MatRef<'_, Self>, Conj),
        alpha: Self,
    );
}

macro_rules! scalar {
    ($($scalar:ty),+) => {$(
        impl Scalar for $scalar {
            fn add_product(
                dst: MatMut<'_, Self>,
                lhs: (MatRef<'_, Self>, Conj),
                rhs: (MatRef<'_, Self>, Conj),
                alpha: Self,
            ) {
                faer::linalg::matmul::matmul_with_conj(
                    dst, Accum::Add, lhs.0, lhs.1, rhs.0, rhs.1, alpha, Par::Seq,
                );
            }
        }
    )+};
}

scalar!(f32, f64, Complex<f32>, Complex<f64>);
