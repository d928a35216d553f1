//! gesdd and gesvd: ‖A − U·diag(s)·Vᴴ‖ / (max(m, n)·‖A‖·ε), ‖UᴴU − I‖ / (m·ε), ‖V·Vᴴ − I‖ / (n·ε),
//! order, all modes, NaN, and the same bits everywhere.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::svd::{Svd, gesdd, gesvd};
use lapax_cpu::{DivideAndConquer, Error, InOut, Serial, SingularVectors, Threads};

use crate::kinds::{KINDS, Kind, ORDERS, RECTANGLES, matrix};
use crate::matrix::{Matrix, ratio};
use crate::sample::{Sample, bits};
use crate::threads::Spawned;
use crate::{Worst, for_each_scalar};

for_each_scalar!(residual, known_singular_values, not_finite_gives_nan, same_bits_everywhere);

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

    fn decompose<T: Sample + DivideAndConquer>(
        self,
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
            gesvd(job, batch, m, n, a, results, threads).unwrap();
        } else {
            gesdd(job, batch, m, n, a, results, threads).unwrap();
        }
        result
    }
}

fn identity<W: Scalar<Real = f64>>(n: usize) -> Matrix<W> {
    Matrix::new(n, n, |i, j| if i == j { W::ONE } else { W::ZERO })
}

/// Checks one matrix's results; returns its singular values in the scale of `a`.
fn check<T: Sample>(
    worst: &mut Worst,
    shape: Shape,
    kind: Kind,
    a: &[T],
    (s, u, vt): (&[Real<T>], &[T], &[T]),
) -> Vec<f64> {
    let exponent = -kind.exponent::<T>();
    let Shape { m, n, .. } = shape;
    let k = m.min(n);
    let case = || format!("{} {kind:?} {shape:?}", T::NAME);
    let s: Vec<f64> = s.iter().map(|&s| T::from_real(s).widen(exponent).re()).collect();
    assert!(s.windows(2).all(|s| s[0] >= s[1]) && s.iter().all(|&s| s >= 0.0), "{} {s:?}", case());
    if shape.job == SingularVectors::None {
        return s;
    }
    let a = Matrix::widened(m, a, exponent);
    let (u_cols, vt_rows) = shape.factors();
    let u = Matrix::new(m, u_cols, |i, j| u[i + j * m].widen(0));
    let vt = Matrix::new(vt_rows, n, |i, j| vt[i + j * vt_rows].widen(0));
    let error = u.adjoint().times(&u).minus(&identity(u_cols)).norm();
    worst.check(ratio::<T>(error, m, 1.0, 0), case);
    let error = vt.times(&vt.adjoint()).minus(&identity(vt_rows)).norm();
    worst.check(ratio::<T>(error, n, 1.0, 0), case);
    if k > 0 {
        let us = Matrix::new(m, k, |i, j| u.at(i, j).scale(s[j]));
        let error = us.times(&Matrix::new(k, n, |i, j| vt.at(i, j))).minus(&a).norm();
        worst.check(ratio::<T>(error, m.max(n), a.norm(), exponent), case);
    }
    s
}

