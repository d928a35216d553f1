//! Hessenberg and Schur forms of row-major matrices, by LAPACK's residual ratios.

use lapax_core::{Real as _, Scalar};
use lapax_cuda::schur::{self, Form};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Orders and matrices: of several warps to a block and of one, of one and two columns to a lane, more
/// matrices than are gone through at once.
const SIZES: [(usize, usize); 10] = [
    (1, 3),
    (2, KINDS),
    (3, KINDS),
    (4, KINDS),
    (7, KINDS),
    (16, KINDS),
    (32, 4),
    (33, 4),
    (40, KINDS),
    (2, 530),
];

const KINDS: usize = 15;

/// The matrix of a kind, by its place in a batch.
fn operand<T: Number>(random: &mut Random, n: usize, kind: usize) -> Matrix<T> {
    let number = |x: f64| T::from_real(T::Real::from_f64(x));
    let mut a = Matrix { rows: n, columns: n, data: random.scalars(n * n) };
    let (least, most) = (T::Real::SAFE_MIN.to_f64(), T::Real::MAX.to_f64());
    let keep = |a: &Matrix<T>, keeps: &dyn Fn(usize, usize) -> bool| {
        Matrix::from(n, n, |i, j| if keeps(i, j) { a[(i, j)] } else { T::ZERO })
    };
    match kind {
        1 => a.data[n * n - 1] = nan(),
        2 => a.data.fill(T::ZERO),
        3 => a = keep(&a, &|i, j| i <= j),
        4 => a = keep(&a, &|i, j| i >= j),
        // Eigenvalues on the unit circle: the usual shifts lead nowhere.
        5 => a = Matrix::from(n, n, |i, j| if i == (j + 1) % n { T::ONE } else { T::ZERO }),
        // A Jordan block, by rows from below.
        6 => a = Matrix::from(n, n, |i, j| if i == j || i == j + 1 { T::ONE } else { T::ZERO }),
        7 => a.data.iter_mut().for_each(|x| *x *= number(least * 1e3)),
        8 => a.data.iter_mut().for_each(|x| *x *= number(most / 1e4)),
        // Grcar's.
        9 => {
            a = Matrix::from(n, n, |i, j| {
                if i == j + 1 {
                    -T::ONE
                } else if i <= j && j <= i + 3 {
                    T::ONE
                } else {
                    T::ZERO
                }
            });
        }
        10 => {
            a = Matrix::from(n, n, |i, j| {
                a[(i, j)] * number(0.1_f64.powi(i32::try_from(i + j).unwrap()))
            })
        }
        11 => a.data[0] = number(f64::INFINITY),
        // A pair whose coupling is below the least number once it is scaled back.
        12 if n > 1 => {
            a = keep(&a, &|i, j| i <= j);
            let tiny = most / 1e4;
            (a[(0, 0)], a[(1, 1)]) = (T::ZERO, T::ZERO);
            (a[(0, 1)], a[(1, 0)]) = (number(tiny), number(-least));
        }
        13 => a = Matrix::from(n, n, |_, _| T::ONE),
        // Two real eigenvalues that differ by little more than the root of rounding.
        14 if n > 1 => {
            a = keep(&a, &|i, j| i <= j);
            (a[(0, 0)], a[(0, 1)], a[(1, 1)]) = (T::ONE, T::ONE, T::ONE);
            a[(1, 0)] = number(6.0 * T::Real::EPSILON.to_f64());
        }
        _ => {}
    }
    a
}

fn check<T: Number>(random: &mut Random, form: Form, n: usize, batch: usize, in_place: bool) {
    let operands: Vec<_> = (0..batch).map(|at| operand::<T>(random, n, at)).collect();
    let a: Vec<T> = operands.iter().flat_map(|a| a.data.clone()).collect();
    let (mut t, mut z) =
        (if in_place { a.clone() } else { vec![nan(); a.len()] }, vec![nan(); a.len()]);
    let operand = in_out((!in_place).then_some(&a[..]), &mut t);
    let answer = schur::decompose(&gpu(), form, batch, n, operand, output(&mut z));
    assert_eq!(answer.as_ref(), Ok(&true));
    succeeds(answer.map(|_| ()));
    let size = f64::from(u32::try_from(n).unwrap());
    for (at, a) in operands.iter().enumerate() {
        let label = format!("{form:?} of {n}, {at} of {batch}");
        let (t, z) = (Matrix::of(&t, at, n, n), Matrix::of(&z, at, n, n));
        if !a.data.iter().all(|x| x.abs().to_f64() <= T::Real::MAX.to_f64()) {
            assert_nan(&label, form, &t, &z);
            continue;
        }
        let norm = a.size().max(T::Real::SAFE_MIN.to_f64());
        // In parts of the norm, which may be near the ends of the range.
        let part =
            |a: &Matrix<T>| Matrix::from(n, n, |i, j| a[(i, j)].unscale(T::Real::from_f64(norm)));
        let found = ratio(&part(a).times(&z), &z.times(&part(&t)), size);
        assert!(found < 30.0, "{label}: {found}");
        let one = Matrix::from(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
        let found = ratio(&z.adjoint().times(&z), &one, size);
        assert!(found < 30.0, "{label}: vectors {found}");
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            assert!(i <= j + 1 || t[(i, j)] == T::ZERO, "{label}: {i}, {j}");
            let first = form == Form::Hessenberg && (i == 0 || j == 0);
            assert!(!first || z[(i, j)] == one[(i, j)], "{label}: {i}, {j}");
        }
        if form == Form::Schur {
            assert_standard(&label, &t);
            assert_phases(&label, &z);
        }
    }
}

