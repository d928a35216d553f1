//! Reduction to Hessenberg form: A = Q·H·Qᴴ, H zero below its first subdiagonal.
//!
//! Q = H(low)·…·H(high − 1) is a product of reflectors H(i) = I − tau(i)·v·vᴴ; v is zero in rows 1
//! to i, one in row i + 1, and lies below the first subdiagonal of column i, as LAPACK stores it.
//! Panels are aggregated as I − V·T·Vᴴ after Quintana-Ortí and van de Geijn, "Improving the
//! performance of reduction to Hessenberg form" (ACM TOMS 32, 2006).

use std::ops::Range;

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{ItemsInOut, ItemsMut, Serial, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::columns::{adjoint_product, row_adjoint, sub_product, sub_products};
use crate::hessenberg_columns::{FormQ, Reduce};
use crate::householder::{BlockScratch, Factor, reflector};
use crate::lanes::{self, for_each_group};
use crate::normal_range::all_finite;
use crate::rotations::set_identity;
use crate::rows;
use crate::scalar::{self, ShortRow, nan, nanoseconds};
use crate::simd::sub_scaled;
use crate::tiled_hessenberg::{TILED_ORDER, reduce_tiled};
use crate::tiled_qr::generate_tiled;
use crate::transposition::transposed;
use crate::{Error, InOut, Scalar, Threads};

/// The number of columns that are reduced between two updates of the rest.
pub(crate) const PANEL: usize = 32;
/// The order up to which columns are reduced one by one.
const UNBLOCKED: usize = 96;
/// The order up to which a batch goes through lanes.
const LANES_ORDER: usize = 32;

/// Reduces each n × n matrix of a batch, in place.
///
/// `low` and `high`, counted from 1, say that the matrix is already upper triangular outside rows
/// and columns low..=high. `a` holds H on and above its first subdiagonal and the reflectors below;
/// `tau` holds n − 1 factors per matrix, zero outside low..high. `info` is zero. A matrix with an
/// element that is not finite becomes NaN throughout, as does its `tau`.
///
/// # Errors
/// Where `low` and `high` are no range of an n × n matrix (n = 0: 1 and 0), or a slice has another
/// length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
#[per_scalar]
pub fn gehrd<T: Scalar>(
    batch: usize,
    n: usize,
    low: usize,
    high: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    active_range(n, low, high)?;
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("tau", batch, &[n.saturating_sub(1)], tau)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(2);
    if lanes::pay(batch, n, LANES_ORDER) {
        let kernel = lanes::hessenberg::Reduce { n, active: low - 1..high };
        for_each_group::<T, _>(batch, operands, nanoseconds::<T>(products), threads, &kernel);
        return Ok(());
    }
    let (active, arch) = (low - 1..high, Arch::new());
    let reduced = reduced::<T>(active.len());
    let one = |a: &mut [T], tau: &mut [T], scratch: &mut Scratch<T>, threads: &dyn Threads| {
        if !all_finite(a) {
            a.fill(nan());
            tau.fill(nan());
        } else if reduced {
            tau.fill(T::ZERO);
        } else {
            reduce(a, n, active.clone(), tau, scratch, threads, arch);
        }
    };
    if active.len() >= TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, tau, info), threads| {
            one(a, tau, &mut Scratch::new(n), threads);
            info[0] = 0;
        });
        return Ok(());
    }
    let scratch = || Scratch::new(if reduced { 0 } else { n });
    let time = nanoseconds::<T>(products);
    for_each(batch, operands, time, threads, scratch, |scratch, (a, tau, info)| {
        one(a, tau, scratch, &Serial);
        info[0] = 0;
    });
    Ok(())
}

