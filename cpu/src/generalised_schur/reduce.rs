//! Hessenberg-triangular form of a pair: S Hessenberg, T upper triangular.
//!
//! Moler and Stewart, "An algorithm for generalized matrix eigenvalue problems" (SIAM J. Numer. Anal. 10, 1973):
//! reflectors make T triangular, then each rotation of rows that clears an element of S is followed by one of columns
//! that clears what it left in T.

use pulp::{Simd, WithSimd};

use super::pencil::{Pencil, eliminating};
use crate::Scalar;
use crate::blas::householder::reflector;

impl<T: Scalar> Pencil<'_, T> {
    /// From any pair; `sums` has room for n numbers, as has `v`.
    pub(crate) fn reduce(&mut self, v: &mut [T], sums: &mut [T]) {
        let n = self.n;
        for k in 0..n.saturating_sub(1) {
            self.triangularise(k, &mut v[k..], sums);
        }
        for j in 0..n.saturating_sub(2) {
            for i in (j + 2..n).rev() {
                let (x, y) = (self.s(i - 1, j), self.s(i, j));
                if y == T::ZERO {
                    continue;
                }
                self.left(eliminating(x, y), i - 1, j, i - 1);
                self.clear_s(i, j);
                self.right_by_t(i, (i, i - 1), n, i + 1);
            }
        }
    }

    /// Clears column k of T below its diagonal by a reflector.
    fn triangularise(&mut self, k: usize, v: &mut [T], sums: &mut [T]) {
        let (n, ld) = (self.n, self.ld);
        let column = self.t[k * ld + k..].iter().step_by(ld);
        v.iter_mut().zip(column).for_each(|(v, &x)| *v = x);
        let Some((head, tail)) = v.split_first_mut() else { return };
        let reflector = reflector::<pulp::Scalar, T>(*head, tail);
        *head = T::ONE;
        let tau = reflector.tau.conj();
        if tau == T::ZERO {
            return;
        }
        for (a, from) in [(&mut *self.s, 0), (&mut *self.t, k + 1), (&mut *self.qh, 0)] {
            self.arch.dispatch(Reflect { v, tau, n, ld, from, a: &mut a[k * ld..], sums });
        }
        self.t[k * ld + k] = T::from_real(reflector.beta);
        self.t[k * ld + k..].iter_mut().step_by(ld).skip(1).for_each(|x| *x = T::ZERO);
    }
}

/// A ← (I − tau·v·vᴴ)·A from one column on.
struct Reflect<'a, T> {
    v: &'a [T],
    tau: T,
    n: usize,
    ld: usize,
    from: usize,
    a: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for Reflect<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v, tau, n, ld, from, a, sums } = self;
        let sums = &mut sums[from..n];
        sums.fill(T::ZERO);
        for (row, v) in a.chunks_exact(ld).zip(v) {
            let v = v.conj();
            sums.iter_mut().zip(&row[from..]).for_each(|(sum, &x)| *sum += v * x);
        }
        for (row, &v) in a.chunks_exact_mut(ld).zip(v) {
            let factor = tau * v;
            row[from..].iter_mut().zip(&*sums).for_each(|(x, &sum)| *x -= factor * sum);
        }
    }
}
