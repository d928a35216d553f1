//! Transposes in memory, square by square of registers.
//!
//! Numbers of 8 bytes are moved as f64, whatever they are; those of 16 bytes one by one, since a register
//! holds few of them. On one core of Zen 4 the three transposes of a QR of order 128 took 95 us number by
//! number and take 23 us, f64.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use lapax_core::{Items, ItemsMut, for_each, run_each};
use pulp::{Simd, WithSimd};

use crate::parallel::cost::nanoseconds;
use crate::simd;
use crate::simd::arch::Arch;
use crate::simd::cache_line::LINE;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::MAX_LANES;
use crate::{Error, InOut, Scalar, Threads};

/// The transposes of n × n matrices, or in their place.
pub(crate) fn turn<T: Scalar>(
    batch: usize,
    n: usize,
    InOut { src, dst }: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    match src {
        Some(src) => transpose(batch, (n, n), src, dst, threads),
        None => transpose_in_place(batch, n, dst, threads),
    }
}

/// Transposes each n × n matrix of a batch.
pub(crate) fn transpose_in_place<T: Pod + Send>(
    batch: usize,
    n: usize,
    a: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    /// Elements that one core moves, by estimate.
    const PER_NANOSECOND: usize = 2;
    let matrices = ItemsMut::new("a", batch, &[n, n], a)?;
    let time = n.saturating_mul(n) / PER_NANOSECOND;
    for_each(batch, (matrices,), time, threads, || (), |(), (a,)| transposed(a, n));
    Ok(())
}

/// Aᴴ in place of A, n × n.
pub(crate) fn adjoint<T: Scalar>(a: &mut [T], n: usize) {
    transposed(a, n);
    if T::IS_COMPLEX {
        a.iter_mut().for_each(|x| *x = x.conj());
    }
}

/// Writes an m × n row-major matrix column-major, by all threads.
pub(crate) fn transpose_one<T: Scalar>(
    (m, n): (usize, usize),
    src: &[T],
    dst: &mut [T],
    threads: &dyn Threads,
) {
    /// The columns that a thread writes at a time.
    const TOGETHER: usize = 64;
    let parts: Vec<_> = dst.chunks_mut(TOGETHER * m).map(Mutex::new).collect();
    run_each(
        threads,
        parts.len(),
        || (),
        |(), part| {
            let mut columns = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            transpose_columns((m, n), src, part * TOGETHER, &mut columns);
        },
    );
}

/// Writes each m × n row-major matrix of `src` column-major to `dst`.
pub(crate) fn transpose<T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    src: &[T],
    dst: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    /// The bytes from which threads share a matrix.
    const LARGE: usize = 1 << 20;
    let operands =
        (Items::new("a", batch, &[m, n], src)?, ItemsMut::new("a", batch, &[m, n], dst)?);
    if batch == 1 && size_of_val(src) >= LARGE {
        transpose_one((m, n), src, dst, threads);
        return Ok(());
    }
    let elements = nanoseconds::<T>(m.saturating_mul(n));
    for_each(
        batch,
        operands,
        elements,
        threads,
        || (),
        |(), (src, dst)| {
            transpose_columns((m, n), src, 0, dst);
        },
    );
    Ok(())
}

/// The rows that [`mean_with_transpose`] writes a multiple of, and begins at one of: no register holds more numbers.
pub(crate) const MEANS: usize = MAX_LANES;
/// The order of the blocks of numbers that are moved one by one.
const BLOCK: usize = 16;

/// Writes columns of an m × n row-major matrix, from one of them on, column-major.
pub(crate) fn transpose_columns<T: Pod>(
    (m, n): (usize, usize),
    src: &[T],
    first: usize,
    dst: &mut [T],
) {
    if dst.is_empty() {
        return;
    }
    match size_of::<T>() {
        4 => columns_as::<T, f32>((m, n), src, first, dst),
        8 => columns_as::<T, f64>((m, n), src, first, dst),
        _ => each_column((m, n), src, first, 0..m, dst),
    }
}

/// Aᵀ in place of A, n × n.
pub(crate) fn transposed<T: Pod>(a: &mut [T], n: usize) {
    match size_of::<T>() {
        4 => square_as::<T, f32>(a, n),
        8 => square_as::<T, f64>(a, n),
        _ => each_pair(a, n, 0),
    }
}

/// Writes rows of (A + Aᵀ) / 2, for n × n A by rows, from row `first` on, a multiple of [`MEANS`]: those of whole
/// squares, as many as it returns. Each goes to its end if `whole` says so, or else up to the diagonal, with some of
/// what is behind it.
///
/// Number by number it took an eighth of `cholesky` of 256 in f64.
pub(crate) fn mean_with_transpose<R: LaneReal>(
    whole: bool,
    a: &[R],
    n: usize,
    first: usize,
    rows: &mut [R],
) -> usize {
    let count = (n.min(first + rows.len() / n) - first) / MEANS * MEANS;
    Arch::new().dispatch(Means { whole, a, n, first, rows: &mut rows[..count * n] });
    count
}

