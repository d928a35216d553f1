//! syevd: ‖A·V − V·diag(w)‖ / (n·‖A‖·ε), ‖VᴴV − I‖ / (n·ε), order, what is not read, NaN, and the
//! same bits everywhere. sytrd: ‖A − Q·T·Qᴴ‖ / (n·‖A‖·ε) from LAPACK's storage.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::eigh::{syevd, sytrd};
use lapax_cpu::{DivideAndConquer, Error, InOut, Serial, Threads, Uplo, Vectors};

use crate::kinds::{KINDS, Kind, ORDERS, matrix};
use crate::matrix::{Matrix, ratio};
use crate::sample::{Sample, bits};
use crate::threads::Spawned;
use crate::{Worst, for_each_scalar};

for_each_scalar!(
    residual,
    eigenvalues_of_known_matrices,
    not_finite_gives_nan,
    same_bits_everywhere,
    tridiagonal_residual,
);

type Real<T> = <T as Scalar>::Real;

/// What a call returns, the numbers in `w` as one type for all scalars.
#[derive(Debug, PartialEq)]
struct Decomposed<T: Scalar> {
    v: Vec<T>,
    w: Vec<Real<T>>,
    info: Vec<i32>,
}

fn decompose<T: Sample + DivideAndConquer>(
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
    syevd(job, uplo, batch, n, aliased, &mut w, &mut info, threads).unwrap();

    let mut other = vec![T::nan(); a.len()];
    let (mut other_w, mut other_info) = (vec![nan; batch * n], vec![-7; batch]);
    let copied = InOut { src: Some(a), dst: &mut other };
    syevd(job, uplo, batch, n, copied, &mut other_w, &mut other_info, threads).unwrap();
    assert_eq!(bits(&v), bits(&other), "aliased and copied calls differ");
    assert_eq!(info, other_info);
    Decomposed { v, w, info }
}

/// The Hermitian part of a matrix of the kind.
fn hermitian<T: Sample>(kind: Kind, n: usize, seed: u64) -> Matrix<T::Wide> {
    let a = matrix::<T>(kind, n, n, seed);
    let element = |i, j| (a.at(i, j) + a.at(j, i).conj()).scale(0.5);
    Matrix::new(n, n, element)
}

/// Whether an element is in the triangle.
fn is_in(uplo: Uplo, i: usize, j: usize) -> bool {
    if uplo == Uplo::Lower { i >= j } else { i <= j }
}

/// The matrix rounded to T, with NaN outside the triangle.
fn stored<T: Sample>(a: &Matrix<T::Wide>, uplo: Uplo, exponent: i32) -> Vec<T> {
    let mut stored = a.narrowed::<T>(exponent);
    for (i, x) in stored.iter_mut().enumerate() {
        if !is_in(uplo, i % a.rows, i / a.rows) {
            *x = T::nan();
        }
    }
    stored
}

