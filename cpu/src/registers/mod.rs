//! One small matrix at a time, with registers that hold neighbours in a row.

pub(crate) mod cho_solve;
pub(crate) mod cholesky;
pub(crate) mod hessenberg;
pub(crate) mod inverse;
pub(crate) mod lu;
pub(crate) mod lu_solve;
mod packed_triangle;
pub(crate) mod qr;
mod reflectors;
pub(crate) mod substitution;

use pulp::Simd;

use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::simd::kind::Kind;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::{read, transpose_numbers, write};
use crate::simd::vector::{Lane, MAX_LANES, Reg};

/// The order from which registers are worth filling, for single matrices: for f64 and n = 9, elimination
/// number by number takes as long.
const LEAST: usize = 9;
/// The largest order: that of a matrix of f64 that the nearest cache holds with room to spare.
pub(crate) const ROWS: usize = 64;
/// The fewest lanes that are worth it.
pub(crate) const LANES: usize = 4;

/// Whether matrices of an order have enough to fill registers with, and few enough rows and columns
/// to stay in the nearest cache.
pub(crate) fn serve(kind: Kind, order: usize) -> bool {
    (LEAST..=ROWS).contains(&order) && kind.lanes >= LANES
}

/// The sizes of a matrix: its rows and columns, and the registers that hold a column or a row.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) high: usize,
    pub(crate) wide: usize,
}

impl Sides {
    /// Of an m × n matrix.
    #[inline(always)]
    pub(crate) fn new(m: usize, n: usize, lanes: usize) -> Self {
        Self { m, n, high: m.div_ceil(lanes), wide: n.div_ceil(lanes) }
    }

    /// Reads the matrix; what is beyond it is zero.
    #[inline(always)]
    pub(crate) fn read<S: Simd, T: Scalar>(
        self,
        simd: S,
        a: &[T],
        order: Layout,
        rows: &mut [Reg<S, T::Lane<S>>],
    ) {
        let lanes = T::Real::lanes::<S>();
        let (lines, length, registers) = match order {
            Layout::Rows => (self.m, self.n, self.wide),
            Layout::Columns => (self.n, self.m, self.high),
        };
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let register = |line: usize, from: usize| {
            if line >= lines || from >= length {
                return zero;
            }
            read::<S, T>(simd, &a[line * length..(line + 1) * length], from)
        };
        if order == Layout::Rows {
            for row in 0..self.high * lanes {
                for block in 0..registers {
                    register(row, block * lanes).store(rows, row * registers + block);
                }
            }
            return;
        }
        for block in 0..self.wide {
            for i in 0..registers {
                let mut square = [zero; MAX_LANES];
                let square = &mut square[..lanes];
                for (c, x) in square.iter_mut().enumerate() {
                    *x = register(block * lanes + c, i * lanes);
                }
                transpose_numbers::<S, T>(simd, square);
                for (r, x) in square.iter().enumerate() {
                    x.store(rows, (i * lanes + r) * self.wide + block);
                }
            }
        }
    }

    /// Writes the rows in order.
    #[inline(always)]
    pub(crate) fn write<S: Simd, T: Scalar>(
        self,
        simd: S,
        rows: &[Reg<S, T::Lane<S>>],
        order: Layout,
        row_at: &[usize],
        a: &mut [T],
    ) {
        let lanes = T::Real::lanes::<S>();
        if order == Layout::Rows {
            for (to, &row) in a.chunks_exact_mut(self.n).zip(row_at) {
                for (block, to) in to.chunks_mut(lanes).enumerate() {
                    let x = T::Lane::<S>::load(simd, rows, row * self.wide + block);
                    write::<S, T>(x, to);
                }
            }
            return;
        }
        for (block, columns) in a.chunks_mut(lanes * self.m).enumerate() {
            for i in 0..self.high {
                let mut square = [T::Lane::<S>::splat(simd, T::ZERO); MAX_LANES];
                let square = &mut square[..lanes];
                for (r, x) in square.iter_mut().enumerate() {
                    *x = T::Lane::<S>::load(simd, rows, row_at[i * lanes + r] * self.wide + block);
                }
                transpose_numbers::<S, T>(simd, square);
                for (column, x) in columns.chunks_exact_mut(self.m).zip(square) {
                    write::<S, T>(
                        *x,
                        &mut column[self.m.min(i * lanes)..self.m.min((i + 1) * lanes)],
                    );
                }
            }
        }
    }
}
