//! Inverses from the LU factors of one small matrix: A⁻¹ = U⁻¹·L⁻¹·P.

use bytemuck::cast_slice_mut;
use lapax_core::{Items, ItemsMut, Scalar as _};
use pulp::Simd;

use super::packed_triangle::Triangle;
use super::substitution::{Scratch, Strips};
use super::{LANES, ROWS};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane_real::LaneReal;
use crate::{Diag, Scalar, Uplo};

/// Inverts row-major matrices of order n, at most [`ROWS`].
pub(crate) struct Invert {
    pub(crate) n: usize,
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, i32>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Invert {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        Scratch::new(self.n, self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (lu, permutation, x): Operands<'_, T>,
        _: usize,
    ) {
        let (n, lanes) = (self.n, T::Real::lanes::<S>());
        // The compiler drops what no matrix of so few lanes needs.
        if lanes < LANES {
            return;
        }
        let strips = Strips::of::<T>(n, n, lanes);
        let Scratch { x: tile, packed } = scratch;
        let tile = tile.registers::<S>();
        let (lu, permutation) = (lu.data().chunks_exact(n * n), permutation.data().chunks_exact(n));
        for ((a, permutation), x) in lu.zip(permutation).zip(x.into_data().chunks_exact_mut(n * n))
        {
            let numbers: &mut [T::Real] = cast_slice_mut(&mut *tile);
            numbers.fill(T::Real::ZERO);
            for i in 0..n {
                numbers[strips.number::<T>(i, i)] = T::Real::ONE;
            }
            let order = Layout::Rows;
            let unit = Triangle { uplo: Uplo::Lower, diag: Diag::Unit, conj: false, a, order };
            packed.pack(unit);
            // Column j of L⁻¹ is zero above row j.
            for (i, strip) in strips.each::<S, T>(tile).enumerate() {
                packed.solve::<S>(simd, strip, i * strips.width::<T>());
            }
            packed.pack(Triangle { uplo: Uplo::Upper, diag: Diag::NonUnit, ..unit });
            for strip in strips.each::<S, T>(tile) {
                packed.solve::<S>(simd, strip, 0);
            }
            let mut row = [T::ZERO; ROWS];
            for (i, x) in x.chunks_exact_mut(n).enumerate() {
                strips.write_row::<S, T>(simd, tile, i, &mut row[..n]);
                for (&number, &column) in row.iter().zip(permutation) {
                    // A permutation counts from 0 and up to n − 1.
                    if let Some(to) = usize::try_from(column).ok().and_then(|to| x.get_mut(to)) {
                        *to = number;
                    }
                }
            }
        }
    }
}
