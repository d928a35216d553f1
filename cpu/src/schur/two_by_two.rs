//! Matrices of order 2: their eigenvalues, and the rotation that brings them to Schur form.
//!
//! A real one becomes triangular, or gets equal diagonal elements and off-diagonal ones of opposite
//! sign: LAPACK's standard form (xLANV2; Bai and Demmel, "On swapping diagonal blocks in real Schur
//! form", Linear Algebra Appl. 186, 1993). A complex one becomes triangular.

use lapax_core::{Real, Scalar as _};

use crate::Scalar;

/// [a b; c d].
pub(crate) type Square<T> = [T; 4];

/// The rotation G = [c s; −s̄ c] with c real.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rotation<T: Scalar> {
    pub(crate) c: T::Real,
    pub(crate) s: T,
}

impl<T: Scalar> Rotation<T> {
    const IDENTITY: Self = Self { c: <T::Real as lapax_core::Scalar>::ONE, s: T::ZERO };

    /// The rotation that brings [x; y] to [r; 0].
    pub(crate) fn eliminating(x: T, y: T) -> Self {
        let (size, other) = (x.abs(), y.abs());
        let norm = size.hypot(other);
        if other == T::Real::ZERO || norm == T::Real::ZERO {
            return Self::IDENTITY;
        }
        let phase = if size == T::Real::ZERO { T::ONE } else { x.unscale(size) };
        Self { c: size / norm, s: phase * y.conj().unscale(norm) }
    }

    /// [x; y] ← G·[x; y].
    #[inline(always)]
    pub(crate) fn rotate(self, x: T, y: T) -> (T, T) {
        (x.scale(self.c) + self.s * y, y.scale(self.c) - self.s.conj() * x)
    }

    /// A ← G·A for two rows of columns of length `ld`.
    #[inline(always)]
    pub(crate) fn rows(self, a: &mut [T], ld: usize, row: usize) {
        for column in a.chunks_exact_mut(ld) {
            (column[row], column[row + 1]) = self.rotate(column[row], column[row + 1]);
        }
    }

    /// [x y] ← [x y]·Gᴴ, for two columns.
    #[inline(always)]
    pub(crate) fn columns(self, x: &mut [T], y: &mut [T]) {
        let conjugate = Self { c: self.c, s: self.s.conj() };
        for (x, y) in x.iter_mut().zip(y) {
            (*x, *y) = conjugate.rotate(*x, *y);
        }
    }
}

/// Both eigenvalues. A real matrix has two real ones, or a conjugate pair.
pub(crate) fn eigenvalues<T: Scalar>([a, b, c, d]: Square<T>) -> (T::Complex, T::Complex) {
    let size = a.abs1() + b.abs1() + c.abs1() + d.abs1();
    let wide = |x: T| T::Complex::from_parts(x.re(), x.im());
    if size == T::Real::ZERO || !size.finite() {
        return (wide(a), wide(d));
    }
    let half = T::Real::from_f64(0.5);
    let [a, b, c, d] = [a, b, c, d].map(|x| x.unscale(size));
    let middle = wide(a + d).scale(half);
    let offset = (a - d).scale(half);
    // (x − a)(x − d) − b·c = (x − middle)² − (offset² + b·c).
    let root = square_root::<T>(wide(offset * offset + b * c));
    ((middle + root).scale(size), (middle - root).scale(size))
}

/// The square root with a real part that is not negative.
pub(crate) fn square_root<T: Scalar>(z: T::Complex) -> T::Complex {
    let (zero, half) = (T::Real::ZERO, T::Real::from_f64(0.5));
    let size = z.abs();
    if size == zero {
        return T::Complex::from_parts(zero, zero);
    }
    let larger = ((z.re().abs() + size) * half).sqrt();
    let smaller = z.im() * half / larger;
    if z.re() >= zero {
        T::Complex::from_parts(larger, smaller)
    } else {
        let smaller = if smaller < zero { -smaller } else { smaller };
        T::Complex::from_parts(smaller, if z.im() < zero { -larger } else { larger })
    }
}

