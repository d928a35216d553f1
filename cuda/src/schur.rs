//! Hessenberg and Schur forms and eigenvectors of small row-major matrices without symmetry, in one launch,
//! without scratch.

use std::ptr::null_mut;

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{InOut, Input, Output};
use crate::module::{Kernel, kernel};

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A = Q·H·Qᴴ with H zero below its first subdiagonal.
    Hessenberg,
    /// A = Z·T·Zᴴ with T triangular, or for real matrices quasi-triangular.
    Schur,
}

/// The parameters of `kernels/schur.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T> {
    a: *const T,
    t: *mut T,
    z: *mut T,
    batch: i64,
    n: i32,
    task: i32,
}

/// The parameters of `kernels/eig.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct EigCall<T: Scalar> {
    a: *const T,
    w: *mut T::Complex,
    v: *mut T::Complex,
    batch: i64,
    n: i32,
}

fn kernel<T: Scalar>() -> Kernel {
    kernel!(T, "schur", "schur")
}

fn eig_kernel<T: Scalar>() -> Kernel {
    kernel!(T, "eig", "eig")
}

/// Loads what [`decompose`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel::<T>())
}

/// Brings each n × n matrix of a batch to a form, which takes its place, with the vectors in `z`. Returns
/// whether a warp can have such a matrix; where it cannot, nothing was queued.
///
/// Columns of a Schur form's Z have the phases of the CPU's. T and Z are NaN where a matrix is not finite or
/// does not converge; H and Q where it is not finite, but for what is zero below H's subdiagonal and for the
/// first row and column of Q, which are the identity's.
///
/// # Errors
/// Where the device fails.
pub fn decompose<T: Scalar>(
    gpu: &Gpu<'_>,
    form: Form,
    batch: usize,
    n: usize,
    t: InOut<T>,
    z: Output<T>,
) -> Result<bool, Error> {
    if batch == 0 || n == 0 {
        return Ok(true);
    }
    // As `SchurCall::count` of schur.cu.
    let bytes = |n: usize| (2 * (n | 1) + 1) * n * size_of::<T>();
    let Some(launch) = plan(gpu, batch, n, kernel::<T>(), bytes)? else { return Ok(false) };
    let call = Call {
        a: t.source().as_ptr(),
        t: t.dst.as_ptr(),
        z: z.as_ptr(),
        batch: narrow("batch", batch)?,
        n: narrow("n", n)?,
        // As `Task` of schur.cu.
        task: match form {
            Form::Hessenberg => 0,
            Form::Schur => 1,
        },
    };
    // SAFETY: the kernel's parameter; batch·n² elements in each operand.
    unsafe { gpu.launch(&launch, (call,)) }?;
    Ok(true)
}

/// Loads what [`eig`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load_eig<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(eig_kernel::<T>())
}

/// The eigenvalues of each n × n matrix of a batch, and its right eigenvectors, A·V = V·diag(w), where there is
/// a `v`. Returns whether a warp can have such a matrix; where it cannot, nothing was queued.
///
/// Of a real matrix a conjugate pair is adjacent, the one with positive imaginary part first. Vectors have
/// 2-norm one and the CPU's phases. `w` and `v` are NaN where a matrix is not finite or does not converge.
///
/// # Errors
/// Where the device fails.
pub fn eig<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    a: Input<T>,
    w: Output<T::Complex>,
    v: Option<Output<T::Complex>>,
) -> Result<bool, Error> {
    if batch == 0 || n == 0 {
        return Ok(true);
    }
    // As `EigCall::bytes` of eig.cu.
    let bytes = |n: usize| {
        let of_vectors = if v.is_some() { size_of::<T>() + size_of::<T::Complex>() } else { 0 };
        let elements = (n | 1) * n * (size_of::<T>() + of_vectors);
        (elements + n * size_of::<T::Real>()).next_multiple_of(16)
    };
    let Some(launch) = plan(gpu, batch, n, eig_kernel::<T>(), bytes)? else { return Ok(false) };
    let call = EigCall {
        a: a.as_ptr(),
        w: w.as_ptr(),
        v: v.map_or(null_mut(), Output::as_ptr),
        batch: narrow("batch", batch)?,
        n: narrow("n", n)?,
    };
    // SAFETY: the kernel's parameter; batch·n² elements in a and v, batch·n in w.
    unsafe { gpu.launch(&launch, (call,)) }?;
    Ok(true)
}

/// A warp for each matrix, which takes so many bytes of an order; None where one has no room for it.
fn plan(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    kernel: Kernel,
    bytes: impl Fn(usize) -> usize,
) -> Result<Option<Launch>, Error> {
    /// Lanes of a warp.
    const LANES: usize = 32;
    /// As the kernel is built.
    const WARPS: usize = 4;
    /// The order up to which a warp has a matrix. An iteration passes over two rows or columns for each lane
    /// there; and of an order twice as large one takes eight times as long, while the host's cores, which are
    /// more to a matrix, wait. By estimate: no GPU has run it.
    const ORDER: usize = 64;
    let (bytes, room) = (bytes(n.min(ORDER)), gpu.shared_memory(kernel)?);
    if n > ORDER || bytes > room {
        return Ok(None);
    }
    // A block of one warp where matrices are large: of more, fewer warps would fit on a processor.
    let warps = if n > LANES { 1 } else { (room / bytes).clamp(1, WARPS).min(batch) };
    Ok(Some(Launch {
        kernel,
        grid: blocks(batch.div_ceil(warps), gpu.limits()?),
        block: [narrow("threads", warps * LANES)?, 1, 1],
        shared: narrow("shared memory", warps * bytes)?,
    }))
}
