//! Cholesky factorisation of one band, A = L·Lᴴ (xPBTF2), column after column, with a right-hand side in the same sweep.
//!
//! A step waits for the one before: for a pivot d, then for what is subtracted from the next one. By
//! A(i, j) − A(i, k)·conj(A(j, k))·(1/d) that is a reciprocal and a product; L(·, k) = A(·, k)/√d waits for nothing.

use std::ops::Range;

use lapax_core::Scalar as _;
use pulp::{Simd, WithSimd};

use super::Definite;
use super::window::{BLOCK, Window};
use crate::{Scalar, Uplo};

/// What the matrices of one thread reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    /// Columns of A's lower triangle; above the diagonal is debris.
    window: Window<T>,
    /// The right-hand side.
    rhs: Window<T>,
    /// What the block before left of columns, and of the right-hand side.
    left: Vec<T>,
    left_rhs: Vec<T>,
    roots: [T::Real; BLOCK],
    reciprocals: [T::Real; BLOCK],
}

impl<T: Scalar> Scratch<T> {
    pub(super) fn new(definite: Definite) -> Self {
        let Definite { beside, .. } = definite;
        Self {
            window: Window::new(BLOCK + beside, BLOCK + beside),
            rhs: Window::new(1, BLOCK + beside),
            left: vec![T::ZERO; beside * beside],
            left_rhs: vec![T::ZERO; beside],
            roots: [T::Real::ZERO; BLOCK],
            reciprocals: [T::Real::ZERO; BLOCK],
        }
    }
}

/// The columns `first` to `first + columns` of L.
pub(crate) struct Block<'a, T: Scalar> {
    pub(super) first: usize,
    columns: usize,
    window: &'a Window<T>,
    roots: &'a [T::Real],
    reciprocals: &'a [T::Real],
}

impl<T: Scalar> Block<'_, T> {
    /// Calls `each` with k and L(first + k + c, first + k), for all k of the block.
    #[inline(always)]
    pub(super) fn diagonal(&self, c: usize, mut each: impl FnMut(usize, T)) {
        let pivots = self.roots.iter().zip(self.reciprocals).take(self.columns);
        for (k, (&root, &reciprocal)) in pivots.enumerate() {
            let l = if c == 0 {
                T::from_real(root)
            } else {
                self.window.line(k)[k + c].scale(reciprocal)
            };
            each(k, l);
        }
    }
}

/// Factors a matrix block by block; `false` where it is not positive definite.
pub(crate) struct Factor<'a, T: Scalar> {
    pub(super) definite: Definite,
    pub(super) ab: &'a [T],
    /// One right-hand side, b, which becomes L⁻¹·b.
    pub(super) rhs: Option<&'a mut [T]>,
    pub(super) scratch: &'a mut Scratch<T>,
    /// Takes what is found.
    pub(super) take: &'a mut dyn FnMut(Block<'_, T>),
}

impl<T: Scalar> WithSimd for Factor<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> bool {
        let n = self.definite.n;
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
        true
    }
}

