//! R with R² = T of one small upper triangular matrix in each lane (Björck and Hammarling, Linear Algebra Appl. 52/53,
//! 1983).

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use super::sylvester::substitute;
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::elementary::square_root;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES};

/// The square roots of a group of row-major matrices of order n.
pub(crate) struct SquareRoot {
    pub(crate) n: usize,
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for SquareRoot {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        Tile::new::<T>(self.n * self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tile: &mut Tile<T::Real>,
        (t, r): (Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        group::<S, T>(simd, self.n, tile, t.data(), r.into_data(), count);
    }
}

#[apart]
fn group<S: Simd, T: Scalar>(
    simd: S,
    n: usize,
    tile: &mut Tile<T::Real>,
    t: &[T],
    r: &mut [T],
    count: usize,
) {
    let parts = T::Lane::<S>::PARTS;
    let tile = &mut tile.registers::<S>()[..n * n * parts];
    let shape = Shape { m: n, n, order: Layout::Rows };
    pack(simd, t, count, shape, tile);
    let zero = T::Lane::<S>::splat(simd, T::ZERO);
    for j in 0..n {
        let (known, column) = tile.split_at_mut(j * n * parts);
        let column = &mut column[..n * parts];
        let mut diagonal = [T::ZERO; MAX_LANES];
        T::Lane::<S>::load(simd, column, j).write(&mut diagonal);
        let shift = T::Lane::<S>::read(simd, &diagonal.map(square_root));
        substitute::<S, T::Lane<S>>(simd, (n, j), known, shift, column);
        shift.store(column, j);
        for i in j + 1..n {
            zero.store(column, i);
        }
    }
    unpack(simd, tile, count, shape, r);
}
