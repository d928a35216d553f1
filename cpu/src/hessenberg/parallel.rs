//! Reduction of one large matrix to Hessenberg form by all threads.
//!
//! The algorithm is that of `hessenberg`; the sums of groups of columns are added in their order. After a panel
//! its product with the rows above is summed likewise.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use super::PANEL;
use super::blocked::{Aggregate, Overlaps, Scratch, part, part_mut, reduce_rest};
use crate::blas::fused::add_product;
use crate::blas::householder::Block;
use crate::matrix::layout::Factor;
use crate::parallel::reduction;
use crate::parallel::reduction::{GROUPS, LEFT, Panels, Reduction, group_columns, groups};
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The columns of a strip, a multiple of those of a panel.
const STRIP: usize = 4 * PANEL;

/// As [`crate::hessenberg::reduce::reduce`] where `tau` is zero, with the same bits on any number of threads.
pub(crate) fn reduce_parallel<T: Scalar>(
    a: &mut [T],
    n: usize,
    active: Range<usize>,
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    let Range { start, end } = active;
    let panels = (end - start).saturating_sub(LEFT) / PANEL;
    if panels > 0 {
        let job = Job {
            n,
            start,
            end,
            strips: a[start * n..].chunks_mut(n * STRIP).map(RwLock::new).collect(),
            sums: (0..GROUPS).map(|_| Mutex::new(Sums::new(n))).collect(),
            columns: RwLock::new(Columns::new(n, tau)),
            arch,
        };
        let panels = Panels { columns: n - start, order: end - start, panels };
        reduction::run(&job, panels, threads);
    }
    reduce_rest(a, n, start + panels * PANEL..end, tau, scratch, arch);
}

/// What the columns of a panel share.
struct Columns<'a, T> {
    tau: &'a mut [T],
    v: Vec<T>,
    y: Vec<T>,
    t: Vec<T>,
    sums: Vec<T>,
    /// Y's rows above V's.
    above: Vec<T>,
}

impl<'a, T: Scalar> Columns<'a, T> {
    fn new(n: usize, tau: &'a mut [T]) -> Self {
        let zeros = |length| vec![T::ZERO; length];
        Self {
            tau,
            v: zeros(n * PANEL),
            y: zeros(n * PANEL),
            t: zeros(PANEL * PANEL),
            sums: zeros(2 * PANEL),
            above: zeros(n * PANEL),
        }
    }
}

/// What a group of columns adds to A·v, and its rows of V to Vᴴ·v; after a panel, to A·V.
struct Sums<T> {
    product: Vec<T>,
    overlaps: [T; PANEL],
}

impl<T: Scalar> Sums<T> {
    fn new(n: usize) -> Self {
        Self { product: vec![T::ZERO; n * PANEL], overlaps: [T::ZERO; PANEL] }
    }
}

struct Job<'a, T> {
    n: usize,
    /// The active rows and columns; strips begin with the first.
    start: usize,
    end: usize,
    strips: Vec<RwLock<&'a mut [T]>>,
    /// The sums of each group of columns.
    sums: Vec<Mutex<Sums<T>>>,
    columns: RwLock<Columns<'a, T>>,
    arch: Arch,
}

impl<'a, T: Scalar> Job<'a, T> {
    /// The first column of a panel, and the rows of its V.
    fn panel(&self, panel: usize) -> (usize, usize) {
        let first = self.start + panel * PANEL;
        (first, self.end - first - 1)
    }

    fn strip_columns(&self, strip: usize) -> Range<usize> {
        let first = self.start + strip * STRIP;
        first..(first + STRIP).min(self.n)
    }

    /// The columns of the matrix in a strip that are among these, counted in the strip from its first.
    fn within(&self, strip: usize, columns: &Range<usize>) -> Range<usize> {
        let all = self.strip_columns(strip);
        let (start, end) = (columns.start.max(all.start), columns.end.min(all.end));
        if start < end { start - all.start..end - all.start } else { 0..0 }
    }

