//! geqrf, orgqr, ormqr: ‖A − Q·R‖ / (max(m, n)·‖A‖·ε), ‖QᴴQ − I‖ / (m·ε), LAPACK's conventions, and
//! products with Q against those with the same reflectors in the wide type.

use lapax_core::Scalar;
use lapax_cpu::qr::{Factor, geqrf, orgqr, ormqr};
use lapax_cpu::{Error, InOut, Real as _, Serial, Side, Threads};
use num_complex::Complex;

use crate::kinds::{KINDS, Kind, ORDERS, RECTANGLES, matrix};
use crate::matrix::{Matrix, ratio};
use crate::sample::{Sample, bits};
use crate::threads::Spawned;
use crate::{Worst, for_each_scalar};

for_each_scalar!(
    residual,
    columns_of_q,
    products_with_q,
    reflectors_are_lapacks,
    ends_of_the_range,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
);

/// Shapes beyond those of all families: more than one block of reflectors, tall and wide.
const BLOCKED: [(usize, usize); 3] = [(150, 70), (70, 150), (200, 9)];

pub(crate) fn shapes() -> impl Iterator<Item = (usize, usize)> {
    ORDERS.into_iter().map(|n| (n, n)).chain(RECTANGLES).chain(BLOCKED)
}

fn factor<T: Sample>(
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<T>) {
    let (mut qr, mut tau) = (a.to_vec(), vec![T::nan(); batch * m.min(n)]);
    let aliased = InOut { src: None, dst: &mut qr };
    geqrf(batch, m, n, aliased, &mut tau, threads).unwrap();
    let (mut other, mut other_tau) = (vec![T::nan(); a.len()], vec![T::nan(); tau.len()]);
    let copied = InOut { src: Some(a), dst: &mut other };
    geqrf(batch, m, n, copied, &mut other_tau, threads).unwrap();
    assert!(bits(&qr) == bits(&other), "aliased and copied calls differ");
    assert!(bits(&tau) == bits(&other_tau));
    (qr, tau)
}

fn form<T: Sample>(
    batch: usize,
    (m, n, t): (usize, usize, usize),
    a: &[T],
    tau: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let mut q = a.to_vec();
    orgqr(batch, m, n, t, InOut { src: None, dst: &mut q }, tau, threads).unwrap();
    let mut other = vec![T::nan(); a.len()];
    let copied = InOut { src: Some(a), dst: &mut other };
    orgqr(batch, m, n, t, copied, tau, threads).unwrap();
    assert!(bits(&q) == bits(&other), "aliased and copied calls differ");
    q
}

/// Q = H₁⋯H_k in the wide type, m × m, from reflectors below the diagonal of `a`.
pub(crate) fn wide_q<T: Sample>(m: usize, a: &[T], tau: &[T]) -> Matrix<T::Wide> {
    let a = Matrix::widened(m, a, 0);
    let tau = Matrix::widened(tau.len().max(1), tau, 0);
    let mut q = Matrix::new(m, m, |i, j| Scalar::from_real(if i == j { 1.0 } else { 0.0 }));
    for i in (0..tau.data.len()).rev() {
        let v = |row: usize| if row == i { T::Wide::ONE } else { a.at(row, i) };
        for column in q.data.chunks_exact_mut(m) {
            let dot = (i..m).fold(T::Wide::ZERO, |dot, row| dot + v(row).conj() * column[row]);
            (i..m).for_each(|row| column[row] -= tau.data[i] * dot * v(row));
        }
    }
    q
}

/// ‖QᴴQ − I‖ / (rows·ε).
pub(crate) fn orthogonality<T: Sample>(q: &Matrix<T::Wide>) -> f64 {
    let identity = Matrix::new(q.cols, q.cols, |i, j| {
        <T::Wide as Scalar>::from_real(if i == j { 1.0 } else { 0.0 })
    });
    ratio::<T>(q.adjoint().times(q).minus(&identity).norm(), q.rows, 1.0, 0)
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
    [ratio::<T>(error, m.max(n), a.norm(), -exponent), orthogonality::<T>(&q)]
}

