//! gesdd and gesvd: ‖A − U·diag(s)·Vᴴ‖ / (max(m, n)·‖A‖·ε), ‖UᴴU − I‖ / (m·ε), ‖V·Vᴴ − I‖ / (n·ε),
//! order, all modes, NaN, and the same bits everywhere.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::svd::Svd;
use lapax_cpu::{InOut, Serial, SingularVectors, Spawned, Threads};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, departure, ratio};
use crate::ratios::{LIMIT, Ratios, compare};
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(gesdd, gesvd, values_by_a_band, one_matrix_on_threads);
for_each_backend!(
    known_singular_values,
    not_finite_gives_nan,
    same_bits_everywhere,
    by_rows,
    a_part_by_rows
);

type Real<T> = <T as Scalar>::Real;

/// What a call returns.
#[derive(Debug)]
struct Decomposed<T: Scalar> {
    s: Vec<Real<T>>,
    u: Vec<T>,
    vt: Vec<T>,
    info: Vec<i32>,
}

/// A call, with the shape of its matrices.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// gesvd if not gesdd.
    qr: bool,
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
}

impl Shape {
    fn factors(self) -> (usize, usize) {
        let k = self.m.min(self.n);
        if self.job == SingularVectors::All { (self.m, self.n) } else { (k, k) }
    }

    fn decompose<T: Sample>(
        self,
        backend: Backend,
        a: &[T],
        threads: &dyn Threads,
    ) -> Decomposed<T> {
        let Shape { qr, job, batch, m, n } = self;
        let (u_cols, vt_rows) = self.factors();
        let nan = T::nan();
        let mut result = Decomposed {
            s: vec![nan.re(); batch * m.min(n)],
            u: vec![nan; batch * m * u_cols],
            vt: vec![nan; batch * vt_rows * n],
            info: vec![-7; batch],
        };
        let mut scratch = vec![nan; a.len()];
        let a = InOut { src: Some(a), dst: &mut scratch };
        let Decomposed { s, u, vt, info } = &mut result;
        let results = Svd { s, u, vt, info };
        if qr {
            call!(backend, svd::gesvd(job, batch, m, n, a, results, threads)).unwrap();
        } else {
            call!(backend, svd::gesdd(job, batch, m, n, a, results, threads)).unwrap();
        }
        result
    }
}

fn gesdd<T: Sample>() {
    compare::<T>("gesdd", |ratios| residual::<T>(ratios, false));
}

fn gesvd<T: Sample>() {
    compare::<T>("gesvd", |ratios| residual::<T>(ratios, true));
}

fn residual<T: Sample>(ratios: &mut Ratios, qr: bool) {
    const JOBS: [SingularVectors; 3] =
        [SingularVectors::All, SingularVectors::Thin, SingularVectors::None];
    let shapes = sweep::shapes().into_iter().chain([(160, 70), (70, 160)]).collect();
    for (m, n, kind, seeds) in sweep::batches_of(shapes) {
        let exponent = kind.exponent::<T>();
        let one = |&seed| matrix::<T>(kind, m, n, seed).narrowed::<T>(exponent);
        let a: Vec<T> = seeds.iter().flat_map(one).collect();
        ratios.met(kind);
        for &backend in BACKENDS {
            let shape = |job| Shape { qr, job, batch: seeds.len(), m, n };
            let found = JOBS.map(|job| shape(job).decompose(backend, &a, &Serial));
            for b in 0..seeds.len() {
                let case = |job| move || format!("{kind:?} {job:?} {m} x {n}");
                let matrix = Matrix::widened(m, &a[b * m * n..(b + 1) * m * n], -exponent);
                let case_of = (backend, &matrix, -exponent);
                let part = |k: usize| b * m.min(n)..b * m.min(n) + k;
                let s = [0, 1, 2].map(|i: usize| &found[i].s[part(m.min(n))]);
                for (job, found) in JOBS.into_iter().zip(&found) {
                    let good = found.info[b] == 0 || backend != Backend::Native;
                    assert!(good, "{}: {}", case(job)(), found.info[b]);
                    if job != SingularVectors::None {
                        check(ratios, case_of, shape(job), (b, found), case(job));
                    }
                }
                // The values alone are those that come with vectors.
                check_values::<T>(ratios, case_of, s, case(SingularVectors::None));
            }
        }
    }
    ratios.assert_every_kind();
}

