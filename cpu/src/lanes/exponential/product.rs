//! Products and sums of square matrices, one in each lane.

use lapax_core::Scalar as _;
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::simd::vector::{Lane, Reg, Vector};

/// The rows and columns of C whose sums stay in registers: as many as hide the latency of an addition, with fewer reads
/// than multiplications.
const ROWS: usize = 4;
const COLUMNS: usize = 2;

/// C ← C + A·B, of order n.
#[apart]
pub(super) fn add_product<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    a: &[Reg<S, X>],
    b: &[Reg<S, X>],
    c: &mut [Reg<S, X>],
) {
    let stride = n * X::PARTS;
    let b = b.chunks(COLUMNS * stride).zip(c.chunks_mut(COLUMNS * stride));
    for (b, c) in b {
        if c.len() == COLUMNS * stride {
            columns::<S, X, COLUMNS>(simd, n, a, b, c);
        } else {
            columns::<S, X, 1>(simd, n, a, b, c);
        }
    }
}

#[inline(always)]
fn columns<S: Simd, X: Lane<S>, const C: usize>(
    simd: S,
    n: usize,
    a: &[Reg<S, X>],
    b: &[Reg<S, X>],
    c: &mut [Reg<S, X>],
) {
    let mut i = 0;
    while i + ROWS <= n {
        block::<S, X, ROWS, C>(simd, (n, i), a, b, c);
        i += ROWS;
    }
    match n - i {
        3 => block::<S, X, 3, C>(simd, (n, i), a, b, c),
        2 => block::<S, X, 2, C>(simd, (n, i), a, b, c),
        1 => block::<S, X, 1, C>(simd, (n, i), a, b, c),
        _ => {}
    }
}

/// R rows from row i on of C columns.
#[inline(always)]
fn block<S: Simd, X: Lane<S>, const R: usize, const C: usize>(
    simd: S,
    (n, i): (usize, usize),
    a: &[Reg<S, X>],
    b: &[Reg<S, X>],
    c: &mut [Reg<S, X>],
) {
    let mut sums: [[X; R]; C] =
        std::array::from_fn(|j| std::array::from_fn(|r| X::load(simd, c, j * n + i + r)));
    for k in 0..n {
        let a = &a[(k * n + i) * X::PARTS..][..R * X::PARTS];
        let left: [X; R] = std::array::from_fn(|r| X::load(simd, a, r));
        for (j, sums) in sums.iter_mut().enumerate() {
            let right = X::load(simd, b, j * n + k);
            for (sum, left) in sums.iter_mut().zip(left) {
                *sum = sum.add_mul(left, right);
            }
        }
    }
    for (j, sums) in sums.into_iter().enumerate() {
        for (r, sum) in sums.into_iter().enumerate() {
            sum.store(c, j * n + i + r);
        }
    }
}

/// Σ factor·matrix, and a multiple of the identity. No zero of it is negative.
#[inline(always)]
pub(super) fn combine<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    matrices: &[&[Reg<S, X>]],
    factors: [Vector<S, X::Real>; 3],
    unit: Option<Vector<S, X::Real>>,
    out: &mut [Reg<S, X>],
) {
    let zero = X::splat(simd, X::Scalar::ZERO);
    for at in 0..n * n {
        let mut sum = zero;
        for (matrix, factor) in matrices.iter().zip(factors) {
            sum = sum + X::load(simd, matrix, at).scale(factor);
        }
        sum.store(out, at);
    }
    if let Some(unit) = unit {
        for at in (0..n * n).step_by(n + 1) {
            (X::load(simd, out, at) + X::from_real(unit)).store(out, at);
        }
    }
}