/// B and G such that A = Gᴴ·B·G and B is in Schur form, its element below the diagonal zero unless
/// the eigenvalues are a conjugate pair of a real matrix.
pub(crate) fn standardised<T: Scalar>(a: Square<T>) -> (Square<T>, Rotation<T>) {
    if T::IS_COMPLEX {
        return triangular(a);
    }
    let real = T::from_real;
    let ([a, b, c, d], cosine, sine) = standard(a.map(|x| x.re()));
    ([real(a), real(b), real(c), real(d)], Rotation { c: cosine, s: real(sine) })
}

/// Triangular form, by a rotation onto an eigenvector.
fn triangular<T: Scalar>([a, b, c, d]: Square<T>) -> (Square<T>, Rotation<T>) {
    if c == T::ZERO {
        return ([a, b, c, d], Rotation::IDENTITY);
    }
    // With x the eigenvalue less the middle of the diagonal: (offset − x)·v₁ + b·v₂ = 0 and
    // c·v₁ − (offset + x)·v₂ = 0. Of the two roots ±x, the one near the offset gives the longer v.
    let half = T::Real::from_f64(0.5);
    let offset = (a - d).scale(half);
    let (one, other) = eigenvalues([offset, b, c, -offset]);
    let narrow = |x: T::Complex| T::from_parts(x.re(), x.im());
    let (one, other) = (narrow(one), narrow(other));
    let x = if (offset + one).abs1() >= (offset + other).abs1() { one } else { other };
    let g = Rotation::eliminating(offset + x, c);
    // G·A, then its product with Gᴴ.
    let ((a, c), (b, d)) = (g.rotate(a, c), g.rotate(b, d));
    let across = Rotation { c: g.c, s: g.s.conj() };
    let ((a, b), (_, d)) = (across.rotate(a, b), across.rotate(c, d));
    ([a, b, T::ZERO, d], g)
}

/// LAPACK's standard form of a real matrix, with the cosine and the sine.
fn standard<R: Real>([a, b, c, d]: Square<R>) -> (Square<R>, R, R) {
    let (zero, one, half) = (R::ZERO, R::ONE, R::from_f64(0.5));
    let opposite = |b: R, c: R| (b > zero) != (c > zero);
    if c == zero {
        return ([a, b, c, d], one, zero);
    }
    if b == zero {
        return ([d, -c, zero, a], zero, one);
    }
    if a == d && opposite(b, c) {
        return ([a, b, c, d], one, zero);
    }
    let difference = a - d;
    let p = difference * half;
    let (large, small) = if b.abs() > c.abs() { (b.abs(), c.abs()) } else { (c.abs(), b.abs()) };
    let product_sign = if opposite(b, c) { -one } else { one };
    let scale = if p.abs() > large { p.abs() } else { large };
    let z = (p / scale) * p + (large / scale) * small * product_sign;
    // Eigenvalues that are real by more than rounding: the one farther from d first.
    if z >= R::from_f64(8.0) * R::EPSILON * scale {
        let z = p + p.signum() * (scale.sqrt() * z.sqrt());
        let length = c.hypot(z);
        let lower = d - (large / z) * small * product_sign;
        return ([d + z, b - c, zero, lower], z / length, c / length);
    }
    // Equal diagonal elements, by the rotation through half the angle of (b + c, a − d).
    let sigma = b + c;
    let length = sigma.hypot(difference);
    let cosine = ((one + sigma.abs() / length) * half).sqrt();
    let sine = -(p / (length * cosine)) * sigma.signum();
    let (a, b, c, d) = (
        a * cosine + b * sine,
        b * cosine - a * sine,
        c * cosine + d * sine,
        d * cosine - c * sine,
    );
    let (a, b, c, d) = (
        a * cosine + c * sine,
        b * cosine + d * sine,
        c * cosine - a * sine,
        d * cosine - b * sine,
    );
    let middle = (a + d) * half;
    if c == zero {
        return ([middle, b, c, middle], cosine, sine);
    }
    if b == zero {
        return ([middle, -c, zero, middle], -sine, cosine);
    }
    if opposite(b, c) {
        return ([middle, b, c, middle], cosine, sine);
    }
    // Nearly equal real eigenvalues: a second rotation clears c.
    let (root_b, root_c) = (b.abs().sqrt(), c.abs().sqrt());
    let p = root_b * root_c * c.signum();
    let length = (b + c).abs().sqrt();
    let (turn, rise) = (root_b / length, root_c / length);
    let turned = [middle + p, b - c, zero, middle - p];
    (turned, cosine * turn - sine * rise, cosine * rise + sine * turn)
}
