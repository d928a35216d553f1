//! A tridiagonal system with one right-hand side, eliminated from both ends towards the middle.
//!
//! Each step of an elimination waits for the quotient of the step before it. Steps from the two ends do not wait
//! for each other until they meet, nor do the substitutions that lead back (van der Vorst, "Large tridiagonal and
//! block tridiagonal linear systems on vector and parallel computers", Parallel Computing 5, 1987). Only two rows
//! ever have an element in the column to be eliminated, of which the larger is the pivot: it is the elimination
//! with partial pivoting of a matrix whose columns come in another order.

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::loops::sub_mul;

/// The rows up to which they lie on the stack: to allocate and free memory takes as long as to solve a system of two.
const FEW: usize = 8;

/// Solves A·x = b for A of order 2 or more; `rows` is scratch.
///
/// `false`, and no x, where A may be singular, or x is not finite, or pivots are so large or small that
/// reciprocals are not as good as quotients.
pub(crate) fn solve<T: Scalar>(
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    rows: &mut Vec<Row<T>>,
    arch: Arch,
) -> bool {
    let mut few = [Row::ZERO; FEW];
    let rows = if let Some(few) = few.get_mut(..d.len()) {
        few
    } else {
        rows.clear();
        rows.resize(d.len(), Row::ZERO);
        rows
    };
    arch.dispatch(Solve { dl, d, du, b, x, rows })
}

/// A row of the triangular factor over its pivot: x = rhs − first·x₁ − second·x₂ for the two unknowns
/// eliminated after x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<T> {
    rhs: T,
    first: T,
    second: T,
}

impl<T: Scalar> Row<T> {
    const ZERO: Self = Self { rhs: T::ZERO, first: T::ZERO, second: T::ZERO };

    #[inline(always)]
    fn unknown<S: Simd>(&self, first: T, second: T) -> T {
        let known = sub_mul::<S, T>(self.rhs, self.second, second);
        sub_mul::<S, T>(known, self.first, first)
    }
}

/// The row that an elimination has come to: its elements in the next column to be eliminated and in the one
/// behind that.
#[derive(Clone, Copy)]
struct Front<T: Scalar> {
    head: T,
    next: T,
    rhs: T,
    /// The smallest and the largest pivot, by |re| + |im|.
    least: T::Real,
    most: T::Real,
}

impl<T: Scalar> Front<T> {
    fn new(head: T, next: T, rhs: T) -> Self {
        Self { head, next, rhs, least: T::Real::ONE, most: T::Real::ONE }
    }

    /// Eliminates a column with the next row, [below, head, next] and its right-hand side.
    #[inline(always)]
    fn step<S: Simd>(&mut self, [below, head, next]: [T; 3], rhs: T) -> Row<T> {
        // Choices without branches: which row is larger is as good as random.
        let kept = self.head.abs1() >= below.abs1();
        let choose = |a: T, b: T| if kept { a } else { b };
        let (pivot, other) = (choose(self.head, below), choose(below, self.head));
        let (first, other_first) = (choose(self.next, head), choose(head, self.next));
        let (second, other_second) = (choose(T::ZERO, next), choose(next, T::ZERO));
        let (pivot_rhs, other_rhs) = (choose(self.rhs, rhs), choose(rhs, self.rhs));

        let size = pivot.abs1();
        self.least = if size < self.least { size } else { self.least };
        self.most = if size > self.most { size } else { self.most };
        let reciprocal = reciprocal(pivot);
        // What the next step waits for needs the reciprocal alone.
        self.head = sub_mul::<S, T>(other_first, other * first, reciprocal);
        let multiplier = other * reciprocal;
        self.next = sub_mul::<S, T>(other_second, multiplier, second);
        self.rhs = sub_mul::<S, T>(other_rhs, multiplier, pivot_rhs);
        Row { rhs: pivot_rhs * reciprocal, first: first * reciprocal, second: second * reciprocal }
    }

    /// Whether reciprocals of the pivots, and products with them, have lost nothing. A product that is lost is
    /// one of 2⁻⁷⁶⁷ (f64) or less, beside a pivot of 2⁻²⁵⁵ or more.
    fn sound(&self) -> bool {
        let least = T::Real::SAFE_MIN.sqrt().sqrt();
        self.least >= least && self.most <= T::Real::ONE / least
    }
}

/// The reciprocal of a number that is neither very large nor very small.
#[inline(always)]
fn reciprocal<T: Scalar>(x: T) -> T {
    if T::IS_COMPLEX {
        x.conj().scale(T::Real::ONE / (x.re() * x.re() + x.im() * x.im()))
    } else {
        T::ONE.divide(x)
    }
}

struct Solve<'a, T> {
    dl: &'a [T],
    d: &'a [T],
    du: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
    rows: &'a mut [Row<T>],
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let m = self.d.len();
        let [dl, d, du, b] = [self.dl, self.d, self.du, self.b].map(|x| &x[..m]);
        let (x, rows) = (&mut self.x[..m], &mut self.rows[..m]);
        let mut down = Front::new(d[0], du[0], b[0]);
        let mut up = Front::new(d[m - 1], dl[m - 1], b[m - 1]);
        // The unknowns that are left for the middle are `middle` and the next.
        let middle = (m - 1) / 2;
        let (above, below) = rows.split_at_mut(middle + 1);
        for (i, row) in above.iter_mut().enumerate().take(middle) {
            let k = i + 1;
            *row = down.step::<S>([dl[k], d[k], du[k]], b[k]);
            let k = m - 2 - i;
            if k > middle {
                below[k - middle] = up.step::<S>([du[k], d[k], dl[k]], b[k]);
            }
        }
        above[middle] = down.step::<S>([up.next, up.head, T::ZERO], up.rhs);
        let last = down.rhs.divide(down.head);
        let size = down.head.abs1();
        if !(down.sound() && up.sound() && size > T::Real::ZERO) {
            return false;
        }

        let second = above[middle].unknown::<S>(last, T::ZERO);
        (x[middle], x[middle + 1]) = (second, last);
        let (mut ups, mut downs) = ([second, last], [last, second]);
        for i in 1..=middle {
            let k = middle - i;
            ups = [above[k].unknown::<S>(ups[0], ups[1]), ups[0]];
            x[k] = ups[0];
            let k = middle + 1 + i;
            if k < m {
                downs = [below[k - middle - 1].unknown::<S>(downs[0], downs[1]), downs[0]];
                x[k] = downs[0];
            }
        }
        x.iter().fold(true, |finite, x| finite & x.is_finite())
    }
}
