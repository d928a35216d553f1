//! The kernels alone, on one thread and without XLA: `cargo bench -p lapax-cpu -- [filter]`.
//!
//! Items are matrices. The batches of a size take a megabyte or less, so that they stay in the second
//! cache; `python -m lapax bench` is for whole programs beside stock JAX.
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_precision_loss)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use lapax_core::{Real as _, Scalar as _};
use lapax_cpu::cholesky::cholesky;
use lapax_cpu::eig::{Eigen, geev};
use lapax_cpu::eigh::syevd;
use lapax_cpu::hessenberg::gehrd;
use lapax_cpu::lu::{getrf, lu, lu_solve};
use lapax_cpu::qr::{geqrf, qr};
use lapax_cpu::schur::{Eigenvalues, gees};
use lapax_cpu::svd::{Svd, gesdd};
use lapax_cpu::triangular::trsm;
use lapax_cpu::tridiagonal::tridiagonal_solve;
use lapax_cpu::{Diag, InOut, Scalar, Serial, Side, SingularVectors, Trans, Uplo, Vectors};
use num_complex::Complex;

/// Orders.
const SIZES: [usize; 9] = [3, 4, 8, 16, 32, 64, 128, 256, 512];

fn main() {
    divan::main();
}

/// As many matrices of order n as take a megabyte, but not one alone where lanes can be filled.
fn count<T>(n: usize) -> usize {
    let fit = (1 << 20) / (n * n * size_of::<T>());
    if n <= 64 { fit.clamp(32, 4096) } else { fit.max(1) }
}

/// Numbers between −1 and 1, plus n/2 on the diagonal of each n × n matrix.
fn random<T: Scalar>(n: usize, columns: usize, batch: usize) -> Vec<T> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bits = u32::try_from(state >> 40).unwrap();
        T::Real::from_f64(f64::from(bits) / f64::from(1_u32 << 23) - 1.0)
    };
    let mut a: Vec<T> = (0..n * columns * batch).map(|_| T::from_parts(next(), next())).collect();
    if columns == n {
        for (p, x) in a.iter_mut().enumerate() {
            if (p % (n * n)).is_multiple_of(n + 1) {
                *x += T::from_real(T::Real::from_f64(n as f64 / 2.0));
            }
        }
    }
    a
}

/// A benchmark for each scalar.
macro_rules! kernel {
    ($name:ident, |$t:ident: $bound:path, $bencher:ident, $n:ident, $batch:ident| $body:block) => {
        #[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
        fn $name<$t: $bound>(bencher: Bencher<'_, '_>, $n: usize) {
            let $batch = count::<$t>($n);
            let $bencher = bencher.counter(ItemsCount::new($batch));
            $body
        }
    };
}

kernel!(getrf_columns, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut dst, mut pivots, mut info) = (a.clone(), vec![0; n * batch], vec![0; batch]);
    bencher.bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        getrf(batch, n, n, a, &mut pivots, &mut info, &Serial).unwrap();
    });
});

kernel!(lu_rows, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut dst, mut pivots, mut rows) = (a.clone(), vec![0; n * batch], vec![0; n * batch]);
    bencher.bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        lu(batch, n, n, a, &mut pivots, &mut rows, &Serial).unwrap();
    });
});

/// Solves with factors and so many right-hand sides.
fn solve<T: Scalar>(bencher: divan::Bencher<'_, '_>, n: usize, nrhs: usize, batch: usize) {
    let (a, b) = (random::<T>(n, n, batch), random::<T>(n, nrhs, batch));
    let rows: Vec<i32> = (0..batch).flat_map(|_| 0..i32::try_from(n).unwrap()).collect();
    let mut x = b.clone();
    bencher.counter(ItemsCount::new(batch)).bench_local(|| {
        let b = black_box(&b[..]);
        lu_solve(Trans::None, batch, n, nrhs, &a, &rows, b, &mut x, &Serial).unwrap();
    });
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn lu_solve_one<T: Scalar>(bencher: Bencher<'_, '_>, n: usize) {
    solve::<T>(bencher, n, 1, count::<T>(n));
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn lu_solve_many<T: Scalar>(bencher: Bencher<'_, '_>, n: usize) {
    solve::<T>(bencher, n, n, count::<T>(n));
}

kernel!(trsm_rows, |T: Scalar, bencher, n, batch| {
    let (a, b) = (random::<T>(n, n, batch), random::<T>(n, n, batch));
    let mut x = b.clone();
    bencher.bench_local(|| {
        let b = InOut { src: Some(black_box(&b[..])), dst: &mut x };
        let (uplo, trans, diag) = (Uplo::Upper, Trans::None, Diag::NonUnit);
        trsm(Side::Right, uplo, trans, diag, batch, n, n, &a, b, &Serial).unwrap();
    });
});

kernel!(cholesky_rows, |T: Scalar, bencher, n, batch| {
    let mut a = random::<T>(n, n, batch);
    for (p, x) in a.iter_mut().enumerate() {
        if (p % (n * n)).is_multiple_of(n + 1) {
            *x = T::from_real(T::Real::from_f64(2.0 * n as f64));
        }
    }
    let mut l = a.clone();
    bencher.bench_local(|| {
        let l = InOut { src: Some(black_box(&a[..])), dst: &mut l };
        cholesky(true, batch, n, l, &Serial).unwrap();
    });
});

kernel!(geqrf_columns, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut dst, mut tau) = (a.clone(), vec![T::ZERO; n * batch]);
    bencher.bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        geqrf(batch, n, n, a, &mut tau, &Serial).unwrap();
    });
});