fn residual<T: Sample + DivideAndConquer>() {
    let mut worst = Worst::default();
    let squares = ORDERS.iter().map(|&n| (n, n));
    for (m, n) in squares.chain(RECTANGLES).chain([(160, 70), (70, 160)]) {
        for kind in KINDS {
            let a: Vec<T> = [1, 2]
                .into_iter()
                .flat_map(|seed| matrix::<T>(kind, m, n, seed).narrowed(kind.exponent::<T>()))
                .collect();
            for qr in [false, true] {
                let mut values = Vec::new();
                for job in [SingularVectors::All, SingularVectors::Thin, SingularVectors::None] {
                    let shape = Shape { qr, job, batch: 2, m, n };
                    let (u_cols, vt_rows) = shape.factors();
                    let result = shape.decompose(&a, &Serial);
                    assert_eq!(result.info, [0; 2], "{} {kind:?} {shape:?}", T::NAME);
                    for b in 0..2 {
                        let k = m.min(n);
                        let part = |length: usize| b * length..(b + 1) * length;
                        let parts = (
                            &result.s[part(k)],
                            &result.u[part(m * u_cols)],
                            &result.vt[part(n * vt_rows)],
                        );
                        let a = &a[part(m * n)];
                        values.push(check(&mut worst, shape, kind, a, parts));
                    }
                }
                // The values alone are those that come with vectors.
                let norm = Matrix::widened(m, &a, -kind.exponent::<T>()).norm();
                for b in 0..2 {
                    for (x, y) in values[b].iter().zip(&values[4 + b]) {
                        let ratio =
                            ratio::<T>((x - y).abs(), m.max(n), norm, -kind.exponent::<T>());
                        worst.check(ratio, || format!("{} {kind:?} {m}x{n} values", T::NAME));
                    }
                }
            }
        }
    }
}

fn known_singular_values<T: Sample + DivideAndConquer>() {
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
                let result = shape.decompose(&a, &Serial);
                assert_eq!(result.info, [0]);
                for (s, x) in result.s.iter().zip(&expected) {
                    let error = (s.to_f64() - x).abs();
                    assert!(error <= 10.0 * size * <T as Sample>::epsilon() * expected[0].max(1.0));
                }
            }
        }
    }
}

fn not_finite_gives_nan<T: Sample + DivideAndConquer>() {
    for (m, n) in [(1, 1), (3, 3), (5, 2), (2, 5), (70, 70)] {
        let clean: Vec<T> = (0..3)
            .flat_map(|seed| matrix::<T>(Kind::Random, m, n, seed).narrowed::<T>(0))
            .collect();
        for qr in [false, true] {
            let shape = Shape { qr, job: SingularVectors::Thin, batch: 3, m, n };
            let (u_cols, vt_rows) = shape.factors();
            let expected = shape.decompose(&clean, &Serial);
            for (at, bad) in [(0, f64::NAN), (m * n - 1, f64::INFINITY), (m * n / 2, f64::NAN)] {
                let mut a = clean.clone();
                a[m * n + at] = T::from_f64(bad);
                let result = shape.decompose(&a, &Serial);
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

fn same_bits_everywhere<T: Sample + DivideAndConquer>() {
    for (m, n, batch) in [(3, 3, 2000), (17, 9, 200), (9, 17, 200), (80, 70, 6)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 5).narrowed(0);
        let all = one.repeat(batch);
        for job in [SingularVectors::All, SingularVectors::None] {
            let shape = |batch| Shape { qr: false, job, batch, m, n };
            let expected = shape(1).decompose(&one, &Serial);
            for threads in [1, 2, 7] {
                let result = shape(batch).decompose(&all, &Spawned(threads));
                assert!(bits(&result.u) == bits(&expected.u).repeat(batch), "{threads} threads");
                assert!(bits(&result.vt) == bits(&expected.vt).repeat(batch));
                assert!(result.s == expected.s.repeat(batch));
            }
        }
    }
}

#[test]
fn sizes_are_checked_before_anything_is_touched() {
    let call = |m, n, a: &mut [f64], u: &mut [f64]| {
        let (mut s, mut vt, mut info) = ([0.0; 2], [0.0; 4], [0; 1]);
        let a = InOut { src: None, dst: a };
        let results = Svd { s: &mut s, u, vt: &mut vt, info: &mut info };
        gesdd(SingularVectors::Thin, 1, m, n, a, results, &Serial)
    };
    let (mut a, mut u) = ([1.0; 4], [0.0; 4]);
    let large = 1 << 31;
    let too_large = call(large, 0, &mut [], &mut []);
    assert!(matches!(too_large, Err(Error::TooLarge { dimension: "m", .. })));
    let short = call(2, 2, &mut a, &mut u[..3]);
    assert!(matches!(short, Err(Error::Length { operand: "u", .. })));
    assert_eq!(call(2, 2, &mut a, &mut u), Ok(()));
}
