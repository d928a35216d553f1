//! faer's divide and conquer for the tridiagonal eigenproblem and for the SVD, checked afterwards.
//!
//! What it returns is tried on a vector of random signs, which costs little: a wrong or missing
//! vector shows. The caller then computes anew, by implicit QR steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::evd::{
    ComputeEigenvectors, SelfAdjointEvdParams, self_adjoint_evd_scratch,
    tridiagonal_self_adjoint_evd,
};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{Auto, MatMut, MatRef, Par, Spec};
use lapax_core::{Real, Scalar as _};
use num_complex::Complex;

use crate::Scalar;

/// The order from which a problem is worth dividing.
pub(crate) const EIGEN_ORDER: usize = 48;
/// The same for the SVD, where what is not divided also takes fewer steps to get there.
pub(crate) const SVD_ORDER: usize = 64;
/// The order up to which faer does not divide further.
const RECURSION: usize = 32;
/// LAPACK's own tests accept 30 times n·ε·‖A‖; what exceeds this is computed anew.
const ACCEPTED: f64 = 10.0;

/// The scalars for which divide and conquer is compiled.
pub trait DivideAndConquer: Scalar {
    /// Memory for [`DivideAndConquer::eigen`].
    #[doc(hidden)]
    fn eigen_scratch(n: usize) -> StackReq;

    /// Eigenvalues and eigenvectors of a real tridiagonal matrix of order 1; false where it failed.
    #[doc(hidden)]
    fn eigen(
        d: &[Self::Real],
        e: &[Self::Real],
        w: &mut [Self::Real],
        z: &mut [Self::Real],
        stack: &mut MemStack,
    ) -> bool;

    /// Memory for [`DivideAndConquer::svd`].
    #[doc(hidden)]
    fn svd_scratch(m: usize, n: usize, full: bool) -> StackReq;

    /// A = U·diag(s)·Vᴴ for m >= n and an A of order 1; false where it failed.
    #[doc(hidden)]
    fn svd(
        a: MatRef<'_, Self>,
        s: &mut [Self],
        u: MatMut<'_, Self>,
        v: MatMut<'_, Self>,
        stack: &mut MemStack,
    ) -> bool;
}

macro_rules! divide_and_conquer {
    ($($scalar:ty, $real:ident;)+) => {$(
        impl DivideAndConquer for $scalar {
            fn eigen_scratch(n: usize) -> StackReq {
                let params = eigen_params::<$real>();
                self_adjoint_evd_scratch(n, ComputeEigenvectors::Yes, Par::Seq, params)
            }

            fn eigen(
                d: &[$real],
                e: &[$real],
                w: &mut [$real],
                z: &mut [$real],
                stack: &mut MemStack,
            ) -> bool {
                let n = d.len();
                let z = MatMut::from_column_major_slice_mut(z, n, n);
                let (d, e) = (DiagRef::from_slice(d), DiagRef::from_slice(e));
                let w = DiagMut::from_slice_mut(w);
                let params = eigen_params::<$real>();
                let compute = || {
                    tridiagonal_self_adjoint_evd(d, e, w, Some(z), Par::Seq, stack, params)
                };
                // A panic there is a failure like any other: nothing of it is used.
                catch_unwind(AssertUnwindSafe(compute)).is_ok_and(|outcome| outcome.is_ok())
            }

            fn svd_scratch(m: usize, n: usize, full: bool) -> StackReq {
                let u = if full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
                let params = Spec::<_, $scalar>::default();
                svd_scratch(m, n, u, ComputeSvdVectors::Thin, Par::Seq, params)
            }

            fn svd(
                a: MatRef<'_, Self>,
                s: &mut [Self],
                u: MatMut<'_, Self>,
                v: MatMut<'_, Self>,
                stack: &mut MemStack,
            ) -> bool {
                let s = DiagMut::from_slice_mut(s);
                let params = Spec::<_, $scalar>::default();
                let compute = || svd(a, s, Some(u), Some(v), Par::Seq, stack, params);
                catch_unwind(AssertUnwindSafe(compute)).is_ok_and(|outcome| outcome.is_ok())
            }
        }
    )+};
}

