//! Panels of the reduction to Hessenberg form on one thread.

use std::ops::Range;

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Simd, WithSimd};

use super::PANEL;
use super::columns::Reduce;
use super::route::UNBLOCKED;
use crate::Scalar;
use crate::blas::fused::{adjoint_product, row_adjoint, sub_product, sub_products};
use crate::blas::householder::{BlockScratch, reflector};
use crate::matrix::layout::Factor;
use crate::registers;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::loops::sub_scaled;
use crate::simd::scalar::ShortRow;
use crate::simd::{lane, scalar};

/// What a reduction reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    /// The reflectors of a panel, with their ones and zeros: n × [`PANEL`].
    v: Vec<T>,
    /// A·V·T: n × [`PANEL`].
    y: ShortRow<T>,
    /// The triangular factor of a panel: [`PANEL`] × [`PANEL`].
    t: Vec<T>,
    /// What a product with a panel passes through.
    sums: Vec<T>,
    pub(crate) block: BlockScratch<T>,
    /// Where registers serve.
    pub(crate) rows: Option<registers::hessenberg::Scratch<T::Real>>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        let zeros = |length| vec![T::ZERO; length];
        let width = if n <= UNBLOCKED { 0 } else { PANEL };
        Self {
            v: zeros(n * width),
            y: scalar::zeros(n.max(n * width)),
            t: zeros(width * width),
            sums: zeros(2 * width),
            block: BlockScratch::new(n, width, n),
            rows: registers::hessenberg::pay(Kind::of::<T>(), n)
                .then(|| registers::hessenberg::Scratch::new::<T>(n, lane::width::<T>())),
        }
    }
}

/// The same where the rows and columns before the active ones may be reduced already.
pub(crate) fn reduce_rest<T: Scalar>(
    a: &mut [T],
    n: usize,
    active: Range<usize>,
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let Range { start: mut first, end } = active;
    let by_registers = scratch.rows.is_some() && end == n;
    let unblocked = if by_registers { registers::hessenberg::columns(n) } else { UNBLOCKED };
    while end - first > unblocked {
        panel(a, n, first..end, &mut tau[first..first + PANEL], scratch, arch);
        first += PANEL;
    }
    if let Some(scratch) = scratch.rows.as_mut().filter(|_| by_registers) {
        arch.dispatch(registers::hessenberg::Reduce { a, n, start: first, tau, scratch });
        return;
    }
    arch.dispatch(Reduce { a, n, active: first..end, tau, sums: &mut scratch.y });
}

/// A part of a column-major matrix with n rows.
pub(crate) fn part<T>(a: &[T], n: usize, rows: Range<usize>, cols: Range<usize>) -> MatRef<'_, T> {
    let width = cols.len();
    let a = MatRef::from_column_major_slice(&a[cols.start * n..cols.end * n], n, width);
    a.subrows(rows.start, rows.len())
}

/// A part of a column-major matrix with n rows.
pub(crate) fn part_mut<T>(
    a: &mut [T],
    n: usize,
    rows: Range<usize>,
    cols: Range<usize>,
) -> MatMut<'_, T> {
    let width = cols.len();
    let a = MatMut::from_column_major_slice_mut(&mut a[cols.start * n..cols.end * n], n, width);
    a.subrows_mut(rows.start, rows.len())
}

/// The reflectors of a panel so far, as I − V·T·Vᴴ, and Y = A·V·T. V and Y have the rows below the first
/// active one, V with its ones and zeros.
pub(crate) struct Aggregate<'a, T> {
    pub(crate) rows: usize,
    pub(crate) v: &'a mut [T],
    pub(crate) y: &'a mut [T],
    /// [`PANEL`] × [`PANEL`].
    pub(crate) t: &'a mut [T],
    /// Room for two columns of T.
    pub(crate) sums: &'a mut [T],
}

impl<T: Scalar> Aggregate<'_, T> {
    /// Brings column j of the panel, its rows being `x`, up to date as to the last column of Y and from the left,
    /// and finds its reflector: column j of V.
    pub(crate) fn reflect(&mut self, j: usize, x: &mut [T], tau: &mut T, arch: Arch) {
        let Self { rows, v, y, t, sums } = self;
        let (v, new) = v.split_at_mut(j * *rows);
        let (y, new) = (&y[..j * *rows], &mut new[..*rows]);
        arch.dispatch(Step { v, y, t, sums, x, new, tau });
    }

    /// Column j of Y, tau·(A·v − Y·(Vᴴ·v)) of which the first term is there, and of T, −tau·T·(Vᴴ·v) above
    /// tau; `overlaps` is Vᴴ·v, for the V before. The `next` column of A is brought up to date as to Y so far:
    /// what is read for one is read for both.
    pub(crate) fn complete(
        &mut self,
        j: usize,
        tau: T,
        overlaps: &[T],
        next: Option<&mut [T]>,
        arch: Arch,
    ) {
        let Self { rows, v, y, t, sums } = self;
        arch.dispatch(Complete { rows: *rows, v, y, t, sums, j, tau, overlaps, next });
    }
}

struct Complete<'a, T> {
    rows: usize,
    v: &'a [T],
    y: &'a mut [T],
    t: &'a mut [T],
    sums: &'a mut [T],
    j: usize,
    tau: T,
    overlaps: &'a [T],
    next: Option<&'a mut [T]>,
}

