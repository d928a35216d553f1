//! L·D·Lᴴ of one matrix on one thread: panels of columns, each of which takes what the columns of its panel before it ask
//! for as its turn comes; what lies behind a panel takes all of it at once, by products of matrices.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use super::Symmetry;
use crate::blas::fused::sub_product;
use crate::matrix::transpose::transpose_one;
use crate::simd::arch::Arch;
use crate::simd::loops::{Divisor, first_largest};
use crate::{Scalar, Serial, Uplo};

/// The columns of a panel, and the order up to which a matrix is one.
const PANEL: usize = 64;
const ONE_PANEL: usize = 96;
/// The columns behind a panel that are brought up to date at once.
const BLOCK: usize = 64;

/// A matrix in work and its factors, by columns.
pub(crate) struct Factors<T> {
    n: usize,
    /// What is below the diagonal and on it: A, then L and D.
    a: Vec<T>,
    e: Vec<T>,
    permutation: Vec<i32>,
    /// L·D of the columns of a panel, and of one more that is looked at.
    w: Vec<T>,
    row: Vec<T>,
}

impl<T: Scalar> Factors<T> {
    /// For a matrix of order n.
    pub(crate) fn new(n: usize) -> Self {
        let panel = width(n);
        let zeros = |count| vec![T::ZERO; count];
        let (a, e, w, row) = (zeros(n * n), zeros(n), zeros(n * (panel + 1)), zeros(panel));
        Self { n, a, e, permutation: vec![0; n], w, row }
    }

    /// The matrix with a triangle by rows.
    pub(crate) fn read(&mut self, symmetry: Symmetry, uplo: Uplo, a: &[T]) {
        let n = self.n;
        match uplo {
            Uplo::Lower => transpose_one((n, n), a, &mut self.a, &Serial),
            // The rows of the upper triangle are the columns of the lower one.
            Uplo::Upper => {
                for (to, &x) in self.a.iter_mut().zip(a) {
                    *to = symmetry.across(x);
                }
            }
        }
        for x in self.a.iter_mut().step_by(n + 1) {
            *x = symmetry.diagonal(*x);
        }
    }

    /// L and D by rows, with zeros above the diagonal.
    pub(crate) fn write(&self, a: &mut [T], e: &mut [T], permutation: &mut [i32]) {
        let n = self.n;
        if n == 0 {
            return;
        }
        transpose_one((n, n), &self.a, a, &Serial);
        for (i, row) in a.chunks_exact_mut(n).enumerate() {
            row[i + 1..].fill(T::ZERO);
        }
        e.copy_from_slice(&self.e);
        permutation.copy_from_slice(&self.permutation);
    }

    /// Factors the matrix.
    pub(crate) fn factor(&mut self, symmetry: Symmetry, arch: Arch) {
        let n = self.n;
        for (row, at) in self.permutation.iter_mut().zip(0..) {
            *row = at;
        }
        self.e.fill(T::ZERO);
        let mut first = 0;
        while first < n {
            let panel = Panel { factors: &mut *self, symmetry, first };
            let next = arch.dispatch(panel);
            self.update(symmetry, first, next);
            first = next;
        }
    }

    /// Takes L·D·Lᴴ of a panel's columns from what lies behind it.
    fn update(&mut self, symmetry: Symmetry, first: usize, next: usize) {
        let (n, columns) = (self.n, next - first);
        let (known, behind) = self.a.split_at_mut(next * n);
        let l = MatRef::from_column_major_slice(&known[first * n..], n, columns);
        let w = MatRef::from_column_major_slice(&self.w[..columns * n], n, columns);
        let conj = if symmetry == Symmetry::Hermitian { Conj::Yes } else { Conj::No };
        let mut a = MatMut::from_column_major_slice_mut(behind, n, n - next);
        for column in (0..n - next).step_by(BLOCK) {
            let (row, count) = (next + column, BLOCK.min(n - next - column));
            // What is above the diagonal of the block is not read.
            let part = a.as_mut().submatrix_mut(row, column, n - row, count);
            let (l, w) = (l.subrows(row, n - row), w.subrows(row, count));
            T::product(part, Accum::Add, (l, Conj::No), (w.transpose(), conj), -T::ONE);
        }
    }
}

