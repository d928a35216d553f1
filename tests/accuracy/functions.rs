//! expm: ‖X − exp(A)‖ / (n·max(1, ‖A‖)·‖exp(A)‖·ε) against a Taylor sum of many more terms, and what is exact;
//! triangular_sylvester: ‖R·Y ± Y·S − F‖ / (max(m, n)·(‖R‖ + ‖S‖)·‖Y‖·ε); triangular_sqrtm: ‖X² − A‖ / (n·‖X‖²·ε);
//! triangular_parlett: max |x_ij·(t_ii − t_jj) − right side of the recurrence| / (n·‖T‖·‖X‖·ε), what is exact; and the same
//! bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::functions::{expm, triangular_parlett, triangular_sqrtm, triangular_sylvester};
use lapax_cpu::{Real as _, Serial, Spawned, Threads};

use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, identity, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Random, Sample, bits};
use crate::{for_each_complex, for_each_scalar, sweep};

for_each_scalar!(
    residual,
    large,
    triangular,
    overscaled,
    not_finite_stays,
    same_bits_everywhere,
    wrong_sizes,
    equations,
    roots,
    singular_roots,
    triangles_have_the_same_bits_everywhere,
);

for_each_complex!(recurrences, recurrences_have_the_same_bits_everywhere);

fn exponentials<T: Sample>(batch: usize, n: usize, a: &[T], threads: &dyn Threads) -> Vec<T> {
    let mut x = vec![T::nan(); a.len()];
    expm(batch, n, a, &mut x, threads).unwrap();
    x
}

/// Σ Bᵏ/k! of B = A/2ˢ, squared s times, with ‖B‖ < 1.
fn taylor<W: Scalar<Real = f64>>(a: &Matrix<W>) -> Matrix<W> {
    let n = a.rows;
    let halvings = (0..64).find(|&k| a.norm() <= 2.0_f64.powi(k)).unwrap();
    let b = Matrix::new(n, n, |i, j| a.at(i, j).scale(2.0_f64.powi(-halvings)));
    let (mut sum, mut term) = (identity::<W>(n), identity::<W>(n));
    for k in 1..=22 {
        let next = term.times(&b);
        term = Matrix::new(n, n, |i, j| next.at(i, j).unscale(f64::from(k)));
        sum = Matrix::new(n, n, |i, j| sum.at(i, j) + term.at(i, j));
    }
    (0..halvings).fold(sum, |sum, _| sum.times(&sum))
}

/// Whether exp of each matrix of a batch, all the same, is right.
fn check<T: Sample>(what: &str, batch: usize, n: usize, a: &[T]) {
    let x = exponentials(batch, n, &a.repeat(batch), &Serial);
    assert!(bits(&x[..n * n]) == bits(&x[(batch - 1) * n * n..]), "{what}: first and last");
    let x = Matrix::<T::Wide>::widened(n, &transposed(n, &x[..n * n]), 0);
    let a = Matrix::<T::Wide>::widened(n, &transposed(n, a), 0);
    let exact = taylor(&a);
    let scale = exact.norm() * a.norm().max(1.0);
    let ratio = ratio::<T>(x.minus(&exact).norm(), n, scale, 0);
    assert!(ratio < LIMIT, "{what} {batch} x {n}: {ratio}");
}

/// A matrix of that kind with a norm.
fn of_norm<T: Sample>(kind: Kind, n: usize, norm: f64) -> Vec<T> {
    let a = matrix::<T>(kind, n, n, 5);
    let factor = norm / a.norm().max(1e-300);
    Matrix::new(n, n, |i, j| a.at(i, j).scale(factor)).narrowed(0)
}

/// The norms between which an approximant and a number of squarings serve.
const NORMS: [f64; 8] = [0.0, 1e-3, 0.1, 0.5, 1.5, 3.0, 7.0, 20.0];

fn residual<T: Sample>() {
    for (turn, n) in [1, 2, 3, 4, 5, 8, 13, 16, 17, 33].into_iter().enumerate() {
        for (kind, norm) in sweep::kinds(n).into_iter().zip(NORMS.into_iter().cycle().skip(turn)) {
            if kind.exponent::<T>() == 0 {
                let a = of_norm::<T>(kind, n, norm);
                check(&format!("{kind:?} of norm {norm}"), sweep::FEW, n, &a);
                check(&format!("{kind:?} of norm {norm}"), 1, n, &a);
            }
        }
    }
}

