//! `cholesky_update`: ‖R'ᴴ·R' − (Rᴴ·R + w·wᴴ)‖ / (n·‖Rᴴ·R + w·wᴴ‖·ε), row-major R.

use lapax_core::Scalar;
use lapax_cpu::{InOut, Serial, Spawned, Threads, cholesky::cholesky_update};

use crate::backend::Backend;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, ratio};
use crate::ratios::compare;
use crate::sample::{Sample, bits};
use crate::sweep::FEW;
use crate::{for_each_scalar, sweep};

for_each_scalar!(residual, nan_stays_in_its_matrix, same_bits_everywhere);

fn update<T: Sample>(batch: usize, n: usize, r: &[T], w: &[T], threads: &dyn Threads) -> Vec<T> {
    let (mut factor, mut rest) = (r.to_vec(), w.to_vec());
    let aliased = (InOut { src: None, dst: &mut factor }, InOut { src: None, dst: &mut rest });
    cholesky_update(batch, n, aliased.0, aliased.1, threads).unwrap();
    let (mut other, mut other_rest) = (vec![T::nan(); r.len()], vec![T::nan(); w.len()]);
    let copied =
        (InOut { src: Some(r), dst: &mut other }, InOut { src: Some(w), dst: &mut other_rest });
    cholesky_update(batch, n, copied.0, copied.1, threads).unwrap();
    assert!(bits(&factor) == bits(&other), "aliased and copied calls differ");
    assert!(bits(&rest) == bits(&other_rest));
    if w.iter().chain(r).all(|&x| Scalar::is_finite(x)) {
        assert!(rest.iter().all(|&x| x == T::ZERO));
    }
    factor
}

/// A row-major upper triangle of the kind, with junk below the diagonal.
fn triangle<T: Sample>(kind: Kind, n: usize, seed: u64) -> Vec<T> {
    // Squares of the elements are formed only in the residual, with its own scale.
    let transposed = matrix::<T>(kind, n, n, seed).transposed();
    let mut r: Vec<T> = transposed.narrowed(kind.exponent::<T>());
    for i in 0..n {
        for j in 0..i {
            r[i * n + j] = [T::nan(), T::from_f64(2.0)][j % 2];
        }
    }
    r
}

fn residual<T: Sample>() {
    compare::<T>("cholesky_update", |ratios| {
        for (n, kind) in sweep::orders().into_iter().flat_map(sweep::kinds_of) {
            let exponent = kind.exponent::<T>();
            let r: Vec<T> = triangle(kind, n, 1);
            ratios.met(kind);
            // One vector of the kind, one that is zero now and then, and zero itself.
            for (form, keep) in [("full", 1), ("sparse", 3), ("zero", usize::MAX)] {
                let mut w: Vec<T> = matrix::<T>(kind, n, 1, 2).narrowed(exponent);
                (0..n).filter(|i| i % keep != keep / 2).for_each(|i| w[i] = T::ZERO);
                for batch in [1, FEW] {
                    let result = update(batch, n, &r.repeat(batch), &w.repeat(batch), &Serial);
                    let one = &result[..n * n];
                    assert!(bits(&result) == bits(one).repeat(batch));
                    for k in (0..n * n).filter(|k| k % n < k / n) {
                        assert_eq!(one[k].bits(), r[k].bits(), "the lower triangle was written");
                    }
                    let ratio = residual_ratio(n, &r, &w, one, -exponent);
                    let case = || format!("{kind:?} {form} n = {n}, batch {batch}");
                    ratios.add(Backend::Native, "R'ᴴR' − (RᴴR + wwᴴ)", ratio, case);
                }
            }
        }
        ratios.assert_every_kind();
    });
}

fn residual_ratio<T: Sample>(n: usize, r: &[T], w: &[T], updated: &[T], exponent: i32) -> f64 {
    // Read as column-major, these are Rᵀ and R'ᵀ.
    let wide = |x: &[T]| Matrix::widened(n, x, exponent).transposed().masked(|i, j| i <= j);
    let w = Matrix::widened(n, w, exponent);
    let (before, after) = (wide(r), wide(updated));
    let mut expected = before.adjoint().times(&before);
    if n > 0 {
        let term = w.times(&w.adjoint());
        expected = Matrix::new(n, n, |i, j| expected.at(i, j) + term.at(i, j));
    }
    let error = after.adjoint().times(&after).minus(&expected).norm();
    // In the product, R' multiplies the rounding of its own elements, which are the denormal ones.
    let size = Some(after.norm()).filter(|&size| size > 0.0).unwrap_or(1.0);
    ratio::<T>(error / size, n, expected.norm() / size, exponent)
}

fn nan_stays_in_its_matrix<T: Sample>() {
    let n = 9;
    let r: Vec<T> = triangle(Kind::Random, n, 1);
    let w: Vec<T> = matrix::<T>(Kind::Random, n, 1, 2).narrowed(0);
    for batch in [3, FEW] {
        let expected = bits(&update(batch, n, &r.repeat(batch), &w.repeat(batch), &Serial));
        for (element, bad) in [(0, f64::NAN), (n / 2, f64::NAN), (n - 1, f64::INFINITY)] {
            let mut w = w.repeat(batch);
            w[n + element] = T::from_f64(bad);
            let result = update(batch, n, &r.repeat(batch), &w, &Serial);
            let result_bits = bits(&result);
            assert!(result_bits[..n * n] == expected[..n * n]);
            assert!(result_bits[2 * n * n..] == expected[2 * n * n..]);
            let diagonal = result[n * n + element * (n + 1)];
            assert!(!Scalar::is_finite(diagonal), "{bad} became {diagonal:?}");
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(3, 9000), (33, 300), (129, 40)] {
        let r: Vec<T> = triangle(Kind::Random, n, 1);
        let w: Vec<T> = matrix::<T>(Kind::Random, n, 1, 2).narrowed(0);
        let few = update(FEW, n, &r.repeat(FEW), &w.repeat(FEW), &Serial);
        let expected = bits(&few).repeat(batch / FEW);
        for threads in [1, 2, 7] {
            let result = update(batch, n, &r.repeat(batch), &w.repeat(batch), &Spawned(threads));
            assert!(bits(&result) == expected, "n = {n}, {threads} threads");
        }
    }
}

#[test]
fn empty_batches_and_matrices_are_nothing_to_do() {
    assert!(update::<f64>(0, 3, &[], &[], &Serial).is_empty());
    assert!(update::<f64>(3, 0, &[], &[], &Serial).is_empty());
}
