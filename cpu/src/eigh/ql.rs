//! Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix by implicit QL steps.
//!
//! Shifts are Wilkinson's, with which the iteration converges from any matrix ("Global convergence
//! of tridiagonal QR algorithm with origin shifts", Linear Algebra Appl. 1, 1968). The step is that
//! of Dubrulle, Martin and Wilkinson, "The implicit QL algorithm" (Numer. Math. 12, 1968). A block
//! that grows towards its end is turned end for end, which makes the step one of QR.

use lapax_core::Real;
use pulp::{Simd, WithSimd};

use crate::blas::rotations::{Direction, Rotation, rotate, rotation_of, swap_columns};

/// Steps per eigenvalue after which the iteration is given up; two are usual.
pub(crate) const STEPS: usize = 30;

/// Diagonalises T, with diagonal `d` and `e` beside it: `d` becomes the eigenvalues, ascending.
///
/// `z`, where there is one, has a column for each of them and becomes Z·Q, with T = Q·Λ·Qᵀ. `Err` is
/// the number of off-diagonal elements that did not converge. T should be of order 1.
pub(crate) struct ImplicitQl<'a, R> {
    pub(crate) d: &'a mut [R],
    pub(crate) e: &'a mut [R],
    pub(crate) z: Option<&'a mut [R]>,
    /// As many as T has rows.
    pub(crate) rotations: &'a mut [Rotation<R>],
    /// Steps per eigenvalue after which the iteration is given up.
    pub(crate) steps: usize,
}

/// Rows and columns `first..=last` of T, which have no zero beside the diagonal.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: usize,
    last: usize,
    /// Whether it is worked on end for end.
    turned: bool,
}

impl<R: Real> WithSimd for ImplicitQl<'_, R> {
    type Output = Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Result<(), usize> {
        let Self { d, e, mut z, rotations, steps } = self;
        let n = d.len();
        let mut steps = steps * n;
        let mut first = 0;
        let mut block = Block { first: n, last: n, turned: false };
        while first + 1 < n {
            let last = (first..n - 1).find(|&k| negligible(d, e, k)).unwrap_or(n - 1);
            if let Some(coupling) = e.get_mut(last) {
                *coupling = R::ZERO;
            }
            if last == first {
                first += 1;
                continue;
            }
            if first < block.first || last > block.last {
                block.turned = d[last].abs() < d[first].abs();
            }
            (block.first, block.last) = (first, last);
            if steps == 0 {
                return Err(e.iter().filter(|&&e| e != R::ZERO).count());
            }
            steps -= 1;
            step::<S, R>(d, e, block, z.as_deref_mut(), rotations);
        }
        sort(d, z);
        Ok(())
    }
}

/// Whether e(k)² is below ε²·|d(k)·d(k + 1)|, or below what matters to a T of order 1.
#[inline(always)]
fn negligible<R: Real>(d: &[R], e: &[R], k: usize) -> bool {
    let bound = (R::EPSILON * d[k].abs()) * (R::EPSILON * d[k + 1].abs()) + R::SAFE_MIN;
    e[k] * e[k] <= bound
}

/// One step on one block: the rotations of T, then those of Z.
#[inline(always)]
fn step<S: Simd, R: Real>(
    d: &mut [R],
    e: &mut [R],
    block: Block,
    z: Option<&mut [R]>,
    rotations: &mut [Rotation<R>],
) {
    let Block { first, last, turned } = block;
    let n = d.len();
    let (d, e) = (&mut d[first..=last], &mut e[first..last]);
    let rotations = &mut rotations[..last - first];
    if turned {
        d.reverse();
        e.reverse();
    }
    rotate_block(d, e, rotations);
    if turned {
        d.reverse();
        e.reverse();
    }
    let Some(z) = z else { return };
    for (i, &rotation) in rotations.iter().enumerate().rev() {
        // Row i + 1 of the block is x, row i is y; end for end, their columns change places.
        if turned {
            rotate::<S, R>(rotation, z, n, last - 1 - i, Direction::Forward);
        } else {
            rotate::<S, R>(rotation, z, n, first + i, Direction::Backward);
        }
    }
}