/// A backend, and a matrix times two to a power.
type Wide = num_complex::Complex<f64>;
type Case<'a, T> = (Backend, &'a Matrix<<T as Sample>::Wide>, i32);

/// Adds the ratios of matrix b of a batch.
fn check<T: Sample>(
    ratios: &mut Ratios,
    (backend, a, exponent): Case<'_, T>,
    shape: Shape,
    (b, found): (usize, &Decomposed<T>),
    case: impl Fn() -> String,
) {
    let (Shape { m, n, .. }, (u_cols, vt_rows)) = (shape, shape.factors());
    let k = m.min(n);
    let (u, vt) = (&found.u[b * m * u_cols..], &found.vt[b * vt_rows * n..]);
    let u = Matrix::new(m, u_cols, |i, j| u[i + j * m].widen(0));
    let vt = Matrix::new(vt_rows, n, |i, j| vt[i + j * vt_rows].widen(0));
    ratios.add(backend, "UᴴU − I", departure::<T>(&u), &case);
    ratios.add(backend, "V·Vᴴ − I", departure::<T>(&vt.adjoint()), &case);
    if k > 0 {
        let s = widened::<T>(&found.s[b * k..(b + 1) * k], exponent);
        let us = Matrix::new(m, k, |i, j| u.at(i, j).scale(s[j]));
        let error = us.times(&Matrix::new(k, n, |i, j| vt.at(i, j))).minus(a).norm();
        let ratio = ratio::<T>(error, m.max(n), a.norm(), exponent);
        ratios.add(backend, "U·S·Vᴴ − A", ratio, &case);
    }
}

/// Adds how far the values alone are from those that come with all vectors, with those that come
/// with some in between; all descend.
fn check_values<T: Sample>(
    ratios: &mut Ratios,
    (backend, a, exponent): Case<'_, T>,
    s: [&[Real<T>]; 3],
    case: impl Fn() -> String,
) {
    let s = s.map(|s| widened::<T>(s, exponent));
    for s in &s {
        let descend = s.windows(2).all(|s| s[0] >= s[1]) && s.iter().all(|&s| s >= 0.0);
        assert!(descend || backend != Backend::Native, "{} {s:?}", case());
    }
    let [all, thin, alone] = &s;
    for (x, (y, z)) in alone.iter().zip(all.iter().zip(thin)) {
        for error in [(x - y).abs(), (x - z).abs()] {
            let ratio = ratio::<T>(error, a.rows.max(a.cols), a.norm(), exponent);
            ratios.add(backend, "S − S alone", ratio, &case);
        }
    }
}

fn widened<T: Sample>(s: &[Real<T>], exponent: i32) -> Vec<f64> {
    s.iter().map(|&s| T::from_real(s).widen(exponent).re()).collect()
}

