//! potrf: ‖L·Lᴴ − A‖ / (n·‖A‖·ε), the triangle that is not named, info, NaN.

use std::cmp::Ordering;

use lapax_core::{Real as _, Scalar};
use lapax_cpu::cholesky::{cholesky, potrf};
use lapax_cpu::{Error, InOut, Serial, Spawned, Threads, Uplo};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, definite};
use crate::matrix::{Matrix, ratio};
use crate::ratios::compare;
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, imaginary_diagonal_is_ignored, large_ones_by_rows);
for_each_backend!(
    first_bad_minor_is_reported,
    nan_is_reported_and_stays_in_its_matrix,
    same_bits_everywhere,
);

const UPLOS: [Uplo; 2] = [Uplo::Lower, Uplo::Upper];

fn named(uplo: Uplo, i: usize, j: usize) -> bool {
    match uplo {
        Uplo::Lower => i >= j,
        Uplo::Upper => i <= j,
    }
}

fn factor<T: Sample>(
    backend: Backend,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<i32>) {
    let (mut factor, mut info) = (a.to_vec(), vec![-7; batch]);
    let aliased = InOut { src: None, dst: &mut factor };
    call!(backend, cholesky::potrf(uplo, batch, n, aliased, &mut info, threads)).unwrap();
    let (mut other, mut other_info) = (vec![T::nan(); a.len()], vec![-7; batch]);
    let copied = InOut { src: Some(a), dst: &mut other };
    call!(backend, cholesky::potrf(uplo, batch, n, copied, &mut other_info, threads)).unwrap();
    assert!(bits(&factor) == bits(&other), "aliased and copied calls differ");
    assert_eq!(info, other_info);
    (factor, info)
}

/// The matrix with NaN, minus zero and a number where it must not be read.
fn spoiled<T: Sample>(uplo: Uplo, n: usize, a: &[T]) -> Vec<T> {
    let junk = [T::nan(), T::from_f64(-0.0), T::from_f64(3.0)];
    let element = |k: usize| if named(uplo, k % n, k / n) { a[k] } else { junk[k % 3] };
    (0..a.len()).map(element).collect()
}

fn assert_other_triangle_kept<T: Sample>(uplo: Uplo, n: usize, before: &[T], after: &[T]) {
    for k in (0..before.len()).filter(|k| !named(uplo, k % n, k / n)) {
        assert_eq!(before[k].bits(), after[k].bits(), "({}, {}) was written", k % n, k / n);
    }
}

