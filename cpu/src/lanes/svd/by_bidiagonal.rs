//! The singular value decomposition with one matrix in each lane by way of a bidiagonal one.
//!
//! A much taller matrix is first reduced to its triangular factor.

use lapax_core::Scalar as _;
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::bidiagonal::{Bidiagonal, bidiagonalize};
use super::dqds::{Dqds, ROW};
use super::qr_iteration::{BidiagonalQr, bounds, rotations_scratch};
use super::tiles::Registers;
use crate::lanes::qr;
use crate::lanes::reflector::reflect_columns;
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::range::power_near_reciprocal;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Real numbers of scratch that a bidiagonal matrix takes.
pub(crate) fn real_scratch(k: usize, vectors: bool) -> usize {
    if vectors { k + rotations_scratch(k) + 2 * k * k } else { (2 + ROW) * k }
}

/// What a bidiagonal matrix of a norm near 1 is multiplied by before its elements are squared, so that
/// few of the squares are below the least normal number.
fn before_squares<R: LaneReal>() -> R {
    R::SMALL / R::ROOT_SAFE_MIN * R::from_f64(1.0 / 4096.0)
}

/// Below, what is negligible beside the square of a value would be below the least normal number.
fn least_before_squares<R: LaneReal>() -> R {
    R::ROOT_SAFE_MIN / R::EPSILON / before_squares::<R>()
}

/// Numbers of scratch for [`values_of_one`].
pub(crate) fn scratch_of_one(n: usize) -> usize {
    (3 + ROW) * n
}

/// The singular values of one bidiagonal matrix of order n, descending, in place of its diagonal; false, with
/// nothing changed, where they did not converge, or their squares are too far apart even for f64.
///
/// In f64 also where B is of f32, in which each of about two transforms per value leaves a rounding of it, and squares
/// of what is small are nothing. Values of f32 against those of f64, largest error over ε·‖A‖, and with transforms in f32:
/// n = 300 37, 700 55.
pub(crate) fn values_of_one<R: LaneReal>(d: &mut [R], e: &[R], scratch: &mut [f64]) -> bool {
    let (n, simd) = (d.len(), pulp::Scalar::new());
    let elements = || d.iter().chain(e).map(|x| x.to_f64().abs());
    let power = power_near_reciprocal(elements().fold(0.0, f64::max));
    // Two factors, since both together may overflow.
    let up = before_squares_of_one();
    if elements().any(|x| x != 0.0 && x * power * up < f64::ROOT_SAFE_MIN) {
        return false;
    }
    let square = |x: R| {
        let x = x.to_f64() * power * up;
        x * x
    };
    for (q, &d) in scratch.iter_mut().zip(&*d) {
        *q = square(d);
    }
    for (q, &e) in scratch[n..].iter_mut().zip(e) {
        *q = square(e);
    }
    let (q, rest) = scratch.split_at_mut(n);
    let (squares, rest) = rest.split_at_mut(n);
    let (next, rest) = rest.split_at_mut(ROW * n);
    let [registers, e, next, shifts] =
        [&mut *q, squares, next, &mut rest[..n]].map(|x| f64::registers_mut::<pulp::Scalar>(x).0);
    let failed = Dqds::<pulp::Scalar, f64> { q: registers, e, next, shifts }.values(simd);
    if failed.any() {
        return false;
    }
    q.sort_unstable_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
    for (d, q) in d.iter_mut().zip(q) {
        *d = R::from_f64(q.sqrt() / up / power);
    }
    true
}

/// What the elements of a matrix of order 1 are multiplied by before they are squared: far from overflow, since squares
/// of values are below n times the largest one, and as far from underflow as that allows.
const fn before_squares_of_one() -> f64 {
    // 2⁴⁴⁸.
    f64::from_bits((1023 + 448) << 52)
}

/// The singular values, divided by `powers`; returns the lanes that did not converge.
#[apart]
pub(crate) fn bidiagonal_values<S: Simd, X: Lane<S>>(
    simd: S,
    tiles: &mut Registers<'_, S, X>,
    powers: Vector<S, X::Real>,
) -> Mask<S, X::Real> {
    let k = tiles.k;
    tiles.reduce(simd);
    let (e, rest) = tiles.real.split_at_mut(k);
    let (next, shifts) = rest.split_at_mut(ROW * k);
    let q = &mut tiles.s[..k];
    let least = Vector::splat(simd, least_before_squares());
    let lost = bounds::<S, X::Real>(simd, q, e).smallest_some.less(least);
    let up = Vector::<S, X::Real>::splat(simd, before_squares());
    for x in q.iter_mut().chain(&mut *e) {
        let scaled = Vector::from_reg(simd, *x) * up;
        *x = (scaled * scaled).reg();
    }
    let failed = Dqds::<S, X::Real> { q, e, next, shifts }.values(simd).or(lost);
    for i in 0..k {
        let mut largest = Vector::<S, X::Real>::from_reg(simd, tiles.s[i]);
        for j in i + 1..k {
            let x = Vector::from_reg(simd, tiles.s[j]);
            let more = largest.less(x);
            tiles.s[j] = Vector::choose(more, largest, x).reg();
            largest = Vector::choose(more, x, largest);
        }
        tiles.s[i] = (largest.sqrt() / up / powers).reg();
    }
    failed
}

