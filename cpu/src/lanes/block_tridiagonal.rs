//! Block-tridiagonal Hermitian positive definite matrices, one in each lane: A = L·Lᴴ, block after block.
//!
//! A tile holds one block of each matrix. Those of a group are gathered before they are turned into it.

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _, Sweeps};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::cholesky::{factor, finish};
use super::definite::{conjugate, substitute_adjoint};
use super::pack::{Shape, pack, unpack};
use super::triangular::{System, solve};
use crate::matrix::blocks::{Band, BandMut, Blocks};
use crate::matrix::layout::Layout;
use crate::matrix::triangle::only_lower;
use crate::parallel::groups::Kernel;
use crate::simd::lane::flags;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};
use crate::{Diag, Scalar, Uplo};

/// Factors a group.
pub(crate) struct Factor {
    pub(crate) blocks: Blocks,
}

/// Solves a group of systems, whose factors are known, or are made first.
pub(crate) struct Solve {
    pub(crate) sweeps: Sweeps,
    pub(crate) blocks: Blocks,
    pub(crate) nrhs: usize,
}

/// The blocks of the inverses of a group inside the band, by their factors.
pub(crate) struct Inverse {
    pub(crate) blocks: Blocks,
}

/// What one thread reuses: N tiles of a block each, and a block of each matrix as they lie.
pub(crate) struct Scratch<T: Scalar, const N: usize> {
    tiles: [Tile<T::Real>; N],
    numbers: Vec<T>,
}

impl<T: Scalar, const N: usize> Scratch<T, N> {
    /// For blocks of n rows and at most so many columns.
    fn new(n: usize, columns: usize, lanes: usize) -> Self {
        let tiles = std::array::from_fn(|_| Tile::new::<T>(n * columns, lanes));
        Self { tiles, numbers: vec![T::ZERO; n * columns * lanes] }
    }
}

type Read<'a, T> = (Items<'a, T>, Items<'a, T>);
type Write<'a, T> = (ItemsMut<'a, T>, ItemsMut<'a, T>);
type Sides<'a, T> = (Items<'a, T>, ItemsMut<'a, T>);

fn read<'a, T: Scalar>((diagonal, off): Read<'a, T>) -> Band<'a, T> {
    Band { diagonal: diagonal.data(), off_diagonal: off.data() }
}

fn write<'a, T: Scalar>((diagonal, off): Write<'a, T>) -> BandMut<'a, T> {
    BandMut { diagonal: diagonal.into_data(), off_diagonal: off.into_data() }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Write<'_, T>)> for Factor {
    type Scratch = Scratch<T, 2>;

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        Scratch::new(self.blocks.n, self.blocks.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Self::Scratch,
        (a, l): (Read<'_, T>, Write<'_, T>),
        count: usize,
    ) {
        let Scratch { tiles: [diagonal, off], numbers } = scratch;
        factor_group::<S, T>(
            simd,
            self.blocks,
            read(a),
            &mut write(l),
            [diagonal, off],
            numbers,
            count,
        );
    }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Sides<'_, T>)> for Solve {
    type Scratch = Scratch<T, 4>;

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        Scratch::new(self.blocks.n, self.blocks.n.max(self.nrhs), lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Self::Scratch,
        (l, (b, x)): (Read<'_, T>, Sides<'_, T>),
        count: usize,
    ) {
        let x = x.into_data();
        x.copy_from_slice(b.data());
        sweep_group::<S, T>(simd, self, read(l), x, scratch, count);
    }
}

type Kept<'a, T, R> = (Read<'a, T>, Write<'a, T>, Sides<'a, T>, ItemsMut<'a, R>);

