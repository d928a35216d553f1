//! exp of one matrix, by products and a system of whole matrices.
//!
//! They lie by rows. A product of powers of a matrix is that of their transposes, which lie by columns.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _, run_each};

use crate::matrix::exponential::{Approximant, Plan, Undo, approximants};
use crate::matrix::strips::strips;
use crate::matrix::transpose::transpose_one;
use crate::simd::exponential::{exp, exp_difference, halved};
use crate::simd::range::all_finite;
use crate::simd::scalar::nan;
use crate::solve::solve;
use crate::{Error, Scalar, Threads};

/// The columns of a product that are one piece of work.
const STRIP: usize = 128;

/// exp(A).
pub(super) fn exponential<T: Scalar>(
    n: usize,
    a: &[T],
    x: &mut [T],
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
        of_finite(n, Some(Triangle::Upper), &turned, &mut result, threads)?;
        transpose_one((n, n), &result, x, threads);
        return Ok(());
    }
    of_finite(n, triangle, a, x, threads)
}

fn of_finite<T: Scalar>(
    n: usize,
    triangle: Option<Triangle>,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let mut plan = Plan::by_norm(norms(n, a).0, n);
    if triangle == Some(Triangle::Diagonal) {
        plan = Plan::default();
        x.fill(T::ZERO);
    } else {
        approximate(n, a, &mut plan, x, threads)?;
    }
    if triangle.is_some() {
        exact_diagonals(n, a, plan.halvings, x);
    }
    let mut square = vec![T::ZERO; if plan.halvings > 0 { n * n } else { 0 }];
    for left in (0..plan.halvings).rev() {
        multiply(n, x, x, Accum::Replace, &mut square, threads);
        x.copy_from_slice(&square);
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

/// The largest and the least sum of a row's moduli.
fn norms<T: Scalar>(n: usize, a: &[T]) -> (T::Real, T::Real) {
    let (mut largest, mut least) = (T::Real::ZERO, None);
    for row in a.chunks_exact(n) {
        let sum = row.iter().fold(T::Real::ZERO, |sum, &x| sum + modulus(x));
        largest = if sum > largest { sum } else { largest };
        least = least.filter(|&least| least <= sum).or(Some(sum));
    }
    (largest, least.unwrap_or(T::Real::ZERO))
}

/// A number of at least |x|, and less than 1.09·|x|: max + (√2 − 1)·min of the parts of a complex one.
fn modulus<T: Scalar>(x: T) -> T::Real {
    let (re, im) = (x.re().abs(), x.im().abs());
    let (larger, smaller) = if re > im { (re, im) } else { (im, re) };
    if T::IS_COMPLEX { larger + smaller * T::Real::from_f64(0.414_213_57) } else { re }
}

/// C ← A·B, or C + A·B.
fn multiply<T: Scalar>(n: usize, a: &[T], b: &[T], sum: Accum, c: &mut [T], threads: &dyn Threads) {
    let a = MatRef::from_column_major_slice(a, n, n);
    let pieces = strips(MatMut::from_column_major_slice_mut(c, n, n), STRIP);
    run_each(
        threads,
        pieces.len(),
        || (),
        |(), strip| {
            let mut c = pieces[strip].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (from, width) = (strip * STRIP, c.ncols());
            let b = MatRef::from_column_major_slice(&b[from * n..(from + width) * n], n, width);
            T::product(c.as_mut(), sum, (a, Conj::No), (b, Conj::No), T::ONE);
        },
    );
}

/// The approximant of exp(2⁻ˢA).
fn approximate<T: Scalar>(
    n: usize,
    a: &[T],
    plan: &mut Plan,
    result: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Approximant { coefficients, degree, .. } = &approximants::<T::Real>()[plan.approximant];
    let b = coefficients.map(T::Real::from_f64);
    let square = |a: &[T], b: &[T]| {
        let mut c = vec![T::ZERO; n * n];
        multiply(n, a, b, Accum::Replace, &mut c, threads);
        c
    };
    let mut x: Vec<T> = a.iter().map(|&x| halved(x, plan.halvings)).collect();
    let mut powers = vec![square(&x, &x)];
    if *degree > 3 {
        powers.push(square(&powers[0], &powers[0]));
    }
    if *degree > 5 {
        powers.push(square(&powers[1], &powers[0]));
    }
    let back = undone(n, plan.halvings, &x, &powers);
    if back > 0 {
        plan.halvings -= back;
        x = a.iter().map(|&x| halved(x, plan.halvings)).collect();
        for (power, times) in powers.iter_mut().zip([2, 4, 6]) {
            // One by one: 2ᵏᵈ may overflow where the power vanishes.
            (0..times).for_each(|_| power.iter_mut().for_each(|x| *x = halved(*x, -back)));
        }
    }
    let part = |odd: usize| combine(n, &powers, &[b[2 + odd], b[4 + odd], b[6 + odd]], b[odd]);
    let mut parts = [part(0), part(1)];
    if *degree == 13 {
        for (odd, part) in parts.iter_mut().enumerate() {
            let factors = [b[8 + odd], b[10 + odd], b[12 + odd]];
            let higher = combine(n, &powers, &factors, T::Real::ZERO);
            multiply(n, &powers[2], &higher, Accum::Add, part, threads);
        }
    }
    let [mut v, odd] = parts;
    let mut u = square(&x, &odd);
    for (v, u) in v.iter_mut().zip(&mut u) {
        (*v, *u) = (*v - *u, *u + *u);
    }
    // (V − U)·(R − I) = 2·U: beside I, errors of R − I are small where A is.
    solve(1, n, n, &v, &u, result, threads)?;
    result.iter_mut().step_by(n + 1).for_each(|x| *x += T::ONE);
    Ok(())
}

/// Of X = 2⁻ˢ·A and its powers: how many of the halvings were too many.
fn undone<T: Scalar>(n: usize, halvings: i32, x: &[T], powers: &[Vec<T>]) -> i32 {
    if halvings == 0 {
        return 0;
    }
    let (norm, least) = norms(n, x);
    let undo = Undo::new(norm);
    let most = halvings.min(undo.at_most(least));
    if most <= 0 {
        return 0;
    }
    let [n2, n4, n6] = [0, 1, 2].map(|k| norms(n, &powers[k]).0);
    let most = most.min(undo.by_powers([n2, n4, n6]));
    if most <= 0 { 0 } else { most.min(undo.by_magnitudes(of_magnitudes(n, undo.steps(), x))) }
}

/// log₂ ‖|X|ᵏ‖, by so many products of |X| with a vector of ones.
fn of_magnitudes<T: Scalar>(n: usize, steps: u32, x: &[T]) -> f64 {
    let magnitudes: Vec<T::Real> = x.iter().map(|&x| modulus(x)).collect();
    let (mut row, mut next) = (vec![T::Real::ONE; n], vec![T::Real::ZERO; n]);
    let mut logarithm = 0.0;
    for _ in 0..steps {
        let mut largest = T::Real::ZERO;
        for (column, next) in magnitudes.chunks_exact(n).zip(&mut next) {
            *next = column.iter().zip(&row).fold(T::Real::ZERO, |sum, (&x, &row)| sum + x * row);
            largest = if *next > largest { *next } else { largest };
        }
        if largest == T::Real::ZERO {
            return f64::NEG_INFINITY;
        }
        logarithm += largest.to_f64().log2();
        for (row, &next) in row.iter_mut().zip(&next) {
            *row = next / largest;
        }
    }
    logarithm
}

/// Σ factor·power, and a multiple of the identity.
fn combine<T: Scalar>(n: usize, powers: &[Vec<T>], factors: &[T::Real], unit: T::Real) -> Vec<T> {
    let mut sum = vec![T::ZERO; n * n];
    for (power, &factor) in powers.iter().zip(factors) {
        sum.iter_mut().zip(power).for_each(|(sum, x)| *sum += x.scale(factor));
    }
    sum.iter_mut().step_by(n + 1).for_each(|x| *x += T::from_real(unit));
    sum
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
