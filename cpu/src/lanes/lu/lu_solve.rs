//! Systems op(A)·X = B with one small LU factorisation in each lane.

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::triangular::{System, solve};
use crate::matrix::layout::Layout;
use crate::matrix::rows::{gather_rows, scatter_rows};
use crate::parallel::groups::Kernel;
use crate::simd::lane::{FOUR, ONE, Size, THREE, TWO};
use crate::simd::tile::Tile;
use crate::{Diag, Scalar, Trans, Uplo};

/// Solves a group of row-major systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) trans: Trans,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// What one thread reuses.
pub(crate) struct Scratch<T: Scalar> {
    lu: Tile<T::Real>,
    x: Tile<T::Real>,
    /// Right-hand sides in the order of P·B, or solutions in that of P·X.
    rows: Vec<T>,
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, i32>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        let Self { n, nrhs, .. } = *self;
        Scratch {
            lu: Tile::new::<T>(n * n, lanes),
            x: Tile::new::<T>(n * nrhs, lanes),
            rows: vec![T::ZERO; lanes * n * nrhs],
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        group: Operands<'_, T>,
        count: usize,
    ) {
        let trans = self.trans;
        match (self.n, self.nrhs) {
            (2, 1) => solve_group::<S, T, _, _>(simd, trans, scratch, group, count, (TWO, ONE)),
            (3, 1) => solve_group::<S, T, _, _>(simd, trans, scratch, group, count, (THREE, ONE)),
            (4, 1) => solve_group::<S, T, _, _>(simd, trans, scratch, group, count, (FOUR, ONE)),
            size => solve_group::<S, T, _, _>(simd, trans, scratch, group, count, size),
        }
    }
}

/// op(A)·X = B for each matrix of a group.
#[apart]
fn solve_group<S: Simd, T: Scalar, N: Size, R: Size>(
    simd: S,
    trans: Trans,
    scratch: &mut Scratch<T>,
    (lu, permutation, b, x): Operands<'_, T>,
    count: usize,
    (n, nrhs): (N, R),
) {
    let (n, nrhs) = (n.get(), nrhs.get());
    let forward = trans == Trans::None;
    let rows = &mut scratch.rows[..count * n * nrhs];
    let (b, permutation, x) = (b.data(), permutation.data(), x.into_data());
    let (lu_tile, x_tile) = (scratch.lu.registers::<S>(), scratch.x.registers::<S>());
    let order = if forward { Layout::Rows } else { Layout::Columns };
    pack(simd, lu.data(), count, Shape { m: n, n, order }, lu_tile);
    let shape = Shape { m: n, n: nrhs, order: Layout::Rows };
    if forward {
        let systems = rows.chunks_exact_mut(n * nrhs).zip(b.chunks_exact(n * nrhs));
        for ((rows, b), permutation) in systems.zip(permutation.chunks_exact(n)) {
            gather_rows(b, permutation, rows, nrhs);
        }
        pack(simd, rows, count, shape, x_tile);
    } else {
        pack(simd, b, count, shape, x_tile);
    }
    // Of the transpose, the lower factor is Uᵀ.
    let conj = trans == Trans::ConjTranspose;
    let [first, second] =
        if forward { [Diag::Unit, Diag::NonUnit] } else { [Diag::NonUnit, Diag::Unit] };
    let system = |uplo, diag, conj| System { uplo, diag, conj, n, nrhs };
    solve::<S, T::Lane<S>>(simd, &system(Uplo::Lower, first, conj), lu_tile, x_tile);
    // The first solve has conjugated the tile.
    solve::<S, T::Lane<S>>(simd, &system(Uplo::Upper, second, false), lu_tile, x_tile);
    if forward {
        unpack(simd, x_tile, count, shape, x);
    } else {
        unpack(simd, x_tile, count, shape, rows);
        let systems = x.chunks_exact_mut(n * nrhs).zip(rows.chunks_exact(n * nrhs));
        for ((x, rows), permutation) in systems.zip(permutation.chunks_exact(n)) {
            scatter_rows(rows, permutation, x, nrhs);
        }
    }
}
