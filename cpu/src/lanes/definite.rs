//! Systems A·X = B with one small Hermitian positive definite matrix, or its Cholesky factor, in each lane.
//!
//! Whatever is given, a tile has L of A = L·Lᴴ: Lᴴ is read from it across its columns.

use lapax_core::{Items, ItemsMut, Real as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::cholesky::{factor, finish, mean_with_adjoint};
use super::pack::{Shape, pack, unpack};
use super::triangular::{System, solve};
use crate::matrix::layout::Layout;
use crate::matrix::triangle::Given;
use crate::parallel::groups::Kernel;
use crate::simd::lane::{FOUR, ONE, Size, THREE, TWO, numbers};
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, MAX_LANES, Reg};
use crate::{Diag, Scalar, Uplo};

/// Solves a group of row-major systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) given: Given,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// The same where the factors are known.
pub(crate) struct Substitute {
    pub(crate) uplo: Uplo,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// A, or its factor, and then B.
fn tile<T: Scalar>(n: usize, nrhs: usize, lanes: usize) -> Tile<T::Real> {
    Tile::new::<T>(n * (n + nrhs), lanes)
}

type Plain<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Plain<'_, T>> for Solve {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        tile::<T>(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tile<T::Real>,
        (a, b, x): Plain<'_, T>,
        count: usize,
    ) {
        self.run_sized::<S, T>(simd, scratch, (a.data(), b.data(), x.into_data()), None, count);
    }
}

type Kept<'a, T, R> =
    (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, R>);

impl<T: Scalar> Kernel<T, Kept<'_, T, T::Real>> for Solve {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        tile::<T>(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tile<T::Real>,
        (a, b, x, factor, logdet): Kept<'_, T, T::Real>,
        count: usize,
    ) {
        let kept = Some((factor.into_data(), logdet.into_data()));
        self.run_sized::<S, T>(simd, scratch, (a.data(), b.data(), x.into_data()), kept, count);
    }
}

/// A, B and X.
type Matrices<'a, T> = (&'a [T], &'a [T], &'a mut [T]);
/// The factors and the logarithms of the determinants.
type Results<'a, T, R> = Option<(&'a mut [T], &'a mut [R])>;

impl Solve {
    #[inline(always)]
    fn run_sized<S: Simd, T: Scalar>(
        &self,
        simd: S,
        tile: &mut Tile<T::Real>,
        matrices: Matrices<'_, T>,
        kept: Results<'_, T, T::Real>,
        count: usize,
    ) {
        let given = self.given;
        match (self.n, self.nrhs) {
            (2, 1) => group::<S, T, _, _>(simd, given, tile, matrices, kept, count, (TWO, ONE)),
            (3, 1) => group::<S, T, _, _>(simd, given, tile, matrices, kept, count, (THREE, ONE)),
            (4, 1) => group::<S, T, _, _>(simd, given, tile, matrices, kept, count, (FOUR, ONE)),
            size => group::<S, T, _, _>(simd, given, tile, matrices, kept, count, size),
        }
    }
}

#[apart]
fn group<S: Simd, T: Scalar, N: Size, R: Size>(
    simd: S,
    given: Given,
    tile: &mut Tile<T::Real>,
    (a, b, x): Matrices<'_, T>,
    kept: Results<'_, T, T::Real>,
    count: usize,
    (n, nrhs): (N, R),
) {
    let (size, n, nrhs) = (n, n.get(), nrhs.get());
    let parts = T::Lane::<S>::PARTS;
    let (l, right) = tile.registers::<S>().split_at_mut(n * n * parts);
    let right = &mut right[..n * nrhs * parts];
    let square = |order| Shape { m: n, n, order };
    let shape = Shape { m: n, n: nrhs, order: Layout::Rows };
    pack(simd, a, count, square(if given.turned() { Layout::Columns } else { Layout::Rows }), l);
    if nrhs > 0 {
        pack(simd, b, count, shape, right);
    }
    if given.turned() {
        conjugate::<S, T::Lane<S>>(simd, l);
    }
    if given.mean {
        mean_with_adjoint::<S, T::Lane<S>>(simd, l, n);
    }
    let minor = factor::<S, T::Lane<S>>(simd, l, size);
    // What is NaN then makes X so.
    finish::<S, T::Lane<S>>(simd, l, n, minor);
    substitute::<S, T::Lane<S>>(simd, (n, nrhs), l, right);
    if nrhs > 0 {
        unpack(simd, right, count, shape, x);
    }
    let Some((factors, logdets)) = kept else { return };
    let mut sums = [0.0; MAX_LANES];
    for j in 0..n {
        let diagonal = numbers(T::Lane::<S>::load(simd, l, j * n + j).re());
        sums[..count].iter_mut().zip(diagonal).for_each(|(sum, l)| *sum += l.to_f64().ln());
    }
    for (logdet, sum) in logdets.iter_mut().zip(sums) {
        *logdet = T::Real::from_f64(2.0 * sum);
    }
    if given.uplo == Uplo::Upper {
        conjugate::<S, T::Lane<S>>(simd, l);
        unpack(simd, l, count, square(Layout::Columns), factors);
    } else {
        unpack(simd, l, count, square(Layout::Rows), factors);
    }
}

