//! LU of one matrix on one thread: recursion down to panels in registers.

use faer::{Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use crate::blas::trsm::{solve, subtract_product};
use crate::blas::trsm_packed;
use crate::matrix::panel::Panel;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::simd::loops::{Divisor, first_largest, sub_mul};
use crate::{Diag, Scalar, Uplo};

/// The number of columns up to which a panel is eliminated without recursion.
pub(crate) const COLUMNS: usize = 32;
/// The columns whose eliminations are taken from others at once.
const STEPS: usize = 8;
/// The columns, and the rows of each, that are updated in registers at once. For 8 columns of L with 256
/// rows, AVX-512: f32 58 GFLOP/s (50 with 16 rows), f64 40 (34), c64 72 (7), c128 49 (7): twice the rows of complex
/// numbers are no longer kept in registers.
const TOGETHER: usize = 4;
const ROWS: usize = 8;
/// The number of rows and of columns up to which elimination is faster without wide registers: for
/// f64, 0.08 us against 0.12 us at 4 and 0.24 us against 0.29 us at 8.
const TINY: usize = 8;
/// The number of rows and of columns up to which a block is eliminated in packed form: for f64 and
/// n = 32, 2.5 us against 5.0 us.
const PACKED: usize = 32;

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// The row with which each row was swapped, counted from 0.
    pub(crate) swaps: Vec<usize>,
    pub(crate) substitution: trsm_packed::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For an m × n matrix.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let k = m.min(n);
        let order = if n <= COLUMNS { 0 } else { k };
        Self { swaps: vec![0; k], substitution: trsm_packed::Scratch::new(order, n) }
    }
}

/// Factors a panel; returns the first row whose pivot is zero.
pub(crate) fn factor<T: Scalar>(
    panel: Panel<'_, T>,
    swaps: &mut [usize],
    scratch: &mut trsm_packed::Scratch<T>,
    arch: Arch,
) -> Option<usize> {
    let Panel { a, lda, row } = panel;
    if swaps.is_empty() {
        return None;
    }
    let (rows, n) = (lda - row, a.len() / lda);
    let size = n.max(rows);
    if size <= PACKED {
        let panel = Panel { a, lda, row };
        return if size <= TINY {
            Eliminate { panel, swaps }.with_simd(pulp::Scalar::new())
        } else if size <= PACKED / 2 {
            arch.dispatch(EliminatePacked::<_, { PACKED / 2 }> { panel, swaps })
        } else {
            arch.dispatch(EliminatePacked::<_, PACKED> { panel, swaps })
        };
    }
    if n <= COLUMNS {
        return arch.dispatch(Eliminate { panel: Panel { a, lda, row }, swaps });
    }
    let half = if n > rows { rows } else { (n / 2).next_multiple_of(COLUMNS) };
    let (left, right) = a.split_at_mut(half * lda);
    let (left_swaps, right_swaps) = swaps.split_at_mut(half);

    // P₁·[A₁₁; A₂₁] = [L₁₁; L₂₁]·U₁₁, then U₁₂ = L₁₁⁻¹·A₁₂ of the swapped rows.
    let zero = factor(Panel { a: left, lda, row }, left_swaps, scratch, arch);
    swap_rows(right, lda, row, left_swaps);
    let l = MatRef::from_column_major_slice_with_stride(left, lda, half, lda);
    let l11 = l.subrows(row, half);
    let below = row + half;
    let a2 = MatMut::from_column_major_slice_with_stride_mut(right, lda, n - half, lda);
    let (above, mut a22) = a2.split_at_row_mut(below);
    let mut u12 = above.subrows_mut(row, half);
    let system = System { uplo: Uplo::Lower, diag: Diag::Unit, conj: Conj::No };
    solve(system, l11, u12.as_mut(), scratch, arch);

    // P₂·(A₂₂ − L₂₁·U₁₂) = L₂₂·U₂₂.
    let l21 = l.subrows(below, lda - below);
    subtract_product(a22.as_mut(), (l21, Conj::No), (u12.as_ref(), Conj::No));
    let zero_right = factor(Panel { a: right, lda, row: below }, right_swaps, scratch, arch);
    swap_rows(left, lda, below, right_swaps);
    zero.or(zero_right)
}

/// Swaps row `first` + i with row `swaps[i]`, in order.
fn swap_rows<T>(a: &mut [T], lda: usize, first: usize, swaps: &[usize]) {
    for column in a.chunks_exact_mut(lda) {
        for (i, &other) in swaps.iter().enumerate() {
            column.swap(first + i, other);
        }
    }
}

/// Elimination in blocks of [`STEPS`] columns: each column of a block takes all that the block's columns
/// before it ask for at once, and so does each column behind the block.
pub(crate) struct Eliminate<'a, T> {
    pub(crate) panel: Panel<'a, T>,
    pub(crate) swaps: &'a mut [usize],
}

impl<T: Scalar> WithSimd for Eliminate<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
        let Panel { a, lda, row: first } = self.panel;
        let mut zero = None;
        for (block, swaps) in self.swaps.chunks_mut(STEPS).enumerate() {
            let (left, row) = (block * STEPS, first + block * STEPS);
            let behind = left + swaps.len();
            let columns = &mut a[left * lda..behind * lda];
            zero = zero.or(eliminate_block::<S, T>(columns, lda, row, swaps));
            swap_rows(&mut a[..left * lda], lda, row, swaps);
            swap_rows(&mut a[behind * lda..], lda, row, swaps);
            let (l, right) = a[left * lda..].split_at_mut(swaps.len() * lda);
            subtract_columns::<S, T>(l, lda, row, right);
        }
        zero
    }
}

