//! The singular value decomposition with one small matrix in each lane.
//!
//! All but the smallest by way of a bidiagonal matrix; those as follows.
//!
//! A = Q·R for the taller of A and Aᴴ, then one-sided Jacobi rotations V on the columns of Rᴴ, and a
//! second factorisation Rᴴ·V = W·D, which is diagonal but makes W orthonormal also where columns
//! vanish. So A = (Q·V)·D·Wᴴ. After Drmač and Veselić, "New fast and accurate Jacobi SVD algorithm"
//! (SIAM J. Matrix Anal. Appl. 29, 2008).

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::bidiagonal_qr::{SPREAD_ROUNDINGS, next_bound};
use super::jacobi::Columns;
use super::phase;
use super::qr;
use super::reflector::{reflect_columns, reflector};
use super::scaling::Extent;
use super::svd_bidiagonal::{bidiagonal_values, bidiagonal_vectors, real_scratch};
use super::tile::{pack, unpack};
use super::{Kernel, Lane, MAX_LANES, Mask, Order, Reg, Shape, Tile, Vector, flags, row};
use crate::phase::Leading;
use crate::svd::is_lower_bidiagonal;
use crate::{Scalar, SingularVectors};

/// The order up to which Jacobi rotations find the values alone sooner: measured on AVX-512, for
/// f64 0.46 and 0.47 µs at order 6, 0.94 and 0.71 at order 8; for c128 0.12 and 0.15 µs at order 3.
fn jacobi_values(complex: bool) -> usize {
    if complex { 3 } else { 6 }
}

/// The order up to which Jacobi rotations find the vectors sooner: at order 16 they took 10.5 µs for
/// f64 where QR steps took 4.8.
const JACOBI_VECTORS: usize = 8;

/// What columns of norms near 1 are multiplied by before Jacobi rotations, so that few of the squares of their products are
/// below the least normal number: 2²⁰. The largest in f32, of 16384 elements of 16, are below 2¹²⁶.
const BEFORE_SQUARES: f64 = 1_048_576.0;

/// Decomposes a group; a matrix that is not finite or does not converge goes to `single`.
pub(crate) struct Decompose<F> {
    pub(crate) job: SingularVectors,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) leading: Leading,
    /// Decomposes one matrix: (matrix, s, u, vt) to `info`.
    pub(crate) single: F,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    /// The tall matrix and its reflectors.
    a: Tile<R>,
    tau: Tile<R>,
    /// Rᴴ, then W; and what a bidiagonal form takes besides.
    x: Tile<R>,
    /// V, then Q·V.
    v: Tile<R>,
    /// Squared norms, then singular values.
    s: Tile<R>,
    /// For bidiagonal matrices.
    real: Tile<R>,
}

/// A, where a copy of it is left, s, U, Vᴴ and info; nothing is left where that has no elements.
type Operands<'a, T> = (
    Items<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, i32>,
);

