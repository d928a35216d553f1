//! Determinants, as sign and logarithm, with one small matrix in each lane.

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::lu::{Keep, factor, row_numbers};
use super::tile::pack;
use super::{FOUR, Kernel, Lane, MAX_LANES, Order, Shape, Size, Tile};
use crate::Scalar;
use crate::determinant::Product;
use crate::packed::Packed;
use crate::padded::Padded;

/// Finds those of a group.
pub(crate) struct Find {
    pub(crate) n: usize,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    a: Tile<R>,
    swaps: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
}

type Operands<'a, T> =
    (Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Real>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Find {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        let n = self.n;
        Scratch {
            a: Tile::new::<T>(n * n, lanes),
            swaps: Tile::new::<T::Real>(n, lanes),
            rows: row_numbers(n),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        group: Operands<'_, T>,
        count: usize,
    ) {
        match self.n {
            4 => find::<S, T, _>(simd, scratch, group, count, FOUR),
            n => find::<S, T, _>(simd, scratch, group, count, n),
        }
    }
}

#[apart]
fn find<S: Simd, T: Scalar, N: Size>(
    simd: S,
    scratch: &mut Scratch<T::Real>,
    (a, sign, logabs): Operands<'_, T>,
    count: usize,
    n: N,
) {
    let (steps, n) = (n, n.get());
    let Scratch { a: tile, swaps, rows } = scratch;
    let (tile, swaps) = (tile.registers::<S>(), swaps.registers::<S>());
    // The transpose has the same determinant, and is read without transposing.
    pack(simd, a.data(), count, Shape { m: n, n, order: Order::Column }, tile);
    factor::<S, T::Lane<S>>(simd, tile, rows, Keep::Swaps(&mut *swaps), (n, n), steps);
    let mut products: [Product<T>; MAX_LANES] = std::array::from_fn(|_| Product::new());
    let mut odd = [false; MAX_LANES];
    for j in 0..n {
        let mut pivots = [T::ZERO; MAX_LANES];
        T::Lane::<S>::load(simd, tile, j * n + j).write(&mut pivots);
        let mut partners = [rows[0]; MAX_LANES];
        T::Real::write_register::<S>(swaps[j], &mut partners);
        for lane in 0..count {
            products[lane].take(pivots[lane]);
            odd[lane] ^= partners[lane] != rows[j];
        }
    }
    let results = sign.into_data().iter_mut().zip(logabs.into_data());
    for ((product, odd), (sign, logabs)) in products.into_iter().zip(odd).zip(results) {
        (*sign, *logabs) = product.result(odd);
    }
}
