//! potrf: ‖L·Lᴴ − A‖ / (n·‖A‖·ε), the triangle that is not named, info, NaN.

use lapax_core::Scalar;
use lapax_cpu::{Error, InOut, Serial, Threads, Uplo, cholesky::potrf};

use crate::kinds::{KINDS, Kind, ORDERS, definite};
use crate::matrix::{Matrix, ratio};
use crate::sample::{Sample, bits};
use crate::threads::Spawned;
use crate::{Worst, for_each_scalar};

for_each_scalar!(
    residual,
    first_bad_minor_is_reported,
    nan_is_reported_and_stays_in_its_matrix,
    imaginary_diagonal_is_ignored,
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
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<i32>) {
    let (mut factor, mut info) = (a.to_vec(), vec![-7; batch]);
    let aliased = InOut { src: None, dst: &mut factor };
    potrf(uplo, batch, n, aliased, &mut info, threads).unwrap();
    let (mut other, mut other_info) = (vec![T::nan(); a.len()], vec![-7; batch]);
    let copied = InOut { src: Some(a), dst: &mut other };
    potrf(uplo, batch, n, copied, &mut other_info, threads).unwrap();
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
    let mut worst = Worst::default();
    for uplo in UPLOS {
        for n in ORDERS {
            for kind in KINDS {
                let exponent = kind.exponent::<T>();
                let full: Vec<T> = definite::<T>(kind, n, 1).narrowed(exponent);
                let a = spoiled(uplo, n, &full);
                let (factor, info) = factor(uplo, 1, n, &a, &Serial);
                let case = || format!("{} {kind:?} {uplo:?} n = {n}", T::NAME);
                assert_eq!(info, [0], "{}", case());
                assert_other_triangle_kept(uplo, n, &a, &factor);
                // The factor has the square root of A's scale.
                let half = -exponent / 2;
                let triangle = Matrix::widened(n, &factor, half).masked(|i, j| named(uplo, i, j));
                assert!((0..n).all(|i| triangle.at(i, i).im() == 0.0), "{}", case());
                let product = match uplo {
                    Uplo::Lower => triangle.times(&triangle.adjoint()),
                    Uplo::Upper => triangle.adjoint().times(&triangle),
                };
                let a = Matrix::widened(n, &full, 2 * half);
                let ratio = ratio::<T>(product.minus(&a).norm(), n, a.norm(), 2 * half);
                worst.check(ratio, case);
            }
        }
    }
}

fn first_bad_minor_is_reported<T: Sample>() {
    for uplo in UPLOS {
        for n in [1, 2, 5, 16, 33, 64, 100] {
            for bad in [0, n / 3, n / 2, n - 1] {
                for value in [-1.0, 0.0, f64::NEG_INFINITY] {
                    let mut a: Vec<T> = definite::<T>(Kind::RepeatedEigenvalues, n, 2).narrowed(0);
                    a[bad + bad * n] = T::from_f64(value);
                    let a = spoiled(uplo, n, &a);
                    let (factor, info) = factor(uplo, 1, n, &a, &Serial);
                    assert_eq!(info, [i32::try_from(bad + 1).unwrap()], "{} n = {n}", T::NAME);
                    assert_other_triangle_kept(uplo, n, &a, &factor);
                }
            }
        }
    }
}

fn nan_is_reported_and_stays_in_its_matrix<T: Sample>() {
    for uplo in UPLOS {
        for n in [1, 2, 8, 33, 100] {
            let one: Vec<T> = definite::<T>(Kind::Random, n, 3).narrowed(0);
            let one = spoiled(uplo, n, &one);
            let (expected, _) = factor(uplo, 1, n, &one, &Serial);
            for (i, j) in [(0, 0), (n - 1, 0), (n / 2, n / 2), (n - 1, n / 2), (n - 1, n - 1)] {
                let mut a = one.repeat(3);
                let (i, j) = if uplo == Uplo::Lower { (i, j) } else { (j, i) };
                a[n * n + i + j * n] = T::nan();
                let (factor, info) = factor(uplo, 3, n, &a, &Serial);
                // Row max(i, j) is the first whose pivot depends on the NaN.
                let bad = i32::try_from(i.max(j) + 1).unwrap();
                assert_eq!(info, [0, bad, 0], "{} NaN at ({i}, {j}), n = {n}", T::NAME);
                assert_eq!(bits(&factor[..n * n]), bits(&expected));
                assert_eq!(bits(&factor[2 * n * n..]), bits(&expected));
            }
        }
    }
}

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
            let (expected, _) = factor(uplo, 1, n, &clean, &Serial);
            let (factor, info) = factor(uplo, 1, n, &a, &Serial);
            assert_eq!(info, [0]);
            assert_eq!(bits(&factor), bits(&expected));
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(3, 9000), (17, 900), (40, 150), (129, 14)] {
        for uplo in UPLOS {
            let one: Vec<T> = definite::<T>(Kind::Random, n, 5).narrowed(0);
            let (expected, _) = factor(uplo, 1, n, &one, &Serial);
            let expected = bits(&expected).repeat(batch);
            for threads in [1, 2, 7] {
                let (factor, _) = factor(uplo, batch, n, &one.repeat(batch), &Spawned(threads));
                assert!(bits(&factor) == expected, "n = {n}, {threads} threads");
            }
        }
    }
}

#[test]
fn empty_matrices_report_success() {
    let (_, info) = factor::<f64>(Uplo::Lower, 3, 0, &[], &Serial);
    assert_eq!(info, [0, 0, 0]);
    assert_eq!(factor::<f64>(Uplo::Lower, 0, 3, &[], &Serial), (vec![], vec![]));
}

#[test]
fn sizes_are_checked() {
    let call = |batch, n, a: &mut [f64]| {
        potrf(Uplo::Lower, batch, n, InOut { src: None, dst: a }, &mut [], &Serial)
    };
    assert!(matches!(call(0, 1 << 31, &mut []), Err(Error::TooLarge { dimension: "n", .. })));
    assert!(matches!(call(1, 1, &mut [1.0]), Err(Error::Length { operand: "info", .. })));
}