/// By all threads.
fn large<T: Sample>() {
    for (n, norm) in [(128, 3.0), (150, 0.1), (200, 9.0)] {
        check("large", 1, n, &of_norm::<T>(Kind::Random, n, norm));
        let a = of_norm::<T>(Kind::Random, n, norm);
        let [one, three] = [exponentials(1, n, &a, &Serial), exponentials(1, n, &a, &Spawned(3))];
        assert!(bits(&one) == bits(&three), "{n}: threads");
    }
}

const TRIANGLES: [fn(usize, usize) -> bool; 3] = [|i, j| i <= j, |i, j| i >= j, |i, j| i == j];

/// Upper, lower and diagonal ones have the exponentials of their diagonals.
fn triangular<T: Sample>() {
    for (n, batch) in [(1, 1), (2, 5), (5, 5), (16, 5), (5, 1), (20, 1)] {
        let full = matrix::<T>(Kind::Random, n, n, 7);
        for keep in TRIANGLES {
            let a = full.masked(keep);
            let a: Vec<T> = Matrix::new(n, n, |i, j| a.at(i, j).scale(20.0)).narrowed(0);
            let x = exponentials(batch, n, &a.repeat(batch), &Serial);
            for k in 0..n {
                let (exact, own) = (exp::<T>(a[k * (n + 1)]), x[k * (n + 1)].widen(0));
                let error = (own - exact).abs();
                let limit = 2.0 * <T as Sample>::epsilon() * exact.abs();
                assert!(error <= limit, "{n}: {own:?} {exact:?}");
            }
            let zeros = (0..n * n).all(|p| a[p] != T::ZERO || x[p] == T::ZERO);
            assert!(zeros, "{n}: a triangle stays one");
        }
    }
}

fn exp<T: Sample>(x: T) -> T::Wide {
    let (size, angle) = (x.re().to_f64().exp(), x.im().to_f64());
    T::Wide::from_parts(size * angle.cos(), size * angle.sin())
}

/// Matrices of large norm whose powers are small have no more squarings than these ask for.
fn overscaled<T: Sample>() {
    let large = if <T as Sample>::epsilon() < 1e-10 { 1e12 } else { 1e6 };
    for (n, batch) in [(2, 5), (6, 5), (6, 1), (18, 1)] {
        // exp of [1 b; 0 -1] has b·sinh(1) beside its diagonal; what follows makes it no triangle.
        let mut a = vec![T::ZERO; n * n];
        (a[0], a[1], a[n + 1]) = (T::ONE, T::from_f64(large), -T::ONE);
        a[n] = T::from_f64(1e-3 / large);
        let x = exponentials(batch, n, &a.repeat(batch), &Serial);
        let root = (1.0 + 1e-3_f64).sqrt();
        let exact = large * root.sinh() / root;
        let error = (x[1].widen(0).re() - exact).abs() / exact;
        assert!(error < 100.0 * <T as Sample>::epsilon(), "{n}: {error:e}");
    }
}

fn not_finite_stays<T: Sample>() {
    for n in [1, 3, 8, 16, 20, 130] {
        let clean: Vec<T> = matrix::<T>(Kind::Random, n, n, 3).narrowed(0);
        for bad in [T::nan(), T::from_f64(f64::INFINITY)] {
            let mut a = clean.repeat(5);
            a[n * n + n / 2] = bad;
            let (x, alone) =
                (exponentials(5, n, &a, &Serial), exponentials(5, n, &clean.repeat(5), &Serial));
            assert!(x[n * n..2 * n * n].iter().all(|x| x.is_nan()), "{n}");
            for i in [0, 2, 3, 4] {
                let own = i * n * n..(i + 1) * n * n;
                assert!(bits(&x[own.clone()]) == bits(&alone[own]), "{n}");
            }
        }
    }
}

