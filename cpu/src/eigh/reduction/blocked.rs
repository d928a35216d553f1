//! Reduction of a Hermitian matrix to real tridiagonal form: A = Q·T·Qᴴ, Q = H₁·H₂⋯H_(n−1).
//!
//! Panels of columns, after which the rest of the matrix is updated by one product of rank twice
//! their width: Dongarra, Sorensen and Hammarling, "Block reduction of matrices to condensed forms
//! for eigenvalue computations" (J. Comput. Appl. Math. 27, 1989; LAPACK working note 2).

use std::ops::RangeInclusive;

use lapax_core::Real as _;
use pulp::{Simd, WithSimd};

use super::one_pass;
use crate::Scalar;
use crate::blas::fused::{
    adjoint_product, hermitian_product, row_adjoint, sub_product, sub_products,
};
use crate::blas::householder::{Reflector, dot, reflector};
use crate::blas::rank_k::{PRODUCT_ORDER, update_columns};
use crate::simd::arch::Arch;
use crate::simd::loops::sub_scaled;
use crate::simd::scalar::{Short, zeros};

/// The orders of matrices that are reduced in one pass for each column. On one core with AVX-512, f64,
/// eigenvalues alone, with panels and in one pass: n = 8 4.5 and 4.8 us, 16 14 and 13, 64 179 and 143, 96 420 and
/// 343, 128 900 and 730.
const SMALL: RangeInclusive<usize> = 16..=128;
/// Columns that are reduced before the rest is updated.
pub(crate) const PANEL: usize = 32;

/// What reductions of matrices of one order reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    /// W, with which A − V·Wᴴ − W·Vᴴ is the updated matrix.
    w: Short<T>,
    /// A product of which one triangle is used.
    block: Vec<T>,
    small: Option<one_pass::Scratch<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        if SMALL.contains(&n) {
            let small = Some(one_pass::Scratch::new(n));
            return Self { w: Short::new(), block: Vec::new(), small };
        }
        let block = if n <= PANEL { 0 } else { PRODUCT_ORDER };
        let block = vec![T::ZERO; block * block];
        Self { w: zeros(n * PANEL.min(n)), block, small: None }
    }
}

/// Reduces the lower triangle of `a`, of order n; nothing else of it is read or written.
///
/// `d` becomes T's diagonal and `e` what is beside it; both also replace those elements of `a`, and
/// the tail of reflector j's vector replaces the rest of column j (xSYTRD, xHETRD with 'L').
pub(crate) fn tridiagonalize<T: Scalar>(
    a: &mut [T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    if d.is_empty() {
        return;
    }
    if let Some(scratch) = &mut scratch.small {
        return arch.dispatch(one_pass::Reduce { a, d, e, tau, scratch });
    }
    tridiagonalize_rest(a, 0, d, e, tau, scratch, arch);
}

/// The same, from column `first` on, where the columns before it were reduced.
pub(crate) fn tridiagonalize_rest<T: Scalar>(
    a: &mut [T],
    mut first: usize,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = d.len();
    while first < n {
        let width = PANEL.min(n - first);
        let w = &mut scratch.w[..n * width];
        arch.dispatch(Panel { a, first, d, e, tau, w });
        let next = first + width;
        if next < n {
            update(a, n, first, next, &scratch.w, &mut scratch.block);
        }
        // The ones that were written for the products give way to T.
        for j in first..next.min(n - 1) {
            a[j * n + j + 1] = T::from_real(e[j]);
        }
        first = next;
    }
}

/// A22 ← A22 − V·Wᴴ − W·Vᴴ, the lower triangle from row and column `next` on.
fn update<T: Scalar>(a: &mut [T], n: usize, first: usize, next: usize, w: &[T], block: &mut [T]) {
    let (left, right) = a.split_at_mut(next * n);
    update_columns(right, n, next, &left[first * n..], w, block);
}

/// The reduction of as many columns as W has, from `first` on.
struct Panel<'a, T: Scalar> {
    a: &'a mut [T],
    first: usize,
    d: &'a mut [T::Real],
    e: &'a mut [T::Real],
    tau: &'a mut [T],
    w: &'a mut [T],
}

