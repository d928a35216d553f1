//! LU factorisation with partial pivoting of one large matrix by all threads: [`crate::parallel::lookahead`].
//!
//! A panel is factored in a contiguous copy, which the updates read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use faer::{Conj, MatMut, MatRef};

use super::blocked::factor;
use crate::blas::trsm::{solve, subtract_product};
use crate::blas::trsm_packed::Scratch;
use crate::matrix::panel::{Panel, copy};
use crate::matrix::rows::{count_from, swap_rows};
use crate::matrix::strips::strips;
use crate::matrix::triangle::System;
use crate::parallel::lookahead;
use crate::parallel::lookahead::Panels;
use crate::simd::arch::Arch;
use crate::{Diag, Scalar, Threads, Uplo};

/// The columns of a panel up to and from which width. On two cores with AVX-512, f64: n = 512 1.8 ms with panels of 64, 2.0
/// with 96, 2.2 with 128, n = 1024 9.7 with 64, 10.0 with 96, 9.7 with 128 (by rows 12.6, 10.8, 11.6), n = 2048 63 with 96.
const FEW_COLUMNS: usize = 640;
const NARROW_PANEL: usize = 64;
const WIDE_PANEL: usize = 96;

/// Factors one matrix by all threads; returns the first row whose pivot is zero. `pivots` counts rows
/// from `first`.
pub(crate) fn tiled<T: Scalar>(
    a: MatMut<'_, T>,
    pivots: &mut [i32],
    first: usize,
    threads: &dyn Threads,
) -> Option<usize> {
    let mut swaps = vec![0; pivots.len()];
    let width = if pivots.len() <= FEW_COLUMNS { NARROW_PANEL } else { WIDE_PANEL };
    let zero = factor_parallel(a, &mut swaps, width, threads);
    count_from(first, &swaps, pivots);
    zero
}

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
pub(crate) fn factor_parallel<T: Scalar>(
    a: MatMut<'_, T>,
    swaps: &mut [usize],
    width: usize,
    threads: &dyn Threads,
) -> Option<usize> {
    let job = Job::new(a, width);
    lookahead::run(&job, job.panels.len(), job.strips.len(), threads);
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
