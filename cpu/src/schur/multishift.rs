//! The QR iteration for large orders: many shifts at a time, and early deflation.
//!
//! Bulges of two shifts each go through the matrix in a tightly packed chain; what they do inside
//! of a diagonal window is collected in one unitary factor, which the rest of the matrix is
//! multiplied by: Braman, Byers and Mathias, "The multishift QR algorithm, part I" (SIAM J. Matrix
//! Anal. Appl. 23, 2002).

use std::ops::Range;
use std::sync::PoisonError;

use faer::{MatMut, MatRef};
use lapax_core::{Scalar as _, Serial, chunks, run_each};
use pulp::{Simd, WithSimd};

use super::apply::{Room, multiply};
use super::bulge::{Bulges, ROWS, TOGETHER, step};
use super::deflation;
use super::deflation::{SWEEPS, Window};
use super::francis::{Iteration, Shifts, exceptional, first_column};
use super::two_by_two::eigenvalues;
use crate::matrix::strips::strips;
use crate::parallel::cost::nanoseconds;
use crate::simd::arch::Arch;
use crate::simd::cache_line::stride;
use crate::{Scalar, Side, Threads};

/// The order up to which two shifts at a time are faster. On one core with AVX-512, Schur forms in f64 (c128), ms,
/// with 50, 75 and 110: n = 128 2.3, 2.3 and 3.1 (6.9, 5.8 and 7.6), 256 14.8, 14.1 and 15.3 (38, 37 and 38), 512
/// 136, 136 and 139 (244, 240 and 247).
const SMALL: usize = 75;

/// The order from which a block of a larger matrix is brought to Schur form by itself. Likewise, with the rest going
/// along step by step, and afterwards: n = 128 2.8 and 2.3 (8.3 and 5.8), 256 21 and 14 (53 and 37), 512 159 and 136
/// (282 and 240).
const APART: usize = 12;

/// The columns, or rows, that one thread multiplies by a window's factor. On two cores with AVX-512, f64, of 128, 256
/// and 512, `schur` of 1024 518, 550 and 536 ms, of 2048 2706, 2726 and 2586.
const STRIP: usize = 256;

/// What the iteration reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    deflation: deflation::Scratch<T>,
    /// The shifts of a sweep, and the row where each pair's bulge is to be moved from.
    shifts: Vec<Shifts<T>>,
    rows: Vec<usize>,
    chain: Chain<T>,
    pub(crate) patience: Patience,
}

/// How many sweeps per row each iteration has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The fast one, of many shifts.
    pub(crate) many: usize,
    /// The plain one, of two shifts.
    pub(crate) two: usize,
}

/// A window and its factor, and what products with that pass through.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    factor: Vec<T>,
    /// A copy of a window or a small block.
    block: Vec<T>,
    pub(crate) room: Room<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        // Neither grows steadily with the order of a block.
        let largest = |size: fn(usize) -> usize| (SMALL + 1..=n).map(size).max().unwrap_or(0);
        let (order, pairs) = (largest(window), largest(pairs));
        let small = if n > SMALL { SMALL } else { 0 };
        let width = span(pairs).max(small);
        Self {
            deflation: deflation::Scratch::new(order),
            shifts: Vec::with_capacity(pairs),
            rows: vec![0; pairs],
            chain: Chain {
                factor: vec![T::ZERO; width * width],
                block: vec![T::ZERO; width * stride::<T>(width)],
                room: Room::default(),
            },
            patience: Patience { many: SWEEPS, two: SWEEPS },
        }
    }
}

/// Pairs of shifts per sweep of a block of this order, as in LAPACK's tuning (IPARMQ).
fn pairs(order: usize) -> usize {
    let shifts = match order {
        ..60 => 4,
        60..150 => 10,
        150..590 => order / usize::try_from(order.ilog2()).unwrap_or(1),
        590..3000 => 64,
        3000..6000 => 128,
        _ => 256,
    };
    (shifts / 2).min(order / 12).max(1)
}

/// The order of the window of early deflation.
fn window(order: usize) -> usize {
    (if order <= 500 { 2 * pairs(order) } else { 3 * pairs(order) }).min(order / 3)
}

/// The order of the windows through which a chain of so many bulges goes: twice its length.
fn span(pairs: usize) -> usize {
    6 * pairs
}

/// Brings the rows and columns `active` to Schur form, as [`Iteration::run`] does. Where the fast
/// iteration does not converge, the plain one goes on from there.
pub(crate) fn run<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    active: Range<usize>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    let first = active.start;
    let rest = match large(iteration, active.clone(), scratch, threads, arch) {
        Ok(()) => return Ok(()),
        Err(stop) => first..stop,
    };
    // The slower and safer way; and once more, should that give up.
    let sweeps = scratch.patience.two;
    let failed = iteration.run(rest, sweeps, arch);
    failed.or_else(|stop| iteration.run(first..stop, sweeps, arch))
}