impl<T: Scalar> WithSimd for Panel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, first, d, e, tau, w } = self;
        let (n, last) = (d.len(), first + w.len() / d.len());
        for row in first + 1..=last {
            let (left, rest) = a.split_at_mut(row * n);
            let panel = &mut left[first * n..];
            reduce_column(simd, panel, w, d, e, tau, row - 1);
            if row == n {
                return;
            }
            let (known, w) = w.split_at_mut((row - 1 - first) * n);
            let w = &mut w[row..n];
            let v = &panel[known.len() + row..];
            if tau[row - 1] != T::ZERO {
                hermitian_product(simd, rest, n, v, w);
            }
            let mut factors = [[T::ZERO; PANEL]; 2];
            overlaps(simd, &mut factors, panel, known, n, row, v);
            let next = (row < last).then(|| &mut rest[row..n]);
            complete_product(simd, panel, known, tau[row - 1], &factors, w, next);
        }
    }
}

/// Brings column j, the last of a panel's so far, up to date, A − V·Wᴴ − W·Vᴴ, as to the last column of V and W,
/// and finds its reflector.
#[inline(always)]
pub(crate) fn reduce_column<S: Simd, T: Scalar>(
    simd: S,
    panel: &mut [T],
    w: &[T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    j: usize,
) {
    let n = d.len();
    let (reflectors, column) = panel.split_at_mut(panel.len() - n);
    if let Some(last) = reflectors.len().checked_sub(n) {
        let (v, w) = (&reflectors[last..], &w[last..reflectors.len()]);
        sub_product(simd, &mut column[j..], v, n, j, &[w[j].conj()]);
        sub_product(simd, &mut column[j..], w, n, j, &[v[j].conj()]);
    }
    d[j] = column[j].re();
    column[j] = T::from_real(d[j]);
    let Some((head, tail)) = column[j + 1..].split_first_mut() else { return };
    let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
    (e[j], tau[j], *head) = (beta, factor, T::ONE);
}

/// Wᴴ·v and Vᴴ·v for some rows, from `row` on, of v and of V and W so far.
#[inline(always)]
pub(crate) fn overlaps<S: Simd, T: Scalar>(
    simd: S,
    factors: &mut [[T; PANEL]; 2],
    panel: &[T],
    known: &[T],
    n: usize,
    row: usize,
    v: &[T],
) {
    for (factors, columns) in factors.iter_mut().zip([known, &panel[..known.len()]]) {
        adjoint_product(simd, &mut factors[..known.len() / n], columns, n, row, v);
    }
}

/// Makes w = tau·(A − V·Wᴴ − W·Vᴴ)·v, less the multiple of v that makes the update two-sided, of A·v,
/// for the v of a panel's last column so far and its [`overlaps`]. The `next` column of A is brought up to date as
/// to V and W so far: what is read for one is read for both.
#[inline(always)]
pub(crate) fn complete_product<S: Simd, T: Scalar>(
    simd: S,
    panel: &[T],
    known: &[T],
    tau: T,
    overlaps: &[[T; PANEL]; 2],
    w: &mut [T],
    mut next: Option<&mut [T]>,
) {
    let n = panel.len() - known.len();
    let row = n - w.len();
    let (reflectors, column) = panel.split_at(known.len());
    let mut heads = [T::ZERO; PANEL];
    if tau == T::ZERO {
        w.fill(T::ZERO);
    }
    for ((x, y), overlaps) in [(reflectors, known), (known, reflectors)].into_iter().zip(overlaps) {
        let overlaps = &overlaps[..known.len() / n];
        let heads = row_adjoint(&mut heads[..known.len() / n], y, n, row);
        match &mut next {
            Some(next) if tau == T::ZERO => sub_product(simd, next, x, n, row, heads),
            Some(next) => sub_products(simd, [&mut *w, next], x, n, row, [overlaps, heads]),
            None if tau == T::ZERO => {}
            None => sub_product(simd, w, x, n, row, overlaps),
        }
    }
    if tau == T::ZERO {
        return;
    }
    let v = &column[row..];
    w.iter_mut().for_each(|w| *w *= tau);
    let half = (tau * dot::<S, T>(w, v)).scale(T::Real::from_f64(0.5));
    sub_scaled::<S, T>(w, half, v);
}
