//! Diagonal blocks of order 2 of a real pair: their eigenvalues, and the rotations to Schur form.
//!
//! The standard form is LAPACK's (xHGEQZ, xLAGV2): either both blocks are triangular, or that of T is diagonal, its
//! elements positive and the first the larger one but for roundings, and the eigenvalues are a conjugate pair.

use lapax_core::{Real as _, Scalar as _};

use super::pencil::{Pencil, eliminating};
use crate::Scalar;
use crate::schur::two_by_two::Rotation;

/// The eigenproblem of a block whose T is diagonal, S and T divided by numbers so that T is diag(1, b).
///
/// With p and m half the difference and half the sum of b·s₁₁ and s₂₂, the eigenvalues are (m ± r)/b for the roots ±r
/// of q, and the right vector of that with the upper sign is (p + r, s₂₁).
struct Block<R> {
    /// What S and T were divided by.
    s_size: R,
    t_size: R,
    s21: R,
    b: R,
    m: R,
    p: R,
    q: R,
}

impl<T: Scalar> Pencil<'_, T> {
    fn block(&self, k: usize) -> Block<T::Real> {
        let l = k + 1;
        let s = [self.s(k, k), self.s(k, l), self.s(l, k), self.s(l, l)].map(|x| x.re());
        let (zero, half) = (T::Real::ZERO, T::Real::from_f64(0.5));
        let s_size =
            s.into_iter().fold(zero, |size, x| if x.abs() > size { x.abs() } else { size });
        let t_size = self.t(k, k).re();
        let divided = |x: T::Real, size| if size == zero { x } else { x / size };
        let [s11, s12, s21, s22] = s.map(|x| divided(x, s_size));
        let b = divided(self.t(l, l).re(), t_size);
        let (m, p) = ((b * s11 + s22) * half, (b * s11 - s22) * half);
        Block { s_size, t_size, s21, b, m, p, q: p * p + s12 * s21 * b }
    }

    /// Brings the rows and columns k and k + 1 of a real pair to standard form; whether a conjugate pair is left.
    pub(crate) fn standardise(&mut self, k: usize) -> bool {
        self.diagonalise(k);
        let Block { s_size, t_size, s21, p, q, .. } = self.block(k);
        if q < T::Real::ZERO {
            return true;
        }
        // The sign of p: neither sum cancels.
        let x = p + p.signum() * q.sqrt();
        let g = eliminating(T::from_real(x), T::from_real(s21));
        self.right(g, (k, k + 1), k + 2, k + 2);
        self.left_by_larger(k, s_size, t_size);
        false
    }

    /// After the first of two columns has become an eigenvector: rotates rows so that of S and T, which are of these
    /// sizes, nothing is left below the diagonal.
    pub(crate) fn left_by_larger(&mut self, k: usize, s_size: T::Real, t_size: T::Real) {
        let (s, t) = ([self.s(k, k), self.s(k + 1, k)], [self.t(k, k), self.t(k + 1, k)]);
        let size = |x: [T; 2]| x[0].abs1() + x[1].abs1();
        let of_s = size(t) == T::Real::ZERO || size(s) * t_size > size(t) * s_size;
        let [x, y] = if of_s { s } else { t };
        self.left(eliminating(x, y), k, k, k);
        self.clear_s(k + 1, k);
        self.clear_t(k + 1, k);
    }

    /// T's block becomes diagonal, by a rotation that makes its columns orthogonal (Hestenes 1958).
    fn diagonalise(&mut self, k: usize) {
        let l = k + 1;
        let t = [self.t(k, k), self.t(k, l), self.t(l, k), self.t(l, l)].map(|x| x.re());
        let (zero, one) = (T::Real::ZERO, T::Real::ONE);
        let size = t.into_iter().fold(zero, |size, x| if x.abs() > size { x.abs() } else { size });
        if size == zero {
            return;
        }
        let [a, b, c, d] = t.map(|x| x / size);
        let (first, second, product) = (a * a + c * c, b * b + d * d, a * b + c * d);
        let (mut cosine, mut sine) = (one, zero);
        if product != zero {
            let zeta = (second - first) / (product + product);
            let tangent = zeta.signum() / (zeta.abs() + one.hypot(zeta));
            cosine = one / one.hypot(tangent);
            sine = -cosine * tangent;
        }
        let turned = [a * cosine + b * sine, c * cosine + d * sine];
        let length = turned[0] * turned[0] + turned[1] * turned[1];
        // The larger column comes first: the other one is then in error by its own roundoff.
        if length + length < first + second {
            (cosine, sine) = (-sine, cosine);
        }
        self.right(Rotation { c: cosine, s: T::from_real(sine) }, (k, l), l + 1, l + 1);
        self.left(eliminating(self.t(k, k), self.t(l, k)), k, k, k);
        self.clear_t(l, k);
        self.clear_t(k, l);
        for i in [k, l] {
            if self.t(i, i).re() < zero {
                self.turn_row(i, -T::ONE);
            }
        }
    }

    /// α and β of each eigenvalue α/β: the diagonals of the triangular form that unitary transformations give.
    pub(crate) fn values(&self, alpha: &mut [T::Complex], beta: &mut [T::Real]) {
        let mut k = 0;
        while k < self.n {
            if self.width(k) == 1 {
                let s = self.s(k, k);
                (alpha[k], beta[k]) = (T::Complex::from_parts(s.re(), s.im()), self.t(k, k).re());
                k += 1;
                continue;
            }
            let Block { s_size, t_size, s21, b, m, p, q } = self.block(k);
            // A form that was rounded may have a double eigenvalue.
            let r = if q < T::Real::ZERO { (-q).sqrt() } else { T::Real::ZERO };
            let x = p.hypot(r);
            let first = x.hypot(b * s21) / x.hypot(s21);
            let second = b / first;
            let pair = |im, scale: T::Real| {
                T::Complex::from_parts(m / scale * s_size, im / scale * s_size)
            };
            (alpha[k], alpha[k + 1]) = (pair(r, second), pair(-r, first));
            (beta[k], beta[k + 1]) = (first * t_size, second * t_size);
            k += 2;
        }
    }
}
