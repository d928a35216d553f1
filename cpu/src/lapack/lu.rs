//! LU factorisation with partial pivoting, P·A = L·U. See [`crate::lu`].

use super::integers::{Int, Integers};
use super::routines::Routines;
use super::triangular::trsm;
use super::{checked, each, finite, in_place};
use crate::lu::{operands, row_major};
use crate::matrix::rows::{Output, permute};
use crate::matrix::transpose::transpose_columns;
use crate::parallel::first_error::Outcome;
use crate::{Error, InOut, Serial, Threads, Trans};

/// [`crate::lu::getrf`] by LAPACK's xGETRF.
///
/// # Errors
/// As there, and where a dimension exceeds the library's integers.
pub fn getrf<T: Routines>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    ipiv: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands = operands(Output::Lapack, batch, (m, n), a, ipiv, info)?;
    let (rows, columns) = (Int::new("m", m)?, Int::new("n", n)?);
    let products = m.saturating_mul(n).saturating_mul(k) / 3;
    let scratch = || Integers::with_room(k);
    each::<T, _, _>(batch, operands, products, threads, scratch, |pivots, (a, ipiv, info)| {
        if k > 0 && finite(&*a) {
            info[0] = T::getrf(rows, columns, a, pivots);
            pivots.load(ipiv);
        } else {
            checked(crate::lu::getrf(1, m, n, in_place(a), ipiv, info, &Serial));
        }
    });
    Ok(())
}

/// [`crate::lu::lu`] by [`getrf`].
///
/// # Errors
/// As there.
pub fn lu<T: Routines>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    pivots: &mut [i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(Output::Permutation, batch, (m, n), a, pivots, permutation)?;
    let products = m.saturating_mul(n).saturating_mul(m.min(n).saturating_add(6)) / 3;
    let (outcome, scratch) = (Outcome::default(), || vec![T::ZERO; m * n]);
    each::<T, _, _>(batch, operands, products, threads, scratch, |columns, operands| {
        let (a, pivots, permutation) = operands;
        transpose_columns((m, n), a, 0, columns);
        outcome.take(getrf(1, m, n, in_place(columns), pivots, &mut [0], &Serial));
        transpose_columns((n, m), columns, 0, a);
        pivots.iter_mut().for_each(|pivot| *pivot -= 1);
        permute(pivots, permutation);
    });
    outcome.into_result()
}

/// [`crate::lu::lu_solve`] by the BLAS's xTRSM.
///
/// # Errors
/// As there.
#[allow(clippy::too_many_arguments, reason = "those of crate::lu::lu_solve")]
pub fn lu_solve<T: Routines>(
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
    row_major::lu_solve(trsm, trans, batch, n, nrhs, lu, permutation, b, x, threads)
}
