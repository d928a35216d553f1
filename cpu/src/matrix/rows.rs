//! Rows that change places.

use faer::MatMut;

use super::layout::Layout;
use super::strips::contiguous;
use crate::Scalar;
use crate::simd::scalar::nan;

/// The two results beside the factors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// LAPACK's row swaps, counted from 1, and `info`.
    Lapack,
    /// JAX's row swaps, counted from 0, and the permutation that they make.
    Permutation,
}

impl Output {
    /// How the matrices lie that it is asked of.
    pub(crate) fn layout(self) -> Layout {
        match self {
            Self::Lapack => Layout::Columns,
            Self::Permutation => Layout::Rows,
        }
    }

    /// What pivots are counted from.
    pub(crate) fn first(self) -> usize {
        match self {
            Self::Lapack => 1,
            Self::Permutation => 0,
        }
    }
}

/// Pivots that count rows from `first`, of an i32 of them.
pub(crate) fn count_from(first: usize, swaps: &[usize], pivots: &mut [i32]) {
    for (pivot, row) in pivots.iter_mut().zip(swaps) {
        *pivot = i32::try_from(first + row).unwrap_or(i32::MAX);
    }
}

/// The permutation that swaps make, in order, of the identity; one with a row outside it is skipped.
pub(crate) fn permute(pivots: &[i32], permutation: &mut [i32]) {
    for (value, entry) in (0..).zip(permutation.iter_mut()) {
        *entry = value;
    }
    for (row, &partner) in pivots.iter().enumerate() {
        match usize::try_from(partner) {
            Ok(partner) if partner < permutation.len() => permutation.swap(row, partner),
            _ => {}
        }
    }
}

/// Row i of `to` is row `rows[i]` of `from`, or NaN where there is none.
pub(crate) fn gather_rows<T: Scalar>(from: &[T], rows: &[i32], to: &mut [T], width: usize) {
    for (to, &row) in to.chunks_exact_mut(width).zip(rows) {
        match usize::try_from(row).ok().and_then(|row| from.chunks_exact(width).nth(row)) {
            Some(from) => to.copy_from_slice(from),
            None => to.fill(nan()),
        }
    }
}

/// Row `rows[i]` of `to` is row i of `from`, and NaN where no i names it.
pub(crate) fn scatter_rows<T: Scalar>(from: &[T], rows: &[i32], to: &mut [T], width: usize) {
    to.fill(nan());
    for (from, &row) in from.chunks_exact(width).zip(rows) {
        let to = usize::try_from(row).ok().and_then(|row| to.chunks_exact_mut(width).nth(row));
        if let Some(to) = to {
            to.copy_from_slice(from);
        }
    }
}

/// Swaps row i with row `swaps[i]`, in order.
pub(crate) fn swap_rows<T: Scalar>(mut a: MatMut<'_, T>, swaps: &[usize]) {
    if a.row_stride() == 1 {
        for column in a.col_iter_mut() {
            let column = contiguous(column);
            swaps.iter().enumerate().for_each(|(i, &other)| column.swap(i, other));
        }
        return;
    }
    for (i, &other) in swaps.iter().enumerate().filter(|(i, other)| *i < **other) {
        let (above, below) = a.as_mut().split_at_row_mut(other);
        let (x, y) = (above.row_mut(i).transpose_mut(), below.row_mut(0).transpose_mut());
        contiguous(x).swap_with_slice(contiguous(y));
    }
}
