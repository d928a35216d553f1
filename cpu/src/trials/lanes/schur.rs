//! Schur forms in lanes of double precision, multiplied together again.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use lapax_core::{InOut, Items, ItemsInOut, ItemsMut, Scalar as _, Serial};

use super::BATCHES;
use crate::lanes::schur;
use crate::lanes::schur::eig;
use crate::lanes::schur::eig::{Form, Results};
use crate::matrix::layout::Layout;
use crate::simd::arch::Arch as Level;
use crate::simd::vector::MAX_LANES;
use crate::testing::levels::random;
use crate::{Real, Scalar};

for_each_scalar!(gees, geev, graded);

/// What a test's matrices look like, by turns.
const KINDS: usize = 9;
/// The kinds that lanes leave aside: an infinite element, and a column with nothing below the first.
const INFINITE: usize = 7;
const ISOLATED: usize = 8;

/// A batch of matrices of order n: random, of small integers, cyclic shifts, skew-Hermitian, near a
/// Jordan block, tiny, huge.
fn matrices<T: Scalar>(n: usize, batch: usize) -> Vec<T> {
    let real = |x: f64| T::from_real(T::Real::from_f64(x));
    let mut all = random::<T>(n * n * batch);
    for (b, a) in all.chunks_exact_mut(n * n).enumerate() {
        let noise = a.to_vec();
        for (p, x) in a.iter_mut().enumerate() {
            let (i, j) = (p % n, p / n);
            let is = |yes| if yes { 1.0 } else { 0.0 };
            *x = match b % KINDS {
                1 => T::from_real(T::Real::from_f64((x.re().to_f64() * 3.0).round() + 0.5)),
                2 => real(is(i == (j + 1) % n)) + x.scale(T::Real::EPSILON),
                3 => *x - noise[j + i * n].conj(),
                4 => real(is(i == j) + is(j == i + 1)) + x.scale(T::Real::from_f64(1e-6)),
                5 => x.scale(T::Real::SAFE_MIN * T::Real::from_f64(64.0)),
                6 => x.scale(T::Real::MAX * T::Real::from_f64(1e-4)),
                INFINITE => real(f64::INFINITY),
                ISOLATED if j == 0 && i > 0 => T::ZERO,
                _ => *x,
            };
        }
    }
    all
}

/// The matrix over its largest element, in double precision.
fn unit<T: Scalar>(a: &[T]) -> Vec<T::Double> {
    let largest = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
    let mut wide = vec![T::Double::ZERO; a.len()];
    crate::simd::scalar::widen(&mut wide, a);
    wide.iter_mut().for_each(|x| *x = x.unscale(largest));
    wide
}

/// A·Z = Z·T and Zᴴ·Z = I, to so many roundings per row.
fn is_schur_form<D: Scalar<Real = f64>>(a: &[D], t: &[D], z: &[D], rounding: f64, what: &str) {
    let n = a.len().isqrt();
    let limit = 30.0 * n as f64 * rounding;
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let (mut difference, mut product) = (D::ZERO, if i == j { -D::ONE } else { D::ZERO });
        for k in 0..n {
            difference += a[i + k * n] * z[k + j * n] - z[i + k * n] * t[k + j * n];
            product += z[k + i * n].conj() * z[k + j * n];
        }
        assert!(difference.abs() < limit, "{what}: A·Z − Z·T is {difference:?} at {i}, {j}");
        assert!(product.abs() < limit, "{what}: ZᴴZ − I is {product:?} at {i}, {j}");
        if i > j + 1 || (i == j + 1 && D::IS_COMPLEX) {
            assert_eq!(t[i + j * n], D::ZERO, "{what}: T has an element below its blocks");
        } else if i == j + 1 && t[i + j * n] != D::ZERO {
            let above = t[j + i * n].re() * t[i + j * n].re();
            assert_eq!(t[j + j * n], t[i + i * n], "{what}: a block's diagonal");
            assert!(above < 0.0, "{what}: a block's other elements");
            let next = if i + 1 < n { t[i + 1 + i * n] } else { D::ZERO };
            assert_eq!(next, D::ZERO, "{what}: two blocks overlap");
        }
    }
}

/// Marks which way a matrix went by its eigenvalues.
struct Mark;

impl<T: Scalar> schur::Finish<T> for Mark {
    fn finish(&mut self, [_, _, w, _]: [&mut [T]; 4]) {
        w.fill(T::ZERO);
    }
    fn single(&mut self, [t, z, w, _]: [&mut [T]; 4]) -> i32 {
        w.fill(T::ONE);
        z.copy_from_slice(t);
        5
    }
}

