//! Triangular solves: op(A)·X = B or X·op(A) = B.

use lapax_core::{Items, ItemsInOut, for_each};

use crate::{Diag, Error, InOut, Scalar, Side, Threads, Trans, Uplo};

/// Solves op(A)·X = B (`side` left) or X·op(A) = B (right) for each matrix of a batch, in place of B.
///
/// B is m × n and A is q × q, q = m on the left and n on the right. Only the triangle `uplo` of A is
/// read, and with `Diag::Unit` not its diagonal. A zero on the diagonal gives infinities or NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn trsm<T: Scalar>(
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
    let q = match side {
        Side::Left => m,
        Side::Right => n,
    };
    let operands = (Items::new("a", batch, &[q, q], a)?, ItemsInOut::new("b", batch, &[m, n], b)?);
    let flops = m.saturating_mul(n).saturating_mul(q);
    for_each(
        batch,
        operands,
        100 + flops / 10,
        threads,
        || (),
        |(), (a, b)| {
            solve(side, uplo, trans, diag, q, m, n, a, b);
        },
    );
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
fn solve<T: Scalar>(
    side: Side,
    uplo: Uplo,
    trans: Trans,
    diag: Diag,
    q: usize,
    m: usize,
    n: usize,
    a: &[T],
    b: &mut [T],
) {
    // Element (i, j) of op(A), or of op(A)ᵀ for the right side.
    let transposed = (trans != Trans::None) != (side == Side::Right);
    let element = |i: usize, j: usize| {
        let x = if transposed { a[j + i * q] } else { a[i + j * q] };
        if trans == Trans::ConjTranspose { x.conj() } else { x }
    };
    let lower = (uplo == Uplo::Lower) != transposed;
    let nrhs = if side == Side::Left { n } else { m };
    let at = |i: usize, k: usize| if side == Side::Left { i + k * m } else { k + i * m };
    for k in 0..nrhs {
        for step in 0..q {
            let i = if lower { step } else { q - 1 - step };
            let mut x = b[at(i, k)];
            let known = if lower { 0..i } else { i + 1..q };
            for j in known {
                x -= element(i, j) * b[at(j, k)];
            }
            if diag == Diag::NonUnit {
                x = x.divide(element(i, i));
            }
            b[at(i, k)] = x;
        }
    }
}