/// H and Q of each row-major n × n matrix of a batch, H in place of A, as [`gehrd`] has them: MATLAB's `hess`.
///
/// H has zeros below its first subdiagonal, and Q those of the identity in its first row and column. The rest of
/// both is NaN where the matrix has an element that is not finite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn hess<T: Scalar>(
    batch: usize,
    n: usize,
    h: InOut<'_, T>,
    q: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands =
        (ItemsInOut::new("h", batch, &[n, n], h)?, ItemsMut::new("q", batch, &[n, n], q)?);
    if n == 0 {
        return Ok(());
    }
    // A reduction takes 10/3·n³ operations, Q 4/3·n³.
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(3);
    let time = nanoseconds::<T>(products);
    if lanes::pay(batch, n, LANES_ORDER) {
        let kernel = lanes::hessenberg::Whole { n };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if reduced::<T>(n) {
        for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (h, q)| {
                if all_finite(h) {
                    set_identity(q, n);
                } else {
                    not_finite(h, q, n);
                }
            },
        );
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || (scalar::zeros(n - 1), Scratch::new(n));
    type Reuse<T> = (ShortRow<T>, Scratch<T>);
    let one = |(h, q): (&mut [T], &mut [T]), scratch: &mut Reuse<T>, threads: &dyn Threads| {
        let (tau, scratch) = scratch;
        if !all_finite(h) {
            not_finite(h, q, n);
        } else if let Some(scratch) = &mut scratch.rows
            && n <= rows::hessenberg::LARGEST_Q
        {
            arch.dispatch(rows::hessenberg::Whole { h, n, tau, q, scratch });
        } else {
            transposed(h, n);
            reduce(h, n, 0..n, tau, scratch, threads, arch);
            form_q(h, n, 0..n, tau, q, scratch, threads, arch);
            transposed(h, n);
            transposed(q, n);
        }
        only_hessenberg(h, n);
    };
    if n >= TILED_ORDER {
        for_each_large(batch, operands, threads, |item, threads| {
            one(item, &mut scratch(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, scratch, |scratch, item| {
            one(item, scratch, &Serial);
        });
    }
    Ok(())
}

/// Whether no matrix of order n has a reflector: a column of one real number has none.
fn reduced<T: Scalar>(n: usize) -> bool {
    n < 2 || n == 2 && !T::IS_COMPLEX
}

/// H and Q of a matrix of order n > 0 that is not finite, by rows.
pub(crate) fn not_finite<T: Scalar>(h: &mut [T], q: &mut [T], n: usize) {
    h.fill(nan());
    q.fill(nan());
    q[..n].fill(T::ZERO);
    q.iter_mut().step_by(n).for_each(|x| *x = T::ZERO);
    q[0] = T::ONE;
}

/// Zeros below the first subdiagonal of a row-major matrix.
pub(crate) fn only_hessenberg<T: Scalar>(h: &mut [T], n: usize) {
    for (i, row) in h.chunks_exact_mut(n).enumerate() {
        row[..i.saturating_sub(1)].fill(T::ZERO);
    }
}

/// Checks that rows and columns low..=high, counted from 1, are a range of an n × n matrix.
pub(crate) fn active_range(n: usize, low: usize, high: usize) -> Result<(), Error> {
    let order = |larger, larger_value, smaller, smaller_value| {
        let error = Error::Order { larger, larger_value, smaller, smaller_value };
        if larger_value < smaller_value { Err(error) } else { Ok(()) }
    };
    order("low", low, "1", 1)?;
    order("high", high, "min(low, n)", low.min(n))?;
    order("n", n, "high", high)?;
    order("max(n, 1)", n.max(1), "low", low)
}

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
    block: BlockScratch<T>,
    /// Where registers serve.
    rows: Option<rows::hessenberg::Scratch<T::Real>>,
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
            rows: rows::hessenberg::pay::<T>(n)
                .then(|| rows::hessenberg::Scratch::new::<T>(n, lanes::width::<T>())),
        }
    }
}

/// Reduces the rows and columns `active` of a matrix of order n, as [`gehrd`] does.
pub(crate) fn reduce<T: Scalar>(
    a: &mut [T],
    n: usize,
    active: Range<usize>,
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    tau.fill(T::ZERO);
    if active.len() >= TILED_ORDER {
        reduce_tiled(a, n, active, tau, scratch, threads, arch);
    } else {
        reduce_rest(a, n, active, tau, scratch, arch);
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
    let unblocked = if by_registers { rows::hessenberg::columns(n) } else { UNBLOCKED };
    while end - first > unblocked {
        panel(a, n, first..end, &mut tau[first..first + PANEL], scratch, arch);
        first += PANEL;
    }
    if let Some(scratch) = scratch.rows.as_mut().filter(|_| by_registers) {
        arch.dispatch(rows::hessenberg::Reduce { a, n, start: first, tau, scratch });
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

/// Q of a reduction, from what [`reduce`] left in `a` and `tau`.
#[allow(clippy::too_many_arguments, reason = "a reduction, its result and what that takes")]
pub(crate) fn form_q<T: Scalar>(
    a: &[T],
    n: usize,
    active: Range<usize>,
    tau: &[T],
    q: &mut [T],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    if active == (0..n)
        && n <= rows::hessenberg::LARGEST_Q
        && let Some(scratch) = &mut scratch.rows
    {
        return arch.dispatch(rows::hessenberg::FormQ { a, n, tau, q, scratch });
    }
    set_identity(q, n);
    if n <= UNBLOCKED {
        return arch.dispatch(FormQ { a, n, active, tau, q });
    }
    let Range { start, end } = active;
    let count = (end - start).saturating_sub(1);
    if end - start >= TILED_ORDER {
        let mut active = vec![T::ZERO; count * count];
        for (to, column) in active.chunks_exact_mut(count).zip(a[start * n..].chunks_exact(n)) {
            to.copy_from_slice(&column[start + 1..end]);
        }
        generate_tiled(&mut active, count, &tau[start..start + count], threads);
        for (from, column) in active.chunks_exact(count).zip(q[(start + 1) * n..].chunks_mut(n)) {
            column[start + 1..end].copy_from_slice(from);
        }
        return;
    }
    for first in (start..start + count).step_by(PANEL).rev() {
        let last = (first + PANEL).min(start + count);
        let reflectors = part(a, n, first + 1..end, first..last);
        let mut block = scratch.block.block(reflectors, &tau[first..last]);
        block.apply_left(Factor::Q, part_mut(q, n, first + 1..end, first + 1..end));
    }
}
