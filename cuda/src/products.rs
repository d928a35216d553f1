//! Dense products.

use std::ffi::CStr;

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::codes::{PLAIN, SCALARS_ON_DEVICE, TRANSPOSE, of_type};
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::handle::BLAS;
use crate::memory::{InOut, Input};
use crate::module::kernel;

/// C ← alpha·A·Aᵀ + beta·C, of which the lower triangle is computed; for `transpose`, Aᵀ·A.
///
/// All matrices are **row-major**: `a` is rows × columns, C of order `n`, `rows` or for `transpose`
/// `columns`. `alpha` and `beta` are one number each, on the device, where cuBLAS reads them: nothing
/// waits for them. Complex products are plain, without conjugation. A batch of small ones is one launch of
/// an own kernel, since cuBLAS has no routine for batches that leaves the upper triangle alone; others go
/// to cuBLAS one by one.
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
    if n.max(k) <= largest::<T>(gpu, "syrk", Count::of(batch))? {
        /// As the kernel has it.
        const TILE: usize = 16;
        let across = n.div_ceil(TILE);
        let tiles = product("c", &[batch, across, across + 1])? / 2;
        let (kernel, grid) = (kernel!(T, "syrk", "syrk"), blocks(tiles, gpu.limits()?));
        let block = [narrow("threads", TILE * TILE)?, 1, 1];
        let (matrices, alpha, beta) = ((a.as_ptr(), c.as_ptr()), alpha.as_ptr(), beta.as_ptr());
        let (batch, n, k): (i64, i32, i32) =
            (narrow("batch", batch)?, narrow("n", n)?, narrow("k", k)?);
        let list = (matrices.0, matrices.1, alpha, beta, batch, n, k, i32::from(transpose));
        // SAFETY: the kernel's parameters; the operands have batch·n·k and batch·n·n elements, and one.
        return unsafe { gpu.launch(&Launch { kernel, grid, block, shared: 0 }, list) };
    }
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

/// Loads what [`syrk`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "syrk", "syrk"))?;
    gpu.prepare(&BLAS)
}
