//! LU factorisation with partial pivoting: P·A = L·U, L unit lower trapezoidal, U upper trapezoidal.
//!
//! Pivots are LAPACK's: `ipiv[j] = i` says that rows j and i were swapped in step j, counted from 1.
//! The recursion is Toledo's, "Locality of reference in LU decomposition with partial pivoting"
//! (SIAM J. Matrix Anal. Appl. 18, 1997).

pub(crate) mod blocked;
mod by_rows;
pub(crate) mod parallel;
pub(crate) mod row_major;

use faer::MatMut;
use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::blas::trsv;
use crate::matrix::layout::Layout;
use crate::matrix::panel::Panel;
use crate::matrix::rows;
use crate::matrix::rows::{Output, count_from, permute};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::parallel::{few, groups};
use crate::simd::arch::Arch;
use crate::triangular::{route, trsm};
use crate::unblocked::solve;
use crate::{Diag, Error, InOut, Scalar, Threads, Trans, Uplo};
use crate::{lanes, registers, triangular, unblocked};
use blocked::{Scratch, factor};
use parallel::{PARALLEL_ORDER, tiled};

/// The number of rows and of columns up to which a batch goes through lanes: for f64, 0.12 us
/// against 0.18 us at 8, 0.35 us against 0.45 us at 16, 3.4 us against 1.8 us at 32.
pub(crate) const LANES_ORDER: usize = 16;

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
    index_fits_i32("m", m)?;
    let k = m.min(n);
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("ipiv", batch, &[k], ipiv)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = m.saturating_mul(n).saturating_mul(k) / 3;
    let time = nanoseconds::<T>(products);
    if few::pay(batch, m.max(n), route::NUMBERS) {
        few::each(batch, operands, |(a, ipiv, info)| {
            info[0] = lapack_info(unblocked::lu::factor(a, (m, n), Layout::Columns, ipiv, 1));
        });
        return Ok(());
    }
    if k > 0 && groups::pay(batch, m.max(n), LANES_ORDER) {
        let (order, output) = (Layout::Columns, Output::Lapack);
        let kernel = lanes::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if k > 0 && registers::pay::<T>(m.max(n)) {
        let kernel = registers::lu::Factor { m, n, order: Layout::Columns, output: Output::Lapack };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if k > PARALLEL_ORDER {
        for_each_large(batch, operands, threads, |(a, ipiv, info), threads| {
            let a = MatMut::from_column_major_slice_mut(a, m, n);
            let zero = tiled(a, ipiv, 1, threads);
            info[0] = lapack_info(zero);
        });
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || Scratch::new(m, n);
    for_each(batch, operands, time, threads, scratch, |scratch, (a, ipiv, info)| {
        let Scratch { swaps, substitution } = scratch;
        let panel = Panel { a, lda: m, row: 0 };
        let zero = factor(panel, swaps, substitution, arch);
        count_from(1, swaps, ipiv);
        info[0] = lapack_info(zero);
    });
    Ok(())
}

/// LAPACK's `info`: 0, or the row with the first pivot that is zero, counted from 1.
fn lapack_info(zero: Option<usize>) -> i32 {
    zero.map_or(0, |row| i32::try_from(row + 1).unwrap_or(i32::MAX))
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
    let k = m.min(n);
    index_fits_i32("m", m)?;
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("pivots", batch, &[k], pivots)?,
        ItemsMut::new("permutation", batch, &[m], permutation)?,
    );
    if k > PARALLEL_ORDER {
        for_each_large(batch, operands, threads, |(a, pivots, permutation), threads| {
            let a = MatMut::from_row_major_slice_mut(a, m, n);
            tiled(a, pivots, 0, threads);
            permute(pivots, permutation);
        });
        return Ok(());
    }
    let products = m.saturating_mul(n).saturating_mul(k) / 3;
    let time = nanoseconds::<T>(products);
    let (order, output) = (Layout::Rows, Output::Permutation);
    let small = |(a, pivots, permutation): (&mut [T], &mut [i32], &mut [i32])| {
        unblocked::lu::factor_rows(a, (m, n), pivots);
        permute(pivots, permutation);
    };
    if k > 0 && few::pay(batch, m.max(n), unblocked::largest_factored::<T>()) {
        few::each(batch, operands, small);
    } else if k > 0 && groups::pay(batch, m.max(n), LANES_ORDER) {
        let kernel = lanes::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else if k > 0 && !T::IS_COMPLEX && m.max(n) <= unblocked::largest_factored::<T>() {
        for_each(batch, operands, time, threads, || (), |(), matrix| small(matrix));
    } else if k > 0 && registers::pay::<T>(m.max(n)) {
        let kernel = registers::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else {
        let (scratch, arch) = (|| by_rows::Scratch::new(m, n), Arch::new());
        for_each(batch, operands, time, threads, scratch, |scratch, (a, pivots, permutation)| {
            scratch.factor(MatMut::from_row_major_slice_mut(a, m, n), arch);
            count_from(0, &scratch.swaps, pivots);
            permute(pivots, permutation);
        });
    }
    Ok(())
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
    let few = few::pay(batch, n.max(nrhs), route::largest_system::<T>(nrhs, Layout::Rows));
    let by_rows = route::by_rows::<T>(n, nrhs);
    let pay = few || by_rows || nrhs == 1 || groups::pay(batch, n, triangular::LANES_ORDER);
    if n == 0 || nrhs == 0 || !pay {
        return row_major::lu_solve(trsm, trans, batch, n, nrhs, lu, permutation, b, x, threads);
    }
    let operands = (
        Items::new("lu", batch, &[n, n], lu)?,
        Items::new("permutation", batch, &[n], permutation)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    );
    let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(nrhs));
    if few {
        few::each(batch, operands, |(lu, permutation, b, x)| {
            solve::lu_solve(trans, (n, nrhs), lu, permutation, b, x);
        });
    } else if by_rows {
        let kernel = registers::lu_solve::Solve { trans, n, nrhs };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else if groups::pay(batch, n, triangular::LANES_ORDER) {
        let kernel = lanes::lu::lu_solve::Solve { trans, n, nrhs };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else {
        let (copy, arch) = (|| vec![T::ZERO; n], Arch::new());
        for_each(batch, operands, time, threads, copy, |copy, (lu, permutation, b, x)| {
            solve_one(trans, lu, permutation, b, (copy, x), arch);
        });
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
