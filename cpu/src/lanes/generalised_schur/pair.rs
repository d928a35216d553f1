//! A pair of small matrices in each lane, A = Q·S·Zᴴ and B = Q·T·Zᴴ, and what rotations do to it.

use lapax_core::Scalar as _;
use pulp::Simd;

use crate::lanes::rotation::{Rotation, halves};
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// From one column of n numbers to the next: an odd number, so that what lies in a row does not share a cache's lines.
/// Of complex pairs of order 32 whose rows were all in the same ones each took 290 us, and so 94.
#[inline(always)]
pub(super) fn pitch(n: usize) -> usize {
    n | 1
}

/// S, T, Q and Z of each lane, n × n and column-major.
pub(super) struct Pair<'a, S: Simd, X: Lane<S>> {
    pub(super) n: usize,
    /// From one column to the next.
    pub(super) ld: usize,
    pub(super) s: &'a mut [Reg<S, X>],
    pub(super) t: &'a mut [Reg<S, X>],
    pub(super) q: &'a mut [Reg<S, X>],
    pub(super) z: &'a mut [Reg<S, X>],
}

impl<S: Simd, X: Lane<S>> Pair<'_, S, X> {
    /// The real pair that a pair of one register for each number is.
    #[inline(always)]
    pub(super) fn real(&mut self) -> Pair<'_, S, Vector<S, X::Real>> {
        let Self { n, ld, s, t, q, z } = self;
        Pair { n: *n, ld: *ld, s, t, q, z }
    }

    #[inline(always)]
    pub(super) fn s(&self, simd: S, i: usize, j: usize) -> X {
        X::load(simd, self.s, i + j * self.ld)
    }

    #[inline(always)]
    pub(super) fn t(&self, simd: S, i: usize, j: usize) -> X {
        X::load(simd, self.t, i + j * self.ld)
    }

    #[inline(always)]
    pub(super) fn set_s(&mut self, i: usize, j: usize, x: X) {
        x.store(self.s, i + j * self.ld);
    }

    #[inline(always)]
    pub(super) fn set_t(&mut self, i: usize, j: usize, x: X) {
        x.store(self.t, i + j * self.ld);
    }

    /// Rows k and k + 1 ← G times them, in S and T from these columns on.
    #[inline(always)]
    pub(super) fn left(
        &mut self,
        simd: S,
        g: Rotation<S, X>,
        k: usize,
        (s_from, t_from): (usize, usize),
    ) {
        let (n, stride) = (self.n, self.ld * X::PARTS);
        g.rows(simd, &mut self.s[s_from * stride..n * stride], self.ld, k);
        g.rows(simd, &mut self.t[t_from * stride..n * stride], self.ld, k);
        g.columns(simd, halves(&mut self.q[k * stride..(k + 2) * stride]), (0, n));
    }

    /// [x y] ← [x y]·Gᴴ for x = column k and y = column k − 1, in so many rows of S and T.
    #[inline(always)]
    pub(super) fn right(
        &mut self,
        simd: S,
        g: Rotation<S, X>,
        k: usize,
        (s_rows, t_rows): (usize, usize),
    ) {
        let (n, stride) = (self.n, self.ld * X::PARTS);
        let both = (k - 1) * stride..(k + 1) * stride;
        let parts = [(&mut *self.s, s_rows), (&mut *self.t, t_rows), (&mut *self.z, n)];
        for (a, rows) in parts {
            let [y, x] = halves(&mut a[both.clone()]);
            g.columns(simd, [x, y], (0, rows));
        }
    }

    /// The rotation of columns k and k − 1 of some lanes that clears T's element (k, k − 1).
    #[inline(always)]
    pub(super) fn restoring(&self, simd: S, lanes: Mask<S, X::Real>, k: usize) -> Rotation<S, X> {
        let (f, g) = (self.t(simd, k, k).conj(), self.t(simd, k, k - 1).conj());
        Rotation::new(simd, f, g, lanes)
    }

    /// [`Self::right`] by the rotation that clears T's element (k, k − 1), in so many rows of S.
    #[inline(always)]
    pub(super) fn restore(&mut self, simd: S, g: Rotation<S, X>, k: usize, s_rows: usize) {
        self.right(simd, g, k, (s_rows, k + 1));
        self.set_t(k, k - 1, X::from_real(Vector::splat(simd, X::Real::ZERO)));
    }

    /// Rows k and k + 1 ← G times them, in S from this column on, and columns rotated in so many rows of S so that T
    /// stays triangular, as it does by itself in lanes where G is the identity.
    ///
    /// The second rotation is known before the first one is done: its square roots and quotients take as long as a
    /// small matrix's rows. f64, with the second one after the first and so: 2.2 and 2.0 us at order 8, 10.3 and 9.2 at 16.
    #[inline(always)]
    pub(super) fn both(
        &mut self,
        simd: S,
        g: Rotation<S, X>,
        k: usize,
        (s_from, s_rows): (usize, usize),
    ) {
        let (n, ld, stride) = (self.n, self.ld, self.ld * X::PARTS);
        g.rows(simd, &mut self.t[k * stride..n * stride], ld, k);
        let restoring = self.restoring(simd, g.lanes, k + 1);
        g.rows(simd, &mut self.s[s_from * stride..n * stride], ld, k);
        g.columns(simd, halves(&mut self.q[k * stride..(k + 2) * stride]), (0, n));
        self.restore(simd, restoring, k + 1, s_rows);
    }

    /// Turns rows so that T's diagonal is real and not negative. None of its elements is nothing beside T.
    #[inline(always)]
    pub(super) fn make_positive(&mut self, simd: S) {
        let (n, stride) = (self.n, self.ld * X::PARTS);
        let one = Vector::splat(simd, X::Real::ONE);
        for i in 0..n {
            let x = self.t(simd, i, i);
            let size = if X::PARTS == 1 { x.re().abs() } else { x.norm_squared().sqrt() };
            let factor = if X::PARTS == 1 {
                X::from_real(one.with_sign(x.re()))
            } else {
                x.conj().scale(one / size)
            };
            for j in i..n {
                self.set_s(i, j, self.s(simd, i, j) * factor);
                self.set_t(i, j, self.t(simd, i, j) * factor);
            }
            self.set_t(i, i, X::from_real(size));
            let back = factor.conj();
            for x in self.q[i * stride..i * stride + n * X::PARTS].chunks_exact_mut(X::PARTS) {
                (X::load(simd, x, 0) * back).store(x, 0);
            }
        }
    }
}
