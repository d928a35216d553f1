//! Block-tridiagonal Hermitian positive definite matrices, one in each lane: A = L·Lᴴ, block after block.

mod blocks;
pub(crate) mod general;
mod groups;

use lapax_core::{Items, ItemsMut, Real as _, Sweeps};
use pulp::Simd;

use crate::Scalar;
use crate::matrix::blocks::{Band, BandMut, Blocks};
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use groups::{Systems, factor_group, inverse_group, sweep_group};

/// Factors a group.
pub(crate) struct Factor {
    pub(crate) blocks: Blocks,
}

/// Solves a group of systems, whose factors are known, or are made first.
pub(crate) struct Solve {
    pub(crate) sweeps: Sweeps,
    pub(crate) blocks: Blocks,
    pub(crate) nrhs: usize,
}

/// The blocks of the inverses of a group inside the band, by their factors.
pub(crate) struct Inverse {
    pub(crate) blocks: Blocks,
}

/// N tiles for a block each, of n rows and at most so many columns.
fn tiles<T: Scalar, const N: usize>(n: usize, columns: usize, lanes: usize) -> [Tile<T::Real>; N] {
    std::array::from_fn(|_| Tile::new::<T>(n * columns, lanes))
}

type Read<'a, T> = (Items<'a, T>, Items<'a, T>);
type Write<'a, T> = (ItemsMut<'a, T>, ItemsMut<'a, T>);
type Sides<'a, T> = (Items<'a, T>, ItemsMut<'a, T>);

fn read<'a, T: Scalar>((diagonal, off): Read<'a, T>) -> Band<'a, T> {
    Band { diagonal: diagonal.data(), off_diagonal: off.data() }
}

fn write<'a, T: Scalar>((diagonal, off): Write<'a, T>) -> BandMut<'a, T> {
    BandMut { diagonal: diagonal.into_data(), off_diagonal: off.into_data() }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Write<'_, T>)> for Factor {
    type Scratch = [Tile<T::Real>; 2];

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        tiles::<T, _>(self.blocks.n, self.blocks.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tiles: &mut Self::Scratch,
        (a, l): (Read<'_, T>, Write<'_, T>),
        count: usize,
    ) {
        let [diagonal, off] = tiles;
        factor_group::<S, T>(simd, self.blocks, read(a), &mut write(l), [diagonal, off], count);
    }
}

impl Solve {
    fn systems(&self) -> Systems {
        Systems { sweeps: self.sweeps, blocks: self.blocks, nrhs: self.nrhs }
    }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Sides<'_, T>)> for Solve {
    type Scratch = [Tile<T::Real>; 4];

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        tiles::<T, _>(self.blocks.n, self.blocks.n.max(self.nrhs), lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tiles: &mut Self::Scratch,
        (l, (b, x)): (Read<'_, T>, Sides<'_, T>),
        count: usize,
    ) {
        let x = x.into_data();
        x.copy_from_slice(b.data());
        sweep_group::<S, T>(simd, self.systems(), read(l), x, tiles, count);
    }
}

type Kept<'a, T, R> = (Read<'a, T>, Write<'a, T>, Sides<'a, T>, ItemsMut<'a, R>);

impl<T: Scalar> Kernel<T, Kept<'_, T, T::Real>> for Solve {
    type Scratch = [Tile<T::Real>; 4];

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        tiles::<T, _>(self.blocks.n, self.blocks.n.max(self.nrhs), lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tiles: &mut Self::Scratch,
        (a, l, (b, x), logdet): Kept<'_, T, T::Real>,
        count: usize,
    ) {
        let (mut l, x, n) = (write(l), x.into_data(), self.blocks.n);
        let [diagonal, off, ..] = &mut *tiles;
        factor_group::<S, T>(simd, self.blocks, read(a), &mut l, [diagonal, off], count);
        x.copy_from_slice(b.data());
        let BandMut { diagonal, off_diagonal } = l;
        let l = Band { diagonal: &*diagonal, off_diagonal: &*off_diagonal };
        sweep_group::<S, T>(simd, self.systems(), l, x, tiles, count);
        let matrices = diagonal.chunks_exact(diagonal.len() / count);
        for (logdet, l) in logdet.into_data().iter_mut().zip(matrices) {
            let pivots = l.chunks_exact(n * n).flat_map(|l| l.iter().step_by(n + 1));
            let sum: f64 = pivots.map(|l| l.re().to_f64().ln()).sum();
            *logdet = T::Real::from_f64(2.0 * sum);
        }
    }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Write<'_, T>)> for Inverse {
    type Scratch = [Tile<T::Real>; 6];

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        tiles::<T, _>(self.blocks.n, self.blocks.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tiles: &mut Self::Scratch,
        (l, inverse): (Read<'_, T>, Write<'_, T>),
        count: usize,
    ) {
        inverse_group::<S, T>(simd, self.blocks, read(l), write(inverse), tiles, count);
    }
}
