//! The four scalars as CUDA's libraries name them.

use cudarc::cusolver::sys::cudaDataType_t as DataType;
use num_complex::Complex;

/// `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar: lapax_core::Scalar + Plain {
    /// Its place in the order f32, f64, c64, c128, in which kernels and routines of the scalars are
    /// listed.
    const INDEX: usize;
    /// CUDA's code for it.
    #[doc(hidden)]
    const TYPE: DataType;
    /// CUDA's code for its real part.
    #[doc(hidden)]
    const REAL: DataType;
}

macro_rules! scalars {
    ($($scalar:ty = $index:literal, $code:ident, $real:ident;)*) => {
        $(impl Scalar for $scalar {
            const INDEX: usize = $index;
            const TYPE: DataType = DataType::$code;
            const REAL: DataType = DataType::$real;
        })*
    };
}

scalars! {
    f32 = 0, CUDA_R_32F, CUDA_R_32F;
    f64 = 1, CUDA_R_64F, CUDA_R_64F;
    Complex<f32> = 2, CUDA_C_32F, CUDA_R_32F;
    Complex<f64> = 3, CUDA_C_64F, CUDA_R_64F;
}

/// Numbers without padding, any bytes of which are a value: the scalars, and 32-bit integers.
pub trait Plain: sealed::Sealed + Copy + Default {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty),*) => {
        $(
            impl sealed::Sealed for $number {}
            impl Plain for $number {}
        )*
    };
}

plain!(f32, f64, Complex<f32>, Complex<f64>, i32);
