//! geqp3: the ratios of geqrf on A·P, R's diagonal falling as pivoting makes it, fixed columns, NaN.

use lapax_core::Scalar;
use lapax_cpu::qr::geqp3;
use lapax_cpu::{Error, InOut, Serial, Spawned, Threads};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::Matrix;
use crate::qr::{self, nan_taus, shapes};
use crate::ratios::{LIMIT, compare};
use crate::sample::{Sample, bits};
use crate::{for_each_backend, for_each_scalar, sweep};

for_each_scalar!(residual);
for_each_backend!(
    rank_shows,
    fixed_columns_come_first,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
);

/// What a call returns.
#[derive(Debug)]
struct Factored<T> {
    qr: Vec<T>,
    jpvt: Vec<i32>,
    tau: Vec<T>,
}

fn factor<T: Sample>(
    backend: Backend,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    jpvt: &[i32],
    threads: &dyn Threads,
) -> Factored<T> {
    let (mut qr, mut columns) = (a.to_vec(), jpvt.to_vec());
    let mut tau = vec![T::nan(); batch * m.min(n)];
    let aliased =
        (InOut { src: None, dst: &mut qr[..] }, InOut { src: None, dst: &mut columns[..] });
    call!(backend, qr::geqp3(batch, m, n, aliased.0, aliased.1, &mut tau, threads)).unwrap();
    let (mut other, mut other_columns) = (vec![T::nan(); a.len()], vec![-7; jpvt.len()]);
    let mut other_tau = vec![T::nan(); tau.len()];
    let copied = (
        InOut { src: Some(a), dst: &mut other[..] },
        InOut { src: Some(jpvt), dst: &mut other_columns[..] },
    );
    let (a, jpvts) = copied;
    call!(backend, qr::geqp3(batch, m, n, a, jpvts, &mut other_tau, threads)).unwrap();
    assert!(bits(&qr) == bits(&other), "aliased and copied calls differ");
    assert!(bits(&tau) == bits(&other_tau));
    assert_eq!(columns, other_columns);
    Factored { qr, jpvt: columns, tau }
}

/// A·P; fails unless `jpvt` is a permutation.
fn permuted<T: Sample>(m: usize, a: &[T], jpvt: &[i32]) -> Vec<T> {
    let columns = jpvt.iter().map(|&j| usize::try_from(j - 1).unwrap());
    let mut sorted: Vec<usize> = columns.clone().collect();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..jpvt.len()), "{jpvt:?} is no permutation");
    columns.flat_map(|j| a[j * m..(j + 1) * m].iter().copied()).collect()
}

/// The largest |R(j, j..)| tail norm over |R(i, i)| for i < j, which exact pivoting keeps below 1.
fn growth<T: Sample>((m, n): (usize, usize), first: usize, qr: &[T], exponent: i32) -> f64 {
    let r = Matrix::widened(m, qr, -exponent).masked(|i, j| i <= j);
    let mut worst: f64 = 0.0;
    for i in first..m.min(n) {
        for j in i + 1..n {
            let norm = (i..=j.min(m - 1)).map(|k| r.at(k, j).abs().powi(2)).sum::<f64>().sqrt();
            if norm > 0.0 {
                worst = worst.max(norm / r.at(i, i).abs());
            }
        }
    }
    worst
}

