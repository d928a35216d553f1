//! Triangular solves, op(A)·X = B or X·op(A) = B. See [`crate::triangular`].

use super::integers::Int;
use super::routines::Routines;
use super::{checked, each, finite, in_place};
use crate::matrix::triangle::triangle;
use crate::triangular::operands;
use crate::{Diag, Error, InOut, Serial, Side, Threads, Trans, Uplo};

/// [`crate::triangular::trsm`] by the BLAS's xTRSM.
///
/// A matrix with a zero on its diagonal is left to lapax's own code, too: some BLAS take 0/0 for 0.
///
/// # Errors
/// As there, and where a dimension exceeds the library's integers.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn trsm<T: Routines>(
    side: Side,
    uplo: Uplo,
    trans: Trans,
    diag: Diag,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    b: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (q, nrhs) = if side == Side::Left { (m, n) } else { (n, m) };
    let operands = operands(batch, q, (m, n), a, b)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let (rows, columns) = (Int::new("m", m)?, Int::new("n", n)?);
    let products = q.saturating_mul(q).saturating_mul(nrhs) / 2;
    each::<T, _, _>(
        batch,
        operands,
        products,
        threads,
        || (),
        |(), (a, b)| {
            if ordinary(a, q, uplo, diag) && finite(&*b) {
                T::trsm((side, uplo, trans, diag), rows, columns, a, b);
            } else {
                let b = in_place(b);
                checked(crate::triangular::trsm(side, uplo, trans, diag, 1, m, n, a, b, &Serial));
            }
        },
    );
    Ok(())
}

/// Whether what is read of A is finite, with no zero on the diagonal.
fn ordinary<T: Routines>(a: &[T], q: usize, uplo: Uplo, diag: Diag) -> bool {
    let diagonal = || a.iter().step_by(q + 1);
    match diag {
        Diag::NonUnit => {
            finite(triangle(a, q, uplo).flatten()) && diagonal().all(|&x| x != T::ZERO)
        }
        Diag::Unit => {
            let mut columns = (0..q).map(|j| match uplo {
                Uplo::Lower => &a[j * q + j + 1..(j + 1) * q],
                Uplo::Upper => &a[j * q..j * q + j],
            });
            columns.all(finite)
        }
    }
}
