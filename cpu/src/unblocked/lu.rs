//! LU factorisation of one small matrix, number by number or in registers of one row.

use lapax_core::Scalar as _;
use pulp::{Scalar as Numbers, Simd, WithSimd};

use super::ORDER;
use crate::Scalar;
use crate::matrix::layout::{Layout, Strides};
use crate::simd::arch::Arch;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines;
use crate::simd::lines::LaneNumbers;
use crate::simd::loops::{Divisor, sub_mul};
use crate::simd::vector::{Lane, Vector};

/// The columns from which on a factorisation goes by rows, where it is as fast as number by number.
const WIDE_FACTOR: usize = 9;

/// Factors an m × n matrix as P·A = L·U in place; returns the first row whose pivot is zero.
///
/// Pivots are those of [`crate::lu::getrf`], counted from `first`.
pub(crate) fn factor<T: Scalar>(
    a: &mut [T],
    (m, n): (usize, usize),
    order: Layout,
    pivots: &mut [i32],
    first: usize,
) -> Option<usize> {
    let strides = Strides::new(order, m, n);
    let at = |i, j| strides.at(i, j);
    // The number of pivots where none is zero.
    let mut zero = pivots.len();
    for (j, swap) in pivots.iter_mut().enumerate() {
        let (mut other, mut largest) = (j, a[at(j, j)].abs1());
        for i in j + 1..m {
            let size = a[at(i, j)].abs1();
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (other, largest) = (i, size);
            }
        }
        // Rows are at most ORDER.
        *swap = i32::try_from(first + other).unwrap_or(i32::MAX);
        let pivot = a[at(other, j)];
        if pivot == T::ZERO {
            zero = zero.min(j);
            continue;
        }
        if other != j {
            (0..n).for_each(|c| a.swap(at(j, c), at(other, c)));
        }
        let divisor = Divisor::new(pivot);
        for i in j + 1..m {
            divisor.divide(std::slice::from_mut(&mut a[at(i, j)]));
            let l = a[at(i, j)];
            for c in j + 1..n {
                a[at(i, c)] = sub_mul::<Numbers, T>(a[at(i, c)], l, a[at(j, c)]);
            }
        }
    }
    (zero < pivots.len()).then_some(zero)
}

/// Room for L numbers, in rows of whole registers that lie in lines of the cache.
#[repr(align(64))]
pub(crate) struct Block<T, const L: usize>(pub(crate) [T; L]);

/// The order from which on larger pieces of the stack serve, and the numbers of a block up to it and up to [`ORDER`].
pub(crate) const HALF: usize = 16;
pub(crate) const SMALL: usize = HALF * HALF;
pub(crate) const LARGE: usize = ORDER * ORDER;

/// [`factor`] by rows; pivots are counted from 0.
pub(crate) fn factor_rows<T: Scalar>(a: &mut [T], (m, n): (usize, usize), pivots: &mut [i32]) {
    let arch = Arch::new();
    if n < WIDE_FACTOR || T::IS_COMPLEX {
        factor(a, (m, n), Layout::Rows, pivots, 0);
    } else if m.max(n) <= HALF {
        arch.dispatch(FactorRows::<_, SMALL> { a, n, pivots });
    } else {
        arch.dispatch(FactorRows::<_, LARGE> { a, n, pivots });
    }
}

/// [`factor_rows`], in a block of L numbers where rows are no whole registers.
pub(crate) struct FactorRows<'a, T, const L: usize> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) pivots: &'a mut [i32],
}

impl<T: Scalar, const L: usize> WithSimd for FactorRows<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, n, pivots } = self;
        let (m, lanes) = (a.len() / n, T::Real::lanes::<S>());
        let pitch = n.next_multiple_of(lanes);
        if pitch == n {
            return eliminate::<S, T>(simd, a, n, pivots);
        }
        let mut block = Block([T::ZERO; L]);
        let block = &mut block.0[..m * pitch];
        for (to, row) in block.chunks_exact_mut(pitch).zip(a.chunks_exact(n)) {
            for (to, from) in to.chunks_exact_mut(lanes).zip((0..n).step_by(lanes)) {
                lines::read::<S, T>(simd, row, from).write(to);
            }
        }
        eliminate::<S, T>(simd, block, pitch, pivots);
        for (row, to) in block.chunks_exact(pitch).zip(a.chunks_exact_mut(n)) {
            for (row, to) in row.chunks_exact(lanes).zip(to.chunks_mut(lanes)) {
                lines::write::<S, T>(T::Lane::<S>::read(simd, row), to);
            }
        }
    }
}

