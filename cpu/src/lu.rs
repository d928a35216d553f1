//! LU factorisation with partial pivoting: P·A = L·U, L unit lower trapezoidal, U upper trapezoidal.
//!
//! Pivots are LAPACK's: `ipiv[j] = i` says that rows j and i were swapped in step j, counted from 1.
//! The recursion is Toledo's, "Locality of reference in LU decomposition with partial pivoting"
//! (SIAM J. Matrix Anal. Appl. 18, 1997).

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::few;
use crate::lanes::lu::Output;
use crate::lanes::{self, Order, for_each_group};
use crate::row_lu;
use crate::row_major;
use crate::rows;
use crate::scalar::nanoseconds;
use crate::simd::{Divisor, first_largest, sub_mul};
use crate::substitution;
use crate::tiled_lu::factor_tiled;
use crate::triangular::{self, System, solve, subtract_product, trsm};
use crate::trsv;
use crate::{Diag, Error, InOut, Scalar, Threads, Trans, Uplo};

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
/// The number of rows and of columns from which a matrix is cut into strips for all threads, and the
/// columns of a panel up to and from which width. On two cores with AVX-512, f64, against recursion on
/// one: n = 256 0.45 ms and 0.42 with panels of 32, n = 512 2.5 ms and 1.8 with 64 (2.0 with 96, 2.2 with
/// 128), n = 1024 16 ms and 9.7 with 64, 10.0 with 96, 9.7 with 128 (by rows 12.6, 10.8, 11.6), n = 2048
/// 118 ms and 63 with 96. Serially strips cost 5 to 8 % more than recursion. With AVX2 and n = 256, threads
/// started for it, recursion and panels of 64: f64 0.44 and 0.70, f32 0.29 and 0.52, c128 1.5 and 1.6.
pub(crate) const TILED_ORDER: usize = 320;
const FEW_COLUMNS: usize = 640;
const NARROW_PANEL: usize = 64;
const WIDE_PANEL: usize = 96;
/// The number of rows and of columns up to which a batch goes through lanes: for f64, 0.12 us
/// against 0.18 us at 8, 0.35 us against 0.45 us at 16, 3.4 us against 1.8 us at 32.
pub(crate) const LANES_ORDER: usize = 16;

/// Factors each m × n matrix of a batch as P·A = L·U, in place.
///
/// `a` holds U on and above the diagonal and L, without its unit diagonal, below. `ipiv` holds
/// min(m, n) row swaps per matrix, counted from 1, and `info` one number: 0, or the first i > 0 for
/// which U(i, i) is exactly zero; the factorisation is complete in either case. The pivot is the
/// first element of largest |re| + |im|, and a NaN counts as larger than any number.
///
/// # Errors
/// Where m exceeds `i32`, in which pivots are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn getrf<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    ipiv: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    let k = m.min(n);
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("ipiv", batch, &[k], ipiv)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = m.saturating_mul(n).saturating_mul(k) / 3;
    let time = nanoseconds::<T>(products);
    if few::pay(batch, m.max(n), few::NUMBERS) {
        few::each(batch, operands, |(a, ipiv, info)| {
            info[0] = lapack_info(few::factor(a, (m, n), Order::Column, ipiv, 1));
        });
        return Ok(());
    }
    if k > 0 && lanes::pay(batch, m.max(n), LANES_ORDER) {
        let (order, output) = (Order::Column, Output::Lapack);
        let kernel = lanes::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if k > 0 && rows::pay::<T>(m.max(n)) {
        let kernel = rows::lu::Factor { m, n, order: Order::Column, output: Output::Lapack };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if k > TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, ipiv, info), threads| {
            let a = MatMut::from_column_major_slice_mut(a, m, n);
            let zero = tiled(a, ipiv, 1, threads);
            info[0] = lapack_info(zero);
        });
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || Scratch::new(m, n);
    for_each(batch, operands, time, threads, scratch, |scratch, (a, ipiv, info)| {
        let Scratch { swaps, substitution } = scratch;
        let panel = Panel { a, lda: m, row: 0 };
        let zero = factor(panel, swaps, substitution, arch);
        count_from(1, swaps, ipiv);
        info[0] = lapack_info(zero);
    });
    Ok(())
}

