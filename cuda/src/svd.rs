//! The singular value decomposition A = U·diag(s)·Vᴴ: of matrices that fit into a block's shared memory
//! by an own kernel, of others by cuSOLVER's Jacobi rotations, QR steps or polar decomposition.

use std::ffi::{CStr, c_char, c_int, c_void};

use lapax_core::{SingularVectors, Vectors, index_fits_i32};

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::codes::{eigen_mode, of_type};
use crate::driver;
use crate::error::{Error, Kind, narrow, product};
use crate::gpu::Gpu;
use crate::handle::{DENSE, GESVDJ, Info, parameters};
use crate::jacobi::{self, Form};
use crate::memory::{InOut, Output};
use crate::qr::elements_of;

/// The results of a decomposition.
#[derive(Debug)]
pub struct Svd<T: Scalar> {
    /// The singular values, descending, min(m, n) of them.
    pub s: Output<T::Real>,
    /// U, column-major.
    pub u: Output<T>,
    /// V for Jacobi's and the polar method, Vᴴ for QR steps, column-major.
    pub v: Output<T>,
    /// 0; i < 0 where the matrix holds NaN or inf, or i > 0 where i values did not converge.
    pub info: Output<i32>,
}

/// The sizes of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of problems.
    pub batch: usize,
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
}

/// Which vectors are computed, and the size of U and V, which have memory in any case.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Whether singular vectors are computed.
    pub vectors: Vectors,
    /// Whether U and V have min(m, n) columns; else they are square.
    pub thin: bool,
}

impl Job {
    /// Columns of U and of V.
    fn columns(self, Sizes { m, n, .. }: Sizes) -> (usize, usize) {
        if self.thin { (m.min(n), m.min(n)) } else { (m, n) }
    }
}

/// What can be said before any decomposition: what is not wanted is zero, and a matrix without elements
/// has square U and V that are identities. True where that was all.
fn begin<T: Scalar>(
    gpu: &Gpu<'_>,
    vectors: Vectors,
    Sizes { batch, m, n }: Sizes,
    results: &Svd<T>,
) -> Result<bool, Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    let Svd { u, v, info, .. } = *results;
    let nothing = batch == 0 || m == 0 || n == 0;
    for (factor, order) in [(u, m), (v, n)] {
        if vectors == Vectors::None {
            let bytes = size_of::<T>() * factor.len();
            driver::fill(gpu.stream(), factor.as_ptr().cast(), 0, bytes)?;
        } else if nothing && !factor.is_empty() {
            let square = (0..order * order).map(|at| at % order == at / order);
            let identity: Vec<T> = square.map(|one| if one { T::ONE } else { T::ZERO }).collect();
            gpu.write(factor, &identity.repeat(batch))?;
        }
    }
    if nothing {
        driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>())?;
    }
    Ok(nothing)
}

/// xGESDD's `info` of a matrix that is not finite.
const NOT_FINITE: c_int = -4;

/// The own kernel, where a matrix fits into a block's shared memory, for both functions whose results are
/// not transposed: they name an accuracy, not a method. Returns whether that was so.
fn rotate_in_blocks<T: Scalar>(
    gpu: &Gpu<'_>,
    op: &str,
    job: Job,
    sizes: Sizes,
    a: Output<T>,
    results: &Svd<T>,
) -> Result<bool, Error> {
    /// Matrices that are no longer few: measured with the order in the table of choices.
    const MANY: usize = 4;
    let count = if sizes.batch < MANY { Count::Alone } else { Count::Batch };
    if sizes.m.min(sizes.n) > largest::<T>(gpu, op, count)? {
        return Ok(false);
    }
    let vectors = job.vectors == Vectors::Wanted;
    let columns = job.columns(sizes);
    let form = Form { vectors, columns, adjoint: false, turned: false, not_finite: NOT_FINITE };
    let Some(plan) = jacobi::plan::<T>(gpu, sizes, form)? else {
        return Ok(false);
    };
    jacobi::rotate(gpu, &plan, sizes, form, a, results)?;
    Ok(true)
}

