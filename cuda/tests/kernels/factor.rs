//! Factorisations and products with Q: own kernels for batches of small matrices, the fake cuSOLVER for
//! others, both as lapax-cpu's.

use lapax_core::{InOut, Real as _, Serial, Side, Uplo};
use lapax_cuda::{cholesky, lu, qr};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, output, succeeds};
use crate::random::{Number, Random, distance};

/// Rows and columns, and how many matrices: own kernels of one and of several warps; too many, or too
/// large for shared memory, for them; more than blocks, so that a block has several.
const SIZES: [(usize, usize, usize); 13] = [
    (1, 1, 3),
    (3, 2, 2),
    (2, 5, 2),
    (7, 7, 5),
    (31, 33, 2),
    (32, 32, 1),
    (33, 31, 1),
    (40, 40, 2),
    (65, 20, 2),
    (20, 65, 2),
    (100, 90, 2),
    (1, 9, 300),
    (35, 3, 140),
];

fn place<T>(data: &mut [T]) -> InOut<'_, T> {
    InOut { src: None, dst: data }
}

/// 30 n ε for each of two computations, and what rounding a pivot differently costs.
fn bound(n: usize) -> f64 {
    200.0 * f64::from(u32::try_from(n).unwrap())
}

fn check_lu<T: Number>(random: &mut Random, m: usize, n: usize, batch: usize) {
    let k = m.min(n);
    let mut a: Vec<T> = random.scalars(batch * m * n);
    // One matrix without a pivot in its second column, and in its fourth.
    if batch > 1 && k > 1 {
        a[m..2 * m].fill(T::ZERO);
        if n > 3 {
            a[3 * m..4 * m].fill(T::ZERO);
        }
    }
    let (mut expected, mut pivots, mut infos) = (a.clone(), vec![0; batch * k], vec![0; batch]);
    lapax_cpu::lu::getrf(batch, m, n, place(&mut expected), &mut pivots, &mut infos, &Serial)
        .unwrap();
    let (mut lu_out, mut ipiv, mut info) = (a.clone(), vec![-1; batch * k], vec![-1; batch]);
    let (pivots_out, info_out) = (output(&mut ipiv), output(&mut info));
    succeeds(lu::getrf(&gpu(), batch, m, n, in_out(Some(&a), &mut lu_out), pivots_out, info_out));
    assert_eq!((ipiv, info), (pivots, infos), "{m} × {n}, {batch}");
    let ratio = distance(&lu_out, &expected);
    assert!(ratio < bound(k), "{m} × {n}, {batch}: {ratio}");
}

fn check_cholesky<T: Number>(random: &mut Random, n: usize, batch: usize, uplo: Uplo) {
    let mut a: Vec<T> = random.scalars(batch * n * n);
    let large = T::from_real(T::Real::from_f64(2.0 * f64::from(u32::try_from(n).unwrap())));
    for (index, a) in a.chunks_exact_mut(n * n).enumerate() {
        (0..n).for_each(|i| a[i * n + i] = large);
        if index == 1 {
            a[n * n - 1] = -large;
        }
        if index == 2 {
            a[n * n - 1] = T::from_real(T::Real::from_f64(f64::NAN));
        }
    }
    let (mut expected, mut infos) = (a.clone(), vec![0; batch]);
    lapax_cpu::cholesky::potrf(uplo, batch, n, place(&mut expected), &mut infos, &Serial).unwrap();
    let (mut factor, mut info) = (a.clone(), vec![-1; batch]);
    let operand = in_out(None, &mut factor);
    succeeds(cholesky::potrf(&gpu(), uplo, batch, n, operand, output(&mut info)));
    assert_eq!(info, infos, "{n}, {batch}");
    for (index, (factor, expected)) in
        factor.chunks_exact(n * n).zip(expected.chunks_exact(n * n)).enumerate()
    {
        // What is left of a matrix that has no factor is anything.
        if infos[index] == 0 {
            let ratio = distance(factor, expected);
            assert!(ratio < bound(n), "{n}, {batch}: {ratio}");
        }
    }
}

