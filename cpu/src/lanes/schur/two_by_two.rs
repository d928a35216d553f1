//! LAPACK's standard form of a real 2 × 2 block in each lane, as `standard` has it for one matrix
//! (xLANV2; Bai and Demmel, "On swapping diagonal blocks in real Schur form", Linear Algebra Appl.
//! 186, 1993).

use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane as _, Mask, Vector};

/// (c·x + s·y, c·y − s·x).
#[inline(always)]
pub(crate) fn turn<S: Simd, R: LaneReal>(
    c: Vector<S, R>,
    s: Vector<S, R>,
    x: Vector<S, R>,
    y: Vector<S, R>,
) -> (Vector<S, R>, Vector<S, R>) {
    ((c * x).add_mul(s, y), (c * y).sub_mul(s, x))
}

/// Lanes with one number above zero and one that is not.
#[inline(always)]
fn opposite<S: Simd, R: LaneReal>(simd: S, b: Vector<S, R>, c: Vector<S, R>) -> Mask<S, R> {
    let zero = Vector::splat(simd, R::ZERO);
    let (b, c) = (zero.less(b), zero.less(c));
    b.and(c.not()).or(b.not().and(c))
}

/// A 2 × 2 block, a cosine and a sine.
pub(super) type Standard<S, R> = [Vector<S, R>; 6];

#[inline(always)]
fn pick<S: Simd, R: LaneReal>(
    mask: Mask<S, R>,
    mut x: Standard<S, R>,
    y: Standard<S, R>,
) -> Standard<S, R> {
    for (x, y) in x.iter_mut().zip(y) {
        *x = Vector::choose(mask, *x, y);
    }
    x
}

/// The standard form of [a b; c d] with the cosine and the sine, as for single matrices; c is not
/// zero in the lanes that are used.
#[inline(always)]
pub(crate) fn standard<S: Simd, R: LaneReal>(
    simd: S,
    [a, b, c, d]: [Vector<S, R>; 4],
) -> Standard<S, R> {
    let splat = |x| Vector::<S, R>::splat(simd, x);
    let (zero, one, half) = (splat(R::ZERO), splat(R::ONE), splat(R::from_f64(0.5)));
    let p = (a - d) * half;
    let scale = p.abs().max(b.abs()).max(c.abs());
    let [p, b1, c1] = [p / scale, b / scale, c / scale];
    let product = b1 * c1;
    let z = product.add_mul(p, p);
    // Eigenvalues that are real by more than rounding: the one farther from d first.
    let apart = splat(R::from_f64(8.0) * R::EPSILON).less_or_equal(z);
    let distance = p + Vector::choose(apart, z, one).sqrt().with_sign(p);
    let length = (distance * distance).add_mul(c1, c1).sqrt();
    let real = [
        d.add_mul(distance, scale),
        b - c,
        zero,
        d.sub_mul(product / distance, scale),
        distance / length,
        c1 / length,
    ];
    // Equal diagonal elements, by the rotation through half the angle of (b + c, a − d).
    let (sigma, difference) = (b1 + c1, p + p);
    let (large, small) = (sigma.abs().max(difference.abs()), sigma.abs());
    let small = Vector::choose(large.equal(small), difference.abs(), small);
    let ratio = small / large;
    let length = large * one.add_mul(ratio, ratio).sqrt();
    let cosine = (one.add_mul(sigma.abs(), one / length) * half).sqrt();
    let sine = -(p / (length * cosine)) * one.with_sign(sigma);
    let ((a2, b2), (c2, d2)) = (turn(cosine, sine, a, b), turn(cosine, sine, c, d));
    let ((a2, c2), (b2, d2)) = (turn(cosine, sine, a2, c2), turn(cosine, sine, b2, d2));
    let middle = (a2 + d2) * half;
    // Nearly equal real eigenvalues: a second rotation clears c.
    let (root_b, root_c) = (b2.abs().sqrt(), c2.abs().sqrt());
    let offset = (root_b * root_c).with_sign(c2);
    let reciprocal = one / (b2 + c2).abs().sqrt();
    let (c3, s3) = (root_b * reciprocal, root_c * reciprocal);
    let (turn_c, turn_s) = ((cosine * c3).sub_mul(sine, s3), (cosine * s3).add_mul(sine, c3));
    let near = [middle + offset, b2 - c2, zero, middle - offset, turn_c, turn_s];
    let standing = [middle, b2, c2, middle, cosine, sine];
    let turned = pick::<S, R>(opposite(simd, b2, c2).or(c2.equal(zero)), standing, near);
    let turned = pick::<S, R>(
        b2.equal(zero).and(c2.equal(zero).not()),
        [middle, -c2, zero, middle, -sine, cosine],
        turned,
    );
    let found = pick::<S, R>(apart, real, turned);
    // What is in standard form already, and what only has to be turned round.
    let done = a.equal(d).and(opposite(simd, b, c)).and(b.equal(zero).not());
    let found = pick::<S, R>(done, [a, b, c, d, one, zero], found);
    pick::<S, R>(b.equal(zero), [d, -c, zero, a, zero, one], found)
}
