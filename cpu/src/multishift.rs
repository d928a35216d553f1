//! The QR iteration for large orders: many shifts at a time, and early deflation.
//!
//! Bulges of two shifts each go through the matrix in a tightly packed chain; what they do inside
//! of a diagonal window is collected in one unitary factor, which the rest of the matrix is
//! multiplied by: Braman, Byers and Mathias, "The multishift QR algorithm, part I" (SIAM J. Matrix
//! Anal. Appl. 23, 2002).

use std::ops::Range;

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::Scalar as _;
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::deflation::{self, Window};
use crate::francis::{Bulge, Iteration, Shifts, exceptional, first_column};
use crate::householder::reflector;
use crate::standard::eigenvalues;

/// The order up to which two shifts at a time are faster. On one core with AVX-512, Schur forms in f64 (c128), ms,
/// with 50, 75 and 110: n = 128 2.3, 2.3 and 3.1 (6.9, 5.8 and 7.6), 256 14.8, 14.1 and 15.3 (38, 37 and 38), 512
/// 136, 136 and 139 (244, 240 and 247).
const SMALL: usize = 75;

/// The order from which a block of a larger matrix is brought to Schur form by itself. Likewise, with the rest going
/// along step by step, and afterwards: n = 128 2.8 and 2.3 (8.3 and 5.8), 256 21 and 14 (53 and 37), 512 159 and 136
/// (282 and 240).
const APART: usize = 12;

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

/// Sweeps per row before an iteration is given up; about three are usual.
pub(crate) const SWEEPS: usize = 30;

/// How many sweeps per row each iteration has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The fast one, of many shifts.
    pub(crate) many: usize,
    /// The plain one, of two shifts.
    pub(crate) two: usize,
}

/// The factor of a window, and what a product with it passes through.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    factor: Vec<T>,
    /// A copy of a small block.
    block: Vec<T>,
    work: Vec<T>,
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
                block: vec![T::ZERO; small * small],
                work: vec![T::ZERO; n * width.max(order)],
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
    arch: Arch,
) -> Result<(), usize> {
    let first = active.start;
    let rest = match large(iteration, active.clone(), scratch, arch) {
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
            plain(iteration, start..stop, patience.two, chain, arch)?;
            (stop, stalled) = (start, 0);
            continue;
        }
        if budget == 0 {
            return Err(stop);
        }
        budget -= 1;
        let Scratch { deflation, shifts, rows, chain, .. } = &mut *scratch;
        let width = window(order);
        let Window { deflated, found } =
            deflation::deflate(iteration, start..stop, width, deflation, &mut chain.work, arch);
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
        sweep(iteration, start..stop, shifts, rows, chain, arch);
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
    arch: Arch,
) -> Result<(), usize> {
    let (n, order) = (iteration.n, block.len());
    if order < APART || n <= SMALL || !iteration.schur {
        return iteration.run(block, sweeps, arch);
    }
    let Chain { factor, block: copy, work } = chain;
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
    iteration.multiply(block.clone(), block.clone(), factor, work);
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

/// One sweep of a chain of bulges, the first in `shifts` going ahead.
fn sweep<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    active: Range<usize>,
    shifts: &[Shifts<T>],
    rows: &mut [usize],
    chain: &mut Chain<T>,
    arch: Arch,
) {
    /// A window has room for a bulge to move in it, and a block has at least as many rows.
    const FEWEST: usize = 2;
    let Range { start, end: stop } = active;
    let rows = &mut rows[..shifts.len()];
    rows.fill(start);
    let mut low = start;
    loop {
        let high = (low + span(shifts.len().max(FEWEST))).min(stop);
        let width = high - low;
        let factor = &mut chain.factor[..width * width];
        factor.fill(T::ZERO);
        factor.iter_mut().step_by(width + 1).for_each(|x| *x = T::ONE);
        let (h, n) = (&mut *iteration.h, iteration.n);
        let (window, active) = (low..high, start..stop);
        arch.dispatch(Chase { h, n, active, window, shifts, rows: &mut *rows, factor });
        let factor = MatRef::from_column_major_slice(factor, width, width);
        iteration.multiply(low..high, start..stop, factor, &mut chain.work);
        match rows.iter().filter(|&&row| row < stop - 1).min() {
            Some(row) => low = row - 1,
            None => return,
        }
    }
}

