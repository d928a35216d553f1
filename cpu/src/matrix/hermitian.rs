//! The Hermitian part of a matrix, and Hermitian matrices of one triangle.

use lapax_core::Scalar as _;

use super::transpose::mean_with_transpose;
use crate::Scalar;

/// The order of the squares of which a mean with the adjoint is made: as many rows as the nearest cache has
/// places for lines of a matrix whose rows lie a power of two apart.
const SQUARE: usize = 8;

/// A square of a matrix, or as much of it as there is.
type Square<T> = [[T; SQUARE]; SQUARE];

/// The lower triangle of (A + Aᴴ) / 2 in place of A's.
pub(crate) fn mean_with_adjoint<T: Scalar>(a: &mut [T], n: usize) {
    if n < SQUARE {
        for i in 0..n {
            for j in 0..=i {
                a[i * n + j] = mean(a[i * n + j], a[j * n + i]);
            }
        }
        return;
    }
    for i in (0..n).step_by(SQUARE) {
        for j in (0..=i).step_by(SQUARE) {
            let mean = mean_of_squares(square(a, n, (i, j)), &square(a, n, (j, i)));
            write_square(&mean, n, j, i, &mut a[i * n..]);
        }
    }
}

/// (A + Aᴴ) / 2, of its rows from `first` on as many as there is room for: whole ones, or up to the diagonal. What is
/// behind that has no meaning.
pub(crate) fn mean_of<T: Scalar>(whole: bool, a: &[T], n: usize, first: usize, rows: &mut [T]) {
    let done = if T::IS_COMPLEX {
        0
    } else {
        let rows = bytemuck::cast_slice_mut::<T, T::Real>(rows);
        mean_with_transpose(whole, bytemuck::cast_slice(a), n, first, rows)
    };
    for i in (first + done..first + rows.len() / n).step_by(SQUARE) {
        for j in (0..if whole { n } else { i + 1 }).step_by(SQUARE) {
            let mean = mean_of_squares(square(a, n, (i, j)), &square(a, n, (j, i)));
            let last = if whole { n - 1 } else { i };
            write_square(&mean, n, j, last, &mut rows[(i - first) * n..]);
        }
    }
}

/// The square from row i and column j on; zeros where there is no matrix.
fn square<T: Scalar>(a: &[T], n: usize, (i, j): (usize, usize)) -> Square<T> {
    let mut square = [[T::ZERO; SQUARE]; SQUARE];
    for (to, row) in square.iter_mut().zip(a.chunks_exact(n).skip(i)) {
        if let Some(whole) = row[j..].first_chunk() {
            *to = *whole;
        } else {
            to[..n - j].copy_from_slice(&row[j..]);
        }
    }
    square
}

/// (A + Bᴴ) / 2.
fn mean_of_squares<T: Scalar>(mut a: Square<T>, b: &Square<T>) -> Square<T> {
    for (i, row) in a.iter_mut().enumerate() {
        for (x, b) in row.iter_mut().zip(b) {
            *x = mean(*x, b[i]);
        }
    }
    a
}

/// The mean of a number and the conjugate of another.
pub(crate) fn mean<T: Scalar>(x: T, y: T) -> T {
    (x + y.conj()).unscale(T::Real::ONE + T::Real::ONE)
}

/// Writes a square into rows of n numbers, from column j on: into the first what does not go beyond column `last`, and
/// into each one column more.
fn write_square<T: Scalar>(square: &Square<T>, n: usize, j: usize, last: usize, rows: &mut [T]) {
    for (last, (from, row)) in (last..).zip(square.iter().zip(rows.chunks_exact_mut(n))) {
        let columns = SQUARE.min(last + 1 - j).min(n - j);
        row[j..j + columns].copy_from_slice(&from[..columns]);
    }
}