/// [`transpose_columns`] of numbers as large as R.
fn columns_as<T: Pod, R: LaneReal>((m, n): (usize, usize), src: &[T], first: usize, dst: &mut [T]) {
    // A complex number need not lie where a real one as large may.
    if let Ok(src) = bytemuck::try_cast_slice(src)
        && let Ok(dst) = bytemuck::try_cast_slice_mut(dst)
    {
        return Arch::new().dispatch(Columns::<R> { m, n, src, first, dst });
    }
    each_column((m, n), src, first, 0..m, dst);
}

/// [`transposed`] of numbers as large as R.
fn square_as<T: Pod, R: LaneReal>(a: &mut [T], n: usize) {
    if let Ok(a) = bytemuck::try_cast_slice_mut::<T, R>(a) {
        return Arch::new().dispatch(Square { a, n });
    }
    each_pair(a, n, 0);
}

/// [`transpose_columns`], number by number, of some of the rows.
fn each_column<T: Copy>(
    (m, n): (usize, usize),
    src: &[T],
    first: usize,
    rows: Range<usize>,
    dst: &mut [T],
) {
    let numbers = &src[rows.start * n..rows.end * n];
    for (i, rows) in (rows.start..).step_by(BLOCK).zip(numbers.chunks(BLOCK * n)) {
        for (j, column) in (first..).zip(dst.chunks_exact_mut(m)) {
            for (x, row) in column[i..].iter_mut().zip(rows.chunks_exact(n)) {
                *x = row[j];
            }
        }
    }
}

/// [`transposed`], number by number, of the rows and columns from `from` on.
fn each_pair<T>(a: &mut [T], n: usize, from: usize) {
    for first in (from..n).step_by(BLOCK) {
        for top in (0..=first).step_by(BLOCK) {
            for j in first..(first + BLOCK).min(n) {
                for i in top..(top + BLOCK).min(j) {
                    a.swap(j * n + i, i * n + j);
                }
            }
        }
    }
}

struct Columns<'a, R> {
    m: usize,
    n: usize,
    src: &'a [R],
    first: usize,
    dst: &'a mut [R],
}

impl<R: LaneReal> WithSimd for Columns<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { m, n, src, first, dst } = self;
        let (lanes, line) = (R::lanes::<S>(), LINE / size_of::<R>());
        let rows = m - m % line;
        if lanes == 1 || rows == 0 {
            return each_column((m, n), src, first, 0..m, dst);
        }
        for i in (0..rows).step_by(line) {
            let mut columns = dst.chunks_exact_mut(lanes * m);
            for (j, columns) in (first..).step_by(lanes).zip(&mut columns) {
                for i in (i..i + line).step_by(lanes) {
                    let square = &mut read::<S, R>(simd, &src[i * n + j..], n)[..lanes];
                    simd::transpose::transpose::<S, R, _>(simd, square);
                    write::<S, R>(square, &mut columns[i..], m);
                }
            }
        }
        each_column((m, n), src, first, rows..m, dst);
        let done = dst.len() / m / lanes * lanes;
        each_column((m, n), src, first + done, 0..rows, &mut dst[done * m..]);
    }
}

struct Square<'a, R> {
    a: &'a mut [R],
    n: usize,
}

impl<R: LaneReal> WithSimd for Square<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, n } = self;
        let lanes = R::lanes::<S>();
        let whole = if lanes == 1 { 0 } else { n - n % lanes };
        for i in (0..whole).step_by(lanes) {
            for j in (0..=i).step_by(lanes) {
                let [lower, upper] = [i * n + j, j * n + i];
                let mut squares = [lower, upper].map(|at| read::<S, R>(simd, &a[at..], n));
                for (square, at) in squares.iter_mut().zip([upper, lower]) {
                    let square = &mut square[..lanes];
                    simd::transpose::transpose::<S, R, _>(simd, square);
                    write::<S, R>(square, &mut a[at..], n);
                }
            }
        }
        each_pair(a, n, whole);
    }
}

struct Means<'a, R> {
    whole: bool,
    a: &'a [R],
    n: usize,
    first: usize,
    rows: &'a mut [R],
}

