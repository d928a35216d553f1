//! The singular value decomposition with one small matrix in each lane.
//!
//! All but the smallest by way of a bidiagonal matrix; those as follows.
//!
//! A = Q·R for the taller of A and Aᴴ, then one-sided Jacobi rotations V on the columns of Rᴴ, and a
//! second factorisation Rᴴ·V = W·D, which is diagonal but makes W orthonormal also where columns
//! vanish. So A = (Q·V)·D·Wᴴ. After Drmač and Veselić, "New fast and accurate Jacobi SVD algorithm"
//! (SIAM J. Matrix Anal. Appl. 29, 2008).

pub(crate) mod bidiagonal;
pub(crate) mod by_bidiagonal;
mod by_jacobi;
pub(crate) mod dqds;
mod dqds_shift;
mod jacobi;
mod qr_iteration;
mod tiles;

use lapax_core::{Items, ItemsMut};
use pulp::Simd;

use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::matrix::phase::Leading;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES, Mask};
use crate::{Scalar, SingularVectors};
use bidiagonal::is_lower_bidiagonal;
use by_bidiagonal::{bidiagonal_values, bidiagonal_vectors, real_scratch};
use by_jacobi::{conjugate, jacobi, jacobi_values};
use tiles::Registers;

/// The order up to which Jacobi rotations find the vectors sooner: at order 16 they took 10.5 µs for
/// f64 where QR steps took 4.8.
const JACOBI_VECTORS: usize = 8;

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
        let order = if wide { Layout::Rows } else { Layout::Columns };
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
        unpack(simd, &*tiles.s, count, Shape { m: k, n: 1, order: Layout::Columns }, s);
        if tiles.columns > 0 {
            tiles.turn(simd, (self.leading == Leading::Left) != wide);
            // A is the tall matrix, or its adjoint: U and V change places.
            let (left, right) = if wide { (&mut *vt, &mut *u) } else { (&mut *u, &mut *vt) };
            let (left_order, right_order) = if wide {
                (Layout::Rows, Layout::Columns)
            } else {
                (Layout::Columns, Layout::Rows)
            };
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

impl<S: Simd, X: Lane<S>> Registers<'_, S, X> {
    /// Leaves the singular values in `s`, U of the tall matrix in `v` and V in `x`; returns the lanes
    /// that failed. `adjoint`: the tile holds Aᵀ and stands for Aᴴ.
    #[inline(always)]
    pub(crate) fn decompose(&mut self, simd: S, adjoint: bool) -> Mask<S, X::Real> {
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
}
