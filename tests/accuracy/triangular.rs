//! trsm: ‖op(A)·X − B‖ / (n·‖A‖·‖X‖·ε), what must not be read, zero and denormal pivots.

use lapax_core::Scalar;
use lapax_cpu::{Diag, InOut, Serial, Side, Spawned, Threads, Trans, Uplo};

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, ratio};
use crate::ratios::compare;
use crate::sample::{Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual, denormal_pivots_divide);
for_each_backend!(
    zero_pivots_give_no_finite_garbage,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    same_bits_in_strips,
);

#[derive(Clone, Copy, Debug)]
struct Form {
    side: Side,
    uplo: Uplo,
    trans: Trans,
    diag: Diag,
}

fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for &(side, _) in Side::CODES {
        for &(uplo, _) in Uplo::CODES {
            for &(trans, _) in Trans::CODES {
                forms.extend(Diag::CODES.iter().map(|&(diag, _)| Form { side, uplo, trans, diag }));
            }
        }
    }
    forms
}

impl Form {
    fn order(self, m: usize, n: usize) -> usize {
        if self.side == Side::Left { m } else { n }
    }

    fn reads(self, i: usize, j: usize) -> bool {
        match self.uplo {
            _ if i == j => self.diag == Diag::NonUnit,
            Uplo::Lower => i > j,
            Uplo::Upper => i < j,
        }
    }

    /// A with NaN wherever it must not be read.
    fn spoiled<T: Sample>(self, q: usize, a: &[T]) -> Vec<T> {
        let read = |k: usize| if self.reads(k % q, k / q) { a[k] } else { T::nan() };
        (0..a.len()).map(read).collect()
    }

    /// op(A), from the elements that are read.
    fn operand<W: Scalar<Real = f64>>(self, a: &Matrix<W>) -> Matrix<W> {
        let mut read = a.masked(|i, j| self.reads(i, j));
        if self.diag == Diag::Unit {
            (0..a.rows).for_each(|i| read.data[i + i * a.rows] = W::ONE);
        }
        match self.trans {
            Trans::None => read,
            Trans::Transpose => read.transposed(),
            Trans::ConjTranspose => read.adjoint(),
        }
    }

    fn solve<T: Sample>(
        self,
        backend: Backend,
        batch: usize,
        (m, n): (usize, usize),
        a: &[T],
        b: &[T],
        threads: &dyn Threads,
    ) -> Vec<T> {
        let Self { side, uplo, trans, diag } = self;
        let mut x = b.to_vec();
        let c = InOut { src: None, dst: &mut x };
        call!(backend, triangular::trsm(side, uplo, trans, diag, batch, m, n, a, c, threads))
            .unwrap();
        let mut other = vec![T::nan(); b.len()];
        let c = InOut { src: Some(b), dst: &mut other };
        call!(backend, triangular::trsm(side, uplo, trans, diag, batch, m, n, a, c, threads))
            .unwrap();
        assert!(bits(&x) == bits(&other), "aliased and copied calls differ");
        x
    }
}

impl Form {
    /// ‖op(A)·X − B‖ / (n·‖A‖·‖X‖·ε) for A and B times two to a power.
    fn ratio<T: Sample>(
        self,
        (m, n): (usize, usize),
        a: &[T],
        b: &[T],
        x: &[T],
        exponent: i32,
    ) -> f64 {
        let q = self.order(m, n);
        let a = self.operand(&Matrix::widened(q, a, exponent));
        let (x, b) = (Matrix::widened(m, x, 0), Matrix::widened(m, b, exponent));
        if m == 0 || n == 0 {
            return 0.0;
        }
        // On the right, of the transposed equation.
        let norm = |x: &Matrix<T::Wide>| {
            if self.side == Side::Left { x.norm() } else { x.transposed().norm() }
        };
        let product = if self.side == Side::Left { a.times(&x) } else { x.times(&a) };
        ratio::<T>(norm(&product.minus(&b)), q, norm(&a) * norm(&x), exponent)
    }
}

const SHAPES: [(usize, usize); 16] = [
    (0, 3),
    (3, 0),
    (1, 1),
    (2, 3),
    (3, 1),
    (1, 8),
    (5, 5),
    (8, 17),
    (17, 2),
    (31, 33),
    (32, 4),
    (33, 32),
    (64, 1),
    (1, 64),
    (100, 5),
    (70, 129),
];

/// A triangle of the kind whose diagonal dominates enough for X not to overflow.
fn triangle<T: Sample>(kind: Kind, q: usize) -> Matrix<T::Wide> {
    let mut a = matrix::<T>(kind, q, q, 7);
    if !matches!(kind, Kind::Kahan | Kind::Grcar | Kind::RepeatedEigenvalues) {
        for i in 0..q {
            let (i, real) = (i + i * q, <T::Wide as Scalar>::from_real);
            let size = Scalar::abs(a.data[i]).max(1e-3);
            a.data[i] += real(2.0 * size);
        }
        for k in (0..q * q).filter(|k| k % q != k / q) {
            a.data[k] = a.data[k].unscale(q as f64);
        }
    }
    a
}

