//! Where the QR iteration of each lane stands: its unreduced block of a Hessenberg matrix.

use pulp::Simd;

use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Sweeps per row after which a lane counts as not converged; about three are usual.
const SWEEPS: usize = 30;
/// The fewest rows that are reckoned with.
const FEWEST: usize = 10;
/// After so many sweeps without progress one takes exceptional shifts, from the top of the block and
/// from its bottom by turns.
const PATIENCE: [usize; 2] = [10, 20];

/// How many sweeps a matrix of order n has.
pub(crate) fn budget(n: usize) -> usize {
    SWEEPS * n.max(FEWEST)
}

/// The block of each lane.
#[derive(Clone, Copy)]
pub(crate) struct Block<S: Simd, R: LaneReal> {
    pub(crate) first: Vector<S, R>,
    /// Its last row; below zero where all is done.
    pub(crate) last: Vector<S, R>,
    /// Sweeps since it lost a row.
    pub(crate) stalled: Vector<S, R>,
}

impl<S: Simd, R: LaneReal> Block<S, R> {
    /// All of a matrix of order n, at first.
    #[inline(always)]
    pub(crate) fn new(simd: S, n: usize) -> Self {
        let zero = Vector::splat(simd, R::ZERO);
        Self { first: zero, last: Vector::splat(simd, row(n - 1)), stalled: zero }
    }

    /// The lanes with work left.
    #[inline(always)]
    pub(crate) fn active(&self, simd: S) -> Mask<S, R> {
        Vector::splat(simd, R::ZERO).less(self.last)
    }

    /// From the first row of any active block to the last one: both included.
    #[inline(always)]
    pub(crate) fn rows(&self, simd: S, active: Mask<S, R>, n: usize) -> (usize, usize) {
        let (mut first, mut last) = (0, n - 1);
        let at = |i| Vector::<S, R>::splat(simd, row(i));
        while first + 1 < last && !active.and(self.first.less(at(first + 1))).any() {
            first += 1;
        }
        while last > first + 1 && !active.and(at(last - 1).less(self.last)).any() {
            last -= 1;
        }
        (first, last)
    }

    /// The lanes whose next sweep takes exceptional shifts from the top, and from the bottom.
    #[inline(always)]
    pub(crate) fn exceptional(&self, simd: S) -> [Mask<S, R>; 2] {
        PATIENCE.map(|many| self.stalled.equal(Vector::splat(simd, row(many))))
    }

    /// Drops what is negligible below the diagonal, and leaves blocks of up to `width` rows behind.
    /// Returns the last 2 × 2 block of each lane: row by row.
    ///
    /// What was left behind stays as it is, and so do the lanes that are done: their patience runs out
    /// while others are at work.
    ///
    /// An element is neglected by the criterion of Ahues and Tisseur (LAPACK Working Note 122, 1997);
    /// a block that has lost its patience neglects roundings of the elements around it, as the diagonal
    /// ones may be zero but for roundings. Roundings of the largest element of all would be larger than
    /// the small eigenvalues of a graded matrix.
    #[inline(always)]
    pub(super) fn split<X: Lane<S, Real = R>>(
        &mut self,
        simd: S,
        h: &mut [Reg<S, X>],
        n: usize,
        width: usize,
    ) -> [X; 4] {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let nothing = X::from_real(zero);
        let ulp = splat(R::EPSILON + R::EPSILON);
        let least = splat(R::SAFE_MIN / (R::EPSILON * R::EPSILON));
        let impatient = splat(row(PATIENCE[0])).less_or_equal(self.stalled).and(self.active(simd));
        let hurry = impatient.any();
        let wide = splat(row(width - 1));
        let before = *self;
        let mut found = zero.less(zero);
        let mut corner = [nothing; 4];
        for i in (1..n).rev() {
            let at = splat(row(i));
            let load = |i: usize, j: usize| X::load(simd, h, i + j * n);
            let (above, beside) = (load(i - 1, i - 1), load(i - 1, i));
            let (below, here) = (load(i, i - 1), load(i, i));
            let ends = at.equal(self.last);
            for (corner, x) in corner.iter_mut().zip([above, beside, below, here]) {
                *corner = X::choose(ends, x, *corner);
            }
            let sub = below.abs1();
            let mut size = above.abs1() + here.abs1();
            if size.equal(zero).any() {
                let mut around = zero;
                if i >= 2 {
                    around = around + load(i - 1, i - 2).abs1();
                }
                if i + 1 < n {
                    around = around + load(i + 1, i).abs1();
                }
                size = Vector::choose(size.equal(zero), around, size);
            }
            let mut floor = least;
            if hurry {
                let mut around = above.abs1().max(here.abs1()).max(beside.abs1());
                if i >= 2 {
                    around = load(i - 2, i - 1).abs1().max(around);
                }
                if i + 1 < n {
                    around = load(i, i + 1).abs1().max(around);
                }
                let rounding = around * splat(R::EPSILON);
                floor = Vector::choose(impatient, rounding.max(least), least);
            }
            let tiny = sub.less_or_equal(floor);
            let open = at.less_or_equal(self.last);
            let mut small = open.and(sub.less_or_equal(ulp * size).or(tiny));
            if !small.any() {
                continue;
            }
            let (ab, ba) = sorted(sub, beside.abs1());
            let (aa, bb) = sorted(here.abs1(), (above - here).abs1());
            small = small.and((ba * ab).less_or_equal(ulp * (bb * aa)).or(tiny));
            X::choose(small, nothing, below).store(h, i + (i - 1) * n);
            let begins = small.and(found.not());
            let closes = begins.and(self.last.less_or_equal(at + wide));
            self.last = Vector::choose(closes, at - one, self.last);
            let opens = begins.and(closes.not());
            self.first = Vector::choose(opens, at, self.first);
            found = found.or(opens);
        }
        let top = found.not();
        self.first = Vector::choose(top, zero, self.first);
        let closes = top.and(self.last.less_or_equal(wide));
        self.last = Vector::choose(closes, -one, self.last);
        let again = before.last.equal(self.last).and(before.first.equal(self.first));
        let again = again.and(self.stalled.less(splat(row(PATIENCE[1]))));
        self.stalled = Vector::choose(again, self.stalled + one, one);
        corner
    }
}

/// The larger, and the smaller.
#[inline(always)]
fn sorted<S: Simd, R: LaneReal>(x: Vector<S, R>, y: Vector<S, R>) -> (Vector<S, R>, Vector<S, R>) {
    let less = x.less(y);
    (Vector::choose(less, y, x), Vector::choose(less, x, y))
}
