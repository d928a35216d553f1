//! LU factorisation with partial pivoting of one small matrix, by rows: P·A = L·U.
//!
//! A register holds neighbours in a row. As many columns as a register has lanes are a panel, which is
//! transposed, so that a register holds neighbours in a column, and eliminated step by step; each
//! row to the right of it then takes the whole panel's update at once. No row moves: a step picks
//! its pivot among the rows that are none yet, and the rows are written in the order of P·A.

use lapax_core::{InOut, ItemsInOut, ItemsMut, Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::packed_triangle::{TOGETHER, WIDE, load, per_row, store, take};
use super::{LANES, ROWS, Sides};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::matrix::rows::Output;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::number;
use crate::simd::prefetch::Ahead;
use crate::simd::tile::Tile;
use crate::simd::transpose::transpose;
use crate::simd::vector::{Lane, MAX_LANES, Reg, Vector};

/// The matrices that are factored at once: while a step of one waits for its pivot, the processor
/// works on that of another.
pub(crate) const MATRICES: usize = 2;

/// What the factorisation of one matrix reuses.
#[derive(Debug)]
pub(crate) struct Scratch<R> {
    /// The matrix: registers of a row, row after row.
    rows: Tile<R>,
    /// The panel: registers of a column, column after column.
    panel: Tile<R>,
    /// The rows of U of a panel: those of two registers' columns, row after row.
    u: Tile<R>,
    /// No size exceeds that of a row that can be a pivot; that of another is negative.
    limits: Tile<R>,
    /// The row in each place of P·A so far, and the place of each row.
    row_at: Padded<usize>,
    place_of: Padded<usize>,
    /// The place with which each place was swapped.
    swaps: Padded<usize>,
}

impl<R: LaneReal> Scratch<R> {
    /// For m × n matrices.
    pub(crate) fn new<T: Scalar<Real = R>>(m: usize, n: usize, lanes: usize) -> Self {
        let m = m.div_ceil(lanes).next_power_of_two().max(2) * lanes;
        let wide = wide::<T>(n, lanes);
        Self {
            rows: Tile::new::<T>((m + TOGETHER) * wide, lanes),
            panel: Tile::new::<T>(m, lanes),
            u: Tile::new::<T>(lanes * wide, lanes),
            limits: Tile::new::<R>(m / lanes, lanes),
            row_at: Padded::new(0, m),
            place_of: Padded::new(0, m),
            swaps: Padded::new(0, m.min(n)),
        }
    }

    #[inline(always)]
    fn work<S: Simd, T: Scalar<Real = R>, const HIGH: usize>(&mut self) -> Work<'_, S, T> {
        Work {
            rows: self.rows.registers::<S>(),
            panel: self.panel.registers::<S>(),
            u: self.u.registers::<S>(),
            search: Search {
                limits: &mut self.limits.registers::<S>()[..HIGH],
                row_at: &mut self.row_at,
                place_of: &mut self.place_of,
                swaps: &mut self.swaps,
            },
        }
    }
}

/// The registers of a row of n columns, of whole strips.
#[inline(always)]
fn wide<T: Scalar>(n: usize, lanes: usize) -> usize {
    n.div_ceil(lanes).next_multiple_of(per_row::<T>())
}

/// Factors m × n matrices of at most [`ROWS`] rows; writes what `output` asks for.
pub(crate) struct Factor {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) order: Layout,
    pub(crate) output: Output,
}

