//! QR factorisation of one large matrix, and products with its Q, by all threads.
//!
//! The factorisation goes by [`crate::parallel::lookahead`]. Columns of Q, and of a matrix that Q multiplies from the
//! left, do not depend on each other: there each strip meets all blocks of reflectors in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use faer::{MatMut, MatRef};
use lapax_core::run_tasks;

use super::blocked;
use super::blocked::factor_scratch;
use crate::blas::householder::{Block, BlockScratch, Reflectors};
use crate::matrix::layout::Factor;
use crate::matrix::panel::Panel;
use crate::matrix::strips::strips;
use crate::parallel::lookahead;
use crate::parallel::lookahead::Panels;
use crate::simd::arch::Arch;
use crate::{Scalar, Side, Threads};

/// The columns of a panel and of a strip. On two cores with AVX-512, f64, geqrf: n = 512 2.63 ms with 48,
/// 2.78 with 64, 3.55 with 96; n = 1024 15.9, 16.2 and 17.3.
const WIDTH: usize = 48;

/// The least columns, and the number, of the strips that threads apply reflectors to. On two cores, f64, n =
/// 512: 6.8 ms with 64 columns, 6.7 with 128 or 256; alone 10.2 and 10.
const WIDE: usize = 64;
const COUNT: usize = 4;

/// The strips of a matrix that many reflectors are applied to.
pub(crate) fn wide_strips<T>(c: MatMut<'_, T>) -> Vec<Mutex<MatMut<'_, T>>> {
    let width = WIDE.max(c.ncols() / COUNT);
    strips(c, width)
}

/// Reflectors as a block, for many to read.
struct Shared<T> {
    scratch: BlockScratch<T>,
    rows: usize,
    reflectors: usize,
}

impl<T: Scalar> Shared<T> {
    /// Of the reflectors whose tails are below the diagonal of `a`.
    fn new(a: MatRef<'_, T>, tau: &[T]) -> Self {
        let (rows, reflectors) = (a.nrows(), a.ncols());
        let mut scratch = BlockScratch::new(rows, reflectors, 0);
        scratch.block(a, tau);
        Self { scratch, rows, reflectors }
    }

    /// The block, which multiplies matrices of as many columns, or rows, as `work` is for.
    fn block<'a>(&'a self, work: &'a mut [T]) -> Block<'a, T> {
        let (v, t) = self.scratch.made(self.rows, self.reflectors);
        Block::new(v, t, work)
    }
}

/// For [`Shared::block`] and matrices of so many columns, or rows.
fn work<T: Scalar>(others: usize) -> Vec<T> {
    vec![T::ZERO; 2 * WIDTH * others.max(WIDTH)]
}

/// A block that is made by one task, for others.
type Slot<T> = Mutex<Option<Arc<Shared<T>>>>;

fn slots<T>(count: usize) -> Vec<Slot<T>> {
    (0..count).map(|_| Mutex::new(None)).collect()
}

fn put<T>(slot: &Slot<T>, block: Option<Shared<T>>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = block.map(Arc::new);
}

fn get<T>(slot: &Slot<T>) -> Option<Arc<Shared<T>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Factors a matrix of m rows; `tau` has its smaller dimension.
pub(crate) fn factor_parallel<T: Scalar>(
    a: &mut [T],
    m: usize,
    tau: &mut [T],
    threads: &dyn Threads,
) {
    let k = tau.len();
    let (left, right) = a.split_at_mut(k * m);
    let strips = left.chunks_mut(WIDTH * m).chain(right.chunks_mut(WIDTH * m)).map(Mutex::new);
    let strips: Vec<_> = strips.collect();
    let panels = k.div_ceil(WIDTH);
    let job = Factorisation {
        m,
        tau: tau.chunks_mut(WIDTH).map(Mutex::new).collect(),
        blocks: slots(panels),
        users: (0..panels).map(|panel| AtomicUsize::new(strips.len() - 1 - panel)).collect(),
        strips,
    };
    lookahead::run(&job, panels, job.strips.len(), threads);
}

struct Factorisation<'a, T> {
    m: usize,
    /// Each strip is locked by the task at work on it, which the stages say.
    strips: Vec<Mutex<&'a mut [T]>>,
    tau: Vec<Mutex<&'a mut [T]>>,
    blocks: Vec<Slot<T>>,
    /// The strips that each panel has not updated yet.
    users: Vec<AtomicUsize>,
}

impl<T: Scalar> Panels for Factorisation<'_, T> {
    fn factor(&self, panel: usize) {
        let (m, row) = (self.m, panel * WIDTH);
        let mut strip = self.strips[panel].lock().unwrap_or_else(PoisonError::into_inner);
        let mut tau = self.tau[panel].lock().unwrap_or_else(PoisonError::into_inner);
        let n = strip.len() / m;
        let mut scratch = factor_scratch(m - row, n);
        blocked::factor(
            Panel { a: &mut strip[..], lda: m, row },
            &mut tau,
            &mut scratch,
            Arch::new(),
        );
        if self.users[panel].load(Ordering::SeqCst) > 0 {
            let v = MatRef::from_column_major_slice(&strip[..], m, n).subrows(row, m - row);
            put(&self.blocks[panel], Some(Shared::new(v, &tau)));
        }
    }

    fn update(&self, panel: usize, strip: usize) {
        let (m, row) = (self.m, panel * WIDTH);
        if let Some(block) = get(&self.blocks[panel]) {
            let mut strip = self.strips[strip].lock().unwrap_or_else(PoisonError::into_inner);
            let n = strip.len() / m;
            let c = MatMut::from_column_major_slice_mut(&mut strip[..], m, n);
            let c = c.subrows_mut(row, m - row);
            block.block(&mut work(n)).apply_left(Factor::Adjoint, c);
        }
        if self.users[panel].fetch_sub(1, Ordering::SeqCst) == 1 {
            put(&self.blocks[panel], None);
        }
    }

    fn finish(&self, _: usize) {}
}

