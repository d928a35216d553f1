//! The phase of vectors with one matrix in each lane, by the rule of `phase`.

use lapax_core::Scalar as _;
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::matrix::phase::least;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Turns unit vectors of n numbers each, one behind the other.
#[apart]
pub(crate) fn columns<S: Simd, X: Lane<S>>(simd: S, v: &mut [Reg<S, X>], n: usize) {
    for x in v.chunks_exact_mut(n * X::PARTS) {
        First::<S, X>::of(simd, x, n).turn(simd, x);
    }
}

/// Turns unit vectors of n numbers each, and those of m numbers that belong to them.
#[apart]
pub(crate) fn pairs<S: Simd, X: Lane<S>>(
    simd: S,
    (v, n): (&mut [Reg<S, X>], usize),
    (others, m): (&mut [Reg<S, X>], usize),
) {
    let others = others.chunks_exact_mut(m * X::PARTS);
    for (x, other) in v.chunks_exact_mut(n * X::PARTS).zip(others) {
        let first = First::<S, X>::of(simd, x, n);
        first.turn(simd, x);
        multiply(simd, other, first.factor);
    }
}

/// Turns Schur vectors, the columns of Z, and T = Zᴴ·A·Z with them: n × n. n numbers of scratch.
#[apart]
pub(crate) fn schur<S: Simd, X: Lane<S>>(
    simd: S,
    t: &mut [Reg<S, X>],
    z: &mut [Reg<S, X>],
    n: usize,
    factors: &mut [Reg<S, X>],
) {
    let zero = Vector::splat(simd, X::Real::ZERO);
    for (j, x) in z.chunks_exact_mut(n * X::PARTS).enumerate() {
        let first = First::<S, X>::of(simd, x, n);
        first.turn(simd, x);
        first.factor.store(factors, j);
    }
    for (j, column) in t.chunks_exact_mut(n * X::PARTS).enumerate() {
        let factor = X::load(simd, factors, j);
        for i in 0..j {
            let both = X::load(simd, factors, i).conj() * factor;
            (X::load(simd, column, i) * both).store(column, i);
        }
        if X::PARTS == 1 && j + 1 < n {
            let below = X::load(simd, column, j + 1);
            let turned = below * factor * X::load(simd, factors, j + 1);
            X::choose(below.re().equal(zero), below, turned).store(column, j + 1);
        }
    }
}

/// Of each lane's vector, the first component that is large enough, as what makes it real and positive.
#[derive(Clone, Copy)]
struct First<S: Simd, X: Lane<S>> {
    least: Vector<S, X::Real>,
    factor: X,
    /// In all lanes it is among so many.
    among: usize,
}

impl<S: Simd, X: Lane<S>> First<S, X> {
    #[inline(always)]
    fn of(simd: S, x: &[Reg<S, X>], n: usize) -> Self {
        let (zero, one) = (X::Real::ZERO, Vector::splat(simd, X::Real::ONE));
        let zero = Vector::<S, X::Real>::splat(simd, zero);
        let least = Vector::<S, X::Real>::splat(simd, least(n));
        let (mut pivot, mut found, mut among) = (X::from_real(one), zero.less(zero), 0);
        for (i, x) in x.chunks_exact(X::PARTS).enumerate() {
            let x = X::load(simd, x, 0);
            let here = is_large::<S, X>(x, least).and(found.not());
            (pivot, found) = (X::choose(here, x, pivot), found.or(here));
            if found.all() {
                among = i + 1;
                break;
            }
            among = i + 1;
        }
        let factor = if X::PARTS == 1 {
            X::from_real(one.with_sign(pivot.re()))
        } else {
            pivot.conj().scale(one / pivot.norm_squared().sqrt())
        };
        Self { least, factor, among }
    }

    /// Multiplies the vector.
    #[inline(always)]
    fn turn(self, simd: S, x: &mut [Reg<S, X>]) {
        let Self { least, factor, among } = self;
        if X::PARTS == 1 {
            return multiply(simd, x, factor);
        }
        let (head, tail) = x.split_at_mut(among * X::PARTS);
        let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
        let mut found = zero.less(zero);
        for x in head.chunks_exact_mut(X::PARTS) {
            let old = X::load(simd, x, 0);
            let here = is_large::<S, X>(old, least).and(found.not());
            found = found.or(here);
            let new = old * factor;
            X::choose(here, X::from_real(new.re()), new).store(x, 0);
        }
        multiply(simd, tail, factor);
    }
}

/// Whether a component may say the phase: not where it is NaN.
#[inline(always)]
fn is_large<S: Simd, X: Lane<S>>(x: X, least: Vector<S, X::Real>) -> Mask<S, X::Real> {
    if X::PARTS == 1 {
        least.less_or_equal(x.abs1())
    } else {
        (least * least).less_or_equal(x.norm_squared())
    }
}

/// x ← factor·x.
#[inline(always)]
fn multiply<S: Simd, X: Lane<S>>(simd: S, x: &mut [Reg<S, X>], factor: X) {
    for x in x.chunks_exact_mut(X::PARTS) {
        (X::load(simd, x, 0) * factor).store(x, 0);
    }
}
