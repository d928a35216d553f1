//! Forward errors, which residuals do not show: values, factors and solutions in f32 beside those of the same
//! matrices in f64, and small singular values and eigenvalues beside what they are to their last digit.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::svd::Svd;
use lapax_cpu::{InOut, Serial, SingularVectors, Uplo, Vectors, cholesky, solve};
use num_complex::Complex;

use crate::backend::{BACKENDS, Backend, call};
use crate::for_each_scalar;
use crate::ratios::{Ratios, compare};
use crate::sample::{Random, Sample, times_power};

for_each_scalar!(
    diagonal_matrices_keep_their_elements,
    blocks_of_all_sizes,
    bidiagonal_matrices_keep_their_determinant,
);

/// Batches and orders: in lanes, few, and one by one; small, divided, and by a band.
const SIZES: [(usize, usize); 16] = [
    (17, 2),
    (17, 4),
    (3, 8),
    (17, 16),
    (2, 20),
    (17, 32),
    (3, 32),
    (16, 48),
    (16, 64),
    (3, 64),
    (16, 100),
    (2, 100),
    (16, 128),
    (2, 128),
    (1, 300),
    (1, 400),
];

type Real<T> = <T as Scalar>::Real;

#[test]
fn values_factors_and_solutions_of_f32() {
    compare::<f32>("forward errors", forward::<f32, f64>);
}

#[test]
fn values_factors_and_solutions_of_c64() {
    compare::<Complex<f32>>("forward errors", forward::<Complex<f32>, Complex<f64>>);
}

