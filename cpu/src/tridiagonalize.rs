//! Reduction of a Hermitian matrix to real tridiagonal form: A = Q·T·Qᴴ, Q = H₁·H₂⋯H_(n−1).
//!
//! Panels of columns, after which the rest of the matrix is updated by one product of rank twice
//! their width: Dongarra, Sorensen and Hammarling, "Block reduction of matrices to condensed forms
//! for eigenvalue computations" (J. Comput. Appl. Math. 27, 1989; LAPACK working note 2).

use std::ops::RangeInclusive;

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{ItemsInOut, ItemsMut, Real as _, Scalar as _, Serial, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::columns::{adjoint_product, hermitian_product, row_adjoint, sub_product, sub_products};
use crate::householder::{Reflector, dot, reflector};
use crate::lanes::{self, for_each_group};
use crate::normal_range::{largest_part, power_near_reciprocal};
use crate::scalar::{Short, is_single, nanoseconds, narrow, widen, zeros};
use crate::simd::sub_scaled;
use crate::small_tridiagonal;
use crate::tiled_tridiagonal::{TILED_ORDER, tridiagonalize_tiled};
use crate::{Error, InOut, Scalar, Threads, Uplo};

/// The orders of matrices that are reduced in one pass for each column. On one core with AVX-512, f64,
/// eigenvalues alone, with panels and in one pass: n = 8 4.5 and 4.8 us, 16 14 and 13, 64 179 and 143, 96 420 and
/// 343, 128 900 and 730.
const SMALL: RangeInclusive<usize> = 16..=128;
/// Columns that are reduced before the rest is updated.
pub(crate) const PANEL: usize = 32;
/// The order up to which a Hermitian update is computed as a full product, of which half is used.
pub(crate) const PRODUCT_ORDER: usize = 64;
/// The order up to which a batch goes through lanes.
const LANES_ORDER: usize = 32;
/// The order up to which a matrix in single precision is reduced in double precision, for the reason
/// why Schur forms are.
pub(crate) const DOUBLE_ORDER: usize = 24;

/// Reduces each n × n Hermitian matrix of a batch to tridiagonal form, A = Q·T·Qᴴ.
///
/// LAPACK's storage: T's diagonal `d` and `e` beside it, both real, also replace those elements of
/// `a`. Q is H(1)⋯H(n−1) for `Lower`, where v of H(i) is zero up to row i and 1 in row i + 1, and
/// its tail lies in column i; for `Upper` it is H(n−1)⋯H(1), where v of H(i) is 1 in row i and zero
/// after it, and the rest lies in column i + 1. The other triangle is neither read nor written.
/// NaN and infinities propagate. `info` is 0.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "LAPACK's arguments, less the leading dimensions")]
#[per_scalar]
pub fn sytrd<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("d", batch, &[n], d)?,
        ItemsMut::new("e", batch, &[n.saturating_sub(1)], e)?,
        ItemsMut::new("tau", batch, &[n.saturating_sub(1)], tau)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = n.saturating_mul(n).saturating_mul(n);
    let arch = Arch::new();
    let double = is_single::<T>() && n <= DOUBLE_ORDER;
    if lanes::pay(batch, n, LANES_ORDER) {
        let single = |a: &mut [T], d: &mut [T::Real], e: &mut [T::Real], tau: &mut [T]| {
            Whole::new(uplo, n).reduce(uplo, (a, d, e, tau), &Serial, arch);
        };
        let kernel = lanes::sytrd::Reduce { n, uplo, single };
        let work = nanoseconds::<T>(products);
        if double {
            for_each_group::<T::Double, _>(batch, operands, work, threads, &kernel);
        } else {
            for_each_group::<T, _>(batch, operands, work, threads, &kernel);
        }
        return Ok(());
    }
    if double {
        let work = nanoseconds::<T::Double>(products);
        for_each(
            batch,
            operands,
            work,
            threads,
            || Double::<T>::new(uplo, n),
            |double, (a, d, e, tau, info)| {
                info[0] = 0;
                double.reduce(uplo, (a, d, e, tau), arch);
            },
        );
        return Ok(());
    }
    let scratch = || Whole::new(uplo, n);
    if n >= TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, d, e, tau, info), threads| {
            info[0] = 0;
            scratch().reduce(uplo, (a, d, e, tau), threads, arch);
        });
        return Ok(());
    }
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |whole, (a, d, e, tau, info)| {
            info[0] = 0;
            whole.reduce(uplo, (a, d, e, tau), &Serial, arch);
        },
    );
    Ok(())
}

