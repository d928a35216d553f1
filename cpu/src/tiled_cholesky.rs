//! Cholesky factorisation of one large matrix by all threads.
//!
//! Rows are cut into strips. A task computes one square of a strip from what is known of that strip and
//! of the one that has the square's columns on its diagonal (left-looking, so that the products are
//! long); the last square before a strip's diagonal is one task with the diagonal block's
//! factorisation, which comes first (look-ahead).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use faer::{Conj, MatMut};
use lapax_core::{Stages, run_tasks};
use pulp::Arch;

use crate::cholesky::{Scratch, factor, subtract_hermitian_product};
use crate::triangular::{System, solve, strips, subtract_product};
use crate::{Diag, Scalar, Threads, Uplo, substitution};

/// Factors the lower triangle of a view in strips of so many rows; `Err(j)` where row j has no positive
/// pivot.
pub(crate) fn factor_tiled<T: Scalar>(
    a: MatMut<'_, T>,
    width: usize,
    threads: &dyn Threads,
) -> Result<(), usize> {
    let columns = strips(a.transpose_mut(), width).into_iter();
    // A strip is written by one task at a time and, once it is factored, read by many.
    let unlocked = columns.map(|strip| strip.into_inner().unwrap_or_else(PoisonError::into_inner));
    let job = Job {
        width,
        strips: unlocked.map(|strip| RwLock::new(strip.transpose_mut())).collect(),
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

struct Job<'a, T> {
    width: usize,
    strips: Vec<RwLock<MatMut<'a, T>>>,
    /// The first row without a positive pivot.
    failed: AtomicUsize,
    arch: Arch,
}

impl<T: Scalar> Job<'_, T> {
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
        if self.has_failed() {
            return;
        }
        let above = self.strips[column].read().unwrap_or_else(PoisonError::into_inner);
        let mut strip = self.strips[row].write().unwrap_or_else(PoisonError::into_inner);
        let first = column * self.width;
        let (known, rest) = strip.as_mut().split_at_col_mut(first);
        let mut square = rest.subcols_mut(0, self.width);
        let (other, diagonal) = above.as_ref().split_at_col(first);
        let other = (other.transpose(), Conj::Yes);
        subtract_product(square.as_mut(), (known.as_ref(), Conj::No), other);
        let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: Conj::Yes };
        let mut scratch = substitution::Scratch::new(self.width, square.nrows());
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
        let (known, rest) = strip.as_mut().split_at_col_mut(first);
        let order = rest.nrows();
        let mut block = rest.subcols_mut(0, order);
        let mut scratch = Scratch::of_large(order);
        subtract_hermitian_product(block.as_mut(), known.as_ref(), &mut scratch.block);
        if let Err(minor) = factor(block, &mut scratch, self.arch) {
            self.failed.fetch_min(first + minor, Ordering::SeqCst);
        }
    }
}
