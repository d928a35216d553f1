//! Triangular matrices among those of a group: they are worked on as upper ones, which elimination leaves triangular,
//! and their exponentials' diagonals, and those above them, are known exactly.

use std::cmp::Ordering;

use lapax_core::Scalar as _;
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::flagged;
use crate::simd::exponential::{exp, exp_difference, halved};
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, MAX_LANES, Mask, Reg, Vector};

/// What the matrices of a group are.
pub(super) struct Structure<S: Simd, R: LaneReal> {
    /// Not finite: zero from then on.
    pub(super) failed: Mask<S, R>,
    /// Lower triangular, and so transposed.
    turned: Mask<S, R>,
    triangular: Mask<S, R>,
    pub(super) diagonal: Mask<S, R>,
}

impl<S: Simd, R: LaneReal> Structure<S, R> {
    #[inline(always)]
    pub(super) fn of<X: Lane<S, Real = R>>(simd: S, n: usize, a: &mut [Reg<S, X>]) -> Self {
        let zero = Vector::<S, R>::splat(simd, R::ZERO);
        let (mut below, mut above, mut not_finite) = (zero, zero, zero);
        for (j, column) in a.chunks_exact(n * X::PARTS).enumerate() {
            for i in 0..n {
                let x = X::load(simd, column, i);
                // x − x is NaN for an infinite x, and so is every sum with it.
                not_finite = not_finite + (x.re() - x.re()) + (x.im() - x.im());
                match i.cmp(&j) {
                    Ordering::Less => above = above + x.abs1(),
                    Ordering::Equal => {}
                    Ordering::Greater => below = below + x.abs1(),
                }
            }
        }
        let failed = not_finite.is_nan();
        if failed.any() {
            let zero = X::splat(simd, X::Scalar::ZERO);
            for x in a.chunks_exact_mut(X::PARTS) {
                X::choose(failed, zero, X::load(simd, x, 0)).store(x, 0);
            }
        }
        let [upper, lower] = [below, above].map(|sum| sum.equal(zero));
        let (turned, triangular) = (lower.and(upper.not()), lower.or(upper));
        let structure = Self { failed, turned, triangular, diagonal: lower.and(upper) };
        structure.turn::<X>(simd, n, a);
        structure
    }

    /// Transposes matrices that are lower triangular, or functions of them.
    #[inline(always)]
    pub(super) fn turn<X: Lane<S, Real = R>>(&self, simd: S, n: usize, a: &mut [Reg<S, X>]) {
        if !self.turned.any() {
            return;
        }
        for (i, j) in (0..n).flat_map(|j| (0..j).map(move |i| (i * n + j, j * n + i))) {
            let (x, y) = (X::load(simd, a, i), X::load(simd, a, j));
            X::choose(self.turned, y, x).store(a, i);
            X::choose(self.turned, x, y).store(a, j);
        }
    }

    /// Makes exact what is known of exp(2⁻ʰA) for each matrix's h, unless that is negative (Al-Mohy and Higham, SIAM J.
    /// Matrix Anal. Appl. 31, 2009, code fragment 2.1).
    #[inline(always)]
    pub(super) fn exact_diagonals<X: Lane<S, Real = R>>(
        &self,
        simd: S,
        n: usize,
        a: &[Reg<S, X>],
        halvings: [i32; MAX_LANES],
        result: &mut [Reg<S, X>],
    ) {
        let now = self.triangular.and(flagged(simd, halvings.map(|halvings| halvings >= 0)));
        if now.any() {
            exact::<S, X>(simd, n, a, halvings, now, result);
        }
    }
}

/// Of the matrices of some lanes.
#[apart]
fn exact<S: Simd, X: Lane<S>>(
    simd: S,
    n: usize,
    a: &[Reg<S, X>],
    halvings: [i32; MAX_LANES],
    now: Mask<S, X::Real>,
    result: &mut [Reg<S, X>],
) {
    let bits = now.bits();
    let lanes = || (0..MAX_LANES).filter(|lane| bits >> lane & 1 == 1);
    let number = |at: usize| {
        let mut lanes = [X::Scalar::ZERO; MAX_LANES];
        X::load(simd, a, at).write(&mut lanes);
        lanes
    };
    let mut put = |at: usize, values: [X::Scalar; MAX_LANES]| {
        let old = X::load(simd, result, at);
        X::choose(now, X::read(simd, &values), old).store(result, at);
    };
    let mut next = number(0);
    for i in 0..n {
        let here = next;
        let mut values = [X::Scalar::ZERO; MAX_LANES];
        for lane in lanes() {
            values[lane] = exp(here[lane], halvings[lane]);
        }
        put(i * n + i, values);
        if i + 1 == n {
            break;
        }
        next = number((i + 1) * (n + 1));
        let mut values = number((i + 1) * n + i);
        for lane in lanes() {
            // An infinite quotient leaves zeros.
            if values[lane] != X::Scalar::ZERO {
                let quotient = exp_difference(here[lane], next[lane], halvings[lane]);
                values[lane] = quotient * halved(values[lane], halvings[lane]);
            }
        }
        put((i + 1) * n + i, values);
    }
}
