//! A panel of a QR factorisation with column pivoting: the columns that are left are read for each
//! reflector, but updated once for all of them, by a matrix product.
//!
//! Quintana-Ortí, Sun and Bischof, "A BLAS-3 version of the QR factorization with column pivoting"
//! (SIAM J. Sci. Comput. 19, 1998): after k reflectors, Qᴴ·A = A − V·Fᴴ, of which only the next row
//! and the next column are formed before the panel ends.

use faer::{Accum, Conj, MatMut, MatRef};
use pulp::{Arch, Simd, WithSimd};

use crate::Scalar;
use crate::householder::{Reflector, dot, reflector};
use crate::pivoted_qr::{Free, Norm};
use crate::qr::WIDTH;
use crate::simd::{sub_mul, sub_scaled};

/// Factors at most [`WIDTH`] free columns and updates the others; returns how many.
///
/// A norm that has lost its digits can be computed anew only from an updated column, so it ends the
/// panel. `scratch` holds WIDTH + 1 elements per column.
pub(crate) fn factor_panel<T: Scalar>(
    free: &mut Free<'_, T>,
    tau: &mut [T],
    norms: &mut [Norm<T::Real>],
    scratch: &mut [T],
    arch: Arch,
) -> usize {
    let n = norms.len();
    let (f, sums) = scratch.split_at_mut(n * WIDTH);
    let width = WIDTH.min(tau.len());
    let tau = &mut tau[..width];
    let done = arch.dispatch(FactorPanel {
        free: &mut *free,
        tau,
        norms: &mut *norms,
        f: &mut *f,
        sums: &mut sums[..n],
    });
    let (m, below) = (free.m, free.row + done);
    let (left, right) = free.a.split_at_mut(done * m);
    // The rows of the panel are up to date; those below become A − V·Fᴴ.
    let v = MatRef::from_column_major_slice(left, m, done).subrows(below, m - below);
    let f = MatRef::from_column_major_slice(&f[..n * done], n, done).subrows(done, n - done);
    let a = MatMut::from_column_major_slice_mut(right, m, n - done).subrows_mut(below, m - below);
    T::product(a, Accum::Add, (v, Conj::No), (f.transpose(), Conj::Yes), -T::ONE);
    arch.dispatch(Recompute { a: right, m, below, norms: &mut norms[done..] });
    done
}

/// The reflectors of a panel, the rows of R that they make, and F.
struct FactorPanel<'a, 'b, T: Scalar> {
    free: &'a mut Free<'b, T>,
    tau: &'a mut [T],
    norms: &'a mut [Norm<T::Real>],
    f: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for FactorPanel<'_, '_, T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let Self { free, tau, norms, f, sums } = self;
        let (n, width) = (norms.len(), tau.len());
        for (k, tau) in tau.iter_mut().enumerate() {
            let pivot = free.pivot(k, norms);
            f.chunks_exact_mut(n).take(k).for_each(|f| f.swap(k, pivot));
            let (m, row) = (free.m, free.row + k);
            let (known, rest) = free.a.split_at_mut(k * m);
            let (column, right) = rest.split_at_mut(m);
            // This column of A − V·Fᴴ, and its reflector.
            for (v, f) in known.chunks_exact(m).zip(f.chunks_exact(n)) {
                sub_scaled::<S, T>(&mut column[row..], f[k].conj(), &v[row..]);
            }
            let Some((head, tail)) = column[row..].split_first_mut() else { return k };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (*head, *tau) = (T::from_real(beta), factor);

            // f = tau·(A − V·Fᴴ)ᴴ·v.
            let (f_known, f_rest) = f.split_at_mut(k * n);
            let f_new = &mut f_rest[k + 1..n];
            for (f, a) in f_new.iter_mut().zip(right.chunks_exact(m)) {
                *f = factor * (a[row].conj() + dot::<S, T>(&a[row + 1..], tail));
            }
            for (v, f) in known.chunks_exact(m).zip(f_known.chunks_exact(n)) {
                let product = factor * (v[row].conj() + dot::<S, T>(&v[row + 1..], tail));
                sub_scaled::<S, T>(f_new, product, &f[k + 1..]);
            }
            // This row of A − V·Fᴴ, where v is one in the new column.
            let sums = &mut sums[k + 1..];
            sums.iter_mut().zip(&*f_new).for_each(|(sum, f)| *sum = f.conj());
            for (v, f) in known.chunks_exact(m).zip(f_known.chunks_exact(n)) {
                for (sum, f) in sums.iter_mut().zip(&f[k + 1..]) {
                    *sum = sub_mul::<S, T>(*sum, -v[row], f.conj());
                }
            }
            let mut stale = false;
            let columns = right.chunks_exact_mut(m).zip(&*sums);
            for ((a, &sum), norm) in columns.zip(&mut norms[k + 1..]) {
                a[row] -= sum;
                if !norm.downdate(a[row].abs()) {
                    norm.spoil();
                    stale = true;
                }
            }
            if stale {
                return k + 1;
            }
        }
        width
    }
}

/// Computes the norms that were spoilt.
struct Recompute<'a, T: Scalar> {
    a: &'a [T],
    m: usize,
    below: usize,
    norms: &'a mut [Norm<T::Real>],
}

impl<T: Scalar> WithSimd for Recompute<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, m, below, norms } = self;
        for (norm, column) in norms.iter_mut().zip(a.chunks_exact(m)) {
            if norm.is_spoilt() {
                *norm = Norm::of::<S, T>(&column[below..]);
            }
        }
    }
}
