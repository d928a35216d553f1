//! Elimination with partial pivoting in one band (xGBTF2): P·A = L·U, of which U is kept, and B becomes U·X.
//!
//! Rows are not moved: those that have been entered and are no pivot yet stand in a list, from which the pivot is
//! taken. A row of U has `lower + upper` elements beside the diagonal, whatever was swapped.

use pulp::{Simd, WithSimd};

use super::Band;
use super::substitution::backward;
use super::window::{BLOCK, Window};
use crate::Scalar;
use crate::simd::loops::{Divisor, sub_mul, sub_scaled};

/// What the systems of one thread reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    /// Rows of A.
    window: Window<T>,
    /// Their right-hand sides.
    rhs: Vec<T>,
    /// The rows of the window that are entered and no pivot yet.
    active: Vec<usize>,
    /// Row k of U is this one of the window.
    order: [usize; BLOCK],
    /// The row that is subtracted, and its right-hand sides.
    pivot: Window<T>,
    pivot_rhs: Vec<T>,
    /// What the block before left of rows, and of their right-hand sides.
    left: Vec<T>,
    left_rhs: Vec<T>,
    /// U row by row, from the diagonal on.
    upper: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    pub(super) fn new(band: Band, nrhs: usize) -> Self {
        let Band { lower, n, .. } = band;
        let (rows, beside) = (BLOCK + lower, band.width() - 1);
        Self {
            window: Window::new(rows, BLOCK + beside),
            rhs: vec![T::ZERO; rows * nrhs],
            active: Vec::with_capacity(lower + 1),
            order: [0; BLOCK],
            pivot: Window::new(1, BLOCK + beside),
            pivot_rhs: vec![T::ZERO; nrhs],
            left: vec![T::ZERO; lower * beside],
            left_rhs: vec![T::ZERO; lower * nrhs],
            upper: vec![T::ZERO; n * band.width()],
        }
    }
}

/// Solves A·X = B; `false`, and no X, where a pivot is exactly zero.
pub(crate) struct Solve<'a, T> {
    pub(super) band: Band,
    pub(super) nrhs: usize,
    /// A(i, j) at row `upper + i − j` and column j.
    pub(super) ab: &'a [T],
    pub(super) b: &'a [T],
    pub(super) x: &'a mut [T],
    pub(super) scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> bool {
        let n = self.band.n;
        for first in (0..n).step_by(BLOCK) {
            let columns = BLOCK.min(n - first);
            self.enter(first);
            for k in 0..columns {
                if !self.step(simd, first, k) {
                    return false;
                }
            }
            self.leave(first, columns);
        }
        backward::<S, T>(&self.scratch.upper, self.band.width(), self.x, self.nrhs);
        true
    }
}

impl<T: Scalar> Solve<'_, T> {
    /// Puts into the window what is left of the block before, and the rows that this one needs besides.
    #[inline(always)]
    fn enter(&mut self, first: usize) {
        let Self { band: Band { lower, upper, n }, nrhs, ab, b, .. } = *self;
        let Scratch { window, rhs, active, left, left_rhs, .. } = &mut *self.scratch;
        let (kept, last) =
            (if first == 0 { 0 } else { active.len() }, n.min(first + BLOCK + lower));
        window.clear(last - first);
        for at in 0..kept {
            let row = &left[at * (lower + upper)..][..lower + upper];
            window.line_mut(at)[..lower + upper].copy_from_slice(row);
        }
        active.clear();
        active.extend(0..if first == 0 { lower.min(n) } else { kept });
        for p in 0..=lower + upper {
            // A(j + p − upper, j) of the rows first + kept to last.
            let from = (first + kept + upper).saturating_sub(p);
            let to = (last + upper).saturating_sub(p).min(n);
            if from < to {
                let row = from + p - upper - first;
                let elements = window.diagonal_mut(row, from - first);
                elements.zip(&ab[p * n + from..p * n + to]).for_each(|(w, &a)| *w = a);
            }
        }
        rhs[..kept * nrhs].copy_from_slice(&left_rhs[..kept * nrhs]);
        let fresh = (first + kept) * nrhs..last * nrhs;
        rhs[kept * nrhs..(last - first) * nrhs].copy_from_slice(&b[fresh]);
    }

    /// Eliminates column k of the window; `false` where it has no pivot.
    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, first: usize, k: usize) -> bool {
        let Self { band, nrhs, .. } = *self;
        let Scratch { window, rhs, active, order, pivot, pivot_rhs, .. } = &mut *self.scratch;
        if first + k + band.lower < band.n {
            active.push(k + band.lower);
        }
        // A comparison with NaN is false: it is no pivot, and reaches a multiplier.
        let (mut chosen, mut largest) = (0, window.line(active[0])[k].abs1());
        for (at, &row) in active.iter().enumerate().skip(1) {
            let size = window.line(row)[k].abs1();
            (chosen, largest) = if size > largest { (at, size) } else { (chosen, largest) };
        }
        let row = active.swap_remove(chosen);
        order[k] = row;
        let value = window.line(row)[k];
        if value == T::ZERO {
            return false;
        }
        if active.is_empty() {
            return true;
        }
        let divisor = Divisor::new(value);
        let lanes = size_of::<T::Reg<S>>() / size_of::<T>();
        let registers = (k + 1) / lanes..(k + band.width()).div_ceil(lanes);
        let pivot = &mut T::registers_mut::<S>(pivot.line_mut(0)).0[registers.clone()];
        pivot.copy_from_slice(&T::registers::<S>(window.line(row)).0[registers.clone()]);
        let known = rhs.get(row).copied().unwrap_or(T::ZERO);
        if nrhs > 1 {
            pivot_rhs.copy_from_slice(&rhs[row * nrhs..][..nrhs]);
        }
        for &row in &*active {
            let line = window.line_mut(row);
            let mut multiplier = line[k];
            divisor.divide(std::slice::from_mut(&mut multiplier));
            let factor = T::splat(simd, -multiplier);
            let line = &mut T::registers_mut::<S>(line).0[registers.clone()];
            for (x, &pivot) in line.iter_mut().zip(&*pivot) {
                *x = T::add_multiple(simd, *x, factor, pivot);
            }
            if nrhs == 1 {
                rhs[row] = sub_mul::<S, T>(rhs[row], multiplier, known);
            } else {
                sub_scaled::<S, T>(&mut rhs[row * nrhs..][..nrhs], multiplier, pivot_rhs);
            }
        }
        true
    }

    /// Takes the rows of U, their right-hand sides, and what is left of the others out of the window.
    #[inline(always)]
    fn leave(&mut self, first: usize, columns: usize) {
        let Self { band, nrhs, .. } = *self;
        let (width, beside) = (band.width(), band.width() - 1);
        let Scratch { window, rhs, active, order, left, left_rhs, upper, .. } = &mut *self.scratch;
        for (k, &row) in order[..columns].iter().enumerate() {
            upper[(first + k) * width..][..width].copy_from_slice(&window.line(row)[k..k + width]);
            self.x[(first + k) * nrhs..][..nrhs].copy_from_slice(&rhs[row * nrhs..][..nrhs]);
        }
        for (at, &row) in active.iter().enumerate() {
            left[at * beside..][..beside].copy_from_slice(&window.line(row)[columns..][..beside]);
            left_rhs[at * nrhs..][..nrhs].copy_from_slice(&rhs[row * nrhs..][..nrhs]);
        }
    }
}