impl<T: Scalar> WithSimd for Complete<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, v, y, t, sums, j, tau, overlaps, next } = self;
        let (known, y) = y.split_at_mut(j * rows);
        let y = &mut y[..rows];
        let (inner, heads) = sums.split_at_mut(PANEL);
        let inner = &mut inner[..j];
        for (inner, &overlap) in inner.iter_mut().zip(overlaps) {
            *inner = overlap * tau;
        }
        if let Some(next) = next {
            let heads = row_adjoint(&mut heads[..j], &v[..j * rows], rows, j);
            sub_products(simd, [y, next], known, rows, 0, [inner, heads]);
        } else {
            sub_product(simd, y, known, rows, 0, inner);
        }
        let (known, column) = t.split_at_mut(j * PANEL);
        column[..j].fill(T::ZERO);
        column[j] = tau;
        // Column k of an upper triangle.
        for (k, (factor, known)) in inner.iter().zip(known.chunks_exact(PANEL)).enumerate() {
            sub_scaled::<S, T>(&mut column[..=k], *factor, &known[..=k]);
        }
    }
}

/// Vᴴ·v for the V before column j, of some rows.
pub(crate) struct Overlaps<'a, T> {
    pub(crate) v: &'a [T],
    pub(crate) rows: usize,
    pub(crate) j: usize,
    pub(crate) of: Range<usize>,
    pub(crate) overlaps: &'a mut [T; PANEL],
}

impl<T: Scalar> WithSimd for Overlaps<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { v, rows, j, of, overlaps } = self;
        let (known, v) = v.split_at(j * rows);
        adjoint_product(simd, &mut overlaps[..j], known, rows, of.start, &v[of]);
    }
}

/// Reduces the first [`PANEL`] columns of the active ones, and updates all of A for it.
fn panel<T: Scalar>(
    a: &mut [T],
    n: usize,
    active: Range<usize>,
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let Scratch { v, y, t, sums, block, .. } = scratch;
    let (first, end) = (active.start, active.end);
    let (next, rows) = (first + PANEL, end - first - 1);
    // What is above of Y comes last.
    let (v, y) = (&mut v[..rows * PANEL], &mut y[..rows * PANEL]);
    v.fill(T::ZERO);
    t.fill(T::ZERO);
    for (j, tau) in tau.iter_mut().enumerate().take(PANEL) {
        let column = first + j;
        let mut aggregate = Aggregate { rows, v: &mut *v, y: &mut *y, t, sums };
        aggregate.reflect(j, &mut a[column * n + first + 1..column * n + end], tau, arch);
        let tail = MatRef::from_column_major_slice(&aggregate.v[j * rows..(j + 1) * rows], rows, 1);
        let tail = (tail.subrows(j, rows - j), Conj::No);
        let others = (part(a, n, first + 1..end, column + 1..end), Conj::No);
        let product = &mut aggregate.y[j * rows..(j + 1) * rows];
        let product = MatMut::from_column_major_slice_mut(product, rows, 1);
        T::product(product, Accum::Replace, others, tail, *tau);
        let mut overlaps = [T::ZERO; PANEL];
        arch.dispatch(Overlaps { v: aggregate.v, rows, j, of: j..rows, overlaps: &mut overlaps });
        let next = (j + 1) * n + first * n + first + 1;
        let next = (j + 1 < PANEL).then(|| &mut a[next..next + rows]);
        aggregate.complete(j, *tau, &overlaps, next, arch);
    }

    // A ← A − Y·Vᴴ to the right of the panel, where V's last row in the panel is its first here.
    let v = MatRef::from_column_major_slice(v, rows, PANEL);
    let y = MatRef::from_column_major_slice(y, rows, PANEL);
    let right = (v.subrows(PANEL - 1, end - next).transpose(), Conj::Yes);
    T::product(
        part_mut(a, n, first + 1..end, next..end),
        Accum::Add,
        (y, Conj::No),
        right,
        -T::ONE,
    );
    let mut block = block.block(part(a, n, first + 1..end, first..next), tau);
    // Above, A ← A·Q; to the right, A ← Qᴴ·A.
    block.apply_right(Factor::Q, part_mut(a, n, 0..first + 1, first + 1..end));
    block.apply_left(Factor::Adjoint, part_mut(a, n, first + 1..end, next..n));
}

/// Brings one column of a panel up to date and finds its reflector.
struct Step<'a, T> {
    /// The columns of V, Y and T so far.
    v: &'a [T],
    y: &'a [T],
    t: &'a [T],
    sums: &'a mut [T],
    /// The column of A, below the first active row.
    x: &'a mut [T],
    /// The next column of V, zero.
    new: &'a mut [T],
    tau: &'a mut T,
}

impl<T: Scalar> WithSimd for Step<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { v, y, t, sums, x, new, tau } = self;
        let (rows, j) = (x.len(), v.len() / x.len());
        if let Some(last) = j.checked_sub(1) {
            let (sums, factors) = sums.split_at_mut(PANEL);
            let (sums, factors) = (&mut sums[..j], &mut factors[..j]);
            // x ← x − Y·(V's row of this column)ᴴ, which is one in the last column.
            sub_scaled::<S, T>(x, T::ONE, &y[last * rows..]);
            // x ← x − V·Tᴴ·(Vᴴ·x).
            adjoint_product(simd, sums, v, rows, 0, x);
            for (i, factor) in factors.iter_mut().enumerate() {
                let column = t[i * PANEL..].iter().zip(&sums[..=i]);
                *factor = column.fold(T::ZERO, |sum, (t, &s)| sum + t.conj() * s);
            }
            sub_product(simd, x, v, rows, 0, factors);
        }
        let Some((head, tail)) = x[j..].split_first_mut() else { return };
        let reflector = reflector::<S, T>(*head, tail);
        (*head, *tau) = (T::from_real(reflector.beta), reflector.tau);
        new[j] = T::ONE;
        new[j + 1..].copy_from_slice(tail);
    }
}
