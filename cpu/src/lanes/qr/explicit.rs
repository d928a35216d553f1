//! QR factorisation A = Q·R with Q formed, or R alone, of one small matrix in each lane.

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::{factor, form};
use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::{FOUR, Size, THREE, TWO};
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};

/// Decomposes a group of row-major m × n matrices, with c columns of Q and c rows of R.
pub(crate) struct Decompose {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) c: usize,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    /// A, then the reflectors, then Q.
    a: Tile<R>,
    tau: Tile<R>,
    r: Tile<R>,
}

type Operands<'a, T> = (Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Decompose {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let Self { m, n, c } = *self;
        Tiles {
            a: Tile::new::<T>(m * n.max(c), lanes),
            tau: Tile::new::<T>(m.min(n), lanes),
            r: Tile::new::<T>(c * n, lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        group: Operands<'_, T>,
        count: usize,
    ) {
        match (self.m, self.n, self.c) {
            (2, 2, 2) => decompose::<S, T, _>(simd, scratch, group, count, [TWO; 3]),
            (3, 3, 3) => decompose::<S, T, _>(simd, scratch, group, count, [THREE; 3]),
            (4, 4, 4) => decompose::<S, T, _>(simd, scratch, group, count, [FOUR; 3]),
            (m, n, c) => decompose::<S, T, _>(simd, scratch, group, count, [m, n, c]),
        }
    }
}

#[apart]
fn decompose<S: Simd, T: Scalar, N: Size>(
    simd: S,
    scratch: &mut Tiles<T::Real>,
    (a, q, r): Operands<'_, T>,
    count: usize,
    [m, n, c]: [N; 3],
) {
    let (m, n, c) = (m.get(), n.get(), c.get());
    let rows = |m, n| Shape { m, n, order: Layout::Rows };
    let tile = scratch.a.registers::<S>();
    let (taus, r_tile) = (scratch.tau.registers::<S>(), scratch.r.registers::<S>());
    pack(simd, a.data(), count, rows(m, n), tile);
    let parts = if T::IS_COMPLEX { 2 } else { 1 };
    factor::<S, T::Lane<S>>(simd, &mut tile[..m * n * parts], taus, (m, n));
    upper::<S, T::Lane<S>>(simd, tile, r_tile, (m, n, c));
    unpack(simd, r_tile, count, rows(c, n), r.into_data());
    form::<S, T::Lane<S>>(simd, &mut tile[..m * c * parts], taus, (m, c, m.min(n)));
    unpack(simd, tile, count, rows(m, c), q.into_data());
}

/// Finds R, of c rows, of a group of row-major m × n matrices: as [`Decompose`] does.
pub(crate) struct Upper {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) c: usize,
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for Upper {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let Self { m, n, c } = *self;
        Tiles {
            a: Tile::new::<T>(m * n, lanes),
            tau: Tile::new::<T>(m.min(n), lanes),
            r: Tile::new::<T>(c * n, lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (a, r): (Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        find_upper::<S, T>(simd, scratch, a, r, count, [self.m, self.n, self.c]);
    }
}

#[apart]
fn find_upper<S: Simd, T: Scalar>(
    simd: S,
    scratch: &mut Tiles<T::Real>,
    a: Items<'_, T>,
    r: ItemsMut<'_, T>,
    count: usize,
    [m, n, c]: [usize; 3],
) {
    let rows = |m, n| Shape { m, n, order: Layout::Rows };
    let tile = scratch.a.registers::<S>();
    let (taus, r_tile) = (scratch.tau.registers::<S>(), scratch.r.registers::<S>());
    pack(simd, a.data(), count, rows(m, n), tile);
    factor::<S, T::Lane<S>>(simd, tile, taus, (m, n));
    upper::<S, T::Lane<S>>(simd, tile, r_tile, (m, n, c));
    unpack(simd, r_tile, count, rows(c, n), r.into_data());
}

/// R from a factored tile: c rows, zero below the diagonal.
#[inline(always)]
fn upper<S: Simd, X: Lane<S>>(
    simd: S,
    a: &[Reg<S, X>],
    r: &mut [Reg<S, X>],
    (m, n, c): (usize, usize, usize),
) {
    let zero = X::from_real(Vector::splat(simd, lapax_core::Scalar::ZERO));
    for j in 0..n {
        for i in 0..c {
            let x = if i <= j { X::load(simd, a, j * m + i) } else { zero };
            x.store(r, j * c + i);
        }
    }
}
