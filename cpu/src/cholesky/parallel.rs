//! Cholesky factorisation of one large matrix by all threads.
//!
//! Rows are cut into strips. A task computes one square of a strip from what is known of that strip and
//! of the one that has the square's columns on its diagonal (left-looking, so that the products are
//! long); the last square before a strip's diagonal is one task with the diagonal block's
//! factorisation, which comes first (look-ahead).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Stages, run_tasks};

use super::blocked::{Scratch, factor};
use crate::blas::rank_k::subtract_hermitian_product;
use crate::blas::trsm::{solve, subtract_product};
use crate::blas::trsm_packed;
use crate::matrix::strips::strips;
use crate::matrix::transpose::MEANS;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::{Diag, Scalar, Threads, Uplo};

/// The rows of a strip up to and from which order. On two cores with AVX-512, f64, an upper triangle: n = 512 0.89 ms with
/// strips of 64 and 1.04 with 96, n = 1024 4.5 with 64, 4.6 with 96, 5.3 with 192, n = 2048 33 with 64, 32 with 96.
const FEW_ROWS: usize = 640;
const NARROW_STRIP: usize = 64;
const WIDE_STRIP: usize = 96;
const _: () = assert!(
    NARROW_STRIP.is_multiple_of(MEANS) && WIDE_STRIP.is_multiple_of(MEANS),
    "strips begin where means do"
);

/// The rows of a strip of a matrix of order n.
pub(crate) fn strip_rows(n: usize) -> usize {
    if n <= FEW_ROWS { NARROW_STRIP } else { WIDE_STRIP }
}

/// Factors the lower triangle of a view in strips of so many rows; `Err(j)` where row j has no positive
/// pivot.
pub(crate) fn factor_parallel<T: Scalar>(
    a: MatMut<'_, T>,
    width: usize,
    threads: &dyn Threads,
) -> Result<(), usize> {
    let columns = strips(a.transpose_mut(), width).into_iter();
    let unlocked = columns.map(|strip| strip.into_inner().unwrap_or_else(PoisonError::into_inner));
    let strips = unlocked.map(|strip| Strip::Filled(strip.transpose_mut()));
    run(strips, width, &|_, _| (), threads)
}

/// [`factor_parallel`] of a matrix of n rows that `fill` writes, called once for each strip with the number of its first
/// row and its rows.
pub(crate) fn factor_filled<T: Scalar>(
    a: &mut [T],
    n: usize,
    width: usize,
    fill: &Fill<'_, T>,
    threads: &dyn Threads,
) -> Result<(), usize> {
    run(a.chunks_mut(width * n).map(|rows| Strip::Empty { n, rows }), width, fill, threads)
}

/// What writes the rows from one of them on.
pub(crate) type Fill<'a, T> = dyn Fn(usize, &mut [T]) + Sync + 'a;

/// Factors the matrix of these strips.
fn run<'a, T: Scalar>(
    strips: impl Iterator<Item = Strip<'a, T>>,
    width: usize,
    fill: &Fill<'_, T>,
    threads: &dyn Threads,
) -> Result<(), usize> {
    let job = Job {
        width,
        // A strip is written by one task at a time and, once it is factored, read by many.
        strips: strips.map(RwLock::new).collect(),
        fill,
        failed: AtomicUsize::new(usize::MAX),
        arch: Arch::new(),
    };
    let count = job.strips.len();
    // Square `column` of strip `row`; the first task is the first diagonal block.
    let squares = (0..count).flat_map(|column| (column + 1..count).map(move |row| (column, row)));
    let tasks: Vec<_> = (count > 0).then_some((0, 0)).into_iter().chain(squares).collect();
    run_tasks(threads, count, tasks.len(), count, |task, stages| {
        let (column, row) = tasks[task];
        job.run(column, row, stages);
    });
    match job.failed.load(Ordering::SeqCst) {
        usize::MAX => Ok(()),
        row => Err(row),
    }
}

