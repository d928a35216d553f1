//! The codes of NVIDIA's libraries. The one file that knows them.

use std::ffi::c_int;

use lapax_core::{Side, Uplo, Vectors};

/// cublasFillMode_t.
pub(crate) fn fill_mode(uplo: Uplo) -> c_int {
    match uplo {
        Uplo::Lower => 0,
        Uplo::Upper => 1,
    }
}

/// cublasSideMode_t.
pub(crate) fn side_mode(side: Side) -> c_int {
    match side {
        Side::Left => 0,
        Side::Right => 1,
    }
}

/// cusolverEigMode_t.
pub(crate) fn eigen_mode(vectors: Vectors) -> c_int {
    match vectors {
        Vectors::None => 0,
        Vectors::Wanted => 1,
    }
}

/// cublasOperation_t and cusparseOperation_t: A, Aᵀ, Aᴴ.
pub(crate) const PLAIN: c_int = 0;
pub(crate) const TRANSPOSE: c_int = 1;
pub(crate) const ADJOINT: c_int = 2;

/// cublasPointerMode_t: scalars are read by the host, or by the device.
pub(crate) const SCALARS_ON_HOST: c_int = 0;
pub(crate) const SCALARS_ON_DEVICE: c_int = 1;

/// The function of a scalar's type among those for f32, f64, c64, c128.
pub(crate) fn of_type<T: crate::Scalar>(
    functions: [&'static std::ffi::CStr; 4],
) -> &'static std::ffi::CStr {
    functions[T::INDEX]
}
