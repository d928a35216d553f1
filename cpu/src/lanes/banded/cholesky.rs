//! Cholesky factorisation A = L·Lᴴ of one banded matrix in each lane, and systems by it.

use lapax_core::{Items, ItemsMut, Scalar as _};
use pulp::Simd;

use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Mask, Reg, Vector};
use crate::{Scalar, Uplo};

/// Factors a group of matrices, given and kept by diagonals: NaN where one is not positive definite, zero outside.
pub(crate) struct Factor {
    pub(crate) uplo: Uplo,
    pub(crate) beside: usize,
    pub(crate) n: usize,
}

/// Solves a group of systems; X is NaN where A is not positive definite.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) beside: usize,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// The same where the factors are given.
pub(crate) struct Substitute {
    pub(crate) uplo: Uplo,
    pub(crate) beside: usize,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for Factor {
    type Scratch = Tile<T::Real>;

    fn scratch(&self, lanes: usize) -> Tile<T::Real> {
        Tile::new::<T>((self.beside + 1) * self.n, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tile<T::Real>,
        (ab, factor): (Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        let Self { uplo, beside, n } = *self;
        let band = Band { uplo, beside, n };
        let tile = scratch.registers::<S>();
        let shape = whole((beside + 1) * n);
        pack(simd, ab.data(), count, shape, tile);
        let definite = band.factor::<S, T::Lane<S>>(simd, tile);
        band.finish::<S, T::Lane<S>>(simd, tile, definite);
        unpack(simd, tile, count, shape, factor.into_data());
    }
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    band: Tile<R>,
    b: Tile<R>,
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let tile = |row| Tile::new::<T>(row * self.n, lanes);
        Tiles { band: tile(self.beside + 1), b: tile(self.nrhs) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (ab, b, x): Operands<'_, T>,
        count: usize,
    ) {
        let Self { uplo, beside, n, nrhs } = *self;
        let band = Band { uplo, beside, n };
        let (tile, sides) = (scratch.band.registers::<S>(), scratch.b.registers::<S>());
        pack(simd, ab.data(), count, whole((beside + 1) * n), tile);
        pack(simd, b.data(), count, whole(n * nrhs), sides);
        let definite = band.factor::<S, T::Lane<S>>(simd, tile);
        band.substitute::<S, T::Lane<S>>(simd, tile, sides, nrhs);
        if !definite.all() {
            let nan = T::Lane::<S>::splat(simd, nan());
            for i in 0..n * nrhs {
                let x = Lane::<S>::load(simd, sides, i);
                T::Lane::<S>::choose(definite, x, nan).store(sides, i);
            }
        }
        unpack(simd, sides, count, whole(n * nrhs), x.into_data());
    }
}

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Substitute {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let tile = |row| Tile::new::<T>(row * self.n, lanes);
        Tiles { band: tile(self.beside + 1), b: tile(self.nrhs) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (factor, b, x): Operands<'_, T>,
        count: usize,
    ) {
        let Self { uplo, beside, n, nrhs } = *self;
        let band = Band { uplo, beside, n };
        let (tile, sides) = (scratch.band.registers::<S>(), scratch.b.registers::<S>());
        pack(simd, factor.data(), count, whole((beside + 1) * n), tile);
        pack(simd, b.data(), count, whole(n * nrhs), sides);
        if uplo == Uplo::Upper {
            band.conjugate::<S, T::Lane<S>>(simd, tile);
        }
        band.substitute::<S, T::Lane<S>>(simd, tile, sides, nrhs);
        unpack(simd, sides, count, whole(n * nrhs), x.into_data());
    }
}

/// So many numbers as they lie in memory.
fn whole(m: usize) -> Shape {
    Shape { m, n: 1, order: Layout::Columns }
}

/// The lower triangle of a Hermitian matrix in a tile.
#[derive(Clone, Copy)]
struct Band {
    uplo: Uplo,
    beside: usize,
    n: usize,
}

impl Band {
    /// Where element (k + c, k), or its conjugate in row k, stands.
    #[inline(always)]
    fn at(self, c: usize, k: usize) -> usize {
        match self.uplo {
            Uplo::Lower => c * self.n + k,
            Uplo::Upper => (self.beside - c) * self.n + k + c,
        }
    }

    /// Makes the upper triangle the lower one, or the other way round.
    #[inline(always)]
    fn conjugate<S: Simd, X: Lane<S>>(self, simd: S, tile: &mut [Reg<S, X>]) {
        if X::PARTS > 1 {
            for at in 0..(self.beside + 1) * self.n {
                X::load(simd, tile, at).conj().store(tile, at);
            }
        }
    }

    /// Makes L of A's triangle; the lanes in which A is positive definite.
    #[inline(always)]
    fn factor<S: Simd, X: Lane<S>>(self, simd: S, tile: &mut [Reg<S, X>]) -> Mask<S, X::Real> {
        let Self { uplo, beside, n } = self;
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
        let mut definite = zero.equal(zero);
        if uplo == Uplo::Upper {
            self.conjugate::<S, X>(simd, tile);
        }
        for k in 0..n {
            let d = X::load(simd, tile, self.at(0, k)).re();
            definite = definite.and(zero.less(d));
            let root = d.sqrt();
            X::from_real(root).store(tile, self.at(0, k));
            let (reciprocal, below) = (one / root, beside.min(n - 1 - k));
            for c in 1..=below {
                let at = self.at(c, k);
                X::load(simd, tile, at).scale(reciprocal).store(tile, at);
            }
            for c in 1..=below {
                let l = X::load(simd, tile, self.at(c, k)).conj();
                for i in c..=below {
                    let at = self.at(i - c, k + c);
                    let a = X::load(simd, tile, at);
                    a.sub_mul(X::load(simd, tile, self.at(i, k)), l).store(tile, at);
                }
            }
        }
        definite
    }

    /// L, or U, in its form: NaN where it is none, and zeros outside of the matrix.
    #[inline(always)]
    fn finish<S: Simd, X: Lane<S>>(
        self,
        simd: S,
        tile: &mut [Reg<S, X>],
        definite: Mask<S, X::Real>,
    ) {
        let Self { uplo, beside, n } = self;
        let (nan, zero) = (X::splat(simd, nan()), Vector::splat(simd, X::Real::ZERO));
        if uplo == Uplo::Upper {
            self.conjugate::<S, X>(simd, tile);
        }
        for (p, row) in tile.chunks_exact_mut(n * X::PARTS).enumerate().take(beside + 1) {
            let inside = match uplo {
                Uplo::Lower => 0..n.saturating_sub(p),
                Uplo::Upper => n.min(beside - p)..n,
            };
            for j in 0..n {
                let l = X::choose(definite, X::load(simd, row, j), nan);
                let l = if inside.contains(&j) { l } else { X::from_real(zero) };
                l.store(row, j);
            }
        }
    }

    /// X = L⁻ᴴ·L⁻¹·B in place.
    #[inline(always)]
    fn substitute<S: Simd, X: Lane<S>>(
        self,
        simd: S,
        tile: &[Reg<S, X>],
        x: &mut [Reg<S, X>],
        nrhs: usize,
    ) {
        let Self { beside, n, .. } = self;
        for k in 0..n {
            let divisor = Divisor::new(simd, X::load(simd, tile, self.at(0, k)));
            for s in 0..nrhs {
                let y = divisor.divide(X::load(simd, x, k * nrhs + s));
                y.store(x, k * nrhs + s);
                for c in 1..=beside.min(n - 1 - k) {
                    let (l, at) = (X::load(simd, tile, self.at(c, k)), (k + c) * nrhs + s);
                    X::load(simd, x, at).sub_mul(l, y).store(x, at);
                }
            }
        }
        for k in (0..n).rev() {
            let divisor = Divisor::new(simd, X::load(simd, tile, self.at(0, k)).conj());
            for s in 0..nrhs {
                let mut sum = X::load(simd, x, k * nrhs + s);
                for c in (1..=beside.min(n - 1 - k)).rev() {
                    let l = X::load(simd, tile, self.at(c, k)).conj();
                    sum = sum.sub_mul(l, X::load(simd, x, (k + c) * nrhs + s));
                }
                divisor.divide(sum).store(x, k * nrhs + s);
            }
        }
    }
}
