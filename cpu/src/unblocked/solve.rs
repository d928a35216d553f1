//! Systems of one small matrix, factored or not.

use faer::Conj;

use super::ORDER;
use super::lu::factor_rows;
use super::triangular::substitute;
use crate::matrix::layout::Layout;
use crate::matrix::rows::{gather_rows, permute, scatter_rows};
use crate::matrix::triangle::System;
use crate::{Diag, Scalar, Trans, Uplo};

/// [`crate::lu::lu_solve`] of one system.
pub(crate) fn lu_solve<T: Scalar>(
    trans: Trans,
    (n, nrhs): (usize, usize),
    lu: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
) {
    if trans == Trans::None {
        gather_rows(b, permutation, x, nrhs);
        return substitute_twice((n, nrhs), lu, x);
    }
    // The transposed factors, of which Uᵀ is the lower one.
    let conj = if trans == Trans::ConjTranspose { Conj::Yes } else { Conj::No };
    with_copy(b, |permuted| {
        for (uplo, diag) in [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::Unit)] {
            let (lu, b) = ((lu, Layout::Columns), (&mut *permuted, Layout::Rows));
            substitute(System { uplo, diag, conj }, (n, nrhs), lu, b);
        }
        scatter_rows(permuted, permutation, x, nrhs);
    });
}

/// The solution of A·X = B, or where there is no `b` the inverse of A: [`factor`](super::lu::factor) and [`lu_solve`].
pub(crate) fn solve<T: Scalar>((n, nrhs): (usize, usize), a: &[T], b: Option<&[T]>, x: &mut [T]) {
    with_copy(a, |lu| {
        let (mut pivots, mut permutation) = ([0; ORDER], [0; ORDER]);
        let (pivots, permutation) = (&mut pivots[..n], &mut permutation[..n]);
        factor_rows(lu, (n, n), pivots);
        permute(pivots, permutation);
        if let Some(b) = b {
            gather_rows(b, permutation, x, nrhs);
        } else {
            for (x, &row) in x.chunks_exact_mut(nrhs).zip(&*permutation) {
                for (x, column) in x.iter_mut().zip(0..) {
                    *x = if column == row { T::ONE } else { T::ZERO };
                }
            }
        }
        substitute_twice((n, nrhs), lu, x);
    });
}

/// Calls `work` with a copy of a matrix: that of a tiny one is not allocated.
pub(crate) fn with_copy<T: Scalar>(a: &[T], work: impl FnOnce(&mut [T])) {
    const TINY: usize = 64;
    let mut tiny = [T::ZERO; TINY];
    if let Some(copy) = tiny.get_mut(..a.len()) {
        copy.copy_from_slice(a);
        return work(copy);
    }
    work(&mut a.to_vec());
}

/// X ← U⁻¹·L⁻¹·X by the factors of [`factor`](super::lu::factor), by rows.
fn substitute_twice<T: Scalar>(sizes: (usize, usize), lu: &[T], x: &mut [T]) {
    for (uplo, diag) in [(Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::NonUnit)] {
        let system = System { uplo, diag, conj: Conj::No };
        substitute(system, sizes, (lu, Layout::Rows), (&mut *x, Layout::Rows));
    }
}