impl<T: Scalar> Factor<'_, T> {
    /// Puts into the window what is left of the block before, and the rows that this one needs besides.
    #[inline(always)]
    fn enter(&mut self, first: usize) {
        let Self { definite: Definite { uplo, beside, n }, ab, .. } = *self;
        let Scratch { window, rhs, left, left_rhs, .. } = &mut *self.scratch;
        let kept = if first == 0 { 0 } else { beside.min(n - first) };
        let last = n.min(first + BLOCK + beside);
        window.clear(last - first);
        for at in 0..kept {
            window.line_mut(at)[at..kept].copy_from_slice(&left[at * beside..][at..kept]);
        }
        for d in 0..=beside {
            // A(i, i − d) of the rows first + kept to last.
            let from = (first + kept).max(d);
            if from >= last {
                continue;
            }
            let elements = window.diagonal_mut(from - d - first, from - first);
            match uplo {
                Uplo::Lower => {
                    let a = &ab[d * n + from - d..d * n + last - d];
                    elements.zip(a).for_each(|(w, &a)| *w = a);
                }
                Uplo::Upper => {
                    let a = &ab[(beside - d) * n + from..(beside - d) * n + last];
                    elements.zip(a).for_each(|(w, a)| *w = a.conj());
                }
            }
        }
        if let Some(b) = &self.rhs {
            let rhs = rhs.line_mut(0);
            rhs[..kept].copy_from_slice(&left_rhs[..kept]);
            rhs[kept..last - first].copy_from_slice(&b[first + kept..last]);
        }
    }

    /// Eliminates column k of the window; `false` where its pivot is not positive.
    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, first: usize, k: usize) -> bool {
        let Definite { beside, n, .. } = self.definite;
        let Scratch { window, rhs, roots, reciprocals, .. } = &mut *self.scratch;
        let (column, others) = window.line_and_rest(k);
        let pivot = Pivot::new(column[k].re());
        if !pivot.positive {
            return false;
        }
        (roots[k], reciprocals[k]) = (pivot.root, pivot.root_reciprocal);
        let below = beside.min(n - 1 - (first + k));
        let end = k + below + 1;
        for (j, other) in (k + 1..end).zip(others) {
            let factor = pivot.quotient(column[j].conj());
            subtract::<S, T>(simd, other, factor, column, j..end);
        }
        if let Some(x) = &mut self.rhs {
            let rhs = rhs.line_mut(0);
            let b = rhs[k];
            x[first + k] = b.scale(pivot.root_reciprocal);
            if below > 0 {
                subtract::<S, T>(simd, rhs, pivot.quotient(b), column, k + 1..end);
            }
        }
        true
    }

    /// Hands on what is found, and takes what is left out of the window.
    #[inline(always)]
    fn leave(&mut self, first: usize, columns: usize) {
        let Definite { beside, n, .. } = self.definite;
        let Scratch { window, rhs, left, left_rhs, roots, reciprocals } = &mut *self.scratch;
        (self.take)(Block { first, columns, window, roots, reciprocals });
        let kept = beside.min(n - first - columns);
        for at in 0..kept {
            let line = &window.line(columns + at)[columns..];
            left[at * beside..][at..kept].copy_from_slice(&line[at..kept]);
        }
        left_rhs[..kept].copy_from_slice(&rhs.line(0)[columns..][..kept]);
    }
}

/// y ← y − factor·x, for the elements in a range and those beside them in the same registers.
#[inline(always)]
fn subtract<S: Simd, T: Scalar>(
    simd: S,
    y: &mut [T],
    factor: T,
    x: &[T],
    Range { start, end }: Range<usize>,
) {
    let lanes = size_of::<T::Reg<S>>() / size_of::<T>();
    let registers = start / lanes..end.div_ceil(lanes);
    let factor = T::splat(simd, -factor);
    let y = &mut T::registers_mut::<S>(y).0[registers.clone()];
    for (y, &x) in y.iter_mut().zip(&T::registers::<S>(x).0[registers]) {
        *y = T::add_multiple(simd, *y, factor, x);
    }
}

/// A pivot d, and quotients by it.
struct Pivot<R> {
    positive: bool,
    root: R,
    /// 1/√d.
    root_reciprocal: R,
    /// 1/d, or where that or what is multiplied by it may overflow, nothing.
    reciprocal: Option<R>,
}

impl<R: lapax_core::Real> Pivot<R> {
    #[inline(always)]
    fn new(d: R) -> Self {
        // |A(i, k)|² is at most d·A(i, i): |A(i, k)|/d is finite from here on.
        let least = R::SAFE_MIN.sqrt();
        let root = d.sqrt();
        let normal = d >= least && d <= R::ONE / least;
        let reciprocal = if normal { Some(R::ONE / d) } else { None };
        Self { positive: d > R::ZERO, root, root_reciprocal: R::ONE / root, reciprocal }
    }

    #[inline(always)]
    fn quotient<T: lapax_core::Scalar<Real = R>>(&self, x: T) -> T {
        match self.reciprocal {
            Some(reciprocal) => x.scale(reciprocal),
            None => x.scale(self.root_reciprocal).scale(self.root_reciprocal),
        }
    }
}
