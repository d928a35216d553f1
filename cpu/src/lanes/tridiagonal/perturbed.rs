//! Tridiagonal systems A·X = B by elimination that perturbs pivots, one in each lane.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use super::columns::Division;
use super::{Quotients, RowOperands, substitute};
use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, MAX_LANES, Reg, Vector};

/// Solves a group of systems of m rows with nrhs right-hand sides (xLAGTF, xLAGTS).
pub(crate) struct Solve<F> {
    pub(crate) m: usize,
    pub(crate) nrhs: usize,
    /// A right-hand side, a pivot that is too small for it, and the least perturbation: the quotient
    /// by the perturbed pivot.
    pub(crate) quotient: F,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    dl: Tile<R>,
    d: Tile<R>,
    du: Tile<R>,
    b: Tile<R>,
}

impl<T: Scalar, F> Kernel<T, RowOperands<'_, T>> for Solve<F>
where
    F: Fn(T, T, T::Real) -> T + Sync,
{
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        let diagonal = || Tile::new::<T>(self.m, lanes);
        let b = Tile::new::<T>(self.m * self.nrhs, lanes);
        Tiles { dl: diagonal(), d: diagonal(), du: diagonal(), b }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (dl, d, du, b, x): RowOperands<'_, T>,
        count: usize,
    ) {
        let Self { m, nrhs, quotient } = self;
        let diagonal = Shape { m: *m, n: 1, order: Layout::Columns };
        let shape = Shape { m: *m, n: *nrhs, order: Layout::Columns };
        let mut system = System::<S, T::Lane<S>> {
            dl: scratch.dl.registers::<S>(),
            d: scratch.d.registers::<S>(),
            du: scratch.du.registers::<S>(),
            b: scratch.b.registers::<S>(),
            m: *m,
            nrhs: *nrhs,
        };
        for (operand, tile) in [(dl, &mut *system.dl), (d, system.d), (du, system.du)] {
            pack(simd, operand.data(), count, diagonal, tile);
        }
        pack(simd, b.data(), count, shape, system.b);
        let least = system.eliminate(simd);
        let upper = [&*system.dl, &*system.d, &*system.du];
        let quotients = Safe { simd, least, quotient };
        substitute::<S, T::Lane<S>>(simd, upper, system.b, (*m, *nrhs), &quotients);
        unpack(simd, system.b, count, shape, x.into_data());
    }
}

/// The tiles of a group.
struct System<'a, S: Simd, X: Lane<S>> {
    dl: &'a mut [Reg<S, X>],
    d: &'a mut [Reg<S, X>],
    du: &'a mut [Reg<S, X>],
    b: &'a mut [Reg<S, X>],
    m: usize,
    nrhs: usize,
}

impl<S: Simd, X: Lane<S>> System<'_, S, X> {
    /// Makes U: `d`, `du` and, in `dl[i + 1]`, row i's second superdiagonal; the steps are applied to
    /// B. Rows are swapped where that makes the pivot larger relative to the size of its row. Returns
    /// ε times the largest element of U, or ε.
    #[inline(always)]
    fn eliminate(&mut self, simd: S) -> Vector<S, X::Real> {
        let m = self.m;
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one, epsilon) =
            (real(X::Real::ZERO), real(X::Real::ONE), real(X::Real::EPSILON));
        let nothing = X::from_real(zero);
        // Row i − 1 as far as it is eliminated, its elements in columns i − 1 and i, and its size.
        let mut pivot = X::load(simd, self.d, 0);
        let mut beside = if m > 1 { X::load(simd, self.du, 0) } else { nothing };
        let mut size = pivot.abs1() + beside.abs1();
        let mut largest = zero;
        for i in 1..m {
            let (below, d) = (X::load(simd, self.dl, i), X::load(simd, self.d, i));
            let du = if i + 1 < m { X::load(simd, self.du, i) } else { nothing };
            let below_size = below.abs1() + d.abs1() + du.abs1();
            // A quotient by a size of zero is not a number, and below is zero then.
            let relative = |x: X, size: Vector<S, X::Real>| {
                Vector::choose(size.equal(zero), zero, x.abs1() / size)
            };
            let swapped = relative(pivot, size).less(relative(below, below_size));
            let (top, under) = (X::choose(swapped, below, pivot), X::choose(swapped, pivot, below));
            // Nothing is to be subtracted where there is nothing below.
            let divisor = X::choose(below.abs1().equal(zero), X::from_real(one), top);
            let multiplier = Divisor::new(simd, divisor).divide(under);
            let upper = (X::choose(swapped, d, beside), X::choose(swapped, du, nothing));
            let lower = (X::choose(swapped, beside, d), X::choose(swapped, nothing, du));
            top.store(self.d, i - 1);
            upper.0.store(self.du, i - 1);
            upper.1.store(self.dl, i);
            largest = top.abs1().max(upper.0.abs1()).max(upper.1.abs1()).max(largest);
            pivot = lower.0.sub_mul(multiplier, upper.0);
            beside = lower.1.sub_mul(multiplier, upper.1);
            // The row that moved down keeps its size.
            size = Vector::choose(swapped, size, below_size);
            for b in self.b.chunks_exact_mut(m * X::PARTS).take(self.nrhs) {
                let (above, here) = (X::load(simd, b, i - 1), X::load(simd, b, i));
                let x = X::choose(swapped, here, above);
                x.store(b, i - 1);
                X::choose(swapped, above, here).sub_mul(multiplier, x).store(b, i);
            }
        }
        pivot.store(self.d, m - 1);
        let least = pivot.abs1().max(largest) * epsilon;
        Vector::choose(least.equal(zero), epsilon, least)
    }
}

