//! Reduction of one large Hermitian matrix to tridiagonal form by all threads.
//!
//! The algorithm is that of `tridiagonalize`, on strips of as many columns as a panel has; the sums of groups of
//! columns are added in their order.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use pulp::{Simd, WithSimd};

use super::blocked::{
    PANEL, Scratch, complete_product, overlaps, reduce_column, tridiagonalize, tridiagonalize_rest,
};
use crate::blas::fused::add_hermitian_product;
use crate::blas::rank_k::{PRODUCT_ORDER, update_columns};
use crate::parallel::reduction;
use crate::parallel::reduction::{GROUPS, LEFT, Panels, Reduction, groups};
use crate::simd::arch::Arch;
use crate::simd::chunks::TOGETHER;
use crate::{Scalar, Threads};

/// As [`crate::eigh::reduction::blocked::tridiagonalize`], with the same bits on any number of threads.
pub(crate) fn tridiagonalize_parallel<T: Scalar>(
    a: &mut [T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    let n = d.len();
    let panels = n.saturating_sub(LEFT) / PANEL;
    if panels == 0 {
        return tridiagonalize(a, d, e, tau, scratch, arch);
    }
    let job = Job {
        n,
        strips: a.chunks_mut(n * PANEL).map(RwLock::new).collect(),
        sums: (0..GROUPS).map(|_| Mutex::new(Sums::new(n))).collect(),
        columns: RwLock::new(Columns { d, e, tau, w: vec![T::ZERO; n * PANEL] }),
        arch,
    };
    reduction::run(&job, Panels { columns: n, order: n, panels }, threads);
    let first = panels * PANEL;
    drop(job);
    for j in 0..first {
        a[j * n + j + 1] = T::from_real(e[j]);
    }
    tridiagonalize_rest(a, first, d, e, tau, scratch, arch);
}

/// The first column of a group, such that all groups of a triangle have about the same area.
#[allow(clippy::cast_precision_loss, reason = "an order is below 2⁵²")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ share ≤ 1")]
fn group_start(order: usize, group: usize) -> usize {
    let count = groups(order);
    if group == count {
        return order;
    }
    let rest = 1.0 - group as f64 / count as f64;
    let start = (order as f64 * (1.0 - rest.sqrt())) as usize;
    start - start % TOGETHER
}

struct Columns<'a, T: Scalar> {
    d: &'a mut [T::Real],
    e: &'a mut [T::Real],
    tau: &'a mut [T],
    /// W, with which A − V·Wᴴ − W·Vᴴ is the updated matrix.
    w: Vec<T>,
}

struct Job<'a, T: Scalar> {
    n: usize,
    strips: Vec<RwLock<&'a mut [T]>>,
    sums: Vec<Mutex<Sums<T>>>,
    columns: RwLock<Columns<'a, T>>,
    arch: Arch,
}

/// What a group of columns adds to A·v, and its rows of V and W to Vᴴ·v and Wᴴ·v.
struct Sums<T> {
    product: Vec<T>,
    overlaps: [[T; PANEL]; 2],
}

impl<T: Scalar> Sums<T> {
    fn new(n: usize) -> Self {
        Self { product: vec![T::ZERO; n], overlaps: [[T::ZERO; PANEL]; 2] }
    }
}

impl<T: Scalar> Job<'_, T> {
    fn sums(&self, group: usize) -> MutexGuard<'_, Sums<T>> {
        self.sums[group].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Scalar> Reduction for Job<'_, T> {
    const PANEL: usize = PANEL;
    const STRIP: usize = PANEL;

    fn group_columns(order: usize, first: usize, group: usize) -> Range<usize> {
        let rest = order - first;
        first + group_start(rest, group)..first + group_start(rest, group + 1)
    }

    fn column(&self, panel: usize, column: usize) {
        self.arch.dispatch(Column { job: self, panel, column });
    }

    fn product(&self, panel: usize, column: usize, group: usize) {
        self.arch.dispatch(Product { job: self, panel, column, group });
    }

    fn update(&self, panel: usize, strip: usize) {
        let v = self.strips[panel].read().unwrap_or_else(PoisonError::into_inner);
        let columns = self.columns.read().unwrap_or_else(PoisonError::into_inner);
        let mut a = self.strips[strip].write().unwrap_or_else(PoisonError::into_inner);
        let mut block = vec![T::ZERO; PRODUCT_ORDER * PRODUCT_ORDER];
        update_columns(&mut a, self.n, strip * PANEL, &v, &columns.w, &mut block);
    }
}

struct Column<'a, 'b, T: Scalar> {
    job: &'a Job<'b, T>,
    panel: usize,
    column: usize,
}

impl<T: Scalar> WithSimd for Column<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { job, panel, column } = self;
        let n = job.n;
        let mut strip = job.strips[panel].write().unwrap_or_else(PoisonError::into_inner);
        let mut columns = job.columns.write().unwrap_or_else(PoisonError::into_inner);
        let Columns { d, e, tau, w } = &mut *columns;
        let row = panel * PANEL + column;
        if column > 0 {
            let (known, w) = w.split_at_mut((column - 1) * n);
            let w = &mut w[row..n];
            w.fill(T::ZERO);
            let mut factors = [[T::ZERO; PANEL]; 2];
            for group in 0..groups(w.len()) {
                let (sums, start) = (job.sums(group), group_start(w.len(), group));
                for (w, &sum) in w[start..].iter_mut().zip(&sums.product[start..]) {
                    *w += sum;
                }
                for (factors, sums) in factors.iter_mut().zip(&sums.overlaps) {
                    for (factor, &sum) in factors.iter_mut().zip(sums) {
                        *factor += sum;
                    }
                }
            }
            let (panel, next) = strip.split_at_mut(column * n);
            let next = (column < PANEL).then(|| &mut next[row..n]);
            complete_product(simd, panel, known, tau[row - 1], &factors, w, next);
        }
        if column < PANEL {
            reduce_column(simd, &mut strip[..(column + 1) * n], w, d, e, tau, row);
        }
    }
}

struct Product<'a, 'b, T: Scalar> {
    job: &'a Job<'b, T>,
    panel: usize,
    column: usize,
    group: usize,
}

impl<T: Scalar> WithSimd for Product<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { job, panel, column, group } = self;
        let n = job.n;
        let row = panel * PANEL + column + 1;
        let vectors = job.strips[panel].read().unwrap_or_else(PoisonError::into_inner);
        let v = &vectors[column * n + row..(column + 1) * n];
        let order = v.len();
        let (start, end) = (group_start(order, group), group_start(order, group + 1));
        let mut sums = job.sums(group);
        let Sums { product, overlaps: factors } = &mut *sums;
        let product = &mut product[..order];
        product[start..].fill(T::ZERO);
        // The group's columns, strip by strip.
        let mut at = start;
        while at < end {
            let (strip, first) = ((row + at) / PANEL, (row + at) % PANEL);
            let count = (end - at).min(PANEL - first);
            let other = (strip != panel)
                .then(|| job.strips[strip].read().unwrap_or_else(PoisonError::into_inner));
            let columns = other.as_ref().unwrap_or(&vectors);
            let columns = &columns[first * n..(first + count) * n];
            add_hermitian_product(simd, columns, n, at, v, product);
            at += count;
        }
        let shared = job.columns.read().unwrap_or_else(PoisonError::into_inner);
        let known = &shared.w[..column * n];
        overlaps(simd, factors, &vectors, known, n, row + start, &v[start..end]);
    }
}
