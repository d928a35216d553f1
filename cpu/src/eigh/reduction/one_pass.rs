//! Reduction of a small Hermitian matrix to real tridiagonal form, each step in one pass over the rest.
//!
//! What a reflector asks for, A ← A − v·wᴴ − w·vᴴ, waits for the pass of the next step, which does it to
//! a column and adds the column's part of A·u while it is in registers. The matrix is copied with both
//! its triangles: twice the arithmetic, but products need no sums over columns, and columns no odd ends.

use lapax_core::Real as _;
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::householder::{Reflector, dot, reflector};
use crate::simd::chunks::{PARTS, Part, TOGETHER, less, scale, sub_scaled, zeros};

/// What reductions of matrices of one order reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    /// The matrix, column by column; made up to whole groups of [`TOGETHER`] with columns of zeros.
    copy: Vec<Part<T>>,
    /// The last reflector's vector and the next one's, and their W: columns of it and a part more, so that
    /// all of a group find their elements there.
    v: Vec<Part<T>>,
    next_v: Vec<Part<T>>,
    w: Vec<Part<T>>,
    next_w: Vec<Part<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        let parts = n.div_ceil(PARTS);
        Self {
            copy: zeros(parts * (n + TOGETHER - 1)),
            v: zeros(parts + 1),
            next_v: zeros(parts + 1),
            w: zeros(parts + 1),
            next_w: zeros(parts + 1),
        }
    }
}

/// [`crate::eigh::reduction::blocked::tridiagonalize`], of a small matrix.
pub(crate) struct Reduce<'a, T: Scalar> {
    pub(crate) a: &'a mut [T],
    pub(crate) d: &'a mut [T::Real],
    pub(crate) e: &'a mut [T::Real],
    pub(crate) tau: &'a mut [T],
    pub(crate) scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> WithSimd for Reduce<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, d, e, tau, scratch } = self;
        let Scratch { copy, v, next_v, w, next_w } = scratch;
        let n = d.len();
        let parts = n.div_ceil(PARTS);
        fill(copy, parts, a, n);
        v.fill([T::ZERO; PARTS]);
        w.fill([T::ZERO; PARTS]);
        for j in 0..n {
            let (left, rest) = copy.split_at_mut((j + 1) * parts);
            let column = &mut left[j * parts..];
            // Parts before the one with row j are done with.
            let begin = j / PARTS;
            let (v_j, w_j) = (v.as_flattened()[j].conj(), w.as_flattened()[j].conj());
            sub_scaled::<S, T>(&mut column[begin..], w_j, &v[begin..]);
            sub_scaled::<S, T>(&mut column[begin..], v_j, &w[begin..]);
            let column = column.as_flattened_mut();
            d[j] = column[j].re();
            let (a, row) = (&mut a[j * n..(j + 1) * n], j + 1);
            a[j] = T::from_real(d[j]);
            let Some((head, tail)) = column[row..n].split_first_mut() else { return };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (e[j], tau[j], *head) = (beta, factor, T::ONE);
            a[row] = T::from_real(beta);
            a[row + 1..].copy_from_slice(&column[row + 1..n]);

            let begin = row / PARTS;
            let all = next_v.as_flattened_mut();
            all[begin * PARTS..row].fill(T::ZERO);
            all[row..parts * PARTS].copy_from_slice(&column[row..]);
            next_w[begin..].fill([T::ZERO; PARTS]);
            for (group, four) in rest.chunks_exact_mut(TOGETHER * parts).enumerate() {
                let column = row + group * TOGETHER;
                let factors = |x: &[Part<T>]| -> [T; TOGETHER] {
                    std::array::from_fn(|c| x.as_flattened()[column + c])
                };
                let pass = Pass { begin, v, w, of_v: factors(v), of_w: factors(w) };
                pass.four::<S>(four, factors(next_v), next_w);
            }
            // w = tau·A·v, less the multiple of v that makes the update two-sided.
            let (v_next, w_next) = (&next_v[begin..], &mut next_w[begin..]);
            w_next.as_flattened_mut()[..row - begin * PARTS].fill(T::ZERO);
            scale(w_next, factor);
            let product = dot::<S, T>(w_next.as_flattened(), v_next.as_flattened());
            let half = (factor * product).scale(T::Real::from_f64(0.5));
            sub_scaled::<S, T>(w_next, half, v_next);
            std::mem::swap(v, next_v);
            std::mem::swap(w, next_w);
        }
    }
}

/// Both triangles of the matrix whose lower one `a` holds, in columns of so many parts.
fn fill<T: Scalar>(copy: &mut [Part<T>], parts: usize, a: &[T], n: usize) {
    // All of it: zeros beyond the matrix do not stay zeros where it has NaN.
    copy.fill([T::ZERO; PARTS]);
    let copy = copy.as_flattened_mut();
    let length = parts * PARTS;
    for (j, column) in a.chunks_exact(n).enumerate() {
        copy[j * length + j] = T::from_real(column[j].re());
        copy[j * length..][j + 1..n].copy_from_slice(&column[j + 1..]);
        for (i, x) in column.iter().enumerate().skip(j + 1) {
            copy[i * length + j] = x.conj();
        }
    }
}

/// One pass over some columns.
struct Pass<'a, T> {
    begin: usize,
    v: &'a [Part<T>],
    w: &'a [Part<T>],
    /// The columns' elements of v and w.
    of_v: [T; TOGETHER],
    of_w: [T; TOGETHER],
}

impl<T: Scalar> Pass<'_, T> {
    /// For each column a of four: a ← a − v·conj(w) − w·conj(v), and `sum` grows by u·a.
    #[inline(always)]
    fn four<S: Simd>(&self, four: &mut [Part<T>], u: [T; TOGETHER], sum: &mut [Part<T>]) {
        let Self { begin, v, w, of_v, of_w } = *self;
        let parts = four.len() / TOGETHER;
        let (v, w, sum) = (&v[begin..parts], &w[begin..parts], &mut sum[begin..parts]);
        let mut columns = four.chunks_exact_mut(parts);
        let four: [&mut [Part<T>]; TOGETHER] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[begin..]);
        for (i, ((v, w), sum)) in v.iter().zip(w).zip(sum).enumerate() {
            for c in 0..TOGETHER {
                let part = less::<S, T>(four[c][i], of_w[c].conj(), v);
                four[c][i] = less::<S, T>(part, of_v[c].conj(), w);
                *sum = less::<S, T>(*sum, -u[c], &four[c][i]);
            }
        }
    }
}
