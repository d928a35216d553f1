//! A panel of a QR factorisation with column pivoting: the columns that are left are read for each
//! reflector, but updated once for all of them, by a matrix product.
//!
//! Quintana-Ortí, Sun and Bischof, "A BLAS-3 version of the QR factorization with column pivoting"
//! (SIAM J. Sci. Comput. 19, 1998): after k reflectors, Qᴴ·A = A − V·Fᴴ, of which only the next row
//! and the next column are formed before the panel ends. Where a norm loses its digits they end the
//! panel; here that column alone is formed, and what it has of F becomes zero.

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use super::free::{Free, Norm, largest};
use crate::Scalar;
use crate::blas::fused::{add_product, adjoint_product, row_adjoint, sub_product};
use crate::blas::householder::{Reflector, reflector};
use crate::qr::blocked::WIDTH;
use crate::simd::arch::Arch;

/// What a strip's F takes for each column: its row, and one element more for a sum.
pub(crate) const F_ROW: usize = WIDTH + 1;

/// Factors the first [`WIDTH`] free columns and updates the others. `f` holds [`F_ROW`] elements per
/// column.
pub(crate) fn factor_panel<T: Scalar>(
    free: &mut Free<'_, T>,
    panel: &mut Panel<T>,
    f: &mut [T],
    arch: Arch,
) {
    let Free { a, row, jpvt, norms, tau, .. } = free;
    let f = &mut f[..norms.len() * F_ROW];
    let mut strip = Strip::new(a, f, norms, jpvt);
    panel.begin(*row);
    for (k, tau) in tau[..WIDTH].iter_mut().enumerate() {
        let pivot = strip.largest;
        strip.load(pivot, &mut panel.pivot);
        strip.load(k, &mut panel.moved);
        strip.store(pivot, &panel.moved);
        *tau = arch.dispatch(Reflect { panel: &mut *panel });
        strip.store(k, &panel.pivot);
        arch.dispatch(Product { panel, strip: &mut strip, first: k + 1 });
    }
    strip.update(panel, WIDTH);
}

/// A column and what goes with it.
pub(crate) struct Column<T: Scalar> {
    a: Vec<T>,
    /// Its row of F.
    f: Vec<T>,
    norm: Norm<T::Real>,
    number: i32,
}

impl<T: Scalar> Column<T> {
    fn new(m: usize, width: usize) -> Self {
        Self { a: vec![T::ZERO; m], f: vec![T::ZERO; width], norm: Norm::ZERO, number: 0 }
    }
}

/// Columns of the matrix and what goes with them.
pub(crate) struct Strip<'a, T: Scalar> {
    pub(crate) a: &'a mut [T],
    /// The columns' rows of F, column-major, and a column of sums.
    f: &'a mut [T],
    pub(crate) norms: &'a mut [Norm<T::Real>],
    jpvt: &'a mut [i32],
    /// The first column of largest norm among those that are left.
    pub(crate) largest: usize,
}

impl<'a, T: Scalar> Strip<'a, T> {
    pub(crate) fn new(
        a: &'a mut [T],
        f: &'a mut [T],
        norms: &'a mut [Norm<T::Real>],
        jpvt: &'a mut [i32],
    ) -> Self {
        let largest = largest(norms);
        Self { a, f, norms, jpvt, largest }
    }

    /// Copies column `at` to `column`.
    pub(crate) fn load(&self, at: usize, column: &mut Column<T>) {
        let m = column.a.len();
        column.a.copy_from_slice(&self.a[at * m..(at + 1) * m]);
        for (to, f) in column.f.iter_mut().zip(self.f.chunks_exact(self.norms.len())) {
            *to = f[at];
        }
        (column.norm, column.number) = (self.norms[at], self.jpvt[at]);
    }

    /// Copies `column` to column `at`.
    pub(crate) fn store(&mut self, at: usize, column: &Column<T>) {
        let m = column.a.len();
        self.a[at * m..(at + 1) * m].copy_from_slice(&column.a);
        for (f, &from) in self.f.chunks_exact_mut(self.norms.len()).zip(&column.f) {
            f[at] = from;
        }
        (self.norms[at], self.jpvt[at]) = (column.norm, column.number);
    }

    /// The columns from `first` on become A − V·Fᴴ below the rows of a panel of [`WIDTH`] reflectors.
    pub(crate) fn update(&mut self, panel: &Panel<T>, first: usize) {
        let (m, n, below) = (panel.m, self.norms.len(), panel.row + WIDTH);
        let (rows, columns) = (m - below, n - first);
        let v = MatRef::from_column_major_slice(&panel.v, m, WIDTH).subrows(below, rows);
        let f = MatRef::from_column_major_slice(&self.f[..n * WIDTH], n, WIDTH);
        let f = f.subrows(first, columns).transpose();
        let a = MatMut::from_column_major_slice_mut(self.a, m, n);
        let a = a.submatrix_mut(below, first, rows, columns);
        T::product(a, Accum::Add, (v, Conj::No), (f, Conj::Yes), -T::ONE);
    }
}

