//! QR of one panel, and Q and R, or R alone, of one tiny matrix: A = Q·R, in memory of the stack.
//!
//! A call for one matrix comes after much other code: what is allocated, transposed apart and handed from
//! routine to routine takes longer than the reflectors.

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::fused::reflect_columns;
use crate::blas::householder::{Reflector, reflector};
use crate::matrix::panel::Panel;

/// The most rows and columns.
const LARGEST: usize = 8;

/// Whether one m × n matrix goes this way.
pub(crate) fn serve(m: usize, n: usize) -> bool {
    (1..=LARGEST).contains(&m) && (1..=LARGEST).contains(&n)
}

/// Decomposes an m × n matrix by rows, of which c columns of Q, if it is wanted, and c rows of R are: min(m, n), or m.
pub(crate) fn decompose<T: Scalar>(
    (m, n, c): (usize, usize, usize),
    a: &[T],
    q: Option<&mut [T]>,
    r: &mut [T],
) {
    let simd = pulp::Scalar::new();
    let (mut columns, mut tau) = ([T::ZERO; LARGEST * LARGEST], [T::ZERO; LARGEST]);
    let tau = &mut tau[..m.min(n)];
    for (i, row) in a.chunks_exact(n).enumerate() {
        for (x, column) in row.iter().zip(columns.chunks_exact_mut(m)) {
            column[i] = *x;
        }
    }
    FactorColumns { panel: Panel { a: &mut columns[..m * n], lda: m, row: 0 }, tau }
        .with_simd(simd);
    for (i, row) in r.chunks_exact_mut(n).enumerate() {
        for (j, (x, column)) in row.iter_mut().zip(columns.chunks_exact(m)).enumerate() {
            *x = if i <= j { column[i] } else { T::ZERO };
        }
    }
    let Some(q) = q else { return };
    for (j, column) in columns[..m * c].chunks_exact_mut(m).enumerate().skip(tau.len()) {
        column.fill(T::ZERO);
        column[j] = T::ONE;
    }
    GenerateColumns { a: &mut columns[..m * c], m, tau }.with_simd(simd);
    for (i, row) in q.chunks_exact_mut(c).enumerate() {
        for (x, column) in row.iter_mut().zip(columns.chunks_exact(m)) {
            *x = column[i];
        }
    }
}

/// Reflectors one by one, each applied to all columns to its right.
pub(crate) struct FactorColumns<'a, T> {
    pub(crate) panel: Panel<'a, T>,
    pub(crate) tau: &'a mut [T],
}

impl<T: Scalar> WithSimd for FactorColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Panel { a, lda, row } = self.panel;
        for (j, tau) in self.tau.iter_mut().enumerate() {
            let (left, right) = a.split_at_mut((j + 1) * lda);
            let row = row + j;
            let Some((head, tail)) = left[j * lda + row..].split_first_mut() else { return };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (*head, *tau) = (T::from_real(beta), factor);
            reflect_columns(simd, factor.conj(), tail, right, lda, row);
        }
    }
}

/// [`generate`](crate::qr) with reflectors one by one, from the last to the first.
pub(crate) struct GenerateColumns<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) m: usize,
    pub(crate) tau: &'a [T],
}

impl<T: Scalar> WithSimd for GenerateColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, m, tau } = self;
        for (j, &tau) in tau.iter().enumerate().rev() {
            let (left, right) = a.split_at_mut((j + 1) * m);
            let (above, below) = left[j * m..].split_at_mut(j);
            let Some((head, tail)) = below.split_first_mut() else { return };
            reflect_columns(simd, tau, tail, right, m, j);
            // Column j is H·e_j.
            above.fill(T::ZERO);
            *head = T::ONE - tau;
            tail.iter_mut().for_each(|x| *x *= -tau);
        }
    }
}
