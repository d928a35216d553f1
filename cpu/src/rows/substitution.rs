//! Triangular systems A·X = B of one small matrix, right-hand sides in the lanes of registers.
//!
//! A is packed [`TOGETHER`] rows at a time, so that one loop serves every triangle, layout and
//! conjugation. X lies in strips two registers wide. As many of its rows are found together: they take all
//! unknowns before them like a block of a matrix product, in registers, and then each other.

use lapax_core::{InOut, Items, ItemsInOut};
use pulp::Simd;

use super::{LANES, read, transpose_numbers, write};
use crate::lanes::{Kernel, Lane, LaneReal, MAX_LANES, Order, Reg, Tile};
use crate::simd::{Ahead, Divisor};
use crate::{Diag, Scalar, Uplo};

/// The unknowns that are found together: with two registers of each as many sums as two units for
/// products, each of which takes four cycles, have in work.
pub(super) const TOGETHER: usize = 4;
/// The registers of a strip's row: two of real numbers, or one of complex numbers.
pub(super) const WIDE: usize = 2;

/// Solves systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements of A are conjugated as they are read.
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a_order: Order,
    pub(crate) b_order: Order,
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
                Order::Row => strips.read_rows::<S, T>(simd, |i| Some(line(b, nrhs, i)), x),
                Order::Column => strips.read_columns::<S, T>(simd, b, x),
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
                Order::Row => {
                    for (i, to) in to.chunks_exact_mut(nrhs).enumerate() {
                        strips.write_row::<S, T>(simd, x, i, to);
                    }
                }
                Order::Column => strips.write_columns::<S, T>(simd, x, to),
            }
        }
    }
}

/// One of the lines that are so long.
#[inline(always)]
pub(super) fn line<T>(a: &[T], length: usize, number: usize) -> &[T] {
    &a[number * length..(number + 1) * length]
}

/// Right-hand sides in registers.
#[derive(Clone, Copy)]
pub(super) struct Strips {
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
                    None => T::Lane::<S>::splat(simd, crate::scalar::nan()),
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

/// Registers of T in a row of a strip.
#[inline(always)]
pub(super) fn per_row<T: Scalar>() -> usize {
    if T::IS_COMPLEX { WIDE / 2 } else { WIDE }
}

/// A triangle of a square matrix.
#[derive(Clone, Copy)]
pub(super) struct Triangle<'a, T> {
    pub(super) uplo: Uplo,
    pub(super) diag: Diag,
    pub(super) conj: bool,
    pub(super) a: &'a [T],
    pub(super) order: Order,
}

/// A triangle by blocks of [`TOGETHER`] rows, in the order in which their unknowns are found.
#[derive(Debug)]
pub(super) struct Packed<T> {
    n: usize,
    uplo: Uplo,
    /// For each block its columns from the first or up to the last that is not zero, by columns.
    blocks: Vec<[T; TOGETHER]>,
    divisors: Vec<[Divisor<T>; TOGETHER]>,
}

impl<T: Scalar> Packed<T> {
    /// For a matrix of order n.
    fn new(n: usize) -> Self {
        let count = n.div_ceil(TOGETHER);
        Self {
            n,
            uplo: Uplo::Lower,
            blocks: Vec::with_capacity(columns_before(count)),
            divisors: Vec::with_capacity(count),
        }
    }

