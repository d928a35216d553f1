//! Chasing bulges: what is common to the ways from a Hermitian band to tridiagonal form and from a
//! triangular one to bidiagonal form.
//!
//! A reflector clears a row or column of the band up to one element. From the other side it fills a
//! block, whose first row or column the next reflector clears, and so on to the end; what a block keeps
//! outside of the band the next sweeps meet: Bischof, Lang and Sun, "A framework for symmetric band
//! reduction" (ACM Trans. Math. Softw. 26, 2000). The matrix is continued by zeros, so that all blocks
//! are as wide as the band.

use pulp::Simd;

use crate::Scalar;
use crate::blas::fused::totals;
use crate::blas::householder::{Reflector, reflector};
use crate::simd::chunks::{PARTS, Part, TOGETHER, less};
use crate::simd::loops::sub_mul;

/// The diagonals of a band beside the main one, and the order of a block. On one core with AVX-512, f64, with
/// 16, 24, 32 and 48, chasing and the way to the band: Hermitian n = 256 0.49 and 0.86 ms, 0.58 and 0.71, 0.60 and
/// 0.67, 0.97 and 0.72; 1024 8.1 and 42, 9.5 and 33, 9.9 and 31, 16 and 31.
pub(crate) const WIDTH: usize = 32;
/// From an element to the next one of its row: a column has room for a block on the diagonal and for one
/// beside it.
pub(crate) const STRIDE: usize = 3 * WIDTH;
/// Sweeps that go together, and the blocks that one of them does before the next one follows.
const SWEEPS: usize = 8;
const BLOCKS: usize = 8;

/// A column of a block.
pub(crate) type Vector<T> = [Part<T>; WIDTH / PARTS];

/// Where element (i, j) of a band is.
pub(crate) fn at(i: usize, j: usize) -> usize {
    i + j * STRIDE
}

/// The elements of the storage of a band of order n.
pub(crate) fn storage(n: usize) -> usize {
    at(n + 2 * WIDTH, n + 2 * WIDTH)
}

/// The reflector that a sweep is at: its vector, which starts with a one, and its factor.
#[derive(Clone, Copy)]
pub(crate) struct Chased<T> {
    pub(crate) v: Vector<T>,
    pub(crate) tau: T,
}

/// What is done in a band.
pub(crate) trait Sweeps<T: Scalar> {
    /// Step `step` of a sweep, which begins with the reflector that the step before it made and leaves its own.
    fn step<S: Simd>(&mut self, sweep: usize, step: usize, chased: &mut Chased<T>);
}

/// Does all sweeps over a band of order n.
#[inline(always)]
pub(crate) fn chase<S: Simd, T: Scalar>(n: usize, band: &mut impl Sweeps<T>) {
    let sweeps = n - 1;
    let steps = |sweep: usize| (sweeps - sweep).div_ceil(WIDTH);
    for first in (0..sweeps).step_by(SWEEPS) {
        let last = sweeps.min(first + SWEEPS);
        let nothing = Chased { v: [[T::ZERO; PARTS]; WIDTH / PARTS], tau: T::ZERO };
        let mut chased = [nothing; SWEEPS];
        // Each sweep is a block behind the one before.
        for window in 0..(steps(first) + SWEEPS - 1).div_ceil(BLOCKS) {
            for (lag, (sweep, chased)) in (first..last).zip(&mut chased).enumerate() {
                let begin = (window * BLOCKS).saturating_sub(lag);
                let end = ((window + 1) * BLOCKS - lag).min(steps(sweep));
                for step in begin..end {
                    band.step::<S>(sweep, step, chased);
                }
            }
        }
    }
}

/// The column of a block that starts a slice.
#[inline(always)]
pub(crate) fn parts<T>(column: &[T]) -> &[Part<T>] {
    column[..WIDTH].as_chunks().0
}

/// The same, to be changed.
#[inline(always)]
pub(crate) fn parts_mut<T>(column: &mut [T]) -> &mut [Part<T>] {
    column[..WIDTH].as_chunks_mut().0
}

