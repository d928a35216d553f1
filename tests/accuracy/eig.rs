//! geev: ‖A·V − V·W‖ / (n·‖A‖·ε), ‖Uᴴ·A − W·Uᴴ‖ / (n·‖A‖·ε), the gauge of the vectors, NaN, the
//! same bits everywhere.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::eig::Eigen;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::{Serial, Spawned, Threads, Vectors};
use num_complex::Complex;

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix, some_bad, square};
use crate::matrix::{Matrix, ratio, transposes};
use crate::phase::has_largest_real;
use crate::ratios::{Ratios, compare};
use crate::sample::{Sample, bits, times_power};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, hard_cases);
for_each_backend!(
    values_do_not_depend_on_vectors,
    not_finite_is_reported_and_stays_in_its_matrix,
    same_bits_everywhere,
    by_rows
);

type Wide = Complex<f64>;

struct Found {
    w: Vec<Wide>,
    left: Vec<Wide>,
    right: Vec<Wide>,
    info: Vec<i32>,
}

fn wide<C: Scalar>(x: &[C]) -> Vec<Wide> {
    x.iter().map(|x| Complex { re: x.re().to_f64(), im: x.im().to_f64() }).collect()
}

fn eig<T: Sample>(
    backend: Backend,
    (left, right): (Vectors, Vectors),
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> Found {
    let (mut wr, mut wi) = (vec![T::nan(); batch * n], vec![T::nan(); batch * n]);
    let junk = vec![T::Complex::from_parts(T::nan().re(), T::nan().re()); a.len()];
    let (mut vl, mut vr, mut info) = (junk.clone(), junk, vec![-7; batch]);
    let w = if T::IS_COMPLEX {
        Eigenvalues::Whole(&mut wr)
    } else {
        Eigenvalues::Parts(&mut wr, &mut wi)
    };
    let results = Eigen { w, left: &mut vl, right: &mut vr, info: &mut info };
    call!(backend, eig::geev(left, right, batch, n, a, results, threads)).unwrap();
    let mut w = wide(&wr);
    if !T::IS_COMPLEX {
        w.iter_mut().zip(&wi).for_each(|(w, wi)| w.im = wi.re().to_f64());
    }
    Found { w, left: wide(&vl), right: wide(&vr), info }
}

const BOTH: (Vectors, Vectors) = (Vectors::Wanted, Vectors::Wanted);

fn check<T: Sample>(ratios: &mut Ratios, n: usize, a: &[T], exponent: i32, case: &str) {
    let case = || format!("{case} n = {n}");
    let wide = Matrix::widened(n, a, exponent);
    let wide = Matrix::new(n, n, |i, j| Complex { re: wide.at(i, j).re(), im: wide.at(i, j).im() });
    let scaled = |x| times_power(x, exponent);
    for &backend in BACKENDS {
        let found = eig(backend, BOTH, 1, n, a, &Serial);
        assert!(found.info == [0] || backend != Backend::Native, "{}: {:?}", case(), found.info);
        let w = found.w.iter().map(|w| Complex { re: scaled(w.re), im: scaled(w.im) });
        let w: Vec<Wide> = w.collect();
        let vectors = |data: &[Wide]| Matrix { rows: n, cols: n, data: data.to_vec() };
        let (right, left) = (vectors(&found.right), vectors(&found.left));
        let vw = Matrix::new(n, n, |i, j| right.at(i, j) * w[j]);
        let error = wide.times(&right).minus(&vw).norm();
        let size = wide.norm();
        ratios.add(backend, "A·V − V·W", ratio::<T>(error, n, size, exponent), case);
        // Aᴴ·u = conj(w)·u.
        let (adjoint, uw) = (wide.adjoint(), Matrix::new(n, n, |i, j| left.at(i, j) * w[j].conj()));
        let (error, size) = (adjoint.times(&left).minus(&uw).norm(), adjoint.norm());
        ratios.add(backend, "UᴴA − W·Uᴴ", ratio::<T>(error, n, size, exponent), case);
        if backend == Backend::Native {
            assert_convention::<T>(&found, &w, n, &case);
        }
    }
}

fn assert_convention<T: Sample>(found: &Found, w: &[Wide], n: usize, case: &dyn Fn() -> String) {
    for v in [&found.right, &found.left] {
        for (j, v) in v.chunks_exact(n.max(1)).enumerate() {
            check_gauge::<T>(v, w, j, case);
        }
        if !T::IS_COMPLEX {
            check_pairs(v, w, n, case);
        }
    }
}

/// Norm one, and the phase of the rule.
fn check_gauge<T: Sample>(v: &[Wide], w: &[Wide], j: usize, case: &dyn Fn() -> String) {
    let epsilon = <T as Sample>::epsilon();
    let size = v.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
    assert!((size - 1.0).abs() <= 4.0 * (v.len() as f64) * epsilon, "{}: norm {size}", case());
    let phase = has_largest_real::<T>(v);
    assert!(phase, "{}: vector {j} of {:?} has another phase: {v:?}", case(), w[j]);
}

/// Conjugate pairs, that with positive imaginary part first.
fn check_pairs(v: &[Wide], w: &[Wide], n: usize, case: &dyn Fn() -> String) {
    let mut j = 0;
    while j < n {
        let column = &v[j * n..(j + 1) * n];
        if w[j].im == 0.0 {
            assert!(column.iter().all(|x| x.im == 0.0), "{}: {:?}", case(), w[j]);
            j += 1;
            continue;
        }
        let next = &v[(j + 1) * n..(j + 2) * n];
        assert!(w[j].im > 0.0 && w[j + 1] == w[j].conj(), "{}: {:?}", case(), &w[j..j + 2]);
        assert!(column.iter().zip(next).all(|(x, y)| x.conj() == *y), "{}", case());
        j += 2;
    }
}

fn residual<T: Sample>() {
    compare::<T>("geev", |ratios| {
        for (n, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            ratios.met(kind);
            for seed in sweep::seeds(n) {
                let a: Vec<T> = square::<T>(kind, n, seed).narrowed(exponent);
                check(ratios, n, &a, -exponent, &format!("{kind:?}"));
            }
        }
        // Where several shifts go through the matrix at a time.
        for (n, kind) in [(180, Kind::Random), (301, Kind::RankDeficient)] {
            let a: Vec<T> = matrix::<T>(kind, n, n, 1).narrowed(0);
            check(ratios, n, &a, 0, &format!("{kind:?}"));
        }
        ratios.assert_every_kind();
    });
}

/// Defective, cyclic and badly balanced matrices, and ones whose eigenvectors grow by 10¹⁰ and more
/// from one element to the next.
fn hard_cases<T: Sample>() {
    compare::<T>("geev of hard cases", build_hard_cases::<T>);
}

fn build_hard_cases<T: Sample>(ratios: &mut Ratios) {
    let one = T::ONE;
    for n in [2, 3, 5, 16, 50, 120] {
        let mut build = |name: &str, element: &dyn Fn(usize, usize) -> T| {
            let a: Vec<T> = (0..n * n).map(|k| element(k % n, k / n)).collect();
            check(ratios, n, &a, 0, name);
        };
        build("cyclic", &|i, j| if i == (j + 1) % n { one } else { T::ZERO });
        build("zero", &|_, _| T::ZERO);
        build("ones", &|_, _| one);
        build("lower", &|i, j| if i >= j { T::from_f64((i + j) as f64) } else { T::ZERO });
        build("Jordan", &|i, j| if i == j || j == i + 1 { one } else { T::ZERO });
        build("growing", &|i, j| match (i, j) {
            _ if i == j => T::from_f64(1.0 + 1e-5 * i as f64),
            _ if i < j => T::from_f64(1e5),
            _ => T::ZERO,
        });
        let scale = |i: usize, j: usize| ((20 * i) as f64 - (20 * j) as f64) / n as f64;
        build("unbalanced", &|i, j| {
            T::from_f64((1 + (3 * i + 5 * j) % 7) as f64 * scale(i, j).exp2())
        });
    }
}

fn values_do_not_depend_on_vectors<T: Sample>(backend: Backend) {
    let none = Vectors::None;
    for n in [0, 1, 2, 5, 33] {
        let a: Vec<T> = matrix::<T>(Kind::Random, n, n, 7).narrowed(0);
        let both = eig(backend, BOTH, 1, n, &a, &Serial);
        let zero = |v: &[Wide]| v.iter().all(|x| x.norm() == 0.0);
        for jobs in [(none, none), (none, Vectors::Wanted), (Vectors::Wanted, none)] {
            let found = eig(backend, jobs, 1, n, &a, &Serial);
            assert!(found.w == both.w, "n = {n}");
            assert!(if jobs.0 == none { zero(&found.left) } else { found.left == both.left });
            assert!(if jobs.1 == none { zero(&found.right) } else { found.right == both.right });
        }
    }
}

fn not_finite_is_reported_and_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for n in [1, 2, 7, 40] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 3).narrowed(0);
        let expected = eig(backend, BOTH, 1, n, &one, &Serial);
        for at in [0, n * n / 2, n * n - 1] {
            for bad in [f64::NAN, f64::INFINITY] {
                let mut a = one.repeat(3);
                a[n * n + at] = T::from_f64(bad);
                let found = eig(backend, BOTH, 3, n, &a, &Serial);
                assert_eq!(found.info, [0, -4, 0]);
                for b in [0, 2] {
                    let item = b * n * n..(b + 1) * n * n;
                    assert!(found.w[b * n..(b + 1) * n] == expected.w);
                    assert!(found.left[item.clone()] == expected.left);
                    assert!(found.right[item] == expected.right);
                }
                let item = n * n..2 * n * n;
                let mut all = found.left[item.clone()].iter().chain(&found.right[item]);
                assert!(all.all(|x| x.re.is_nan() && x.im.is_nan()));
                assert!(found.w[n..2 * n].iter().all(|x| x.re.is_nan() && x.im.is_nan()));
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (n, batch) in [(3, 900), (17, 60), (129, 5)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 5).narrowed(0);
        let expected = eig(backend, BOTH, FEW, n, &one.repeat(FEW), &Serial);
        let (left, right) = (bits(&expected.left), bits(&expected.right));
        for threads in [1, 2, 7] {
            let found = eig(backend, BOTH, batch, n, &one.repeat(batch), &Spawned(threads));
            assert!(bits(&found.right) == right.repeat(batch / FEW), "n = {n}");
            assert!(bits(&found.left) == left.repeat(batch / FEW), "n = {n}");
        }
    }
}

