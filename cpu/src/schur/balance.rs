//! Balancing: a permutation that isolates eigenvalues, and a diagonal scaling that brings the norms
//! of rows and columns together; D⁻¹·Pᵀ·A·P·D. The powers of two of a scaling are exact.
//!
//! Parlett and Reinsch, "Balancing a matrix for calculation of eigenvalues and eigenvectors"
//! (Numer. Math. 13, 1969), in the 2-norm as James, Langou and Lowery, "On matrix balancing and
//! eigenvector computation" (arXiv:1401.5766) have it.

use std::ops::Range;

use lapax_core::{Real as _, Scalar as _};
use smallvec::smallvec;

use crate::Scalar;
use crate::simd::scalar::ShortRow;

/// What was done to a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Balance<T: Scalar> {
    /// Outside of these rows and columns the matrix is upper triangular.
    pub(crate) active: Range<usize>,
    /// With which row and column each one outside was swapped.
    swaps: ShortRow<usize>,
    /// The scaling; one outside.
    scale: ShortRow<T::Real>,
}

impl<T: Scalar> Balance<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        Self { active: 0..n, swaps: smallvec![0; n], scale: smallvec![T::Real::ONE; n] }
    }

    /// Without a permutation, with a scaling from elsewhere.
    pub(crate) fn set_scale(&mut self, scale: &[T::Real]) {
        self.active = 0..scale.len();
        self.scale.copy_from_slice(scale);
    }

    /// Permutes A so that what has eigenvalues to be found is as small as it can be.
    pub(crate) fn permute(&mut self, a: &mut [T], n: usize) {
        self.active = 0..n;
        self.scale.fill(T::Real::ONE);
        for (i, swap) in self.swaps.iter_mut().enumerate() {
            *swap = i;
        }
        // Rows with nothing beside the diagonal go to the end, columns like that to the start.
        while let Some(i) = self.isolated(|i, j| a[i + j * n]) {
            self.active.end -= 1;
            self.exchange(a, n, i, self.active.end);
        }
        while let Some(j) = self.isolated(|i, j| a[j + i * n]) {
            self.exchange(a, n, j, self.active.start);
            self.active.start += 1;
        }
    }

    /// The last active row that has nothing beside the diagonal, unless it is the only one.
    fn isolated(&self, at: impl Fn(usize, usize) -> T) -> Option<usize> {
        let active = self.active.clone();
        let alone = |&i: &usize| active.clone().all(|j| j == i || at(i, j) == T::ZERO);
        if active.len() <= 1 { None } else { active.clone().rev().find(alone) }
    }

    /// Swaps two rows and the same columns; `to` becomes inactive.
    fn exchange(&mut self, a: &mut [T], n: usize, from: usize, to: usize) {
        self.swaps[to] = from;
        if from == to {
            return;
        }
        let (low, high) = (from.min(to), from.max(to));
        let (head, tail) = a.split_at_mut(high * n);
        head[low * n..(low + 1) * n].swap_with_slice(&mut tail[..n]);
        for column in a.chunks_exact_mut(n) {
            column.swap(from, to);
        }
    }

    /// Scales the active rows and columns.
    pub(crate) fn scale(&mut self, a: &mut [T], n: usize) {
        let two = T::Real::from_f64(2.0);
        let least_gain = T::Real::from_f64(0.95);
        let lowest = T::Real::SAFE_MIN / (T::Real::EPSILON * two);
        let highest = T::Real::ONE / lowest;
        let Range { start, end } = self.active;
        let inside = |x: T::Real| x > lowest * two && x < highest / two;
        let mut changed = true;
        while changed {
            changed = false;
            for i in start..end {
                let column = a[i * n + start..i * n + end].iter().copied();
                let row = a[i + start * n..].iter().step_by(n).take(end - start).copied();
                let (c, r) = (norm(column), norm(row));
                let beyond = a[i + end * n - n..].iter().step_by(n);
                let column_largest = largest(&a[i * n..i * n + end]);
                let row_largest =
                    beyond.fold(r, |best, x| if x.abs1() > best { x.abs1() } else { best });
                if c == T::Real::ZERO || r == T::Real::ZERO {
                    continue;
                }
                // c·f and r/f come together for the f that is the root of r/c, to a power of two.
                let sum = c + r;
                let (mut f, mut scaled_c, mut scaled_r) = (T::Real::ONE, c, r);
                let safe =
                    |f: T::Real| inside(f) && inside(column_largest * f) && inside(row_largest / f);
                while scaled_c < scaled_r / two && safe(f * two) {
                    (f, scaled_c, scaled_r) = (f * two, scaled_c * two, scaled_r / two);
                }
                while scaled_c / two >= scaled_r && safe(f / two) {
                    (f, scaled_c, scaled_r) = (f / two, scaled_c / two, scaled_r * two);
                }
                let total = self.scale[i] * f;
                if scaled_c + scaled_r >= least_gain * sum || total <= lowest || total >= highest {
                    continue;
                }
                changed = true;
                self.scale[i] = total;
                a[i * n..i * n + end].iter_mut().for_each(|x| *x = x.scale(f));
                let row = a[i + start * n..].iter_mut().step_by(n);
                row.for_each(|x| *x = x.unscale(f));
            }
        }
    }

    /// Right eigenvectors of the matrix from those of the balanced one, in the columns of x.
    pub(crate) fn undo_right(&self, x: &mut [T], n: usize) {
        self.undo(x, n, |scale| scale);
    }

    /// Left eigenvectors of the matrix from those of the balanced one, in the columns of x.
    pub(crate) fn undo_left(&self, x: &mut [T], n: usize) {
        self.undo(x, n, |scale| T::Real::ONE / scale);
    }

    fn undo(&self, x: &mut [T], n: usize, factor: impl Fn(T::Real) -> T::Real) {
        let active = self.active.clone();
        for column in x.chunks_exact_mut(n) {
            for (x, &scale) in column[active.clone()].iter_mut().zip(&self.scale[active.clone()]) {
                *x = x.scale(factor(scale));
            }
            for i in (0..active.start).rev().chain(active.end..n) {
                column.swap(i, self.swaps[i]);
            }
        }
    }
}

