//! Solutions by factors that lie by rows.

use lapax_core::{Items, ItemsMut, for_each};

use crate::matrix::rows::{gather_rows, scatter_rows};
use crate::parallel::cost::nanoseconds;
use crate::triangular::row_major::Trsm;
use crate::{Diag, Error, InOut, Scalar, Side, Threads, Trans, Uplo};

/// [`crate::lu::getrf`], or another routine with its contract.
pub(crate) type Getrf<T> = fn(
    usize,
    usize,
    usize,
    InOut<'_, T>,
    &mut [i32],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

type SolveOperands<'a, T> = (Items<'a, T>, Items<'a, i32>, Items<'a, T>, ItemsMut<'a, T>);

/// Factors, permutation, B and X.
pub(super) fn solve_operands<'a, T: Scalar>(
    batch: usize,
    (n, nrhs): (usize, usize),
    lu: &'a [T],
    permutation: &'a [i32],
    b: &'a [T],
    x: &'a mut [T],
) -> Result<SolveOperands<'a, T>, Error> {
    Ok((
        Items::new("lu", batch, &[n, n], lu)?,
        Items::new("permutation", batch, &[n], permutation)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    ))
}

/// [`crate::lu::lu_solve`].
#[allow(clippy::too_many_arguments, reason = "those of lu_solve, and the routine")]
pub(crate) fn lu_solve<T: Scalar>(
    trsm: Trsm<T>,
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
    let (_, permutations, b, to) = solve_operands(batch, (n, nrhs), lu, permutation, b, &mut *x)?;
    let work = nanoseconds::<T>(n.saturating_mul(nrhs));
    let forward = trans == Trans::None;
    for_each(
        batch,
        (b, permutations, to),
        work,
        threads,
        || (),
        |(), (b, permutation, x)| {
            if forward {
                gather_rows(b, permutation, x, nrhs);
            } else {
                x.copy_from_slice(b);
            }
        },
    );
    // The transposed system, X on the left, whose upper factor is Lᵀ.
    let lower = (Uplo::Upper, Diag::Unit);
    let upper = (Uplo::Lower, Diag::NonUnit);
    for (uplo, diag) in if forward { [lower, upper] } else { [upper, lower] } {
        let x = InOut { src: None, dst: &mut *x };
        trsm(Side::Right, uplo, trans, diag, batch, nrhs, n, lu, x, threads)?;
    }
    if forward {
        return Ok(());
    }
    let permutations = Items::new("permutation", batch, &[n], permutation)?;
    let operands = (permutations, ItemsMut::new("x", batch, &[n, nrhs], x)?);
    for_each(
        batch,
        operands,
        work,
        threads,
        || vec![T::ZERO; n * nrhs],
        |copy, (permutation, x)| {
            copy.copy_from_slice(x);
            scatter_rows(copy, permutation, x, nrhs);
        },
    );
    Ok(())
}
