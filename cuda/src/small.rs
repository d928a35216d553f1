//! When a batch of small matrices goes to an own kernel, a block for each, and how that is launched.

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::error::{Error, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::module::Kernel;

/// Threads for each column of a matrix, of which a warp works on several at a time. On an H200 in f32
/// 1000 Cholesky factors of order 32 take 57, 39, 34, 41 and 62 µs with 32, 64, 128, 256 and 512 threads,
/// 256 of order 64 131, 80, 54, 42 and 42, 64 of order 128 404, 223, 139, 92 and 79; LU likewise.
pub(crate) const THREADS_OF_A_COLUMN: usize = 4;
/// The same where a warp works on one column at a time: 235, 149, 108, 104 and 137 µs for QR of 49 × 32,
/// 965, 526, 313, 208 and 164 for 97 × 64.
pub(crate) const THREADS_OF_A_VECTOR: usize = 8;

/// The launch of an op for matrices of m × n, each in its block's shared memory; None where they do not fit,
/// or the table of choices has smaller ones.
pub(crate) fn plan<T: Scalar>(
    gpu: &Gpu<'_>,
    op: &str,
    batch: usize,
    (m, n): (usize, usize),
    threads_of_each: usize,
    kernel: Kernel,
) -> Result<Option<Launch>, Error> {
    if m.max(n) > largest::<T>(gpu, op, Count::of(batch))? {
        return Ok(None);
    }
    // As the kernels have it: an odd number of rows.
    shared::<T>(gpu, batch, (m | 1, n), n.saturating_mul(threads_of_each), kernel)
}

/// The launch with rows × columns elements of shared memory for each block; None where they do not fit.
/// `threads` is how many a block can use.
pub(crate) fn shared<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (rows, columns): (usize, usize),
    threads: usize,
    kernel: Kernel,
) -> Result<Option<Launch>, Error> {
    /// As the kernels are built.
    const THREADS: usize = 512;
    let bytes = rows.saturating_mul(columns).saturating_mul(size_of::<T>());
    if bytes > gpu.shared_memory(kernel)? {
        return Ok(None);
    }
    let threads = threads.next_multiple_of(32).clamp(32, THREADS);
    Ok(Some(Launch {
        kernel,
        grid: blocks(batch, gpu.limits()?),
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", bytes)?,
    }))
}
