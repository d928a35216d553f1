//! Q and R of one small matrix, by rows: A = Q·R.
//!
//! A register holds neighbours in a column, which is a row of the transposed matrix that is read. Reflectors
//! are found one by one, and each is applied to a few columns at once.

use lapax_core::{Items, ItemsMut};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::{LANES, LEAST, LaneNumbers, Sides};
use crate::Scalar;
use crate::householder::{self, Reflector};
use crate::lanes::{Kernel, Lane, LaneReal, Order, Reg, Tile, width};
use crate::simd::Ahead;

/// The most rows or columns. On one core with AVX-512, f64 and c128, against blocks: n = 40 12 us and 27, 25 and 64, n = 64
/// 35 and 59, 89 and 153, n = 96 120 and 123, 314 and 371, n = 128 337 and 235, 727 and 682.
const LARGEST: usize = 96;
/// The columns that a reflector is applied to at once.
const TOGETHER: usize = 4;

/// Whether an m × n matrix goes this way.
pub(crate) fn pay<T: Scalar>(m: usize, n: usize) -> bool {
    (LEAST..=LARGEST).contains(&m) && n <= LARGEST && width::<T>() >= LANES
}

/// What the decomposition of one matrix reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// The columns of A, and then of Q: registers of a column, column after column.
    columns: Tile<T::Real>,
    /// The vector of a reflector.
    v: Tile<T::Real>,
    tau: Vec<T>,
    /// The columns in their order.
    in_order: Vec<usize>,
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
            v: Tile::new::<T>(high, lanes),
            tau: vec![T::ZERO; self.m.min(self.n)],
            in_order: (0..columns).collect(),
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
            decompose::<S, T>(simd, (m, n, c), scratch, a, q, r);
        }
    }
}

#[apart]
fn decompose<S: Simd, T: Scalar>(
    simd: S,
    (m, n, c): (usize, usize, usize),
    scratch: &mut Scratch<T>,
    a: &[T],
    q: &mut [T],
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
    let mut work = Work { simd, columns, v, high, lane_numbers };
    let mut ahead =
        [Ahead::behind(a, a.len(), k), Ahead::behind(q, q.len(), k), Ahead::behind(r, r.len(), k)];
    sides(n).read::<S, T>(simd, a, Order::Column, work.columns);
    for (j, tau) in tau.iter_mut().enumerate() {
        *tau = work.find(j, m);
        work.reflect(j, tau.conj(), n);
        ahead.iter_mut().for_each(Ahead::next);
    }
    let rows = Sides { m: n, n: c, high: n.div_ceil(lanes), wide: high };
    rows.write::<S, T>(simd, work.columns, Order::Column, in_order, r);
    for (i, row) in r.chunks_exact_mut(n).enumerate() {
        row[..i.min(n)].fill(T::ZERO);
    }
    for j in k..c {
        work.unit(j);
    }
    for (j, &tau) in tau.iter().enumerate().rev() {
        work.vector(j);
        work.reflect(j, tau, c);
        work.first_column(j, tau);
    }
    sides(c).write::<S, T>(simd, work.columns, Order::Column, in_order, q);
}

/// A matrix in work.
struct Work<'a, S: Simd, T: Scalar> {
    simd: S,
    columns: &'a mut [Reg<S, T::Lane<S>>],
    v: &'a mut [Reg<S, T::Lane<S>>],
    /// The registers of a column.
    high: usize,
    lane_numbers: LaneNumbers<T::Real>,
}