divide_and_conquer! {
    f32, f32;
    f64, f64;
    Complex<f32>, f32;
    Complex<f64>, f64;
}

fn eigen_params<R>() -> Spec<SelfAdjointEvdParams, R>
where
    SelfAdjointEvdParams: Auto<R>,
{
    let mut params = <SelfAdjointEvdParams as Auto<R>>::auto();
    params.recursion_threshold = RECURSION;
    params.into()
}

/// Memory for one of the above, or none.
pub(crate) fn memory(request: StackReq) -> MemBuffer {
    MemBuffer::new(request)
}

/// Whether T·Z = Z·diag(w) and ZᵀZ = I as far as can be seen; w ascends, and nothing is NaN.
pub(crate) fn is_eigensystem<R: Real>(d: &[R], e: &[R], w: &[R], z: &[R], sums: &mut [R]) -> bool {
    let n = d.len();
    let limit = limit::<R>(n, n);
    if !w.windows(2).all(|pair| pair[0] <= pair[1]) {
        return false;
    }
    let signed_sums = &mut sums[..n];
    signed_sums.fill(R::ZERO);
    for (j, (column, &w)) in z.chunks_exact(n).zip(w).enumerate() {
        for i in 0..n {
            let above = if i > 0 { e[i - 1] * column[i - 1] } else { R::ZERO };
            let below = if i + 1 < n { e[i] * column[i + 1] } else { R::ZERO };
            let residual = above + (d[i] - w) * column[i] + below;
            let within = residual.abs() <= limit;
            if !within {
                return false;
            }
            signed_sums[i] += sign::<R>(j) * column[i];
        }
    }
    z.chunks_exact(n).enumerate().all(|(j, column)| {
        let product = column.iter().zip(&*signed_sums).fold(R::ZERO, |sum, (&z, &x)| sum + z * x);
        (product - sign::<R>(j)).abs() <= limit
    })
}

/// Whether A = U·diag(s)·Vᴴ, UᴴU = I and VᴴV = I as far as can be seen; s descends to no less
/// than 0, and nothing is NaN.
pub(crate) fn is_svd<T: Scalar>(
    a: MatRef<'_, T>,
    s: &[T],
    u: MatRef<'_, T>,
    v: MatRef<'_, T>,
    sums: &mut [T],
) -> bool {
    let (m, n) = (a.nrows(), a.ncols());
    let limit = limit::<T::Real>(m, n);
    let descends = s.windows(2).all(|pair| pair[0].re() >= pair[1].re());
    if !descends || !s.last().is_none_or(|s| s.re() >= T::Real::ZERO) {
        return false;
    }
    let within = |x: T| x.re().abs() <= limit && x.im().abs() <= limit;
    let (left, right) = sums.split_at_mut(m);
    // ‖UᴴU·x − x‖ and ‖VᴴV·x − x‖ for signs x.
    for (q, sums) in [(u, &mut *left), (v, &mut *right)] {
        let sums = &mut sums[..q.nrows()];
        combine(q, |j| T::from_real(sign(j)), sums);
        for j in 0..q.ncols() {
            if !within(adjoint_product(q, j, sums) - T::from_real(sign(j))) {
                return false;
            }
        }
    }
    // ‖A·x − U·(s·(Vᴴ·x))‖.
    let right = &mut right[..n];
    for (i, x) in right.iter_mut().enumerate() {
        *x = T::from_real(sign(i));
    }
    let right = &*right;
    let left = &mut left[..m];
    combine(u.subcols(0, n), |j| adjoint_product(v, j, right).scale(s[j].re()), left);
    for (j, &x) in right.iter().enumerate() {
        for (i, sum) in left.iter_mut().enumerate() {
            *sum -= a[(i, j)] * x;
        }
    }
    left.iter().all(|&x| within(x))
}

/// The largest error of one element of a product with signs.
fn limit<R: Real>(m: usize, n: usize) -> R {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let (m, n) = (m as f64, n as f64);
    R::from_f64(ACCEPTED * m.max(n) * n.sqrt()) * R::EPSILON
}

