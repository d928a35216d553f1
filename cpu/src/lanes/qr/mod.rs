//! QR factorisation with one small matrix in each lane, and products with its Q.
//!
//! Q = H₁·H₂⋯H_k with the reflectors of [`reflector`](crate::lanes::reflector), stored as LAPACK does.

pub(crate) mod explicit;

use lapax_core::{InOut, Items, ItemsInOut, ItemsMut, Scalar as _};
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::reflector::{reflect_columns, reflector};
use crate::matrix::layout::{Factor as Op, Layout};
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};

/// A tile of matrices and one of their taus.
pub(crate) struct Tiles<R> {
    a: Tile<R>,
    tau: Tile<R>,
}

/// The taus of a matrix as a column.
fn column(n: usize) -> Shape {
    Shape { m: n, n: 1, order: Layout::Columns }
}

/// A = Q·R in place (xGEQRF).
pub(crate) struct Factor {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) order: Layout,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>, ItemsMut<'_, T>)> for Factor {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let Self { m, n, .. } = *self;
        Tiles { a: Tile::new::<T>(m * n, lanes), tau: Tile::new::<T>(m.min(n), lanes) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, tau): (ItemsInOut<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        let Self { m, n, order } = *self;
        let InOut { src, dst } = a.into_in_out();
        let (a, taus) = (scratch.a.registers::<S>(), scratch.tau.registers::<S>());
        let shape = Shape { m, n, order };
        pack(simd, src.unwrap_or(dst), count, shape, a);
        factor::<S, T::Lane<S>>(simd, a, taus, (m, n));
        unpack(simd, a, count, shape, dst);
        unpack(simd, taus, count, column(m.min(n)), tau.into_data());
    }
}

/// Factors a tile in place.
#[inline(always)]
pub(crate) fn factor<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    taus: &mut [Reg<S, X>],
    (m, n): (usize, usize),
) {
    let stride = m * X::PARTS;
    for j in 0..m.min(n) {
        let (left, right) = a.split_at_mut((j + 1) * stride);
        let (head, tail) = left[j * (stride + X::PARTS)..].split_at_mut(X::PARTS);
        let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
        X::from_real(beta).store(head, 0);
        tau.store(taus, j);
        let right = &mut right[..(n - j - 1) * stride];
        reflect_columns::<S, X>(simd, tau.conj(), tail, right, stride, j);
    }
}

/// The first n columns of H₁⋯H_t in place of the reflectors (xORGQR), t ≤ n ≤ m.
pub(crate) struct Form {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) t: usize,
    pub(crate) order: Layout,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>, Items<'_, T>)> for Form {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let Self { m, n, t, .. } = *self;
        Tiles { a: Tile::new::<T>(m * n, lanes), tau: Tile::new::<T>(t, lanes) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, tau): (ItemsInOut<'_, T>, Items<'_, T>),
        count: usize,
    ) {
        let Self { m, n, t, order } = *self;
        let InOut { src, dst } = a.into_in_out();
        let (a, taus) = (scratch.a.registers::<S>(), scratch.tau.registers::<S>());
        let shape = Shape { m, n, order };
        pack(simd, src.unwrap_or(dst), count, shape, a);
        pack(simd, tau.data(), count, column(t), taus);
        form::<S, T::Lane<S>>(simd, a, taus, (m, n, t));
        unpack(simd, a, count, shape, dst);
    }
}

