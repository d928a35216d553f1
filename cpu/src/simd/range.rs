//! Scaling a matrix by a power of two to where its squares neither overflow nor underflow.

use lapax_core::{Real, Scalar};

/// Whether no element is infinite or NaN. It looks at all of them, several at once.
pub(crate) fn all_finite<T: Scalar>(elements: &[T]) -> bool {
    elements.iter().fold(true, |finite, x| finite & x.is_finite())
}

/// The largest part of any element in magnitude; `None` where one is infinite or NaN.
pub(crate) fn largest_part<'a, T: Scalar>(
    elements: impl IntoIterator<Item = &'a [T]>,
) -> Option<T::Real> {
    /// Independent maxima, so that the loops over them are of vectors.
    const TOGETHER: usize = 16;
    let larger = |a, b| if a > b { a } else { b };
    let (mut largest, mut finite) = ([T::Real::ZERO; TOGETHER], true);
    for elements in elements {
        for elements in elements.chunks(TOGETHER) {
            for (largest, x) in largest.iter_mut().zip(elements) {
                *largest = larger(x.im().abs(), larger(x.re().abs(), *largest));
            }
        }
        finite &= all_finite(elements);
    }
    finite.then(|| largest.into_iter().fold(T::Real::ZERO, larger))
}

/// The power of two that brings a number near 1. It and its reciprocal are normal numbers, so a
/// denormal number gets only as near as that allows.
///
/// Multiplying a matrix by it is exact but for elements that are negligible beside the largest one.
pub(crate) fn power_near_reciprocal<R: Real>(size: R) -> R {
    /// The bits of an f64's biased exponent.
    const EXPONENT: u64 = 0x7ff << 52;
    /// Twice the bias: 2ᵉ and 2⁻ᵉ have biased exponents with this sum.
    const TWICE_BIAS: u64 = 2046 << 52;
    if size == R::ZERO {
        return R::ONE;
    }
    let bits = size.to_f64().to_bits() & EXPONENT;
    let smallest = R::SAFE_MIN.to_f64();
    let power = f64::from_bits(TWICE_BIAS.saturating_sub(bits));
    R::from_f64(power.clamp(smallest, smallest.recip()))
}

/// The power of two that brings a matrix with this largest element to where squares of its norm neither overflow nor
/// underflow: one where they do not as it is, and the matrix keeps its smallest numbers then, denormal ones too.
pub(crate) fn power_to_normal<R: Real>(largest: R) -> R {
    let least = R::SAFE_MIN.sqrt().sqrt();
    if least <= largest && largest <= R::ONE / least {
        R::ONE
    } else {
        power_near_reciprocal(largest)
    }
}

/// The same for a block of a tridiagonal or bidiagonal matrix, which is brought to order 1 at least: to make it larger
/// is exact, and what is small beside it is not small beside the least normal number then.
pub(crate) fn power_of_block<R: Real>(largest: R) -> R {
    if largest < R::ONE { power_near_reciprocal(largest) } else { power_to_normal(largest) }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {

    use super::{all_finite, largest_part, power_near_reciprocal, power_of_block, power_to_normal};

    trials!(
        powers_are_exact_and_have_reciprocals,
        what_is_normal_stays,
        one_bad_part_is_found,
        any_part_may_be_largest
    );

    fn powers_are_exact_and_have_reciprocals() {
        assert_eq!(power_near_reciprocal(1.0_f64), 1.0);
        assert_eq!(power_near_reciprocal(12.0_f64), 0.125);
        assert_eq!(power_near_reciprocal(0.3_f32), 4.0);
        assert_eq!(power_near_reciprocal(f32::MAX), f32::MIN_POSITIVE);
        assert_eq!(power_near_reciprocal(f64::MAX), f64::MIN_POSITIVE.max(2.0_f64.powi(-1022)));
        assert_eq!(power_near_reciprocal(f32::from_bits(1)), f32::MIN_POSITIVE.recip());
        assert_eq!(power_near_reciprocal(f64::from_bits(1)), f64::MIN_POSITIVE.recip());
    }

    fn what_is_normal_stays() {
        for size in [1e-9_f32, 1.0, 3.0, 1e9] {
            assert_eq!(power_to_normal(size), 1.0);
        }
        assert_eq!(power_to_normal(2.0_f32.powi(-40)), 2.0_f32.powi(40));
        assert_eq!(power_to_normal(2.0_f64.powi(300)), 2.0_f64.powi(-300));
        assert_eq!(power_of_block(1e9_f32), 1.0);
        assert_eq!(power_of_block(2.0_f32.powi(-9)), 512.0);
        assert_eq!(power_of_block(2.0_f32.powi(40)), 2.0_f32.powi(-40));
        assert_eq!([power_of_block(0.0_f64), power_to_normal(0.0)], [1.0; 2]);
    }

    fn one_bad_part_is_found() {
        use num_complex::Complex;
        let x = [Complex::new(1.0_f64, -3.0), Complex::new(2.0, 0.5)];
        assert_eq!(largest_part([&x[..]]), Some(3.0));
        assert_eq!(largest_part([&[x[0], Complex::new(0.0, f64::NAN)][..]]), None);
        assert_eq!(largest_part([&[x[0]][..], &[Complex::new(f64::NEG_INFINITY, 0.0)]]), None);
        assert!(all_finite(&x));
        assert!(!all_finite(&[x[0], Complex::new(0.0, f64::NAN), x[1]]));
        assert!(!all_finite(&[Complex::new(f64::NEG_INFINITY, 0.0), x[0]]));
        assert_eq!(largest_part::<f32>([]), Some(0.0));
    }

    fn any_part_may_be_largest() {
        use num_complex::Complex;
        for at in 0..40 {
            let mut x = [Complex::new(1.0_f32, -2.0); 40];
            x[at].im = -3.0;
            assert_eq!(largest_part(x.chunks(23)), Some(3.0), "{at}");
            x[at] = Complex::new(4.0, 0.0);
            assert_eq!(largest_part(x.chunks(23)), Some(4.0), "{at}");
        }
    }
}
