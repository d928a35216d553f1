//! gehrd and hess: ‖Q·H·Qᴴ − A‖ / (n·‖A‖·ε), ‖Qᴴ·Q − I‖ / (n·ε), the range, NaN, and the same bits
//! everywhere.

use lapax_core::Scalar;
use lapax_cpu::{Error, InOut, Serial, Spawned, Threads, hessenberg::gehrd};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix, square};
use crate::matrix::{Matrix, departure, identity, ratio, transposes};
use crate::ratios::{LIMIT, compare};
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual);
for_each_backend!(range_is_kept, nan_stays_in_its_matrix, same_bits_everywhere, by_rows);

struct Reduced<T> {
    a: Vec<T>,
    tau: Vec<T>,
}

fn reduce<T: Sample>(
    backend: Backend,
    batch: usize,
    n: usize,
    (low, high): (usize, usize),
    a: &[T],
    threads: &dyn Threads,
) -> Reduced<T> {
    let call = |src: Option<&[T]>, mut dst: Vec<T>| {
        let mut tau = vec![T::nan(); batch * n.saturating_sub(1)];
        let mut info = vec![-7; batch];
        let a = InOut { src, dst: &mut dst };
        let (taus, infos) = (&mut tau, &mut info);
        call!(backend, hessenberg::gehrd(batch, n, low, high, a, taus, infos, threads)).unwrap();
        assert!(info.iter().all(|&info| info == 0));
        Reduced { a: dst, tau }
    };
    let aliased = call(None, a.to_vec());
    let copied = call(Some(a), vec![T::nan(); a.len()]);
    assert!(bits(&aliased.a) == bits(&copied.a) && bits(&aliased.tau) == bits(&copied.tau));
    aliased
}

/// H, and Q as the product of the reflectors.
fn factors<T: Sample>(n: usize, reduced: &Reduced<T>, exponent: i32) -> [Matrix<T::Wide>; 2] {
    let h = Matrix::widened(n, &reduced.a, exponent).masked(|i, j| i <= j + 1);
    let mut q = identity(n);
    for (k, tau) in reduced.tau.iter().enumerate().rev() {
        let v: Vec<T::Wide> = (k + 1..n)
            .map(|i| if i == k + 1 { T::Wide::ONE } else { reduced.a[i + k * n].widen(0) })
            .collect();
        for column in q.data.chunks_exact_mut(n) {
            let x = &mut column[k + 1..];
            let sum = v.iter().zip(&*x).fold(T::Wide::ZERO, |sum, (v, &x)| sum + v.conj() * x);
            x.iter_mut().zip(&v).for_each(|(x, &v)| *x -= tau.widen(0) * sum * v);
        }
    }
    [h, q]
}

/// H and Q of row-major matrices.
fn both<T: Sample>(
    backend: Backend,
    batch: usize,
    n: usize,
    rows: &[T],
    threads: &dyn Threads,
) -> (Vec<T>, Vec<T>) {
    let call = |src: Option<&[T]>, mut h: Vec<T>| {
        let mut q = vec![T::nan(); rows.len()];
        let a = InOut { src, dst: &mut h };
        call!(backend, hessenberg::hess(batch, n, a, &mut q, threads)).unwrap();
        (h, q)
    };
    let aliased = call(None, rows.to_vec());
    let copied = call(Some(rows), vec![T::nan(); rows.len()]);
    assert!(bits(&aliased.0) == bits(&copied.0) && bits(&aliased.1) == bits(&copied.1));
    aliased
}

