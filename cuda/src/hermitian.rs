//! Eigenvalues and eigenvectors of row-major Hermitian matrices, and Hermitian parts: one launch each,
//! without scratch, so that all may be captured.

use std::ops::Range;
use std::ptr::null_mut;

use lapax_core::Uplo;

use crate::Scalar;
use crate::definite::Given;
use crate::error::{Error, Kind, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{InOut, Input, Output};
use crate::module::{Kernel, kernel};

/// The parameters of `kernels/eigh.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T: lapax_core::Scalar> {
    a: *const T,
    v: *mut T,
    w: *mut T::Real,
    batch: i64,
    n: i32,
    start: i32,
    count: i32,
    group: i32,
    upper: i32,
    mean: i32,
    bytes: i32,
}

fn warp<T: Scalar>() -> Kernel {
    kernel!(T, "eigh", "eigh_warp")
}

fn block<T: Scalar>() -> Kernel {
    kernel!(T, "eigh", "eigh_block")
}

/// Loads what [`eigh`], [`eigh_subset`] and [`eigvalsh`] launch.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(warp::<T>())?;
    gpu.load(block::<T>())
}

/// Decomposes each n × n Hermitian matrix of a batch, A = V·diag(w)·Vᴴ.
///
/// `v` holds the eigenvectors as columns, with the phases of lapax's `eigh` on the CPU, and `w` the
/// eigenvalues, ascending. Both are NaN where what is read of A is not finite.
///
/// # Errors
/// Where a matrix and its vectors do not fit into a block's shared memory, or the device fails.
pub fn eigh<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    batch: usize,
    n: usize,
    v: InOut<T>,
    w: Output<T::Real>,
) -> Result<(), Error> {
    rotate(gpu, given, (batch, n), 0..n, v.source(), Some(v.dst), w)
}

/// Some of the eigenvalues of each n × n Hermitian matrix of a batch, and their eigenvectors: of what
/// [`eigh`] finds those at the places `part`, k of them. `v` is n × k.
///
/// # Errors
/// As [`eigh`], and where the places are not among the n.
#[allow(clippy::too_many_arguments, reason = "those of eigh, and the part")]
pub fn eigh_subset<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    batch: usize,
    n: usize,
    part: Range<usize>,
    a: Input<T>,
    v: Output<T>,
    w: Output<T::Real>,
) -> Result<(), Error> {
    if part.start > part.end || part.end > n {
        let text = format!("expected places among {n} eigenvalues, got {part:?}");
        return Err(Error::new(Kind::InvalidArgument, text));
    }
    rotate(gpu, given, (batch, n), part, a, Some(v), w)
}

/// The eigenvalues of each n × n Hermitian matrix of a batch, ascending: those of [`eigh`].
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn eigvalsh<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    batch: usize,
    n: usize,
    a: Input<T>,
    w: Output<T::Real>,
) -> Result<(), Error> {
    rotate(gpu, given, (batch, n), 0..n, a, None, w)
}

fn rotate<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    (batch, n): (usize, usize),
    part: Range<usize>,
    a: Input<T>,
    v: Option<Output<T>>,
    w: Output<T::Real>,
) -> Result<(), Error> {
    if batch == 0 || part.is_empty() {
        return Ok(());
    }
    let Plan { launch, group, bytes } = plan::<T>(gpu, batch, n, v.is_some())?;
    let call = Call {
        a: a.as_ptr(),
        v: v.map_or(null_mut(), Output::as_ptr),
        w: w.as_ptr(),
        batch: narrow("batch", batch)?,
        n: narrow("n", n)?,
        start: narrow("start", part.start)?,
        count: narrow("k", part.len())?,
        group: narrow("group", group)?,
        upper: i32::from(given.uplo == Uplo::Upper),
        mean: i32::from(given.mean),
        bytes: narrow("shared memory", bytes)?,
    };
    // SAFETY: the kernel's parameter; batch·n² elements in a, batch·n·k in v, batch·k in w.
    unsafe { gpu.launch(&launch, (call,)) }
}

/// A launch, among how many threads a matrix is shared out, and its bytes of shared memory.
struct Plan {
    launch: Launch,
    group: usize,
    bytes: usize,
}

