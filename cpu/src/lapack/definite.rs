//! Systems with Hermitian positive definite matrices, by Cholesky factors. See [`crate::definite`].

use super::callers;
use super::cholesky::cholesky;
use super::routines::Routines;
use super::triangular::trsm;
use crate::cholesky::row_major;
use crate::definite;
use crate::definite::{Kept, by_factor, by_factor_kept};
use crate::matrix::triangle::Given;
use crate::{Error, Threads, Uplo};

/// [`crate::definite::posv`] by LAPACK's factors and its triangular solves.
///
/// # Errors
/// As there, and where a dimension exceeds the library's integers.
pub fn posv<T: Routines>(
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = definite::Routines { cholesky, cho_solve };
    by_factor(routines, given, batch, (n, nrhs), a, b, x, callers(threads))
}

/// [`crate::definite::posv_factor`] in the same way.
///
/// # Errors
/// As [`posv`].
#[allow(clippy::too_many_arguments, reason = "those of posv_factor")]
pub fn posv_factor<T: Routines>(
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    kept: Kept<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = definite::Routines { cholesky, cho_solve };
    by_factor_kept(routines, given, batch, (n, nrhs), a, b, x, kept, callers(threads))
}

/// [`crate::definite::cho_solve`] by [`trsm`].
///
/// # Errors
/// As there.
pub fn cho_solve<T: Routines>(
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::cho_solve(trsm, uplo, batch, (n, nrhs), factor, b, x, threads)
}
