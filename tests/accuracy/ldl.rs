//! ldl and ldl_solve: ‖P·L·D·Lᴴ·Pᵀ − A‖ / (n·‖A‖·ε), ‖A·X − B‖ / (n·‖A‖·‖X‖·ε), the bound of L, what is not
//! read, and the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::ldl::{Symmetry, ldl, ldl_solve};
use lapax_cpu::{InOut, Real as _, Serial, Spawned, Threads, Uplo};

use crate::for_each_scalar;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Sample, bits};
use crate::sweep;

for_each_scalar!(
    residual,
    large,
    solutions,
    singular_and_not_finite,
    same_bits_everywhere,
    wrong_permutation_and_sizes,
);

const FORMS: [(Symmetry, Uplo); 4] = [
    (Symmetry::Hermitian, Uplo::Lower),
    (Symmetry::Hermitian, Uplo::Upper),
    (Symmetry::Symmetric, Uplo::Lower),
    (Symmetry::Symmetric, Uplo::Upper),
];

struct Factored<T> {
    factors: Vec<T>,
    e: Vec<T>,
    permutation: Vec<i32>,
}

fn factored<T: Sample>(
    (symmetry, uplo): (Symmetry, Uplo),
    batch: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> Factored<T> {
    let (mut factors, mut e) = (vec![T::nan(); a.len()], vec![T::nan(); batch * n]);
    let mut permutation = vec![-1; batch * n];
    let copied = InOut { src: Some(a), dst: &mut factors };
    ldl(symmetry, uplo, batch, n, copied, &mut e, &mut permutation, threads).unwrap();
    let (mut other, mut other_e) = (a.to_vec(), vec![T::nan(); batch * n]);
    let aliased = InOut { src: None, dst: &mut other };
    ldl(symmetry, uplo, batch, n, aliased, &mut other_e, &mut permutation, threads).unwrap();
    assert!(bits(&factors) == bits(&other) && bits(&e) == bits(&other_e), "aliased and copied");
    Factored { factors, e, permutation }
}

/// The symmetric or Hermitian part of a matrix of that kind.
fn part<T: Sample>(symmetry: Symmetry, kind: Kind, n: usize) -> Matrix<T::Wide> {
    let a = matrix::<T>(kind, n, n, 5);
    let across = if symmetry == Symmetry::Hermitian { a.adjoint() } else { a.transposed() };
    Matrix::new(n, n, |i, j| (a.at(i, j) + across.at(i, j)).scale(0.5))
}

/// By rows, with NaN where it must not be read.
fn rows<T: Sample>(uplo: Uplo, n: usize, a: &[T]) -> Vec<T> {
    let read = |i, j| if uplo == Uplo::Lower { i >= j } else { i <= j };
    (0..n * n).map(|k| if read(k / n, k % n) { a[k / n + k % n * n] } else { T::nan() }).collect()
}

/// L, with the rows of A, and D.
fn widened<T: Sample>(
    symmetry: Symmetry,
    n: usize,
    of: &Factored<T>,
    exponent: i32,
) -> (Matrix<T::Wide>, Matrix<T::Wide>) {
    let l = Matrix::<T::Wide>::widened(n, &transposed(n, &of.factors[..n * n]), 0);
    let d = Matrix::<T::Wide>::widened(n, &transposed(n, &of.factors[..n * n]), exponent);
    let e = Matrix::<T::Wide>::widened(n, &of.e[..n], exponent);
    let one = <T::Wide as Scalar>::ONE;
    let zero = <T::Wide as Scalar>::ZERO;
    let l = Matrix::new(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => zero,
        std::cmp::Ordering::Equal => one,
        std::cmp::Ordering::Greater => l.at(i, j),
    });
    let mut placed = l.clone();
    for (i, &row) in of.permutation[..n].iter().enumerate() {
        let row = usize::try_from(row).unwrap();
        for j in 0..n {
            placed.data[row + j * n] = l.at(i, j);
        }
    }
    let d = Matrix::new(n, n, |i, j| {
        if i == j {
            d.at(i, i)
        } else if i == j + 1 {
            e.at(j, 0)
        } else if j == i + 1 {
            if symmetry == Symmetry::Hermitian { e.at(i, 0).conj() } else { e.at(i, 0) }
        } else {
            zero
        }
    });
    (placed, d)
}

