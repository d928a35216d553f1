//! Cholesky factorisation A = L·Lᴴ = Uᴴ·U.
//!
//! Uᴴ·U = A is L·Lᴴ = Aᵀ for L = Uᵀ, so the upper case is the lower one on a transposed view.

pub(crate) mod blocked;
pub(crate) mod parallel;
pub(crate) mod route;
pub(crate) mod row_major;
pub(crate) mod update;

use faer::MatMut;
use lapax_core::{ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::lanes::cholesky::Operands;
use crate::matrix::layout::Layout;
use crate::matrix::{hermitian, triangle};
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::{Error, InOut, Scalar, Threads, Uplo};
use crate::{lanes, registers, unblocked};
use blocked::{Scratch, factor, factor_tiny};
use parallel::{factor_filled, factor_parallel, strip_rows};
use route::{Route, products, route};

pub use update::cholesky_update;

/// The order up to which a matrix is factored faster without wide registers: for f64, 0.06 us
/// against 0.13 us at 4 and 0.16 us against 0.25 us at 8.
const TINY: usize = 8;
/// Factors each n × n Hermitian positive definite matrix of a batch, in place.
///
/// Only the triangle `uplo` of `a` is read and written: A = L·Lᴴ for `Lower`, A = Uᴴ·U for `Upper`.
/// Imaginary parts on the diagonal are taken as zero and returned as zero. `info` holds one number
/// per matrix: 0, or the order of the first leading minor that is not positive (or is NaN), at which
/// the factorisation stopped.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn potrf<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, n, a, info)?;
    let time = nanoseconds::<T>(products(n));
    // The lower triangle of A, or of Aᵀ.
    let lower = |a| {
        let a = MatMut::from_column_major_slice_mut(a, n, n);
        if uplo == Uplo::Upper { a.transpose_mut() } else { a }
    };
    // Orders are at most n, which is an i32.
    let lapack_info = |factored: Result<(), usize>| {
        factored.err().map_or(0, |j| i32::try_from(j + 1).unwrap_or(i32::MAX))
    };
    match route(Kind::of::<T>(), Layout::Columns, batch, n) {
        Route::Lanes => {
            let order = if uplo == Uplo::Lower { Layout::Columns } else { Layout::Rows };
            let kernel = lanes::cholesky::Factor { n, order };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Registers => {
            let order = if uplo == Uplo::Lower { Layout::Columns } else { Layout::Rows };
            let kernel = registers::cholesky::FactorTriangle { n, order };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Unblocked | Route::Blocked => {
            let (scratch, arch) = (|| Scratch::new(n), Arch::new());
            for_each(batch, operands, time, threads, scratch, |scratch, (a, info)| {
                info[0] = lapack_info(factor(lower(a), scratch, arch));
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, info), threads| {
            info[0] = lapack_info(factor_parallel(lower(a), strip_rows(n), threads));
        }),
    }
    Ok(())
}

/// The operands of [`potrf`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: InOut<'a, T>,
    info: &'a mut [i32],
) -> Result<Operands<'a, T>, Error> {
    index_fits_i32("n", n)?;
    Ok((ItemsInOut::new("a", batch, &[n, n], a)?, ItemsMut::new("info", batch, &[], info)?))
}

/// Factors each n × n row-major Hermitian positive definite matrix of a batch as A = L·Lᴴ.
///
/// Only the lower triangle of `a` is read, or A is the mean of `a` and its adjoint where `mean` says
/// so. `l` is zero above the diagonal, and NaN in the rest where A is not positive definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cholesky<T: Scalar>(
    mean: bool,
    batch: usize,
    n: usize,
    l: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let route = route(Kind::of::<T>(), Layout::Rows, batch, n);
    if route == Route::Blocked {
        return row_major::cholesky(potrf, mean, batch, n, l, threads);
    }
    let operands = (ItemsInOut::new("l", batch, &[n, n], l)?,);
    let time = nanoseconds::<T>(products(n));
    match route {
        Route::Unblocked => few::each(batch, operands, |(l,)| {
            let factored = factor_few(l, n, mean);
            triangle::only_lower(l, n, 0, factored);
        }),
        Route::Lanes => {
            let kernel = lanes::cholesky::FactorRows { n, mean };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Registers => {
            let kernel = registers::cholesky::Factor { n, mean };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Blocked | Route::Parallel => {
            let operands = (operands.0.uncopied(),);
            for_each_large(batch, operands, threads, |(l,), threads| large(mean, n, l, threads));
        }
    }
    Ok(())
}

/// The lower triangle of one small matrix by rows, or of its mean with its adjoint, becomes L; whether there is one.
pub(crate) fn factor_few<T: Scalar>(a: &mut [T], n: usize, mean: bool) -> bool {
    if n > TINY {
        return unblocked::cholesky::factor_hermitian(a, n, mean);
    }
    if mean {
        hermitian::mean_with_adjoint(a, n);
    }
    factor_tiny(MatMut::from_row_major_slice_mut(a, n, n)).is_ok()
}

/// [`cholesky`] of one large matrix: what is read of it and the zeros are written strip by strip, as they are needed.
fn large<T: Scalar>(mean: bool, n: usize, l: InOut<'_, T>, threads: &dyn Threads) {
    let InOut { src, dst } = l;
    if mean && src.is_none() {
        hermitian::mean_with_adjoint(dst, n);
    }
    let fill = |first: usize, rows: &mut [T]| {
        if let Some(a) = src {
            if mean {
                hermitian::mean_of(false, a, n, first, rows);
            } else {
                let rows = (first..).zip(rows.chunks_exact_mut(n).zip(a[first * n..].chunks(n)));
                rows.for_each(|(i, (row, a))| row[..=i].copy_from_slice(&a[..=i]));
            }
        }
        triangle::only_lower(rows, n, first, true);
    };
    if factor_filled(dst, n, strip_rows(n), &fill, threads).is_err() {
        triangle::only_lower(dst, n, 0, false);
    }
}
