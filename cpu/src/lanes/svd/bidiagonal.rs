//! Reduction of a small matrix in each lane to real upper bidiagonal form by reflectors from both
//! sides: A = Q·B·Pᴴ with Q = H₁⋯H_n and P = G₁⋯G_(n−1).
//!
//! Golub and Kahan, "Calculating the singular values and pseudo-inverse of a matrix" (J. SIAM Numer.
//! Anal. 2, 1965).

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::Scalar;
use crate::lanes::reflector::reflector;
use crate::simd::vector::{Lane, Reg, Vector};

/// B of each lane, and the factors of the reflectors.
pub(crate) struct Bidiagonal<'a, S: Simd, X: Lane<S>> {
    /// n numbers.
    pub(crate) d: &'a mut [Reg<S, Vector<S, X::Real>>],
    /// n numbers, of which the last one becomes zero.
    pub(crate) e: &'a mut [Reg<S, Vector<S, X::Real>>],
    /// n numbers each.
    pub(crate) tau_q: &'a mut [Reg<S, X>],
    pub(crate) tau_p: &'a mut [Reg<S, X>],
    /// m + 2·n numbers.
    pub(crate) scratch: &'a mut [Reg<S, X>],
}

/// Reduces the m × n tile `a`, m ≥ n. Below its diagonal it holds the tails of Q's reflectors
/// afterwards; right of the element beside the diagonal, those of P's.
///
/// A pass over the columns that are left applies the right reflector of one step and multiplies by
/// the left one of the next; a second applies that and multiplies by its right one.
#[inline(always)]
pub(crate) fn bidiagonalize<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    (m, n): (usize, usize),
    b: &mut Bidiagonal<'_, S, X>,
) {
    let one = X::from_real(Vector::splat(simd, X::Real::ONE));
    let zero = X::from_real(Vector::splat(simd, X::Real::ZERO));
    let stride = m * X::PARTS;
    // A right reflector takes x·vᴴ from A; y is what a left one takes, u·yᵀ.
    let (x, rest) = b.scratch.split_at_mut(stride);
    let (v, y) = rest.split_at_mut(n * X::PARTS);
    x.fill(zero.re().reg());
    v[..n * X::PARTS].fill(zero.re().reg());
    for j in 0..n {
        let (left, right) = a[..n * stride].split_at_mut((j + 1) * stride);
        let column = &mut left[j * (stride + X::PARTS)..];
        let factor = X::load(simd, v, j);
        for i in 0..m - j {
            X::load(simd, column, i).sub_mul(X::load(simd, x, j + i), factor).store(column, i);
        }
        let (head, tail) = column.split_at_mut(X::PARTS);
        let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
        b.d[j] = beta.reg();
        tau.store(b.tau_q, j);
        if j + 1 == n {
            b.e[j] = Vector::splat(simd, X::Real::ZERO).reg();
            break;
        }
        one.store(head, 0);
        let shape = (m, j);
        let (u, row) = (&*column, j + 1);
        let mut fours = right.chunks_exact_mut(4 * stride);
        let mut c = row;
        for columns in &mut fours {
            multiply::<S, X, 4>(simd, columns, shape, [u, x, v], y, c);
            c += 4;
        }
        for column in fours.into_remainder().chunks_exact_mut(stride) {
            multiply::<S, X, 1>(simd, column, shape, [u, x, v], y, c);
            c += 1;
        }
        // Row j of A, whose adjoint has the reflector G: row·G is a multiple of a unit vector.
        let tau = tau.conj();
        for c in row..n {
            let product = X::load(simd, y, c) * tau;
            product.store(y, c);
            (X::load(simd, right, (c - row) * m + j) - product).conj().store(v, c);
        }
        let (head, tail) = v[row * X::PARTS..n * X::PARTS].split_at_mut(X::PARTS);
        let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
        b.e[j] = beta.reg();
        tau.store(b.tau_p, j);
        one.store(head, 0);
        (row..m).for_each(|i| zero.store(x, i));
        let mut fours = right.chunks_exact_mut(4 * stride);
        let mut c = row;
        for columns in &mut fours {
            update::<S, X, 4>(simd, columns, shape, [u, v, y], x, c);
            c += 4;
        }
        for column in fours.into_remainder().chunks_exact_mut(stride) {
            update::<S, X, 1>(simd, column, shape, [u, v, y], x, c);
            c += 1;
        }
        // v's tail stays where the row was; what takes part from here on is tau·vᴴ.
        for c in row..n {
            let v_c = X::load(simd, v, c);
            if c > row {
                v_c.store(right, (c - row) * m + j);
            }
            (tau * v_c.conj()).store(v, c);
        }
    }
}