fn assert_nan<T: Number>(label: &str, form: Form, t: &Matrix<T>, z: &Matrix<T>) {
    for (i, j) in (0..t.rows).flat_map(|i| (0..t.rows).map(move |j| (i, j))) {
        let whole = form == Form::Schur;
        let expected = if i == j { T::ONE } else { T::ZERO };
        let there = |x: T, nan: bool, other: T| if nan { x.is_nan() } else { x == other };
        assert!(there(t[(i, j)], whole || i <= j + 1, T::ZERO), "{label}: {i}, {j} of the form");
        assert!(
            there(z[(i, j)], whole || i > 0 && j > 0, expected),
            "{label}: {i}, {j} of vectors"
        );
    }
}

/// Real blocks of order 2 have LAPACK's form, and complex matrices none.
fn assert_standard<T: Number>(label: &str, t: &Matrix<T>) {
    for k in 1..t.rows {
        let (b, c) = (t[(k - 1, k)].re().to_f64(), t[(k, k - 1)].re().to_f64());
        if t[(k, k - 1)] == T::ZERO {
            continue;
        }
        assert!(!T::IS_COMPLEX, "{label}: row {k}");
        assert!(
            t[(k, k)] == t[(k - 1, k - 1)] && b * c.signum() < 0.0,
            "{label}: block at {k}: {b}, {c}"
        );
        assert!(k + 1 == t.rows || t[(k + 1, k)] == T::ZERO, "{label}: row {k}");
    }
}

