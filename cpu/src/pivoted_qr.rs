//! QR factorisation with column pivoting, A·P = Q·R: of the columns that are left, the one of
//! largest norm comes next.
//!
//! Norms are downdated from row to row, and computed anew where that has lost digits: Drmač and
//! Bujanović, "On the failure of rank-revealing QR factorization software" (ACM TOMS 35, 2008;
//! LAPACK Working Note 176).

use lapax_core::{ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::columns::reflect_columns;
use crate::householder::{BlockScratch, Factor, Reflector, norm, reflector};
use crate::pivoted_panel::{F_ROW, Panel, factor_panel};
use crate::qr::{self, TINY, WIDTH, factor, one_by_one};
use crate::reflectors::{Reflectors, multiply};
use crate::scalar::nanoseconds;
use crate::tiled_pivoted_qr::{TILED_ORDER, factor_pivoted_tiled};
use crate::{Error, InOut, Scalar, Side, Threads};

/// The smaller dimension up to which columns are updated one by one. Blocks halve what is read and
/// written, which matters once the matrix leaves the first caches.
const SMALL: usize = 64;

/// Factors each m × n matrix of a batch as A·P = Q·R, in place.
///
/// `a` and `tau` become what [`geqrf`](crate::qr::geqrf) makes of A·P. In `jpvt`, a number that is
/// not zero fixes its column: such columns come first, in order, and are not pivoted. It becomes
/// the permutation, counted from 1: column j of A·P is column `jpvt[j]` of A.
///
/// The first of equal norms wins, and a column that holds NaN is larger than any other.
///
/// # Errors
/// Where n exceeds `i32`, in which columns are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn geqp3<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    jpvt: InOut<'_, i32>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let k = m.min(n);
    let operands = (
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsInOut::new("jpvt", batch, &[n], jpvt)?,
        ItemsMut::new("tau", batch, &[k], tau)?,
    );
    if n == 0 {
        return Ok(());
    }
    let products = m.saturating_mul(n).saturating_mul(2 * k.max(1));
    let arch = Arch::new();
    if k >= TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, jpvt, tau), threads| {
            factor_pivoted_tiled(a, m, jpvt, tau, threads, arch);
        });
        return Ok(());
    }
    let scratch = || Scratch::new(m, n);
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |scratch, (a, jpvt, tau)| factor_pivoted(a, m, jpvt, tau, scratch, arch),
    );
    Ok(())
}

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    norms: Vec<Norm<T::Real>>,
    blocks: BlockScratch<T>,
    panel: Panel<T>,
    /// F of a panel.
    f: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let blocks = if one_by_one(m, n) {
            BlockScratch::new(0, 0, 0)
        } else {
            BlockScratch::new(m, WIDTH, n.max(WIDTH))
        };
        let (rows, columns) = if m.min(n) > SMALL { (m, n) } else { (0, 0) };
        Self {
            norms: vec![Norm::ZERO; n],
            blocks,
            panel: Panel::new(rows),
            f: vec![T::ZERO; columns * F_ROW],
        }
    }
}

/// The norm of what is left of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm<R> {
    /// As downdated.
    now: R,
    /// As it was when it was last computed from the column.
    computed: R,
}

/// Moves the fixed columns to the front, sets `jpvt` accordingly, and returns their number.
pub(crate) fn move_fixed<T>(a: &mut [T], m: usize, jpvt: &mut [i32]) -> usize {
    let mut fixed = 0;
    for (j, number) in (0..jpvt.len()).zip(1..) {
        let is_fixed = jpvt[j] != 0;
        jpvt[j] = number;
        if is_fixed {
            swap_columns(a, m, fixed, j);
            jpvt.swap(fixed, j);
            fixed += 1;
        }
    }
    fixed
}

/// Swaps columns i <= j.
#[inline(always)]
fn swap_columns<T>(a: &mut [T], m: usize, i: usize, j: usize) {
    if i < j {
        let (left, right) = a.split_at_mut(j * m);
        left[i * m..(i + 1) * m].swap_with_slice(&mut right[..m]);
    }
}

/// Factors the fixed columns as they are, and the others by pivoting among them.
pub(crate) fn factor_pivoted<T: Scalar>(
    a: &mut [T],
    m: usize,
    jpvt: &mut [i32],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let fixed = move_fixed(a, m, jpvt).min(tau.len());
    if tau.is_empty() {
        return;
    }
    let Scratch { norms, blocks, panel, f } = scratch;
    let all = Free { a, m, row: 0, jpvt, norms, tau };
    let (left, tau, free) = all.split(fixed);
    if fixed > 0 {
        factor(qr::Panel { a: &mut *left, lda: m, row: 0 }, tau, blocks, arch);
        let q = Reflectors { a: left, r: m, tau, factor: Factor::Adjoint };
        multiply(Side::Left, q, free.a, m, blocks, &mut [], arch);
    }
    arch.dispatch(Norms { a: free.a, m, row: fixed, norms: free.norms });
    factor_free(free, panel, f, arch);
}

