//! A plane rotation of each lane, which leaves the bits of lanes that take no part as they are.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use crate::simd::lane_real::LaneReal as _;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// The rotation [c s; −s̄ c] with c real of some lanes, and c = 1 in others.
#[derive(Clone, Copy)]
pub(crate) struct Rotation<S: Simd, X: Lane<S>> {
    pub(crate) c: Vector<S, X::Real>,
    pub(crate) s: X,
    pub(crate) lanes: Mask<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Rotation<S, X> {
    /// The one that brings [f; g] to [r; 0] in some lanes, the identity in others.
    #[inline(always)]
    pub(crate) fn new(simd: S, mut f: X, mut g: X, lanes: Mask<S, X::Real>) -> Self {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let eps = X::Real::EPSILON;
        let low = splat(X::Real::LOW);
        let enough = splat(X::Real::LOW / (eps * eps * eps * eps));
        let (mut f_square, mut g_square) = (f.norm_squared(), g.norm_squared());
        let lost = lanes.and((f_square + g_square).less(enough));
        if lost.any() {
            let size = f.abs1().max(g.abs1()).max(splat(X::Real::SAFE_MIN));
            let scale = Vector::choose(lost, one / size, one);
            (f, g) = (f.scale(scale), g.scale(scale));
            (f_square, g_square) = (f.norm_squared(), g.norm_squared());
        }
        let norm = (f_square + g_square).sqrt();
        let on = lanes.and(zero.less(g_square));
        // With an f that is nothing beside g, it exchanges.
        let tilted = low.less_or_equal(f_square);
        let root = Vector::choose(tilted, f_square.sqrt() * norm, norm);
        let reciprocal = one / Vector::choose(on, root, one);
        let c = Vector::choose(tilted, f_square * reciprocal, zero);
        let s = X::choose(tilted, f, X::from_real(one)) * g.conj().scale(reciprocal);
        Self { c: Vector::choose(on, c, one), s, lanes: on }
    }

    #[inline(always)]
    pub(crate) fn rotate(self, x: X, y: X) -> (X, X) {
        let Self { c, s, lanes } = self;
        let (p, q) = (x.scale(c), y.scale(c));
        (p.add_mul_in(lanes, s, y), q.sub_mul_in(lanes, s.conj(), x))
    }

    /// Rows k and k + 1 of columns of length n.
    #[inline(always)]
    pub(crate) fn rows(self, simd: S, a: &mut [Reg<S, X>], n: usize, k: usize) {
        for column in a.chunks_exact_mut(n * X::PARTS) {
            let (x, y) = self.rotate(X::load(simd, column, k), X::load(simd, column, k + 1));
            x.store(column, k);
            y.store(column, k + 1);
        }
    }

    /// [x y] ← [x y]·Gᴴ for two columns, in some rows.
    #[inline(always)]
    pub(crate) fn columns(
        self,
        simd: S,
        [x, y]: [&mut [Reg<S, X>]; 2],
        (from, to): (usize, usize),
    ) {
        let adjoint = Self { s: self.s.conj(), ..self };
        for i in from..to {
            let (p, q) = adjoint.rotate(X::load(simd, x, i), X::load(simd, y, i));
            p.store(x, i);
            q.store(y, i);
        }
    }
}

/// Two columns that lie one behind the other.
#[inline(always)]
pub(crate) fn halves<G>(columns: &mut [G]) -> [&mut [G]; 2] {
    let (x, y) = columns.split_at_mut(columns.len() / 2);
    [x, y]
}
