//! Reduction of a Hermitian matrix to band form, A = Q·B·Qᴴ, by all threads.
//!
//! Below the band a panel of columns is factored, P = Q·R, and the rest of the matrix becomes
//! Qᴴ·A·Q = A − V·Wᴴ − W·Vᴴ, where Q = I − V·T·Vᴴ, X = A·V·T and W = X − V·(Tᴴ·Vᴴ·X)/2: Bischof, Lang and
//! Sun, "A framework for symmetric band reduction" (ACM Trans. Math. Softw. 26, 2000). Where tridiagonal form
//! asks for a product with each column's vector, all here are products of matrices.

use std::ops::Range;
use std::sync::{Mutex, PoisonError, RwLock};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::Real as _;

use super::bulges::WIDTH;
use crate::blas::householder::BlockScratch;
use crate::blas::rank_k::{PRODUCT_ORDER, update_columns};
use crate::matrix::panel::Panel;
use crate::parallel::schedule::Schedule;
use crate::qr::blocked;
use crate::qr::blocked::factor_scratch;
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The columns of a strip, a multiple of [`WIDTH`]. On two cores with AVX-512, f64, with 64, 96 and 128: n = 512
/// 4.6 ms, 4.6 and 5.9; 1024 22, 21 and 25; 2048 143, 136 and 157.
const STRIP: usize = PRODUCT_ORDER;

/// What reductions of matrices of one order reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    factor: Mutex<BlockScratch<T>>,
    /// The reflectors of a panel and of the one after it.
    blocks: [RwLock<BlockScratch<T>>; 2],
    /// For each strip.
    products: Vec<Mutex<Product<T>>>,
    v: RwLock<Vec<T>>,
    w: RwLock<Vec<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        let rows = n.saturating_sub(WIDTH);
        let block = || RwLock::new(BlockScratch::new(rows, WIDTH, 0));
        Self {
            factor: Mutex::new(factor_scratch(rows, WIDTH)),
            blocks: [block(), block()],
            products: (0..n.div_ceil(STRIP)).map(|_| Mutex::new(Product::new())).collect(),
            v: RwLock::new(vec![T::ZERO; n * WIDTH]),
            w: RwLock::new(vec![T::ZERO; n * WIDTH]),
        }
    }
}

/// What a strip's rows give to W.
#[derive(Debug)]
struct Product<T> {
    x: Vec<T>,
    /// What the strips on its left, and the adjoint of what the strip itself give to A·V.
    left: Vec<T>,
    own: Vec<T>,
    /// Vᴴ·X.
    inner: Vec<T>,
    /// A block on the diagonal, with both its triangles.
    block: Vec<T>,
}

impl<T: Scalar> Product<T> {
    fn new() -> Self {
        let zeros = |count| vec![T::ZERO; count];
        Self {
            x: zeros(STRIP * WIDTH),
            left: zeros(STRIP * WIDTH),
            own: zeros(STRIP * WIDTH),
            inner: zeros(WIDTH * WIDTH),
            block: zeros(STRIP * STRIP),
        }
    }
}

/// Reduces the lower triangle of `a`, of order n, to a band of [`WIDTH`] below the diagonal, with the same
/// bits on any number of threads. What is below the band has no meaning then.
pub(crate) fn reduce_to_band<T: Scalar>(
    a: &mut [T],
    n: usize,
    scratch: &Scratch<T>,
    threads: &dyn Threads,
) {
    // A row below the band is none if it is the last.
    let panels = n.saturating_sub(WIDTH + 1).div_ceil(WIDTH);
    if panels == 0 {
        return;
    }
    let strips = a.chunks_mut(n * STRIP).map(RwLock::new).collect();
    let job = Job { n, panels, strips, scratch };
    job.factor(0);
    schedule(n, panels).run(threads, job.strips.len(), |work| job.run(work));
}

/// A piece of work.
enum Work {
    /// A strip's rows of X, and what they give to Vᴴ·X.
    Product { panel: usize, strip: usize },
    /// W.
    Correction { panel: usize },
    /// The update of a strip, and the next panel's factors where it is in it.
    Update { panel: usize, strip: usize },
}

/// The strip with the columns of a panel.
fn strip_of(panel: usize) -> usize {
    panel * WIDTH / STRIP
}

