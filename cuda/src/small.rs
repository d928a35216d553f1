//! When a batch of small matrices goes to an own kernel, a block for each, and how that is launched.

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::module::Kernel;

/// The launch for matrices of m × n, each in its block's shared memory; None where they do not fit, or
/// where there is but one and it is not small: one block cannot keep a GPU busy.
pub(crate) fn plan<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    n: usize,
    kernel: Kernel,
) -> Result<Option<Launch>, Error> {
    /// The order up to which a matrix alone goes to one block. Not measured on a GPU yet.
    const ALONE: usize = 32;
    if batch < 2 && m.max(n) > ALONE {
        return Ok(None);
    }
    // As the kernels have it: an odd number of rows.
    shared::<T>(gpu, batch, m | 1, n, m.saturating_mul(n), kernel)
}

/// The launch with rows × columns elements of shared memory for each block; None where they do not fit.
/// `work` is how many elements a step works on at most.
pub(crate) fn shared<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    rows: usize,
    columns: usize,
    work: usize,
    kernel: Kernel,
) -> Result<Option<Launch>, Error> {
    /// Threads for each of so many elements: a thread that works on few only waits at barriers.
    const ELEMENTS_PER_THREAD: usize = 4;
    const THREADS: usize = 256;
    let limits = gpu.limits()?;
    let bytes = rows.saturating_mul(columns).saturating_mul(size_of::<T>());
    if bytes > limits.shared_memory {
        return Ok(None);
    }
    let threads = (work / ELEMENTS_PER_THREAD).next_multiple_of(32).clamp(32, THREADS);
    Ok(Some(Launch {
        kernel,
        grid: blocks(batch, limits),
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", bytes)?,
    }))
}
