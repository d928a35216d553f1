//! LU factorisation with partial pivoting, A = P·L·U, and its permutation.

use crate::driver::Limits;
use crate::error::{Error, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{Input, Output};
use crate::module::kernel;

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
    let (launch, in_shared) = permutation_plan(batch, p, gpu.limits()?);
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
    gpu.load(kernel!("lu_pivots", "lu_pivots_warp"))?;
    gpu.load(kernel!("lu_pivots", "lu_pivots_block"))
}

/// A warp for each of many small permutations, else a block; and for a block, whether the permutation
/// fits into its shared memory.
fn permutation_plan(batch: usize, p: usize, limits: Limits) -> (Launch, Option<bool>) {
    /// Up to here a warp alone is quick, and four fit into a block's shared memory of every device.
    const WARP_ROWS: usize = 1024;
    /// Up to here a warp writes the permutation as fast as a block would.
    const TINY_ROWS: usize = 128;
    const WARPS: usize = 4;
    let bytes = size_of::<i32>() * p;
    if p <= TINY_ROWS || p <= WARP_ROWS && batch >= 2 * limits.processors {
        let warps = WARPS.min(batch);
        let launch = Launch {
            kernel: kernel!("lu_pivots", "lu_pivots_warp"),
            grid: blocks(batch.div_ceil(warps), limits),
            block: [32, u32::try_from(warps).unwrap_or(1), 1],
            shared: u32::try_from(bytes * warps).unwrap_or(u32::MAX),
        };
        return (launch, None);
    }
    let in_shared = bytes <= limits.shared_memory;
    let launch = Launch {
        kernel: kernel!("lu_pivots", "lu_pivots_block"),
        grid: blocks(batch, limits),
        block: [if p <= 256 { 64 } else { 256 }, 1, 1],
        shared: if in_shared { u32::try_from(bytes).unwrap_or(u32::MAX) } else { 0 },
    };
    (launch, Some(in_shared))
}
