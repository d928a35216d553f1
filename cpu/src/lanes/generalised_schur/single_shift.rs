//! One sweep of the QZ iteration with one shift over a complex Hessenberg-triangular pair in each lane.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use super::active::Corner;
use super::pair::Pair;
use crate::lanes::rotation::Rotation;
use crate::lanes::schur::active::Block;
use crate::lanes::schur::single_shift::wilkinson;
use crate::simd::lane::row;
use crate::simd::vector::{Lane, Mask, Vector};

impl<S: Simd, X: Lane<S>> Pair<'_, S, X> {
    /// A bulge from the first row of each block to its end.
    #[inline(always)]
    pub(super) fn single_sweep(
        &mut self,
        simd: S,
        block: &Block<S, X::Real>,
        active: Mask<S, X::Real>,
        corner: Corner<X>,
    ) {
        let nothing = X::from_real(Vector::splat(simd, X::Real::ZERO));
        let shift = shift(simd, block, corner);
        let (first, last) = block.rows(simd, active, self.n);
        for k in first..last {
            let at = Vector::splat(simd, row(k));
            let begin = active.and(at.equal(block.first));
            let inside = active.and(block.first.less_or_equal(at)).and(at.less(block.last));
            let on = inside.and(begin.not());
            let start = self.s(simd, k, k) - shift * self.t(simd, k, k);
            let below = self.s(simd, k + 1, k);
            let (mut f, mut g) =
                (X::choose(begin, start, nothing), X::choose(begin, below, nothing));
            if k > first {
                f = X::choose(on, self.s(simd, k, k - 1), f);
                g = X::choose(on, self.s(simd, k + 1, k - 1), g);
            }
            let rotation = Rotation::new(simd, f, g, inside);
            if k > first {
                let (x, _) = rotation.rotate(f, g);
                self.set_s(k, k - 1, X::choose(on, x, self.s(simd, k, k - 1)));
                self.set_s(k + 1, k - 1, nothing);
            }
            self.both(simd, rotation, k, (k, (k + 3).min(last + 1)));
        }
    }
}

/// The eigenvalue of the last block nearer to its last element (Wilkinson), or where that goes nowhere another number.
#[inline(always)]
fn shift<S: Simd, X: Lane<S>>(simd: S, block: &Block<S, X::Real>, corner: Corner<X>) -> X {
    let Corner { block: [a, b, c, d], u } = corner;
    let (b, d) = (b.sub_mul(u, a), d.sub_mul(u, c));
    let [once, twice] = block.exceptional(simd);
    let size = c.abs1() * Vector::splat(simd, X::Real::from_f64(0.75));
    let shift = X::choose(once, d + X::from_real(size), wilkinson(simd, [a, b, c, d]));
    X::choose(twice, a - X::from_real(size), shift)
}
