//! LU factorisation with partial pivoting, P·A = L·U, of one small matrix in each lane.
//!
//! Elimination step by step; the swap of rows, which differs from lane to lane, is a choice between
//! two registers for every row below the pivot.

pub(crate) mod determinant;
pub(crate) mod lu_solve;
pub(crate) mod solve;

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::matrix::rows::Output;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane::{FOUR, Size, Steps, THREE, TWO, integer, numbers, row};
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Reg, Vector};

/// Factors a group; writes what `output` asks for.
pub(crate) struct Factor {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) order: Layout,
    pub(crate) output: Output,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    a: Tile<R>,
    /// The row with which each row was swapped.
    swaps: Tile<R>,
    /// The rows of A in the order of P·A.
    permutation: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
    /// Swaps or permutations, matrix by matrix.
    numbers: Padded<R>,
}

/// The numbers of so many rows, as reals, and the next one.
pub(super) fn row_numbers<R: LaneReal>(rows: usize) -> Padded<R> {
    let mut numbers = Padded::new(R::ZERO, rows + 1);
    numbers.iter_mut().enumerate().for_each(|(i, number)| *number = row(i));
    numbers
}

/// What a factorisation leaves beside U.
pub(super) enum Keep<'a, R> {
    /// L, the row swapped with each row, and the rows of A in the order of P·A.
    Factors { swaps: &'a mut [R], permutation: &'a mut [R] },
    /// The row swapped with each row.
    Swaps(&'a mut [R]),
    /// Nothing.
    Nothing,
}

type RealReg<S, X> = Reg<S, Vector<S, <X as Lane<S>>::Real>>;

pub(crate) type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsMut<'a, i32>, ItemsMut<'a, i32>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Factor {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        Scratch {
            a: Tile::new::<T>(self.m * self.n, lanes),
            swaps: Tile::new::<T::Real>(self.m.min(self.n), lanes),
            permutation: Tile::new::<T::Real>(self.m, lanes),
            rows: row_numbers(self.m),
            numbers: Padded::new(T::Real::ZERO, self.m * lanes),
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
        match (self.m, self.n) {
            (2, 2) => factor_group::<S, T, _>(simd, self, scratch, group, count, [TWO; 2]),
            (3, 3) => factor_group::<S, T, _>(simd, self, scratch, group, count, [THREE; 2]),
            (4, 4) => factor_group::<S, T, _>(simd, self, scratch, group, count, [FOUR; 2]),
            (m, n) => factor_group::<S, T, _>(simd, self, scratch, group, count, [m, n]),
        }
    }
}

#[apart]
fn factor_group<S: Simd, T: Scalar, N: Size>(
    simd: S,
    kernel: &Factor,
    scratch: &mut Scratch<T::Real>,
    (a, pivots, second): Operands<'_, T>,
    count: usize,
    [m, n]: [N; 2],
) {
    let steps = if m.get() < n.get() { m } else { n };
    let (m, n) = (m.get(), n.get());
    let shape = Shape { m, n, order: kernel.order };
    let InOut { src, dst } = a.into_in_out();
    let tile = scratch.a.registers::<S>();
    let swaps = scratch.swaps.registers::<S>();
    let permutation = scratch.permutation.registers::<S>();
    pack(simd, src.unwrap_or(dst), count, shape, tile);
    let keep = Keep::Factors { swaps: &mut *swaps, permutation: &mut *permutation };
    let zero = factor::<S, T::Lane<S>>(simd, tile, &scratch.rows, keep, (m, n), steps);
    unpack(simd, tile, count, shape, dst);
    let scratch = &mut scratch.numbers;
    let first = if matches!(kernel.output, Output::Lapack) { 1 } else { 0 };
    integers(simd, swaps, (m.min(n), count), scratch, first, pivots.into_data());
    let second = second.into_data();
    match kernel.output {
        Output::Lapack => {
            for (info, zero) in second.iter_mut().zip(numbers(zero)) {
                *info = integer(zero);
            }
        }
        Output::Permutation => integers(simd, permutation, (m, count), scratch, 0, second),
    }
}

/// Writes the m integers of each matrix, plus `first`.
#[inline(always)]
fn integers<S: Simd, R: LaneReal>(
    simd: S,
    tile: &[R::Reg<S>],
    (m, count): (usize, usize),
    scratch: &mut [R],
    first: i32,
    to: &mut [i32],
) {
    let shape = Shape { m, n: 1, order: Layout::Columns };
    let scratch = &mut scratch[..m * count];
    unpack(simd, tile, count, shape, scratch);
    for (to, x) in to.iter_mut().zip(scratch) {
        *to = integer(*x) + first;
    }
}

