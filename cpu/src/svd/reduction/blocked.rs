//! Reduction of an m × n matrix, m >= n, to real upper bidiagonal form: A = Q·B·Pᴴ with
//! Q = H₁⋯H_n and P = G₁⋯G_(n−1).
//!
//! In panels, as LAPACK's xGEBRD does it (Dongarra, Sorensen and Hammarling, LAPACK working note 2):
//! within a panel the matrix is A − U·Yᴴ − X·Vᴴ, where U and V hold the reflectors' vectors.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use super::{Bidiagonal, one_pass};
use crate::Scalar;
use crate::blas::fused::{
    add_columns, add_product, adjoint_product, dots, row_adjoint, sub_product,
};
use crate::blas::householder::{Reflector, dot, reflector};
use crate::simd::arch::Arch;
use crate::simd::chunks::TOGETHER;
use crate::simd::loops::sub_scaled;

/// Columns and rows that are reduced before the rest is updated. On one core with AVX-512, f64, with 16, 24 and
/// 32: n = 64 135, 162 and 197 us, 256 3.7, 3.8 and 4.1 ms; from 512 on alike.
pub(crate) const PANEL: usize = 16;

/// The elements up to which a matrix is reduced in one pass for each column. On one core with AVX-512, f64,
/// singular values alone, with panels and in one pass: n = 8 7.1 and 5.7 us, 16 20 and 15, 64 248 and 178, 96 590
/// and 450, 128 1140 and 850.
const SMALL: usize = 128 * 128;

/// What reductions of matrices of one shape reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    x: Vec<T>,
    y: Vec<T>,
    row: Vec<T>,
    small: Option<one_pass::Scratch<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        if m * n <= SMALL {
            let small = Some(one_pass::Scratch::new(m, n));
            return Self { x: Vec::new(), y: Vec::new(), row: Vec::new(), small };
        }
        let zeros = |length| vec![T::ZERO; length];
        let width = PANEL.min(n);
        Self { x: zeros(m * width), y: zeros(n * width), row: zeros(n), small: None }
    }
}

/// Reduces `a`; below its diagonal it holds the tails of the left reflectors afterwards, and `v`,
/// which is n × n, those of the right ones: column j from row j + 2 on.
pub(crate) fn bidiagonalize<T: Scalar>(
    a: &mut [T],
    v: &mut [T],
    b: &mut Bidiagonal<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = b.d.len();
    if n == 0 {
        return;
    }
    if let Some(scratch) = &mut scratch.small {
        return arch.dispatch(one_pass::Reduce { a, v, b, scratch });
    }
    bidiagonalize_rest(a, 0, v, b, scratch, arch);
}

/// The same, from column and row `first` on, where those before it were reduced.
pub(crate) fn bidiagonalize_rest<T: Scalar>(
    a: &mut [T],
    mut first: usize,
    v: &mut [T],
    b: &mut Bidiagonal<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = b.d.len();
    let m = a.len() / n;
    while first < n {
        let next = n.min(first + PANEL);
        let Scratch { x, y, row, .. } = &mut *scratch;
        arch.dispatch(Panel { a, v, b, x, y, row, m, first, next });
        if next == n {
            return;
        }
        let (left, right) = a.split_at_mut(next * m);
        let Scratch { x, y, .. } = &*scratch;
        let known = Known { u: &left[first * m..], y, x, v: &v[first * n..next * n], m, n };
        known.update(right, next, next);
        first = next;
    }
}

/// What some columns of a panel leave: the matrix is A − U·Yᴴ − X·Vᴴ then.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a, T> {
    /// As many columns of U and of X, of m rows, as of Y and of V, of n.
    pub(crate) u: &'a [T],
    pub(crate) y: &'a [T],
    pub(crate) x: &'a [T],
    pub(crate) v: &'a [T],
    pub(crate) m: usize,
    pub(crate) n: usize,
}

