//! Cholesky factorisation of row-major matrices and systems by it, by LAPACK's residual ratios: matrices of
//! a thread, of lanes of a warp, and of a block; more than are gone through at once.

use lapax_core::{Real as _, Uplo};
use lapax_cuda::definite::{self, Given};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Orders and matrices.
const SIZES: [(usize, usize); 10] =
    [(1, 70), (2, 5), (4, 130), (3, 33), (5, 9), (8, 6), (13, 3), (16, 1), (31, 3), (41, 4)];

const LIMIT: f64 = 30.0;

fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n.max(1)).unwrap())
}

/// What the operand has, whose named triangle, or mean with its adjoint, is positive definite; of several,
/// the second is not, and the third has a NaN.
fn batch_of<T: Number>(random: &mut Random, n: usize, batch: usize, given: Given) -> Vec<T> {
    let real = |x: f64| T::from_real(T::Real::from_f64(x));
    let mut a: Vec<T> = random.scalars(batch * n * n);
    for (at, a) in a.chunks_exact_mut(n * n).enumerate() {
        (0..n).for_each(|i| a[i * n + i] = real(2.0 * number(n)));
        let last = &mut a[n * n - 1];
        match at {
            1 if batch > 2 => *last = real(-1.0),
            2 if batch > 2 => *last = nan(),
            _ => {}
        }
        // What is not to be read.
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            if !given.mean {
                a[if given.uplo == Uplo::Lower { j * n + i } else { i * n + j }] = nan();
            }
        }
    }
    a
}

/// A as it is meant.
fn meant<T: Number>(a: &Matrix<T>, given: Given) -> Matrix<T> {
    let half = T::Real::from_f64(0.5);
    let lower = |i: usize, j: usize| match given {
        Given { mean: true, .. } => (a[(i, j)] + a[(j, i)].conj()).scale(half),
        Given { uplo: Uplo::Lower, .. } => a[(i, j)],
        Given { uplo: Uplo::Upper, .. } => a[(j, i)].conj(),
    };
    Matrix::from(a.rows, a.rows, |i, j| if i >= j { lower(i, j) } else { lower(j, i).conj() })
}

fn check<T: Number>(random: &mut Random, n: usize, batch: usize, given: Given, nrhs: usize) {
    let a = batch_of::<T>(random, n, batch, given);
    let b: Vec<T> = random.scalars(batch * n * nrhs);
    let (mut x, mut kept, mut again) = (b.clone(), b.clone(), b.clone());
    let (mut factor, mut logdet) = (a.clone(), vec![T::Real::from_f64(7.0); batch]);
    let (sizes, operands) = ((n, nrhs), (input(&a), input(&b)));
    succeeds(definite::posv(&gpu(), given, batch, sizes, operands, output(&mut x)));
    let outputs = (output(&mut factor), output(&mut logdet));
    let x_out = output(&mut kept);
    succeeds(definite::posv_factor(&gpu(), given, batch, sizes, operands, x_out, outputs));
    let operands = (input(&factor), input(&b));
    succeeds(definite::cho_solve(&gpu(), given.uplo, batch, sizes, operands, output(&mut again)));
    let mut l = vec![nan(); batch * n * n];
    if given.uplo == Uplo::Lower {
        let operand = in_out(Some(&a), &mut l);
        succeeds(definite::cholesky(&gpu(), given.mean, batch, n, operand));
    }
    for (at, logdet) in logdet.iter().enumerate() {
        let label = format!("{n}, {at} of {batch}, {given:?}, {nrhs}");
        let read = |x: &[T], columns: usize| Matrix::of(x, at, n, columns);
        let (factor, found) = (read(&factor, n), read(&x, nrhs));
        if batch > 2 && (at == 1 || at == 2) {
            assert!(found.data.iter().all(|x| x.is_nan()), "{label}");
            assert!(logdet.to_f64().is_nan(), "{label}");
        }
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let inside = if given.uplo == Uplo::Lower { j <= i } else { j >= i };
            if !inside {
                assert_eq!(factor[(i, j)], T::ZERO, "{label}");
            } else if batch > 2 && (at == 1 || at == 2) {
                assert!(factor[(i, j)].is_nan(), "{label}");
            }
        }
        if given.uplo == Uplo::Lower {
            let same = |(x, y): (&T, &T)| x == y || x.is_nan() && y.is_nan();
            assert!(read(&l, n).data.iter().zip(&factor.data).all(same), "{label}");
        }
        if batch > 2 && (at == 1 || at == 2) {
            continue;
        }
        let (a, right) = (meant(&read(&a, n), given), read(&b, nrhs));
        let lower = if given.uplo == Uplo::Lower { factor.clone() } else { factor.adjoint() };
        let found = ratio(&lower.times(&lower.adjoint()), &a, a.size() * number(n));
        assert!(found < LIMIT, "factor {label}: {found}");
        for x in [&x, &kept, &again].map(|x| read(x, nrhs)) {
            let found = ratio(&a.times(&x), &right, a.size() * x.size() * number(n));
            assert!(found < LIMIT, "{label}: {found}");
        }
        let expected: f64 = (0..n).map(|i| 2.0 * lower[(i, i)].re().to_f64().ln()).sum();
        let found = (logdet.to_f64() - expected).abs() / T::Real::EPSILON.to_f64();
        assert!(found < LIMIT * number(n) * (1.0 + expected.abs()), "{label}: {found}");
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(13);
    for ((n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        for (uplo, mean) in [(Uplo::Lower, false), (Uplo::Upper, false), (Uplo::Lower, true)] {
            for nrhs in [1, 6] {
                check::<T>(&mut random, n, batch, Given { uplo, mean }, nrhs);
            }
        }
    }
    // Right-hand sides that are shared out, and more than lie beside a matrix.
    check::<T>(&mut random, 35, 1, Given { uplo: Uplo::Upper, mean: true }, 70);
    check::<T>(&mut random, 7, 3, Given { uplo: Uplo::Lower, mean: true }, 70);
}

#[test]
fn solves_f32() {
    check_all::<f32>();
}

#[test]
fn solves_f64() {
    check_all::<f64>();
}

#[test]
fn solves_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn solves_c128() {
    check_all::<Complex<f64>>();
}

#[test]
fn empty_ones_have_their_determinant() {
    let Some(_device) = device() else { return };
    let given = Given { uplo: Uplo::Lower, mean: true };
    let none: (&[f64], &[f64]) = (&[], &[]);
    let (mut logdet, operands) = ([7.0; 2], (input(none.0), input(none.1)));
    let kept = (output(&mut []), output(&mut logdet));
    let x = output(&mut []);
    succeeds(definite::posv_factor(&gpu(), given, 2, (0, 3), operands, x, kept));
    assert_eq!(logdet, [0.0; 2]);
    let (mut factor, mut logdet) = ([7.0; 4], [7.0]);
    let a = [4.0, 0.0, 0.0, 9.0];
    let kept = (output(&mut factor), output(&mut logdet));
    let operands = (input(&a), input(none.1));
    succeeds(definite::posv_factor(&gpu(), given, 1, (2, 0), operands, x, kept));
    assert_eq!(factor, [2.0, 0.0, 0.0, 3.0]);
    assert!((logdet[0] - 36.0_f64.ln()).abs() < 1e-15);
    succeeds(definite::cholesky::<f64>(&gpu(), false, 0, 50, in_out(None, &mut [])));
}
