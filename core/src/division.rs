//! Complex division without needless overflow or underflow.

use num_complex::Complex;

use crate::scalar::{Real, Scalar};

/// z / w, after Baudin and Smith, "A robust complex division in Scilab" (arXiv:1210.4539): both are
/// brought by powers of two to where Smith's formula neither overflows nor loses digits.
pub(crate) fn divide<R: Real>(z: Complex<R>, w: Complex<R>) -> Complex<R>
where
    Complex<R>: Scalar<Real = R>,
{
    let half = R::from_f64(0.5);
    let two = R::from_f64(2.0);
    // 2/eps² is a power of two, so scaling by it is exact.
    let up = two / (R::EPSILON * R::EPSILON);
    let small = two * R::SAFE_MIN / R::EPSILON;
    let large = R::MAX * half;
    let magnitude = |x: Complex<R>| if x.re.abs() < x.im.abs() { x.im.abs() } else { x.re.abs() };

    let (mut z, mut w, mut restore) = (z, w, R::ONE);
    if magnitude(z) >= large {
        (z, restore) = (z.scale(half), restore * two);
    } else if magnitude(z) <= small {
        (z, restore) = (z.scale(up), restore / up);
    }
    if magnitude(w) >= large {
        (w, restore) = (w.scale(half), restore * half);
    } else if magnitude(w) <= small {
        (w, restore) = (w.scale(up), restore * up);
    }
    let quotient = if w.im.abs() <= w.re.abs() {
        smith(z.re, z.im, w.re, w.im)
    } else {
        // z/w = conj((-i·z̄)/(-i·w̄)) swaps the parts of both.
        let swapped = smith(z.im, z.re, w.im, w.re);
        Complex { re: swapped.re, im: -swapped.im }
    };
    quotient.scale(restore)
}

/// (a + i·b) / (c + i·d) for |d| <= |c|.
fn smith<R: Real>(a: R, b: R, c: R, d: R) -> Complex<R> {
    let r = d / c;
    let t = R::ONE / (c + d * r);
    // (x + y·d/c)·t, in the order that survives underflow of d/c or of y·d/c.
    let part = |x: R, y: R| {
        if r == R::ZERO {
            (x + d * (y / c)) * t
        } else if y * r == R::ZERO {
            x * t + (y * t) * r
        } else {
            (x + y * r) * t
        }
    };
    Complex { re: part(a, b), im: part(b, -a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_survives_the_ends_of_the_range() {
        let huge = f64::MAX / 2.0;
        let tiny = f64::MIN_POSITIVE * f64::EPSILON;
        for scale in [1.0, huge, f64::MIN_POSITIVE, 1e-300] {
            let z = Complex::new(scale, scale);
            assert!(
                Scalar::abs(Scalar::divide(z, z) - Complex::ONE) <= 4.0 * f64::EPSILON,
                "{scale:e}"
            );
        }
        let one = Complex::<f64>::ONE;
        assert_eq!(Scalar::divide(Complex::new(tiny, 0.0), Complex::new(0.0, tiny)), -Complex::I);
        assert!(!Scalar::is_finite(Scalar::divide(one, Complex::new(0.0, 0.0))));
        assert!(Scalar::is_nan(Scalar::divide(one, Complex::new(f64::NAN, 0.0))));
    }
}