/// Beside neighbours of other degrees, squarings and structures, in another place, and with other threads.
fn same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(1, 40), (2, 40), (3, 40), (8, 40), (16, 20), (20, 9)] {
        let one = |k: usize| -> Vec<T> {
            let norm = NORMS[k % NORMS.len()] * if k.is_multiple_of(11) { 1e9 } else { 1.0 };
            let a = of_norm::<T>(Kind::Random, n, norm);
            let zero = |p: usize| match k % 5 {
                1 => p / n > p % n,
                2 => p / n < p % n,
                3 => k.is_multiple_of(2) && p / n != p % n,
                _ => false,
            };
            (0..n * n).map(|p| if zero(p) { T::ZERO } else { a[p] }).collect()
        };
        let matrices: Vec<Vec<T>> = (0..batch).map(one).collect();
        let all = exponentials(batch, n, &matrices.concat(), &Serial);
        assert!(bits(&all) == bits(&exponentials(batch, n, &matrices.concat(), &Spawned(3))));
        let mut random = Random(9);
        for _ in 0..2 {
            let mut order: Vec<usize> = (0..batch).collect();
            for i in (1..batch).rev() {
                let limit = u64::try_from(i + 1).unwrap();
                order.swap(i, usize::try_from(random.below(limit)).unwrap());
            }
            let moved: Vec<T> = order.iter().flat_map(|&i| matrices[i].clone()).collect();
            let moved = exponentials(batch, n, &moved, &Serial);
            for (place, &i) in order.iter().enumerate() {
                let [here, there] = [place, i].map(|i| i * n * n..(i + 1) * n * n);
                assert!(bits(&moved[here]) == bits(&all[there]), "{n}: matrix {i}");
            }
        }
    }
}

fn wrong_sizes<T: Sample>() {
    let error = expm(2, 3, &[T::ONE; 18], &mut [T::ZERO; 17], &Serial);
    assert!(error.unwrap_err().to_string().contains('x'));
    assert!(exponentials::<T>(3, 0, &[], &Serial).is_empty());
}

/// By rows: upper triangular, but for blocks of order 2 at every third row where it is real and `blocks` says so, with
/// eigenvalues near `size`. What is below is not to be read.
fn triangle<T: Sample>(n: usize, size: f64, blocks: bool, seed: u64) -> Vec<T> {
    let full = matrix::<T>(Kind::Random, n, n, seed);
    let joined = |i: usize| blocks && !T::IS_COMPLEX && i % 3 == 1 && i < n;
    let a = Matrix::new(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => full.at(i, j).unscale(n as f64),
        std::cmp::Ordering::Equal => full.at(i, i) + T::Wide::from_real(size),
        std::cmp::Ordering::Greater if i == j + 1 && joined(j) => T::Wide::from_real(-0.5),
        std::cmp::Ordering::Greater => T::Wide::ZERO,
    });
    // Blocks as a Schur form has them: the same numbers on the diagonal, signs beside it.
    let a = Matrix::new(n, n, |i, j| match (i, j) {
        _ if i == j && i > 0 && joined(i - 1) => a.at(i - 1, i - 1),
        _ if j == i + 1 && joined(i) => T::Wide::from_real(0.25),
        _ => a.at(i, j),
    });
    transposed(n, &a.narrowed::<T>(0))
}

fn wide<T: Sample>(rows: usize, columns: usize, a: &[T]) -> Matrix<T::Wide> {
    Matrix::widened(rows, &transposed(columns, a), 0)
}

