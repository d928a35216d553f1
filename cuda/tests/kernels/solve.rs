//! LU factorisation of row-major matrices and what it is for, by LAPACK's residual ratios: matrices of a
//! thread, of lanes of a warp, and of a block; more than are gone through at once.

use lapax_core::{Real as _, Trans};
use lapax_cuda::{Kind, lu, solve};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Rows, columns and matrices.
const SIZES: [(usize, usize, usize); 18] = [
    (1, 1, 1),
    (1, 1, 40),
    (2, 3, 33),
    (4, 2, 7),
    (4, 4, 130),
    (3, 3, 5),
    (5, 5, 9),
    (8, 8, 5),
    (7, 3, 3),
    (2, 8, 3),
    (11, 16, 3),
    (16, 13, 2),
    (17, 17, 2),
    (32, 32, 1),
    (20, 31, 3),
    (33, 33, 2),
    (50, 21, 1),
    (19, 40, 2),
];

/// Square ones.
const ORDERS: [(usize, usize); 9] =
    [(1, 70), (2, 3), (4, 65), (6, 5), (8, 17), (13, 3), (16, 2), (29, 2), (45, 2)];

/// One for all of a batch, as LAPACK's tests have it.
const LIMIT: f64 = 30.0;

/// Random ones; of several, the second has a zero column and the third a NaN.
fn batch_of<T: Number>(random: &mut Random, batch: usize, m: usize, n: usize) -> Vec<T> {
    let mut a: Vec<T> = random.scalars(batch * m * n);
    if batch > 2 && n > 1 {
        (0..m).for_each(|i| a[m * n + i * n + 1] = T::ZERO);
        a[2 * m * n + (m * n) / 2] = nan();
    }
    a
}

fn factors<T: Number>(a: &[T], batch: usize, m: usize, n: usize) -> (Vec<T>, Vec<i32>, Vec<i32>) {
    let (mut lu, mut pivots) = (vec![nan(); batch * m * n], vec![-1; batch * m.min(n)]);
    let mut permutation = vec![-1; batch * m];
    let operands = (in_out(Some(a), &mut lu), output(&mut pivots), output(&mut permutation));
    succeeds(solve::lu(&gpu(), batch, (m, n), operands.0, operands.1, operands.2));
    (lu, pivots, permutation)
}

fn rows_of(permutation: &[i32]) -> Vec<usize> {
    permutation.iter().map(|&row| usize::try_from(row).unwrap()).collect()
}

fn check_lu<T: Number>(random: &mut Random, m: usize, n: usize, batch: usize) {
    let a = batch_of::<T>(random, batch, m, n);
    let (lu, pivots, permutation) = factors(&a, batch, m, n);
    let k = m.min(n);
    for b in 0..batch {
        let (a, lu) = (Matrix::of(&a, b, m, n), Matrix::of(&lu, b, m, n));
        let order = rows_of(&permutation[b * m..][..m]);
        let mut swapped: Vec<usize> = (0..m).collect();
        rows_of(&pivots[b * k..][..k])
            .into_iter()
            .enumerate()
            .for_each(|(k, p)| swapped.swap(k, p));
        assert_eq!(order, swapped, "{m} × {n}, {b} of {batch}");
        if batch > 2 && n > 1 && b == 2 {
            assert!(lu.data.iter().any(|x| x.is_nan()), "{m} × {n}");
            continue;
        }
        let l = Matrix::from(m, k, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Greater => lu[(i, j)],
            std::cmp::Ordering::Equal => T::ONE,
            std::cmp::Ordering::Less => T::ZERO,
        });
        // |re| + |im| chooses the pivot: of the modulus a multiplier has at most the root of two.
        assert!(l.data.iter().all(|x| x.abs().to_f64() < 1.415), "{m} × {n}, {b} of {batch}");
        let u = Matrix::from(k, n, |i, j| if i <= j { lu[(i, j)] } else { T::ZERO });
        let permuted = Matrix::from(m, n, |i, j| a[(order[i], j)]);
        let found = ratio(&l.times(&u), &permuted, permuted.size() * largest(k));
        assert!(found < LIMIT, "lu {m} × {n}, {b} of {batch}: {found}");
    }
    // In place, and in another place of a batch: the same bits.
    let mut again = [&a[..m * n], &a].concat();
    let (mut pivots, mut rows) = (vec![-1; (batch + 1) * k], vec![-1; (batch + 1) * m]);
    let operands = (in_out(None, &mut again), output(&mut pivots), output(&mut rows));
    succeeds(solve::lu(&gpu(), batch + 1, (m, n), operands.0, operands.1, operands.2));
    let bits = |x: &[T]| x.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>();
    assert_eq!(bits(&again[m * n..]), bits(&lu), "{m} × {n}, {batch}");
    assert_eq!(rows[m..], permutation);
}

