//! The QR iteration with one shift at a time on a complex Hessenberg matrix in each lane: H = Q·T·Qᴴ.
//!
//! Each lane has a block of its own, and a rotation that a lane does not need leaves its bits as they
//! are.

use lapax_core::{Real as _, Scalar as _};
use pulp::Simd;

use super::active::{Block, budget};
use crate::lanes::rotation::{Rotation, halves};
use crate::simd::lane::row;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// H of each lane, of a norm near 1, n × n and column-major, zero below its first subdiagonal; T on
/// return.
pub(crate) struct SingleShift<'a, S: Simd, X: Lane<S>> {
    pub(super) h: &'a mut [Reg<S, X>],
    pub(super) n: usize,
    /// Q ← Q·Gᴴ for each transformation H ← G·H·Gᴴ.
    pub(super) q: Option<&'a mut [Reg<S, X>]>,
    /// Whether all of T is wanted, or only its diagonal.
    pub(super) schur: bool,
}

impl<S: Simd, X: Lane<S>> SingleShift<'_, S, X> {
    /// Returns the lanes that did not converge.
    #[inline(always)]
    pub(super) fn run(&mut self, simd: S) -> Mask<S, X::Real> {
        let n = self.n;
        let zero = Vector::<S, X::Real>::splat(simd, X::Real::ZERO);
        let mut block = Block::new(simd, n);
        let mut failed = zero.less(zero);
        for left in (0..=budget(n)).rev() {
            let corner = block.split::<X>(simd, self.h, n, 1);
            let active = block.active(simd);
            if !active.any() {
                break;
            }
            if left == 0 {
                failed = active;
                break;
            }
            let mut shift = wilkinson(simd, corner);
            let [top, bottom] = block.exceptional(simd);
            let which = top.or(bottom);
            if which.any() {
                shift = X::choose(which, self.exceptional(simd, &block, top), shift);
            }
            self.sweep(simd, &block, active, shift);
        }
        failed
    }

    #[inline(always)]
    fn at(&self, simd: S, i: usize, j: usize) -> X {
        X::load(simd, self.h, i + j * self.n)
    }

    /// xLAHQR's exceptional shift, from the top of the block in some lanes, else from its bottom.
    #[inline(never)]
    fn exceptional(&self, simd: S, block: &Block<S, X::Real>, top: Mask<S, X::Real>) -> X {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let mut shift = X::from_real(splat(X::Real::ZERO));
        for i in 0..self.n {
            let at = splat(row(i));
            let first = top.and(at.equal(block.first));
            let last = top.not().and(at.equal(block.last));
            let corner = self.at(simd, i, i);
            let factor = splat(X::Real::from_f64(0.75));
            if i + 1 < self.n {
                let size = self.at(simd, i + 1, i).abs1() * factor;
                shift = X::choose(first, corner + X::from_real(size), shift);
            }
            if i >= 1 {
                let size = self.at(simd, i, i - 1).abs1() * factor;
                shift = X::choose(last, corner + X::from_real(size), shift);
            }
        }
        shift
    }

    /// One sweep: a bulge from the first row of each block to its end.
    #[inline(always)]
    fn sweep(&mut self, simd: S, block: &Block<S, X::Real>, active: Mask<S, X::Real>, shift: X) {
        let n = self.n;
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let nothing = X::from_real(splat(X::Real::ZERO));
        let (first, last) = block.rows(simd, active, n);
        let (top, right) = if self.schur { (0, n) } else { (first, last + 1) };
        for k in first..last {
            let at = splat(row(k));
            let begin = active.and(at.equal(block.first));
            let inside = active.and(block.first.less_or_equal(at)).and(at.less(block.last));
            let on = inside.and(begin.not());
            let start = self.at(simd, k, k) - shift;
            let below = self.at(simd, k + 1, k);
            let (mut f, mut g) =
                (X::choose(begin, start, nothing), X::choose(begin, below, nothing));
            if k > first {
                f = X::choose(on, self.at(simd, k, k - 1), f);
                g = X::choose(on, self.at(simd, k + 1, k - 1), g);
            }
            let rotation = Rotation::new(simd, f, g, inside);
            if k > first {
                let (x, _) = rotation.rotate(f, g);
                X::choose(on, x, self.at(simd, k, k - 1)).store(self.h, k + (k - 1) * n);
                nothing.store(self.h, k + 1 + (k - 1) * n);
            }
            rotation.rows(simd, &mut self.h[k * n * X::PARTS..right * n * X::PARTS], n, k);
            let columns = k * n * X::PARTS..(k + 2) * n * X::PARTS;
            let rows = (top, (k + 3).min(last + 1));
            rotation.columns(simd, halves(&mut self.h[columns.clone()]), rows);
            if let Some(q) = &mut self.q {
                rotation.columns(simd, halves(&mut q[columns]), (0, n));
            }
        }
    }
}

/// The eigenvalue of [a b; c d] nearer to d.
#[inline(always)]
pub(crate) fn wilkinson<S: Simd, X: Lane<S>>(simd: S, [a, b, c, d]: [X; 4]) -> X {
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
    let difference = a - d;
    let size = difference.abs1().max(b.abs1()).max(c.abs1());
    let size = Vector::choose(zero.less(size), size, one);
    let scale = one / size;
    let half = difference.scale(scale * splat(X::Real::from_f64(0.5)));
    let product = b.scale(scale) * c.scale(scale);
    // The eigenvalues are d + half ± the root of half² + b·c, and their product less d's is −b·c.
    let root = square_root(simd, product.add_mul(half, half));
    let along = (half.re() * root.re()).add_mul(half.im(), root.im());
    let sum = half + X::choose(along.less(zero), -root, root);
    let square = sum.norm_squared();
    let some = zero.less(square);
    let quotient = (product * sum.conj()).scale(size / Vector::choose(some, square, one));
    d - X::choose(some, quotient, X::from_real(zero))
}

/// The square root, with a real part that is not negative, of a number of size near 1 or less.
#[inline(always)]
fn square_root<S: Simd, X: Lane<S>>(simd: S, z: X) -> X {
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let (zero, one, half) =
        (splat(X::Real::ZERO), splat(X::Real::ONE), splat(X::Real::from_f64(0.5)));
    let larger = ((z.re().abs() + z.norm_squared().sqrt()) * half).sqrt();
    let smaller = z.im() * half / Vector::choose(larger.equal(zero), one, larger);
    let right = zero.less_or_equal(z.re());
    X::from_parts(
        Vector::choose(right, larger, smaller.abs()),
        Vector::choose(right, smaller, larger.with_sign(z.im())),
    )
}
