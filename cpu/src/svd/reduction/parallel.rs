//! Reduction of one large matrix to bidiagonal form by all threads.
//!
//! The algorithm is that of `bidiagonalize`; the sums of groups of columns are added in their order.

use std::sync::{Mutex, PoisonError, RwLock};

use pulp::{Simd, WithSimd};

use super::Bidiagonal;
use super::blocked::{Known, PANEL, Scratch, bidiagonalize, bidiagonalize_rest, both_products};
use crate::blas::fused::add_product;
use crate::parallel::reduction;
use crate::parallel::reduction::{GROUPS, LEFT, Panels, Reduction, group_columns, groups};
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The order from which a matrix is shared. On two cores with AVX-512 (Zen 5), ms, f64 and f32, `svd` with threads
/// that are started for it, against one for this step: n = 384 10.4 and 11.4, 6.1 and 7.0, 512 25 and 27, 11.4 and
/// 13.5, 768 60 and 72, 30 and 39, 1024 126 and 161, 73 and 98.
pub(crate) const PARALLEL_ORDER: usize = 384;
/// The columns of a strip, a multiple of those of a panel.
const STRIP: usize = 4 * PANEL;

/// As [`crate::svd::reduction::blocked::bidiagonalize`], with the same bits on any number of threads.
pub(crate) fn bidiagonalize_parallel<T: Scalar>(
    a: &mut [T],
    v: &mut [T],
    b: &mut Bidiagonal<'_, T>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    let n = b.d.len();
    let panels = n.saturating_sub(LEFT) / PANEL;
    if panels == 0 {
        return bidiagonalize(a, v, b, scratch, arch);
    }
    let m = a.len() / n;
    let job = Job {
        m,
        n,
        strips: a.chunks_mut(m * STRIP).map(RwLock::new).collect(),
        groups: (0..GROUPS).map(|_| Mutex::new(Group::new(m, n))).collect(),
        columns: RwLock::new(Columns::new(&mut *b, &mut *v, m)),
        arch,
    };
    reduction::run(&job, Panels { columns: n, order: n, panels }, threads);
    drop(job);
    bidiagonalize_rest(a, panels * PANEL, v, b, scratch, arch);
}

/// What the columns of a panel share.
struct Columns<'a, 'b, T: Scalar> {
    b: &'a mut Bidiagonal<'b, T>,
    /// The right reflectors' vectors, of the whole matrix.
    v: &'a mut [T],
    /// The left reflectors' vectors, those of the panel alone, and what goes with these and with V.
    u: Vec<T>,
    x: Vec<T>,
    y: Vec<T>,
    /// The adjoint of a row.
    row: Vec<T>,
    /// A column of the matrix.
    next: Vec<T>,
}

impl<'a, 'b, T: Scalar> Columns<'a, 'b, T> {
    /// For a matrix of m rows.
    fn new(b: &'a mut Bidiagonal<'b, T>, v: &'a mut [T], m: usize) -> Self {
        let (n, zeros) = (b.d.len(), |length| vec![T::ZERO; length]);
        let [u, x] = [m * PANEL; 2].map(zeros);
        Self { b, v, u, x, y: zeros(n * PANEL), row: zeros(n), next: zeros(m) }
    }
}

/// What a group of columns adds: its part of y and of the row, and to x.
struct Group<T> {
    y: Vec<T>,
    row: Vec<T>,
    x: Vec<T>,
}

impl<T: Scalar> Group<T> {
    /// For an m × n matrix.
    fn new(m: usize, n: usize) -> Self {
        Self { y: vec![T::ZERO; n], row: vec![T::ZERO; n], x: vec![T::ZERO; m] }
    }
}

struct Job<'a, 'b, T: Scalar> {
    m: usize,
    n: usize,
    strips: Vec<RwLock<&'a mut [T]>>,
    groups: Vec<Mutex<Group<T>>>,
    columns: RwLock<Columns<'a, 'b, T>>,
    arch: Arch,
}

impl<T: Scalar> Reduction for Job<'_, '_, T> {
    const PANEL: usize = PANEL;
    const STRIP: usize = STRIP;

    fn column(&self, panel: usize, column: usize) {
        self.arch.dispatch(Column { job: self, panel, column });
    }

    fn product(&self, panel: usize, column: usize, group: usize) {
        self.arch.dispatch(Product { job: self, panel, column, group });
    }

    fn update(&self, panel: usize, strip: usize) {
        let Self { m, n, .. } = *self;
        let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
        let Columns { v, u, x, y, .. } = &*columns;
        let (first, next) = (panel * PANEL, (panel + 1) * PANEL);
        let known = Known { u, y, x, v: &v[first * n..next * n], m, n };
        let mut a = self.strips[strip].write().unwrap_or_else(PoisonError::into_inner);
        // The first strip may have some of the panel's columns.
        let start = next.max(strip * STRIP);
        known.update(&mut a[(start - strip * STRIP) * m..], start, next);
    }
}

