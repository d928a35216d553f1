//! Parlett's recurrence for one small upper triangular matrix in each lane (Linear Algebra Appl. 14, 1976).

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Reg};

/// x_ij = t_ij·g_ij + (Σ x_ik·t_kj − t_ik·x_kj)/(t_ii − t_jj) of a group of row-major matrices of order n.
pub(crate) struct Parlett {
    pub(crate) n: usize,
}

/// T, G and X.
type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Parlett {
    /// T, and G that becomes X.
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        Tile::new::<T>(2 * self.n * self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tile: &mut Tile<T::Real>,
        (t, g, x): Operands<'_, T>,
        count: usize,
    ) {
        group::<S, T>(simd, self.n, tile, (t.data(), g.data(), x.into_data()), count);
    }
}

#[apart]
fn group<S: Simd, T: Scalar>(
    simd: S,
    n: usize,
    tile: &mut Tile<T::Real>,
    (t, g, x): (&[T], &[T], &mut [T]),
    count: usize,
) {
    let parts = T::Lane::<S>::PARTS;
    let (t_tile, x_tile) = tile.registers::<S>().split_at_mut(n * n * parts);
    let x_tile = &mut x_tile[..n * n * parts];
    let shape = Shape { m: n, n, order: Layout::Rows };
    pack(simd, t, count, shape, t_tile);
    pack(simd, g, count, shape, x_tile);
    let zero = T::Lane::<S>::splat(simd, T::ZERO);
    for j in 0..n {
        let (known, column) = x_tile.split_at_mut(j * n * parts);
        let column = &mut column[..n * parts];
        let mut end = j;
        while end >= 4 {
            rows::<S, T::Lane<S>, 4>(simd, (n, end - 4), t_tile, known, column);
            end -= 4;
        }
        while end >= 1 {
            rows::<S, T::Lane<S>, 1>(simd, (n, end - 1), t_tile, known, column);
            end -= 1;
        }
        for i in j + 1..n {
            zero.store(column, i);
        }
    }
    unpack(simd, x_tile, count, shape, x);
}

/// R rows from row i on of the column behind the `known` ones of X, whose rows below these are known.
#[inline(always)]
fn rows<S: Simd, X: Lane<S>, const R: usize>(
    simd: S,
    (n, i): (usize, usize),
    t: &[Reg<S, X>],
    known: &[Reg<S, X>],
    column: &mut [Reg<S, X>],
) {
    let size = n * X::PARTS;
    let j = known.len() / size;
    let behind = &t[j * size..(j + 1) * size];
    let zero = X::splat(simd, X::Scalar::ZERO);
    let mut sums = [zero; R];
    let columns = known.chunks_exact(size).zip(t.chunks_exact(size)).enumerate();
    for (k, (x, t)) in columns.skip(i + R) {
        let (x_kj, t_kj) = (X::load(simd, column, k), X::load(simd, behind, k));
        for (r, sum) in sums.iter_mut().enumerate() {
            let (x_ik, t_ik) = (X::load(simd, x, i + r), X::load(simd, t, i + r));
            *sum = sum.add_mul(x_ik, t_kj).sub_mul(t_ik, x_kj);
        }
    }
    let t_jj = X::load(simd, behind, j);
    for r in (0..R).rev() {
        let at = i + r;
        let (above, t_at) = (&known[at * size..(at + 1) * size], &t[at * size..(at + 1) * size]);
        let difference = X::load(simd, t_at, at) - t_jj;
        let same = difference.abs1().equal(zero.re());
        let divisor = X::choose(same, X::splat(simd, X::Scalar::ONE), difference);
        let quotient = X::choose(same, zero, Divisor::new(simd, divisor).divide(sums[r]));
        let t_ij = X::load(simd, behind, at);
        let x_ij = quotient.add_mul(t_ij, X::load(simd, column, at));
        x_ij.store(column, at);
        for (r, sum) in sums[..r].iter_mut().enumerate() {
            let (x_ik, t_ik) = (X::load(simd, above, i + r), X::load(simd, t_at, i + r));
            *sum = sum.add_mul(x_ik, t_ij).sub_mul(t_ik, x_ij);
        }
    }
}