/// Largest errors over ε times the largest number of what was computed, for random matrices and definite ones of small
/// condition: the limits are the same for all orders.
fn forward<T: Sample<Wide = W>, W: Sample<Wide = W> + Scalar<Real = f64>>(ratios: &mut Ratios) {
    const VALUES: f64 = 16.0;
    const FACTORS: f64 = 3.0;
    const SOLUTIONS: f64 = 30.0;
    for (batch, n) in SIZES {
        let mut random = Random(n as u64);
        let mut numbers = |count: usize| -> Vec<T> {
            // Sums of four, which are near to normal.
            let number = |random: &mut Random| (0..4).fold(W::ZERO, |sum, _| sum + random.scalar());
            (0..count).map(|_| T::narrow(number(&mut random), 0)).collect()
        };
        let a = numbers(batch * n * n);
        let half = Real::<T>::from_f64(0.5);
        let hermitian: Vec<T> =
            per_matrix(n, &a, |a, i, j| (a[i + j * n] + a[j + i * n].conj()).scale(half));
        let definite: Vec<T> = per_matrix(n, &a, |a, i, j| {
            let product = (0..n)
                .fold(W::ZERO, |sum, k| sum + a[i + k * n].widen(0) * a[j + k * n].widen(0).conj());
            let one = if i == j { W::ONE } else { W::ZERO };
            T::narrow(product.scale(1.0 / n as f64) + one, 0)
        });
        let b = numbers(batch * n);
        let mut add = |backend,
                       [small, middle, large]: [&'static str; 3],
                       limit,
                       found: &[T],
                       exact: &[W]| {
            let formula = if n <= 32 {
                small
            } else if n <= 128 {
                middle
            } else {
                large
            };
            for error in errors(batch, found, exact) {
                let case = || format!("{batch} of order {n}");
                let within = error < limit || backend != Backend::Native;
                assert!(within, "{formula}, {}: {error} of {}", T::NAME, case());
                ratios.add(backend, formula, error, case);
            }
        };
        for &backend in BACKENDS {
            let w = eigenvalues::<W>(Backend::Native, Vectors::Wanted, batch, n, &wide(&hermitian));
            let values = |job| eigenvalues::<T>(backend, job, batch, n, &hermitian);
            let (alone, both) = (values(Vectors::None), values(Vectors::Wanted));
            let w = as_scalars(&w);
            add(backend, EIGENVALUES, VALUES, &as_scalars(&alone), &w);
            add(backend, EIGENVALUES_WITH_VECTORS, VALUES, &as_scalars(&both), &w);
            let (none, all) = (SingularVectors::None, SingularVectors::All);
            let s = singular_values::<W>(Backend::Native, all, false, batch, n, &wide(&a));
            let values = |job, qr| singular_values::<T>(backend, job, qr, batch, n, &a);
            let (alone, both, by_qr) = (values(none, false), values(all, false), values(all, true));
            let s = as_scalars(&s);
            add(backend, SINGULAR_VALUES, VALUES, &as_scalars(&alone), &s);
            add(backend, SINGULAR_VALUES_WITH_VECTORS, VALUES, &as_scalars(&both), &s);
            add(backend, SINGULAR_VALUES_BY_QR, VALUES, &as_scalars(&by_qr), &s);
            let l = by_columns::<W>(Backend::Native, batch, n, &wide(&definite));
            add(backend, FACTORS_OF_A, FACTORS, &by_columns(backend, batch, n, &definite), &l);
            if backend == Backend::Native {
                add(backend, FACTORS_OF_A, FACTORS, &by_rows(batch, n, &definite), &l);
                let x = solution(batch, n, &wide(&definite), &wide(&b));
                add(backend, SOLUTIONS_OF_AX_B, SOLUTIONS, &solution(batch, n, &definite, &b), &x);
            }
        }
    }
}

/// What errors are of, for orders up to 32, up to 128, and above.
macro_rules! by_order {
    ($what:literal) => {
        [
            concat!($what, ", n up to 32"),
            concat!($what, ", n from 48 to 128"),
            concat!($what, ", n = 300 and 400"),
        ]
    };
}
const EIGENVALUES: [&str; 3] = by_order!("eigenvalues alone");
const EIGENVALUES_WITH_VECTORS: [&str; 3] = by_order!("eigenvalues with vectors");
const SINGULAR_VALUES: [&str; 3] = by_order!("singular values alone");
const SINGULAR_VALUES_WITH_VECTORS: [&str; 3] = by_order!("singular values with vectors");
const SINGULAR_VALUES_BY_QR: [&str; 3] = by_order!("singular values with vectors, gesvd");
const FACTORS_OF_A: [&str; 3] = by_order!("L of A = L·Lᴴ");
const SOLUTIONS_OF_AX_B: [&str; 3] = by_order!("x of A·x = b");

/// The elements of each matrix of a batch of order n, of the matrix of another one.
fn per_matrix<T: Copy>(n: usize, a: &[T], element: impl Fn(&[T], usize, usize) -> T) -> Vec<T> {
    let of_one = |a: &[T]| (0..n * n).map(|k| element(a, k % n, k / n)).collect::<Vec<T>>();
    a.chunks_exact(n * n).flat_map(of_one).collect()
}

fn wide<T: Sample>(a: &[T]) -> Vec<T::Wide> {
    a.iter().map(|x| x.widen(0)).collect()
}

fn as_scalars<T: Scalar>(values: &[Real<T>]) -> Vec<T> {
    values.iter().map(|&x| T::from_real(x)).collect()
}

/// For each of a batch the largest error, over ε and the largest number.
fn errors<T: Sample>(batch: usize, found: &[T], exact: &[T::Wide]) -> Vec<f64> {
    let length = exact.len() / batch;
    let matrices = found.chunks_exact(length).zip(exact.chunks_exact(length));
    matrices
        .map(|(found, exact)| {
            let largest = exact.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
            let error = found.iter().zip(exact).fold(0.0, |worst, (x, &y)| {
                let error = (x.widen(0) - y).abs();
                // Unlike f64::max, this keeps a NaN.
                if error <= worst { worst } else { error }
            });
            error / (largest * T::epsilon())
        })
        .collect()
}

fn eigenvalues<T: Sample>(
    backend: Backend,
    job: Vectors,
    batch: usize,
    n: usize,
    a: &[T],
) -> Vec<Real<T>> {
    let mut v = a.to_vec();
    let (mut w, mut info) = (vec![T::nan().re(); batch * n], vec![-7; batch]);
    let a = InOut { src: None, dst: &mut v };
    let (values, infos) = (&mut w[..], &mut info[..]);
    call!(backend, eigh::syevd(job, Uplo::Lower, batch, n, a, values, infos, &Serial)).unwrap();
    assert!(info.iter().all(|&info| info == 0));
    w
}

fn singular_values<T: Sample>(
    backend: Backend,
    job: SingularVectors,
    qr: bool,
    batch: usize,
    n: usize,
    a: &[T],
) -> Vec<Real<T>> {
    let mut a = a.to_vec();
    let (mut s, mut info) = (vec![T::nan().re(); batch * n], vec![-7; batch]);
    let length = if job == SingularVectors::None { 0 } else { batch * n * n };
    let (mut u, mut vt) = (vec![T::nan(); length], vec![T::nan(); length]);
    let a = InOut { src: None, dst: &mut a };
    let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
    if qr {
        call!(backend, svd::gesvd(job, batch, n, n, a, results, &Serial)).unwrap();
    } else {
        call!(backend, svd::gesdd(job, batch, n, n, a, results, &Serial)).unwrap();
    }
    assert!(info.iter().all(|&info| info == 0));
    s
}

/// L, whose matrix lies by columns; zeros above it.
fn by_columns<T: Sample>(backend: Backend, batch: usize, n: usize, a: &[T]) -> Vec<T> {
    let (mut l, mut info) = (a.to_vec(), vec![-7; batch]);
    let a = InOut { src: None, dst: &mut l };
    call!(backend, cholesky::potrf(Uplo::Lower, batch, n, a, &mut info, &Serial)).unwrap();
    assert!(info.iter().all(|&info| info == 0));
    per_matrix(n, &l, |l, i, j| if i < j { T::ZERO } else { l[i + j * n] })
}

/// The same by rows, and then put by columns.
fn by_rows<T: Sample>(batch: usize, n: usize, a: &[T]) -> Vec<T> {
    let transposed = |a: &[T]| per_matrix(n, a, |a, i, j| a[j + i * n]);
    let mut l = transposed(a);
    cholesky::cholesky(false, batch, n, InOut { src: None, dst: &mut l }, &Serial).unwrap();
    transposed(&l)
}

fn solution<T: Sample>(batch: usize, n: usize, a: &[T], b: &[T]) -> Vec<T> {
    let mut x = vec![T::nan(); b.len()];
    solve::solve(batch, n, 1, a, b, &mut x, &Serial).unwrap();
    x
}

/// Powers of two from 1 down to the least number, in and out of the normal range, of so many.
fn powers<T: Sample>(count: usize) -> Vec<i32> {
    let least = T::DENORMAL_EXPONENT;
    let usual = [0, -7, least / 5, least / 3, least / 2, T::MIN_EXPONENT, least + 3];
    (0..count)
        .map(|i| usual[i % usual.len()] + i32::try_from(i / usual.len()).unwrap() % 3)
        .collect()
}

/// n × n matrices of a batch, each element by row and column, times two to a power.
fn matrices<T: Sample>(
    batch: usize,
    n: usize,
    element: impl Fn(usize, usize, usize) -> (f64, i32),
) -> Vec<T> {
    let of_one = |b: usize| {
        let element = &element;
        (0..n * n).map(move |k| {
            let (x, exponent) = element(b, k % n, k / n);
            T::from_f64(times_power(x, exponent))
        })
    };
    (0..batch).flat_map(of_one).collect()
}

/// Asserts that all routes find these values of each matrix of a batch, the largest first, with a relative error of
/// `limit` roundings.
fn assert_values<T: Sample>(batch: usize, n: usize, a: &[T], values: &[Vec<f64>], limit: f64) {
    let relative = |found: &[Real<T>], what: &str| {
        for (found, values) in found.chunks_exact(n).zip(values) {
            let mut found: Vec<f64> = found.iter().map(|x| x.to_f64()).collect();
            found.sort_by(|x, y| y.total_cmp(x));
            for (x, y) in found.iter().zip(values) {
                // Below the normal range a rounding is half of the least number.
                let least = times_power(1.0, T::DENORMAL_EXPONENT);
                let allowed = (limit * y.abs() * T::epsilon()).max(limit / 2.0 * least);
                assert!(
                    (x - y).abs() <= allowed,
                    "{what} of {batch} of order {n}, {}: {x:e} is not {y:e}",
                    T::NAME
                );
            }
        }
    };
    for job in [SingularVectors::None, SingularVectors::Thin] {
        for qr in [false, true] {
            relative(
                &singular_values(Backend::Native, job, qr, batch, n, a),
                &format!("{job:?}, QR {qr}"),
            );
        }
    }
    for job in [Vectors::None, Vectors::Wanted] {
        relative(&eigenvalues(Backend::Native, job, batch, n, a), &format!("eigenvalues, {job:?}"));
    }
}

fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(|x, y| y.total_cmp(x));
    values
}