/// Columns A ← A − x·v, and y ← uᴴ·A, from row j on, which is where u begins.
#[inline(always)]
fn multiply<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    columns: &mut [Reg<S, X>],
    (m, j): (usize, usize),
    [u, x, v]: [&[Reg<S, X>]; 3],
    y: &mut [Reg<S, X>],
    first: usize,
) {
    let mut columns = split::<S, X, N>(columns, m, j);
    let factors: [X; N] = std::array::from_fn(|c| X::load(simd, v, first + c));
    let mut sums = [X::from_real(Vector::splat(simd, X::Real::ZERO)); N];
    let x = &x[j * X::PARTS..m * X::PARTS];
    for i in 0..m - j {
        let (u, x) = (X::load(simd, u, i).conj(), X::load(simd, x, i));
        for ((column, factor), sum) in columns.iter_mut().zip(factors).zip(&mut sums) {
            let a = X::load(simd, column, i).sub_mul(x, factor);
            a.store(column, i);
            *sum = sum.add_mul(u, a);
        }
    }
    for (c, sum) in sums.into_iter().enumerate() {
        sum.store(y, first + c);
    }
}

/// Columns A ← A − u·y below row j, and x ← x + A·v.
#[inline(always)]
fn update<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    columns: &mut [Reg<S, X>],
    (m, j): (usize, usize),
    [u, v, y]: [&[Reg<S, X>]; 3],
    x: &mut [Reg<S, X>],
    first: usize,
) {
    let row = j + 1;
    let mut columns = split::<S, X, N>(columns, m, row);
    let v: [X; N] = std::array::from_fn(|c| X::load(simd, v, first + c));
    let y: [X; N] = std::array::from_fn(|c| X::load(simd, y, first + c));
    let (u, x) = (&u[X::PARTS..], &mut x[row * X::PARTS..m * X::PARTS]);
    for i in 0..m - row {
        let (u, mut sum) = (X::load(simd, u, i), X::load(simd, x, i));
        for ((column, v), y) in columns.iter_mut().zip(v).zip(y) {
            let a = X::load(simd, column, i).sub_mul(u, y);
            a.store(column, i);
            sum = sum.add_mul(a, v);
        }
        sum.store(x, i);
    }
}

/// N columns of m numbers, from row `row` on.
#[inline(always)]
fn split<S: Simd, X: Lane<S>, const N: usize>(
    columns: &mut [Reg<S, X>],
    m: usize,
    row: usize,
) -> [&mut [Reg<S, X>]; N] {
    let mut parts = columns.chunks_exact_mut(m * X::PARTS);
    std::array::from_fn(|_| &mut parts.next().unwrap_or_default()[row * X::PARTS..])
}

/// Whether all that is not zero in a matrix of order n, by columns, is on the diagonal and below it, where some is.
pub(crate) fn is_lower_bidiagonal<T: Scalar>(a: &[T], n: usize) -> bool {
    let zero = |x: &T| *x == T::ZERO;
    let mut columns = a.chunks_exact(n.max(1)).enumerate();
    let zero_elsewhere = |(j, column): (usize, &[T])| {
        column.iter().skip(j + 2).all(zero) && column[..j].iter().all(zero)
    };
    columns.all(zero_elsewhere) && a.iter().skip(1).step_by(n + 1).any(|x| !zero(x))
}
