//! Cholesky factors of matrices that lie by rows, by a routine for columns.

use lapax_core::{Items, ItemsMut, for_each};

use crate::matrix::hermitian::{mean_of, mean_with_adjoint};
use crate::matrix::strips::{by_strips, each_strip};
use crate::matrix::triangle::only_lower;
use crate::parallel::cost::nanoseconds;
use crate::registers::cho_solve::Operands;
use crate::triangular::row_major::Trsm;
use crate::{Diag, Error, InOut, Scalar, Side, Threads, Trans, Uplo};

/// [`crate::cholesky::potrf`], or another routine with its contract.
pub(crate) type Potrf<T> =
    fn(Uplo, usize, usize, InOut<'_, T>, &mut [i32], &dyn Threads) -> Result<(), Error>;

/// [`crate::definite::cho_solve`].
#[allow(clippy::too_many_arguments, reason = "those of cho_solve, and the routine")]
pub(crate) fn cho_solve<T: Scalar>(
    trsm: Trsm<T>,
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    solve_operands(batch, (n, nrhs), factor, b, &mut *x)?;
    // The transposed systems, X on the left, of the factor's transpose.
    let (as_it_is, adjoint) = (Trans::None, Trans::ConjTranspose);
    let both = if uplo == Uplo::Lower { [as_it_is, adjoint] } else { [adjoint, as_it_is] };
    let mut src = Some(b);
    for trans in both {
        let x = InOut { src: src.take(), dst: &mut *x };
        let (uplo, diag) = (uplo.other(), Diag::NonUnit);
        trsm(Side::Right, uplo, trans, diag, batch, nrhs, n, factor, x, threads)?;
    }
    Ok(())
}

/// The operands of [`cho_solve`].
pub(crate) fn solve_operands<'a, T: Scalar>(
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    Ok((
        Items::new("factor", batch, &[n, n], factor)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    ))
}

/// [`crate::cholesky::cholesky`].
pub(crate) fn cholesky<T: Scalar>(
    potrf: Potrf<T>,
    mean: bool,
    batch: usize,
    n: usize,
    InOut { src, dst }: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    ItemsMut::new("l", batch, &[n, n], &mut *dst)?;
    if n == 0 {
        // An empty matrix has no memory that would bound how many there are.
        return Ok(());
    }
    let elements = nanoseconds::<T>(n.saturating_mul(n) / 2);
    let src = if !mean {
        src
    } else if let Some(a) = src {
        let a = Items::new("a", batch, &[n, n], a)?;
        let operands = (a, ItemsMut::new("l", batch, &[n, n], &mut *dst)?);
        let mean = |(a, l): (&[T], &mut [T]), threads: &dyn Threads| {
            each_strip(l, n, threads, |first, rows| mean_of(false, a, n, first, rows));
        };
        by_strips(batch, n, operands, elements, threads, mean);
        None
    } else {
        let operands = ItemsMut::new("l", batch, &[n, n], &mut *dst)?;
        for_each(batch, operands, elements, threads, || (), |(), l| mean_with_adjoint(l, n));
        None
    };
    let mut info = vec![0; batch];
    potrf(Uplo::Upper, batch, n, InOut { src, dst: &mut *dst }, &mut info, threads)?;
    let operands =
        (ItemsMut::new("l", batch, &[n, n], dst)?, Items::new("info", batch, &[], &info)?);
    let only_lower = |(l, info): (&mut [T], &[i32]), threads: &dyn Threads| {
        each_strip(l, n, threads, |first, rows| only_lower(rows, n, first, info[0] == 0));
    };
    by_strips(batch, n, operands, elements, threads, only_lower);
    Ok(())
}