fn largest(n: usize) -> f64 {
    f64::from(u32::try_from(n.max(1)).unwrap())
}

/// ‖B − op(A)·X‖ over n ε ‖A‖ ‖X‖.
fn residual<T: Number>(trans: Trans, a: &Matrix<T>, x: &Matrix<T>, b: &Matrix<T>) -> f64 {
    let op = Matrix::from(a.rows, a.columns, |i, j| match trans {
        Trans::None => a[(i, j)],
        Trans::Transpose => a[(j, i)],
        Trans::ConjTranspose => a[(j, i)].conj(),
    });
    ratio(&op.times(x), b, op.size() * x.size() * largest(a.rows))
}

fn check_systems<T: Number>(random: &mut Random, n: usize, batch: usize, nrhs: usize) {
    let a = batch_of::<T>(random, batch, n, n);
    let b: Vec<T> = random.scalars(batch * n * nrhs);
    let (mut x, mut inverse) = (vec![T::ZERO; batch * n * nrhs], vec![T::ZERO; batch * n * n]);
    succeeds(solve::solve(&gpu(), batch, n, nrhs, (input(&a), input(&b)), output(&mut x)));
    succeeds(solve::inv(&gpu(), batch, n, input(&a), output(&mut inverse)));
    let (lu, _, permutation) = factors(&a, batch, n, n);
    let transposed = [Trans::None, Trans::Transpose, Trans::ConjTranspose].map(|trans| {
        let mut x = vec![T::ZERO; batch * n * nrhs];
        let factors = (input(&lu), input(&permutation));
        let out = output(&mut x);
        succeeds(solve::lu_solve(&gpu(), trans, batch, (n, nrhs), factors, input(&b), out));
        (trans, x)
    });
    let identity = Matrix::from(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
    for at in 0..batch {
        let label = format!("{n}, {at} of {batch}, {nrhs}");
        let given = Matrix::of(&a, at, n, n);
        let right = Matrix::of(&b, at, n, nrhs);
        let found = Matrix::of(&x, at, n, nrhs);
        if batch > 2 && n > 1 && (at == 1 || at == 2) {
            let finite = found.data.iter().all(|x| x.is_finite());
            assert!(!finite, "{label}: of a matrix that is singular, or has NaN");
            continue;
        }
        let found = residual(Trans::None, &given, &found, &right);
        assert!(found < LIMIT, "solve {label}: {found}");
        let found = residual(Trans::None, &given, &Matrix::of(&inverse, at, n, n), &identity);
        assert!(found < LIMIT, "inv {label}: {found}");
        for (trans, x) in &transposed {
            let found = residual(*trans, &given, &Matrix::of(x, at, n, nrhs), &right);
            assert!(found < LIMIT, "lu_solve {trans:?} {label}: {found}");
        }
    }
}

/// By the diagonal of the same factors, in f64.
fn check_determinants<T: Number>(random: &mut Random, n: usize, batch: usize) {
    let a = batch_of::<T>(random, batch, n, n);
    let (mut sign, mut logabs) = (vec![nan(); batch], vec![T::Real::from_f64(7.0); batch]);
    let outputs = (output(&mut sign), output(&mut logabs));
    succeeds(solve::slogdet(&gpu(), batch, n, input(&a), outputs.0, outputs.1));
    let (lu, pivots, _) = factors(&a, batch, n, n);
    for at in 0..batch {
        let (lu, label) = (Matrix::of(&lu, at, n, n), format!("{n}, {at} of {batch}"));
        let sizes = (0..n).map(|i| lu[(i, i)].abs().to_f64());
        let (expected, found) = (sizes.map(f64::ln).sum::<f64>(), logabs[at].to_f64());
        if batch > 2 && n > 1 && at == 1 {
            assert_eq!((sign[at], found), (T::ZERO, f64::NEG_INFINITY), "{label}");
            continue;
        }
        if batch > 2 && n > 1 && at == 2 {
            assert!(found.is_nan(), "{label}: {found}");
            continue;
        }
        let epsilon = T::Real::EPSILON.to_f64();
        let distance = (found - expected).abs() / (epsilon * largest(n) * (1.0 + expected.abs()));
        assert!(distance < LIMIT, "{label}: {found} {expected}");
        let swaps = rows_of(&pivots[at * n..][..n]).into_iter().enumerate().filter(|(k, p)| k != p);
        let parity = if swaps.count() % 2 == 0 { T::ONE } else { -T::ONE };
        let phase = |i: usize| lu[(i, i)].unscale(lu[(i, i)].abs());
        let expected = (0..n).map(phase).fold(parity, |all, phase| all * phase);
        let distance = (sign[at] - expected).abs().to_f64() / (epsilon * largest(n));
        assert!(distance < LIMIT, "{label}: {:?} {expected:?}", sign[at]);
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(11);
    for ((m, n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check_lu::<T>(&mut random, m, n, batch);
    }
    for ((n, batch), seed) in ORDERS.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check_determinants::<T>(&mut random, n, batch);
        for nrhs in [1, 6] {
            check_systems::<T>(&mut random, n, batch, nrhs);
        }
    }
    // More than blocks have warps, or there are blocks; more right-hand sides than lie beside a matrix.
    check_lu::<T>(&mut random, 17, 2, 530);
    check_lu::<T>(&mut random, 33, 1, 140);
    check_systems::<T>(&mut random, 34, 1, 70);
}

#[test]
fn solves_f32() {
    check_all::<f32>();
}

#[test]
fn solves_f64() {
    check_all::<f64>();
}

#[test]
fn solves_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn solves_c128() {
    check_all::<Complex<f64>>();
}

/// Of several entries of one size the first is the pivot, as in LAPACK. A Walsh–Hadamard matrix, its rows
/// in another order and times powers of i, has them in every column, and all that becomes of it is exact:
/// multipliers are units or zero.
fn check_ties<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(2);
    let units = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    for (m, n) in [(4, 4), (8, 8), (16, 16), (32, 32), (32, 7), (64, 64)] {
        let mut order: Vec<usize> = (0..m).collect();
        (1..m).for_each(|i| order.swap(i, random.below(i + 1)));
        let a: Matrix<T> = Matrix::from(m, n, |i, j| {
            let sign = if (order[i] & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            let (re, im) = if T::IS_COMPLEX { units[i % 4] } else { units[0] };
            T::from_parts(T::Real::from_f64(sign * re), T::Real::from_f64(sign * im))
        });
        let (mut expected, mut rows) = (a.clone(), vec![0; m.min(n)]);
        for k in 0..m.min(n) {
            let first_largest = |best, i| {
                if expected[(i, k)].abs1() > expected[(best, k)].abs1() { i } else { best }
            };
            let top = (k..m).fold(k, first_largest);
            rows[k] = i32::try_from(top).unwrap();
            (0..n).for_each(|j| expected.data.swap(k * n + j, top * n + j));
            for i in k + 1..m {
                let multiplier = expected[(i, k)].divide(expected[(k, k)]);
                expected[(i, k)] = multiplier;
                for j in k + 1..n {
                    let product = multiplier * expected[(k, j)];
                    expected[(i, j)] -= product;
                }
            }
        }
        let (lu, pivots, _) = factors(&a.data, 1, m, n);
        assert_eq!(pivots, rows, "{m} × {n}");
        assert!(lu == expected.data, "{m} × {n}");
    }
}

#[test]
fn the_first_of_equal_entries_is_the_pivot() {
    check_ties::<f32>();
    check_ties::<f64>();
    check_ties::<Complex<f32>>();
    check_ties::<Complex<f64>>();
}

/// The kernel for column-major matrices has the same panels.
#[test]
fn the_factors_are_those_of_getrf() {
    let Some(_device) = device() else { return };
    let (m, n) = (43, 37);
    let a: Vec<f64> = Random(3).scalars(m * n);
    let (factors, pivots, _) = factors(&a, 1, m, n);
    let mut turned: Vec<f64> = (0..m * n).map(|at| a[at % m * n + at / m]).collect();
    let (mut ipiv, mut info) = (vec![-1; n], [-1]);
    let (pivots_out, info_out) = (output(&mut ipiv), output(&mut info));
    succeeds(lu::getrf(&gpu(), 1, m, n, in_out(None, &mut turned), pivots_out, info_out));
    assert!((0..m * n).all(|at| turned[at] == factors[at % m * n + at / m]));
    assert_eq!((ipiv, info), (pivots.iter().map(|row| row + 1).collect(), [0]));
}

#[test]
fn empty_ones_have_their_permutation_and_determinant() {
    let Some(_device) = device() else { return };
    for m in [1, 6, 40] {
        let (lu, pivots, permutation) = factors::<f64>(&[], 2, m, 0);
        assert_eq!((lu.len(), pivots.len()), (0, 0));
        let rows: Vec<i32> = (0..i32::try_from(m).unwrap()).collect();
        assert_eq!(permutation, [rows.clone(), rows].concat());
    }
    let (mut sign, mut logabs) = ([7.0; 2], [7.0; 2]);
    let outputs = (output(&mut sign), output(&mut logabs));
    succeeds(solve::slogdet::<f64>(&gpu(), 2, 0, input(&[]), outputs.0, outputs.1));
    assert_eq!((sign, logabs), ([1.0; 2], [0.0; 2]));
    let none: (&[f64], &[f64]) = (&[], &[]);
    let operands = (input(none.0), input(none.1));
    succeeds(solve::solve(&gpu(), 0, 3, 2, operands, output(&mut [])));
    succeeds(solve::solve(&gpu(), 2, 0, 2, operands, output(&mut [])));
    succeeds(solve::inv::<f64>(&gpu(), 0, 40, input(&[]), output(&mut [])));
}

/// X has NaN where the permutation names no row, and where it does not name one; nothing else is read.
#[test]
fn a_wrong_permutation_is_nan() {
    let Some(_device) = device() else { return };
    for n in [3, 7, 40] {
        let lu: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at % (n + 1) == 0))).collect();
        let mut permutation: Vec<i32> = (0..i32::try_from(n).unwrap()).rev().collect();
        permutation[1] = i32::try_from(n).unwrap();
        let b: Vec<f64> = (0..n).map(|i| f64::from(u32::try_from(i).unwrap())).collect();
        for trans in [Trans::None, Trans::Transpose] {
            let mut x = vec![7.0; n];
            let (factors, out) = ((input(&lu), input(&permutation)), output(&mut x));
            succeeds(solve::lu_solve(&gpu(), trans, 1, (n, 1), factors, input(&b), out));
            if trans == Trans::None {
                assert!(x[1].is_nan(), "{n}: {x:?}");
                continue;
            }
            for (i, x) in x.into_iter().enumerate() {
                assert!(if i == n - 2 { x.is_nan() } else { x == b[n - 1 - i] }, "{n} {i}");
            }
        }
    }
}

