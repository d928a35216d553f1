//! Triangular solves: op(A)·X = B or X·op(A) = B.

use std::sync::{Mutex, PoisonError};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Items, ItemsInOut, for_each, for_each_large, run_tasks};
use lapax_cpu_macros::per_scalar;

use crate::arch::Arch;
use crate::few;
use crate::lanes::{self, Order, for_each_group};
use crate::row_major::transpose_one;
use crate::rows;
use crate::scalar::nanoseconds;
use crate::substitution::{self, Scratch};
use crate::tiled_lu::contiguous;
use crate::trsv;
use crate::{Diag, Error, InOut, Scalar, Side, Threads, Trans, Uplo};

/// The order up to which a batch of systems goes through lanes.
pub(crate) const LANES_ORDER: usize = 32;
/// The order from which right-hand sides that fill a register go into its lanes instead. Two triangles,
/// as many right-hand sides as unknowns, for f64 on one core with AVX-512, matrices in lanes against
/// right-hand sides in lanes: 0.63 us and 0.54 us at 16, 1.1 and 1.2 at 20, 4.4 and 2.8 at 32, 30 and 17
/// at 64; with one right-hand side, 0.87 and 1.1 at 32. One triangle on Zen 5, ns: f64 209 and 240 at 16, 413 and
/// 615 at 20; f32 120 and 190, 227 and 405; c128 420 and 850, 680 and 1600.
const ROWS_ORDER: usize = 21;

/// The order from which the right-hand sides of one system are cut into strips for all threads, the
/// columns of a strip of few and of many, and how many are many. On two cores with AVX-512, f64, as many
/// right-hand sides as unknowns, two threads against one: n = 256 0.26 ms and 0.41, n = 384 0.69 ms with
/// strips of 64 and 0.86 with 128, n = 1024 12.0 with 64, 11.0 with 128 and 24.5.
pub(crate) const STRIPS_ORDER: usize = 192;
const NARROW_STRIP: usize = 64;
const WIDE_STRIP: usize = 128;
const MANY_SIDES: usize = 512;

/// The order from which A is copied where it does not lie as B does, for all strips: a product reads it
/// across its columns then, whose elements lie in pages of their own. On two cores of a Xeon with AVX-512,
/// as many right-hand sides as unknowns, ms, where A lies as B does and where not, in place: n = 768 f32 2.7
/// and 3.0, 1000 f64 10.8 and 13.4, 1024 f32 5.8 and 8.4, f64 12.7 and 18.7, 2048 f32 45 and 80.
pub(crate) const COPIED_ORDER: usize = 1000;

/// Whether right-hand sides go into lanes.
pub(crate) fn by_rows<T: Scalar>(n: usize, nrhs: usize) -> bool {
    n >= ROWS_ORDER && nrhs >= lanes::width::<T>() && rows::pay::<T>(n)
}

