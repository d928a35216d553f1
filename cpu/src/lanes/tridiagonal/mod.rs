//! Tridiagonal systems A·X = B by elimination with partial pivoting, one in each lane.

pub(crate) mod columns;
pub(crate) mod perturbed;

use lapax_core::{Batched as _, Items, ItemsInOut, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::{integer, numbers};
use crate::simd::lane_real::LaneReal as _;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Divisor, Lane, Reg, Vector};
use columns::Row;

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

pub(crate) type Operands<'a, T> =
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
        let diagonal = Shape { m, n: 1, order: Layout::Columns };
        let shape = Shape { m, n: nrhs, order: Layout::Columns };
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

/// The rows of which two groups of real systems are solved at once. On one core with AVX-512, of one group and of two:
/// 10,000 systems of 32 rows in f64 1260 and 1180 us, in f32 720 and 670, 200 of 64 48 and 42, 30 and 27. With rows
/// kept in memory, where a step could not begin early, complex ones of 32 took a quarter longer by two groups, real
/// ones of 3 to 8 a tenth; the two were left so.
const PAIRED_ROWS: std::ops::RangeInclusive<usize> = 16..=512;

pub(crate) type RowOperands<'a, T> =
    (Items<'a, T>, Items<'a, T>, Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar> Kernel<T, RowOperands<'_, T>> for SolveRows {
    type Scratch = (Tiles<T::Real>, Option<Tiles<T::Real>>);

    fn groups(&self) -> usize {
        if !T::IS_COMPLEX && self.nrhs == 1 && PAIRED_ROWS.contains(&self.m) { 2 } else { 1 }
    }

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        let tiles = || tiles::<T>(self.m, self.nrhs, lanes);
        let paired = Kernel::<T, RowOperands<'_, T>>::groups(self) > 1;
        (tiles(), paired.then(tiles))
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        (first, second): &mut Self::Scratch,
        operands: RowOperands<'_, T>,
        count: usize,
    ) {
        let size = (self.m, self.nrhs);
        let lanes = T::Real::lanes::<S>();
        if let Some(second) = second
            && count > lanes
        {
            let (group, rest) = operands.split_at(lanes);
            let mut first = Group::<S, T>::new(first, size, group, lanes);
            let mut second = Group::<S, T>::new(second, size, rest, count - lanes);
            first.read(simd);
            second.read(simd);
            let solved = first.system.solve_with(&mut second.system, simd);
            first.finish(simd, solved.0);
            second.finish(simd, solved.1);
        } else {
            let mut group = Group::<S, T>::new(first, size, operands, count);
            group.read(simd);
            let solved = self.nrhs == 1 && group.system.solve_one(simd);
            group.finish(simd, solved);
        }
    }
}

/// A group of systems whose right-hand sides lie by rows.
struct Group<'a, S: Simd, T: Scalar> {
    system: System<'a, S, T::Lane<S>>,
    operands: RowOperands<'a, T>,
    count: usize,
}

impl<'a, S: Simd, T: Scalar> Group<'a, S, T> {
    #[inline(always)]
    fn new(
        tiles: &'a mut Tiles<T::Real>,
        size: (usize, usize),
        operands: RowOperands<'a, T>,
        count: usize,
    ) -> Self {
        Self { system: System::new(tiles, size), operands, count }
    }

    #[inline(always)]
    fn read(&mut self, simd: S) {
        let Self { system, operands: (dl, d, du, b, _), count } = self;
        let diagonal = Shape { m: system.m, n: 1, order: Layout::Columns };
        let shape = Shape { m: system.m, n: system.nrhs, order: Layout::Rows };
        pack(simd, dl.data(), *count, diagonal, system.dl);
        pack(simd, d.data(), *count, diagonal, system.d);
        pack(simd, du.data(), *count, diagonal, system.du);
        pack(simd, b.data(), *count, shape, system.b);
    }

