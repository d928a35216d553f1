//! Eigenvalues alone of a real symmetric tridiagonal matrix, by QL steps without square roots.
//!
//! The step of Pal, Walker and Kahan works on the squares of what is beside the diagonal: Parlett, "The
//! symmetric eigenvalue problem" (SIAM, 1998), section 8.15. Shifts are the eigenvalues of the first two or four
//! rows: the nearest one, of two Wilkinson's, is followed by the others at once, each a row behind the one before,
//! since each row of a step waits for the one before it. A block that grows towards its end is turned end for end.

use std::cmp::Ordering;

use lapax_core::Real;

use super::ql::STEPS;

/// The rows from which on a block gets two steps at once, and four. T of random matrices, f64, one core, with
/// two, three, four, six and eight: n = 256 0.38 ms, 0.32, 0.30, 0.36 and 0.41; 512 1.41, 1.15, 1.06, 1.15, 1.27.
const PAIRED: usize = 5;
const FOUR: usize = 12;
/// How many times the smallest of several shifts at once the largest may be: with each, the eigenvalue that comes off
/// first is rounded beside the largest. D·(I + N/4)·D with D from 1 to 10⁻⁶, n = 12, f64: 488 roundings of the smallest
/// eigenvalue without this, and 7 with one shift at a time.
const SPREAD: f64 = 64.0;
/// Steps, of one or several, after which a block of which nothing came off gets one at a time: two may turn in a
/// circle, as where all of the diagonal is zero.
const PATIENCE: usize = 3;

/// Replaces the diagonal `d` of T by its eigenvalues, ascending; the squares of what is beside it are lost.
/// False where some did not converge within `steps` per eigenvalue. T should be of order 1. What is below `rounding`
/// beside the geometric mean of its neighbours is dropped.
pub(crate) fn eigenvalues<R: Real>(
    d: &mut [R],
    squares: &mut [R],
    steps: usize,
    rounding: R,
) -> bool {
    let n = d.len();
    let mut steps = steps * n;
    let spread = R::from_f64(SPREAD) * (rounding / R::EPSILON);
    let mut first = 0;
    // The rows that a decision to turn is for.
    let (mut rows, mut turned) = (n..n, false);
    let mut tried = 0;
    while first + 1 < n {
        let last = (first..n - 1).find(|&k| negligible(d, squares, k, rounding)).unwrap_or(n - 1);
        if last == first {
            first += 1;
            continue;
        }
        if last == first + 1 {
            (d[first], d[last]) = pair(d[first], d[last], squares[first]);
            first += 2;
            continue;
        }
        if steps == 0 {
            return false;
        }
        steps -= 1;
        if first < rows.start || last > rows.end {
            turned = d[last].abs() < d[first].abs();
        }
        tried = if rows == (first..last) { tried + 1 } else { 0 };
        rows = first..last;
        let (d, squares) = (&mut d[first..=last], &mut squares[first..last]);
        if turned {
            d.reverse();
            squares.reverse();
        }
        step(d, squares, tried < PATIENCE, spread);
        if turned {
            d.reverse();
            squares.reverse();
        }
    }
    let finite = d.iter().all(|d| d.finite());
    if finite {
        d.sort_unstable_by(|x, y| x.partial_cmp(y).unwrap_or(Ordering::Equal));
    }
    finite
}

/// Whether a square is below rounding²·|d(k)·d(k + 1)|, or below what matters to a T of order 1.
#[inline(always)]
fn negligible<R: Real>(d: &[R], squares: &[R], k: usize, rounding: R) -> bool {
    squares[k] <= (rounding * d[k].abs()) * (rounding * d[k + 1].abs()) + R::SAFE_MIN
}

/// The eigenvalues of two rows.
fn pair<R: Real>(x: R, y: R, square: R) -> (R, R) {
    let half = R::from_f64(0.5);
    let (sum, difference) = (x + y, x - y);
    let root = (difference * difference + R::from_f64(4.0) * square).sqrt();
    if sum == R::ZERO {
        return (half * root, -half * root);
    }
    // The larger one without cancellation, and the other one by the determinant.
    let larger = half * (sum + root * sum.signum());
    let (large, small) = if x.abs() > y.abs() { (x, y) } else { (y, x) };
    (larger, (large / larger) * small - square / larger)
}

/// Steps on a block, from the last row up, which take the first squares towards zero: several at once if so wanted,
/// with shifts that differ by no more than `spread`.
#[inline(always)]
fn step<R: Real>(d: &mut [R], squares: &mut [R], together: bool, spread: R) {
    if together
        && d.len() >= FOUR
        && let Some(shifts) = four_shifts(d, squares)
        && are_near(&shifts, spread)
    {
        return sweep(d, squares, shifts);
    }
    let shifts = two_shifts(d, squares);
    if together && d.len() >= PAIRED && are_near(&shifts, spread) {
        sweep(d, squares, shifts);
    } else {
        sweep(d, squares, [shifts[0]]);
    }
}

