//! Cholesky factorisation of row-major Hermitian positive definite matrices, A = L·Lᴴ or Uᴴ·U, and A·X = B
//! by it. One launch each, without scratch: all may be captured.

use std::ptr::{null, null_mut};

use lapax_core::Uplo;

use crate::Scalar;
use crate::error::{Error, narrow};
use crate::gpu::Gpu;
use crate::memory::{InOut, Input, Output};
use crate::rows::{self, Kernels, kernels};

/// Which part of the operand is A: the triangle that is read, or the mean of it and its adjoint.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// The triangle, and which factor is kept.
    pub uplo: Uplo,
    /// Whether A is the mean.
    pub mean: bool,
}

/// The parameters of `kernels/cholesky.cu`'s kernels, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T: lapax_core::Scalar> {
    a: *const T,
    b: *const T,
    x: *mut T,
    factor: *mut T,
    logdet: *mut T::Real,
    batch: i64,
    nrhs: i64,
    n: i32,
    task: i32,
    upper: i32,
    mean: i32,
    columns: i32,
    pieces: i32,
}

/// As the kernels count them.
#[derive(Clone, Copy)]
enum Task {
    Factor,
    Solve,
    Keep,
    Substitute,
}

impl<T: Scalar> Call<T> {
    fn new(task: Task, given: Given, a: *const T) -> Self {
        Self {
            a,
            b: null(),
            x: null_mut(),
            factor: null_mut(),
            logdet: null_mut(),
            batch: 0,
            nrhs: 0,
            n: 0,
            task: match task {
                Task::Factor => 0,
                Task::Solve => 1,
                Task::Keep => 2,
                Task::Substitute => 3,
            },
            upper: i32::from(given.uplo == Uplo::Upper),
            mean: i32::from(given.mean),
            columns: 0,
            pieces: 1,
        }
    }

    /// # Safety
    /// The operands that the task takes have the sizes of `kernels/cholesky.cu`.
    unsafe fn launch(
        mut self,
        gpu: &Gpu<'_>,
        batch: usize,
        n: usize,
        nrhs: usize,
    ) -> Result<(), Error> {
        let kernels = cholesky_kernels::<T>();
        let plan = rows::plan::<T>(gpu, batch, (n, n), nrhs, kernels)?;
        self.batch = narrow("batch", batch)?;
        self.nrhs = narrow("nrhs", nrhs)?;
        self.n = narrow("n", n)?;
        (self.columns, self.pieces) = (plan.columns, plan.pieces);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { gpu.launch(&plan.launch, (self,)) }
    }
}

fn cholesky_kernels<T: Scalar>() -> Kernels {
    kernels!(T, "cholesky", "cholesky")
}

/// Loads what everything here launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    rows::load::<T>(gpu, cholesky_kernels::<T>())
}

/// Factors each n × n matrix of a batch as A = L·Lᴴ.
///
/// The lower triangle is read, or with `mean` both. `a` becomes L, zero above the diagonal, and NaN in the
/// rest where A is not positive definite, which includes that it has NaN.
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn cholesky<T: Scalar>(
    gpu: &Gpu<'_>,
    mean: bool,
    batch: usize,
    n: usize,
    a: InOut<T>,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let given = Given { uplo: Uplo::Lower, mean };
    let call =
        Call { factor: a.dst.as_ptr(), ..Call::new(Task::Factor, given, a.source().as_ptr()) };
    // SAFETY: batch·n·n elements in a and the factor.
    unsafe { call.launch(gpu, batch, n, 0) }
}

/// Solves A·X = B for each n × n matrix and its nrhs right-hand sides.
///
/// X is NaN where A is not positive definite.
///
/// # Errors
/// As [`cholesky`].
pub fn posv<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    (a, b): (Input<T>, Input<T>),
    x: Output<T>,
) -> Result<(), Error> {
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let call = Call { b: b.as_ptr(), x: x.as_ptr(), ..Call::new(Task::Solve, given, a.as_ptr()) };
    // SAFETY: batch·n·n elements in a, batch·n·nrhs in b and x.
    unsafe { call.launch(gpu, batch, n, nrhs) }
}

/// As [`posv`], with the factor that `given` names, zero in its other triangle, and ln det A.
///
/// # Errors
/// As [`cholesky`].
pub fn posv_factor<T: Scalar>(
    gpu: &Gpu<'_>,
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    (a, b): (Input<T>, Input<T>),
    x: Output<T>,
    (factor, logdet): (Output<T>, Output<<T as lapax_core::Scalar>::Real>),
) -> Result<(), Error> {
    // Of equations that are none there is nothing to solve.
    let nrhs = if n == 0 { 0 } else { nrhs };
    let call = Call {
        b: b.as_ptr(),
        x: x.as_ptr(),
        factor: factor.as_ptr(),
        logdet: logdet.as_ptr(),
        ..Call::new(Task::Keep, given, a.as_ptr())
    };
    // SAFETY: batch·n·n elements in a and the factor, batch·n·nrhs in b and x, batch logarithms.
    unsafe { call.launch(gpu, batch, n, nrhs) }
}

/// Solves A·X = B with the factor L of A = L·Lᴴ, or U of A = Uᴴ·U.
///
/// A zero on its diagonal is no error: its quotients are inf or NaN.
///
/// # Errors
/// As [`cholesky`].
pub fn cho_solve<T: Scalar>(
    gpu: &Gpu<'_>,
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    (factor, b): (Input<T>, Input<T>),
    x: Output<T>,
) -> Result<(), Error> {
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let given = Given { uplo, mean: false };
    let call = Call {
        b: b.as_ptr(),
        x: x.as_ptr(),
        ..Call::new(Task::Substitute, given, factor.as_ptr())
    };
    // SAFETY: batch·n·n elements in the factor, batch·n·nrhs in b and x.
    unsafe { call.launch(gpu, batch, n, nrhs) }
}
