//! exp of one matrix, by products and a system of whole matrices.
//!
//! They lie by rows. A product of powers of a matrix is that of their transposes, which lie by columns.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _, run_each};

use crate::matrix::exponential::{Approximant, Plan, approximants};
use crate::matrix::strips::strips;
use crate::matrix::transpose::transpose_one;
use crate::simd::arch::Arch;
use crate::simd::exponential::{exp, exp_difference, halved};
use crate::simd::range::all_finite;
use crate::simd::scalar::nan;
use crate::solve::solve;
use crate::{Error, Scalar, Threads};

use super::elementwise::{Combine, Double, Halve, Sides};
use super::norms::{norms, undone};

/// The columns of a product that are one piece of work: of narrower ones packing the left factor takes a larger part.
const STRIP: usize = 128;

/// The matrices of scratch that [`exponential`] takes.
pub(super) const SCRATCH: usize = 7;

/// exp(A), by `scratch` for that many matrices.
pub(super) fn exponential<T: Scalar>(
    n: usize,
    a: &[T],
    x: &mut [T],
    scratch: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 || !all_finite(a) {
        x.fill(nan());
        return Ok(());
    }
    let triangle = Triangle::of(n, a);
    if triangle == Some(Triangle::Lower) {
        // Elimination leaves an upper triangular matrix so.
        let (mut turned, mut result) = (vec![T::ZERO; n * n], vec![T::ZERO; n * n]);
        transpose_one((n, n), a, &mut turned, threads);
        of_finite(n, Some(Triangle::Upper), &turned, &mut result, scratch, threads)?;
        transpose_one((n, n), &result, x, threads);
        return Ok(());
    }
    of_finite(n, triangle, a, x, scratch, threads)
}

fn of_finite<T: Scalar>(
    n: usize,
    triangle: Option<Triangle>,
    a: &[T],
    x: &mut [T],
    scratch: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let mut plan = Plan::by_norm(norms(n, a).0, n);
    if triangle == Some(Triangle::Diagonal) {
        plan = Plan::default();
        x.fill(T::ZERO);
    } else {
        approximate(n, a, &mut plan, x, scratch, threads)?;
    }
    if triangle.is_some() {
        exact_diagonals(n, a, plan.halvings, x);
    }
    let square = &mut scratch[..n * n];
    for left in (0..plan.halvings).rev() {
        multiply(n, x, x, Accum::Replace, square, threads);
        x.copy_from_slice(square);
        if triangle.is_some() {
            exact_diagonals(n, a, left, x);
        }
    }
    Ok(())
}

/// What a matrix has zeros for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Triangle {
    Upper,
    Lower,
    Diagonal,
}

impl Triangle {
    /// That of a matrix, if it has any.
    fn of<T: Scalar>(n: usize, a: &[T]) -> Option<Self> {
        let zeros = |x: &[T]| x.iter().all(|&x| x == T::ZERO);
        let rows = || a.chunks_exact(n).enumerate();
        let upper = rows().all(|(i, row)| zeros(&row[..i]));
        let lower = rows().all(|(i, row)| zeros(&row[i + 1..]));
        match (upper, lower) {
            (true, true) => Some(Self::Diagonal),
            (true, false) => Some(Self::Upper),
            (false, true) => Some(Self::Lower),
            (false, false) => None,
        }
    }
}

/// C ← A·B, or C + A·B.
fn multiply<T: Scalar>(n: usize, a: &[T], b: &[T], sum: Accum, c: &mut [T], threads: &dyn Threads) {
    let a = MatRef::from_column_major_slice(a, n, n);
    let strip = |from: usize, c: MatMut<'_, T>| {
        let b = MatRef::from_column_major_slice(&b[from * n..][..c.ncols() * n], n, c.ncols());
        T::product(c, sum, (a, Conj::No), (b, Conj::No), T::ONE);
    };
    let c = MatMut::from_column_major_slice_mut(c, n, n);
    if n <= STRIP {
        return strip(0, c);
    }
    let pieces = strips(c, STRIP);
    run_each(
        threads,
        pieces.len(),
        || (),
        |(), piece| {
            let mut c = pieces[piece].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            strip(piece * STRIP, c.as_mut());
        },
    );
}

/// The approximant of exp(2⁻ˢA).
fn approximate<T: Scalar>(
    n: usize,
    a: &[T],
    plan: &mut Plan,
    result: &mut [T],
    scratch: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Approximant { coefficients, degree, .. } = &approximants::<T::Real>()[plan.approximant];
    let (b, arch) = (coefficients.map(T::Real::from_f64), Arch::new());
    let square = |a: &[T], b: &[T], c: &mut [T]| multiply(n, a, b, Accum::Replace, c, threads);
    let mut matrices = scratch.chunks_exact_mut(n * n);
    let mut next = || matrices.next().unwrap_or_default();
    let [x, x2, x4, x6, even, odd, u] = std::array::from_fn(|_| next());
    arch.dispatch(Halve { halvings: plan.halvings, from: a, to: x });
    square(x, x, x2);
    let mut powers = [x2, x4, x6];
    let count = degree.div_ceil(2).min(4) - 1;
    for i in 1..count {
        let (known, new) = powers.split_at_mut(i);
        square(known[i - 1], known[0], new[0]);
    }
    let powers = &mut powers[..count];
    let back = undone(n, plan.halvings, x, powers);
    if back > 0 {
        plan.halvings -= back;
        arch.dispatch(Halve { halvings: plan.halvings, from: a, to: x });
        for (power, times) in powers.iter_mut().zip([2, 4, 6]) {
            arch.dispatch(Double { doublings: back, times, x: power });
        }
    }
    let parts = |first: usize, unit: [T::Real; 2], even: &mut [T], odd: &mut [T]| {
        for (k, power) in powers.iter().enumerate() {
            let factors = [b[first + 2 * k], b[first + 2 * k + 1]];
            let to = [&mut *even, &mut *odd];
            arch.dispatch(Combine { add: k > 0, power: &power[..], factors, to });
        }
        for (to, unit) in [even, odd].into_iter().zip(unit) {
            to.iter_mut().step_by(n + 1).for_each(|x| *x += T::from_real(unit));
        }
    };
    parts(2, [b[0], b[1]], even, odd);
    if *degree == 13 {
        parts(8, [T::Real::ZERO; 2], u, result);
        multiply(n, powers[2], u, Accum::Add, even, threads);
        multiply(n, powers[2], result, Accum::Add, odd, threads);
    }
    square(x, odd, u);
    arch.dispatch(Sides { v: even, u });
    // (V − U)·(R − I) = 2·U: beside I, errors of R − I are small where A is.
    solve(1, n, n, even, u, result, threads)?;
    result.iter_mut().step_by(n + 1).for_each(|x| *x += T::ONE);
    Ok(())
}

/// Makes exact what is known of exp(2⁻ʰA) of an upper triangular A (Al-Mohy and Higham 2009, code fragment 2.1).
fn exact_diagonals<T: Scalar>(n: usize, a: &[T], halvings: i32, x: &mut [T]) {
    for i in 0..n {
        let at = i * (n + 1);
        x[at] = exp(a[at], halvings);
        // An infinite quotient leaves zeros.
        if i + 1 < n && a[at + 1] != T::ZERO {
            let quotient = exp_difference(a[at], a[at + n + 1], halvings);
            x[at + 1] = quotient * halved(a[at + 1], halvings);
        }
    }
}
