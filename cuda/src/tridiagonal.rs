//! Tridiagonal systems A·X = B, A given by its three diagonals, each of length m.
//!
//! Row i of A is dl[i], d[i], du[i] in columns i − 1, i, i + 1: dl[0] and du[m − 1] are not read.

use std::ffi::{CStr, c_int};

use crate::Scalar;
use crate::codes::of_type;
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::handle::SPARSE;
use crate::library::CUSPARSE;
use crate::memory::{InOut, Input, Output};
use crate::module::{Kernel, kernel};

/// Solves A·X = B for each matrix of a batch, perturbing a pivot wherever the quotient by it would
/// overflow, so that X is finite for any finite A and B: what inverse iteration needs.
///
/// `b` is m × nrhs, column-major, as is `x`. After LAPACK's xLAGTF and xLAGTS, in the same order of
/// operations. Takes scratch of 3·m elements for each system.
///
/// # Errors
/// Where m exceeds `i32`, scratch is not to be had, or the device fails.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
pub fn tridiagonal_solve_perturbed<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    nrhs: usize,
    a: [Input<T>; 3],
    b: Input<T>,
    x: Output<T>,
) -> Result<(), Error> {
    let kernel = kernel!(T, "tridiagonal", "tridiagonal_solve_perturbed");
    eliminate(gpu, kernel, batch, m, nrhs, a, b, x)
}

/// Loads what [`tridiagonal_solve_perturbed`] launches.
///
/// # Errors
/// As there.
pub fn load_tridiagonal_solve_perturbed<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "tridiagonal", "tridiagonal_solve_perturbed"))
}

/// Solves A·X = B for each matrix of a batch, by elimination with partial pivoting.
///
/// `x` is m × nrhs, column-major, B and becomes X. A singular system gives what the divisions by a zero
/// pivot give. Few long systems go to cuSPARSE, which works on one with many threads, but pivots
/// otherwise; many go to an own kernel, which takes scratch of 3·m elements for each.
///
/// # Errors
/// As [`tridiagonal_solve_perturbed`].
pub fn tridiagonal_solve<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    nrhs: usize,
    a: [Input<T>; 3],
    x: InOut<T>,
) -> Result<(), Error> {
    /// Fewer threads than this leave most of a GPU idle: by estimate.
    const FEW_THREADS: usize = 128;
    /// Shorter systems are not worth cuSPARSE's several launches: on an H200 one of order 128 takes 43 µs
    /// in JAX, and 116 by cuSPARSE, which takes 111 for one of 1024.
    const LONG: usize = 512;
    if batch == 0 || m == 0 || nrhs == 0 {
        return Ok(());
    }
    let few = batch.saturating_mul(nrhs.min(32)) < FEW_THREADS;
    if few && m >= LONG && CUSPARSE.has(c"cusparseCreate") {
        return in_parallel(gpu, batch, m, nrhs, a, gpu.initialized(x)?);
    }
    let kernel = kernel!(T, "tridiagonal", "tridiagonal_solve");
    eliminate(gpu, kernel, batch, m, nrhs, a, x.source(), x.dst)
}

/// Loads what [`tridiagonal_solve`] launches, and makes its handle where cuSPARSE is there.
///
/// # Errors
/// As there.
pub fn load_tridiagonal_solve<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "tridiagonal", "tridiagonal_solve"))?;
    if CUSPARSE.has(c"cusparseCreate") { gpu.prepare(&SPARSE) } else { Ok(()) }
}

/// Solves A·X = B for each matrix of a batch as [`tridiagonal_solve`] does, B and X row-major, m × nrhs. X is NaN
/// where A is singular. One launch, whatever the sizes; takes scratch of 3·m elements for each system.
///
/// # Errors
/// As [`tridiagonal_solve_perturbed`].
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
pub fn tridiagonal_solve_rows<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    nrhs: usize,
    a: [Input<T>; 3],
    b: Input<T>,
    x: Output<T>,
) -> Result<(), Error> {
    let kernel = kernel!(T, "tridiagonal", "tridiagonal_solve_rows");
    eliminate(gpu, kernel, batch, m, nrhs, a, b, x)
}

/// Loads what [`tridiagonal_solve_rows`] launches.
///
/// # Errors
/// As there.
pub fn load_tridiagonal_solve_rows<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "tridiagonal", "tridiagonal_solve_rows"))
}

fn in_parallel<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [Input<T>; 3],
    x: Output<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [[&CStr; 4]; 2] = [
        [
            c"cusparseSgtsv2_bufferSizeExt",
            c"cusparseDgtsv2_bufferSizeExt",
            c"cusparseCgtsv2_bufferSizeExt",
            c"cusparseZgtsv2_bufferSizeExt",
        ],
        [c"cusparseSgtsv2", c"cusparseDgtsv2", c"cusparseCgtsv2", c"cusparseZgtsv2"],
    ];
    let (rows, columns): (c_int, c_int) = (narrow("m", m)?, narrow("nrhs", nrhs)?);
    let size = product("x", &[m, nrhs])?;
    let sparse = gpu.handle(&SPARSE)?;
    let (raw, mut bytes) = (sparse.raw(), 0_usize);
    let at = |index: usize| (dl.item(index, m), d.item(index, m), du.item(index, m));
    // SAFETY: the function's arguments; the operands are on the device.
    unsafe {
        let (dl, d, du) = at(0);
        let list = (raw, rows, columns, dl, d, du, x.as_ptr(), rows, &raw mut bytes);
        sparse.call(of_type::<T>(FUNCTIONS[0]), list)?;
    }
    let buffer = gpu.scratch::<u8>(bytes)?;
    for index in 0..batch {
        let ((dl, d, du), x) = (at(index), x.item(index, size));
        // SAFETY: the function's arguments; the systems are on the device, batch of each.
        unsafe {
            let list = (raw, rows, columns, dl, d, du, x, rows, buffer.as_ptr());
            sparse.call(of_type::<T>(FUNCTIONS[1]), list)?;
        }
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
fn eliminate<T: Scalar>(
    gpu: &Gpu<'_>,
    kernel: Kernel,
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [Input<T>; 3],
    b: Input<T>,
    x: Output<T>,
) -> Result<(), Error> {
    /// A warp for few systems, so that they spread over the processors; four for many.
    const FEW: usize = 1024;
    if batch == 0 || m == 0 || nrhs == 0 {
        return Ok(());
    }
    let scratch = gpu.scratch::<T>(product("scratch", &[3, m, batch])?)?;
    let width = nrhs.next_power_of_two().min(32);
    let lanes = batch.saturating_mul(width);
    let threads: usize = if lanes <= FEW { 32 } else { 128 };
    let launch = Launch {
        kernel,
        grid: blocks(lanes.div_ceil(threads), gpu.limits()?),
        block: [narrow("threads", threads)?, 1, 1],
        shared: 0,
    };
    let (dl, d, du, b) = (dl.as_ptr(), d.as_ptr(), du.as_ptr(), b.as_ptr());
    let (x, u) = (x.as_ptr(), scratch.as_ptr());
    let (batch, m): (i64, i32) = (narrow("batch", batch)?, narrow("m", m)?);
    let (nrhs, width): (i64, i32) = (narrow("nrhs", nrhs)?, narrow("width", width)?);
    // SAFETY: the kernel's parameters; the diagonals have batch·m elements, b and x batch·nrhs·m, the
    // scratch 3·m·batch.
    unsafe { gpu.launch(&launch, (dl, d, du, b, x, u, batch, m, nrhs, width)) }
}
