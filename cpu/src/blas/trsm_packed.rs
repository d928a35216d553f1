//! The base case of triangular solves: substitution in a packed block of right-hand sides.
//!
//! The triangle and the right-hand sides are packed into scratch, so one loop serves every triangle,
//! transposition and layout: right-hand sides lie side by side in the lanes of vector registers.

use std::ops::Range;

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Diag, Scalar as _, Uplo};
use lapax_cpu_macros::apart;
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::simd::lane_real::LaneReal as _;
use crate::simd::loops::{Divisor, sub_mul};
use crate::simd::packed::Packed;
use crate::simd::transpose::transpose;
use crate::simd::vector::MAX_LANES;

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
    fn with_simd<S: Simd>(self, simd: S) {
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
                1 => solve.by_lanes(simd, &mut single_rows[..n]),
                ..=NARROW => solve.by_lanes(simd, &mut narrow_rows[..n]),
                _ => solve.by_lanes(simd, &mut rows[..n]),
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
    fn by_lanes<S: Simd, L: Lanes<T>>(self, simd: S, rows: &mut [L]) {
        gather(simd, self.block.as_ref(), self.reversed, rows);
        substitute::<S, T, L>(self.triangle, self.divisors, rows);
        scatter(simd, rows, self.reversed, self.block);
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
fn gather<S: Simd, T: Scalar, L: Lanes<T>>(
    simd: S,
    block: MatRef<'_, T>,
    reversed: bool,
    rows: &mut [L],
) {
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
    gather_columns(simd, block, reversed, rows);
}

/// [`gather`] of columns that are contiguous.
#[apart]
fn gather_columns<S: Simd, T: Scalar, L: Lanes<T>>(
    simd: S,
    block: MatRef<'_, T>,
    reversed: bool,
    rows: &mut [L],
) {
    let (n, width) = (block.nrows(), block.ncols());
    let Some(block) = block.try_as_col_major() else {
        unreachable!("rows or columns of B are contiguous")
    };
    for row in rows.iter_mut() {
        row.as_mut()[width..].fill(T::ZERO);
    }
    let lanes = T::Real::lanes::<S>();
    let place = |i| if reversed { n - 1 - i } else { i };
    let whole = squares::<S, T, L>((n, width), rows);
    for k in (0..whole.1).step_by(lanes) {
        for i in (0..whole.0).step_by(lanes) {
            let square = transposed(simd, |at| &block.col(k + at).as_slice()[i..]);
            for (at, reg) in square[..lanes].iter().enumerate() {
                let row = &mut rows[place(i + at)].as_mut()[k..];
                T::Real::write_register::<S>(*reg, bytemuck::cast_slice_mut(row));
            }
        }
    }
    for k in 0..width {
        let source = block.col(k).as_slice();
        for i in rest(whole, k, n) {
            rows[place(i)].as_mut()[k] = source[i];
        }
    }
}

/// Brings the lanes back.
#[inline(always)]
fn scatter<S: Simd, T: Scalar, L: Lanes<T>>(
    simd: S,
    rows: &[L],
    reversed: bool,
    mut block: MatMut<'_, T>,
) {
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
    scatter_columns(simd, rows, reversed, block);
}

/// [`scatter`] to columns that are contiguous.
#[apart]
fn scatter_columns<S: Simd, T: Scalar, L: Lanes<T>>(
    simd: S,
    rows: &[L],
    reversed: bool,
    block: MatMut<'_, T>,
) {
    let (n, width) = (block.nrows(), block.ncols());
    let Some(mut block) = block.try_as_col_major_mut() else {
        unreachable!("rows or columns of B are contiguous")
    };
    let lanes = T::Real::lanes::<S>();
    let place = |i| if reversed { n - 1 - i } else { i };
    let whole = squares::<S, T, L>((n, width), rows);
    for k in (0..whole.1).step_by(lanes) {
        for i in (0..whole.0).step_by(lanes) {
            let square = transposed(simd, |at| &rows[place(i + at)].as_ref()[k..]);
            for (at, reg) in square[..lanes].iter().enumerate() {
                let column = &mut block.as_mut().col_mut(k + at).as_slice_mut()[i..];
                T::Real::write_register::<S>(*reg, bytemuck::cast_slice_mut(column));
            }
        }
    }
    for k in 0..width {
        let target = block.as_mut().col_mut(k).as_slice_mut();
        for i in rest(whole, k, n) {
            target[i] = rows[place(i)].as_ref()[k];
        }
    }
}

/// The rows and the columns of a block of right-hand sides that lie across the lanes which go through squares of
/// registers. On one core with AVX-512, number by number, as the rest and complex ones go, and so, us:
/// `solve_triangular` of the transposed matrix of 256 in f64 406 and 372, f32 227 and 205, `cholesky` of 256 in f64
/// 291 and 269, f32 157 and 143.
#[inline(always)]
fn squares<S: Simd, T: Scalar, L: Lanes<T>>(
    (n, width): (usize, usize),
    rows: &[L],
) -> (usize, usize) {
    let lanes = T::Real::lanes::<S>();
    let length = rows.first().map_or(0, |row| row.as_ref().len());
    if T::IS_COMPLEX || lanes == 1 || length < lanes {
        return (0, 0);
    }
    (n - n % lanes, width - width % lanes)
}

/// The rows of column k that are in no square.
#[inline(always)]
fn rest((m, n): (usize, usize), k: usize, rows: usize) -> Range<usize> {
    if k < n { m..rows } else { 0..rows }
}

/// A register for each line of a square, transposed.
#[inline(always)]
fn transposed<'a, S: Simd, T: Scalar>(
    simd: S,
    line: impl Fn(usize) -> &'a [T],
) -> [<T::Real as Packed>::Reg<S>; MAX_LANES] {
    let lanes = T::Real::lanes::<S>();
    let mut square = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
    for (at, reg) in square[..lanes].iter_mut().enumerate() {
        *reg = T::Real::register::<S>(&bytemuck::cast_slice(line(at))[..lanes]);
    }
    transpose::<S, T::Real, _>(simd, &mut square[..lanes]);
    square
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use faer::{Conj, MatMut, MatRef};
    use lapax_core::{Diag, Uplo};

    use super::{Scratch, Solve};
    use crate::matrix::triangle::System;
    use crate::simd::arch::Arch as Level;
    use crate::testing::levels::random;
    use crate::{Real as _, Scalar};

    for_each_scalar!(layouts);

    /// Right-hand sides by columns have the bits that they have by rows, which leave a small residual.
    fn layouts<T: Scalar>() {
        let sizes = [(1, 3), (7, 16), (16, 33), (21, 40), (32, 64)];
        for (uplo, (n, nrhs), level) in [Uplo::Lower, Uplo::Upper]
            .into_iter()
            .flat_map(|uplo| sizes.map(|size| (uplo, size)))
            .flat_map(|(uplo, size)| Level::available().map(move |level| (uplo, size, level)))
        {
            let what = format!("{uplo:?}, {n} with {nrhs}, {level:?}");
            let mut a = random::<T>(n * n);
            a.iter_mut().step_by(n + 1).for_each(|x| *x += T::from_real(T::Real::from_f64(4.0)));
            let a = MatRef::from_column_major_slice(&a, n, n);
            let system = System { uplo, diag: Diag::NonUnit, conj: Conj::No };
            let b = random::<T>(n * nrhs);
            let by_columns: Vec<T> = (0..n * nrhs).map(|at| b[at % n * nrhs + at / n]).collect();
            let mut found = [b.clone(), by_columns];
            let [rows, columns] = &mut found;
            let rows = MatMut::from_row_major_slice_mut(rows, n, nrhs);
            let columns = MatMut::from_column_major_slice_mut(columns, n, nrhs);
            for b in [rows, columns] {
                let mut scratch = Scratch::new(n, nrhs);
                level.dispatch(Solve { system, a, b, scratch: &mut scratch });
            }
            let x = |i: usize, k: usize| found[0][i * nrhs + k];
            for (i, k) in (0..n).flat_map(|i| (0..nrhs).map(move |k| (i, k))) {
                let known = if uplo == Uplo::Lower { 0..i + 1 } else { i..n };
                assert_eq!(x(i, k), found[1][k * n + i], "{what}: {i}, {k}");
                let (mut rest, mut size) = (b[i * nrhs + k], 0.0);
                for j in known {
                    let product = a[(i, j)] * x(j, k);
                    rest -= product;
                    size += product.abs().to_f64();
                }
                let limit = T::Real::EPSILON.to_f64() * 100.0 * size;
                assert!(rest.abs().to_f64() <= limit, "{what}: {i}, {k}");
            }
        }
    }
}
