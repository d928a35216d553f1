//! QR factorisation with column pivoting of one large matrix by all threads.
//!
//! The algorithm is that of `pivoted_panel`, on strips of columns: one task finds a pivot column and its
//! reflector, and then one for each strip reads and updates the columns there. Where the strips are cut depends on
//! the sizes alone, so that the number of threads changes no bit.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use lapax_core::run_tasks;

use super::blocked::factor_free;
use super::free::{Free, Norm, Norms, largest, move_fixed};
use super::panel::{F_ROW, Panel, Product, Reflect, Strip};
use crate::blas::householder::Reflectors;
use crate::matrix::layout::Factor;
use crate::parallel::affinity::Claims;
use crate::parallel::reduction::GROUPS;
use crate::qr::blocked::WIDTH;
use crate::qr::parallel::{factor_parallel, multiply_parallel};
use crate::simd::arch::Arch;
use crate::{Scalar, Side, Threads};

/// The columns of a strip, a multiple of those that a product reads together. On two cores with AVX-512, n = 512, of 32,
/// 64 and 96, ms: f32 7.0, 6.5 and 6.4, f64 11.2, 10.3 and 10.7, c128 24.7, 24.1 and 26.3.
const STRIP: usize = 64;
/// The least reflectors that one thread makes at the end.
const LEFT: usize = 64;

/// How far the job has come: columns factored, and tasks of strips done.
const COLUMNS: usize = 0;
const STRIPS: usize = 1;

/// As [`crate::qr::pivoted::blocked::factor_pivoted`], with the same bits on any number of threads.
pub(crate) fn factor_pivoted_parallel<T: Scalar>(
    a: &mut [T],
    m: usize,
    jpvt: &mut [i32],
    tau: &mut [T],
    threads: &dyn Threads,
    arch: Arch,
) {
    let n = jpvt.len();
    let (mut norms, mut f) = (vec![Norm::ZERO; n], vec![T::ZERO; n * F_ROW]);
    let mut panel = Panel::new(m);
    let fixed = move_fixed(a, m, jpvt).min(tau.len());
    let all = Free { a, m, row: 0, jpvt, norms: &mut norms, tau };
    let (left, tau, mut free) = all.split(fixed);
    if fixed > 0 {
        factor_parallel(left, m, tau, threads);
        let q = Reflectors { a: left, r: m, tau, factor: Factor::Adjoint };
        multiply_parallel(Side::Left, q, free.a, m, threads);
    }
    let columns = free.tau.len().saturating_sub(LEFT) / WIDTH * WIDTH;
    let f = &mut f[..free.norms.len() * F_ROW];
    share(&mut free, columns, &mut panel, &mut *f, threads, arch);
    let (_, _, free) = free.split(columns);
    factor_free(free, &mut panel, f, arch);
}

enum Task {
    /// Of one strip, whichever.
    Norms,
    /// After so many tasks of strips.
    Column { column: usize, strips: usize },
    /// Of one strip, whichever.
    Product { column: usize },
}

/// The first strip that has columns right of one.
fn first_strip(column: usize) -> usize {
    (column + 1) / STRIP
}

/// The tasks in an order in which they can be done; some column is right of all that are factored.
fn tasks(columns: usize, strips: usize) -> Vec<Task> {
    let mut tasks: Vec<_> = (0..strips).map(|_| Task::Norms).collect();
    let mut done = strips;
    for column in 0..columns {
        tasks.push(Task::Column { column, strips: done });
        let first = first_strip(column);
        tasks.extend((first..strips).map(|_| Task::Product { column }));
        done += strips - first;
    }
    tasks
}