fn equations<T: Sample>() {
    let sizes = [(1, 1), (2, 2), (2, 5), (7, 3), (16, 16), (20, 17), (25, 60), (70, 30), (1, 40)];
    for ((m, n), batch) in sizes.into_iter().flat_map(|size| [1, 5].map(|batch| (size, batch))) {
        for (minus, blocks) in [(false, false), (true, false), (false, true), (true, true)] {
            let size = if minus { -3.0 } else { 3.0 };
            let (r, s) = (triangle::<T>(m, 3.0, blocks, 1), triangle::<T>(n, size, blocks, 2));
            let f = transposed(m, &matrix::<T>(Kind::Random, m, n, 3).narrowed::<T>(0));
            let mut y = vec![T::nan(); batch * m * n];
            let operands = [&r, &s, &f].map(|a| a.repeat(batch));
            let [r_all, s_all, f_all] = &operands;
            triangular_sylvester(minus, batch, (m, n), r_all, s_all, f_all, &mut y, &Serial)
                .unwrap();
            assert!(bits(&y[..m * n]) == bits(&y[(batch - 1) * m * n..]), "{m} x {n}");
            let (r, s, y) = (wide(m, m, &r), wide(n, n, &s), wide(m, n, &y[..m * n]));
            let (left, right) = (r.times(&y), y.times(&s));
            let sum = if minus {
                left.minus(&right)
            } else {
                left.minus(&Matrix::new(m, n, |i, j| -right.at(i, j)))
            };
            let error = sum.minus(&wide(m, n, &f)).norm();
            let ratio = ratio::<T>(error, m.max(n), (r.norm() + s.norm()) * y.norm(), 0);
            assert!(ratio < LIMIT, "{batch} of {m} x {n}, {minus} {blocks}: {ratio}");
        }
    }
}

fn square_roots<T: Sample>(batch: usize, n: usize, a: &[T]) -> Vec<T> {
    let mut x = vec![T::nan(); a.len()];
    triangular_sqrtm(batch, n, a, &mut x, &Serial).unwrap();
    x
}

fn roots<T: Sample>() {
    for (n, batch) in [1, 2, 3, 8, 16, 17, 50, 100].into_iter().flat_map(|n| [(n, 1), (n, 5)]) {
        for blocks in [false, true] {
            let a = triangle::<T>(n, 2.0, blocks, 4);
            let x = square_roots(batch, n, &a.repeat(batch));
            assert!(bits(&x[..n * n]) == bits(&x[(batch - 1) * n * n..]), "{n}");
            let (a, x) = (wide(n, n, &a), wide(n, n, &x[..n * n]));
            let ratio = ratio::<T>(x.times(&x).minus(&a).norm(), n, x.norm() * x.norm(), 0);
            assert!(ratio < LIMIT, "{batch} of {n}, {blocks}: {ratio}");
            assert!((0..n).all(|i| x.at(i, i).re() > 0.0), "{n}: the right half plane");
        }
    }
}

