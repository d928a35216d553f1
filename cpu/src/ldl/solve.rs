//! X of A·X = B by L and D of one matrix.

use faer::{Conj, MatMut, MatRef};

use super::Symmetry;
use crate::blas::{trsm, trsm_packed, trsv};
use crate::matrix::layout::Layout;
use crate::matrix::rows::{gather_rows, scatter_rows};
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::{Diag, Scalar, Uplo};

/// What [`super::ldl`] has left of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a, T> {
    pub(crate) factors: &'a [T],
    pub(crate) e: &'a [T],
    pub(crate) permutation: &'a [i32],
}

/// What a substitution works with.
pub(crate) struct Substitution<T: Scalar> {
    nrhs: usize,
    x: Vec<T>,
    scratch: trsm_packed::Scratch<T>,
}

impl<T: Scalar> Substitution<T> {
    /// For systems of order n with nrhs right-hand sides.
    pub(crate) fn new(n: usize, nrhs: usize) -> Self {
        Self { nrhs, x: vec![T::ZERO; n * nrhs], scratch: trsm_packed::Scratch::new(n, nrhs) }
    }

    /// P·L⁻ᴴ·D⁻¹·L⁻¹·Pᵀ·B; B and X lie by rows.
    pub(crate) fn solve(
        &mut self,
        symmetry: Symmetry,
        known: Known<'_, T>,
        b: &[T],
        x: &mut [T],
        arch: Arch,
    ) {
        let nrhs = self.nrhs;
        gather_rows(b, known.permutation, &mut self.x, nrhs);
        self.by_triangle(known, Uplo::Lower, Conj::No, arch);
        by_diagonal(symmetry, known, nrhs, &mut self.x);
        let conj = if symmetry == Symmetry::Hermitian { Conj::Yes } else { Conj::No };
        self.by_triangle(known, Uplo::Upper, conj, arch);
        scatter_rows(&self.x, known.permutation, x, nrhs);
    }

    /// Solves with L, or where the upper triangle is asked for with its transpose.
    fn by_triangle(&mut self, known: Known<'_, T>, uplo: Uplo, conj: Conj, arch: Arch) {
        let Self { nrhs, x, scratch } = self;
        let (n, a, diag) = (known.e.len(), known.factors, Diag::Unit);
        let order = if uplo == Uplo::Lower { Layout::Rows } else { Layout::Columns };
        if *nrhs == 1 {
            arch.dispatch(trsv::Solve { uplo, diag, conj: conj == Conj::Yes, order, a, x });
            return;
        }
        let a = match order {
            Layout::Rows => MatRef::from_row_major_slice(a, n, n),
            Layout::Columns => MatRef::from_column_major_slice(a, n, n),
        };
        let x = MatMut::from_row_major_slice_mut(x, n, *nrhs);
        trsm::solve(System { uplo, diag, conj }, a, x, scratch, arch);
    }
}

/// X ← D⁻¹·X.
fn by_diagonal<T: Scalar>(symmetry: Symmetry, known: Known<'_, T>, nrhs: usize, x: &mut [T]) {
    let n = known.e.len();
    let diagonal = |k: usize| known.factors[k * (n + 1)];
    let mut k = 0;
    while k < n {
        let below = known.e[k];
        if k + 1 == n || below == T::ZERO {
            let d = diagonal(k);
            x[k * nrhs..(k + 1) * nrhs].iter_mut().for_each(|x| *x = x.divide(d));
            k += 1;
            continue;
        }
        // Scaled by the element beside the diagonal, the largest one.
        let above = symmetry.across(below);
        let (p, q) = (diagonal(k).divide(above), diagonal(k + 1).divide(below));
        let t = T::ONE.divide(symmetry.diagonal(p * q) - T::ONE);
        let (first, second) = x[k * nrhs..(k + 2) * nrhs].split_at_mut(nrhs);
        for (x, y) in first.iter_mut().zip(second) {
            let (a, b) = (x.divide(above), y.divide(below));
            (*x, *y) = ((q * a - b) * t, (p * b - a) * t);
        }
        k += 2;
    }
}