/// A matrix and its results: a, d, e, tau.
type Parts<'a, T> = (
    &'a mut [T],
    &'a mut [<T as lapax_core::Scalar>::Real],
    &'a mut [<T as lapax_core::Scalar>::Real],
    &'a mut [T],
);

/// What the reduction of one matrix after another reuses.
struct Whole<T: Scalar> {
    /// A matrix, end for end: an upper triangle then is a lower one.
    turned: Vec<T>,
    scratch: Scratch<T>,
}

impl<T: Scalar> Whole<T> {
    /// For triangles of order n.
    fn new(uplo: Uplo, n: usize) -> Self {
        let turned = if uplo == Uplo::Upper { n } else { 0 };
        Self { turned: vec![T::ZERO; turned * turned], scratch: Scratch::new(n) }
    }

    fn reduce(
        &mut self,
        uplo: Uplo,
        (a, d, e, tau): Parts<'_, T>,
        threads: &dyn Threads,
        arch: Arch,
    ) {
        let Self { turned, scratch } = self;
        let n = d.len();
        if uplo == Uplo::Lower {
            return reduce((a, d, e, tau), scratch, threads, arch);
        }
        // End for end, an upper triangle is a lower one, and H(1)⋯H(n−1) is H(n−1)⋯H(1).
        copy_turned(triangle_ranges(n, Uplo::Upper), a, turned);
        reduce((turned, d, e, tau), scratch, threads, arch);
        copy_turned(triangle_ranges(n, Uplo::Lower), turned, a);
        d.reverse();
        e.reverse();
        tau.reverse();
    }
}

/// Reduces in double precision what is single: for the reason why Schur forms are, and as fast.
struct Double<T: Scalar> {
    whole: Whole<T::Double>,
    a: Vec<T::Double>,
    d: Vec<f64>,
    e: Vec<f64>,
    tau: Vec<T::Double>,
}

impl<T: Scalar> Double<T> {
    /// For triangles of order n.
    fn new(uplo: Uplo, n: usize) -> Self {
        let beside = n.saturating_sub(1);
        Self {
            whole: Whole::new(uplo, n),
            a: vec![T::Double::ZERO; n * n],
            d: vec![0.0; n],
            e: vec![0.0; beside],
            tau: vec![T::Double::ZERO; beside],
        }
    }

    fn reduce(&mut self, uplo: Uplo, (a, d, e, tau): Parts<'_, T>, arch: Arch) {
        widen(&mut self.a, a);
        let parts = (&mut self.a[..], &mut self.d[..], &mut self.e[..], &mut self.tau[..]);
        self.whole.reduce(uplo, parts, &Serial, arch);
        for range in triangle_ranges(d.len(), uplo) {
            narrow(&mut a[range.clone()], &self.a[range]);
        }
        narrow(d, &self.d);
        narrow(e, &self.e);
        narrow(tau, &self.tau);
    }
}

/// A matrix whose largest element is off from one by no more than this factor stays as it is: its squares are far
/// from overflow, and one pass over it is saved.
const NEAR_ONE: f64 = 65536.0;

/// Reduces a lower triangle that is first brought to where nothing overflows.
fn reduce<T: Scalar>(
    (a, d, e, tau): Parts<'_, T>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    let n = d.len();
    let power =
        largest_part(triangle(a, n, Uplo::Lower)).map_or(T::Real::ONE, power_near_reciprocal);
    let near_one = T::Real::from_f64(NEAR_ONE);
    let power =
        if power * near_one >= T::Real::ONE && power <= near_one { T::Real::ONE } else { power };
    if power != T::Real::ONE {
        for range in triangle_ranges(n, Uplo::Lower) {
            a[range].iter_mut().for_each(|x| *x = x.scale(power));
        }
    }
    if n >= TILED_ORDER {
        tridiagonalize_tiled(a, d, e, tau, scratch, threads, arch);
    } else {
        tridiagonalize(a, d, e, tau, scratch, arch);
    }
    d.iter_mut().chain(&mut *e).for_each(|x| *x = *x / power);
    for (j, &d) in d.iter().enumerate() {
        a[j * n + j] = T::from_real(d);
    }
    for (j, &e) in e.iter().enumerate() {
        a[j * n + j + 1] = T::from_real(e);
    }
}

/// What reductions of matrices of one order reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    /// W, with which A − V·Wᴴ − W·Vᴴ is the updated matrix.
    w: Short<T>,
    /// A product of which one triangle is used.
    block: Vec<T>,
    small: Option<small_tridiagonal::Scratch<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        if SMALL.contains(&n) {
            let small = Some(small_tridiagonal::Scratch::new(n));
            return Self { w: Short::new(), block: Vec::new(), small };
        }
        let block = if n <= PANEL { 0 } else { PRODUCT_ORDER };
        let block = vec![T::ZERO; block * block];
        Self { w: zeros(n * PANEL.min(n)), block, small: None }
    }
}

