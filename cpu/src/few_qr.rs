//! Q and R, or R alone, of one tiny matrix: A = Q·R, in memory of the stack.
//!
//! A call for one matrix comes after much other code: what is allocated, transposed apart and handed from routine to
//! routine takes longer than the reflectors. See [`crate::few`].

use pulp::WithSimd as _;

use crate::Scalar;
use crate::qr::{FactorColumns, Panel};
use crate::reflectors::GenerateColumns;

/// The most rows and columns.
const LARGEST: usize = 8;

/// Whether one m × n matrix goes this way.
pub(crate) fn pay(m: usize, n: usize) -> bool {
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
