//! LU factorisation with partial pivoting of one large matrix by all threads: [`crate::panels`].
//!
//! A panel is factored in a contiguous copy, which the updates read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use faer::{ColMut, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::lanes::{Lane, LaneReal, MAX_LANES};
use crate::lu::{Panel, factor};
use crate::panels::{self, Panels};
use crate::rows::{self, transpose_numbers};
use crate::substitution::Scratch;
use crate::transposition::LINE;
use crate::triangular::{System, solve, strips, subtract_product};
use crate::{Diag, Scalar, Threads, Uplo};

/// What a panel leaves for the strips on its right.
struct Factored<T> {
    /// The panel from its diagonal down, column-major: L and U.
    lu: RwLock<Vec<T>>,
    /// The rows with which rows were swapped, counted from the panel's diagonal.
    swaps: OnceLock<Vec<usize>>,
    /// The strips that it has not updated yet.
    users: AtomicUsize,
}

/// Factors P·A = L·U in place, in panels of so many columns; returns the first row whose pivot is zero.
///
/// `swaps` becomes the row with which each row was swapped. Rows or columns of A are contiguous.
pub(crate) fn factor_tiled<T: Scalar>(
    a: MatMut<'_, T>,
    swaps: &mut [usize],
    width: usize,
    threads: &dyn Threads,
) -> Option<usize> {
    let job = Job::new(a, width);
    panels::run(&job, job.panels.len(), job.strips.len(), threads);
    for ((panel, first), swaps) in job.panels.iter().zip(&job.firsts).zip(swaps.chunks_mut(width)) {
        for (swap, other) in swaps.iter_mut().zip(panel.swaps.get().into_iter().flatten()) {
            *swap = first + other;
        }
    }
    let zero = job.zero.into_inner();
    (zero < usize::MAX).then_some(zero)
}

/// The strips of a matrix and what its panels leave.
struct Job<'a, T> {
    rows: usize,
    /// Each strip is locked by the task at work on it, which the stages say.
    strips: Vec<Mutex<MatMut<'a, T>>>,
    /// The first column of each strip.
    firsts: Vec<usize>,
    panels: Vec<Factored<T>>,
    /// The first row whose pivot is zero.
    zero: AtomicUsize,
    arch: Arch,
}

impl<'a, T: Scalar> Job<'a, T> {
    fn new(a: MatMut<'a, T>, width: usize) -> Self {
        let (rows, n) = (a.nrows(), a.ncols());
        let k = rows.min(n);
        // No strip lies on both sides of column k.
        let firsts: Vec<_> = (0..k).step_by(width).chain((k..n).step_by(width)).collect();
        let (left, right) = a.split_at_col_mut(k);
        let cut = [left, right].into_iter().flat_map(|side| strips(side, width));
        let strips: Vec<_> = cut.collect();
        let panels = (0..k.div_ceil(width)).map(|panel| Factored {
            lu: RwLock::new(Vec::new()),
            swaps: OnceLock::new(),
            users: AtomicUsize::new(firsts.len() - 1 - panel),
        });
        let panels = panels.collect();
        let zero = AtomicUsize::new(usize::MAX);
        Self { rows, panels, strips, firsts, zero, arch: Arch::new() }
    }

    fn strip(&self, strip: usize) -> MutexGuard<'_, MatMut<'a, T>> {
        self.strips[strip].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn swaps(&self, panel: usize) -> &[usize] {
        self.panels[panel].swaps.get().map_or(&[], Vec::as_slice)
    }
}

impl<T: Scalar> Panels for Job<'_, T> {
    fn factor(&self, panel: usize) {
        let first = self.firsts[panel];
        let mut strip = self.strip(panel);
        let mut a = strip.as_mut().subrows_mut(first, self.rows - first);
        let (m, n) = (a.nrows(), a.ncols());
        let mut lu = vec![T::ZERO; m * n];
        copy(a.as_mut(), &mut lu, true, self.arch);
        let mut swaps = vec![0; m.min(n)];
        let mut scratch = Scratch::new(n, n);
        let zero =
            factor(Panel { a: &mut lu, lda: m, row: 0 }, &mut swaps, &mut scratch, self.arch);
        copy(a, &mut lu, false, self.arch);
        let factored = &self.panels[panel];
        if factored.users.load(Ordering::SeqCst) > 0 {
            *factored.lu.write().unwrap_or_else(PoisonError::into_inner) = lu;
        }
        // A panel is factored once.
        let _ = factored.swaps.set(swaps);
        if let Some(row) = zero {
            self.zero.fetch_min(first + row, Ordering::SeqCst);
        }
    }

    fn update(&self, panel: usize, strip: usize) {
        let factored = &self.panels[panel];
        {
            let first = self.firsts[panel];
            let lu = factored.lu.read().unwrap_or_else(PoisonError::into_inner);
            let m = self.rows - first;
            let n = lu.len() / m;
            let lu = MatRef::from_column_major_slice(&lu[..], m, n);
            let mut strip = self.strip(strip);
            let mut a = strip.as_mut().subrows_mut(first, m);
            swap_rows(a.as_mut(), self.swaps(panel));
            let (mut u, below) = a.split_at_row_mut(n);
            let system = System { uplo: Uplo::Lower, diag: Diag::Unit, conj: Conj::No };
            let mut scratch = Scratch::new(n, u.ncols());
            solve(system, lu.subrows(0, n), u.as_mut(), &mut scratch, self.arch);
            let l = lu.subrows(n, m - n);
            subtract_product(below, (l, Conj::No), (u.as_ref(), Conj::No));
        }
        if factored.users.fetch_sub(1, Ordering::SeqCst) == 1 {
            *factored.lu.write().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        }
    }

    /// Swaps the panel's rows as the later ones did.
    fn finish(&self, panel: usize) {
        let mut strip = self.strip(panel);
        for later in panel + 1..self.panels.len() {
            let first = self.firsts[later];
            swap_rows(strip.as_mut().subrows_mut(first, self.rows - first), self.swaps(later));
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
                            *x = rows::read::<S, T>(simd, &row[..j + width], j);
                        }
                        transpose_numbers::<S, T>(simd, square);
                        for (x, column) in square.iter().zip(columns) {
                            rows::write::<S, T>(*x, column);
                        }
                    } else {
                        for (x, column) in square.iter_mut().zip(columns) {
                            *x = rows::read::<S, T>(simd, column, 0);
                        }
                        transpose_numbers::<S, T>(simd, square);
                        for (x, row) in square.iter().zip(rows) {
                            rows::write::<S, T>(*x, &mut row[j..j + width]);
                        }
                    }
                }
            }
        }
    }
}

/// The elements of a column, or transposed row, of which the matrix says that they lie together.
pub(crate) fn contiguous<T>(column: ColMut<'_, T>) -> &mut [T] {
    match column.try_as_col_major_mut() {
        Some(column) => column.as_slice_mut(),
        None => unreachable!("neither rows nor columns are contiguous"),
    }
}
