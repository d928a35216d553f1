//! `gtsv` and `tridiagonal_solve_perturbed`: ‖A·X − B‖ / (‖A‖·‖X‖·ε).

use lapax_core::Scalar;
use lapax_cpu::tridiagonal::{Diagonals, tridiagonal_solve_perturbed};
use lapax_cpu::{InOut, Serial, Spawned, Threads};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, ratio};
use crate::ratios::{LIMIT, compare};
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, perturbed_residual);
for_each_backend!(
    singular_is_reported,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    aliased_or_not,
    by_rows,
    by_rows_singular_or_not_finite,
);

/// Numbers of right-hand sides; many ones only of small systems.
fn columns(m: usize) -> impl Iterator<Item = usize> + Clone {
    [0, 1, 2, 7, 45].into_iter().filter(move |&nrhs| nrhs < 10 || m <= 40)
}

/// The diagonals of a matrix, with NaN where nothing is to be read.
fn diagonals<T: Sample>(a: &Matrix<T::Wide>, exponent: i32) -> [Vec<T>; 3] {
    let n = a.rows;
    let at = |i, j| T::narrow(a.at(i, j), exponent);
    let dl = (0..n).map(|i| if i > 0 { at(i, i - 1) } else { T::nan() });
    let du = (0..n).map(|i| if i + 1 < n { at(i, i + 1) } else { T::nan() });
    [dl.collect(), (0..n).map(|i| at(i, i)).collect(), du.collect()]
}

fn banded<T: Sample>([dl, d, du]: &[Vec<T>; 3], exponent: i32) -> Matrix<T::Wide> {
    Matrix::new(d.len(), d.len(), |i, j| match j {
        _ if j == i => d[i].widen(exponent),
        _ if j + 1 == i => dl[i].widen(exponent),
        _ if j == i + 1 => du[i].widen(exponent),
        _ => T::Wide::ZERO,
    })
}

struct Solved<T> {
    d: Vec<T>,
    x: Vec<T>,
    info: Vec<i32>,
}

fn solve<T: Sample>(
    backend: Backend,
    batch: usize,
    nrhs: usize,
    [dl, d, du]: &[Vec<T>; 3],
    b: &[T],
    threads: &dyn Threads,
) -> Solved<T> {
    let m = d.len().checked_div(batch).unwrap_or(0);
    let (mut dl, mut d, mut du, mut x) = (dl.clone(), d.clone(), du.clone(), b.to_vec());
    let mut info = vec![-1; batch];
    let [a, b, c] = [&mut dl, &mut d, &mut du].map(|dst| InOut { src: None, dst });
    let operand = InOut { src: None, dst: &mut x };
    let diagonals = Diagonals { dl: a, d: b, du: c };
    let infos = &mut info;
    call!(backend, tridiagonal::gtsv(batch, m, nrhs, diagonals, operand, infos, threads)).unwrap();
    Solved { d, x, info }
}

fn perturbed<T: Sample>(
    batch: usize,
    nrhs: usize,
    [dl, d, du]: &[Vec<T>; 3],
    b: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let m = d.len().checked_div(batch).unwrap_or(0);
    let mut x = vec![T::nan(); b.len()];
    tridiagonal_solve_perturbed(batch, m, nrhs, [dl, d, du], b, &mut x, threads).unwrap();
    x
}

/// ‖A·X − B‖ / (‖A‖·‖X‖·ε) with A scaled by `exponent` and B, X of order 1.
fn error_ratio<T: Sample>(a: &[Vec<T>; 3], b: &[T], x: &[T], exponent: i32) -> f64 {
    let m = a[1].len();
    let a = banded(a, -exponent);
    // B carries the scale of A, so X does not.
    let (b, x) = (Matrix::widened(m, b, -exponent), Matrix::widened(m, x, 0));
    // Where A is denormal its elements are in error by that unit, which X multiplies.
    let error = a.times(&x).minus(&b).norm();
    if error == 0.0 { 0.0 } else { ratio::<T>(error / x.norm(), 1, a.norm(), -exponent) }
}

