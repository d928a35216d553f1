//! Tridiagonal systems: as lapax-cpu's, which computes in the same order.

use lapax_core::{Real as _, Serial};
use lapax_cuda::tridiagonal;
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::random::{Number, Random, distance};

fn check_perturbed<T: Number>(random: &mut Random, batch: usize, m: usize, nrhs: usize) {
    let mut diagonals: [Vec<T>; 3] = std::array::from_fn(|_| random.scalars(batch * m));
    // Rows of other sizes; a system that is singular; one whose pivots vanish.
    let tiny = T::Real::from_f64(1e-20);
    diagonals[1].iter_mut().step_by(5).for_each(|d| *d = d.scale(tiny));
    if batch > 1 {
        diagonals.iter_mut().for_each(|d| d[..m].fill(T::ZERO));
        diagonals[0][m..2 * m].fill(T::ZERO);
        diagonals[1][m..2 * m].fill(T::ZERO);
    }
    let mut b: Vec<T> = random.scalars(batch * m * nrhs);
    // Pivots are compared relative to their rows, of which the sizes differ by up to 2⁴⁰.
    for rows in diagonals.iter_mut().chain([&mut b]) {
        for (at, element) in rows.iter_mut().enumerate() {
            let exponent = i32::try_from(at % m * 13 % 41).unwrap() - 20;
            *element = element.scale(T::Real::from_f64(2.0_f64.powi(exponent)));
        }
    }
    let [dl, d, du] = &diagonals;
    let mut expected = vec![T::ZERO; b.len()];
    let a = [&dl[..], &d[..], &du[..]];
    lapax_cpu::tridiagonal::tridiagonal_solve_perturbed(
        batch,
        m,
        nrhs,
        a,
        &b,
        &mut expected,
        &Serial,
    )
    .unwrap();
    let mut x = vec![T::ZERO; b.len()];
    let a = a.map(input);
    succeeds(tridiagonal::tridiagonal_solve_perturbed(
        &gpu(),
        batch,
        m,
        nrhs,
        a,
        input(&b),
        output(&mut x),
    ));
    // Column by column: their sizes differ by many orders. By how much a pivot is perturbed depends on
    // how complex numbers are measured, so that only real singular systems have one answer.
    for (at, (x, expected)) in x.chunks_exact(m).zip(expected.chunks_exact(m)).enumerate() {
        assert!(x.iter().chain(expected).all(|x| x.is_finite()));
        let singular = batch > 1 && at / nrhs < 2;
        if !(singular && T::IS_COMPLEX) {
            let ratio = distance(x, expected);
            assert!(ratio < 1e6, "batch {batch}, m {m}, nrhs {nrhs}, {at}: {ratio}");
        }
    }
}

fn check_plain<T: Number>(random: &mut Random, batch: usize, m: usize, nrhs: usize, shared: bool) {
    let diagonals: [Vec<T>; 3] = std::array::from_fn(|_| random.scalars(batch * m));
    let b: Vec<T> = random.scalars(batch * m * nrhs);
    let mut copies = diagonals.clone();
    let mut expected = b.clone();
    let mut info = vec![0; batch];
    let place = |data| lapax_core::InOut { src: None, dst: data };
    let [dl, d, du] = &mut copies;
    let a = lapax_cpu::tridiagonal::Diagonals { dl: place(dl), d: place(d), du: place(du) };
    let operand = place(&mut expected);
    lapax_cpu::tridiagonal::gtsv(batch, m, nrhs, a, operand, &mut info, &Serial).unwrap();
    assert!(info.iter().all(|info| *info == 0));
    let mut x = if shared { b.clone() } else { vec![T::ZERO; b.len()] };
    let a = [&diagonals[0][..], &diagonals[1][..], &diagonals[2][..]].map(input);
    let operand = in_out((!shared).then_some(&b[..]), &mut x);
    succeeds(tridiagonal::tridiagonal_solve(&gpu(), batch, m, nrhs, a, operand));
    for (x, expected) in x.chunks_exact(m).zip(expected.chunks_exact(m)) {
        let ratio = distance(x, expected);
        assert!(ratio < 1e6, "batch {batch}, m {m}, nrhs {nrhs}: {ratio}");
    }
}