fn one_residual<T: Sample>(form: (Symmetry, Uplo), kind: Kind, n: usize) {
    let (symmetry, uplo) = form;
    let exponent = kind.exponent::<T>();
    let full: Vec<T> = part::<T>(symmetry, kind, n).narrowed(exponent);
    let of = factored(form, 1, n, &rows(uplo, n, &full), &Serial);
    let what = format!("{kind:?} {form:?} {n}");
    let mut seen = of.permutation.clone();
    seen.sort_unstable();
    assert!(seen.iter().zip(0..).all(|(&a, b)| a == b), "{what}: a permutation");
    // Rook pivoting bounds L by 1/α = 1.6 for blocks of order 1, and of order 2 by 1/(1 − α) = 2.8. Of complex numbers
    // it compares |re| + |im|, as LAPACK does, which is up to √2 times the modulus, so that the bound of the modulus is
    // √2·(√2·α + 1)/(1 − 2·α²) = 15, and here √2 times that.
    let bound = if T::IS_COMPLEX { 21.2 } else { 2.8 };
    let largest = of.factors.iter().enumerate().filter(|(k, _)| k % n < k / n);
    let largest = largest.map(|(_, x)| x.abs1().to_f64()).fold(0.0, f64::max);
    assert!(largest < bound, "{what}: L has {largest}");
    let (l, d) = widened(symmetry, n, &of, -exponent);
    let across = if symmetry == Symmetry::Hermitian { l.adjoint() } else { l.transposed() };
    let a = Matrix::<T::Wide>::widened(n, &full, -exponent);
    let error = l.times(&d).times(&across).minus(&a).norm();
    let ratio = ratio::<T>(error, n, a.norm(), -exponent);
    assert!(ratio < LIMIT, "{what}: {ratio}");
    assert!((0..n).all(|i| symmetry == Symmetry::Symmetric || d.at(i, i).im() == 0.0), "{what}");
}

fn residual<T: Sample>() {
    for (turn, n) in [1, 2, 3, 4, 5, 8, 17, 33, 64].into_iter().enumerate() {
        for kind in sweep::kinds(n) {
            one_residual::<T>(FORMS[turn % 4], kind, n);
            one_residual::<T>(FORMS[(turn + 1) % 4], kind, n);
        }
    }
}

/// Of several panels, and with pivots of both orders at their ends.
fn large<T: Sample>() {
    for (n, form) in [97, 128, 130, 200].into_iter().zip(FORMS) {
        one_residual::<T>(form, Kind::Random, n);
        one_residual::<T>(form, Kind::RankDeficient, n);
    }
}

fn solutions<T: Sample>() {
    for (turn, n) in [1, 2, 3, 7, 20, 50, 130].into_iter().enumerate() {
        for (form, nrhs) in FORMS.into_iter().zip([1, 3, 17, 40]) {
            let kind = [Kind::Random, Kind::RepeatedEigenvalues, Kind::Grcar][turn % 3];
            let (symmetry, uplo) = form;
            let full: Vec<T> = part::<T>(symmetry, kind, n).narrowed(0);
            let (a, b) = (rows(uplo, n, &full), matrix::<T>(Kind::Random, n, nrhs, 6));
            let b_rows = transposed(n, &b.narrowed::<T>(0));
            let of = factored(form, 1, n, &a, &Serial);
            let mut x = vec![T::nan(); n * nrhs];
            let Factored { factors, e, permutation } = &of;
            let sizes = (n, nrhs);
            ldl_solve(symmetry, 1, sizes, factors, e, permutation, &b_rows, &mut x, &Serial)
                .unwrap();
            let x = Matrix::widened(n, &transposed(nrhs, &x), 0);
            let a = Matrix::<T::Wide>::widened(n, &full, 0);
            let b = Matrix::widened(n, &transposed(nrhs, &b_rows), 0);
            let ratio = ratio::<T>(a.times(&x).minus(&b).norm(), n, a.norm() * x.norm(), 0);
            assert!(ratio < LIMIT, "{kind:?} {form:?} {n} x {nrhs}: {ratio}");
        }
    }
}

