//! Banded systems A·X = B by elimination with partial pivoting, one in each lane.

use lapax_core::{Items, ItemsMut, Scalar as _};
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Mask, Reg, Vector};

/// Solves a group of systems (xGBSV), A by its diagonals from the uppermost down; X is NaN where A is singular.
#[derive(Clone, Copy)]
pub(crate) struct Solve {
    pub(crate) lower: usize,
    pub(crate) upper: usize,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    band: Tile<R>,
    b: Tile<R>,
    /// Row by row, each from where its elements start, and then its right-hand sides. Once it is a row of U, it
    /// starts with the diagonal.
    rows: Tile<R>,
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let Self { n, nrhs, .. } = *self;
        let tile = |row: usize| Tile::new::<T>(n * row, lanes);
        Tiles { band: tile(self.width()), b: tile(nrhs), rows: tile(self.width() + nrhs) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (ab, b, x): Operands<'_, T>,
        count: usize,
    ) {
        let Self { n, nrhs, .. } = *self;
        let whole = |m| Shape { m, n: 1, order: Layout::Columns };
        let Tiles { band, b: sides, rows } = scratch;
        let (band, sides) = (band.registers::<S>(), sides.registers::<S>());
        let rows = rows.registers::<S>();
        pack(simd, ab.data(), count, whole(n * self.width()), band);
        pack(simd, b.data(), count, whole(n * nrhs), sides);
        self.start::<S, T::Lane<S>>(simd, band, sides, rows);
        let singular = self.eliminate::<S, T::Lane<S>>(simd, rows);
        self.substitute::<S, T::Lane<S>>(simd, rows, sides);
        if singular.any() {
            let nan = T::Lane::<S>::splat(simd, nan());
            for i in 0..n * nrhs {
                let x = Lane::<S>::load(simd, sides, i);
                T::Lane::<S>::choose(singular, nan, x).store(sides, i);
            }
        }
        unpack(simd, sides, count, whole(n * nrhs), x.into_data());
    }
}

impl Solve {
    fn width(&self) -> usize {
        self.lower + self.upper + 1
    }

    /// The rows of A, with zeros where a row of U may have elements besides, and those of B.
    #[inline(always)]
    fn start<S: Simd, X: Lane<S>>(
        &self,
        simd: S,
        band: &[Reg<S, X>],
        sides: &[Reg<S, X>],
        rows: &mut [Reg<S, X>],
    ) {
        let (Self { lower, upper, n, nrhs }, width) = (*self, self.width());
        let zero = X::splat(simd, X::Scalar::ZERO);
        let row = rows.chunks_exact_mut((width + nrhs) * X::PARTS);
        for (i, row) in row.enumerate().take(n) {
            let start = i.saturating_sub(lower);
            for c in 0..width {
                let j = start + c;
                let inside = j < n && j <= i + upper;
                let a = if inside { X::load(simd, band, (upper + i - j) * n + j) } else { zero };
                a.store(row, c);
            }
            for s in 0..nrhs {
                X::load(simd, sides, i * nrhs + s).store(row, width + s);
            }
        }
    }

    /// Makes rows of U, and of L⁻¹·P·B beside them; the lanes in which a pivot is zero.
    #[inline(always)]
    fn eliminate<S: Simd, X: Lane<S>>(&self, simd: S, rows: &mut [Reg<S, X>]) -> Mask<S, X::Real> {
        let (Self { lower, n, nrhs, .. }, width) = (*self, self.width());
        let stride = (width + nrhs) * X::PARTS;
        let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
        let nothing = X::from_real(zero);
        let mut singular = zero.less(zero);
        for k in 0..n {
            let (pivot, below) = rows[k * stride..].split_at_mut(stride);
            let below = &mut below[..lower.min(n - 1 - k) * stride];
            let mut largest = X::load(simd, pivot, 0).abs1();
            for row in below.chunks_exact_mut(stride) {
                // A comparison with NaN is false: it is no pivot, and reaches a multiplier.
                let size = X::load(simd, row, 0).abs1();
                let larger = largest.less(size);
                if larger.any() {
                    largest = Vector::choose(larger, size, largest);
                    for c in 0..width + nrhs {
                        let (a, b) = (X::load(simd, pivot, c), X::load(simd, row, c));
                        X::choose(larger, b, a).store(pivot, c);
                        X::choose(larger, a, b).store(row, c);
                    }
                }
            }
            singular = singular.or(largest.equal(zero));
            if below.is_empty() {
                continue;
            }
            let divisor = Divisor::new(simd, X::load(simd, pivot, 0));
            for row in below.chunks_exact_mut(stride) {
                let multiplier = divisor.divide(X::load(simd, row, 0));
                // Its elements move up to where the next column is the first.
                for c in 1..width {
                    let (a, u) = (X::load(simd, row, c), X::load(simd, pivot, c));
                    a.sub_mul(multiplier, u).store(row, c - 1);
                }
                nothing.store(row, width - 1);
                for c in width..width + nrhs {
                    let (b, y) = (X::load(simd, row, c), X::load(simd, pivot, c));
                    b.sub_mul(multiplier, y).store(row, c);
                }
            }
        }
        singular
    }

    /// X = U⁻¹·Y, for Y beside the rows of U.
    #[inline(always)]
    fn substitute<S: Simd, X: Lane<S>>(&self, simd: S, rows: &[Reg<S, X>], x: &mut [Reg<S, X>]) {
        let (Self { n, nrhs, .. }, width) = (*self, self.width());
        let row = rows.chunks_exact((width + nrhs) * X::PARTS);
        for (k, row) in row.enumerate().take(n).rev() {
            let divisor = Divisor::new(simd, X::load(simd, row, 0));
            for s in 0..nrhs {
                let mut sum = X::load(simd, row, width + s);
                for c in (1..width.min(n - k)).rev() {
                    sum = sum.sub_mul(X::load(simd, row, c), X::load(simd, x, (k + c) * nrhs + s));
                }
                divisor.divide(sum).store(x, k * nrhs + s);
            }
        }
    }
}
