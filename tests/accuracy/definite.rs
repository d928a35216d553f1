//! posv, posv_factor and cho_solve: ‖A·X − B‖ / (n·‖A‖·‖X‖·ε), the factor and the determinant, what is not read, and
//! the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::definite::{Given, Kept};
use lapax_cpu::{Real as _, Serial, Spawned, Threads, Uplo};

use crate::backend::{Backend, call};
use crate::for_each_backend;
use crate::kinds::{Kind, definite, matrix};
use crate::matrix::{Matrix, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};

for_each_backend!(residual, not_definite_or_not_finite, same_bits_everywhere, empty);

/// Orders on both sides of those from which a system goes another way.
const ORDERS: [usize; 11] = [1, 2, 3, 4, 8, 9, 20, 31, 65, 130, 460];
const SIDES: [usize; 4] = [1, 3, 17, 40];

const GIVEN: [Given; 4] = [
    Given { uplo: Uplo::Lower, mean: false },
    Given { uplo: Uplo::Upper, mean: false },
    Given { uplo: Uplo::Lower, mean: true },
    Given { uplo: Uplo::Upper, mean: true },
];

/// What a call returns.
struct Solved<T: Scalar> {
    x: Vec<T>,
    factor: Vec<T>,
    logdet: Vec<T::Real>,
}

/// X by rows, which is the same with and without the factor.
fn solved<T: Sample>(
    backend: Backend,
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    threads: &dyn Threads,
) -> Solved<T> {
    let nan = T::nan();
    let (mut alone, mut x, mut factor) =
        (vec![nan; b.len()], vec![nan; b.len()], vec![nan; a.len()]);
    let mut logdet = vec![nan.re(); batch];
    call!(backend, definite::posv(given, batch, (n, nrhs), a, b, &mut alone, threads)).unwrap();
    let kept = Kept { factor: &mut factor, logdet: &mut logdet };
    call!(backend, definite::posv_factor(given, batch, (n, nrhs), a, b, &mut x, kept, threads))
        .unwrap();
    assert!(bits(&alone) == bits(&x), "n = {n}: X depends on what is kept");
    Solved { x, factor, logdet }
}

/// Whether row i and column j are in a triangle.
fn named(uplo: Uplo, i: usize, j: usize) -> bool {
    if uplo == Uplo::Lower { i >= j } else { i <= j }
}

/// By rows, with NaN where it must not be read.
fn rows<T: Sample>(given: Given, n: usize, a: &[T]) -> Vec<T> {
    let read = |i, j| given.mean || named(given.uplo, i, j);
    let at = |k: usize| if read(k / n, k % n) { a[k / n + k % n * n] } else { T::nan() };
    (0..n * n).map(at).collect()
}

fn residual<T: Sample>(backend: Backend) {
    for (turn, n) in ORDERS.into_iter().enumerate() {
        // Of residuals that are neither huge nor tiny.
        let kinds = sweep::kinds(n).into_iter().filter(|kind| kind.exponent::<T>() == 0);
        for (kind, given) in kinds.flat_map(|kind| GIVEN.map(|given| (kind, given))) {
            let nrhs = SIDES[turn % SIDES.len()];
            let full: Vec<T> = definite::<T>(kind, n, 5).narrowed(0);
            let (a, b) = (rows(given, n, &full), matrix::<T>(Kind::Random, n, nrhs, 6));
            let b: Vec<T> = b.narrowed(0);
            let b_rows = transposed(n, &b);
            for batch in if n < sweep::SMALL { vec![1, FEW] } else { vec![1] } {
                let what = format!("{kind:?} {given:?} {n} x {nrhs}, {batch}");
                let (a, b_rows) = (a.repeat(batch), b_rows.repeat(batch));
                let all = solved(backend, given, batch, (n, nrhs), &a, &b_rows, &Serial);
                for (copies, size) in [(&all.x, n * nrhs), (&all.factor, n * n)] {
                    assert!(bits(copies) == bits(&copies[..size]).repeat(batch), "{what}");
                }
                let x = Matrix::widened(n, &transposed(nrhs, &all.x[..n * nrhs]), 0);
                let f = Matrix::<T::Wide>::widened(n, &transposed(n, &all.factor[..n * n]), 0);
                let (a, b) = (Matrix::widened(n, &full, 0), Matrix::widened(n, &b, 0));
                let product = match given.uplo {
                    Uplo::Lower => f.times(&f.adjoint()),
                    Uplo::Upper => f.adjoint().times(&f),
                };
                let triangle = f.masked(|i, j| named(given.uplo, i, j));
                assert!(triangle.data == f.data, "{what}: zeros in the other triangle");
                let solution = ratio::<T>(a.times(&x).minus(&b).norm(), n, a.norm() * x.norm(), 0);
                let factor = ratio::<T>(product.minus(&a).norm(), n, a.norm(), 0);
                assert!(solution < LIMIT && factor < LIMIT, "{what}: {solution}, {factor}");
                let logs = (0..n).map(|i| 2.0 * f.at(i, i).re().ln());
                let (logdet, size) = logs.fold((0.0, 1.0), |(s, a), x| (s + x, a + x.abs()));
                let error = (all.logdet[0].to_f64() - logdet).abs();
                let bound = n as f64 * <T as Sample>::epsilon() * size;
                assert!(error <= bound, "{what}: {error} of {logdet}");
                by_factor(backend, given.uplo, batch, (n, nrhs), &all.factor, &b_rows);
            }
        }
    }
}

