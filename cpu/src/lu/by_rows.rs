//! LU factorisation with partial pivoting of a matrix that lies by rows.
//!
//! The recursion of [`crate::lu`] on whole rows, which swap contiguous pieces of them; the columns of a narrow
//! panel are factored in a contiguous copy.

use faer::{Conj, MatMut};

use super::blocked::{COLUMNS, factor};
use crate::blas::trsm::{solve, subtract_product};
use crate::blas::trsm_packed;
use crate::matrix::panel::{Panel, copy};
use crate::matrix::rows::swap_rows;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::{Diag, Scalar, Uplo};

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// The row with which each row was swapped, counted from 0.
    pub(crate) swaps: Vec<usize>,
    panel: Vec<T>,
    substitution: trsm_packed::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For an m × n matrix.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let k = m.min(n);
        Self {
            swaps: vec![0; k],
            panel: vec![T::ZERO; m * COLUMNS.min(n)],
            substitution: trsm_packed::Scratch::new(k, n),
        }
    }

    /// Factors P·A = L·U in place; rows of A are contiguous.
    pub(crate) fn factor(&mut self, a: MatMut<'_, T>, arch: Arch) {
        let Self { swaps, panel, substitution } = self;
        recurse(a, swaps, panel, substitution, arch);
    }
}

fn recurse<T: Scalar>(
    mut a: MatMut<'_, T>,
    swaps: &mut [usize],
    panel: &mut [T],
    scratch: &mut trsm_packed::Scratch<T>,
    arch: Arch,
) {
    let (rows, n) = (a.nrows(), a.ncols());
    if swaps.is_empty() {
        return;
    }
    if n <= COLUMNS {
        let panel = &mut panel[..rows * n];
        copy(a.as_mut(), panel, true, arch);
        factor(Panel { a: &mut *panel, lda: rows, row: 0 }, swaps, scratch, arch);
        copy(a, panel, false, arch);
        return;
    }
    let half = if n > rows { rows } else { (n / 2).next_multiple_of(COLUMNS) };
    let (left_swaps, right_swaps) = swaps.split_at_mut(half);
    let (mut left, mut right) = a.split_at_col_mut(half);

    // P₁·[A₁₁; A₂₁] = [L₁₁; L₂₁]·U₁₁, then U₁₂ = L₁₁⁻¹·A₁₂ of the swapped rows.
    recurse(left.as_mut(), left_swaps, panel, scratch, arch);
    swap_rows(right.as_mut(), left_swaps);
    let (l11, l21) = left.as_ref().split_at_row(half);
    let (mut u12, mut a22) = right.split_at_row_mut(half);
    let system = System { uplo: Uplo::Lower, diag: Diag::Unit, conj: Conj::No };
    solve(system, l11, u12.as_mut(), scratch, arch);

    // P₂·(A₂₂ − L₂₁·U₁₂) = L₂₂·U₂₂.
    subtract_product(a22.as_mut(), (l21, Conj::No), (u12.as_ref(), Conj::No));
    recurse(a22, right_swaps, panel, scratch, arch);
    swap_rows(left.subrows_mut(half, rows - half), right_swaps);
    for swap in right_swaps {
        *swap += half;
    }
}