    /// Copies a triangle.
    #[inline(always)]
    pub(super) fn pack(&mut self, triangle: Triangle<'_, T>) {
        let Triangle { uplo, diag, conj, a, order } = triangle;
        let Self { n, ref mut blocks, ref mut divisors, .. } = *self;
        self.uplo = uplo;
        blocks.clear();
        divisors.clear();
        let count = n.div_ceil(TOGETHER);
        for step in 0..count {
            let block = if uplo == Uplo::Lower { step } else { count - 1 - step };
            let first = block * TOGETHER;
            let columns = match uplo {
                Uplo::Lower => 0..n.min(first + TOGETHER),
                Uplo::Upper => first..n,
            };
            let missing = TOGETHER * (step + 1) - columns.len();
            if first + TOGETHER > n {
                // What is beyond the matrix is zero.
                let number = |i: usize, j| match order {
                    _ if i >= n => T::ZERO,
                    Order::Row => a[i * n + j],
                    Order::Column => a[j * n + i],
                };
                let column = |j| std::array::from_fn(|r| number(first + r, j));
                blocks.extend(columns.map(column));
            } else if order == Order::Row {
                let row = |r| &line(a, n, first + r)[columns.clone()];
                let rows: [&[T]; TOGETHER] = std::array::from_fn(row);
                let [a, b, c, d] = rows;
                let numbers = a.iter().zip(b).zip(c.iter().zip(d));
                blocks.extend(numbers.map(|((&a, &b), (&c, &d))| [a, b, c, d]));
            } else {
                let columns = a[columns.start * n..columns.end * n].chunks_exact(n);
                blocks.extend(columns.map(|column| {
                    let mut numbers = [T::ZERO; TOGETHER];
                    numbers.copy_from_slice(&column[first..first + TOGETHER]);
                    numbers
                }));
            }
            blocks.extend(std::iter::repeat_n([T::ZERO; TOGETHER], missing));
            divisors.push(std::array::from_fn(|r| {
                let i = first + r;
                match diag {
                    Diag::NonUnit if i < n => {
                        let number = a[i * (n + 1)];
                        Divisor::new(if conj { number.conj() } else { number })
                    }
                    _ => Divisor::One,
                }
            }));
        }
        if conj {
            blocks.as_flattened_mut().iter_mut().for_each(|x| *x = x.conj());
        }
    }

    /// X ← A⁻¹·X for a strip, whose rows before `first`, a multiple of [`TOGETHER`], are zero where A is a
    /// lower triangle.
    #[inline(always)]
    pub(super) fn solve<S: Simd>(
        &self,
        simd: S,
        strip: &mut [[Reg<S, T::Lane<S>>; WIDE]],
        first: usize,
    ) {
        let zero = T::Lane::<S>::splat(simd, T::ZERO).re().reg();
        strip[self.n..].fill([zero; WIDE]);
        let count = self.divisors.len();
        for step in first / TOGETHER..count {
            let columns = &self.blocks[columns_before(step)..columns_before(step + 1)];
            let divisors = &self.divisors[step];
            if self.uplo == Uplo::Lower {
                let (known, rest) = strip.split_at_mut(step * TOGETHER);
                let rows = rest.first_chunk_mut();
                if let (Some((before, square)), Some(rows)) = (columns.split_last_chunk(), rows) {
                    let known = before[first..].iter().zip(&known[first..]);
                    Block { square, divisors }.solve::<S>(simd, rows, known, [0, 1, 2, 3]);
                }
            } else {
                let (rest, known) = strip.split_at_mut((count - step) * TOGETHER);
                let rows = rest.last_chunk_mut();
                if let (Some((square, before)), Some(rows)) = (columns.split_first_chunk(), rows) {
                    let known = before.iter().zip(&*known).rev();
                    Block { square, divisors }.solve::<S>(simd, rows, known, [3, 2, 1, 0]);
                }
            }
        }
    }
}

/// The columns of the blocks before step `step`.
#[inline(always)]
fn columns_before(step: usize) -> usize {
    TOGETHER * step * (step + 1) / 2
}

/// A block on the diagonal.
struct Block<'a, T> {
    square: &'a [[T; TOGETHER]; TOGETHER],
    divisors: &'a [Divisor<T>; TOGETHER],
}

