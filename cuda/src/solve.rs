//! LU factorisation with partial pivoting of row-major matrices, and what it is for: A = P·L·U, A·X = B,
//! A⁻¹, det A. One launch each, without scratch: all may be captured.

use std::ptr::{null, null_mut};

use lapax_core::Trans;

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::Gpu;
use crate::memory::{InOut, Input, Output};
use crate::rows::{self, Kernels, kernels};

/// The parameters of `kernels/lu.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T: lapax_core::Scalar> {
    a: *const T,
    b: *const T,
    x: *mut T,
    pivots: *mut i32,
    permutation: *mut i32,
    sign: *mut T,
    logabs: *mut T::Real,
    batch: i64,
    nrhs: i64,
    m: i32,
    n: i32,
    task: i32,
    op: i32,
    columns: i32,
    pieces: i32,
}

/// As the kernels count them.
#[derive(Clone, Copy)]
enum Task {
    Factor,
    Determinant,
    Solve,
    Inverse,
    Substitute,
}

impl<T: Scalar> Call<T> {
    fn new(task: Task, a: *const T) -> Self {
        Self {
            a,
            b: null(),
            x: null_mut(),
            pivots: null_mut(),
            permutation: null_mut(),
            sign: null_mut(),
            logabs: null_mut(),
            batch: 0,
            nrhs: 0,
            m: 0,
            n: 0,
            task: match task {
                Task::Factor => 0,
                Task::Determinant => 1,
                Task::Solve => 2,
                Task::Inverse => 3,
                Task::Substitute => 4,
            },
            op: 0,
            columns: 0,
            pieces: 1,
        }
    }

    /// # Safety
    /// The operands that the task takes have the sizes of `kernels/lu.cu`.
    unsafe fn launch(
        mut self,
        gpu: &Gpu<'_>,
        batch: usize,
        (m, n): (usize, usize),
        nrhs: usize,
    ) -> Result<(), Error> {
        let plan = rows::plan::<T>(gpu, batch, (m, n), nrhs, lu_kernels::<T>())?;
        self.batch = narrow("batch", batch)?;
        self.nrhs = narrow("nrhs", nrhs)?;
        (self.m, self.n) = (narrow("m", m)?, narrow("n", n)?);
        (self.columns, self.pieces) = (plan.columns, plan.pieces);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { gpu.launch(&plan.launch, (self,)) }
    }
}

fn lu_kernels<T: Scalar>() -> Kernels {
    kernels!(T, "lu", "lu")
}

/// Loads what everything here launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    rows::load::<T>(gpu, lu_kernels::<T>())
}

/// Factors each m × n matrix of a batch as A = P·L·U, with partial pivoting.
///
/// `a` becomes the packed factors; `pivots` has min(m, n) rows, counted from 0, each swapped with its own;
/// row i of P⁻¹·A is row `permutation[i]` of A, of m.
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn lu<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<T>,
    pivots: Output<i32>,
    permutation: Output<i32>,
) -> Result<(), Error> {
    if m == 0 {
        return Ok(());
    }
    let call = Call {
        x: a.dst.as_ptr(),
        pivots: pivots.as_ptr(),
        permutation: permutation.as_ptr(),
        ..Call::new(Task::Factor, a.source().as_ptr())
    };
    // SAFETY: batch·m·n elements in a and x, batch·min(m, n) pivots, batch·m rows.
    unsafe { call.launch(gpu, batch, (m, n), 0) }
}

/// Sign and logarithm of the absolute value of each determinant, det(A) = sign·exp(logabs).
///
/// Of a singular matrix the sign is 0 and the logarithm −inf; of one with NaN the logarithm is NaN.
///
/// # Errors
/// As [`lu`].
pub fn slogdet<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    a: Input<T>,
    sign: Output<T>,
    logabs: Output<<T as lapax_core::Scalar>::Real>,
) -> Result<(), Error> {
    let (sign, logabs) = (sign.as_ptr(), logabs.as_ptr());
    let call = Call { sign, logabs, ..Call::new(Task::Determinant, a.as_ptr()) };
    // SAFETY: batch·n·n elements in a, batch results of each kind.
    unsafe { call.launch(gpu, batch, (n, n), 0) }
}

/// Solves A·X = B for each n × n matrix and its nrhs right-hand sides, by LU factorisation.
///
/// A zero on the diagonal of U is no error: its quotients are inf or NaN.
///
/// # Errors
/// As [`lu`].
pub fn solve<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    nrhs: usize,
    (a, b): (Input<T>, Input<T>),
    x: Output<T>,
) -> Result<(), Error> {
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let call = Call { b: b.as_ptr(), x: x.as_ptr(), ..Call::new(Task::Solve, a.as_ptr()) };
    // SAFETY: batch·n·n elements in a, batch·n·nrhs in b and x.
    unsafe { call.launch(gpu, batch, (n, n), nrhs) }
}

/// The inverse of each n × n matrix, A·X = I: of a singular one it has inf and NaN.
///
/// # Errors
/// As [`lu`].
pub fn inv<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    n: usize,
    a: Input<T>,
    x: Output<T>,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let call = Call { x: x.as_ptr(), ..Call::new(Task::Inverse, a.as_ptr()) };
    // SAFETY: batch·n·n elements in a and x.
    unsafe { call.launch(gpu, batch, (n, n), n) }
}

/// Solves op(A)·X = B with the factors and the permutation that [`lu`] gives.
///
/// X has NaN where `permutation` names no row, or does not name one.
///
/// # Errors
/// As [`lu`].
pub fn lu_solve<T: Scalar>(
    gpu: &Gpu<'_>,
    trans: Trans,
    batch: usize,
    (n, nrhs): (usize, usize),
    (factors, permutation): (Input<T>, Input<i32>),
    b: Input<T>,
    x: Output<T>,
) -> Result<(), Error> {
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let call = Call {
        b: b.as_ptr(),
        x: x.as_ptr(),
        // The task only reads it.
        permutation: permutation.as_ptr().cast_mut(),
        op: match trans {
            Trans::None => 0,
            Trans::Transpose => 1,
            Trans::ConjTranspose => 2,
        },
        ..Call::new(Task::Substitute, factors.as_ptr())
    };
    // SAFETY: batch·n·n elements in the factors, batch·n rows, batch·n·nrhs elements in b and x.
    unsafe { call.launch(gpu, batch, (n, n), nrhs) }
}
