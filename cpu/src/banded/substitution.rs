//! Substitution with U of one band, row by row: row k has U(k, k), U(k, k + 1) and so on, `width` numbers. What lies
//! right of the matrix is not read.

use pulp::{Simd, WithSimd};

use super::Definite;
use crate::simd::loops::{Divisor, sub_mul, sub_scaled};
use crate::{Scalar, Uplo};

/// X ← U⁻¹·X, X n × nrhs by rows.
#[inline(always)]
pub(super) fn backward<S: Simd, T: Scalar>(upper: &[T], width: usize, x: &mut [T], nrhs: usize) {
    for (k, row) in upper.chunks_exact(width).enumerate().rev() {
        let (head, known) = x.split_at_mut((k + 1) * nrhs);
        let count = (width - 1).min(known.len() / nrhs);
        let (divisor, row) = (Divisor::new(row[0]), &row[1..=count]);
        if nrhs == 1 {
            let mut sum = head[k];
            // The unknown that was found last comes last.
            for (&u, &x) in row.iter().zip(&known[..count]).rev() {
                sum = sub_mul::<S, T>(sum, u, x);
            }
            head[k] = sum;
            divisor.divide(&mut head[k..]);
        } else {
            let sums = &mut head[k * nrhs..];
            for (&u, x) in row.iter().zip(known.chunks_exact(nrhs)) {
                sub_scaled::<S, T>(sums, u, x);
            }
            divisor.divide(sums);
        }
    }
}

/// X ← U⁻ᴴ·X.
#[inline(always)]
pub(super) fn forward<S: Simd, T: Scalar>(upper: &[T], width: usize, x: &mut [T], nrhs: usize) {
    for (k, row) in upper.chunks_exact(width).enumerate() {
        let (head, rest) = x.split_at_mut((k + 1) * nrhs);
        let found = &mut head[k * nrhs..];
        Divisor::new(row[0].conj()).divide(found);
        let found = &*found;
        if nrhs == 1 {
            for (&u, x) in row[1..].iter().zip(rest) {
                *x = sub_mul::<S, T>(*x, u.conj(), found[0]);
            }
        } else {
            for (&u, x) in row[1..].iter().zip(rest.chunks_exact_mut(nrhs)) {
                sub_scaled::<S, T>(x, u.conj(), found);
            }
        }
    }
}

/// X ← (Uᴴ·U)⁻¹·X.
pub(crate) struct Substitute<'a, T> {
    pub(super) upper: &'a [T],
    pub(super) width: usize,
    pub(super) x: &'a mut [T],
    pub(super) nrhs: usize,
    /// Whether X is U⁻ᴴ·B already.
    pub(super) half: bool,
}

impl<T: Scalar> WithSimd for Substitute<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { upper, width, x, nrhs, half } = self;
        if !half {
            forward::<S, T>(upper, width, x, nrhs);
        }
        backward::<S, T>(upper, width, x, nrhs);
    }
}

/// U row by row, of a factor in the form that `definite` says.
pub(super) fn repack<T: Scalar>(definite: Definite, factor: &[T], upper: &mut Vec<T>) {
    /// Rows that are written at once, for each row of `factor`: it is read by whole lines of the cache then.
    const ROWS: usize = 32;
    let Definite { uplo, beside, n } = definite;
    let width = beside + 1;
    if upper.len() != n * width {
        // Fresh zeros are not written twice.
        *upper = vec![T::ZERO; n * width];
    }
    for (block, rows) in upper.chunks_mut(ROWS * width).enumerate() {
        let first = block * ROWS;
        for c in 0..width.min(n - first) {
            // U(k, k + c) is conj(L(k + c, k)).
            let rows = rows.chunks_exact_mut(width).map(|row| &mut row[c]);
            match uplo {
                Uplo::Lower => {
                    let l = &factor[c * n + first..(c + 1) * n - c];
                    rows.zip(l).for_each(|(u, l)| *u = l.conj());
                }
                Uplo::Upper => {
                    let at = (beside - c) * n;
                    rows.zip(&factor[at + first + c..at + n]).for_each(|(u, &x)| *u = x);
                }
            }
        }
    }
}
