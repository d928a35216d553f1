//! sytrd: ‖A − Q·T·Qᴴ‖ / (n·‖A‖·ε) from LAPACK's storage, what is not touched, and T beside the
//! reflectors.

use lapax_core::Scalar;
use lapax_cpu::{InOut, Serial, Uplo};

use crate::backend::{BACKENDS, Backend, call};
use crate::eigh::{completed, is_in, stored};
use crate::kinds::hermitian;
use crate::matrix::{Matrix, departure, identity, ratio};
use crate::ratios::compare;
use crate::sample::Sample;
use crate::{for_each_scalar, sweep};

for_each_scalar!(residual);

type Real<T> = <T as Scalar>::Real;

/// What sytrd leaves.
struct Reduced<T: Scalar> {
    a: Vec<T>,
    d: Vec<Real<T>>,
    e: Vec<Real<T>>,
    tau: Vec<T>,
}

fn reduce<T: Sample>(backend: Backend, uplo: Uplo, n: usize, a: &[T]) -> Reduced<T> {
    let (zero, q) = (T::ZERO.re(), n.saturating_sub(1));
    let (mut out, mut info) = (vec![T::nan(); n * n], [-7]);
    let (mut d, mut e, mut tau) = (vec![zero; n], vec![zero; q], vec![T::nan(); q]);
    let copied = InOut { src: Some(a), dst: &mut out };
    let results = (&mut d, &mut e, &mut tau, &mut info);
    let (ds, es, taus, infos) = results;
    call!(backend, eigh::sytrd(uplo, 1, n, copied, ds, es, taus, infos, &Serial)).unwrap();
    assert_eq!(info, [0]);
    for (k, x) in out.iter().enumerate() {
        let (i, j) = (k % n, k / n);
        assert!(is_in(uplo, i, j) || Scalar::is_nan(*x), "({i}, {j}) was touched");
        match (i, j) {
            _ if i == j => assert_eq!(x.re(), d[i]),
            _ if i.abs_diff(j) == 1 && is_in(uplo, i, j) => assert_eq!(x.re(), e[i.min(j)]),
            _ => {}
        }
    }
    Reduced { a: out, d, e, tau }
}

/// Q·T·Qᴴ from LAPACK's storage, and Q, in the wide type.
fn expanded<T: Sample>(uplo: Uplo, reduced: &Reduced<T>, exponent: i32) -> [Matrix<T::Wide>; 2] {
    let n = reduced.d.len();
    let widen = |x: Real<T>| T::from_real(x).widen(exponent);
    let mut product = Matrix::new(n, n, |i, j| match i.abs_diff(j) {
        0 => widen(reduced.d[i]),
        1 => widen(reduced.e[i.min(j)]),
        _ => T::Wide::ZERO,
    });
    let mut q = identity(n);
    // The factor that is nearest to T acts first: H(n−1) for Lower, H(1) for Upper.
    let mut order: Vec<usize> = (0..n.saturating_sub(1)).collect();
    if uplo == Uplo::Lower {
        order.reverse();
    }
    let at = |i: usize, j: usize| reduced.a[i + j * n].widen(0);
    for k in order {
        let v: Vec<T::Wide> = (0..n)
            .map(|i| match (uplo, i) {
                (Uplo::Lower, _) if i == k + 1 => T::Wide::ONE,
                (Uplo::Lower, _) if i > k + 1 => at(i, k),
                (Uplo::Upper, _) if i == k => T::Wide::ONE,
                (Uplo::Upper, _) if i < k => at(i, k + 1),
                _ => T::Wide::ZERO,
            })
            .collect();
        let tau = reduced.tau[k].widen(0);
        product.reflect(tau, &v);
        product = product.adjoint();
        product.reflect(tau, &v);
        product = product.adjoint();
        q.reflect(tau, &v);
    }
    [product, q]
}

fn residual<T: Sample>() {
    compare::<T>("sytrd", |ratios| {
        for (n, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            ratios.met(kind);
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let a: Vec<T> = stored::<T>(&hermitian::<T>(kind, n, 3), uplo, exponent);
                let matrix = completed(n, &a, uplo, -exponent);
                for &backend in BACKENDS {
                    let reduced = reduce(backend, uplo, n, &a);
                    let [product, q] = expanded(uplo, &reduced, -exponent);
                    let error = product.minus(&matrix).norm();
                    let ratio = ratio::<T>(error, n, matrix.norm(), -exponent);
                    let case = || format!("{kind:?} {uplo:?} n = {n}");
                    ratios.add(backend, "Q·T·Qᴴ − A", ratio, case);
                    ratios.add(backend, "QᴴQ − I", departure::<T>(&q), case);
                }
            }
        }
        ratios.assert_every_kind();
    });
}
