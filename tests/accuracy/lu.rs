//! getrf: ‖P·L·U − A‖ / (max(m, n)·‖A‖·ε), pivots, info, NaN, and the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::{Error, InOut, Real as _, Serial, Spawned, Threads, lu::getrf};
use num_complex::Complex;

use crate::backend::{BACKENDS, Backend, call};
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, ratio, transposed};
use crate::ratios::{LIMIT, compare};
use crate::sample::{Random, Sample, bits};
use crate::sweep::{self, FEW};
use crate::{for_each_backend, for_each_scalar};

for_each_scalar!(residual);
for_each_backend!(
    pivots_are_first_maxima,
    nan_is_the_largest_pivot,
    zero_pivots_are_reported_and_passed,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    by_rows,
);

/// What a call returns.
#[derive(Debug, PartialEq)]
struct Factored<T> {
    lu: Vec<T>,
    ipiv: Vec<i32>,
    info: Vec<i32>,
}

fn factor<T: Sample>(
    backend: Backend,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    threads: &dyn Threads,
) -> Factored<T> {
    let mut lu = a.to_vec();
    let mut ipiv = vec![-7; batch * m.min(n)];
    let mut info = vec![-7; batch];
    let aliased = InOut { src: None, dst: &mut lu };
    call!(backend, lu::getrf(batch, m, n, aliased, &mut ipiv, &mut info, threads)).unwrap();

    let mut other = vec![T::nan(); a.len()];
    let (mut other_ipiv, mut other_info) = (vec![-7; ipiv.len()], vec![-7; batch]);
    let copied = InOut { src: Some(a), dst: &mut other };
    let (ipivs, infos) = (&mut other_ipiv, &mut other_info);
    call!(backend, lu::getrf(batch, m, n, copied, ipivs, infos, threads)).unwrap();
    assert_eq!(bits(&lu), bits(&other), "aliased and copied calls differ");
    assert_eq!((&ipiv, &info), (&other_ipiv, &other_info));
    Factored { lu, ipiv, info }
}

/// P·A for LAPACK's row swaps.
fn permute<W: Copy>(rows: usize, ipiv: &[i32], a: &mut [W]) {
    for column in a.chunks_exact_mut(rows) {
        for (j, &pivot) in ipiv.iter().enumerate() {
            column.swap(j, usize::try_from(pivot - 1).unwrap());
        }
    }
}

fn residual_ratio<T: Sample>(
    m: usize,
    n: usize,
    a: &[T],
    lu: &[T],
    ipiv: &[i32],
    scale: i32,
) -> f64 {
    let k = m.min(n);
    let mut pa = Matrix::widened(m, a, scale);
    if k == 0 {
        return 0.0;
    }
    permute(m, ipiv, &mut pa.data);
    // L has no scale of its own; U has that of A.
    let (l, u) = (Matrix::widened(m, lu, 0), Matrix::widened(m, lu, scale));
    let l = Matrix::new(m, k, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => T::Wide::ZERO,
        std::cmp::Ordering::Equal => T::Wide::ONE,
        std::cmp::Ordering::Greater => l.at(i, j),
    });
    let u = Matrix::new(k, n, |i, j| if i <= j { u.at(i, j) } else { T::Wide::ZERO });
    ratio::<T>(l.times(&u).minus(&pa).norm(), m.max(n), pa.norm(), scale)
}

fn residual<T: Sample>() {
    compare::<T>("getrf", |ratios| {
        for (m, n, kind, seeds) in sweep::batches_of(sweep::shapes()) {
            let exponent = kind.exponent::<T>();
            let one = |&seed| matrix::<T>(kind, m, n, seed).narrowed::<T>(exponent);
            let a: Vec<T> = seeds.iter().flat_map(one).collect();
            ratios.met(kind);
            for &backend in BACKENDS {
                let result = factor(backend, seeds.len(), m, n, &a, &Serial);
                for b in 0..seeds.len() {
                    let (item, k) = (b * m * n..(b + 1) * m * n, m.min(n));
                    let (a, lu) = (&a[item.clone()], &result.lu[item]);
                    let ipiv = &result.ipiv[b * k..(b + 1) * k];
                    let ratio = residual_ratio(m, n, a, lu, ipiv, -exponent);
                    ratios.add(backend, "P·L·U − A", ratio, || format!("{kind:?} {m}x{n}"));
                    if backend.is_held() {
                        assert_multipliers_are_bounded(backend, m, lu);
                    }
                }
            }
        }
        ratios.assert_every_kind();
    });
}

/// No multiplier is larger than partial pivoting lets it be.
fn assert_multipliers_are_bounded<T: Sample>(backend: Backend, m: usize, lu: &[T]) {
    for l in (0..lu.len()).filter(|i| i % m > i / m).map(|i| lu[i]) {
        let bound = if T::IS_COMPLEX { 2.0 } else { 1.0 };
        assert!(l.abs1().to_f64() <= bound * (1.0 + 8.0 * T::epsilon()), "{backend:?}: {l:?}");
    }
}

