//! LU factorisation with partial pivoting: P·A = L·U, L unit lower trapezoidal, U upper trapezoidal.
//!
//! Pivots are LAPACK's: `ipiv[j] = i` says that rows j and i were swapped in step j, counted from 1.
//! The recursion is Toledo's, "Locality of reference in LU decomposition with partial pivoting"
//! (SIAM J. Matrix Anal. Appl. 18, 1997).

pub(crate) mod blocked;
mod by_rows;
pub(crate) mod parallel;
pub(crate) mod route;
pub(crate) mod row_major;

use faer::MatMut;
use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::blas::trsv;
use crate::lanes::lu::Operands;
use crate::matrix::layout::Layout;
use crate::matrix::panel::Panel;
use crate::matrix::rows;
use crate::matrix::rows::{Output, count_from, permute};
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::groups::{BATCH, for_each_group};
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::triangular::route::Route as System;
use crate::triangular::trsm;
use crate::unblocked::solve;
use crate::{Diag, Error, InOut, Scalar, Threads, Trans, Uplo};
use crate::{lanes, registers, triangular, unblocked};
use blocked::{Scratch, factor};
use parallel::tiled;
use route::{Route, products, route};

/// Factors each m × n matrix of a batch as P·A = L·U, in place.
///
/// `a` holds U on and above the diagonal and L, without its unit diagonal, below. `ipiv` holds
/// min(m, n) row swaps per matrix, counted from 1, and `info` one number: 0, or the first i > 0 for
/// which U(i, i) is exactly zero; the factorisation is complete in either case. The pivot is the
/// first element of largest |re| + |im|, and a NaN counts as larger than any number.
///
/// # Errors
/// Where m exceeds `i32`, in which pivots are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn getrf<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    ipiv: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(Output::Lapack, batch, (m, n), a, ipiv, info)?;
    factor_batch(Output::Lapack, batch, (m, n), operands, threads);
    Ok(())
}

/// Factors each m × n row-major matrix of a batch as P·A = L·U, in place.
///
/// As [`getrf`], but the matrices lie by rows, `pivots` counts from 0, and `permutation` holds the m
/// rows of A in the order of P·A.
///
/// # Errors
/// As [`getrf`].
#[per_scalar]
pub fn lu<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    pivots: &mut [i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(Output::Permutation, batch, (m, n), a, pivots, permutation)?;
    factor_batch(Output::Permutation, batch, (m, n), operands, threads);
    Ok(())
}

/// The operands of [`getrf`], or of [`lu`].
pub(crate) fn operands<'a, T: Scalar>(
    output: Output,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'a, T>,
    pivots: &'a mut [i32],
    second: &'a mut [i32],
) -> Result<Operands<'a, T>, Error> {
    index_fits_i32("m", m)?;
    let (names, length) = match output {
        Output::Lapack => (["ipiv", "info"], 1),
        Output::Permutation => (["pivots", "permutation"], m),
    };
    Ok((
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new(names[0], batch, &[m.min(n)], pivots)?,
        ItemsMut::new(names[1], batch, &[length], second)?,
    ))
}

/// [`getrf`] and [`lu`].
fn factor_batch<T: Scalar>(
    output: Output,
    batch: usize,
    (m, n): (usize, usize),
    operands: Operands<'_, T>,
    threads: &dyn Threads,
) {
    let layout = output.layout();
    let time = nanoseconds::<T>(products(m, n));
    let finish = |zero, pivots: &[i32], second: &mut [i32]| match output {
        Output::Lapack => second[0] = lapack_info(zero),
        Output::Permutation => permute(pivots, second),
    };
    match route(Kind::of::<T>(), layout, batch, m, n) {
        Route::Unblocked => {
            let one = |(a, pivots, second): (&mut [T], &mut [i32], &mut [i32])| {
                if layout == Layout::Columns {
                    let zero = unblocked::lu::factor(a, (m, n), layout, pivots, output.first());
                    finish(zero, pivots, second);
                } else {
                    unblocked::lu::factor_rows(a, (m, n), pivots);
                    finish(None, pivots, second);
                }
            };
            if batch < BATCH {
                few::each(batch, operands, one);
            } else {
                for_each(batch, operands, time, threads, || (), |(), matrix| one(matrix));
            }
        }
        Route::Lanes => {
            let kernel = lanes::lu::Factor { m, n, order: layout, output };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Registers => {
            let kernel = registers::lu::Factor { m, n, order: layout, output };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Blocked if layout == Layout::Columns => {
            let (scratch, arch) = (|| Scratch::new(m, n), Arch::new());
            for_each(batch, operands, time, threads, scratch, |scratch, (a, pivots, second)| {
                let Scratch { swaps, substitution } = scratch;
                let zero = factor(Panel { a, lda: m, row: 0 }, swaps, substitution, arch);
                count_from(output.first(), swaps, pivots);
                finish(zero, pivots, second);
            });
        }
        Route::Blocked => {
            let (scratch, arch) = (|| by_rows::Scratch::new(m, n), Arch::new());
            for_each(batch, operands, time, threads, scratch, |scratch, (a, pivots, second)| {
                scratch.factor(MatMut::from_row_major_slice_mut(a, m, n), arch);
                count_from(output.first(), &scratch.swaps, pivots);
                finish(None, pivots, second);
            });
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, pivots, second), threads| {
                let a = match layout {
                    Layout::Columns => MatMut::from_column_major_slice_mut(a, m, n),
                    Layout::Rows => MatMut::from_row_major_slice_mut(a, m, n),
                };
                finish(tiled(a, pivots, output.first(), threads), pivots, second);
            });
        }
    }
}

