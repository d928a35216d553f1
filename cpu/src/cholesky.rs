//! Cholesky factorisation A = L·Lᴴ = Uᴴ·U.
//!
//! Uᴴ·U = A is L·Lᴴ = Aᵀ for L = Uᵀ, so the upper case is the lower one on a transposed view.

use std::cmp::Ordering;

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{
    ItemsInOut, ItemsMut, Real, Scalar as _, for_each, for_each_large, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::few;
use crate::lanes::{self, Order, for_each_group};
use crate::row_major;
use crate::rows;
use crate::scalar::nanoseconds;
use crate::simd::sub_mul;
use crate::substitution;
use crate::tiled_cholesky::{factor_filled, factor_tiled};
use crate::transposition::MEANS;
use crate::triangular::{System, solve, subtract_product};
use crate::{Diag, Error, InOut, Scalar, Threads, Uplo};

pub use crate::update::cholesky_update;

/// The order up to which a matrix is factored column by column, packed: for f64 at this order on
/// one core with AVX-512, 1.9 us, against 3.8 us in place.
const ORDER: usize = 32;
/// The order up to which a matrix is factored faster without wide registers: for f64, 0.06 us
/// against 0.13 us at 4 and 0.16 us against 0.25 us at 8.
const TINY: usize = 8;
/// The order up to which a batch goes through lanes: for f64, 0.07 us against 0.16 us at 8, 1.2 us
/// against 1.9 us at 32.
pub(crate) const LANES_ORDER: usize = 32;
/// Products that are summed before they are taken from an element of A, which is at least as large as their sum
/// is on the diagonal: rounded beside A, n of them cost √n roundings of it. L in f32 against f64, n = 128, median of the
/// largest errors over ε times the largest element: 4.8 one by one, 1.9 with 8, 1.4 with 16, 1.2 with 32, 1.0 with 64.
pub(crate) const SUMMED: usize = 32;
/// The order up to which a Hermitian update is computed as a full product, of which half is used.
const PRODUCT_ORDER: usize = 64;

/// The order from which a matrix is cut into strips for all threads, and the rows of a strip up to and
/// from which order. On two cores with AVX-512, f64, an upper triangle, against recursion on one: n = 384
/// 0.51 ms and 0.45 with strips of 64, n = 512 1.22 ms and 0.89 (1.04 with 96), n = 1024 7.4 ms and 4.5
/// (4.6 with 96, 5.3 with 192), n = 2048 55 ms and 33 with 64, 32 with 96. Serially strips of 96 cost
/// 2 % more than recursion.
pub(crate) const TILED_ORDER: usize = 448;
const FEW_ROWS: usize = 640;
const NARROW_STRIP: usize = 64;
const WIDE_STRIP: usize = 96;
const _: () = assert!(
    NARROW_STRIP.is_multiple_of(MEANS) && WIDE_STRIP.is_multiple_of(MEANS),
    "strips begin where means do"
);

/// Factors each n × n Hermitian positive definite matrix of a batch, in place.
///
/// Only the triangle `uplo` of `a` is read and written: A = L·Lᴴ for `Lower`, A = Uᴴ·U for `Upper`.
/// Imaginary parts on the diagonal are taken as zero and returned as zero. `info` holds one number
/// per matrix: 0, or the order of the first leading minor that is not positive (or is NaN), at which
/// the factorisation stopped.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn potrf<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let operands =
        (ItemsInOut::new("a", batch, &[n, n], a)?, ItemsMut::new("info", batch, &[], info)?);
    let products = n.saturating_mul(n).saturating_mul(n) / 6;
    if lanes::pay(batch, n, LANES_ORDER) {
        let order = if uplo == Uplo::Lower { Order::Column } else { Order::Row };
        let kernel = lanes::cholesky::Factor { n, order };
        for_each_group::<T, _>(batch, operands, nanoseconds::<T>(products), threads, &kernel);
        return Ok(());
    }
    if n > TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, info), threads| {
            let a = MatMut::from_column_major_slice_mut(a, n, n);
            let a = if uplo == Uplo::Upper { a.transpose_mut() } else { a };
            let minor = factor_tiled(a, strip_rows(n), threads).err();
            info[0] = minor.map_or(0, |j| i32::try_from(j + 1).unwrap_or(i32::MAX));
        });
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || Scratch::new(n);
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |scratch, (a, info)| {
            let a = MatMut::from_column_major_slice_mut(a, n, n);
            let a = if uplo == Uplo::Upper { a.transpose_mut() } else { a };
            // Orders are at most n, which is an i32.
            let minor = factor(a, scratch, arch).err();
            info[0] = minor.map_or(0, |j| i32::try_from(j + 1).unwrap_or(i32::MAX));
        },
    );
    Ok(())
}