fn known_singular_values<T: Sample>(backend: Backend) {
    for n in [1, 2, 3, 8, 40, 64, 100] {
        // Zero, the identity, a signed permutation of falling numbers, a single row and column.
        let size = n as f64;
        let falling: Vec<f64> = (0..n).map(|i| 0.5_f64.powi(i32::try_from(i).unwrap())).collect();
        type Element<'a> = &'a dyn Fn(usize, usize) -> f64;
        let mut alone = vec![0.0; n];
        alone[0] = size;
        let cases: [(Element<'_>, Vec<f64>); 4] = [
            (&|_, _| 0.0, vec![0.0; n]),
            (&|i, j| if i == j { -1.0 } else { 0.0 }, vec![1.0; n]),
            (&|i, j| if i + j + 1 == n { -falling[j] } else { 0.0 }, falling.clone()),
            (&|_, _| 1.0, alone),
        ];
        for (element, expected) in cases {
            let a: Vec<T> = (0..n * n).map(|k| T::from_f64(element(k % n, k / n))).collect();
            for (qr, job) in [false, true].into_iter().flat_map(|qr| {
                [SingularVectors::All, SingularVectors::Thin, SingularVectors::None]
                    .map(|job| (qr, job))
            }) {
                let shape = Shape { qr, job, batch: 1, m: n, n };
                let result = shape.decompose(backend, &a, &Serial);
                assert_eq!(result.info, [0]);
                for (s, x) in result.s.iter().zip(&expected) {
                    let error = (s.to_f64() - x).abs();
                    assert!(error <= 10.0 * size * <T as Sample>::epsilon() * expected[0].max(1.0));
                }
            }
        }
    }
}

fn not_finite_gives_nan<T: Sample>(backend: Backend) {
    for (m, n) in [(1, 1), (3, 3), (5, 2), (2, 5), (70, 70)] {
        let clean: Vec<T> = (0..3)
            .flat_map(|seed| matrix::<T>(Kind::Random, m, n, seed).narrowed::<T>(0))
            .collect();
        for qr in [false, true] {
            let shape = Shape { qr, job: SingularVectors::Thin, batch: 3, m, n };
            let (u_cols, vt_rows) = shape.factors();
            let expected = shape.decompose(backend, &clean, &Serial);
            for (at, bad) in [(0, f64::NAN), (m * n - 1, f64::INFINITY), (m * n / 2, f64::NAN)] {
                let mut a = clean.clone();
                a[m * n + at] = T::from_f64(bad);
                let result = shape.decompose(backend, &a, &Serial);
                assert_eq!(result.info, [0, if qr { -5 } else { -4 }, 0]);
                let part = |b: usize, length: usize| b * length..(b + 1) * length;
                assert!(result.s[part(1, m.min(n))].iter().all(|&s| Scalar::is_nan(s)));
                assert!(result.u[part(1, m * u_cols)].iter().all(|&u| Scalar::is_nan(u)));
                assert!(result.vt[part(1, n * vt_rows)].iter().all(|&v| Scalar::is_nan(v)));
                for b in [0, 2] {
                    let (u, vt) = (part(b, m * u_cols), part(b, n * vt_rows));
                    assert!(bits(&result.u[u.clone()]) == bits(&expected.u[u]));
                    assert!(bits(&result.vt[vt.clone()]) == bits(&expected.vt[vt]));
                }
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 2000), (17, 9, 200), (9, 17, 200), (80, 70, 5)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 5).narrowed(0);
        let all = one.repeat(batch);
        for job in [SingularVectors::All, SingularVectors::None] {
            let shape = |batch| Shape { qr: false, job, batch, m, n };
            let expected = shape(FEW).decompose(backend, &one.repeat(FEW), &Serial);
            for threads in [1, 2, 7] {
                let result = shape(batch).decompose(backend, &all, &Spawned(threads));
                assert!(
                    bits(&result.u) == bits(&expected.u).repeat(batch / FEW),
                    "{threads} threads"
                );
                assert!(bits(&result.vt) == bits(&expected.vt).repeat(batch / FEW));
                assert!(result.s == expected.s.repeat(batch / FEW));
            }
        }
    }
}

/// Orders from which singular values alone are found by a band: they are those that come with vectors, and the
/// same on all threads.
fn values_by_a_band<T: Sample>() {
    let kinds =
        |(m, n): (usize, usize)| sweep::kinds(m.max(n)).into_iter().map(move |kind| (m, n, kind));
    let cases = [(352, 352), (390, 355), (353, 400)].into_iter().flat_map(kinds);
    for (m, n, kind) in cases.chain([(530, 520, Kind::Random)]) {
        let exponent = kind.exponent::<T>();
        let matrix = matrix::<T>(kind, m, n, 1);
        let a = matrix.narrowed::<T>(exponent);
        let on = |job, threads: &dyn Threads| {
            let shape = Shape { qr: false, job, batch: 1, m, n };
            let found = shape.decompose(Backend::Native, &a, threads);
            assert_eq!(found.info, [0], "{kind:?} {shape:?}");
            found.s
        };
        let alone = on(SingularVectors::None, &Serial);
        assert!(on(SingularVectors::None, &Spawned(3)) == alone, "{kind:?} {m} x {n}");
        let [s, x] =
            [on(SingularVectors::Thin, &Serial), alone].map(|s| widened::<T>(&s, -exponent));
        assert!(x.windows(2).all(|x| x[0] >= x[1]) && x.iter().all(|&x| x >= 0.0), "{x:?}");
        let norm = Matrix::<T::Wide>::widened(m, &a, -exponent).norm();
        for (s, x) in s.iter().zip(&x) {
            let ratio = ratio::<T>((s - x).abs(), m.max(n), norm, -exponent);
            assert!(ratio < LIMIT, "{ratio}: {kind:?} {m} x {n}");
        }
    }
}

/// Orders from which threads share one matrix, also one that is much taller than wide.
fn one_matrix_on_threads<T: Sample>() {
    for (m, n) in [(200, 200), (195, 230), (420, 200), (700, 330)] {
        let a = matrix::<T>(Kind::Random, m, n, 5).narrowed::<T>(0);
        for (qr, job) in [
            (false, SingularVectors::Thin),
            (false, SingularVectors::None),
            (true, SingularVectors::Thin),
        ] {
            let shape = Shape { qr, job, batch: 1, m, n };
            let on = |threads: &dyn Threads| shape.decompose(Backend::Native, &a, threads);
            let alone = on(&Serial);
            assert_eq!(alone.info, [0], "{shape:?}");
            for threads in [2, 7] {
                let shared = on(&Spawned(threads));
                assert!(bits(&shared.u) == bits(&alone.u), "{threads} threads: {shape:?}");
                assert!(bits(&shared.vt) == bits(&alone.vt) && shared.s == alone.s, "{shape:?}");
            }
            if job == SingularVectors::None {
                continue;
            }
            let k = m.min(n);
            let u = Matrix::<T::Wide>::widened(m, &alone.u, 0);
            let vt = Matrix::<T::Wide>::widened(k, &alone.vt, 0);
            let a = Matrix::<T::Wide>::widened(m, &a, 0);
            let s = widened::<T>(&alone.s, 0);
            let us = Matrix::new(m, k, |i, j| u.at(i, j).scale(s[j]));
            let error = us.times(&vt).minus(&a).norm();
            let ratios = [
                departure::<T>(&u),
                departure::<T>(&vt.adjoint()),
                ratio::<T>(error, m.max(n), a.norm(), 0),
            ];
            assert!(ratios.iter().all(|&ratio| ratio < LIMIT), "{ratios:?}: {shape:?}");
        }
    }
}

/// A row-major matrix is its transpose by columns, whose U and Vᴴ are by rows Vᴴ and U; one of a batch is not
/// finite.
fn by_rows<T: Sample>(backend: Backend) {
    let shapes = [(1, 1), (3, 3), (5, 3), (3, 5), (17, 20), (70, 33), (33, 70), (140, 135)];
    let jobs = [SingularVectors::All, SingularVectors::Thin, SingularVectors::None];
    for ((m, n), batch) in shapes.into_iter().flat_map(|shape| [1, 9].map(|batch| (shape, batch))) {
        let mut a: Vec<T> = (0..batch)
            .flat_map(|seed| matrix::<T>(Kind::Random, m, n, seed).narrowed::<T>(0))
            .collect();
        if batch > 1 {
            a[2 * m * n - 1] = T::nan();
        }
        for job in jobs {
            let batch = a.len() / (m * n);
            let columns = Shape { qr: false, job, batch, m: n, n: m };
            let expected = columns.decompose(backend, &a, &Serial);
            let (u_cols, vt_rows) = job.sides(m, n);
            let mut s = vec![T::nan().re(); batch * m.min(n)];
            let mut u = vec![T::ONE; batch * m * u_cols];
            let mut vt = vec![T::ONE; batch * vt_rows * n];
            let (us, vts, threads) = (&mut u[..], &mut vt[..], &Spawned(3));
            call!(backend, svd::svd(job, batch, m, n, &a, &mut s, us, vts, threads)).unwrap();
            let what = format!("{job:?} {m} x {n}, {batch} of them");
            let reals =
                |s: &[Real<T>]| bits(&s.iter().map(|&s| T::from_real(s)).collect::<Vec<_>>());
            assert!(reals(&s) == reals(&expected.s), "{what}");
            assert_eq!(s.iter().any(|&s| Scalar::is_nan(s)), batch > 1, "{what}");
            // By columns the other side has the rule for phases.
            let wide = |x: T| Wide::new(x.re().to_f64(), x.im().to_f64());
            let turned =
                |(x, y): (&[T], &[T]), count: usize, at: &dyn Fn(usize, usize) -> usize| {
                    let size = x.len() / count.max(1);
                    let product = |j: usize| {
                        let of = |i| wide(x[at(i, j)]).conj() * wide(y[at(i, j)]);
                        (0..size).map(of).sum::<Wide>()
                    };
                    (0..count).map(product).collect::<Vec<_>>()
                };
            for b in 0..batch {
                let (us, vts) =
                    (b * m * u_cols..(b + 1) * m * u_cols, b * vt_rows * n..(b + 1) * vt_rows * n);
                let (u, vt) = (&u[us.clone()], &vt[vts.clone()]);
                let (other_u, other_vt) = (&expected.vt[us], &expected.u[vts]);
                if u.iter().any(|x| x.is_nan()) {
                    assert!(bits(u) == bits(other_u) && bits(vt) == bits(other_vt), "{what}");
                    continue;
                }
                let left = turned((u, other_u), u_cols, &|i, j| i * u_cols + j);
                let right = turned((vt, other_vt), vt_rows, &|l, j| j * n + l);
                let limit = 30.0 * m.max(n) as f64 * T::epsilon();
                for phase in left.iter().chain(&right) {
                    assert!((phase.norm() - 1.0).abs() < limit, "{what}: {phase}");
                }
                for (left, right) in left.iter().zip(&right) {
                    assert!((left * right - 1.0).norm() < limit, "{what}: {left}, {right}");
                }
            }
        }
    }
}

/// Some of the singular vectors of row-major matrices, of which one of a batch is not finite, beside all values.
fn a_part_by_rows<T: Sample>(backend: Backend) {
    let shapes = [(1, 1, 2), (5, 3, 9), (3, 5, 1), (40, 36, 2), (70, 33, 9), (33, 70, 1)];
    for (m, n, batch) in shapes.into_iter().chain([(200, 195, 1), (300, 80, 1)]) {
        let k = m.min(n);
        let narrow = |seed| matrix::<T>(Kind::Random, m, n, seed).transposed().narrowed::<T>(0);
        let mut a: Vec<T> = (0..batch as u64).flat_map(narrow).collect();
        let wide = |a: &[T]| Matrix::widened(n, a, 0).transposed();
        let matrices: Vec<_> = a.chunks_exact(m * n).map(wide).collect();
        if batch > 1 {
            a[2 * m * n - 1] = T::nan();
        }
        let mut all = vec![T::nan().re(); batch * k];
        let (none, values) = (SingularVectors::None, &mut all[..]);
        call!(backend, svd::svd(none, batch, m, n, &a, values, &mut [], &mut [], &Serial)).unwrap();
        for part in [0..k, 0..0, 0..1, k / 3..k / 2 + 1, k - 1..k] {
            let what = format!("{part:?} of {m} x {n}, {batch} of them");
            let count = part.len();
            let decompose = |threads: &dyn Threads| {
                let mut s = vec![T::nan().re(); batch * count];
                let (mut u, mut vt) =
                    (vec![T::nan(); batch * m * count], vec![T::nan(); batch * count * n]);
                let (part, ss, us, vts) = (part.clone(), &mut s[..], &mut u[..], &mut vt[..]);
                call!(backend, svd::svd_subset(batch, m, n, part, &a, ss, us, vts, threads))
                    .unwrap();
                (s, u, vt)
            };
            let (s, u, vt) = decompose(&Spawned(3));
            let alone = decompose(&Serial);
            assert!(bits(&u) == bits(&alone.1) && bits(&vt) == bits(&alone.2), "{what}: threads");
            for (b, a) in matrices.iter().enumerate() {
                let s = &s[b * count..(b + 1) * count];
                let [u, vt] =
                    [(&u, m), (&vt, n)].map(|(x, size)| &x[b * size * count..][..size * count]);
                if batch > 1 && b == 1 {
                    assert!(u.iter().chain(vt).all(|&x| Scalar::is_nan(x)), "{what}");
                    assert!(s.iter().all(|&s| Scalar::is_nan(s)), "{what}");
                    continue;
                }
                if count == 0 {
                    continue;
                }
                // By rows: U's transpose, and V's conjugate.
                let u = Matrix::widened(count, u, 0).transposed();
                let v = Matrix::widened(n, vt, 0);
                let v = Matrix::new(n, count, |i, j| v.at(i, j).conj());
                let value = |s: Real<T>| T::from_real(s).widen(0).re();
                let us = Matrix::new(m, count, |i, j| u.at(i, j).scale(value(s[j])));
                let error = a.times(&v).minus(&us).norm();
                let pairs = s.iter().zip(&all[b * k..][part.clone()]);
                let beside =
                    pairs.fold(0.0, |sum: f64, (&s, &x)| sum + (value(s) - value(x)).abs());
                let ratios = [error, beside].map(|error| ratio::<T>(error, m.max(n), a.norm(), 0));
                assert!(ratios.iter().all(|&ratio| ratio < LIMIT), "{what}: {ratios:?}");
                assert!(departure::<T>(&u) < LIMIT && departure::<T>(&v) < LIMIT, "{what}");
            }
        }
    }
}
