//! exp(A) by scaling and squaring, with one small matrix in each lane.
//!
//! Every lane goes the way of the highest degree in its group, with coefficients of its own: those that it lacks are
//! zeros, whose products leave a sum of products as it is, to its last bit. A tile has Aᵀ, and then exp(Aᵀ).

mod diagonals;
mod halvings;
mod product;

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::lu::{Keep, factor, row_numbers};
use super::pack::{Shape, pack, unpack};
use super::triangular::{System, solve};
use crate::matrix::exponential::{Plan, approximants};
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::lane_real::LaneReal;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES, Mask, Reg, Vector};
use crate::{Diag, Scalar, Uplo};
use diagonals::Structure;
use product::{add_product, combine};

/// exp of a group of row-major matrices of order n.
pub(crate) struct Exponential {
    pub(crate) n: usize,
}

/// What one thread reuses.
pub(crate) struct Scratch<R> {
    /// A, X = 2⁻ˢA, X², X⁴, X⁶, and two matrices side by side.
    tile: Tile<R>,
    /// The row numbers, as reals.
    rows: Padded<R>,
}

const MATRICES: usize = 7;

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsMut<'_, T>)> for Exponential {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        let tile = Tile::new::<T>(MATRICES * self.n * self.n, lanes);
        Scratch { tile, rows: row_numbers(self.n) }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        (a, x): (Items<'_, T>, ItemsMut<'_, T>),
        count: usize,
    ) {
        group::<S, T>(simd, self.n, scratch, a.data(), x.into_data(), count);
    }
}

/// X = 2⁻ˢA and its powers.
struct Powers<'a, G> {
    x: &'a mut [G],
    x2: &'a mut [G],
    x4: &'a mut [G],
    x6: &'a mut [G],
}

/// What is decided for each matrix.
struct Plans<S: Simd, R: LaneReal> {
    /// How often each is halved.
    halvings: [i32; MAX_LANES],
    /// The coefficients of each one's approximant.
    coefficients: [Vector<S, R>; 14],
    /// The highest degree.
    degree: usize,
}

#[apart]
fn group<S: Simd, T: Scalar>(
    simd: S,
    n: usize,
    scratch: &mut Scratch<T::Real>,
    a: &[T],
    result: &mut [T],
    count: usize,
) {
    let Scratch { tile, rows } = scratch;
    let square = n * n * T::Lane::<S>::PARTS;
    let (five, right) = tile.registers::<S>().split_at_mut(5 * square);
    let right = &mut right[..2 * square];
    let mut five = five.chunks_exact_mut(square);
    let [own, x, x2, x4, x6] = std::array::from_fn(|_| five.next().unwrap_or_default());
    let mut powers = Powers { x, x2, x4, x6 };
    let shape = Shape { m: n, n, order: Layout::Columns };
    pack(simd, a, count, shape, own);

    let structure = Structure::of::<T::Lane<S>>(simd, n, own);
    let plans = plan::<S, T::Lane<S>>(simd, n, own, &structure, &mut powers);
    approximate::<S, T::Lane<S>>(simd, n, rows, &plans, &mut powers, right);

    let (mut spare, mut current) = right.split_at_mut(square);
    structure.exact_diagonals::<T::Lane<S>>(simd, n, own, plans.halvings, current);
    for step in 1..=plans.halvings.into_iter().max().unwrap_or(0) {
        let left = plans.halvings.map(|halvings| halvings - step);
        let active = flagged::<S, T::Real>(simd, left.map(|left| left >= 0));
        spare.fill(Vector::<S, T::Real>::splat(simd, T::Real::ZERO).reg());
        add_product::<S, T::Lane<S>>(simd, n, current, current, spare);
        if !active.all() {
            for at in 0..n * n {
                let [new, old] =
                    [&*spare, &*current].map(|tile| T::Lane::<S>::load(simd, tile, at));
                T::Lane::<S>::choose(active, new, old).store(spare, at);
            }
        }
        structure.exact_diagonals::<T::Lane<S>>(simd, n, own, left, spare);
        (spare, current) = (current, spare);
    }
    if structure.failed.any() {
        let nan = T::Lane::<S>::splat(simd, nan());
        for at in 0..n * n {
            let x = T::Lane::<S>::load(simd, current, at);
            T::Lane::<S>::choose(structure.failed, nan, x).store(current, at);
        }
    }
    structure.turn::<T::Lane<S>>(simd, n, current);
    unpack(simd, current, count, shape, result);
}

