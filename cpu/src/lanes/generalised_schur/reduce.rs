//! Hessenberg-triangular form of a small pair in each lane (Moler and Stewart 1973), as `reduce` has it for one pair.

use lapax_core::Scalar as _;
use pulp::Simd;

use super::pair::Pair;
use crate::lanes::reflector::{reflect_columns, reflector};
use crate::lanes::rotation::Rotation;
use crate::simd::vector::{Lane, Reg, Vector};

impl<S: Simd, X: Lane<S>> Pair<'_, S, X> {
    /// From any pair, whose Q and Z need not be set. n numbers of scratch.
    #[inline(always)]
    pub(super) fn reduce(&mut self, simd: S, taus: &mut [Reg<S, X>]) {
        let n = self.n;
        self.triangularise(simd, taus);
        let zero = Vector::splat(simd, X::Real::ZERO);
        let nothing = X::from_real(zero);
        let all = zero.equal(zero);
        for j in 0..n.saturating_sub(2) {
            for i in (j + 2..n).rev() {
                let rotation = Rotation::new(simd, self.s(simd, i - 1, j), self.s(simd, i, j), all);
                self.both(simd, rotation, i - 1, (j, n));
                self.set_s(i, j, nothing);
            }
        }
    }

    /// T becomes triangular by reflectors, of which Q is the product; Z is the identity.
    #[inline(always)]
    fn triangularise(&mut self, simd: S, taus: &mut [Reg<S, X>]) {
        let (n, stride) = (self.n, self.ld * X::PARTS);
        let real = |x| X::from_real(Vector::splat(simd, x));
        for k in 0..n - 1 {
            let (left, right) = self.t.split_at_mut((k + 1) * stride);
            let column = &mut left[k * stride + k * X::PARTS..k * stride + n * X::PARTS];
            let (head, tail) = column.split_at_mut(X::PARTS);
            let (beta, tau) = reflector(simd, X::load(simd, head, 0), tail);
            X::from_real(beta).store(head, 0);
            tau.store(taus, k);
            let right = &mut right[..(n - k - 1) * stride];
            reflect_columns::<S, X>(simd, tau.conj(), tail, right, stride, k);
            reflect_columns::<S, X>(simd, tau.conj(), tail, &mut self.s[..n * stride], stride, k);
        }
        for a in [&mut *self.q, &mut *self.z] {
            for (j, column) in a[..n * stride].chunks_exact_mut(stride).enumerate() {
                for i in 0..n {
                    let x = if i == j { X::Real::ONE } else { X::Real::ZERO };
                    real(x).store(column, i);
                }
            }
        }
        for k in (0..n - 1).rev() {
            let tail = &self.t[k * stride + (k + 1) * X::PARTS..k * stride + n * X::PARTS];
            let tau = X::load(simd, taus, k);
            let columns = &mut self.q[k * stride..n * stride];
            reflect_columns::<S, X>(simd, tau, tail, columns, stride, k);
        }
        for (k, column) in self.t[..n * stride].chunks_exact_mut(stride).enumerate() {
            for i in k + 1..n {
                real(X::Real::ZERO).store(column, i);
            }
        }
    }
}
