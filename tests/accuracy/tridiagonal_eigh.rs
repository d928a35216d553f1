//! tridiagonal_eigh: ‖T·V − V·diag(w)‖ / (n·‖T‖·ε), ‖VᵀV − I‖ / (n·ε), order, phases, parts, the values alone, NaN,
//! and the same bits everywhere.

use std::ops::Range;

use lapax_core::Scalar;
use lapax_cpu::eigh::{tridiagonal_eigh, tridiagonal_eigvalsh};
use lapax_cpu::{Serial, Spawned, Threads};
use num_complex::Complex;

use crate::for_each_real;
use crate::kinds::{Kind, hermitian};
use crate::matrix::{Matrix, departure, ratio};
use crate::phase::has_phase;
use crate::ratios::LIMIT;
use crate::sample::Sample;
use crate::sweep;

for_each_real!(
    residual,
    glued_split_and_equal,
    second_difference,
    blocks_keep_their_digits,
    not_finite_stays_in_its_matrix,
    same_bits_everywhere,
    wrong_sizes,
);

/// The kernels' bounds: f32 and f64.
pub(crate) trait RealSample: Sample<Wide = f64> + Scalar<Real = Self> {}
impl RealSample for f32 {}
impl RealSample for f64 {}

/// The diagonals and what is beside them, of several matrices of order n.
#[derive(Clone)]
struct Batch<T> {
    n: usize,
    d: Vec<T>,
    e: Vec<T>,
}

impl<T: RealSample> Batch<T> {
    fn new(n: usize, elements: &[(Vec<f64>, Vec<f64>)], exponent: i32) -> Self {
        let narrow = |x: &f64| T::narrow(*x, exponent);
        let d = elements.iter().flat_map(|(d, _)| d).map(narrow).collect();
        let e = elements.iter().flat_map(|(_, e)| e).map(narrow).collect();
        Self { n, d, e }
    }

    /// What is beside the diagonal of a Hermitian matrix of that kind, and it itself.
    fn of_kind(kind: Kind, n: usize, seeds: &[u64]) -> Self {
        let one = |&seed| {
            let a = hermitian::<T>(kind, n, seed);
            let beside = |i: usize| a.at(i + 1, i);
            ((0..n).map(|i| a.at(i, i)).collect(), (0..n.saturating_sub(1)).map(beside).collect())
        };
        let elements: Vec<(Vec<f64>, Vec<f64>)> = seeds.iter().map(one).collect();
        Self::new(n, &elements, kind.exponent::<T>())
    }

    fn count(&self) -> usize {
        self.d.len() / self.n.max(1)
    }

    fn item(&self, b: usize) -> Self {
        let beside = self.n.saturating_sub(1);
        let d = self.d[b * self.n..(b + 1) * self.n].to_vec();
        Self { n: self.n, d, e: self.e[b * beside..(b + 1) * beside].to_vec() }
    }

    fn matrix(&self, exponent: i32) -> Matrix<f64> {
        Matrix::new(self.n, self.n, |i, j| match i.abs_diff(j) {
            0 => self.d[i].widen(exponent),
            1 => self.e[i.min(j)].widen(exponent),
            _ => 0.0,
        })
    }

    fn decomposed(&self, part: Range<usize>, threads: &dyn Threads) -> (Vec<T>, Vec<T>) {
        let (n, k, batch) = (self.n, part.len(), self.count());
        let (mut v, mut w) = (vec![T::nan(); batch * n * k], vec![T::nan(); batch * k]);
        tridiagonal_eigh(batch, n, part, &self.d, &self.e, &mut v, &mut w, threads).unwrap();
        (v, w)
    }

    fn values(&self, threads: &dyn Threads) -> Vec<T> {
        let mut w = vec![T::nan(); self.d.len()];
        tridiagonal_eigvalsh(self.count(), self.n, &self.d, &self.e, &mut w, threads).unwrap();
        w
    }

