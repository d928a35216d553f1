//! The reduction to Hessenberg form column by column, and its Q reflector by reflector.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::fused::{add_multiples, add_product, reflect_columns};
use crate::blas::householder::reflector;
use crate::simd::chunks::TOGETHER;
use crate::simd::loops::sub_scaled;

/// The reduction column by column; `sums` has room for n elements.
pub(crate) struct Reduce<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) active: Range<usize>,
    pub(crate) tau: &'a mut [T],
    pub(crate) sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for Reduce<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, n, active, tau, sums } = self;
        let end = active.end;
        for k in active.start..end.saturating_sub(1) {
            let (left, right) = a.split_at_mut((k + 1) * n);
            let Some((head, tail)) = left[k * n + k + 1..k * n + end].split_first_mut() else {
                return;
            };
            let reflector = reflector::<S, T>(*head, tail);
            (*head, tau[k]) = (T::from_real(reflector.beta), reflector.tau);
            if reflector.tau == T::ZERO {
                continue;
            }
            // A ← A·H, with sums = A·v.
            let sums = &mut sums[..end];
            sums.copy_from_slice(&right[..end]);
            add_product(simd, sums, &right[n..], n, 0, tail);
            let (first, others) = right.split_at_mut(n);
            sub_scaled::<S, T>(&mut first[..end], reflector.tau, sums);
            let (fours, rest) = tail.as_chunks::<TOGETHER>();
            let mut columns = others.chunks_exact_mut(n).map(|column| &mut column[..end]);
            for four in fours {
                let together = std::array::from_fn(|_| columns.next().unwrap_or_default());
                let factors = four.map(|v| -(reflector.tau * v.conj()));
                add_multiples(simd, together, factors, sums);
            }
            for (column, &v) in columns.zip(rest) {
                sub_scaled::<S, T>(column, reflector.tau * v.conj(), sums);
            }
            // A ← Hᴴ·A.
            reflect_columns(simd, reflector.tau.conj(), tail, right, n, k + 1);
        }
    }
}

/// Q from the identity, one reflector at a time.
pub(crate) struct FormQ<'a, T> {
    pub(crate) a: &'a [T],
    pub(crate) n: usize,
    pub(crate) active: Range<usize>,
    pub(crate) tau: &'a [T],
    pub(crate) q: &'a mut [T],
}

impl<T: Scalar> WithSimd for FormQ<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, n, active, tau, q } = self;
        let end = active.end;
        for k in (active.start..end.saturating_sub(1)).rev() {
            let tail = &a[k * n + k + 2..k * n + end];
            reflect_columns(simd, tau[k], tail, &mut q[(k + 1) * n..end * n], n, k + 1);
        }
    }
}
