//! Systems A·X = B with the Cholesky factor of one small matrix.

use lapax_core::{Items, ItemsMut};
use pulp::Simd;

use super::packed_triangle::line;
use super::substitution::{Scratch, Strips};
use super::{LANES, packed_triangle};
use crate::matrix::triangle::{Triangle, triangles};
use crate::parallel::groups::Kernel;
use crate::simd::lane_real::LaneReal;
use crate::simd::prefetch::Ahead;
use crate::{Diag, Scalar, Uplo};

/// Solves row-major systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

pub(crate) type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

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
        (factor, b, x): Operands<'_, T>,
        _: usize,
    ) {
        let Self { uplo, n, nrhs } = *self;
        let lanes = T::Real::lanes::<S>();
        // The compiler drops what no system of so few lanes needs.
        if lanes < LANES {
            return;
        }
        let strips = Strips::of::<T>(n, nrhs, lanes);
        let Scratch { x: tile, packed } = scratch;
        let tile = tile.registers::<S>();
        let (b, x) = (b.data().chunks_exact(n * nrhs), x.into_data().chunks_exact_mut(n * nrhs));
        for (a, (b, x)) in factor.data().chunks_exact(n * n).zip(b.zip(x)) {
            strips.read_rows::<S, T>(simd, |i| Some(line(b, nrhs, i)), tile);
            let pieces = 2 * strips.count;
            let mut ahead = [
                Ahead::behind(a, n * n, pieces),
                Ahead::behind(b, n * nrhs, pieces),
                Ahead::of(x, pieces),
            ];
            for Triangle { uplo, conj, order } in triangles(uplo) {
                packed.pack(packed_triangle::Triangle {
                    uplo,
                    diag: Diag::NonUnit,
                    conj,
                    a,
                    order,
                });
                for strip in strips.each::<S, T>(tile) {
                    ahead.iter_mut().for_each(Ahead::next);
                    packed.solve::<S>(simd, strip, 0);
                }
            }
            for (i, row) in x.chunks_exact_mut(nrhs).enumerate() {
                strips.write_row::<S, T>(simd, tile, i, row);
            }
        }
    }
}
