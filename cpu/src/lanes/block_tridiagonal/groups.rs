//! The work on a group: block after block of the matrices in each lane.

use lapax_core::{Scalar as _, Sweeps};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::blocks::{Coefficients, block, complement, forward, gather, scatter};
use crate::Scalar;
use crate::lanes::cholesky::{factor, finish};
use crate::lanes::definite::{conjugate, substitute_adjoint};
use crate::lanes::pack::Shape;
use crate::matrix::blocks::{Band, BandMut, Blocks};
use crate::matrix::layout::Layout;
use crate::matrix::triangle::only_lower;
use crate::simd::lane::flags;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};

/// The systems of a group, and which triangles are solved with.
#[derive(Clone, Copy)]
pub(super) struct Systems {
    pub(super) sweeps: Sweeps,
    pub(super) blocks: Blocks,
    pub(super) nrhs: usize,
}

/// L of a group; NaN those of matrices that have none.
#[apart]
pub(super) fn factor_group<S: Simd, T: Scalar>(
    simd: S,
    blocks: Blocks,
    a: Band<'_, T>,
    l: &mut BandMut<'_, T>,
    tiles: [&mut Tile<T::Real>; 2],
    count: usize,
) {
    let n = blocks.n;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let [diagonal, off] = tiles.map(|tile| block::<S, T>(tile, n, n));
    let zero = Vector::<S, T::Real>::splat(simd, T::Real::ZERO);
    let mut definite = zero.equal(zero);
    for i in 0..blocks.count {
        gather::<S, T>(simd, a.diagonal, i, by_rows, diagonal);
        if i > 0 {
            complement::<S, T::Lane<S>>(simd, n, off, diagonal);
        }
        let minor = factor::<S, T::Lane<S>>(simd, diagonal, n);
        definite = definite.and(minor.equal(zero));
        finish::<S, T::Lane<S>>(simd, diagonal, n, minor);
        scatter::<S, T>(simd, diagonal, l.diagonal, i, by_rows);
        if i + 1 < blocks.count {
            // The columns of L·Eᴴ = Bᴴ are the rows of E and B.
            gather::<S, T>(simd, a.off_diagonal, i, as_it_is, off);
            conjugate::<S, T::Lane<S>>(simd, off);
            forward::<S, T::Lane<S>>(simd, (n, n), diagonal, off);
            conjugate::<S, T::Lane<S>>(simd, off);
            scatter::<S, T>(simd, off, l.off_diagonal, i, as_it_is);
        }
    }
    if definite.all() {
        return;
    }
    let (pitch, pitch_off) = (l.diagonal.len() / count, l.off_diagonal.len() / count);
    for (lane, definite) in flags(simd, definite)[..count].iter().enumerate() {
        if !definite {
            let diagonal = &mut l.diagonal[lane * pitch..][..pitch];
            diagonal.chunks_exact_mut(n * n).for_each(|l| only_lower(l, n, 0, false));
            l.off_diagonal[lane * pitch_off..][..pitch_off].fill(nan());
        }
    }
}