/// Reduces the lower triangle of `a`, of order n; nothing else of it is read or written.
///
/// `d` becomes T's diagonal and `e` what is beside it; both also replace those elements of `a`, and
/// the tail of reflector j's vector replaces the rest of column j (xSYTRD, xHETRD with 'L').
pub(crate) fn tridiagonalize<T: Scalar>(
    a: &mut [T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    if d.is_empty() {
        return;
    }
    if let Some(scratch) = &mut scratch.small {
        return arch.dispatch(small_tridiagonal::Reduce { a, d, e, tau, scratch });
    }
    tridiagonalize_rest(a, 0, d, e, tau, scratch, arch);
}

/// The same, from column `first` on, where the columns before it were reduced.
pub(crate) fn tridiagonalize_rest<T: Scalar>(
    a: &mut [T],
    mut first: usize,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = d.len();
    while first < n {
        let width = PANEL.min(n - first);
        let w = &mut scratch.w[..n * width];
        arch.dispatch(Panel { a, first, d, e, tau, w });
        let next = first + width;
        if next < n {
            update(a, n, first, next, &scratch.w, &mut scratch.block);
        }
        // The ones that were written for the products give way to T.
        for j in first..next.min(n - 1) {
            a[j * n + j + 1] = T::from_real(e[j]);
        }
        first = next;
    }
}

/// A22 ← A22 − V·Wᴴ − W·Vᴴ, the lower triangle from row and column `next` on.
fn update<T: Scalar>(a: &mut [T], n: usize, first: usize, next: usize, w: &[T], block: &mut [T]) {
    let (left, right) = a.split_at_mut(next * n);
    update_columns(right, n, next, &left[first * n..], w, block);
}

/// The same of some columns, the first of which is column `next` of the matrix of order n.
pub(crate) fn update_columns<T: Scalar>(
    columns: &mut [T],
    n: usize,
    next: usize,
    v: &[T],
    w: &[T],
    block: &mut [T],
) {
    let (width, count) = (v.len() / n, columns.len() / n);
    let v = MatRef::from_column_major_slice(v, n, width);
    let w = MatRef::from_column_major_slice(&w[..n * width], n, width);
    let mut a = MatMut::from_column_major_slice_mut(columns, n, count);
    let mut column = 0;
    while column < count {
        let (row, order) = (next + column, PRODUCT_ORDER.min(count - column));
        let (v1, w1) = (v.subrows(row, order), w.subrows(row, order));
        let mut product =
            MatMut::from_column_major_slice_mut(&mut block[..order * order], order, order);
        let (v1_adjoint, w1_adjoint) = ((v1.transpose(), Conj::Yes), (w1.transpose(), Conj::Yes));
        T::product(product.as_mut(), Accum::Replace, (v1, Conj::No), w1_adjoint, T::ONE);
        T::product(product.as_mut(), Accum::Add, (w1, Conj::No), v1_adjoint, T::ONE);
        for j in 0..order {
            for i in j..order {
                a[(row + i, column + j)] -= product[(i, j)];
            }
        }
        let below = row + order;
        let (v2, w2) = (v.subrows(below, n - below), w.subrows(below, n - below));
        let mut a21 = a.as_mut().submatrix_mut(below, column, n - below, order);
        T::product(a21.as_mut(), Accum::Add, (v2, Conj::No), w1_adjoint, -T::ONE);
        T::product(a21, Accum::Add, (w2, Conj::No), v1_adjoint, -T::ONE);
        column += order;
    }
}

/// The reduction of as many columns as W has, from `first` on.
struct Panel<'a, T: Scalar> {
    a: &'a mut [T],
    first: usize,
    d: &'a mut [T::Real],
    e: &'a mut [T::Real],
    tau: &'a mut [T],
    w: &'a mut [T],
}

impl<T: Scalar> WithSimd for Panel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, first, d, e, tau, w } = self;
        let (n, last) = (d.len(), first + w.len() / d.len());
        for row in first + 1..=last {
            let (left, rest) = a.split_at_mut(row * n);
            let panel = &mut left[first * n..];
            reduce_column(simd, panel, w, d, e, tau, row - 1);
            if row == n {
                return;
            }
            let (known, w) = w.split_at_mut((row - 1 - first) * n);
            let w = &mut w[row..n];
            let v = &panel[known.len() + row..];
            if tau[row - 1] != T::ZERO {
                hermitian_product(simd, rest, n, v, w);
            }
            let mut factors = [[T::ZERO; PANEL]; 2];
            overlaps(simd, &mut factors, panel, known, n, row, v);
            let next = (row < last).then(|| &mut rest[row..n]);
            complete_product(simd, panel, known, tau[row - 1], &factors, w, next);
        }
    }
}

