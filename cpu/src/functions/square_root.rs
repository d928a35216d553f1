//! R with R² = T of one upper triangular matrix on one thread: halves, and an equation for what is between them
//! (Deadman, Higham and Ralha, "Blocked Schur algorithms for computing the matrix square root", 2013).

use faer::MatMut;
use lapax_core::{Real as _, Scalar as _};

use super::sylvester::{joined, solve, whole};
use crate::Scalar;
use crate::simd::elementary::square_root;

/// The square root in place of an upper triangular matrix, or of a real one with blocks of order 2 on its diagonal.
pub(super) fn root<T: Scalar>(mut t: MatMut<'_, T>) {
    match t.nrows() {
        0 => {}
        1 => t[(0, 0)] = square_root(t[(0, 0)]),
        2 if joined(t.as_ref(), 0) => of_block(t),
        n => {
            // R₁₁² = T₁₁, R₂₂² = T₂₂, and R₁₁·R₁₂ + R₁₂·R₂₂ = T₁₂.
            let half = whole(t.as_ref(), n / 2);
            let (mut r11, r12, _, mut r22) = t.split_at_mut(half, half);
            root(r11.as_mut());
            root(r22.as_mut());
            solve(T::ONE, r11.as_ref(), r22.as_ref(), r12);
        }
    }
}

/// Of a real block with eigenvalues θ ± iμ: α·I + (T − θ·I)/(2α), α the real part of √(θ + iμ) (Higham, Linear Algebra
/// Appl. 88/89, 1987); NaN where they are real and negative.
fn of_block<T: Scalar>(mut t: MatMut<'_, T>) {
    let [[a, b], [c, d]] = [0, 1].map(|i| [0, 1].map(|j| t[(i, j)].re()));
    let half = T::Real::from_f64(0.5);
    let (theta, apart) = ((a + d) * half, (a - d) * half);
    // μ² = −((a − d)²/4 + bc).
    let mu = (-(apart * apart + b * c)).sqrt();
    let alpha = square_root(<T::Real as lapax_core::Scalar>::Complex::from_parts(theta, mu)).re();
    let scale = half / alpha;
    t[(0, 0)] = T::from_real(alpha + apart * scale);
    t[(1, 1)] = T::from_real(alpha - apart * scale);
    t[(0, 1)] = T::from_real(b * scale);
    t[(1, 0)] = T::from_real(c * scale);
}