/// cho_solve with the factor solves the system whose matrix is their product, and reads one triangle.
fn by_factor<T: Sample>(
    backend: Backend,
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &[T],
    b: &[T],
) {
    let spoil = |(k, &x): (usize, &T)| if named(uplo, k / n % n, k % n) { x } else { T::nan() };
    let spoiled: Vec<T> = factor.iter().enumerate().map(spoil).collect();
    let mut x = vec![T::nan(); b.len()];
    call!(backend, definite::cho_solve(uplo, batch, (n, nrhs), &spoiled, b, &mut x, &Serial))
        .unwrap();
    assert!(bits(&x) == bits(&x[..n * nrhs]).repeat(batch), "{uplo:?} {n} x {nrhs}");
    let [x, b] = [&x, b].map(|x| Matrix::widened(n, &transposed(nrhs, &x[..n * nrhs]), 0));
    let f = Matrix::<T::Wide>::widened(n, &transposed(n, &factor[..n * n]), 0);
    let [first, second] = match uplo {
        Uplo::Lower => [f.adjoint(), f],
        Uplo::Upper => [f.adjoint(), f].map(|f| f.adjoint()),
    };
    // Each triangular solve has a small residual.
    let norm = first.norm() * second.norm() * x.norm();
    let error = second.times(&first.times(&x)).minus(&b).norm();
    let ratio = ratio::<T>(error, n, norm, 0);
    assert!(ratio < LIMIT, "{uplo:?} {n} x {nrhs}: {ratio}");
}

/// Of a matrix that is not positive definite or has a NaN there is nothing, and its neighbours keep theirs.
fn not_definite_or_not_finite<T: Sample>(backend: Backend) {
    for (n, given) in [2, 4, 7, 30, 100, 460].into_iter().flat_map(|n| GIVEN.map(|g| (n, g))) {
        let clean = rows(given, n, &definite::<T>(Kind::Random, n, 5).narrowed(0));
        let mut a = clean.repeat(4);
        a[n * n + (n - 1) * (n + 1)] = T::from_f64(-1.0);
        a[2 * n * n + (n / 2) * (n + 1)] = T::nan();
        let b = vec![T::ONE; 4 * n * 2];
        let all = solved(backend, given, 4, (n, 2), &a, &b, &Spawned(2));
        let alone = solved(backend, given, 4, (n, 2), &clean.repeat(4), &b, &Serial);
        for i in 0..4 {
            let (x, f) = (i * n * 2..(i + 1) * n * 2, i * n * n..(i + 1) * n * n);
            if [0, 3].contains(&i) {
                assert!(bits(&all.x[x.clone()]) == bits(&alone.x[x]), "{given:?} {n}");
                assert!(bits(&all.factor[f.clone()]) == bits(&alone.factor[f]));
                assert!(all.logdet[i].to_f64().is_finite());
            } else {
                assert!(all.x[x].iter().all(|&x| Scalar::is_nan(x)), "{given:?} {n}, {i}");
                for (k, &l) in all.factor[f].iter().enumerate() {
                    let nan = named(given.uplo, k / n, k % n);
                    assert!(if nan { Scalar::is_nan(l) } else { l == T::ZERO }, "{given:?} {n}");
                }
                assert!(all.logdet[i].to_f64().is_nan());
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (n, nrhs, batch) in [(3, 1, 4000), (20, 9, 700), (40, 3, 60), (100, 100, 9)] {
        let given = GIVEN[n % 2];
        let a = rows(given, n, &definite::<T>(Kind::Random, n, 9).narrowed(0));
        let b: Vec<T> = matrix::<T>(Kind::Random, n, nrhs, 9).narrowed(0);
        let (few_a, few_b) = (a.repeat(FEW), b.repeat(FEW));
        let few = solved(backend, given, FEW, (n, nrhs), &few_a, &few_b, &Serial);
        for threads in [1, 2, 7] {
            let (a, b) = (a.repeat(batch), b.repeat(batch));
            let many = solved(backend, given, batch, (n, nrhs), &a, &b, &Spawned(threads));
            let size = n * nrhs;
            assert!(bits(&many.x) == bits(&few.x[..size]).repeat(batch), "{n}, {threads} threads");
            assert!(bits(&many.factor) == bits(&few.factor[..n * n]).repeat(batch), "{n}");
        }
    }
}

/// Without an unknown the determinant is one, and without a right-hand side there is the factor all the same.
fn empty<T: Sample>(backend: Backend) {
    let given = GIVEN[0];
    let all = solved::<T>(backend, given, 3, (0, 2), &[], &[], &Serial);
    assert!(all.logdet.iter().all(|logdet| logdet.to_f64() == 0.0));
    for batch in [1, FEW] {
        for n in [3, 40] {
            let a = rows(given, n, &definite::<T>(Kind::Random, n, 9).narrowed(0)).repeat(batch);
            let all = solved::<T>(backend, given, batch, (n, 0), &a, &[], &Serial);
            assert!(all.factor.iter().all(|&l| Scalar::is_finite(l)), "{n}, {batch}");
            assert!(all.logdet.iter().all(|logdet| logdet.to_f64().is_finite()));
        }
    }
}
