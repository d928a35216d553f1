//! Cholesky factorisation A = L·Lᴴ of one small matrix in each lane.

use lapax_core::{InOut, ItemsInOut, ItemsMut, Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::elementary::SUMMED;
use crate::simd::lane::{FOUR, Size, Steps, THREE, TWO, integer, numbers};
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};

/// Factors the lower triangle of a group, by columns; the transposed order makes it the upper one.
pub(crate) struct Factor {
    pub(crate) n: usize,
    pub(crate) order: Layout,
}

pub(crate) type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsMut<'a, i32>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Factor {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        Tile::new::<T>(self.n * self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tile<T::Real>,
        (a, info): Operands<'_, T>,
        count: usize,
    ) {
        let Self { n, order } = *self;
        let shape = Shape { m: n, n, order };
        let InOut { src, dst } = a.into_in_out();
        let tile = scratch.registers::<S>();
        pack(simd, src.unwrap_or(dst), count, shape, tile);
        let minor = factor::<S, T::Lane<S>>(simd, tile, n);
        unpack(simd, tile, count, shape, dst);
        for (info, minor) in info.into_data().iter_mut().zip(numbers(minor)) {
            *info = integer(minor);
        }
    }
}

/// Factors a group of row-major matrices, with zeros above the diagonal, and NaN in the rest where
/// one is not positive definite.
pub(crate) struct FactorRows {
    pub(crate) n: usize,
    /// Whether A is the mean of the matrix and its adjoint, and not its lower triangle alone.
    pub(crate) mean: bool,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>,)> for FactorRows {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        Tile::new::<T>(self.n * self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tile<T::Real>,
        (a,): (ItemsInOut<'_, T>,),
        count: usize,
    ) {
        match self.n {
            2 => factor_rows::<S, T, _>(simd, self.mean, scratch, a, count, TWO),
            3 => factor_rows::<S, T, _>(simd, self.mean, scratch, a, count, THREE),
            4 => factor_rows::<S, T, _>(simd, self.mean, scratch, a, count, FOUR),
            n => factor_rows::<S, T, _>(simd, self.mean, scratch, a, count, n),
        }
    }
}

#[apart]
fn factor_rows<S: Simd, T: Scalar, N: Size>(
    simd: S,
    mean: bool,
    scratch: &mut Tile<T::Real>,
    a: ItemsInOut<'_, T>,
    count: usize,
    n: N,
) {
    let (size, n) = (n, n.get());
    let shape = Shape { m: n, n, order: Layout::Rows };
    let InOut { src, dst } = a.into_in_out();
    let tile = scratch.registers::<S>();
    pack(simd, src.unwrap_or(dst), count, shape, tile);
    if mean {
        mean_with_adjoint::<S, T::Lane<S>>(simd, tile, n);
    }
    let minor = factor::<S, T::Lane<S>>(simd, tile, size);
    finish::<S, T::Lane<S>>(simd, tile, n, minor);
    unpack(simd, tile, count, shape, dst);
}

/// The lower triangle of (A + Aᴴ) / 2 in place of A's.
#[inline(always)]
pub(crate) fn mean_with_adjoint<S: Simd, X: Lane<S>>(simd: S, tile: &mut [Reg<S, X>], n: usize) {
    let half = Vector::<S, X::Real>::splat(simd, X::Real::from_f64(0.5));
    for j in 0..n {
        for i in j..n {
            let sum = X::load(simd, tile, j * n + i) + X::load(simd, tile, i * n + j).conj();
            sum.scale(half).store(tile, j * n + i);
        }
    }
}

/// Zeros above the diagonal, and NaN in the rest where a minor is not positive.
#[inline(always)]
pub(crate) fn finish<S: Simd, X: Lane<S>>(
    simd: S,
    tile: &mut [Reg<S, X>],
    n: usize,
    minor: Vector<S, X::Real>,
) {
    let zero = Vector::splat(simd, X::Real::ZERO);
    let nan = X::splat(simd, nan());
    for j in 0..n {
        for i in 0..j {
            X::from_real(zero).store(tile, j * n + i);
        }
        for i in j..n {
            let l = X::load(simd, tile, j * n + i);
            X::choose(minor.equal(zero), l, nan).store(tile, j * n + i);
        }
    }
}

/// Factors a tile in place; returns 0 or the order of the first minor that is not positive.
#[inline(always)]
pub(crate) fn factor<S: Simd, X: Lane<S>>(
    simd: S,
    tile: &mut [Reg<S, X>],
    size: impl Size,
) -> Vector<S, X::Real> {
    let n = size.get();
    let zero = Vector::splat(simd, X::Real::ZERO);
    let tile = &mut tile[..n * n * X::PARTS];
    let mut columns = Columns::<S, X> { simd, tile, n, info: zero, order: zero };
    size.each(&mut columns);
    columns.info
}

/// A factorisation at work, column by column.
struct Columns<'a, S: Simd, X: Lane<S>> {
    simd: S,
    tile: &'a mut [Reg<S, X>],
    n: usize,
    info: Vector<S, X::Real>,
    /// Of the last minor that was looked at.
    order: Vector<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Steps for Columns<'_, S, X> {
    #[inline(always)]
    fn step(&mut self, j: usize) {
        let Self { simd, n, .. } = *self;
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
        let tile = &mut *self.tile;
        let at = |i: usize, j: usize| j * n + i;
        self.order = self.order + one;
        // L(j, j)² = A(j, j) − Σ |L(j, k)|².
        let mut d = X::load(simd, tile, at(j, j)).re();
        for first in (0..j).step_by(SUMMED) {
            let mut sum = X::load(simd, tile, at(j, first)).norm_squared();
            for k in first + 1..j.min(first + SUMMED) {
                sum = sum + X::load(simd, tile, at(j, k)).norm_squared();
            }
            d = d - sum;
        }
        let first = zero.less(d).not().and(self.info.equal(zero));
        self.info = Vector::choose(first, self.order, self.info);
        let d = d.sqrt();
        X::from_real(d).store(tile, at(j, j));
        let reciprocal = one / d;
        // L(i, j) = (A(i, j) − Σ L(i, k)·conj(L(j, k))) / L(j, j), four rows at a time.
        let mut i = j + 1;
        while i + 4 <= n {
            rows::<S, X, 4>(simd, tile, n, i, j, reciprocal);
            i += 4;
        }
        while i < n {
            rows::<S, X, 1>(simd, tile, n, i, j, reciprocal);
            i += 1;
        }
    }
}

/// Rows i to i + N of column j.
#[inline(always)]
fn rows<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    tile: &mut [Reg<S, X>],
    n: usize,
    i: usize,
    j: usize,
    reciprocal: Vector<S, X::Real>,
) {
    let mut sums: [X; N] = std::array::from_fn(|r| X::load(simd, tile, j * n + i + r));
    let zero = X::from_real(Vector::splat(simd, X::Real::ZERO));
    for known in tile[..j * n * X::PARTS].chunks(SUMMED * n * X::PARTS) {
        let mut products = [zero; N];
        for column in known.chunks_exact(n * X::PARTS) {
            let l = X::load(simd, column, j).conj();
            let below = &column[i * X::PARTS..(i + N) * X::PARTS];
            for (r, sum) in products.iter_mut().enumerate() {
                *sum = sum.add_mul(X::load(simd, below, r), l);
            }
        }
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = *sum - product;
        }
    }
    for (r, sum) in sums.into_iter().enumerate() {
        sum.scale(reciprocal).store(tile, j * n + i + r);
    }
}
