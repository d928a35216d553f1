//! Tridiagonal systems whose right-hand sides lie by columns.

use lapax_core::ItemsInOut;
use pulp::Simd;

use super::{Exact, Quotients, substitute};
use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Vector};

/// How the right-hand sides of one system, whose matrix is eliminated, are solved for.
pub(crate) trait Division<T: Scalar>: Sync {
    fn quotients<S: Simd>(&self, simd: S) -> impl Quotients<S, T::Lane<S>>;
}

/// As xGTSV divides.
pub(crate) struct AsItIs;

impl<T: Scalar> Division<T> for AsItIs {
    #[inline(always)]
    fn quotients<S: Simd>(&self, simd: S) -> impl Quotients<S, T::Lane<S>> {
        Exact(simd)
    }
}

/// One step of an elimination: the rows i and i + 1 may be swapped, then the multiple of row i is
/// subtracted from row i + 1.
#[derive(Clone, Copy)]
pub(crate) struct Step<T> {
    pub(crate) multiplier: T,
    pub(crate) swapped: bool,
}

impl<T: Scalar> Step<T> {
    pub(crate) const NONE: Self = Self { multiplier: T::ZERO, swapped: false };
}

/// Solves for right-hand sides of one system, so many in each lane.
pub(crate) struct SolveColumns<'a, T, D> {
    pub(crate) columns: usize,
    pub(crate) steps: &'a [Step<T>],
    /// U as [`substitute`] has it.
    pub(crate) upper: [&'a [T]; 3],
    pub(crate) division: &'a D,
}

/// The right-hand sides of a group, and U in all lanes once it is there.
pub(crate) struct ColumnTiles<R> {
    b: Tile<R>,
    upper: [Tile<R>; 3],
    filled: bool,
}

impl<T: Scalar, D: Division<T>> Kernel<T, (ItemsInOut<'_, T>,)> for SolveColumns<'_, T, D> {
    type Scratch = ColumnTiles<T::Real>;

    fn scratch(&self, lanes: usize) -> ColumnTiles<T::Real> {
        let m = self.upper[1].len();
        let upper = self.upper.map(|_| Tile::new::<T>(m, lanes));
        ColumnTiles { b: Tile::new::<T>(m * self.columns, lanes), upper, filled: false }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        ColumnTiles { b: tile, upper, filled }: &mut ColumnTiles<T::Real>,
        (b,): (ItemsInOut<'_, T>,),
        count: usize,
    ) {
        let size @ (m, columns) = (self.upper[1].len(), self.columns);
        let shape = Shape { m, n: columns, order: Layout::Columns };
        let (b, tile) = (b.into_in_out(), tile.registers::<S>());
        let mut upper = upper.each_mut().map(Tile::registers::<S>);
        if !*filled {
            for (tile, diagonal) in upper.iter_mut().zip(self.upper) {
                for (i, &x) in diagonal.iter().enumerate() {
                    T::Lane::<S>::splat(simd, x).store(tile, i);
                }
            }
            *filled = true;
        }
        pack(simd, b.src.unwrap_or(b.dst), count, shape, tile);
        for (i, step) in self.steps.iter().enumerate().take(m - 1) {
            let multiplier = T::Lane::<S>::splat(simd, step.multiplier);
            for b in tile.chunks_exact_mut(m * T::Lane::<S>::PARTS).take(columns) {
                let rows = [i, i + 1].map(|i| T::Lane::<S>::load(simd, b, i));
                let [above, here] = if step.swapped { [rows[1], rows[0]] } else { rows };
                above.store(b, i);
                here.sub_mul(multiplier, above).store(b, i + 1);
            }
        }
        let upper = upper.each_ref().map(|tile| &**tile);
        substitute::<S, T::Lane<S>>(simd, upper, tile, size, &self.division.quotients(simd));
        unpack(simd, tile, count, shape, b.dst);
    }
}

/// An elimination's row as far as it has come, and the sizes of the pivots before.
#[derive(Clone, Copy)]
pub(crate) struct Row<S: Simd, X: Lane<S>> {
    pub(crate) pivot: X,
    pub(crate) beside: X,
    pub(crate) rhs: X,
    pub(crate) least: Vector<S, X::Real>,
    pub(crate) largest: Vector<S, X::Real>,
}
