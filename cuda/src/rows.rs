//! How batches of small row-major matrices are shared out: by their order, to a thread each, to lanes of a
//! warp, or to a block each. What no block's shared memory holds has no kernel here.
//!
//! The launches are the same for the same sizes, and there is no scratch: all may be captured.

use crate::Scalar;
use crate::driver::Limits;
use crate::error::{Error, Kind, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::module::Kernel;

/// The kernels of one algorithm and type: for matrices of at most 4, 8, 16 and 32 rows and columns in
/// registers (`kernels/rows.cuh`), and for larger ones in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) registers: [Kernel; 4],
    pub(crate) block: Kernel,
}

/// `kernels!(T, "module", "name")`: those called `name_4` to `name_32` and `name_block`.
macro_rules! kernels {
    ($t:ty, $module:literal, $name:literal) => {
        crate::rows::Kernels {
            registers: [
                crate::module::kernel!($t, $module, $name, "_4"),
                crate::module::kernel!($t, $module, $name, "_8"),
                crate::module::kernel!($t, $module, $name, "_16"),
                crate::module::kernel!($t, $module, $name, "_32"),
            ],
            block: crate::module::kernel!($t, $module, $name, "_block"),
        }
    };
}
pub(crate) use kernels;

const ORDERS: [usize; 4] = [4, 8, 16, 32];

/// Right-hand sides that a block keeps beside its matrix: two for each warp, so that none waits for long.
const COLUMNS: usize = 32;

/// A launch; how many columns of right-hand sides a block keeps beside its matrix; and among how many
/// threads, groups of lanes or blocks those of a matrix are shared out.
pub(crate) struct Plan {
    pub(crate) launch: Launch,
    pub(crate) columns: i32,
    pub(crate) pieces: i32,
}

/// Loads all kernels that [`plan`] may choose.
pub(crate) fn load<T: Scalar>(gpu: &Gpu<'_>, kernels: Kernels) -> Result<(), Error> {
    for (kernel, order) in kernels.registers.into_iter().zip(ORDERS) {
        if order <= largest_in_registers::<T>() {
            gpu.load(kernel)?;
        }
    }
    gpu.load(kernels.block)
}

/// The order up to which a matrix is in registers: a row of 32 of c128 takes half of what a thread has.
fn largest_in_registers<T>() -> usize {
    if size_of::<T>() > 8 { 16 } else { 32 }
}

/// The launch for matrices of m × n with `right` right-hand sides of n each.
///
/// # Errors
/// Where a matrix with one of them does not fit into a block's shared memory.
pub(crate) fn plan<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    right: usize,
    kernels: Kernels,
) -> Result<Plan, Error> {
    let order = m.max(n);
    if order <= largest_in_registers::<T>() {
        let place = ORDERS.iter().position(|largest| order <= *largest).unwrap_or(ORDERS.len() - 1);
        return in_registers::<T>(
            gpu,
            batch,
            (m, n),
            right,
            kernels.registers[place],
            ORDERS[place],
        );
    }
    in_a_block::<T>(gpu, batch, (m, n), right, kernels.block)
}

fn in_registers<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    right: usize,
    kernel: Kernel,
    largest: usize,
) -> Result<Plan, Error> {
    /// Lanes of a warp.
    const LANES: usize = 32;
    /// As the kernels are built.
    const WARPS: usize = 4;
    // As `Slots` of rows.cuh has it.
    let (groups, apart) = if largest == ORDERS[0] { (LANES, n) } else { (LANES / largest, n | 1) };
    let elements = WARPS * groups * ((m * apart) | 1);
    let limits = gpu.limits()?;
    let pieces = pieces(batch.div_ceil(WARPS * groups), right, limits);
    let launch = Launch {
        kernel,
        grid: blocks(batch.saturating_mul(pieces).div_ceil(WARPS * groups), limits),
        block: [narrow("threads", WARPS * LANES)?, 1, 1],
        shared: narrow("shared memory", elements * size_of::<T>())?,
    };
    Ok(Plan { launch, columns: 0, pieces: narrow("pieces", pieces)? })
}

/// Among how many the right-hand sides of a matrix are shared out, each of which factors it for itself: as
/// long as the GPU is not full, and each has enough of them to be worth the factorisation.
fn pieces(blocks: usize, right: usize, limits: Limits) -> usize {
    let idle = limits.processors.div_ceil(blocks.max(1));
    right.div_ceil(COLUMNS).clamp(1, idle.max(1))
}

fn in_a_block<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    right: usize,
    kernel: Kernel,
) -> Result<Plan, Error> {
    /// Threads for each column of a matrix, as `small.rs` has measured for the same factorisations.
    const THREADS_OF_A_COLUMN: usize = crate::small::THREADS_OF_A_COLUMN;
    /// As the kernels are built.
    const THREADS: usize = 512;
    let room = gpu.shared_memory(kernel)?;
    // As the kernels have it: an odd number of rows, right-hand sides, and an integer for each row.
    let bytes = |columns: usize| {
        let elements = (m | 1).checked_mul(n)?.checked_add(columns.checked_mul(n)?)?;
        elements.checked_mul(size_of::<T>())?.checked_add(m.checked_mul(size_of::<i32>())?)
    };
    let fits = |columns: usize| bytes(columns).is_some_and(|bytes| bytes <= room);
    let least = right.min(1);
    let Some(columns) = (least..=right.min(COLUMNS)).rev().find(|columns| fits(*columns)) else {
        let needed = bytes(least).map_or("more".to_owned(), |bytes| bytes.to_string());
        let text = format!(
            "expected a matrix that fits into a block's shared memory, {room} bytes, got {m} × {n}, \
             which takes {needed}"
        );
        return Err(Error::new(Kind::InvalidArgument, text));
    };
    let threads = n.saturating_mul(THREADS_OF_A_COLUMN).next_multiple_of(32).clamp(32, THREADS);
    let limits = gpu.limits()?;
    let pieces = pieces(batch, right, limits);
    let launch = Launch {
        kernel,
        grid: blocks(batch.saturating_mul(pieces), limits),
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", bytes(columns).unwrap_or(0))?,
    };
    let (columns, pieces) = (narrow("columns", columns)?, narrow("pieces", pieces)?);
    Ok(Plan { launch, columns, pieces })
}