/// ‖x‖₂, without overflow or underflow that the norm itself does not have.
pub(crate) fn norm<T: Scalar>(x: impl Iterator<Item = T> + Clone) -> T::Real {
    let square = |x: T| x.re() * x.re() + x.im() * x.im();
    let sum = x.clone().map(square).fold(T::Real::ZERO, |sum, square| sum + square);
    // Squares that underflow are below ε² of a sum this large.
    if sum > T::Real::SAFE_MIN / (T::Real::EPSILON * T::Real::EPSILON) && sum.finite() {
        return sum.sqrt();
    }
    let scale =
        x.clone().fold(T::Real::ZERO, |best, x| if x.abs1() > best { x.abs1() } else { best });
    if scale == T::Real::ZERO || !scale.finite() {
        return scale;
    }
    let sum = x.map(|x| square(x.unscale(scale))).fold(T::Real::ZERO, |sum, square| sum + square);
    scale * sum.sqrt()
}

/// The largest |re| + |im|.
fn largest<T: Scalar>(x: &[T]) -> T::Real {
    x.iter().fold(T::Real::ZERO, |best, x| if x.abs1() > best { x.abs1() } else { best })
}

/// How often a matrix was multiplied by a power of two, up or down, so that the squares of its
/// elements neither overflow nor underflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaling<T: Scalar> {
    factor: T::Real,
    times: usize,
}

impl<T: Scalar> Scaling<T> {
    /// Scales A.
    pub(crate) fn apply(a: &mut [T]) -> Self {
        // 2⁻⁵¹¹ for f64, 2⁻⁶³ for f32.
        let root = T::Real::SAFE_MIN.sqrt();
        let low = root / T::Real::EPSILON;
        let high = T::Real::ONE / low;
        let part = |size: T::Real, x: T::Real| if x.abs() > size { x.abs() } else { size };
        let mut size = a.iter().fold(T::Real::ZERO, |size, x| part(part(size, x.re()), x.im()));
        let factor = if size < low { T::Real::ONE / root } else { root };
        let mut times = 0;
        while size > T::Real::ZERO && (size < low || size > high) {
            size *= factor;
            times += 1;
            a.iter_mut().for_each(|x| *x = x.scale(factor));
        }
        Self { factor, times }
    }

    /// Takes the scaling back, in what scales as A does.
    pub(crate) fn undo(self, a: &mut [T]) {
        for _ in 0..self.times {
            a.iter_mut().for_each(|x| *x = x.unscale(self.factor));
        }
    }
}
