//! geqrf: ‖A − Q·R‖ / (max(m, n)·‖A‖·ε), ‖QᴴQ − I‖ / (m·ε), LAPACK's reflectors, the ends of the
//! range, NaN, and the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::{InOut, Real as _, Serial, Spawned, Threads};
use num_complex::Complex;

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, departure, identity, ratio, transposed};
use crate::products::form;
use crate::ratios::{LIMIT, compare};
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual);
for_each_backend!(
    reflectors_are_lapacks,
    ends_of_the_range,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    tall_by_rows,
    tall_and_without_a_tail,
    without_q,
);

/// Shapes beyond those of all families: more than one block of reflectors, tall and wide.
const BLOCKED: [(usize, usize); 3] = [(150, 70), (70, 150), (200, 9)];

pub(crate) fn shapes() -> impl Iterator<Item = (usize, usize)> {
    sweep::shapes().into_iter().chain(BLOCKED)
}

pub(crate) fn factor<T: Sample>(
    backend: Backend,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<T>) {
    let (mut qr, mut tau) = (a.to_vec(), vec![T::nan(); batch * m.min(n)]);
    let aliased = InOut { src: None, dst: &mut qr };
    call!(backend, qr::geqrf(batch, m, n, aliased, &mut tau, threads)).unwrap();
    let (mut other, mut other_tau) = (vec![T::nan(); a.len()], vec![T::nan(); tau.len()]);
    let copied = InOut { src: Some(a), dst: &mut other };
    call!(backend, qr::geqrf(batch, m, n, copied, &mut other_tau, threads)).unwrap();
    assert!(bits(&qr) == bits(&other), "aliased and copied calls differ");
    assert!(bits(&tau) == bits(&other_tau));
    (qr, tau)
}

/// Q = H₁⋯H_k in the wide type, m × m, from reflectors below the diagonal of `a`.
pub(crate) fn wide_q<T: Sample>(m: usize, a: &[T], tau: &[T]) -> Matrix<T::Wide> {
    let a = Matrix::widened(m, a, 0);
    let tau = Matrix::widened(tau.len().max(1), tau, 0);
    let mut q = identity(m);
    for i in (0..tau.data.len()).rev() {
        let v = |row: usize| if row == i { T::Wide::ONE } else { a.at(row, i) };
        for column in q.data.chunks_exact_mut(m) {
            let dot = (i..m).fold(T::Wide::ZERO, |dot, row| dot + v(row).conj() * column[row]);
            (i..m).for_each(|row| column[row] -= tau.data[i] * dot * v(row));
        }
    }
    q
}

/// The ratios of a factorisation of `a`, both narrowed by `exponent`: residual, orthogonality.
pub(crate) fn ratios<T: Sample>(
    (m, n): (usize, usize),
    a: &[T],
    (qr, tau): (&[T], &[T]),
    exponent: i32,
) -> [f64; 2] {
    if m == 0 || n == 0 {
        return [0.0, 0.0];
    }
    let (a, packed) = (Matrix::widened(m, a, -exponent), Matrix::widened(m, qr, -exponent));
    let q = wide_q(m, qr, tau);
    let error = q.times(&packed.masked(|i, j| i <= j)).minus(&a).norm();
    [ratio::<T>(error, m.max(n), a.norm(), -exponent), departure::<T>(&q)]
}

fn residual<T: Sample>() {
    compare::<T>("geqrf", |ratios| {
        for (m, n, kind, seeds) in sweep::batches_of(shapes().collect()) {
            let (exponent, k) = (kind.exponent::<T>(), m.min(n));
            let one = |&seed| matrix::<T>(kind, m, n, seed).narrowed::<T>(exponent);
            let a: Vec<T> = seeds.iter().flat_map(one).collect();
            ratios.met(kind);
            for &backend in BACKENDS {
                let (qr, tau) = factor(backend, seeds.len(), m, n, &a, &Serial);
                for b in 0..seeds.len() {
                    let item = b * m * n..(b + 1) * m * n;
                    let (a, qr) = (&a[item.clone()], &qr[item]);
                    let packed = (qr, &tau[b * k..(b + 1) * k]);
                    let case = || format!("{kind:?} {m} x {n}");
                    let [residual, departure] = self::ratios((m, n), a, packed, exponent);
                    ratios.add(backend, "Q·R − A", residual, case);
                    ratios.add(backend, "QᴴQ − I", departure, case);
                    let real = |j: usize| qr[j + j * m].im() == <T as Scalar>::Real::ZERO;
                    assert!((0..k).all(real), "{backend:?} {}: R's diagonal", case());
                }
            }
        }
        ratios.assert_every_kind();
    });
}

