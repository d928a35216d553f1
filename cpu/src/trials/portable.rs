//! The base cases without vector registers give the answers that they give with them.
//!
//! Which of the two runs is the processor's choice, so on most machines only one ever does.

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Diag, Uplo};
use pulp::WithSimd;

use crate::blas::trsm_packed;
use crate::cholesky;
use crate::cholesky::update;
use crate::lu::blocked;
use crate::matrix::panel;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::{Real, Scalar};

/// The order of the systems: the largest base case.
const N: usize = 32;

for_each_scalar!(all);

fn all<T: Scalar>() {
    // Hermitian with a dominant diagonal, so that each kernel is stable on it.
    let element = |i: usize, j: usize| {
        let part = |k: usize| T::Real::from_f64(f64::from(u8::try_from(k % 7).unwrap_or(0)) / 64.0);
        match i.cmp(&j) {
            std::cmp::Ordering::Less => T::from_parts(part(i * j), part(i + j)),
            std::cmp::Ordering::Equal => T::from_real(T::Real::from_f64(2.0)),
            std::cmp::Ordering::Greater => T::from_parts(part(i * j), -part(i + j)),
        }
    };
    let a: Vec<T> = (0..N * N).map(|k| element(k % N, k / N)).collect();

    agree(&a, |portable, x| {
        let mut swaps = [0; N];
        let panel = panel::Panel { a: x, lda: N, row: 0 };
        run(portable, blocked::EliminatePacked::<T, N> { panel, swaps: &mut swaps });
    });
    agree(&a, |portable, x| {
        let mut swaps = [0; N];
        let panel = panel::Panel { a: x, lda: N, row: 0 };
        run(portable, blocked::Eliminate { panel, swaps: &mut swaps });
    });
    agree(&a, |portable, x| {
        let view = MatMut::from_column_major_slice_mut(x, N, N);
        assert_eq!(run(portable, cholesky::blocked::FactorPacked::<T, N>(view)), Ok(()));
    });
    agree(&a, |portable, x| {
        let system = System { uplo: Uplo::Upper, diag: Diag::NonUnit, conj: Conj::Yes };
        let mut scratch = trsm_packed::Scratch::new(N, N);
        let (a, b) = (
            MatRef::from_column_major_slice(&a, N, N),
            MatMut::from_column_major_slice_mut(x, N, N),
        );
        run(portable, trsm_packed::Solve { system, a, b, scratch: &mut scratch });
    });
    agree(&a, |portable, x| {
        let mut w = a[..N].to_vec();
        run(portable, update::Update { r: x, w: &mut w });
    });
}

/// Runs a kernel without vector registers, or with those that this processor has.
fn run<K: WithSimd>(portable: bool, kernel: K) -> K::Output {
    if portable { kernel.with_simd(pulp::Scalar::new()) } else { Arch::new().dispatch(kernel) }
}

/// Checks that a kernel changes its operand, and by the same amount in both ways to run it.
fn agree<T: Scalar>(a: &[T], kernel: impl Fn(bool, &mut [T])) {
    let (mut portable, mut vector) = (a.to_vec(), a.to_vec());
    kernel(true, &mut portable);
    kernel(false, &mut vector);
    assert!(portable != a);
    for (x, y) in portable.iter().zip(&vector) {
        let difference = (*x - *y).abs().to_f64();
        approx::assert_abs_diff_eq!(difference, 0.0, epsilon = 200.0 * T::Real::EPSILON.to_f64());
    }
}
