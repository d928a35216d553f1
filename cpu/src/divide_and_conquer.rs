//! faer's divide and conquer for the SVD, checked afterwards.
//!
//! What it returns is tried on a vector of random signs, which costs little: a wrong or missing
//! vector shows. The caller then computes anew, by implicit QR steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{MatMut, MatRef, Par, Spec};
use lapax_core::{Real, Scalar as _};
use num_complex::Complex;

use crate::Scalar;

/// The order from which a problem is worth dividing; what is not divided also takes fewer steps to get
/// there.
pub(crate) const SVD_ORDER: usize = 64;
/// LAPACK's own tests accept 30 times n·ε·‖A‖; what exceeds this is computed anew.
const ACCEPTED: f64 = 10.0;

/// The scalars for which divide and conquer is compiled.
pub trait DivideAndConquer: Scalar<Real: Scalar> {
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
    ($($scalar:ty),+ $(,)?) => {$(
        impl DivideAndConquer for $scalar {
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

divide_and_conquer!(f32, f64, Complex<f32>, Complex<f64>);

/// Memory for the above, or none.
pub(crate) fn memory(request: StackReq) -> MemBuffer {
    MemBuffer::new(request)
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
pub(crate) fn limit<R: Real>(m: usize, n: usize) -> R {
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
pub(crate) fn sign<R: Real>(i: usize) -> R {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let x = (i as u64).wrapping_add(1).wrapping_mul(GOLDEN);
    if (x ^ (x >> 29)).wrapping_mul(GOLDEN).leading_zeros() == 0 { R::ONE } else { -R::ONE }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {
    use super::*;

    /// Numbers that look random, in [-1, 1).
    pub(crate) fn random(seed: usize) -> impl Iterator<Item = f64> {
        let mut state = seed as u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / (1_u64 << 23) as f64 - 1.0
        })
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
