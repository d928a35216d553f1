//! Triangular systems A·X = B of one small matrix, right-hand sides in the lanes of registers.
//!
//! A is packed [`TOGETHER`] rows at a time, so that one loop serves every triangle, layout and
//! conjugation. X lies in strips two registers wide. As many of its rows are found together: they take all
//! unknowns before them like a block of a matrix product, in registers, and then each other.

use lapax_core::{InOut, Items, ItemsInOut};
use pulp::Simd;

use super::LANES;
use super::packed_triangle::{Packed, TOGETHER, Triangle, WIDE, line, per_row};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::{read, transpose_numbers, write};
use crate::simd::prefetch::Ahead;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES, Reg};
use crate::{Diag, Scalar, Uplo};

/// Solves systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements of A are conjugated as they are read.
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a_order: Layout,
    pub(crate) b_order: Layout,
}

/// What one thread reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    pub(super) x: Tile<T::Real>,
    pub(super) packed: Packed<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For systems of order n with nrhs right-hand sides.
    pub(crate) fn new(n: usize, nrhs: usize, lanes: usize) -> Self {
        let strips = Strips::of::<T>(n, nrhs, lanes);
        Self { x: Tile::new::<T>(strips.elements::<T>(), lanes), packed: Packed::new(n) }
    }
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsInOut<'_, T>)> for Solve {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        Scratch::new(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (a, b): (Items<'_, T>, ItemsInOut<'_, T>),
        _: usize,
    ) {
        let Self { uplo, diag, conj, n, nrhs, a_order, b_order } = *self;
        let lanes = T::Real::lanes::<S>();
        // The compiler drops what no system of so few lanes needs.
        if lanes < LANES {
            return;
        }
        let strips = Strips::of::<T>(n, nrhs, lanes);
        let InOut { src, dst } = b.into_in_out();
        let Scratch { x, packed } = scratch;
        let x = x.registers::<S>();
        for (i, a) in a.data().chunks_exact(n * n).enumerate() {
            let one = i * n * nrhs..(i + 1) * n * nrhs;
            let b = &src.unwrap_or(dst)[one.clone()];
            match b_order {
                Layout::Rows => strips.read_rows::<S, T>(simd, |i| Some(line(b, nrhs, i)), x),
                Layout::Columns => strips.read_columns::<S, T>(simd, b, x),
            }
            packed.pack(Triangle { uplo, diag, conj, a, order: a_order });
            let pieces = strips.count;
            let mut ahead = [
                Ahead::behind(a, n * n, pieces),
                Ahead::behind(b, n * nrhs, pieces),
                Ahead::of(&dst[one.clone()], pieces),
            ];
            for strip in strips.each::<S, T>(x) {
                ahead.iter_mut().for_each(Ahead::next);
                packed.solve::<S>(simd, strip, 0);
            }
            let to = &mut dst[one];
            match b_order {
                Layout::Rows => {
                    for (i, to) in to.chunks_exact_mut(nrhs).enumerate() {
                        strips.write_row::<S, T>(simd, x, i, to);
                    }
                }
                Layout::Columns => strips.write_columns::<S, T>(simd, x, to),
            }
        }
    }
}

/// Right-hand sides in registers.
#[derive(Clone, Copy)]
pub(crate) struct Strips {
    n: usize,
    nrhs: usize,
    lanes: usize,
    /// Rows of a strip: n and some of zeros.
    rows: usize,
    pub(super) count: usize,
}

impl Strips {
    /// For systems of order n.
    #[inline(always)]
    pub(super) fn of<T: Scalar>(n: usize, nrhs: usize, lanes: usize) -> Self {
        let rows = n.next_multiple_of(lanes.max(TOGETHER));
        Self { n, nrhs, lanes, rows, count: nrhs.div_ceil(lanes).div_ceil(per_row::<T>()) }
    }

    /// Numbers in each lane of the strips.
    fn elements<T: Scalar>(self) -> usize {
        self.count * self.rows * per_row::<T>()
    }

    /// The right-hand sides of a strip.
    #[inline(always)]
    pub(super) fn width<T: Scalar>(self) -> usize {
        per_row::<T>() * self.lanes
    }