fn residual<T: Sample>() {
    compare::<T>("gtsv", |ratios| {
        for (m, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            let a = diagonals::<T>(&matrix::<T>(kind, m, m, 1), exponent);
            ratios.met(kind);
            for (nrhs, &backend) in
                columns(m).flat_map(|nrhs| BACKENDS.iter().map(move |b| (nrhs, b)))
            {
                let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(exponent);
                let few = sweep::few(m, nrhs);
                let solved = solve(backend, few, nrhs, &three(&a, few), &b.repeat(few), &Serial);
                let x = &solved.x[..m * nrhs];
                let case = || format!("{kind:?} {m} x {nrhs}");
                match usize::try_from(solved.info[0]).unwrap() {
                    0 if x.iter().all(|&x| Scalar::is_finite(x)) => {
                        let ratio = error_ratio(&a, &b, x, exponent);
                        ratios.add(backend, "A·X − B", ratio, case);
                    }
                    // Elimination of a singular matrix with rounding may overflow in the quotients.
                    0 => assert!(singular(kind), "{backend:?} {}: not finite", case()),
                    i => {
                        assert!(singular(kind), "{backend:?} {}: info {i}", case());
                        assert!(backend != Backend::Native || solved.d[i - 1] == T::ZERO);
                        assert!(backend != Backend::Native || bits(x) == bits(&b));
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

/// Kinds whose tridiagonal part can be singular in T.
fn singular(kind: Kind) -> bool {
    let singular = matches!(kind, Kind::RankDeficient | Kind::Kahan | Kind::Denormal);
    singular || matches!(kind, Kind::Wilkinson | Kind::Bidiagonal)
}

fn perturbed_residual<T: Sample>() {
    compare::<T>("tridiagonal_solve_perturbed", |ratios| {
        for (m, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            let a = diagonals::<T>(&matrix::<T>(kind, m, m, 1), exponent);
            ratios.met(kind);
            for nrhs in columns(m) {
                let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(exponent);
                let few = sweep::few(m, nrhs);
                let x = perturbed(few, nrhs, &three(&a, few), &b.repeat(few), &Serial);
                let x = &x[..m * nrhs];
                let case = || format!("{kind:?} {m} x {nrhs}");
                assert!(x.iter().all(|&x| Scalar::is_finite(x)), "{}", case());
                // Its pivots are zero or next to nothing, and what replaces them is no part of A.
                if kind != Kind::Bidiagonal {
                    let ratio = error_ratio(&a, &b, x, exponent);
                    ratios.add(Backend::Native, "A·X − B", ratio, case);
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn singular_is_reported<T: Sample>(backend: Backend) {
    for m in [1, 2, 5, 33] {
        for zero in 0..m {
            // Diagonal but for one zero: U's first zero is there.
            let mut d = vec![T::ONE; m];
            d[zero] = T::ZERO;
            let a = [vec![T::ZERO; m], d, vec![T::ZERO; m]];
            let b = vec![T::ONE; m];
            let solved = solve(backend, 1, 1, &a, &b, &Serial);
            assert_eq!(usize::try_from(solved.info[0]), Ok(zero + 1));
            assert_eq!(solved.x, b);
            let x = perturbed(1, 1, &a, &b, &Serial);
            assert!(x.iter().all(|&x| Scalar::is_finite(x)), "{x:?}");
            assert!((0..m).all(|i| i == zero || x[i] == T::ONE));
        }
    }
    // A zero matrix, and pivots whose reciprocals overflow.
    let tiny = T::narrow(T::Wide::ONE, T::DENORMAL_EXPONENT);
    for value in [T::ZERO, tiny] {
        let a = [vec![T::ZERO; 4], vec![value; 4], vec![T::ZERO; 4]];
        let x = perturbed(1, 1, &a, &[T::ONE; 4], &Serial);
        assert!(x.iter().all(|&x| Scalar::is_finite(x)), "{value:?}: {x:?}");
    }
}

fn three<T: Sample>(a: &[Vec<T>; 3], times: usize) -> [Vec<T>; 3] {
    a.each_ref().map(|diagonal| diagonal.repeat(times))
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    let (m, nrhs) = (6, 2);
    let a = diagonals::<T>(&matrix::<T>(Kind::Random, m, m, 1), 0);
    let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(0);
    let alone = solve(backend, 1, nrhs, &a, &b, &Serial);
    let alone_perturbed = perturbed(1, nrhs, &a, &b, &Serial);
    for diagonal in 0..3 {
        let mut batch = three(&a, 3);
        batch[diagonal][m + 2] = T::nan();
        let solved = solve(backend, 3, nrhs, &batch, &b.repeat(3), &Serial);
        let x = perturbed(3, nrhs, &batch, &b.repeat(3), &Serial);
        assert_eq!(solved.info, [0, 0, 0]);
        for (result, expected) in [(&solved.x, &alone.x), (&x, &alone_perturbed)] {
            let parts: Vec<&[T]> = result.chunks(m * nrhs).collect();
            assert_eq!(bits(parts[0]), bits(expected));
            assert_eq!(bits(parts[2]), bits(expected));
            assert!(parts[1].iter().any(|&x| Scalar::is_nan(x)), "diagonal {diagonal}");
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, nrhs, batch) in [(3, 1, 9000), (40, 3, 500)] {
        let a = diagonals::<T>(&matrix::<T>(Kind::Random, m, m, 1), 0);
        let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(0);
        let (few, few_b) = (three(&a, FEW), b.repeat(FEW));
        let expected =
            bits(&solve(backend, FEW, nrhs, &few, &few_b, &Serial).x).repeat(batch / FEW);
        let expected_perturbed =
            bits(&perturbed(FEW, nrhs, &few, &few_b, &Serial)).repeat(batch / FEW);
        let (a, b) = (three(&a, batch), b.repeat(batch));
        for threads in [1, 2, 7] {
            let threads = Spawned(threads);
            assert!(bits(&solve(backend, batch, nrhs, &a, &b, &threads).x) == expected);
            assert!(bits(&perturbed(batch, nrhs, &a, &b, &threads)) == expected_perturbed);
        }
    }
}

fn aliased_or_not<T: Sample>(backend: Backend) {
    let (m, nrhs) = (9, 3);
    let a = diagonals::<T>(&matrix::<T>(Kind::Random, m, m, 1), 0);
    let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(0);
    let shared = solve(backend, 1, nrhs, &a, &b, &Serial);
    let mut copies = a.clone().map(|diagonal| vec![T::nan(); diagonal.len()]);
    let (mut x, mut info) = (vec![T::nan(); b.len()], [-1]);
    let [dl, d, du] = &mut copies;
    let diagonals = Diagonals {
        dl: InOut { src: Some(&a[0]), dst: dl },
        d: InOut { src: Some(&a[1]), dst: d },
        du: InOut { src: Some(&a[2]), dst: du },
    };
    let operand = InOut { src: Some(&b), dst: &mut x };
    let infos = &mut info;
    call!(backend, tridiagonal::gtsv(1, m, nrhs, diagonals, operand, infos, &Serial)).unwrap();
    assert_eq!(bits(&x), bits(&shared.x));
    assert_eq!(info, [0]);
}

/// X by rows; m is that of one system.
fn rows_solved<T: Sample>(
    backend: Backend,
    batch: usize,
    m: usize,
    [dl, d, du]: &[Vec<T>; 3],
    b: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let (mut x, nrhs) = (vec![T::nan(); b.len()], b.len() / (batch * m));
    let a = [&dl[..], d, du];
    call!(backend, tridiagonal::tridiagonal_solve(batch, m, nrhs, a, b, &mut x, threads)).unwrap();
    x
}

/// Systems of one right-hand side are eliminated from both ends, long enough to meet in the middle, for odd
/// and even orders.
fn by_rows<T: Sample>(backend: Backend) {
    for m in [1, 2, 7, 8, 9, 10, 33, 200] {
        for (nrhs, kind) in
            [1, 2].into_iter().flat_map(|nrhs| sweep::kinds(m).into_iter().map(move |k| (nrhs, k)))
        {
            let exponent = kind.exponent::<T>();
            let a = diagonals::<T>(&matrix::<T>(kind, m, m, 1), exponent);
            let b: Vec<T> = matrix::<T>(Kind::Random, m, nrhs, 2).narrowed(exponent);
            let rows: Vec<T> = (0..m * nrhs).map(|p| b[p % nrhs * m + p / nrhs]).collect();
            let x = rows_solved(backend, 1, m, &a, &rows, &Serial);
            let many = rows_solved(backend, 3, m, &three(&a, 3), &rows.repeat(3), &Spawned(2));
            let what = format!("{kind:?} {m} x {nrhs}");
            assert!(bits(&many) == bits(&x).repeat(3), "{what}");
            if !x.iter().all(|&x| Scalar::is_finite(x)) {
                assert!(singular(kind), "{what}: not finite");
                continue;
            }
            let x: Vec<T> = (0..m * nrhs).map(|p| x[p % m * nrhs + p / m]).collect();
            let ratio = error_ratio(&a, &b, &x, exponent);
            assert!(ratio < LIMIT, "{what}: {ratio}");
        }
    }
}

/// All of X is NaN where a pivot is zero, or where A or B has a NaN that reaches it.
fn by_rows_singular_or_not_finite<T: Sample>(backend: Backend) {
    for m in [8, 9, 40] {
        for at in 0..m {
            let mut a = [vec![T::ZERO; m], vec![T::ONE; m], vec![T::ZERO; m]];
            let mut b = vec![T::ONE; m];
            a[1][at] = T::ZERO;
            let solve = |a: &_, b: &[T]| rows_solved(backend, 1, m, a, b, &Serial);
            assert!(solve(&a, &b).iter().all(|&x| Scalar::is_nan(x)), "{m}, zero at {at}");
            // Two rows that are swapped make it regular.
            let other = if at > 0 { at - 1 } else { 1 };
            let (low, high) = (at.min(other), at.max(other));
            (a[0][high], a[1][low], a[1][high], a[2][low]) = (T::ONE, T::ZERO, T::ZERO, T::ONE);
            b[low] = T::from_f64(2.0);
            let expected: Vec<T> =
                (0..m).map(|i| if i == high { T::from_f64(2.0) } else { T::ONE }).collect();
            assert!(solve(&a, &b) == expected, "{m}, swapped {low} and {high}");
            b[at] = T::nan();
            assert!(solve(&a, &b).iter().any(|&x| Scalar::is_nan(x)), "{m}, NaN in row {at} of B");
            a[1] = vec![T::nan(); m];
            assert!(solve(&a, &b).iter().all(|&x| Scalar::is_nan(x)), "{m}, NaN in A");
        }
    }
}

#[test]
fn empty_batches_and_matrices_are_nothing_to_do() {
    let none = [Vec::new(), Vec::new(), Vec::new()];
    assert!(solve::<f64>(Backend::Native, 0, 1, &none, &[], &Serial).x.is_empty());
    let solved = solve::<f64>(Backend::Native, 2, 1, &none, &[], &Serial);
    assert_eq!(solved.info, [0, 0]);
    assert!(perturbed::<f64>(2, 3, &none, &[], &Serial).is_empty());
}