fn residual<T: Sample>() {
    compare::<T>("geqp3", |ratios| {
        for (m, n) in shapes() {
            for kind in sweep::kinds(m.max(n)) {
                let exponent = kind.exponent::<T>();
                let a: Vec<T> = matrix::<T>(kind, m, n, 1).narrowed(exponent);
                ratios.met(kind);
                for &backend in BACKENDS {
                    let result = factor(backend, 1, m, n, &a, &vec![0; n], &Serial);
                    let Factored { qr, jpvt, tau } = result;
                    let (case, ap) = (|| format!("{kind:?} {m} x {n}"), permuted(m, &a, &jpvt));
                    let [residual, departure] = qr::ratios((m, n), &ap, (&qr, &tau), exponent);
                    ratios.add(backend, "Q·R − A·P", residual, case);
                    ratios.add(backend, "QᴴQ − I", departure, case);
                    if matches!(
                        kind,
                        Kind::Random | Kind::Graded | Kind::Kahan | Kind::NearOverflow
                    ) {
                        let growth = growth((m, n), 0, &qr, exponent);
                        // √ε is what downdated norms may be wrong by.
                        let limit = 1.0 + 30.0 * <T as Sample>::epsilon().sqrt();
                        assert!(growth < limit, "{backend:?}: growth {growth} of {}", case());
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn rank_shows<T: Sample>(backend: Backend) {
    for (m, n) in [(30, 20), (100, 100), (64, 90), (200, 180), (340, 330)] {
        let a: Vec<T> = matrix::<T>(Kind::RankDeficient, m, n, 2).narrowed(0);
        let Factored { qr, .. } = factor(backend, 1, m, n, &a, &vec![0; n], &Serial);
        let (k, diagonal) = (m.min(n), |j: usize| qr[j + j * m].widen(0).abs());
        let rank = k.div_ceil(2);
        let small = 30.0 * m as f64 * <T as Sample>::epsilon() * diagonal(0);
        assert!(diagonal(rank - 1) > small);
        assert!((rank..k).all(|j| diagonal(j) < small));
    }
}

fn fixed_columns_come_first<T: Sample>(backend: Backend) {
    for (m, n) in [(6, 6), (4, 9), (9, 4), (70, 60), (20, 100), (420, 330)] {
        for modulus in [1, 2, 3] {
            let a: Vec<T> = matrix::<T>(Kind::Random, m, n, 3).narrowed(0);
            let fixed: Vec<i32> = (0..n).map(|j| [-5, 0, 0][j % modulus]).collect();
            let Factored { qr, jpvt, tau } = factor(backend, 1, m, n, &a, &fixed, &Serial);
            let count = fixed.iter().filter(|&&j| j != 0).count();
            let expected = (1..).zip(&fixed).filter(|(_, fixed)| **fixed != 0).map(|(j, _)| j);
            assert!(jpvt.iter().copied().take(count).eq(expected), "{jpvt:?}");
            let permuted = permuted(m, &a, &jpvt);
            for ratio in qr::ratios((m, n), &permuted, (&qr, &tau), 0) {
                assert!(ratio < LIMIT, "{} {m} x {n} ratio {ratio}", T::NAME);
            }
            assert!(growth((m, n), count.min(m), &qr, 0) < 1.01);
            if modulus == 1 {
                let (mut plain, mut plain_tau) = (a.clone(), tau.clone());
                let aliased = InOut { src: None, dst: &mut plain };
                call!(backend, qr::geqrf(1, m, n, aliased, &mut plain_tau, &Serial)).unwrap();
                let k = m.min(n);
                assert!((0..k).all(|j| (tau[j] - plain_tau[j]).widen(0).abs() < 1e-3));
            }
        }
    }
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for (m, n) in [(5, 5), (9, 4), (4, 9), (60, 60), (330, 340)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
        let expected = factor(backend, 1, m, n, &one, &vec![0; n], &Serial);
        let k = m.min(n);
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = one.repeat(3);
            a[m * n + (n - 1) * m + m / 2] = T::from_f64(bad);
            let Factored { qr, jpvt, tau } = factor(backend, 3, m, n, &a, &vec![0; 3 * n], &Serial);
            for good in [0, 2] {
                assert_eq!(bits(&qr[good * m * n..][..m * n]), bits(&expected.qr));
                assert_eq!(bits(&tau[good * k..][..k]), bits(&expected.tau));
                assert_eq!(jpvt[good * n..][..n], expected.jpvt);
            }
            permuted(m, &one, &jpvt[n..2 * n]);
            assert_eq!(usize::try_from(jpvt[n]).unwrap(), n, "the bad column comes first");
            assert!(nan_taus(m, &tau[k..2 * k]), "{tau:?}");
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 4000), (20, 9, 700), (64, 64, 25), (130, 150, 5), (330, 340, 2)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 9).narrowed(0);
        let expected = factor(backend, 1, m, n, &one, &vec![0; n], &Serial);
        for threads in [1, 2, 7] {
            let jpvt = vec![0; n * batch];
            let many = factor(backend, batch, m, n, &one.repeat(batch), &jpvt, &Spawned(threads));
            assert!(bits(&many.qr) == bits(&expected.qr).repeat(batch), "{m} x {n}");
            assert!(bits(&many.tau) == bits(&expected.tau).repeat(batch));
            assert!(many.jpvt == expected.jpvt.repeat(batch));
        }
    }
}

#[test]
fn empty_matrices_have_a_permutation() {
    let Factored { jpvt, .. } =
        factor::<f64>(Backend::Native, 1, 0, 4, &[], &[0, 1, 0, 7], &Serial);
    assert_eq!(jpvt, [2, 4, 3, 1]);
    assert!(factor::<f64>(Backend::Native, 3, 4, 0, &[], &[], &Serial).jpvt.is_empty());
}

#[test]
fn sizes_are_checked() {
    let call = |n, jpvt: &mut [i32]| {
        let (a, jpvt) = (InOut { src: None, dst: &mut [][..] }, InOut { src: None, dst: jpvt });
        geqp3::<f64>(0, 1, n, a, jpvt, &mut [], &Serial)
    };
    assert!(matches!(call(1 << 31, &mut []), Err(Error::TooLarge { dimension: "n", .. })));
    assert!(matches!(call(1, &mut [1]), Err(Error::Length { operand: "jpvt", .. })));
}