/// diag(1, 10⁻², 10⁻³⁰) and its kin, in any order, with denormal elements, and with a norm that is far from 1.
fn diagonal_matrices_keep_their_elements<T: Sample>() {
    for (batch, n) in SIZES.into_iter().filter(|&(_, n)| n <= 128) {
        let powers = powers::<T>(n);
        for norm in [0, 9] {
            let at = |b: usize, i: usize| powers[(i + b) % n];
            let exponent = |b: usize, i: usize| {
                if at(b, i) == 0 { norm } else { at(b, i) }
            };
            let element = |b, i, j| if i == j { (1.0, exponent(b, i)) } else { (0.0, 0) };
            let a = matrices::<T>(batch, n, element);
            let of_one = |b| (0..n).map(|i| times_power(1.0, exponent(b, i))).collect();
            let values: Vec<_> = (0..batch).map(|b| descending(of_one(b))).collect();
            assert_values(batch, n, &a, &values, 1.0);
        }
    }
}

/// [3 1; 1 3] times powers of two, whose values are 4 and 2 times those.
fn blocks_of_all_sizes<T: Sample>() {
    for (batch, n) in SIZES.into_iter().filter(|&(_, n)| n <= 128) {
        let powers = powers::<T>(n / 2);
        let at = |b: usize, i: usize| powers[(i + b) % (n / 2)];
        let element = |b, i: usize, j: usize| match (i / 2 == j / 2, i == j) {
            (false, _) => (0.0, 0),
            (true, true) => (3.0, at(b, i / 2)),
            (true, false) => (1.0, at(b, i / 2)),
        };
        let a = matrices::<T>(batch, n, element);
        let of_one = |b| {
            let pair = |i| [4.0, 2.0].map(|x| times_power(x, at(b, i)));
            (0..n / 2).flat_map(pair).collect()
        };
        let values: Vec<_> = (0..batch).map(|b| descending(of_one(b))).collect();
        assert_values(batch, n, &a, &values, 8.0);
    }
}