    /// Decomposes all of it and parts of it; elements are times 2 to the power −`exponent`.
    fn check(&self, exponent: i32, what: &str) {
        let (n, alone) = (self.n, self.values(&Serial));
        for part in [0..n, n / 3..n / 2 + 1, 0..1, n - 1..n] {
            let k = part.len();
            let (v, w) = self.decomposed(part.clone(), &Serial);
            for b in 0..self.count() {
                let what = format!("{what} n = {n}, {part:?} of number {b} of {}", self.count());
                let a = self.item(b).matrix(exponent);
                let v = &v[b * n * k..(b + 1) * n * k];
                let v = Matrix::<f64>::new(n, k, |i, j| v[i * k + j].widen(0));
                let widen = |w: &[T]| -> Vec<f64> { w.iter().map(|w| w.widen(exponent)).collect() };
                let w = widen(&w[b * k..(b + 1) * k]);
                let alone = widen(&alone[b * n..(b + 1) * n]);
                assert!(w.is_sorted() && alone.is_sorted(), "{what}: {w:?} {alone:?}");
                let vw = Matrix::new(n, k, |i, j| v.at(i, j) * w[j]);
                let error = a.times(&v).minus(&vw).norm();
                let largest = |worst: f64, (x, y): (&f64, &f64)| {
                    let error = (x - y).abs();
                    // Unlike f64::max, this keeps a NaN.
                    if error <= worst { worst } else { error }
                };
                let beside = w.iter().zip(&alone[part.clone()]).fold(0.0, largest);
                for error in [error, beside] {
                    let ratio = ratio::<T>(error, n, a.norm(), exponent);
                    assert!(ratio < LIMIT, "{what}: {ratio}");
                }
                assert!(departure::<T>(&v) < LIMIT, "{what}: {}", departure::<T>(&v));
                for j in 0..k {
                    let column = (0..n).map(|i| Complex::new(v.at(i, j), 0.0));
                    assert!(has_phase::<T>(column), "{what}: column {j}");
                }
            }
        }
    }
}

fn residual<T: RealSample>() {
    for (n, _, kind, seeds) in sweep::batches_of(sweep::squares()) {
        if n > 0 {
            let batch = Batch::<T>::of_kind(kind, n, &seeds);
            batch.check(-kind.exponent::<T>(), &format!("{kind:?}"));
        }
    }
    Batch::<T>::of_kind(Kind::Random, 300, &[3]).check(0, "shared");
    Batch::<T>::of_kind(Kind::Graded, 200, &[3, 4]).check(0, "shared");
}

/// Wilkinson's matrices glued and not, all elements equal, and zeros.
fn glued_split_and_equal<T: RealSample>() {
    for (n, batch) in [(2_usize, 5), (21, 9), (41, 1), (42, 8), (70, 2), (205, 1)] {
        let wilkinson: Vec<f64> = (0..n).map(|i| (i % 21).abs_diff(10) as f64 / 10.0).collect();
        let beside = |of: &dyn Fn(usize) -> f64| -> Vec<f64> { (1..n).map(of).collect() };
        let glued = beside(&|i| if i % 21 == 0 { 1e-9 } else { 0.1 });
        let split = beside(&|i| if i.is_multiple_of(3) { 0.0 } else { 0.5 });
        let (zeros, ones) = (vec![0.0; n], vec![1.0; n]);
        let graded: Vec<f64> = (0..n).map(|i| 0.6_f64.powi(i32::try_from(i).unwrap())).collect();
        for (d, e) in [
            (wilkinson.clone(), glued.clone()),
            (wilkinson, split.clone()),
            (zeros.clone(), ones[1..].to_vec()),
            (ones.clone(), ones[1..].to_vec()),
            (ones, zeros[1..].to_vec()),
            (zeros.clone(), zeros[1..].to_vec()),
            (zeros, split),
            (graded.clone(), graded[1..].to_vec()),
            (graded.iter().rev().copied().collect(), graded[1..].iter().rev().copied().collect()),
        ] {
            Batch::<T>::new(n, &vec![(d, e); batch], 0).check(0, "by name");
        }
    }
}

/// 2 − 2·cos(kπ/(n + 1)).
fn second_difference<T: RealSample>() {
    for (n, batch) in [(1, 3), (5, 1), (9, 7), (100, 1), (500, 1)] {
        let elements = (vec![2.0; n], vec![-1.0; n - 1]);
        let of = Batch::<T>::new(n, &vec![elements; batch], 0);
        let ((_, w), alone) = (of.decomposed(0..n, &Serial), of.values(&Serial));
        for (k, (w, alone)) in w.iter().zip(&alone).enumerate() {
            let angle = (k % n + 1) as f64 * std::f64::consts::PI / (n + 1) as f64;
            for w in [w, alone] {
                let error = (w.widen(0) - (2.0 - 2.0 * angle.cos())).abs();
                assert!(error < 8.0 * n as f64 * <T as Sample>::epsilon(), "{k} of {n}: {w:?}");
            }
        }
    }
}