kernel!(qr_rows, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut q, mut r) = (a.clone(), a.clone());
    bencher.bench_local(|| {
        qr(batch, (n, n, n), black_box(&a), &mut q, &mut r, &Serial).unwrap();
    });
});

/// The symmetric eigenproblem, with and without vectors.
fn symmetric<T: Scalar<Real: Scalar>>(bencher: divan::Bencher<'_, '_>, n: usize, vectors: Vectors) {
    let batch = count::<T>(n);
    let a = random::<T>(n, n, batch);
    let (mut v, mut w) = (a.clone(), vec![T::Real::ZERO; n * batch]);
    let mut info = vec![0; batch];
    bencher.counter(ItemsCount::new(batch)).bench_local(|| {
        let v = InOut { src: Some(black_box(&a[..])), dst: &mut v };
        syevd(vectors, Uplo::Lower, batch, n, v, &mut w, &mut info, &Serial).unwrap();
    });
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn syevd_vectors<T: Scalar<Real: Scalar>>(bencher: Bencher<'_, '_>, n: usize) {
    symmetric::<T>(bencher, n, Vectors::Wanted);
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn syevd_values<T: Scalar<Real: Scalar>>(bencher: Bencher<'_, '_>, n: usize) {
    symmetric::<T>(bencher, n, Vectors::None);
}

/// The singular value decomposition, with and without vectors.
fn singular<T: Scalar<Real: Scalar>>(
    bencher: divan::Bencher<'_, '_>,
    n: usize,
    vectors: SingularVectors,
) {
    let batch = count::<T>(n);
    let a = random::<T>(n, n, batch);
    let (mut dst, mut u, mut vt) = (a.clone(), a.clone(), a.clone());
    let (mut s, mut info) = (vec![T::Real::ZERO; n * batch], vec![0; batch]);
    bencher.counter(ItemsCount::new(batch)).bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
        gesdd(vectors, batch, n, n, a, results, &Serial).unwrap();
    });
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn gesdd_vectors<T: Scalar<Real: Scalar>>(bencher: Bencher<'_, '_>, n: usize) {
    singular::<T>(bencher, n, SingularVectors::Thin);
}

#[divan::bench(types = [f32, f64, Complex<f32>, Complex<f64>], args = SIZES)]
fn gesdd_values<T: Scalar<Real: Scalar>>(bencher: Bencher<'_, '_>, n: usize) {
    singular::<T>(bencher, n, SingularVectors::None);
}

kernel!(gehrd_columns, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut dst, mut tau) = (a.clone(), vec![T::ZERO; (n - 1) * batch]);
    let mut info = vec![0; batch];
    bencher.bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        gehrd(batch, n, 1, n, a, &mut tau, &mut info, &Serial).unwrap();
    });
});

/// A place for eigenvalues: real and imaginary parts, or complex numbers.
fn eigenvalues<'a, T: Scalar>(first: &'a mut [T], second: &'a mut [T]) -> Eigenvalues<'a, T> {
    if T::IS_COMPLEX { Eigenvalues::Whole(first) } else { Eigenvalues::Parts(first, second) }
}

kernel!(gees_vectors, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut dst, mut z) = (a.clone(), a.clone());
    let (mut w, mut wi) = (vec![T::ZERO; n * batch], vec![T::ZERO; n * batch]);
    let (mut sdim, mut info) = (vec![0; batch], vec![0; batch]);
    bencher.bench_local(|| {
        let a = InOut { src: Some(black_box(&a[..])), dst: &mut dst };
        let w = eigenvalues(&mut w, &mut wi);
        gees(Vectors::Wanted, batch, n, a, &mut z, w, &mut sdim, &mut info, &Serial).unwrap();
    });
});

kernel!(geev_right, |T: Scalar, bencher, n, batch| {
    let a = random::<T>(n, n, batch);
    let (mut w, mut wi) = (vec![T::ZERO; n * batch], vec![T::ZERO; n * batch]);
    let zero = <T::Complex as lapax_core::Scalar>::ZERO;
    let (mut left, mut right) = (vec![zero; n * n * batch], vec![zero; n * n * batch]);
    let mut info = vec![0; batch];
    bencher.bench_local(|| {
        let w = eigenvalues(&mut w, &mut wi);
        let results = Eigen { w, left: &mut left, right: &mut right, info: &mut info };
        geev(Vectors::None, Vectors::Wanted, batch, n, black_box(&a), results, &Serial).unwrap();
    });
});

kernel!(tridiagonal_one, |T: Scalar, bencher, n, batch| {
    let d = random::<T>(n, n, batch);
    let [dl, du, b] = [1, 2, 3].map(|k| random::<T>(n, 1, batch + k)[k * n..].to_vec());
    // The diagonal of each matrix.
    let d: Vec<T> = d.iter().step_by(n + 1).copied().collect();
    let d = &d[..n * batch];
    let mut x = b.clone();
    bencher.bench_local(|| {
        let b = black_box(&b[..]);
        tridiagonal_solve(batch, n, 1, [&dl, d, &du], b, &mut x, &Serial).unwrap();
    });
});
