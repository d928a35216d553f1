//! Triangular systems A·X = B of one small matrix, right-hand sides in the lanes of registers.
//!
//! Unknowns are found [`STEPS`] at a time; each later row then takes them from its right-hand sides at
//! once.

use lapax_core::{InOut, Items, ItemsInOut};
use pulp::Simd;

use super::Sides;
use crate::lanes::{Kernel, Lane, LaneReal, MAX_LANES, Order, Reg, Tile};
use crate::simd::{Ahead, Divisor};
use crate::{Diag, Scalar, Uplo};

/// The unknowns that are found, and taken from the other rows, at once.
const STEPS: usize = 8;

/// Solves systems of order n with nrhs right-hand sides.
pub(crate) struct Solve {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    /// Whether the elements of A are conjugated as they are read.
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a_order: Order,
    pub(crate) b_order: Order,
}

/// What one thread reuses.
pub(crate) struct Scratch<T: Scalar> {
    /// The right-hand sides: registers of a row, row after row.
    pub(super) x: Tile<T::Real>,
    pub(super) divisors: Vec<Divisor<T>>,
    /// The rows in the order in which they are written.
    in_order: Vec<usize>,
}

impl<T: Scalar> Scratch<T> {
    /// For systems of order n with nrhs right-hand sides.
    pub(crate) fn new(n: usize, nrhs: usize, lanes: usize) -> Self {
        let high = n.next_multiple_of(lanes);
        Self {
            x: Tile::new::<T>(high * nrhs.div_ceil(lanes), lanes),
            divisors: Vec::with_capacity(n),
            in_order: (0..high).collect(),
        }
    }
}

impl<T: Scalar> Kernel<T, (Items<'_, T>, ItemsInOut<'_, T>)> for Solve {
    type Scratch = Scratch<T>;

    fn scratch(&self, lanes: usize) -> Scratch<T> {
        Scratch::new(self.n, self.nrhs, lanes)
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T>,
        (a, b): (Items<'_, T>, ItemsInOut<'_, T>),
        _: usize,
    ) {
        let Self { uplo, diag, conj, n, nrhs, a_order, b_order } = *self;
        let sides = Sides::new(n, nrhs, T::Real::lanes::<S>());
        let (row, column) = if a_order == Order::Row { (n, 1) } else { (1, n) };
        let InOut { src, dst } = b.into_in_out();
        let x = scratch.x.registers::<S>();
        for (i, a) in a.data().chunks_exact(n * n).enumerate() {
            let one = i * n * nrhs..(i + 1) * n * nrhs;
            sides.read::<S, T>(simd, &src.unwrap_or(dst)[one.clone()], b_order, x);
            let triangle = Triangle { uplo, diag, conj, n, a, row, column };
            let pieces = pieces(sides.wide);
            let b = &src.unwrap_or(dst)[one.clone()];
            let mut ahead = [
                Ahead::behind(a, n * n, pieces),
                Ahead::behind(b, n * nrhs, pieces),
                Ahead::of(&dst[one.clone()], pieces),
            ];
            triangle.solve::<S>(simd, x, sides.wide, &mut scratch.divisors, &mut ahead);
            sides.write::<S, T>(simd, x, b_order, &scratch.in_order, &mut dst[one]);
        }
    }
}

/// How often a solve asks for memory ahead.
pub(crate) fn pieces(wide: usize) -> usize {
    wide.div_ceil(2)
}