impl<T: Scalar> Kernel<T, Kept<'_, T, T::Real>> for Solve {
    type Scratch = Scratch<T, 4>;

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        Scratch::new(self.blocks.n, self.blocks.n.max(self.nrhs), lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Self::Scratch,
        (a, l, (b, x), logdet): Kept<'_, T, T::Real>,
        count: usize,
    ) {
        let (mut l, x, n) = (write(l), x.into_data(), self.blocks.n);
        {
            let Scratch { tiles: [diagonal, off, ..], numbers } = &mut *scratch;
            let tiles = [diagonal, off];
            factor_group::<S, T>(simd, self.blocks, read(a), &mut l, tiles, numbers, count);
        }
        x.copy_from_slice(b.data());
        let BandMut { diagonal, off_diagonal } = l;
        let l = Band { diagonal: &*diagonal, off_diagonal: &*off_diagonal };
        sweep_group::<S, T>(simd, self, l, x, scratch, count);
        let matrices = diagonal.chunks_exact(diagonal.len() / count);
        for (logdet, l) in logdet.into_data().iter_mut().zip(matrices) {
            let pivots = l.chunks_exact(n * n).flat_map(|l| l.iter().step_by(n + 1));
            let sum: f64 = pivots.map(|l| l.re().to_f64().ln()).sum();
            *logdet = T::Real::from_f64(2.0 * sum);
        }
    }
}

impl<T: Scalar> Kernel<T, (Read<'_, T>, Write<'_, T>)> for Inverse {
    type Scratch = Scratch<T, 6>;

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        Scratch::new(self.blocks.n, self.blocks.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Self::Scratch,
        (l, inverse): (Read<'_, T>, Write<'_, T>),
        count: usize,
    ) {
        inverse_group::<S, T>(simd, self.blocks, read(l), write(inverse), scratch, count);
    }
}

/// Reads block i of each matrix.
#[inline(always)]
fn gather<S: Simd, T: Scalar>(
    simd: S,
    a: &[T],
    i: usize,
    (count, shape): (usize, Shape),
    numbers: &mut [T],
    tile: &mut [Reg<S, T::Lane<S>>],
) {
    let size = shape.m * shape.n;
    let numbers = &mut numbers[..count * size];
    let matrices = a.chunks_exact(a.len() / count);
    for (numbers, a) in numbers.chunks_exact_mut(size).zip(matrices) {
        numbers.copy_from_slice(&a[i * size..(i + 1) * size]);
    }
    pack(simd, numbers, count, shape, tile);
}

/// Writes block i of each matrix.
#[inline(always)]
fn scatter<S: Simd, T: Scalar>(
    simd: S,
    tile: &[Reg<S, T::Lane<S>>],
    a: &mut [T],
    i: usize,
    (count, shape): (usize, Shape),
    numbers: &mut [T],
) {
    let size = shape.m * shape.n;
    let numbers = &mut numbers[..count * size];
    unpack(simd, tile, count, shape, numbers);
    let pitch = a.len() / count;
    for (numbers, a) in numbers.chunks_exact(size).zip(a.chunks_exact_mut(pitch)) {
        a[i * size..(i + 1) * size].copy_from_slice(numbers);
    }
}

/// The registers of n × columns numbers.
#[inline(always)]
fn block<S: Simd, T: Scalar>(
    tile: &mut Tile<T::Real>,
    n: usize,
    columns: usize,
) -> &mut [Reg<S, T::Lane<S>>] {
    &mut tile.registers::<S>()[..n * columns * T::Lane::<S>::PARTS]
}

/// A tile as a matrix of coefficients, ±op(A).
#[derive(Clone, Copy)]
struct Coefficients {
    /// From one row to the next, and from one column to the next.
    strides: (usize, usize),
    conj: bool,
    negated: bool,
}

impl Coefficients {
    /// Of a tile by columns, or its adjoint.
    fn columns(n: usize, adjoint: bool) -> Self {
        Self { strides: if adjoint { (n, 1) } else { (1, n) }, conj: adjoint, negated: false }
    }

    /// Of a tile by rows, or its adjoint.
    fn rows(n: usize, adjoint: bool) -> Self {
        Self { strides: if adjoint { (1, n) } else { (n, 1) }, conj: adjoint, negated: false }
    }

    fn negated(self) -> Self {
        Self { negated: true, ..self }
    }

