//! QR factors of at most L rows and columns, in a copy whose columns have the constant length L, so
//! that reflectors are applied in whole registers. Rows that the matrix does not have are zero.

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::householder::{Reflector, reflector};
use crate::matrix::panel::Panel;
use crate::simd::loops::sub_mul;

/// The factorisation of a panel.
pub(crate) struct FactorPacked<'a, T, const L: usize> {
    pub(crate) panel: Panel<'a, T>,
    pub(crate) tau: &'a mut [T],
}

impl<T: Scalar, const L: usize> WithSimd for FactorPacked<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Panel { a, lda, row } = self.panel;
        let mut block = [[T::ZERO; L]; L];
        let block = pack(&mut block, a, lda, row);
        for (j, tau) in self.tau.iter_mut().enumerate() {
            let (left, right) = block.split_at_mut(j + 1);
            let column = left[j];
            let mut v = below(j, &column);
            let Reflector { beta, tau: factor } = reflector::<S, T>(column[j], &mut v);
            *tau = factor;
            // Whatever was multiplied by a NaN.
            v = below(j, &v);
            for (i, (x, &v)) in left[j].iter_mut().zip(&v).enumerate() {
                *x = if i > j { v } else { *x };
            }
            left[j][j] = T::from_real(beta);
            v[j] = T::ONE;
            right.iter_mut().for_each(|column| reflect::<S, T, L>(factor.conj(), &v, column));
        }
        unpack(block, a, lda, row);
    }
}

/// The columns of Q from reflectors; columns after the reflectors are unit columns already.
pub(crate) struct GeneratePacked<'a, T, const L: usize> {
    pub(crate) a: &'a mut [T],
    pub(crate) m: usize,
    pub(crate) tau: &'a [T],
}

impl<T: Scalar, const L: usize> WithSimd for GeneratePacked<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, m, tau } = self;
        let mut block = [[T::ZERO; L]; L];
        let block = pack(&mut block, a, m, 0);
        for (j, &tau) in tau.iter().enumerate().rev() {
            let (left, right) = block.split_at_mut(j + 1);
            let mut v = below(j, &left[j]);
            v[j] = T::ONE;
            right.iter_mut().for_each(|column| reflect::<S, T, L>(tau, &v, column));
            // Column j is H·e_j.
            for (i, (x, &v)) in left[j].iter_mut().zip(&v).enumerate() {
                *x = if i > j { -tau * v } else { T::ZERO };
            }
            left[j][j] = T::ONE - tau;
        }
        unpack(block, a, m, 0);
    }
}

/// Copies the rows from `row` on into columns of length L.
#[inline(always)]
fn pack<'b, T: Scalar, const L: usize>(
    block: &'b mut [[T; L]; L],
    a: &[T],
    lda: usize,
    row: usize,
) -> &'b mut [[T; L]] {
    let block = &mut block[..a.len() / lda];
    for (packed, column) in block.iter_mut().zip(a.chunks_exact(lda)) {
        packed[..lda - row].copy_from_slice(&column[row..]);
    }
    block
}

/// Copies them back.
#[inline(always)]
fn unpack<T: Scalar, const L: usize>(block: &[[T; L]], a: &mut [T], lda: usize, row: usize) {
    for (packed, column) in block.iter().zip(a.chunks_exact_mut(lda)) {
        column[row..].copy_from_slice(&packed[..lda - row]);
    }
}

/// The column with zeros down to row j.
#[inline(always)]
fn below<T: Scalar, const L: usize>(j: usize, column: &[T; L]) -> [T; L] {
    let mut v = *column;
    v.iter_mut().enumerate().for_each(|(i, x)| *x = if i > j { *x } else { T::ZERO });
    v
}

/// column ← column − tau·v·(vᴴ·column).
#[inline(always)]
fn reflect<S: Simd, T: Scalar, const L: usize>(tau: T, v: &[T; L], column: &mut [T; L]) {
    const PARTS: usize = 8;
    let mut sums = [T::ZERO; PARTS];
    for (v, x) in v.chunks_exact(PARTS).zip(column.chunks_exact(PARTS)) {
        for ((sum, &v), &x) in sums.iter_mut().zip(v).zip(x) {
            *sum = sub_mul::<S, T>(*sum, -v.conj(), x);
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let factor = tau * (((a + e) + (c + g)) + ((b + f) + (d + h)));
    for (x, &v) in column.iter_mut().zip(v) {
        *x = sub_mul::<S, T>(*x, factor, v);
    }
}