fn plan<T: Scalar>(gpu: &Gpu<'_>, batch: usize, n: usize, vectors: bool) -> Result<Plan, Error> {
    /// The order up to which lanes of a warp have a matrix. By estimate, as the next: a round turns n·n/2
    /// pairs of elements of V between two barriers, which are to be worth these; and a warp would take more
    /// than four for each lane from order 17 on.
    const OF_A_WARP: usize = 16;
    const TURNS_OF_A_THREAD: usize = 4;
    const LANES: usize = 32;
    /// As the kernels are built.
    const WARPS: usize = 4;
    const THREADS: usize = 512;
    /// Lanes that have a matrix at the least: with fewer, loading it would take longer than its rotations.
    const LEAST: usize = 4;
    let small = n <= OF_A_WARP;
    let kernel = if small { warp::<T>() } else { block::<T>() };
    let (room, limits) = (gpu.shared_memory(kernel)?, gpu.limits()?);
    let Some(bytes) = shared_memory::<T>(n, vectors).filter(|bytes| *bytes <= room) else {
        let needed = shared_memory::<T>(n, vectors).map_or("more".to_owned(), |it| it.to_string());
        let beside = if vectors { " with its eigenvectors" } else { "" };
        let text = format!(
            "expected a matrix that fits into a block's shared memory{beside}, {room} bytes, got \
             {n} × {n}, which takes {needed}"
        );
        return Err(Error::new(Kind::InvalidArgument, text));
    };
    let turns = (n * n.div_ceil(2)).div_ceil(TURNS_OF_A_THREAD);
    let (matrices, group) = if small {
        let group = turns.max(n).next_power_of_two().clamp(LEAST, LANES);
        let of_a_warp = LANES / group;
        let fit = room / (of_a_warp * bytes);
        // As long as processors are idle, none has more than a warp.
        let wanted = batch.div_ceil(of_a_warp).div_ceil(limits.processors.max(1));
        (of_a_warp * wanted.min(fit).clamp(1, WARPS), group)
    } else {
        (1, turns.next_multiple_of(LANES).clamp(2 * LANES, THREADS))
    };
    let launch = Launch {
        kernel,
        grid: blocks(batch.div_ceil(matrices), limits),
        block: [narrow("threads", matrices * group)?, 1, 1],
        shared: narrow("shared memory", matrices * bytes)?,
    };
    Ok(Plan { launch, group, bytes })
}

/// What `Workspace` of the kernels takes, an odd number of 16 bytes so that matrices of a warp do not
/// collide in a bank.
fn shared_memory<T: Scalar>(n: usize, vectors: bool) -> Option<usize> {
    let pairs = n.div_ceil(2);
    let triangle = pairs.checked_mul(2 * pairs + 1)?;
    let of_vectors = if vectors { (n | 1).checked_mul(n)? } else { 0 };
    let elements = triangle.checked_add(of_vectors)?.checked_add(pairs)?;
    let numbers = pairs * size_of::<T::Real>() + (2 * pairs + 2 * n) * size_of::<i32>();
    let bytes = elements.checked_mul(size_of::<T>())?.checked_add(numbers)?;
    (bytes.div_ceil(16) | 1).checked_mul(16)
}

/// Loads what [`symmetrize`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load_symmetrize<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "symmetrize", "symmetrize"))
}

/// The Hermitian part of each n × n matrix of a batch, the mean of it and its adjoint.
///
/// # Errors
/// Where the device fails.
pub fn symmetrize<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    a: Input<T>,
    s: Output<T>,
) -> Result<(), Error> {
    /// As the kernel is built: the sides of a tile, and threads.
    const TILE: usize = 32;
    const THREADS: u32 = 256;
    let tiles = n.div_ceil(TILE);
    let launch = Launch {
        kernel: kernel!(T, "symmetrize", "symmetrize"),
        grid: blocks(product("tiles", &[batch, tiles, tiles])?, gpu.limits()?),
        block: [THREADS, 1, 1],
        shared: 0,
    };
    let (batch, n): (i64, i32) = (narrow("batch", batch)?, narrow("n", n)?);
    // SAFETY: the kernel's parameters; the operands have batch·n² elements.
    unsafe { gpu.launch(&launch, (a.as_ptr(), s.as_ptr(), batch, n)) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed")]
mod tests {
    use num_complex::Complex;

    use super::{Scalar, shared_memory};
    use crate::choices::for_gpu;

    /// Whether a block of every GPU holds a matrix of this order and none that is much larger: 64 KiB of
    /// compute capability 7.5, of which the kernel itself has less than half a KiB.
    fn is_largest<T: Scalar>(n: usize) -> bool {
        const ROOM: usize = (64 << 10) - 512;
        let fits = |n| shared_memory::<T>(n, true).is_some_and(|bytes| bytes <= ROOM);
        fits(n) && !fits(n + 3)
    }

    #[test]
    fn orders_of_the_table_of_choices_are_the_largest_of_every_gpu() {
        let table = for_gpu(None).unwrap();
        let order = |dtype: &str| {
            let order = table["eigh"]["batches"][dtype].as_u64();
            order.and_then(|order| usize::try_from(order).ok()).unwrap_or(0)
        };
        assert!(is_largest::<f32>(order("f32")));
        assert!(is_largest::<f64>(order("f64")));
        assert!(is_largest::<Complex<f32>>(order("c64")));
        assert!(is_largest::<Complex<f64>>(order("c128")));
    }
}