/// Some rows of a matrix.
enum Strip<'a, T> {
    /// The rows of a matrix of order n that are still to be filled.
    Empty {
        n: usize,
        rows: &'a mut [T],
    },
    Filled(MatMut<'a, T>),
}

impl<'a, T: Scalar> Strip<'a, T> {
    /// The numbers, once they are there; nothing before.
    fn numbers(&self) -> MatRef<'_, T> {
        match self {
            Strip::Filled(numbers) => numbers.as_ref(),
            Strip::Empty { .. } => MatRef::from_row_major_slice(&[], 0, 0),
        }
    }

    /// The numbers, which are filled in if they are not there.
    fn filled(&mut self, fill: impl FnOnce(&mut [T])) -> MatMut<'_, T> {
        if let Strip::Empty { n, rows } = self {
            let (n, rows) = (*n, std::mem::take(rows));
            fill(rows);
            let count = rows.len() / n;
            *self = Strip::Filled(MatMut::from_row_major_slice_mut(rows, count, n));
        }
        match self {
            Strip::Filled(numbers) => numbers.as_mut(),
            Strip::Empty { .. } => unreachable!("it has just been filled"),
        }
    }
}

struct Job<'a, 'f, T> {
    width: usize,
    strips: Vec<RwLock<Strip<'a, T>>>,
    fill: &'f Fill<'f, T>,
    /// The first row without a positive pivot.
    failed: AtomicUsize,
    arch: Arch,
}

impl<T: Scalar> Job<'_, '_, T> {
    /// A strip's stage counts its squares that are known, the diagonal one among them.
    ///
    /// After a failure the stages go on, so that nobody waits for ever, and the work is left out.
    fn run(&self, column: usize, row: usize, stages: &Stages<'_>) {
        if row > column {
            if !(stages.wait(row, column) && stages.wait(column, column + 1)) {
                return;
            }
            self.square(column, row);
            stages.advance(row);
        }
        if row == 0 || row == column + 1 {
            self.diagonal(row);
            stages.advance(row);
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst) != usize::MAX
    }

    /// A(row, column) ← (A(row, column) − Σ L(row, k)·L(column, k)ᴴ)·L(column, column)⁻ᴴ.
    fn square(&self, column: usize, row: usize) {
        let mut strip = self.strips[row].write().unwrap_or_else(PoisonError::into_inner);
        // Each is filled in time for its first square, after a failure, too.
        let strip = strip.filled(|rows| (self.fill)(row * self.width, rows));
        if self.has_failed() {
            return;
        }
        let above = self.strips[column].read().unwrap_or_else(PoisonError::into_inner);
        let first = column * self.width;
        let (known, rest) = strip.split_at_col_mut(first);
        let mut square = rest.subcols_mut(0, self.width);
        let (other, diagonal) = above.numbers().split_at_col(first);
        let other = (other.transpose(), Conj::Yes);
        subtract_product(square.as_mut(), (known.as_ref(), Conj::No), other);
        let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: Conj::Yes };
        let mut scratch = trsm_packed::Scratch::new(self.width, square.nrows());
        let diagonal = diagonal.subcols(0, self.width);
        solve(system, diagonal, square.transpose_mut(), &mut scratch, self.arch);
    }

    /// L(row, row)·L(row, row)ᴴ = A(row, row) − Σ L(row, k)·L(row, k)ᴴ.
    fn diagonal(&self, row: usize) {
        if self.has_failed() {
            return;
        }
        let mut strip = self.strips[row].write().unwrap_or_else(PoisonError::into_inner);
        let first = row * self.width;
        let strip = strip.filled(|rows| (self.fill)(first, rows));
        let (known, rest) = strip.split_at_col_mut(first);
        let order = rest.nrows();
        let mut block = rest.subcols_mut(0, order);
        let mut scratch = Scratch::of_large(order);
        subtract_hermitian_product(block.as_mut(), known.as_ref(), &mut scratch.block);
        if let Err(minor) = factor(block, &mut scratch, self.arch) {
            self.failed.fetch_min(first + minor, Ordering::SeqCst);
        }
    }
}