impl<T: Scalar> Job<'_, '_, T> {
    /// Adds A·v from row `row` on to x, A's columns being those from column `row` on.
    #[inline(always)]
    fn add_rest<S: Simd>(&self, simd: S, row: usize, v: &[T], x: &mut [T]) {
        let (m, mut at) = (self.m, row);
        for strip in row / STRIP..self.strips.len() {
            let a = self.strips[strip].read().unwrap_or_else(PoisonError::into_inner);
            let columns = &a[(at - strip * STRIP) * m..];
            let v = &v[at - row..][..columns.len() / m];
            add_product(simd, x, columns, m, row, v);
            at += v.len();
        }
    }
}

struct Column<'a, 'b, 'c, T: Scalar> {
    job: &'a Job<'b, 'c, T>,
    panel: usize,
    column: usize,
}

impl<T: Scalar> WithSimd for Column<'_, '_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { job, panel, column } = self;
        let Job { m, n, .. } = *job;
        let mut columns = job.columns.write().unwrap_or_else(PoisonError::into_inner);
        let Columns { b, v, u, x, y, row, next } = &mut *columns;
        let (first, col) = (panel * PANEL, panel * PANEL + column);
        let strip = &job.strips[col / STRIP];
        let place = (col % STRIP) * m..(col % STRIP + 1) * m;
        if let Some(i) = column.checked_sub(1) {
            let (u, this_u) = u.split_at(i * m);
            let (x, this_x) = x.split_at_mut(i * m);
            let (y, this_y) = y.split_at_mut(i * n);
            let (v, this_v) = v[first * n..].split_at_mut(i * n);
            let (this_x, this_y) = (&mut this_x[col..m], &mut this_y[col..n]);
            let row = &mut row[..n - col];
            this_x.fill(T::ZERO);
            for group in 0..groups(n - col) {
                let range = group_columns(0..n - col, group);
                let sums = job.groups[group].lock().unwrap_or_else(PoisonError::into_inner);
                this_y[range.clone()].copy_from_slice(&sums.y[..range.len()]);
                row[range.clone()].copy_from_slice(&sums.row[..range.len()]);
                for (x, &sum) in this_x.iter_mut().zip(&sums.x) {
                    *x += sum;
                }
            }
            {
                let strip = strip.read().unwrap_or_else(PoisonError::into_inner);
                next.copy_from_slice(&strip[place.clone()]);
            }
            let known = Known { u, y, x, v, m, n };
            let parts = (&*this_y, row, this_x, &mut this_v[..n]);
            let product = |v: &[T], x: &mut [T]| job.add_rest(simd, col, v, x);
            known.finish(simd, (&this_u[col - 1..m], &next[col..]), b, col - 1, parts, product);
        }
        if column < PANEL {
            let (u, this_u) = u.split_at_mut(column * m);
            let (y, this_y) = y.split_at_mut(column * n);
            let known =
                Known { u, y, x: &x[..column * m], v: &v[first * n..(first + column) * n], m, n };
            let mut strip = strip.write().unwrap_or_else(PoisonError::into_inner);
            let a = &mut strip[place];
            let parts = (&mut this_y[col + 1..n], &mut row[..n - col - 1]);
            known.begin(simd, a, b, col, parts);
            this_u[col..m].copy_from_slice(&a[col..]);
        }
    }
}

struct Product<'a, 'b, 'c, T: Scalar> {
    job: &'a Job<'b, 'c, T>,
    panel: usize,
    column: usize,
    group: usize,
}

impl<T: Scalar> WithSimd for Product<'_, '_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { job, panel, column, group } = self;
        let Job { m, n, .. } = *job;
        let j = panel * PANEL + column;
        let columns = job.columns.read().unwrap_or_else(PoisonError::into_inner);
        let (u, tau) = (&columns.u[column * m + j..(column + 1) * m], columns.b.tau_q[j]);
        let range = group_columns(0..n - j - 1, group);
        let mut sums = job.groups[group].lock().unwrap_or_else(PoisonError::into_inner);
        let Group { y, row, x } = &mut *sums;
        let (y, row, x) = (&mut y[..range.len()], &mut row[..range.len()], &mut x[..m - j - 1]);
        y.copy_from_slice(&columns.y[column * n + j + 1..][range.clone()]);
        row.copy_from_slice(&columns.row[range.clone()]);
        x.fill(T::ZERO);
        // The group's columns, strip by strip.
        let mut at = range.start;
        while at < range.end {
            let (strip, first) = ((j + 1 + at) / STRIP, (j + 1 + at) % STRIP);
            let count = (range.end - at).min(STRIP - first);
            let part = at - range.start..at - range.start + count;
            let a = job.strips[strip].read().unwrap_or_else(PoisonError::into_inner);
            let rest = &a[first * m..(first + count) * m];
            both_products(simd, (rest, m, j), (tau, u), &mut y[part.clone()], &mut row[part], x);
            at += count;
        }
    }
}
