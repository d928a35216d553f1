//! Tridiagonal systems A·X = B, A given by its three diagonals, each of length m.
//!
//! Row i of A is dl[i], d[i], du[i] in columns i − 1, i, i + 1: dl[0] and du[m − 1] are not read.

use crate::Scalar;
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{Input, Output};
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