/// An implicit QL step with Wilkinson's shift, from the last row up; it takes e(0) towards zero.
#[inline(always)]
fn rotate_block<R: Real>(d: &mut [R], e: &mut [R], rotations: &mut [Rotation<R>]) {
    let last = e.len();
    let two = R::ONE + R::ONE;
    // The eigenvalue of the leading 2×2 block that is nearer to d(0) is d(0) − e(0)/t.
    let half = (d[1] - d[0]) / (two * e[0]);
    let root = half.hypot(R::ONE) * half.signum();
    let mut g = d[last] - d[0] + e[0] / (half + root);
    let mut rotation = Rotation { c: R::ONE, s: R::ONE };
    let mut p = R::ZERO;
    for i in (0..last).rev() {
        let (f, b) = (rotation.s * e[i], rotation.c * e[i]);
        let r;
        (rotation, r) = rotation_of(g, f);
        if i + 1 < last {
            e[i + 1] = r;
        }
        let shifted = d[i + 1] - p;
        let r = (d[i] - shifted) * rotation.s + two * rotation.c * b;
        p = rotation.s * r;
        d[i + 1] = shifted + p;
        g = rotation.c * r - b;
        rotations[i] = rotation;
    }
    d[0] -= p;
    e[0] = g;
}

/// Puts the eigenvalues in ascending order, and their vectors with them.
pub(crate) fn sort<R: Real>(d: &mut [R], mut z: Option<&mut [R]>) {
    let n = d.len();
    for i in 0..n {
        let least = (i..n).reduce(|least, j| if d[j] < d[least] { j } else { least });
        let least = least.unwrap_or(i);
        d.swap(i, least);
        if let Some(z) = z.as_deref_mut() {
            swap_columns(z, n, i, least);
        }
    }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {

    use super::{ImplicitQl, STEPS};
    use crate::blas::rotations::{Rotation, set_identity};
    use crate::divide::verify::is_eigensystem;
    use crate::simd::arch::Arch;

    trials!(graded_glued_and_split_matrices_converge, what_does_not_converge_is_counted);

    fn decompose(d: &[f64], e: &[f64]) -> Result<Vec<f64>, usize> {
        let n = d.len();
        let (mut w, mut off, mut z) = (d.to_vec(), e.to_vec(), vec![0.0; n * n]);
        let none = Rotation { c: 1.0, s: 0.0 };
        set_identity(&mut z, n);
        let rotations = &mut vec![none; n];
        let (d_out, z_out) = (&mut w, Some(&mut z[..]));
        let ql = ImplicitQl { d: d_out, e: &mut off, z: z_out, rotations, steps: STEPS };
        Arch::new().dispatch(ql)?;
        assert!(is_eigensystem(d, e, &w, &z, &mut vec![0.0; n]), "{d:?} {e:?} {w:?}");
        Ok(w)
    }

    fn graded_glued_and_split_matrices_converge() -> Result<(), usize> {
        for n in [1_usize, 2, 3, 20, 41, 100] {
            let graded: Vec<f64> = (0..n).map(|i| 0.5_f64.powf(i as f64)).collect();
            let turned: Vec<f64> = graded.iter().rev().copied().collect();
            // Wilkinson's matrices W₂₁⁺, one beside the other.
            let wilkinson: Vec<f64> = (0..n).map(|i| (i % 21).abs_diff(10) as f64 / 10.0).collect();
            let glue = |i| if i % 21 == 20 { 1e-9 } else { 0.1 };
            let split = |i: usize| if i.is_multiple_of(3) { 0.0 } else { 0.5 };
            decompose(&graded, &graded[1..])?;
            decompose(&turned, &turned[1..])?;
            decompose(&wilkinson, &(1..n).map(glue).collect::<Vec<_>>())?;
            decompose(&wilkinson, &(1..n).map(split).collect::<Vec<_>>())?;
            decompose(&vec![0.0; n], &vec![1.0; n - 1])?;
            decompose(&vec![0.0; n], &vec![0.0; n - 1])?;
        }
        Ok(())
    }

    fn what_does_not_converge_is_counted() {
        assert_eq!(decompose(&[0.0; 2], &[f64::NAN]), Err(1));
    }
}