/// Decomposes each matrix of a batch by Jacobi's rotations.
///
/// `a` is m × n and becomes scratch. `results.u` and `results.v` hold U and V, **not** Vᴴ, and are
/// scratch where no vectors are wanted. Matrices that fit into a block's shared memory are one launch of
/// an own kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// Where a size exceeds `i32`, scratch or a library is not to be had, or the device fails.
pub fn gesvdj<T: Scalar>(
    gpu: &Gpu<'_>,
    job: Job,
    sizes: Sizes,
    a: InOut<T>,
    results: Svd<T>,
) -> Result<(), Error> {
    if begin(gpu, job.vectors, sizes, &results)? {
        return Ok(());
    }
    let a = gpu.initialized(a)?;
    if rotate_in_blocks(gpu, "gesvdj", job, sizes, a, &results)? {
        return Ok(());
    }
    rotate_one_by_one(gpu, job, sizes, a, results)
}

fn rotate_one_by_one<T: Scalar>(
    gpu: &Gpu<'_>,
    job: Job,
    sizes: Sizes,
    a: Output<T>,
    Svd { s, u, v, info }: Svd<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSgesvdj_bufferSize",
            c"cusolverDnDgesvdj_bufferSize",
            c"cusolverDnCgesvdj_bufferSize",
            c"cusolverDnZgesvdj_bufferSize",
        ],
        [c"cusolverDnSgesvdj", c"cusolverDnDgesvdj", c"cusolverDnCgesvdj", c"cusolverDnZgesvdj"],
    ];
    let Sizes { batch, m, n } = sizes;
    let (u_columns, v_columns) = job.columns(sizes);
    let (size, k) = (product("a", &[m, n])?, m.min(n));
    let (u_size, v_size) = (product("u", &[m, u_columns])?, product("v", &[n, v_columns])?);
    let (rows, cols): (c_int, c_int) = (narrow("m", m)?, narrow("n", n)?);
    let (dense, settings) = (gpu.handle(&DENSE)?, Info::new(&GESVDJ)?);
    let (solver, settings): (_, *mut c_void) = (dense.raw(), settings.raw());
    let (mode, thin) = (eigen_mode(job.vectors), c_int::from(job.thin));
    let mut elements: c_int = 0;
    // SAFETY: the function's arguments; the operands are on the device.
    unsafe {
        let (a, s, u, v) = (a.as_ptr(), s.as_ptr(), u.as_ptr(), v.as_ptr());
        let list = (
            solver,
            mode,
            thin,
            rows,
            cols,
            a,
            rows,
            s,
            u,
            rows,
            v,
            cols,
            &raw mut elements,
            settings,
        );
        dense.call(of_type::<T>(FUNCTIONS[0]), list)?;
    }
    let work = gpu.scratch::<T>(elements_of(elements))?;
    for index in 0..batch {
        let (a, s, info) = (a.item(index, size), s.item(index, k), info.item(index, 1));
        let (u, v, work) = (u.item(index, u_size), v.item(index, v_size), work.as_ptr());
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            let list = (
                solver, mode, thin, rows, cols, a, rows, s, u, rows, v, cols, work, elements, info,
                settings,
            );
            dense.call(of_type::<T>(FUNCTIONS[1]), list)?;
        }
    }
    Ok(())
}

/// Decomposes each matrix of a batch by way of its polar decomposition: as [`gesvdj`].
///
/// # Errors
/// As [`gesvdj`].
pub fn gesvdp<T: Scalar>(
    gpu: &Gpu<'_>,
    job: Job,
    sizes: Sizes,
    a: InOut<T>,
    results: Svd<T>,
) -> Result<(), Error> {
    if begin(gpu, job.vectors, sizes, &results)? {
        return Ok(());
    }
    let a = gpu.initialized(a)?;
    if rotate_in_blocks(gpu, "gesvdp", job, sizes, a, &results)? {
        return Ok(());
    }
    let (Svd { s, u, v, info }, Sizes { batch, m, n }) = (results, sizes);
    let (u_columns, v_columns) = job.columns(sizes);
    let (size, k) = (product("a", &[m, n])?, m.min(n));
    let (u_size, v_size) = (product("u", &[m, u_columns])?, product("v", &[n, v_columns])?);
    let (rows, cols): (i64, i64) = (narrow("m", m)?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let solver = dense.raw();
    let (mode, thin) = (eigen_mode(job.vectors), c_int::from(job.thin));
    let mut space = gpu.workspace(|device, host| {
        let (a, s, u, v) = (a.as_ptr(), s.as_ptr(), u.as_ptr(), v.as_ptr());
        // SAFETY: the function's arguments; the operands are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXgesvdp_bufferSize",
                (
                    solver,
                    parameters,
                    mode,
                    thin,
                    rows,
                    cols,
                    T::TYPE,
                    a,
                    rows,
                    T::REAL,
                    s,
                    T::TYPE,
                    u,
                    rows,
                    T::TYPE,
                    v,
                    cols,
                    T::TYPE,
                    device,
                    host,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, s, info) = (a.item(index, size), s.item(index, k), info.item(index, 1));
        let (u, v) = (u.item(index, u_size), v.item(index, v_size));
        // How much smallest singular values were perturbed, of which nobody asks.
        let mut perturbation = 0.0_f64;
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXgesvdp",
                (
                    solver,
                    parameters,
                    mode,
                    thin,
                    rows,
                    cols,
                    T::TYPE,
                    a,
                    rows,
                    T::REAL,
                    s,
                    T::TYPE,
                    u,
                    rows,
                    T::TYPE,
                    v,
                    cols,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info,
                    &raw mut perturbation,
                ),
            )?;
        }
    }
    Ok(())
}

