//! QR factorisation with column pivoting, A·P = Q·R: of the columns that are left, the one of
//! largest norm comes next.
//!
//! Norms are downdated from row to row, and computed anew where that has lost digits: Drmač and
//! Bujanović, "On the failure of rank-revealing QR factorization software" (ACM TOMS 35, 2008;
//! LAPACK Working Note 176).

use lapax_core::{ItemsInOut, ItemsMut, Scalar as _, for_each, index_fits_i32};
use lapax_cpu_macros::per_scalar;
use pulp::{Arch, Simd, WithSimd};

use crate::columns::reflect_columns;
use crate::householder::{BlockScratch, Factor, Reflector, norm, reflector};
use crate::pivoted_panel::factor_panel;
use crate::qr::{Panel, TINY, WIDTH, factor, one_by_one};
use crate::reflectors::{Reflectors, multiply};
use crate::scalar::nanoseconds;
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
    let scratch = || Scratch::new(m, n);
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |scratch, (a, jpvt, tau)| {
            let fixed = move_fixed(a, m, jpvt);
            if k > 0 {
                factor_pivoted(a, m, fixed.min(k), jpvt, tau, scratch, arch);
            }
        },
    );
    Ok(())
}

/// What a factorisation reuses.
struct Scratch<T: Scalar> {
    norms: Vec<Norm<T::Real>>,
    blocks: BlockScratch<T>,
    /// F of a panel, and a row.
    panel: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    fn new(m: usize, n: usize) -> Self {
        let blocks = if one_by_one(m, n) {
            BlockScratch::new(0, 0, 0)
        } else {
            BlockScratch::new(m, WIDTH, n.max(WIDTH))
        };
        Self {
            norms: vec![Norm { now: T::Real::ZERO, computed: T::Real::ZERO }; n],
            blocks,
            panel: vec![T::ZERO; if m.min(n) > SMALL { n * (WIDTH + 1) } else { 0 }],
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
fn move_fixed<T>(a: &mut [T], m: usize, jpvt: &mut [i32]) -> usize {
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

/// Factors the first `fixed` columns as they are, and the others by pivoting among them.
fn factor_pivoted<T: Scalar>(
    a: &mut [T],
    m: usize,
    fixed: usize,
    jpvt: &mut [i32],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = jpvt.len();
    let (left, right) = a.split_at_mut(fixed * m);
    let (left_tau, right_tau) = tau.split_at_mut(fixed);
    if fixed > 0 {
        factor(Panel { a: &mut *left, lda: m, row: 0 }, left_tau, &mut scratch.blocks, arch);
        let q = Reflectors { a: left, r: m, tau: left_tau, factor: Factor::Adjoint };
        multiply(Side::Left, q, right, m, &mut scratch.blocks, &mut [], arch);
    }
    let mut free = Free { a: right, m, row: fixed, jpvt: &mut jpvt[fixed..] };
    let (mut tau, norms) = (right_tau, &mut scratch.norms[..n - fixed]);
    arch.dispatch(Norms { free: &free, norms: &mut *norms });
    let mut norms = norms;
    while tau.len() > SMALL {
        let done = factor_panel(&mut free, tau, norms, &mut scratch.panel, arch);
        (free, tau, norms) = (free.skip(done), &mut tau[done..], &mut norms[done..]);
    }
    let columns = FactorFree { free, tau, norms };
    if m <= TINY { columns.with_simd(pulp::Scalar::new()) } else { arch.dispatch(columns) }
}

/// The free columns; rows before `row` are rows of R already.
pub(crate) struct Free<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) m: usize,
    pub(crate) row: usize,
    pub(crate) jpvt: &'a mut [i32],
}

impl<T> Free<'_, T> {
    /// What is free once `count` columns are factored.
    fn skip(self, count: usize) -> Self {
        let Self { a, m, row, jpvt } = self;
        Self { a: &mut a[count * m..], m, row: row + count, jpvt: &mut jpvt[count..] }
    }

    /// Brings the column of largest norm to position j.
    #[inline(always)]
    pub(crate) fn pivot<R: lapax_core::Real>(&mut self, j: usize, norms: &mut [Norm<R>]) -> usize {
        let pivot = j + largest(&norms[j..]);
        swap_columns(self.a, self.m, j, pivot);
        self.jpvt.swap(j, pivot);
        norms[pivot] = norms[j];
        pivot
    }
}

/// Computes the norms of all free columns.
struct Norms<'a, 'b, T: Scalar> {
    free: &'a Free<'b, T>,
    norms: &'a mut [Norm<T::Real>],
}

impl<T: Scalar> WithSimd for Norms<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Free { a, m, row, .. } = self.free;
        for (norm, column) in self.norms.iter_mut().zip(a.chunks_exact(*m)) {
            *norm = Norm::of::<S, T>(&column[*row..]);
        }
    }
}

/// Reflectors one by one, each applied to all columns that are left.
struct FactorFree<'a, T: Scalar> {
    free: Free<'a, T>,
    tau: &'a mut [T],
    norms: &'a mut [Norm<T::Real>],
}

impl<T: Scalar> WithSimd for FactorFree<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { mut free, tau, norms } = self;
        for (j, tau) in tau.iter_mut().enumerate() {
            free.pivot(j, norms);
            let Free { a, m, row, .. } = &mut free;
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

/// The index of the first norm that is largest; NaN is larger than any number.
#[inline(always)]
fn largest<R: lapax_core::Real>(norms: &[Norm<R>]) -> usize {
    let mut first = 0;
    for (i, norm) in norms.iter().enumerate() {
        let best = norms[first].now;
        if norm.now > best || (norm.now.is_nan() && !best.is_nan()) {
            first = i;
        }
    }
    first
}

impl<R: lapax_core::Real> Norm<R> {
    /// A column's norm, computed.
    #[inline(always)]
    pub(crate) fn of<S: Simd, T: Scalar<Real = R>>(column: &[T]) -> Self {
        let now = norm::<S, T>(column);
        Self { now, computed: now }
    }

    /// Marks a norm that is to be computed again.
    #[inline(always)]
    pub(crate) fn spoil(&mut self) {
        self.computed = -R::ONE;
    }

    /// Whether the norm is so marked.
    #[inline(always)]
    pub(crate) fn is_spoilt(&self) -> bool {
        self.computed < R::ZERO
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
