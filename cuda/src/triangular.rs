//! Triangular systems of row-major matrices, op(A)·X = B or X·op(A) = B. One launch, without scratch: it
//! may be captured.

use lapax_core::{Diag, Side, Trans, Uplo};

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::Gpu;
use crate::memory::{InOut, Input};
use crate::rows::{self, Kernels, kernels};

/// The parameters of `kernels/triangular.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T> {
    a: *const T,
    b: *const T,
    x: *mut T,
    batch: i64,
    count: i64,
    down: i64,
    across: i64,
    n: i32,
    turned: i32,
    conjugated: i32,
    lower: i32,
    unit: i32,
    columns: i32,
    pieces: i32,
}

/// What the system is.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The side of A.
    pub side: Side,
    /// The triangle of A, of which alone is read.
    pub uplo: Uplo,
    /// op.
    pub trans: Trans,
    /// Whether A's diagonal is taken as ones, and not read.
    pub diag: Diag,
}

fn triangular_kernels<T: Scalar>() -> Kernels {
    kernels!(T, "triangular", "triangular")
}

/// Loads what [`triangular_solve`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    rows::load::<T>(gpu, triangular_kernels::<T>())
}

/// Solves op(A)·X = B or X·op(A) = B for each matrix of a batch; X is m × n, in `x`, which has B first.
///
/// A zero on the diagonal is no error: its quotients are inf or NaN.
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn triangular_solve<T: Scalar>(
    gpu: &Gpu<'_>,
    system: System,
    batch: usize,
    (m, n): (usize, usize),
    a: Input<T>,
    x: InOut<T>,
) -> Result<(), Error> {
    if m == 0 || n == 0 {
        return Ok(());
    }
    // X·op(A) = B has the rows of X and B for its columns: op(A)ᵀ·Xᵀ = Bᵀ.
    let left = system.side == Side::Left;
    let (order, count, down, across) = if left { (m, n, n, 1) } else { (n, m, 1, n) };
    let turned = (system.trans != Trans::None) == left;
    let plan = rows::plan::<T>(gpu, batch, (order, order), count, triangular_kernels::<T>())?;
    let call = Call {
        a: a.as_ptr(),
        b: x.source().as_ptr(),
        x: x.dst.as_ptr(),
        batch: narrow("batch", batch)?,
        count: narrow("count", count)?,
        down: narrow("n", down)?,
        across: narrow("n", across)?,
        n: narrow("order", order)?,
        turned: i32::from(turned),
        conjugated: i32::from(system.trans == Trans::ConjTranspose),
        lower: i32::from((system.uplo == Uplo::Lower) != turned),
        unit: i32::from(system.diag == Diag::Unit),
        columns: plan.columns,
        pieces: plan.pieces,
    };
    // SAFETY: the kernel's parameter; a has batch matrices of that order, b and x batch·m·n elements.
    unsafe { gpu.launch(&plan.launch, (call,)) }
}
