//! Eigenvalues alone of a real symmetric tridiagonal matrix in each lane, by QL steps without square roots, in f64.
//!
//! The step is [`crate::eigh::root_free_ql`]'s, of Pal, Walker and Kahan. For matrices of f32: each step leaves a rounding of
//! the norm, which f64's do not show, squares of f32 neither overflow nor underflow there, and two registers of f64 at once,
//! which wait for a quotient but for no root, take no longer than one of f32 that waits for both.

use lapax_core::Real as _;
use lapax_cpu_macros::apart;
use pulp::Simd;

use crate::simd::lane::{flags, row};
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::vector::{Lane as _, MAX_LANES, Mask, Vector};

type Reg<S> = <f64 as Packed>::Reg<S>;
type Number<S> = Vector<S, f64>;

/// Sweeps that a row may take before its lane counts as not converged, as in LAPACK.
const SWEEPS: usize = 30;
/// The part of a rounding of f32, beside its neighbours, that an element may amount to to be dropped.
const ROUNDING: f64 = 0.25;

/// Replaces the diagonals `d` of matrices of order n by their eigenvalues, in no order; returns those that did not
/// converge. `wide` is scratch, with two numbers for each of `d`'s.
#[apart]
pub(crate) fn eigenvalues<S: Simd, R: LaneReal>(
    simd: S,
    d: &mut [R::Reg<S>],
    e: &[R::Reg<S>],
    wide: &mut [Reg<S>],
) -> [bool; MAX_LANES] {
    if R::lanes::<S>() == 2 * f64::lanes::<S>() {
        of_registers::<S, R, 2>(simd, d, e, wide)
    } else {
        of_registers::<S, R, 1>(simd, d, e, wide)
    }
}

/// The same where a register of R has as many numbers as COUNT of f64.
#[inline(always)]
fn of_registers<S: Simd, R: LaneReal, const COUNT: usize>(
    simd: S,
    d: &mut [R::Reg<S>],
    e: &[R::Reg<S>],
    wide: &mut [Reg<S>],
) -> [bool; MAX_LANES] {
    let n = d.len();
    let (wide_d, squares) = wide[..2 * n * COUNT].split_at_mut(n * COUNT);
    let d_numbers: &mut [R] = bytemuck::cast_slice_mut(d);
    let numbers: &mut [f64] = bytemuck::cast_slice_mut(&mut *wide_d);
    for (to, from) in numbers.iter_mut().zip(&*d_numbers) {
        *to = from.to_f64();
    }
    let (numbers, last): (&mut [f64], _) =
        bytemuck::cast_slice_mut(&mut *squares).split_at_mut((n - 1) * R::lanes::<S>());
    for (to, from) in numbers.iter_mut().zip(bytemuck::cast_slice::<R::Reg<S>, R>(e)) {
        let from = from.to_f64();
        *to = from * from;
    }
    last.fill(0.0);
    let epsilon = ROUNDING * R::EPSILON.to_f64();
    let mut steps = Steps::<S, COUNT> { simd, d: wide_d, squares, epsilon };
    let failed = steps.diagonalize();
    for (to, from) in d_numbers.iter_mut().zip(bytemuck::cast_slice::<Reg<S>, f64>(wide_d)) {
        *to = R::from_f64(*from);
    }
    let mut all = [false; MAX_LANES];
    for (all, failed) in all.chunks_mut(f64::lanes::<S>()).zip(failed) {
        all.copy_from_slice(&flags(simd, failed)[..all.len()]);
    }
    all
}

/// Matrices of COUNT registers of lanes.
struct Steps<'a, S: Simd, const COUNT: usize> {
    simd: S,
    /// The diagonals, and the squares of what is beside them; the last one is scratch.
    d: &'a mut [Reg<S>],
    squares: &'a mut [Reg<S>],
    epsilon: f64,
}

/// What a sweep carries from row to row.
#[derive(Clone, Copy)]
struct Sweep<S: Simd> {
    shift: Number<S>,
    c: Number<S>,
    s: Number<S>,
    gamma: Number<S>,
    p: Number<S>,
}

