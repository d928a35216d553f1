//! Triangular systems of row-major matrices, on both sides, by LAPACK's residual ratio.

use lapax_core::{Diag, Side, Trans, Uplo};
use lapax_cuda::triangular::{System, triangular_solve};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, succeeds};
use crate::matrices::{Matrix, nan, ratio};
use crate::random::{Number, Random};

/// Orders, other sizes and matrices.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 70),
    (3, 2, 5),
    (4, 5, 130),
    (7, 3, 9),
    (16, 1, 3),
    (20, 6, 3),
    (35, 2, 2),
    (9, 80, 1),
    (40, 70, 1),
];

fn systems() -> impl Iterator<Item = System> {
    let sides = [Side::Left, Side::Right];
    let each = move |uplo| {
        sides.into_iter().flat_map(move |side| {
            [Trans::None, Trans::Transpose, Trans::ConjTranspose].into_iter().flat_map(
                move |trans| {
                    [Diag::Unit, Diag::NonUnit].map(|diag| System { side, uplo, trans, diag })
                },
            )
        })
    };
    [Uplo::Lower, Uplo::Upper].into_iter().flat_map(each)
}

fn check<T: Number>(
    random: &mut Random,
    system: System,
    (order, other): (usize, usize),
    batch: usize,
) {
    let (m, n) = if system.side == Side::Left { (order, other) } else { (other, order) };
    let size = f64::from(u32::try_from(order).unwrap());
    let read = |i: usize, j: usize| match (system.uplo, system.diag) {
        (_, Diag::Unit) if i == j => false,
        (Uplo::Lower, _) => i >= j,
        (Uplo::Upper, _) => i <= j,
    };
    // What is not to be read is NaN; the others are small beside the diagonal, so that X is not large.
    let mut entry = |at: usize| {
        let (i, j) = (at / order % order, at % order);
        let value: T = random.scalar();
        match (i == j, read(i, j)) {
            (true, true) => value + T::ONE + T::ONE,
            (false, true) => value.unscale(lapax_core::Real::from_f64(size)),
            _ => nan(),
        }
    };
    let mut a: Vec<T> = (0..batch * order * order).map(&mut entry).collect();
    // One of the batch has a NaN, and NaN in its X; others do not.
    let bad = batch > 2 && read(0, 0);
    if bad {
        a[order * order] = nan();
    }
    let b: Vec<T> = random.scalars(batch * m * n);
    let (mut x, mut in_place) = (vec![nan(); batch * m * n], b.clone());
    for operand in [in_out(Some(&b), &mut x), in_out(None, &mut in_place)] {
        succeeds(triangular_solve(&gpu(), system, batch, (m, n), input(&a), operand));
    }
    for at in 0..batch {
        let label = format!("{system:?} {order} {other}, {at} of {batch}");
        let (given, right) = (Matrix::of(&a, at, order, order), Matrix::of(&b, at, m, n));
        let x = Matrix::of(&x, at, m, n);
        let same = |(x, y): (&T, &T)| x == y || x.is_nan() && y.is_nan();
        let placed = Matrix::of(&in_place, at, m, n);
        assert!(x.data.iter().zip(&placed.data).all(same), "{label}");
        if bad && at == 1 {
            assert!(x.data.iter().any(|x| x.is_nan()), "{label}");
            continue;
        }
        let whole = Matrix::from(order, order, |i, j| {
            let one = i == j && system.diag == Diag::Unit;
            if one {
                T::ONE
            } else if read(i, j) {
                given[(i, j)]
            } else {
                T::ZERO
            }
        });
        let op = Matrix::from(order, order, |i, j| match system.trans {
            Trans::None => whole[(i, j)],
            Trans::Transpose => whole[(j, i)],
            Trans::ConjTranspose => whole[(j, i)].conj(),
        });
        let left = system.side == Side::Left;
        let product = if left { op.times(&x) } else { x.times(&op) };
        let found = ratio(&product, &right, op.size() * x.size() * size);
        assert!(found < 30.0, "{label}: {found}");
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(17);
    for ((order, other, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        for system in systems() {
            check::<T>(&mut random, system, (order, other), batch);
        }
    }
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
