//! Time and GFLOP/s of each kernel on one thread, beside faer's matrix product of the same order.
//!
//! `cargo run --release -p lapax-cpu --example rates [f32|f64|c64|c128]`
#![allow(clippy::cast_precision_loss, reason = "printed numbers")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may stop")]

use std::time::{Duration, Instant};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_cpu::{
    Diag, InOut, Real as _, Scalar, Serial, Side, Trans, Uplo, cholesky, lu, triangular,
};
use num_complex::Complex;

fn main() {
    println!("dtype     n     batch  kernel              us/matrix   GFLOP/s");
    match std::env::args().nth(1).as_deref() {
        Some("f32") => rates::<f32>("f32"),
        Some("c64") => rates::<Complex<f32>>("c64"),
        Some("c128") => rates::<Complex<f64>>("c128"),
        None | Some("f64") => rates::<f64>("f64"),
        Some(other) => println!("expected f32, f64, c64 or c128, got {other}"),
    }
}

fn rates<T: Scalar>(name: &str) {
    // A complex multiplication and addition is four real ones.
    let weight = if T::IS_COMPLEX { 4.0 } else { 1.0 };
    for n in [3_usize, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512, 1024] {
        let batch = (200_000 / (n * n)).clamp(1, 2000);
        let cube = weight * (n as f64).powi(3);
        let row = |kernel: &str, flops: f64, time: Duration| {
            let per_matrix = time.as_secs_f64() / batch as f64;
            let (us, rate) = (1e6 * per_matrix, 1e-9 * flops / per_matrix);
            println!("{name:5} {n:5} {batch:9}  {kernel:18} {us:10.3} {rate:9.2}");
        };
        // Diagonally dominant and Hermitian, so that every kernel takes it.
        let element = |i: usize, j: usize| {
            let x = ((i * j) % 7) as f64 / (8 * n) as f64 + if i == j { 2.0 } else { 0.0 };
            T::from_real(T::Real::from_f64(x))
        };
        let one: Vec<T> = (0..n * n).map(|k| element(k % n, k / n)).collect();
        let (a, mut x) = (one.repeat(batch), one.repeat(batch));
        let (mut ipiv, mut info) = (vec![0; batch * n], vec![0; batch]);

        let time = best(|| {
            for (x, a) in x.chunks_exact_mut(n * n).zip(a.chunks_exact(n * n)) {
                let dst = MatMut::from_column_major_slice_mut(x, n, n);
                let a = MatRef::from_column_major_slice(a, n, n);
                T::product(dst, Accum::Replace, (a, Conj::No), (a, Conj::No), T::ONE);
            }
        });
        row("faer product", 2.0 * cube, time);
        let time = best(|| {
            let a = InOut { src: Some(&a), dst: &mut x };
            lu::getrf(batch, n, n, a, &mut ipiv, &mut info, &Serial).unwrap();
        });
        row("getrf", 2.0 / 3.0 * cube, time);
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let time = best(|| {
                let a = InOut { src: Some(&a), dst: &mut x };
                cholesky::potrf(uplo, batch, n, a, &mut info, &Serial).unwrap();
            });
            row(&format!("potrf {uplo:?}"), cube / 3.0, time);
        }
        for (text, side, trans) in [
            ("trsm Left", Side::Left, Trans::None),
            ("trsm Left T", Side::Left, Trans::Transpose),
            ("trsm Right", Side::Right, Trans::None),
        ] {
            let (uplo, diag) = (Uplo::Lower, Diag::NonUnit);
            let time = best(|| {
                let b = InOut { src: Some(&a), dst: &mut x };
                triangular::trsm(side, uplo, trans, diag, batch, n, n, &a, b, &Serial).unwrap();
            });
            row(text, cube, time);
        }
        let (b, mut y) = (vec![T::ONE; batch * n], vec![T::ONE; batch * n]);
        let time = best(|| {
            let b = InOut { src: Some(&b), dst: &mut y };
            let (side, uplo) = (Side::Left, Uplo::Lower);
            triangular::trsm(side, uplo, Trans::None, Diag::NonUnit, batch, n, 1, &a, b, &Serial)
                .unwrap();
        });
        row("trsm Left, 1 rhs", weight * (n as f64).powi(2), time);
        let time = best(|| {
            let r = InOut { src: Some(&a), dst: &mut x };
            let w = InOut { src: Some(&b), dst: &mut y };
            cholesky::cholesky_update(batch, n, r, w, &Serial).unwrap();
        });
        row("cholesky_update", 3.0 * weight * (n as f64).powi(2), time);
    }
}

/// The best of many runs, in at least 30 ms.
fn best(mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    let mut best = Duration::MAX;
    while start.elapsed() < Duration::from_millis(30) {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed());
    }
    best
}