/// Σ factor(j)·column j.
fn combine<T: Scalar>(q: MatRef<'_, T>, factor: impl Fn(usize) -> T, sums: &mut [T]) {
    sums.fill(T::ZERO);
    for j in 0..q.ncols() {
        let factor = factor(j);
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += q[(i, j)] * factor;
        }
    }
}

/// (column j)ᴴ·x.
fn adjoint_product<T: Scalar>(q: MatRef<'_, T>, j: usize, x: &[T]) -> T {
    x.iter().enumerate().fold(T::ZERO, |sum, (i, &x)| sum + q[(i, j)].conj() * x)
}

/// A sign that looks random: a bit of Weyl's sequence for the golden ratio, scrambled once.
fn sign<R: Real>(i: usize) -> R {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let x = (i as u64).wrapping_add(1).wrapping_mul(GOLDEN);
    if (x ^ (x >> 29)).wrapping_mul(GOLDEN).leading_zeros() == 0 { R::ONE } else { -R::ONE }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
mod tests {
    use super::*;

    /// Numbers that look random, in [-1, 1).
    fn random(seed: usize) -> impl Iterator<Item = f64> {
        let mut state = seed as u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / (1_u64 << 23) as f64 - 1.0
        })
    }

    #[test]
    fn good_eigensystems_are_accepted_and_bad_ones_are_not() {
        for n in [EIGEN_ORDER, 70, 150, 300] {
            let numbers = |seed| random(seed).take(n).collect::<Vec<f64>>();
            let equal: Vec<f64> = vec![0.5; n];
            for (d, e) in [
                (numbers(1), numbers(2)),
                (equal.clone(), numbers(3).iter().map(|x| x * 1e-9).collect()),
                (equal.clone(), equal),
                (numbers(4), vec![0.0; n]),
            ] {
                let (e, mut w, mut z) = (&e[1..], vec![0.0; n], vec![0.0; n * n]);
                let mut memory = memory(f64::eigen_scratch(n));
                assert!(f64::eigen(&d, e, &mut w, &mut z, MemStack::new(&mut memory)));
                let sums = &mut vec![0.0; n];
                assert!(is_eigensystem(&d, e, &w, &z, sums), "n = {n}");
                z[n * n / 2 + 1] += 1e-6;
                assert!(!is_eigensystem(&d, e, &w, &z, sums), "n = {n}");
                z[n * n / 2 + 1] = f64::NAN;
                assert!(!is_eigensystem(&d, e, &w, &z, sums), "n = {n}");
            }
        }
    }

    #[test]
    fn good_svds_are_accepted_and_bad_ones_are_not() {
        for (m, n) in [(SVD_ORDER, SVD_ORDER), (100, 70), (300, 150)] {
            let full: Vec<f64> = random(1).take(m * n).collect();
            let graded = full.iter().enumerate().map(|(i, x)| x * 0.8_f64.powf((i / m) as f64));
            let ones = vec![1.0; m * n];
            for a in [graded.collect(), full, ones, vec![0.0; m * n]] {
                let a = MatRef::from_column_major_slice(&a, m, n);
                let (mut s, mut u, mut v) = (vec![0.0; n], vec![0.0; m * n], vec![0.0; n * n]);
                let mut memory = memory(f64::svd_scratch(m, n, false));
                let mut u = MatMut::from_column_major_slice_mut(&mut u, m, n);
                let mut v = MatMut::from_column_major_slice_mut(&mut v, n, n);
                let stack = MemStack::new(&mut memory);
                assert!(f64::svd(a, &mut s, u.as_mut(), v.as_mut(), stack));
                let sums = &mut vec![0.0; m + n];
                assert!(is_svd(a, &s, u.as_ref(), v.as_ref(), sums), "{m}x{n}");
                v[(n / 2, 1)] += 1e-6;
                assert!(!is_svd(a, &s, u.as_ref(), v.as_ref(), sums), "{m}x{n}");
            }
        }
    }
}