/// Eliminates at most [`STEPS`] columns from row `first` on; returns the first row whose pivot is zero.
#[inline(always)]
fn eliminate_block<S: Simd, T: Scalar>(
    a: &mut [T],
    lda: usize,
    first: usize,
    swaps: &mut [usize],
) -> Option<usize> {
    let mut zero = None;
    for (j, swap) in swaps.iter_mut().enumerate() {
        let row = first + j;
        let (l, right) = a.split_at_mut(j * lda);
        let column = &mut right[..lda];
        subtract_columns::<S, T>(l, lda, first, column);
        let other = row + first_largest(&column[row..]);
        let pivot = column[other];
        *swap = other;
        if pivot == T::ZERO {
            zero = zero.or(Some(row));
            continue;
        }
        if other != row {
            a.chunks_exact_mut(lda).for_each(|column| column.swap(row, other));
        }
        Divisor::new(pivot).divide(&mut a[j * lda + row + 1..(j + 1) * lda]);
    }
    zero
}

/// What elimination by the columns of L, at most [`STEPS`], does to columns: their rows from `first` on
/// become rows of U, one for each column of L, and as many products are taken from each row below.
#[inline(always)]
fn subtract_columns<S: Simd, T: Scalar>(l: &[T], lda: usize, first: usize, columns: &mut [T]) {
    let mut groups = columns.chunks_exact_mut(TOGETHER * lda);
    for group in &mut groups {
        subtract_group::<S, T, TOGETHER>(l, lda, first, group);
    }
    for column in groups.into_remainder().chunks_exact_mut(lda) {
        subtract_group::<S, T, 1>(l, lda, first, column);
    }
}

/// [`subtract_columns`] for C columns, whose rows pass through registers together.
#[inline(always)]
fn subtract_group<S: Simd, T: Scalar, const C: usize>(
    l: &[T],
    lda: usize,
    first: usize,
    columns: &mut [T],
) {
    // No constant: a compiler takes minutes for the loop unrolled.
    let depth = (l.len() / lda).min(STEPS);
    let mut u = [[T::ZERO; STEPS]; C];
    for c in 0..C {
        let column = &mut columns[c * lda + first..][..depth];
        for k in 0..depth {
            let mut x = column[k];
            for i in 0..k {
                x = sub_mul::<S, T>(x, u[c][i], l[i * lda + first + k]);
            }
            column[k] = x;
            u[c][k] = x;
        }
    }
    let mut row = first + depth;
    while row + ROWS <= lda {
        let mut sums = [[T::ZERO; ROWS]; C];
        for c in 0..C {
            sums[c].copy_from_slice(&columns[c * lda + row..][..ROWS]);
        }
        for k in 0..depth {
            let l = &l[k * lda + row..][..ROWS];
            for c in 0..C {
                for r in 0..ROWS {
                    sums[c][r] = sub_mul::<S, T>(sums[c][r], u[c][k], l[r]);
                }
            }
        }
        for c in 0..C {
            columns[c * lda + row..][..ROWS].copy_from_slice(&sums[c]);
        }
        row += ROWS;
    }
    for c in 0..C {
        for i in row..lda {
            let mut x = columns[c * lda + i];
            for k in 0..depth {
                x = sub_mul::<S, T>(x, u[c][k], l[k * lda + i]);
            }
            columns[c * lda + i] = x;
        }
    }
}

/// Elimination of at most L rows and columns, in a copy whose columns have the constant
/// length L, so that they are updated in whole registers.
pub(crate) struct EliminatePacked<'a, T, const L: usize> {
    pub(crate) panel: Panel<'a, T>,
    pub(crate) swaps: &'a mut [usize],
}

impl<T: Scalar, const L: usize> WithSimd for EliminatePacked<'_, T, L> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
        let Panel { a, lda, row: first } = self.panel;
        let (rows, n) = (lda - first, a.len() / lda);
        let mut block = [[T::ZERO; L]; L];
        let block = &mut block[..n];
        for (packed, column) in block.iter_mut().zip(a.chunks_exact(lda)) {
            packed[..rows].copy_from_slice(&column[first..]);
        }
        let mut zero = None;
        for (j, swap) in self.swaps.iter_mut().enumerate() {
            let other = j + first_largest(&block[j][j..rows]);
            let pivot = block[j][other];
            *swap = first + other;
            if pivot == T::ZERO {
                zero = zero.or(Some(first + j));
                continue;
            }
            if other != j {
                block.iter_mut().for_each(|column| column.swap(j, other));
            }
            let (left, right) = block.split_at_mut(j + 1);
            // Whole columns are loaded and stored, with zeros in L down to the pivot: a register that
            // is loaded after a part of it was stored has to wait for the store.
            let column = left[j];
            let mut l = column;
            Divisor::new(pivot).divide(&mut l);
            for (i, l) in l.iter_mut().enumerate() {
                left[j][i] = if i > j { *l } else { column[i] };
                *l = if i > j { *l } else { T::ZERO };
            }
            for column in right {
                let u = column[j];
                for (x, l) in column.iter_mut().zip(l) {
                    *x = sub_mul::<S, T>(*x, u, l);
                }
            }
        }
        for (packed, column) in block.iter().zip(a.chunks_exact_mut(lda)) {
            column[first..].copy_from_slice(&packed[..rows]);
        }
        zero
    }
}