fn gees<T: Scalar>() {
    for (n, batch) in [2, 3, 4, 7, 16, 32].into_iter().flat_map(|n| BATCHES.map(|b| (n, b))) {
        let a = matrices::<T>(n, batch);
        for level in Level::available() {
            let (mut t, mut z) = (a.clone(), a.clone());
            let mut w = [vec![T::ONE; n * batch], vec![T::ONE; n * batch]];
            let mut counts = [vec![7; batch], vec![7; batch]];
            let ([re, im], [sdim, info]) = (&mut w, &mut counts);
            let operands = (
                // In place, so that what goes the other way has to be kept.
                ItemsInOut::new("a", batch, &[n, n], InOut { src: None, dst: &mut t }).unwrap(),
                ItemsMut::new("z", batch, &[n, n], &mut z).unwrap(),
                ItemsMut::new("w", batch, &[n], re).unwrap(),
                ItemsMut::new("wi", batch, &[n], im).unwrap(),
                ItemsMut::new("sdim", batch, &[], sdim).unwrap(),
                ItemsMut::new("info", batch, &[], info).unwrap(),
            );
            let kernel = schur::Decompose { n, order: Layout::Columns, finish: || Mark };
            level.run::<T::Double, _>(batch, operands, &kernel);
            for b in 0..batch {
                let what = format!("order {n}, matrix {b} of {batch}, {level:?}");
                let part = b * n * n..(b + 1) * n * n;
                let (a, t, z) = (&a[part.clone()], &t[part.clone()], &z[part]);
                let aside = [INFINITE, ISOLATED].contains(&(b % KINDS));
                assert_eq!(w[0][b * n] == T::ONE, aside, "{what}: which way");
                assert_eq!((counts[0][b], counts[1][b]), (0, if aside { 5 } else { 0 }), "{what}");
                if aside {
                    assert!(a == t && a == z, "{what}: the matrix as it was");
                    continue;
                }
                let largest = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
                let [mut t, z] = [t, z].map(|x| {
                    let mut wide = vec![T::Double::ZERO; n * n];
                    crate::simd::scalar::widen(&mut wide, x);
                    wide
                });
                t.iter_mut().for_each(|x| *x = x.unscale(largest));
                is_schur_form(&unit(a), &t, &z, T::Real::EPSILON.to_f64(), &what);
            }
        }
    }
}

/// Checks the Schur form of one matrix after another.
#[derive(Clone, Copy)]
struct Check<'a, T> {
    a: &'a [T],
    n: usize,
    vectors: bool,
    seen: &'a AtomicUsize,
    what: &'a str,
}

impl<T: Scalar> Check<'_, T> {
    /// The next matrix, in double precision, and whether lanes leave it aside.
    fn next(&self) -> (Vec<T::Double>, bool) {
        let (b, size) = (self.seen.fetch_add(1, Relaxed), self.n * self.n);
        let mut wide = vec![T::Double::ZERO; size];
        crate::simd::scalar::widen(&mut wide, &self.a[b * size..(b + 1) * size]);
        (wide, [INFINITE, ISOLATED].contains(&(b % KINDS)))
    }
}

impl<T: Scalar> eig::Finish<T, T::Double> for Check<'_, T> {
    fn finish(&mut self, form: Form<'_, T::Double>, _: Results<'_, T>) {
        let (mut a, aside) = self.next();
        let (n, what) = (self.n, self.what);
        assert!(!aside, "{what}: matrix {} is to be left aside", self.seen.load(Relaxed) - 1);
        for (p, x) in a.iter_mut().enumerate() {
            *x = x.scale(form.factor).scale(form.scale[p / n]).unscale(form.scale[p % n]);
        }
        let largest = a.iter().map(|a| a.abs1()).fold(0.0, f64::max);
        let squares = |x: &[T::Double]| x.iter().map(|x| x.abs().powi(2)).sum::<f64>();
        for i in 0..n {
            let row: Vec<_> = a.iter().skip(i).step_by(n).copied().collect();
            let ratio = squares(&a[i * n..(i + 1) * n]) / squares(&row);
            assert!((1e-2..1e2).contains(&ratio), "{what}: column and row {i} are not balanced");
        }
        if self.vectors {
            for x in a.iter_mut().chain(&mut *form.t) {
                *x = x.unscale(largest);
            }
            is_schur_form(&a, form.t, form.z, f64::EPSILON, what);
        } else {
            assert!(form.z.is_empty(), "{what}");
            let trace =
                (0..n).fold(T::Double::ZERO, |sum, i| sum + a[i * (n + 1)] - form.t[i * (n + 1)]);
            let limit = 30.0 * n as f64 * n as f64 * f64::EPSILON * largest;
            assert!(trace.abs() < limit, "{what}: the traces differ by {trace:?}");
        }
    }

    fn single(&mut self, a: &[T], _: Results<'_, T>) -> i32 {
        let (expected, aside) = self.next();
        let mut wide = expected.clone();
        crate::simd::scalar::widen(&mut wide, a);
        assert!(aside && wide == expected, "{}: no reason to leave it aside", self.what);
        5
    }
}

