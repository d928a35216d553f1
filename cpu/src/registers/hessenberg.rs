//! Reduction of one small matrix to Hessenberg form, and its Q, by columns that stay in registers' order.

use lapax_cpu_macros::apart;
use pulp::{Simd, WithSimd};

use super::reflectors::Columns;
use super::{LANES, Sides};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::simd::cache_line::Padded;
use crate::simd::kind::Kind;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::LaneNumbers;
use crate::simd::tile::Tile;
use crate::simd::vector::Reg;

/// The least order of a matrix. On one core with AVX-512, one matrix and its Q in a loop inside a program, ns, column by
/// column in memory and in registers: n = 4, f64 and f32 644 and 629, 644 and 641, 6 1030 and 879, 1019 and 886, 8 1569
/// and 1028, 1404 and 1071; c64 and c128 7 1250 and 1561, 1262 and 1328, 8 1648 and 1708, 1459 and 1292.
const LEAST: usize = 4;
const LEAST_COMPLEX: usize = 8;
/// The largest order of a matrix that is reduced this way as a whole, and the last columns of a larger one that are.
/// On one core with AVX-512, us, f32, f64, c64 and c128, against panels of 32 columns, the last 96 one by one: n = 64
/// 19, 29, 44 and 79 (58, 62, 102 and 162), n = 128 135, 263, 336 and 690 (304, 437, 678 and 1252), n = 256 1165, 2387,
/// 2691 and 5727 (1618, 2818, 4162 and 7535). n = 320, f32, f64, c64 and c128, with the last 128 2627, 4675, 6899 and
/// 12892, with the last 256 2610, 5518, 6036 and 12378.
const WHOLE: usize = 256;
const LAST: usize = 128;
/// The largest order of a matrix whose Q is formed this way. H and Q with the call on one core with AVX-512, us, with Q
/// column by column or in blocks, and so: n = 32 f32 and f64 24 and 14, 21 and 16, n = 128 230 and 206, 394 and 386,
/// c128 1043 and 902, n = 256 1529 and 1453, 2968 and 2880, c128 7928 and 7230.
pub(crate) const LARGEST_Q: usize = 256;

/// How many columns of a matrix of order n are reduced this way, at most.
pub(crate) fn columns(n: usize) -> usize {
    if n <= WHOLE { n } else { LAST }
}

/// Whether the last columns of a matrix of order n go this way.
pub(crate) fn pay(kind: Kind, n: usize) -> bool {
    let least = if kind.complex { LEAST_COMPLEX } else { LEAST };
    n >= least && kind.lanes >= LANES
}

/// Whether all columns of a matrix of order n go this way, and its Q.
pub(crate) fn serve(kind: Kind, n: usize) -> bool {
    pay(kind, n) && n <= LARGEST_Q
}

/// What a reduction reuses.
#[derive(Debug)]
pub(crate) struct Scratch<R> {
    /// The last columns of A: registers of a column, column after column.
    columns: Tile<R>,
    /// The vectors of two reflectors, and a product with one.
    v: Tile<R>,
    sums: Tile<R>,
    /// The columns in their order.
    in_order: Padded<usize>,
}

impl<R: LaneReal> Scratch<R> {
    /// For a matrix of order n, and registers of so many lanes.
    pub(crate) fn new<T: Scalar<Real = R>>(n: usize, lanes: usize) -> Self {
        let (high, columns) = (n.div_ceil(lanes), columns(n).next_multiple_of(lanes));
        Self {
            columns: Tile::new::<T>(columns * high, lanes),
            v: Tile::new::<T>(2 * high, lanes),
            sums: Tile::new::<T>(high, lanes),
            in_order: Padded::count_to(columns),
        }
    }