/// Solves for X in place of B.
#[apart]
pub(super) fn sweep_group<S: Simd, T: Scalar>(
    simd: S,
    systems: Systems,
    l: Band<'_, T>,
    b: &mut [T],
    tiles: &mut [Tile<T::Real>; 4],
    count: usize,
) {
    let Systems { sweeps, blocks: Blocks { count: blocks, n }, nrhs } = systems;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let side = (count, Shape { m: n, n: nrhs, order: Layout::Rows });
    let [diagonal, off, x, known] = tiles;
    let [diagonal, off] = [diagonal, off].map(|tile| block::<S, T>(tile, n, n));
    let [mut x, mut known] = [x, known].map(|tile| block::<S, T>(tile, n, nrhs));
    if sweeps != Sweeps::Backward {
        for i in 0..blocks {
            gather::<S, T>(simd, b, i, side, x);
            if i > 0 {
                gather::<S, T>(simd, l.off_diagonal, i - 1, as_it_is, off);
                let off_diagonal = Coefficients::rows(n, false);
                off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, known, x);
            }
            gather::<S, T>(simd, l.diagonal, i, by_rows, diagonal);
            forward::<S, T::Lane<S>>(simd, (n, nrhs), diagonal, x);
            scatter::<S, T>(simd, x, b, i, side);
            std::mem::swap(&mut x, &mut known);
        }
    }
    if sweeps != Sweeps::Forward {
        for i in (0..blocks).rev() {
            gather::<S, T>(simd, b, i, side, x);
            if i + 1 < blocks {
                gather::<S, T>(simd, l.off_diagonal, i, as_it_is, off);
                let off_diagonal = Coefficients::rows(n, true);
                off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, known, x);
            }
            gather::<S, T>(simd, l.diagonal, i, by_rows, diagonal);
            substitute_adjoint::<S, T::Lane<S>>(simd, n, diagonal, x);
            scatter::<S, T>(simd, x, b, i, side);
            std::mem::swap(&mut x, &mut known);
        }
    }
}

/// The blocks of the inverses, for S = A⁻¹ and G = Lᵢ₊₁ᵢ·Lᵢᵢ⁻¹: Sᵢ₊₁ᵢ = −Sᵢ₊₁ᵢ₊₁·G and Sᵢᵢ = Lᵢᵢ⁻ᴴ·Lᵢᵢ⁻¹ − Gᴴ·Sᵢ₊₁ᵢ.
#[apart]
pub(super) fn inverse_group<S: Simd, T: Scalar>(
    simd: S,
    blocks: Blocks,
    l: Band<'_, T>,
    inverse: BandMut<'_, T>,
    tiles: &mut [Tile<T::Real>; 6],
    count: usize,
) {
    let n = blocks.n;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let [lower, off, inverted, g, mut s, mut behind] =
        tiles.each_mut().map(|tile| block::<S, T>(tile, n, n));
    let (zero, one) = (T::Lane::<S>::splat(simd, T::ZERO), T::Lane::<S>::splat(simd, T::ONE));
    let fill = |tile: &mut [Reg<S, T::Lane<S>>]| (0..n * n).for_each(|at| zero.store(tile, at));
    let (whole, adjoint) = (Coefficients::columns(n, false), Coefficients::columns(n, true));
    for i in (0..blocks.count).rev() {
        gather::<S, T>(simd, l.diagonal, i, by_rows, lower);
        fill(inverted);
        (0..n).for_each(|j| one.store(inverted, j * (n + 1)));
        forward::<S, T::Lane<S>>(simd, (n, n), lower, inverted);
        fill(s);
        adjoint.negated().subtract_product::<S, T::Lane<S>>(simd, n, inverted, inverted, s);
        if i + 1 < blocks.count {
            gather::<S, T>(simd, l.off_diagonal, i, as_it_is, off);
            fill(g);
            let off_diagonal = Coefficients::rows(n, false).negated();
            off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, inverted, g);
            // What has been read is no longer needed.
            let s_off = &mut *off;
            fill(s_off);
            whole.subtract_product::<S, T::Lane<S>>(simd, n, behind, g, s_off);
            adjoint.subtract_product::<S, T::Lane<S>>(simd, n, g, s_off, s);
            scatter::<S, T>(simd, s_off, inverse.off_diagonal, i, by_rows);
        }
        // Both triangles are the lower one's.
        for j in 0..n {
            let x = T::Lane::<S>::load(simd, s, j * (n + 1));
            T::Lane::<S>::from_real(x.re()).store(s, j * (n + 1));
            for i in j + 1..n {
                T::Lane::<S>::load(simd, s, j * n + i).conj().store(s, i * n + j);
            }
        }
        scatter::<S, T>(simd, s, inverse.diagonal, i, by_rows);
        std::mem::swap(&mut s, &mut behind);
    }
}
