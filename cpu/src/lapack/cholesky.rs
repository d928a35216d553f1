//! Cholesky factorisation A = L·Lᴴ = Uᴴ·U. See [`crate::cholesky`].

use super::integers::Int;
use super::routines::Routines;
use super::{checked, each, finite, in_place};
use crate::cholesky::{operands, row_major};
use crate::matrix::triangle::triangle;
use crate::{Error, InOut, Serial, Threads, Uplo};

/// [`crate::cholesky::potrf`] by LAPACK's xPOTRF.
///
/// # Errors
/// As there, and where n exceeds the library's integers.
pub fn potrf<T: Routines>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, n, a, info)?;
    let order = Int::new("n", n)?;
    let products = n.saturating_mul(n).saturating_mul(n) / 6;
    each::<T, _, _>(
        batch,
        operands,
        products,
        threads,
        || (),
        |(), (a, info)| {
            if n > 0 && finite(triangle(a, n, uplo).flatten()) {
                info[0] = T::potrf(uplo, order, a);
            } else {
                checked(crate::cholesky::potrf(uplo, 1, n, in_place(a), info, &Serial));
            }
        },
    );
    Ok(())
}

/// [`crate::cholesky::cholesky`] by [`potrf`].
///
/// # Errors
/// As there.
pub fn cholesky<T: Routines>(
    mean: bool,
    batch: usize,
    n: usize,
    l: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::cholesky(potrf, mean, batch, n, l, threads)
}
