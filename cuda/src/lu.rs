//! LU factorisation with partial pivoting, A = P·L·U, and its permutation.

use lapax_core::index_fits_i32;

use crate::Scalar;
use crate::driver::{self, Limits};
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::handle::{DENSE, parameters};
use crate::memory::{InOut, Input, Output};
use crate::module::{Kernel, kernel};
use crate::small::{self, THREADS_OF_A_COLUMN};

/// Factors each matrix of a batch as A = P·L·U, with partial pivoting.
///
/// `a` is m × n and becomes the packed factors; `ipiv` has min(m, n) pivots, counted from 1; `info` is
/// 0 or the first i > 0 for which U(i, i) is exactly zero. A batch of matrices that fit into a block's
/// shared memory is one launch of an own kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// Where m or n exceed `i32`, scratch or a library is not to be had, or the device fails.
pub fn getrf<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<T>,
    ipiv: Output<i32>,
    info: Output<i32>,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    if batch == 0 {
        return Ok(());
    }
    let k = m.min(n);
    if k == 0 {
        return driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>());
    }
    let a = gpu.initialized(a)?;
    let kernel = kernel!(T, "factor", "getrf");
    if let Some(launch) =
        small::plan::<T>(gpu, "getrf", batch, (m, n), THREADS_OF_A_COLUMN, kernel)?
    {
        let (a, ipiv, info) = (a.as_ptr(), ipiv.as_ptr(), info.as_ptr());
        let (batch, m, n): (i64, i32, i32) =
            (narrow("batch", batch)?, narrow("m", m)?, narrow("n", n)?);
        // SAFETY: the kernel's parameters; the operands have batch·m·n, batch·k and batch elements.
        return unsafe { gpu.launch(&launch, (a, ipiv, info, batch, m, n)) };
    }
    let wide = gpu.scratch::<i64>(product("ipiv", &[batch, k])?)?;
    factor_one_by_one(gpu, batch, m, n, a, wide.as_ptr(), info)?;
    let launch = Launch {
        kernel: kernel!("convert", "narrow"),
        grid: blocks((batch * k).div_ceil(256), gpu.limits()?),
        block: [256, 1, 1],
        shared: 0,
    };
    let count: i64 = narrow("batch times min(m, n)", batch * k)?;
    // SAFETY: the kernel's parameters; both have batch·k elements.
    unsafe { gpu.launch(&launch, (wide.as_ptr(), ipiv.as_ptr(), count)) }
}

fn factor_one_by_one<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    n: usize,
    a: Output<T>,
    ipiv: *mut i64,
    info: Output<i32>,
) -> Result<(), Error> {
    let (size, k) = (product("a", &[m, n])?, m.min(n));
    let (rows, columns): (i64, i64) = (narrow("m", m)?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let solver = dense.raw();
    let mut space = gpu.workspace(|device, host| {
        let first = a.as_ptr();
        // SAFETY: the function's arguments; a is on the device.
        unsafe {
            dense.call(
                c"cusolverDnXgetrf_bufferSize",
                (solver, parameters, rows, columns, T::TYPE, first, rows, T::TYPE, device, host),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, info) = (a.item(index, size), info.item(index, 1));
        let ipiv = ipiv.wrapping_add(index * k);
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXgetrf",
                (
                    solver,
                    parameters,
                    rows,
                    columns,
                    T::TYPE,
                    a,
                    rows,
                    ipiv,
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

/// Loads what [`getrf`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_getrf<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "factor", "getrf"))?;
    gpu.load(kernel!("convert", "narrow"))?;
    gpu.prepare(&DENSE)
}

/// The permutation that a sequence of row swaps makes.
///
/// `pivots` is batch × k, the row swapped with row j in step j, counted from 0; others than 0, …,
/// p − 1 swap nothing. `permutation` is batch × p, p ≥ k: 0, …, p − 1 after the swaps. May be captured.
///
/// # Errors
/// Where p exceeds `i32`, or the device fails.
pub fn lu_pivots_to_permutation(
    gpu: &Gpu<'_>,
    batch: usize,
    k: usize,
    p: usize,
    pivots: Input<i32>,
    permutation: Output<i32>,
) -> Result<(), Error> {
    if batch == 0 || p == 0 {
        return Ok(());
    }
    let (batch_i64, k_i32): (i64, i32) = (narrow("batch", batch)?, narrow("k", k)?);
    let p_i32: i32 = narrow("p", p)?;
    let room = gpu.shared_memory(BLOCK)?;
    let (launch, in_shared) = permutation_plan(batch, p, gpu.limits()?, room);
    let (pivots, permutation) = (pivots.as_ptr(), permutation.as_ptr());
    // SAFETY: the parameters of both kernels; pivots and permutation have batch·k and batch·p elements.
    unsafe {
        match in_shared {
            None => gpu.launch(&launch, (pivots, permutation, batch_i64, k_i32, p_i32)),
            Some(shared) => {
                let shared = i32::from(shared);
                gpu.launch(&launch, (pivots, permutation, batch_i64, k_i32, p_i32, shared))
            }
        }
    }
}

/// Loads what [`lu_pivots_to_permutation`] launches.
///
/// # Errors
/// As there.
pub fn load_lu_pivots_to_permutation(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(WARP)?;
    gpu.load(BLOCK)
}

const WARP: Kernel = kernel!("lu_pivots", "lu_pivots_warp");
const BLOCK: Kernel = kernel!("lu_pivots", "lu_pivots_block");

/// A warp for each of many small permutations, else a block; and for a block, whether the permutation
/// fits into the `room` that it has in shared memory.
fn permutation_plan(batch: usize, p: usize, limits: Limits, room: usize) -> (Launch, Option<bool>) {
    /// Up to here a warp alone is quick, and four fit into a block's shared memory of every device.
    const WARP_ROWS: usize = 1024;
    /// Up to here a warp writes the permutation as fast as a block would.
    const TINY_ROWS: usize = 128;
    const WARPS: usize = 4;
    let bytes = size_of::<i32>() * p;
    if p <= TINY_ROWS || p <= WARP_ROWS && batch >= 2 * limits.processors {
        let warps = WARPS.min(batch);
        let launch = Launch {
            kernel: WARP,
            grid: blocks(batch.div_ceil(warps), limits),
            block: [32, u32::try_from(warps).unwrap_or(1), 1],
            shared: u32::try_from(bytes * warps).unwrap_or(u32::MAX),
        };
        return (launch, None);
    }
    let in_shared = bytes <= room;
    let launch = Launch {
        kernel: BLOCK,
        grid: blocks(batch, limits),
        block: [if p <= 256 { 64 } else { 256 }, 1, 1],
        shared: if in_shared { u32::try_from(bytes).unwrap_or(u32::MAX) } else { 0 },
    };
    (launch, Some(in_shared))
}
