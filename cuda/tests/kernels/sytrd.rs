//! Reduction of Hermitian matrices to tridiagonal form, by LAPACK's residual ratios: in shared memory, and by
//! the fake cuSOLVER.

use lapax_core::{Real as _, Uplo};
use lapax_cuda::eigh::{Tridiagonal, sytrd};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Orders and matrices: of one and of several warps, more than there are blocks, and too large for one.
const SIZES: [(usize, usize); 9] =
    [(1, 3), (2, 4), (3, 130), (5, 3), (8, 2), (17, 2), (33, 2), (70, 1), (130, 1)];

/// The limit of all ratios.
const LIMIT: f64 = 30.0;

struct Reduced<T: Number> {
    a: Vec<T>,
    d: Vec<T::Real>,
    e: Vec<T::Real>,
    tau: Vec<T>,
}

fn reduced<T: Number>(uplo: Uplo, batch: usize, n: usize, a: &[T]) -> Reduced<T> {
    let mut out = Reduced {
        a: vec![nan(); a.len()],
        d: vec![T::Real::from_f64(7.0); batch * n],
        e: vec![T::Real::from_f64(7.0); batch * (n - 1)],
        tau: vec![nan(); batch * (n - 1)],
    };
    let mut info = vec![-1; batch];
    let (d, e, tau) = (output(&mut out.d), output(&mut out.e), output(&mut out.tau));
    let results = Tridiagonal { d, e, tau, info: output(&mut info) };
    succeeds(sytrd(&gpu(), uplo, batch, n, in_out(Some(a), &mut out.a), results));
    assert_eq!(info, vec![0; batch]);
    out
}

/// Q = H₁ H₂ ⋯ of LAPACK's reflectors: with the upper triangle all indices are turned.
fn orthogonal<T: Number>(uplo: Uplo, n: usize, a: &[T], tau: &[T]) -> Matrix<T> {
    let turned = |i: usize, n: usize| if uplo == Uplo::Lower { i } else { n - 1 - i };
    let mut q = Matrix::from(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
    for k in 0..n - 1 {
        let v: Matrix<T> = Matrix::from(n, 1, |at, _| match turned(at, n) {
            i if i <= k => T::ZERO,
            i if i == k + 1 => T::ONE,
            _ => a[at + turned(k, n) * n],
        });
        let along = q.times(&v);
        let factor = tau[turned(k, n - 1)];
        q = Matrix::from(n, n, |i, j| q[(i, j)] - factor * along[(i, 0)] * v[(j, 0)].conj());
    }
    q
}

fn check<T: Number>(random: &mut Random, uplo: Uplo, n: usize, batch: usize) {
    let inside = |i: usize, j: usize| if uplo == Uplo::Lower { i >= j } else { i <= j };
    let given: Vec<Matrix<T>> = (0..batch)
        .map(|at| {
            let a: Matrix<T> = Matrix { rows: n, columns: n, data: random.scalars(n * n) };
            let half = T::Real::from_f64(if at == 1 { 0.0 } else { 0.5 });
            Matrix::from(n, n, |i, j| (a[(i, j)] + a[(j, i)].conj()).scale(half))
        })
        .collect();
    // Column-major, of which the other triangle is not to be read.
    let element = |a: &Matrix<T>, at: usize| {
        let (i, j) = (at % n, at / n);
        if inside(i, j) { a[(i, j)] } else { nan() }
    };
    let a: Vec<T> = given.iter().flat_map(|a| (0..n * n).map(|at| element(a, at))).collect();
    let found = reduced(uplo, batch, n, &a);
    for (at, given) in given.iter().enumerate() {
        let label = format!("{uplo:?} {n}, {at} of {batch}");
        let a = &found.a[at * n * n..][..n * n];
        assert!((0..n * n).all(|e| inside(e % n, e / n) || a[e].is_nan()), "{label}");
        let (d, e) = (&found.d[at * n..][..n], &found.e[at * (n - 1)..][..n - 1]);
        assert!((0..n).all(|i| a[i * (n + 1)] == T::from_real(d[i])), "{label}");
        let beside = |i: usize| if uplo == Uplo::Lower { i + 1 + i * n } else { i + (i + 1) * n };
        assert!((0..n - 1).all(|i| a[beside(i)] == T::from_real(e[i])), "{label}");
        let q = orthogonal(uplo, n, a, &found.tau[at * (n - 1)..][..n - 1]);
        let t = Matrix::from(n, n, |i, j| match i.abs_diff(j) {
            0 => T::from_real(d[i]),
            1 => T::from_real(e[i.min(j)]),
            _ => T::ZERO,
        });
        let order = f64::from(u32::try_from(n).unwrap());
        let residual = ratio(&q.times(&t).times(&q.adjoint()), given, given.size() * order);
        assert!(residual < LIMIT, "{label}: {residual}");
        let identity = Matrix::from(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
        let departure = ratio(&q.adjoint().times(&q), &identity, order);
        assert!(departure < LIMIT, "{label}: {departure}");
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(23);
    for ((n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check::<T>(&mut random, Uplo::Lower, n, batch);
        check::<T>(&mut random, Uplo::Upper, n, batch);
    }
    // What is bad spoils its matrix alone.
    let one: Vec<T> = random.scalars(49);
    let expected = reduced(Uplo::Lower, 1, 7, &one);
    let mut both = one.repeat(2);
    both[3] = nan();
    let found = reduced(Uplo::Lower, 2, 7, &both);
    assert!(found.d[..7].iter().any(|&d| T::from_real(d).is_nan()));
    assert!(found.a[49..] == expected.a && found.d[7..] == expected.d);
    assert!(found.e[6..] == expected.e && found.tau[6..] == expected.tau);
}

#[test]
fn tridiagonal_forms_f32() {
    check_all::<f32>();
}

#[test]
fn tridiagonal_forms_f64() {
    check_all::<f64>();
}

#[test]
fn tridiagonal_forms_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn tridiagonal_forms_c128() {
    check_all::<Complex<f64>>();
}