type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsMut<'a, i32>, ItemsMut<'a, i32>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Factor {
    type Scratch = [Scratch<T::Real>; MATRICES];

    fn scratch(&self, lanes: usize) -> [Scratch<T::Real>; MATRICES] {
        let one = || Scratch::new::<T>(self.m, self.n, lanes);
        [one(), one()]
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut [Scratch<T::Real>; MATRICES],
        (a, first, second): Operands<'_, T>,
        _: usize,
    ) {
        let Self { m, n, order, output } = *self;
        let (size, k) = (m * n, m.min(n));
        let per_matrix = if matches!(output, Output::Lapack) { 1 } else { m };
        let InOut { src, dst } = a.into_in_out();
        let pairs = dst.chunks_mut(MATRICES * size).enumerate();
        let numbers = first.into_data().chunks_mut(MATRICES * k);
        let others = second.into_data().chunks_mut(MATRICES * per_matrix);
        for (((pair, dst), swaps), second) in pairs.zip(numbers).zip(others) {
            let from = pair * MATRICES * size;
            let a = (src.map(|src| &src[from..from + dst.len()]), dst);
            let wide = wide::<T>(n, T::Real::lanes::<S>());
            let sides = |high| Sides { m, n, high, wide };
            let high = m.div_ceil(T::Real::lanes::<S>());
            let zeros = if high <= 2 {
                factor::<S, T, 2>(simd, a, sides(2), order, scratch)
            } else if high <= 4 {
                factor::<S, T, 4>(simd, a, sides(4), order, scratch)
            } else if high <= 8 {
                factor::<S, T, 8>(simd, a, sides(8), order, scratch)
            } else {
                factor::<S, T, 16>(simd, a, sides(16), order, scratch)
            };
            let one = matches!(output, Output::Lapack).into();
            for (swaps, scratch) in swaps.chunks_exact_mut(k).zip(&*scratch) {
                write_numbers(swaps, &scratch.swaps, one);
            }
            match output {
                Output::Lapack => {
                    for (info, zero) in second.iter_mut().zip(zeros) {
                        *info = zero.map_or(0, |j| i32::try_from(j + 1).unwrap_or(i32::MAX));
                    }
                }
                Output::Permutation => {
                    for (permutation, scratch) in second.chunks_exact_mut(m).zip(&*scratch) {
                        write_numbers(permutation, &scratch.row_at, 0);
                    }
                }
            }
        }
    }
}

/// Writes rows, which are fewer than an `i32` holds, counted from `first`.
fn write_numbers(to: &mut [i32], from: &[usize], first: i32) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = i32::try_from(from).unwrap_or(i32::MAX - first) + first;
    }
}

/// A matrix in work.
struct Work<'a, S: Simd, T: Scalar> {
    rows: &'a mut [Reg<S, T::Lane<S>>],
    panel: &'a mut [Reg<S, T::Lane<S>>],
    u: &'a mut [Reg<S, T::Lane<S>>],
    search: Search<'a, S, T::Real>,
}

#[apart]
fn factor<S: Simd, T: Scalar, const HIGH: usize>(
    simd: S,
    (src, dst): (Option<&[T]>, &mut [T]),
    sides: Sides,
    order: Layout,
    scratch: &mut [Scratch<T::Real>],
) -> [Option<usize>; MATRICES] {
    let Sides { m, n, .. } = sides;
    let lanes = T::Real::lanes::<S>();
    let count = dst.len() / (m * n);
    let mut zeros = [None; MATRICES];
    let mut next = Ahead::behind(src.unwrap_or(dst), dst.len(), m.min(n));
    let mut target = Ahead::of(dst, m.min(n));
    // The compiler drops what no matrix of so many lanes needs.
    if lanes < LANES || HIGH * lanes > ROWS {
        return zeros;
    }
    for (i, scratch) in scratch[..count].iter_mut().enumerate() {
        let mut work = scratch.work::<S, T, HIGH>();
        let a = &src.unwrap_or(dst)[i * m * n..(i + 1) * m * n];
        sides.read::<S, T>(simd, a, order, work.rows);
        work.search.start(m);
    }
    for block in 0..m.min(n).div_ceil(lanes) {
        let first = block * lanes;
        let steps = lanes.min(m.min(n) - first);
        for scratch in &mut scratch[..count] {
            let work = scratch.work::<S, T, HIGH>();
            sides.transpose_panel::<S, T>(simd, work.rows, work.panel, block, true);
        }
        for step in 0..steps {
            next.next();
            target.next();
            for (zero, scratch) in zeros.iter_mut().zip(&mut scratch[..count]) {
                let mut work = scratch.work::<S, T, HIGH>();
                let search = &mut work.search;
                if !eliminate::<S, T, HIGH>(simd, work.panel, first, step, search, m) {
                    *zero = zero.or(Some(first + step));
                }
            }
        }
        for scratch in &mut scratch[..count] {
            let Work { rows, panel, u, search } = scratch.work::<S, T, HIGH>();
            if block + 1 < n.div_ceil(lanes) {
                let row_at = &search.row_at[first..m];
                sides.update::<S, T>(simd, rows, panel, u, (block + 1, steps), row_at);
            }
            sides.transpose_panel::<S, T>(simd, rows, panel, block, false);
        }
    }
    for (scratch, dst) in scratch.iter_mut().zip(dst.chunks_exact_mut(m * n)) {
        let work = scratch.work::<S, T, HIGH>();
        sides.write::<S, T>(simd, work.rows, order, work.search.row_at, dst);
    }
    zeros
}