fn residual<T: Sample>() {
    let mut worst = Worst::default();
    for (m, n) in shapes() {
        for kind in KINDS {
            let exponent = kind.exponent::<T>();
            let a: Vec<T> = matrix::<T>(kind, m, n, 1).narrowed(exponent);
            let (qr, tau) = factor(1, m, n, &a, &Serial);
            let case = || format!("{} {kind:?} {m} x {n}", T::NAME);
            for ratio in ratios((m, n), &a, (&qr, &tau), exponent) {
                worst.check(ratio, case);
            }
            assert!((0..m.min(n)).all(|j| qr[j + j * m].im() == <T as Scalar>::Real::ZERO));
        }
    }
}

/// The factored matrix with its R replaced by what must not be read.
fn spoiled<T: Sample>(m: usize, qr: &[T]) -> Vec<T> {
    let junk = [T::nan(), T::from_f64(3.0)];
    (0..qr.len()).map(|k| if k % m > k / m { qr[k] } else { junk[k % 2] }).collect()
}

fn columns_of_q<T: Sample>() {
    let mut worst = Worst::default();
    for (m, n) in shapes().filter(|(m, n)| m >= n && *n > 0) {
        for t in [0, n / 3, n - 1, n] {
            let a: Vec<T> = matrix::<T>(Kind::Random, m, n, 2).narrowed(0);
            let (qr, tau) = factor(1, m, n, &a, &Serial);
            let tau = &tau[..t];
            let q = Matrix::widened(m, &form(1, (m, n, t), &spoiled(m, &qr), tau, &Serial), 0);
            let expected = wide_q(m, &qr, tau);
            let expected = Matrix::new(m, n, |i, j| expected.at(i, j));
            let case = || format!("{} {m} x {n}, {t} reflectors", T::NAME);
            worst.check(ratio::<T>(q.minus(&expected).norm(), m, 1.0, 0), case);
            worst.check(orthogonality::<T>(&q), case);
        }
    }
}

/// A call of ormqr: C's shape, the side and the factor.
#[derive(Clone, Copy, Debug)]
struct Form {
    side: Side,
    factor: Factor,
    m: usize,
    n: usize,
}

impl Form {
    fn all(m: usize, n: usize) -> [Self; 4] {
        let form = |side, factor| Self { side, factor, m, n };
        [
            form(Side::Left, Factor::Q),
            form(Side::Left, Factor::Adjoint),
            form(Side::Right, Factor::Q),
            form(Side::Right, Factor::Adjoint),
        ]
    }

    fn order(self) -> usize {
        if self.side == Side::Left { self.m } else { self.n }
    }

    fn multiply<T: Sample>(
        self,
        batch: usize,
        p: usize,
        (a, tau): (&[T], &[T]),
        c: &[T],
        threads: &dyn Threads,
    ) -> Vec<T> {
        let Self { side, factor, m, n } = self;
        let t = tau.len() / batch;
        let mut result = c.to_vec();
        let aliased = InOut { src: None, dst: &mut result };
        ormqr(side, factor, batch, m, n, p, t, a, tau, aliased, threads).unwrap();
        let mut other = vec![T::nan(); c.len()];
        let copied = InOut { src: Some(c), dst: &mut other };
        ormqr(side, factor, batch, m, n, p, t, a, tau, copied, threads).unwrap();
        assert!(bits(&result) == bits(&other), "aliased and copied calls differ");
        result
    }
}

fn products_with_q<T: Sample>() {
    let mut worst = Worst::default();
    for (m, n) in shapes().filter(|(m, n)| m.min(n) > &0) {
        for form in Form::all(m, n) {
            let r = form.order();
            for p in [1, r.div_ceil(2), r] {
                // Of p columns, the last ones may hold no reflectors.
                let t = p - p / 4;
                let a: Vec<T> = matrix::<T>(Kind::Random, r, p, 3).narrowed(0);
                let (qr, tau) = factor(1, r, p, &a, &Serial);
                let q = wide_q(r, &qr, &tau[..t]);
                let mut a = spoiled(r, &qr);
                a[r * t..].fill(T::nan());
                let c: Vec<T> = matrix::<T>(Kind::Random, m, n, 4).narrowed(0);
                let result = form.multiply(1, p, (&a, &tau[..t]), &c, &Serial);
                let c = Matrix::widened(m, &c, 0);
                let q = if form.factor == Factor::Q { q } else { q.adjoint() };
                let expected = if form.side == Side::Left { q.times(&c) } else { c.times(&q) };
                let error = Matrix::widened(m, &result, 0).minus(&expected).norm();
                let case = || format!("{} {form:?} p = {p}", T::NAME);
                worst.check(ratio::<T>(error, m.max(n), c.norm(), 0), case);
            }
        }
    }
}

