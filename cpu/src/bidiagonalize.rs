//! Reduction of an m × n matrix, m >= n, to real upper bidiagonal form: A = Q·B·Pᴴ with
//! Q = H₁⋯H_n and P = G₁⋯G_(n−1).
//!
//! In panels, as LAPACK's xGEBRD does it (Dongarra, Sorensen and Hammarling, LAPACK working note 2):
//! within a panel the matrix is A − U·Yᴴ − X·Vᴴ, where U and V hold the reflectors' vectors.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _};
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::columns::{
    TOGETHER, add_product, adjoint_product, dots, row_adjoint, sub_columns, sub_product,
};
use crate::householder::{Reflector, dot, reflector};
use crate::simd::sub_scaled;
use crate::small_bidiagonal;

/// Columns and rows that are reduced before the rest is updated. On one core with AVX-512, f64, with 16, 24 and
/// 32: n = 64 135, 162 and 197 us, 256 3.7, 3.8 and 4.1 ms; from 512 on alike.
const PANEL: usize = 16;

/// The elements up to which a matrix is reduced in one pass for each column. On one core with AVX-512, f64,
/// singular values alone, with panels and in one pass: n = 8 7.1 and 5.7 us, 16 20 and 15, 64 248 and 178, 96 590
/// and 450, 128 1140 and 850.
const SMALL: usize = 128 * 128;

/// B's two diagonals and the factors of the reflectors.
#[derive(Debug)]
pub(crate) struct Bidiagonal<'a, T: Scalar> {
    /// n elements.
    pub(crate) d: &'a mut [T::Real],
    /// n − 1 elements.
    pub(crate) e: &'a mut [T::Real],
    /// n elements.
    pub(crate) tau_q: &'a mut [T],
    /// n − 1 elements.
    pub(crate) tau_p: &'a mut [T],
}

/// What reductions of matrices of one shape reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    x: Vec<T>,
    y: Vec<T>,
    row: Vec<T>,
    small: Option<small_bidiagonal::Scratch<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        if m * n <= SMALL {
            let small = Some(small_bidiagonal::Scratch::new(m, n));
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
        return arch.dispatch(small_bidiagonal::Reduce { a, v, b, scratch });
    }
    let m = a.len() / n;
    let mut first = 0;
    while first < n {
        let next = n.min(first + PANEL);
        let Scratch { x, y, row, .. } = &mut *scratch;
        arch.dispatch(Panel { a, v, b, x, y, row, m, first, next });
        if next == n {
            return;
        }
        let (left, right) = a.split_at_mut(next * m);
        let width = next - first;
        let (rows, cols) = (m - next, n - next);
        let u = MatRef::from_column_major_slice(&left[first * m..], m, width);
        let p = MatRef::from_column_major_slice(&v[first * n..next * n], n, width);
        let x = MatRef::from_column_major_slice(&scratch.x[..m * width], m, width);
        let y = MatRef::from_column_major_slice(&scratch.y[..n * width], n, width);
        let rest = MatMut::from_column_major_slice_mut(right, m, cols);
        let mut rest = rest.subrows_mut(next, rows);
        let (y, p) = (y.subrows(next, cols).transpose(), p.subrows(next, cols).transpose());
        let (u, x) = ((u.subrows(next, rows), Conj::No), (x.subrows(next, rows), Conj::No));
        T::product(rest.as_mut(), Accum::Add, u, (y, Conj::Yes), -T::ONE);
        T::product(rest, Accum::Add, x, (p, Conj::Yes), -T::ONE);
        first = next;
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
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, v, b, x, y, row, m, first, next } = self;
        let n = b.d.len();
        let mut factors = [T::ZERO; PANEL];
        for j in first..next {
            let i = j - first;
            let (left, right) = a.split_at_mut(j * m);
            let (column, rest) = right.split_at_mut(m);
            let us = &left[first * m..];
            let (vs, v) = v[first * n..].split_at_mut(i * n);
            let (xs, x) = x.split_at_mut(i * m);
            let (ys, y) = y.split_at_mut(i * n);

            // Column j of A − U·Yᴴ − X·Vᴴ, and its reflector.
            let pairs = [(us, &*ys, m, n), (&*xs, &*vs, m, n)];
            for (x, y, m, n) in pairs {
                let factors = row_adjoint(&mut factors[..i], y, n, j);
                sub_product::<S, T>(&mut column[j..], x, m, j, factors);
            }
            let Some((head, tail)) = column[j..].split_first_mut() else { return };
            let Reflector { beta, tau } = reflector::<S, T>(*head, tail);
            (b.d[j], b.tau_q[j], *head) = (beta, tau, T::ONE);
            let u = &column[j..];
            let col = j + 1;
            if col == n {
                return;
            }

            // y = tau·(A − U·Yᴴ − X·Vᴴ)ᴴ·u, and the adjoint of row j of A − U·Yᴴ − X·Vᴴ with this u and y in
            // it, of which first what the known ones make.
            let (y, row) = (&mut y[col..n], &mut row[..n - col]);
            y.fill(T::ZERO);
            row.fill(T::ZERO);
            for (known_x, known_y, m, n) in pairs {
                let factors = &mut factors[..i];
                adjoint_product::<S, T>(factors, known_x, m, j, u);
                add_product::<S, T>(y, known_y, n, col, factors);
                let factors = row_adjoint(factors, known_x, m, j);
                add_product::<S, T>(row, known_y, n, col, factors);
            }
            let x = &mut x[col..m];
            both_products::<S, T>((rest, m, j), (tau, u), y, row, x);
            let Some((head, tail)) = row.split_first_mut() else { return };
            let alpha = *head;
            let Reflector { beta, tau } = reflector::<S, T>(alpha, tail);
            (b.e[j], b.tau_p[j], *head) = (beta, tau, T::ONE);
            v[..col].fill(T::ZERO);
            v[col..n].copy_from_slice(row);
            let v = &v[col..n];

            // x = tau·(A − U·Yᴴ − X·Vᴴ)·v, with this u and y in it; v is the row less beta in its head, over
            // alpha − beta.
            if tau == T::ZERO {
                x.fill(T::ZERO);
                continue;
            }
            let square = beta * beta;
            if square >= T::Real::SAFE_MIN && square <= T::Real::ONE / T::Real::SAFE_MIN {
                let factor = T::ONE.divide(alpha - T::from_real(beta));
                sub_scaled::<S, T>(x, T::from_real(beta), &rest[col..m]);
                x.iter_mut().for_each(|x| *x *= factor);
            } else {
                x.fill(T::ZERO);
                add_product::<S, T>(x, rest, m, col, v);
            }
            for (known_x, known_y, m, n) in pairs {
                let factors = &mut factors[..i];
                adjoint_product::<S, T>(factors, known_y, n, col, v);
                sub_product::<S, T>(x, known_x, m, col, factors);
            }
            sub_scaled::<S, T>(x, dot::<S, T>(y, v), &u[1..]);
            x.iter_mut().for_each(|x| *x *= tau);
        }
    }
}

