//! A triangle as the kernels of substitution read it.

use pulp::Simd;

use crate::matrix::layout::Layout;
use crate::simd::loops::Divisor;
use crate::simd::vector::{Lane, MAX_LANES, Reg};
use crate::{Diag, Scalar, Uplo};

/// The unknowns that are found together: with two registers of each as many sums as two units for
/// products, each of which takes four cycles, have in work.
pub(crate) const TOGETHER: usize = 4;
/// The registers of a strip's row: two of real numbers, or one of complex numbers.
pub(crate) const WIDE: usize = 2;

/// One of the lines that are so long.
#[inline(always)]
pub(crate) fn line<T>(a: &[T], length: usize, number: usize) -> &[T] {
    &a[number * length..(number + 1) * length]
}

/// Registers of T in a row of a strip.
#[inline(always)]
pub(crate) fn per_row<T: Scalar>() -> usize {
    if T::IS_COMPLEX { WIDE / 2 } else { WIDE }
}

/// A triangle of a square matrix.
#[derive(Clone, Copy)]
pub(crate) struct Triangle<'a, T> {
    pub(super) uplo: Uplo,
    pub(super) diag: Diag,
    pub(super) conj: bool,
    pub(super) a: &'a [T],
    pub(super) order: Layout,
}

/// A triangle by blocks of [`TOGETHER`] rows, in the order in which their unknowns are found.
#[derive(Debug)]
pub(crate) struct Packed<T> {
    n: usize,
    uplo: Uplo,
    /// For each block its columns from the first or up to the last that is not zero, by columns.
    blocks: Vec<[T; TOGETHER]>,
    divisors: Vec<[Divisor<T>; TOGETHER]>,
}

impl<T: Scalar> Packed<T> {
    /// For a matrix of order n.
    pub(crate) fn new(n: usize) -> Self {
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
                    Layout::Rows => a[i * n + j],
                    Layout::Columns => a[j * n + i],
                };
                let column = |j| std::array::from_fn(|r| number(first + r, j));
                blocks.extend(columns.map(column));
            } else if order == Layout::Rows {
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
pub(crate) fn take<S: Simd, T: Scalar>(
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
pub(crate) fn load<S: Simd, T: Scalar>(
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
pub(crate) fn store<S: Simd, T: Scalar>(
    x: &[T::Lane<S>; WIDE],
    row: &mut [Reg<S, T::Lane<S>>; WIDE],
) {
    for (c, x) in x[..per_row::<T>()].iter().enumerate() {
        x.store(row, c);
    }
}
