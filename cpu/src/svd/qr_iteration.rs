//! The SVD of a real upper bidiagonal matrix by implicit QR steps, with shift or without.
//!
//! Demmel and Kahan, "Accurate singular values of bidiagonal matrices" (SIAM J. Sci. Stat. Comput.
//! 11, 1990; LAPACK working note 3). Bulges are chased from the larger end of a block to the smaller
//! one: a block that grows towards its end is turned, which transposes it.

use std::ops::Range;

use lapax_core::Real;
use pulp::{Simd, WithSimd};

use crate::blas::rotations::{Direction, Rotation, rotate, rotation_of, swap_columns};
use crate::divide::blocks::{largest, scale};
use crate::simd::range::power_of_block;

/// Steps per singular value after which the iteration is given up; two are usual.
pub(crate) const STEPS: usize = 60;
/// Roundings of its neighbours, or of a bound of the smallest value, within which an element is negligible.
///
/// Within one, steps on clustered values can go round in circles for ever, as 3 of 11,520
/// random problems did; with 2, 4 and 8 none of 108,000 did. LAPACK's xBDSQR takes 10 to 100.
const ROUNDINGS: f64 = 8.0;
/// Roundings of itself, per row, that a step with shift may cost the smallest value: where its condition is above, steps
/// go without. LAPACK's xBDSQR takes 10 in f32.
const SPREAD_ROUNDINGS: f64 = 10.0;
/// How much larger than a value the parts of its Rayleigh quotient may be together where values are spread.
const CANCELLED: f64 = 4.0;

/// Diagonalises B, with diagonal `d` and `e` above it: `d` becomes the singular values, descending.
///
/// `u` and `v`, n × n where they are given, become U·X and V·Y, with B = X·S·Yᵀ. `Err` is the number
/// of elements above the diagonal that did not converge. B should be of order 1.
pub(crate) struct BidiagonalQr<'a, R> {
    pub(crate) d: &'a mut [R],
    pub(crate) e: &'a mut [R],
    pub(crate) vectors: Option<(&'a mut [R], &'a mut [R])>,
    /// As many pairs as B has rows.
    pub(crate) rotations: &'a mut [Pair<R>],
    /// Steps per singular value after which the iteration is given up.
    pub(crate) steps: usize,
}

/// The rotation of two columns of V and that of two columns of U, which takes its place in B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<R> {
    right: Rotation<R>,
    left: Rotation<R>,
}

impl<R: Real> Pair<R> {
    /// No rotation.
    pub(crate) fn none() -> Self {
        let none = Rotation { c: R::ONE, s: R::ZERO };
        Self { right: none, left: none }
    }
}

impl<R: Real> WithSimd for BidiagonalQr<'_, R> {
    type Output = Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Result<(), usize> {
        let Self { d, e, mut vectors, rotations, steps } = self;
        let n = d.len();
        let mut steps = steps * n;
        // Blocks between zeros above the diagonal, from the last one up, each brought to order 1 by itself.
        let mut end = n;
        while end > 0 {
            let block = block_before(e, end);
            let (of_d, of_e) = (&mut d[block.clone()], &mut e[block.start..end - 1]);
            let power = power_of_block(largest(of_d, of_e));
            scale(of_d, of_e, power);
            let all = (&mut *d, &mut *e);
            let converged =
                diagonalize::<S, R>(all, block.clone(), &mut vectors, rotations, &mut steps);
            scale(&mut d[block.clone()], &mut [], R::ONE / power);
            if !converged {
                return Err(e.iter().filter(|&&e| e != R::ZERO).count());
            }
            end = block.start;
        }
        sort(d, vectors);
        Ok(())
    }
}

/// s ← s + xᵀB·y − s·(xᵀx + yᵀy)/2, the Rayleigh quotient, for each singular value of B = X·diag(s)·Yᵀ: each step left a
/// rounding of the norm in s, but no more than that, squared over the distance to the next one, is left by what is
/// wrong with the vectors. Values of f32 against those of f64, n = 32, largest error over ε·‖A‖: 11.6 without.
///
/// Not where values are spread and the quotient's parts cancel: steps found those to a few roundings of themselves.
pub(crate) fn refine<R: Real>((d, e): (&[R], &[R]), s: &mut [R], x: &[R], y: &[R]) {
    let n = d.len();
    let spread = is_spread(d, e);
    let (zero, half) = (R::ZERO, R::from_f64(0.5));
    let mut previous = R::MAX;
    for ((s, x), y) in s.iter_mut().zip(x.chunks_exact(n)).zip(y.chunks_exact(n)) {
        let (mut sum, mut size, half) = (zero, zero, half * *s);
        for (i, ((&d, &x), &own)) in d.iter().zip(x).zip(y).enumerate() {
            let (this, next) = (d * own, if i + 1 < n { e[i] * y[i + 1] } else { zero });
            sum += x * ((this + next) - half * x) - half * own * own;
            size += x.abs() * (this.abs() + next.abs());
        }
        if !spread || size <= R::from_f64(CANCELLED) * *s {
            *s += sum;
        }
        // Rounding may turn the order of equal ones.
        *s = if *s > previous { previous } else { *s };
        previous = *s;
    }
}

