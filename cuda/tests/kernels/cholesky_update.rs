//! cholesky_update: as lapax-cpu's, up to the roundoff of other fused products.

use lapax_core::{InOut, Real as _, Serial};
use lapax_cuda::cholesky;
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, succeeds};
use crate::random::{Number, Random, distance};

/// A factor with a diagonal away from zero; below it numbers that must stay.
fn factor<T: Number>(random: &mut Random, batch: usize, n: usize) -> Vec<T> {
    let mut r: Vec<T> = random.scalars(batch * n * n);
    let two = T::from_real(T::Real::from_f64(2.0));
    r.chunks_exact_mut(n * n).for_each(|r| (0..n).for_each(|i| r[i * n + i] += two));
    r
}

fn check<T: Number>(random: &mut Random, batch: usize, n: usize, zeros: usize) {
    let r: Vec<T> = factor(random, batch, n);
    let mut w: Vec<T> = random.scalars(batch * n);
    // An element that is zero takes no rotation.
    w.iter_mut().step_by(3).take(zeros).for_each(|w| *w = T::ZERO);
    let (mut expected, mut rest) = (r.clone(), w.clone());
    let operand = |data| InOut { src: None, dst: data };
    let (a, b) = (operand(&mut expected[..]), operand(&mut rest[..]));
    lapax_cpu::cholesky::cholesky_update(batch, n, a, b, &Serial).unwrap();
    for apart in [false, true] {
        let (mut out, mut left) = (r.clone(), w.clone());
        if apart {
            out.fill(T::from_real(T::Real::from_f64(9.0)));
            left.fill(T::ZERO);
        }
        let a = in_out(apart.then_some(&r[..]), &mut out);
        let b = in_out(apart.then_some(&w[..]), &mut left);
        succeeds(cholesky::cholesky_update(&gpu(), batch, n, a, b));
        // The bound of the accuracy tests, 30 n ε, for two computations.
        let bound = 60.0 * f64::from(u32::try_from(n).unwrap());
        let ratio = distance(&out, &expected);
        assert!(ratio < bound, "batch {batch}, n {n}: {ratio}");
        assert!(left.iter().all(|w| *w == T::ZERO));
        for (out, r) in out.chunks_exact(n * n).zip(r.chunks_exact(n * n)) {
            assert!((0..n).all(|i| out[i * n..][..i] == r[i * n..][..i]), "below the diagonal");
        }
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(3);
    for seed in SEEDS {
        driver::state().seed = seed;
        for n in [1, 2, 5, 31, 32, 33, 40, 64, 65, 100] {
            check::<T>(&mut random, 2, n, 0);
            check::<T>(&mut random, 1, n, n);
        }
    }
    // More matrices than blocks, and more columns than threads.
    check::<T>(&mut random, 300, 3, 1);
    check::<T>(&mut random, 1, 600, 0);
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
