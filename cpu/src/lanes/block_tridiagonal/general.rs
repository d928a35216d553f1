//! Block-tridiagonal matrices without symmetry, one in each lane: A = L·U, block after block.
//!
//! With D, E and F on, below and above the diagonal: Sᵢ = Dᵢ − Eᵢ₋₁·Gᵢ₋₁, factored with partial pivoting, and Gᵢ = Sᵢ⁻¹·Fᵢ.

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::blocks::{Coefficients, block, gather, scatter};
use crate::lanes::lu::{Keep, factor, row_numbers, swap};
use crate::lanes::pack::{Shape, unpack};
use crate::lanes::triangular::{System, solve};
use crate::matrix::blocks::{Blocks, spoil};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane::{flags, integer};
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};
use crate::{Diag, Scalar, Uplo};

/// Factors a group.
pub(crate) struct Factor {
    pub(crate) blocks: Blocks,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    /// S, G, and E of the block before.
    tiles: [Tile<R>; 3],
    swaps: Tile<R>,
    permutation: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
    /// The swaps of a block of each matrix, as reals.
    numbers: Vec<R>,
}

type Given<'a, T> = (Items<'a, T>, Items<'a, T>, Items<'a, T>);
type Made<'a, T> = (ItemsMut<'a, T>, ItemsMut<'a, i32>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, (Given<'_, T>, Made<'_, T>)> for Factor {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        let n = self.blocks.n;
        Scratch {
            tiles: super::tiles::<T, 3>(n, n, lanes),
            swaps: Tile::new::<T::Real>(n, lanes),
            permutation: Tile::new::<T::Real>(n, lanes),
            rows: row_numbers(n),
            numbers: vec![T::Real::ZERO; n * lanes],
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Self::Scratch,
        (a, factors): (Given<'_, T>, Made<'_, T>),
        count: usize,
    ) {
        factor_group::<S, T>(simd, self.blocks, scratch, a, factors, count);
    }
}

#[apart]
fn factor_group<S: Simd, T: Scalar>(
    simd: S,
    blocks: Blocks,
    scratch: &mut Scratch<T::Real>,
    (lower, diagonal, upper): Given<'_, T>,
    (lu, pivots, g): Made<'_, T>,
    count: usize,
) {
    let n = blocks.n;
    let (lu, pivots, g) = (lu.into_data(), pivots.into_data(), g.into_data());
    let Scratch { tiles: [s, beside, e], swaps, permutation, rows, numbers } = scratch;
    let [s, beside, e] = [s, beside, e].map(|tile| block::<S, T>(tile, n, n));
    let [swaps, permutation] = [swaps, permutation].map(|tile| tile.registers::<S>());
    let by_rows = (count, Shape { m: n, n, order: Layout::Rows });
    let zero = Vector::<S, T::Real>::splat(simd, T::Real::ZERO);
    let mut regular = zero.equal(zero);
    for i in 0..blocks.count {
        gather::<S, T>(simd, diagonal.data(), i, by_rows, s);
        if i > 0 {
            gather::<S, T>(simd, lower.data(), i - 1, by_rows, e);
            let e_below = Coefficients::columns(n, false);
            e_below.subtract_product::<S, T::Lane<S>>(simd, n, e, beside, s);
        }
        let keep = Keep::Factors { swaps: &mut *swaps, permutation: &mut *permutation };
        let singular = factor::<S, T::Lane<S>>(simd, s, rows, keep, (n, n), n);
        regular = regular.and(singular.equal(zero));
        scatter::<S, T>(simd, s, lu, i, by_rows);
        let numbers = &mut numbers[..n * count];
        unpack(simd, swaps, count, Shape { m: n, n: 1, order: Layout::Columns }, numbers);
        let pitch = pivots.len() / count;
        for (to, from) in pivots[i * n..].chunks_mut(pitch).zip(numbers.chunks_exact(n)) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = integer(*from);
            }
        }
        if i + 1 < blocks.count {
            gather::<S, T>(simd, upper.data(), i, by_rows, beside);
            divide::<S, T::Lane<S>>(simd, s, swaps, rows, beside, n);
            scatter::<S, T>(simd, beside, g, i, by_rows);
        }
    }
    if regular.all() {
        return;
    }
    let [lu_pitch, rows, g_pitch] = [lu.len(), pivots.len(), g.len()].map(|all| all / count);
    for (lane, regular) in flags(simd, regular)[..count].iter().enumerate() {
        if !regular {
            let lu = &mut lu[lane * lu_pitch..][..lu_pitch];
            let pivots = &mut pivots[lane * rows..][..rows];
            spoil(n, lu, pivots, &mut g[lane * g_pitch..][..g_pitch]);
        }
    }
}

/// X ← S⁻¹·X by the factors of S, by columns.
#[inline(always)]
fn divide<S: Simd, X: Lane<S>>(
    simd: S,
    lu: &mut [Reg<S, X>],
    swaps: &[Reg<S, Vector<S, X::Real>>],
    rows: &[X::Real],
    x: &mut [Reg<S, X>],
    n: usize,
) {
    for (j, &index) in swaps[..n].iter().enumerate() {
        let index = Vector::from_reg(simd, index);
        for column in x.chunks_exact_mut(n * X::PARTS) {
            swap::<S, X>(simd, &mut column[j * X::PARTS..], index, &rows[j + 1..n]);
        }
    }
    for (uplo, diag) in [(Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::NonUnit)] {
        solve::<S, X>(simd, &System { uplo, diag, conj: false, n, nrhs: n }, lu, x);
    }
}