/// The iteration on blocks above [`SMALL`].
fn large<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    active: Range<usize>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    /// A sweep is skipped after this part, in percent, of a window was deflated.
    const NIBBLE: usize = 14;
    /// So many sweeps without progress are answered by exceptional shifts.
    const PATIENCE: usize = 6;
    let Range { start: first, end: mut stop } = active;
    let mut budget = scratch.patience.many * (stop - first);
    let mut stalled = 0_usize;
    while stop > first {
        let start = iteration.unreduced(first, stop);
        let order = stop - start;
        if order <= SMALL {
            let Scratch { patience, chain, .. } = &mut *scratch;
            plain(iteration, start..stop, patience.two, chain, threads, arch)?;
            (stop, stalled) = (start, 0);
            continue;
        }
        if budget == 0 {
            return Err(stop);
        }
        budget -= 1;
        let Scratch { deflation, shifts, rows, chain, .. } = &mut *scratch;
        let width = window(order);
        let room = &chain.room;
        let Window { deflated, found } =
            deflation::deflate(iteration, start..stop, width, deflation, room, threads, arch);
        stop -= deflated;
        if deflated > 0 {
            stalled = 0;
            if 100 * deflated > NIBBLE * width || stop - start <= SMALL {
                continue;
            }
        }
        stalled += 1;
        let wanted = pairs(stop - start);
        shifts.clear();
        if stalled.is_multiple_of(PATIENCE) {
            exceptional_shifts(iteration, stop, wanted, shifts);
        } else {
            pair::<T>(found, wanted, shifts);
        }
        if shifts.is_empty() {
            exceptional_shifts(iteration, stop, 1, shifts);
        }
        sweep(iteration, start..stop, (shifts, rows), chain, threads, arch);
    }
    Ok(())
}

/// [`Iteration::run`] of a block that may be of a much larger matrix: by itself, and what it does to the rest in
/// products.
fn plain<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    block: Range<usize>,
    sweeps: usize,
    chain: &mut Chain<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    let (n, order) = (iteration.n, block.len());
    if order < APART || n <= SMALL || !iteration.schur {
        return iteration.run(block, sweeps, arch);
    }
    let Chain { factor, block: copy, room } = chain;
    let [factor, copy] = [factor, copy].map(|x| &mut x[..order * order]);
    let place = |j: usize| block.start + (block.start + j) * n..block.end + (block.start + j) * n;
    for (j, column) in copy.chunks_exact_mut(order).enumerate() {
        column.copy_from_slice(&iteration.h[place(j)]);
    }
    factor.fill(T::ZERO);
    factor.iter_mut().step_by(order + 1).for_each(|x| *x = T::ONE);
    let mut inner =
        Iteration { h: &mut *copy, n: order, q: Some(&mut *factor), rows: order, schur: true };
    let outcome = inner.run(0..order, sweeps, arch);
    for (j, column) in copy.chunks_exact(order).enumerate() {
        iteration.h[place(j)].copy_from_slice(column);
    }
    let factor = MatRef::from_column_major_slice(factor, order, order);
    iteration.multiply(block.clone(), block.clone(), factor, room, threads);
    outcome.map_err(|stop| block.start + stop)
}

/// Pairs of eigenvalues, from the end: conjugate ones, or real ones, if the matrix is real.
fn pair<T: Scalar>(found: &[T::Complex], wanted: usize, shifts: &mut Vec<Shifts<T>>) {
    let mut single = None;
    for &shift in found.iter().rev() {
        if shifts.len() == wanted {
            return;
        }
        if T::IS_COMPLEX || shift.im() == T::Real::ZERO {
            match single.take() {
                None => single = Some(shift),
                Some(other) => shifts.push((other, shift)),
            }
        } else if shift.im() > T::Real::ZERO {
            shifts.push((shift, shift.conj()));
        }
    }
    if let (true, Some(single)) = (shifts.is_empty(), single) {
        shifts.push((single, single));
    }
}

/// Shifts that no symmetry of the matrix suggests, from its last rows.
fn exceptional_shifts<T: Scalar>(
    iteration: &Iteration<'_, T>,
    stop: usize,
    wanted: usize,
    shifts: &mut Vec<Shifts<T>>,
) {
    let at = |i: usize, j: usize| iteration.h[i + j * iteration.n];
    for i in (0..wanted).map(|i| stop - 1 - 2 * i) {
        let size = at(i, i - 1).abs1() + at(i - 1, i - 2).abs1();
        shifts.push(eigenvalues(exceptional(at(i, i), size)));
    }
}