    /// X ← X − op(A)·B, by columns.
    #[inline(always)]
    fn subtract_product<S: Simd, X: Lane<S>>(
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
                self.rows_of::<S, X, 4>(simd, n, i, (a, b, x));
                i += 4;
            }
            while i < n {
                self.rows_of::<S, X, 1>(simd, n, i, (a, b, x));
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
        (a, b, x): (&[Reg<S, X>], &[Reg<S, X>], &mut [Reg<S, X>]),
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

/// L of a group; NaN those of matrices that have none.
#[apart]
fn factor_group<S: Simd, T: Scalar>(
    simd: S,
    blocks: Blocks,
    a: Band<'_, T>,
    l: &mut BandMut<'_, T>,
    tiles: [&mut Tile<T::Real>; 2],
    numbers: &mut [T],
    count: usize,
) {
    let n = blocks.n;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let [diagonal, off] = tiles.map(|tile| block::<S, T>(tile, n, n));
    let zero = Vector::<S, T::Real>::splat(simd, T::Real::ZERO);
    let mut definite = zero.equal(zero);
    for i in 0..blocks.count {
        gather::<S, T>(simd, a.diagonal, i, by_rows, numbers, diagonal);
        if i > 0 {
            complement::<S, T::Lane<S>>(simd, n, off, diagonal);
        }
        let minor = factor::<S, T::Lane<S>>(simd, diagonal, n);
        definite = definite.and(minor.equal(zero));
        finish::<S, T::Lane<S>>(simd, diagonal, n, minor);
        scatter::<S, T>(simd, diagonal, l.diagonal, i, by_rows, numbers);
        if i + 1 < blocks.count {
            // The columns of L·Eᴴ = Bᴴ are the rows of E and B.
            gather::<S, T>(simd, a.off_diagonal, i, as_it_is, numbers, off);
            conjugate::<S, T::Lane<S>>(simd, off);
            forward::<S, T::Lane<S>>(simd, (n, n), diagonal, off);
            conjugate::<S, T::Lane<S>>(simd, off);
            scatter::<S, T>(simd, off, l.off_diagonal, i, as_it_is, numbers);
        }
    }
    if definite.all() {
        return;
    }
    let (pitch, pitch_off) = (l.diagonal.len() / count, l.off_diagonal.len() / count);
    for (lane, definite) in flags(simd, definite)[..count].iter().enumerate() {
        if !definite {
            let diagonal = &mut l.diagonal[lane * pitch..][..pitch];
            diagonal.chunks_exact_mut(n * n).for_each(|l| only_lower(l, n, 0, false));
            l.off_diagonal[lane * pitch_off..][..pitch_off].fill(nan());
        }
    }
}

/// A − E·Eᴴ on and below the diagonal: A by columns, E by rows.
#[inline(always)]
fn complement<S: Simd, X: Lane<S>>(simd: S, n: usize, e: &[Reg<S, X>], a: &mut [Reg<S, X>]) {
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
fn forward<S: Simd, X: Lane<S>>(
    simd: S,
    (n, nrhs): (usize, usize),
    l: &mut [Reg<S, X>],
    x: &mut [Reg<S, X>],
) {
    let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: false, n, nrhs };
    solve::<S, X>(simd, &system, l, x);
}

/// Solves for X in place of B.
#[apart]
fn sweep_group<S: Simd, T: Scalar>(
    simd: S,
    kernel: &Solve,
    l: Band<'_, T>,
    b: &mut [T],
    scratch: &mut Scratch<T, 4>,
    count: usize,
) {
    let Solve { sweeps, blocks: Blocks { count: blocks, n }, nrhs } = *kernel;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let side = (count, Shape { m: n, n: nrhs, order: Layout::Rows });
    let Scratch { tiles: [diagonal, off, x, known], numbers } = scratch;
    let [diagonal, off] = [diagonal, off].map(|tile| block::<S, T>(tile, n, n));
    let [mut x, mut known] = [x, known].map(|tile| block::<S, T>(tile, n, nrhs));
    if sweeps != Sweeps::Backward {
        for i in 0..blocks {
            gather::<S, T>(simd, b, i, side, numbers, x);
            if i > 0 {
                gather::<S, T>(simd, l.off_diagonal, i - 1, as_it_is, numbers, off);
                let off_diagonal = Coefficients::rows(n, false);
                off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, known, x);
            }
            gather::<S, T>(simd, l.diagonal, i, by_rows, numbers, diagonal);
            forward::<S, T::Lane<S>>(simd, (n, nrhs), diagonal, x);
            scatter::<S, T>(simd, x, b, i, side, numbers);
            std::mem::swap(&mut x, &mut known);
        }
    }
    if sweeps != Sweeps::Forward {
        for i in (0..blocks).rev() {
            gather::<S, T>(simd, b, i, side, numbers, x);
            if i + 1 < blocks {
                gather::<S, T>(simd, l.off_diagonal, i, as_it_is, numbers, off);
                let off_diagonal = Coefficients::rows(n, true);
                off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, known, x);
            }
            gather::<S, T>(simd, l.diagonal, i, by_rows, numbers, diagonal);
            substitute_adjoint::<S, T::Lane<S>>(simd, n, diagonal, x);
            scatter::<S, T>(simd, x, b, i, side, numbers);
            std::mem::swap(&mut x, &mut known);
        }
    }
}

