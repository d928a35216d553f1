//! Products of a matrix with its transpose: batches of small ones, and the fake cuBLAS's for others.

use lapax_core::Real as _;
use lapax_cuda::products::syrk;
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, input, succeeds};
use crate::matrices::nan;
use crate::random::{Number, Random};

/// Rows, columns and matrices: parts of a tile, several, more than there are blocks, none to add; one matrix, and
/// larger ones.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 2),
    (3, 20, 4),
    (20, 3, 140),
    (16, 16, 2),
    (33, 17, 2),
    (50, 40, 2),
    (4, 0, 2),
    (9, 5, 1),
    (130, 3, 2),
];

fn check<T: Number>(random: &mut Random, size: (usize, usize), batch: usize, transpose: bool) {
    let (rows, columns) = size;
    let (n, k) = if transpose { (columns, rows) } else { (rows, columns) };
    let a: Vec<T> = random.scalars(batch * rows * columns);
    let c: Vec<T> = random.scalars(batch * n * n);
    for (alpha, beta) in [(random.scalar::<T>(), random.scalar::<T>()), (T::ONE, T::ZERO)] {
        // Where beta is zero C is not read.
        let given = if beta == T::ZERO { vec![nan(); c.len()] } else { c.clone() };
        let mut found = given.clone();
        let (by, of_c) = ([alpha], [beta]);
        let (product, numbers) = (in_out(None, &mut found), (input(&by), input(&of_c)));
        let (gpu, a_in) = (gpu(), input(&a));
        succeeds(syrk(&gpu, transpose, batch, size, a_in, product, numbers.0, numbers.1));
        for (at, (found, given)) in found.into_iter().zip(given).enumerate() {
            let (b, i, j) = (at / (n * n), at / n % n, at % n);
            if j > i {
                assert!(found == given || (found.is_nan() && given.is_nan()));
                continue;
            }
            let of = |i: usize, l: usize| {
                a[b * rows * columns + if transpose { l * columns + i } else { i * columns + l }]
            };
            let sum = (0..k).fold(T::ZERO, |sum, l| sum + of(i, l) * of(j, l));
            let kept = if beta == T::ZERO { T::ZERO } else { beta * given };
            let error = (found - (alpha * sum + kept)).abs().to_f64();
            let terms = f64::from(u32::try_from(k + 2).unwrap());
            let bound = 30.0 * T::Real::EPSILON.to_f64() * terms;
            assert!(error <= bound, "{rows} × {columns} {transpose}, {b} of {batch}: {error}");
        }
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(29);
    for ((rows, columns, batch), seed) in SIZES.into_iter().zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        check::<T>(&mut random, (rows, columns), batch, false);
        check::<T>(&mut random, (columns, rows), batch, true);
    }
}

#[test]
fn products_f32() {
    check_all::<f32>();
}

#[test]
fn products_f64() {
    check_all::<f64>();
}

#[test]
fn products_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn products_c128() {
    check_all::<Complex<f64>>();
}