/// The product of the singular values is that of the diagonal, whatever stands beside it, so that no small one may be
/// wrong; in either order of size, on all routes but divide and conquer, which has LAPACK's own limits.
fn bidiagonal_matrices_keep_their_determinant<T: Sample>() {
    for (batch, n) in SIZES {
        for (job, qr) in [
            (SingularVectors::None, false),
            (SingularVectors::Thin, false),
            (SingularVectors::Thin, true),
        ] {
            let in_lanes = n <= 32 || batch >= 8 && !(T::IS_COMPLEX && n > 64);
            if job == SingularVectors::Thin && !qr && !in_lanes || n > 128 {
                continue;
            }
            for turned in [false, true] {
                // From 1 down to 10⁻¹⁰ in f32 and 10⁻⁸⁰ in f64.
                let step = f64::from(T::MIN_EXPONENT) / 4.0 / n as f64;
                let size = |i: usize| {
                    let i = if turned { n - 1 - i } else { i };
                    (step * i as f64).exp2()
                };
                let mut random = Random(n as u64);
                let numbers: Vec<f64> =
                    (0..2 * n * batch).map(|_| 1.25 + 0.5 * random.real()).collect();
                let element = |b: usize, i: usize, j: usize| {
                    let at = 2 * (b * n + i);
                    let x = match j.wrapping_sub(i) {
                        0 => numbers[at] * size(i),
                        // As small as the row, or as large as the column.
                        1 => numbers[at + 1] * size(if b.is_multiple_of(2) { i } else { j }),
                        _ => 0.0,
                    };
                    (x, 0)
                };
                let a = matrices::<T>(batch, n, element);
                let s = singular_values(Backend::Native, job, qr, batch, n, &a);
                for (b, s) in s.chunks_exact(n).enumerate() {
                    let exact = (0..n).map(|i| a[b * n * n + i * (n + 1)].re().to_f64());
                    let exact = product(exact);
                    let found = product(s.iter().map(|s| s.to_f64()));
                    let exponents = f64::from(found.1 - exact.1);
                    let difference = ((found.0 / exact.0).log2() + exponents).abs();
                    let limit = 4.0 * n as f64 * (n as f64).sqrt() * T::epsilon();
                    assert!(
                        difference < limit,
                        "{job:?}, QR {qr}, {batch} of order {n}, {}: {difference:e}, {limit:e}",
                        T::NAME
                    );
                }
            }
        }
    }
}

/// A product of positive numbers, as a number from 1 to 2 and a power of two.
fn product(numbers: impl Iterator<Item = f64>) -> (f64, i32) {
    const BIAS: u64 = 1023;
    let split = |x: f64| {
        let exponent = x.to_bits() >> 52;
        let fraction = f64::from_bits(x.to_bits() - (exponent << 52) + (BIAS << 52));
        (fraction, i32::try_from(exponent).unwrap() - i32::try_from(BIAS).unwrap())
    };
    numbers.fold((1.0, 0), |(product, power), x| {
        let (fraction, exponent) = split(x);
        let (product, carry) = split(product * fraction);
        (product, power + exponent + carry)
    })
}