    /// The place of register `block` of a row.
    #[inline(always)]
    fn place<T: Scalar>(self, row: usize, block: usize) -> usize {
        let (strip, register) = (block / per_row::<T>(), block % per_row::<T>());
        (strip * self.rows + row) * per_row::<T>() + register
    }

    /// The place of the real part of a number among the reals of the tile.
    #[inline(always)]
    pub(super) fn number<T: Scalar>(self, row: usize, column: usize) -> usize {
        let place = self.place::<T>(row, column / self.lanes);
        place * (WIDE / per_row::<T>()) * self.lanes + column % self.lanes
    }

    /// The strips, of rows of [`WIDE`] registers.
    #[inline(always)]
    pub(super) fn each<S: Simd, T: Scalar>(
        self,
        x: &mut [Reg<S, T::Lane<S>>],
    ) -> impl Iterator<Item = &mut [[Reg<S, T::Lane<S>>; WIDE]]> {
        let strips = x.chunks_exact_mut(self.rows * WIDE).take(self.count);
        strips.map(|strip| strip.as_chunks_mut().0)
    }

    /// Reads a matrix by rows; one that is missing is NaN.
    #[inline(always)]
    pub(super) fn read_rows<'a, S: Simd, T: Scalar + 'a>(
        self,
        simd: S,
        row: impl Fn(usize) -> Option<&'a [T]>,
        x: &mut [Reg<S, T::Lane<S>>],
    ) {
        let blocks = self.count * per_row::<T>();
        for i in 0..self.rows {
            let row = if i < self.n { row(i) } else { Some(&[][..]) };
            for block in 0..blocks {
                let from = block * self.lanes;
                let number = match row {
                    None => T::Lane::<S>::splat(simd, crate::simd::scalar::nan()),
                    Some(row) if from < row.len() => read::<S, T>(simd, row, from),
                    Some(_) => T::Lane::<S>::splat(simd, T::ZERO),
                };
                number.store(x, self.place::<T>(i, block));
            }
        }
    }

    /// Reads a matrix by columns.
    #[inline(always)]
    fn read_columns<S: Simd, T: Scalar>(self, simd: S, b: &[T], x: &mut [Reg<S, T::Lane<S>>]) {
        let Self { n, nrhs, lanes, rows, .. } = self;
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        for block in 0..self.count * per_row::<T>() {
            for first in (0..rows).step_by(lanes) {
                let mut square = [zero; MAX_LANES];
                let square = &mut square[..lanes];
                for (c, number) in square.iter_mut().enumerate() {
                    let column = block * lanes + c;
                    if column < nrhs && first < n {
                        *number = read::<S, T>(simd, line(b, n, column), first);
                    }
                }
                transpose_numbers::<S, T>(simd, square);
                for (r, number) in square.iter().enumerate() {
                    number.store(x, self.place::<T>(first + r, block));
                }
            }
        }
    }

    /// Writes row `i`, or as much of it as there is room for.
    #[inline(always)]
    pub(super) fn write_row<S: Simd, T: Scalar>(
        self,
        simd: S,
        x: &[Reg<S, T::Lane<S>>],
        i: usize,
        to: &mut [T],
    ) {
        for (block, to) in to.chunks_mut(self.lanes).enumerate() {
            write::<S, T>(T::Lane::<S>::load(simd, x, self.place::<T>(i, block)), to);
        }
    }

    #[inline(always)]
    fn write_columns<S: Simd, T: Scalar>(self, simd: S, x: &[Reg<S, T::Lane<S>>], to: &mut [T]) {
        let Self { n, lanes, .. } = self;
        for (block, columns) in to.chunks_mut(lanes * n).enumerate() {
            for first in (0..n).step_by(lanes) {
                let mut square = [T::Lane::<S>::splat(simd, T::ZERO); MAX_LANES];
                let square = &mut square[..lanes];
                for (r, number) in square.iter_mut().enumerate() {
                    *number = T::Lane::<S>::load(simd, x, self.place::<T>(first + r, block));
                }
                transpose_numbers::<S, T>(simd, square);
                for (column, number) in columns.chunks_exact_mut(n).zip(square) {
                    write::<S, T>(*number, &mut column[first..n.min(first + lanes)]);
                }
            }
        }
    }
}
