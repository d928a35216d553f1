//! Shifts and deflation of the quotient-difference algorithm, from the last rows of each lane's block.

use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Mask, Vector};

/// Roundings that an element above the diagonal may amount to beside its neighbours to be dropped.
const ROUNDINGS: f64 = 4.0;
/// How near deflation a block is: ‖z‖² − 1 for its approximate singular vector with last element 1.
/// Up to here a shift is chosen by z, and beyond, a share of the smallest pivot. This, the share and
/// the part of the distance to the next value that is counted on were tried between 0.3 and 1 on
/// bidiagonal forms of random matrices; these take the fewest rows, 2.0·n², and 1.3 times as many was
/// the worst.
const LOCAL: f64 = 0.8;
const SHARE: f64 = 0.5;
const GAP: f64 = 0.9;
/// Roundings by which a shift stays below what it estimates: without them three times as many
/// shifts turned out too large.
const SLACK: f64 = 4.0;

/// Rows at the end of a block of which a sweep keeps what it found: up to three are deflated.
pub(crate) const TRAIL: usize = 5;
/// What a sweep leaves of the last rows of a block: of row `end` − k at k.
#[derive(Clone, Copy)]
pub(crate) struct Trail<S: Simd, R: LaneReal> {
    pub(super) q: [Vector<S, R>; TRAIL],
    /// The element above the diagonal in row `end` − k.
    pub(super) e: [Vector<S, R>; TRAIL],
    /// ‖z‖² for the z with last element 1 that B maps to a multiple of its last unit vector.
    pub(super) norm: [Vector<S, R>; TRAIL],
    /// The smallest pivot up to there.
    pub(super) least: [Vector<S, R>; TRAIL],
}

impl<S: Simd, R: LaneReal> Trail<S, R> {
    /// Removes the last row in some lanes.
    #[inline(always)]
    pub(super) fn drop(&mut self, lanes: Mask<S, R>) {
        for row in [&mut self.q, &mut self.e, &mut self.norm, &mut self.least] {
            for k in 1..TRAIL {
                row[k - 1] = Vector::choose(lanes, row[k], row[k - 1]);
            }
        }
    }
}

/// The next shift after one that was good: if possible the smallest value but for an error that is
/// quadratically small.
#[inline(always)]
pub(crate) fn shift<S: Simd, R: LaneReal>(simd: S, trail: &Trail<S, R>) -> Vector<S, R> {
    let splat = |x| Vector::<S, R>::splat(simd, R::from_f64(x));
    let (zero, one) = (splat(0.0), splat(1.0));
    // z's Rayleigh quotient q/‖z‖² and its residual, and the value next to it by that of the row
    // before: the distance to the smallest value is that of Kato and Temple.
    let (quotient, before) = (trail.q[0] / trail.norm[0], trail.q[1] / trail.norm[1]);
    let rest = trail.norm[0] - one;
    let residual = quotient * rest.sqrt();
    let least = trail.least[1];
    let second = Vector::choose(before.less(least), before, least);
    let gap = splat(GAP) * second - quotient;
    let error = Vector::choose(residual.less(gap), residual * (residual / gap), residual);
    let local = rest.less(splat(LOCAL)).and(zero.less(gap));
    let shift = Vector::choose(local, quotient - error, splat(SHARE) * trail.least[0]);
    let slack = one - splat(SLACK) * Vector::splat(simd, R::EPSILON);
    Vector::choose(zero.less(shift), shift * slack, zero)
}

/// The shift after one that was too large; `early` where not only the last pivot is below zero.
#[inline(always)]
pub(crate) fn retreat<S: Simd, R: LaneReal>(
    simd: S,
    tau: Vector<S, R>,
    pivot: Vector<S, R>,
    early: Mask<S, R>,
) -> Vector<S, R> {
    let splat = |x| Vector::<S, R>::splat(simd, R::from_f64(x));
    let quarter = splat(0.25) * tau;
    // Where only the last pivot is negative, adding it gives an excellent shift.
    let slack = splat(1.0) - splat(SLACK) * Vector::splat(simd, R::EPSILON);
    let late = (tau + pivot) * slack;
    Vector::choose(early.not().and(splat(0.0).less(late)), late, quarter)
}

/// The squared values of two rows, the larger first: those of BBᵀ, with `left` on its diagonal.
#[inline(always)]
pub(crate) fn pair<S: Simd, R: LaneReal>(
    simd: S,
    a: Vector<S, R>,
    e: Vector<S, R>,
    b: Vector<S, R>,
    left: Vector<S, R>,
) -> [Vector<S, R>; 2] {
    let splat = |x| Vector::<S, R>::splat(simd, x);
    // One transform without shift.
    let hat = a + e;
    let ratio = Vector::choose(splat(R::ZERO).less(hat), b / hat, splat(R::ZERO));
    let (a, e, b) = (hat, e * ratio, a * ratio + left);
    let (large, small) = (Vector::choose(a.less(b), b, a), Vector::choose(a.less(b), a, b));
    let t = splat(R::from_f64(0.5)) * ((large - small) + e);
    // The root of the larger one, without cancellation: t + √(t² + small·e).
    let s = small * (e / t);
    let s = small * (e / (t + t.sqrt() * (t + s).sqrt()));
    let largest = large + (s + e);
    let some = splat(R::ZERO).less(t);
    let smallest = small * (large / largest);
    [Vector::choose(some, largest, large), Vector::choose(some, smallest, small)]
}

/// What is negligible above the diagonal beside a square of this size.
#[inline(always)]
pub(crate) fn negligible<S: Simd, R: LaneReal>(simd: S, size: Vector<S, R>) -> Vector<S, R> {
    let tolerance = R::from_f64(ROUNDINGS) * R::EPSILON;
    let relative = Vector::splat(simd, tolerance * tolerance) * size;
    relative.max(Vector::splat(simd, R::SAFE_MIN))
}
