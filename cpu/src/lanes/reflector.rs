//! Elementary reflectors H = I − tau·v·vᴴ, v₀ = 1, one in each lane, to LAPACK's conventions.

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Reg, Vector};

/// The reflector with Hᴴ·[alpha; x] = [beta; 0], whose tail of v replaces x (xLARFG): (beta, tau).
///
/// H is the identity (tau = 0) where x is zero and alpha is real. Lanes whose squares overflow or
/// underflow are scaled by a power of two first.
#[inline(always)]
pub(crate) fn reflector<S: Simd, X: Lane<S>>(
    simd: S,
    alpha: X,
    x: &mut [Reg<S, X>],
) -> (Vector<S, X::Real>, X) {
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let squares = sum_of_squares::<S, X>(simd, x);
    let square = alpha.norm_squared() + squares;
    let (low, high) = (splat(X::Real::LOW), splat(X::Real::HIGH));
    if low.less_or_equal(square).and(square.less_or_equal(high)).all() {
        return reflect(simd, alpha, squares, x);
    }
    let one = splat(X::Real::ONE);
    let (up, down) = (splat(X::Real::UP), splat(X::Real::DOWN));
    let large = Vector::choose(high.less(square), down, one);
    let scale = Vector::choose(square.less(low), up, large);
    for x in x.chunks_exact_mut(X::PARTS) {
        X::load(simd, x, 0).scale(scale).store(x, 0);
    }
    let squares = sum_of_squares::<S, X>(simd, x);
    let (beta, tau) = reflect(simd, alpha.scale(scale), squares, x);
    (beta / scale, tau)
}

/// ‖x‖².
#[inline(always)]
fn sum_of_squares<S: Simd, X: Lane<S>>(simd: S, x: &[Reg<S, X>]) -> Vector<S, X::Real> {
    let mut sum = Vector::splat(simd, X::Real::ZERO);
    for x in x.chunks_exact(X::PARTS) {
        let x = X::load(simd, x, 0);
        sum = sum.add_mul(x.re(), x.re());
        if X::PARTS > 1 {
            sum = sum.add_mul(x.im(), x.im());
        }
    }
    sum
}

/// The reflector of a vector whose squares are accurate; `squares` = ‖x‖².
#[inline(always)]
fn reflect<S: Simd, X: Lane<S>>(
    simd: S,
    alpha: X,
    squares: Vector<S, X::Real>,
    x: &mut [Reg<S, X>],
) -> (Vector<S, X::Real>, X) {
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
    let identity = squares.equal(zero).and(alpha.im().equal(zero));
    let norm = (alpha.norm_squared() + squares).sqrt();
    let beta = -norm.with_sign(alpha.re());
    // v = x / (alpha − beta), tau = (beta − alpha) / beta.
    let difference = alpha - X::from_real(beta);
    let divisor = X::choose(identity, X::from_real(one), difference);
    let reciprocal = divisor.reciprocal();
    for x in x.chunks_exact_mut(X::PARTS) {
        (X::load(simd, x, 0) * reciprocal).store(x, 0);
    }
    let tau = -difference.scale(one / Vector::choose(identity, one, beta));
    (Vector::choose(identity, alpha.re(), beta), X::choose(identity, X::from_real(zero), tau))
}

/// column ← (I − tau·v·vᴴ)·column for whole columns of `stride` registers, from element `row` on;
/// `tail` is v after its leading one. conj(tau) gives Hᴴ.
#[inline(always)]
pub(crate) fn reflect_columns<S: Simd, X: Lane<S>>(
    simd: S,
    tau: X,
    tail: &[Reg<S, X>],
    columns: &mut [Reg<S, X>],
    stride: usize,
    row: usize,
) {
    let mut fours = columns.chunks_exact_mut(4 * stride);
    for columns in &mut fours {
        reflect_together::<S, X, 4>(simd, tau, tail, columns, stride, row);
    }
    for column in fours.into_remainder().chunks_exact_mut(stride) {
        reflect_together::<S, X, 1>(simd, tau, tail, column, stride, row);
    }
}

/// N columns, so that v is read once for all of them.
#[inline(always)]
fn reflect_together<S: Simd, X: Lane<S>, const N: usize>(
    simd: S,
    tau: X,
    tail: &[Reg<S, X>],
    columns: &mut [Reg<S, X>],
    stride: usize,
    row: usize,
) {
    let rows = tail.len() / X::PARTS;
    let mut columns: [&mut [Reg<S, X>]; N] = {
        let mut parts = columns.chunks_exact_mut(stride);
        std::array::from_fn(|_| {
            let column = parts.next().unwrap_or_default();
            &mut column[row * X::PARTS..(row + 1 + rows) * X::PARTS]
        })
    };
    let mut sums: [X; N] = std::array::from_fn(|c| X::load(simd, columns[c], 0));
    for i in 0..rows {
        let v = X::load(simd, tail, i).conj();
        for (sum, column) in sums.iter_mut().zip(&columns) {
            *sum = sum.add_mul(v, X::load(simd, column, i + 1));
        }
    }
    for (sum, column) in sums.iter_mut().zip(&mut columns) {
        *sum = *sum * tau;
        (X::load(simd, column, 0) - *sum).store(column, 0);
    }
    for i in 0..rows {
        let v = X::load(simd, tail, i);
        for (sum, column) in sums.iter().zip(&mut columns) {
            X::load(simd, column, i + 1).sub_mul(v, *sum).store(column, i + 1);
        }
    }
}