/// R's diagonal and tau of a matrix of one column.
fn reflect<T: Sample>(backend: Backend, a: &[T]) -> (Vec<T>, T) {
    let (qr, tau) = factor(backend, 1, a.len(), 1, a, &Serial);
    (qr, tau[0])
}

fn reflectors_are_lapacks<T: Sample>(backend: Backend) {
    let x = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
    assert_eq!(reflect(backend, &x(&[3.0, 4.0])), (x(&[-5.0, 0.5]), T::from_f64(1.6)));
    assert_eq!(reflect(backend, &x(&[-3.0, 4.0])), (x(&[5.0, -0.5]), T::from_f64(1.6)));
    assert_eq!(reflect(backend, &x(&[0.0, 4.0])), (x(&[-4.0, 1.0]), T::from_f64(1.0)));
    assert_eq!(reflect(backend, &x(&[-0.0, 4.0])), (x(&[4.0, -1.0]), T::from_f64(1.0)));
    assert_eq!(reflect(backend, &x(&[-3.0, 0.0, -0.0])), (x(&[-3.0, 0.0, 0.0]), T::ZERO));
    assert_eq!(reflect(backend, &x(&[7.0])), (x(&[7.0]), T::ZERO));
    assert_eq!(reflect(backend, &x(&[0.0, 0.0])), (x(&[0.0, 0.0]), T::ZERO));
    // A tail whose squares vanish still has a reflector.
    let tiny = 2.0_f64.powi(T::MIN_EXPONENT);
    assert_eq!(reflect(backend, &x(&[1.0, tiny])), (x(&[-1.0, tiny / 2.0]), T::from_f64(2.0)));
    // The last tau of a square matrix is zero, unless it has to turn a complex number.
    let a: Vec<T> = matrix::<T>(Kind::Random, 5, 5, 6).narrowed(0);
    let (_, tau) = factor(backend, 1, 5, 5, &a, &Serial);
    assert_eq!(tau[4] == T::ZERO, !T::IS_COMPLEX);
}

#[test]
fn a_complex_number_is_turned_to_a_real_one() {
    let z = |re, im| Complex::<f64>::new(re, im);
    for &backend in BACKENDS {
        let (qr, tau) = reflect(backend, &[z(3.0, 4.0)]);
        assert_eq!((qr[0], tau), (z(-5.0, 0.0), z(1.6, 0.8)), "{backend:?}");
    }
}

fn ends_of_the_range<T: Sample>(backend: Backend) {
    let close = |x: T::Wide, y: T::Wide| (x - y).abs() <= 8.0 * <T as Sample>::epsilon() * y.abs();
    let (expected, expected_tau) =
        reflect::<T>(backend, &matrix::<T>(Kind::Random, 40, 1, 7).narrowed(0));
    // A power of two changes nothing but R, as long as no element of the column loses bits.
    for exponent in [T::MAX_EXPONENT - 5, T::MAX_EXPONENT / 2, T::MIN_EXPONENT / 2] {
        let a: Vec<T> = matrix::<T>(Kind::Random, 40, 1, 7).narrowed(exponent);
        let (qr, tau) = reflect(backend, &a);
        assert!(close(tau.widen(0), expected_tau.widen(0)), "2^{exponent}");
        let pairs = || qr.iter().zip(&expected).skip(1);
        assert!(pairs().all(|(x, y)| close(x.widen(0), y.widen(0))), "2^{exponent}");
        assert!(close(qr[0].widen(-exponent), expected[0].widen(0)), "2^{exponent}");
    }
    let least = T::from_f64(2.0_f64.powi(T::DENORMAL_EXPONENT.max(-1074)));
    let (qr, tau) = reflect(backend, &[least, least, least, least]);
    assert_eq!(qr[0], -(least + least));
    assert!(close(tau.widen(0), T::from_f64(1.5).widen(0)), "{tau:?}");
    let third = T::from_f64(1.0).unscale(<T as Scalar>::Real::from_f64(3.0));
    assert!(qr[1..].iter().all(|&v| (v - third).abs().to_f64() <= 2.0 * <T as Sample>::epsilon()));
}

