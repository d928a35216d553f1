//! Eigenvalues and eigenvectors of row-major Hermitian matrices, by LAPACK's residual ratios and lapax-cpu's values.

use lapax_core::{Real as _, Scalar as _, Serial, Uplo};
use lapax_cuda::definite::Given;
use lapax_cuda::{Kind, hermitian};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Orders and matrices: of 4 to 32 lanes and of a block each, and more than are gone through at once.
const SIZES: [(usize, usize); 15] = [
    (1, 5),
    (2, 9),
    (3, 11),
    (4, 9),
    (5, 9),
    (8, 5),
    (9, 4),
    (12, 3),
    (13, 9),
    (16, 3),
    (17, 9),
    (24, 3),
    (32, 1),
    (33, 3),
    (2, 520),
];

/// The limit of all ratios.
const LIMIT: f64 = 30.0;

fn number<T: Number>(x: f64) -> T {
    T::from_real(T::Real::from_f64(x))
}

fn small(i: usize) -> f64 {
    f64::from(u32::try_from(i).unwrap())
}

/// A Hermitian matrix of one of several kinds: graded, near both ends of the range, with equal eigenvalues, with
/// pairs of them that differ in sign alone, Wilkinson's, and without any structure.
fn matrix<T: Number>(random: &mut Random, n: usize, kind: usize) -> Matrix<T> {
    let a: Matrix<T> = Matrix { rows: n, columns: n, data: random.scalars(n * n) };
    let half = T::Real::from_f64(0.5);
    let mean = Matrix::from(n, n, |i, j| (a[(i, j)] + a[(j, i)].conj()).scale(half));
    let scaled = |by: &dyn Fn(usize, usize) -> f64| {
        Matrix::from(n, n, |i, j| mean[(i, j)].scale(T::Real::from_f64(by(i, j))))
    };
    match kind % 9 {
        1 => Matrix::from(n, n, |_, _| T::ZERO),
        2 => Matrix::from(n, n, |i, j| if i == j { number(-3.0) } else { T::ZERO }),
        3 => Matrix::from(n, n, |_, _| T::ONE),
        4 => scaled(&|i, j| (-2.0 * small(i + j)).exp2()),
        5 => scaled(&|_, _| (-118_f64).exp2()),
        6 => scaled(&|_, _| 120_f64.exp2()),
        7 => scaled(&|i, j| f64::from(u8::from((i + j) % 2 == 1))),
        8 => Matrix::from(n, n, |i, j| match i.abs_diff(j) {
            0 => number((2.0 * small(i) - small(n) + 1.0).abs() / 2.0),
            1 => T::ONE,
            _ => T::ZERO,
        }),
        _ => mean,
    }
}

/// What a call is given: the named triangle of Hermitian matrices, with NaN for all that is not to be read, the
/// imaginary parts of the diagonal included; or matrices of which they are the mean with the adjoint.
fn given<T: Number>(random: &mut Random, of: &Given, h: &Matrix<T>) -> Matrix<T> {
    let n = h.rows;
    let skew: Matrix<T> = Matrix { rows: n, columns: n, data: random.scalars(n * n) };
    // Powers of two, so that the mean is exact.
    let size = T::Real::from_f64(h.size().log2().floor().clamp(-100.0, 100.0).exp2());
    let rounded = |x: T| {
        let sign = |part: T::Real| part.signum() * size;
        T::from_parts(sign(x.re()), sign(x.im()))
    };
    let beside = if of.mean { size } else { T::Real::from_f64(f64::NAN) };
    let imaginary = T::from_parts(T::Real::ZERO, beside);
    Matrix::from(n, n, |i, j| {
        let read = if of.uplo == Uplo::Upper { i <= j } else { i >= j };
        match (of.mean, i == j) {
            (_, true) => h[(i, j)] + imaginary,
            (true, false) if i < j => h[(i, j)] + rounded(skew[(i, j)]),
            (true, false) => h[(i, j)] - rounded(skew[(j, i)]).conj(),
            (false, false) if read => h[(i, j)],
            (false, false) => nan(),
        }
    })
}

/// The matrix that a call is to see: with the mean, that of what it was given.
fn seen<T: Number>(of: &Given, a: &Matrix<T>, h: &Matrix<T>) -> Matrix<T> {
    let half = T::Real::from_f64(0.5);
    let mean = |i: usize, j: usize| (a[(i, j)] + a[(j, i)].conj()).scale(half);
    Matrix::from(a.rows, a.rows, |i, j| if of.mean { mean(i, j) } else { h[(i, j)] })
}

