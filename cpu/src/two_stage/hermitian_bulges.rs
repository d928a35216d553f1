//! Reduction of a Hermitian band matrix to real tridiagonal form.

use lapax_core::Real as _;
use pulp::{Simd, WithSimd};

use super::bulges::{Chased, Sweeps, WIDTH, at, chase, clear, clear_column, product, update};
use crate::Scalar;
use crate::blas::householder::dot;
use crate::simd::chunks::less;

/// Copies a band from the lower triangle of a matrix of order n to both triangles of
/// [`crate::two_stage::bulges::storage`].
pub(crate) fn fill<T: Scalar>(band: &mut [T], a: &[T], n: usize) {
    band.fill(T::ZERO);
    for (j, column) in a.chunks_exact(n).enumerate() {
        band[at(j, j)] = T::from_real(column[j].re());
        let end = n.min(j + WIDTH + 1);
        band[at(j, j)..][1..end - j].copy_from_slice(&column[j + 1..end]);
        for (i, x) in column.iter().enumerate().take(j + WIDTH).skip(j + 1) {
            band[at(j, i)] = x.conj();
        }
    }
}

/// Reduces a band that [`fill`] made, whose contents are lost: `d` becomes T's diagonal, `e` what is
/// beside it.
pub(crate) struct Tridiagonalize<'a, T: Scalar> {
    pub(crate) band: &'a mut [T],
    pub(crate) d: &'a mut [T::Real],
    pub(crate) e: &'a mut [T::Real],
}

impl<T: Scalar> WithSimd for Tridiagonalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let n = self.d.len();
        chase::<S, T>(n, &mut self);
        self.d[n - 1] = self.band[at(n - 1, n - 1)].re();
    }
}

impl<T: Scalar> Sweeps<T> for Tridiagonalize<'_, T> {
    #[inline(always)]
    fn step<S: Simd>(&mut self, sweep: usize, step: usize, chased: &mut Chased<T>) {
        let Self { band, d, e } = self;
        let row = sweep + 1 + step * WIDTH;
        if step == 0 {
            d[sweep] = band[at(sweep, sweep)].re();
            (e[sweep], *chased) = clear::<S, T>(&band[at(row, sweep)..]);
        } else {
            let before = row - WIDTH;
            (_, *chased) = clear_column::<S, T>(&mut band[at(row, before)..], chased);
            // The next sweep's block on the diagonal has this row: to its other triangle.
            for column in before + 1..row {
                band[at(column, row)] = band[at(row, column)].conj();
            }
        }
        both_sides::<S, T>(&mut band[at(row, row)..], chased);
    }
}

/// A ← Hᴴ·A·H for a block on the diagonal, both triangles of it.
#[inline(always)]
fn both_sides<S: Simd, T: Scalar>(a: &mut [T], chased: &Chased<T>) {
    let Chased { v, tau } = chased;
    let mut w = product::<S, T>(a, chased);
    let inner = dot::<S, T>(w.as_flattened(), v.as_flattened());
    let half = (*tau * inner).scale(T::Real::from_f64(0.5));
    for (w, v) in w.iter_mut().zip(v) {
        *w = less::<S, T>(*w, half, v);
    }
    let mut adjoints = [[T::ZERO; WIDTH]; 2];
    for (adjoint, x) in adjoints.iter_mut().zip([v, &w]) {
        for (to, x) in adjoint.iter_mut().zip(x.as_flattened()) {
            *to = x.conj();
        }
    }
    update::<S, T>(a, (v, &adjoints[1]), (&w, &adjoints[0]));
}
