//! orgqr, ormqr: ‖Q − H₁⋯H_k‖ / (m·ε), ‖QᴴQ − I‖ / (m·ε), and products with Q against those with the
//! same reflectors in the wide type, ‖op(Q)·C − …‖ / (max(m, n)·‖C‖·ε).

use lapax_cpu::qr::Factor;
use lapax_cpu::{InOut, Serial, Side, Spawned, Threads};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, departure, ratio};
use crate::qr::{factor, shapes, wide_q};
use crate::ratios::compare;
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(columns_of_q, products_with_q);
for_each_backend!(same_bits_everywhere);

pub(crate) fn form<T: Sample>(
    backend: Backend,
    batch: usize,
    (m, n, t): (usize, usize, usize),
    a: &[T],
    tau: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let mut q = a.to_vec();
    let aliased = InOut { src: None, dst: &mut q };
    call!(backend, qr::orgqr(batch, m, n, t, aliased, tau, threads)).unwrap();
    let mut other = vec![T::nan(); a.len()];
    let copied = InOut { src: Some(a), dst: &mut other };
    call!(backend, qr::orgqr(batch, m, n, t, copied, tau, threads)).unwrap();
    assert!(bits(&q) == bits(&other), "aliased and copied calls differ");
    q
}

/// The factored matrix with its R replaced by what must not be read.
fn spoiled<T: Sample>(m: usize, qr: &[T]) -> Vec<T> {
    let junk = [T::nan(), T::from_f64(3.0)];
    (0..qr.len()).map(|k| if k % m > k / m { qr[k] } else { junk[k % 2] }).collect()
}

/// Every kind, each for another number of reflectors.
fn columns_of_q<T: Sample>() {
    compare::<T>("orgqr", |ratios| {
        for (m, n) in shapes().filter(|(m, n)| m >= n && *n > 0) {
            for (i, kind) in sweep::kinds(m).into_iter().enumerate() {
                let t = [n, n / 3, n - 1, 0][i % 4];
                let a: Vec<T> = matrix::<T>(kind, m, n, 2).narrowed(kind.exponent::<T>());
                let (qr, tau) = factor(Backend::Native, 1, m, n, &a, &Serial);
                let (tau, expected) = (&tau[..t], wide_q(m, &qr, &tau[..t]));
                let expected = Matrix::new(m, n, |i, j| expected.at(i, j));
                ratios.met(kind);
                for &backend in BACKENDS {
                    let few = sweep::few(m, i);
                    let spoiled = spoiled(m, &qr).repeat(few);
                    let q = form(backend, few, (m, n, t), &spoiled, &tau.repeat(few), &Serial);
                    let q = Matrix::widened(m, &q[..m * n], 0);
                    let case = || format!("{kind:?} {m} x {n}, {t} reflectors");
                    let error = q.minus(&expected).norm();
                    ratios.add(backend, "Q − H₁⋯H_k", ratio::<T>(error, m, 1.0, 0), case);
                    ratios.add(backend, "QᴴQ − I", departure::<T>(&q), case);
                }
            }
        }
        ratios.assert_every_kind();
    });
}

/// A call of ormqr: C's shape, the side and the factor.
#[derive(Clone, Copy, Debug)]
struct Form {
    side: Side,
    factor: Factor,
    m: usize,
    n: usize,
}

impl Form {
    pub(crate) fn all(m: usize, n: usize) -> [Self; 4] {
        let form = |side, factor| Self { side, factor, m, n };
        [
            form(Side::Left, Factor::Q),
            form(Side::Left, Factor::Adjoint),
            form(Side::Right, Factor::Q),
            form(Side::Right, Factor::Adjoint),
        ]
    }

    fn order(self) -> usize {
        if self.side == Side::Left { self.m } else { self.n }
    }