/// Whether no shift is more than so many times another one.
#[inline(always)]
fn are_near<R: Real>(shifts: &[R], spread: R) -> bool {
    let (least, most) = shifts.iter().fold((R::MAX, R::ZERO), |(least, most), shift| {
        let size = shift.abs();
        (if size < least { size } else { least }, if size > most { size } else { most })
    });
    most <= spread * least
}

/// The eigenvalues of the first two rows, the one nearer to the first diagonal element first.
#[inline(always)]
fn two_shifts<R: Real>(d: &[R], squares: &[R]) -> [R; 2] {
    let beside = squares[0].sqrt();
    let half = (d[1] - d[0]) / (beside + beside);
    let shift = d[0] - beside / (half + half.hypot(R::ONE) * half.signum());
    [shift, (d[0] - shift) + d[1]]
}

/// Those of the first four rows, likewise.
fn four_shifts<R: Real>(d: &[R], squares: &[R]) -> Option<[R; 4]> {
    let (mut shifts, mut beside) = ([R::ZERO; 4], [R::ZERO; 3]);
    shifts.copy_from_slice(&d[..4]);
    beside.copy_from_slice(&squares[..3]);
    let distance = |x: &R| (*x - d[0]).abs();
    let found = eigenvalues(&mut shifts, &mut beside, STEPS, R::EPSILON);
    shifts
        .sort_unstable_by(|x, y| distance(x).partial_cmp(&distance(y)).unwrap_or(Ordering::Equal));
    found.then_some(shifts)
}

/// A step with each shift, each a row behind the one before. There are more rows than steps.
#[inline(always)]
fn sweep<R: Real, const COUNT: usize>(d: &mut [R], squares: &mut [R], shifts: [R; COUNT]) {
    let last = squares.len();
    let mut sweeps = [Sweep::new(d, shifts[0]); COUNT];
    for begun in 1..COUNT {
        for (k, sweep) in sweeps[..begun].iter_mut().enumerate() {
            sweep.row(d, squares, last - begun + k);
        }
        sweeps[begun] = Sweep::new(d, shifts[begun]);
    }
    for i in (0..=last - COUNT).rev() {
        for (k, sweep) in sweeps.iter_mut().enumerate() {
            sweep.row(d, squares, i + k);
        }
    }
    for done in 0..COUNT {
        sweeps[done].end(d, squares);
        for (k, sweep) in sweeps[done + 1..].iter_mut().enumerate() {
            sweep.row(d, squares, k);
        }
    }
}

/// A step on its way up.
#[derive(Clone, Copy)]
struct Sweep<R> {
    shift: R,
    c: R,
    s: R,
    gamma: R,
    p: R,
}

impl<R: Real> Sweep<R> {
    #[inline(always)]
    fn new(d: &[R], shift: R) -> Self {
        let gamma = d[d.len() - 1] - shift;
        Self { shift, c: R::ONE, s: R::ZERO, gamma, p: gamma * gamma }
    }

    #[inline(always)]
    fn row(&mut self, d: &mut [R], squares: &mut [R], i: usize) {
        let Self { shift, c, s, gamma, p } = *self;
        let square = squares[i];
        let r = p + square;
        if i + 1 < squares.len() {
            squares[i + 1] = s * r;
        }
        let alpha = d[i];
        let (reciprocal, inverse) = (R::ONE / r, r / p);
        (self.c, self.s) = (p * reciprocal, square * reciprocal);
        self.gamma = if r > R::SAFE_MIN.sqrt() {
            // What is below, by the smaller of s and c, which are rounded by themselves, and without waiting for the
            // quotients.
            let sum = (alpha - shift) + gamma;
            if p > square {
                (alpha - shift) - (square * sum) * reciprocal
            } else {
                (p * sum) * reciprocal - gamma
            }
        } else if r >= R::SAFE_MIN {
            self.c * (alpha - shift) - self.s * gamma
        } else {
            (self.c, self.s) = (R::ONE, R::ZERO);
            alpha - shift
        };
        d[i + 1] = gamma + (alpha - self.gamma);
        // gamma²/c. Where p has lost its last bits, gamma² is multiplied out, so that p/c is known without them.
        self.p = if p > R::SAFE_MIN / R::EPSILON {
            self.gamma * inverse * self.gamma
        } else if r < R::SAFE_MIN {
            self.gamma * self.gamma
        } else {
            let (x, two) = (alpha - shift, R::ONE + R::ONE);
            let p = (self.c * x - two * self.s * gamma) * x + self.s * c * square;
            if p > R::ZERO { p } else { R::ZERO }
        };
    }