/// Computes the norms of all free columns, and factors so many.
fn share<T: Scalar>(
    free: &mut Free<'_, T>,
    columns: usize,
    panel: &mut Panel<T>,
    f: &mut [T],
    threads: &dyn Threads,
    arch: Arch,
) {
    let Free { a, m, row, jpvt, norms, tau } = free;
    let columns_of = a.chunks_mut(*m * STRIP).zip(f.chunks_mut(STRIP * F_ROW));
    let facts_of = norms.chunks_mut(STRIP).zip(jpvt.chunks_mut(STRIP));
    let strips = columns_of
        .zip(facts_of)
        .map(|((a, f), (norms, jpvt))| Mutex::new(Strip::new(a, f, norms, jpvt)));
    let job = Job {
        m: *m,
        row: *row,
        strips: strips.collect(),
        shared: RwLock::new(Shared { panel, tau }),
        arch,
    };
    let count = job.strips.len();
    let (tasks, claims) = (tasks(columns, count), Claims::new(count));
    let take = |first, step| claims.take(first..count, step, |strip| claims.is_own(strip));
    run_tasks(threads, GROUPS, tasks.len(), 2, |task, stages| match tasks[task] {
        Task::Norms => {
            job.norms(take(0, 0));
            stages.advance(STRIPS);
        }
        Task::Column { column, strips } => {
            if stages.wait(STRIPS, strips) {
                job.column(column);
                stages.advance(COLUMNS);
            }
        }
        Task::Product { column } => {
            if stages.wait(COLUMNS, column + 1) {
                job.product(column, take(first_strip(column), column + 1));
                stages.advance(STRIPS);
            }
        }
    });
}

/// What columns find, and products read.
struct Shared<'a, T: Scalar> {
    panel: &'a mut Panel<T>,
    tau: &'a mut [T],
}

struct Job<'a, T: Scalar> {
    m: usize,
    /// The row of R that the first column makes.
    row: usize,
    strips: Vec<Mutex<Strip<'a, T>>>,
    shared: RwLock<Shared<'a, T>>,
    arch: Arch,
}

impl<'a, T: Scalar> Job<'a, T> {
    fn strip(&self, strip: usize) -> MutexGuard<'_, Strip<'a, T>> {
        self.strips[strip].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn norms(&self, strip: usize) {
        let mut strip = self.strip(strip);
        let Strip { a, norms, largest: first, .. } = &mut *strip;
        self.arch.dispatch(Norms { a, m: self.m, row: self.row, norms });
        *first = largest(norms);
    }

    /// The strip, and the column in it, of the first largest norm in the strips from `first` on.
    fn pivot(&self, first: usize) -> (usize, usize) {
        let mut pivot = (first, 0);
        let mut norm = None;
        for number in first..self.strips.len() {
            let strip = self.strip(number);
            let next = strip.norms[strip.largest];
            if norm.is_none_or(|norm| next.exceeds(&norm)) {
                (pivot, norm) = ((number, strip.largest), Some(next));
            }
        }
        pivot
    }

    /// The pivot comes to its place, and its reflector to the panel.
    fn column(&self, column: usize) {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let Shared { panel, tau } = &mut *shared;
        if column.is_multiple_of(WIDTH) {
            panel.begin(self.row + column);
        }
        let (own, place) = (column / STRIP, column % STRIP);
        let (other, pivot) = self.pivot(own);
        self.strip(other).load(pivot, &mut panel.pivot);
        self.strip(own).load(place, &mut panel.moved);
        self.strip(other).store(pivot, &panel.moved);
        tau[column] = self.arch.dispatch(Reflect { panel: &mut **panel });
        self.strip(own).store(place, &panel.pivot);
    }

    /// What a column's reflector means to a strip, which the last of a panel updates.
    fn product(&self, column: usize, strip: usize) {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let first = (column + 1).saturating_sub(strip * STRIP);
        let mut strip = self.strip(strip);
        let panel = &*shared.panel;
        self.arch.dispatch(Product { panel, strip: &mut *strip, first });
        if (column + 1).is_multiple_of(WIDTH) {
            strip.update(panel, first);
        }
    }
}