/// Ties go to the first row, wherever in a vector register it stands; for complex numbers the size
/// is |re| + |im|, so that 2 + 2i beats 3.5.
fn pivots_are_first_maxima<T: Sample>(backend: Backend) {
    for m in 1..100 {
        let mut random = Random(m as u64);
        let column: Vec<T> = (0..m).map(|_| T::from_f64(random.below(9) as f64 - 4.0)).collect();
        let size = |i: &usize| column[*i].abs1().to_f64();
        let first = (0..m).rev().max_by(|i, j| size(i).total_cmp(&size(j))).unwrap();
        let result = factor(backend, 1, m, 1, &column, &Serial);
        assert_eq!(result.ipiv, [i32::try_from(first + 1).unwrap()], "{} {column:?}", T::NAME);
    }
    let both = T::from_parts(T::from_f64(2.0).re(), T::from_f64(2.0).re());
    let column = [T::from_f64(2.5), both, T::from_f64(3.5)];
    assert_eq!(
        factor(backend, 1, 3, 1, &column, &Serial).ipiv,
        [if T::IS_COMPLEX { 2 } else { 3 }]
    );
}

/// Were a NaN passed over, zeros beside it would be reported as a zero pivot.
fn nan_is_the_largest_pivot<T: Sample>(backend: Backend) {
    for m in [2, 3, 20, 40, 100] {
        for rest in [T::ZERO, T::from_f64(f64::INFINITY)] {
            let mut column = vec![rest; m];
            column[m - 1] = T::nan();
            let result = factor(backend, 1, m, 1, &column, &Serial);
            assert_eq!((result.ipiv, result.info), (vec![i32::try_from(m).unwrap()], vec![0]));
            assert!(result.lu.iter().all(|&x| Scalar::is_nan(x)), "{} m = {m}", T::NAME);
        }
    }
}

fn zero_pivots_are_reported_and_passed<T: Sample>(backend: Backend) {
    for n in [1, 2, 5, 8, 17, 33, 64, 100] {
        for zero in [0, n / 2, n - 1] {
            // Upper triangular with one zero on the diagonal, and then the zero matrix.
            let mut random = Random(9);
            let mut a: Vec<T> = vec![T::ZERO; 2 * n * n];
            for j in 0..n {
                for i in 0..=j {
                    a[i + j * n] = T::narrow(random.scalar(), 0);
                }
            }
            a[zero + zero * n] = T::ZERO;
            let result = factor(backend, 2, n, n, &a, &Serial);
            assert_eq!(result.info, [i32::try_from(zero + 1).unwrap(), 1]);
            assert_eq!(result.lu, a, "{} n = {n}: nothing to eliminate", T::NAME);
        }
    }
    // Columns 2 and 3 are multiples of column 1: steps 2 and 3 meet zeros, and column 4 goes on.
    let a = [2.0, 4.0, 4.0, 8.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0, 16.0, 1.0, 1.0, 3.0, 1.0];
    let result = factor(backend, 1, 4, 4, &a.map(T::from_f64), &Serial);
    assert_eq!(result.info, [2]);
    assert_eq!(result.ipiv[..2], [4, 2]);
    assert!(result.lu.iter().all(|&x| Scalar::is_finite(x)));
}