/// The columns of the panels of a matrix of order n.
fn width(n: usize) -> usize {
    if n <= ONE_PANEL { n } else { PANEL }
}

/// The columns from `first` on, as many as a panel has.
struct Panel<'a, T> {
    factors: &'a mut Factors<T>,
    symmetry: Symmetry,
    first: usize,
}

/// A pivot: the rows that take the place of the next one or two.
enum Pivot {
    One(usize),
    Two([usize; 2]),
}

impl<T: Scalar> WithSimd for Panel<'_, T> {
    /// The first column that is not done.
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> usize {
        let n = self.factors.n;
        let mut k = self.first;
        while k < n && k - self.first < width(n) {
            k = match self.choose(simd, k) {
                Pivot::One(row) => {
                    self.swap(k, row);
                    self.finish_one(k);
                    k + 1
                }
                Pivot::Two([row, next]) => {
                    self.swap(k, row);
                    self.swap(k + 1, next);
                    self.finish_two(k);
                    k + 2
                }
            };
        }
        k
    }
}

impl<T: Scalar> Panel<'_, T> {
    /// Where the columns of L·D for column k of the matrix are.
    #[inline(always)]
    fn at(&self, k: usize) -> usize {
        (k - self.first) * self.factors.n
    }

    /// Column `column` of what is left of A, from row k on, to the place of column k, or of the one behind it.
    #[inline(always)]
    fn look<S: Simd>(&mut self, simd: S, k: usize, column: usize, behind: usize) {
        let Self { symmetry, first, .. } = *self;
        let Factors { n, a, w, row, .. } = &mut *self.factors;
        let (n, columns) = (*n, k - first);
        let (known, place) = w.split_at_mut((columns + behind) * n);
        let place = &mut place[..n];
        for (i, x) in (k..column).zip(&mut place[k..column]) {
            *x = symmetry.across(a[i * n + column]);
        }
        place[column..].copy_from_slice(&a[column * n + column..(column + 1) * n]);
        let row = &mut row[..columns];
        for (x, known) in row.iter_mut().zip(known.chunks_exact(n)) {
            *x = symmetry.across(known[column]);
        }
        sub_product(simd, &mut place[k..], &a[first * n..k * n], n, k, row);
        place[column] = symmetry.diagonal(place[column]);
    }

    /// The next pivot, with its columns in the places of L·D: of a row whose diagonal is large beside its other
    /// elements, or of two that have the largest element of each other.
    #[inline(always)]
    fn choose<S: Simd>(&mut self, simd: S, k: usize) -> Pivot {
        let n = self.factors.n;
        // (1 + √17) / 8 bounds the growth of one step of order 2 by that of two of order 1.
        let alpha = T::Real::from_f64(0.640_388_203_202_208);
        self.look(simd, k, k, 0);
        let (here, behind) = (self.at(k), self.at(k) + n);
        let column = &self.factors.w[here + k..behind];
        if column.len() == 1 {
            return Pivot::One(k);
        }
        let mut other = k + 1 + first_largest(&column[1..]);
        let mut size = self.factors.w[here + other].abs1();
        if column[0].abs1() >= alpha * size {
            return Pivot::One(k);
        }
        let mut row = k;
        loop {
            self.look(simd, k, other, 1);
            let column = &self.factors.w[behind + k..behind + n];
            let diagonal = column[other - k].abs1();
            // The largest element of that row beside the diagonal, the first one.
            let before = first_largest_of(&column[..other - k]);
            let after = first_largest_of(&column[other - k + 1..]);
            let (next, largest) = match (before, after) {
                (Some((i, x)), Some((j, y))) => {
                    if x >= y || x.is_nan() {
                        (k + i, x)
                    } else {
                        (other + 1 + j, y)
                    }
                }
                (Some((i, x)), None) => (k + i, x),
                (None, Some((j, y))) => (other + 1 + j, y),
                (None, None) => (other, diagonal),
            };
            if diagonal >= alpha * largest {
                self.factors.w.copy_within(behind..behind + n, here);
                return Pivot::One(other);
            }
            // Sizes grow from turn to turn, which so come to an end; a NaN ends them, too.
            let grows = largest > size;
            if next == row || !grows {
                return Pivot::Two([row, other]);
            }
            (row, other, size) = (other, next, largest);
            self.factors.w.copy_within(behind..behind + n, here);
        }
    }

    /// Rows and columns k and `other` of what is left change places, and the rows of what is known.
    #[inline(always)]
    fn swap(&mut self, k: usize, other: usize) {
        let Self { symmetry, first, .. } = *self;
        let Factors { n, a, permutation, w, .. } = &mut *self.factors;
        let n = *n;
        if k == other {
            return;
        }
        permutation.swap(k, other);
        for column in 0..k {
            a.swap(column * n + k, column * n + other);
        }
        a.swap(k * n + k, other * n + other);
        for i in k + 1..other {
            let (x, y) = (a[k * n + i], a[i * n + other]);
            a[k * n + i] = symmetry.across(y);
            a[i * n + other] = symmetry.across(x);
        }
        a[k * n + other] = symmetry.across(a[k * n + other]);
        let (left, right) = a.split_at_mut(other * n);
        left[k * n + other + 1..(k + 1) * n].swap_with_slice(&mut right[other + 1..n]);
        // Two columns that are looked at are behind those of the panel.
        for column in w.chunks_exact_mut(n).take(k - first + 2) {
            column.swap(k, other);
        }
    }

    /// Column k of L from that of L·D.
    #[inline(always)]
    fn finish_one(&mut self, k: usize) {
        let at = self.at(k);
        let Factors { n, a, w, .. } = &mut *self.factors;
        let n = *n;
        let (w, l) = (&w[at..at + n], &mut a[k * n..(k + 1) * n]);
        l[k..].copy_from_slice(&w[k..]);
        // Where a pivot is zero, all of its column is.
        if w[k] != T::ZERO {
            Divisor::new(w[k]).divide(&mut l[k + 1..]);
        }
    }

    /// Columns k and k + 1 of L from those of L·D, D a block of order 2.
    #[inline(always)]
    fn finish_two(&mut self, k: usize) {
        let (at, symmetry) = (self.at(k), self.symmetry);
        let Factors { n, a, e, w, .. } = &mut *self.factors;
        let n = *n;
        let (w1, w2) = (&w[at..at + n], &w[at + n..at + 2 * n]);
        let (l1, l2) = a[k * n..(k + 2) * n].split_at_mut(n);
        let below = w1[k + 1];
        let above = symmetry.across(below);
        let (d11, d22) = (w1[k], w2[k + 1]);
        (l1[k], l1[k + 1], l2[k + 1], e[k]) = (d11, T::ZERO, d22, below);
        // [l1 l2]·D = [w1 w2], scaled by the element beside the diagonal, the largest one.
        let (p, q) = (d22.divide(below), d11.divide(above));
        let t = T::ONE.divide(symmetry.diagonal(p * q) - T::ONE);
        for i in k + 2..n {
            l1[i] = (p * w1[i] - w2[i]) * t;
            l2[i] = (q * w2[i] - w1[i]) * t;
        }
        Divisor::new(above).divide(&mut l1[k + 2..]);
        Divisor::new(below).divide(&mut l2[k + 2..]);
    }
}

/// The first element of largest |re| + |im|, and that.
#[inline(always)]
fn first_largest_of<T: Scalar>(x: &[T]) -> Option<(usize, T::Real)> {
    if x.is_empty() {
        return None;
    }
    let at = first_largest(x);
    Some((at, x[at].abs1()))
}