impl<S: Simd, const COUNT: usize> Steps<'_, S, COUNT> {
    #[inline(always)]
    fn splat(&self, x: f64) -> Number<S> {
        Vector::splat(self.simd, x)
    }

    #[inline(always)]
    fn d(&self, i: usize, k: usize) -> Number<S> {
        Vector::from_reg(self.simd, self.d[i * COUNT + k])
    }

    #[inline(always)]
    fn square(&self, i: usize, k: usize) -> Number<S> {
        Vector::from_reg(self.simd, self.squares[i * COUNT + k])
    }

    #[inline(always)]
    fn diagonalize(&mut self) -> [Mask<S, f64>; COUNT] {
        let n = self.d.len() / COUNT;
        let zero = self.splat(0.0);
        let mut failed = [zero.less(zero); COUNT];
        for l in 0..n - 1 {
            let mut sweeps = 0;
            loop {
                let ends = self.block_ends(l);
                let at = self.splat(row(l));
                let (mut active, mut some) = ([zero.less(zero); COUNT], false);
                for k in 0..COUNT {
                    active[k] = at.less(ends[k]).and(failed[k].not());
                    some |= active[k].any();
                }
                if !some {
                    break;
                }
                if sweeps == SWEEPS {
                    for (failed, active) in failed.iter_mut().zip(active) {
                        *failed = failed.or(active);
                    }
                    break;
                }
                sweeps += 1;
                self.sweep(l, ends, active);
            }
        }
        failed
    }

    /// The last rows of the blocks that begin with row l: the first whose square is negligible beside its neighbours'
    /// product.
    #[inline(always)]
    fn block_ends(&self, l: usize) -> [Number<S>; COUNT] {
        let n = self.d.len() / COUNT;
        let (epsilon, floor) = (self.splat(self.epsilon), self.splat(f64::SAFE_MIN));
        let mut ends = [self.splat(row(n - 1)); COUNT];
        let mut below = ends;
        for (k, below) in below.iter_mut().enumerate() {
            *below = self.d(n - 1, k).abs() * epsilon;
        }
        for i in (l..n - 1).rev() {
            let at = self.splat(row(i));
            for k in 0..COUNT {
                let own = self.d(i, k).abs() * epsilon;
                let bound = (own * below[k]).max(floor);
                ends[k] = Vector::choose(self.square(i, k).less_or_equal(bound), at, ends[k]);
                below[k] = own;
            }
        }
        ends
    }

    /// One step of rows l to the ends in the lanes that are `active`, with Wilkinson's shift.
    #[inline(always)]
    fn sweep(&mut self, l: usize, ends: [Number<S>; COUNT], active: [Mask<S, f64>; COUNT]) {
        let n = self.d.len() / COUNT;
        let (zero, one) = (self.splat(0.0), self.splat(1.0));
        let (floor, least) = (self.splat(f64::SAFE_MIN / f64::EPSILON), self.splat(f64::SAFE_MIN));
        let begun = Sweep { shift: zero, c: one, s: zero, gamma: zero, p: zero };
        let mut sweeps = [begun; COUNT];
        for (k, sweep) in sweeps.iter_mut().enumerate() {
            let beside = Vector::choose(active[k], self.square(l, k), one).sqrt();
            let g = (self.d(l + 1, k) - self.d(l, k)) / (beside + beside);
            // Beyond the root of the largest number it is infinite, and the shift d(l).
            let root = one.add_mul(g, g).sqrt();
            sweep.shift = self.d(l, k) - beside / (g + root.with_sign(g));
            let mut last = self.d(l, k);
            for i in l + 1..n {
                last = Vector::choose(ends[k].equal(self.splat(row(i))), self.d(i, k), last);
            }
            sweep.gamma = last - sweep.shift;
            sweep.p = sweep.gamma * sweep.gamma;
        }
        for i in (l..n - 1).rev() {
            let at = self.splat(row(i));
            let (mut on, mut some) = (active, false);
            for k in 0..COUNT {
                on[k] = active[k].and(at.less(ends[k]));
                some |= on[k].any();
            }
            if !some {
                continue;
            }
            for k in 0..COUNT {
                let (on, Sweep { shift, c, s, gamma, p }) = (on[k], sweeps[k]);
                let (alpha, square) = (self.d(i, k), self.square(i, k));
                let r = (p + square).max(least);
                // Two quotients that do not wait for each other.
                let (reciprocal, inverse) = (one / r, r / p);
                let (cosine, sine) = (p * reciprocal, square * reciprocal);
                let next = (cosine * (alpha - shift)).sub_mul(sine, gamma);
                let above = Vector::choose(on, s * r, self.square(i + 1, k));
                self.squares[(i + 1) * COUNT + k] = above.reg();
                let value = gamma + (alpha - next);
                self.d[(i + 1) * COUNT + k] = Vector::choose(on, value, self.d(i + 1, k)).reg();
                // gamma²/c, or what it tends to where c does to zero.
                let p = Vector::choose(floor.less(p), next * inverse * next, c * square);
                let swept = Sweep { shift, c: cosine, s: sine, gamma: next, p };
                sweeps[k] = swept.or(on, sweeps[k]);
            }
        }
        for (k, Sweep { shift, s, gamma, p, .. }) in sweeps.into_iter().enumerate() {
            let (d, square) = (self.d(l, k), self.square(l, k));
            self.d[l * COUNT + k] = Vector::choose(active[k], shift + gamma, d).reg();
            self.squares[l * COUNT + k] = Vector::choose(active[k], s * p, square).reg();
        }
    }
}

impl<S: Simd> Sweep<S> {
    /// This one in some lanes, and another one in the others.
    #[inline(always)]
    fn or(self, lanes: Mask<S, f64>, other: Self) -> Self {
        let choose = |a, b| Vector::choose(lanes, a, b);
        Self {
            shift: self.shift,
            c: choose(self.c, other.c),
            s: choose(self.s, other.s),
            gamma: choose(self.gamma, other.gamma),
            p: choose(self.p, other.p),
        }
    }
}