fn nan_stays_in_its_matrix<T: Sample>(backend: Backend) {
    for (m, n) in [(1, 1), (3, 3), (8, 8), (33, 33), (100, 100), (40, 7), (7, 40)] {
        let clean: Vec<T> = (0..3)
            .flat_map(|seed| matrix::<T>(Kind::Random, m, n, seed).narrowed::<T>(0))
            .collect();
        let expected = factor(backend, 3, m, n, &clean, &Serial);
        let k = m.min(n);
        for (i, j) in [(0, 0), (m - 1, 0), (m / 2, n / 2), (m - 1, n - 1)] {
            for bad in [f64::NAN, f64::INFINITY] {
                let mut a = clean.clone();
                a[m * n + i + j * m] = T::from_f64(bad);
                let result = factor(backend, 3, m, n, &a, &Serial);
                assert_eq!(result.info, [0; 3], "{} {bad} at ({i}, {j}) of {m}x{n}", T::NAME);
                for b in [0, 2] {
                    let item = b * m * n..(b + 1) * m * n;
                    assert_eq!(bits(&result.lu[item.clone()]), bits(&expected.lu[item]));
                    assert_eq!(result.ipiv[b * k..(b + 1) * k], expected.ipiv[b * k..(b + 1) * k]);
                }
                let item = &result.lu[m * n..2 * m * n];
                assert!(
                    item.iter().any(|&x| !Scalar::is_finite(x)),
                    "{bad} at ({i}, {j}) vanished"
                );
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>(backend: Backend) {
    for (m, n, batch) in [(3, 3, 9000), (17, 17, 600), (40, 25, 100), (129, 129, 10)] {
        let one: Vec<T> = matrix::<T>(Kind::Random, m, n, 5).narrowed(0);
        let all = one.repeat(batch);
        let expected = factor(backend, FEW, m, n, &one.repeat(FEW), &Serial);
        for threads in [1, 2, 7] {
            let result = factor(backend, batch, m, n, &all, &Spawned(threads));
            assert!(
                bits(&result.lu) == bits(&expected.lu).repeat(batch / FEW),
                "{threads} threads"
            );
            assert!(result.ipiv == expected.ipiv.repeat(batch / FEW));
        }
    }
}

/// The factors of matrices that lie by rows, by recursion on one thread and by strips on several.
fn by_rows<T: Sample>(backend: Backend) {
    for (m, n) in [(9, 12), (33, 33), (40, 100), (100, 40), (70, 70), (130, 130), (340, 325)] {
        for kind in sweep::kinds(m.max(n)) {
            let (what, exponent) = (format!("{kind:?} {m} x {n}"), kind.exponent::<T>());
            let a: Vec<T> = matrix::<T>(kind, m, n, 4).narrowed(exponent);
            let factor = |batch: usize, threads: &dyn Threads| {
                let mut lu = transposed(m, &a).repeat(batch);
                let mut pivots = vec![-7; batch * m.min(n)];
                let mut permutation = vec![-7; batch * m];
                let aliased = InOut { src: None, dst: &mut lu };
                let (p, rows) = (&mut pivots, &mut permutation);
                call!(backend, lu::lu(batch, m, n, aliased, p, rows, threads)).unwrap();
                (lu, pivots, permutation)
            };
            let (lu, pivots, permutation) = factor(1, &Serial);
            let (many, many_pivots, many_permutations) = factor(3, &Spawned(2));
            assert!(bits(&many) == bits(&lu).repeat(3), "{what}");
            assert_eq!((many_pivots, many_permutations), (pivots.repeat(3), permutation.repeat(3)));

            let mut rows: Vec<_> = (0..m).collect();
            let ipiv: Vec<_> = pivots.iter().map(|pivot| pivot + 1).collect();
            permute(m, &ipiv, &mut rows);
            assert!(
                permutation.iter().map(|&row| usize::try_from(row).unwrap()).eq(rows),
                "{what}"
            );
            let lu = transposed(n, &lu);
            let ratio = residual_ratio(m, n, &a, &lu, &ipiv, -exponent);
            if backend.is_held() {
                assert!(ratio < LIMIT, "{what}: {ratio}");
                assert_multipliers_are_bounded(backend, m, &lu);
            } else {
                println!("{backend:?} {what}: {ratio:.2} is shown, not asserted about");
            }
        }
    }
}

#[test]
fn sizes_are_checked_before_anything_is_touched() {
    let call = |batch, m, n, a: &mut [f64]| {
        let (mut ipiv, mut info) = ([0; 2], [0; 1]);
        getrf(batch, m, n, InOut { src: None, dst: a }, &mut ipiv, &mut info, &Serial)
    };
    let large = 1 << 31;
    assert!(matches!(call(1, large, 0, &mut []), Err(Error::TooLarge { dimension: "m", .. })));
    assert!(matches!(call(1, 2, 2, &mut [0.0; 3]), Err(Error::Length { operand: "a", .. })));
    assert!(matches!(call(usize::MAX, 2, 2, &mut []), Err(Error::Overflow { operand: "a" })));
    assert_eq!(call(1, 2, 2, &mut [1.0; 4]), Ok(()));
}

#[test]
fn growth_of_wilkinsons_matrix_is_exact() {
    let n = 33;
    let a: Vec<f64> = matrix::<f64>(Kind::Wilkinson, n, n, 0).narrowed(0);
    let result = factor(Backend::Native, 1, n, n, &a, &Serial);
    approx::assert_relative_eq!(result.lu[n * n - 1], 2.0_f64.powi(32), max_relative = 0.0);
}

#[test]
fn complex_pivot_near_overflow_divides_safely() {
    let huge = Complex::new(f64::MAX / 4.0, f64::MAX / 4.0);
    let tiny = Complex::new(f64::MIN_POSITIVE / 8.0, -f64::MIN_POSITIVE / 8.0);
    for x in [huge, tiny] {
        let result = factor(Backend::Native, 1, 2, 1, &[x, x], &Serial);
        approx::assert_relative_eq!(result.lu[1].re, 1.0, max_relative = 4.0 * f64::EPSILON.abs());
        assert!(result.lu[1].im.abs() <= 4.0 * <f64 as lapax_cpu::Real>::EPSILON.to_f64());
    }
}