fn residual<T: Sample>() {
    compare::<T>("potrf", |ratios| {
        for (n, _, kind, seeds) in sweep::batches_of(sweep::squares()) {
            for uplo in UPLOS {
                let exponent = kind.exponent::<T>();
                let one = |&seed| definite::<T>(kind, n, seed).narrowed::<T>(exponent);
                let full: Vec<Vec<T>> = seeds.iter().map(one).collect();
                let a: Vec<T> = full.iter().flat_map(|a| spoiled(uplo, n, a)).collect();
                ratios.met(kind);
                for &backend in BACKENDS {
                    let (factor, info) = factor(backend, uplo, seeds.len(), n, &a, &Serial);
                    let case = || format!("{kind:?} {uplo:?} n = {n}");
                    assert!(info.iter().all(|&info| info == 0), "{backend:?} {}", case());
                    for (b, full) in full.iter().enumerate() {
                        let item = b * n * n..(b + 1) * n * n;
                        let (a, factor) = (&a[item.clone()], &factor[item]);
                        assert_other_triangle_kept(uplo, n, a, factor);
                        let ratio = residual_ratio(uplo, n, full, factor, exponent);
                        ratios.add(backend, "L·Lᴴ − A", ratio, case);
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn residual_ratio<T: Sample>(uplo: Uplo, n: usize, a: &[T], factor: &[T], exponent: i32) -> f64 {
    // The factor has the square root of A's scale.
    let half = -exponent / 2;
    let triangle = Matrix::widened(n, factor, half).masked(|i, j| named(uplo, i, j));
    assert!((0..n).all(|i| triangle.at(i, i).im() == 0.0), "the diagonal is real");
    let product = match uplo {
        Uplo::Lower => triangle.times(&triangle.adjoint()),
        Uplo::Upper => triangle.adjoint().times(&triangle),
    };
    let a = Matrix::widened(n, a, 2 * half);
    ratio::<T>(product.minus(&a).norm(), n, a.norm(), 2 * half)
}

fn first_bad_minor_is_reported<T: Sample>(backend: Backend) {
    for uplo in UPLOS {
        for n in [1, 2, 5, 16, 33, 64, 100] {
            for bad in [0, n / 3, n / 2, n - 1] {
                for value in [-1.0, 0.0, f64::NEG_INFINITY] {
                    let mut a: Vec<T> = definite::<T>(Kind::RepeatedEigenvalues, n, 2).narrowed(0);
                    a[bad + bad * n] = T::from_f64(value);
                    let a = spoiled(uplo, n, &a);
                    let (factor, info) = factor(backend, uplo, 1, n, &a, &Serial);
                    assert_eq!(info, [i32::try_from(bad + 1).unwrap()], "{} n = {n}", T::NAME);
                    assert_other_triangle_kept(uplo, n, &a, &factor);
                }
            }
        }
    }
}

fn nan_is_reported_and_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for uplo in UPLOS {
        for n in [1, 2, 8, 33, 100] {
            let one: Vec<T> = definite::<T>(Kind::Random, n, 3).narrowed(0);
            let one = spoiled(uplo, n, &one);
            let (expected, _) = factor(backend, uplo, 1, n, &one, &Serial);
            for (i, j) in [(0, 0), (n - 1, 0), (n / 2, n / 2), (n - 1, n / 2), (n - 1, n - 1)] {
                let mut a = one.repeat(3);
                let (i, j) = if uplo == Uplo::Lower { (i, j) } else { (j, i) };
                a[n * n + i + j * n] = T::nan();
                let (factor, info) = factor(backend, uplo, 3, n, &a, &Serial);
                // Row max(i, j) is the first whose pivot depends on the NaN.
                let bad = i32::try_from(i.max(j) + 1).unwrap();
                assert_eq!(info, [0, bad, 0], "{} NaN at ({i}, {j}), n = {n}", T::NAME);
                assert_eq!(bits(&factor[..n * n]), bits(&expected));
                assert_eq!(bits(&factor[2 * n * n..]), bits(&expected));
            }
        }
    }
}

/// Of a LAPACK only the value of the real part is known, not the bits of what it makes of NaN beside.
fn imaginary_diagonal_is_ignored<T: Sample>() {
    for uplo in UPLOS {
        for n in [1, 7, 40] {
            let clean: Vec<T> = definite::<T>(Kind::Random, n, 4).narrowed(0);
            let mut a = clean.clone();
            for i in 0..n {
                let real = a[i + i * n];
                let imaginary = [T::nan(), T::from_f64(5.0)][i % 2].re();
                a[i + i * n] = T::from_parts(real.re(), imaginary);
            }
            let (expected, _) = factor(Backend::Native, uplo, 1, n, &clean, &Serial);
            let (factor, info) = factor(Backend::Native, uplo, 1, n, &a, &Serial);
            assert_eq!(info, [0]);
            assert_eq!(bits(&factor), bits(&expected));
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (n, batch) in [(3, 9000), (17, 900), (40, 150), (129, 15)] {
        for uplo in UPLOS {
            let one: Vec<T> = definite::<T>(Kind::Random, n, 5).narrowed(0);
            let (expected, _) = factor(backend, uplo, FEW, n, &one.repeat(FEW), &Serial);
            let expected = bits(&expected).repeat(batch / FEW);
            for threads in [1, 2, 7] {
                let (factor, _) =
                    factor(backend, uplo, batch, n, &one.repeat(batch), &Spawned(threads));
                assert!(bits(&factor) == expected, "n = {n}, {threads} threads");
            }
        }
    }
}

/// Strips of all threads, filled as they are needed, against the triangle of the mean given whole.
fn large_ones_by_rows<T: Sample>() {
    for n in [449, 500, 670] {
        let mean: Vec<T> = definite::<T>(Kind::RepeatedEigenvalues, n, 6).narrowed(0);
        let lower: Vec<T> = (0..n * n).map(|p| mean[p % n * n + p / n]).collect();
        let (mut expected, info) = factor(Backend::Native, Uplo::Upper, 1, n, &lower, &Serial);
        assert_eq!(info, [0]);
        (0..n).for_each(|i| expected[i * n + i + 1..(i + 1) * n].fill(T::ZERO));
        // What cancels in the mean, and what is not read where there is none.
        let skew = |p: usize| match (p / n).cmp(&(p % n)) {
            Ordering::Less => lower[p].scale(T::Real::from_f64(1.5)),
            Ordering::Equal => lower[p],
            Ordering::Greater => lower[p].scale(T::Real::from_f64(0.5)),
        };
        let skewed: Vec<T> = (0..n * n).map(skew).collect();
        let spoiled = spoiled(Uplo::Upper, n, &lower);
        let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.widen(0).abs()));
        let limit = 10.0 * n as f64 * T::Real::EPSILON.to_f64() * largest;
        for (symmetrize, a) in [(true, skewed), (false, spoiled)] {
            for bad in [None, Some(n / 2), Some(n - 1)] {
                let mut a = a.clone();
                if let Some(bad) = bad {
                    a[bad * n + bad] = T::from_f64(-1.0);
                }
                for threads in [1, 3] {
                    let mut found = [a.clone(), vec![T::nan(); n * n]];
                    let [aliased, other] = &mut found;
                    for l in
                        [InOut { src: None, dst: aliased }, InOut { src: Some(&a[..]), dst: other }]
                    {
                        cholesky(symmetrize, 1, n, l, &Spawned(threads)).unwrap();
                    }
                    assert!(bits(&found[0]) == bits(&found[1]), "aliased and copied calls differ");
                    for (p, &x) in found[1].iter().enumerate() {
                        let what = || format!("n = {n}, {symmetrize}, {bad:?}: {p}");
                        if p % n > p / n {
                            assert!(x == T::ZERO, "{}", what());
                        } else if bad.is_some() {
                            assert!(Scalar::is_nan(x), "{}", what());
                        } else {
                            let error = (x - expected[p]).widen(0).abs();
                            assert!(error < limit, "{}: {error}", what());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn empty_matrices_report_success() {
    let (_, info) = factor::<f64>(Backend::Native, Uplo::Lower, 3, 0, &[], &Serial);
    assert_eq!(info, [0, 0, 0]);
    assert_eq!(factor::<f64>(Backend::Native, Uplo::Lower, 0, 3, &[], &Serial), (vec![], vec![]));
}

#[test]
fn sizes_are_checked() {
    let call = |batch, n, a: &mut [f64]| {
        potrf(Uplo::Lower, batch, n, InOut { src: None, dst: a }, &mut [], &Serial)
    };
    assert!(matches!(call(0, 1 << 31, &mut []), Err(Error::TooLarge { dimension: "n", .. })));
    assert!(matches!(call(1, 1, &mut [1.0]), Err(Error::Length { operand: "info", .. })));
}