fn residual<T: Sample>() {
    compare::<T>("trsm", |ratios| {
        for form in forms() {
            for (m, n) in SHAPES {
                let q = form.order(m, n);
                for (i, kind) in sweep::kinds(q).into_iter().enumerate() {
                    // With a unit diagonal the triangle has no scale to move.
                    let exponent = if form.diag == Diag::Unit { 0 } else { kind.exponent::<T>() };
                    let a: Vec<T> = triangle::<T>(kind, q).narrowed(exponent);
                    let b: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(exponent);
                    ratios.met(kind);
                    for &backend in BACKENDS {
                        let few = sweep::few(q, i);
                        let spoiled = form.spoiled(q, &a).repeat(few);
                        let b_few = b.repeat(few);
                        let x = form.solve(backend, few, (m, n), &spoiled, &b_few, &Serial);
                        let ratio = form.ratio((m, n), &a, &b, &x[..m * n], -exponent);
                        let case = || format!("{kind:?} {form:?} {m}x{n}");
                        ratios.add(backend, "op(A)·X − B", ratio, case);
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn zero_pivots_give_no_finite_garbage<T: Sample>(backend: Backend) {
    for form in forms().into_iter().filter(|form| form.diag == Diag::NonUnit) {
        for (m, n) in [(1, 1), (5, 3), (33, 40), (40, 33)] {
            let q = form.order(m, n);
            let mut a: Vec<T> = triangle::<T>(Kind::Random, q).narrowed(0);
            a[q / 2 * (q + 1)] = T::ZERO;
            let b = vec![T::ONE; m * n];
            let x = form.solve(backend, 1, (m, n), &form.spoiled(q, &a), &b, &Serial);
            for (k, x) in x.iter().enumerate() {
                let index = if form.side == Side::Left { k % m } else { k / m };
                assert!(index != q / 2 || !Scalar::is_finite(*x), "{form:?} {m}x{n}");
            }
        }
    }
}

/// The reciprocal of a denormal overflows, the quotient does not: a BLAS may multiply by the first.
fn denormal_pivots_divide<T: Sample>() {
    for form in forms().into_iter().filter(|form| form.diag == Diag::NonUnit) {
        for (m, n) in [(1, 1), (3, 2), (9, 40), (40, 9), (40, 40)] {
            let q = form.order(m, n);
            let tiny = T::narrow(<T::Wide as Scalar>::ONE, T::DENORMAL_EXPONENT + 3);
            let mut a = vec![T::ZERO; q * q];
            (0..q).for_each(|i| a[i + i * q] = tiny);
            let b = vec![T::narrow(<T::Wide as Scalar>::ONE, T::DENORMAL_EXPONENT + 5); m * n];
            let x = form.solve(Backend::Native, 1, (m, n), &form.spoiled(q, &a), &b, &Serial);
            assert!(x.iter().all(|&x| x == T::from_f64(4.0)), "{form:?} {m}x{n}: {:?}", x[0]);
        }
    }
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for form in forms() {
        for (m, n) in [(3, 4), (40, 33)] {
            let q = form.order(m, n);
            let a: Vec<T> = triangle::<T>(Kind::Random, q).narrowed(0);
            let b: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
            let expected = form.solve(backend, 1, (m, n), &a, &b, &Serial);
            let mut spoiled = b.repeat(3);
            spoiled[m * n + m * n / 2] = T::nan();
            let x = form.solve(backend, 3, (m, n), &a.repeat(3), &spoiled, &Serial);
            assert_eq!(bits(&x[..m * n]), bits(&expected));
            assert_eq!(bits(&x[2 * m * n..]), bits(&expected));
            assert!(Scalar::is_nan(x[m * n + m * n / 2]));
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 9000), (17, 1, 4000), (1, 65, 600), (40, 25, 100), (100, 129, 5)] {
        let forms = forms();
        for form in [forms[0], forms[9], forms[14], forms[23]] {
            let q = form.order(m, n);
            let a: Vec<T> = triangle::<T>(Kind::Random, q).narrowed(0);
            let b: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
            let few = (a.repeat(FEW), b.repeat(FEW));
            let expected = form.solve(backend, FEW, (m, n), &few.0, &few.1, &Serial);
            let expected = bits(&expected).repeat(batch / FEW);
            for threads in [1, 2, 7] {
                let pool = Spawned(threads);
                let x =
                    form.solve(backend, batch, (m, n), &a.repeat(batch), &b.repeat(batch), &pool);
                assert!(bits(&x) == expected, "{form:?} {m}x{n}, {threads} threads");
            }
        }
    }
}

/// One system whose right-hand sides are cut into strips, each copied as it is solved where they lie so.
fn same_bits_in_strips<T: Sample>(backend: Backend) {
    for (m, n) in [(200, 130), (130, 200), (201, 201)] {
        for form in forms() {
            let q = form.order(m, n);
            let a: Vec<T> = triangle::<T>(Kind::Random, q).narrowed(0);
            let b: Vec<T> = matrix::<T>(Kind::Random, m, n, 8).narrowed(0);
            let expected = form.solve(backend, 1, (m, n), &a, &b, &Serial);
            let x = form.solve(backend, 1, (m, n), &a, &b, &Spawned(3));
            assert!(bits(&x) == bits(&expected), "{form:?} {m}x{n}");
        }
    }
}