/// Zeros between two zeros where that is a root; no number where there is none, or no real one.
fn singular_roots<T: Sample>() {
    for batch in [1, 5] {
        let root = |a: &[f64]| {
            let a: Vec<T> = a.iter().map(|&x| T::from_f64(x)).collect();
            square_roots(batch, 3, &a.repeat(batch))[..9].to_vec()
        };
        let x = root(&[0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 4.0]);
        let exact = [0.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0].map(T::from_f64);
        assert!(x == exact, "{x:?}");
        let x = root(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert!(!x[1].is_finite(), "{x:?}");
        let x = root(&[-4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        let exact = T::from_parts(T::ZERO.re(), T::from_f64(2.0).re());
        assert!(if T::IS_COMPLEX { x[0] == exact } else { x[0].is_nan() }, "{x:?}");
    }
}

/// Beside matrices with blocks of order 2, and with NaN.
fn triangles_have_the_same_bits_everywhere<T: Sample>() {
    for n in [2, 3, 8, 16] {
        let batch = 21;
        let mut all: Vec<T> =
            (0..batch).flat_map(|k| triangle::<T>(n, 3.0, k % 3 == 0, k)).collect();
        let plain: Vec<T> = (0..batch).flat_map(|k| triangle::<T>(n, 3.0, false, k)).collect();
        all[n * n] = T::nan();
        let count = usize::try_from(batch).unwrap();
        let [mixed, alone] = [&all, &plain].map(|a| {
            let mut y = vec![T::nan(); a.len()];
            let sides = plain.clone();
            triangular_sylvester(false, count, (n, n), a, &plain, &sides, &mut y, &Spawned(3))
                .unwrap();
            (square_roots(count, n, a), y)
        });
        for k in (0..count).filter(|k| k % 3 > 0 && *k != 1) {
            let own = k * n * n..(k + 1) * n * n;
            assert!(bits(&mixed.0[own.clone()]) == bits(&alone.0[own.clone()]), "{n}: {k}");
            assert!(bits(&mixed.1[own.clone()]) == bits(&alone.1[own]), "{n}: {k}");
        }
        assert!(mixed.0[n * n].is_nan() && mixed.1[n * n].is_nan(), "{n}");
    }
}

/// T and G by rows, every fifth number on T's diagonal a repeated one. What is below is not to be read.
fn recurrence<T: Sample>(n: usize, seed: u64) -> (Vec<T>, Vec<T>) {
    let [mut t, mut g] = [triangle::<T>(n, 3.0, false, seed), triangle(n, 1.0, false, seed + 1)];
    for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
        (t[i * n + j], g[i * n + j]) = (T::nan(), T::nan());
    }
    for i in (3..n).step_by(5) {
        t[i * (n + 1)] = t[(i - 2) * (n + 1)];
    }
    (t, g)
}

fn by_recurrence<T: Sample>(batch: usize, n: usize, (t, g): (&[T], &[T])) -> Vec<T> {
    let mut x = vec![T::nan(); t.len()];
    triangular_parlett(batch, n, t, g, &mut x, &Serial).unwrap();
    x
}

/// Each entry solves its equation, of which the others are as computed; what has none is exact.
fn recurrences<T: Sample>() {
    for (n, batch) in (1..=70).flat_map(|n| [(n, 1), (n, 9)]) {
        let (t, g) = recurrence::<T>(n, 4);
        let x = by_recurrence(batch, n, (&t.repeat(batch), &g.repeat(batch)));
        assert!(bits(&x[..n * n]) == bits(&x[(batch - 1) * n * n..]), "{n}");
        let [t, g, x] = [&t, &g, &x].map(|a| wide(n, n, &a[..n * n]));
        let upper = |a: &Matrix<T::Wide>| a.masked(|i, j| i <= j).norm();
        let mut error = 0.0_f64;
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            if i >= j {
                let exact = if i == j { g.at(i, j) } else { T::Wide::ZERO };
                assert!(x.at(i, j) == exact, "{n}: {i}, {j}");
                continue;
            }
            let mut right = T::Wide::ZERO;
            for k in i + 1..j {
                right += x.at(i, k) * t.at(k, j) - t.at(i, k) * x.at(k, j);
            }
            let (difference, own) = (t.at(i, i) - t.at(j, j), t.at(i, j) * g.at(i, j));
            error = if difference == T::Wide::ZERO {
                error.max((x.at(i, j) - own).abs())
            } else {
                error.max(((x.at(i, j) - own) * difference - right).abs())
            };
            assert!(!error.is_nan(), "{n}: {i}, {j}");
        }
        let ratio = ratio::<T>(error, n, upper(&t) * upper(&x), 0);
        assert!(ratio < LIMIT, "{batch} of {n}: {ratio}");
    }
}

/// Beside others and NaN, in another place, and with other threads.
fn recurrences_have_the_same_bits_everywhere<T: Sample>() {
    for (n, batch) in [(2, 41), (8, 41), (16, 21), (33, 21), (60, 5)] {
        let one = |k: u64| recurrence::<T>(n, k);
        let (mut t, g): (Vec<_>, Vec<_>) = (0..batch).map(one).unzip();
        t[1][n - 1] = T::nan();
        let batch = t.len();
        let all = by_recurrence(batch, n, (&t.concat(), &g.concat()));
        let mut spread = vec![T::nan(); all.len()];
        triangular_parlett(batch, n, &t.concat(), &g.concat(), &mut spread, &Spawned(3)).unwrap();
        assert!(bits(&spread) == bits(&all), "{n}: threads");
        t.reverse();
        let turned: Vec<T> = g.into_iter().rev().flatten().collect();
        let turned = by_recurrence(batch, n, (&t.concat(), &turned));
        for k in 0..batch {
            let [here, there] = [batch - 1 - k, k].map(|k| k * n * n..(k + 1) * n * n);
            assert!(bits(&turned[here]) == bits(&all[there]), "{n}: {k}");
        }
        assert!(all[n * n + n - 1].is_nan() && all[..n * n].iter().all(|x| !x.is_nan()), "{n}");
    }
}
