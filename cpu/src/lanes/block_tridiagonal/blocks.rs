//! Blocks of the matrices in each lane: read, written, multiplied and solved with.

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::lanes::pack::{Shape, pack_apart, unpack_apart};
use crate::lanes::triangular::{System, solve};
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg};
use crate::{Diag, Scalar, Uplo};

/// How many matrices a group has, and the shape of a block of each.
pub(super) type Group = (usize, Shape);

/// Reads block i of each matrix.
#[inline(always)]
pub(super) fn gather<S: Simd, T: Scalar>(
    simd: S,
    a: &[T],
    i: usize,
    (count, shape): Group,
    tile: &mut [Reg<S, T::Lane<S>>],
) {
    let pitch = a.len() / count;
    pack_apart(simd, &a[i * shape.m * shape.n..], pitch, count, shape, tile);
}

/// Writes block i of each matrix.
#[inline(always)]
pub(super) fn scatter<S: Simd, T: Scalar>(
    simd: S,
    tile: &[Reg<S, T::Lane<S>>],
    a: &mut [T],
    i: usize,
    (count, shape): Group,
) {
    let pitch = a.len() / count;
    unpack_apart(simd, tile, pitch, count, shape, &mut a[i * shape.m * shape.n..]);
}

/// The registers of n × columns numbers.
#[inline(always)]
pub(super) fn block<S: Simd, T: Scalar>(
    tile: &mut Tile<T::Real>,
    n: usize,
    columns: usize,
) -> &mut [Reg<S, T::Lane<S>>] {
    &mut tile.registers::<S>()[..n * columns * T::Lane::<S>::PARTS]
}

/// A tile as a matrix of coefficients, ±op(A).
#[derive(Clone, Copy)]
pub(super) struct Coefficients {
    /// From one row to the next, and from one column to the next.
    strides: (usize, usize),
    conj: bool,
    negated: bool,
}

impl Coefficients {
    /// Of a tile by columns, or its adjoint.
    pub(super) fn columns(n: usize, adjoint: bool) -> Self {
        Self { strides: if adjoint { (n, 1) } else { (1, n) }, conj: adjoint, negated: false }
    }

    /// Of a tile by rows, or its adjoint.
    pub(super) fn rows(n: usize, adjoint: bool) -> Self {
        Self { strides: if adjoint { (1, n) } else { (n, 1) }, conj: adjoint, negated: false }
    }

    pub(super) fn negated(self) -> Self {
        Self { negated: true, ..self }
    }

    /// X ← X − op(A)·B, by columns.
    #[inline(always)]
    pub(super) fn subtract_product<S: Simd, X: Lane<S>>(
        self,
        simd: S,
        n: usize,
        a: &[Reg<S, X>],
        b: &[Reg<S, X>],
        x: &mut [Reg<S, X>],
    ) {
        let stride = n * X::PARTS;
        for (b, x) in b.chunks_exact(stride).zip(x.chunks_exact_mut(stride)) {
            let mut i = 0;
            while i + 4 <= n {
                self.rows_of::<S, X, 4>(simd, n, i, a, b, x);
                i += 4;
            }
            while i < n {
                self.rows_of::<S, X, 1>(simd, n, i, a, b, x);
                i += 1;
            }
        }
    }

    #[inline(always)]
    fn rows_of<S: Simd, X: Lane<S>, const N: usize>(
        self,
        simd: S,
        n: usize,
        i: usize,
        a: &[Reg<S, X>],
        b: &[Reg<S, X>],
        x: &mut [Reg<S, X>],
    ) {
        let mut sums: [X; N] = std::array::from_fn(|_| X::splat(simd, X::Scalar::ZERO));
        for k in 0..n {
            let b = X::load(simd, b, k);
            for (r, sum) in sums.iter_mut().enumerate() {
                let a = X::load(simd, a, (i + r) * self.strides.0 + k * self.strides.1);
                *sum = sum.add_mul(if self.conj { a.conj() } else { a }, b);
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let old = X::load(simd, x, i + r);
            (if self.negated { old + sum } else { old - sum }).store(x, i + r);
        }
    }
}

/// A − E·Eᴴ on and below the diagonal: A by columns, E by rows.
#[inline(always)]
pub(super) fn complement<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    e: &[Reg<S, X>],
    a: &mut [Reg<S, X>],
) {
    let row = n * X::PARTS;
    for j in 0..n {
        let mut i = j;
        while i + 4 <= n {
            complement_rows::<S, X, 4>(simd, (n, i, j), e, &mut a[j * row..]);
            i += 4;
        }
        while i < n {
            complement_rows::<S, X, 1>(simd, (n, i, j), e, &mut a[j * row..]);
            i += 1;
        }
    }
}

#[inline(always)]
fn complement_rows<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    (n, i, j): (usize, usize, usize),
    e: &[Reg<S, X>],
    column: &mut [Reg<S, X>],
) {
    let mut sums: [X; N] = std::array::from_fn(|_| X::splat(simd, X::Scalar::ZERO));
    for k in 0..n {
        let x = X::load(simd, e, j * n + k).conj();
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add_mul(X::load(simd, e, (i + r) * n + k), x);
        }
    }
    for (r, sum) in sums.into_iter().enumerate() {
        (X::load(simd, column, i + r) - sum).store(column, i + r);
    }
}

/// X ← L⁻¹·X, by columns.
#[inline(always)]
pub(super) fn forward<S: Simd, X: Lane<S>>(
    simd: S,
    (n, nrhs): (usize, usize),
    l: &mut [Reg<S, X>],
    x: &mut [Reg<S, X>],
) {
    let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: false, n, nrhs };
    solve::<S, X>(simd, &system, l, x);
}