impl<T: Scalar> Block<'_, T> {
    /// Finds a block of X; its rows are found in this order.
    #[inline(always)]
    fn solve<'a, S: Simd>(
        &self,
        simd: S,
        rows: &mut [[Reg<S, T::Lane<S>>; WIDE]; TOGETHER],
        known: impl Iterator<Item = (&'a [T; TOGETHER], &'a [Reg<S, T::Lane<S>>; WIDE])>,
        order: [usize; TOGETHER],
    ) where
        T: 'a,
    {
        let x = take_known::<S, T>(simd, rows, known);
        // Written out: of loops with a varying number of rounds a compiler makes loops over memory.
        let [k0, k1, k2, k3] = order;
        let x0 = self.divide::<S>(simd, k0, x[k0]);
        let x1 = self.less::<S>(simd, k1, x[k1], k0, &x0);
        let x2 = self.less::<S>(simd, k2, x[k2], k0, &x0);
        let x3 = self.less::<S>(simd, k3, x[k3], k0, &x0);
        let x1 = self.divide::<S>(simd, k1, x1);
        let x2 = self.less::<S>(simd, k2, x2, k1, &x1);
        let x3 = self.less::<S>(simd, k3, x3, k1, &x1);
        let x2 = self.divide::<S>(simd, k2, x2);
        let x3 = self.less::<S>(simd, k3, x3, k2, &x2);
        let x3 = self.divide::<S>(simd, k3, x3);
        for (k, x) in [(k0, x0), (k1, x1), (k2, x2), (k3, x3)] {
            store::<S, T>(&x, &mut rows[k]);
        }
    }

    /// A row less what it has of unknown k.
    #[inline(always)]
    fn less<S: Simd>(
        &self,
        simd: S,
        row: usize,
        mut x: [T::Lane<S>; WIDE],
        k: usize,
        found: &[T::Lane<S>; WIDE],
    ) -> [T::Lane<S>; WIDE] {
        take::<S, T>(simd, &mut x, self.square[k][row], found);
        x
    }

    /// Row k by its divisor.
    #[inline(always)]
    fn divide<S: Simd>(
        &self,
        simd: S,
        k: usize,
        mut row: [T::Lane<S>; WIDE],
    ) -> [T::Lane<S>; WIDE] {
        for x in &mut row[..per_row::<T>()] {
            *x = match self.divisors[k] {
                Divisor::One => *x,
                Divisor::Reciprocal(reciprocal) => *x * T::Lane::<S>::splat(simd, reciprocal),
                Divisor::Number(number) => {
                    let mut numbers = [T::ZERO; MAX_LANES];
                    x.write(&mut numbers);
                    numbers.iter_mut().for_each(|x| *x = x.divide(number));
                    T::Lane::<S>::read(simd, &numbers)
                }
            };
        }
        row
    }
}

/// The rows of a block less what they have of the unknowns that are known.
#[inline(always)]
fn take_known<'a, S: Simd, T: Scalar + 'a>(
    simd: S,
    rows: &[[Reg<S, T::Lane<S>>; WIDE]; TOGETHER],
    known: impl Iterator<Item = (&'a [T; TOGETHER], &'a [Reg<S, T::Lane<S>>; WIDE])>,
) -> [[T::Lane<S>; WIDE]; TOGETHER] {
    let mut x = [[T::Lane::<S>::splat(simd, T::ZERO); WIDE]; TOGETHER];
    for (x, row) in x.iter_mut().zip(rows) {
        *x = load::<S, T>(simd, row);
    }
    for (a, row) in known {
        let row = load::<S, T>(simd, row);
        for (x, &a) in x.iter_mut().zip(a) {
            take::<S, T>(simd, x, a, &row);
        }
    }
    x
}

/// x ← x − a·row.
#[inline(always)]
pub(super) fn take<S: Simd, T: Scalar>(
    simd: S,
    x: &mut [T::Lane<S>; WIDE],
    a: T,
    row: &[T::Lane<S>; WIDE],
) {
    let a = T::Lane::<S>::splat(simd, a);
    for (x, row) in x[..per_row::<T>()].iter_mut().zip(row) {
        *x = x.sub_mul(a, *row);
    }
}

#[inline(always)]
pub(super) fn load<S: Simd, T: Scalar>(
    simd: S,
    row: &[Reg<S, T::Lane<S>>; WIDE],
) -> [T::Lane<S>; WIDE] {
    let mut x = [T::Lane::<S>::splat(simd, T::ZERO); WIDE];
    for (c, x) in x[..per_row::<T>()].iter_mut().enumerate() {
        *x = T::Lane::<S>::load(simd, row, c);
    }
    x
}

#[inline(always)]
pub(super) fn store<S: Simd, T: Scalar>(
    x: &[T::Lane<S>; WIDE],
    row: &mut [Reg<S, T::Lane<S>>; WIDE],
) {
    for (c, x) in x[..per_row::<T>()].iter().enumerate() {
        x.store(row, c);
    }
}