impl<T: Scalar, F> Kernel<T, Operands<'_, T>> for Decompose<F>
where
    F: Fn(&mut [T], &mut [T::Real], &mut [T], &mut [T]) -> i32 + Sync,
{
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let (tall, k) = (self.m.max(self.n), self.m.min(self.n));
        Tiles {
            a: Tile::new::<T>(tall * k, lanes),
            tau: Tile::new::<T>(3 * k, lanes),
            x: Tile::new::<T>(2 * k * k + tall + 2 * k, lanes),
            v: Tile::new::<T>(tall * self.columns(), lanes),
            s: Tile::new::<T::Real>(k, lanes),
            real: Tile::new::<T::Real>(real_scratch(k, self.columns() > 0), lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, left, s, u, vt, info): Operands<'_, T>,
        count: usize,
    ) {
        let Self { m, n, .. } = *self;
        let (tall, k, wide) = (m.max(n), m.min(n), m < n);
        let (a, left) = (a.data(), left.into_data());
        if !left.is_empty() {
            left.copy_from_slice(a);
        }
        let (s, u, vt) = (s.into_data(), u.into_data(), vt.into_data());
        let order = if wide { Order::Row } else { Order::Column };
        let tiles = &mut Registers::<S, T::Lane<S>> {
            a: scratch.a.registers::<S>(),
            tau: scratch.tau.registers::<S>(),
            x: scratch.x.registers::<S>(),
            v: scratch.v.registers::<S>(),
            s: scratch.s.registers::<S>(),
            real: scratch.real.registers::<S>(),
            tall,
            k,
            columns: self.columns(),
        };
        pack(simd, a, count, Shape { m: tall, n: k, order }, tiles.a);
        let failed = tiles.decompose(simd, wide);
        unpack(simd, &*tiles.s, count, Shape { m: k, n: 1, order: Order::Column }, s);
        if tiles.columns > 0 {
            tiles.turn(simd, (self.leading == Leading::Left) != wide);
            // A is the tall matrix, or its adjoint: U and V change places.
            let (left, right) = if wide { (&mut *vt, &mut *u) } else { (&mut *u, &mut *vt) };
            let (left_order, right_order) =
                if wide { (Order::Row, Order::Column) } else { (Order::Column, Order::Row) };
            let conj = if wide { &mut *tiles.v } else { &mut *tiles.x };
            conjugate::<S, T::Lane<S>>(simd, conj);
            let shape = Shape { m: tall, n: tiles.columns, order: left_order };
            unpack(simd, &*tiles.v, count, shape, left);
            unpack(simd, &*tiles.x, count, Shape { m: k, n: k, order: right_order }, right);
        }
        let mut failed = flags(simd, failed);
        if m == n && n > 2 {
            // Reflectors would lose digits of its small values.
            for (failed, a) in failed.iter_mut().zip(a.chunks_exact(n * n)) {
                *failed |= is_lower_bidiagonal(a, n);
            }
        }
        self.repair(failed, count, a, (s, u, vt), info.into_data());
    }
}

impl<F> Decompose<F> {
    /// Columns of the taller of U and V.
    fn columns(&self) -> usize {
        match self.job {
            SingularVectors::All => self.m.max(self.n),
            SingularVectors::Thin => self.m.min(self.n),
            SingularVectors::None => 0,
        }
    }

    /// Writes `info`, and goes the slow way in the lanes that failed.
    fn repair<T: Scalar>(
        &self,
        failed: [bool; MAX_LANES],
        count: usize,
        a: &[T],
        (s, u, vt): (&mut [T::Real], &mut [T], &mut [T]),
        info: &mut [i32],
    ) where
        F: Fn(&mut [T], &mut [T::Real], &mut [T], &mut [T]) -> i32,
    {
        info.fill(0);
        for (b, info) in info.iter_mut().enumerate().filter(|(b, _)| failed[*b]) {
            let part = |length: usize| b * (length / count)..(b + 1) * (length / count);
            let (a_part, s_part) = (part(a.len()), part(s.len()));
            let (u_part, vt_part) = (part(u.len()), part(vt.len()));
            let mut a = a[a_part].to_vec();
            *info = (self.single)(&mut a, &mut s[s_part], &mut u[u_part], &mut vt[vt_part]);
        }
    }
}

/// The tiles of a group, as registers.
pub(super) struct Registers<'a, S: Simd, X: Lane<S>> {
    pub(super) a: &'a mut [Reg<S, X>],
    pub(super) tau: &'a mut [Reg<S, X>],
    pub(super) x: &'a mut [Reg<S, X>],
    pub(super) v: &'a mut [Reg<S, X>],
    pub(super) s: &'a mut [Reg<S, Vector<S, X::Real>>],
    pub(super) real: &'a mut [Reg<S, Vector<S, X::Real>>],
    pub(super) tall: usize,
    pub(super) k: usize,
    pub(super) columns: usize,
}

