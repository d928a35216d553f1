//! Eigenvalues alone of a real symmetric tridiagonal matrix, by QL steps without square roots.
//!
//! The step of Pal, Walker and Kahan works on the squares of what is beside the diagonal: Parlett, "The
//! symmetric eigenvalue problem" (SIAM, 1998), section 8.15. Shifts are Wilkinson's; a block that grows
//! towards its end is turned end for end.

use lapax_core::Real;

use crate::implicit_ql::sort;

/// Replaces the diagonal `d` of T by its eigenvalues, ascending; the squares of what is beside it are lost.
/// False where some did not converge within `steps` per eigenvalue. T should be of order 1.
pub(crate) fn eigenvalues<R: Real>(d: &mut [R], squares: &mut [R], steps: usize) -> bool {
    let n = d.len();
    let mut steps = steps * n;
    let mut first = 0;
    // The rows that a decision to turn is for.
    let (mut rows, mut turned) = (n..n, false);
    while first + 1 < n {
        let last = (first..n - 1).find(|&k| negligible(d, squares, k)).unwrap_or(n - 1);
        if last == first {
            first += 1;
            continue;
        }
        if steps == 0 {
            return false;
        }
        steps -= 1;
        if first < rows.start || last > rows.end {
            turned = d[last].abs() < d[first].abs();
        }
        rows = first..last;
        let (d, squares) = (&mut d[first..=last], &mut squares[first..last]);
        if turned {
            d.reverse();
            squares.reverse();
        }
        step(d, squares);
        if turned {
            d.reverse();
            squares.reverse();
        }
    }
    sort(d, None);
    true
}

/// Whether a square is below ε²·|d(k)·d(k + 1)|, or below what matters to a T of order 1.
#[inline(always)]
fn negligible<R: Real>(d: &[R], squares: &[R], k: usize) -> bool {
    squares[k] <= (R::EPSILON * d[k].abs()) * (R::EPSILON * d[k + 1].abs()) + R::SAFE_MIN
}

/// One step on a block, from the last row up, which takes the first square towards zero.
#[inline(always)]
fn step<R: Real>(d: &mut [R], squares: &mut [R]) {
    let last = squares.len();
    let beside = squares[0].sqrt();
    let half = (d[1] - d[0]) / (beside + beside);
    let shift = d[0] - beside / (half + half.hypot(R::ONE) * half.signum());
    let (mut c, mut s) = (R::ONE, R::ZERO);
    let mut gamma = d[last] - shift;
    let mut p = gamma * gamma;
    for i in (0..last).rev() {
        let square = squares[i];
        let r = p + square;
        if i + 1 < last {
            squares[i + 1] = s * r;
        }
        // Neither quotient waits for the other.
        let (before, reciprocal, inverse) = (c, R::ONE / r, r / p);
        (c, s) = (p * reciprocal, square * reciprocal);
        let alpha = d[i];
        let old = gamma;
        gamma = c * (alpha - shift) - s * old;
        d[i + 1] = old + (alpha - gamma);
        p = if p > R::SAFE_MIN { gamma * gamma * inverse } else { before * square };
    }
    squares[0] = s * p;
    d[0] = shift + gamma;
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {
    use pulp::Arch;

    use super::*;
    use crate::implicit_ql::{ImplicitQl, STEPS};
    use crate::rotations::Rotation;
    use crate::trial::tests::random;

    trials!(same_as_by_rotations, what_does_not_converge_is_reported);

    fn compare<R: Real>(d: &[f64], e: &[f64]) {
        let n = d.len();
        let convert = |x: &[f64]| x.iter().map(|&x| R::from_f64(x)).collect::<Vec<R>>();
        let (mut d, mut e) = (convert(d), convert(&e[1..]));
        let mut values = d.clone();
        let mut squares: Vec<R> = e.iter().map(|&e| e * e).collect();
        assert!(eigenvalues(&mut values, &mut squares, STEPS), "n = {n}: {d:?} {e:?}");
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

    fn what_does_not_converge_is_reported() {
        assert!(!eigenvalues(&mut [0.0, 0.0], &mut [f64::NAN], STEPS));
        assert!(!eigenvalues(&mut [0.0, 1.0], &mut [1.0], 0));
    }
}
