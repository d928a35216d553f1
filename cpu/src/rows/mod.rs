//! One small matrix at a time, with registers that hold neighbours in a row.

pub(crate) mod cho_solve;
pub(crate) mod cholesky;
pub(crate) mod hessenberg;
pub(crate) mod inverse;
pub(crate) mod lu;
pub(crate) mod lu_solve;
pub(crate) mod qr;
mod reflectors;
pub(crate) mod substitution;
#[cfg(feature = "testing")]
pub(crate) mod tests;

use pulp::Simd;

use crate::Scalar;
use crate::lanes::{Lane, LaneReal, MAX_LANES, Order, Reg, Vector, transpose, width};

/// The order from which registers are worth filling, for single matrices: for f64 and n = 9, elimination
/// number by number takes as long.
const LEAST: usize = 9;
/// The largest order: that of a matrix of f64 that the nearest cache holds with room to spare.
pub(crate) const ROWS: usize = 64;
/// The fewest lanes that are worth it.
const LANES: usize = 4;

/// Whether matrices of an order have enough to fill registers with, and few enough rows and columns
/// to stay in the nearest cache.
pub(crate) fn pay<T: Scalar>(order: usize) -> bool {
    (LEAST..=ROWS).contains(&order) && width::<T>() >= LANES
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
        order: Order,
        rows: &mut [Reg<S, T::Lane<S>>],
    ) {
        let lanes = T::Real::lanes::<S>();
        let (lines, length, registers) = match order {
            Order::Row => (self.m, self.n, self.wide),
            Order::Column => (self.n, self.m, self.high),
        };
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let register = |line: usize, from: usize| {
            if line >= lines || from >= length {
                return zero;
            }
            read::<S, T>(simd, &a[line * length..(line + 1) * length], from)
        };
        if order == Order::Row {
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
        order: Order,
        row_at: &[usize],
        a: &mut [T],
    ) {
        let lanes = T::Real::lanes::<S>();
        if order == Order::Row {
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

/// The numbers of a register's lanes: 0, 1, 2, …
pub(crate) struct LaneNumbers<R>([R; MAX_LANES]);

impl<R: LaneReal> LaneNumbers<R> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let mut numbers = [R::ZERO; MAX_LANES];
        for lane in 1..MAX_LANES {
            numbers[lane] = numbers[lane - 1] + R::ONE;
        }
        Self(numbers)
    }

    /// That of one.
    #[inline(always)]
    pub(crate) fn get(&self, lane: usize) -> R {
        self.0[lane]
    }

    /// Those of all.
    #[inline(always)]
    pub(crate) fn vector<S: Simd>(&self, simd: S) -> Vector<S, R> {
        <Vector<S, R> as Lane<S>>::read(simd, &self.0)
    }

    /// `x` behind lane `lane`, `head` in it, and `above` before it.
    #[inline(always)]
    pub(crate) fn behind<S: Simd, T: Scalar<Real = R>>(
        &self,
        simd: S,
        lane: usize,
        x: T::Lane<S>,
        [head, above]: [T::Lane<S>; 2],
    ) -> T::Lane<S> {
        let lanes = self.vector::<S>(simd);
        let lane = Vector::<S, R>::splat(simd, self.get(lane));
        let x = T::Lane::<S>::choose(lane.less(lanes), x, head);
        T::Lane::<S>::choose(lanes.less(lane), above, x)
    }
}

/// The register of a line's numbers from `from` on; zeros where the line has ended.
#[inline(always)]
pub(crate) fn read<S: Simd, T: Scalar>(simd: S, line: &[T], from: usize) -> T::Lane<S> {
    let lanes = T::Real::lanes::<S>();
    if from + lanes <= line.len() {
        return T::Lane::<S>::read(simd, &line[from..from + lanes]);
    }
    T::Lane::<S>::read_part(simd, &line[from..])
}

/// Writes a register to a line that may be shorter.
#[inline(always)]
pub(crate) fn write<S: Simd, T: Scalar>(x: T::Lane<S>, to: &mut [T]) {
    let lanes = T::Real::lanes::<S>();
    if to.len() >= lanes {
        return x.write(&mut to[..lanes]);
    }
    x.write_part(to);
}

/// Transposes a square of real or complex numbers.
#[inline(always)]
pub(crate) fn transpose_numbers<S: Simd, T: Scalar>(simd: S, square: &mut [T::Lane<S>]) {
    let lanes = square.len();
    let mut parts = [[square[0].re().reg(); MAX_LANES]; 2];
    for (i, x) in square.iter().enumerate() {
        parts[0][i] = x.re().reg();
        parts[1][i] = x.im().reg();
    }
    transpose::<S, T::Real, _>(simd, &mut parts[0][..lanes]);
    if T::IS_COMPLEX {
        transpose::<S, T::Real, _>(simd, &mut parts[1][..lanes]);
    }
    for (i, x) in square.iter_mut().enumerate() {
        let part = |p: usize| Vector::from_reg(simd, parts[p][i]);
        *x = T::Lane::<S>::from_parts(part(0), part(1));
    }
}