/// Right-hand sides by rows, of systems of which the first is singular.
fn check_rows<T: Number>(random: &mut Random, batch: usize, m: usize, nrhs: usize, shared: bool) {
    let mut diagonals: [Vec<T>; 3] = std::array::from_fn(|_| random.scalars(batch * m));
    if batch > 1 {
        // Its last pivot is zero, or its only one.
        diagonals.iter_mut().for_each(|d| d[m - 1] = T::ZERO);
    }
    let b: Vec<T> = random.scalars(batch * m * nrhs);
    let [dl, d, du] = &diagonals;
    let a = [&dl[..], &d[..], &du[..]];
    let mut expected = vec![T::ZERO; b.len()];
    let solved = &mut expected;
    lapax_cpu::tridiagonal::tridiagonal_solve(batch, m, nrhs, a, &b, solved, &Serial).unwrap();
    let mut x = if shared { b.clone() } else { vec![T::ZERO; b.len()] };
    let operand = if shared { input(&x) } else { input(&b) };
    let (a, out) = (a.map(input), output(&mut x));
    succeeds(tridiagonal::tridiagonal_solve_rows(&gpu(), batch, m, nrhs, a, operand, out));
    for (at, (x, expected)) in
        x.chunks_exact(m * nrhs).zip(expected.chunks_exact(m * nrhs)).enumerate()
    {
        let label = format!("{at} of {batch}, m {m}, nrhs {nrhs}");
        if batch > 1 && at == 0 {
            assert!(x.iter().chain(expected).all(|x| x.is_nan()), "{label}");
            continue;
        }
        for column in 0..nrhs {
            let of = |rows: &[T]| rows[column..].iter().step_by(nrhs).copied().collect::<Vec<_>>();
            let ratio = distance(&of(x), &of(expected));
            assert!(ratio < 1e6, "{label}, {column}: {ratio}");
        }
    }
}

/// A pivot that is the larger one relative to its row alone: with the other one x loses most digits.
fn check_pivots<T: Number>() {
    let number = |x: f64| T::from_real(T::Real::from_f64(x));
    let epsilon = T::Real::EPSILON.to_f64();
    let (small, row) = (epsilon.powf(0.6), epsilon.powf(1.2));
    let [dl, d, du] = [[0.0, row], [small, row], [1.0, 0.0]].map(|x| x.map(number));
    let b = [number(1.0 + small), number(2.0 * row)];
    let mut x = [T::ZERO; 2];
    let a = [&dl[..], &d[..], &du[..]].map(input);
    let result = output(&mut x[..]);
    succeeds(tridiagonal::tridiagonal_solve_perturbed(&gpu(), 1, 2, 1, a, input(&b[..]), result));
    for x in x {
        let error = (x - T::ONE).abs1().to_f64();
        assert!(error < 10.0 * epsilon, "{x:?} is not 1");
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let (mut random, mut of_rows) = (Random(4), Random(5));
    check_pivots::<T>();
    for seed in SEEDS {
        driver::state().seed = seed;
        for m in [1, 2, 3, 17] {
            for (batch, nrhs) in [(1, 1), (3, 1), (40, 1), (2, 3), (3, 33), (1, 70)] {
                check_perturbed::<T>(&mut random, batch, m, nrhs);
                check_plain::<T>(&mut random, batch, m, nrhs, seed % 2 == 0);
                check_rows::<T>(&mut of_rows, batch, m, nrhs, seed % 2 == 0);
            }
        }
    }
    // Few long systems: cuSPARSE.
    check_plain::<T>(&mut random, 2, 600, 3, true);
    check_plain::<T>(&mut random, 1, 600, 1, false);
    // More systems than a grid has lanes.
    check_perturbed::<T>(&mut random, 20_000, 2, 1);
}

#[test]
fn perturbed_as_on_the_cpu_f32() {
    check_all::<f32>();
}

#[test]
fn perturbed_as_on_the_cpu_f64() {
    check_all::<f64>();
}

#[test]
fn perturbed_as_on_the_cpu_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn perturbed_as_on_the_cpu_c128() {
    check_all::<Complex<f64>>();
}