/// Blocks of very different sizes, one matrix by itself: each has the digits that it has alone.
fn blocks_keep_their_digits<T: RealSample>() {
    let size = (0.75 * f64::from(T::MIN_EXPONENT)).exp2();
    let d = vec![2.0, 3.0, 2.0 * size, 5.0 * size];
    let of = Batch::<T>::new(4, &[(d, vec![1.0, 0.0, 2.0 * size])], 0);
    let ((_, w), alone) = (of.decomposed(0..4, &Serial), of.values(&Serial));
    let root = 1.25_f64.sqrt();
    let exact = [size, 6.0 * size, 2.5 - root, 2.5 + root];
    for (w, exact) in w.iter().zip(exact).chain(alone.iter().zip(exact)) {
        assert!((w.widen(0) / exact - 1.0).abs() < 8.0 * <T as Sample>::epsilon(), "{w:?} {exact}");
    }
}

fn not_finite_stays_in_its_matrix<T: RealSample>() {
    for (n, batch) in [(1, 3), (2, 3), (7, 9), (40, 9), (40, 3), (200, 3)] {
        let seeds: Vec<u64> = (0..batch).collect();
        let clean = Batch::<T>::of_kind(Kind::Random, n, &seeds);
        let part = 0..n.div_ceil(2);
        let k = part.len();
        let (expected, values) = (clean.decomposed(part.clone(), &Serial), clean.values(&Serial));
        for bad in [f64::NAN, f64::INFINITY] {
            let mut spoilt = clean.clone();
            if n == 1 {
                spoilt.d[1] = <T as Sample>::from_f64(bad);
            } else {
                spoilt.e[2 * (n - 1) - 1] = <T as Sample>::from_f64(bad);
            }
            let ((v, w), alone) =
                (spoilt.decomposed(part.clone(), &Serial), spoilt.values(&Serial));
            let with = |found: &[T], expected: &[T], item: usize| {
                found.chunks(item).zip(expected.chunks(item)).enumerate().all(|(b, (x, y))| {
                    if b == 1 { x.iter().all(|&x| Scalar::is_nan(x)) } else { x == y }
                })
            };
            assert!(with(&v, &expected.0, n * k), "n = {n}, {batch} of them");
            assert!(with(&w, &expected.1, k), "n = {n}, {batch} of them");
            assert!(with(&alone, &values, n), "n = {n}, {batch} of them");
        }
    }
}

fn same_bits_everywhere<T: RealSample>() {
    for (n, batch, few) in [(3, 1000, 4), (17, 100, 4), (40, 24, 8), (100, 6, 1), (230, 3, 1)] {
        let one = Batch::<T>::of_kind(Kind::Random, n, &[5]);
        let repeated = |count: usize| Batch { n, d: one.d.repeat(count), e: one.e.repeat(count) };
        let (some, all) = (repeated(few), repeated(batch));
        for part in [0..n, 1..n / 2 + 1] {
            let (v, w) = some.decomposed(part.clone(), &Serial);
            for threads in [1, 2, 7] {
                let found = all.decomposed(part.clone(), &Spawned(threads));
                let times = batch / few;
                assert!(found == (v.repeat(times), w.repeat(times)), "n = {n}, {threads} threads");
            }
        }
        let values = some.values(&Serial);
        assert!(all.values(&Spawned(3)) == values.repeat(batch / few), "n = {n}");
    }
}

fn wrong_sizes<T: RealSample>() {
    let one = [T::ONE; 3];
    let (mut v, mut w) = ([T::ZERO; 9], [T::ZERO; 3]);
    let error = tridiagonal_eigh(1, 3, 0..3, &one, &one, &mut v, &mut w, &Serial);
    assert!(error.unwrap_err().to_string().contains('e'));
    let (e, part) = (&one[..2], 1..4);
    let error = tridiagonal_eigh(1, 3, part, &one, e, &mut v, &mut w, &Serial);
    assert!(error.unwrap_err().to_string().contains("stop"));
    tridiagonal_eigh(4, 3, 2..2, &[T::nan(); 12], &[T::ONE; 8], &mut [], &mut [], &Serial).unwrap();
    tridiagonal_eigvalsh::<T>(5, 0, &[], &[], &mut [], &Serial).unwrap();
}
