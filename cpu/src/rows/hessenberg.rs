//! Reduction of one small matrix to Hessenberg form, by columns that stay in registers' order.

use lapax_cpu_macros::apart;
use pulp::{Simd, WithSimd};

use super::reflectors::Columns;
use super::{LANES, LEAST, LaneNumbers, Sides};
use crate::Scalar;
use crate::lanes::{LaneReal, Order, Tile, width};
use crate::padded::Padded;

/// The largest order of a matrix that is reduced this way as a whole, and the last columns of a larger one that are.
/// On one core with AVX-512, us, f32, f64, c64 and c128, against panels of 32 columns, the last 96 one by one: n = 64
/// 19, 29, 44 and 79 (58, 62, 102 and 162), n = 128 135, 263, 336 and 690 (304, 437, 678 and 1252), n = 256 1165, 2387,
/// 2691 and 5727 (1618, 2818, 4162 and 7535). n = 320, f32, f64, c64 and c128, with the last 128 2627, 4675, 6899 and
/// 12892, with the last 256 2610, 5518, 6036 and 12378.
const WHOLE: usize = 256;
const LAST: usize = 128;

/// How many columns of a matrix of order n are reduced this way, at most.
pub(crate) fn columns(n: usize) -> usize {
    if n <= WHOLE { n } else { LAST }
}

/// Whether the last columns of a matrix of order n go this way.
pub(crate) fn pay<T: Scalar>(n: usize) -> bool {
    n >= LEAST && width::<T>() >= LANES
}

/// What a reduction reuses.
#[derive(Debug)]
pub(crate) struct Scratch<R> {
    /// The last columns of A: registers of a column, column after column.
    columns: Tile<R>,
    /// The vector of a reflector, and a product with it.
    v: Tile<R>,
    sums: Tile<R>,
    /// The columns in their order.
    in_order: Padded<usize>,
}

impl<R: LaneReal> Scratch<R> {
    /// For a matrix of order n, and registers of so many lanes.
    pub(crate) fn new<T: Scalar<Real = R>>(n: usize, lanes: usize) -> Self {
        let (high, columns) = (n.div_ceil(lanes), columns(n));
        Self {
            columns: Tile::new::<T>(columns.next_multiple_of(lanes) * high, lanes),
            v: Tile::new::<T>(high, lanes),
            sums: Tile::new::<T>(high, lanes),
            in_order: Padded::count_to(columns),
        }
    }
}

/// Reduces the columns from `start` on, as many as [`columns`] says at most, of a column-major matrix whose other
/// columns are reduced.
pub(crate) struct Reduce<'a, T: Scalar> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) start: usize,
    pub(crate) tau: &'a mut [T],
    pub(crate) scratch: &'a mut Scratch<T::Real>,
}

impl<T: Scalar> WithSimd for Reduce<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        reduce::<S, T>(simd, self);
    }
}

#[apart]
fn reduce<S: Simd, T: Scalar>(simd: S, job: Reduce<'_, T>) {
    let Reduce { a, n, start, tau, scratch } = job;
    let (lanes, count) = (T::Real::lanes::<S>(), n - start);
    let Scratch { columns, v, sums, in_order } = scratch;
    // The rows of the transposed matrix.
    let sides = Sides::new(count, n, lanes);
    let (columns, v, sums) = (columns.registers::<S>(), v.registers::<S>(), sums.registers::<S>());
    let mut work = Columns { simd, columns, v, high: sides.wide, lane_numbers: LaneNumbers::new() };
    let a = &mut a[start * n..];
    sides.read::<S, T>(simd, a, Order::Row, work.columns);
    for (column, tau) in tau.iter_mut().skip(start).enumerate() {
        let head = start + column + 1;
        *tau = work.find((head, column), n);
        if *tau != T::ZERO {
            work.transform(head, *tau, (column + 1..count, start), sums);
        }
    }
    sides.write::<S, T>(simd, work.columns, Order::Row, in_order, a);
}
