//! Reduction of an m × n matrix, m >= n, to upper triangular band form, A = Q·B·Pᴴ, by all threads.
//!
//! A panel of columns is factored, P = Q·R, then the panel of rows that this changes, Pᴴ = U·R; the rest of the
//! matrix becomes Qᴴ·A·U = A − V·W − Y·Uᴴ in one update, with W = Tᴴ·Vᴴ·A and Y = (A − V·W)·U·T, where each
//! block of reflectors is I − V·T·Vᴴ: Großer and Lang, "Efficient parallel reduction to bidiagonal form" (Parallel
//! Computing 25, 1999), with the two updates of a panel made one. All is products of matrices.

use std::ops::Range;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use faer::{Accum, Conj, MatMut, MatRef};

use super::bulges::WIDTH;
use crate::blas::householder::BlockScratch;
use crate::matrix::panel::Panel;
use crate::parallel::schedule::Schedule;
use crate::qr::blocked;
use crate::qr::blocked::factor_scratch;
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The columns of a strip and the rows of a block, a multiple of [`WIDTH`].
const STRIP: usize = 64;
/// The rows of W and Uᴴ, and the columns of V and Y, beside each other.
const PAIR: usize = 2 * WIDTH;

/// What reductions of matrices of one shape reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    factor: Mutex<BlockScratch<T>>,
    /// The reflectors of a panel's columns and of the next one's, and those of a panel's rows.
    left: [RwLock<BlockScratch<T>>; 2],
    right: RwLock<BlockScratch<T>>,
    /// The adjoint of a panel's rows.
    rows: Mutex<Vec<T>>,
    /// W and Uᴴ of each strip of columns, V and Y of each block of rows.
    strips: Vec<RwLock<Pair<T>>>,
    blocks: Vec<RwLock<Pair<T>>>,
    /// W·U.
    inner: RwLock<Vec<T>>,
}

/// Two factors of an update beside each other.
#[derive(Debug)]
struct Pair<T> {
    both: Vec<T>,
    /// What one of them is made of.
    part: Vec<T>,
}

impl<T: Scalar> Pair<T> {
    fn new() -> RwLock<Self> {
        let zeros = |count| vec![T::ZERO; count];
        RwLock::new(Self { both: zeros(PAIR * STRIP), part: zeros(WIDTH * STRIP) })
    }
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let rest = n.saturating_sub(WIDTH);
        let block = |rows| RwLock::new(BlockScratch::new(rows, WIDTH, 0));
        Self {
            factor: Mutex::new(factor_scratch(m, WIDTH)),
            left: [block(m), block(m)],
            right: block(rest),
            rows: Mutex::new(vec![T::ZERO; rest * WIDTH]),
            strips: (0..n.div_ceil(STRIP)).map(|_| Pair::new()).collect(),
            blocks: (0..m.div_ceil(STRIP)).map(|_| Pair::new()).collect(),
            inner: RwLock::new(vec![T::ZERO; WIDTH * WIDTH]),
        }
    }
}

/// Reduces `a`, m × n, to a band of [`WIDTH`] above the diagonal, which is real up to the last one; with the
/// same bits on any number of threads. What is outside of the band has no meaning then.
pub(crate) fn reduce_to_band<T: Scalar>(
    a: &mut [T],
    (m, n): (usize, usize),
    scratch: &Scratch<T>,
    threads: &dyn Threads,
) {
    if n == 0 {
        return;
    }
    let panels = n.div_ceil(WIDTH);
    let strips = a.chunks_mut(m * STRIP).map(RwLock::new).collect();
    let job = Job { m, n, panels, strips, scratch };
    job.factor(0);
    schedule(m, n, panels).run(threads, job.strips.len(), |work| job.run(work));
}

/// A piece of work.
enum Work {
    /// W of a strip.
    Left { panel: usize, strip: usize },
    /// The rows of a panel, and the factors of them.
    Rows { panel: usize },
    /// Y of a block.
    Right { panel: usize, block: usize },
    /// The update of a strip, and the next panel's factors where it is in it.
    Update { panel: usize, strip: usize },
}

/// The strip of the first column on the right of a panel, or the block of the first row below it.
fn strip_behind(panel: usize) -> usize {
    (panel + 1) * WIDTH / STRIP
}

/// The work of so many panels of an m × n matrix.
fn schedule(m: usize, n: usize, panels: usize) -> Schedule<Work, 4> {
    const LEFT: usize = 0;
    const ROWS: usize = 1;
    const RIGHT: usize = 2;
    const UPDATES: usize = 3;
    let mut schedule = Schedule::new();
    for panel in 0..panels - 1 {
        let strips = strip_behind(panel)..n.div_ceil(STRIP);
        for strip in strips.clone() {
            schedule.add(Work::Left { panel, strip }, LEFT, UPDATES);
        }
        schedule.add(Work::Rows { panel }, ROWS, LEFT);
        for block in strip_behind(panel)..m.div_ceil(STRIP) {
            schedule.add(Work::Right { panel, block }, RIGHT, ROWS);
        }
        for strip in strips {
            schedule.add(Work::Update { panel, strip }, UPDATES, RIGHT);
        }
    }
    schedule
}