impl<R: LaneReal> WithSimd for Means<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { whole, a, n, first, rows } = self;
        let lanes = R::lanes::<S>();
        let half = R::splat(simd, R::from_f64(0.5));
        for (i, rows) in (first..).step_by(lanes).zip(rows.chunks_exact_mut(lanes * n)) {
            let end = if whole { n - n % lanes } else { i + 1 };
            for j in (0..end).step_by(lanes) {
                let mut square = read::<S, R>(simd, &a[i * n + j..], n);
                let other = &mut read::<S, R>(simd, &a[j * n + i..], n)[..lanes];
                simd::transpose::transpose::<S, R, _>(simd, other);
                for (x, y) in square.iter_mut().zip(other) {
                    let sum = <R as LaneReal>::add(simd, *x, *y);
                    *x = <R as LaneReal>::mul(simd, sum, half);
                }
                write::<S, R>(&square[..lanes], &mut rows[j..], n);
            }
            if whole {
                for (i, row) in (i..).zip(rows.chunks_exact_mut(n)) {
                    for j in end..n {
                        row[j] = (a[i * n + j] + a[j * n + i]) * R::from_f64(0.5);
                    }
                }
            }
        }
    }
}

/// The registers at the start of rows of so many numbers.
#[inline(always)]
fn read<S: Simd, R: LaneReal>(simd: S, rows: &[R], stride: usize) -> [R::Reg<S>; MAX_LANES] {
    let lanes = R::lanes::<S>();
    let mut square = [R::splat(simd, R::ZERO); MAX_LANES];
    for (row, reg) in square[..lanes].iter_mut().enumerate() {
        *reg = R::register::<S>(&rows[row * stride..row * stride + lanes]);
    }
    square
}

/// Writes registers to the start of rows of so many numbers.
#[inline(always)]
fn write<S: Simd, R: LaneReal>(square: &[R::Reg<S>], rows: &mut [R], stride: usize) {
    for (row, reg) in square.iter().enumerate() {
        R::write_register::<S>(*reg, &mut rows[row * stride..row * stride + square.len()]);
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use super::{MEANS, mean_with_transpose, transpose_columns, transposed};
    use crate::Scalar;
    use crate::simd::lane_real::LaneReal;
    use crate::testing::levels::random;

    for_each_scalar!(columns, in_place, unaligned; means);

    fn means<R: LaneReal + Scalar>() {
        for n in [MEANS, 2 * MEANS + 3, 70] {
            let a = random::<R>(n * n);
            for (first, count) in [(0, n), (MEANS, n - MEANS), (0, MEANS - 1)] {
                let mut rows = vec![R::ZERO; count * n];
                for whole in [false, true] {
                    let done = mean_with_transpose(whole, &a, n, first, &mut rows);
                    assert_eq!(done, count / MEANS * MEANS);
                    for (at, &x) in rows.iter().enumerate().take(done * n) {
                        let (i, j) = (first + at / n, at % n);
                        let mean = (a[i * n + j] + a[j * n + i]) / R::from_f64(2.0);
                        assert!(!whole && j > i || x == mean, "{n}: {i}, {j}");
                    }
                }
            }
        }
    }

    /// Whole squares of registers, and what is left of them on either side.
    const SIZES: [(usize, usize); 8] =
        [(1, 1), (3, 40), (16, 16), (33, 17), (64, 48), (70, 130), (128, 5), (130, 71)];

    fn columns<T: Scalar>() {
        for (m, n) in SIZES {
            let a = random::<T>(m * n);
            for (first, count) in [(0, n), (n / 2, n - n / 2), (n - 1, 1), (n, 0)] {
                let mut to = vec![T::ZERO; count * m];
                transpose_columns((m, n), &a, first, &mut to);
                let expected = (first..first + count).flat_map(|j| (0..m).map(move |i| (i, j)));
                let expected: Vec<T> = expected.map(|(i, j)| a[i * n + j]).collect();
                assert_eq!(to, expected, "{m} × {n}, {count} from {first}");
            }
        }
    }

    fn in_place<T: Scalar>() {
        for n in [0, 1, 2, 15, 16, 17, 32, 40, 67, 128] {
            let before = random::<T>(n * n);
            let mut a = before.clone();
            transposed(&mut a, n);
            for (at, x) in a.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                assert_eq!(*x, before[j * n + i], "n = {n}: {i}, {j}");
            }
        }
    }

    /// Complex numbers where a real one as large may not lie.
    fn unaligned<T: Scalar>() {
        let (m, n) = (33, 40);
        let mut numbers = random::<T>(m * n + 1);
        let reals: &mut [T::Real] = bytemuck::cast_slice_mut(&mut numbers);
        let length = m * n * size_of::<T>() / size_of::<T::Real>();
        let a: &mut [T] = bytemuck::cast_slice_mut(&mut reals[1..=length]);
        let mut to = vec![T::ZERO; m * n];
        transpose_columns((m, n), a, 0, &mut to);
        assert!(to.iter().enumerate().all(|(at, x)| *x == a[at % m * n + at / m]));
        let a = &mut a[..m * m];
        let before = a.to_vec();
        transposed(a, m);
        assert!(a.iter().enumerate().all(|(at, x)| *x == before[at % m * m + at / m]));
    }
}