/// A matrix's results, `None` where they are to be NaN.
fn judge<T: Number<Real: lapax_cpu::Scalar>>(
    h: Option<&Matrix<T>>,
    v: &Matrix<T>,
    w: &[T::Real],
    label: &str,
) {
    let n = w.len();
    let Some(h) = h else {
        assert!(v.data.iter().all(|x| x.is_nan()), "{label}");
        assert!(w.iter().all(|x| x.to_f64().is_nan()), "{label}: {w:?}");
        return;
    };
    assert!(w.windows(2).all(|pair| pair[0] <= pair[1]), "{label}: {w:?}");
    // Of a matrix of zeros all is exact.
    let size = if h.size() == 0.0 { 1.0 } else { h.size() };
    let values = Matrix::from(n, n, |i, j| v[(i, j)].scale(w[j]));
    let found = ratio(&h.times(v), &values, size * small(n));
    assert!(found < LIMIT, "{label}: {found}");
    let one = Matrix::from(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
    let found = ratio(&v.adjoint().times(v), &one, small(n));
    assert!(found < LIMIT, "orthogonality {label}: {found}");
    let mut expected = vec![T::Real::ZERO; n];
    lapax_cpu::eigh::eigvalsh(Uplo::Lower, 1, n, &h.data, &mut expected, &Serial).unwrap();
    for (w, expected) in w.iter().zip(expected) {
        let unit = size * small(n) * T::Real::EPSILON.to_f64();
        let found = (*w - expected).abs().to_f64() / unit;
        assert!(found < LIMIT, "value {w:?} of {label}, expected {expected:?}: {found}");
    }
    // Rounding may have the component before or after.
    for j in 0..n {
        let least = 0.4869 / small(n).sqrt();
        let first = (0..n).find(|i| v[(*i, j)].abs().to_f64() >= least * 1.001).unwrap();
        let leads = (0..=first).any(|i| {
            let x = v[(i, j)];
            x.abs().to_f64() >= least * 0.999 && x.re() > T::Real::ZERO && x.im() == T::Real::ZERO
        });
        assert!(leads, "phase of {j}, {label}");
    }
}

fn check<T: Number<Real: lapax_cpu::Scalar>>(
    random: &mut Random,
    n: usize,
    batch: usize,
    of: Given,
) {
    let matrices: Vec<Matrix<T>> = (0..batch).map(|kind| matrix(random, n, kind)).collect();
    let mut operands: Vec<Matrix<T>> = matrices.iter().map(|h| given(random, &of, h)).collect();
    // A NaN of the triangle that is read; an inf, or a NaN beside a number.
    let zero = T::Real::ZERO;
    let beside = T::from_parts(zero, T::Real::from_f64(f64::NAN));
    let other = if T::IS_COMPLEX && n > 1 { beside } else { number(f64::INFINITY) };
    let spoilt = [(2, nan()), (4, other)];
    for (at, value) in spoilt.into_iter().filter(|(at, _)| batch > 2 && *at < batch) {
        let place = if of.uplo == Uplo::Upper { (0, n - 1) } else { (n - 1, 0) };
        operands[at][place] = value;
    }
    let a: Vec<T> = operands.iter().flat_map(|a| a.data.clone()).collect();
    let (mut v, mut w) = (vec![nan::<T>(); batch * n * n], vec![T::Real::ZERO; batch * n]);
    let vectors = in_out(Some(&a), &mut v);
    succeeds(hermitian::eigh(&gpu(), of, batch, n, vectors, output(&mut w)));
    for (at, (operand, h)) in operands.iter().zip(&matrices).enumerate() {
        let label = format!("{at} of {batch} of order {n}, {of:?}");
        let bad = batch > 2 && spoilt.iter().any(|(spoilt, _)| *spoilt == at);
        let h = seen(&of, operand, h);
        judge((!bad).then_some(&h), &Matrix::of(&v, at, n, n), &w[at * n..][..n], &label);
    }
    let same = |x: &[T], y: &[T]| x.iter().zip(y).all(|(x, y)| x == y || x.is_nan() && y.is_nan());
    let alike = |x: &[T::Real], y: &[T::Real]| {
        x.iter().zip(y).all(|(x, y)| x.to_f64().total_cmp(&y.to_f64()).is_eq())
    };
    // In place; the values alone; some of them; and each matrix for itself.
    let (mut shared, mut again) = (a.clone(), vec![T::Real::ZERO; batch * n]);
    let vectors = in_out(None, &mut shared);
    succeeds(hermitian::eigh(&gpu(), of, batch, n, vectors, output(&mut again)));
    assert!(same(&v, &shared) && alike(&w, &again), "{batch} of order {n}, {of:?}");
    again.fill(T::Real::ZERO);
    succeeds(hermitian::eigvalsh(&gpu(), of, batch, n, input(&a), output(&mut again)));
    assert!(alike(&w, &again), "values of {batch} of order {n}, {of:?}");
    let part = n / 3..n - n / 4;
    let k = part.len();
    let (mut vs, mut ws) = (vec![nan::<T>(); batch * n * k], vec![T::Real::ZERO; batch * k]);
    let outputs = (output(&mut vs), output(&mut ws));
    let all = input(&a);
    succeeds(hermitian::eigh_subset(&gpu(), of, batch, n, part.clone(), all, outputs.0, outputs.1));
    for (row, some) in v.chunks_exact(n).zip(vs.chunks_exact(k)) {
        assert!(same(&row[part.clone()], some), "some of {batch} of order {n}, {of:?}");
    }
    for (values, some) in w.chunks_exact(n).zip(ws.chunks_exact(k)) {
        assert!(alike(&values[part.clone()], some), "some of {batch} of order {n}, {of:?}");
    }
    for at in [0, batch - 1] {
        let (mut v1, mut w1) = (vec![nan::<T>(); n * n], vec![T::Real::ZERO; n]);
        let vectors = in_out(Some(&operands[at].data), &mut v1);
        succeeds(hermitian::eigh(&gpu(), of, 1, n, vectors, output(&mut w1)));
        let (v, w) = (&v[at * n * n..][..n * n], &w[at * n..][..n]);
        assert!(same(v, &v1) && alike(w, &w1), "{at} of {batch} of order {n}, {of:?}");
    }
}

fn check_all<T: Number<Real: lapax_cpu::Scalar>>() {
    let Some(_device) = device() else { return };
    let mut random = Random(23);
    let ways =
        [(Uplo::Lower, false), (Uplo::Upper, false), (Uplo::Lower, true), (Uplo::Upper, true)];
    let mut ways = ways.into_iter().cycle();
    for ((n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        // All of them where they take no time.
        for (uplo, mean) in ways.by_ref().take(if n < 9 && batch < 99 { 4 } else { 1 }) {
            check::<T>(&mut random, n, batch, Given { uplo, mean });
        }
    }
}

#[test]
fn decomposes_f32() {
    check_all::<f32>();
}

#[test]
fn decomposes_f64() {
    check_all::<f64>();
}

#[test]
fn decomposes_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn decomposes_c128() {
    check_all::<Complex<f64>>();
}

fn check_parts<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(29);
    for ((n, batch), seed) in
        [(1, 3), (5, 2), (32, 1), (33, 3), (70, 1)].into_iter().zip(SEEDS.cycle())
    {
        driver::state().seed = seed;
        let mut a: Vec<T> = random.scalars(batch * n * n);
        a[n * n - 1] = nan();
        let (mut s, mut expected) = (vec![nan::<T>(); a.len()], a.clone());
        lapax_cpu::eigh::symmetrize(batch, n, &a, &mut expected, &Serial).unwrap();
        succeeds(hermitian::symmetrize(&gpu(), batch, n, input(&a), output(&mut s)));
        let same = s.iter().zip(&expected).all(|(x, y)| x == y || x.is_nan() && y.is_nan());
        assert!(same, "{batch} of order {n}");
        assert_eq!(s.iter().filter(|x| x.is_nan()).count(), 1);
    }
}

#[test]
fn hermitian_parts_are_those_of_the_cpu() {
    check_parts::<f32>();
    check_parts::<f64>();
    check_parts::<Complex<f32>>();
    check_parts::<Complex<f64>>();
}

const LOWER: Given = Given { uplo: Uplo::Lower, mean: false };

#[test]
fn empty_ones_are_no_work() {
    let Some(_device) = device() else { return };
    let none = in_out::<f64>(None, &mut []);
    succeeds(hermitian::eigh(&gpu(), LOWER, 3, 0, none, output(&mut [])));
    succeeds(hermitian::eigvalsh::<f64>(&gpu(), LOWER, 0, 3, input(&[]), output(&mut [])));
    let (v, w) = (output(&mut []), output(&mut []));
    succeeds(hermitian::eigh_subset::<f64>(&gpu(), LOWER, 1, 2, 1..1, input(&[0.0; 4]), v, w));
    succeeds(hermitian::symmetrize::<f32>(&gpu(), 2, 0, input(&[]), output(&mut [])));
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(_device) = device() else { return };
    let (a, mut w) = (vec![0.0_f64; 300 * 300], vec![0.0; 300]);
    let values = output(&mut w);
    let error = hermitian::eigvalsh(&gpu(), LOWER, 1, 300, input(&a), values).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert!(error.message().contains("got 300 × 300, which takes"), "{error}");
    let (v, w) = (output(&mut []), output(&mut []));
    let part = 2..4;
    let error =
        hermitian::eigh_subset::<f64>(&gpu(), LOWER, 1, 3, part, input(&a), v, w).unwrap_err();
    assert_eq!(error.message(), "expected places among 3 eigenvalues, got 2..4");
}
