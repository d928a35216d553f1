//! syevd: ‖A·V − V·diag(w)‖ / (n·‖A‖·ε), ‖VᴴV − I‖ / (n·ε), order, what is not read, NaN, and the
//! same bits everywhere.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::{InOut, Serial, Spawned, Threads, Uplo, Vectors, eigh};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, hermitian, matrix};
use crate::matrix::{Matrix, departure, ratio};
use crate::ratios::{LIMIT, Ratios, compare};
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, values_of_large_ones, hermitian_parts);
for_each_backend!(
    eigenvalues_of_known_matrices,
    not_finite_gives_nan,
    same_bits_everywhere,
    by_rows,
    a_part_by_rows
);

type Real<T> = <T as Scalar>::Real;

/// What a call returns, the numbers in `w` as one type for all scalars.
#[derive(Debug, PartialEq)]
struct Decomposed<T: Scalar> {
    v: Vec<T>,
    w: Vec<Real<T>>,
    info: Vec<i32>,
}

fn decompose<T: Sample>(
    backend: Backend,
    job: Vectors,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> Decomposed<T> {
    let nan = T::nan().re();
    let mut v = a.to_vec();
    let (mut w, mut info) = (vec![nan; batch * n], vec![-7; batch]);
    let aliased = InOut { src: None, dst: &mut v };
    call!(backend, eigh::syevd(job, uplo, batch, n, aliased, &mut w, &mut info, threads)).unwrap();

    let mut other = vec![T::nan(); a.len()];
    let (mut other_w, mut other_info) = (vec![nan; batch * n], vec![-7; batch]);
    let copied = InOut { src: Some(a), dst: &mut other };
    let (ws, infos) = (&mut other_w, &mut other_info);
    call!(backend, eigh::syevd(job, uplo, batch, n, copied, ws, infos, threads)).unwrap();
    // Without vectors, what is left there has no meaning.
    assert!(job == Vectors::None || bits(&v) == bits(&other), "aliased and copied calls differ");
    let real = |w: &[Real<T>]| bits(&w.iter().map(|&w| T::from_real(w)).collect::<Vec<T>>());
    assert!(real(&w) == real(&other_w), "aliased and copied calls differ");
    assert_eq!(info, other_info);
    Decomposed { v, w, info }
}

/// Whether an element is in the triangle.
pub(crate) fn is_in(uplo: Uplo, i: usize, j: usize) -> bool {
    if uplo == Uplo::Lower { i >= j } else { i <= j }
}

/// The matrix rounded to T, with NaN outside the triangle.
pub(crate) fn stored<T: Sample>(a: &Matrix<T::Wide>, uplo: Uplo, exponent: i32) -> Vec<T> {
    let mut stored = a.narrowed::<T>(exponent);
    for (i, x) in stored.iter_mut().enumerate() {
        if !is_in(uplo, i % a.rows, i / a.rows) {
            *x = T::nan();
        }
    }
    stored
}

/// The Hermitian matrix whose triangle is stored, in the wide type.
pub(crate) fn completed<T: Sample>(
    n: usize,
    stored: &[T],
    uplo: Uplo,
    exponent: i32,
) -> Matrix<T::Wide> {
    let a = Matrix::widened(n, stored, exponent);
    Matrix::new(n, n, |i, j| {
        if i == j {
            <T::Wide as Scalar>::from_real(a.at(i, i).re())
        } else if is_in(uplo, i, j) {
            a.at(i, j)
        } else {
            a.at(j, i).conj()
        }
    })
}

fn residual<T: Sample>() {
    compare::<T>("syevd", |ratios| {
        for (n, _, kind, seeds) in sweep::batches_of(sweep::squares()) {
            let exponent = kind.exponent::<T>();
            ratios.met(kind);
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let one = |&seed| stored::<T>(&hermitian::<T>(kind, n, seed), uplo, exponent);
                let a: Vec<T> = seeds.iter().flat_map(one).collect();
                for &backend in BACKENDS {
                    let call = |job| decompose(backend, job, uplo, seeds.len(), n, &a, &Serial);
                    let (both, values) = (call(Vectors::Wanted), call(Vectors::None));
                    for b in 0..seeds.len() {
                        let item = b * n * n..(b + 1) * n * n;
                        let w = [&both, &values].map(|found| &found.w[b * n..(b + 1) * n]);
                        let matrix = completed(n, &a[item.clone()], uplo, -exponent);
                        let case = || format!("{kind:?} {uplo:?} n = {n}");
                        let infos = [both.info[b], values.info[b]];
                        assert!(infos == [0, 0] || backend != Backend::Native, "{}", case());
                        check::<T>(ratios, backend, (&matrix, -exponent), &both.v[item], w, case);
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

/// Adds the ratios of one matrix, times two to a power, whose eigenvalues were computed with vectors
/// and without.
fn check<T: Sample>(
    ratios: &mut Ratios,
    backend: Backend,
    (a, exponent): (&Matrix<T::Wide>, i32),
    v: &[T],
    w: [&[Real<T>]; 2],
    case: impl Fn() -> String,
) {
    let n = a.rows;
    let v = Matrix::widened(n, v, 0);
    let widen = |w: &[Real<T>]| -> Vec<f64> {
        w.iter().map(|&w| T::from_real(w).widen(exponent).re()).collect()
    };
    let [w, alone] = w.map(widen);
    for w in [&w, &alone] {
        let ascending = w.windows(2).all(|w| w[0] <= w[1]);
        assert!(ascending || backend != Backend::Native, "{} {w:?}", case());
    }
    let vw = Matrix::new(n, n, |i, j| v.at(i, j).scale(w[j]));
    let error = a.times(&v).minus(&vw).norm();
    ratios.add(backend, "A·V − V·W", ratio::<T>(error, n, a.norm(), exponent), &case);
    ratios.add(backend, "VᴴV − I", departure::<T>(&v), &case);
    let errors = w.iter().zip(&alone).map(|(w, x)| (w - x).abs());
    // Unlike f64::max, this keeps a NaN.
    let error = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
    ratios.add(backend, "W − W alone", ratio::<T>(error, n, a.norm(), exponent), &case);
}

/// Large matrices, of which eigenvalues alone are found column by column, and from 4 MB on by a band: they are those
/// that come with vectors, and the same on all threads.
fn values_of_large_ones<T: Sample>() {
    const BAND: usize = 4 << 20;
    let least = (1..).find(|n| n * n * size_of::<T>() >= BAND).unwrap();
    let random = [520, least, least + 3].map(|n| (n, Kind::Random));
    let cases = [321, 323, 325].into_iter().flat_map(sweep::kinds_of).chain(random);
    for (n, kind) in cases {
        let exponent = kind.exponent::<T>();
        let a = stored::<T>(&hermitian::<T>(kind, n, 1), Uplo::Upper, exponent);
        let on = |job, threads: &dyn Threads| {
            decompose(Backend::Native, job, Uplo::Upper, 1, n, &a, threads)
        };
        let (both, alone) = (on(Vectors::Wanted, &Serial), on(Vectors::None, &Serial));
        assert_eq!((&both.info[..], &alone.info[..]), (&[0][..], &[0][..]), "{kind:?} n = {n}");
        let shared = on(Vectors::None, &Spawned(3));
        assert!(shared.w == alone.w && shared.info == [0], "{kind:?} n = {n}");
        let norm = completed::<T>(n, &a, Uplo::Upper, -exponent).norm();
        for (w, x) in both.w.iter().zip(&alone.w) {
            let [w, x] = [w, x].map(|&w| T::from_real(w).widen(-exponent).re());
            let ratio = ratio::<T>((w - x).abs(), n, norm, -exponent);
            assert!(ratio < LIMIT, "{ratio}: {kind:?} n = {n}");
        }
    }
}

fn eigenvalues_of_known_matrices<T: Sample>(backend: Backend) {
    for n in [1, 2, 3, 5, 40, 64, 100] {
        // The second difference: 2 − 2·cos(kπ/(n + 1)). Zero, the identity, and a diagonal matrix.
        let second = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let step = std::f64::consts::PI / (n + 1) as f64;
        let size = n as f64;
        let diagonal: Vec<f64> = (0..n).map(|i| (i * 7 % n) as f64 - size / 2.0).collect();
        let mut ascending = diagonal.clone();
        ascending.sort_by(f64::total_cmp);
        type Element<'a> = &'a dyn Fn(usize, usize) -> f64;
        let cases: [(Element<'_>, Vec<f64>); 4] = [
            (&second, (1..=n).map(|k| 2.0 - 2.0 * (k as f64 * step).cos()).collect()),
            (&|_, _| 0.0, vec![0.0; n]),
            (&|i, j| if i == j { 1.0 } else { 0.0 }, vec![1.0; n]),
            (&|i, j| if i == j { diagonal[i] } else { 0.0 }, ascending),
        ];
        for (element, expected) in cases {
            let a: Vec<T> = (0..n * n).map(|k| T::from_f64(element(k % n, k / n))).collect();
            for job in [Vectors::Wanted, Vectors::None] {
                let result = decompose(backend, job, Uplo::Lower, 1, n, &a, &Serial);
                assert_eq!(result.info, [0]);
                for (w, x) in result.w.iter().zip(&expected) {
                    let error = (w.to_f64() - x).abs();
                    assert!(error <= 10.0 * size * <T as Sample>::epsilon() * 4.0_f64.max(size));
                }
            }
        }
    }
}

fn not_finite_gives_nan<T: Sample>(backend: Backend) {
    for n in [1, 3, 33, 70] {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let clean: Vec<T> = (0..3)
                .flat_map(|seed| stored::<T>(&hermitian::<T>(Kind::Random, n, seed), uplo, 0))
                .collect();
            for job in [Vectors::Wanted, Vectors::None] {
                let expected = decompose(backend, job, uplo, 3, n, &clean, &Serial);
                for (i, bad) in [(0, f64::NAN), (n - 1, f64::INFINITY), (n / 2, -f64::INFINITY)] {
                    let mut a = clean.clone();
                    let (row, column) = if uplo == Uplo::Lower { (n - 1, i) } else { (i, n - 1) };
                    a[n * n + row + column * n] = T::from_f64(bad);
                    let result = decompose(backend, job, uplo, 3, n, &a, &Serial);
                    assert_eq!(result.info, [0, -4, 0]);
                    assert!(result.w[n..2 * n].iter().all(|&w| Scalar::is_nan(w)));
                    assert!(result.v[n * n..2 * n * n].iter().all(|&v| Scalar::is_nan(v)));
                    for b in [0, 2] {
                        let item = b * n * n..(b + 1) * n * n;
                        assert!(bits(&result.v[item.clone()]) == bits(&expected.v[item]));
                        assert!(result.w[b * n..(b + 1) * n] == expected.w[b * n..(b + 1) * n]);
                    }
                }
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    // From order 33 on a batch below eight goes one by one.
    for (n, batch, few) in [(3, 3000, FEW), (17, 200, FEW), (40, 32, 8), (65, 16, 8), (129, 16, 8)]
    {
        let one = stored::<T>(&hermitian::<T>(Kind::Random, n, 5), Uplo::Lower, 0);
        let all = one.repeat(batch);
        for job in [Vectors::Wanted, Vectors::None] {
            let some = one.repeat(few);
            let expected = decompose(backend, job, Uplo::Lower, few, n, &some, &Serial);
            for threads in [1, 2, 7] {
                let result =
                    decompose(backend, job, Uplo::Lower, batch, n, &all, &Spawned(threads));
                assert!(
                    bits(&result.v) == bits(&expected.v).repeat(batch / few),
                    "{threads} threads"
                );
                assert!(result.w == expected.w.repeat(batch / few));
            }
        }
    }
    // One that threads share.
    let n = 200;
    let one = stored::<T>(&hermitian::<T>(Kind::Random, n, 5), Uplo::Lower, 0);
    let on = |threads: &dyn Threads| {
        decompose(backend, Vectors::Wanted, Uplo::Lower, 1, n, &one, threads)
    };
    let alone = on(&Serial);
    for threads in [2, 7] {
        let shared = on(&Spawned(threads));
        assert!(bits(&shared.v) == bits(&alone.v) && shared.w == alone.w, "{threads} threads");
    }
}

/// Exact, whatever the order and the threads.
fn hermitian_parts<T: Sample>() {
    for (n, batch) in
        [(1, 9), (3, 9), (8, 2), (17, 3), (40, 3), (70, 1), (131, 1), (460, 1), (449, 2)]
    {
        let a: Vec<T> = (0..batch as u64)
            .flat_map(|seed| matrix::<T>(Kind::Random, n, n, seed).narrowed::<T>(0))
            .collect();
        let mut parts = [vec![T::nan(); a.len()], vec![T::nan(); a.len()]];
        let [alone, shared] = &mut parts;
        eigh::symmetrize(batch, n, &a, alone, &Serial).unwrap();
        eigh::symmetrize(batch, n, &a, shared, &Spawned(3)).unwrap();
        for (p, &x) in parts[0].iter().enumerate() {
            let (i, j) = (p % (n * n) / n, p % n);
            let mean = (a[p] + a[p - i * n - j + j * n + i].conj()).scale(T::Real::from_f64(0.5));
            assert!(x == mean, "n = {n}: {i}, {j}");
        }
        assert!(parts[0] == parts[1], "n = {n}");
    }
}

/// Row-major matrices, of which one of a batch is not finite: A·V = V·diag(w), VᴴV = I, and the values alone.
fn by_rows<T: Sample>(backend: Backend) {
    for (n, batch) in [(1, 9), (1, 2), (3, 9), (5, 2), (17, 9), (32, 1), (33, 2), (70, 1), (200, 1)]
    {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let what = format!("{uplo:?} n = {n}, {batch} of them");
            let matrices: Vec<_> = (0..batch as u64)
                .map(|seed| stored::<T>(&hermitian::<T>(Kind::Random, n, seed), uplo, 0))
                .collect();
            let mut rows: Vec<T> =
                matrices.iter().flat_map(|a| (0..n * n).map(|p| a[p % n * n + p / n])).collect();
            let bad = (batch > 1).then_some(1);
            if let Some(bad) = bad {
                rows[(bad + 1) * n * n - 1] = T::from_f64(f64::INFINITY);
            }
            let nan = T::nan().re();
            let decompose = |v: InOut<'_, T>, threads: &dyn Threads| {
                let mut w = vec![nan; batch * n];
                call!(backend, eigh::eigh(uplo, batch, n, v, &mut w, threads)).unwrap();
                w
            };
            let mut v = rows.clone();
            let w = decompose(InOut { src: None, dst: &mut v }, &Spawned(3));
            let mut copied = vec![T::nan(); rows.len()];
            let copied_w = decompose(InOut { src: Some(&rows), dst: &mut copied }, &Serial);
            assert!(bits(&v) == bits(&copied), "{what}: aliased and copied calls differ");
            let mut alone = vec![nan; batch * n];
            let all = &mut alone[..];
            call!(backend, eigh::eigvalsh(uplo, batch, n, &rows, all, &Spawned(3))).unwrap();
            for (b, a) in matrices.iter().enumerate() {
                let v: Vec<T> = (0..n * n).map(|p| v[b * n * n + p % n * n + p / n]).collect();
                let [w, copied_w, alone] = [&w, &copied_w, &alone].map(|w| &w[b * n..(b + 1) * n]);
                if Some(b) == bad {
                    assert!(v.iter().all(|&v| Scalar::is_nan(v)), "{what}");
                    let values = w.iter().chain(copied_w).chain(alone);
                    assert!(values.into_iter().all(|&w| Scalar::is_nan(w)), "{what}");
                    continue;
                }
                assert!(w == copied_w, "{what}: aliased and copied calls differ");
                let a = completed::<T>(n, a, uplo, 0);
                let v = Matrix::widened(n, &v, 0);
                let [w, alone] = [w, alone].map(|w| -> Vec<f64> {
                    w.iter().map(|&w| T::from_real(w).widen(0).re()).collect()
                });
                let vw = Matrix::new(n, n, |i, j| v.at(i, j).scale(w[j]));
                let error = a.times(&v).minus(&vw).norm();
                let beside = w.iter().zip(&alone).fold(0.0, |sum: f64, (w, x)| sum + (w - x).abs());
                let ratios = [error, beside].map(|error| ratio::<T>(error, n, a.norm(), 0));
                assert!(ratios.iter().all(|&ratio| ratio < LIMIT), "{what}: {ratios:?}");
                assert!(departure::<T>(&v) < LIMIT, "{what}");
                assert!([&w, &alone].iter().all(|w| w.is_sorted()), "{what}: {w:?}");
            }
        }
    }
}

/// Some of the eigenvectors of row-major matrices, of which one of a batch is not finite, beside all values.
fn a_part_by_rows<T: Sample>(backend: Backend) {
    let sizes = [(1, 2), (3, 9), (20, 1), (40, 2), (70, 9), (200, 1), (300, 1)];
    for (n, batch) in sizes {
        let matrices: Vec<_> = (0..batch as u64)
            .map(|seed| stored::<T>(&hermitian::<T>(Kind::Random, n, seed), Uplo::Upper, 0))
            .collect();
        let mut rows: Vec<T> =
            matrices.iter().flat_map(|a| (0..n * n).map(|p| a[p % n * n + p / n])).collect();
        let bad = (batch > 1).then_some(1);
        if let Some(bad) = bad {
            rows[(bad + 1) * n * n - 1] = T::from_f64(f64::INFINITY);
        }
        let nan = T::nan().re();
        let mut all = vec![nan; batch * n];
        let values = &mut all[..];
        call!(backend, eigh::eigvalsh(Uplo::Upper, batch, n, &rows, values, &Serial)).unwrap();
        for part in [0..n, 0..0, 0..1, n / 3..n / 2 + 1, n - 1..n] {
            let what = format!("{part:?} of n = {n}, {batch} of them");
            let k = part.len();
            let decompose = |threads: &dyn Threads| {
                let (mut v, mut w) = (vec![T::nan(); batch * n * k], vec![nan; batch * k]);
                let (uplo, part, vs, ws) = (Uplo::Upper, part.clone(), &mut v[..], &mut w[..]);
                call!(backend, eigh::eigh_subset(uplo, batch, n, part, &rows, vs, ws, threads))
                    .unwrap();
                (v, w)
            };
            let (v, w) = decompose(&Spawned(3));
            let (alone, alone_w) = decompose(&Serial);
            assert!(bits(&v) == bits(&alone), "{what}: threads change bits");
            for (b, a) in matrices.iter().enumerate() {
                let v: Vec<T> = (0..n * k).map(|p| v[b * n * k + p % n * k + p / n]).collect();
                let [w, alone_w] = [&w, &alone_w].map(|w| &w[b * k..(b + 1) * k]);
                if Some(b) == bad {
                    assert!(v.iter().all(|&v| Scalar::is_nan(v)), "{what}");
                    assert!(w.iter().all(|&w| Scalar::is_nan(w)), "{what}");
                    continue;
                }
                assert!(w == alone_w, "{what}: threads change values");
                let a = completed::<T>(n, a, Uplo::Upper, 0);
                let v = Matrix::widened(n, &v, 0);
                let values = |w: &[Real<T>]| -> Vec<f64> {
                    w.iter().map(|&w| T::from_real(w).widen(0).re()).collect()
                };
                let (w, all) = (values(w), values(&all[b * n..][part.clone()]));
                let vw = Matrix::new(n, k, |i, j| v.at(i, j).scale(w[j]));
                let error = a.times(&v).minus(&vw).norm();
                let beside = w.iter().zip(&all).fold(0.0, |sum: f64, (w, x)| sum + (w - x).abs());
                let ratios = [error, beside].map(|error| ratio::<T>(error, n, a.norm(), 0));
                assert!(ratios.iter().all(|&ratio| ratio < LIMIT), "{what}: {ratios:?}");
                assert!(departure::<T>(&v) < LIMIT, "{what}");
            }
        }
    }
}