/// For each column a of the rest, from row `row` on: y ← tau·(aᴴ·u − y) and r ← conj(a₀) − y − r; x is
/// the sum of all r·a below row `row`. One pass, in which a column is near when it is read again: Howell,
/// Demmel, Fulton, Hammarling and Marmol, "Cache efficient bidiagonalization using BLAS 2.5 operators"
/// (ACM Trans. Math. Softw. 34, 2008).
#[inline(always)]
fn both_products<S: Simd, T: Scalar>(
    (rest, ld, row): (&[T], usize, usize),
    (tau, u): (T, &[T]),
    y: &mut [T],
    r: &mut [T],
    x: &mut [T],
) {
    x.fill(T::ZERO);
    let next = |y: &mut T, r: &mut T, head: T, sum: T| {
        *y = tau * (sum - *y);
        *r = head.conj() - *y - *r;
    };
    let mut columns = rest.chunks_exact(ld).map(|column| &column[row..row + u.len()]);
    let (y_fours, y_rest) = y.as_chunks_mut::<TOGETHER>();
    let (r_fours, r_rest) = r.as_chunks_mut::<TOGETHER>();
    for (y, r) in y_fours.iter_mut().zip(r_fours) {
        let four: [&[T]; TOGETHER] = std::array::from_fn(|_| columns.next().unwrap_or_default());
        let sums = dots::<S, T>(four, u);
        for (c, sum) in sums.into_iter().enumerate() {
            next(&mut y[c], &mut r[c], four[c][0], sum);
        }
        sub_columns::<S, T>(x, r.map(|r| -r), four.map(|column| &column[1..]));
    }
    for ((y, r), column) in y_rest.iter_mut().zip(r_rest).zip(columns) {
        next(y, r, column[0], dot::<S, T>(column, u));
        sub_scaled::<S, T>(x, -*r, &column[1..]);
    }
}