/// The lanes with a flag.
#[inline(always)]
fn flagged<S: Simd, R: LaneReal>(simd: S, flags: [bool; MAX_LANES]) -> Mask<S, R> {
    let ones = flags.map(|flag| if flag { R::ONE } else { R::ZERO });
    Vector::<S, R>::read(simd, &ones).equal(Vector::splat(simd, R::ONE))
}

/// What is to be done with each matrix; X and those of its powers that a matrix of the group asks for.
#[inline(always)]
fn plan<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    a: &[Reg<S, X>],
    structure: &Structure<S, X::Real>,
    powers: &mut Powers<'_, Reg<S, X>>,
) -> Plans<S, X::Real> {
    let norms = halvings::one_norms::<S, X>(simd, n, a).0;
    let mut of_each: [Plan; MAX_LANES] = norms.map(|norm| Plan::by_norm(norm, n));
    let diagonal = structure.diagonal.bits();
    for (lane, plan) in of_each.iter_mut().enumerate() {
        if diagonal >> lane & 1 == 1 {
            // exp of it has an exact diagonal, and zeros.
            *plan = Plan::default();
        }
    }
    let approximants = approximants::<X::Real>();
    let highest = of_each.iter().map(|plan| plan.approximant).max().unwrap_or(0);
    let degree = approximants[highest].degree;
    let mut of_halvings = of_each.map(|plan| plan.halvings);
    halvings::halve::<S, X>(simd, structure, of_halvings, a, powers.x);
    let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO).reg();
    let Powers { x, x2, x4, x6 } = &mut *powers;
    x2.fill(zero);
    add_product::<S, X>(simd, n, x, x, x2);
    if degree > 3 {
        x4.fill(zero);
        add_product::<S, X>(simd, n, x2, x2, x4);
    }
    if degree > 5 {
        x6.fill(zero);
        add_product::<S, X>(simd, n, x4, x2, x6);
    }
    if of_halvings.iter().any(|&halvings| halvings > 0) {
        halvings::undo::<S, X>(simd, n, structure, &mut of_halvings, a, powers);
    }
    let coefficients = std::array::from_fn(|k| {
        let numbers = of_each.map(|plan| approximants[plan.approximant].coefficients[k]);
        Vector::read(simd, &numbers.map(X::Real::from_f64))
    });
    Plans { halvings: of_halvings, coefficients, degree }
}

/// The approximant R of exp(X), in the second of two matrices: (V − U)·(R − I) = 2·U with U and V its numerator's odd
/// and even part. Beside I, errors of R − I are small where X is.
#[inline(always)]
fn approximate<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    rows: &[X::Real],
    plans: &Plans<S, X::Real>,
    powers: &mut Powers<'_, Reg<S, X>>,
    matrices: &mut [Reg<S, X>],
) {
    let Powers { x, x2, x4, x6 } = powers;
    let Plans { coefficients: b, degree, .. } = plans;
    let (left, right) = matrices.split_at_mut(n * n * X::PARTS);
    let known: &[&[Reg<S, X>]] = match degree {
        3 => &[x2],
        5 => &[x2, x4],
        _ => &[x2, x4, x6],
    };
    combine::<S, X>(simd, n, known, [b[3], b[5], b[7]], Some(b[1]), right);
    if *degree == 13 {
        combine::<S, X>(simd, n, known, [b[9], b[11], b[13]], None, left);
        add_product::<S, X>(simd, n, x6, left, right);
    }
    left.fill(Vector::<S, X::Real>::splat(simd, X::Real::ZERO).reg());
    add_product::<S, X>(simd, n, x, right, left);
    combine::<S, X>(simd, n, known, [b[2], b[4], b[6]], Some(b[0]), right);
    if *degree == 13 {
        combine::<S, X>(simd, n, known, [b[8], b[10], b[12]], None, x);
        add_product::<S, X>(simd, n, x6, x, right);
    }
    for at in 0..n * n {
        let (u, v) = (X::load(simd, left, at), X::load(simd, right, at));
        (v - u).store(left, at);
        (u + u).store(right, at);
    }
    factor::<S, X>(simd, matrices, rows, Keep::Nothing, (n, 2 * n), n);
    let (left, right) = matrices.split_at_mut(n * n * X::PARTS);
    let system = System { uplo: Uplo::Upper, diag: Diag::NonUnit, conj: false, n, nrhs: n };
    solve::<S, X>(simd, &system, left, right);
    let one = X::splat(simd, X::Scalar::ONE);
    for at in (0..n * n).step_by(n + 1) {
        (X::load(simd, right, at) + one).store(right, at);
    }
}