/// The singular values, divided by `powers`, U of the tall matrix in `v` and V in `x`; returns
/// the lanes that did not converge.
#[apart]
pub(crate) fn bidiagonal_vectors<S: Simd, X: Lane<S>>(
    simd: S,
    tiles: &mut Registers<'_, S, X>,
    powers: Vector<S, X::Real>,
) -> Mask<S, X::Real> {
    let (tall, k) = (tiles.tall, tiles.k);
    tiles.reduce(simd);
    let (e, rest) = tiles.real.split_at_mut(k);
    let (rotations, rest) = rest.split_at_mut(rotations_scratch(k));
    let (x, y) = rest.split_at_mut(k * k);
    let d = &mut tiles.s[..k];
    let mut b = BidiagonalQr::<S, X::Real> { d, e, x, y, rotations };
    let failed = b.diagonalize(simd);
    for s in &mut tiles.s[..k] {
        *s = (Vector::<S, X::Real>::from_reg(simd, *s) / powers).reg();
    }

    let (stride, columns) = (tall * X::PARTS, tiles.columns);
    embed::<S, X>(simd, x, k, &mut tiles.v[..columns * stride], tall);
    let (v, rest) = tiles.x.split_at_mut(k * k * X::PARTS);
    let (r, tail) = rest.split_at_mut(k * k * X::PARTS);
    let (tau, rest) = tiles.tau.split_at_mut(k * X::PARTS);
    let (tau_q, tau_p) = rest.split_at_mut(k * X::PARTS);
    let by_qr = by_qr(tall, k);
    let (reduced, m) = if by_qr { (&*r, k) } else { (&*tiles.a, tall) };
    if by_qr {
        // Only the first k columns reach into the triangular factor.
        let head = &mut tiles.v[..k * stride];
        apply::<S, X>(simd, reduced, m, tau_q, head, (tall, k));
        apply::<S, X>(simd, tiles.a, tall, tau, &mut tiles.v[..columns * stride], (tall, k));
    } else {
        let u = &mut tiles.v[..columns * stride];
        apply::<S, X>(simd, reduced, m, tau_q, u, (tall, k));
    }
    // V = P·Y, whose reflector j lies in row j.
    embed::<S, X>(simd, y, k, v, k);
    for j in (0..k - 1).rev() {
        let row = k - j - 2;
        for c in 0..row {
            X::load(simd, reduced, (j + 2 + c) * m + j).store(tail, c);
        }
        let tau = X::load(simd, tau_p, j);
        let tail = &tail[..row * X::PARTS];
        reflect_columns::<S, X>(simd, tau, tail, v, k * X::PARTS, j + 1);
    }
    failed
}

impl<S: Simd, X: Lane<S>> Registers<'_, S, X> {
    /// B's diagonals in `s` and at the head of `real`. Its reflectors lie in `a`; or behind V in `x`,
    /// where those of the QR factorisation lie in `a`.
    #[inline(always)]
    fn reduce(&mut self, simd: S) {
        let (tall, k) = (self.tall, self.k);
        let (tau, rest) = self.tau.split_at_mut(k * X::PARTS);
        let (tau_q, tau_p) = rest.split_at_mut(k * X::PARTS);
        let (r, scratch) = self.x[k * k * X::PARTS..].split_at_mut(k * k * X::PARTS);
        let (d, e) = (&mut self.s[..k], &mut self.real[..k]);
        let mut b = Bidiagonal::<S, X> { d, e, tau_q, tau_p, scratch };
        if !by_qr(tall, k) {
            bidiagonalize::<S, X>(simd, self.a, (tall, k), &mut b);
            return;
        }
        qr::factor::<S, X>(simd, self.a, tau, (tall, k));
        let zero = X::from_real(Vector::splat(simd, X::Real::ZERO));
        for j in 0..k {
            for i in 0..k {
                let x = if i > j { zero } else { X::load(simd, self.a, j * tall + i) };
                x.store(r, j * k + i);
            }
        }
        bidiagonalize::<S, X>(simd, r, (k, k), &mut b);
    }
}

/// Z of k × k, row by row, at the head of columns of m numbers, with unit vectors beside it.
#[inline(always)]
fn embed<S: Simd, X: Lane<S>>(
    simd: S,
    z: &[Reg<S, Vector<S, X::Real>>],
    k: usize,
    a: &mut [Reg<S, X>],
    m: usize,
) {
    let (zero, one) = (X::Real::ZERO, X::Real::ONE);
    for (j, column) in a.chunks_exact_mut(m * X::PARTS).enumerate() {
        for i in 0..m {
            let x = match (i < k && j < k, i == j) {
                (true, _) => Vector::from_reg(simd, z[i * k + j]),
                (false, true) => Vector::splat(simd, one),
                (false, false) => Vector::splat(simd, zero),
            };
            X::from_real(x).store(column, i);
        }
    }
}

/// Columns ← Q·columns for the k reflectors below the diagonal of columns of m numbers.
#[inline(always)]
fn apply<S: Simd, X: Lane<S>>(
    simd: S,
    q: &[Reg<S, X>],
    m: usize,
    tau: &[Reg<S, X>],
    columns: &mut [Reg<S, X>],
    (tall, k): (usize, usize),
) {
    for j in (0..k).rev() {
        let tail = &q[(j * m + j + 1) * X::PARTS..(j + 1) * m * X::PARTS];
        reflect_columns::<S, X>(simd, X::load(simd, tau, j), tail, columns, tall * X::PARTS, j);
    }
}

/// The order up to which a triangular factor is not worth its own reflectors.
const QR_ORDER: usize = 8;

/// Whether A's triangular factor is decomposed instead of A: from m = 11/6·n on, where LAPACK does.
pub(crate) fn by_qr(m: usize, n: usize) -> bool {
    n > QR_ORDER && m.saturating_mul(6) >= n.saturating_mul(11)
}