fn geev<T: Scalar>() {
    for (n, batch) in [2, 3, 4, 7, 16, 32].into_iter().flat_map(|n| BATCHES.map(|b| (n, b))) {
        let mut a = matrices::<T>(n, batch);
        // Something to balance.
        for (p, x) in a.iter_mut().enumerate().filter(|(p, _)| p / (n * n) % KINDS == 0) {
            let power = |i: usize| T::Real::from_f64(2.0_f64.powi((i % 7).try_into().unwrap()));
            *x = x.scale(power(p % n)).unscale(power(p / n % n));
        }
        for (level, vectors) in Level::available().flat_map(|l| [true, false].map(|v| (l, v))) {
            let what = format!("order {n}, batch {batch}, vectors {vectors}, {level:?}");
            let mut w = [vec![T::ONE; n * batch], vec![T::ONE; n * batch]];
            let mut v = [vec![T::Complex::ONE; a.len()], vec![T::Complex::ONE; a.len()]];
            let mut info = vec![7; batch];
            let ([re, im], [left, right]) = (&mut w, &mut v);
            let operands = (
                Items::new("a", batch, &[n, n], &a).unwrap(),
                ItemsMut::new("w", batch, &[n], re).unwrap(),
                ItemsMut::new("wi", batch, &[n], im).unwrap(),
                ItemsMut::new("vl", batch, &[n, n], left).unwrap(),
                ItemsMut::new("vr", batch, &[n, n], right).unwrap(),
                ItemsMut::new("info", batch, &[], &mut info).unwrap(),
            );
            let seen = AtomicUsize::new(0);
            let check = Check { a: &a, n, vectors, seen: &seen, what: &what };
            let kernel = eig::Decompose { n, vectors, order: Layout::Columns, finish: || check };
            level.run::<T::Double, _>(batch, operands, &kernel);
            assert_eq!(seen.load(Relaxed), batch, "{what}");
            for (b, info) in info.into_iter().enumerate() {
                let aside = [INFINITE, ISOLATED].contains(&(b % KINDS));
                assert_eq!(info, if aside { 5 } else { 0 }, "{what}");
            }
        }
    }
}

/// Eigenvalues of a matrix whose rows, or columns, are graded over 60 decades, to their own size: a batch once took
/// roundings of the largest element for nothing where convergence took ten sweeps.
fn graded<T: Scalar>() {
    /// Row i, or column i, is multiplied by 2^(−28·i).
    const MATRIX: [[i8; 8]; 8] = [
        [4, 1, 2, 4, 3, -6, -6, 0],
        [-1, 5, -4, -2, -4, 4, -3, -1],
        [4, 7, -5, -1, 4, 5, 5, -6],
        [2, -2, -4, -5, 7, -1, 3, -1],
        [7, -4, 6, -1, 5, 3, 2, 1],
        [-6, -4, -6, 3, -5, 3, -7, -1],
        [4, -1, 7, -5, -1, 5, 2, -2],
        [-1, -3, 4, 6, 1, -3, -7, -5],
    ];
    /// Of both, from QR steps in 200 digits.
    const EIGENVALUES: [f64; 8] = [
        3.999_999_999_068_677_4,
        1.955_777_401_596_754_7e-8,
        -4.163_336_398_474_45e-17,
        5.662_249_027_154_326e-26,
        -9.604_527_362_858_736e-33,
        3.181_115_157_882_995e-41,
        -1.915_124_868_736_106e-51,
        8.241_228_531_151_586e-58,
    ];
    let n = MATRIX.len();
    let grade = |i: usize| 2.0_f64.powi(-28 * i32::try_from(i).unwrap());
    let limit = 1000.0 * n as f64 * f64::EPSILON;
    for by_rows in [true, false] {
        let at = |p: usize| {
            let (i, j) = (p / n, p % n);
            let x = f64::from(MATRIX[i][j]) * grade(if by_rows { i } else { j });
            T::Double::from_real(x)
        };
        let one: Vec<T::Double> = (0..n * n).map(at).collect();
        let a = one.repeat(MAX_LANES);
        let mut w = vec![<T::Double as lapax_core::Scalar>::Complex::ZERO; n * MAX_LANES];
        crate::eig::eigvals(MAX_LANES, n, &a, &mut w, &Serial).unwrap();
        for w in w.chunks_exact_mut(n) {
            w.sort_by(|x, y| y.abs().total_cmp(&x.abs()));
            for (w, expected) in w.iter().zip(EIGENVALUES) {
                let error = (w.re() - expected).abs().max(w.im().abs()) / expected.abs();
                assert!(error < limit, "by rows: {by_rows}: {w:?} is not {expected:e}: {error:e}");
            }
        }
    }
}
