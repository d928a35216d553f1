//! Q and R, or R alone, of one small matrix, by rows: A = Q·R.
//!
//! A register holds neighbours in a column, which is a row of the transposed matrix that is read. Reflectors
//! are found one by one, and two of them are applied to a few columns at once: of n = 64, f64 and c128, one core with
//! AVX2, 41 and 106 us, with one after the other 57 and 126.

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::reflectors::{Columns, Pair};
use super::{LANES, LEAST, Sides};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::kind::Kind;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::LaneNumbers;
use crate::simd::prefetch::Ahead;
use crate::simd::tile::Tile;

/// The most rows or columns, of which c128 takes 590 KB. On one core of Zen 4, f64, f32 and c128, us: n = 128
/// 189, 122 and 602, in blocks 276, 171 and 1047; n = 192 624, 379 and 1743, in blocks 710, 407 and 2628; n = 256
/// 1567, 800 and 4350, in blocks 1486, 812 and 5545. With AVX2: n = 192 586, 324 and 2062, in blocks 723, 404
/// and 2658.
const LARGEST: usize = 192;

/// Whether an m × n matrix goes this way.
pub(crate) fn serve(kind: Kind, m: usize, n: usize) -> bool {
    (LEAST..=LARGEST).contains(&m.max(n)) && kind.lanes >= LANES
}

/// What the decomposition of one matrix reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// The columns of A, and then of Q: registers of a column, column after column.
    columns: Tile<T::Real>,
    /// The vectors of two reflectors.
    v: Tile<T::Real>,
    tau: Padded<T>,
    /// The columns in their order.
    in_order: Padded<usize>,
}

/// Decomposes m × n matrices, of which c columns of Q and c rows of R are wanted: min(m, n), or m.
pub(crate) struct Explicit {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) c: usize,
}

type Operands<'a, T> = (Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Explicit {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        let columns = self.n.max(self.c).next_multiple_of(lanes);
        let high = self.m.div_ceil(lanes);
        Scratch {
            columns: Tile::new::<T>(columns * high, lanes),
            v: Tile::new::<T>(2 * high, lanes),
            tau: Padded::new(T::ZERO, self.m.min(self.n)),
            in_order: Padded::count_to(columns),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (a, q, r): Operands<'_, T>,
        _: usize,
    ) {
        let Self { m, n, c } = *self;
        let results =
            q.into_data().chunks_exact_mut(m * c).zip(r.into_data().chunks_exact_mut(c * n));
        for (a, (q, r)) in a.data().chunks_exact(m * n).zip(results) {
            decompose::<S, T>(simd, (m, n, c), scratch, a, Some(q), r);
        }
    }
}

/// Finds R, of c rows, of m × n matrices: as [`Explicit`] does.
pub(crate) struct Upper {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) c: usize,
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for Upper {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        let Self { m, n, .. } = *self;
        Kernel::<T, Operands<'_, T>>::scratch(&Explicit { m, n, c: 0 }, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (a, r): (Items<'_, T>, ItemsMut<'_, T>),
        _: usize,
    ) {
        let Self { m, n, c } = *self;
        let results = r.into_data().chunks_exact_mut(c * n);
        for (a, r) in a.data().chunks_exact(m * n).zip(results) {
            decompose::<S, T>(simd, (m, n, c), scratch, a, None, r);
        }
    }
}

#[apart]
fn decompose<S: Simd, T: Scalar>(
    simd: S,
    (m, n, c): (usize, usize, usize),
    scratch: &mut Scratch<T>,
    a: &[T],
    q: Option<&mut [T]>,
    r: &mut [T],
) {
    let lanes = T::Real::lanes::<S>();
    let k = m.min(n);
    let Scratch { columns, v, tau, in_order } = scratch;
    // The rows of the transposed matrix.
    let sides = |rows: usize| Sides::new(rows, m, lanes);
    let high = sides(n).wide;
    let lane_numbers = LaneNumbers::new();
    let (columns, v) = (columns.registers::<S>(), v.registers::<S>());
    let mut work = Columns { simd, columns, v, high, lane_numbers };
    let behind = |x: &[T]| Ahead::behind(x, x.len(), k);
    let mut ahead = [behind(a), behind(q.as_deref().unwrap_or_default()), behind(r)];
    sides(n).read::<S, T>(simd, a, Layout::Columns, work.columns);
    for (pair, tau) in tau.chunks_mut(2).enumerate() {
        let j = 2 * pair;
        tau[0] = work.find((j, j), m);
        if let [first, second] = tau {
            work.reflect(j, first.conj(), j + 1..j + 2);
            work.keep();
            *second = work.find((j + 1, j + 1), m);
            let pair = Pair { tau: [first.conj(), second.conj()], product: work.product(j) };
            work.reflect_twice(j, pair, j + 2..n);
        } else {
            work.reflect(j, tau[0].conj(), j + 1..n);
        }
        ahead.iter_mut().for_each(Ahead::next);
    }
    let (top, below) = r.split_at_mut(k * n);
    let rows = Sides { m: n, n: k, high: n.div_ceil(lanes), wide: high };
    rows.write::<S, T>(simd, work.columns, Layout::Columns, in_order, top);
    for (i, row) in top.chunks_exact_mut(n).enumerate() {
        row[..i].fill(T::ZERO);
    }
    below.fill(T::ZERO);
    let Some(q) = q else { return };
    for j in k..c {
        work.unit(j);
    }
    for (pair, tau) in tau.chunks(2).enumerate().rev() {
        let j = 2 * pair;
        work.form((j, j), tau, c);
    }
    sides(c).write::<S, T>(simd, work.columns, Layout::Columns, in_order, q);
}
