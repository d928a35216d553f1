//! The scalars that these kernels serve: LAPACK's four, each with faer's matrix product.

use std::fmt::Debug;

use bytemuck::Pod;
use faer::{Accum, Conj, MatMut, MatRef, Par};
use lapax_core::Real as _;
use num_complex::Complex;
use pulp::Simd;
use smallvec::{Array, SmallVec};

use super::complex::ComplexVector;
use super::lane_real::LaneReal;
use super::packed::Packed;
use super::vector::{Lane, Vector};

/// `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar: lapax_core::Scalar<Real: LaneReal, Complex: Pod> + Pod + Packed {
    /// The scalar of the same kind in double precision.
    #[doc(hidden)]
    type Double: Scalar<Real = f64, Double = Self::Double>;
    /// One number of each matrix of a group.
    #[doc(hidden)]
    type Lane<S: Simd>: Lane<S, Scalar = Self, Real = Self::Real>;
    /// As many elements as four registers of AVX-512 or eight of AVX2 hold: enough independent sums
    /// to hide the latency of an addition.
    #[doc(hidden)]
    type Lanes: Copy + Debug + Send + AsRef<[Self]> + AsMut<[Self]>;
    #[doc(hidden)]
    const ZERO_LANES: Self::Lanes;

    /// dst ← alpha·op(lhs)·op(rhs), plus dst if `sum` says so, where op conjugates if it is told to.
    #[doc(hidden)]
    fn product(
        dst: MatMut<'_, Self>,
        sum: Accum,
        lhs: (MatRef<'_, Self>, Conj),
        rhs: (MatRef<'_, Self>, Conj),
        alpha: Self,
    );
}

macro_rules! scalar {
    ($($scalar:ty, $double:ty, $lane:ident, $lanes:literal;)+) => {$(
        impl Scalar for $scalar {
            type Double = $double;
            type Lane<S: Simd> = $lane<S, Self::Real>;
            type Lanes = [$scalar; $lanes];
            const ZERO_LANES: Self::Lanes = [<$scalar as lapax_core::Scalar>::ZERO; $lanes];

            fn product(
                dst: MatMut<'_, Self>,
                sum: Accum,
                lhs: (MatRef<'_, Self>, Conj),
                rhs: (MatRef<'_, Self>, Conj),
                alpha: Self,
            ) {
                faer::linalg::matmul::matmul_with_conj(
                    dst, sum, lhs.0, lhs.1, rhs.0, rhs.1, alpha, Par::Seq,
                );
            }
        }
    )+};
}

scalar! {
    f32, f64, Vector, 64;
    f64, f64, Vector, 32;
    Complex<f32>, Complex<f64>, ComplexVector, 32;
    Complex<f64>, Complex<f64>, ComplexVector, 16;
}

/// A vector that holds the elements of a matrix of order 4 in itself: to allocate and free another takes about 20 ns.
/// `eigh` of 2, f64, whose seven vectors were others, took 384 ns and so 297.
pub(crate) type Short<T> = SmallVec<[T; 16]>;

/// The same for those of a row or column: scratch that is larger takes longer to move.
pub(crate) type ShortRow<T> = SmallVec<[T; 4]>;

/// So many zeros.
pub(crate) fn zeros<A: Array<Item: lapax_core::Scalar>>(count: usize) -> SmallVec<A> {
    SmallVec::from_elem(lapax_core::Scalar::ZERO, count)
}

/// NaN, in both parts.
pub(crate) fn nan<T: lapax_core::Scalar>() -> T {
    let nan = T::Real::from_f64(f64::NAN);
    T::from_parts(nan, nan)
}

/// The same numbers in double precision.
pub(crate) fn widen<T: lapax_core::Scalar, D>(to: &mut [D], from: &[T])
where
    D: lapax_core::Scalar<Real = f64>,
{
    for (to, from) in to.iter_mut().zip(from) {
        *to = D::from_parts(from.re().to_f64(), from.im().to_f64());
    }
}

/// The numbers rounded from double precision.
pub(crate) fn narrow<T: lapax_core::Scalar, D>(to: &mut [T], from: &[D])
where
    D: lapax_core::Scalar<Real = f64>,
{
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::from_parts(T::Real::from_f64(from.re()), T::Real::from_f64(from.im()));
    }
}