/// One sweep of a chain of bulges, the first in `shifts` going ahead; `rows` is where each is.
fn sweep<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    active: Range<usize>,
    (shifts, rows): (&[Shifts<T>], &mut [usize]),
    chain: &mut Chain<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    /// A window has room for a bulge to move in it, and a block has at least as many rows.
    const FEWEST: usize = 2;
    let Range { start, end: stop } = active;
    let Chain { factor, block, room } = chain;
    let rows = &mut rows[..shifts.len()];
    rows.fill(start);
    let (mut low, n) = (start, iteration.n);
    loop {
        let high = (low + span(shifts.len().max(FEWEST))).min(stop);
        let width = high - low;
        let factor = &mut factor[..width * width];
        factor.fill(T::ZERO);
        factor.iter_mut().step_by(width + 1).for_each(|x| *x = T::ONE);
        let (window, active, ld) = (low..high, start..stop, stride::<T>(width));
        let columns = |j: usize| low + (low + j) * n..high + (low + j) * n;
        let h = &mut block[..width * ld];
        for (j, column) in h.chunks_exact_mut(ld).enumerate() {
            column[..width].copy_from_slice(&iteration.h[columns(j)]);
        }
        let rows = &mut *rows;
        arch.dispatch(Chase { h: &mut *h, ld, active, window, shifts, rows, factor });
        for (j, column) in h.chunks_exact(ld).enumerate() {
            iteration.h[columns(j)].copy_from_slice(&column[..width]);
        }
        let factor = MatRef::from_column_major_slice(factor, width, width);
        iteration.multiply(low..high, start..stop, factor, room, threads);
        match rows.iter().filter(|&&row| row < stop - 1).min() {
            Some(row) => low = row - 1,
            None => return,
        }
    }
}

/// The bulges of a window, each moved as far as it and the one ahead let it.
struct Chase<'a, T: Scalar> {
    /// The window's rows and columns, these `ld` apart.
    h: &'a mut [T],
    ld: usize,
    active: Range<usize>,
    window: Range<usize>,
    shifts: &'a [Shifts<T>],
    rows: &'a mut [usize],
    factor: &'a mut [T],
}

impl<T: Scalar> WithSimd for Chase<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { h, ld, active, window, shifts, rows, factor } = self;
        let (start, stop) = (active.start, active.end);
        let (low, high) = (window.start, window.end);
        let width = high - low;
        // A reflector in rows k to k + 2 fills row k + 3.
        let mut limit = if high == stop { stop - 1 } else { high - 3 };
        for (number, (row, &shifts)) in rows.iter_mut().zip(shifts).enumerate() {
            let (first, mut k) = (*row - low, *row);
            while k < limit {
                let at = k - low;
                let column = (k == start).then(|| first_column(h, ld, at, shifts));
                // Each bulge before has filled two more diagonals below the factor's.
                let filled = |last: usize| first..(last + 3 + 2 * number).min(width);
                if k + TOGETHER <= limit && k + ROWS <= stop {
                    let bulges = Bulges::near(h, ld, at, column, width);
                    bulges.rows(simd, h, ld, at + ROWS..width, width);
                    bulges.columns(simd, h, ld, 0..at);
                    bulges.columns(simd, factor, width, filled(at + TOGETHER - 1));
                    k += TOGETHER;
                } else {
                    let length = (stop - k).min(3);
                    let bulge = step(h, ld, at, column, length, 0..width, width);
                    bulge.columns(factor, width, filled(at), length);
                    k += 1;
                }
            }
            *row = limit.max(*row);
            // Columns k to k + 2 of a bulge end above what the one ahead fills: three rows apart.
            // One that is done is in nobody's way.
            if *row < stop - 1 {
                limit = limit.min((*row).saturating_sub(3));
            }
        }
    }
}

impl<T: Scalar> Iteration<'_, T> {
    /// What a factor F of a diagonal window does outside of it: Fᴴ times the rows to its right, the
    /// columns above it times F, and Q's columns times F.
    pub(crate) fn multiply(
        &mut self,
        window: Range<usize>,
        active: Range<usize>,
        factor: MatRef<'_, T>,
        room: &Room<T>,
        threads: &dyn Threads,
    ) {
        let (right, top) = (self.right(active.end), self.top(active.start));
        let (n, width) = (self.n, window.len());
        let (columns, others) = self.h.split_at_mut(window.end * n);
        let of = |columns, rows| MatMut::from_column_major_slice_mut(columns, rows, width);
        let mut blocks = Vec::new();
        if let Some(count) = right.checked_sub(window.end) {
            let others = &mut others[..count * n];
            let rows = MatMut::from_column_major_slice_mut(others, n, count);
            let rows = rows.subrows_mut(window.start, width);
            blocks.extend(strips(rows, STRIP).into_iter().map(|strip| (Side::Left, strip)));
        }
        let above = of(&mut columns[window.start * n..], n).subrows_mut(top, window.start - top);
        let q =
            self.q.as_deref_mut().map(|q| &mut q[window.start * self.rows..][..width * self.rows]);
        for block in [Some(above), q.map(|q| of(q, self.rows))].into_iter().flatten() {
            let strips = strips(block.transpose_mut(), STRIP).into_iter();
            blocks.extend(strips.map(|strip| (Side::Right, strip)));
        }
        // Large products do six times what `nanoseconds` reckons with.
        let time = nanoseconds::<T>(width * width * STRIP) / 6;
        let shared = chunks(blocks.len(), time, threads.count()) > 1;
        let threads: &dyn Threads = if shared { threads } else { &Serial };
        run_each(
            threads,
            blocks.len(),
            || room.take(),
            |buffer, block| {
                let (side, block) = &blocks[block];
                let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
                multiply(factor, *side, block.as_mut(), &mut buffer.buffer);
            },
        );
    }
}
