//! QR factorisation of row-major matrices, Q and R in one launch, without scratch: it may be captured.

use std::ptr::null_mut;

use crate::Scalar;
use crate::error::{Error, Kind, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{Input, Output};
use crate::module::{Kernel, kernel};
use crate::small::THREADS_OF_A_VECTOR;

/// The parameters of `kernels/qr.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T> {
    a: *const T,
    q: *mut T,
    r: *mut T,
    batch: i64,
    m: i32,
    n: i32,
    c: i32,
}

fn warp<T: Scalar>() -> Kernel {
    kernel!(T, "qr", "qr_warp")
}

fn block<T: Scalar>() -> Kernel {
    kernel!(T, "qr", "qr_block")
}

/// Loads what [`qr`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(warp::<T>())?;
    gpu.load(block::<T>())
}

/// Factors each m × n matrix of a batch as A = Q·R, with c = min(m, n) or m columns of Q and rows of R.
///
/// R is zero below its diagonal, which is real. Without `q` it alone is computed.
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn qr<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: Input<T>,
    q: Option<Output<T>>,
    r: Output<T>,
) -> Result<(), Error> {
    if batch == 0 || c == 0 {
        return Ok(());
    }
    let launch = plan::<T>(gpu, batch, (m, n, c))?;
    let call = Call {
        a: a.as_ptr(),
        q: q.map_or(null_mut(), Output::as_ptr),
        r: r.as_ptr(),
        batch: narrow("batch", batch)?,
        m: narrow("m", m)?,
        n: narrow("n", n)?,
        c: narrow("c", c)?,
    };
    // SAFETY: the kernel's parameter; batch·m·n elements in a, batch·m·c in q, batch·c·n in r.
    unsafe { gpu.launch(&launch, (call,)) }
}

fn plan<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
) -> Result<Launch, Error> {
    /// Lanes of a warp, and the order up to which one has a row each.
    const LANES: usize = 32;
    /// As the kernels are built.
    const WARPS: usize = 4;
    const THREADS: usize = 512;
    // As `QrCall::count` of qr.cu.
    let count = (m | 1).checked_mul(n.max(c)).and_then(|all| all.checked_add(m.min(n)));
    let bytes = count.and_then(|count| count.checked_mul(size_of::<T>()));
    let small = m.max(n) <= LANES;
    let kernel = if small { warp::<T>() } else { block::<T>() };
    let room = gpu.shared_memory(kernel)?;
    let Some(bytes) = bytes.filter(|bytes| *bytes <= room) else {
        let needed = bytes.map_or("more".to_owned(), |bytes| bytes.to_string());
        let text = format!(
            "expected a matrix that fits into a block's shared memory, {room} bytes, got {m} × {n}, \
             which takes {needed}"
        );
        return Err(Error::new(Kind::InvalidArgument, text));
    };
    let (matrices, threads) = if small {
        let warps = (room / bytes.max(1)).clamp(1, WARPS).min(batch);
        (warps, warps * LANES)
    } else {
        let wanted = n.max(c).saturating_mul(THREADS_OF_A_VECTOR);
        (1, wanted.next_multiple_of(LANES).clamp(LANES, THREADS))
    };
    Ok(Launch {
        kernel,
        grid: blocks(batch.div_ceil(matrices), gpu.limits()?),
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", bytes * matrices)?,
    })
}
