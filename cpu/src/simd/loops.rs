//! Loops over contiguous elements, compiled for the vectors of the processor that runs them.
//!
//! They are elementwise, so how many elements a register holds does not change a result. A caller
//! wraps its whole inner loop nest in one [`pulp::WithSimd`]; what is here is inlined into it.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use crate::Scalar;

/// acc − a·b; fused where S has vectors, because those processors fuse.
#[inline(always)]
pub(crate) fn sub_mul<S: Simd, T: Scalar>(acc: T, a: T, b: T) -> T {
    if S::IS_SCALAR { acc - a * b } else { acc.fused_add(-a, b) }
}

/// y ← y − a·x.
#[inline(always)]
pub(crate) fn sub_scaled<S: Simd, T: Scalar>(y: &mut [T], a: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = sub_mul::<S, T>(*y, a, x);
    }
}

/// What dividing by one number takes: its reciprocal where that loses nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Divisor<T> {
    /// Nothing to do.
    One,
    /// Multiply by this reciprocal.
    Reciprocal(T),
    /// Divide: the reciprocal would overflow or lose digits, or the number is zero or NaN.
    Number(T),
}

impl<T: Scalar> Divisor<T> {
    #[inline(always)]
    pub(crate) fn new(number: T) -> Self {
        let size = number.abs1();
        if size >= T::Real::SAFE_MIN && size <= T::Real::ONE / T::Real::SAFE_MIN {
            Self::Reciprocal(T::ONE.divide(number))
        } else {
            Self::Number(number)
        }
    }

    /// x ← x / the number.
    #[inline(always)]
    pub(crate) fn divide(self, x: &mut [T]) {
        match self {
            Self::One => {}
            Self::Reciprocal(reciprocal) => x.iter_mut().for_each(|x| *x *= reciprocal),
            Self::Number(number) => x.iter_mut().for_each(|x| *x = x.divide(number)),
        }
    }
}

/// The index of the first element of largest |re| + |im|, where a NaN is larger than any number.
#[inline(always)]
pub(crate) fn first_largest<T: Scalar>(x: &[T]) -> usize {
    /// Independent maxima, so that the loops over them are of vectors.
    const LANES: usize = 16;
    if x.len() < 2 * LANES {
        let mut first = (0, -T::Real::ONE);
        for (i, size) in x.iter().map(|x| x.abs1()).enumerate() {
            if size > first.1 || (size.is_nan() && !first.1.is_nan()) {
                first = (i, size);
            }
        }
        return first.0;
    }
    let (chunks, rest) = x.as_chunks::<LANES>();
    // Choices without branches: a comparison with NaN is false.
    let mut largest = [-T::Real::ONE; LANES];
    let mut nan = [false; LANES];
    for chunk in chunks {
        for ((largest, nan), x) in largest.iter_mut().zip(&mut nan).zip(chunk) {
            let size = x.abs1();
            *largest = if size > *largest { size } else { *largest };
            *nan |= size.is_nan();
        }
    }
    let mut any_nan = nan.into_iter().any(|nan| nan);
    let mut maximum = -T::Real::ONE;
    for size in largest.into_iter().chain(rest.iter().map(|x| x.abs1())) {
        maximum = if size > maximum { size } else { maximum };
        any_nan |= size.is_nan();
    }
    let found = |x: &T| if any_nan { x.abs1().is_nan() } else { x.abs1() == maximum };
    // Whole chunks at first, which is a loop of vectors too.
    let before =
        chunks.iter().take_while(|chunk| !chunk.iter().fold(false, |any, x| any | found(x)));
    let first = before.count() * LANES;
    x[first..].iter().position(found).map_or(0, |i| first + i)
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use super::first_largest;

    trials!(ties_and_nan, complex_numbers_by_the_sum_of_their_parts);

    fn ties_and_nan() {
        for n in [1, 5, 31, 32, 33, 47, 48, 100] {
            let mut x: Vec<f64> = (0..n).map(|i| f64::from(i % 7) - 3.0).collect();
            assert_eq!(first_largest(&x), 0, "{n}");
            for at in [n - 1, n / 2] {
                let at = usize::try_from(at).unwrap_or(0);
                x[at] = -9.0;
                let first = x.iter().position(|&x| x == -9.0);
                assert_eq!(Some(first_largest(&x)), first, "{n}");
            }
            for at in [n - 1, n / 3] {
                let at = usize::try_from(at).unwrap_or(0);
                x[at] = f64::NAN;
                let first = x.iter().position(|x| x.is_nan());
                assert_eq!(Some(first_largest(&x)), first, "{n}");
            }
        }
    }

    fn complex_numbers_by_the_sum_of_their_parts() {
        let number = |re, im| num_complex::Complex::new(re, im);
        let mut x = vec![number(1.0_f32, 0.0); 40];
        (x[20], x[30]) = (number(-0.75, 0.75), number(1.0, -0.5));
        assert_eq!(first_largest(&x), 20);
    }
}