fn residual<T: Sample>() {
    compare::<T>("gehrd", |ratios| {
        for (n, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            ratios.met(kind);
            for (seed, &backend) in
                sweep::seeds(n).flat_map(|seed| BACKENDS.iter().map(move |b| (seed, b)))
            {
                let narrow: Vec<T> = square::<T>(kind, n, seed).narrowed(exponent);
                let reduced = reduce(backend, 1, n, (1, n), &narrow, &Serial);
                let [h, q] = factors(n, &reduced, -exponent);
                let case = || format!("{kind:?} n = {n}");
                let a = Matrix::widened(n, &narrow, -exponent);
                let error = q.times(&h).times(&q.adjoint()).minus(&a).norm();
                let ratio_of = |error| ratio::<T>(error, n, a.norm(), -exponent);
                ratios.add(backend, "Q·H·Qᴴ − A", ratio_of(error), case);
                ratios.add(backend, "QᴴQ − I", departure::<T>(&q), case);
                let (row_h, row_q) = both(backend, 1, n, &transposes(n, n, &narrow), &Serial);
                let row_h = Matrix::widened(n, &transposes(n, n, &row_h), -exponent);
                let row_q = Matrix::widened(n, &transposes(n, n, &row_q), 0);
                let error = row_q.times(&row_h).times(&row_q.adjoint()).minus(&a).norm();
                ratios.add(backend, "hess: Q·H·Qᴴ − A", ratio_of(error), case);
                ratios.add(backend, "hess: QᴴQ − I", departure::<T>(&row_q), case);
                for (k, &tau) in reduced.tau.iter().enumerate() {
                    assert!(h.at(k + 1, k).im() == 0.0, "{}: the subdiagonal is real", case());
                    let tau = tau.widen(0);
                    assert!(tau == T::Wide::ZERO || (0.9999..=2.0001).contains(&tau.re()));
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn range_is_kept<T: Sample>(backend: Backend) {
    for (n, low, high) in [(1, 1, 1), (5, 2, 4), (5, 3, 3), (8, 1, 6), (8, 4, 8), (140, 11, 130)] {
        let full: Matrix<T::Wide> = matrix::<T>(Kind::Random, n, n, 3);
        let inside = |i: usize| (low - 1..high).contains(&i);
        let a: Vec<T> = full.masked(|i, j| i <= j || (inside(i) && inside(j))).narrowed(0);
        let reduced = reduce(backend, 1, n, (low, high), &a, &Serial);
        let [h, q] = factors(n, &reduced, 0);
        let a = Matrix::widened(n, &a, 0);
        let error = q.times(&h).times(&q.adjoint()).minus(&a).norm();
        assert!(ratio::<T>(error, n, a.norm(), 0) < LIMIT, "{low}..={high}");
        for k in (0..n - 1).filter(|&k| k + 1 < low || k + 1 >= high) {
            assert!(reduced.tau[k] == T::ZERO && (k + 2..n).all(|i| q.at(i, k) == T::Wide::ZERO));
        }
    }
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for n in [1, 2, 7, 40, 110] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 3).narrowed(0);
        let expected = reduce(backend, 1, n, (1, n), &one, &Serial);
        for at in [0, n * n / 2, n * n - 1] {
            for bad in [f64::NAN, f64::INFINITY] {
                let mut a = one.repeat(3);
                a[n * n + at] = T::from_f64(bad);
                let result = reduce(backend, 3, n, (1, n), &a, &Serial);
                for (b, a) in result.a.chunks_exact(n * n).enumerate() {
                    let tau = &result.tau[b * (n - 1)..(b + 1) * (n - 1)];
                    if b == 1 {
                        assert!(a.iter().chain(tau).all(|&x| Scalar::is_nan(x)));
                    } else {
                        assert!(bits(a) == bits(&expected.a) && bits(tau) == bits(&expected.tau));
                    }
                }
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (n, batch) in [(3, 900), (17, 60), (129, 5)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, n, n, 5).narrowed(0);
        let few = reduce(backend, FEW, n, (1, n), &one.repeat(FEW), &Serial);
        let expected = bits(&few.a).repeat(batch / FEW);
        for threads in [1, 2, 7] {
            let result = reduce(backend, batch, n, (1, n), &one.repeat(batch), &Spawned(threads));
            assert!(bits(&result.a) == expected, "n = {n}, {threads} threads");
        }
    }
}

/// Row-major matrices, of which one of a batch is not finite, have the H of column-major ones, and the same
/// Q on any number of threads. At the last order Q is formed by tiles.
fn by_rows<T: Sample>(backend: Backend) {
    const SIZES: [(usize, usize); 10] =
        [(1, 9), (1, 2), (2, 1), (3, 9), (5, 2), (17, 9), (33, 2), (130, 1), (300, 1), (400, 1)];
    for (n, batch) in SIZES {
        let mut a: Vec<T> = matrix::<T>(Kind::Random, n, n * batch, 3).narrowed(0);
        if batch > 1 {
            a[n * n + n - 1] = T::nan();
        }
        let reduced = reduce(backend, batch, n, (1, n), &a, &Serial);
        let rows = transposes(n, n, &a);
        let (h, q) = both(backend, batch, n, &rows, &Spawned(3));
        let alone = both(backend, batch, n, &rows, &Serial);
        assert!(bits(&q) == bits(&alone.1), "n = {n}: Q by one thread and by three");
        let (h, q) = (transposes(n, n, &h), transposes(n, n, &q));
        for (b, (h, q)) in h.chunks_exact(n * n).zip(q.chunks_exact(n * n)).enumerate() {
            let expected = &reduced.a[b * n * n..(b + 1) * n * n];
            for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
                let (at, border) = (i + j * n, i == 0 || j == 0);
                let expected = if i > j + 1 { T::ZERO } else { expected[at] };
                assert!(bits(&[h[at]]) == bits(&[expected]), "n = {n}: H({i}, {j})");
                let identity = if i == j { T::ONE } else { T::ZERO };
                assert!(!border || q[at] == identity, "n = {n}: Q({i}, {j})");
                assert_eq!(Scalar::is_nan(q[at]), batch > 1 && b == 1 && !border, "Q({i}, {j})");
            }
        }
    }
}

#[test]
fn ranges_and_sizes_are_checked() {
    let call = |n: usize, low, high, a: &mut [f64]| {
        let (mut tau, mut info) = (vec![0.0; n.saturating_sub(1)], [0; 1]);
        gehrd(1, n, low, high, InOut { src: None, dst: a }, &mut tau, &mut info, &Serial)
    };
    for (low, high) in [(0, 2), (1, 3), (3, 2), (2, 1)] {
        assert!(matches!(call(2, low, high, &mut [0.0; 4]), Err(Error::Order { .. })));
    }
    assert!(matches!(call(2, 1, 2, &mut [0.0; 3]), Err(Error::Length { operand: "a", .. })));
    assert_eq!(call(0, 1, 0, &mut []), Ok(()));
    assert_eq!(call(2, 1, 2, &mut [1.0; 4]), Ok(()));
}
