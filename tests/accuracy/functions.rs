//! expm: ‖X − exp(A)‖ / (n·max(1, ‖A‖)·‖exp(A)‖·ε) against a Taylor sum of many more terms, what is exact, and the same
//! bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::functions::expm;
use lapax_cpu::{Real as _, Serial, Spawned, Threads};

use crate::for_each_scalar;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, identity, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Random, Sample, bits};
use crate::sweep;

for_each_scalar!(
    residual,
    large,
    triangular,
    overscaled,
    not_finite_stays,
    same_bits_everywhere,
    wrong_sizes,
);

fn exponentials<T: Sample>(batch: usize, n: usize, a: &[T], threads: &dyn Threads) -> Vec<T> {
    let mut x = vec![T::nan(); a.len()];
    expm(batch, n, a, &mut x, threads).unwrap();
    x
}

/// Σ Bᵏ/k! of B = A/2ˢ, squared s times, with ‖B‖ < 1.
fn taylor<W: Scalar<Real = f64>>(a: &Matrix<W>) -> Matrix<W> {
    let n = a.rows;
    let halvings = a.norm().log2().ceil().max(0.0) as i32;
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
    let factor = norm / a.norm().max(f64::MIN_POSITIVE);
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

/// Upper, lower and diagonal ones have the exponentials of their diagonals.
fn triangular<T: Sample>() {
    for (n, batch) in [(1, 1), (2, 5), (5, 5), (16, 5), (5, 1), (20, 1)] {
        let full = matrix::<T>(Kind::Random, n, n, 7);
        for keep in [|i, j| i <= j, |i, j| i >= j, |i: usize, j: usize| i == j] {
            let a = full.masked(keep);
            let a: Vec<T> = Matrix::new(n, n, |i, j| a.at(i, j).scale(20.0)).narrowed(0);
            let x = exponentials(batch, n, &a.repeat(batch), &Serial);
            for k in 0..n {
                let (exact, own) = (exp::<T>(a[k * (n + 1)]), x[k * (n + 1)].widen(0));
                let error = (own - exact).abs();
                let limit = 2.0 * <T as Sample>::epsilon() * exact.abs();
                assert!(error <= limit, "{n}: {own:?} {exact:?}");
            }
            let zeros = (0..n * n).filter(|&p| a[p] == T::ZERO).all(|p| {
                let kept = keep(p % n, p / n) || !keep(p / n, p % n);
                kept || x[p] == T::ZERO
            });
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
    let large = if T::Real::MAX.to_f64() > 1e100 { 1e12 } else { 1e6 };
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
            let norm = NORMS[k % NORMS.len()] * if k % 11 == 0 { 1e9 } else { 1.0 };
            let a = of_norm::<T>(Kind::Random, n, norm);
            let zero = |p: usize| match k % 5 {
                1 => p / n > p % n,
                2 => p / n < p % n,
                3 => k % 2 == 0 && p / n != p % n,
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