/// The blocks of the inverses, for S = A⁻¹ and G = Lᵢ₊₁ᵢ·Lᵢᵢ⁻¹: Sᵢ₊₁ᵢ = −Sᵢ₊₁ᵢ₊₁·G and Sᵢᵢ = Lᵢᵢ⁻ᴴ·Lᵢᵢ⁻¹ − Gᴴ·Sᵢ₊₁ᵢ.
#[apart]
fn inverse_group<S: Simd, T: Scalar>(
    simd: S,
    blocks: Blocks,
    l: Band<'_, T>,
    inverse: BandMut<'_, T>,
    scratch: &mut Scratch<T, 6>,
    count: usize,
) {
    let n = blocks.n;
    let [by_rows, as_it_is] =
        [Layout::Rows, Layout::Columns].map(|order| (count, Shape { m: n, n, order }));
    let Scratch { tiles, numbers } = scratch;
    let [lower, off, inverted, g, mut s, mut behind] =
        tiles.each_mut().map(|tile| block::<S, T>(tile, n, n));
    let (zero, one) = (T::Lane::<S>::splat(simd, T::ZERO), T::Lane::<S>::splat(simd, T::ONE));
    let fill = |tile: &mut [Reg<S, T::Lane<S>>]| (0..n * n).for_each(|at| zero.store(tile, at));
    let (whole, adjoint) = (Coefficients::columns(n, false), Coefficients::columns(n, true));
    for i in (0..blocks.count).rev() {
        gather::<S, T>(simd, l.diagonal, i, by_rows, numbers, lower);
        fill(inverted);
        (0..n).for_each(|j| one.store(inverted, j * (n + 1)));
        forward::<S, T::Lane<S>>(simd, (n, n), lower, inverted);
        fill(s);
        adjoint.negated().subtract_product::<S, T::Lane<S>>(simd, n, inverted, inverted, s);
        if i + 1 < blocks.count {
            gather::<S, T>(simd, l.off_diagonal, i, as_it_is, numbers, off);
            fill(g);
            let off_diagonal = Coefficients::rows(n, false).negated();
            off_diagonal.subtract_product::<S, T::Lane<S>>(simd, n, off, inverted, g);
            // What has been read is no longer needed.
            let s_off = &mut *off;
            fill(s_off);
            whole.subtract_product::<S, T::Lane<S>>(simd, n, behind, g, s_off);
            adjoint.subtract_product::<S, T::Lane<S>>(simd, n, g, s_off, s);
            scatter::<S, T>(simd, s_off, inverse.off_diagonal, i, by_rows, numbers);
        }
        // Both triangles are the lower one's.
        for j in 0..n {
            let x = T::Lane::<S>::load(simd, s, j * (n + 1));
            T::Lane::<S>::from_real(x.re()).store(s, j * (n + 1));
            for i in j + 1..n {
                T::Lane::<S>::load(simd, s, j * n + i).conj().store(s, i * n + j);
            }
        }
        scatter::<S, T>(simd, s, inverse.diagonal, i, by_rows, numbers);
        std::mem::swap(&mut s, &mut behind);
    }
}