/// LAPACK's `info`: 0, or the row with the first pivot that is zero, counted from 1.
fn lapack_info(zero: Option<usize>) -> i32 {
    zero.map_or(0, |row| i32::try_from(row + 1).unwrap_or(i32::MAX))
}

/// Solves op(A)·X = B with the factors and the permutation of [`lu`], for each system of a batch.
///
/// `lu` is n × n, `b` and `x` are n × nrhs; all lie by rows. X has NaN where `permutation`, which
/// counts from 0, names no row.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn lu_solve<T: Scalar>(
    trans: Trans,
    batch: usize,
    n: usize,
    nrhs: usize,
    lu: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let route = triangular::route::route(Kind::of::<T>(), Layout::Rows, batch, n, nrhs);
    if let System::Blocked | System::Parallel = route {
        return row_major::lu_solve(trsm, trans, batch, n, nrhs, lu, permutation, b, x, threads);
    }
    let operands = row_major::solve_operands(batch, (n, nrhs), lu, permutation, b, x)?;
    let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(nrhs));
    match route {
        System::Unblocked => few::each(batch, operands, |(lu, permutation, b, x)| {
            solve::lu_solve(trans, (n, nrhs), lu, permutation, b, x);
        }),
        System::Registers => {
            let kernel = registers::lu_solve::Solve { trans, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        System::Lanes => {
            let kernel = lanes::lu::lu_solve::Solve { trans, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        System::OneSide | System::Blocked | System::Parallel => {
            let (copy, arch) = (|| vec![T::ZERO; n], Arch::new());
            for_each(batch, operands, time, threads, copy, |copy, (lu, permutation, b, x)| {
                solve_one(trans, lu, permutation, b, (copy, x), arch);
            });
        }
    }
    Ok(())
}

/// [`lu_solve`] of one system with one right-hand side.
fn solve_one<T: Scalar>(
    trans: Trans,
    a: &[T],
    permutation: &[i32],
    b: &[T],
    (copy, x): (&mut [T], &mut [T]),
    arch: Arch,
) {
    let conj = trans == Trans::ConjTranspose;
    let solve = |uplo, diag, order, x: &mut [T]| {
        arch.dispatch(trsv::Solve { uplo, diag, conj, order, a, x });
    };
    if trans == Trans::None {
        rows::gather_rows(b, permutation, x, 1);
        solve(Uplo::Lower, Diag::Unit, Layout::Rows, x);
        solve(Uplo::Upper, Diag::NonUnit, Layout::Rows, x);
        return;
    }
    // The lower triangle of the transpose is Uᵀ.
    copy.copy_from_slice(b);
    solve(Uplo::Lower, Diag::NonUnit, Layout::Columns, copy);
    solve(Uplo::Upper, Diag::Unit, Layout::Columns, copy);
    rows::scatter_rows(copy, permutation, x, 1);
}

/// Turns k row swaps, counted from 0, into the permutation of 0..p that they make.
///
/// Swaps are applied in order to the identity; one whose partner lies outside 0..p is skipped.
///
/// # Errors
/// Where p < k, p exceeds `i32`, or a slice has another length than the dimensions say.
pub fn lu_pivots_to_permutation(
    batch: usize,
    k: usize,
    p: usize,
    pivots: &[i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if p < k {
        return Err(Error::Order { larger: "p", larger_value: p, smaller: "k", smaller_value: k });
    }
    index_fits_i32("p", p)?;
    let operands = (
        Items::new("pivots", batch, &[k], pivots)?,
        ItemsMut::new("permutation", batch, &[p], permutation)?,
    );
    for_each(
        batch,
        operands,
        5 + k + p / 8,
        threads,
        || (),
        |(), (pivots, permutation)| permute(pivots, permutation),
    );
    Ok(())
}
