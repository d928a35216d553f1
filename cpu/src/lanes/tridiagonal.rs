//! Tridiagonal systems A·X = B by elimination with partial pivoting, one in each lane.

use lapax_core::{Items, ItemsInOut, ItemsMut, Scalar as _};
use pulp::Simd;

use super::tile::{pack, unpack};
use super::{Divisor, Kernel, Lane, Order, Reg, Shape, Tile, Vector, integer, numbers};
use crate::Scalar;
use crate::scalar::nan;

/// Solves a group of systems of m rows with nrhs right-hand sides (xGTSV).
pub(crate) struct Solve {
    pub(crate) m: usize,
    pub(crate) nrhs: usize,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    dl: Tile<R>,
    d: Tile<R>,
    du: Tile<R>,
    b: Tile<R>,
    /// The reciprocals of U's diagonal.
    reciprocals: Tile<R>,
}

type Operands<'a, T> =
    (ItemsInOut<'a, T>, ItemsInOut<'a, T>, ItemsInOut<'a, T>, ItemsInOut<'a, T>, ItemsMut<'a, i32>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Solve {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        tiles::<T>(self.m, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (dl, d, du, b, info): Operands<'_, T>,
        count: usize,
    ) {
        let Self { m, nrhs } = *self;
        let diagonal = Shape { m, n: 1, order: Order::Column };
        let shape = Shape { m, n: nrhs, order: Order::Column };
        let [dl, d, du, b] = [dl, d, du, b].map(ItemsInOut::into_in_out);
        let mut system = System::<S, T::Lane<S>>::new(scratch, (m, nrhs));
        for (operand, tile) in [(&dl, &mut *system.dl), (&d, system.d), (&du, system.du)] {
            pack(simd, operand.src.unwrap_or(operand.dst), count, diagonal, tile);
        }
        let rhs = b.src.unwrap_or(b.dst);
        if nrhs > 0 {
            pack(simd, rhs, count, shape, system.b);
        }
        let zero = system.eliminate(simd);
        system.substitute(simd);
        for (operand, tile) in [(dl, &*system.dl), (d, &*system.d), (du, &*system.du)] {
            unpack(simd, tile, count, diagonal, operand.dst);
        }
        let zero = numbers(zero);
        let info = info.into_data();
        for (info, zero) in info.iter_mut().zip(zero) {
            *info = integer(zero);
        }
        if nrhs == 0 {
            return;
        }
        // A singular system's right-hand sides stay as they are.
        let singular = |b: usize| info[b] != 0;
        let kept: Vec<(usize, Vec<T>)> = (0..count)
            .filter(|&b| singular(b))
            .map(|b| (b, rhs[b * m * nrhs..(b + 1) * m * nrhs].to_vec()))
            .collect();
        unpack(simd, system.b, count, shape, b.dst);
        for (item, rhs) in kept {
            b.dst[item * m * nrhs..(item + 1) * m * nrhs].copy_from_slice(&rhs);
        }
    }
}

/// Solves a group of systems whose right-hand sides lie by rows; the solutions of a singular one are
/// NaN.
pub(crate) struct SolveRows {
    pub(crate) m: usize,
    pub(crate) nrhs: usize,
}