/// A triangular matrix of order n: element (i, j) is `a[i * row + j * column]`.
#[derive(Clone, Copy)]
pub(crate) struct Triangle<'a, T> {
    pub(crate) uplo: Uplo,
    pub(crate) diag: Diag,
    pub(crate) conj: bool,
    pub(crate) n: usize,
    pub(crate) a: &'a [T],
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl<T: Scalar> Triangle<'_, T> {
    /// Unknown k in the order in which they are found.
    #[inline(always)]
    fn unknown(&self, k: usize) -> usize {
        if self.uplo == Uplo::Upper { self.n - 1 - k } else { k }
    }

    /// X ← A⁻¹·X, where row i of X is the registers from `wide`·i on.
    ///
    /// It asks for a piece of `ahead` as often as [`pieces`] says.
    #[inline(always)]
    pub(crate) fn solve<S: Simd>(
        &self,
        simd: S,
        x: &mut [Reg<S, T::Lane<S>>],
        wide: usize,
        divisors: &mut Vec<Divisor<T>>,
        ahead: &mut [Ahead<T>],
    ) {
        divisors.clear();
        for k in 0..self.n {
            let at = self.unknown(k) * (self.row + self.column);
            let number = if self.conj { self.a[at].conj() } else { self.a[at] };
            divisors.push(match self.diag {
                Diag::Unit => Divisor::One,
                Diag::NonUnit => Divisor::new(number),
            });
        }
        let mut block = 0;
        while block + 1 < wide {
            ahead.iter_mut().for_each(Ahead::next);
            self.solve_blocks::<S, 2>(simd, x, (wide, block), divisors);
            block += 2;
        }
        if block < wide {
            ahead.iter_mut().for_each(Ahead::next);
            self.solve_blocks::<S, 1>(simd, x, (wide, block), divisors);
        }
    }

    #[inline(always)]
    fn solve_blocks<S: Simd, const BLOCKS: usize>(
        &self,
        simd: S,
        x: &mut [Reg<S, T::Lane<S>>],
        (wide, block): (usize, usize),
        divisors: &[Divisor<T>],
    ) {
        let mut known = 0;
        while known + STEPS <= self.n {
            self.step::<S, STEPS, BLOCKS>(simd, x, (wide, block), known, divisors);
            known += STEPS;
        }
        while known < self.n {
            self.step::<S, 1, BLOCKS>(simd, x, (wide, block), known, divisors);
            known += 1;
        }
    }

    /// Finds some unknowns and takes them from the rows of those to come.
    #[inline(always)]
    fn step<S: Simd, const FOUND: usize, const BLOCKS: usize>(
        &self,
        simd: S,
        x: &mut [Reg<S, T::Lane<S>>],
        (wide, block): (usize, usize),
        known: usize,
        divisors: &[Divisor<T>],
    ) {
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let mut found = [[zero; FOUND]; BLOCKS];
        for k in 0..FOUND {
            let i = self.unknown(known + k);
            for (b, found) in found.iter_mut().enumerate() {
                let at = i * wide + block + b;
                let sum = T::Lane::<S>::load(simd, x, at);
                let sum = self.take(simd, sum, i, known, &found[..k]);
                let sum = divide::<S, T>(simd, sum, divisors[known + k]);
                sum.store(x, at);
                found[k] = sum;
            }
        }
        for k in known + FOUND..self.n {
            let i = self.unknown(k);
            for (b, found) in found.iter().enumerate() {
                let at = i * wide + block + b;
                let sum = T::Lane::<S>::load(simd, x, at);
                self.take(simd, sum, i, known, found).store(x, at);
            }
        }
    }

    /// x − Σ a(i, k)·found(k), over the unknowns from `known` on.
    #[inline(always)]
    fn take<S: Simd>(
        &self,
        simd: S,
        mut x: T::Lane<S>,
        i: usize,
        known: usize,
        found: &[T::Lane<S>],
    ) -> T::Lane<S> {
        let row = &self.a[i * self.row..];
        for (k, found) in found.iter().enumerate() {
            let a = row[self.unknown(known + k) * self.column];
            let a = if self.conj { a.conj() } else { a };
            x = x.sub_mul(T::Lane::<S>::splat(simd, a), *found);
        }
        x
    }
}

/// x divided by one number.
#[inline(always)]
fn divide<S: Simd, T: Scalar>(simd: S, x: T::Lane<S>, divisor: Divisor<T>) -> T::Lane<S> {
    match divisor {
        Divisor::One => x,
        Divisor::Reciprocal(reciprocal) => x * T::Lane::<S>::splat(simd, reciprocal),
        Divisor::Number(number) => {
            let mut numbers = [T::ZERO; MAX_LANES];
            x.write(&mut numbers);
            numbers.iter_mut().for_each(|x| *x = x.divide(number));
            T::Lane::<S>::read(simd, &numbers)
        }
    }
}