/// The columns of `a`, m rows each, of which as many as `tau` has hold reflectors, become those of Q.
pub(crate) fn generate_parallel<T: Scalar>(
    a: &mut [T],
    m: usize,
    tau: &[T],
    threads: &dyn Threads,
) {
    let k = tau.len();
    let (left, right) = a.split_at_mut(k * m);
    let strips = left.chunks_mut(WIDTH * m).chain(right.chunks_mut(WIDTH * m)).map(Mutex::new);
    let strips: Vec<_> = strips.collect();
    let tau: Vec<_> = tau.chunks(WIDTH).collect();
    let (count, blocks) = (strips.len(), slots(tau.len()));
    // The blocks, and then the strips, the last of which meets the most blocks.
    run_tasks(threads, count, blocks.len() + count, blocks.len(), |task, stages| {
        let strip = |strip: usize| strips[strip].lock().unwrap_or_else(PoisonError::into_inner);
        if task < blocks.len() {
            let (strip, row) = (strip(task), task * WIDTH);
            let v = MatRef::from_column_major_slice(&strip[..], m, strip.len() / m);
            put(&blocks[task], Some(Shared::new(v.subrows(row, m - row), tau[task])));
            stages.advance(task);
            return;
        }
        let at = count - 1 - (task - blocks.len());
        // Its own block is made from the strip, which must not be locked before.
        if at < blocks.len() && !stages.wait(at, 1) {
            return;
        }
        let mut strip = strip(at);
        let n = strip.len() / m;
        let mut work = work(n);
        if at >= blocks.len() {
            // The number of the strip's first column.
            let first = k + (at - blocks.len()) * WIDTH;
            for (j, column) in strip.chunks_exact_mut(m).enumerate() {
                column.fill(T::ZERO);
                column[first + j] = T::ONE;
            }
        }
        for block in (0..blocks.len().min(at + 1)).rev() {
            if !stages.wait(block, 1) {
                return;
            }
            let Some(shared) = get(&blocks[block]) else { continue };
            let row = block * WIDTH;
            let c = MatMut::from_column_major_slice_mut(&mut strip[..], m, n);
            let (mut above, below) = c.split_at_row_mut(row);
            if block == at {
                shared.block(&mut work).first_columns(below);
                for j in 0..n {
                    (0..row).for_each(|i| above[(i, j)] = T::ZERO);
                }
            } else {
                shared.block(&mut work).apply_left(Factor::Q, below);
            }
        }
    });
}

/// C ← Q·C, Qᴴ·C, C·Q or C·Qᴴ for C of m rows.
pub(crate) fn multiply_parallel<T: Scalar>(
    side: Side,
    q: Reflectors<'_, T>,
    c: &mut [T],
    m: usize,
    threads: &dyn Threads,
) {
    let n = c.len() / m;
    let c = MatMut::from_column_major_slice_mut(c, m, n);
    // Rows of C on the left of Q are the columns of its transpose.
    let c = if side == Side::Left { c } else { c.transpose_mut() };
    let v = MatRef::from_column_major_slice(q.a, q.r, q.tau.len());
    multiply_strips(side, q.factor, q.last_first(side), (v, q.tau), strips(c, WIDTH), threads);
}

/// The same for the reflectors whose tails are below the diagonal of `v`, and strips of C or of its
/// transpose.
pub(crate) fn multiply_strips<T: Scalar>(
    side: Side,
    factor: Factor,
    last_first: bool,
    (v, tau): (MatRef<'_, T>, &[T]),
    strips: Vec<Mutex<MatMut<'_, T>>>,
    threads: &dyn Threads,
) {
    let tau: Vec<_> = tau.chunks(WIDTH).collect();
    let (count, blocks) = (strips.len(), slots(tau.len()));
    run_tasks(threads, count, blocks.len() + count, blocks.len(), |task, stages| {
        if task < blocks.len() {
            let row = task * WIDTH;
            let v = v.submatrix(row, row, v.nrows() - row, tau[task].len());
            put(&blocks[task], Some(Shared::new(v, tau[task])));
            stages.advance(task);
            return;
        }
        let strip = &strips[task - blocks.len()];
        let mut strip = strip.lock().unwrap_or_else(PoisonError::into_inner);
        let mut work = work(strip.ncols());
        for step in 0..blocks.len() {
            let block = if last_first { blocks.len() - 1 - step } else { step };
            if !stages.wait(block, 1) {
                return;
            }
            let Some(shared) = get(&blocks[block]) else { continue };
            let row = block * WIDTH;
            let c = strip.as_mut().subrows_mut(row, v.nrows() - row);
            let mut block = shared.block(&mut work);
            match side {
                Side::Left => block.apply_left(factor, c),
                Side::Right => block.apply_right(factor, c.transpose_mut()),
            }
        }
    });
}