    fn read(&self) -> RwLockReadGuard<'_, Columns<'a, T>> {
        self.columns.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Columns<'a, T>> {
        self.columns.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_strip(&self, strip: usize) -> RwLockReadGuard<'_, &'a mut [T]> {
        self.strips[strip].read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_strip(&self, strip: usize) -> RwLockWriteGuard<'_, &'a mut [T]> {
        self.strips[strip].write().unwrap_or_else(PoisonError::into_inner)
    }

    fn sums(&self, group: usize) -> MutexGuard<'_, Sums<T>> {
        self.sums[group].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `body` with each part of these columns that lies in one strip: the part, and the strip's
    /// columns of it.
    fn each_part(&self, columns: Range<usize>, mut body: impl FnMut(Range<usize>, &[T])) {
        let mut at = columns.start;
        while at < columns.end {
            let strip = (at - self.start) / STRIP;
            let within = self.within(strip, &(at..columns.end));
            let part = at..at + within.len();
            let a = self.read_strip(strip);
            body(part.clone(), &a[within.start * self.n..within.end * self.n]);
            at = part.end;
        }
    }
}

impl<T: Scalar> Reduction for Job<'_, T> {
    const PANEL: usize = PANEL;
    const STRIP: usize = STRIP;
    const ABOVE: bool = true;

    fn column(&self, panel: usize, column: usize) {
        let (first, rows) = self.panel(panel);
        let mut columns = self.write();
        let Columns { tau, v, y, t, sums, .. } = &mut *columns;
        let tau = &mut tau[first..first + PANEL];
        if column == 0 {
            v[..rows * PANEL].fill(T::ZERO);
            t.fill(T::ZERO);
        }
        let mut aggregate = Aggregate { rows, v, y, t, sums };
        let strip = panel * PANEL / STRIP;
        let at = (first + column - self.strip_columns(strip).start) * self.n;
        let mut a = self.write_strip(strip);
        let mut x = (column < PANEL).then(|| &mut a[at + first + 1..at + self.end]);
        if let Some(j) = column.checked_sub(1) {
            let y = &mut aggregate.y[j * rows..(j + 1) * rows];
            y.fill(T::ZERO);
            let mut overlaps = [T::ZERO; PANEL];
            for group in 0..groups(rows - j) {
                let sums = self.sums(group);
                for (y, &sum) in y.iter_mut().zip(&sums.product[..rows]) {
                    *y += sum;
                }
                for (overlap, &sum) in overlaps[..j].iter_mut().zip(&sums.overlaps) {
                    *overlap += sum;
                }
            }
            y.iter_mut().for_each(|y| *y *= tau[j]);
            aggregate.complete(j, tau[j], &overlaps, x.as_deref_mut(), self.arch);
        }
        if let Some(x) = x {
            aggregate.reflect(column, x, &mut tau[column], self.arch);
        }
    }

    fn product(&self, panel: usize, column: usize, group: usize) {
        self.arch.dispatch(Product { job: self, panel, column, group });
    }

    fn above(&self, panel: usize, group: usize) {
        let (first, rows) = self.panel(panel);
        let columns = self.read();
        let v = MatRef::from_column_major_slice(&columns.v[..rows * PANEL], rows, PANEL);
        let mut sums = self.sums(group);
        let sums = &mut sums.product[..(first + 1) * PANEL];
        sums.fill(T::ZERO);
        self.each_part(group_columns(first + 1..self.end, group), |cols, a| {
            let a = part(a, self.n, 0..first + 1, 0..cols.len());
            let v = v.subrows(cols.start - first - 1, cols.len());
            let sums = MatMut::from_column_major_slice_mut(&mut *sums, first + 1, PANEL);
            T::product(sums, Accum::Add, (a, Conj::No), (v, Conj::No), T::ONE);
        });
    }

    fn gather(&self, panel: usize) {
        let (first, rows) = self.panel(panel);
        let mut columns = self.write();
        let Columns { t, above, .. } = &mut *columns;
        let mut total = self.sums(0);
        let total = &mut total.product[..(first + 1) * PANEL];
        for group in 1..groups(rows) {
            for (total, &sum) in total.iter_mut().zip(&self.sums(group).product) {
                *total += sum;
            }
        }
        let above = &mut above[..(first + 1) * PANEL];
        let above = MatMut::from_column_major_slice_mut(above, first + 1, PANEL);
        let total = MatRef::from_column_major_slice(total, first + 1, PANEL);
        let t = MatRef::from_column_major_slice(t, PANEL, PANEL);
        T::product(above, Accum::Replace, (total, Conj::No), (t, Conj::No), T::ONE);
    }

    fn update(&self, panel: usize, strip: usize) {
        let (first, rows) = self.panel(panel);
        let (n, next, end) = (self.n, first + PANEL, self.end);
        let columns = self.read();
        let Columns { v, y, t, above, .. } = &*columns;
        let v = MatRef::from_column_major_slice(&v[..rows * PANEL], rows, PANEL);
        let y = MatRef::from_column_major_slice(&y[..rows * PANEL], rows, PANEL);
        let above = &above[..(first + 1) * PANEL];
        let above = MatRef::from_column_major_slice(above, first + 1, PANEL);
        let strip_first = self.strip_columns(strip).start;
        let mut a = self.write_strip(strip);
        // A ← A − (A·V·T)·Vᴴ, above the panel's rows for its own columns, too.
        for (factor, rows, from) in [(above, 0..first + 1, first + 1), (y, first + 1..end, next)] {
            let cols = self.within(strip, &(from..end));
            if !cols.is_empty() {
                let v = v.subrows(strip_first + cols.start - first - 1, cols.len());
                let a = part_mut(&mut a, n, rows, cols);
                let v = (v.transpose(), Conj::Yes);
                T::product(a, Accum::Add, (factor, Conj::No), v, -T::ONE);
            }
        }
        // A ← Qᴴ·A.
        let cols = self.within(strip, &(next..n));
        if !cols.is_empty() {
            let mut work = vec![T::ZERO; 2 * PANEL * cols.len()];
            let mut block =
                Block::new(v, MatRef::from_column_major_slice(t, PANEL, PANEL), &mut work);
            block.apply_left(Factor::Adjoint, part_mut(&mut a, n, first + 1..end, cols));
        }
    }
}

struct Product<'a, 'b, T> {
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
        let (first, rows) = job.panel(panel);
        let columns = job.read();
        let v = &columns.v[column * rows..(column + 1) * rows];
        let mut sums = job.sums(group);
        let Sums { product, overlaps } = &mut *sums;
        let product = &mut product[..rows];
        product.fill(T::ZERO);
        let group = group_columns(first + column + 1..job.end, group);
        let of = group.start - first - 1..group.end - first - 1;
        Overlaps { v: &columns.v, rows, j: column, of, overlaps }.with_simd(simd);
        job.each_part(group, |cols, a| {
            let v = &v[cols.start - first - 1..cols.end - first - 1];
            add_product(simd, product, a, job.n, first + 1, v);
        });
    }
}
