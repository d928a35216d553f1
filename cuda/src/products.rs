//! Dense products.

use std::ffi::CStr;

use crate::Scalar;
use crate::codes::{PLAIN, SCALARS_ON_DEVICE, TRANSPOSE, of_type};
use crate::error::{Error, narrow, product};
use crate::gpu::Gpu;
use crate::handle::BLAS;
use crate::memory::{InOut, Input};

/// C ← alpha·A·Aᵀ + beta·C, of which the lower triangle is computed; for `transpose`, Aᵀ·A.
///
/// All matrices are **row-major**: `a` is rows × columns, C of order `n`, `rows` or for `transpose`
/// `columns`. `alpha` and `beta` are one number each, on the device, where cuBLAS reads them: nothing
/// waits for them. Complex products are plain, without conjugation. cuBLAS, one by one.
///
/// # Errors
/// Where a library is not to be had, or the device fails.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
pub fn syrk<T: Scalar>(
    gpu: &Gpu<'_>,
    transpose: bool,
    batch: usize,
    (rows, columns): (usize, usize),
    a: Input<T>,
    c: InOut<T>,
    alpha: Input<T>,
    beta: Input<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [&CStr; 4] =
        [c"cublasSsyrk_v2_64", c"cublasDsyrk_v2_64", c"cublasCsyrk_v2_64", c"cublasZsyrk_v2_64"];
    let (n, k) = if transpose { (columns, rows) } else { (rows, columns) };
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let c = gpu.initialized(c)?;
    let (a_size, c_size) = (product("a", &[rows, columns])?, product("c", &[n, n])?);
    let (order, inner, lda): (i64, i64, i64) =
        (narrow("n", n)?, narrow("k", k)?, narrow("columns", columns.max(1))?);
    // Row-major A is column-major Aᵀ, and the lower triangle of C is the upper one of its transpose.
    const UPPER: std::ffi::c_int = 1;
    let operation = if transpose { PLAIN } else { TRANSPOSE };
    let blas = gpu.handle(&BLAS)?;
    let (raw, alpha, beta) = (blas.raw(), alpha.as_ptr(), beta.as_ptr());
    // SAFETY: the functions' arguments; the matrices and numbers are on the device.
    unsafe {
        blas.call(c"cublasSetPointerMode_v2", (raw, SCALARS_ON_DEVICE))?;
        for index in 0..batch {
            let (a, c) = (a.item(index, a_size), c.item(index, c_size));
            let list = (raw, UPPER, operation, order, inner, alpha, a, lda, beta, c, order);
            blas.call(of_type::<T>(FUNCTIONS), list)?;
        }
    }
    Ok(())
}

/// Makes the handle of [`syrk`].
///
/// # Errors
/// As there.
pub fn load(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.prepare(&BLAS)
}
