//! Determinants from LU factors. See [`crate::determinant`].

use super::callers;
use super::lu::getrf;
use super::routines::Routines;
use crate::determinant::{Factor, by_factors};
use crate::{Error, Threads};

/// [`crate::determinant::slogdet`] by [`getrf`].
///
/// # Errors
/// As there.
pub fn slogdet<T: Routines>(
    batch: usize,
    n: usize,
    a: &[T],
    sign: &mut [T],
    logabs: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    by_factors(Factor::columns(getrf), batch, n, a, sign, logabs, callers(threads))
}