/// The reflector that clears a column, and what it makes of its head.
#[inline(always)]
pub(crate) fn clear<S: Simd, T: Scalar>(column: &[T]) -> (T::Real, Chased<T>) {
    let mut v = [[T::ZERO; PARTS]; WIDTH / PARTS];
    v.copy_from_slice(parts(column));
    // A zero in place of the head: no odd end.
    let alpha = std::mem::replace(&mut v[0][0], T::ZERO);
    let Reflector { beta, tau } = reflector::<S, T>(alpha, v.as_flattened_mut());
    v[0][0] = T::ONE;
    (beta, Chased { v, tau })
}

/// tau·A·v for a block.
#[inline(always)]
pub(crate) fn product<S: Simd, T: Scalar>(a: &[T], Chased { v, tau }: &Chased<T>) -> Vector<T> {
    // Two sums, which do not wait for each other.
    let mut sums = [[[T::ZERO; PARTS]; WIDTH / PARTS]; 2];
    let v = v.as_flattened();
    for c in (0..WIDTH).step_by(2) {
        for (other, sum) in sums.iter_mut().enumerate() {
            for (sum, part) in sum.iter_mut().zip(parts(&a[(c + other) * STRIDE..])) {
                *sum = less::<S, T>(*sum, -v[c + other], part);
            }
        }
    }
    let [mut sum, other] = sums;
    for (sum, &other) in sum.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
        *sum = (*sum + other) * *tau;
    }
    sum
}

/// xᴴ·y for each x of a few columns, in parts.
#[inline(always)]
pub(crate) fn add_product<S: Simd, T: Scalar>(sum: &mut Part<T>, x: &Part<T>, y: &Part<T>) {
    for ((sum, &x), &y) in sum.iter_mut().zip(x).zip(y) {
        *sum = sub_mul::<S, T>(*sum, -x.conj(), y);
    }
}

/// A ← Gᴴ·A·H for a block, where G clears the first column; returns G and what is left of that.
#[inline(always)]
pub(crate) fn clear_column<S: Simd, T: Scalar>(
    a: &mut [T],
    chased: &Chased<T>,
) -> (T::Real, Chased<T>) {
    let u = product::<S, T>(a, chased);
    let v = chased.v.as_flattened();
    let mut first = [T::ZERO; WIDTH];
    for ((to, &x), &u) in first.iter_mut().zip(&*a).zip(u.as_flattened()) {
        *to = x - u;
    }
    let (beta, next) = clear::<S, T>(&first);
    let factor = next.tau.conj();
    for c in (0..WIDTH).step_by(TOGETHER) {
        let mut columns = [[[T::ZERO; PARTS]; WIDTH / PARTS]; TOGETHER];
        let mut sums = [[T::ZERO; PARTS]; TOGETHER];
        for (k, (column, sum)) in columns.iter_mut().zip(&mut sums).enumerate() {
            let v_c = v[c + k].conj();
            let from = parts(&a[(c + k) * STRIDE..]);
            for (((to, from), u), next) in column.iter_mut().zip(from).zip(&u).zip(&next.v) {
                let part = less::<S, T>(*from, v_c, u);
                add_product::<S, T>(sum, next, &part);
                *to = part;
            }
        }
        for (k, (column, total)) in columns.iter().zip(totals(sums)).enumerate() {
            let to = parts_mut(&mut a[(c + k) * STRIDE..]);
            for ((to, part), next) in to.iter_mut().zip(column).zip(&next.v) {
                *to = less::<S, T>(*part, total * factor, next);
            }
        }
    }
    a[..WIDTH].fill(T::ZERO);
    a[0] = T::from_real(beta);
    (beta, next)
}

/// A ← A − x·yᴴ − u·vᴴ for a block, of which y and v are given by their adjoints.
#[inline(always)]
pub(crate) fn update<S: Simd, T: Scalar>(
    a: &mut [T],
    (x, y): (&Vector<T>, &[T]),
    (u, v): (&Vector<T>, &[T]),
) {
    for c in 0..WIDTH {
        for ((part, x), u) in parts_mut(&mut a[c * STRIDE..]).iter_mut().zip(x).zip(u) {
            *part = less::<S, T>(less::<S, T>(*part, y[c], x), v[c], u);
        }
    }
}