/// Solves op(A)·X = B (`side` left) or X·op(A) = B (right) for each matrix of a batch, in place of B.
///
/// B is m × n and A is q × q, q = m on the left and n on the right. Only the triangle `uplo` of A is
/// read, and with `Diag::Unit` not its diagonal. A zero on the diagonal gives infinities or NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
#[per_scalar]
pub fn trsm<T: Scalar>(
    side: Side,
    uplo: Uplo,
    trans: Trans,
    diag: Diag,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    b: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (q, nrhs) = match side {
        Side::Left => (m, n),
        Side::Right => (n, m),
    };
    let operands = (Items::new("a", batch, &[q, q], a)?, ItemsInOut::new("b", batch, &[m, n], b)?);
    if m == 0 || n == 0 {
        return Ok(());
    }
    // X·op(A) = B is op(A)ᵀ·Xᵀ = Bᵀ; what is left of op and ᵀ on the left is a view of A.
    let transpose = (trans != Trans::None) != (side == Side::Right);
    let conj = if trans == Trans::ConjTranspose { Conj::Yes } else { Conj::No };
    let uplo = match (uplo, transpose) {
        (Uplo::Lower, false) | (Uplo::Upper, true) => Uplo::Lower,
        (Uplo::Upper, false) | (Uplo::Lower, true) => Uplo::Upper,
    };
    let products = q.saturating_mul(q).saturating_mul(nrhs) / 2;
    let time = nanoseconds::<T>(products);
    let (a_order, b_order) = (order(transpose), order(side == Side::Right));
    let system = System { uplo, diag, conj };
    if few::pay(batch, q.max(nrhs), few::largest_system::<T>(nrhs, b_order)) {
        few::each(batch, operands, |(a, b)| {
            few::substitute(system, (q, nrhs), (a, a_order), (b, b_order));
        });
        return Ok(());
    }
    if by_rows::<T>(q, nrhs) {
        let conj = conj.is_conj();
        let kernel = rows::substitution::Solve { uplo, diag, conj, n: q, nrhs, a_order, b_order };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if lanes::pay(batch, q, LANES_ORDER) {
        let conj = conj.is_conj();
        let kernel = lanes::triangular::Solve { uplo, diag, conj, n: q, nrhs, a_order, b_order };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    let arch = Arch::new();
    if nrhs == 1 {
        for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (a, x)| {
                let conj = conj.is_conj();
                arch.dispatch(trsv::Solve { uplo, diag, conj, order: a_order, a, x });
            },
        );
        return Ok(());
    }
    let right_hand_sides = |b| {
        let b = MatMut::from_column_major_slice_mut(b, m, n);
        if side == Side::Right { b.transpose_mut() } else { b }
    };
    let width = strip_width(nrhs);
    if q > STRIPS_ORDER && nrhs > width {
        let turned = q >= COPIED_ORDER && transpose != (side == Side::Right);
        let (a, b) = operands;
        for_each_large(batch, (a, b.uncopied()), threads, |(a, b), threads| {
            let mut copy = vec![T::ZERO; if turned { q * q } else { 0 }];
            if turned {
                transpose_one((q, q), a, &mut copy, threads);
            }
            let a = if turned { &copy } else { a };
            // A strip whose numbers lie together is copied when it is solved.
            let (apart, b) = match side {
                Side::Left => (b.src, b.dst),
                Side::Right => (None, b.copied_by(threads)),
            };
            let apart: Vec<_> = apart.map(|b| b.chunks(width * m).collect()).unwrap_or_default();
            let (a, strips) = (view(a, q, transpose != turned), strips(right_hand_sides(b), width));
            run_tasks(threads, strips.len(), strips.len(), 0, |task, _| {
                let mut strip = strips[task].lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(apart) = apart.get(task) {
                    let columns = strip.as_mut().col_iter_mut().zip(apart.chunks_exact(m));
                    columns.for_each(|(to, from)| contiguous(to).copy_from_slice(from));
                }
                let mut scratch = Scratch::new(q, strip.ncols());
                solve(system, a, strip.as_mut(), &mut scratch, arch);
            });
        });
        return Ok(());
    }
    let scratch = || Scratch::new(q, nrhs);
    for_each(batch, operands, time, threads, scratch, |scratch, (a, b)| {
        solve(system, view(a, q, transpose), right_hand_sides(b), scratch, arch);
    });
    Ok(())
}

/// A q × q matrix, or its transpose.
fn view<T>(a: &[T], q: usize, transpose: bool) -> MatRef<'_, T> {
    let a = MatRef::from_column_major_slice(a, q, q);
    if transpose { a.transpose() } else { a }
}

/// The columns of a strip of so many right-hand sides.
pub(crate) fn strip_width(nrhs: usize) -> usize {
    if nrhs < MANY_SIDES { NARROW_STRIP } else { WIDE_STRIP }
}

/// Cuts a matrix into strips of so many columns; the last may be narrower.
pub(crate) fn strips<T>(a: MatMut<'_, T>, width: usize) -> Vec<Mutex<MatMut<'_, T>>> {
    let mut strips = Vec::with_capacity(a.ncols().div_ceil(width));
    let mut rest = a;
    while rest.ncols() > 0 {
        let columns = width.min(rest.ncols());
        let (strip, right) = rest.split_at_col_mut(columns);
        strips.push(Mutex::new(strip));
        rest = right;
    }
    strips
}

/// How a matrix lies that is read as the transpose of a column-major one, or as it is.
fn order(transposed: bool) -> Order {
    if transposed { Order::Row } else { Order::Column }
}

/// The triangular matrix of a system, beside its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements are conjugated as they are read.
    pub(crate) conj: Conj,
}

/// B ← A⁻¹·B by halves, so that nearly all work is in the matrix product.
///
/// Rows or columns of B must be contiguous.
pub(crate) fn solve<T: Scalar>(
    system: System,
    a: MatRef<'_, T>,
    b: MatMut<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = a.nrows();
    if n <= substitution::ORDER {
        return substitution::solve(system, a, b, scratch, arch);
    }
    let half = (n / 2).next_multiple_of(substitution::ORDER);
    let (a11, a12, a21, a22) = a.split_at(half, half);
    let (mut b1, mut b2) = b.split_at_row_mut(half);
    match system.uplo {
        Uplo::Lower => {
            // A₁₁·X₁ = B₁, then A₂₂·X₂ = B₂ − A₂₁·X₁.
            solve(system, a11, b1.as_mut(), scratch, arch);
            subtract_product(b2.as_mut(), (a21, system.conj), (b1.as_ref(), Conj::No));
            solve(system, a22, b2, scratch, arch);
        }
        Uplo::Upper => {
            // A₂₂·X₂ = B₂, then A₁₁·X₁ = B₁ − A₁₂·X₂.
            solve(system, a22, b2.as_mut(), scratch, arch);
            subtract_product(b1.as_mut(), (a12, system.conj), (b2.as_ref(), Conj::No));
            solve(system, a11, b1, scratch, arch);
        }
    }
}

/// dst ← dst − op(lhs)·op(rhs).
pub(crate) fn subtract_product<T: Scalar>(
    dst: MatMut<'_, T>,
    lhs: (MatRef<'_, T>, Conj),
    rhs: (MatRef<'_, T>, Conj),
) {
    T::product(dst, Accum::Add, lhs, rhs, -T::ONE);
}
