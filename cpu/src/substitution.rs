//! The base case of triangular solves: substitution in a packed block of right-hand sides.
//!
//! The triangle and the right-hand sides are packed into scratch, so one loop serves every triangle,
//! transposition and layout: right-hand sides lie side by side in the lanes of vector registers.

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Diag, Uplo};
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::simd::{Divisor, sub_mul};
use crate::triangular::System;

/// The order up to which a system is solved here. For f64 on one core with AVX-512, substitution at
/// this order keeps up with the matrix product, and the packed block stays in the first cache.
pub(crate) const ORDER: usize = 32;

/// A block of this many right-hand sides or fewer goes through lanes of this width.
const NARROW: usize = 8;

/// The registers of a row up to which two rows are summed at once, since a sum waits for the one before. On one core with
/// AVX-512 `solve_triangular` of n = 256 in f32 205 and 184 us, in f64 429 and 406.
const PAIRED_REGISTERS: usize = 4;

/// What a solve of one system reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    /// The triangle row by row, lower, without its diagonal.
    triangle: Vec<T>,
    /// The diagonal.
    divisors: Vec<Divisor<T>>,
    /// Right-hand sides; one element per row of the system.
    rows: Vec<T::Lanes>,
    /// The same for a few right-hand sides.
    narrow_rows: Vec<[T; NARROW]>,
    /// The same for one right-hand side.
    single_rows: Vec<[T; 1]>,
}

impl<T: Scalar> Scratch<T> {
    /// For systems of up to `order` with up to `nrhs` right-hand sides.
    pub(crate) fn new(order: usize, nrhs: usize) -> Self {
        let order = if nrhs == 0 { 0 } else { order.min(ORDER) };
        Self {
            triangle: vec![T::ZERO; order * order],
            divisors: Vec::with_capacity(order),
            rows: vec![T::ZERO_LANES; if nrhs > NARROW { order } else { 0 }],
            narrow_rows: vec![[T::ZERO; NARROW]; if nrhs > 1 { order } else { 0 }],
            single_rows: vec![[T::ZERO; 1]; order],
        }
    }
}

/// B ← A⁻¹·B for A of order at most [`ORDER`]; rows or columns of B are contiguous.
pub(crate) fn solve<T: Scalar>(
    system: System,
    a: MatRef<'_, T>,
    b: MatMut<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    arch.dispatch(Solve { system, a, b, scratch });
}

pub(crate) struct Solve<'a, 'b, T: Scalar> {
    pub(crate) system: System,
    pub(crate) a: MatRef<'a, T>,
    pub(crate) b: MatMut<'b, T>,
    pub(crate) scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> WithSimd for Solve<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { system, a, mut b, scratch } = self;
        let n = a.nrows();
        pack(system, a, scratch);
        let Scratch { triangle, divisors, rows, narrow_rows, single_rows } = scratch;
        let triangle = &triangle[..n * n];
        // An upper system is a lower one whose unknowns are counted from the end.
        let reversed = system.uplo == Uplo::Upper;
        let lanes = T::ZERO_LANES.as_ref().len();
        let mut first = 0;
        while first < b.ncols() {
            let width = lanes.min(b.ncols() - first);
            let block = b.as_mut().subcols_mut(first, width);
            let solve = Block { triangle, divisors, reversed, block };
            match width {
                1 => solve.by_lanes::<S, _>(&mut single_rows[..n]),
                ..=NARROW => solve.by_lanes::<S, _>(&mut narrow_rows[..n]),
                _ => solve.by_lanes::<S, _>(&mut rows[..n]),
            }
            first += width;
        }
    }
}

/// A packed system and as many right-hand sides as there are lanes, or fewer.
struct Block<'a, 'b, T> {
    triangle: &'a [T],
    divisors: &'a [Divisor<T>],
    reversed: bool,
    block: MatMut<'b, T>,
}

impl<T: Scalar> Block<'_, '_, T> {
    #[inline(always)]
    fn by_lanes<S: Simd, L: Lanes<T>>(self, rows: &mut [L]) {
        gather(self.block.as_ref(), self.reversed, rows);
        substitute::<S, T, L>(self.triangle, self.divisors, rows);
        scatter(rows, self.reversed, self.block);
    }
}

/// One row of a packed block: an array, whose length the compiler knows.
trait Lanes<T>: Copy + AsRef<[T]> + AsMut<[T]> {}
impl<T, L: Copy + AsRef<[T]> + AsMut<[T]>> Lanes<T> for L {}