impl<T: Scalar> Known<'_, T> {
    /// U and Y, X and V, and the rows of each.
    fn pairs(&self) -> [(&[T], &[T], usize, usize); 2] {
        let Self { u, y, x, v, m, n } = *self;
        [(u, y, m, n), (x, v, m, n)]
    }

    fn columns(&self) -> usize {
        self.v.len() / self.n
    }

    /// Brings columns of A up to date, of which the first is column `first`, from row `row` on.
    pub(crate) fn update(&self, columns: &mut [T], first: usize, row: usize) {
        let (m, width) = (self.m, self.columns());
        let count = columns.len() / m;
        let mut rest = MatMut::from_column_major_slice_mut(columns, m, count);
        for (x, y, m, n) in self.pairs() {
            let x = MatRef::from_column_major_slice(&x[..m * width], m, width);
            let y = MatRef::from_column_major_slice(&y[..n * width], n, width);
            let x = (x.subrows(row, m - row), Conj::No);
            let y = (y.subrows(first, count).transpose(), Conj::Yes);
            let rest = rest.as_mut().subrows_mut(row, m - row);
            T::product(rest, Accum::Add, x, y, -T::ONE);
        }
    }

    /// Brings column j up to date and finds its reflector; then begins y and the adjoint of row j with what
    /// the known ones make of them.
    #[inline(always)]
    pub(crate) fn begin<S: Simd>(
        &self,
        simd: S,
        column: &mut [T],
        b: &mut Bidiagonal<'_, T>,
        j: usize,
        (y, row): (&mut [T], &mut [T]),
    ) {
        let mut factors = [T::ZERO; PANEL];
        let factors = &mut factors[..self.columns()];
        for (x, y, m, n) in self.pairs() {
            let factors = row_adjoint(factors, y, n, j);
            sub_product(simd, &mut column[j..], x, m, j, factors);
        }
        let Some((head, tail)) = column[j..].split_first_mut() else { return };
        let Reflector { beta, tau } = reflector::<S, T>(*head, tail);
        (b.d[j], b.tau_q[j], *head) = (beta, tau, T::ONE);
        if y.is_empty() {
            return;
        }
        let u = &column[j..];
        y.fill(T::ZERO);
        row.fill(T::ZERO);
        for (known_x, known_y, m, n) in self.pairs() {
            adjoint_product(simd, factors, known_x, m, j, u);
            add_product(simd, y, known_y, n, j + 1, factors);
            let factors = row_adjoint(factors, known_x, m, j);
            add_product(simd, row, known_y, n, j + 1, factors);
        }
    }

    /// Finds the reflector of row j, after [`both_products`], and x = tau·(A − U·Yᴴ − X·Vᴴ)·v with this u
    /// and y in it, from row j + 1 on. `next` is A's next column from there on, and `product` adds A·v.
    #[inline(always)]
    pub(crate) fn finish<S: Simd>(
        &self,
        simd: S,
        (u, next): (&[T], &[T]),
        b: &mut Bidiagonal<'_, T>,
        j: usize,
        (y, row, x, v): (&[T], &mut [T], &mut [T], &mut [T]),
        product: impl FnOnce(&[T], &mut [T]),
    ) {
        let col = j + 1;
        let Some((head, tail)) = row.split_first_mut() else { return };
        let alpha = *head;
        let Reflector { beta, tau } = reflector::<S, T>(alpha, tail);
        (b.e[j], b.tau_p[j], *head) = (beta, tau, T::ONE);
        v[..col].fill(T::ZERO);
        let v = &mut v[col..];
        v.copy_from_slice(row);
        // v is the row less beta in its head, over alpha − beta.
        if tau == T::ZERO {
            x.fill(T::ZERO);
            return;
        }
        let square = beta * beta;
        if square >= T::Real::SAFE_MIN && square <= T::Real::ONE / T::Real::SAFE_MIN {
            let factor = T::ONE.divide(alpha - T::from_real(beta));
            sub_scaled::<S, T>(x, T::from_real(beta), next);
            x.iter_mut().for_each(|x| *x *= factor);
        } else {
            x.fill(T::ZERO);
            product(v, x);
        }
        let mut factors = [T::ZERO; PANEL];
        let factors = &mut factors[..self.columns()];
        for (known_x, known_y, m, n) in self.pairs() {
            adjoint_product(simd, factors, known_y, n, col, v);
            sub_product(simd, x, known_x, m, col, factors);
        }
        sub_scaled::<S, T>(x, dot::<S, T>(y, v), &u[1..]);
        x.iter_mut().for_each(|x| *x *= tau);
    }
}