    /// Writes the solutions; solves for them first where that was not done, or could not be for all.
    #[inline(always)]
    fn finish(mut self, simd: S, solved: bool) {
        if !solved {
            if self.system.nrhs == 1 {
                self.read(simd);
            }
            solve_rows::<S, T>(simd, &mut self.system);
        }
        let Self { system, operands: (.., x), count } = self;
        let shape = Shape { m: system.m, n: system.nrhs, order: Layout::Rows };
        unpack(simd, system.b, count, shape, x.into_data());
    }
}

/// The solutions of a group, NaN those of singular systems.
#[apart]
fn solve_rows<S: Simd, T: Scalar>(simd: S, system: &mut System<'_, S, T::Lane<S>>) {
    let zero = system.eliminate(simd);
    let regular = zero.equal(Vector::splat(simd, T::Real::ZERO));
    system.substitute(simd);
    let nan = T::Lane::<S>::splat(simd, nan());
    for i in 0..system.m * system.nrhs {
        let x = Lane::<S>::load(simd, system.b, i);
        T::Lane::<S>::choose(regular, x, nan).store(system.b, i);
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

    /// X = U⁻¹·B in place.
    #[inline(always)]
    fn substitute(&mut self, simd: S) {
        let (upper, size) = ([&*self.dl, &*self.d, &*self.du], (self.m, self.nrhs));
        substitute::<S, X>(simd, upper, self.b, size, &Exact(simd));
    }
}

/// How what is left of a right-hand side is divided by a pivot.
pub(crate) trait Quotients<S: Simd, X: Lane<S>> {
    /// What quotients by one pivot share.
    type Pivot;

    fn pivot(&self, pivot: X) -> Self::Pivot;

    fn quotient(&self, x: X, pivot: &Self::Pivot) -> X;
}

/// Quotients as they are.
struct Exact<S>(S);

impl<S: Simd, X: Lane<S>> Quotients<S, X> for Exact<S> {
    type Pivot = Divisor<S, X>;

    #[inline(always)]
    fn pivot(&self, pivot: X) -> Divisor<S, X> {
        Divisor::new(self.0, pivot)
    }

    #[inline(always)]
    fn quotient(&self, x: X, pivot: &Divisor<S, X>) -> X {
        pivot.divide(x)
    }
}

/// X = U⁻¹·B in place of m × nrhs, from the last row to the first, for U's diagonal `d`, `du` above it and, in
/// `dl[i + 1]`, row i's element above that.
#[inline(always)]
pub(super) fn substitute<S: Simd, X: Lane<S>>(
    simd: S,
    [dl, d, du]: [&[Reg<S, X>]; 3],
    b: &mut [Reg<S, X>],
    (m, nrhs): (usize, usize),
    quotients: &impl Quotients<S, X>,
) {
    for i in (0..m).rev() {
        let pivot = quotients.pivot(X::load(simd, d, i));
        for b in b.chunks_exact_mut(m * X::PARTS).take(nrhs) {
            let mut x = X::load(simd, b, i);
            if i + 1 < m {
                x = x.sub_mul(X::load(simd, du, i), X::load(simd, b, i + 1));
            }
            if i + 2 < m {
                x = x.sub_mul(X::load(simd, dl, i + 1), X::load(simd, b, i + 2));
            }
            quotients.quotient(x, &pivot).store(b, i);
        }
    }
}

impl<S: Simd, X: Lane<S>> System<'_, S, X> {
    /// Solves for one right-hand side, and says whether it has: where a pivot is NaN, or too small or too large
    /// for its reciprocal, it has spoilt all but `d`.
    ///
    /// The arithmetic is that of [`System::eliminate`] and [`System::substitute`], so that a system's
    /// solution does not depend on its neighbours'; but the pivots are judged after the last one.
    #[inline(always)]
    fn solve_one(&mut self, simd: S) -> bool {
        let mut row = self.first_row(simd);
        for i in 1..self.m {
            row = self.next_row(simd, i, row);
        }
        let (solved, mut x) = self.last_row(simd, row);
        for i in (0..self.m - 1).rev() {
            x = self.unknown(simd, i, x);
        }
        solved
    }

    /// [`System::solve_one`] of this system and another one of its size, step by step in turns: a step waits for a
    /// quotient of the one before.
    #[inline(always)]
    fn solve_with(&mut self, other: &mut Self, simd: S) -> (bool, bool) {
        let m = self.m;
        let (mut row, mut other_row) = (self.first_row(simd), other.first_row(simd));
        for i in 1..m {
            row = self.next_row(simd, i, row);
            other_row = other.next_row(simd, i, other_row);
        }
        let ((solved, mut x), (other_solved, mut other_x)) =
            (self.last_row(simd, row), other.last_row(simd, other_row));
        for i in (0..m - 1).rev() {
            x = self.unknown(simd, i, x);
            other_x = other.unknown(simd, i, other_x);
        }
        (solved, other_solved)
    }

    #[inline(always)]
    fn first_row(&mut self, simd: S) -> Row<S, X> {
        let (low, high) = Divisor::<S, X>::bounds(simd);
        X::splat(simd, X::Scalar::ZERO).store(self.du, self.m - 1);
        let (pivot, beside) = (X::load(simd, self.d, 0), X::load(simd, self.du, 0));
        Row { pivot, beside, rhs: X::load(simd, self.b, 0), least: high, largest: low }
    }

    /// Eliminates row i, given the row above.
    #[inline(always)]
    fn next_row(&mut self, simd: S, i: usize, row: Row<S, X>) -> Row<S, X> {
        let Row { pivot, beside, rhs, least, largest } = row;
        let nothing = X::splat(simd, X::Scalar::ZERO);
        let (below, middle) = (X::load(simd, self.dl, i), X::load(simd, self.d, i));
        let (right, here) = (X::load(simd, self.du, i), X::load(simd, self.b, i));
        let kept = below.abs1().less_or_equal(pivot.abs1());
        let divisor = X::choose(kept, pivot, below);
        let size = divisor.abs1();
        let reciprocal = divisor.reciprocal();
        let multiplier = X::choose(kept, below, pivot) * reciprocal;
        let upper = (X::choose(kept, beside, middle), X::choose(kept, nothing, right));
        let above = X::choose(kept, rhs, here);
        reciprocal.store(self.reciprocals, i - 1);
        upper.0.store(self.du, i - 1);
        upper.1.store(self.dl, i);
        above.store(self.b, i - 1);
        Row {
            pivot: X::choose(kept, middle, beside).sub_mul(multiplier, upper.0),
            beside: X::choose(kept, right, nothing).sub_mul(multiplier, upper.1),
            rhs: X::choose(kept, here, rhs).sub_mul(multiplier, above),
            least: least.smaller(size),
            largest: largest.larger(size),
        }
    }

    /// Whether all pivots were safe, and the last unknown, with zero where one behind it would be.
    #[inline(always)]
    fn last_row(&mut self, simd: S, row: Row<S, X>) -> (bool, [X; 2]) {
        let (low, high) = Divisor::<S, X>::bounds(simd);
        // A NaN among the pivots reaches the last one; a comparison with it is false.
        let size = row.pivot.abs1();
        let safe = low.less_or_equal(size).and(size.less_or_equal(high));
        let safe = safe.and(low.less_or_equal(row.least)).and(row.largest.less_or_equal(high));
        let x = row.rhs * row.pivot.reciprocal();
        x.store(self.b, self.m - 1);
        (safe.all(), [x, X::splat(simd, X::Scalar::ZERO)])
    }

    /// Unknown i, given the two after it, with the next one of these.
    #[inline(always)]
    fn unknown(&mut self, simd: S, i: usize, [next, second]: [X; 2]) -> [X; 2] {
        let mut sum = X::load(simd, self.b, i).sub_mul(X::load(simd, self.du, i), next);
        // Not 0·0 behind the last one, which could change the sign of a zero.
        if i + 2 < self.m {
            sum = sum.sub_mul(X::load(simd, self.dl, i + 1), second);
        }
        let x = sum * X::load(simd, self.reciprocals, i);
        x.store(self.b, i);
        [x, next]
    }
}
