//! One sweep of the QZ iteration with two shifts over a real Hessenberg-triangular pair in each lane, as `double_sweep`
//! has it for one pair.

use pulp::Simd;

use super::active::Corner;
use super::pair::Pair;
use crate::lanes::bulge::Bulge;
use crate::lanes::reflector::reflector;
use crate::lanes::schur::active::Block;
use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane as _, Mask, Vector};

impl<S: Simd, R: LaneReal> Pair<'_, S, Vector<S, R>> {
    /// A bulge of order 3 from the first row of each block to its end.
    #[inline(always)]
    pub(super) fn double_sweep(
        &mut self,
        simd: S,
        block: &Block<S, R>,
        active: Mask<S, R>,
        corner: Corner<Vector<S, R>>,
    ) {
        let (n, ld) = (self.n, self.ld);
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let (first, last) = block.rows(simd, active, n);
        for k in first..last {
            let at = splat(row(k));
            let begin = active.and(at.equal(block.first));
            let inside = active.and(block.first.less_or_equal(at)).and(at.less(block.last));
            let three = inside.and((at + one).less(block.last));
            let mut x = [one, zero, zero];
            if k > first {
                x[0] = Vector::choose(inside, self.s(simd, k, k - 1), one);
                x[1] = Vector::choose(inside, self.s(simd, k + 1, k - 1), zero);
                if k + 2 < n {
                    // Zero where the block ends before.
                    x[2] = Vector::choose(inside, self.s(simd, k + 2, k - 1), zero);
                }
            }
            if k + 2 < n && begin.any() {
                for (x, start) in x.iter_mut().zip(self.first_column(simd, k, block, corner)) {
                    *x = Vector::choose(begin, start, *x);
                }
            }
            let mut tail = [x[1].reg(), x[2].reg()];
            let (beta, tau) = reflector(simd, x[0], &mut tail);
            if k > first {
                let on = inside.and(begin.not());
                self.set_s(k, k - 1, Vector::choose(on, beta, self.s(simd, k, k - 1)));
                (k + 1..(k + 3).min(n)).for_each(|i| self.set_s(i, k - 1, zero));
            }
            let v = [Vector::from_reg(simd, tail[0]), Vector::from_reg(simd, tail[1])];
            let bulge = Bulge { tau, v, lanes: inside, three };
            // What comes from T is known before the other matrices are changed: see `Pair::both`.
            let s_rows = (k + 4).min(last + 1);
            if k + 2 < n {
                bulge.rows(simd, &mut self.t[k * ld..n * ld], ld, k);
                let other = self.restoring_row(simd, three, k);
                bulge.rows(simd, &mut self.s[k * ld..n * ld], ld, k);
                bulge.columns(simd, self.q, ld, k, (0, n));
                other.columns_from_last(simd, self.t, ld, k, k + 3);
                self.set_t(k + 2, k, zero);
                self.set_t(k + 2, k + 1, zero);
                let rotation = self.restoring(simd, inside, k + 1);
                other.columns_from_last(simd, self.s, ld, k, s_rows);
                other.columns_from_last(simd, self.z, ld, k, n);
                self.restore(simd, rotation, k + 1, s_rows);
            } else {
                bulge.two_rows(simd, &mut self.t[k * ld..n * ld], ld, k);
                let rotation = self.restoring(simd, inside, k + 1);
                bulge.two_rows(simd, &mut self.s[k * ld..n * ld], ld, k);
                bulge.two_columns(simd, self.q, ld, k, (0, n));
                self.restore(simd, rotation, k + 1, s_rows);
            }
        }
    }

    /// The reflector of columns k + 2, k and k + 1 of some lanes that clears T's elements (k + 2, k) and (k + 2, k + 1).
    #[inline(always)]
    fn restoring_row(&self, simd: S, lanes: Mask<S, R>, k: usize) -> Bulge<S, R> {
        let zero = Vector::splat(simd, R::ZERO);
        let row = |j| self.t(simd, k + 2, j);
        let (y, z) = (row(k), row(k + 1));
        let mut tail = [Vector::choose(lanes, y, zero).reg(), Vector::choose(lanes, z, zero).reg()];
        let (_, tau) = reflector(simd, row(k + 2), &mut tail);
        let v = [Vector::from_reg(simd, tail[0]), Vector::from_reg(simd, tail[1])];
        Bulge { tau, v, lanes, three: lanes }
    }

    /// A multiple of the first column of (M − σ₁·I)·(M − σ₂·I) for the M = S·T⁻¹ from row and column k on and the
    /// eigenvalues of its last block, by differences (Moler and Stewart), or where that goes nowhere another vector.
    #[inline(always)]
    fn first_column(
        &self,
        simd: S,
        k: usize,
        block: &Block<S, R>,
        corner: Corner<Vector<S, R>>,
    ) -> [Vector<S, R>; 3] {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let Corner { block: [a, b, c, d], u } = corner;
        let (first, second) = (one / self.t(simd, k, k), one / self.t(simd, k + 1, k + 1));
        let (m11, m21) = (self.s(simd, k, k) * first, self.s(simd, k + 1, k) * first);
        let m32 = self.s(simd, k + 2, k + 1) * second;
        let above = self.t(simd, k, k + 1) * second;
        let m12 = (self.s(simd, k, k + 1) * second).sub_mul(m11, above);
        let m22 = (self.s(simd, k + 1, k + 1) * second).sub_mul(m21, above);
        let coupling = c * u;
        let (left, right) = (a - m11, d - m11);
        let sum = (left * right).sub_mul(b, c).add_mul(coupling, m11).add_mul(m12, m21);
        let next = (m22 - m11) - left - right + coupling;
        let v = [sum, next * m21, m32 * m21];
        let size = v[0].abs().max(v[1].abs()).max(v[2].abs());
        let known = (v[0] + v[1] + v[2]) * zero;
        let known = known.equal(zero).and(zero.less(size));
        let scale = one / Vector::choose(known, size, one);
        // Shifts of no meaning, and those of EISPACK's QZIT.
        let [once, twice] = block.exceptional(simd);
        let other = once.or(twice);
        let instead = [zero, one, Vector::choose(other, splat(R::from_f64(1.1605)), one)];
        let usual = known.and(other.not());
        let mut column = instead;
        for (x, v) in column.iter_mut().zip(v) {
            *x = Vector::choose(usual, v * scale, *x);
        }
        column
    }
}