/// Whether the taus of a matrix of m rows are NaN. A real column of one element has nothing to be
/// reflected (tau = 0), whatever it is.
pub(crate) fn nan_taus<T: Sample>(m: usize, tau: &[T]) -> bool {
    let nothing = |j: usize| !T::IS_COMPLEX && j + 1 == m && tau[j] == T::ZERO;
    (0..tau.len()).all(|j| tau[j].is_nan() || nothing(j))
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for (m, n) in [(5, 5), (9, 4), (4, 9), (60, 60)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
        let (expected, expected_tau) = factor(backend, 1, m, n, &one, &Serial);
        let k = m.min(n);
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = one.repeat(3);
            a[m * n + m - 1] = T::from_f64(bad);
            let (qr, tau) = factor(backend, 3, m, n, &a, &Serial);
            for good in [0, 2] {
                assert_eq!(bits(&qr[good * m * n..][..m * n]), bits(&expected));
                assert_eq!(bits(&tau[good * k..][..k]), bits(&expected_tau));
            }
            assert!(nan_taus(m, &tau[k..2 * k]), "{tau:?}");
            assert!((0..k).all(|j| !Scalar::is_finite(qr[m * n + j + j * m])));
            if m >= n {
                let q = form(backend, 3, (m, n, n), &qr, &tau, &Serial);
                assert!(q[m * n..2 * m * n].iter().all(|&x| x.is_nan()));
                assert!(q[2 * m * n..].iter().all(|&x| Scalar::is_finite(x)));
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 4000), (20, 9, 700), (64, 64, 25), (130, 80, 10)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 9).narrowed(0);
        let (qr, tau) = factor(backend, FEW, m, n, &one.repeat(FEW), &Serial);
        for threads in [1, 2, 7] {
            let (many, many_tau) =
                factor(backend, batch, m, n, &one.repeat(batch), &Spawned(threads));
            assert!(bits(&many) == bits(&qr).repeat(batch / FEW), "{m} x {n}, {threads} threads");
            assert!(bits(&many_tau) == bits(&tau).repeat(batch / FEW));
        }
    }
}

/// Q and R, m × n and n × n, of row-major matrices.
fn by_rows<T: Sample>(
    backend: Backend,
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<T>) {
    let (mut q, mut r) = (vec![T::nan(); a.len()], vec![T::nan(); batch * n * n]);
    call!(backend, qr::qr(batch, (m, n, n), a, &mut q, &mut r, threads)).unwrap();
    (q, r)
}

/// One block of rows and several, of all kinds: some are too ill-conditioned for their Gram matrix.
fn tall_by_rows<T: Sample>(backend: Backend) {
    for (m, n) in [(64, 8), (1100, 8), (421, 33), (2100, 40)] {
        for kind in sweep::kinds(m) {
            let what = format!("{kind:?} {m} x {n}");
            let exponent = kind.exponent::<T>();
            let a: Vec<T> = matrix::<T>(kind, m, n, 3).narrowed(exponent);
            let rows = transposed(m, &a);
            let (q, r) = by_rows(backend, 1, (m, n), &rows, &Spawned(3));
            let (again, r_again) = by_rows(backend, 3, (m, n), &rows.repeat(3), &Spawned(2));
            assert!(bits(&again) == bits(&q).repeat(3), "{what}");
            assert!(bits(&r_again) == bits(&r).repeat(3), "{what}");
            for (i, row) in r.chunks_exact(n).enumerate() {
                assert!(row[..i].iter().all(|&x| x == T::ZERO), "{what}: below the diagonal");
                assert!(row[i].im() == <T as Scalar>::Real::ZERO, "{what}: R's diagonal");
            }
            let q = Matrix::widened(m, &transposed(n, &q), 0);
            let [r, a] = [(n, transposed(n, &r)), (m, a)]
                .map(|(rows, x)| Matrix::<T::Wide>::widened(rows, &x, -exponent));
            let residual = ratio::<T>(q.times(&r).minus(&a).norm(), m, a.norm(), -exponent);
            let departure = departure::<T>(&q);
            assert!(residual < LIMIT && departure < LIMIT, "{what}: {residual}, {departure}");
            if kind == Kind::Random {
                let factors = factor(backend, 1, m, n, &a.narrowed::<T>(exponent), &Serial).0;
                for j in 0..n {
                    let [x, y] = [r.at(j, j), T::widen(factors[j * (m + 1)], 0)].map(|x| x.re());
                    assert!((x - y).abs() < 1e-4 * y.abs(), "{what}: {x} and {y} in column {j}");
                }
            }
        }
    }
}

