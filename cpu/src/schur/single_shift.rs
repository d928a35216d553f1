//! The QR iteration of complex matrices, with one shift at a time: H = Q·T·Qᴴ, T triangular.
//!
//! Wilkinson's shift, and subdiagonal elements that are kept real, as in LAPACK's xLAHQR (Francis,
//! Computer J. 4, 1961 and 1962; exceptional shifts by Wilkinson and Reinsch). So eigenvalues come
//! in LAPACK's order along the diagonal, which one of order 2 takes as a convention.

use std::ops::Range;

use lapax_core::{Real as _, Scalar as _};

use super::bulge::Bulge;
use super::francis::Iteration;
use super::two_by_two::square_root;
use crate::Scalar;
use crate::blas::householder::reflector;

impl<T: Scalar> Iteration<'_, T> {
    /// Makes the subdiagonal elements of a block real.
    #[inline(always)]
    pub(crate) fn make_real(&mut self, block: Range<usize>) {
        for i in block.start + 1..block.end {
            self.make_element_real(i, &block);
        }
    }

    /// Makes the element before the diagonal of row i real, and not negative if it was not.
    #[inline(always)]
    fn make_element_real(&mut self, i: usize, block: &Range<usize>) {
        let x = self.h[i + (i - 1) * self.n];
        if x.im() != T::Real::ZERO {
            let size = x.abs();
            self.h[i + (i - 1) * self.n] = T::from_real(size);
            let phase = x.unscale(size);
            self.turn(i, phase, block);
            if i + 1 < block.end {
                self.h[i + 1 + i * self.n] *= phase;
            }
        }
    }

    /// H ← Dᴴ·H·D for a D that is the identity but for `phase` in row i; of H what is above the
    /// diagonal.
    #[inline(always)]
    fn turn(&mut self, i: usize, phase: T, block: &Range<usize>) {
        let (right, top) = (self.right(block.end), self.top(block.start));
        let Self { h, n, q, rows, .. } = self;
        let adjoint = phase.conj();
        for column in h[(i + 1) * *n..right.max(i + 1) * *n].chunks_exact_mut(*n) {
            column[i] *= adjoint;
        }
        h[top + i * *n..i + i * *n].iter_mut().for_each(|x| *x *= phase);
        if let Some(q) = q {
            q[i * *rows..(i + 1) * *rows].iter_mut().for_each(|x| *x *= phase);
        }
    }

    /// The shift of the next sweep over a block, after so many that did not split it.
    #[inline(always)]
    pub(crate) fn shift(&self, block: Range<usize>, stalled: usize) -> T {
        let (h, n) = (&*self.h, self.n);
        let (start, last) = (block.start, block.end - 1);
        let at = |i: usize, j: usize| h[i + j * n];
        if stalled.is_multiple_of(10) {
            // From the bottom and from the top by turns.
            let (corner, next) = if stalled.is_multiple_of(20) {
                (at(last, last), at(last, last - 1))
            } else {
                (at(start, start), at(start + 1, start))
            };
            return corner + T::from_real(next.re().abs() * T::Real::from_f64(0.75));
        }
        let wide = |x: T| T::Complex::from_parts(x.re(), x.im());
        let corner = wide(at(last, last));
        let coupling =
            square_root::<T>(wide(at(last - 1, last))) * square_root::<T>(wide(at(last, last - 1)));
        if coupling.abs1() == T::Real::ZERO {
            return at(last, last);
        }
        // corner − u²/(x ± √(x² + u²)), the sign that makes the divisor larger.
        let x = (wide(at(last - 1, last - 1)) - corner).scale(T::Real::from_f64(0.5));
        let size = if coupling.abs1() > x.abs1() { coupling.abs1() } else { x.abs1() };
        let (a, b) = (x.unscale(size), coupling.unscale(size));
        let mut root = square_root::<T>(a * a + b * b);
        // Of the scaled numbers: products of tiny ones would vanish, and their sign with them.
        if a.re() * root.re() + a.im() * root.im() < T::Real::ZERO {
            root = -root;
        }
        let shift = corner - coupling * coupling.divide(x + root.scale(size));
        T::from_parts(shift.re(), shift.im())
    }

    /// One sweep: a bulge of order 2 from row `start`, or a later one where that does, to the end.
    #[inline(always)]
    pub(crate) fn single_sweep(&mut self, block: Range<usize>, shift: T) {
        let Range { start, end: stop } = block.clone();
        let (right, top, n) = (self.right(stop), self.top(start), self.n);
        let (mut begin, mut v) = (start, [T::ZERO; 2]);
        for k in (start..stop - 1).rev() {
            begin = k;
            let at = |i: usize, j: usize| self.h[i + j * n];
            let (here, below) = (at(k, k) - shift, at(k + 1, k).re());
            let size = here.abs1() + below.abs();
            v = [here.unscale(size), T::from_real(below / size)];
            if k == start {
                break;
            }
            let ulp = T::Real::EPSILON + T::Real::EPSILON;
            let around = at(k, k).abs1() + at(k + 1, k + 1).abs1();
            if at(k, k - 1).re().abs() * v[1].abs1() <= ulp * (v[0].abs1() * around) {
                break;
            }
        }
        for k in begin..stop - 1 {
            let column = k.wrapping_sub(1);
            if k > begin {
                let at = k + column * n;
                v.copy_from_slice(&self.h[at..at + 2]);
            }
            let [head, tail @ ..] = &mut v;
            let reflector = reflector::<pulp::Scalar, T>(*head, tail);
            if k > begin {
                let at = k + column * n;
                self.h[at] = T::from_real(reflector.beta);
                self.h[at + 1] = T::ZERO;
            }
            let bulge = Bulge { k, tau: reflector.tau, v: v[1], w: T::ZERO };
            bulge.rows(&mut self.h[..right * n], n, 2);
            bulge.columns(self.h, n, top..(k + 3).min(stop), 2);
            if let Some(q) = &mut self.q {
                bulge.columns(q, self.rows, 0..self.rows, 2);
            }
            if k == begin && begin > start {
                self.keep_real(begin, T::ONE - reflector.tau, &block);
            }
        }
        self.make_element_real(stop - 1, &block);
    }

    /// After a reflector that began at row `begin` inside of a block, where it multiplied the
    /// element before the diagonal by the conjugate of `factor`: makes that one real again.
    #[inline(always)]
    fn keep_real(&mut self, begin: usize, factor: T, block: &Range<usize>) {
        let (n, stop) = (self.n, block.end);
        let size = factor.abs();
        if size == T::Real::ZERO {
            return;
        }
        let phase = factor.unscale(size).conj();
        let before = &mut self.h[begin + (begin - 1) * n];
        *before = before.scale(size);
        self.h[begin + 1 + begin * n] *= phase;
        if begin + 2 < stop {
            self.h[begin + 2 + (begin + 1) * n] *= phase.conj();
        }
        for j in (begin..stop).filter(|&j| j != begin + 1) {
            self.turn(j, phase, block);
        }
    }
}
