//! Cholesky factorisation of Hermitian positive definite matrices, and its update.

use lapax_core::{Uplo, index_fits_i32};

use crate::Scalar;
use crate::codes::fill_mode;
use crate::driver;
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::handle::{DENSE, parameters};
use crate::memory::{InOut, Output};
use crate::module::kernel;
use crate::small::{self, THREADS_OF_A_COLUMN};

/// Factors each Hermitian positive definite matrix of a batch as A = L·Lᴴ or A = Uᴴ·U.
///
/// Only the triangle that `uplo` names is read and written. `info = i > 0`: the leading minor of order i
/// is not positive definite, which includes that it is NaN. A batch of matrices that fit into a block's
/// shared memory is one launch of an own kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// Where n exceeds `i32`, scratch or a library is not to be had, or the device fails.
pub fn potrf<T: Scalar>(
    gpu: &Gpu<'_>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<T>,
    info: Output<i32>,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    if batch == 0 {
        return Ok(());
    }
    if n == 0 {
        return driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>());
    }
    let a = gpu.initialized(a)?;
    let kernel = kernel!(T, "factor", "potrf");
    if let Some(launch) =
        small::plan::<T>(gpu, "potrf", batch, (n, n), THREADS_OF_A_COLUMN, kernel)?
    {
        let lower = i32::from(uplo == Uplo::Lower);
        let (batch, n): (i64, i32) = (narrow("batch", batch)?, narrow("n", n)?);
        // SAFETY: the kernel's parameters; the operands have batch·n·n and batch elements.
        return unsafe { gpu.launch(&launch, (a.as_ptr(), info.as_ptr(), batch, n, lower)) };
    }
    let (size, order): (usize, i64) = (product("a", &[n, n])?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let (solver, fill, first) = (dense.raw(), fill_mode(uplo), a.as_ptr());
    let mut space = gpu.workspace(|device, host| {
        // SAFETY: the function's arguments; a is on the device.
        unsafe {
            dense.call(
                c"cusolverDnXpotrf_bufferSize",
                (solver, parameters, fill, order, T::TYPE, first, order, T::TYPE, device, host),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, info) = (a.item(index, size), info.item(index, 1));
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXpotrf",
                (
                    solver,
                    parameters,
                    fill,
                    order,
                    T::TYPE,
                    a,
                    order,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info,
                ),
            )?;
        }
    }
    Ok(())
}

/// Loads what [`potrf`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_potrf<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "factor", "potrf"))?;
    gpu.prepare(&DENSE)
}

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