/// A column that is real on the diagonal and zero below it keeps its sign, and one that is not finite
/// spoils its own matrix.
fn tall_and_without_a_tail<T: Sample>(backend: Backend) {
    let (m, n) = (1030, 8);
    let unit = |p: usize| p / n == p % n;
    let diagonal: Vec<T> = (0..m * n)
        .map(|p| if unit(p) { T::from_f64(2.0 - (p % 3) as f64) } else { T::ZERO })
        .collect();
    let mut a = diagonal.repeat(3);
    a[m * n + 5 * n + 2] = T::nan();
    let (q, r) = by_rows(backend, 3, (m, n), &a, &Serial);
    for b in [0, 2] {
        let q = &q[b * m * n..(b + 1) * m * n];
        assert!((0..m * n).all(|p| q[p] == if unit(p) { T::ONE } else { T::ZERO }));
        assert!(r[b * n * n..(b + 1) * n * n] == diagonal[..n * n]);
    }
    assert!(q[m * n..2 * m * n].iter().any(|&x| Scalar::is_nan(x)));
    assert!(r[n * n..2 * n * n].iter().any(|&x| Scalar::is_nan(x)));
}

/// R alone has the bits that it has beside min(m, n) columns of Q, in each batch and on any number of threads, and
/// where all of it is wanted zeros below.
fn without_q<T: Sample>(backend: Backend) {
    let others =
        [(1, 3), (4, 2), (8, 4), (6, 8), (12, 6), (300, 20), (1100, 8), (500, 340), (330, 400)];
    for (m, n) in shapes().chain(others).filter(|&(m, n)| m > 0 && n > 0) {
        for (batch, bad) in [(1, false), (FEW, false), (FEW, true), (3, true)] {
            let k = m.min(n);
            let a: Vec<T> = (0..batch)
                .flat_map(|seed| matrix::<T>(Kind::Random, m, n, seed as u64).narrowed::<T>(0))
                .collect();
            let mut a = a;
            if bad {
                a[2 * m * n + m * n / 2] = T::nan();
            }
            let (mut q, mut expected) =
                (vec![T::ZERO; batch * m * k], vec![T::nan(); batch * k * n]);
            call!(backend, qr::qr(batch, (m, n, k), &a, &mut q, &mut expected, &Serial)).unwrap();
            let mut r = vec![T::nan(); batch * k * n];
            call!(backend, qr::qr_r(batch, (m, n, k), &a, &mut r, &Spawned(3))).unwrap();
            // Which of two NaN a sum becomes is not said.
            let known = |x: &[T]| {
                let x: Vec<T> = x.iter().map(|&x| if x.is_nan() { T::nan() } else { x }).collect();
                bits(&x)
            };
            assert!(known(&r) == known(&expected), "{batch} of {m} x {n}, {bad}");
            let mut all = vec![T::nan(); batch * m * n];
            call!(backend, qr::qr_r(batch, (m, n, m), &a, &mut all, &Serial)).unwrap();
            for (all, r) in all.chunks_exact(m * n).zip(r.chunks_exact(k * n)) {
                assert!(known(&all[..k * n]) == known(r), "{batch} of {m} x {n}, {bad}");
                assert!(all[k * n..].iter().all(|&x| x == T::ZERO));
            }
        }
    }
}