/// The division of right-hand sides of one system: the least perturbation, and what [`Solve`] has.
pub(crate) struct Perturbed<R, F> {
    pub(crate) least: R,
    pub(crate) quotient: F,
}

impl<T: Scalar, F> Division<T> for Perturbed<T::Real, F>
where
    F: Fn(T, T, T::Real) -> T + Sync,
{
    #[inline(always)]
    fn quotients<S: Simd>(&self, simd: S) -> impl Quotients<S, T::Lane<S>> {
        Safe { simd, least: Vector::splat(simd, self.least), quotient: &self.quotient }
    }
}

/// Quotients by pivots that are perturbed where the quotient would overflow.
struct Safe<'a, S: Simd, R: LaneReal, F> {
    simd: S,
    least: Vector<S, R>,
    quotient: &'a F,
}

impl<S: Simd, X: Lane<S>, F> Quotients<S, X> for Safe<'_, S, X::Real, F>
where
    F: Fn(X::Scalar, X::Scalar, X::Real) -> X::Scalar,
{
    type Pivot = (X, Divisor<S, X>);

    #[inline(always)]
    fn pivot(&self, pivot: X) -> (X, Divisor<S, X>) {
        (pivot, Divisor::new(self.simd, pivot))
    }

    #[inline(always)]
    fn quotient(&self, x: X, (pivot, divisor): &(X, Divisor<S, X>)) -> X {
        let Self { simd, least, quotient } = *self;
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        // With room for the rounding of |re| + |im|.
        let small = splat(X::Real::SAFE_MIN + X::Real::SAFE_MIN);
        let large = splat(X::Real::ONE) / small;
        let two = splat(X::Real::from_f64(2.0));
        let size = pivot.abs1();
        let fits = x.abs1().less_or_equal(size * large);
        let safe = two.less_or_equal(size).or(small.less_or_equal(size).and(fits));
        let y = divisor.divide(x);
        if safe.all() {
            y
        } else {
            X::choose(safe, y, one_by_one(simd, (x, *pivot, least), quotient))
        }
    }
}

/// The quotients of all lanes, the slow way.
#[inline(never)]
fn one_by_one<S: Simd, X: Lane<S>>(
    simd: S,
    (x, pivot, least): (X, X, Vector<S, X::Real>),
    quotient: &impl Fn(X::Scalar, X::Scalar, X::Real) -> X::Scalar,
) -> X {
    let (mut a, mut b) = ([X::Scalar::ZERO; MAX_LANES], [X::Scalar::ZERO; MAX_LANES]);
    x.write(&mut a);
    pivot.write(&mut b);
    let lanes = X::Real::lanes::<S>();
    for ((a, b), least) in a.iter_mut().zip(b).zip(crate::simd::lane::numbers(least)).take(lanes) {
        *a = quotient(*a, b, least);
    }
    X::read(simd, &a)
}