/// The block that ends before row `end`: it begins behind a zero above the diagonal.
pub(crate) fn block_before<R: Real>(e: &[R], end: usize) -> Range<usize> {
    let zero = (0..end - 1).rev().find(|&k| e[k] == R::ZERO);
    zero.map_or(0, |k| k + 1)..end
}

/// Takes what is above the diagonal to zero in the block `whole` of B; false where it did not converge.
#[inline(always)]
fn diagonalize<S: Simd, R: Real>(
    (d, e): (&mut [R], &mut [R]),
    whole: Range<usize>,
    vectors: &mut Option<(&mut [R], &mut [R])>,
    rotations: &mut [Pair<R>],
    steps: &mut usize,
) -> bool {
    let n = d.len();
    let spread_whole = is_spread(&d[whole.clone()], &e[whole.start..whole.end - 1]);
    // The block that was looked at, and whether its values are spread; and the one that was worked on. What follows
    // `last` is done.
    let (mut seen, mut spread) = (0..0, false);
    let (mut block, mut turned) = (0..0, false);
    let mut last = whole.end;
    while last > whole.start + 1 {
        let first = block_before(e, last).start;
        if first + 1 == last {
            last -= 1;
            continue;
        }
        let (of_d, of_e) = (&mut d[first..last], &mut e[first..last - 1]);
        if seen != (first..last) {
            spread = spread_whole && is_spread(of_d, of_e);
            seen = first..last;
        }
        if drop_negligible(of_d, of_e, spread) {
            continue;
        }
        if first < block.start || last > block.end {
            turned = of_d[last - first - 1].abs() > of_d[0].abs();
        }
        block = first..last;
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let rotations = &mut rotations[..last - first - 1];
        if turned {
            of_d.reverse();
            of_e.reverse();
        }
        match if spread { None } else { shift(of_d, of_e) } {
            Some(shift) => shifted_step(of_d, of_e, shift, rotations),
            None => unshifted_step(of_d, of_e, rotations),
        }
        if turned {
            of_d.reverse();
            of_e.reverse();
        }
        let Some((u, v)) = vectors.as_mut() else { continue };
        for (i, &Pair { right, left }) in rotations.iter().enumerate() {
            if turned {
                let column = last - 2 - i;
                rotate::<S, R>(right, u, n, column, Direction::Backward);
                rotate::<S, R>(left, v, n, column, Direction::Backward);
            } else {
                rotate::<S, R>(right, v, n, first + i, Direction::Forward);
                rotate::<S, R>(left, u, n, first + i, Direction::Forward);
            }
        }
    }
    true
}

