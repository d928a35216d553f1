//! Blocks of order 2 of a real pair in each lane, brought to Schur form as `standardise` does for one pair.

use pulp::Simd;

use super::pair::Pair;
use crate::lanes::rotation::Rotation;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane as _, Mask, Vector};

impl<S: Simd, R: LaneReal> Pair<'_, S, Vector<S, R>> {
    /// Brings the block of rows k and k + 1 to standard form in the lanes that have one there: T's becomes diagonal and
    /// positive, and with real eigenvalues S's triangular. Returns those in which an element on T's diagonal is at most
    /// `nothing` after that.
    #[inline(always)]
    pub(super) fn standardise(&mut self, simd: S, k: usize, nothing: Vector<S, R>) -> Mask<S, R> {
        let l = k + 1;
        let zero = Vector::<S, R>::splat(simd, R::ZERO);
        let coupled = self.s(simd, l, k).equal(zero).not();
        if !coupled.any() {
            return coupled;
        }
        self.diagonalise(simd, k, coupled);
        self.triangularise_block(simd, k, coupled);
        let small = self.t(simd, k, k).abs().less_or_equal(nothing);
        coupled.and(small.or(self.t(simd, l, l).abs().less_or_equal(nothing)))
    }

    /// T's block becomes diagonal, by a rotation that makes its columns orthogonal (Hestenes 1958).
    #[inline(always)]
    fn diagonalise(&mut self, simd: S, k: usize, lanes: Mask<S, R>) {
        let (n, ld, l) = (self.n, self.ld, k + 1);
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let (a, b, d) = (self.t(simd, k, k), self.t(simd, k, l), self.t(simd, l, l));
        let scale = one / a.abs().max(b.abs()).max(d.abs());
        let (a, b, d) = (a * scale, b * scale, d * scale);
        let (first, second, product) = (a * a, (b * b).add_mul(d, d), a * b);
        let some = product.equal(zero).not();
        let zeta = (second - first) / Vector::choose(some, product + product, one);
        let tangent = one.with_sign(zeta) / (zeta.abs() + one.add_mul(zeta, zeta).sqrt());
        let tangent = Vector::choose(some, tangent, zero);
        let cosine = one / one.add_mul(tangent, tangent).sqrt();
        let sine = -(cosine * tangent);
        let turned = [(a * cosine).add_mul(b, sine), d * sine];
        let length = (turned[0] * turned[0]).add_mul(turned[1], turned[1]);
        // The larger column comes first: the other one is then in error by its own roundoff.
        let swap = (length + length).less(first + second);
        let c = Vector::choose(lanes, Vector::choose(swap, -sine, cosine), one);
        let s = Vector::choose(swap, cosine, sine);
        // The first column is the left one of two here.
        self.right(simd, Rotation { c, s: -s, lanes }, l, (l + 1, l + 1));
        let rotation = Rotation::new(simd, self.t(simd, k, k), self.t(simd, l, k), lanes);
        self.left(simd, rotation, k, (k, k));
        self.set_t(l, k, Vector::choose(lanes, zero, self.t(simd, l, k)));
        self.set_t(k, l, Vector::choose(lanes, zero, self.t(simd, k, l)));
        for i in [k, l] {
            let negative = lanes.and(self.t(simd, i, i).less(zero));
            let turned = |x: Vector<S, R>| Vector::choose(negative, -x, x);
            for j in k..n {
                self.set_s(i, j, turned(self.s(simd, i, j)));
                self.set_t(i, j, turned(self.t(simd, i, j)));
            }
            for x in &mut self.q[i * ld..i * ld + n] {
                *x = turned(Vector::from_reg(simd, *x)).reg();
            }
        }
    }

    /// S's block becomes triangular where its eigenvalues are real, T's being diagonal and positive.
    #[inline(always)]
    fn triangularise_block(&mut self, simd: S, k: usize, lanes: Mask<S, R>) {
        let l = k + 1;
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one, half) = (splat(R::ZERO), splat(R::ONE), splat(R::from_f64(0.5)));
        let (s11, s12) = (self.s(simd, k, k), self.s(simd, k, l));
        let (s21, s22) = (self.s(simd, l, k), self.s(simd, l, l));
        let s_size = s11.abs().max(s12.abs()).max(s21.abs().max(s22.abs()));
        let t_size = self.t(simd, k, k);
        let scale = one / Vector::choose(s_size.equal(zero), one, s_size);
        let (s11, s12, s21, s22) = (s11 * scale, s12 * scale, s21 * scale, s22 * scale);
        let b = self.t(simd, l, l) / t_size;
        let p = (b * s11 - s22) * half;
        let square = (s12 * s21 * b).add_mul(p, p);
        let real = lanes.and(zero.less_or_equal(square));
        if !real.any() {
            return;
        }
        // The sign of p: neither sum cancels.
        let x = p + Vector::choose(real, square, zero).sqrt().with_sign(p);
        let g = Rotation::new(simd, x, s21, real);
        // G brings [x; s21] to [r; 0]: the first column is the left one of two here.
        self.right(simd, Rotation { s: -g.s, ..g }, l, (l + 1, l + 1));
        let of_s = [self.s(simd, k, k), self.s(simd, l, k)];
        let of_t = [self.t(simd, k, k), self.t(simd, l, k)];
        let size = |x: [Vector<S, R>; 2]| x[0].abs() + x[1].abs();
        let larger = (size(of_t) * s_size).less(size(of_s) * t_size);
        let larger = larger.or(size(of_t).equal(zero));
        let x = Vector::choose(larger, of_s[0], of_t[0]);
        let y = Vector::choose(larger, of_s[1], of_t[1]);
        let rotation = Rotation::new(simd, x, y, real);
        self.left(simd, rotation, k, (k, k));
        self.set_s(l, k, Vector::choose(real, zero, self.s(simd, l, k)));
        self.set_t(l, k, Vector::choose(real, zero, self.t(simd, l, k)));
    }
}
