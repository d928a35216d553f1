//! Triangular systems of any size, by recursion.

use faer::{Accum, Conj, MatMut, MatRef};

use super::trsm_packed;
use super::trsm_packed::Scratch;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::{Scalar, Uplo};

/// B ← A⁻¹·B by halves, so that nearly all work is in the matrix product.
///
/// Rows or columns of B must be contiguous.
pub(crate) fn solve<T: Scalar>(
    system: System,
    a: MatRef<'_, T>,
    b: MatMut<'_, T>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let n = a.nrows();
    if n <= trsm_packed::ORDER {
        return trsm_packed::solve(system, a, b, scratch, arch);
    }
    let half = (n / 2).next_multiple_of(trsm_packed::ORDER);
    let (a11, a12, a21, a22) = a.split_at(half, half);
    let (mut b1, mut b2) = b.split_at_row_mut(half);
    match system.uplo {
        Uplo::Lower => {
            // A₁₁·X₁ = B₁, then A₂₂·X₂ = B₂ − A₂₁·X₁.
            solve(system, a11, b1.as_mut(), scratch, arch);
            subtract_product(b2.as_mut(), (a21, system.conj), (b1.as_ref(), Conj::No));
            solve(system, a22, b2, scratch, arch);
        }
        Uplo::Upper => {
            // A₂₂·X₂ = B₂, then A₁₁·X₁ = B₁ − A₁₂·X₂.
            solve(system, a22, b2.as_mut(), scratch, arch);
            subtract_product(b1.as_mut(), (a12, system.conj), (b2.as_ref(), Conj::No));
            solve(system, a11, b1, scratch, arch);
        }
    }
}

/// dst ← dst − op(lhs)·op(rhs).
pub(crate) fn subtract_product<T: Scalar>(
    dst: MatMut<'_, T>,
    lhs: (MatRef<'_, T>, Conj),
    rhs: (MatRef<'_, T>, Conj),
) {
    T::product(dst, Accum::Add, lhs, rhs, -T::ONE);
}
