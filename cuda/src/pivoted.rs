//! QR factorisation with column pivoting, on the device.

use std::ffi::{CStr, c_int};

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::codes::{PLAIN, SCALARS_ON_HOST, of_type};
use crate::driver::Limits;
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::handle::{BLAS, Handle};
use crate::memory::{InOut, Output};
use crate::module::{Kernel, kernel};
use crate::small::{self, THREADS_OF_A_VECTOR};

/// Reflectors of a panel, as `kernels/pivoted.cu` has it.
const PANEL: usize = 32;

/// The parameters of that file's kernels for panels.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call<T: Scalar> {
    a: *mut T,
    jpvt: *mut i32,
    tau: *mut T,
    g: *mut T,
    products: *mut T,
    norms: *mut T::Real,
    fixed: *mut i32,
    batch: i64,
    m: i32,
    n: i32,
    first: i32,
    column: i32,
}

fn block<T: Scalar>() -> Kernel {
    kernel!(T, "pivoted", "geqp3_block")
}

/// What a large matrix takes: start, norms, and for each column pivot and columns.
fn steps<T: Scalar>() -> [Kernel; 4] {
    [
        kernel!(T, "pivoted", "geqp3_start"),
        kernel!(T, "pivoted", "geqp3_norms"),
        kernel!(T, "pivoted", "geqp3_pivot"),
        kernel!(T, "pivoted", "geqp3_columns"),
    ]
}

/// Whether the table of choices has matrices of this size on the device, and not on the host.
///
/// # Errors
/// As [`largest`].
pub fn chosen<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
) -> Result<bool, Error> {
    Ok(m.max(n) <= largest::<T>(gpu, "geqp3", Count::of(batch))?)
}

/// Factors each matrix of a batch as A·P = Q·R.
///
/// `a` is m × n and becomes R and the reflectors, as xGEQP3 leaves them; `tau` has min(m, n) elements. Columns
/// whose `jpvt` is not zero come first; it becomes the columns' numbers in A, from 1. Matrices that fit into a
/// block's shared memory are one launch; larger ones take two for each column, and cuBLAS for a product after
/// every 32. Nothing waits for the device.
///
/// # Errors
/// Where a size exceeds an int32, scratch or a library is not to be had, or the device fails.
pub fn geqp3<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<T>,
    jpvt: InOut<i32>,
    tau: Output<T>,
) -> Result<(), Error> {
    let (rows, columns): (i32, i32) = (narrow("m", m)?, narrow("n", n)?);
    let (a, jpvt) = (gpu.initialized(a)?, gpu.initialized(jpvt)?);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    // The matrix, and norms of its columns.
    let (room, threads) = (((m | 1).saturating_add(2), n), n.saturating_mul(THREADS_OF_A_VECTOR));
    if let Some(launch) = small::shared::<T>(gpu, batch, room, threads, block::<T>())? {
        let (a, jpvt, tau) = (a.as_ptr(), jpvt.as_ptr(), tau.as_ptr());
        let batch: i64 = narrow("batch", batch)?;
        // SAFETY: the kernel's parameters; the operands have batch times m·n, n and min(m, n) elements.
        return unsafe { gpu.launch(&launch, (a, jpvt, tau, batch, rows, columns)) };
    }
    let of_columns = product("scratch", &[batch, n])?;
    let g = gpu.scratch::<T>(product("scratch", &[of_columns, PANEL])?)?;
    let products = gpu.scratch::<T>(product("scratch", &[batch, PANEL])?)?;
    let norms = gpu.scratch::<T::Real>(product("scratch", &[of_columns, 2])?)?;
    let fixed = gpu.scratch::<i32>(batch)?;
    let mut call = Call {
        a: a.as_ptr(),
        jpvt: jpvt.as_ptr(),
        tau: tau.as_ptr(),
        g: g.as_ptr(),
        products: products.as_ptr(),
        norms: norms.as_ptr(),
        fixed: fixed.as_ptr(),
        batch: narrow("batch", batch)?,
        m: rows,
        n: columns,
        first: 0,
        column: 0,
    };
    let [start, norms, pivot, others] = steps::<T>();
    let plan = Plan::new(gpu, batch, m)?;
    let blas = gpu.handle(&BLAS)?;
    // SAFETY: the kernels' parameter; operands and scratch have the sizes of `kernels/pivoted.cu`.
    unsafe {
        gpu.launch(&plan.by_matrices(start), (call,))?;
        gpu.launch(&plan.by_columns(norms, of_columns), (call,))?;
        for first in (0..m.min(n)).step_by(PANEL) {
            let end = m.min(n).min(first + PANEL);
            call.first = narrow("a column", first)?;
            for column in first..end {
                call.column = narrow("a column", column)?;
                gpu.launch(&plan.by_matrices(pivot), (call,))?;
                gpu.launch(&plan.by_columns(others, batch * (n - column - 1)), (call,))?;
            }
            update(&blas, &call, (batch, m, n), first, end)?;
        }
    }
    Ok(())
}

