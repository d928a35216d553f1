//! The Hermitian eigenproblem A = V·diag(w)·Vᴴ, and reduction to tridiagonal form, A = Q·T·Qᴴ.

use std::ffi::{CStr, c_int, c_void};

use lapax_core::{Uplo, Vectors, index_fits_i32};

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::codes::{eigen_mode, fill_mode, of_type};
use crate::driver;
use crate::error::{Error, narrow, product};
use crate::gpu::Gpu;
use crate::handle::{DENSE, Info, SYEVJ, parameters};
use crate::library::CUSOLVER;
use crate::memory::{InOut, Output};
use crate::module::kernel;
use crate::qr::elements_of;
use crate::small::{self, THREADS_OF_A_VECTOR};

/// How eigenvalues are found; jaxlib's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Jacobi's for orders up to that of the table of choices, else divide and conquer.
    Default,
    /// Tridiagonal form, then divide and conquer.
    DivideAndConquer,
    /// Jacobi's rotations.
    Jacobi,
}

impl TryFrom<u8> for Algorithm {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        match code {
            0 => Ok(Self::Default),
            1 => Ok(Self::DivideAndConquer),
            2 => Ok(Self::Jacobi),
            _ => Err(()),
        }
    }
}

/// What is computed of each matrix, and how.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// How.
    pub algorithm: Algorithm,
    /// Whether eigenvectors are wanted.
    pub vectors: Vectors,
    /// The triangle that is read.
    pub uplo: Uplo,
}

/// Eigenvalues, and eigenvectors if asked for, of each Hermitian matrix of a batch.
///
/// `a` is n × n and becomes the eigenvectors, columns of unit norm, or scratch where none are wanted;
/// `w` has the n eigenvalues, ascending; `info` is 0, or i > 0 where i elements of an intermediate
/// matrix did not converge. cuSOLVER's batched functions where it has them, else one by one.
///
/// # Errors
/// Where n exceeds `i32`, scratch or a library is not to be had, or the device fails.
pub fn syevd<T: Scalar>(
    gpu: &Gpu<'_>,
    task: Task,
    batch: usize,
    n: usize,
    a: InOut<T>,
    w: Output<T::Real>,
    info: Output<i32>,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    if batch == 0 {
        return Ok(());
    }
    if n == 0 {
        return driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>());
    }
    let a = gpu.initialized(a)?;
    let jacobi = match task.algorithm {
        Algorithm::Default => n <= largest::<T>(gpu, "syevd", Count::of(batch))?,
        Algorithm::DivideAndConquer => false,
        Algorithm::Jacobi => true,
    };
    if jacobi {
        return rotate(gpu, task, batch, n, a, w, info);
    }
    const BATCHED: &CStr = c"cusolverDnXsyevBatched";
    if batch > 1 && CUSOLVER.has(BATCHED) {
        return divide_batches(gpu, task, batch, n, a, w, info);
    }
    divide_one_by_one(gpu, task, batch, n, a, w, info)
}

fn divide_one_by_one<T: Scalar>(
    gpu: &Gpu<'_>,
    task: Task,
    batch: usize,
    n: usize,
    a: Output<T>,
    w: Output<T::Real>,
    info: Output<i32>,
) -> Result<(), Error> {
    let (size, order): (usize, i64) = (product("a", &[n, n])?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let (solver, mode, fill) = (dense.raw(), eigen_mode(task.vectors), fill_mode(task.uplo));
    let (first, values) = (a.as_ptr(), w.as_ptr());
    let mut space = gpu.workspace(|device, host| {
        // SAFETY: the function's arguments; a and w are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXsyevd_bufferSize",
                (
                    solver,
                    parameters,
                    mode,
                    fill,
                    order,
                    T::TYPE,
                    first,
                    order,
                    T::REAL,
                    values,
                    T::TYPE,
                    device,
                    host,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, w, info) = (a.item(index, size), w.item(index, n), info.item(index, 1));
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXsyevd",
                (
                    solver,
                    parameters,
                    mode,
                    fill,
                    order,
                    T::TYPE,
                    a,
                    order,
                    T::REAL,
                    w,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info,
                ),
            )?;
        }
    }
    Ok(())
}