fn assert_phases<T: Number>(label: &str, z: &Matrix<T>) {
    let n = z.rows;
    let bound = 0.4869 / f64::from(u32::try_from(n).unwrap()).sqrt();
    for j in 0..n {
        let sizes = (0..n).map(|i| (z[(i, j)], z[(i, j)].abs().to_f64()));
        let mut large = sizes.skip_while(|(_, size)| *size < bound * 0.9999);
        let (x, size) = large.next().unwrap();
        let leads = |x: T| x.im().to_f64() == 0.0 && x.re().to_f64() > 0.0;
        let mut next = || large.find(|(_, size)| *size >= bound).is_some_and(|(x, _)| leads(x));
        assert!(leads(x) || size < bound * 1.0001 && next(), "{label}: column {j}: {x:?}");
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(23);
    for ((n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check::<T>(&mut random, Form::Hessenberg, n, batch, seed == 1);
        check::<T>(&mut random, Form::Schur, n, batch, seed != 1);
    }
}

#[test]
fn similar_to_a_f32() {
    check_all::<f32>();
}

#[test]
fn similar_to_a_f64() {
    check_all::<f64>();
}

#[test]
fn similar_to_a_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn similar_to_a_c128() {
    check_all::<Complex<f64>>();
}

/// Eigenvalues and vectors of the same matrices.
fn check_eig<T: Number<Complex: Number>>(random: &mut Random, n: usize, batch: usize) {
    let operands: Vec<_> = (0..batch).map(|at| operand::<T>(random, n, at)).collect();
    let a: Vec<T> = operands.iter().flat_map(|a| a.data.clone()).collect();
    let (mut w, mut v) = (vec![nan::<T::Complex>(); batch * n], vec![nan(); a.len()]);
    let mut alone = w.clone();
    let (all, vectors) = (output(&mut w), Some(output(&mut v)));
    let answer = schur::eig(&gpu(), batch, n, input(&a), all, vectors);
    assert_eq!(answer.as_ref(), Ok(&true));
    succeeds(answer.map(|_| ()));
    succeeds(schur::eig(&gpu(), batch, n, input(&a), output(&mut alone), None).map(|_| ()));
    let size = f64::from(u32::try_from(n).unwrap());
    for (at, a) in operands.iter().enumerate() {
        let label = format!("order {n}, {at} of {batch}");
        let (w, alone, v) = (&w[at * n..][..n], &alone[at * n..][..n], Matrix::of(&v, at, n, n));
        if !a.data.iter().all(|x| x.abs().to_f64() <= T::Real::MAX.to_f64()) {
            assert!(w.iter().chain(alone).chain(&v.data).all(|x| x.is_nan()), "{label}");
            continue;
        }
        let norm = T::Real::from_f64(a.size().max(T::Real::SAFE_MIN.to_f64()));
        let wide = |x: T| T::Complex::from_parts(x.re() / norm, x.im() / norm);
        let part = Matrix::from(n, n, |i, j| wide(a[(i, j)]));
        let values = |w: &[T::Complex]| Vec::from_iter(w.iter().map(|w| w.unscale(norm)));
        let (w, alone) = (values(w), values(alone));
        let scaled = Matrix::from(n, n, |i, j| v[(i, j)] * w[j]);
        let found = ratio(&part.times(&v), &scaled, size);
        assert!(found < 30.0, "{label}: {found}");
        for j in 0..n {
            let column: Vec<_> = (0..n).map(|i| v[(i, j)]).collect();
            let squares: f64 = column.iter().map(|x| x.abs().to_f64().powi(2)).sum();
            let roundings = (squares - 1.0).abs() / T::Real::EPSILON.to_f64();
            assert!(roundings < 30.0 * size, "{label}: column {j}: {squares}");
            let largest = column.iter().map(|x| x.abs().to_f64()).fold(0.0, f64::max);
            // The kernel's 128 roundings, and those of what follows.
            let bound = largest * (1.0 - 136.0 * T::Real::EPSILON.to_f64());
            let near = column.iter().filter(|x| x.abs().to_f64() >= bound);
            let leads =
                |x: &&<T as Scalar>::Complex| x.im() == T::Real::ZERO && x.re() > T::Real::ZERO;
            assert!(near.clone().any(|x| leads(&x)), "{label}: column {j}");
            assert!(
                T::IS_COMPLEX || w[j].im().to_f64() <= 0.0 || w[j + 1] == w[j].conj(),
                "{label}: {j}"
            );
        }
        // Alone they add up to the same, A's trace.
        let sum = |w: &[T::Complex]| w.iter().fold(T::Complex::ZERO, |sum, w| sum + *w);
        let trace = (0..n).fold(T::Complex::ZERO, |sum, i| sum + part[(i, i)]);
        for w in [&w, &alone] {
            let found = (sum(w) - trace).abs().to_f64() / T::Real::EPSILON.to_f64();
            assert!(found < 30.0 * size, "{label}: trace {found}");
        }
    }
}

fn check_all_eig<T: Number<Complex: Number>>() {
    let Some(_device) = device() else { return };
    let mut random = Random(29);
    for ((n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check_eig::<T>(&mut random, n, batch);
    }
}

#[test]
fn eigenvectors_f32() {
    check_all_eig::<f32>();
}

#[test]
fn eigenvectors_f64() {
    check_all_eig::<f64>();
}

#[test]
fn eigenvectors_c64() {
    check_all_eig::<Complex<f32>>();
}

#[test]
fn eigenvectors_c128() {
    check_all_eig::<Complex<f64>>();
}

/// A similarity by a diagonal of powers of two spoils no eigenvalue.
#[test]
fn matrices_that_are_scaled_badly_are_balanced() {
    let Some(_device) = device() else { return };
    let (n, mut random) = (8, Random(31));
    let even: Vec<f64> = random.scalars(n * n);
    let uneven: Vec<f64> = (0..n * n)
        .map(|at| {
            even[at]
                * 2.0_f64
                    .powi(5 * (i32::try_from(at / n).unwrap() - i32::try_from(at % n).unwrap()))
        })
        .collect();
    let values = |a: &[f64]| {
        let mut w = vec![nan::<Complex<f64>>(); n];
        succeeds(schur::eig(&gpu(), 1, n, input(a), output(&mut w), None).map(|_| ()));
        w.sort_by(|x, y| (x.re, x.im).partial_cmp(&(y.re, y.im)).unwrap());
        w
    };
    let (even, uneven) = (values(&even), values(&uneven));
    let close = even.iter().zip(&uneven).all(|(x, y)| (x - y).norm() < 1e-12);
    assert!(close, "{even:?} {uneven:?}");
}

#[test]
fn larger_ones_are_left_to_others() {
    let Some(_device) = device() else { return };
    let (mut t, mut z) = (vec![1.0_f64; 65 * 65], vec![7.0; 65 * 65]);
    let answer = schur::decompose(&gpu(), Form::Schur, 1, 65, in_out(None, &mut t), output(&mut z));
    assert_eq!(answer, Ok(false));
    assert!(z.iter().all(|z| *z == 7.0));
}