/// Row-major matrices, of which one of a batch is not finite, have the eigenvalues and right eigenvectors
/// of column-major ones.
fn by_rows<T: Sample>(backend: Backend) {
    for (n, batch) in [(1, 9), (1, 2), (2, 1), (3, 9), (5, 2), (17, 9), (33, 2), (130, 1)] {
        let a = some_bad::<T>(n, batch);
        let expected = eig(backend, (Vectors::None, Vectors::Wanted), batch, n, &a, &Serial);
        let values = eig(backend, (Vectors::None, Vectors::None), batch, n, &a, &Serial).w;
        let rows = transposes(n, n, &a);
        for threads in [&Serial as &dyn Threads, &Spawned(3)] {
            let mut w = vec![T::Complex::ONE; batch * n];
            let (mut alone, mut v) = (w.clone(), vec![T::Complex::ONE; a.len()]);
            call!(backend, eig::eig(batch, n, &rows, &mut w, &mut v, threads)).unwrap();
            call!(backend, eig::eigvals(batch, n, &rows, &mut alone, threads)).unwrap();
            let v = transposes(n, n, &v);
            for (found, expected) in [(&w, &expected.w), (&v, &expected.right), (&alone, &values)] {
                assert!(numbers(&wide(found)) == numbers(expected), "n = {n}, {batch} of them");
                assert_eq!(found.iter().any(|&x| Scalar::is_nan(x)), batch > 1, "n = {n}");
            }
        }
    }
}

/// The bits of numbers.
fn numbers(x: &[Wide]) -> Vec<[u64; 2]> {
    x.iter().map(|x| [x.re.to_bits(), x.im.to_bits()]).collect()
}