/// R's diagonal and tau of a matrix of one column.
fn reflect<T: Sample>(a: &[T]) -> (Vec<T>, T) {
    let (qr, tau) = factor(1, a.len(), 1, a, &Serial);
    (qr, tau[0])
}

fn reflectors_are_lapacks<T: Sample>() {
    let x = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
    assert_eq!(reflect(&x(&[3.0, 4.0])), (x(&[-5.0, 0.5]), T::from_f64(1.6)));
    assert_eq!(reflect(&x(&[-3.0, 4.0])), (x(&[5.0, -0.5]), T::from_f64(1.6)));
    assert_eq!(reflect(&x(&[0.0, 4.0])), (x(&[-4.0, 1.0]), T::from_f64(1.0)));
    assert_eq!(reflect(&x(&[-0.0, 4.0])), (x(&[4.0, -1.0]), T::from_f64(1.0)));
    assert_eq!(reflect(&x(&[-3.0, 0.0, -0.0])), (x(&[-3.0, 0.0, 0.0]), T::ZERO));
    assert_eq!(reflect(&x(&[7.0])), (x(&[7.0]), T::ZERO));
    assert_eq!(reflect(&x(&[0.0, 0.0])), (x(&[0.0, 0.0]), T::ZERO));
    // A tail whose squares vanish still has a reflector.
    let tiny = 2.0_f64.powi(T::MIN_EXPONENT);
    assert_eq!(reflect(&x(&[1.0, tiny])), (x(&[-1.0, tiny / 2.0]), T::from_f64(2.0)));
    // The last tau of a square matrix is zero, unless it has to turn a complex number.
    let a: Vec<T> = matrix::<T>(Kind::Random, 5, 5, 6).narrowed(0);
    let (_, tau) = factor(1, 5, 5, &a, &Serial);
    assert_eq!(tau[4] == T::ZERO, !T::IS_COMPLEX);
}

#[test]
fn a_complex_number_is_turned_to_a_real_one() {
    let z = |re, im| Complex::<f64>::new(re, im);
    let (qr, tau) = reflect(&[z(3.0, 4.0)]);
    assert_eq!((qr[0], tau), (z(-5.0, 0.0), z(1.6, 0.8)));
}

fn ends_of_the_range<T: Sample>() {
    let close = |x: T::Wide, y: T::Wide| (x - y).abs() <= 8.0 * <T as Sample>::epsilon() * y.abs();
    let (expected, expected_tau) = reflect::<T>(&matrix::<T>(Kind::Random, 40, 1, 7).narrowed(0));
    // A power of two changes nothing but R, as long as no element of the column loses bits.
    for exponent in [T::MAX_EXPONENT - 5, T::MAX_EXPONENT / 2, T::MIN_EXPONENT / 2] {
        let a: Vec<T> = matrix::<T>(Kind::Random, 40, 1, 7).narrowed(exponent);
        let (qr, tau) = reflect(&a);
        assert!(close(tau.widen(0), expected_tau.widen(0)), "2^{exponent}");
        let pairs = || qr.iter().zip(&expected).skip(1);
        assert!(pairs().all(|(x, y)| close(x.widen(0), y.widen(0))), "2^{exponent}");
        assert!(close(qr[0].widen(-exponent), expected[0].widen(0)), "2^{exponent}");
    }
    let least = T::from_f64(2.0_f64.powi(T::DENORMAL_EXPONENT.max(-1074)));
    let (qr, tau) = reflect(&[least, least, least, least]);
    assert_eq!(qr[0], -(least + least));
    assert_eq!(tau, T::from_f64(1.5));
    let third = T::from_f64(1.0).unscale(<T as Scalar>::Real::from_f64(3.0));
    assert!(qr[1..].iter().all(|&v| (v - third).abs().to_f64() <= 2.0 * <T as Sample>::epsilon()));
}

