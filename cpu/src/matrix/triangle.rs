//! Triangles of a matrix: which one is given, and which one is meant.

use faer::Conj;

use super::layout::Layout;
use super::transpose::transpose_columns;
use crate::simd::scalar::nan;
use crate::{Diag, Scalar, Uplo};

/// Which matrix is meant.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// The triangle that is read, and that of the factor.
    pub uplo: Uplo,
    /// Whether all is read: A is the mean of the matrix and its adjoint.
    pub mean: bool,
}

impl Given {
    /// Whether the matrix is turned first.
    pub(crate) fn turned(self) -> bool {
        self.uplo == Uplo::Upper && !self.mean
    }
}

/// A triangle of a row-major factor, or where it is read by columns of its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Triangle {
    pub(crate) uplo: Uplo,
    pub(crate) conj: bool,
    pub(crate) order: Layout,
}

/// The two triangular matrices of which A is the product, the first one first: L and Lᴴ, or Uᴴ and U.
pub(crate) fn triangles(uplo: Uplo) -> [Triangle; 2] {
    let (as_it_is, adjoint) = ((false, Layout::Rows), (true, Layout::Columns));
    let [first, second] =
        if uplo == Uplo::Lower { [as_it_is, adjoint] } else { [adjoint, as_it_is] };
    [(Uplo::Lower, first), (Uplo::Upper, second)].map(|(uplo, (conj, order))| Triangle {
        uplo,
        conj,
        order,
    })
}

/// Zeros above the diagonal, and NaN in the rest where the matrix was not factored, of the rows of n
/// numbers from row `first` on.
pub(crate) fn only_lower<T: Scalar>(rows: &mut [T], n: usize, first: usize, factored: bool) {
    if !factored {
        rows.fill(nan());
    }
    for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
        row[i + 1..].fill(T::ZERO);
    }
}

/// Rows of the upper triangle of an m × n column-major matrix, from one of them on, and zeros below it.
pub(crate) fn upper_rows<T: Scalar>((m, n): (usize, usize), a: &[T], first: usize, rows: &mut [T]) {
    transpose_columns((n, m), a, first, rows);
    for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
        row[..i.min(n)].fill(T::ZERO);
    }
}

/// The triangular matrix of a system, beside its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements are conjugated as they are read.
    pub(crate) conj: Conj,
}

/// The parts of each column in a triangle.
pub(crate) fn triangle_ranges(
    n: usize,
    uplo: Uplo,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n).map(move |j| match uplo {
        Uplo::Lower => j * n + j..(j + 1) * n,
        Uplo::Upper => j * n..j * n + j + 1,
    })
}

/// The elements of a triangle, column by column.
pub(crate) fn triangle<T>(a: &[T], n: usize, uplo: Uplo) -> impl Iterator<Item = &[T]> {
    triangle_ranges(n, uplo).map(|range| &a[range])
}
