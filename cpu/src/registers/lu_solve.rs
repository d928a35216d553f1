//! Systems op(A)·X = B with the LU factors of one small matrix.

use lapax_core::{Items, ItemsMut};
use pulp::Simd;

use super::LANES;
use super::packed_triangle::{Triangle, line};
use super::substitution::{Scratch, Strips};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane_real::LaneReal;
use crate::simd::prefetch::Ahead;
use crate::simd::scalar::nan;
use crate::{Diag, Scalar, Trans, Uplo};

/// Solves row-major systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) trans: Trans,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, i32>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        Scratch::new(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (lu, permutation, b, x): Operands<'_, T>,
        _: usize,
    ) {
        let Self { n, nrhs, .. } = *self;
        let (lu, permutation) = (lu.data().chunks_exact(n * n), permutation.data().chunks_exact(n));
        let (b, x) = (b.data().chunks_exact(n * nrhs), x.into_data().chunks_exact_mut(n * nrhs));
        for (((lu, permutation), b), x) in lu.zip(permutation).zip(b).zip(x) {
            self.solve::<S, T>(simd, scratch, lu, permutation, (b, x));
        }
    }
}

impl Solve {
    #[inline(always)]
    fn solve<S: Simd, T: Scalar>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        a: &[T],
        permutation: &[i32],
        (b, x): (&[T], &mut [T]),
    ) {
        let Self { trans, n, nrhs } = *self;
        let lanes = T::Real::lanes::<S>();
        // The compiler drops what no system of so few lanes needs.
        if lanes < LANES {
            return;
        }
        let strips = Strips::of::<T>(n, nrhs, lanes);
        let forward = trans == Trans::None;
        let Scratch { x: tile, packed } = scratch;
        let tile = tile.registers::<S>();
        // Row i of P·B, or of B.
        let row = |i: usize| {
            let row = if forward { usize::try_from(permutation[i]).ok() } else { Some(i) };
            row.filter(|&row| row < n).map(|row| line(b, nrhs, row))
        };
        strips.read_rows::<S, T>(simd, row, tile);
        // Of the transpose, the lower factor is Uᵀ.
        let conj = trans == Trans::ConjTranspose;
        let order = if forward { Layout::Rows } else { Layout::Columns };
        let [first, second] =
            if forward { [Diag::Unit, Diag::NonUnit] } else { [Diag::NonUnit, Diag::Unit] };
        let pieces = 2 * strips.count;
        let mut ahead = [
            Ahead::behind(a, n * n, pieces),
            Ahead::behind(b, n * nrhs, pieces),
            Ahead::of(x, pieces),
        ];
        for (uplo, diag) in [(Uplo::Lower, first), (Uplo::Upper, second)] {
            packed.pack(Triangle { uplo, diag, conj, a, order });
            for strip in strips.each::<S, T>(tile) {
                ahead.iter_mut().for_each(Ahead::next);
                packed.solve::<S>(simd, strip, 0);
            }
        }
        if !forward {
            x.fill(nan());
        }
        for (i, &row) in permutation.iter().enumerate() {
            let row = if forward { Some(i) } else { usize::try_from(row).ok() };
            if let Some(row) = row.and_then(|row| x.chunks_exact_mut(nrhs).nth(row)) {
                strips.write_row::<S, T>(simd, tile, i, row);
            }
        }
    }
}