/// The choice of pivots, and the order of rows that comes of it.
struct Search<'a, S: Simd, R: LaneReal> {
    limits: &'a mut [R::Reg<S>],
    row_at: &'a mut [usize],
    place_of: &'a mut [usize],
    swaps: &'a mut [usize],
}

impl<S: Simd, R: LaneReal> Search<'_, S, R> {
    #[inline(always)]
    fn start(&mut self, m: usize) {
        let limits: &mut [R] = bytemuck::cast_slice_mut(self.limits);
        for (i, limit) in limits.iter_mut().enumerate() {
            *limit = if i < m { R::MAX } else { -R::ONE };
        }
        for (i, (row, place)) in self.row_at.iter_mut().zip(&mut *self.place_of).enumerate() {
            (*row, *place) = (i, i);
        }
    }

    /// The row of the pivot of step j, whose column is `column`, and which is used from now on.
    #[inline(always)]
    fn pivot<T: Scalar<Real = R>, const HIGH: usize>(
        &mut self,
        simd: S,
        column: &[Reg<S, T::Lane<S>>],
        j: usize,
        m: usize,
    ) -> usize {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let none = splat(-R::ONE);
        let (mut sizes, mut best) = ([none; HIGH], none);
        for (i, size) in sizes.iter_mut().enumerate() {
            let limit = Vector::from_reg(simd, self.limits[i]);
            *size = T::Lane::<S>::load(simd, column, i).abs1();
            best = best.larger(size.smaller(limit));
        }
        let largest = splat(best.largest());
        let (mut bits, mut nothing) = (0, splat(R::ZERO));
        for (i, size) in sizes.iter().enumerate() {
            let limit = Vector::from_reg(simd, self.limits[i]);
            let equal = size.smaller(limit).equal(largest);
            bits |= u64::from(equal.bits()) << (i * R::lanes::<S>());
            // By whole registers: one that is read after a part of it was written has to wait.
            self.limits[i] = Vector::choose(equal, none, limit).reg();
            // Zero times NaN or infinity is NaN.
            nothing = nothing.add_mul(*size, splat(R::ZERO));
        }
        let mut row = bits.trailing_zeros() as usize;
        // Of several, or of what cannot be compared, the first in the order of P·A.
        if bits.count_ones() != 1 || nothing.sum() != R::ZERO {
            row = self.first_of_several::<T>(column, j, m);
        }
        let place = self.place_of[row];
        let other = self.row_at[j];
        self.swaps[j] = place;
        self.row_at.swap(j, place);
        self.place_of[other] = place;
        self.place_of[row] = j;
        row
    }

    #[cold]
    #[inline(never)]
    fn first_of_several<T: Scalar<Real = R>>(
        &mut self,
        column: &[Reg<S, T::Lane<S>>],
        j: usize,
        m: usize,
    ) -> usize {
        let lanes = R::lanes::<S>();
        let (mut best, mut largest) = (self.row_at[j], -R::ONE);
        for &row in &self.row_at[j..m] {
            let size = number::<S, T>(column, row / lanes, row % lanes).abs1();
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (best, largest) = (row, size);
            }
        }
        let limits: &mut [R] = bytemuck::cast_slice_mut(self.limits);
        self.row_at[j..m].iter().for_each(|row| limits[*row] = R::MAX);
        limits[best] = -R::ONE;
        best
    }
}