fn check_qr<T: Number>(random: &mut Random, m: usize, n: usize, batch: usize) {
    let k = m.min(n);
    let a: Vec<T> = random.scalars(batch * m * n);
    let (mut expected, mut taus) = (a.clone(), vec![T::ZERO; batch * k]);
    lapax_cpu::qr::geqrf(batch, m, n, place(&mut expected), &mut taus, &Serial).unwrap();
    let (mut reflectors, mut tau) = (a.clone(), vec![T::ZERO; batch * k]);
    let operand = in_out(None, &mut reflectors);
    succeeds(qr::geqrf(&gpu(), batch, m, n, operand, output(&mut tau)));
    let ratio = distance(&reflectors, &expected).max(distance(&tau, &taus));
    assert!(ratio < bound(k), "geqrf {m} × {n}, {batch}: {ratio}");
    if m >= n {
        check_q::<T>(m, n, batch, &expected, &taus);
    }
    // C of other sizes, on both sides; Q has m rows and k reflectors.
    for side in [Side::Left, Side::Right] {
        for other in [1, 5] {
            let (rows, columns) = if side == Side::Left { (m, other) } else { (other, m) };
            let c: Vec<T> = random.scalars(batch * rows * columns);
            for adjoint in [false, true] {
                let sizes = qr::Sizes { batch, m: rows, n: columns, p: n, t: k };
                check_product(side, adjoint, sizes, &expected, &taus, &c);
            }
        }
    }
}

fn check_q<T: Number>(m: usize, n: usize, batch: usize, a: &[T], tau: &[T]) {
    for t in [n, n - n / 2] {
        let tau: Vec<T> = tau.chunks_exact(n).flat_map(|tau| tau[..t].to_vec()).collect();
        let mut expected = a.to_vec();
        lapax_cpu::qr::orgqr(batch, m, n, t, place(&mut expected), &tau, &Serial).unwrap();
        let mut q = a.to_vec();
        let operand = in_out(None, &mut q);
        succeeds(qr::orgqr(&gpu(), batch, (m, n, t), operand, input(&tau)));
        let ratio = distance(&q, &expected);
        assert!(ratio < bound(n), "orgqr {m} × {n}, {t}, {batch}: {ratio}");
    }
}

fn check_product<T: Number>(
    side: Side,
    adjoint: bool,
    sizes: qr::Sizes,
    a: &[T],
    tau: &[T],
    c: &[T],
) {
    let qr::Sizes { batch, m, n, p, t } = sizes;
    let factor = if adjoint { lapax_cpu::qr::Factor::Adjoint } else { lapax_cpu::qr::Factor::Q };
    let mut expected = c.to_vec();
    let operand = place(&mut expected);
    lapax_cpu::qr::ormqr(side, factor, batch, m, n, p, t, a, tau, operand, &Serial).unwrap();
    let mut out = vec![T::ZERO; c.len()];
    let operand = in_out(Some(c), &mut out);
    succeeds(qr::ormqr(&gpu(), side, adjoint, sizes, input(a), input(tau), operand));
    let ratio = distance(&out, &expected);
    assert!(ratio < bound(t), "ormqr {side:?} {adjoint} {sizes:?}: {ratio}");
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(5);
    for seed in SEEDS {
        driver::state().seed = seed;
        for (m, n, batch) in SIZES {
            check_lu::<T>(&mut random, m, n, batch);
            check_qr::<T>(&mut random, m, n, batch);
            check_cholesky::<T>(&mut random, n, batch, Uplo::Lower);
            check_cholesky::<T>(&mut random, n, batch, Uplo::Upper);
        }
    }
    // Too large for a block's shared memory: cuSOLVER.
    for (m, n, batch) in [(150, 140, 1), (140, 150, 2), (200, 200, 3)] {
        check_lu::<T>(&mut random, m, n, batch);
        check_qr::<T>(&mut random, m, n, batch);
        check_cholesky::<T>(&mut random, n, batch, Uplo::Lower);
    }
}

/// The norm of a column is NaN, though its largest number is 0.
#[test]
fn a_nan_among_zeros_reaches_the_factor() {
    let Some(_device) = device() else { return };
    let (mut a, mut tau) = ([1.0, f64::NAN, 0.0, 0.0], [0.0]);
    succeeds(qr::geqrf(&gpu(), 1, 4, 1, in_out(None, &mut a), output(&mut tau)));
    assert!(a[0].is_nan() && tau[0].is_nan(), "{a:?} {tau:?}");
}

#[test]
fn as_on_the_cpu_f32() {
    check_all::<f32>();
}

#[test]
fn as_on_the_cpu_f64() {
    check_all::<f64>();
}

#[test]
fn as_on_the_cpu_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn as_on_the_cpu_c128() {
    check_all::<Complex<f64>>();
}
