//! Triangular solves: op(A)·X = B or X·op(A) = B.

pub(crate) mod route;
pub(crate) mod row_major;

use std::sync::PoisonError;

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Items, ItemsInOut, for_each, for_each_large, run_tasks};
use lapax_cpu_macros::per_scalar;

use crate::blas::trsm::solve;
use crate::blas::trsm_packed::Scratch;
use crate::blas::trsv;
use crate::lanes::triangular::Operands;
use crate::matrix::layout::Layout;
use crate::matrix::strips::{contiguous, strips};
use crate::matrix::transpose::transpose_one;
use crate::matrix::triangle::System;
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::unblocked::triangular;
use crate::{Diag, Error, InOut, Scalar, Side, Threads, Trans, Uplo};
use crate::{lanes, registers};
use route::{Route, route, strip_width};

/// The order from which A is copied where it does not lie as B does, for all strips: a product reads it
/// across its columns then, whose elements lie in pages of their own. On two cores of a Xeon with AVX-512,
/// as many right-hand sides as unknowns, ms, where A lies as B does and where not, in place: n = 768 f32 2.7
/// and 3.0, 1000 f64 10.8 and 13.4, 1024 f32 5.8 and 8.4, f64 12.7 and 18.7, 2048 f32 45 and 80.
pub(crate) const COPIED_ORDER: usize = 1000;

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
    let operands = operands(batch, q, (m, n), a, b)?;
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
    let arch = Arch::new();
    let right_hand_sides = |b| {
        let b = MatMut::from_column_major_slice_mut(b, m, n);
        if side == Side::Right { b.transpose_mut() } else { b }
    };
    match route(Kind::of::<T>(), b_order, batch, q, nrhs) {
        Route::Unblocked => few::each(batch, operands, |(a, b)| {
            triangular::substitute(system, (q, nrhs), (a, a_order), (b, b_order));
        }),
        Route::Registers => {
            let conj = conj.is_conj();
            let kernel =
                registers::substitution::Solve { uplo, diag, conj, n: q, nrhs, a_order, b_order };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Lanes => {
            let conj = conj.is_conj();
            let kernel =
                lanes::triangular::Solve { uplo, diag, conj, n: q, nrhs, a_order, b_order };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::OneSide => {
            let conj = conj.is_conj();
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (a, x)| {
                    arch.dispatch(trsv::Solve { uplo, diag, conj, order: a_order, a, x });
                },
            );
        }
        Route::Blocked => {
            let scratch = || Scratch::new(q, nrhs);
            for_each(batch, operands, time, threads, scratch, |scratch, (a, b)| {
                solve(system, view(a, q, transpose), right_hand_sides(b), scratch, arch);
            });
        }
        Route::Parallel => {
            let width = strip_width(nrhs);
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
                let apart: Vec<_> =
                    apart.map(|b| b.chunks(width * m).collect()).unwrap_or_default();
                let (a, strips) =
                    (view(a, q, transpose != turned), strips(right_hand_sides(b), width));
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
        }
    }
    Ok(())
}

/// The operands of [`trsm`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    q: usize,
    (m, n): (usize, usize),
    a: &'a [T],
    b: InOut<'a, T>,
) -> Result<Operands<'a, T>, Error> {
    Ok((Items::new("a", batch, &[q, q], a)?, ItemsInOut::new("b", batch, &[m, n], b)?))
}

/// A q × q matrix, or its transpose.
fn view<T>(a: &[T], q: usize, transpose: bool) -> MatRef<'_, T> {
    let a = MatRef::from_column_major_slice(a, q, q);
    if transpose { a.transpose() } else { a }
}

/// How a matrix lies that is read as the transpose of a column-major one, or as it is.
fn order(transposed: bool) -> Layout {
    if transposed { Layout::Rows } else { Layout::Columns }
}