impl<S: Simd, T: Scalar> Work<'_, S, T> {
    #[inline(always)]
    fn splat(&self, x: T) -> T::Lane<S> {
        T::Lane::<S>::splat(self.simd, x)
    }

    /// Register i of column j.
    #[inline(always)]
    fn load(&self, j: usize, i: usize) -> T::Lane<S> {
        T::Lane::<S>::load(self.simd, self.columns, j * self.high + i)
    }

    #[inline(always)]
    fn store(&mut self, x: T::Lane<S>, j: usize, i: usize) {
        x.store(self.columns, j * self.high + i);
    }

    /// Number i of column j.
    #[inline(always)]
    fn number(&self, j: usize, i: usize) -> T {
        super::lu::number::<S, T>(
            self.columns,
            j * self.high + i / lanes::<S, T>(),
            i % lanes::<S, T>(),
        )
    }

    /// The vector of reflector j, from the tail in column j.
    #[inline(always)]
    fn vector(&mut self, j: usize) {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in first..self.high {
            let x = self.load(j, i);
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, x, [one, zero])
            } else {
                x
            };
            x.store(self.v, i);
        }
    }

    /// Finds reflector j, whose vector becomes v and, below the diagonal, column j; returns tau.
    #[inline(always)]
    fn find(&mut self, j: usize, m: usize) -> T {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let zero = self.splat(T::ZERO);
        let mut sum = zero.re();
        for i in first..self.high {
            let x = self.load(j, i);
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, x, [zero, zero])
            } else {
                x
            };
            sum = sum + x.norm_squared();
        }
        let alpha = self.number(j, j);
        let Some((Reflector { beta, tau }, factor)) = householder::scaled(alpha, sum.sum()) else {
            return self.find_slowly(j, m);
        };
        let (factor, head) = (self.splat(factor), self.splat(T::from_real(beta)));
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in first..self.high {
            let old = self.load(j, i);
            let x = old * factor;
            let (v, x) = if i == first {
                (
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [one, zero]),
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [head, old]),
                )
            } else {
                (x, x)
            };
            v.store(self.v, i);
            self.store(x, j, i);
        }
        tau
    }

    /// The same where squares overflow or underflow, or there is nothing to do.
    #[cold]
    #[inline(never)]
    fn find_slowly(&mut self, j: usize, m: usize) -> T {
        let mut tail: Vec<T> = (j + 1..m).map(|i| self.number(j, i)).collect();
        let Reflector { beta, tau } =
            householder::reflector::<pulp::Scalar, T>(self.number(j, j), &mut tail);
        let lanes = lanes::<S, T>();
        let mut column: Vec<T> = (0..self.high * lanes)
            .map(|i| if i < m { self.number(j, i) } else { T::ZERO })
            .collect();
        column[j] = T::from_real(beta);
        column[j + 1..m].copy_from_slice(&tail);
        for (i, numbers) in column.chunks_exact(lanes).enumerate() {
            let x = T::Lane::<S>::read(self.simd, numbers);
            self.store(x, j, i);
        }
        self.vector(j);
        tau
    }

    /// Applies reflector j with this factor to the columns from j + 1 to `end`.
    #[inline(always)]
    fn reflect(&mut self, j: usize, tau: T, end: usize) {
        let first = j / lanes::<S, T>();
        let mut column = j + 1;
        while column + TOGETHER <= end {
            self.reflect_columns::<TOGETHER>(first, column, tau);
            column += TOGETHER;
        }
        while column < end {
            self.reflect_columns::<1>(first, column, tau);
            column += 1;
        }
    }

    #[inline(always)]
    fn reflect_columns<const C: usize>(&mut self, first: usize, column: usize, tau: T) {
        let (simd, parts) = (self.simd, T::Lane::<S>::PARTS);
        let (length, skipped) = (self.high * parts, first * parts);
        let v = &self.v[skipped..length];
        let mut columns = self.columns[column * length..].chunks_exact_mut(length);
        // Slices of one length, of which a compiler sees that they hold what is asked for.
        let mut columns: [&mut [Reg<S, T::Lane<S>>]; C] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[skipped..][..v.len()]);
        let mut sums = [T::Lane::<S>::splat(simd, T::ZERO); C];
        for i in 0..v.len() / parts {
            let v = T::Lane::<S>::load(simd, v, i).conj();
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = sum.add_mul(v, T::Lane::<S>::load(simd, column, i));
            }
        }
        let mut factors = sums;
        for (factor, sum) in factors.iter_mut().zip(&sums) {
            let sum = T::from_parts(sum.re().sum(), sum.im().sum());
            *factor = T::Lane::<S>::splat(simd, tau * sum);
        }
        for i in 0..v.len() / parts {
            let v = T::Lane::<S>::load(simd, v, i);
            for (column, &factor) in columns.iter_mut().zip(&factors) {
                T::Lane::<S>::load(simd, column, i).sub_mul(factor, v).store(column, i);
            }
        }
    }

    /// Column j becomes that of the identity.
    #[inline(always)]
    fn unit(&mut self, j: usize) {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in 0..self.high {
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, zero, [one, zero])
            } else {
                zero
            };
            self.store(x, j, i);
        }
    }

    /// Column j becomes that of reflector j with this factor, whose vector is v.
    #[inline(always)]
    fn first_column(&mut self, j: usize, tau: T) {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let (zero, factor) = (self.splat(T::ZERO), self.splat(-tau));
        let head = self.splat(T::ONE - tau);
        for i in 0..self.high {
            let x = if i < first {
                zero
            } else {
                let x = T::Lane::<S>::load(self.simd, self.v, i) * factor;
                if i == first {
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [head, zero])
                } else {
                    x
                }
            };
            self.store(x, j, i);
        }
    }
}

#[inline(always)]
fn lanes<S: Simd, T: Scalar>() -> usize {
    T::Real::lanes::<S>()
}