    fn multiply<T: Sample>(
        self,
        backend: Backend,
        batch: usize,
        p: usize,
        (a, tau): (&[T], &[T]),
        c: &[T],
        threads: &dyn Threads,
    ) -> Vec<T> {
        let Self { side, factor, m, n } = self;
        let t = tau.len() / batch;
        let mut result = c.to_vec();
        let aliased = InOut { src: None, dst: &mut result };
        call!(backend, qr::ormqr(side, factor, batch, m, n, p, t, a, tau, aliased, threads))
            .unwrap();
        let mut other = vec![T::nan(); c.len()];
        let copied = InOut { src: Some(c), dst: &mut other };
        call!(backend, qr::ormqr(side, factor, batch, m, n, p, t, a, tau, copied, threads))
            .unwrap();
        assert!(bits(&result) == bits(&other), "aliased and copied calls differ");
        result
    }
}

/// Every kind of C, with another number of reflectors for each.
fn products_with_q<T: Sample>() {
    compare::<T>("ormqr", |ratios| {
        let shapes = shapes().filter(|(m, n)| m.min(n) > &0);
        for ((m, n), form) in shapes.flat_map(|(m, n)| Form::all(m, n).map(|form| ((m, n), form))) {
            for (i, kind) in sweep::kinds(m.max(n)).into_iter().enumerate() {
                let r = form.order();
                let p = [1, r.div_ceil(2), r][i % 3];
                // Of p columns, the last ones may hold no reflectors.
                let t = p - p / 4;
                let a: Vec<T> = matrix::<T>(Kind::Random, r, p, 3).narrowed(0);
                let (qr, tau) = factor(Backend::Native, 1, r, p, &a, &Serial);
                let exponent = kind.exponent::<T>();
                let c: Vec<T> = matrix::<T>(kind, m, n, 4).narrowed(exponent);
                ratios.met(kind);
                for &backend in BACKENDS {
                    let few = sweep::few(m.max(n), i);
                    let ratio = form.ratio((backend, few), p, (&qr, &tau[..t]), &c, exponent);
                    let case = || format!("{kind:?} {form:?} p = {p}");
                    ratios.add(backend, "op(Q)·C", ratio, case);
                }
            }
        }
        ratios.assert_every_kind();
    });
}

impl Form {
    /// The ratio of a product with the Q whose reflectors are the first columns of `qr`.
    fn ratio<T: Sample>(
        self,
        (backend, few): (Backend, usize),
        p: usize,
        (qr, tau): (&[T], &[T]),
        c: &[T],
        exponent: i32,
    ) -> f64 {
        let (Self { m, n, .. }, r) = (self, self.order());
        let q = wide_q(r, qr, tau);
        let mut a = spoiled(r, qr);
        a[r * tau.len()..].fill(T::nan());
        let packed = (&a.repeat(few)[..], &tau.repeat(few)[..]);
        let result = self.multiply(backend, few, p, packed, &c.repeat(few), &Serial);
        let c = Matrix::widened(m, c, -exponent);
        let q = if self.factor == Factor::Q { q } else { q.adjoint() };
        let expected = if self.side == Side::Left { q.times(&c) } else { c.times(&q) };
        let error = Matrix::widened(m, &result[..m * n], -exponent).minus(&expected).norm();
        ratio::<T>(error, m.max(n), c.norm(), -exponent)
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 4000), (20, 9, 700), (64, 64, 25), (130, 80, 10)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 9).narrowed(0);
        let (qr, tau) = factor(backend, 1, m, n, &one, &Serial);
        let few = (qr.repeat(FEW), tau.repeat(FEW));
        let q = form(backend, FEW, (m, n, n), &few.0, &few.1, &Serial);
        let (many, many_tau) = (qr.repeat(batch), tau.repeat(batch));
        let c: Vec<T> = matrix::<T>(Kind::Random, m, m, 10).narrowed(0);
        for threads in [1, 2, 7] {
            let pool = Spawned(threads);
            let many_q = form(backend, batch, (m, n, n), &many, &many_tau, &pool);
            assert!(bits(&many_q) == bits(&q).repeat(batch / FEW), "{m} x {n}, {threads} threads");
            for call in Form::all(m, m) {
                let expected =
                    call.multiply(backend, FEW, n, (&few.0, &few.1), &c.repeat(FEW), &Serial);
                let packed = (&many[..], &many_tau[..]);
                let got = call.multiply(backend, batch, n, packed, &c.repeat(batch), &pool);
                assert!(bits(&got) == bits(&expected).repeat(batch / FEW), "{call:?}");
            }
        }
    }
}
