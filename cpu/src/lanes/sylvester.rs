//! R·Y ± Y·S = F with upper triangular R and S, one small equation in each lane.

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Reg, Vector};

/// Solves a group of row-major equations, Y and F m × n.
pub(crate) struct Sylvester {
    /// Whether Y·S is subtracted.
    pub(crate) minus: bool,
    pub(crate) m: usize,
    pub(crate) n: usize,
}

/// R, S, F and Y.
pub(crate) type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Sylvester {
    /// R, S, and F that becomes Y.
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        let Self { m, n, .. } = *self;
        Tile::new::<T>(m * m + n * n + m * n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tile: &mut Tile<T::Real>,
        (r, s, f, y): Operands<'_, T>,
        count: usize,
    ) {
        let matrices = (r.data(), s.data(), f.data(), y.into_data());
        group::<S, T>(simd, self, tile, matrices, count);
    }
}

#[apart]
fn group<S: Simd, T: Scalar>(
    simd: S,
    kernel: &Sylvester,
    tile: &mut Tile<T::Real>,
    (r, s, f, y): (&[T], &[T], &[T], &mut [T]),
    count: usize,
) {
    let Sylvester { minus, m, n } = *kernel;
    let parts = T::Lane::<S>::PARTS;
    let (r_tile, rest) = tile.registers::<S>().split_at_mut(m * m * parts);
    let (s_tile, y_tile) = rest.split_at_mut(n * n * parts);
    let y_tile = &mut y_tile[..m * n * parts];
    let shape = |m, n| Shape { m, n, order: Layout::Rows };
    pack(simd, r, count, shape(m, m), r_tile);
    pack(simd, s, count, shape(n, n), s_tile);
    pack(simd, f, count, shape(m, n), y_tile);
    if minus {
        for x in s_tile.chunks_exact_mut(parts) {
            (-T::Lane::<S>::load(simd, x, 0)).store(x, 0);
        }
    }
    for j in 0..n {
        let (known, column) = y_tile.split_at_mut(j * m * parts);
        let (column, s) = (&mut column[..m * parts], &s_tile[j * n * parts..(j + 1) * n * parts]);
        subtract::<S, T::Lane<S>>(simd, m, known, s, column);
        let shift = T::Lane::<S>::load(simd, s, j);
        substitute::<S, T::Lane<S>>(simd, (m, m), r_tile, shift, column);
    }
    unpack(simd, y_tile, count, shape(m, n), y);
}

/// y ← y − Y·s, by as many columns of Y as there are.
#[inline(always)]
fn subtract<S: Simd, X: Lane<S>>(
    simd: S,
    m: usize,
    known: &[Reg<S, X>],
    s: &[Reg<S, X>],
    column: &mut [Reg<S, X>],
) {
    let mut i = 0;
    while i + 4 <= m {
        subtract_rows::<S, X, 4>(simd, (m, i), known, s, column);
        i += 4;
    }
    while i < m {
        subtract_rows::<S, X, 1>(simd, (m, i), known, s, column);
        i += 1;
    }
}

#[inline(always)]
fn subtract_rows<S: Simd, X: Lane<S>, const R: usize>(
    simd: S,
    (m, i): (usize, usize),
    known: &[Reg<S, X>],
    s: &[Reg<S, X>],
    column: &mut [Reg<S, X>],
) {
    let mut sums: [X; R] = std::array::from_fn(|r| X::load(simd, column, i + r));
    for (k, known) in known.chunks_exact(m * X::PARTS).enumerate() {
        let s = X::load(simd, s, k);
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = sum.sub_mul(X::load(simd, known, i + r), s);
        }
    }
    for (r, sum) in sums.into_iter().enumerate() {
        sum.store(column, i + r);
    }
}

/// y ← (R + shift·I)⁻¹·y of the first `order` rows of y, R by columns of m numbers. A quotient of zeros is zero.
#[inline(always)]
pub(super) fn substitute<S: Simd, X: Lane<S>>(
    simd: S,
    (m, order): (usize, usize),
    r: &[Reg<S, X>],
    shift: X,
    column: &mut [Reg<S, X>],
) {
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
    for (i, r) in r.chunks_exact(m * X::PARTS).enumerate().take(order).rev() {
        let (pivot, x) = (X::load(simd, r, i) + shift, X::load(simd, column, i));
        let zeros = pivot.abs1().equal(zero).and(x.abs1().equal(zero));
        let y = X::choose(zeros, X::from_real(zero), Divisor::new(simd, pivot).divide(x));
        y.store(column, i);
        for k in 0..i {
            X::load(simd, column, k).sub_mul(X::load(simd, r, k), y).store(column, k);
        }
    }
}
