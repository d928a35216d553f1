//! exp of one matrix, by products and a system of whole matrices.
//!
//! They lie by rows. A product of powers of a matrix is that of their transposes, which lie by columns.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _, run_each};
use pulp::{Simd, WithSimd};

use crate::matrix::exponential::{Approximant, Plan, Undo, approximants};
use crate::matrix::strips::strips;
use crate::matrix::transpose::transpose_one;
use crate::simd::arch::Arch;
use crate::simd::exponential::{Halvings, exp, exp_difference, halved};
use crate::simd::range::all_finite;
use crate::simd::scalar::nan;
use crate::solve::solve;
use crate::{Error, Scalar, Threads};

/// The columns of a product that are one piece of work: of narrower ones packing the left factor takes a larger part.
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

/// The largest and the least sum of a column's moduli.
fn norms<T: Scalar>(n: usize, a: &[T]) -> (T::Real, T::Real) {
    let mut sums = vec![T::Real::ZERO; n];
    Arch::new().dispatch(Sums { a, sums: &mut sums });
    let (mut largest, mut least) = (T::Real::ZERO, sums[0]);
    for sum in sums {
        largest = if sum > largest { sum } else { largest };
        least = if sum < least { sum } else { least };
    }
    (largest, least)
}

/// The sums of columns' moduli.
struct Sums<'a, T: Scalar> {
    a: &'a [T],
    sums: &'a mut [T::Real],
}

impl<T: Scalar> WithSimd for Sums<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for row in self.a.chunks_exact(self.sums.len()) {
            for (sum, &x) in self.sums.iter_mut().zip(row) {
                *sum += modulus(x);
            }
        }
    }
}

/// A number of at least |x|, and less than 1.09·|x|: max + (√2 − 1)·min of the parts of a complex one.
#[inline(always)]
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
    let (b, arch) = (coefficients.map(T::Real::from_f64), Arch::new());
    let square = |a: &[T], b: &[T]| {
        let mut c = vec![T::ZERO; n * n];
        multiply(n, a, b, Accum::Replace, &mut c, threads);
        c
    };
    let mut x = vec![T::ZERO; n * n];
    arch.dispatch(Halve { halvings: plan.halvings, from: a, to: &mut x });
    // Those that the approximant lacks are empty.
    let mut powers = [square(&x, &x), Vec::new(), Vec::new()];
    if *degree > 3 {
        powers[1] = square(&powers[0], &powers[0]);
    }
    if *degree > 5 {
        powers[2] = square(&powers[1], &powers[0]);
    }
    let back = undone(n, plan.halvings, &x, &powers);
    if back > 0 {
        plan.halvings -= back;
        arch.dispatch(Halve { halvings: plan.halvings, from: a, to: &mut x });
        let double = Halvings::new(-back);
        for (power, times) in powers.iter_mut().zip([2, 4, 6]) {
            // One by one: 2ᵏᵈ may overflow where the power vanishes.
            (0..times).for_each(|_| power.iter_mut().for_each(|x| *x = double.of(*x)));
        }
    }
    let mut parts = [vec![T::ZERO; n * n], vec![T::ZERO; n * n]];
    let powers = powers.each_ref().map(|power| &power[..]);
    for (odd, part) in parts.iter_mut().enumerate() {
        let factors = [b[2 + odd], b[4 + odd], b[6 + odd]];
        arch.dispatch(Combine { n, powers, factors, unit: b[odd], to: part });
        if *degree == 13 {
            let factors = [b[8 + odd], b[10 + odd], b[12 + odd]];
            let to = &mut vec![T::ZERO; n * n][..];
            arch.dispatch(Combine { n, powers, factors, unit: T::Real::ZERO, to });
            multiply(n, powers[2], to, Accum::Add, part, threads);
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
fn undone<T: Scalar>(n: usize, halvings: i32, x: &[T], powers: &[Vec<T>; 3]) -> i32 {
    if halvings == 0 {
        return 0;
    }
    let (norm, least) = norms(n, x);
    let undo = Undo::new(norm);
    let most = halvings.min(undo.at_most(least));
    if most <= 0 {
        return 0;
    }
    let most = most.min(undo.by_powers(powers.each_ref().map(|power| norms(n, power).0)));
    if most <= 0 { 0 } else { most.min(undo.by_magnitudes(of_magnitudes(n, undo.steps(), x))) }
}

/// log₂ ‖|X|ᵏ‖, by so many products of a row of ones with |X|.
fn of_magnitudes<T: Scalar>(n: usize, steps: u32, x: &[T]) -> f64 {
    let magnitudes: Vec<T::Real> = x.iter().map(|&x| modulus(x)).collect();
    let mut row = vec![T::Real::ONE; n];
    let mut logarithm = 0.0;
    for _ in 0..steps {
        let mut next = vec![T::Real::ZERO; n];
        for (magnitudes, &factor) in magnitudes.chunks_exact(n).zip(&row) {
            for (next, &x) in next.iter_mut().zip(magnitudes) {
                *next += factor * x;
            }
        }
        let larger = |largest, &x| if x > largest { x } else { largest };
        let largest = next.iter().fold(T::Real::ZERO, larger);
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

/// X ← 2⁻ʰ·A.
struct Halve<'a, T> {
    halvings: i32,
    from: &'a [T],
    to: &'a mut [T],
}

impl<T: Scalar> WithSimd for Halve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let halvings = Halvings::new(self.halvings);
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = halvings.of(from);
        }
    }
}

/// Σ factor·power over those powers that are not empty, and a multiple of the identity.
struct Combine<'a, T: Scalar> {
    n: usize,
    powers: [&'a [T]; 3],
    factors: [T::Real; 3],
    unit: T::Real,
    to: &'a mut [T],
}

impl<T: Scalar> WithSimd for Combine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { n, powers, factors, unit, to } = self;
        to.fill(T::ZERO);
        for (power, factor) in powers.into_iter().zip(factors) {
            for (to, x) in to.iter_mut().zip(power) {
                *to += x.scale(factor);
            }
        }
        for to in to.iter_mut().step_by(n + 1) {
            *to += T::from_real(unit);
        }
    }
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