/// The reduction of columns and rows `first..next`.
struct Panel<'a, 'b, T: Scalar> {
    a: &'a mut [T],
    v: &'a mut [T],
    b: &'a mut Bidiagonal<'b, T>,
    x: &'a mut [T],
    y: &'a mut [T],
    row: &'a mut [T],
    m: usize,
    first: usize,
    next: usize,
}

impl<T: Scalar> WithSimd for Panel<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, v, b, x, y, row, m, first, next } = self;
        let n = b.d.len();
        for j in first..next {
            let (i, col) = (j - first, j + 1);
            let (left, right) = a.split_at_mut(j * m);
            let (column, rest) = right.split_at_mut(m);
            let (vs, v) = v[first * n..].split_at_mut(i * n);
            let (xs, x) = x.split_at_mut(i * m);
            let (ys, y) = y.split_at_mut(i * n);
            let known = Known { u: &left[first * m..], y: ys, x: xs, v: vs, m, n };
            let (y, row) = (&mut y[col..n], &mut row[..n - col]);
            known.begin(simd, column, b, j, (&mut *y, &mut *row));
            if col == n {
                return;
            }
            let (u, x) = (&column[j..], &mut x[col..m]);
            x.fill(T::ZERO);
            both_products(simd, (rest, m, j), (b.tau_q[j], u), y, row, x);
            let product = |v: &[T], x: &mut [T]| add_product(simd, x, rest, m, col, v);
            let parts = (&*y, &mut *row, x, &mut v[..n]);
            known.finish(simd, (u, &rest[col..m]), b, j, parts, product);
        }
    }
}

/// For each column a of the rest, from row `row` on: y ← tau·(aᴴ·u − y) and r ← conj(a₀) − y − r; to x the sum
/// of all r·a below row `row` is added. One pass, in which a column is near when it is read again: Howell,
/// Demmel, Fulton, Hammarling and Marmol, "Cache efficient bidiagonalization using BLAS 2.5 operators"
/// (ACM Trans. Math. Softw. 34, 2008).
#[inline(always)]
pub(crate) fn both_products<S: Simd, T: Scalar>(
    simd: S,
    (rest, ld, row): (&[T], usize, usize),
    (tau, u): (T, &[T]),
    y: &mut [T],
    r: &mut [T],
    x: &mut [T],
) {
    let next = |y: &mut T, r: &mut T, head: T, sum: T| {
        *y = tau * (sum - *y);
        *r = head.conj() - *y - *r;
    };
    let mut columns = rest.chunks_exact(ld).map(|column| &column[row..row + u.len()]);
    let (y_fours, y_rest) = y.as_chunks_mut::<TOGETHER>();
    let (r_fours, r_rest) = r.as_chunks_mut::<TOGETHER>();
    for (y, r) in y_fours.iter_mut().zip(r_fours) {
        let four: [&[T]; TOGETHER] = std::array::from_fn(|_| columns.next().unwrap_or_default());
        let sums = dots(simd, four, u);
        for (c, sum) in sums.into_iter().enumerate() {
            next(&mut y[c], &mut r[c], four[c][0], sum);
        }
        add_columns(simd, x, *r, four.map(|column| &column[1..]));
    }
    for ((y, r), column) in y_rest.iter_mut().zip(r_rest).zip(columns) {
        next(y, r, column[0], dot::<S, T>(column, u));
        sub_scaled::<S, T>(x, -*r, &column[1..]);
    }
}