type RowOperands<'a, T> = (Items<'a, T>, Items<'a, T>, Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, RowOperands<'_, T>> for SolveRows {
    type Scratch = Tiles<T::Real>;

    fn scratch(&self, lanes: usize) -> Tiles<T::Real> {
        tiles::<T>(self.m, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T::Real>,
        (dl, d, du, b, x): RowOperands<'_, T>,
        count: usize,
    ) {
        let Self { m, nrhs } = *self;
        let diagonal = Shape { m, n: 1, order: Order::Column };
        let shape = Shape { m, n: nrhs, order: Order::Row };
        let mut system = System::<S, T::Lane<S>>::new(scratch, (m, nrhs));
        for (operand, tile) in [(&dl, &mut *system.dl), (&d, system.d), (&du, system.du)] {
            pack(simd, operand.data(), count, diagonal, tile);
        }
        pack(simd, b.data(), count, shape, system.b);
        if nrhs == 1 {
            if system.solve_one(simd) {
                return unpack(simd, system.b, count, shape, x.into_data());
            }
            for (operand, tile) in [(&dl, &mut *system.dl), (&du, system.du), (&b, system.b)] {
                pack(simd, operand.data(), count, diagonal, tile);
            }
        }
        let zero = system.eliminate(simd);
        let regular = zero.equal(Vector::splat(simd, T::Real::ZERO));
        system.substitute(simd);
        let nan = T::Lane::<S>::splat(simd, nan());
        for i in 0..m * nrhs {
            let x = Lane::<S>::load(simd, system.b, i);
            T::Lane::<S>::choose(regular, x, nan).store(system.b, i);
        }
        unpack(simd, system.b, count, shape, x.into_data());
    }
}

fn tiles<T: Scalar>(m: usize, nrhs: usize, lanes: usize) -> Tiles<T::Real> {
    let diagonal = || Tile::new::<T>(m, lanes);
    let b = Tile::new::<T>(m * nrhs, lanes);
    Tiles { dl: diagonal(), d: diagonal(), du: diagonal(), b, reciprocals: diagonal() }
}

/// The tiles of a group.
struct System<'a, S: Simd, X: Lane<S>> {
    dl: &'a mut [Reg<S, X>],
    d: &'a mut [Reg<S, X>],
    du: &'a mut [Reg<S, X>],
    b: &'a mut [Reg<S, X>],
    reciprocals: &'a mut [Reg<S, X>],
    m: usize,
    nrhs: usize,
}

impl<'a, S: Simd, X: Lane<S>> System<'a, S, X> {
    #[inline(always)]
    fn new(tiles: &'a mut Tiles<X::Real>, (m, nrhs): (usize, usize)) -> Self {
        Self {
            dl: tiles.dl.registers::<S>(),
            d: tiles.d.registers::<S>(),
            du: tiles.du.registers::<S>(),
            b: tiles.b.registers::<S>(),
            reciprocals: tiles.reciprocals.registers::<S>(),
            m,
            nrhs,
        }
    }

    /// Solves for one right-hand side where no pivot is too small or too large for its reciprocal, and
    /// none is NaN; else returns `false`, and has spoilt all but `d`.
    ///
    /// The arithmetic is that of [`System::eliminate`] and [`System::substitute`], so that a system's
    /// solution does not depend on its neighbours'; but the pivots are judged after the last one.
    #[inline(always)]
    fn solve_one(&mut self, simd: S) -> bool {
        let (m, size) = (self.m, self.m * X::PARTS);
        let (dl, d, du) = (&mut self.dl[..size], &self.d[..size], &mut self.du[..size]);
        let (b, reciprocals) = (&mut self.b[..size], &mut self.reciprocals[..size]);
        let nothing = X::splat(simd, X::Scalar::ZERO);
        nothing.store(du, m - 1);
        // Row i − 1 as far as it is eliminated, and its right-hand side.
        let (mut pivot, mut beside) = (X::load(simd, d, 0), X::load(simd, du, 0));
        let mut rhs = X::load(simd, b, 0);
        let (low, high) = Divisor::<S, X>::bounds(simd);
        let (mut least, mut largest) = (high, low);
        for i in 1..m {
            let (below, middle) = (X::load(simd, dl, i), X::load(simd, d, i));
            let (right, here) = (X::load(simd, du, i), X::load(simd, b, i));
            let kept = below.abs1().less_or_equal(pivot.abs1());
            let divisor = X::choose(kept, pivot, below);
            let size = divisor.abs1();
            (least, largest) = (least.smaller(size), largest.larger(size));
            let reciprocal = divisor.reciprocal();
            let multiplier = X::choose(kept, below, pivot) * reciprocal;
            let upper = (X::choose(kept, beside, middle), X::choose(kept, nothing, right));
            let above = X::choose(kept, rhs, here);
            reciprocal.store(reciprocals, i - 1);
            upper.0.store(du, i - 1);
            upper.1.store(dl, i);
            above.store(b, i - 1);
            pivot = X::choose(kept, middle, beside).sub_mul(multiplier, upper.0);
            beside = X::choose(kept, right, nothing).sub_mul(multiplier, upper.1);
            rhs = X::choose(kept, here, rhs).sub_mul(multiplier, above);
        }
        // A NaN among the pivots reaches the last one; a comparison with it is false.
        let size = pivot.abs1();
        let safe = low.less_or_equal(size).and(size.less_or_equal(high));
        if !safe.and(low.less_or_equal(least)).and(largest.less_or_equal(high)).all() {
            return false;
        }
        let mut x = rhs * pivot.reciprocal();
        let mut next = nothing;
        x.store(b, m - 1);
        for i in (0..m - 1).rev() {
            let sum = X::load(simd, b, i).sub_mul(X::load(simd, du, i), x);
            let sum = sum.sub_mul(X::load(simd, dl, i + 1), next);
            (next, x) = (x, sum * X::load(simd, reciprocals, i));
            x.store(b, i);
        }
        true
    }