/// LAPACK's `info`: 0, or the row with the first pivot that is zero, counted from 1.
fn lapack_info(zero: Option<usize>) -> i32 {
    zero.map_or(0, |row| i32::try_from(row + 1).unwrap_or(i32::MAX))
}

/// Factors each m × n row-major matrix of a batch as P·A = L·U, in place.
///
/// As [`getrf`], but the matrices lie by rows, `pivots` counts from 0, and `permutation` holds the m
/// rows of A in the order of P·A.
///
/// # Errors
/// As [`getrf`].
#[per_scalar]
pub fn lu<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    pivots: &mut [i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    index_fits_i32("m", m)?;
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsMut::new("pivots", batch, &[k], pivots)?,
        ItemsMut::new("permutation", batch, &[m], permutation)?,
    );
    if k > TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, pivots, permutation), threads| {
            let a = MatMut::from_row_major_slice_mut(a, m, n);
            tiled(a, pivots, 0, threads);
            permute(pivots, permutation);
        });
        return Ok(());
    }
    let products = m.saturating_mul(n).saturating_mul(k) / 3;
    let time = nanoseconds::<T>(products);
    let (order, output) = (Order::Row, Output::Permutation);
    let small = |(a, pivots, permutation): (&mut [T], &mut [i32], &mut [i32])| {
        few::factor_rows(a, (m, n), pivots);
        permute(pivots, permutation);
    };
    if k > 0 && few::pay(batch, m.max(n), few::largest_factored::<T>()) {
        few::each(batch, operands, small);
    } else if k > 0 && lanes::pay(batch, m.max(n), LANES_ORDER) {
        let kernel = lanes::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else if k > 0 && !T::IS_COMPLEX && m.max(n) <= few::largest_factored::<T>() {
        for_each(batch, operands, time, threads, || (), |(), matrix| small(matrix));
    } else if k > 0 && rows::pay::<T>(m.max(n)) {
        let kernel = rows::lu::Factor { m, n, order, output };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else {
        let (scratch, arch) = (|| row_lu::Scratch::new(m, n), Arch::new());
        for_each(batch, operands, time, threads, scratch, |scratch, (a, pivots, permutation)| {
            scratch.factor(MatMut::from_row_major_slice_mut(a, m, n), arch);
            count_from(0, &scratch.swaps, pivots);
            permute(pivots, permutation);
        });
    }
    Ok(())
}

/// Solves op(A)·X = B with the factors and the permutation of [`lu`], for each system of a batch.
///
/// `lu` is n × n, `b` and `x` are n × nrhs; all lie by rows. X has NaN where `permutation`, which
/// counts from 0, names no row.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn lu_solve<T: Scalar>(
    trans: Trans,
    batch: usize,
    n: usize,
    nrhs: usize,
    lu: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let few = few::pay(batch, n.max(nrhs), few::largest_system::<T>(nrhs, Order::Row));
    let by_rows = triangular::by_rows::<T>(n, nrhs);
    let pay = few || by_rows || nrhs == 1 || lanes::pay(batch, n, triangular::LANES_ORDER);
    if n == 0 || nrhs == 0 || !pay {
        return row_major::lu_solve(trsm, trans, batch, n, nrhs, lu, permutation, b, x, threads);
    }
    let operands = (
        Items::new("lu", batch, &[n, n], lu)?,
        Items::new("permutation", batch, &[n], permutation)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    );
    let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(nrhs));
    if few {
        few::each(batch, operands, |(lu, permutation, b, x)| {
            few::lu_solve(trans, (n, nrhs), lu, permutation, b, x);
        });
    } else if by_rows {
        let kernel = rows::lu_solve::Solve { trans, n, nrhs };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else if lanes::pay(batch, n, triangular::LANES_ORDER) {
        let kernel = lanes::lu_solve::Solve { trans, n, nrhs };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else {
        let (copy, arch) = (|| vec![T::ZERO; n], Arch::new());
        for_each(batch, operands, time, threads, copy, |copy, (lu, permutation, b, x)| {
            solve_one(trans, lu, permutation, b, (copy, x), arch);
        });
    }
    Ok(())
}

/// [`lu_solve`] of one system with one right-hand side.
fn solve_one<T: Scalar>(
    trans: Trans,
    a: &[T],
    permutation: &[i32],
    b: &[T],
    (copy, x): (&mut [T], &mut [T]),
    arch: Arch,
) {
    let conj = trans == Trans::ConjTranspose;
    let solve = |uplo, diag, order, x: &mut [T]| {
        arch.dispatch(trsv::Solve { uplo, diag, conj, order, a, x });
    };
    if trans == Trans::None {
        row_major::gather_rows(b, permutation, x, 1);
        solve(Uplo::Lower, Diag::Unit, Order::Row, x);
        solve(Uplo::Upper, Diag::NonUnit, Order::Row, x);
        return;
    }
    // The lower triangle of the transpose is Uᵀ.
    copy.copy_from_slice(b);
    solve(Uplo::Lower, Diag::NonUnit, Order::Column, copy);
    solve(Uplo::Upper, Diag::Unit, Order::Column, copy);
    row_major::scatter_rows(copy, permutation, x, 1);
}

/// Factors one matrix by all threads; returns the first row whose pivot is zero. `pivots` counts rows
/// from `first`.
fn tiled<T: Scalar>(
    a: MatMut<'_, T>,
    pivots: &mut [i32],
    first: usize,
    threads: &dyn Threads,
) -> Option<usize> {
    let mut swaps = vec![0; pivots.len()];
    let width = if pivots.len() <= FEW_COLUMNS { NARROW_PANEL } else { WIDE_PANEL };
    let zero = factor_tiled(a, &mut swaps, width, threads);
    count_from(first, &swaps, pivots);
    zero
}

/// Pivots that count rows from `first`, of an i32 of them.
fn count_from(first: usize, swaps: &[usize], pivots: &mut [i32]) {
    for (pivot, row) in pivots.iter_mut().zip(swaps) {
        *pivot = i32::try_from(first + row).unwrap_or(i32::MAX);
    }
}

/// What a factorisation reuses.
struct Scratch<T: Scalar> {
    /// The row with which each row was swapped, counted from 0.
    swaps: Vec<usize>,
    substitution: substitution::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For an m × n matrix.
    fn new(m: usize, n: usize) -> Self {
        let k = m.min(n);
        let order = if n <= COLUMNS { 0 } else { k };
        Self { swaps: vec![0; k], substitution: substitution::Scratch::new(order, n) }
    }
}

/// Whole columns of a matrix, of which the rows from `row` on are to be factored.
pub(crate) struct Panel<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) lda: usize,
    pub(crate) row: usize,
}

