//! Systems A·X = B, and inverses, by LU factors. See [`crate::solve`].

use super::lu::{lu, lu_solve};
use super::{Routines, callers};
use crate::solve::{by_factors, identities};
use crate::{Error, Threads, Trans, solve};

/// [`crate::solve::solve`] by LAPACK's factors and its triangular solves.
///
/// # Errors
/// As there, and where a dimension exceeds the library's integers.
pub fn solve<T: Routines>(
    batch: usize,
    n: usize,
    nrhs: usize,
    a: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = solve::Routines { lu, lu_solve, invert };
    by_factors(routines, batch, (n, nrhs), a, Some(b), x, callers(threads))
}

/// [`crate::solve::inv`] in the same way.
///
/// # Errors
/// As [`solve`].
pub fn inv<T: Routines>(
    batch: usize,
    n: usize,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = solve::Routines { lu, lu_solve, invert };
    by_factors(routines, batch, (n, n), a, None, x, callers(threads))
}

/// The inverse of one matrix from its factors.
fn invert<T: Routines>(
    n: usize,
    factors: &[T],
    permutation: &[i32],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let identity = identities(n, 1);
    lu_solve(Trans::None, 1, n, n, factors, permutation, &identity, x, threads)
}
