//! Reduction of an upper triangular band matrix to real upper bidiagonal form.

use pulp::{Simd, WithSimd};

use super::bulges::{
    Chased, STRIDE, Sweeps, WIDTH, add_product, at, chase, clear, clear_column, parts, product,
    update,
};
use crate::Scalar;
use crate::blas::fused::totals;
use crate::simd::chunks::{PARTS, TOGETHER, less};

/// Copies a band from the upper triangle of n columns of m >= n elements to [`crate::two_stage::bulges::storage`].
pub(crate) fn fill<T: Scalar>(band: &mut [T], a: &[T], m: usize) {
    band.fill(T::ZERO);
    for (j, column) in a.chunks_exact(m).enumerate() {
        let first = j.saturating_sub(WIDTH);
        band[at(first, j)..][..=j - first].copy_from_slice(&column[first..=j]);
    }
}

/// Reduces a band that [`fill`] made, whose contents are lost: `d` becomes B's diagonal, `e` what is above
/// it. The first element of the band is real.
pub(crate) struct Bidiagonalize<'a, T: Scalar> {
    pub(crate) band: &'a mut [T],
    pub(crate) d: &'a mut [T::Real],
    pub(crate) e: &'a mut [T::Real],
}

impl<T: Scalar> WithSimd for Bidiagonalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        self.d[0] = self.band[at(0, 0)].re();
        chase::<S, T>(self.d.len(), &mut self);
    }
}

impl<T: Scalar> Sweeps<T> for Bidiagonalize<'_, T> {
    #[inline(always)]
    fn step<S: Simd>(&mut self, sweep: usize, step: usize, chased: &mut Chased<T>) {
        let Self { band, d, e } = self;
        let row = sweep + 1 + step * WIDTH;
        if step == 0 {
            let adjoint = row_adjoint(&band[at(sweep, row)..]);
            (e[sweep], *chased) = clear::<S, T>(&adjoint);
        } else {
            *chased = clear_row::<S, T>(&mut band[at(row - WIDTH, row)..], chased);
        }
        let beta;
        (beta, *chased) = clear_column::<S, T>(&mut band[at(row, row)..], chased);
        if step == 0 {
            d[row] = beta;
        }
    }
}

/// The adjoint of a block's first row.
#[inline(always)]
fn row_adjoint<T: Scalar>(a: &[T]) -> [T; WIDTH] {
    let mut adjoint = [T::ZERO; WIDTH];
    for (to, x) in adjoint.iter_mut().zip(a.iter().step_by(STRIDE)) {
        *to = x.conj();
    }
    adjoint
}

/// A ← Gᴴ·A·H for a block, where H, which is returned, clears the first row.
#[inline(always)]
fn clear_row<S: Simd, T: Scalar>(a: &mut [T], chased: &Chased<T>) -> Chased<T> {
    let Chased { v, tau } = chased;
    // Gᴴ·A = A − v·s.
    let mut s = [T::ZERO; WIDTH];
    for (c, s) in (0..WIDTH).step_by(TOGETHER).zip(s.chunks_exact_mut(TOGETHER)) {
        let mut sums = [[T::ZERO; PARTS]; TOGETHER];
        for (k, sum) in sums.iter_mut().enumerate() {
            for (x, v) in parts(&a[(c + k) * STRIDE..]).iter().zip(v) {
                add_product::<S, T>(sum, v, x);
            }
        }
        for (s, total) in s.iter_mut().zip(totals(sums)) {
            *s = total * tau.conj();
        }
    }
    let mut adjoint = row_adjoint(a);
    for (x, s) in adjoint.iter_mut().zip(&s) {
        *x -= s.conj();
    }
    let (beta, next) = clear::<S, T>(&adjoint);
    // (A − v·s)·H = A − v·s − u·hᴴ with u = tau·(A − v·s)·h.
    let mut u = product::<S, T>(a, &next);
    let h = next.v.as_flattened();
    let inner = s.iter().zip(h).fold(T::ZERO, |sum, (&s, &h)| sum + s * h) * next.tau;
    for (u, v) in u.iter_mut().zip(v) {
        *u = less::<S, T>(*u, inner, v);
    }
    let mut h_adjoint = [T::ZERO; WIDTH];
    for (to, h) in h_adjoint.iter_mut().zip(h) {
        *to = h.conj();
    }
    update::<S, T>(a, (v, &s), (&u, &h_adjoint));
    a.iter_mut().step_by(STRIDE).take(WIDTH).for_each(|x| *x = T::ZERO);
    a[0] = T::from_real(beta);
    next
}