/// The work of so many panels of a matrix of order n.
fn schedule(n: usize, panels: usize) -> Schedule<Work, 3> {
    const PRODUCTS: usize = 0;
    const CORRECTIONS: usize = 1;
    const UPDATES: usize = 2;
    let mut schedule = Schedule::new();
    for panel in 0..panels {
        let strips = strip_of(panel + 1)..n.div_ceil(STRIP);
        for strip in strips.clone() {
            schedule.add(Work::Product { panel, strip }, PRODUCTS, UPDATES);
        }
        schedule.add(Work::Correction { panel }, CORRECTIONS, PRODUCTS);
        for strip in strips {
            schedule.add(Work::Update { panel, strip }, UPDATES, CORRECTIONS);
        }
    }
    schedule
}

struct Job<'a, T: Scalar> {
    n: usize,
    panels: usize,
    strips: Vec<RwLock<&'a mut [T]>>,
    scratch: &'a Scratch<T>,
}

impl<T: Scalar> Job<'_, T> {
    fn run(&self, work: &Work) {
        match *work {
            Work::Product { panel, strip } => self.multiply(panel, strip),
            Work::Correction { panel } => self.correct(panel),
            Work::Update { panel, strip } => {
                self.update(panel, strip);
                if strip == strip_of(panel + 1) && panel + 1 < self.panels {
                    self.factor(panel + 1);
                }
            }
        }
    }

    /// The first row below the band of a panel, and the number of its reflectors.
    fn below(&self, panel: usize) -> (usize, usize) {
        let row = (panel + 1) * WIDTH;
        (row, WIDTH.min(self.n - row))
    }

    /// The columns of a strip that are right of a panel's, and not above its row.
    fn columns(&self, panel: usize, strip: usize) -> Range<usize> {
        let (row, _) = self.below(panel);
        row.max(strip * STRIP)..self.n.min((strip + 1) * STRIP)
    }

    fn factor(&self, panel: usize) {
        let Self { n, scratch: Scratch { factor, blocks, .. }, .. } = *self;
        let (row, count) = self.below(panel);
        let (strip, column) = (strip_of(panel), panel * WIDTH % STRIP);
        let mut strip = self.strips[strip].write().unwrap_or_else(PoisonError::into_inner);
        let a = &mut strip[column * n..(column + WIDTH) * n];
        let mut tau = [T::ZERO; WIDTH];
        let tau = &mut tau[..count];
        let mut factor = factor.lock().unwrap_or_else(PoisonError::into_inner);
        blocked::factor(Panel { a: &mut *a, lda: n, row }, tau, &mut factor, Arch::new());
        let v = MatRef::from_column_major_slice(a, n, WIDTH);
        let mut block = blocks[panel % 2].write().unwrap_or_else(PoisonError::into_inner);
        block.block(v.submatrix(row, 0, n - row, count), tau);
    }

    fn multiply(&self, panel: usize, strip: usize) {
        let Self { n, scratch: Scratch { blocks, products, .. }, .. } = *self;
        let (row, count) = self.below(panel);
        let block = blocks[panel % 2].read().unwrap_or_else(PoisonError::into_inner);
        let (v, t) = block.made(n - row, count);
        let mut product = products[strip].lock().unwrap_or_else(PoisonError::into_inner);
        let Product { x, left, own, inner, block } = &mut *product;
        let rows = self.columns(panel, strip);
        let order = rows.len();
        let mut x = MatMut::from_column_major_slice_mut(&mut x[..order * count], order, count);
        let mut left =
            MatMut::from_column_major_slice_mut(&mut left[..order * count], order, count);
        let mut sum = Accum::Replace;
        for other in strip_of(panel + 1)..strip {
            let columns = self.columns(panel, other);
            let a = self.strips[other].read().unwrap_or_else(PoisonError::into_inner);
            let a = MatRef::from_column_major_slice(&a, n, a.len() / n);
            let a = a.submatrix(rows.start, columns.start - other * STRIP, order, columns.len());
            let v = v.subrows(columns.start - row, columns.len());
            T::product(left.as_mut(), sum, (a, Conj::No), (v, Conj::No), T::ONE);
            sum = Accum::Add;
        }
        // By adjoints, so that the large factor is on the right: f64 with AVX-512, 75 GFLOP/s for 55.
        let a = self.strips[strip].read().unwrap_or_else(PoisonError::into_inner);
        let a = MatRef::from_column_major_slice(&a, n, a.len() / n);
        let a = a.subcols(rows.start - strip * STRIP, order);
        let block = hermitian(&mut block[..order * order], a.subrows(rows.start, order));
        let mut own = MatMut::from_column_major_slice_mut(&mut own[..count * order], count, order);
        let v_own = (v.subrows(rows.start - row, order).transpose(), Conj::Yes);
        T::product(own.as_mut(), Accum::Replace, v_own, (block, Conj::No), T::ONE);
        let v_below = (v.subrows(rows.end - row, n - rows.end).transpose(), Conj::Yes);
        let below = (a.subrows(rows.end, n - rows.end), Conj::No);
        T::product(own.as_mut(), Accum::Add, v_below, below, T::ONE);
        let own = (own.as_ref().transpose(), Conj::Yes);
        T::product(x.as_mut(), Accum::Replace, own, (t, Conj::No), T::ONE);
        if sum == Accum::Add {
            T::product(x.as_mut(), sum, (left.as_ref(), Conj::No), (t, Conj::No), T::ONE);
        }
        let inner = MatMut::from_column_major_slice_mut(&mut inner[..count * count], count, count);
        T::product(inner, Accum::Replace, v_own, (x.as_ref(), Conj::No), T::ONE);
    }

    fn correct(&self, panel: usize) {
        let Self { n, scratch: Scratch { blocks, products, v: v_copy, w, .. }, .. } = *self;
        let (row, count) = self.below(panel);
        let block = blocks[panel % 2].read().unwrap_or_else(PoisonError::into_inner);
        let (v, t) = block.made(n - row, count);
        let mut v_copy = v_copy.write().unwrap_or_else(PoisonError::into_inner);
        for (j, column) in v_copy[..n * count].chunks_exact_mut(n).enumerate() {
            column[row..].iter_mut().enumerate().for_each(|(i, x)| *x = v[(i, j)]);
        }
        let mut w = w.write().unwrap_or_else(PoisonError::into_inner);
        let w = &mut w[..n * count];
        let mut inner = [T::ZERO; WIDTH * WIDTH];
        let inner = &mut inner[..count * count];
        for (strip, product) in products.iter().enumerate().skip(strip_of(panel + 1)) {
            let product = product.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = self.columns(panel, strip);
            for (w, x) in w.chunks_exact_mut(n).zip(product.x.chunks_exact(rows.len())) {
                w[rows.clone()].copy_from_slice(x);
            }
            inner.iter_mut().zip(&product.inner).for_each(|(sum, &inner)| *sum += inner);
        }
        let inner = MatRef::from_column_major_slice(inner, count, count);
        let mut half = [T::ZERO; WIDTH * WIDTH];
        let half = &mut half[..count * count];
        let mut half = MatMut::from_column_major_slice_mut(half, count, count);
        let t_adjoint = (t.transpose(), Conj::Yes);
        let factor = T::from_real(T::Real::from_f64(0.5));
        T::product(half.as_mut(), Accum::Replace, t_adjoint, (inner, Conj::No), factor);
        let w = MatMut::from_column_major_slice_mut(w, n, count).subrows_mut(row, n - row);
        T::product(w, Accum::Add, (v, Conj::No), (half.as_ref(), Conj::No), -T::ONE);
    }

    fn update(&self, panel: usize, strip: usize) {
        let Self { n, scratch: Scratch { products, v, w, .. }, .. } = *self;
        let (_, count) = self.below(panel);
        let v = v.read().unwrap_or_else(PoisonError::into_inner);
        let w = w.read().unwrap_or_else(PoisonError::into_inner);
        let Range { start, end } = self.columns(panel, strip);
        let mut a = self.strips[strip].write().unwrap_or_else(PoisonError::into_inner);
        let a = &mut a[(start - strip * STRIP) * n..(end - strip * STRIP) * n];
        let mut product = products[strip].lock().unwrap_or_else(PoisonError::into_inner);
        update_columns(a, n, start, &v[..n * count], &w[..n * count], &mut product.block);
    }
}

/// Both triangles of the matrix whose lower one is given.
fn hermitian<'a, T: Scalar>(block: &'a mut [T], a: MatRef<'_, T>) -> MatRef<'a, T> {
    let n = a.nrows();
    for j in 0..n {
        block[j * n + j] = T::from_real(a[(j, j)].re());
        for i in j + 1..n {
            let x = a[(i, j)];
            (block[j * n + i], block[i * n + j]) = (x, x.conj());
        }
    }
    MatRef::from_column_major_slice(block, n, n)
}
