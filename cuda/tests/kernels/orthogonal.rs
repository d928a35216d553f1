//! QR factorisation of row-major matrices, Q and R in one, by LAPACK's residual ratios.

use lapax_core::Real as _;
use lapax_cuda::{Kind, orthogonal};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, input, output, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Rows, columns and matrices: of a warp and of a block each, and more than are gone through at once.
const SIZES: [(usize, usize, usize); 13] = [
    (1, 1, 5),
    (4, 4, 3),
    (5, 3, 9),
    (3, 5, 3),
    (1, 7, 3),
    (7, 1, 3),
    (16, 16, 2),
    (32, 20, 3),
    (20, 32, 1),
    (33, 33, 3),
    (60, 9, 2),
    (9, 60, 2),
    (2, 2, 520),
];

fn check<T: Number>(random: &mut Random, m: usize, n: usize, batch: usize) {
    let mut a: Vec<T> = random.scalars(batch * m * n);
    // The second of several has a zero column, the third a NaN.
    if batch > 2 {
        (0..m).for_each(|i| a[m * n + i * n] = T::ZERO);
        a[2 * m * n + m * n / 2] = nan();
    }
    for c in [m.min(n), m] {
        let (mut q, mut r) = (vec![nan(); batch * m * c], vec![nan(); batch * c * n]);
        let mut alone = r.clone();
        let outputs = (Some(output(&mut q)), output(&mut r));
        succeeds(orthogonal::qr(&gpu(), batch, (m, n, c), input(&a), outputs.0, outputs.1));
        let out = output(&mut alone);
        succeeds(orthogonal::qr(&gpu(), batch, (m, n, c), input(&a), None, out));
        let same = |(x, y): (&T, &T)| x == y || x.is_nan() && y.is_nan();
        assert!(r.iter().zip(&alone).all(same), "{m} × {n}, {c}");
        for at in 0..batch {
            let label = format!("{m} × {n}, {c}, {at} of {batch}");
            let (q, r) = (Matrix::of(&q, at, m, c), Matrix::of(&r, at, c, n));
            if batch > 2 && at == 2 {
                assert!(r.data.iter().any(|x| x.is_nan()), "{label}");
                continue;
            }
            let size = f64::from(u32::try_from(m.max(n)).unwrap());
            let a = Matrix::of(&a, at, m, n);
            let found = ratio(&q.times(&r), &a, a.size().max(f64::MIN_POSITIVE) * size);
            assert!(found < 30.0, "{label}: {found}");
            let one = Matrix::from(c, c, |i, j| if i == j { T::ONE } else { T::ZERO });
            let found = ratio(&q.adjoint().times(&q), &one, size);
            assert!(found < 30.0, "orthogonality {label}: {found}");
            for (i, j) in (0..c).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert!(i <= j || r[(i, j)] == T::ZERO, "{label}");
                assert!(i != j || r[(i, j)].im().to_f64() == 0.0, "{label}: {:?}", r[(i, j)]);
            }
        }
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(19);
    for ((m, n, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check::<T>(&mut random, m, n, batch);
    }
}

#[test]
fn factors_f32() {
    check_all::<f32>();
}

#[test]
fn factors_f64() {
    check_all::<f64>();
}

#[test]
fn factors_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn factors_c128() {
    check_all::<Complex<f64>>();
}

#[test]
fn empty_ones_have_an_identity() {
    let Some(_device) = device() else { return };
    let mut q = [7.0; 9];
    let outputs = (Some(output(&mut q)), output(&mut []));
    succeeds(orthogonal::qr::<f64>(&gpu(), 1, (3, 0, 3), input(&[]), outputs.0, outputs.1));
    assert_eq!(q, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let outputs = (Some(output(&mut [])), output(&mut []));
    succeeds(orthogonal::qr::<f64>(&gpu(), 2, (0, 3, 0), input(&[]), outputs.0, outputs.1));
}

#[test]
fn what_no_block_can_hold_is_refused() {
    let Some(_device) = device() else { return };
    let (a, mut r) = (vec![0.0_f64; 300 * 200], vec![0.0; 200 * 200]);
    let out = output(&mut r);
    let error = orthogonal::qr(&gpu(), 1, (300, 200, 200), input(&a), None, out).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert!(error.message().contains("got 300 × 200, which takes 483200"), "{error}");
}
