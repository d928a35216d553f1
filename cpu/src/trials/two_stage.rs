//! Tests of the two-stage reductions.

use lapax_core::Scalar as _;

use crate::blas::rotations::Rotation;
use crate::eigh::ql;
use crate::eigh::ql::ImplicitQl;
use crate::eigh::reduction::blocked;
use crate::eigh::reduction::blocked::tridiagonalize;
use crate::simd::arch::Arch;
use crate::svd::qr_iteration::{BidiagonalQr, Pair};
use crate::svd::reduction::Bidiagonal;
use crate::svd::reduction::blocked::bidiagonalize;
use crate::svd::{qr_iteration, reduction};
use crate::testing::levels::random;
use crate::testing::threads::on_threads;
use crate::two_stage::bulges::{WIDTH, storage};
use crate::two_stage::hermitian_bulges::Tridiagonalize;
use crate::two_stage::triangular_bulges::Bidiagonalize;
use crate::two_stage::{hermitian_band, hermitian_bulges, triangular_band, triangular_bulges};
use crate::{Real, Scalar};

for_each_scalar!(hermitian_bands, hermitian_matrices, triangular_bands, matrices);
fn nan<T: Scalar>() -> T {
    T::from_real(T::Real::from_f64(f64::NAN))
}
/// Asserts that values are the same to 10·n·ε of the largest.
fn close<R: Real>(found: &[R], expected: &[R], what: &str) {
    let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.to_f64().abs()));
    let limit = 10.0 * expected.len() as f64 * size * R::EPSILON.to_f64();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let error = (*found - *expected).abs().to_f64();
        assert!(error <= limit, "{what}: {found:?} is not {expected:?}");
    }
}
/// Elements up to `below` below the diagonal and `above` above it; some rows are of another size.
fn band<T: Scalar>(n: usize, below: usize, above: usize) -> Vec<T> {
    let mut a = random::<T>(n * n);
    for (k, x) in a.iter_mut().enumerate() {
        let (i, j) = (k % n, k / n);
        let power = if i % 7 == 3 { 1e-6 } else { 1.0 };
        *x = if i > j + below || j > i + above {
            T::ZERO
        } else if i == j {
            T::from_real(x.re())
        } else {
            x.scale(T::Real::from_f64(power))
        };
    }
    a
}
fn eigenvalues<R: Real + Scalar>(mut d: Vec<R>, mut e: Vec<R>) -> Vec<R> {
    let rotations = &mut vec![Rotation { c: R::ONE, s: R::ZERO }; d.len()];
    let steps = ql::STEPS;
    let ql = ImplicitQl { d: &mut d[..], e: &mut e[..], z: None, rotations, steps };
    assert_eq!(Arch::new().dispatch(ql), Ok(()));
    d
}
/// The eigenvalues of a lower triangle by tridiagonal form column by column.
fn eigenvalues_of<T: Scalar<Real: Scalar>>(a: &[T], n: usize) -> Vec<T::Real> {
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
    let (mut a, mut tau) = (a.to_vec(), vec![T::ZERO; n - 1]);
    let mut scratch = blocked::Scratch::new(n);
    tridiagonalize(&mut a, &mut d, &mut e, &mut tau, &mut scratch, Arch::new());
    eigenvalues(d, e)
}
/// Those of a band, by chasing.
fn eigenvalues_of_band<T: Scalar<Real: Scalar>>(a: &[T], n: usize) -> Vec<T::Real> {
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
    let mut band = vec![nan::<T>(); storage(n)];
    hermitian_bulges::fill(&mut band, a, n);
    Arch::new().dispatch(Tridiagonalize { band: &mut band, d: &mut d, e: &mut e });
    eigenvalues(d, e)
}
fn hermitian_bands<T: Scalar<Real: Scalar>>() {
    for n in [1, 2, 3, WIDTH, WIDTH + 1, WIDTH + 2, 2 * WIDTH + 1, 100, 131] {
        for width in [0, 1, WIDTH / 2, WIDTH] {
            let a = band::<T>(n, width, 0);
            let what = format!("n = {n}, width {width}");
            close(&eigenvalues_of_band(&a, n), &eigenvalues_of(&a, n), &what);
        }
    }
}
fn hermitian_matrices<T: Scalar<Real: Scalar>>() {
    for n in [1, 32, 33, 34, 63, 64, 65, 66, 97, 128, 131, 200] {
        let mut a = random::<T>(n * n);
        for j in 0..n {
            a[j * n + j] = T::from_real(a[j * n + j].re());
            a[j * n..j * n + j].fill(nan());
        }
        let what = format!("n = {n}");
        let reduced = on_threads(&what, |threads| {
            let mut x = a.clone();
            let scratch = hermitian_band::Scratch::new(n);
            hermitian_band::reduce_to_band(&mut x, n, &scratch, threads);
            for (j, column) in x.chunks_exact_mut(n).enumerate() {
                let (above, below) = column.split_at_mut(j);
                assert!(above.iter().all(|x| x.is_nan()), "{what}: the other triangle");
                assert!(!below.iter().any(|x| x.is_nan()), "{what}");
                above.fill(T::ZERO);
            }
            x
        });
        close(&eigenvalues_of_band(&reduced, n), &eigenvalues_of(&a, n), &what);
    }
}
fn singular_values<R: Real>(mut d: Vec<R>, mut e: Vec<R>) -> Vec<R> {
    let rotations = &mut vec![Pair::none(); d.len()];
    let steps = qr_iteration::STEPS;
    let (d_now, e) = (&mut d[..], &mut e[..]);
    let qr = BidiagonalQr { d: d_now, e, vectors: None, rotations, steps };
    assert_eq!(Arch::new().dispatch(qr), Ok(()));
    d
}
/// The singular values by bidiagonal form column by column.
fn singular_values_of<T: Scalar<Real: Scalar>>(a: &[T], n: usize) -> Vec<T::Real> {
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
    let (mut tau_q, mut tau_p) = (vec![T::ZERO; n], vec![T::ZERO; n - 1]);
    let (tau_q, tau_p) = (&mut tau_q[..], &mut tau_p[..]);
    let mut b = Bidiagonal { d: &mut d, e: &mut e, tau_q, tau_p };
    let mut scratch = reduction::blocked::Scratch::new(a.len() / n, n);
    let mut v = vec![T::ZERO; n * n];
    bidiagonalize(&mut a.to_vec(), &mut v, &mut b, &mut scratch, Arch::new());
    singular_values(d, e)
}
/// Those of a band, by chasing.
fn singular_values_of_band<T: Scalar<Real: Scalar>>(a: &[T], n: usize) -> Vec<T::Real> {
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
    let mut band = vec![nan::<T>(); storage(n)];
    triangular_bulges::fill(&mut band, a, a.len() / n);
    Arch::new().dispatch(Bidiagonalize { band: &mut band, d: &mut d, e: &mut e });
    singular_values(d, e)
}
fn triangular_bands<T: Scalar<Real: Scalar>>() {
    for n in [1, 2, 3, WIDTH, WIDTH + 1, WIDTH + 2, 2 * WIDTH + 1, 100, 131] {
        for width in [0, 1, WIDTH / 2, WIDTH] {
            let a = band::<T>(n, 0, width);
            let what = format!("n = {n}, width {width}");
            close(&singular_values_of_band(&a, n), &singular_values_of(&a, n), &what);
        }
    }
}
fn matrices<T: Scalar<Real: Scalar>>() {
    for n in [1, 31, 32, 33, 34, 63, 64, 65, 66, 97, 128, 131] {
        for m in [n, n + 1, n + 40, 2 * n + 65] {
            let a = random::<T>(m * n);
            let what = format!("{m}x{n}");
            let reduced = on_threads(&what, |threads| {
                let mut x = a.clone();
                let scratch = triangular_band::Scratch::new(m, n);
                triangular_band::reduce_to_band(&mut x, (m, n), &scratch, threads);
                x
            });
            close(&singular_values_of_band(&reduced, n), &singular_values_of(&a, n), &what);
        }
    }
}
