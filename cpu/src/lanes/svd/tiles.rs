//! What the decomposition of a group reuses.

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::lanes::phase;
use crate::lanes::reflector::{reflect_columns, reflector};
use crate::simd::vector::{Lane, Reg, Vector};

/// The tiles of a group, as registers.
pub(crate) struct Registers<'a, S: Simd, X: Lane<S>> {
    pub(super) a: &'a mut [Reg<S, X>],
    pub(super) tau: &'a mut [Reg<S, X>],
    pub(super) x: &'a mut [Reg<S, X>],
    pub(super) v: &'a mut [Reg<S, X>],
    pub(super) s: &'a mut [Reg<S, Vector<S, X::Real>>],
    pub(super) real: &'a mut [Reg<S, Vector<S, X::Real>>],
    pub(super) tall: usize,
    pub(super) k: usize,
    pub(super) columns: usize,
}

impl<S: Simd, X: Lane<S>> Registers<'_, S, X> {
    /// Gives the vectors their phases, by U of the tall matrix or by V.
    #[inline(always)]
    pub(crate) fn turn(&mut self, simd: S, by_left: bool) {
        let (tall, k) = (self.tall, self.k);
        let v = &mut self.v[..tall * self.columns * X::PARTS];
        let (v, alone) = v.split_at_mut(tall * k * X::PARTS);
        let x = &mut self.x[..k * k * X::PARTS];
        if by_left {
            phase::pairs::<S, X>(simd, (v, tall), (x, k));
        } else {
            phase::pairs::<S, X>(simd, (x, k), (v, tall));
        }
        phase::columns::<S, X>(simd, alone, tall);
    }

    /// Rᴴ·V = W·D: W in `x`, |D| in `s`; then Q·V, widened to as many columns as are wanted.
    #[inline(always)]
    pub(crate) fn vectors(&mut self, simd: S) {
        let (tall, k, columns) = (self.tall, self.k, self.columns);
        // The reflectors of Q stay in `a`, whose diagonal is free: W's taus go there.
        let stride = k * X::PARTS;
        let one = Vector::<S, X::Real>::splat(simd, X::Real::ONE);
        let zero = Vector::splat(simd, X::Real::ZERO);
        for j in 0..k {
            let (left, right) = self.x.split_at_mut((j + 1) * stride);
            let (head, tail) = left[j * (stride + X::PARTS)..].split_at_mut(X::PARTS);
            let alpha = X::load(simd, head, 0);
            let (beta, tau) = reflector(simd, alpha, tail);
            tau.store(self.a, j * tall + j);
            X::from_real(beta).store(head, 0);
            let right = &mut right[..(k - j - 1) * stride];
            reflect_columns::<S, X>(simd, tau.conj(), tail, right, stride, j);
        }
        // W, with the signs of D.
        for j in (0..k).rev() {
            let tau = X::load(simd, self.a, j * tall + j);
            let (left, right) = self.x.split_at_mut((j + 1) * stride);
            let (top, tail) = left[j * stride..].split_at_mut((j + 1) * X::PARTS);
            let beta = X::load(simd, top, j).re();
            self.s[j] = beta.abs().reg();
            let sign = one.with_sign(beta);
            let right = &mut right[..(k - j - 1) * stride];
            reflect_columns::<S, X>(simd, tau, tail, right, stride, j);
            (0..j).for_each(|i| X::from_real(zero).store(top, i));
            (X::from_real(one) - tau).scale(sign).store(top, j);
            for v in tail.chunks_exact_mut(X::PARTS) {
                (-(X::load(simd, v, 0) * tau)).scale(sign).store(v, 0);
            }
        }
        // V is k × k and packed; it becomes the head of a tall matrix with unit columns beside it.
        for j in (0..columns).rev() {
            for i in (0..tall).rev() {
                let x = match (i < k && j < k, i == j) {
                    (true, _) => X::load(simd, self.v, j * k + i),
                    (false, true) => X::from_real(one),
                    (false, false) => X::from_real(zero),
                };
                x.store(self.v, j * tall + i);
            }
        }
        for j in (0..k).rev() {
            let tail = &self.a[j * tall * X::PARTS + (j + 1) * X::PARTS..(j + 1) * tall * X::PARTS];
            let tau = X::load(simd, self.tau, j);
            let v = &mut self.v[..columns * tall * X::PARTS];
            reflect_columns::<S, X>(simd, tau, tail, v, tall * X::PARTS, j);
        }
    }
}