    #[inline(always)]
    fn end(self, d: &mut [R], squares: &mut [R]) {
        squares[0] = self.s * self.p;
        d[0] = self.shift + self.gamma;
    }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {

    use lapax_core::Real;

    use super::eigenvalues;
    use crate::blas::rotations::Rotation;
    use crate::divide::verify::tests::random;
    use crate::eigh::ql::{ImplicitQl, STEPS};
    use crate::simd::arch::Arch;

    trials!(same_as_by_rotations, elements_of_all_sizes, what_does_not_converge_is_reported);

    fn compare<R: Real>(d: &[f64], e: &[f64]) {
        let n = d.len();
        let convert = |x: &[f64]| x.iter().map(|&x| R::from_f64(x)).collect::<Vec<R>>();
        let (mut d, mut e) = (convert(d), convert(&e[1..]));
        let mut values = d.clone();
        let mut squares: Vec<R> = e.iter().map(|&e| e * e).collect();
        assert!(eigenvalues(&mut values, &mut squares, STEPS, R::EPSILON), "n = {n}: {d:?} {e:?}");
        let rotations = &mut vec![Rotation { c: R::ONE, s: R::ZERO }; n];
        let (d, e) = (&mut d[..], &mut e[..]);
        let ql = ImplicitQl { d: &mut *d, e, z: None, rotations, steps: STEPS };
        assert_eq!(Arch::new().dispatch(ql), Ok(()));
        for (x, y) in values.iter().zip(&*d) {
            let error = (*x - *y).abs().to_f64();
            assert!(error < 4.0 * n as f64 * R::EPSILON.to_f64(), "{x:?} is not {y:?}");
        }
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    fn same_as_by_rotations() {
        for n in [1_usize, 2, 3, 5, 20, 41, 100] {
            let numbers = |seed| random(seed).take(n).collect::<Vec<f64>>();
            let graded = |base: f64| (0..n).map(|i| base.powf(i as f64)).collect::<Vec<f64>>();
            let turned = |base: f64| graded(base).into_iter().rev().collect::<Vec<f64>>();
            let tiny = |size: f64| random(n).take(n).map(|x| x * size).collect::<Vec<f64>>();
            let wilkinson: Vec<f64> = (0..n).map(|i| (i % 21).abs_diff(10) as f64 / 10.0).collect();
            let glue: Vec<f64> = (0..n).map(|i| if i % 21 == 0 { 1e-9 } else { 0.1 }).collect();
            let split: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 0.0 } else { 0.5 }).collect();
            let (zero, one) = (vec![0.0; n], vec![1.0; n]);
            for (d, e) in [
                (numbers(1), numbers(2)),
                (graded(0.5), graded(0.5)),
                (turned(0.5), turned(0.5)),
                (graded(0.1), graded(0.1)),
                (turned(0.1), turned(0.1)),
                (wilkinson.clone(), glue),
                (wilkinson, split),
                (zero.clone(), one.clone()),
                (one.clone(), one.clone()),
                (zero.clone(), zero.clone()),
                (zero.clone(), numbers(3)),
                (tiny(1e-20), one.clone()),
                (one.clone(), tiny(1e-9)),
                (one.clone(), tiny(1e-160)),
                (tiny(1e-300), tiny(1e-300)),
            ] {
                compare::<f64>(&d, &e);
                compare::<f32>(&d, &e);
            }
        }
    }

    /// Every other element down to where its square underflows, and zeros. The norm is below 1.
    fn elements_of_all_sizes() {
        const TRIALS: usize = 5000;
        let mut numbers = random(7);
        let mut number = || numbers.next().unwrap_or_default();
        for trial in 0..TRIALS {
            let n = 3 + trial % 30;
            let mut elements = |exponent: f64| -> Vec<f64> {
                let mut element = || {
                    let size =
                        if number() > 0.0 { 1.0 } else { (number().abs() * exponent).exp2() };
                    if number() > -0.9 { number() * size / 3.0 } else { 0.0 }
                };
                (0..n).map(|_| element()).collect()
            };
            compare::<f32>(&elements(-126.0), &elements(-126.0));
            compare::<f64>(&elements(-1022.0), &elements(-1022.0));
        }
    }

    fn what_does_not_converge_is_reported() {
        assert!(!eigenvalues(&mut [0.0, 0.0], &mut [f64::NAN], STEPS, 1e-16));
        assert!(!eigenvalues(&mut [0.0, 1.0, 0.0], &mut [1.0, 1.0], 0, 1e-16));
    }
}