impl<T: Scalar> Kernel<T, Plain<'_, T>> for Substitute {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        tile::<T>(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        tile: &mut Tile<T::Real>,
        (factor, b, x): Plain<'_, T>,
        count: usize,
    ) {
        let (matrices, uplo) = ((factor.data(), b.data(), x.into_data()), self.uplo);
        match (self.n, self.nrhs) {
            (2, 1) => known::<S, T, _, _>(simd, uplo, tile, matrices, count, (TWO, ONE)),
            (3, 1) => known::<S, T, _, _>(simd, uplo, tile, matrices, count, (THREE, ONE)),
            (4, 1) => known::<S, T, _, _>(simd, uplo, tile, matrices, count, (FOUR, ONE)),
            size => known::<S, T, _, _>(simd, uplo, tile, matrices, count, size),
        }
    }
}

#[apart]
fn known<S: Simd, T: Scalar, N: Size, R: Size>(
    simd: S,
    uplo: Uplo,
    tile: &mut Tile<T::Real>,
    (factor, b, x): Matrices<'_, T>,
    count: usize,
    (n, nrhs): (N, R),
) {
    let (n, nrhs) = (n.get(), nrhs.get());
    let parts = T::Lane::<S>::PARTS;
    let (l, right) = tile.registers::<S>().split_at_mut(n * n * parts);
    let right = &mut right[..n * nrhs * parts];
    let shape = Shape { m: n, n: nrhs, order: Layout::Rows };
    let order = if uplo == Uplo::Upper { Layout::Columns } else { Layout::Rows };
    pack(simd, factor, count, Shape { m: n, n, order }, l);
    pack(simd, b, count, shape, right);
    if uplo == Uplo::Upper {
        conjugate::<S, T::Lane<S>>(simd, l);
    }
    substitute::<S, T::Lane<S>>(simd, (n, nrhs), l, right);
    unpack(simd, right, count, shape, x);
}

#[inline(always)]
pub(crate) fn conjugate<S: Simd, X: Lane<S>>(simd: S, tile: &mut [Reg<S, X>]) {
    if X::PARTS > 1 {
        for x in tile.chunks_exact_mut(X::PARTS) {
            X::load(simd, x, 0).conj().store(x, 0);
        }
    }
}

/// X ← L⁻ᴴ·L⁻¹·X.
#[inline(always)]
fn substitute<S: Simd, X: Lane<S>>(
    simd: S,
    (n, nrhs): (usize, usize),
    l: &mut [Reg<S, X>],
    x: &mut [Reg<S, X>],
) {
    let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: false, n, nrhs };
    solve::<S, X>(simd, &system, l, x);
    substitute_adjoint::<S, X>(simd, n, l, x);
}

/// X ← L⁻ᴴ·X.
#[inline(always)]
pub(crate) fn substitute_adjoint<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    l: &[Reg<S, X>],
    x: &mut [Reg<S, X>],
) {
    let stride = n * X::PARTS;
    for i in (0..n).rev() {
        let column = &l[i * stride..(i + 1) * stride];
        let divisor = Divisor::new(simd, X::load(simd, column, i).conj());
        let mut columns = x.chunks_exact_mut(4 * stride);
        for columns in &mut columns {
            backward::<S, X, 4>(simd, (n, i), column, &divisor, columns);
        }
        for x in columns.into_remainder().chunks_exact_mut(stride) {
            backward::<S, X, 1>(simd, (n, i), column, &divisor, x);
        }
    }
}

/// x(i) = (x(i) − Σ conj(L(k, i))·x(k)) / conj(L(i, i)) over k > i, in N columns.
#[inline(always)]
fn backward<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    (n, i): (usize, usize),
    column: &[Reg<S, X>],
    divisor: &Divisor<S, X>,
    columns: &mut [Reg<S, X>],
) {
    let mut sums: [X; N] = std::array::from_fn(|c| X::load(simd, columns, c * n + i));
    for k in i + 1..n {
        let l = X::load(simd, column, k).conj();
        for (c, sum) in sums.iter_mut().enumerate() {
            *sum = sum.sub_mul(l, X::load(simd, columns, c * n + k));
        }
    }
    for (c, sum) in sums.into_iter().enumerate() {
        divisor.divide(sum).store(columns, c * n + i);
    }
}