/// A zero matrix has zeros in D; what is not finite ends, and stays in its matrix.
fn singular_and_not_finite<T: Sample>() {
    for (n, form) in [1, 2, 5, 40, 130].into_iter().flat_map(|n| FORMS.map(|form| (n, form))) {
        let of = factored(form, 1, n, &vec![T::ZERO; n * n], &Serial);
        assert!(of.factors.iter().chain(&of.e).all(|&x| x == T::ZERO));
        let clean = rows(form.1, n, &part::<T>(form.0, Kind::Random, n).narrowed(0));
        for bad in [T::nan(), T::from_f64(f64::INFINITY)] {
            let mut a = clean.repeat(3);
            a[n * n + n / 2 * (n + 1)] = bad;
            let (all, alone) =
                (factored(form, 3, n, &a, &Serial), factored(form, 1, n, &clean, &Serial));
            assert!(all.factors[n * n..2 * n * n].iter().any(|x| !x.is_finite()));
            for i in [0, 2] {
                let own = &all.factors[i * n * n..(i + 1) * n * n];
                assert!(bits(own) == bits(&alone.factors), "{n} {form:?}");
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(3, 40), (20, 9), (100, 3)] {
        let one = |k: u64| {
            rows(Uplo::Lower, n, &{
                let a = matrix::<T>(Kind::Random, n, n, k);
                let across = a.adjoint();
                Matrix::new(n, n, |i, j| a.at(i, j) + across.at(i, j)).narrowed::<T>(0)
            })
        };
        let a: Vec<T> = (0..batch).flat_map(one).collect();
        let count = usize::try_from(batch).unwrap();
        let form = (Symmetry::Hermitian, Uplo::Lower);
        let (all, threads) =
            (factored(form, count, n, &a, &Serial), factored(form, count, n, &a, &Spawned(3)));
        assert!(bits(&all.factors) == bits(&threads.factors) && bits(&all.e) == bits(&threads.e));
        assert_eq!(all.permutation, threads.permutation);
        for k in 0..count {
            let own = k * n * n..(k + 1) * n * n;
            let alone = factored(form, 1, n, &a[own.clone()], &Serial);
            assert!(bits(&alone.factors) == bits(&all.factors[own]));
        }
    }
}

fn wrong_permutation_and_sizes<T: Sample>() {
    let (factors, e, b) = ([T::ONE; 4], [T::ZERO; 2], [T::ONE; 2]);
    for permutation in [[0, 2], [-1, 1], [i32::MIN, i32::MAX]] {
        let mut x = [T::ZERO; 2];
        let symmetry = Symmetry::Symmetric;
        ldl_solve(symmetry, 1, (2, 1), &factors, &e, &permutation, &b, &mut x, &Serial).unwrap();
        assert!(x.iter().any(|x| x.is_nan()), "{permutation:?}");
    }
    let (mut x, permutation) = ([T::ZERO; 3], [0, 1]);
    let symmetry = Symmetry::Symmetric;
    let error = ldl_solve(symmetry, 1, (2, 1), &factors, &e, &permutation, &b, &mut x, &Serial);
    assert!(error.unwrap_err().to_string().contains('x'));
    let empty = factored::<T>(FORMS[0], 3, 0, &[], &Serial);
    assert!(empty.factors.is_empty() && empty.permutation.is_empty());
}
