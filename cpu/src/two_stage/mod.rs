//! Two stages on the way to tridiagonal and bidiagonal form: to a band, by products of matrices, and from there
//! by chasing bulges.
//!
//! For eigenvalues and singular values alone: what the reflectors of both stages would do to vectors costs more
//! than the band saves.

mod bulges;
mod hermitian_band;
mod hermitian_bulges;
mod schedule;
mod triangular_band;
mod triangular_bulges;

use lapax_core::Serial;

use self::hermitian_bulges::Tridiagonalize;
use self::triangular_bulges::Bidiagonalize;
use crate::arch::Arch;
use crate::{Scalar, Threads};

/// The bytes of a matrix from which the way by a band is taken to eigenvalues, and the order from which it is to
/// singular values. On two cores with AVX-512, in JAX, ms column by column and by a band: eigenvalues f32 n = 512 6.8
/// and 7.8, 768 17.6 and 19.0, 1024 41 and 40; f64 320 3.6 and 4.3, 512 11.8 and 13.4, 640 18 and 20, 768 32 and 30,
/// 1024 84 and 64; c64 512 12.8 and 16.6; c128 384 12 and 18, 512 30 and 29, 768 92 and 80; singular values f32 256
/// 2.5 and 2.6, 384 6.7 and 6.3, 1024 83 and 57; f64 256 3.6 and 3.8, 320 6.5 and 6.7, 384 16 and 10, 1024 215 and
/// 91; c64 256 4.4 and 5.3; c128 256 8.2 and 10.1.
const EIGENVALUES_BYTES: usize = 4 << 20;
pub(crate) const SINGULAR_VALUES_ORDER: usize = 352;
/// The order from which threads share the first stage: f64, eigenvalues by one and two, n = 384 4.6 and 4.8 ms, 512
/// 8.8 and 9.0, 1024 50 and 41; singular values 384 7.5 and 8.0, 512 15.4 and 14.7, 1024 87 and 72.
const SHARED_ORDER: usize = 512;

/// What Hermitian matrices of one order reuse.
pub(crate) struct Hermitian<T> {
    scratch: hermitian_band::Scratch<T>,
    band: Vec<T>,
}

impl<T: Scalar> Hermitian<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        let scratch = hermitian_band::Scratch::new(n);
        Self { scratch, band: vec![T::ZERO; bulges::storage(n)] }
    }

    /// Reduces the lower triangle of `a`, whose contents are lost, to the diagonal `d` and what is beside it, `e`;
    /// with the same bits on any number of threads.
    pub(crate) fn tridiagonalize(
        &mut self,
        a: &mut [T],
        d: &mut [T::Real],
        e: &mut [T::Real],
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) {
        let n = d.len();
        let Self { scratch, band } = self;
        hermitian_band::reduce_to_band(a, n, scratch, sharing(n, threads));
        hermitian_bulges::fill(band, a, n);
        arch.dispatch(Tridiagonalize { band, d, e });
    }
}

/// What m × n matrices, m >= n, reuse.
pub(crate) struct General<T> {
    scratch: triangular_band::Scratch<T>,
    band: Vec<T>,
}

impl<T: Scalar> General<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let scratch = triangular_band::Scratch::new(m, n);
        Self { scratch, band: vec![T::ZERO; bulges::storage(n)] }
    }

    /// Reduces `a`, whose contents are lost, to the diagonal `d` and what is above it, `e`; with the same bits on any
    /// number of threads.
    pub(crate) fn bidiagonalize(
        &mut self,
        a: &mut [T],
        d: &mut [T::Real],
        e: &mut [T::Real],
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) {
        let n = d.len();
        let m = a.len() / n;
        let Self { scratch, band } = self;
        triangular_band::reduce_to_band(a, (m, n), scratch, sharing(n, threads));
        triangular_bulges::fill(band, a, m);
        arch.dispatch(Bidiagonalize { band, d, e });
    }
}

/// Whether the way by a band is taken to the eigenvalues of matrices of order n.
pub(crate) fn pays_for_eigenvalues<T>(n: usize) -> bool {
    n * n * size_of::<T>() >= EIGENVALUES_BYTES
}

/// The threads that share the first stage of a matrix of order n.
fn sharing(n: usize, threads: Option<&dyn Threads>) -> &dyn Threads {
    threads.filter(|_| n >= SHARED_ORDER).unwrap_or(&Serial)
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {
    use lapax_core::Scalar as _;

    use super::bulges::{WIDTH, storage};
    use super::hermitian_bulges::Tridiagonalize;
    use super::triangular_bulges::Bidiagonalize;
    use super::{hermitian_band, hermitian_bulges, triangular_band, triangular_bulges};
    use crate::arch::Arch;
    use crate::bidiagonal_qr::{self, BidiagonalQr, Pair};
    use crate::bidiagonalize::{self, Bidiagonal, bidiagonalize};
    use crate::implicit_ql::{self, ImplicitQl};
    use crate::lanes::tests::random;
    use crate::rotations::Rotation;
    use crate::tiled_tests::on_threads;
    use crate::tridiagonalize::{self, tridiagonalize};
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
        let steps = implicit_ql::STEPS;
        let ql = ImplicitQl { d: &mut d[..], e: &mut e[..], z: None, rotations, steps };
        assert_eq!(Arch::new().dispatch(ql), Ok(()));
        d
    }

    /// The eigenvalues of a lower triangle by tridiagonal form column by column.
    fn eigenvalues_of<T: Scalar<Real: Scalar>>(a: &[T], n: usize) -> Vec<T::Real> {
        let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n - 1]);
        let (mut a, mut tau) = (a.to_vec(), vec![T::ZERO; n - 1]);
        let mut scratch = tridiagonalize::Scratch::new(n);
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
        let steps = bidiagonal_qr::STEPS;
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
        let mut scratch = bidiagonalize::Scratch::new(a.len() / n, n);
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
}
