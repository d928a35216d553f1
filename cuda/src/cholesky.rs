//! Cholesky factorisation of Hermitian positive definite matrices, and its update.

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::InOut;
use crate::module::kernel;

/// The Cholesky factor after a rank-one change: R'ᴴ·R' = Rᴴ·R + w·wᴴ.
///
/// `r` is n × n upper triangular and **row-major**; its strict lower triangle is neither read nor
/// changed. `w` has n elements and becomes zero. A row of R' keeps the phase of R's diagonal entry.
/// One block works on a matrix. May be captured.
///
/// # Errors
/// Where n exceeds `i32`, or the device fails.
pub fn cholesky_update<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    r: InOut<T>,
    w: InOut<T>,
) -> Result<(), Error> {
    /// Columns beyond a panel that are updated at once; also the most that the kernel is built for.
    const THREADS: usize = 512;
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let (batch_i64, n_i32): (i64, i32) = (narrow("batch", batch)?, narrow("n", n)?);
    let (r, w) = (gpu.initialized(r)?.as_ptr(), gpu.initialized(w)?.as_ptr());
    let threads = n.next_multiple_of(32).min(THREADS);
    let launch = Launch {
        kernel: kernel!(T, "cholesky_update", "cholesky_update"),
        grid: blocks(batch, gpu.limits()?),
        block: [narrow("threads", threads)?, 1, 1],
        shared: 0,
    };
    // SAFETY: the kernel's parameters; r and w have batch·n·n and batch·n elements.
    unsafe { gpu.launch(&launch, (r, w, batch_i64, n_i32)) }
}

/// Loads what [`cholesky_update`] launches.
///
/// # Errors
/// As there.
pub fn load_cholesky_update<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "cholesky_update", "cholesky_update"))
}
