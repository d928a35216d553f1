//! Systems A·X = B, and inverses, by LU factors. See [`crate::solve`].

use super::callers;
use super::lu::{lu, lu_solve};
use super::routines::Routines;
use crate::solve::by_factors;
use crate::{Error, Threads, Trans};

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
    let routines = crate::solve::Routines { lu, lu_solve, invert };
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
    let routines = crate::solve::Routines { lu, lu_solve, invert };
    by_factors(routines, batch, (n, n), a, None, x, callers(threads))
}

/// The inverse of each matrix of a batch from its factors.
fn invert<T: Routines>(
    batch: usize,
    n: usize,
    factors: &[T],
    permutation: &[i32],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let mut identities = vec![T::ZERO; x.len()];
    for identity in identities.chunks_exact_mut(n * n) {
        identity.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
    }
    lu_solve(Trans::None, batch, n, n, factors, permutation, &identities, x, threads)
}