/// The bulges of a window, each moved as far as it and the one ahead let it.
struct Chase<'a, T: Scalar> {
    h: &'a mut [T],
    n: usize,
    active: Range<usize>,
    window: Range<usize>,
    shifts: &'a [Shifts<T>],
    rows: &'a mut [usize],
    factor: &'a mut [T],
}

impl<T: Scalar> WithSimd for Chase<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { h, n, active, window, shifts, rows, factor } = self;
        let (start, stop) = (active.start, active.end);
        let (low, high) = (window.start, window.end);
        let width = high - low;
        // A reflector in rows k to k + 2 fills row k + 3.
        let mut limit = if high == stop { stop - 1 } else { high - 3 };
        for (row, &shifts) in rows.iter_mut().zip(shifts) {
            for k in *row..limit {
                let length = (stop - k).min(3);
                let mut v = [T::ZERO; 3];
                if k == start {
                    v = first_column(h, n, k, shifts);
                } else {
                    v[..length].copy_from_slice(&h[k + (k - 1) * n..][..length]);
                }
                let [head, tail @ ..] = &mut v;
                let reflector = reflector::<pulp::Scalar, T>(*head, &mut tail[..length - 1]);
                if k > start {
                    let column = &mut h[k + (k - 1) * n..][..length];
                    column.fill(T::ZERO);
                    column[0] = T::from_real(reflector.beta);
                }
                let bulge = Bulge { k, tau: reflector.tau, v: v[1], w: v[2] };
                bulge.rows(&mut h[..high * n], n, length);
                bulge.columns(h, n, low..(k + 4).min(stop), length);
                let bulge = Bulge { k: k - low, ..bulge };
                bulge.columns(factor, width, 0..width, length);
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
    /// columns above it times F, and Q's columns times F. `work` has n elements per column of F.
    pub(crate) fn multiply(
        &mut self,
        window: Range<usize>,
        active: Range<usize>,
        factor: MatRef<'_, T>,
        work: &mut [T],
    ) {
        let (right, top) = (self.right(active.end), self.top(active.start));
        let (n, width) = (self.n, window.len());
        let (f, adjoint) = ((factor, Conj::No), (factor.transpose(), Conj::Yes));
        if window.end < right {
            let (h, columns) = (&mut self.h[window.end * n..right * n], right - window.end);
            let used = MatRef::from_column_major_slice(&*h, n, columns);
            let used = (used.subrows(window.start, width), Conj::No);
            let work = &mut work[..width * columns];
            let product = MatMut::from_column_major_slice_mut(work, width, columns);
            T::product(product, Accum::Replace, adjoint, used, T::ONE);
            for (to, from) in h.chunks_exact_mut(n).zip(work.chunks_exact(width)) {
                to[window.clone()].copy_from_slice(from);
            }
        }
        let mut times = |a: &mut [T], rows: usize, used: Range<usize>| {
            let height = used.len();
            if height == 0 {
                return;
            }
            let a = &mut a[window.start * rows..window.end * rows];
            let columns = MatRef::from_column_major_slice(&*a, rows, width);
            let columns = (columns.subrows(used.start, height), Conj::No);
            let work = &mut work[..height * width];
            let product = MatMut::from_column_major_slice_mut(work, height, width);
            T::product(product, Accum::Replace, columns, f, T::ONE);
            for (to, from) in a.chunks_exact_mut(rows).zip(work.chunks_exact(height)) {
                to[used.clone()].copy_from_slice(from);
            }
        };
        times(self.h, n, top..window.start);
        if let Some(q) = &mut self.q {
            times(q, self.rows, 0..self.rows);
        }
    }
}
