//! R·Y ± Y·S = F of one equation on one thread, R and S upper triangular but for real blocks of order 2 on their
//! diagonals: halves of the larger one (Jonsson and Kågström, ACM Trans. Math. Softw. 28, 2002), and rows of small ones
//! (Bartels and Stewart, Comm. ACM 15, 1972).

use faer::{Accum, Conj, MatMut, MatRef};

use crate::Scalar;
use crate::simd::loops::first_largest;

/// The order up to which an equation is solved by rows.
const SMALL: usize = 24;

/// Solves the equation in place of F; all lie by rows. `sign` is 1 or −1.
pub(super) fn solve<T: Scalar>(sign: T, r: MatRef<'_, T>, s: MatRef<'_, T>, mut y: MatMut<'_, T>) {
    let (m, n) = (r.nrows(), s.nrows());
    if m <= SMALL && n <= SMALL {
        by_rows(sign, r, s, y);
    } else if m >= n {
        // R₂₂·Y₂ ± Y₂·S = F₂, and R₁₁·Y₁ ± Y₁·S = F₁ − R₁₂·Y₂.
        let half = whole(r, m / 2);
        let (mut above, mut below) = y.split_at_row_mut(half);
        solve(sign, r.submatrix(half, half, m - half, m - half), s, below.as_mut());
        let r12 = (r.submatrix(0, half, half, m - half), Conj::No);
        T::product(above.as_mut(), Accum::Add, r12, (below.as_ref(), Conj::No), -T::ONE);
        solve(sign, r.submatrix(0, 0, half, half), s, above);
    } else {
        // R·Y₁ ± Y₁·S₁₁ = F₁, and R·Y₂ ± Y₂·S₂₂ = F₂ ∓ Y₁·S₁₂.
        let half = whole(s, n / 2);
        let (mut left, mut right) = y.as_mut().split_at_col_mut(half);
        solve(sign, r, s.submatrix(0, 0, half, half), left.as_mut());
        let s12 = (s.submatrix(0, half, half, n - half), Conj::No);
        T::product(right.as_mut(), Accum::Add, (left.as_ref(), Conj::No), s12, -sign);
        solve(sign, r, s.submatrix(half, half, n - half, n - half), right);
    }
}

/// Whether a matrix by rows has blocks of order 2.
pub(super) fn has_blocks<T: Scalar>(n: usize, t: &[T]) -> bool {
    !T::IS_COMPLEX && t.iter().skip(n).step_by(n + 1).any(|&x| x != T::ZERO)
}

/// Whether rows i and i + 1 share a block.
pub(super) fn joined<T: Scalar>(t: MatRef<'_, T>, i: usize) -> bool {
    !T::IS_COMPLEX && i + 1 < t.nrows() && t[(i + 1, i)] != T::ZERO
}

/// The order near `half` at which no block is cut.
pub(super) fn whole<T: Scalar>(t: MatRef<'_, T>, half: usize) -> usize {
    if joined(t, half - 1) { half + 1 } else { half }
}

/// Row after row from the last one on, or two that share a block.
fn by_rows<T: Scalar>(sign: T, r: MatRef<'_, T>, s: MatRef<'_, T>, mut y: MatMut<'_, T>) {
    let (m, n) = (r.nrows(), s.nrows());
    let mut end = m;
    while end > 0 {
        let first = if end > 1 && joined(r, end - 2) { end - 2 } else { end - 1 };
        let rows = first..end;
        for i in rows.clone() {
            for k in end..m {
                let factor = r[(i, k)];
                for j in 0..n {
                    let known = y[(k, j)];
                    y[(i, j)] -= factor * known;
                }
            }
        }
        let mut j = 0;
        while j < n {
            let last = if joined(s, j) { j + 2 } else { j + 1 };
            block(sign, (r, rows.clone()), (s, j..last), y.as_mut());
            for i in rows.clone() {
                for k in j..last {
                    let factor = sign * y[(i, k)];
                    for j in last..n {
                        let known = s[(k, j)];
                        y[(i, j)] -= factor * known;
                    }
                }
            }
            j = last;
        }
        end = first;
    }
}

type Block<'a, T> = (MatRef<'a, T>, std::ops::Range<usize>);

/// The at most four unknowns of a block of each matrix, by elimination with pivots.
fn block<T: Scalar>(
    sign: T,
    (r, rows): Block<'_, T>,
    (s, columns): Block<'_, T>,
    mut y: MatMut<'_, T>,
) {
    let (first, left) = (rows.start, columns.start);
    let (p, q) = (rows.len(), columns.len());
    if p == 1 && q == 1 {
        let pivot = r[(first, first)] + sign * s[(left, left)];
        // A quotient of zeros is zero.
        if pivot != T::ZERO || y[(first, left)] != T::ZERO {
            y[(first, left)] = y[(first, left)].divide(pivot);
        }
        return;
    }
    let unknowns = p * q;
    let (mut a, mut b) = ([[T::ZERO; 4]; 4], [T::ZERO; 4]);
    for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
        let equation = i * q + j;
        b[equation] = y[(first + i, left + j)];
        for k in 0..p {
            a[k * q + j][equation] += r[(first + i, first + k)];
        }
        for k in 0..q {
            a[i * q + k][equation] += sign * s[(left + k, left + j)];
        }
    }
    // By columns.
    for k in 0..unknowns {
        let pivot = k + first_largest(&a[k][k..unknowns]);
        a.iter_mut().for_each(|column| column.swap(k, pivot));
        b.swap(k, pivot);
        for i in k + 1..unknowns {
            let factor = a[k][i].divide(a[k][k]);
            for column in &mut a[k + 1..unknowns] {
                let above = column[k];
                column[i] -= factor * above;
            }
            let above = b[k];
            b[i] -= factor * above;
        }
    }
    for k in (0..unknowns).rev() {
        b[k] = b[k].divide(a[k][k]);
        for i in 0..k {
            let known = b[k];
            b[i] -= a[k][i] * known;
        }
    }
    for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
        y[(first + i, left + j)] = b[i * q + j];
    }
}