    /// The last `count` columns of a matrix of order n: their sizes, as rows of the transposed matrix, the columns, room
    /// for a product and their numbers.
    #[inline(always)]
    #[allow(clippy::type_complexity, reason = "what all kernels here begin with")]
    fn columns<S: Simd, T: Scalar<Real = R>>(
        &mut self,
        simd: S,
        count: usize,
        n: usize,
    ) -> (Sides, Columns<'_, S, T>, &mut [Reg<S, T::Lane<S>>], &[usize]) {
        let sides = Sides::new(count, n, R::lanes::<S>());
        let Self { columns, v, sums, in_order } = self;
        let (columns, v) = (columns.registers::<S>(), v.registers::<S>());
        let work = Columns { simd, columns, v, high: sides.wide, lane_numbers: LaneNumbers::new() };
        (sides, work, sums.registers::<S>(), in_order)
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
    let (sides, mut work, sums, in_order) = scratch.columns::<S, T>(simd, n - start, n);
    let a = &mut a[start * n..];
    sides.read::<S, T>(simd, a, Layout::Rows, work.columns);
    reduce_columns(&mut work, n, start, &mut tau[start..], sums);
    sides.write::<S, T>(simd, work.columns, Layout::Rows, in_order, a);
}

/// Reduces the columns from `start` on of a matrix of order n.
#[inline(always)]
fn reduce_columns<S: Simd, T: Scalar>(
    work: &mut Columns<'_, S, T>,
    n: usize,
    start: usize,
    tau: &mut [T],
    sums: &mut [Reg<S, T::Lane<S>>],
) {
    for (column, tau) in tau.iter_mut().enumerate() {
        let head = start + column + 1;
        *tau = work.find((head, column), n);
        if *tau != T::ZERO {
            work.transform(head, *tau, (column + 1..n - start, start), sums);
        }
    }
}

/// Q of a reduction of all columns, from what [`Reduce`] left in `a` and `tau`.
pub(crate) struct FormQ<'a, T: Scalar> {
    pub(crate) a: &'a [T],
    pub(crate) n: usize,
    pub(crate) tau: &'a [T],
    pub(crate) q: &'a mut [T],
    pub(crate) scratch: &'a mut Scratch<T::Real>,
}

impl<T: Scalar> WithSimd for FormQ<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        form_q::<S, T>(simd, self);
    }
}

#[apart]
fn form_q<S: Simd, T: Scalar>(simd: S, job: FormQ<'_, T>) {
    let FormQ { a, n, tau, q, scratch } = job;
    let (sides, mut work, _, in_order) = scratch.columns::<S, T>(simd, n, n);
    sides.read::<S, T>(simd, a, Layout::Rows, work.columns);
    columns_of_q(&mut work, n, tau);
    sides.write::<S, T>(simd, work.columns, Layout::Rows, in_order, q);
}

/// The columns of Q in place of the reflectors: reflector k, whose head is row k + 1, is in column k, and column k + 1 of
/// Q takes the place of reflector k + 1.
#[inline(always)]
fn columns_of_q<S: Simd, T: Scalar>(work: &mut Columns<'_, S, T>, n: usize, tau: &[T]) {
    let Some((&first, others)) = tau.split_first() else { return };
    // The heads of two reflectors are in one register.
    for (pair, tau) in others.chunks(2).enumerate().rev() {
        let (k, head) = (2 * pair + 1, 2 * pair + 2);
        work.form((head, k), tau, n);
    }
    work.form((1, 0), &[first], n);
    work.unit(0);
}

/// Reduces a row-major matrix to H, and forms Q, by rows too.
pub(crate) struct Whole<'a, T: Scalar> {
    /// Of H and what is below its first subdiagonal, which has no meaning.
    pub(crate) h: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) tau: &'a mut [T],
    pub(crate) q: &'a mut [T],
    pub(crate) scratch: &'a mut Scratch<T::Real>,
}

impl<T: Scalar> WithSimd for Whole<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        whole::<S, T>(simd, self);
    }
}

#[apart]
fn whole<S: Simd, T: Scalar>(simd: S, job: Whole<'_, T>) {
    let Whole { h, n, tau, q, scratch } = job;
    let (sides, mut work, sums, in_order) = scratch.columns::<S, T>(simd, n, n);
    sides.read::<S, T>(simd, h, Layout::Columns, work.columns);
    reduce_columns(&mut work, n, 0, tau, sums);
    sides.write::<S, T>(simd, work.columns, Layout::Columns, in_order, h);
    columns_of_q(&mut work, n, tau);
    sides.write::<S, T>(simd, work.columns, Layout::Columns, in_order, q);
}