/// One step of a panel, column `step`; returns whether its pivot is not zero.
#[inline(always)]
fn eliminate<S: Simd, T: Scalar, const HIGH: usize>(
    simd: S,
    panel: &mut [Reg<S, T::Lane<S>>],
    first: usize,
    step: usize,
    search: &mut Search<'_, S, T::Real>,
    m: usize,
) -> bool {
    type X<S, T> = <T as Scalar>::Lane<S>;
    let lanes = T::Real::lanes::<S>();
    let stride = HIGH * X::<S, T>::PARTS;
    let (left, right) = panel[..lanes * stride].split_at_mut((step + 1) * stride);
    let column = &mut left[step * stride..];
    let row = search.pivot::<T, HIGH>(simd, column, first + step, m);
    let pivot = number::<S, T>(column, row / lanes, row % lanes);
    if pivot == T::ZERO {
        return false;
    }
    // L, with zeros in the rows of pivots.
    let mut l = [X::<S, T>::splat(simd, T::ZERO); HIGH];
    let size = pivot.abs1();
    let safe = size >= T::Real::SAFE_MIN && size <= T::Real::ONE / T::Real::SAFE_MIN;
    if safe {
        let reciprocal = X::<S, T>::splat(simd, T::ONE.divide(pivot));
        for (i, l) in l.iter_mut().enumerate() {
            *l = X::<S, T>::load(simd, column, i) * reciprocal;
        }
    } else {
        for (i, l) in l.iter_mut().enumerate() {
            let mut numbers = [T::ZERO; MAX_LANES];
            X::<S, T>::load(simd, column, i).write(&mut numbers);
            numbers.iter_mut().for_each(|x| *x = x.divide(pivot));
            *l = X::<S, T>::read(simd, &numbers);
        }
    }
    let zero = Vector::<S, T::Real>::splat(simd, T::Real::ZERO);
    for (i, l) in l.iter_mut().enumerate() {
        let open = zero.less(Vector::from_reg(simd, search.limits[i]));
        X::<S, T>::choose(open, *l, X::<S, T>::load(simd, column, i)).store(column, i);
        *l = X::<S, T>::choose(open, *l, X::<S, T>::from_real(zero));
    }
    for column in right.chunks_exact_mut(stride) {
        let u = number::<S, T>(column, row / lanes, row % lanes);
        let factor = X::<S, T>::splat(simd, u);
        // Zero times NaN or infinity would spread to rows that are done.
        let finite = u.abs1() <= T::Real::MAX;
        for (i, l) in l.iter().enumerate() {
            let before = X::<S, T>::load(simd, column, i);
            let mut x = before.sub_mul(*l, factor);
            if !finite {
                let open = zero.less(Vector::from_reg(simd, search.limits[i]));
                x = X::<S, T>::choose(open, x, before);
            }
            x.store(column, i);
        }
    }
    true
}

impl Sides {
    /// Transposes the registers of a block of columns from rows to the panel, or back.
    #[inline(always)]
    fn transpose_panel<S: Simd, T: Scalar>(
        self,
        simd: S,
        rows: &mut [Reg<S, T::Lane<S>>],
        panel: &mut [Reg<S, T::Lane<S>>],
        block: usize,
        to_panel: bool,
    ) {
        let lanes = T::Real::lanes::<S>();
        let parts = T::Lane::<S>::PARTS;
        for i in 0..self.high {
            for part in 0..parts {
                let row = |r: usize| ((i * lanes + r) * self.wide + block) * parts + part;
                let column = |c: usize| (c * self.high + i) * parts + part;
                let mut square = [rows[0]; MAX_LANES];
                let square = &mut square[..lanes];
                for (r, reg) in square.iter_mut().enumerate() {
                    *reg = if to_panel { rows[row(r)] } else { panel[column(r)] };
                }
                transpose::<S, T::Real, _>(simd, square);
                for (r, reg) in square.iter().enumerate() {
                    if to_panel {
                        panel[column(r)] = *reg;
                    } else {
                        rows[row(r)] = *reg;
                    }
                }
            }
        }
    }