/// Factors each n × n row-major Hermitian positive definite matrix of a batch as A = L·Lᴴ.
///
/// Only the lower triangle of `a` is read, or A is the mean of `a` and its adjoint where `mean` says
/// so. `l` is zero above the diagonal, and NaN in the rest where A is not positive definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cholesky<T: Scalar>(
    mean: bool,
    batch: usize,
    n: usize,
    l: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let few = few::pay(batch, n, few::largest_hermitian::<T>());
    let by_lanes = lanes::pay(batch, n, LANES_ORDER);
    let by_columns = rows::cholesky::pay::<T>(n);
    if !(few || by_lanes || by_columns) && n <= TILED_ORDER {
        return row_major::cholesky(potrf, mean, batch, n, l, threads);
    }
    let operands = (ItemsInOut::new("l", batch, &[n, n], l)?,);
    if n > TILED_ORDER {
        let (l,) = operands;
        for_each_large(batch, (l.uncopied(),), threads, |(l,), threads| large(mean, n, l, threads));
        return Ok(());
    }
    if few {
        few::each(batch, operands, |(l,)| {
            let factored = factor_few(l, n, mean);
            row_major::only_lower(l, n, 0, factored);
        });
        return Ok(());
    }
    let time = nanoseconds::<T>(n * n * n / 6);
    if by_lanes {
        let kernel = lanes::cholesky::FactorRows { n, mean };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    } else {
        let kernel = rows::cholesky::Factor { n, mean };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
    }
    Ok(())
}

/// The lower triangle of one small matrix by rows, or of its mean with its adjoint, becomes L; whether there is one.
pub(crate) fn factor_few<T: Scalar>(a: &mut [T], n: usize, mean: bool) -> bool {
    if n > TINY {
        return few::factor_hermitian(a, n, mean);
    }
    if mean {
        row_major::mean_with_adjoint(a, n);
    }
    factor_tiny(MatMut::from_row_major_slice_mut(a, n, n)).is_ok()
}

/// [`cholesky`] of one large matrix: what is read of it and the zeros are written strip by strip, as they are needed.
fn large<T: Scalar>(mean: bool, n: usize, l: InOut<'_, T>, threads: &dyn Threads) {
    let InOut { src, dst } = l;
    if mean && src.is_none() {
        row_major::mean_with_adjoint(dst, n);
    }
    let fill = |first: usize, rows: &mut [T]| {
        if let Some(a) = src {
            if mean {
                row_major::mean_of(false, a, n, first, rows);
            } else {
                let rows = (first..).zip(rows.chunks_exact_mut(n).zip(a[first * n..].chunks(n)));
                rows.for_each(|(i, (row, a))| row[..=i].copy_from_slice(&a[..=i]));
            }
        }
        row_major::only_lower(rows, n, first, true);
    };
    if factor_filled(dst, n, strip_rows(n), &fill, threads).is_err() {
        row_major::only_lower(dst, n, 0, false);
    }
}