struct Job<'a, T: Scalar> {
    m: usize,
    n: usize,
    panels: usize,
    strips: Vec<RwLock<&'a mut [T]>>,
    scratch: &'a Scratch<T>,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Scalar> Job<'_, T> {
    fn run(&self, work: &Work) {
        match *work {
            Work::Left { panel, strip } => self.multiply_left(panel, strip),
            Work::Rows { panel } => self.factor_rows(panel),
            Work::Right { panel, block } => self.multiply_right(panel, block),
            Work::Update { panel, strip } => {
                self.update(panel, strip);
                if strip == strip_behind(panel) {
                    self.factor(panel + 1);
                }
            }
        }
    }

    /// The columns of a strip on the right of a panel.
    fn columns(&self, panel: usize, strip: usize) -> Range<usize> {
        ((panel + 1) * WIDTH).max(strip * STRIP)..self.n.min((strip + 1) * STRIP)
    }

    /// The rows of a block below a panel's.
    fn rows(&self, panel: usize, block: usize) -> Range<usize> {
        ((panel + 1) * WIDTH).max(block * STRIP)..self.m.min((block + 1) * STRIP)
    }

    /// The strips on the right of a panel, and where their columns begin there.
    fn behind(&self, panel: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let strips = strip_behind(panel)..self.n.div_ceil(STRIP);
        strips.map(move |strip| (strip, self.columns(panel, strip)))
    }

    fn factor(&self, panel: usize) {
        let Self { m, n, scratch: Scratch { factor, left, .. }, .. } = *self;
        let row = panel * WIDTH;
        let width = WIDTH.min(n - row);
        let mut strip = write(&self.strips[row / STRIP]);
        let a = &mut strip[row % STRIP * m..][..width * m];
        let mut tau = [T::ZERO; WIDTH];
        let tau = &mut tau[..width];
        let mut factor = factor.lock().unwrap_or_else(PoisonError::into_inner);
        blocked::factor(Panel { a: &mut *a, lda: m, row }, tau, &mut factor, Arch::new());
        if panel + 1 < self.panels {
            let v = MatRef::from_column_major_slice(a, m, width).subrows(row, m - row);
            write(&left[panel % 2]).block(v, tau);
        }
    }

    fn multiply_left(&self, panel: usize, strip: usize) {
        let Self { m, scratch: Scratch { left, strips, .. }, .. } = *self;
        let row = panel * WIDTH;
        let columns = self.columns(panel, strip);
        let left = read(&left[panel % 2]);
        let (v, t) = left.made(m - row, WIDTH);
        let a = read(&self.strips[strip]);
        let a = MatRef::from_column_major_slice(&a, m, a.len() / m);
        let a = a.subcols(columns.start - strip * STRIP, columns.len()).subrows(row, m - row);
        let mut pair = write(&strips[strip]);
        let Pair { both, part } = &mut *pair;
        let (v, t) = ((v.transpose(), Conj::Yes), (t.transpose(), Conj::Yes));
        let part = &mut part[..WIDTH * columns.len()];
        let mut part = MatMut::from_column_major_slice_mut(part, WIDTH, columns.len());
        T::product(part.as_mut(), Accum::Replace, v, (a, Conj::No), T::ONE);
        let both = &mut both[..PAIR * columns.len()];
        let w = MatMut::from_column_major_slice_mut(both, PAIR, columns.len());
        let w = w.subrows_mut(0, WIDTH);
        T::product(w, Accum::Replace, t, (part.as_ref(), Conj::No), T::ONE);
    }

    fn factor_rows(&self, panel: usize) {
        let Self { m, n, scratch, .. } = *self;
        let (row, next) = (panel * WIDTH, (panel + 1) * WIDTH);
        let left = read(&scratch.left[panel % 2]);
        let (v, _) = left.made(m - row, WIDTH);
        let rest = n - next;
        let mut adjoint = scratch.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let adjoint = &mut adjoint[..rest * WIDTH];
        for (strip, columns) in self.behind(panel) {
            let pair = read(&scratch.strips[strip]);
            let w = MatRef::from_column_major_slice(&pair.both, PAIR, STRIP);
            let w = w.submatrix(0, 0, WIDTH, columns.len());
            let mut a = write(&self.strips[strip]);
            let width = a.len() / m;
            let a = MatMut::from_column_major_slice_mut(&mut a, m, width).subrows_mut(row, WIDTH);
            let mut a = a.subcols_mut(columns.start - strip * STRIP, columns.len());
            let v = (v.subrows(0, WIDTH), Conj::No);
            T::product(a.as_mut(), Accum::Add, v, (w, Conj::No), -T::ONE);
            for (j, column) in columns.enumerate() {
                for i in 0..WIDTH {
                    adjoint[i * rest + column - next] = a[(i, j)].conj();
                }
            }
        }
        let mut tau = [T::ZERO; WIDTH];
        let tau = &mut tau[..WIDTH.min(rest)];
        let count = tau.len();
        let mut factor = scratch.factor.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = Panel { a: &mut *adjoint, lda: rest, row: 0 };
        blocked::factor(rows, tau, &mut factor, Arch::new());
        let mut right = write(&scratch.right);
        let reflectors = MatRef::from_column_major_slice(adjoint, rest, WIDTH).subcols(0, count);
        right.block(reflectors, tau);
        let (u, _) = right.made(rest, count);
        let mut inner = write(&scratch.inner);
        let inner = &mut inner[..WIDTH * count];
        inner.fill(T::ZERO);
        let mut inner = MatMut::from_column_major_slice_mut(inner, WIDTH, count);
        for (strip, columns) in self.behind(panel) {
            let mut pair = write(&scratch.strips[strip]);
            let mut a = write(&self.strips[strip]);
            let a = &mut a[(columns.start - strip * STRIP) * m..];
            let both = pair.both.chunks_exact_mut(PAIR);
            for ((column, a), both) in columns.clone().zip(a.chunks_exact_mut(m)).zip(both) {
                let at = column - next;
                for (i, a) in a[row..next].iter_mut().enumerate() {
                    *a = if at <= i { adjoint[i * rest + at].conj() } else { T::ZERO };
                    both[WIDTH + i] = if i < count { u[(at, i)].conj() } else { T::ZERO };
                }
            }
            let w = MatRef::from_column_major_slice(&pair.both, PAIR, STRIP);
            let w = (w.submatrix(0, 0, WIDTH, columns.len()), Conj::No);
            let u = (u.subrows(columns.start - next, columns.len()), Conj::No);
            T::product(inner.as_mut(), Accum::Add, w, u, T::ONE);
        }
    }

    fn multiply_right(&self, panel: usize, block: usize) {
        let Self { m, n, scratch, .. } = *self;
        let (row, next) = (panel * WIDTH, (panel + 1) * WIDTH);
        let rows = self.rows(panel, block);
        let right = read(&scratch.right);
        let count = WIDTH.min(n - next);
        let (u, t) = right.made(n - next, count);
        let mut pair = write(&scratch.blocks[block]);
        let Pair { both, part } = &mut *pair;
        let part = &mut part[..rows.len() * count];
        let mut part = MatMut::from_column_major_slice_mut(part, rows.len(), count);
        let left = read(&scratch.left[panel % 2]);
        let (v, _) = left.made(m - row, WIDTH);
        let v = v.subrows(rows.start - row, rows.len());
        let inner = read(&scratch.inner);
        let inner = MatRef::from_column_major_slice(&inner[..WIDTH * count], WIDTH, count);
        T::product(part.as_mut(), Accum::Replace, (v, Conj::No), (inner, Conj::No), -T::ONE);
        for (strip, columns) in self.behind(panel) {
            let a = read(&self.strips[strip]);
            let a = MatRef::from_column_major_slice(&a, m, a.len() / m);
            let a = a.subcols(columns.start - strip * STRIP, columns.len());
            let a = (a.subrows(rows.start, rows.len()), Conj::No);
            let u = (u.subrows(columns.start - next, columns.len()), Conj::No);
            T::product(part.as_mut(), Accum::Add, a, u, T::ONE);
        }
        let both = &mut both[..PAIR * rows.len()];
        let (v_copy, y) = both.split_at_mut(WIDTH * rows.len());
        for (j, column) in v_copy.chunks_exact_mut(rows.len()).enumerate() {
            column.iter_mut().enumerate().for_each(|(i, x)| *x = v[(i, j)]);
        }
        // Columns without a reflector are not multiplied.
        y.fill(T::ZERO);
        let y = MatMut::from_column_major_slice_mut(y, rows.len(), WIDTH).subcols_mut(0, count);
        T::product(y, Accum::Replace, (part.as_ref(), Conj::No), (t, Conj::No), T::ONE);
    }

    fn update(&self, panel: usize, strip: usize) {
        let Self { m, scratch, .. } = *self;
        let columns = self.columns(panel, strip);
        let pair = read(&scratch.strips[strip]);
        let w = MatRef::from_column_major_slice(&pair.both, PAIR, STRIP).subcols(0, columns.len());
        let mut a = write(&self.strips[strip]);
        let width = a.len() / m;
        let a = MatMut::from_column_major_slice_mut(&mut a, m, width);
        let mut a = a.subcols_mut(columns.start - strip * STRIP, columns.len());
        for block in strip_behind(panel)..m.div_ceil(STRIP) {
            let rows = self.rows(panel, block);
            let pair = read(&scratch.blocks[block]);
            let vy = &pair.both[..PAIR * rows.len()];
            let vy = MatRef::from_column_major_slice(vy, rows.len(), PAIR);
            let a = a.as_mut().subrows_mut(rows.start, rows.len());
            T::product(a, Accum::Add, (vy, Conj::No), (w, Conj::No), -T::ONE);
        }
    }
}