/// The ends of the range: nothing overflows or vanishes that has to be neither.
#[test]
fn determinants_of_huge_and_tiny_entries_have_a_sign() {
    let Some(_device) = device() else { return };
    let huge = Complex::new(f32::MAX, -f32::MAX);
    for (entry, n) in [(huge, 3), (Complex::new(0.0, 1e-44), 3), (huge, 40)] {
        let mut a = vec![Complex::new(0.0, 0.0); n * n];
        (0..n).for_each(|i| a[i * n + i] = entry);
        let (mut sign, mut logabs) = ([Complex::new(7.0, 7.0)], [7.0]);
        let outputs = (output(&mut sign), output(&mut logabs));
        succeeds(solve::slogdet(&gpu(), 1, n, input(&a), outputs.0, outputs.1));
        let (re, im) = (f64::from(entry.re), f64::from(entry.im));
        let expected = re.hypot(im).ln() * largest(n);
        assert!((f64::from(logabs[0]) - expected).abs() < 1e-5 * expected.abs(), "{logabs:?}");
        assert!((sign[0].norm() - 1.0).abs() < 1e-4, "{sign:?}");
    }
}

#[test]
fn what_no_block_can_hold_is_refused() {
    let Some(_device) = device() else { return };
    let a = vec![0.0_f64; 300 * 300];
    let mut x = vec![0.0; 300 * 300];
    let error = solve::inv(&gpu(), 1, 300, input(&a), output(&mut x)).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    let text = error.message();
    assert!(text.starts_with("expected a matrix that fits into a block's shared memory"), "{text}");
    assert!(text.contains("got 300 × 300, which takes 726000"), "{text}");
}