/// The rows of a strip of a matrix of order n.
fn strip_rows(n: usize) -> usize {
    if n <= FEW_ROWS { NARROW_STRIP } else { WIDE_STRIP }
}

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// A product of which one triangle is used.
    pub(crate) block: Vec<T>,
    substitution: substitution::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    fn new(n: usize) -> Self {
        if n > ORDER {
            Self::of_large(n)
        } else {
            Self { block: Vec::new(), substitution: substitution::Scratch::new(0, n) }
        }
    }

    /// For matrices of order n that products are subtracted from.
    pub(crate) fn of_large(n: usize) -> Self {
        Self {
            block: vec![T::ZERO; PRODUCT_ORDER * PRODUCT_ORDER],
            substitution: substitution::Scratch::new(n, n),
        }
    }
}

/// Factors the lower triangle of a view; `Err(j)` where row j has no positive pivot.
pub(crate) fn factor<T: Scalar>(
    a: MatMut<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) -> Result<(), usize> {
    let n = a.nrows();
    if n <= ORDER {
        return if n <= TINY {
            factor_tiny(a)
        } else if n <= ORDER / 2 {
            arch.dispatch(FactorPacked::<T, { ORDER / 2 }>(a))
        } else {
            arch.dispatch(FactorPacked::<T, ORDER>(a))
        };
    }
    let half = (n / 2).next_multiple_of(ORDER);
    let (mut a11, _, mut a21, mut a22) = a.split_at_mut(half, half);
    // L₁₁·L₁₁ᴴ = A₁₁, then L₂₁ = A₂₁·L₁₁⁻ᴴ, which is conj(L₁₁)·L₂₁ᵀ = A₂₁ᵀ.
    factor(a11.as_mut(), scratch, arch)?;
    let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: Conj::Yes };
    solve(system, a11.as_ref(), a21.as_mut().transpose_mut(), &mut scratch.substitution, arch);
    // L₂₂·L₂₂ᴴ = A₂₂ − L₂₁·L₂₁ᴴ.
    subtract_hermitian_product(a22.as_mut(), a21.as_ref(), &mut scratch.block);
    factor(a22, scratch, arch).map_err(|j| half + j)
}

/// The lower triangle of A ← A − X·Xᴴ.
pub(crate) fn subtract_hermitian_product<T: Scalar>(
    a: MatMut<'_, T>,
    x: MatRef<'_, T>,
    block: &mut [T],
) {
    let n = a.nrows();
    if n > PRODUCT_ORDER {
        let half = (n / 2).next_multiple_of(ORDER);
        let (a11, _, a21, a22) = a.split_at_mut(half, half);
        let (x1, x2) = x.split_at_row(half);
        subtract_hermitian_product(a11, x1, block);
        subtract_product(a21, (x2, Conj::No), (x1.transpose(), Conj::Yes));
        subtract_hermitian_product(a22, x2, block);
        return;
    }
    let mut product = MatMut::from_column_major_slice_mut(&mut block[..n * n], n, n);
    let (mut a, by_rows) = by_columns(a);
    // The product is laid out as the matrix is.
    let laid_out = if by_rows { product.as_mut().transpose_mut() } else { product.as_mut() };
    T::product(laid_out, Accum::Replace, (x, Conj::No), (x.transpose(), Conj::Yes), T::ONE);
    for (k, product) in block[..n * n].chunks_exact(n).enumerate() {
        let run = run(n, k, by_rows);
        let target = a.as_mut().col_mut(k);
        let Some(target) = target.try_as_col_major_mut() else { unreachable!("columns by now") };
        for (x, &y) in target.as_slice_mut()[run.clone()].iter_mut().zip(&product[run]) {
            *x -= y;
        }
    }
}

/// The view whose columns are contiguous: the matrix, or (`true`) its transpose.
fn by_columns<T>(a: MatMut<'_, T>) -> (MatMut<'_, T>, bool) {
    if a.row_stride() == 1 { (a, false) } else { (a.transpose_mut(), true) }
}

/// The part of the lower triangle in contiguous run k: column k, or row k.
fn run(n: usize, k: usize, by_rows: bool) -> std::ops::Range<usize> {
    if by_rows { 0..k + 1 } else { k..n }
}