/// Forms a tile's Q in place, from the last reflector to the first.
#[inline(always)]
pub(crate) fn form<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    taus: &[Reg<S, X>],
    (m, n, t): (usize, usize, usize),
) {
    let stride = m * X::PARTS;
    let real = |x| X::from_real(Vector::<S, X::Real>::splat(simd, x));
    let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
    for (j, unit) in a.chunks_exact_mut(stride).enumerate().take(n).skip(t) {
        (0..m).for_each(|i| if i == j { one } else { zero }.store(unit, i));
    }
    for j in (0..t).rev() {
        let tau = X::load(simd, taus, j);
        let (left, right) = a.split_at_mut((j + 1) * stride);
        let (top, tail) = left[j * stride..].split_at_mut((j + 1) * X::PARTS);
        let right = &mut right[..(n - j - 1) * stride];
        reflect_columns::<S, X>(simd, tau, tail, right, stride, j);
        // Column j of H is e − tau·v.
        (0..j).for_each(|i| zero.store(top, i));
        (one - tau).store(top, j);
        for v in tail.chunks_exact_mut(X::PARTS) {
            (-(X::load(simd, v, 0) * tau)).store(v, 0);
        }
    }
}

/// C ← op(Q)·C for Q = H₁⋯H_t with reflectors of m rows (xORMQR).
///
/// C·op(Q) is the transpose of op(Q)ᵀ·Cᵀ: read C in the other order, and conjugate the vectors.
pub(crate) struct Apply {
    pub(crate) op: Op,
    /// Whether C stands on the left.
    pub(crate) from_right: bool,
    pub(crate) m: usize,
    /// Columns of C, or its rows where it stands on the left.
    pub(crate) n: usize,
    /// Columns that hold reflectors, of which the first t count.
    pub(crate) p: usize,
    pub(crate) t: usize,
}

/// What one thread reuses.
pub(crate) struct ApplyTiles<R> {
    v: Tile<R>,
    tau: Tile<R>,
    c: Tile<R>,
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, Items<'_, T>, ItemsInOut<'_, T>)> for Apply {
    type Scratch = ApplyTiles<T::Real>;

    fn scratch(&self, lanes: usize) -> ApplyTiles<T::Real> {
        let Self { m, n, p, t, .. } = *self;
        ApplyTiles {
            v: Tile::new::<T>(m * p, lanes),
            tau: Tile::new::<T>(t, lanes),
            c: Tile::new::<T>(m * n, lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut ApplyTiles<T::Real>,
        (v, tau, c): (Items<'_, T>, Items<'_, T>, ItemsInOut<'_, T>),
        count: usize,
    ) {
        let Self { m, n, p, t, from_right, .. } = *self;
        let InOut { src, dst } = c.into_in_out();
        let vs = scratch.v.registers::<S>();
        let (taus, c) = (scratch.tau.registers::<S>(), scratch.c.registers::<S>());
        let shape = Shape { m, n, order: if from_right { Layout::Rows } else { Layout::Columns } };
        pack(simd, v.data(), count, Shape { m, n: p, order: Layout::Columns }, vs);
        pack(simd, tau.data(), count, column(t), taus);
        pack(simd, src.unwrap_or(dst), count, shape, c);
        self.apply::<S, T::Lane<S>>(simd, vs, taus, c);
        unpack(simd, c, count, shape, dst);
    }
}

impl Apply {
    #[inline(always)]
    fn apply<S: Simd, X: Lane<S>>(
        &self,
        simd: S,
        vs: &mut [Reg<S, X>],
        taus: &[Reg<S, X>],
        c: &mut [Reg<S, X>],
    ) {
        let Self { op, from_right, m, n, t, .. } = *self;
        let stride = m * X::PARTS;
        let adjoint = op == Op::Adjoint;
        // The factor that meets C first: the last of Q·C and C·Qᴴ, the first of Qᴴ·C and C·Q.
        let forward = adjoint != from_right;
        for step in 0..t {
            let j = if forward { step } else { t - 1 - step };
            let tau = X::load(simd, taus, j);
            let tau = if adjoint { tau.conj() } else { tau };
            let tail = &mut vs[j * stride + (j + 1) * X::PARTS..(j + 1) * stride];
            if from_right {
                for v in tail.chunks_exact_mut(X::PARTS) {
                    X::load(simd, v, 0).conj().store(v, 0);
                }
            }
            reflect_columns::<S, X>(simd, tau, tail, &mut c[..n * stride], stride, j);
        }
    }
}