    /// Takes a panel's steps from the columns from register `right` on, of the rows `row_at`; the first of
    /// these are its pivots'.
    #[inline(always)]
    fn update<S: Simd, T: Scalar>(
        self,
        simd: S,
        rows: &mut [Reg<S, T::Lane<S>>],
        panel: &[Reg<S, T::Lane<S>>],
        u: &mut [Reg<S, T::Lane<S>>],
        (right, steps): (usize, usize),
        row_at: &[usize],
    ) {
        let (lanes, parts) = (T::Real::lanes::<S>(), T::Lane::<S>::PARTS);
        // By whole strips: what is done to the panel's own columns is written over.
        let (first, length) = (right * parts / WIDE * WIDE, self.wide * parts);
        let (pivots, others) = row_at.split_at(steps);
        let (u, _) = u.as_chunks_mut::<WIDE>();
        for (k, &row) in pivots.iter().enumerate() {
            let mut l = [T::ZERO; MAX_LANES];
            for (i, l) in l[..k].iter_mut().enumerate() {
                *l = number::<S, T>(panel, i * self.high + row / lanes, row % lanes);
            }
            let (row, _) = rows[row * length + first..(row + 1) * length].as_chunks_mut::<WIDE>();
            for (row, u) in row.iter_mut().zip(u.chunks_exact_mut(lanes)) {
                let mut x = load::<S, T>(simd, row);
                for (u, &l) in u[..k].iter().zip(&l) {
                    take::<S, T>(simd, &mut x, l, &load::<S, T>(simd, u));
                }
                store::<S, T>(&x, row);
                store::<S, T>(&x, &mut u[k]);
            }
        }
        for group in others.chunks(TOGETHER) {
            // Rows behind the matrix, which nobody reads, make the last group whole.
            let mut group_rows: [usize; TOGETHER] = std::array::from_fn(|r| self.high * lanes + r);
            group_rows[..group.len()].copy_from_slice(group);
            let mut l = [[T::ZERO; TOGETHER]; MAX_LANES];
            for (k, l) in l[..steps].iter_mut().enumerate() {
                for (l, &row) in l.iter_mut().zip(group) {
                    *l = number::<S, T>(panel, k * self.high + row / lanes, row % lanes);
                }
            }
            let parts_of = group_rows.map(|row| row * length + first..(row + 1) * length);
            let Ok([a, b, c, d]) = rows.get_disjoint_mut(parts_of) else {
                unreachable!("rows have one place each")
            };
            let (a, b) = (a.as_chunks_mut().0.iter_mut(), b.as_chunks_mut().0.iter_mut());
            let (c, d) = (c.as_chunks_mut().0.iter_mut(), d.as_chunks_mut().0.iter_mut());
            let strips = u.chunks_exact(lanes);
            for ((a, b), ((c, d), u)) in a.zip(b).zip(c.zip(d).zip(strips)) {
                let mut x = [
                    load::<S, T>(simd, a),
                    load::<S, T>(simd, b),
                    load::<S, T>(simd, c),
                    load::<S, T>(simd, d),
                ];
                for (u, l) in u.iter().zip(&l[..steps]) {
                    let u = load::<S, T>(simd, u);
                    for (x, &l) in x.iter_mut().zip(l) {
                        take::<S, T>(simd, x, l, &u);
                    }
                }
                for (x, row) in x.iter().zip([a, b, c, d]) {
                    store::<S, T>(x, row);
                }
            }
        }
    }
}
