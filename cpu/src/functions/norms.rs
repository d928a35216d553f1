//! Norms of a matrix, its powers and those of its moduli, and the halvings of exp that they spare.

use lapax_core::{Real, Scalar as _};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::matrix::exponential::Undo;
use crate::simd::arch::Arch;

/// Of X = 2⁻ˢ·A and its powers 2, 4 and 6: how many of the halvings were too many.
pub(super) fn undone<T: Scalar>(n: usize, halvings: i32, x: &[T], powers: &[&mut [T]]) -> i32 {
    if halvings == 0 {
        return 0;
    }
    let (norm, least) = norms(n, x);
    let undo = Undo::new(norm);
    let most = halvings.min(undo.at_most(least));
    if most <= 0 {
        return 0;
    }
    let norm = |k: usize| powers.get(k).map_or(T::Real::ZERO, |power| norms(n, power).0);
    let most = most.min(undo.by_powers(std::array::from_fn(norm)));
    if most <= 0 {
        return 0;
    }
    let logarithm = Arch::new().dispatch(Magnitudes { n, steps: undo.steps(), x });
    most.min(undo.by_magnitudes(logarithm))
}

/// The largest and the least sum of a column's moduli.
pub(super) fn norms<T: Scalar>(n: usize, a: &[T]) -> (T::Real, T::Real) {
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

/// log₂ ‖|X|ᵏ‖, by so many products of a row of ones with |X|.
struct Magnitudes<'a, T> {
    n: usize,
    steps: u32,
    x: &'a [T],
}

impl<T: Scalar> WithSimd for Magnitudes<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { n, steps, x } = self;
        let mut magnitudes = vec![T::Real::ZERO; n * n];
        for (magnitude, &x) in magnitudes.iter_mut().zip(x) {
            *magnitude = modulus(x);
        }
        let (mut row, mut next) = (vec![T::Real::ONE; n], vec![T::Real::ZERO; n]);
        let mut logarithm = 0.0;
        for _ in 0..steps {
            add_rows(&magnitudes, &row, &mut next);
            let mut largest = T::Real::ZERO;
            for &x in &next {
                largest = if x > largest { x } else { largest };
            }
            if largest == T::Real::ZERO {
                return f64::NEG_INFINITY;
            }
            logarithm += largest.to_f64().log2();
            for (row, next) in row.iter_mut().zip(&mut next) {
                *row = *next / largest;
                *next = T::Real::ZERO;
            }
        }
        logarithm
    }
}

/// y ← y + xᵀ·A, four rows of A at once.
#[inline(always)]
fn add_rows<R: Real>(a: &[R], x: &[R], y: &mut [R]) {
    let n = y.len();
    let (fours, rest) = x.as_chunks::<4>();
    let (of_fours, of_rest) = a.split_at(4 * fours.len() * n);
    for (&[x0, x1, x2, x3], rows) in fours.iter().zip(of_fours.chunks_exact(4 * n)) {
        let (a0, a1) = rows[..2 * n].split_at(n);
        let (a2, a3) = rows[2 * n..].split_at(n);
        for ((((y, &a0), &a1), &a2), &a3) in y.iter_mut().zip(a0).zip(a1).zip(a2).zip(a3) {
            *y += (x0 * a0 + x1 * a1) + (x2 * a2 + x3 * a3);
        }
    }
    for (&x, row) in rest.iter().zip(of_rest.chunks_exact(n)) {
        for (y, &a) in y.iter_mut().zip(row) {
            *y += x * a;
        }
    }
}
