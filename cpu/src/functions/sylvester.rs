//! R·Y ± Y·S = F of one equation on one thread, R and S upper triangular but for real blocks of order 2 on their
//! diagonals: halves of the larger one (Jonsson and Kågström, ACM Trans. Math. Softw. 28, 2002), and rows of small ones
//! (Bartels and Stewart, Comm. ACM 15, 1972).

use std::ops::Range;

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::loops::{first_largest, sub_scaled};

/// The order up to which an equation is solved by rows.
const SMALL: usize = 24;

/// Solves the equation in place of F; all lie by rows. `sign` is 1 or −1.
pub(super) fn solve<T: Scalar>(sign: T, r: MatRef<'_, T>, s: MatRef<'_, T>, mut y: MatMut<'_, T>) {
    let (m, n) = (r.nrows(), s.nrows());
    if m <= SMALL && n <= SMALL {
        Arch::new().dispatch(ByRows { sign, r, s, y });
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

/// A small equation, in copies that lie together.
struct ByRows<'a, T> {
    sign: T,
    r: MatRef<'a, T>,
    s: MatRef<'a, T>,
    y: MatMut<'a, T>,
}

impl<T: Scalar> WithSimd for ByRows<'_, T> {
    type Output = ();

    /// Row after row from the last one on, or two that share a block.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sign, r, s, y: mut result } = self;
        let (m, n) = (r.nrows(), s.nrows());
        let mut s_rows: Vec<T> = (0..n * n).map(|p| s[(p / n, p % n)]).collect();
        s_rows.iter_mut().for_each(|x| *x *= sign);
        let mut y: Vec<T> = (0..m * n).map(|p| result[(p / n, p % n)]).collect();
        let mut end = m;
        while end > 0 {
            let first = if end > 1 && joined(r, end - 2) { end - 2 } else { end - 1 };
            for i in first..end {
                let (here, known) = y.split_at_mut(end * n);
                for (known, k) in known.chunks_exact(n).zip(end..) {
                    sub_scaled::<S, T>(&mut here[i * n..(i + 1) * n], r[(i, k)], known);
                }
            }
            let mut j = 0;
            while j < n {
                let last = if joined(s, j) { j + 2 } else { j + 1 };
                block((r, first..end), (&s_rows, j..last), n, &mut y);
                for (i, k) in (first..end).flat_map(|i| (j..last).map(move |k| (i, k))) {
                    let factor = y[i * n + k];
                    let behind = &s_rows[k * n + last..(k + 1) * n];
                    sub_scaled::<S, T>(&mut y[i * n + last..(i + 1) * n], factor, behind);
                }
                j = last;
            }
            end = first;
        }
        for (p, &y) in y.iter().enumerate() {
            result[(p / n, p % n)] = y;
        }
    }
}

/// The at most four unknowns of a block of each matrix, by elimination with pivots; ±S and Y by rows of n.
fn block<T: Scalar>(
    (r, rows): (MatRef<'_, T>, Range<usize>),
    (s, columns): (&[T], Range<usize>),
    n: usize,
    y: &mut [T],
) {
    let (first, left) = (rows.start, columns.start);
    let (p, q) = (rows.len(), columns.len());
    if p == 1 && q == 1 {
        let (pivot, y) = (r[(first, first)] + s[left * (n + 1)], &mut y[first * n + left]);
        // A quotient of zeros is zero.
        if pivot != T::ZERO || *y != T::ZERO {
            *y = y.divide(pivot);
        }
        return;
    }
    let unknowns = p * q;
    let (mut a, mut b) = ([[T::ZERO; 4]; 4], [T::ZERO; 4]);
    for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
        let equation = i * q + j;
        b[equation] = y[(first + i) * n + left + j];
        for k in 0..p {
            a[k * q + j][equation] += r[(first + i, first + k)];
        }
        for k in 0..q {
            a[i * q + k][equation] += s[(left + k) * n + left + j];
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
        y[(first + i) * n + left + j] = b[i * q + j];
    }
}
