//! The QR iteration with two shifts at a time on a real Hessenberg matrix in each lane: H = Q·T·Qᵀ.
//!
//! Francis, "The QR transformation" (Computer J. 4, 1961 and 1962). Each lane has a block of its own,
//! and a reflector that a lane does not need leaves its bits as they are. Blocks of order 2 are left
//! behind until all lanes are done, and then brought to LAPACK's standard form.

use pulp::Simd;

use super::active::{Block, budget};
use super::two_by_two::{standard, turn};
use crate::lanes::bulge::Bulge;
use crate::lanes::reflector::reflector;
use crate::simd::lane::row;
use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane as _, Mask, Vector};

/// H of each lane, of a norm near 1, n × n and column-major, zero below its first subdiagonal; T on
/// return.
pub(crate) struct Francis<'a, S: Simd, R: LaneReal> {
    pub(super) h: &'a mut [R::Reg<S>],
    pub(super) n: usize,
    /// Q ← Q·G for each transformation H ← Gᵀ·H·G.
    pub(super) q: Option<&'a mut [R::Reg<S>]>,
    /// Whether all of T is wanted, or only its diagonal blocks.
    pub(super) schur: bool,
}

/// The shifts s and s̄, or s and s: the real part and the square of the imaginary part.
#[derive(Clone, Copy)]
struct Shifts<S: Simd, R: LaneReal> {
    re: Vector<S, R>,
    im_squared: Vector<S, R>,
}