fn divide_batches<T: Scalar>(
    gpu: &Gpu<'_>,
    task: Task,
    batch: usize,
    n: usize,
    a: Output<T>,
    w: Output<T::Real>,
    info: Output<i32>,
) -> Result<(), Error> {
    /// As many matrices at a time as cuSOLVER was seen to take, and no more than 2 GiB of them: its
    /// batched function counts bytes in 32 bits (jax issue 33062).
    const MATRICES: usize = 32_768;
    const BYTES: usize = i32::MAX.unsigned_abs() as usize;
    let (size, order): (usize, i64) = (product("a", &[n, n])?, narrow("n", n)?);
    let part = (BYTES / product("a", &[size, size_of::<T>()])?).clamp(1, MATRICES).min(batch);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let (solver, mode, fill) = (dense.raw(), eigen_mode(task.vectors), fill_mode(task.uplo));
    let (first, values, count): (_, _, i64) = (a.as_ptr(), w.as_ptr(), narrow("batch", part)?);
    let mut space = gpu.workspace(|device, host| {
        // SAFETY: the function's arguments; a and w are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXsyevBatched_bufferSize",
                (
                    solver,
                    parameters,
                    mode,
                    fill,
                    order,
                    T::TYPE,
                    first,
                    order,
                    T::REAL,
                    values,
                    T::TYPE,
                    device,
                    host,
                    count,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for start in (0..batch).step_by(part) {
        let (a, w, info) = (a.item(start, size), w.item(start, n), info.item(start, 1));
        let count: i64 = narrow("batch", part.min(batch - start))?;
        // SAFETY: the function's arguments; the matrices are on the device, `count` of each.
        unsafe {
            dense.call(
                c"cusolverDnXsyevBatched",
                (
                    solver,
                    parameters,
                    mode,
                    fill,
                    order,
                    T::TYPE,
                    a,
                    order,
                    T::REAL,
                    w,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info,
                    count,
                ),
            )?;
        }
    }
    Ok(())
}

/// Jacobi's method.
fn rotate<T: Scalar>(
    gpu: &Gpu<'_>,
    task: Task,
    batch: usize,
    n: usize,
    a: Output<T>,
    w: Output<T::Real>,
    info: Output<i32>,
) -> Result<(), Error> {
    const ONE: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSsyevj_bufferSize",
            c"cusolverDnDsyevj_bufferSize",
            c"cusolverDnCheevj_bufferSize",
            c"cusolverDnZheevj_bufferSize",
        ],
        [c"cusolverDnSsyevj", c"cusolverDnDsyevj", c"cusolverDnCheevj", c"cusolverDnZheevj"],
    ];
    const BATCHED: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSsyevjBatched_bufferSize",
            c"cusolverDnDsyevjBatched_bufferSize",
            c"cusolverDnCheevjBatched_bufferSize",
            c"cusolverDnZheevjBatched_bufferSize",
        ],
        [
            c"cusolverDnSsyevjBatched",
            c"cusolverDnDsyevjBatched",
            c"cusolverDnCheevjBatched",
            c"cusolverDnZheevjBatched",
        ],
    ];
    let order: c_int = narrow("n", n)?;
    let (dense, settings) = (gpu.handle(&DENSE)?, Info::new(&SYEVJ)?);
    let (solver, mode, fill) = (dense.raw(), eigen_mode(task.vectors), fill_mode(task.uplo));
    let (a, w, info) = (a.as_ptr(), w.as_ptr(), info.as_ptr());
    let (settings, mut elements): (*mut c_void, c_int) = (settings.raw(), 0);
    let count: c_int = narrow("batch", batch)?;
    // SAFETY: the functions' arguments; the matrices are on the device, batch of each.
    unsafe {
        if batch == 1 {
            let at = &raw mut elements;
            let list = (solver, mode, fill, order, a, order, w, at, settings);
            dense.call(of_type::<T>(ONE[0]), list)?;
            let work = gpu.scratch::<T>(elements_of(elements))?;
            let work = work.as_ptr();
            let list = (solver, mode, fill, order, a, order, w, work, elements, info, settings);
            dense.call(of_type::<T>(ONE[1]), list)
        } else {
            let at = &raw mut elements;
            let list = (solver, mode, fill, order, a, order, w, at, settings, count);
            dense.call(of_type::<T>(BATCHED[0]), list)?;
            let work = gpu.scratch::<T>(elements_of(elements))?;
            let work = work.as_ptr();
            let list =
                (solver, mode, fill, order, a, order, w, work, elements, info, settings, count);
            dense.call(of_type::<T>(BATCHED[1]), list)
        }
    }
}