/// Decomposes each matrix of a batch by implicit QR steps.
///
/// `a` is m × n with m ≥ n, and becomes scratch. `results.v` holds Vᴴ. With `vectors` All U is square, with Thin it
/// has n columns, with None both are set to zero. Matrices that fit into a block's shared memory are one
/// launch of [`gesvdj`]'s kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// As [`gesvdj`], and where m < n, which cuSOLVER does not take.
pub fn gesvd<T: Scalar>(
    gpu: &Gpu<'_>,
    vectors: SingularVectors,
    sizes: Sizes,
    a: InOut<T>,
    results: Svd<T>,
) -> Result<(), Error> {
    let Sizes { batch, m, n } = sizes;
    if m < n {
        let text = format!("expected at least as many rows as columns, got {m} rows, {n} columns");
        return Err(Error::new(Kind::InvalidArgument, text));
    }
    let wanted = if vectors == SingularVectors::None { Vectors::None } else { Vectors::Wanted };
    if begin(gpu, wanted, sizes, &results)? {
        return Ok(());
    }
    /// xGESVD's `info` of a matrix that is not finite.
    const NOT_FINITE: c_int = -5;
    let a = gpu.initialized(a)?;
    let u_columns = if vectors == SingularVectors::Thin { n } else { m };
    let form = Form {
        vectors: wanted == Vectors::Wanted,
        columns: (u_columns, n),
        adjoint: true,
        turned: false,
        not_finite: NOT_FINITE,
    };
    if let Some(plan) = jacobi::plan::<T>(gpu, sizes, form)? {
        return jacobi::rotate(gpu, &plan, sizes, form, a, &results);
    }
    let Svd { s, u, v, info } = results;
    let size = product("a", &[m, n])?;
    let (u_size, v_size) = match vectors {
        SingularVectors::None => (0, 0),
        _ => (product("u", &[m, u_columns])?, product("v", &[n, n])?),
    };
    let (rows, cols): (i64, i64) = (narrow("m", m)?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let solver = dense.raw();
    let job = c_char::from_ne_bytes([vectors.code()]);
    let mut space = gpu.workspace(|device, host| {
        let (a, s, u, v) = (a.as_ptr(), s.as_ptr(), u.as_ptr(), v.as_ptr());
        // SAFETY: the function's arguments; the operands are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXgesvd_bufferSize",
                (
                    solver,
                    parameters,
                    job,
                    job,
                    rows,
                    cols,
                    T::TYPE,
                    a,
                    rows,
                    T::REAL,
                    s,
                    T::TYPE,
                    u,
                    rows,
                    T::TYPE,
                    v,
                    cols,
                    T::TYPE,
                    device,
                    host,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, s, info) = (a.item(index, size), s.item(index, n), info.item(index, 1));
        let (u, v) = (u.item(index, u_size), v.item(index, v_size));
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXgesvd",
                (
                    solver,
                    parameters,
                    job,
                    job,
                    rows,
                    cols,
                    T::TYPE,
                    a,
                    rows,
                    T::REAL,
                    s,
                    T::TYPE,
                    u,
                    rows,
                    T::TYPE,
                    v,
                    cols,
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

/// Loads what all three launch, and makes their handle.
///
/// # Errors
/// As [`gesvdj`].
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(jacobi::kernel::<T>())?;
    gpu.prepare(&DENSE)
}
