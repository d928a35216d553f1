//! Singular values and vectors of small matrices by one-sided Jacobi rotations.

use lapax_core::{Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::jacobi::Columns;
use super::qr_iteration::{SPREAD_ROUNDINGS, next_bound};
use super::tiles::Registers;
use crate::lanes::qr;
use crate::simd::lane::row;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// The order up to which Jacobi rotations find the values alone sooner: measured on AVX-512, for
/// f64 0.46 and 0.47 µs at order 6, 0.94 and 0.71 at order 8; for c128 0.12 and 0.15 µs at order 3.
pub(crate) fn jacobi_values(complex: bool) -> usize {
    if complex { 3 } else { 6 }
}

/// What columns of norms near 1 are multiplied by before Jacobi rotations, so that few of the squares of their products are
/// below the least normal number: 2²⁰. The largest in f32, of 16384 elements of 16, are below 2¹²⁶.
const BEFORE_SQUARES: f64 = 1_048_576.0;

/// [`Registers::decompose`] by Jacobi rotations, of a normalised matrix.
#[apart]
pub(crate) fn jacobi<S: Simd, X: Lane<S>>(
    simd: S,
    tiles: &mut Registers<'_, S, X>,
    powers: Vector<S, X::Real>,
) -> Mask<S, X::Real> {
    let (tall, k) = (tiles.tall, tiles.k);
    let none = Vector::splat(simd, X::Real::ZERO);
    let (zero, up) = (X::from_real(none), Vector::splat(simd, X::Real::from_f64(BEFORE_SQUARES)));
    // The determinant of a matrix of two rows that is triangular, whose digits reflectors would lose.
    let (mut triangular, mut exact) = (none.less(none), none);
    if tall == 2 && k == 2 {
        let (b, c) = (X::load(simd, tiles.a, 1), X::load(simd, tiles.a, 2));
        let (b, c) = (b.re().abs().max(b.im().abs()), c.re().abs().max(c.im().abs()));
        triangular = b.equal(none).or(c.equal(none));
        exact = determinant_of::<S, X>(X::load(simd, tiles.a, 0), X::load(simd, tiles.a, 3), up);
    }
    qr::factor::<S, X>(simd, tiles.a, tiles.tau, (tall, k));
    for (i, j) in (0..k).flat_map(|j| (0..k).map(move |i| (i, j))) {
        let x = if i < j { zero } else { X::load(simd, tiles.a, i * tall + j).conj().scale(up) };
        x.store(tiles.x, j * k + i);
    }
    let vectors = tiles.columns > 0;
    if vectors {
        identity::<S, X>(simd, tiles.v, k);
    }
    let v = vectors.then_some(&mut tiles.v[..]);
    let tolerance = (0..2 * k).fold(X::Real::ZERO, |sum, _| sum + X::Real::EPSILON);
    let lost = spread_beside_zeros::<S, X>(simd, tiles.x, k);
    // Of two values the smaller one by the determinant, which keeps its digits where the columns are almost parallel.
    let mut determinant = none;
    if k == 2 {
        let one = Vector::splat(simd, X::Real::ONE);
        let (a, d) = (X::load(simd, tiles.x, 0), X::load(simd, tiles.x, 3));
        let of_r = determinant_of::<S, X>(a.scale(one / up), d.scale(one / up), up);
        determinant = Vector::choose(triangular, exact, of_r);
    }
    let (x, norms) = (&mut *tiles.x, &mut *tiles.s);
    let mut columns = Columns::<S, X> { x, rows: k, n: k, v, norms, tolerance, lost };
    let failed = columns.orthogonalize(simd);
    if vectors {
        tiles.vectors(simd);
    }
    let mut previous = Vector::<S, X::Real>::splat(simd, X::Real::MAX);
    for i in 0..k {
        let s = Vector::from_reg(simd, tiles.s[i]);
        // Rounding may turn the order of equal ones.
        let s = if vectors { s } else { s.sqrt() };
        let s = Vector::choose(previous.less(s), previous, s);
        previous = s;
        tiles.s[i] = (s / up / powers).reg();
    }
    if k == 2 {
        let largest = Vector::from_reg(simd, tiles.s[0]);
        let scaled = largest * powers * up;
        let s = determinant / Vector::choose(none.less(scaled), scaled, up) / powers;
        tiles.s[1] = Vector::choose(largest.less(s), largest, s).reg();
    }
    failed
}

/// |a·d| times `up`, without squares below the least normal number where a and d are not lost anyway.
#[inline(always)]
fn determinant_of<S: Simd, X: Lane<S>>(a: X, d: X, up: Vector<S, X::Real>) -> Vector<S, X::Real> {
    if X::PARTS == 1 {
        return a.re().abs() * (d.re().abs() * up);
    }
    let (a, d) = (a.scale(up).norm_squared().sqrt(), d.scale(up).norm_squared().sqrt());
    a / up * d
}

/// |re| + |im|.
#[inline(always)]
fn size_of_number<S: Simd, X: Lane<S>>(simd: S, x: &[Reg<S, X>], p: usize) -> Vector<S, X::Real> {
    let x = X::load(simd, x, p);
    if X::PARTS == 1 { x.re().abs() } else { x.re().abs() + x.im().abs() }
}

/// The lanes in which R is bidiagonal, and its singular values, which bidiagonal matrices determine to all their digits,
/// are too far apart for rotations of its columns, unless it is diagonal. The tile holds Rᴴ.
#[inline(always)]
fn spread_beside_zeros<S: Simd, X: Lane<S>>(
    simd: S,
    x: &[Reg<S, X>],
    k: usize,
) -> Mask<S, X::Real> {
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
    let (mut beyond, mut beside) = (zero, zero);
    for (j, i) in (0..k).flat_map(|j| (j + 1..k).map(move |i| (j, i))) {
        let size = size_of_number::<S, X>(simd, x, j * k + i);
        if i == j + 1 {
            beside = size.max(beside);
        } else {
            beyond = size.max(beyond);
        }
    }
    let bidiagonal = beyond.equal(zero).and(zero.less(beside));
    if k < 3 || !bidiagonal.any() {
        return zero.less(zero);
    }
    // Demmel and Kahan's bound, as in [`crate::lanes::svd::qr_iteration`].
    let mut mu = size_of_number::<S, X>(simd, x, 0);
    let (mut smallest, mut largest) = (mu, beside.max(mu));
    for j in 1..k {
        let d = size_of_number::<S, X>(simd, x, j * (k + 1));
        let e = size_of_number::<S, X>(simd, x, (j - 1) * (k + 1) + 1);
        mu = next_bound(simd, mu, e, d);
        smallest = Vector::choose(mu.less(smallest), mu, smallest);
        largest = d.max(largest);
    }
    let condition = row::<X::Real>(k) * X::Real::from_f64(SPREAD_ROUNDINGS);
    bidiagonal.and((Vector::splat(simd, condition) * smallest).less_or_equal(largest))
}

#[inline(always)]
fn identity<S: Simd, X: Lane<S>>(simd: S, a: &mut [Reg<S, X>], n: usize) {
    let real = |x| X::from_real(Vector::<S, X::Real>::splat(simd, x));
    let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
    for i in 0..n * n {
        if i % (n + 1) == 0 { one } else { zero }.store(a, i);
    }
}

/// A ← conj(A), also beyond the matrix.
#[inline(always)]
pub(crate) fn conjugate<S: Simd, X: Lane<S>>(simd: S, a: &mut [Reg<S, X>]) {
    if X::PARTS > 1 {
        for x in a.chunks_exact_mut(X::PARTS) {
            X::load(simd, x, 0).conj().store(x, 0);
        }
    }
}