/// Factors the free columns, whose norms are known. `f` holds [`F_ROW`] elements per column.
pub(crate) fn factor_free<T: Scalar>(
    mut free: Free<'_, T>,
    panel: &mut Panel<T>,
    f: &mut [T],
    arch: Arch,
) {
    while free.tau.len() > SMALL {
        factor_panel(&mut free, panel, f, arch);
        (_, _, free) = free.split(WIDTH);
    }
    let m = free.m;
    let columns = FactorFree(free);
    if m <= TINY { columns.with_simd(pulp::Scalar::new()) } else { arch.dispatch(columns) }
}

/// The free columns, and the factors of their reflectors; rows before `row` are rows of R already.
pub(crate) struct Free<'a, T: Scalar> {
    pub(crate) a: &'a mut [T],
    pub(crate) m: usize,
    pub(crate) row: usize,
    pub(crate) jpvt: &'a mut [i32],
    pub(crate) norms: &'a mut [Norm<T::Real>],
    pub(crate) tau: &'a mut [T],
}

impl<'a, T: Scalar> Free<'a, T> {
    /// The first `count` columns and their factors, and what is free once these are factored.
    pub(crate) fn split(self, count: usize) -> (&'a mut [T], &'a mut [T], Self) {
        let Self { a, m, row, jpvt, norms, tau } = self;
        let ((left, a), (left_tau, tau)) = (a.split_at_mut(count * m), tau.split_at_mut(count));
        let (jpvt, norms) = (&mut jpvt[count..], &mut norms[count..]);
        (left, left_tau, Self { a, m, row: row + count, jpvt, norms, tau })
    }

    /// Brings the column of largest norm to position j.
    #[inline(always)]
    fn pivot(&mut self, j: usize) {
        let pivot = j + largest(&self.norms[j..]);
        swap_columns(self.a, self.m, j, pivot);
        self.jpvt.swap(j, pivot);
        self.norms[pivot] = self.norms[j];
    }
}

/// Computes the norms of columns from row `row` on.
pub(crate) struct Norms<'a, T: Scalar> {
    pub(crate) a: &'a [T],
    pub(crate) m: usize,
    pub(crate) row: usize,
    pub(crate) norms: &'a mut [Norm<T::Real>],
}

impl<T: Scalar> WithSimd for Norms<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, m, row, norms } = self;
        for (norm, column) in norms.iter_mut().zip(a.chunks_exact(m)) {
            *norm = Norm::of::<S, T>(&column[row..]);
        }
    }
}

/// Reflectors one by one, each applied to all columns that are left.
struct FactorFree<'a, T: Scalar>(Free<'a, T>);

impl<T: Scalar> WithSimd for FactorFree<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(mut free) = self;
        for (j, tau) in std::mem::take(&mut free.tau).iter_mut().enumerate() {
            free.pivot(j);
            let Free { a, m, row, norms, .. } = &mut free;
            let (m, row) = (*m, *row + j);
            let (left, right) = a.split_at_mut((j + 1) * m);
            let Some((head, tail)) = left[j * m + row..].split_first_mut() else { return };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (*head, *tau) = (T::from_real(beta), factor);
            reflect_columns(simd, factor.conj(), tail, right, m, row);
            for (norm, column) in norms[j + 1..].iter_mut().zip(right.chunks_exact(m)) {
                if !norm.downdate(column[row].abs()) {
                    *norm = Norm::of::<S, T>(&column[row + 1..]);
                }
            }
        }
    }
}

/// The index of the first norm that is largest.
#[inline(always)]
pub(crate) fn largest<R: lapax_core::Real>(norms: &[Norm<R>]) -> usize {
    let mut first = 0;
    for (i, norm) in norms.iter().enumerate() {
        if norm.exceeds(&norms[first]) {
            first = i;
        }
    }
    first
}

impl<R: lapax_core::Real> Norm<R> {
    pub(crate) const ZERO: Self = Self { now: R::ZERO, computed: R::ZERO };

    /// Whether the norm is larger than another; NaN is larger than any number.
    #[inline(always)]
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        self.now > other.now || (self.now.is_nan() && !other.now.is_nan())
    }

    /// A column's norm, computed.
    #[inline(always)]
    pub(crate) fn of<S: Simd, T: Scalar<Real = R>>(column: &[T]) -> Self {
        let now = norm::<S, T>(column);
        Self { now, computed: now }
    }

    /// The norm without an element of this modulus; false where rounding may have spoilt it.
    ///
    /// ‖x‖² − |x₀|² loses what the norm has lost since it was computed; √ε is LAWN 176's limit.
    #[inline(always)]
    pub(crate) fn downdate(&mut self, element: R) -> bool {
        if self.now == R::ZERO {
            return true;
        }
        let quotient = element / self.now;
        let left = R::ONE - quotient * quotient;
        let ratio = self.now / self.computed;
        // A comparison that is false for NaN, which is computed anew.
        if left * (ratio * ratio) > R::EPSILON.sqrt() {
            self.now *= left.sqrt();
            true
        } else {
            false
        }
    }
}
