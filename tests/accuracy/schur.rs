//! gees: ‖Z·T·Zᴴ − A‖ / (n·‖A‖·ε), ‖Zᴴ·Z − I‖ / (n·ε), standard blocks, NaN, the same bits
//! everywhere.

use lapax_core::Scalar;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::{InOut, Serial, Spawned, Threads, Vectors};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix, some_bad, square};
use crate::matrix::{Matrix, departure, ratio, transposes};
use crate::ratios::{Ratios, compare};
use crate::sample::{Random, Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, hard_cases, small_integers);
for_each_backend!(
    values_do_not_depend_on_vectors,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    by_rows
);

struct Schur<T: Sample> {
    t: Vec<T>,
    z: Vec<T>,
    /// The eigenvalues, wide.
    w: Vec<(f64, f64)>,
    info: Vec<i32>,
}

fn schur<T: Sample>(
    backend: Backend,
    vectors: Vectors,
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> Schur<T> {
    let call = |src: Option<&[T]>, mut t: Vec<T>| {
        let mut z = vec![T::nan(); a.len()];
        let (mut wr, mut wi) = (vec![T::nan(); batch * n], vec![T::nan(); batch * n]);
        let (mut sdim, mut info) = (vec![-7; batch], vec![-7; batch]);
        let w = if T::IS_COMPLEX {
            Eigenvalues::Whole(&mut wr)
        } else {
            Eigenvalues::Parts(&mut wr, &mut wi)
        };
        let a = InOut { src, dst: &mut t };
        let (zs, sdims, infos) = (&mut z, &mut sdim, &mut info);
        call!(backend, schur::gees(vectors, batch, n, a, zs, w, sdims, infos, threads)).unwrap();
        assert!(sdim.iter().all(|&sdim| sdim == 0));
        let part = |x: T, y: T| if T::IS_COMPLEX { x.bits() } else { (x.bits().0, y.bits().0) };
        let float = |(re, im)| (f64::from_bits(re), f64::from_bits(im));
        let w = wr.iter().zip(&wi).map(|(&x, &y)| float(part(x, y))).collect();
        Schur { t, z, w, info }
    };
    let aliased = call(None, a.to_vec());
    let copied = call(Some(a), vec![T::nan(); a.len()]);
    assert!(bits(&aliased.t) == bits(&copied.t) && bits(&aliased.z) == bits(&copied.z));
    aliased
}

/// The eigenvalues that the diagonal blocks of T have, and that these are in standard form.
fn diagonal<T: Sample>(n: usize, t: &[T]) -> Vec<(f64, f64)> {
    let at = |i: usize, j: usize| t[i + j * n].widen(0);
    let mut w: Vec<(f64, f64)> = (0..n).map(|j| (at(j, j).re(), at(j, j).im())).collect();
    let mut j = 0;
    while j < n {
        assert!((j + 2..n).all(|i| t[i + j * n] == T::ZERO));
        if j + 1 == n || at(j + 1, j) == T::Wide::ZERO {
            j += 1;
            continue;
        }
        let (b, c) = (at(j, j + 1).re(), at(j + 1, j).re());
        assert!(!T::IS_COMPLEX, "T is triangular");
        assert!(at(j, j) == at(j + 1, j + 1), "equal diagonal elements");
        assert!((b > 0.0 && c < 0.0) || (b < 0.0 && c > 0.0), "opposite signs: {b} {c}");
        assert!(j + 2 >= n || at(j + 2, j + 1) == T::Wide::ZERO, "no block overlaps another");
        let size = b.abs().sqrt() * c.abs().sqrt();
        (w[j].1, w[j + 1].1) = (size, -size);
        j += 2;
    }
    w
}

fn check<T: Sample>(ratios: &mut Ratios, n: usize, a: &[T], exponent: i32, case: &str) {
    let case = || format!("{case} n = {n}");
    let wide = Matrix::widened(n, a, exponent);
    for &backend in BACKENDS {
        let result = schur(backend, Vectors::Wanted, 1, n, a, &Serial);
        if backend == Backend::Native {
            assert_eq!(result.info, [0], "{}", case());
            for (w, (re, im)) in result.w.iter().zip(diagonal(n, &result.t)) {
                // The product of the roots is rounded in T, and may be denormal there.
                let close = |x: f64, y: f64| (x - y).abs() <= 1e-6 * y.abs() + 1e-44;
                assert!(close(w.0, re) && close(w.1, im), "{}: {w:?} is not {re} + {im}i", case());
            }
        }
        let (t, z) = (Matrix::widened(n, &result.t, exponent), Matrix::widened(n, &result.z, 0));
        let error = z.times(&t).times(&z.adjoint()).minus(&wide).norm();
        ratios.add(backend, "Z·T·Zᴴ − A", ratio::<T>(error, n, wide.norm(), exponent), case);
        ratios.add(backend, "ZᴴZ − I", departure::<T>(&z), case);
    }
}

fn residual<T: Sample>() {
    compare::<T>("gees", |ratios| {
        for (n, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            ratios.met(kind);
            for seed in sweep::seeds(n) {
                let a: Vec<T> = square::<T>(kind, n, seed).narrowed(exponent);
                check(ratios, n, &a, -exponent, &format!("{kind:?}"));
            }
        }
        // Where several shifts go through the matrix at a time.
        let large = [(180, Kind::Graded), (180, Kind::Random), (301, Kind::Grcar)];
        for (n, kind) in large.into_iter().chain([(301, Kind::RankDeficient)]) {
            let a: Vec<T> = matrix::<T>(kind, n, n, 1).narrowed(0);
            check(ratios, n, &a, 0, &format!("{kind:?}"));
        }
        ratios.assert_every_kind();
    });
}

/// Cyclic shifts, on which an iteration without exceptional shifts stands still; zero, triangular
/// and companion matrices; a Jordan block; matrices with 2 × 2 blocks of every kind.
fn hard_cases<T: Sample>() {
    compare::<T>("gees of hard cases", build_hard_cases::<T>);
}

fn build_hard_cases<T: Sample>(ratios: &mut Ratios) {
    let one = T::ONE;
    for n in [2, 3, 4, 5, 16, 50, 120] {
        let mut build = |name: &str, element: &dyn Fn(usize, usize) -> T| {
            let a: Vec<T> = (0..n * n).map(|k| element(k % n, k / n)).collect();
            check(ratios, n, &a, 0, name);
        };
        build("cyclic", &|i, j| if i == (j + 1) % n { one } else { T::ZERO });
        build("backwards", &|i, j| if j == (i + 1) % n { one } else { T::ZERO });
        build("zero", &|_, _| T::ZERO);
        build("ones", &|_, _| one);
        build("lower", &|i, j| if i >= j { T::from_f64((i + j) as f64) } else { T::ZERO });
        build("Jordan", &|i, j| if i == j || i == j + 1 { one } else { T::ZERO });
        build("companion", &|i, j| match (i, j) {
            (0, _) => T::from_f64(-1.0 - j as f64),
            _ if i == j + 1 => one,
            _ => T::ZERO,
        });
        build("reversal", &|i, j| if i + j + 1 == n { one } else { T::ZERO });
        build("skew", &|i, j| T::from_f64(i as f64 - j as f64));
    }
}

/// Small integers, which make ties, repeated eigenvalues and zeros, and rows of different size.
fn small_integers<T: Sample>() {
    compare::<T>("gees of small integers", |ratios| {
        let mut random = Random(11);
        for _ in 0..if sweep::is_full() { 20_000 } else { 3000 } {
            let a: Vec<T> = (0..4).map(|_| T::from_f64(random.below(5) as f64 - 2.0)).collect();
            check(ratios, 2, &a, 0, &format!("{a:?}"));
            let a: Vec<T> = (0..9).map(|_| T::from_f64(random.below(3) as f64 - 1.0)).collect();
            check(ratios, 3, &a, 0, &format!("{a:?}"));
            let scale = 2.0_f64.powf(40.0 * random.real());
            let a: Vec<T> = (0..4)
                .map(|k| T::narrow(random.scalar::<T::Wide>().scale([1.0, scale][k % 2]), 0))
                .collect();
            check(ratios, 2, &a, 0, &format!("{a:?}"));
        }
    });
}

fn values_do_not_depend_on_vectors<T: Sample>(backend: Backend) {
    for n in [0, 1, 2, 5, 33] {
        let a: Vec<T> = matrix::<T>(Kind::Random, n, n, 7).narrowed(0);
        let with = schur(backend, Vectors::Wanted, 1, n, &a, &Serial);
        let without = schur(backend, Vectors::None, 1, n, &a, &Serial);
        assert!(bits(&with.t) == bits(&without.t) && with.w == without.w);
        assert!(without.z.iter().all(|&z| z == T::ZERO));
    }
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for n in [1, 2, 7, 40, 110] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 3).narrowed(0);
        let expected = schur(backend, Vectors::Wanted, 1, n, &one, &Serial);
        for at in [0, n * n / 2, n * n - 1] {
            for bad in [f64::NAN, f64::INFINITY] {
                let mut a = one.repeat(3);
                a[n * n + at] = T::from_f64(bad);
                let result = schur(backend, Vectors::Wanted, 3, n, &a, &Serial);
                assert_eq!(result.info, [0; 3]);
                for b in [0, 2] {
                    let item = b * n * n..(b + 1) * n * n;
                    assert!(bits(&result.t[item.clone()]) == bits(&expected.t));
                    assert!(bits(&result.z[item]) == bits(&expected.z));
                    assert!(result.w[b * n..(b + 1) * n] == expected.w);
                }
                let item = n * n..2 * n * n;
                let all = result.t[item.clone()].iter().chain(&result.z[item]);
                assert!(all.copied().all(Scalar::is_nan));
                assert!(result.w[n..2 * n].iter().all(|w| w.0.is_nan() && w.1.is_nan()));
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (n, batch) in [(3, 900), (17, 60), (129, 5)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 5).narrowed(0);
        let expected = schur(backend, Vectors::Wanted, FEW, n, &one.repeat(FEW), &Serial);
        let (t, z) = (bits(&expected.t), bits(&expected.z));
        for threads in [1, 2, 7] {
            let all = one.repeat(batch);
            let result = schur(backend, Vectors::Wanted, batch, n, &all, &Spawned(threads));
            assert!(bits(&result.t) == t.repeat(batch / FEW), "n = {n}, {threads} threads");
            assert!(bits(&result.z) == z.repeat(batch / FEW), "n = {n}, {threads} threads");
        }
    }
}

/// Row-major matrices, of which one of a batch is not finite, have the Schur forms of column-major ones.
fn by_rows<T: Sample>(backend: Backend) {
    for (n, batch) in [(1, 9), (1, 2), (2, 1), (3, 9), (5, 2), (17, 9), (33, 2), (130, 1)] {
        let a = some_bad::<T>(n, batch);
        let expected = schur(backend, Vectors::Wanted, batch, n, &a, &Serial);
        let rows = transposes(n, n, &a);
        let call = |src: Option<&[T]>, mut t: Vec<T>, threads: &dyn Threads| {
            let mut z = vec![T::ONE; a.len()];
            let a = InOut { src, dst: &mut t };
            call!(backend, schur::schur(batch, n, a, &mut z, threads)).unwrap();
            [t, z].map(|x| bits(&transposes(n, n, &x)))
        };
        let [aliased, copied] = [
            call(None, rows.clone(), &Spawned(3)),
            call(Some(&rows), vec![T::nan(); a.len()], &Serial),
        ];
        assert!(aliased == [bits(&expected.t), bits(&expected.z)], "n = {n}, {batch} of them");
        assert!(aliased == copied, "aliased and copied calls differ");
        assert_eq!(expected.t.iter().any(|&t| Scalar::is_nan(t)), batch > 1, "n = {n}");
    }
}