/// Factors a matrix with rows of whole registers.
///
/// A step leaves the columns before it as they are, so that it writes whole registers: a register of which
/// some lanes were written cannot be read before these are in the cache. So L is what is below the diagonal times the
/// reciprocals of the pivots, as which it is left at the end.
#[inline(always)]
fn eliminate<S: Simd, T: Scalar>(simd: S, block: &mut [T], pitch: usize, pivots: &mut [i32]) {
    let (m, lanes) = (block.len() / pitch, T::Real::lanes::<S>());
    let lane_numbers = LaneNumbers::<T::Real>::new();
    let numbers = lane_numbers.vector::<S>(simd);
    let zeros = T::Lane::<S>::splat(simd, T::ZERO);
    let (mut reciprocals, mut column) = ([T::ONE; ORDER], [T::ZERO; ORDER]);
    for (j, swap) in pivots.iter_mut().enumerate() {
        // The column, of which the largest number goes to the front: the first one, where a NaN is larger than any.
        let (mut other, mut largest) = (j, -T::Real::ONE);
        for (i, (x, row)) in column.iter_mut().zip(block.chunks_exact(pitch).skip(j)).enumerate() {
            *x = row[j];
            let size = x.abs1();
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (other, largest) = (j + i, size);
            }
        }
        // Rows are at most ORDER.
        *swap = i32::try_from(other).unwrap_or(i32::MAX);
        let pivot = column[other - j];
        if pivot == T::ZERO {
            continue;
        }
        column[other - j] = column[0];
        let l = &mut column[1..m - j];
        let (above, below) = block.split_at_mut((j + 1) * pitch);
        let row = &mut above[j * pitch..];
        if other != j {
            let other = &mut below[(other - j - 1) * pitch..(other - j) * pitch];
            for (x, y) in row.chunks_exact_mut(lanes).zip(other.chunks_exact_mut(lanes)) {
                let [old, new] = [&*x, &*y].map(|x| T::Lane::<S>::read(simd, x));
                new.write(x);
                old.write(y);
            }
        }
        let divisor = Divisor::new(pivot);
        divisor.divide(l);
        // No number of L is larger than about one then.
        let finite = if let Divisor::Reciprocal(reciprocal) = divisor {
            reciprocals[j] = reciprocal;
            true
        } else {
            for (l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
                row[j] = *l;
            }
            false
        };
        let strip = j / lanes * lanes;
        let this = Vector::<S, T::Real>::splat(simd, lane_numbers.get(j - strip));
        let behind = this.less(numbers);
        let u = T::Lane::<S>::read(simd, &row[strip..strip + lanes]);
        let u = T::Lane::<S>::choose(behind, u, zeros);
        for (&l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
            let row = &mut row[strip..strip + lanes];
            let old = T::Lane::<S>::read(simd, row);
            let mut new = old.sub_mul(T::Lane::<S>::splat(simd, l), u);
            // Infinity times zero is NaN.
            if !finite {
                new = T::Lane::<S>::choose(behind, new, old);
            }
            new.write(row);
        }
        for strip in (strip + lanes..pitch).step_by(lanes) {
            let u = T::Lane::<S>::read(simd, &row[strip..strip + lanes]);
            for (&l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
                let row = &mut row[strip..strip + lanes];
                let x = T::Lane::<S>::read(simd, row);
                x.sub_mul(T::Lane::<S>::splat(simd, l), u).write(row);
            }
        }
    }
    for (i, row) in block.chunks_exact_mut(pitch).enumerate() {
        for (strip, x) in
            row[..i.next_multiple_of(lanes).min(pitch)].chunks_exact_mut(lanes).enumerate()
        {
            let first = strip * lanes;
            let factor = T::Lane::<S>::read(simd, &reciprocals[first..first + lanes]);
            let old = T::Lane::<S>::read(simd, x);
            let mut new = old * factor;
            if first + lanes > i {
                let diagonal = Vector::<S, T::Real>::splat(simd, lane_numbers.get(i - first));
                new = T::Lane::<S>::choose(numbers.less(diagonal), new, old);
            }
            new.write(x);
        }
    }
}
