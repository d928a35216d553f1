//! The generalised Schur form of a small pair in each lane: A = Q·S·Zᴴ, B = Q·T·Zᴴ, by the QZ iteration.

mod active;
mod double_shift;
mod pair;
mod reduce;
mod single_shift;
mod two_by_two;
pub(crate) mod vectors;

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::Shape;
use crate::lanes::pack_double::{pack_as, unpack_as};
use crate::lanes::scaling::Extent;
use crate::lanes::schur::active::{Block, budget};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Mask, Reg, Vector};
use pair::{Pair, pitch};

/// Decomposes a group of row-major pairs in lanes of D, which is T or T in double precision.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    /// Makes what ends the work on one pair after another.
    pub(crate) finish: F,
}

/// The results for a pair: S, T, Q and Z, α and β.
pub(crate) type Results<'a, T> = (
    [&'a mut [T]; 4],
    &'a mut [<T as lapax_core::Scalar>::Complex],
    &'a mut [<T as lapax_core::Scalar>::Real],
);

/// What ends the work on a pair.
pub(crate) trait Finish<T: Scalar> {
    /// From its form.
    fn finish(&mut self, results: Results<'_, T>);
    /// From the pair, which is in the place of S and T, and which lanes leave aside.
    fn single(&mut self, results: Results<'_, T>);
}

/// What one thread reuses.
pub(crate) struct Scratch<D: Scalar, W> {
    /// S, T, Q and Z.
    tiles: [Tile<D::Real>; 4],
    tau: Tile<D::Real>,
    /// A group's matrices in the lanes' precision, where that is not their own.
    wide: Vec<D>,
    finish: W,
}

pub(crate) type Operands<'a, T> = (
    ItemsInOut<'a, T>,
    ItemsInOut<'a, T>,
    ItemsInOut<'a, T>,
    ItemsInOut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Complex>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
);

impl<T, D, W, F> Kernel<D, Operands<'_, T>> for Decompose<F>
where
    T: Scalar,
    D: Scalar,
    W: Finish<T>,
    F: Fn() -> W + Sync,
{
    type Scratch = Scratch<D, W>;

    fn scratch(&self, lanes: usize) -> Scratch<D, W> {
        let n = self.n;
        Scratch {
            tiles: std::array::from_fn(|_| Tile::new::<D>(pitch(n) * n, lanes)),
            tau: Tile::new::<D>(n, lanes),
            wide: Vec::new(),
            finish: (self.finish)(),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<D, W>,
        (s, t, q, z, alpha, beta): Operands<'_, T>,
        count: usize,
    ) {
        let (n, size) = (self.n, self.n * self.n);
        let parts = <D::Lane<S> as Lane<S>>::PARTS;
        let (column, stride) = (n * parts, pitch(n) * parts);
        let Scratch { tiles, tau, wide, finish } = scratch;
        let mut tiles = tiles.each_mut().map(|tile| &mut tile.registers::<S>()[..n * stride]);
        let mut matrices = [s, t, q, z].map(ItemsInOut::into_in_out);
        let shape = Shape { m: n, n, order: Layout::Rows };
        let zero = Vector::<S, D::Real>::splat(simd, D::Real::ZERO);
        let mut aside = zero.less(zero);
        let mut back = [zero; 2];
        for ((tile, InOut { src, dst }), back) in tiles.iter_mut().zip(&matrices).zip(&mut back) {
            let packed = &mut tile[..size * parts];
            pack_as::<S, T, D>(simd, src.unwrap_or(dst), count, shape, wide, packed);
            let mut extent = Extent::<S, D::Lane<S>>::new(simd);
            for x in packed.chunks_exact(parts) {
                extent.add(Lane::<S>::load(simd, x, 0));
            }
            let scaling = extent.scaling(simd);
            aside = aside.or(scaling.failed);
            let _ = scaling.apply(simd, packed);
            for j in (1..n).rev() {
                tile.copy_within(j * column..(j + 1) * column, j * stride);
            }
            *back = Vector::splat(simd, D::Real::ONE) / scaling.powers;
        }
        let [s, t, q, z] = tiles.each_mut();
        let lost = form::<S, D::Lane<S>>(simd, [s, t, q, z], n, tau.registers::<S>());
        let aside = flags(simd, aside.or(lost));
        for tile in &mut tiles {
            for j in 1..n {
                tile.copy_within(j * stride..j * stride + column, j * column);
            }
        }
        for (tile, back) in tiles.iter_mut().zip(back) {
            for x in tile[..size * parts].chunks_exact_mut(parts) {
                D::Lane::<S>::load(simd, x, 0).scale(back).store(x, 0);
            }
        }
        // Lanes write over what the slow way still needs.
        let kept: Vec<T> = (0..count)
            .filter(|&b| aside[b])
            .flat_map(|b| matrices[..2].iter().map(move |of| (b, of)))
            .flat_map(|(b, InOut { src, dst })| &src.unwrap_or(dst)[b * size..(b + 1) * size])
            .copied()
            .collect();
        for (tile, InOut { dst, .. }) in tiles.iter().zip(&mut matrices) {
            unpack_as::<S, T, D>(simd, &tile[..size * parts], count, shape, wide, dst);
        }
        let mut kept = kept.chunks_exact(size);
        let values =
            alpha.into_data().chunks_exact_mut(n).zip(beta.into_data().chunks_exact_mut(n));
        for (b, (alpha, beta)) in values.enumerate() {
            let mut results =
                matrices.each_mut().map(|InOut { dst, .. }| &mut dst[b * size..(b + 1) * size]);
            if aside[b] {
                let [s, t, ..] = &mut results;
                for (to, from) in [s, t].into_iter().zip(&mut kept) {
                    to.copy_from_slice(from);
                }
                finish.single((results, alpha, beta));
            } else {
                finish.finish((results, alpha, beta));
            }
        }
    }
}

/// S, T, Q and Z of pairs whose norms are near 1. Returns the lanes that are left to the iteration for one pair.
#[apart]
fn form<S: Simd, X: Lane<S>>(
    simd: S,
    [s, t, q, z]: [&mut [Reg<S, X>]; 4],
    n: usize,
    taus: &mut [Reg<S, X>],
) -> Mask<S, X::Real> {
    let mut pair = Pair::<S, X> { n, ld: pitch(n), s, t, q, z };
    pair.reduce(simd, taus);
    let tolerance = pair.tolerance(simd);
    let mut block = Block::<S, X::Real>::new(simd, n);
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
    let mut lost = zero.less(zero);
    for left in (0..=budget(n)).rev() {
        let width = if X::PARTS == 1 { 2 } else { 1 };
        let (corner, now) = pair.split(simd, &mut block, tolerance, width);
        lost = lost.or(now);
        let active = block.active(simd);
        if !active.any() {
            break;
        }
        if left == 0 {
            lost = lost.or(active);
        } else if X::PARTS == 1 {
            let corner = corner.real();
            pair.real().double_sweep(simd, &block, active, corner);
        } else {
            pair.single_sweep(simd, &block, active, corner);
        }
    }
    if X::PARTS == 1 {
        for k in 0..n - 1 {
            lost = lost.or(pair.real().standardise(simd, k, tolerance.of_t));
        }
    }
    pair.make_positive(simd);
    lost
}
