//! Systems A·X = B, and inverses, with one small matrix in each lane.
//!
//! Elimination on the n × (n + nrhs) matrix [A B] leaves L⁻¹·P·B beside U, with the roundings of a
//! factorisation and a solve; substitution follows.

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::{Keep, factor, row_numbers};
use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::triangular::{System, solve};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane::{FOUR, ONE, Size, THREE, TWO};
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg};
use crate::{Diag, Scalar, Uplo};

/// Solves a group of row-major systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// Inverts a group of row-major matrices of order n.
pub(crate) struct Invert {
    pub(crate) n: usize,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    /// A and then B.
    tile: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
}

fn scratch<T: Scalar>(n: usize, nrhs: usize, lanes: usize) -> Scratch<T::Real> {
    Scratch { tile: Tile::new::<T>(n * (n + nrhs), lanes), rows: row_numbers(n) }
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, Items<'_, T>, ItemsMut<'_, T>)> for Solve {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        scratch::<T>(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        (a, b, x): (Items<'_, T>, Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        let (a, b, x) = (a.data(), Some(b.data()), x.into_data());
        let operands = (a, b, x);
        match (self.n, self.nrhs) {
            (2, 1) => group::<S, T, _, _>(simd, scratch, operands, count, (TWO, ONE)),
            (3, 1) => group::<S, T, _, _>(simd, scratch, operands, count, (THREE, ONE)),
            (4, 1) => group::<S, T, _, _>(simd, scratch, operands, count, (FOUR, ONE)),
            size => group::<S, T, _, _>(simd, scratch, operands, count, size),
        }
    }
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for Invert {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        scratch::<T>(self.n, self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        (a, x): (Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        let (a, x) = (a.data(), x.into_data());
        let operands = (a, None, x);
        match self.n {
            2 => group::<S, T, _, _>(simd, scratch, operands, count, (TWO, TWO)),
            3 => group::<S, T, _, _>(simd, scratch, operands, count, (THREE, THREE)),
            4 => group::<S, T, _, _>(simd, scratch, operands, count, (FOUR, FOUR)),
            n => group::<S, T, _, _>(simd, scratch, operands, count, (n, n)),
        }
    }
}

/// Solves for the right-hand sides, which are those of the identity where none are given.
#[apart]
fn group<S: Simd, T: Scalar, N: Size, R: Size>(
    simd: S,
    scratch: &mut Scratch<T::Real>,
    (a, b, x): (&[T], Option<&[T]>, &mut [T]),
    count: usize,
    (n, nrhs): (N, R),
) {
    let (steps, n, nrhs) = (n, n.get(), nrhs.get());
    let Scratch { tile, rows } = scratch;
    let tile = tile.registers::<S>();
    let right = n * n * T::Lane::<S>::PARTS;
    pack(simd, a, count, Shape { m: n, n, order: Layout::Rows }, &mut tile[..right]);
    let shape = Shape { m: n, n: nrhs, order: Layout::Rows };
    match b {
        Some(b) => pack(simd, b, count, shape, &mut tile[right..]),
        None => identity::<S, T::Lane<S>>(simd, &mut tile[right..], n),
    }
    factor::<S, T::Lane<S>>(simd, tile, rows, Keep::Nothing, (n, n + nrhs), steps);
    let (u, right) = tile.split_at_mut(right);
    let system = System { uplo: Uplo::Upper, diag: Diag::NonUnit, conj: false, n, nrhs };
    solve::<S, T::Lane<S>>(simd, &system, u, right);
    unpack(simd, right, count, shape, x);
}

/// Writes the identity of order n.
#[inline(always)]
fn identity<S: Simd, X: Lane<S>>(simd: S, tile: &mut [Reg<S, X>], n: usize) {
    let (zero, one) = (X::splat(simd, X::Scalar::ZERO), X::splat(simd, X::Scalar::ONE));
    for j in 0..n {
        for i in 0..n {
            let x = if i == j { one } else { zero };
            x.store(tile, j * n + i);
        }
    }
}
