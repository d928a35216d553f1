//! Triangular systems A·x = b with one right-hand side.
//!
//! A few unknowns are found at once: of a matrix by rows after the dot products of their rows with what is
//! known, of one by columns before their columns are taken from what is left.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::matrix::layout::Layout;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::Lane;
use crate::{Diag, Scalar, Uplo};

/// The unknowns that are found at once: as many products as a unit for them has in work.
const TOGETHER: usize = 4;

/// x ← A⁻¹·x for a triangle of a square matrix.
pub(crate) struct Solve<'a, T> {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements of A are conjugated as they are read.
    pub(crate) conj: bool,
    pub(crate) order: Layout,
    pub(crate) a: &'a [T],
    pub(crate) x: &'a mut [T],
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let n = self.x.len();
        let blocks = n.div_ceil(TOGETHER);
        for step in 0..blocks {
            let block = if self.uplo == Uplo::Lower { step } else { blocks - 1 - step };
            let block = block * TOGETHER..n.min((block + 1) * TOGETHER);
            // What is known, in front of the block or behind it, and what is not.
            let (known, rest) = match self.uplo {
                Uplo::Lower => (0..block.start, block.end..n),
                Uplo::Upper => (block.end..n, 0..block.start),
            };
            match self.order {
                Layout::Rows => self.take_known(simd, block.clone(), known),
                Layout::Columns => {}
            }
            self.solve_block(block.clone());
            match self.order {
                Layout::Rows => {}
                Layout::Columns => self.take_from_rest(simd, block, rest),
            }
        }
    }
}

impl<T: Scalar> Solve<'_, T> {
    /// Element (i, j) of A.
    #[inline(always)]
    fn element(&self, i: usize, j: usize) -> T {
        let n = self.x.len();
        let x = match self.order {
            Layout::Rows => self.a[i * n + j],
            Layout::Columns => self.a[j * n + i],
        };
        if self.conj { x.conj() } else { x }
    }

    /// Part of a row or column of A.
    #[inline(always)]
    fn line(&self, line: usize, part: &Range<usize>) -> &[T] {
        let n = self.x.len();
        &self.a[line * n + part.start..line * n + part.end]
    }

    /// Finds the unknowns of a block, of which all others are taken.
    #[inline(always)]
    fn solve_block(&mut self, block: Range<usize>) {
        for step in 0..block.len() {
            let (i, found) = match self.uplo {
                Uplo::Lower => (block.start + step, block.start..block.start + step),
                Uplo::Upper => (block.end - 1 - step, block.end - step..block.end),
            };
            let mut x = self.x[i];
            for k in found {
                x -= self.element(i, k) * self.x[k];
            }
            self.x[i] = match self.diag {
                Diag::Unit => x,
                Diag::NonUnit => x.divide(self.element(i, i)),
            };
        }
    }

    /// Takes from the rows of a block what they have of the unknowns that are known.
    #[inline(always)]
    fn take_known<S: Simd>(&mut self, simd: S, block: Range<usize>, known: Range<usize>) {
        let lanes = T::Real::lanes::<S>();
        let whole = known.len() - known.len() % lanes;
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let mut rows = [&[][..]; TOGETHER];
        for (row, i) in rows.iter_mut().zip(block.clone()) {
            *row = self.line(i, &known);
        }
        // In place of rows that are missing.
        for r in block.len()..TOGETHER {
            rows[r] = rows[0];
        }
        let x = &self.x[known];
        let mut sums = [zero; TOGETHER];
        for (k, x) in (0..whole).step_by(lanes).zip(x.chunks_exact(lanes)) {
            let x = T::Lane::<S>::read(simd, x);
            for (sum, row) in sums.iter_mut().zip(&rows) {
                let a = T::Lane::<S>::read(simd, &row[k..k + lanes]);
                let a = if self.conj { a.conj() } else { a };
                *sum = sum.add_mul(a, x);
            }
        }
        let mut taken = [T::ZERO; TOGETHER];
        for ((taken, sum), row) in taken.iter_mut().zip(sums).zip(rows) {
            *taken = T::from_parts(sum.re().sum(), sum.im().sum());
            for (&a, &x) in row[whole..].iter().zip(&x[whole..]) {
                *taken += if self.conj { a.conj() } else { a } * x;
            }
        }
        for (x, taken) in self.x[block].iter_mut().zip(taken) {
            *x -= taken;
        }
    }

    /// Takes the unknowns of a block, which are known now, from the others.
    #[inline(always)]
    fn take_from_rest<S: Simd>(&mut self, simd: S, block: Range<usize>, rest: Range<usize>) {
        let lanes = T::Real::lanes::<S>();
        let whole = rest.len() - rest.len() % lanes;
        let mut found = [T::ZERO; TOGETHER];
        found[..block.len()].copy_from_slice(&self.x[block.clone()]);
        let mut factors = [T::Lane::<S>::splat(simd, T::ZERO); TOGETHER];
        for (factor, &x) in factors.iter_mut().zip(&found) {
            *factor = T::Lane::<S>::splat(simd, x);
        }
        for at in (rest.start..rest.start + whole).step_by(lanes) {
            let part = at..at + lanes;
            let mut x = T::Lane::<S>::read(simd, &self.x[part.clone()]);
            for (j, &factor) in block.clone().zip(&factors) {
                let a = T::Lane::<S>::read(simd, self.line(j, &part));
                x = x.sub_mul(if self.conj { a.conj() } else { a }, factor);
            }
            x.write(&mut self.x[part]);
        }
        for i in rest.start + whole..rest.end {
            let mut x = self.x[i];
            for (j, &found) in block.clone().zip(&found) {
                x -= self.element(i, j) * found;
            }
            self.x[i] = x;
        }
    }
}