/// Factors a panel; returns the first row whose pivot is zero.
pub(crate) fn factor<T: Scalar>(
    panel: Panel<'_, T>,
    swaps: &mut [usize],
    scratch: &mut substitution::Scratch<T>,
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

/// Turns k row swaps, counted from 0, into the permutation of 0..p that they make.
///
/// Swaps are applied in order to the identity; one whose partner lies outside 0..p is skipped.
///
/// # Errors
/// Where p < k, p exceeds `i32`, or a slice has another length than the dimensions say.
pub fn lu_pivots_to_permutation(
    batch: usize,
    k: usize,
    p: usize,
    pivots: &[i32],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if p < k {
        return Err(Error::Order { larger: "p", larger_value: p, smaller: "k", smaller_value: k });
    }
    index_fits_i32("p", p)?;
    let operands = (
        Items::new("pivots", batch, &[k], pivots)?,
        ItemsMut::new("permutation", batch, &[p], permutation)?,
    );
    for_each(
        batch,
        operands,
        5 + k + p / 8,
        threads,
        || (),
        |(), (pivots, permutation)| permute(pivots, permutation),
    );
    Ok(())
}

/// The permutation that swaps make, in order, of the identity; one with a row outside it is skipped.
pub(crate) fn permute(pivots: &[i32], permutation: &mut [i32]) {
    for (value, entry) in (0..).zip(permutation.iter_mut()) {
        *entry = value;
    }
    for (row, &partner) in pivots.iter().enumerate() {
        match usize::try_from(partner) {
            Ok(partner) if partner < permutation.len() => permutation.swap(row, partner),
            _ => {}
        }
    }
}