/// Makes the handle of [`syevd`].
///
/// # Errors
/// As there.
pub fn load(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.prepare(&DENSE)
}

/// Loads what [`sytrd`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_sytrd<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sytrd", "sytrd"))?;
    gpu.prepare(&DENSE)
}

/// The results of a reduction to tridiagonal form.
#[derive(Debug)]
pub struct Tridiagonal<T: Scalar> {
    /// The diagonal, n elements.
    pub d: Output<T::Real>,
    /// Beside the diagonal, n − 1 elements.
    pub e: Output<T::Real>,
    /// Factors of the reflectors, n − 1 elements.
    pub tau: Output<T>,
    /// Zero.
    pub info: Output<i32>,
}

/// Reduces each Hermitian matrix of a batch to real tridiagonal form, A = Q·T·Qᴴ.
///
/// `a` is n × n and becomes the reflectors, as xSYTRD leaves them. Matrices that fit into a block's shared
/// memory are one launch of an own kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// As [`syevd`].
pub fn sytrd<T: Scalar>(
    gpu: &Gpu<'_>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<T>,
    results: Tridiagonal<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSsytrd_bufferSize",
            c"cusolverDnDsytrd_bufferSize",
            c"cusolverDnChetrd_bufferSize",
            c"cusolverDnZhetrd_bufferSize",
        ],
        [c"cusolverDnSsytrd", c"cusolverDnDsytrd", c"cusolverDnChetrd", c"cusolverDnZhetrd"],
    ];
    index_fits_i32("n", n)?;
    let Tridiagonal { d, e, tau, info } = results;
    if batch == 0 {
        return Ok(());
    }
    if n == 0 {
        return driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>());
    }
    let a = gpu.initialized(a)?;
    if n <= largest::<T>(gpu, "sytrd", Count::of(batch))? {
        // The matrix, and a vector.
        let (room, threads) =
            (((n | 1).saturating_add(1), n), n.saturating_mul(THREADS_OF_A_VECTOR));
        let kernel = kernel!(T, "sytrd", "sytrd");
        if let Some(launch) = small::shared::<T>(gpu, batch, room, threads, kernel)? {
            let (a, d, e) = (a.as_ptr(), d.as_ptr(), e.as_ptr());
            let (tau, info) = (tau.as_ptr(), info.as_ptr());
            let lower = i32::from(uplo == Uplo::Lower);
            let (batch, n): (i64, i32) = (narrow("batch", batch)?, narrow("n", n)?);
            // SAFETY: the kernel's parameters; the operands have batch times n², n and n − 1 elements.
            return unsafe { gpu.launch(&launch, (a, d, e, tau, info, batch, n, lower)) };
        }
    }
    let (size, order): (usize, c_int) = (product("a", &[n, n])?, narrow("n", n)?);
    let dense = gpu.handle(&DENSE)?;
    let (solver, fill, mut elements) = (dense.raw(), fill_mode(uplo), 0);
    // SAFETY: the function's arguments; the operands are on the device.
    unsafe {
        let (a, d, e, tau) = (a.as_ptr(), d.as_ptr(), e.as_ptr(), tau.as_ptr());
        let list = (solver, fill, order, a, order, d, e, tau, &raw mut elements);
        dense.call(of_type::<T>(FUNCTIONS[0]), list)?;
    }
    let work = gpu.scratch::<T>(elements_of(elements))?;
    for index in 0..batch {
        let (a, d, info) = (a.item(index, size), d.item(index, n), info.item(index, 1));
        let (e, tau, work) = (e.item(index, n - 1), tau.item(index, n - 1), work.as_ptr());
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            let list = (solver, fill, order, a, order, d, e, tau, work, elements, info);
            dense.call(of_type::<T>(FUNCTIONS[1]), list)?;
        }
    }
    Ok(())
}