/// Whether the taus of a matrix of m rows are NaN. A real column of one element has nothing to be
/// reflected (tau = 0), whatever it is.
pub(crate) fn nan_taus<T: Sample>(m: usize, tau: &[T]) -> bool {
    let nothing = |j: usize| !T::IS_COMPLEX && j + 1 == m && tau[j] == T::ZERO;
    (0..tau.len()).all(|j| tau[j].is_nan() || nothing(j))
}

fn nan_stays_in_its_matrix<T: Sample>() {
    for (m, n) in [(5, 5), (9, 4), (4, 9), (60, 60)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
        let (expected, expected_tau) = factor(1, m, n, &one, &Serial);
        let k = m.min(n);
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = one.repeat(3);
            a[m * n + m - 1] = T::from_f64(bad);
            let (qr, tau) = factor(3, m, n, &a, &Serial);
            for good in [0, 2] {
                assert_eq!(bits(&qr[good * m * n..][..m * n]), bits(&expected));
                assert_eq!(bits(&tau[good * k..][..k]), bits(&expected_tau));
            }
            assert!(nan_taus(m, &tau[k..2 * k]), "{tau:?}");
            assert!((0..k).all(|j| !Scalar::is_finite(qr[m * n + j + j * m])));
            if m >= n {
                let q = form(3, (m, n, n), &qr, &tau, &Serial);
                assert!(q[m * n..2 * m * n].iter().all(|&x| x.is_nan()));
                assert!(q[2 * m * n..].iter().all(|&x| Scalar::is_finite(x)));
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (m, n, batch) in [(3, 3, 4000), (20, 9, 700), (64, 64, 25), (130, 80, 9)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 9).narrowed(0);
        let (qr, tau) = factor(1, m, n, &one, &Serial);
        let q = form(1, (m, n, n), &qr, &tau, &Serial);
        for threads in [1, 2, 7] {
            let pool = Spawned(threads);
            let (many, many_tau) = factor(batch, m, n, &one.repeat(batch), &pool);
            assert!(bits(&many) == bits(&qr).repeat(batch), "{m} x {n}, {threads} threads");
            assert!(bits(&many_tau) == bits(&tau).repeat(batch));
            let many_q = form(batch, (m, n, n), &many, &many_tau, &pool);
            assert!(bits(&many_q) == bits(&q).repeat(batch), "{m} x {n}, {threads} threads");
            for call in Form::all(m, m) {
                let c: Vec<T> = matrix::<T>(Kind::Random, m, m, 10).narrowed(0);
                let expected = call.multiply(1, n, (&qr, &tau), &c, &Serial);
                let got = call.multiply(batch, n, (&many, &many_tau), &c.repeat(batch), &pool);
                assert!(bits(&got) == bits(&expected).repeat(batch), "{call:?}");
            }
        }
    }
}

#[test]
fn sizes_are_checked() {
    let (mut a, tau) = ([1.0; 6], [0.0; 3]);
    let error = orgqr(1, 2, 3, 3, InOut { src: None, dst: &mut a }, &tau, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "m", smaller: "n", .. })));
    let error = orgqr(1, 3, 2, 3, InOut { src: None, dst: &mut a }, &tau, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "n", smaller: "t", .. })));
    let error = geqrf(1, 2, 3, InOut { src: None, dst: &mut a }, &mut [0.0; 3], &Serial);
    assert!(matches!(error, Err(Error::Length { operand: "tau", .. })));
    let c = InOut { src: None, dst: &mut a };
    let error = ormqr(Side::Left, Factor::Q, 1, 2, 3, 3, 3, &[0.0; 6], &tau, c, &Serial);
    assert!(matches!(error, Err(Error::Order { larger: "r", smaller: "t", .. })));
}
