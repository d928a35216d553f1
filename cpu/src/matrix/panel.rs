//! Panels: columns of a larger matrix from one of its rows on.

use faer::MatMut;
use pulp::{Simd, WithSimd};

use super::strips::contiguous;
use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::cache_line::LINE;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines;
use crate::simd::lines::transpose_numbers;
use crate::simd::vector::{Lane, MAX_LANES};

/// Whole columns of a matrix, of which the rows from `row` on are to be factored.
pub(crate) struct Panel<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) lda: usize,
    pub(crate) row: usize,
}

/// The columns of a strip to or from the contiguous columns of a panel.
pub(crate) fn copy<T: Scalar>(a: MatMut<'_, T>, panel: &mut [T], to_panel: bool, arch: Arch) {
    let m = a.nrows();
    if a.row_stride() == 1 {
        for (column, packed) in a.col_iter_mut().zip(panel.chunks_exact_mut(m)) {
            let column = contiguous(column);
            if to_panel {
                packed.copy_from_slice(column);
            } else {
                column.copy_from_slice(packed);
            }
        }
        return;
    }
    arch.dispatch(Copy { a, panel, to_panel });
}

/// A copy of a matrix by rows to or from one by columns, in squares of registers.
struct Copy<'a, T> {
    a: MatMut<'a, T>,
    panel: &'a mut [T],
    to_panel: bool,
}

impl<T: Scalar> WithSimd for Copy<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, panel, to_panel } = self;
        let (m, n, lanes) = (a.nrows(), a.ncols(), T::Real::lanes::<S>());
        // As many rows as a line of each of the panel's columns has.
        let high = lanes.max(LINE / size_of::<T>());
        let mut all = a.row_iter_mut().map(|row| contiguous(row.transpose_mut()));
        for i in (0..m).step_by(high) {
            let mut rows: [&mut [T]; MAX_LANES] = std::array::from_fn(|_| &mut [][..]);
            let rows = &mut rows[..high.min(m - i)];
            rows.fill_with(|| all.next().unwrap_or_default());
            let mut square = [T::Lane::<S>::splat(simd, T::ZERO); MAX_LANES];
            let square = &mut square[..lanes];
            for (j, columns) in (0..n).step_by(lanes).zip(panel.chunks_mut(lanes * m)) {
                let width = lanes.min(n - j);
                for (i, rows) in (i..).step_by(lanes).zip(rows.chunks_mut(lanes)) {
                    let columns = columns.chunks_exact_mut(m);
                    let columns = columns.map(|column| &mut column[i..i + rows.len()]);
                    if to_panel {
                        for (x, row) in square.iter_mut().zip(&*rows) {
                            *x = lines::read::<S, T>(simd, &row[..j + width], j);
                        }
                        transpose_numbers::<S, T>(simd, square);
                        for (x, column) in square.iter().zip(columns) {
                            lines::write::<S, T>(*x, column);
                        }
                    } else {
                        for (x, column) in square.iter_mut().zip(columns) {
                            *x = lines::read::<S, T>(simd, column, 0);
                        }
                        transpose_numbers::<S, T>(simd, square);
                        for (x, row) in square.iter().zip(rows) {
                            lines::write::<S, T>(*x, &mut row[j..j + width]);
                        }
                    }
                }
            }
        }
    }
}