/// How the kernels for panels are launched.
struct Plan {
    limits: Limits,
    batch: usize,
    /// Threads of a block that has a matrix.
    threads: u32,
}

impl Plan {
    /// For matrices of m rows.
    fn new(gpu: &Gpu<'_>, batch: usize, m: usize) -> Result<Self, Error> {
        /// As the kernels are built.
        const THREADS: usize = 512;
        let threads = narrow("threads", m.next_multiple_of(32).clamp(32, THREADS))?;
        Ok(Self { limits: gpu.limits()?, batch, threads })
    }

    /// A block for each matrix.
    fn by_matrices(&self, kernel: Kernel) -> Launch {
        let grid = blocks(self.batch, self.limits);
        Launch { kernel, grid, block: [self.threads, 1, 1], shared: 0 }
    }

    /// A warp for each of so many columns.
    fn by_columns(&self, kernel: Kernel, columns: usize) -> Launch {
        const WARPS: u32 = 8;
        let grid = blocks(columns.div_ceil(WARPS as usize), self.limits);
        Launch { kernel, grid, block: [32 * WARPS, 1, 1], shared: 0 }
    }
}

/// What a panel of reflectors makes of the rows and columns behind it.
///
/// # Safety
/// The call's matrices are on the device.
unsafe fn update<T: Scalar>(
    blas: &Handle,
    call: &Call<T>,
    (batch, m, n): (usize, usize, usize),
    first: usize,
    end: usize,
) -> Result<(), Error> {
    const FUNCTIONS: [&CStr; 4] =
        [c"cublasSgemm_v2_64", c"cublasDgemm_v2_64", c"cublasCgemm_v2_64", c"cublasZgemm_v2_64"];
    if m == end || n == end {
        return Ok(());
    }
    let size = |what, value| narrow::<i64>(what, value);
    let (rows, columns, inner) =
        (size("m", m - end)?, size("n", n - end)?, size("k", end - first)?);
    let (ld, panel) = (size("m", m)?, size("a panel", PANEL)?);
    let (minus_one, one) = (-T::ONE, T::ONE);
    let raw = blas.raw();
    // SAFETY: the functions' arguments; the caller's promise.
    unsafe {
        blas.call(c"cublasSetPointerMode_v2", (raw, SCALARS_ON_HOST))?;
        for index in 0..batch {
            let a = call.a.wrapping_add(index * m * n);
            let reflectors = a.wrapping_add(first * m + end);
            let factors = call.g.wrapping_add((index * n + end) * PANEL);
            let behind = a.wrapping_add(end * m + end);
            let plain: c_int = PLAIN;
            let list = (
                raw,
                plain,
                plain,
                rows,
                columns,
                inner,
                &raw const minus_one,
                reflectors,
                ld,
                factors,
                panel,
                &raw const one,
                behind,
                ld,
            );
            blas.call(of_type::<T>(FUNCTIONS), list)?;
        }
    }
    Ok(())
}

/// Loads what [`geqp3`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(block::<T>())?;
    steps::<T>().into_iter().try_for_each(|step| gpu.load(step))?;
    gpu.prepare(&BLAS)
}