impl<S: Simd, X: Lane<S>> Registers<'_, S, X> {
    /// Leaves the singular values in `s`, U of the tall matrix in `v` and V in `x`; returns the lanes
    /// that failed. `adjoint`: the tile holds Aᵀ and stands for Aᴴ.
    #[inline(always)]
    fn decompose(&mut self, simd: S, adjoint: bool) -> Mask<S, X::Real> {
        let (tall, k) = (self.tall, self.k);
        if adjoint {
            conjugate::<S, X>(simd, self.a);
        }
        let a = &mut self.a[..tall * k * X::PARTS];
        let mut extent = Extent::<S, X>::new(simd);
        // A closure here is not compiled for the vectors that the loop around it has.
        for x in a.chunks_exact(X::PARTS) {
            extent.add(X::load(simd, x, 0));
        }
        let (failed, powers) = extent.normalize(simd, a);
        if self.columns == 0 && k > jacobi_values(X::PARTS > 1) {
            return failed.or(bidiagonal_values::<S, X>(simd, self, powers));
        }
        if self.columns > 0 && k > JACOBI_VECTORS {
            return failed.or(bidiagonal_vectors::<S, X>(simd, self, powers));
        }
        failed.or(jacobi::<S, X>(simd, self, powers))
    }

    /// Gives the vectors their phases, by U of the tall matrix or by V.
    #[inline(always)]
    fn turn(&mut self, simd: S, by_left: bool) {
        let (tall, k) = (self.tall, self.k);
        let v = &mut self.v[..tall * self.columns * X::PARTS];
        let (v, alone) = v.split_at_mut(tall * k * X::PARTS);
        let x = &mut self.x[..k * k * X::PARTS];
        if by_left {
            phase::pairs::<S, X>(simd, (v, tall), (x, k));
        } else {
            phase::pairs::<S, X>(simd, (x, k), (v, tall));
        }
        phase::columns::<S, X>(simd, alone, tall);
    }

    /// Rᴴ·V = W·D: W in `x`, |D| in `s`; then Q·V, widened to as many columns as are wanted.
    #[inline(always)]
    fn vectors(&mut self, simd: S) {
        let (tall, k, columns) = (self.tall, self.k, self.columns);
        // The reflectors of Q stay in `a`, whose diagonal is free: W's taus go there.
        let stride = k * X::PARTS;
        let one = Vector::<S, X::Real>::splat(simd, X::Real::ONE);
        let zero = Vector::splat(simd, X::Real::ZERO);
        for j in 0..k {
            let (left, right) = self.x.split_at_mut((j + 1) * stride);
            let (head, tail) = left[j * (stride + X::PARTS)..].split_at_mut(X::PARTS);
            let alpha = X::load(simd, head, 0);
            let (beta, tau) = reflector(simd, alpha, tail);
            tau.store(self.a, j * tall + j);
            X::from_real(beta).store(head, 0);
            let right = &mut right[..(k - j - 1) * stride];
            reflect_columns::<S, X>(simd, tau.conj(), tail, right, stride, j);
        }
        // W, with the signs of D.
        for j in (0..k).rev() {
            let tau = X::load(simd, self.a, j * tall + j);
            let (left, right) = self.x.split_at_mut((j + 1) * stride);
            let (top, tail) = left[j * stride..].split_at_mut((j + 1) * X::PARTS);
            let beta = X::load(simd, top, j).re();
            self.s[j] = beta.abs().reg();
            let sign = one.with_sign(beta);
            let right = &mut right[..(k - j - 1) * stride];
            reflect_columns::<S, X>(simd, tau, tail, right, stride, j);
            (0..j).for_each(|i| X::from_real(zero).store(top, i));
            (X::from_real(one) - tau).scale(sign).store(top, j);
            for v in tail.chunks_exact_mut(X::PARTS) {
                (-(X::load(simd, v, 0) * tau)).scale(sign).store(v, 0);
            }
        }
        // V is k × k and packed; it becomes the head of a tall matrix with unit columns beside it.
        for j in (0..columns).rev() {
            for i in (0..tall).rev() {
                let x = match (i < k && j < k, i == j) {
                    (true, _) => X::load(simd, self.v, j * k + i),
                    (false, true) => X::from_real(one),
                    (false, false) => X::from_real(zero),
                };
                x.store(self.v, j * tall + i);
            }
        }
        for j in (0..k).rev() {
            let tail = &self.a[j * tall * X::PARTS + (j + 1) * X::PARTS..(j + 1) * tall * X::PARTS];
            let tau = X::load(simd, self.tau, j);
            let v = &mut self.v[..columns * tall * X::PARTS];
            reflect_columns::<S, X>(simd, tau, tail, v, tall * X::PARTS, j);
        }
    }
}

/// [`Registers::decompose`] by Jacobi rotations, of a normalised matrix.
#[apart]
fn jacobi<S: Simd, X: Lane<S>>(
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
    // Demmel and Kahan's bound, as in [`super::bidiagonal_qr`].
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
fn conjugate<S: Simd, X: Lane<S>>(simd: S, a: &mut [Reg<S, X>]) {
    if X::PARTS > 1 {
        for x in a.chunks_exact_mut(X::PARTS) {
            X::load(simd, x, 0).conj().store(x, 0);
        }
    }
}