/// Whether singular values of a block are so far apart that a step with shift would lose digits of the smallest.
///
/// A lower bound of that one is Demmel and Kahan's: the least of μ(0) = |d(0)| and
/// μ(k + 1) = |d(k + 1)|·μ(k)/(μ(k) + |e(k)|).
#[inline(always)]
fn is_spread<R: Real>(d: &[R], e: &[R]) -> bool {
    let mut mu = d[0].abs();
    let (mut least, mut most) = (mu, mu);
    for (d, e) in d[1..].iter().zip(e) {
        mu = next_bound(mu, e.abs(), d.abs());
        least = if mu < least { mu } else { least };
        for size in [d.abs(), e.abs()] {
            most = if size > most { size } else { most };
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let condition = R::from_f64(d.len() as f64 * SPREAD_ROUNDINGS);
    least * condition <= most
}

/// The bound for one row more.
#[inline(always)]
fn next_bound<R: Real>(mu: R, e: R, d: R) -> R {
    if e == R::ZERO { d } else { d * (mu / (mu + e)) }
}

/// Drops what is negligible above the diagonal of a block; whether there was any.
///
/// Where values are spread, that is what changes none of them by more than a few roundings of itself: by Demmel and
/// Kahan's bounds from the first row down, or from the last one up.
#[inline(always)]
fn drop_negligible<R: Real>(d: &[R], e: &mut [R], spread: bool) -> bool {
    let Some(k) = (0..e.len()).rev().find(|&k| negligible(d, e, k)) else { return false };
    if !spread {
        e[k] = R::ZERO;
        return true;
    }
    let (mut dropped, tolerance) = (false, R::from_f64(ROUNDINGS) * R::EPSILON);
    let floor = floor(d.len());
    let small = |e: R, mu: R| e.abs() <= tolerance * mu || e.abs() <= floor;
    let mut mu = d[0].abs();
    for (e, d) in e.iter_mut().zip(&d[1..]) {
        if small(*e, mu) {
            (*e, dropped) = (R::ZERO, true);
        }
        mu = next_bound(mu, e.abs(), d.abs());
    }
    let mut mu = d[e.len()].abs();
    for (e, d) in e.iter_mut().zip(d).rev() {
        if *e != R::ZERO && small(*e, mu) {
            (*e, dropped) = (R::ZERO, true);
        }
        mu = next_bound(mu, e.abs(), d.abs());
    }
    dropped
}

/// Whether e(k) is within a few roundings of its neighbours on the diagonal, or of nothing.
#[inline(always)]
fn negligible<R: Real>(d: &[R], e: &[R], k: usize) -> bool {
    let size = e[k].abs();
    size <= R::from_f64(ROUNDINGS) * R::EPSILON * (d[k].abs() + d[k + 1].abs())
        || size <= floor(d.len())
}

/// What is nothing in a block of order n whose largest element is 1 or more: denormal numbers go round in steps for
/// ever, which round to themselves. LAPACK's xBDSQR has the same.
#[inline(always)]
fn floor<R: Real>(n: usize) -> R {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let squared = (n as f64) * (n as f64);
    R::from_f64(6.0 * squared) * R::SAFE_MIN
}

/// The smaller singular value of the trailing 2×2 block; `None` where it would be lost in the square
/// of d(0), or is zero: a step without shift is then as fast, and accurate for small values too. `None`,
/// too, where an element of the diagonal is nothing beside another: a step with shift goes no further, and
/// one without makes the last e zero.
#[inline(always)]
fn shift<R: Real>(d: &[R], e: &[R]) -> Option<R> {
    let last = e.len();
    let (least, most) = d.iter().fold((R::MAX, R::ZERO), |(least, most), d| {
        let size = d.abs();
        (if size < least { size } else { least }, if size > most { size } else { most })
    });
    if least <= R::EPSILON * most {
        return None;
    }
    let (f, g, h) = (d[last - 1].abs(), e[last - 1].abs(), d[last].abs());
    let (small, large) = if f < h { (f, h) } else { (h, f) };
    if small == R::ZERO {
        return None;
    }
    // σ₁·σ₂ = f·h and (σ₁ ± σ₂)² = (f ± h)² + g².
    let sigma = (large + small).hypot(g) + (large - small).hypot(g);
    let sigma = (large / sigma) * (small + small);
    let relative = sigma / d[0].abs();
    (relative * relative >= R::EPSILON && relative.finite()).then_some(sigma)
}

/// An implicit step with a shift, from the first row down.
#[inline(always)]
fn shifted_step<R: Real>(d: &mut [R], e: &mut [R], shift: R, rotations: &mut [Pair<R>]) {
    let last = e.len();
    // (d(0)² − shift²)/d(0), the first column of BᵀB − shift² over d(0).
    let mut f = (d[0].abs() - shift) * (d[0].signum() + shift / d[0]);
    let mut g = e[0];
    for i in 0..last {
        let (right, r) = rotation_of(f, g);
        if i > 0 {
            e[i - 1] = r;
        }
        f = right.c * d[i] + right.s * e[i];
        e[i] = right.c * e[i] - right.s * d[i];
        g = right.s * d[i + 1];
        d[i + 1] *= right.c;
        let (left, r) = rotation_of(f, g);
        d[i] = r;
        f = left.c * e[i] + left.s * d[i + 1];
        d[i + 1] = left.c * d[i + 1] - left.s * e[i];
        if i + 1 < last {
            g = left.s * e[i + 1];
            e[i + 1] *= left.c;
        }
        rotations[i] = Pair { right, left };
    }
    e[last - 1] = f;
}

/// An implicit step with shift zero, from the first row down, without subtraction. If B is singular,
/// the last e becomes zero.
#[inline(always)]
fn unshifted_step<R: Real>(d: &mut [R], e: &mut [R], rotations: &mut [Pair<R>]) {
    let last = e.len();
    let none = Rotation { c: R::ONE, s: R::ZERO };
    let (mut right, mut left) = (none, none);
    for i in 0..last {
        let r;
        (right, r) = rotation_of(d[i] * right.c, e[i]);
        if i > 0 {
            e[i - 1] = left.s * r;
        }
        (left, d[i]) = rotation_of(left.c * r, d[i + 1] * right.s);
        rotations[i] = Pair { right, left };
    }
    let h = d[last] * right.c;
    d[last] = h * left.c;
    e[last - 1] = h * left.s;
}

/// Makes the singular values positive and descending, and moves their vectors with them.
fn sort<R: Real>(d: &mut [R], mut vectors: Option<(&mut [R], &mut [R])>) {
    let n = d.len();
    for j in 0..n {
        if d[j] < R::ZERO || (d[j] == R::ZERO && d[j].signum() < R::ZERO) {
            d[j] = -d[j];
            if let Some((_, v)) = vectors.as_mut() {
                v[j * n..(j + 1) * n].iter_mut().for_each(|v| *v = -*v);
            }
        }
    }
    for i in 0..n {
        let largest = (i..n).reduce(|largest, j| if d[j] > d[largest] { j } else { largest });
        let largest = largest.unwrap_or(i);
        d.swap(i, largest);
        if let Some((u, v)) = vectors.as_mut() {
            swap_columns(u, n, i, largest);
            swap_columns(v, n, i, largest);
        }
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {

    use super::{BidiagonalQr, Pair, STEPS};
    use crate::divide::verify::tests::random;
    use crate::simd::arch::Arch;

    trials!(clustered_values_converge, singular_matrices_converge);

    /// One large and many almost equal values, on which steps go round in circles that never come
    /// within one rounding of zero.
    fn clustered_values_converge() {
        let (n, mut state) = (129, 8_592_301_916_798_141_468_u64);
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            #[allow(clippy::cast_precision_loss, reason = "53 bits")]
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            f64::EPSILON / 2.0 * (2.0 * uniform - 1.0)
        };
        let mut d: Vec<f64> = (0..n).map(|_| 0.01 + noise()).collect();
        let mut e: Vec<f64> = (1..n).map(|_| noise()).collect();
        (d[0], d[1], e[0]) = (0.06, 0.16, 0.98);
        let squares: f64 = d.iter().chain(&e).map(|x| x * x).sum();
        let rotations = &mut vec![Pair::none(); n];
        let steps = BidiagonalQr { d: &mut d, e: &mut e, vectors: None, rotations, steps: STEPS };
        assert_eq!(Arch::new().dispatch(steps), Ok(()));
        let sum: f64 = d.iter().map(|d| d * d).sum();
        assert!((sum - squares).abs() < 1e-14, "{sum} is not {squares}");
    }

    /// A zero on the diagonal, past which no shift comes; the matrix is singular then, and the least
    /// singular value zero.
    fn singular_matrices_converge() {
        for n in [2, 5, 10, 40] {
            for (seed, tiny) in [0.0, 1e-300, 1e-30, 1e-20, 1e-17].into_iter().enumerate() {
                for at in 0..n {
                    let mut d: Vec<f64> = random(seed).take(n).collect();
                    let mut e: Vec<f64> = random(n + at).take(n - 1).collect();
                    d[at] = tiny;
                    let squares: f64 = d.iter().chain(&e).map(|x| x * x).sum();
                    let rotations = &mut vec![Pair::none(); n];
                    let (d, e) = (&mut d[..], &mut e[..]);
                    let steps = BidiagonalQr { d: &mut *d, e, vectors: None, rotations, steps: 6 };
                    let outcome = Arch::new().dispatch(steps);
                    assert_eq!(outcome, Ok(()), "n = {n}, {tiny} in row {at}");
                    let sum: f64 = d.iter().map(|d| d * d).sum();
                    assert!((sum - squares).abs() < 1e-13 * squares, "{sum} is not {squares}");
                    assert!(d[n - 1] < 1e-14, "{} is not zero", d[n - 1]);
                }
            }
        }
    }
}
