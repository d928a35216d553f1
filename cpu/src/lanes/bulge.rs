//! A reflector of order 3 of each lane, as sweeps with two shifts make them.

use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane as _, Mask, Vector};

/// The reflector I − tau·x·xᵀ with x = [1; v] in three rows, or in two.
///
/// In lanes without it tau and v are zero, and what they are multiplied by becomes zero too: x − 0·0
/// is x, but x − 0·y is not where x is −0 and y below zero.
#[derive(Clone, Copy)]
pub(crate) struct Bulge<S: Simd, R: LaneReal> {
    pub(crate) tau: Vector<S, R>,
    pub(crate) v: [Vector<S, R>; 2],
    pub(crate) lanes: Mask<S, R>,
    /// The lanes whose block has the third row: in others that is another block's, or done.
    pub(crate) three: Mask<S, R>,
}

impl<S: Simd, R: LaneReal> Bulge<S, R> {
    /// Rows k, k + 1 and k + 2 of columns of length n.
    #[inline(always)]
    pub(crate) fn rows(self, simd: S, a: &mut [R::Reg<S>], n: usize, k: usize) {
        let Self { tau, v: [v, w], lanes, three } = self;
        let (tau_v, tau_w) = (tau * v, tau * w);
        let zero = Vector::splat(simd, R::ZERO);
        for column in a.chunks_exact_mut(n) {
            if let [x, y, z] = &mut column[k..k + 3] {
                let (p, q, r) = load3(simd, *x, *y, *z);
                let sum = Vector::choose(lanes, p.add_mul(v, q).add_mul(w, r), zero);
                *x = p.sub_mul(tau, sum).reg();
                *y = q.sub_mul(tau_v, sum).reg();
                *z = Vector::choose(three, r.sub_mul(tau_w, sum), r).reg();
            }
        }
    }

    /// Columns k, k + 1 and k + 2 in some rows.
    #[inline(always)]
    pub(crate) fn columns(
        self,
        simd: S,
        a: &mut [R::Reg<S>],
        n: usize,
        k: usize,
        rows: (usize, usize),
    ) {
        let (x, rest) = a[k * n..(k + 3) * n].split_at_mut(n);
        let (y, z) = rest.split_at_mut(n);
        self.three_columns(simd, [x, y, z], rows);
    }

    /// Columns k + 2, k and k + 1, in this order, in so many rows.
    #[inline(always)]
    pub(crate) fn columns_from_last(
        self,
        simd: S,
        a: &mut [R::Reg<S>],
        n: usize,
        k: usize,
        rows: usize,
    ) {
        let (left, last) = a[k * n..(k + 3) * n].split_at_mut(2 * n);
        let (y, z) = left.split_at_mut(n);
        self.three_columns(simd, [last, y, z], (0, rows));
    }

    /// Three columns, in the order of [1; v], in some rows.
    #[inline(always)]
    fn three_columns(self, simd: S, [x, y, z]: [&mut [R::Reg<S>]; 3], (from, to): (usize, usize)) {
        let Self { tau, v: [v, w], lanes, three } = self;
        let (tau_v, tau_w) = (tau * v, tau * w);
        let zero = Vector::splat(simd, R::ZERO);
        let (x, y, z) = (&mut x[from..to], &mut y[from..to], &mut z[from..to]);
        for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
            let (p, q, r) = load3(simd, *x, *y, *z);
            let sum = Vector::choose(lanes, p.add_mul(v, q).add_mul(w, r), zero);
            *x = p.sub_mul(tau, sum).reg();
            *y = q.sub_mul(tau_v, sum).reg();
            *z = Vector::choose(three, r.sub_mul(tau_w, sum), r).reg();
        }
    }

    /// Rows k and k + 1.
    #[inline(always)]
    pub(crate) fn two_rows(self, simd: S, a: &mut [R::Reg<S>], n: usize, k: usize) {
        let Self { tau, v: [v, _], lanes, .. } = self;
        let tau_v = tau * v;
        let zero = Vector::splat(simd, R::ZERO);
        for column in a.chunks_exact_mut(n) {
            if let [x, y] = &mut column[k..k + 2] {
                let (p, q) = (Vector::from_reg(simd, *x), Vector::from_reg(simd, *y));
                let sum = Vector::choose(lanes, p.add_mul(v, q), zero);
                *x = p.sub_mul(tau, sum).reg();
                *y = q.sub_mul(tau_v, sum).reg();
            }
        }
    }

    /// Columns k and k + 1 in some rows.
    #[inline(always)]
    pub(crate) fn two_columns(
        self,
        simd: S,
        a: &mut [R::Reg<S>],
        n: usize,
        k: usize,
        (from, to): (usize, usize),
    ) {
        let Self { tau, v: [v, _], lanes, .. } = self;
        let tau_v = tau * v;
        let zero = Vector::splat(simd, R::ZERO);
        let (x, y) = a[k * n..(k + 2) * n].split_at_mut(n);
        for (x, y) in x[from..to].iter_mut().zip(&mut y[from..to]) {
            let (p, q) = (Vector::from_reg(simd, *x), Vector::from_reg(simd, *y));
            let sum = Vector::choose(lanes, p.add_mul(v, q), zero);
            *x = p.sub_mul(tau, sum).reg();
            *y = q.sub_mul(tau_v, sum).reg();
        }
    }
}

#[inline(always)]
fn load3<S: Simd, R: LaneReal>(
    simd: S,
    x: R::Reg<S>,
    y: R::Reg<S>,
    z: R::Reg<S>,
) -> (Vector<S, R>, Vector<S, R>, Vector<S, R>) {
    let load = |reg| Vector::from_reg(simd, reg);
    (load(x), load(y), load(z))
}