/// Brings column j, the last of a panel's so far, up to date, A − V·Wᴴ − W·Vᴴ, as to the last column of V and W,
/// and finds its reflector.
#[inline(always)]
pub(crate) fn reduce_column<S: Simd, T: Scalar>(
    simd: S,
    panel: &mut [T],
    w: &[T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    j: usize,
) {
    let n = d.len();
    let (reflectors, column) = panel.split_at_mut(panel.len() - n);
    if let Some(last) = reflectors.len().checked_sub(n) {
        let (v, w) = (&reflectors[last..], &w[last..reflectors.len()]);
        sub_product(simd, &mut column[j..], v, n, j, &[w[j].conj()]);
        sub_product(simd, &mut column[j..], w, n, j, &[v[j].conj()]);
    }
    d[j] = column[j].re();
    column[j] = T::from_real(d[j]);
    let Some((head, tail)) = column[j + 1..].split_first_mut() else { return };
    let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
    (e[j], tau[j], *head) = (beta, factor, T::ONE);
}

/// Wᴴ·v and Vᴴ·v for some rows, from `row` on, of v and of V and W so far.
#[inline(always)]
pub(crate) fn overlaps<S: Simd, T: Scalar>(
    simd: S,
    factors: &mut [[T; PANEL]; 2],
    panel: &[T],
    known: &[T],
    n: usize,
    row: usize,
    v: &[T],
) {
    for (factors, columns) in factors.iter_mut().zip([known, &panel[..known.len()]]) {
        adjoint_product(simd, &mut factors[..known.len() / n], columns, n, row, v);
    }
}

/// Makes w = tau·(A − V·Wᴴ − W·Vᴴ)·v, less the multiple of v that makes the update two-sided, of A·v,
/// for the v of a panel's last column so far and its [`overlaps`]. The `next` column of A is brought up to date as
/// to V and W so far: what is read for one is read for both.
#[inline(always)]
pub(crate) fn complete_product<S: Simd, T: Scalar>(
    simd: S,
    panel: &[T],
    known: &[T],
    tau: T,
    overlaps: &[[T; PANEL]; 2],
    w: &mut [T],
    mut next: Option<&mut [T]>,
) {
    let n = panel.len() - known.len();
    let row = n - w.len();
    let (reflectors, column) = panel.split_at(known.len());
    let mut heads = [T::ZERO; PANEL];
    if tau == T::ZERO {
        w.fill(T::ZERO);
    }
    for ((x, y), overlaps) in [(reflectors, known), (known, reflectors)].into_iter().zip(overlaps) {
        let overlaps = &overlaps[..known.len() / n];
        let heads = row_adjoint(&mut heads[..known.len() / n], y, n, row);
        match &mut next {
            Some(next) if tau == T::ZERO => sub_product(simd, next, x, n, row, heads),
            Some(next) => sub_products(simd, [&mut *w, next], x, n, row, [overlaps, heads]),
            None if tau == T::ZERO => {}
            None => sub_product(simd, w, x, n, row, overlaps),
        }
    }
    if tau == T::ZERO {
        return;
    }
    let v = &column[row..];
    w.iter_mut().for_each(|w| *w *= tau);
    let half = (tau * dot::<S, T>(w, v)).scale(T::Real::from_f64(0.5));
    sub_scaled::<S, T>(w, half, v);
}

/// The parts of each column in a triangle.
fn triangle_ranges(n: usize, uplo: Uplo) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n).map(move |j| match uplo {
        Uplo::Lower => j * n + j..(j + 1) * n,
        Uplo::Upper => j * n..j * n + j + 1,
    })
}

/// The elements of a triangle, column by column.
pub(crate) fn triangle<T>(a: &[T], n: usize, uplo: Uplo) -> impl Iterator<Item = &[T]> {
    triangle_ranges(n, uplo).map(|range| &a[range])
}

/// Copies ranges of a square matrix to where they are when it is turned end for end.
fn copy_turned<T: Copy>(
    ranges: impl Iterator<Item = std::ops::Range<usize>>,
    from: &[T],
    to: &mut [T],
) {
    let length = from.len();
    for range in ranges {
        let target = &mut to[length - range.end..length - range.start];
        target.iter_mut().rev().zip(&from[range]).for_each(|(to, &from)| *to = from);
    }
}