/// The base case without registers to fill: element by element, in place.
fn factor_tiny<T: Scalar>(mut a: MatMut<'_, T>) -> Result<(), usize> {
    for j in 0..a.nrows() {
        let mut reciprocal = T::Real::ONE;
        for i in j..a.nrows() {
            let product = (0..j).fold(T::ZERO, |sum, k| sum + a[(i, k)] * a[(j, k)].conj());
            let sum = a[(i, j)] - product;
            if i > j {
                a[(i, j)] = sum.scale(reciprocal);
                continue;
            }
            a[(j, j)] = T::from_real(sum.re());
            let (root, inverse) = root(sum.re()).ok_or(j)?;
            a[(j, j)] = T::from_real(root);
            reciprocal = inverse;
        }
    }
    Ok(())
}

/// The base case: at most L rows, in a copy whose columns have the constant length L, so that they
/// are updated in whole registers, whatever the layout of the matrix.
pub(crate) struct FactorPacked<'a, T, const L: usize>(pub(crate) MatMut<'a, T>);

impl<T: Scalar, const L: usize> WithSimd for FactorPacked<'_, T, L> {
    type Output = Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Result<(), usize> {
        let n = self.0.nrows();
        let (mut a, by_rows) = by_columns(self.0);
        let mut block = [[T::ZERO; L]; L];
        let block = &mut block[..n];
        for k in 0..n {
            let Some(source) = a.as_ref().col(k).try_as_col_major() else {
                unreachable!("columns by now")
            };
            let source = source.as_slice();
            if by_rows {
                block.iter_mut().zip(&source[..=k]).for_each(|(column, &x)| column[k] = x);
            } else {
                block[k][k..n].copy_from_slice(&source[k..]);
            }
        }
        let outcome = factor_block::<S, T, L>(block);
        for k in 0..n {
            let Some(target) = a.as_mut().col_mut(k).try_as_col_major_mut() else {
                unreachable!("columns by now")
            };
            let target = target.as_slice_mut();
            if by_rows {
                block.iter().zip(&mut target[..=k]).for_each(|(column, x)| *x = column[k]);
            } else {
                target[k..].copy_from_slice(&block[k][k..n]);
            }
        }
        outcome
    }
}

/// Column j of L is column j of A − Σ L(:, k)·conj(L(j, k)) over k < j, over the root of its pivot.
///
/// Elements above the diagonal are zero before and after.
#[inline(always)]
fn factor_block<S: Simd, T: Scalar, const L: usize>(columns: &mut [[T; L]]) -> Result<(), usize> {
    for j in 0..columns.len() {
        let (known, rest) = columns.split_at_mut(j);
        let mut column = rest[0];
        for known in known.chunks(SUMMED) {
            // Less than nothing, so that adding it subtracts.
            let mut sum = [T::ZERO; L];
            for l in known {
                let factor = l[j].conj();
                for (x, l) in sum.iter_mut().zip(*l) {
                    *x = sub_mul::<S, T>(*x, factor, l);
                }
            }
            column.iter_mut().zip(sum).for_each(|(x, sum)| *x += sum);
        }
        column[..j].fill(T::ZERO);
        column[j] = T::from_real(column[j].re());
        rest[0] = column;
        let (root, reciprocal) = root(column[j].re()).ok_or(j)?;
        column.iter_mut().for_each(|x| *x = x.scale(reciprocal));
        column[j] = T::from_real(root);
        rest[0] = column;
    }
    Ok(())
}

/// √pivot and its reciprocal, which never overflows; `None` unless the pivot is positive.
#[inline(always)]
pub(crate) fn root<R: Real>(pivot: R) -> Option<(R, R)> {
    let positive = pivot.partial_cmp(&R::ZERO) == Some(Ordering::Greater);
    let root = pivot.sqrt();
    positive.then_some((root, R::ONE / root))
}