/// The reflectors of a panel, and what the products with the last of them share.
pub(crate) struct Panel<T: Scalar> {
    m: usize,
    /// The row of R that the first makes.
    row: usize,
    count: usize,
    /// V, of which nothing above its ones is read.
    v: Vec<T>,
    /// Of the last one, tau and, with the V before, tau·Vᴴ·v and the adjoint of the row of its one.
    tau: T,
    overlaps: Vec<T>,
    heads: Vec<T>,
    /// The column that comes next, and the one whose place it takes.
    pub(crate) pivot: Column<T>,
    pub(crate) moved: Column<T>,
}

impl<T: Scalar> Panel<T> {
    /// For columns of length m.
    pub(crate) fn new(m: usize) -> Self {
        let (width, zeros) = (WIDTH.min(m), |length| vec![T::ZERO; length]);
        Self {
            m,
            row: 0,
            count: 0,
            v: zeros(m * width),
            tau: T::ZERO,
            overlaps: zeros(width),
            heads: zeros(width),
            pivot: Column::new(m, width),
            moved: Column::new(m, width),
        }
    }

    /// No reflectors; the first makes this row of R.
    pub(crate) fn begin(&mut self, row: usize) {
        (self.row, self.count) = (row, 0);
    }
}

/// The pivot column of A − V·Fᴴ, and its reflector, which is added to the panel; returns its tau.
pub(crate) struct Reflect<'a, T: Scalar> {
    pub(crate) panel: &'a mut Panel<T>,
}

impl<T: Scalar> WithSimd for Reflect<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> T {
        let Panel { m, row, count, v, tau, overlaps, heads, pivot, .. } = self.panel;
        let (m, k, row) = (*m, *count, *row + *count);
        let (known, rest) = v.split_at_mut(k * m);
        let column = &mut pivot.a[row..];
        sub_known(simd, column, known, m, &pivot.f[..k]);
        let Some((head, tail)) = column.split_first_mut() else { return T::ZERO };
        let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
        *head = T::from_real(beta);
        let v = &mut rest[row..m];
        v[0] = T::ONE;
        v[1..].copy_from_slice(tail);
        adjoint_product(simd, &mut overlaps[..k], known, m, row, v);
        for overlap in &mut overlaps[..k] {
            *overlap *= factor;
        }
        row_adjoint(&mut heads[..k], known, m, row);
        (*tau, *count) = (factor, k + 1);
        factor
    }
}

/// What the last reflector means to the columns from `first` on: their elements of F, the row of R
/// and their norms, of which the largest is found.
pub(crate) struct Product<'a, 'b, T: Scalar> {
    pub(crate) panel: &'a Panel<T>,
    pub(crate) strip: &'a mut Strip<'b, T>,
    pub(crate) first: usize,
}

impl<T: Scalar> WithSimd for Product<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { panel: Panel { m, row, count, v, tau, overlaps, heads, .. }, strip, first } =
            self;
        let (m, count, k, row) = (*m, *count, *count - 1, *row + *count - 1);
        let Strip { a, f, norms, largest: next, .. } = strip;
        let n = norms.len();
        let (right, norms) = (&mut a[first * m..], &mut norms[first..]);
        let (f, sums) = f.split_at_mut(n * WIDTH);
        let (known, f_new) = f[..count * n].split_at_mut(k * n);
        // f = tau·(A − V·Fᴴ)ᴴ·v.
        let f_new = &mut f_new[first..];
        adjoint_product(simd, f_new, right, m, row, &v[k * m + row..count * m]);
        for f in &mut *f_new {
            *f *= *tau;
        }
        sub_product(simd, f_new, known, n, first, &overlaps[..k]);
        // The adjoint of this row of V·Fᴴ, where v is one.
        let sums = &mut sums[first..];
        sums.copy_from_slice(f_new);
        add_product(simd, sums, known, n, first, &heads[..k]);
        let columns = right.chunks_exact_mut(m).zip(&*sums).zip(&mut *norms);
        for (c, ((a, sum), norm)) in (first..).zip(columns) {
            a[row] -= sum.conj();
            if !norm.downdate(a[row].abs()) {
                // The norm of what the column is in A − V·Fᴴ.
                let mut factors = [T::ZERO; WIDTH];
                for (factor, f) in factors[..count].iter_mut().zip(f.chunks_exact_mut(n)) {
                    *factor = std::mem::replace(&mut f[c], T::ZERO);
                }
                let below = &mut a[row + 1..];
                sub_known(simd, below, &v[..count * m], m, &factors[..count]);
                *norm = Norm::of::<S, T>(below);
            }
        }
        *next = first + largest(norms);
    }
}

/// x ← x − V·fᴴ for the last rows of a column and its row of F.
#[inline(always)]
fn sub_known<S: Simd, T: Scalar>(simd: S, x: &mut [T], v: &[T], m: usize, f: &[T]) {
    // The column may have been formed before, which left zeros.
    let first = f.iter().take_while(|f| **f == T::ZERO).count();
    let mut factors = [T::ZERO; WIDTH];
    for (factor, f) in factors.iter_mut().zip(f) {
        *factor = f.conj();
    }
    sub_product(simd, x, &v[first * m..], m, m - x.len(), &factors[first..f.len()]);
}
