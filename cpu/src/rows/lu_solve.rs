//! Systems op(A)·X = B with the LU factors of one small matrix.

use lapax_core::{Items, ItemsMut};
use pulp::Simd;

use super::substitution::{Scratch, Triangle, pieces};
use super::{Sides, read, write};
use crate::lanes::{Kernel, Lane, LaneReal};
use crate::scalar::nan;
use crate::simd::Ahead;
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
        let wide = Sides::new(n, nrhs, lanes).wide;
        let forward = trans == Trans::None;
        let tile = scratch.x.registers::<S>();
        // Row i of P·B, or of B, in row i of the tile.
        for (i, &row) in permutation.iter().enumerate() {
            let row = if forward { usize::try_from(row).ok() } else { Some(i) };
            let row = row.and_then(|row| b.chunks_exact(nrhs).nth(row));
            for block in 0..wide {
                let x = match row {
                    Some(row) => read::<S, T>(simd, row, block * lanes),
                    None => T::Lane::<S>::splat(simd, nan()),
                };
                x.store(tile, i * wide + block);
            }
        }
        // Of the transpose, the lower factor is Uᵀ.
        let conj = trans == Trans::ConjTranspose;
        let (row, column) = if forward { (n, 1) } else { (1, n) };
        let [first, second] =
            if forward { [Diag::Unit, Diag::NonUnit] } else { [Diag::NonUnit, Diag::Unit] };
        let pieces = 2 * pieces(wide);
        let mut ahead = [
            Ahead::behind(a, n * n, pieces),
            Ahead::behind(b, n * nrhs, pieces),
            Ahead::of(x, pieces),
        ];
        for (uplo, diag) in [(Uplo::Lower, first), (Uplo::Upper, second)] {
            let triangle = Triangle { uplo, diag, conj, n, a, row, column };
            triangle.solve::<S>(simd, tile, wide, &mut scratch.divisors, &mut ahead);
        }
        if !forward {
            x.fill(nan());
        }
        for (i, &row) in permutation.iter().enumerate() {
            let row = if forward { Some(i) } else { usize::try_from(row).ok() };
            let Some(row) = row.and_then(|row| x.chunks_exact_mut(nrhs).nth(row)) else { continue };
            for (block, to) in row.chunks_mut(lanes).enumerate() {
                write::<S, T>(T::Lane::<S>::load(simd, tile, i * wide + block), to);
            }
        }
    }
}