    /// Makes U: `d`, `du` and, in `dl[i + 1]`, row i's second superdiagonal; the steps are applied to
    /// B. Returns 0 or the first i > 0 for which U(i, i) is zero.
    #[inline(always)]
    fn eliminate(&mut self, simd: S) -> Vector<S, X::Real> {
        let m = self.m;
        let real = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (real(X::Real::ZERO), real(X::Real::ONE));
        let nothing = X::from_real(zero);
        let (mut info, mut order) = (zero, one);
        // Row i − 1 as far as it is eliminated: its elements in columns i − 1 and i.
        let mut pivot = X::load(simd, self.d, 0);
        let mut beside = X::load(simd, self.du, 0);
        for i in 1..m {
            let (below, d) = (X::load(simd, self.dl, i), X::load(simd, self.d, i));
            let du = if i + 1 < m { X::load(simd, self.du, i) } else { nothing };
            // A NaN is not kept as the pivot: it must reach the multipliers.
            let kept = below.abs1().less_or_equal(pivot.abs1());
            let divisor = X::choose(kept, pivot, below);
            let singular = divisor.abs1().equal(zero);
            info = Vector::choose(singular.and(info.equal(zero)), order, info);
            order = order + one;
            let multiplier = Divisor::new(simd, divisor).divide(X::choose(kept, below, pivot));
            let upper = (X::choose(kept, beside, d), X::choose(kept, nothing, du));
            let lower = (X::choose(kept, d, beside), X::choose(kept, du, nothing));
            divisor.store(self.d, i - 1);
            upper.0.store(self.du, i - 1);
            upper.1.store(self.dl, i);
            pivot = lower.0.sub_mul(multiplier, upper.0);
            beside = lower.1.sub_mul(multiplier, upper.1);
            for b in self.b.chunks_exact_mut(m * X::PARTS).take(self.nrhs) {
                let (above, here) = (X::load(simd, b, i - 1), X::load(simd, b, i));
                let x = X::choose(kept, above, here);
                x.store(b, i - 1);
                X::choose(kept, here, above).sub_mul(multiplier, x).store(b, i);
            }
            if i + 1 < m {
                beside.store(self.du, i);
            }
        }
        pivot.store(self.d, m - 1);
        let singular = pivot.abs1().equal(zero);
        Vector::choose(singular.and(info.equal(zero)), order, info)
    }

    /// X = U⁻¹·B in place, from the last row to the first.
    #[inline(always)]
    fn substitute(&mut self, simd: S) {
        let m = self.m;
        for i in (0..m).rev() {
            let divisor = Divisor::new(simd, X::load(simd, self.d, i));
            for b in self.b.chunks_exact_mut(m * X::PARTS).take(self.nrhs) {
                let mut x = X::load(simd, b, i);
                if i + 1 < m {
                    x = x.sub_mul(X::load(simd, self.du, i), X::load(simd, b, i + 1));
                }
                if i + 2 < m {
                    x = x.sub_mul(X::load(simd, self.dl, i + 1), X::load(simd, b, i + 2));
                }
                divisor.divide(x).store(b, i);
            }
        }
    }
}
