//! The reduction of one matrix, and its unitary factor.

use std::ops::Range;

use super::PANEL;
use super::blocked::{Scratch, part, part_mut, reduce_rest};
use super::columns::FormQ;
use super::parallel::reduce_parallel;
use super::route::{PARALLEL, UNBLOCKED};
use crate::blas::rotations::set_identity;
use crate::matrix::layout::Factor;
use crate::qr::parallel::generate_parallel;
use crate::registers;
use crate::simd::arch::Arch;
use crate::simd::scalar::nan;
use crate::{Error, Scalar, Threads};

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

/// Reduces the rows and columns `active` of a matrix of order n, as [`gehrd`](super::gehrd) does.
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
    if active.len() >= PARALLEL {
        reduce_parallel(a, n, active, tau, scratch, threads, arch);
    } else {
        reduce_rest(a, n, active, tau, scratch, arch);
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
        && n <= registers::hessenberg::LARGEST_Q
        && let Some(scratch) = &mut scratch.rows
    {
        return arch.dispatch(registers::hessenberg::FormQ { a, n, tau, q, scratch });
    }
    set_identity(q, n);
    if n <= UNBLOCKED {
        return arch.dispatch(FormQ { a, n, active, tau, q });
    }
    let Range { start, end } = active;
    let count = (end - start).saturating_sub(1);
    if end - start >= PARALLEL {
        let mut active = vec![T::ZERO; count * count];
        for (to, column) in active.chunks_exact_mut(count).zip(a[start * n..].chunks_exact(n)) {
            to.copy_from_slice(&column[start + 1..end]);
        }
        generate_parallel(&mut active, count, &tau[start..start + count], threads);
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
