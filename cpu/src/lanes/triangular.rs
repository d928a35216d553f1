//! Triangular systems A·X = B with one small matrix in each lane.

use lapax_core::{InOut, Items, ItemsInOut};
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Reg};
use crate::{Diag, Scalar, Uplo};

/// Solves a group of systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements of A are conjugated as they are read.
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a_order: Layout,
    pub(crate) b_order: Layout,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    a: Tile<R>,
    b: Tile<R>,
}

pub(crate) type Operands<'a, T> = (Items<'a, T>, ItemsInOut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        Scratch {
            a: Tile::new::<T>(self.n * self.n, lanes),
            b: Tile::new::<T>(self.n * self.nrhs, lanes),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        (a, b): Operands<'_, T>,
        count: usize,
    ) {
        let Self { n, nrhs, .. } = *self;
        let (a_tile, b_tile) = (scratch.a.registers::<S>(), scratch.b.registers::<S>());
        pack(simd, a.data(), count, Shape { m: n, n, order: self.a_order }, a_tile);
        let shape = Shape { m: n, n: nrhs, order: self.b_order };
        let InOut { src, dst } = b.into_in_out();
        pack(simd, src.unwrap_or(dst), count, shape, b_tile);
        let Self { uplo, diag, conj, .. } = *self;
        let system = System { uplo, diag, conj, n, nrhs };
        solve::<S, T::Lane<S>>(simd, &system, a_tile, b_tile);
        unpack(simd, b_tile, count, shape, dst);
    }
}

/// A tile of systems.
pub(crate) struct System {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether A is conjugated, in place.
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
}

/// Solves a tile in place of B, row after row of X.
#[inline(always)]
pub(crate) fn solve<S: Simd, X: Lane<S>>(
    simd: S,
    system: &System,
    a: &mut [Reg<S, X>],
    b: &mut [Reg<S, X>],
) {
    let n = system.n;
    if system.conj {
        for x in a.chunks_exact_mut(X::PARTS).take(n * n) {
            X::load(simd, x, 0).conj().store(x, 0);
        }
    }
    let stride = n * X::PARTS;
    for step in 0..n {
        let (i, known) = match system.uplo {
            Uplo::Lower => (step, 0..step),
            Uplo::Upper => (n - 1 - step, n - step..n),
        };
        let divisor = match system.diag {
            Diag::NonUnit => Some(Divisor::new(simd, X::load(simd, a, i * n + i))),
            Diag::Unit => None,
        };
        let row = Row { n, i, known, divisor };
        let mut columns = b[..system.nrhs * stride].chunks_exact_mut(4 * stride);
        for columns in &mut columns {
            row.solve::<4>(simd, a, columns);
        }
        for column in columns.into_remainder().chunks_exact_mut(stride) {
            row.solve::<1>(simd, a, column);
        }
    }
}

/// Row i of a system of order n, and the unknowns that are solved for.
struct Row<S: Simd, X: Lane<S>> {
    n: usize,
    i: usize,
    known: std::ops::Range<usize>,
    divisor: Option<Divisor<S, X>>,
}

impl<S: Simd, X: Lane<S>> Row<S, X> {
    /// x(i) = (b(i) − Σ a(i, k)·x(k)) / a(i, i) in N columns.
    #[inline(always)]
    fn solve<const N: usize>(&self, simd: S, a: &[Reg<S, X>], columns: &mut [Reg<S, X>]) {
        let Self { n, i, .. } = *self;
        let mut sums: [X; N] = std::array::from_fn(|c| X::load(simd, columns, c * n + i));
        for k in self.known.clone() {
            let a = X::load(simd, a, k * n + i);
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum = sum.sub_mul(a, X::load(simd, columns, c * n + k));
            }
        }
        for (c, sum) in sums.into_iter().enumerate() {
            let x = self.divisor.as_ref().map_or(sum, |divisor| divisor.divide(sum));
            x.store(columns, c * n + i);
        }
    }
}
