//! Parlett's recurrence for one upper triangular matrix on one thread: halves, whose functions commute with them, and
//! what is between them by halves again (Higham, Functions of Matrices, SIAM 2008, section 9.2), to small ones by columns.
//!
//! With N the strict part of X, x_ij = t_ij·g_ij + r_ij/(t_ii − t_jj) and R = N·T − T·N over i < k < j.

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::loops::sub_scaled;

/// The order up to which a matrix goes by columns.
const SMALL: usize = 24;

/// The numbers of scratch that [`function`] takes.
pub(super) fn scratch(n: usize) -> usize {
    (n / 2 * (n - n / 2)).max(SMALL * SMALL)
}

/// X of row-major T and G.
pub(super) fn function<T: Scalar>(n: usize, t: &[T], g: &[T], x: &mut [T], scratch: &mut [T]) {
    let rows = x.chunks_exact_mut(n).zip(t.chunks_exact(n).zip(g.chunks_exact(n)));
    for (i, (x, (t, g))) in rows.enumerate() {
        // The diagonal is not in N.
        x[..=i].fill(T::ZERO);
        for ((x, &t), &g) in x.iter_mut().zip(t).zip(g).skip(i + 1) {
            *x = t * g;
        }
    }
    let t = MatRef::from_row_major_slice(t, n, n);
    strict(t, MatMut::from_row_major_slice_mut(x, n, n), scratch);
    for (x, &g) in x.iter_mut().zip(g).step_by(n + 1) {
        *x = g;
    }
}

/// N in place of t_ij·g_ij.
fn strict<T: Scalar>(t: MatRef<'_, T>, x: MatMut<'_, T>, scratch: &mut [T]) {
    let n = t.nrows();
    if n <= SMALL {
        let r = &mut scratch[..n * n];
        r.fill(T::ZERO);
        let r = MatRef::from_row_major_slice(r, n, n);
        return Arch::new().dispatch(ByColumns { above: 0, t1: t, t2: t, r, x });
    }
    let half = n / 2;
    let (t11, t12, _, t22) = t.split_at(half, half);
    let (mut x11, x12, _, mut x22) = x.split_at_mut(half, half);
    strict(t11, x11.as_mut(), scratch);
    strict(t22, x22.as_mut(), scratch);
    // R = N₁₁·T₁₂ − T₁₂·N₂₂.
    let r = &mut scratch[..half * (n - half)];
    let mut r = MatMut::from_row_major_slice_mut(r, half, n - half);
    let (n11, t12, n22) = ((x11.as_ref(), Conj::No), (t12, Conj::No), (x22.as_ref(), Conj::No));
    T::product(r.as_mut(), Accum::Replace, n11, t12, T::ONE);
    T::product(r.as_mut(), Accum::Add, t12, n22, -T::ONE);
    between(t11, t22, r, x12);
}

/// X in place of t_ij·g_ij between matrices T₁ and T₂, to whose R this block's own products are added.
fn between<T: Scalar>(
    t1: MatRef<'_, T>,
    t2: MatRef<'_, T>,
    r: MatMut<'_, T>,
    mut x: MatMut<'_, T>,
) {
    let (m, n) = (t1.nrows(), t2.nrows());
    if m <= SMALL && n <= SMALL {
        Arch::new().dispatch(ByColumns { above: m, t1, t2, r: r.as_ref(), x });
    } else if m >= n {
        // The lower rows, and R − T₁₂·X of these for the upper ones.
        let half = m / 2;
        let (t11, t12, _, t22) = t1.split_at(half, half);
        let (mut upper, mut lower) = x.as_mut().split_at_row_mut(half);
        let (mut r_upper, r_lower) = r.split_at_row_mut(half);
        between(t22, t2, r_lower, lower.as_mut());
        let known = (lower.as_ref(), Conj::No);
        T::product(r_upper.as_mut(), Accum::Add, (t12, Conj::No), known, -T::ONE);
        between(t11, t2, r_upper, upper.as_mut());
    } else {
        // The left columns, and R + X·T₁₂ of these for the right ones.
        let half = n / 2;
        let (t11, t12, _, t22) = t2.split_at(half, half);
        let (mut left, mut right) = x.as_mut().split_at_col_mut(half);
        let (r_left, mut r_right) = r.split_at_col_mut(half);
        between(t1, t11, r_left, left.as_mut());
        let known = (left.as_ref(), Conj::No);
        T::product(r_right.as_mut(), Accum::Add, known, (t12, Conj::No), T::ONE);
        between(t1, t22, r_right, right.as_mut());
    }
}

/// A small block of X between T₁ and T₂, or a triangle where both are the same, in copies that lie together.
struct ByColumns<'a, T> {
    /// The rows above the diagonal in the first column: none of a triangle.
    above: usize,
    t1: MatRef<'a, T>,
    t2: MatRef<'a, T>,
    r: MatRef<'a, T>,
    x: MatMut<'a, T>,
}

impl<T: Scalar> WithSimd for ByColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { above, t1, t2, r, x: mut result } = self;
        let (m, n) = (t1.nrows(), t2.nrows());
        let t1: Vec<T> = (0..m * m).map(|p| t1[(p % m, p / m)]).collect();
        let mut x: Vec<T> = (0..m * n).map(|p| result[(p % m, p / m)]).collect();
        let mut sums = vec![T::ZERO; m];
        for j in 0..n {
            let (known, column) = x.split_at_mut(j * m);
            let count = (above + j).min(m);
            for (i, sum) in sums[..count].iter_mut().enumerate() {
                *sum = r[(i, j)];
            }
            for (k, known) in known.chunks_exact(m).enumerate() {
                let count = (above + k).min(m);
                sub_scaled::<S, T>(&mut sums[..count], -t2[(k, j)], &known[..count]);
            }
            for i in (0..count).rev() {
                let difference = t1[i * (m + 1)] - t2[(j, j)];
                if difference != T::ZERO {
                    column[i] += sums[i].divide(difference);
                }
                sub_scaled::<S, T>(&mut sums[..i], column[i], &t1[i * m..i * m + i]);
            }
        }
        for (p, &x) in x.iter().enumerate() {
            result[(p % m, p / m)] = x;
        }
    }
}
