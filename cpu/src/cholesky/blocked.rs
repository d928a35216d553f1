//! Cholesky factorisation of one matrix on one thread: recursion down to blocks in registers.

use faer::{Conj, MatMut};
use lapax_core::Scalar as _;
use pulp::{Simd, WithSimd};

use super::TINY;
use crate::blas::rank_k::{ORDER, PRODUCT_ORDER, by_columns, subtract_hermitian_product};
use crate::blas::trsm::solve;
use crate::blas::trsm_packed;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::simd::elementary::{SUMMED, root};
use crate::simd::loops::sub_mul;
use crate::{Diag, Scalar, Uplo};

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// A product of which one triangle is used.
    pub(crate) block: Vec<T>,
    substitution: trsm_packed::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        if n > ORDER {
            Self::of_large(n)
        } else {
            Self { block: Vec::new(), substitution: trsm_packed::Scratch::new(0, n) }
        }
    }

    /// For matrices of order n that products are subtracted from.
    pub(crate) fn of_large(n: usize) -> Self {
        Self {
            block: vec![T::ZERO; PRODUCT_ORDER * PRODUCT_ORDER],
            substitution: trsm_packed::Scratch::new(n, n),
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

/// The base case without registers to fill: element by element, in place.
pub(crate) fn factor_tiny<T: Scalar>(mut a: MatMut<'_, T>) -> Result<(), usize> {
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