/// The Hermitian matrix whose triangle is stored, in the wide type.
fn completed<T: Sample>(n: usize, stored: &[T], uplo: Uplo, exponent: i32) -> Matrix<T::Wide> {
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

fn identity<W: Scalar<Real = f64>>(n: usize) -> Matrix<W> {
    Matrix::new(n, n, |i, j| if i == j { W::ONE } else { W::ZERO })
}

fn residual<T: Sample + DivideAndConquer>() {
    let mut worst = Worst::default();
    for (n, kind) in ORDERS.into_iter().flat_map(|n| KINDS.map(|kind| (n, kind))) {
        let exponent = kind.exponent::<T>();
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let batch = 2;
            let a: Vec<T> = [1, 2]
                .into_iter()
                .flat_map(|seed| stored::<T>(&hermitian::<T>(kind, n, seed), uplo, exponent))
                .collect();
            let result = decompose(Vectors::Wanted, uplo, batch, n, &a, &Serial);
            let values = decompose(Vectors::None, uplo, batch, n, &a, &Serial);
            assert_eq!((&result.info, &values.info), (&vec![0; 2], &vec![0; 2]), "{kind:?} {n}");
            for b in 0..batch {
                let case = || format!("{} {kind:?} {uplo:?} n = {n}", T::NAME);
                let item = b * n * n..(b + 1) * n * n;
                let a = completed(n, &a[item.clone()], uplo, -exponent);
                let v = Matrix::widened(n, &result.v[item], 0);
                let widen = |w: &[Real<T>]| -> Vec<f64> {
                    w.iter().map(|&w| T::from_real(w).widen(-exponent).re()).collect()
                };
                let w = widen(&result.w[b * n..(b + 1) * n]);
                let alone = widen(&values.w[b * n..(b + 1) * n]);
                assert!(w.windows(2).all(|w| w[0] <= w[1]), "{} {w:?}", case());
                let vw = Matrix::new(n, n, |i, j| v.at(i, j).scale(w[j]));
                let error = a.times(&v).minus(&vw).norm();
                worst.check(ratio::<T>(error, n, a.norm(), -exponent), case);
                let error = v.adjoint().times(&v).minus(&identity(n)).norm();
                worst.check(ratio::<T>(error, n, 1.0, 0), case);
                let error = w.iter().zip(&alone).map(|(w, x)| (w - x).abs()).fold(0.0, f64::max);
                assert!(!alone.iter().any(|x| x.is_nan()), "{}", case());
                worst.check(ratio::<T>(error, n, a.norm(), -exponent), case);
            }
        }
    }
}

fn eigenvalues_of_known_matrices<T: Sample + DivideAndConquer>() {
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
                let result = decompose(job, Uplo::Lower, 1, n, &a, &Serial);
                assert_eq!(result.info, [0]);
                for (w, x) in result.w.iter().zip(&expected) {
                    let error = (w.to_f64() - x).abs();
                    assert!(error <= 10.0 * size * <T as Sample>::epsilon() * 4.0_f64.max(size));
                }
            }
        }
    }
}