/// Packs op(A), with its unknowns in the order in which they are found.
#[inline(always)]
fn pack<T: Scalar>(system: System, a: MatRef<'_, T>, scratch: &mut Scratch<T>) {
    let n = a.nrows();
    let a = if system.uplo == Uplo::Upper { a.reverse_rows_and_cols() } else { a };
    let read = |i, j| {
        let x = a[(i, j)];
        if system.conj == Conj::Yes { x.conj() } else { x }
    };
    for (i, row) in scratch.triangle[..n * n].chunks_exact_mut(n).enumerate() {
        for (j, x) in row[..i].iter_mut().enumerate() {
            *x = read(i, j);
        }
    }
    scratch.divisors.clear();
    scratch.divisors.extend((0..n).map(|i| match system.diag {
        Diag::Unit => Divisor::One,
        Diag::NonUnit => Divisor::new(read(i, i)),
    }));
}

/// Substitution: row i of X is (row i of B − Σ A(i, j)·row j of X) / A(i, i) over j < i.
#[inline(always)]
fn substitute<S: Simd, T: Scalar, L: Lanes<T>>(
    triangle: &[T],
    divisors: &[Divisor<T>],
    rows: &mut [L],
) {
    let n = rows.len();
    let step = if size_of::<L>() <= PAIRED_REGISTERS * size_of::<S::f64s>() { 2 } else { 1 };
    for (i, divisors) in (0..n).step_by(step).zip(divisors.chunks(step)) {
        let (known, rest) = rows.split_at_mut(i);
        let a = |row: usize| &triangle[row * n..row * n + i];
        if let ([first, second, ..], [divisor, next]) = (&mut *rest, divisors) {
            let (mut sum, mut next_sum) = (*first, *second);
            for ((&a, &next_a), x) in a(i).iter().zip(a(i + 1)).zip(&*known) {
                subtract_multiple::<S, T, L>(&mut sum, a, x);
                subtract_multiple::<S, T, L>(&mut next_sum, next_a, x);
            }
            divisor.divide(sum.as_mut());
            subtract_multiple::<S, T, L>(&mut next_sum, triangle[(i + 1) * n + i], &sum);
            next.divide(next_sum.as_mut());
            (*first, *second) = (sum, next_sum);
            continue;
        }
        let mut sum = rest[0];
        for (&a, x) in a(i).iter().zip(&*known) {
            subtract_multiple::<S, T, L>(&mut sum, a, x);
        }
        divisors[0].divide(sum.as_mut());
        rest[0] = sum;
    }
}

/// sum ← sum − a·x.
#[inline(always)]
fn subtract_multiple<S: Simd, T: Scalar, L: Lanes<T>>(sum: &mut L, a: T, x: &L) {
    for (sum, &x) in sum.as_mut().iter_mut().zip(x.as_ref()) {
        *sum = sub_mul::<S, T>(*sum, a, x);
    }
}

/// Brings a block of right-hand sides into the lanes; lanes beyond its width become zero.
#[inline(always)]
fn gather<T: Scalar, L: Lanes<T>>(block: MatRef<'_, T>, reversed: bool, rows: &mut [L]) {
    let (n, width) = (block.nrows(), block.ncols());
    if let Some(block) = block.transpose().try_as_col_major() {
        for (i, row) in rows.iter_mut().enumerate() {
            let source = block.col(if reversed { n - 1 - i } else { i }).as_slice();
            let row = row.as_mut();
            // Of a length that the compiler knows.
            if let Some(whole) = source.get(..row.len()) {
                row.copy_from_slice(whole);
            } else {
                row[..width].copy_from_slice(source);
                row[width..].fill(T::ZERO);
            }
        }
        return;
    }
    for row in rows.iter_mut() {
        row.as_mut()[width..].fill(T::ZERO);
    }
    let Some(block) = block.try_as_col_major() else {
        unreachable!("rows or columns of B are contiguous")
    };
    for k in 0..width {
        let source = block.col(k).as_slice();
        for (i, row) in rows.iter_mut().enumerate() {
            row.as_mut()[k] = source[if reversed { n - 1 - i } else { i }];
        }
    }
}

/// Brings the lanes back.
#[inline(always)]
fn scatter<T: Scalar, L: Lanes<T>>(rows: &[L], reversed: bool, mut block: MatMut<'_, T>) {
    let (n, width) = (block.nrows(), block.ncols());
    if let Some(mut block) = block.as_mut().transpose_mut().try_as_col_major_mut() {
        for (i, row) in rows.iter().enumerate() {
            let i = if reversed { n - 1 - i } else { i };
            let (target, row) = (block.as_mut().col_mut(i).as_slice_mut(), row.as_ref());
            if let Some(whole) = target.get_mut(..row.len()) {
                whole.copy_from_slice(row);
            } else {
                target.copy_from_slice(&row[..width]);
            }
        }
        return;
    }
    let Some(mut block) = block.try_as_col_major_mut() else {
        unreachable!("rows or columns of B are contiguous")
    };
    for k in 0..width {
        let target = block.as_mut().col_mut(k).as_slice_mut();
        for (i, row) in rows.iter().enumerate() {
            target[if reversed { n - 1 - i } else { i }] = row.as_ref()[k];
        }
    }
}