/// Factors the tile of m × n matrices in place, in so many steps, the smaller one of m and n; returns 0
/// or the first i > 0 for which U(i, i) is zero.
#[inline(always)]
pub(super) fn factor<S: Simd, X: Lane<S>>(
    simd: S,
    tile: &mut [Reg<S, X>],
    rows: &[X::Real],
    mut keep: Keep<'_, RealReg<S, X>>,
    (m, n): (usize, usize),
    steps: impl Size,
) -> Vector<S, X::Real> {
    let (tile, rows) = (&mut tile[..m * n * X::PARTS], &rows[..=m]);
    if let Keep::Factors { permutation, .. } = &mut keep {
        for (place, row) in permutation[..m].iter_mut().zip(rows) {
            *place = Vector::<S, X::Real>::splat(simd, *row).reg();
        }
    }
    let info = Vector::splat(simd, X::Real::ZERO);
    let mut elimination = Elimination::<S, X> { simd, tile, rows, keep, m, info };
    steps.each(&mut elimination);
    elimination.info
}

/// A factorisation at work.
struct Elimination<'a, S: Simd, X: Lane<S>> {
    simd: S,
    tile: &'a mut [Reg<S, X>],
    rows: &'a [X::Real],
    keep: Keep<'a, RealReg<S, X>>,
    m: usize,
    info: Vector<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Steps for Elimination<'_, S, X> {
    #[inline(always)]
    fn step(&mut self, j: usize) {
        let Self { simd, m, rows, .. } = *self;
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
        let stride = m * X::PARTS;
        // The first row of largest |re| + |im|, a NaN being larger than any number.
        let column = &mut self.tile[j * stride..(j + 1) * stride];
        let top = X::load(simd, column, j);
        let (mut pivot, mut size, mut index) = (top, top.abs1(), real(rows[j]));
        for (i, &row) in rows.iter().enumerate().take(m).skip(j + 1) {
            let x = X::load(simd, column, i);
            let larger = x.abs1().less_or_equal(size).not().and(size.equal(size));
            size = Vector::choose(larger, x.abs1(), size);
            index = Vector::choose(larger, real(row), index);
            pivot = X::choose(larger, x, pivot);
        }
        if let Keep::Factors { swaps, .. } | Keep::Swaps(swaps) = &mut self.keep {
            index.store(swaps, j);
        }
        let singular = size.equal(zero);
        let first = singular.and(self.info.equal(zero));
        self.info = Vector::choose(first, real(rows[j + 1]), self.info);

        // L(:, j) = A(:, j) / pivot, after the swap; a column of zeros stays as it is.
        let divisor = Divisor::new(simd, X::choose(singular, X::from_real(one), pivot));
        pivot.store(column, j);
        for (i, &row) in rows.iter().enumerate().take(m).skip(j + 1) {
            let x = X::choose(index.equal(real(row)), top, X::load(simd, column, i));
            divisor.divide(x).store(column, i);
        }

        // A(:, c) ← A(:, c) − L(:, j)·U(j, c), with the swap.
        let (left, right) = self.tile.split_at_mut((j + 1) * stride);
        let (left, l) = left.split_at_mut(j * stride);
        let (rows, l) = (&rows[j + 1..m], &l[(j + 1) * X::PARTS..]);
        for column in right.chunks_exact_mut(stride) {
            let (top, below) = column[j * X::PARTS..].split_at_mut(X::PARTS);
            let x = X::load(simd, top, 0);
            let u = swapped_in::<S, X>(simd, x, below, index, rows);
            u.store(top, 0);
            let below = below.chunks_exact_mut(X::PARTS).zip(l.chunks_exact(X::PARTS));
            for ((below, l), row) in below.zip(rows) {
                let y = X::choose(index.equal(real(*row)), x, X::load(simd, below, 0));
                y.sub_mul(X::load(simd, l, 0), u).store(below, 0);
            }
        }
        if let Keep::Factors { permutation, .. } = &mut self.keep {
            for column in left.chunks_exact_mut(stride) {
                swap::<S, X>(simd, &mut column[j * X::PARTS..], index, rows);
            }
            swap::<S, Vector<S, X::Real>>(simd, &mut permutation[j..m], index, rows);
        }
    }
}

/// Swaps the first element with that of row `index`, one of `rows`, the rows of the others.
#[inline(always)]
pub(super) fn swap<S: Simd, X: Lane<S>>(
    simd: S,
    column: &mut [Reg<S, X>],
    index: Vector<S, X::Real>,
    rows: &[X::Real],
) {
    let (top, below) = column.split_at_mut(X::PARTS);
    let x = X::load(simd, top, 0);
    swapped_in::<S, X>(simd, x, below, index, rows).store(top, 0);
    for (below, row) in below.chunks_exact_mut(X::PARTS).zip(rows) {
        let y = X::choose(index.equal(Vector::splat(simd, *row)), x, X::load(simd, below, 0));
        y.store(below, 0);
    }
}

/// The element of the pivot's row: `top`, or the one among `below`.
#[inline(always)]
fn swapped_in<S: Simd, X: Lane<S>>(
    simd: S,
    top: X,
    below: &[Reg<S, X>],
    index: Vector<S, X::Real>,
    rows: &[X::Real],
) -> X {
    let mut x = top;
    for (below, row) in below.chunks_exact(X::PARTS).zip(rows) {
        x = X::choose(index.equal(Vector::splat(simd, *row)), X::load(simd, below, 0), x);
    }
    x
}