fn not_finite_gives_nan<T: Sample + DivideAndConquer>() {
    for n in [1, 3, 33, 70] {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let clean: Vec<T> = (0..3)
                .flat_map(|seed| stored::<T>(&hermitian::<T>(Kind::Random, n, seed), uplo, 0))
                .collect();
            for job in [Vectors::Wanted, Vectors::None] {
                let expected = decompose(job, uplo, 3, n, &clean, &Serial);
                for (i, bad) in [(0, f64::NAN), (n - 1, f64::INFINITY), (n / 2, -f64::INFINITY)] {
                    let mut a = clean.clone();
                    let (row, column) = if uplo == Uplo::Lower { (n - 1, i) } else { (i, n - 1) };
                    a[n * n + row + column * n] = T::from_f64(bad);
                    let result = decompose(job, uplo, 3, n, &a, &Serial);
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

fn same_bits_everywhere<T: Sample + DivideAndConquer>() {
    for (n, batch) in [(3, 3000), (17, 200), (65, 10), (129, 5)] {
        let one = stored::<T>(&hermitian::<T>(Kind::Random, n, 5), Uplo::Lower, 0);
        let all = one.repeat(batch);
        for job in [Vectors::Wanted, Vectors::None] {
            let expected = decompose(job, Uplo::Lower, 1, n, &one, &Serial);
            for threads in [1, 2, 7] {
                let result = decompose(job, Uplo::Lower, batch, n, &all, &Spawned(threads));
                assert!(bits(&result.v) == bits(&expected.v).repeat(batch), "{threads} threads");
                assert!(result.w == expected.w.repeat(batch));
            }
        }
    }
}

/// What sytrd leaves, in the wide type.
struct Reduced<W> {
    a: Matrix<W>,
    d: Vec<f64>,
    e: Vec<f64>,
    tau: Vec<W>,
}

/// Q·T·Qᴴ from LAPACK's storage.
fn expanded<W: Scalar<Real = f64>>(uplo: Uplo, reduced: &Reduced<W>) -> Matrix<W> {
    let Reduced { a, d, e, tau } = reduced;
    let n = d.len();
    let mut product = Matrix::new(n, n, |i, j| match i.abs_diff(j) {
        0 => W::from_real(d[i]),
        1 => W::from_real(e[i.min(j)]),
        _ => W::ZERO,
    });
    // The factor that is nearest to T acts first: H(n−1) for Lower, H(1) for Upper.
    let mut order: Vec<usize> = (0..n.saturating_sub(1)).collect();
    if uplo == Uplo::Lower {
        order.reverse();
    }
    for k in order {
        let v: Vec<W> = (0..n)
            .map(|i| match (uplo, i) {
                (Uplo::Lower, _) if i == k + 1 => W::ONE,
                (Uplo::Lower, _) if i > k + 1 => a.at(i, k),
                (Uplo::Upper, _) if i == k => W::ONE,
                (Uplo::Upper, _) if i < k => a.at(i, k + 1),
                _ => W::ZERO,
            })
            .collect();
        let h = Matrix::new(n, n, |i, j| {
            let one = if i == j { W::ONE } else { W::ZERO };
            one - tau[k] * v[i] * v[j].conj()
        });
        product = h.times(&product).times(&h.adjoint());
    }
    product
}

fn tridiagonal_residual<T: Sample>() {
    let mut worst = Worst::default();
    let orders = [0, 1, 2, 3, 5, 8, 31, 32, 33, 50];
    let kinds = KINDS.into_iter();
    for (kind, n) in kinds.flat_map(|kind| orders.map(|n| (kind, n))).chain([(Kind::Random, 129)]) {
        let exponent = kind.exponent::<T>();
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let a: Vec<T> = stored::<T>(&hermitian::<T>(kind, n, 3), uplo, exponent);
            let (mut out, q) = (vec![T::nan(); n * n], n.saturating_sub(1));
            let zero = T::ZERO.re();
            let (mut d, mut e, mut tau) = (vec![zero; n], vec![zero; q], vec![T::nan(); q]);
            let mut info = [-7];
            let copied = InOut { src: Some(&a), dst: &mut out };
            let results = (&mut d, &mut e, &mut tau, &mut info);
            let (d, e, tau, info) = results;
            sytrd(uplo, 1, n, copied, d, e, tau, info, &Serial).unwrap();
            assert_eq!(*info, [0]);
            for (k, x) in out.iter().enumerate() {
                let (i, j) = (k % n, k / n);
                assert!(is_in(uplo, i, j) || Scalar::is_nan(*x), "({i}, {j}) was touched");
                match (i, j) {
                    _ if i == j => assert_eq!(*x, T::from_real(d[i])),
                    _ if i.abs_diff(j) == 1 && is_in(uplo, i, j) => {
                        assert_eq!(*x, T::from_real(e[i.min(j)]));
                    }
                    _ => {}
                }
            }
            let widen = |x: &[Real<T>]| -> Vec<f64> {
                x.iter().map(|&x| T::from_real(x).widen(-exponent).re()).collect()
            };
            let reduced = Reduced {
                a: Matrix::widened(n, &out, 0),
                d: widen(d),
                e: widen(e),
                tau: tau.iter().map(|x| x.widen(0)).collect(),
            };
            let a = completed(n, &a, uplo, -exponent);
            let error = expanded(uplo, &reduced).minus(&a).norm();
            let case = || format!("{} sytrd {kind:?} {uplo:?} n = {n}", T::NAME);
            worst.check(ratio::<T>(error, n, a.norm(), -exponent), case);
        }
    }
}

#[test]
fn sizes_are_checked_before_anything_is_touched() {
    let call = |batch, n, v: &mut [f64]| {
        let (mut w, mut info) = ([0.0; 2], [0; 1]);
        let v = InOut { src: None, dst: v };
        syevd(Vectors::Wanted, Uplo::Lower, batch, n, v, &mut w, &mut info, &Serial)
    };
    assert!(matches!(call(1, 1 << 31, &mut []), Err(Error::TooLarge { dimension: "n", .. })));
    assert!(matches!(call(1, 2, &mut [0.0; 3]), Err(Error::Length { operand: "v", .. })));
    assert!(matches!(call(usize::MAX, 2, &mut []), Err(Error::Overflow { operand: "v" })));
    assert_eq!(call(1, 2, &mut [1.0; 4]), Ok(()));
}