impl<S: Simd, R: LaneReal> Francis<'_, S, R> {
    /// Returns the lanes that did not converge.
    #[inline(always)]
    pub(super) fn run(&mut self, simd: S) -> Mask<S, R> {
        let n = self.n;
        let zero = Vector::<S, R>::splat(simd, R::ZERO);
        let mut block = Block::new(simd, n);
        let mut failed = zero.less(zero);
        for left in (0..=budget(n)).rev() {
            let corner = block.split::<Vector<S, R>>(simd, self.h, n, 2);
            let active = block.active(simd);
            if !active.any() {
                break;
            }
            if left == 0 {
                failed = active;
                break;
            }
            let shifts = self.shifts(simd, &block, corner);
            self.sweep(simd, &block, active, shifts);
        }
        for k in 0..n - 1 {
            self.standardise(simd, k);
        }
        failed
    }

    #[inline(always)]
    fn at(&self, simd: S, i: usize, j: usize) -> Vector<S, R> {
        Vector::from_reg(simd, self.h[i + j * self.n])
    }

    /// The shifts of the next sweep, from the last 2 × 2 block [a b; c d].
    #[inline(always)]
    fn shifts(&self, simd: S, block: &Block<S, R>, corner: [Vector<S, R>; 4]) -> Shifts<S, R> {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let zero = splat(R::ZERO);
        let [a, b, c, d] = corner;
        let half = (a - d) * splat(R::from_f64(0.5));
        let product = b * c;
        // The eigenvalues are d + half ± the root of half² + b·c.
        let square = product.add_mul(half, half);
        let pair = square.less(zero);
        let sum = half + Vector::choose(pair, zero, square).sqrt().with_sign(half);
        // Of two real ones, twice the one nearer to d.
        let nothing = sum.equal(zero);
        let nearer = d - Vector::choose(nothing, zero, product)
            / Vector::choose(nothing, splat(R::ONE), sum);
        let mut shifts = Shifts {
            re: Vector::choose(pair, d + half, nearer),
            im_squared: Vector::choose(pair, -square, zero),
        };
        let [top, bottom] = block.exceptional(simd);
        if top.or(bottom).any() {
            let other = self.exceptional(simd, block, top);
            let which = top.or(bottom);
            shifts.re = Vector::choose(which, other.re, shifts.re);
            shifts.im_squared = Vector::choose(which, other.im_squared, shifts.im_squared);
        }
        shifts
    }

    /// Wilkinson and Reinsch's exceptional shifts as in LAPACK's xLAHQR: the eigenvalues of [x −0.4375·s;
    /// s x], x = corner + 0.75·s, from the top of the block in some lanes, else from its bottom.
    #[inline(never)]
    fn exceptional(&self, simd: S, block: &Block<S, R>, top: Mask<S, R>) -> Shifts<S, R> {
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (mut corner, mut size) = (splat(R::ZERO), splat(R::ZERO));
        for i in 0..self.n {
            let at = splat(row(i));
            let first = top.and(at.equal(block.first));
            let last = top.not().and(at.equal(block.last));
            if i + 2 < self.n {
                let sum = self.at(simd, i + 1, i).abs() + self.at(simd, i + 2, i + 1).abs();
                size = Vector::choose(first, sum, size);
            }
            if i >= 2 {
                let sum = self.at(simd, i, i - 1).abs() + self.at(simd, i - 1, i - 2).abs();
                size = Vector::choose(last, sum, size);
            }
            corner = Vector::choose(first.or(last), self.at(simd, i, i), corner);
        }
        Shifts {
            re: corner.add_mul(splat(R::from_f64(0.75)), size),
            im_squared: size * size * splat(R::from_f64(0.4375)),
        }
    }

    /// A multiple of the first column of (H − s)·(H − s̄), for the H from row and column k on.
    #[inline(always)]
    fn first_column(&self, simd: S, k: usize, shifts: Shifts<S, R>) -> [Vector<S, R>; 3] {
        let Shifts { re, im_squared } = shifts;
        let at = |i: usize, j: usize| self.at(simd, k + i, k + j);
        let one = Vector::<S, R>::splat(simd, R::ONE);
        let (a, below) = (at(0, 0) - re, at(1, 0));
        let size = a.abs().max(below.abs()).max(im_squared.sqrt());
        let size = Vector::choose(Vector::splat(simd, R::ZERO).less(size), size, one);
        let scale = one / size;
        let (a_scaled, below_scaled) = (a * scale, below * scale);
        [
            (im_squared * scale).add_mul(a, a_scaled).add_mul(at(0, 1), below_scaled),
            below_scaled * (a + (at(1, 1) - re)),
            below_scaled * at(2, 1),
        ]
    }

    /// One sweep: a bulge of order 3 from the first row of each block to its end.
    #[inline(always)]
    fn sweep(&mut self, simd: S, block: &Block<S, R>, active: Mask<S, R>, shifts: Shifts<S, R>) {
        let n = self.n;
        let splat = |x| Vector::<S, R>::splat(simd, x);
        let (zero, one) = (splat(R::ZERO), splat(R::ONE));
        let (first, last) = block.rows(simd, active, n);
        let (top, right) = if self.schur { (0, n) } else { (first, last + 1) };
        for k in first..last {
            let at = splat(row(k));
            let begin = active.and(at.equal(block.first));
            let inside = active.and(block.first.less_or_equal(at)).and(at.less(block.last));
            let three = k + 2 < n;
            let mut x = [one, zero, zero];
            if k > first {
                x[0] = Vector::choose(inside, self.at(simd, k, k - 1), one);
                x[1] = Vector::choose(inside, self.at(simd, k + 1, k - 1), zero);
                if three {
                    // Zero where the block ends before.
                    x[2] = Vector::choose(inside, self.at(simd, k + 2, k - 1), zero);
                }
            }
            if three && begin.any() {
                for (x, start) in x.iter_mut().zip(self.first_column(simd, k, shifts)) {
                    *x = Vector::choose(begin, start, *x);
                }
            }
            let mut tail = [x[1].reg(), x[2].reg()];
            let (beta, tau) = reflector(simd, x[0], &mut tail);
            if k > first {
                let on = inside.and(begin.not());
                let kept = self.at(simd, k, k - 1);
                let column = &mut self.h[(k - 1) * n..k * n];
                column[k] = Vector::choose(on, beta, kept).reg();
                column[k + 1] = zero.reg();
                if three {
                    column[k + 2] = zero.reg();
                }
            }
            let v = tail.map(|v| Vector::from_reg(simd, v));
            let row_three = inside.and((at + one).less(block.last));
            let bulge = Bulge { tau, v, lanes: inside, three: row_three };
            if three {
                bulge.rows(simd, &mut self.h[k * n..right * n], n, k);
                bulge.columns(simd, self.h, n, k, (top, (k + 4).min(last + 1)));
                if let Some(q) = &mut self.q {
                    bulge.columns(simd, q, n, k, (0, n));
                }
            } else {
                bulge.two_rows(simd, &mut self.h[k * n..right * n], n, k);
                bulge.two_columns(simd, self.h, n, k, (top, n));
                if let Some(q) = &mut self.q {
                    bulge.two_columns(simd, q, n, k, (0, n));
                }
            }
        }
    }

    /// Brings the block of rows k and k + 1 to standard form in the lanes that have one there.
    #[inline(always)]
    fn standardise(&mut self, simd: S, k: usize) {
        let (n, zero) = (self.n, Vector::<S, R>::splat(simd, R::ZERO));
        let below = self.at(simd, k + 1, k);
        let coupled = below.equal(zero).not();
        if !coupled.any() {
            return;
        }
        let old =
            [self.at(simd, k, k), self.at(simd, k, k + 1), below, self.at(simd, k + 1, k + 1)];
        let [new @ .., c, s] = standard(simd, old);
        let rotation = Rotation { c, s, lanes: coupled };
        for j in k + 2..if self.schur { n } else { 0 } {
            let (x, y) = rotation.turn(self.at(simd, k, j), self.at(simd, k + 1, j));
            self.h[k + j * n] = x.reg();
            self.h[k + 1 + j * n] = y.reg();
        }
        if self.schur {
            rotation.columns(simd, &mut self.h[k * n..(k + 2) * n], k);
        }
        if let Some(q) = &mut self.q {
            rotation.columns(simd, &mut q[k * n..(k + 2) * n], n);
        }
        let places = [k + k * n, k + (k + 1) * n, k + 1 + k * n, k + 1 + (k + 1) * n];
        for ((place, old), new) in places.into_iter().zip(old).zip(new) {
            self.h[place] = Vector::choose(coupled, new, old).reg();
        }
    }
}

/// The rotation [c s; −s c] of some lanes.
#[derive(Clone, Copy)]
struct Rotation<S: Simd, R: LaneReal> {
    c: Vector<S, R>,
    s: Vector<S, R>,
    lanes: Mask<S, R>,
}

impl<S: Simd, R: LaneReal> Rotation<S, R> {
    #[inline(always)]
    fn turn(self, x: Vector<S, R>, y: Vector<S, R>) -> (Vector<S, R>, Vector<S, R>) {
        let (p, q) = turn(self.c, self.s, x, y);
        (Vector::choose(self.lanes, p, x), Vector::choose(self.lanes, q, y))
    }

    /// Two columns turned, in the first `rows` of their rows.
    #[inline(always)]
    fn columns(self, simd: S, columns: &mut [R::Reg<S>], rows: usize) {
        let (left, right) = columns.split_at_mut(columns.len() / 2);
        for (x, y) in left[..rows].iter_mut().zip(&mut right[..rows]) {
            let (p, q) = self.turn(Vector::from_reg(simd, *x), Vector::from_reg(simd, *y));
            *x = p.reg();
            *y = q.reg();
        }
    }
}
