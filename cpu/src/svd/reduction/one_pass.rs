//! Reduction of a small matrix to real upper bidiagonal form, each step in one pass over the rest.
//!
//! What the reflector of row j asks for, A ← A − x·vᴴ, waits for the pass of step j + 1, which does it
//! to a column, takes its product with u, applies u's reflector, and adds it to the next x while it is
//! in registers. The matrix is copied: there its columns are whole groups of [`PARTS`] rows and its
//! number of columns is made up to whole groups of [`TOGETHER`], with zeros, so that no loop has an odd
//! end. Howell, Demmel, Fulton, Hammarling and Marmol, "Cache efficient bidiagonalization using BLAS 2.5
//! operators" (ACM Trans. Math. Softw. 34, 2008), fuse less, as their matrices are large.

use lapax_core::{Real as _, Scalar as _};
use pulp::{Simd, WithSimd};

use super::Bidiagonal;
use crate::Scalar;
use crate::blas::fused::totals;
use crate::blas::householder::{Reflector, reflector};
use crate::simd::chunks::{PARTS, Part, TOGETHER, less, scale, sub_scaled, zeros};
use crate::simd::loops::sub_mul;

/// What reductions of matrices of one shape reuse.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    /// The matrix, column by column.
    copy: Vec<Part<T>>,
    /// Columns of it.
    u: Vec<Part<T>>,
    x: Vec<Part<T>>,
    next_x: Vec<Part<T>>,
    /// The adjoints of rows of it.
    v: Vec<T>,
    next_v: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let (parts, columns) = (m.div_ceil(PARTS), n + TOGETHER - 1);
        Self {
            copy: zeros(parts * columns),
            u: zeros(parts),
            x: zeros(parts),
            next_x: zeros(parts),
            v: vec![T::ZERO; columns],
            next_v: vec![T::ZERO; columns],
        }
    }
}

/// [`crate::svd::reduction::blocked::bidiagonalize`], of a small matrix.
pub(crate) struct Reduce<'a, 'b, T: Scalar> {
    pub(crate) a: &'a mut [T],
    pub(crate) v: &'a mut [T],
    pub(crate) b: &'a mut Bidiagonal<'b, T>,
    pub(crate) scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> WithSimd for Reduce<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, v: vs, b, scratch } = self;
        let Scratch { copy, u, x, next_x, v, next_v } = scratch;
        let n = b.d.len();
        let (m, parts) = (a.len() / n, u.len());
        for (copy, column) in copy.chunks_exact_mut(parts).zip(a.chunks_exact(m)) {
            copy.as_flattened_mut()[..m].copy_from_slice(column);
        }
        x.fill([T::ZERO; PARTS]);
        v.fill(T::ZERO);
        for j in 0..n {
            // Parts before the one with row j are done with.
            let begin = j / PARTS;
            let (left, rest) = copy.split_at_mut((j + 1) * parts);
            let column = &mut left[j * parts..];
            sub_scaled::<S, T>(&mut column[begin..], v[j].conj(), &x[begin..]);
            let column = column.as_flattened_mut();
            let Some((head, tail)) = column[j..m].split_first_mut() else { return };
            let Reflector { beta, tau } = reflector::<S, T>(*head, tail);
            (b.d[j], b.tau_q[j], *head) = (beta, tau, T::ONE);
            a[j * m..(j + 1) * m].copy_from_slice(&column[..m]);
            let col = j + 1;
            if col == n {
                return;
            }
            let all = u.as_flattened_mut();
            all[begin * PARTS..j].fill(T::ZERO);
            all[j..].copy_from_slice(&column[j..]);

            let pass = Pass { row: j, begin, tau, u, x };
            next_x[begin..].fill([T::ZERO; PARTS]);
            let fours = rest.chunks_exact_mut(TOGETHER * parts);
            let (known, rows) = (&v[col..], &mut next_v[col..]);
            for ((four, v), r) in
                fours.zip(known.as_chunks::<TOGETHER>().0).zip(rows.as_chunks_mut::<TOGETHER>().0)
            {
                *r = pass.four::<S>(four, v, next_x);
            }
            let Some((head, tail)) = next_v[col..n].split_first_mut() else { return };
            let alpha = *head;
            let Reflector { beta, tau } = reflector::<S, T>(alpha, tail);
            (b.e[j], b.tau_p[j], *head) = (beta, tau, T::ONE);
            vs[j * n..(j + 1) * n][..col].fill(T::ZERO);
            vs[j * n..(j + 1) * n][col..].copy_from_slice(&next_v[col..n]);

            // x = tau·A·v. So far it is A·r, and v is r less beta in its head, over alpha − beta.
            let begin = col / PARTS;
            let square = beta * beta;
            if tau == T::ZERO {
                next_x[begin..].fill([T::ZERO; PARTS]);
            } else if square >= T::Real::SAFE_MIN && square <= T::Real::ONE / T::Real::SAFE_MIN {
                let factor = tau * T::ONE.divide(alpha - T::from_real(beta));
                sub_scaled::<S, T>(&mut next_x[begin..], T::from_real(beta), &rest[begin..parts]);
                scale(&mut next_x[begin..], factor);
            } else {
                next_x[begin..].fill([T::ZERO; PARTS]);
                for (column, &v) in rest.chunks_exact(parts).zip(&next_v[col..n]) {
                    sub_scaled::<S, T>(&mut next_x[begin..], -v, &column[begin..]);
                }
                scale(&mut next_x[begin..], tau);
            }
            // Rows that are done with.
            next_x.as_flattened_mut()[begin * PARTS..col].fill(T::ZERO);
            std::mem::swap(x, next_x);
            std::mem::swap(v, next_v);
        }
    }
}

/// One pass over the columns behind column `row`.
struct Pass<'a, T> {
    row: usize,
    begin: usize,
    tau: T,
    u: &'a [Part<T>],
    x: &'a [Part<T>],
}

impl<T: Scalar> Pass<'_, T> {
    /// For each column a of four: a ← a − x·conj(v), y = tau·aᴴ·u, a ← a − u·conj(y); the returned r is the
    /// conjugate of its element in row `row`, and `next` grows by r·a.
    #[inline(always)]
    fn four<S: Simd>(
        &self,
        four: &mut [Part<T>],
        v: &[T; TOGETHER],
        next: &mut [Part<T>],
    ) -> [T; TOGETHER] {
        let Self { row, begin, tau, u, x } = *self;
        let parts = u.len();
        let (u, x, next) = (&u[begin..], &x[begin..parts], &mut next[begin..parts]);
        let mut columns = four.chunks_exact_mut(parts);
        let four: [&mut [Part<T>]; TOGETHER] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[begin..]);
        let mut sums = [[T::ZERO; PARTS]; TOGETHER];
        for (i, (u, x)) in u.iter().zip(x).enumerate() {
            for c in 0..TOGETHER {
                let part = less::<S, T>(four[c][i], v[c].conj(), x);
                let mut sum = sums[c];
                for ((sum, &part), &u) in sum.iter_mut().zip(&part).zip(u) {
                    *sum = sub_mul::<S, T>(*sum, -part.conj(), u);
                }
                (four[c][i], sums[c]) = (part, sum);
            }
        }
        let (mut y, mut r) = (totals(sums), [T::ZERO; TOGETHER]);
        for c in 0..TOGETHER {
            y[c] = tau * y[c];
            r[c] = four[c][0][row % PARTS].conj() - y[c];
        }
        for (i, (u, next)) in u.iter().zip(next).enumerate() {
            for c in 0..TOGETHER {
                four[c][i] = less::<S, T>(four[c][i], y[c].conj(), u);
                *next = less::<S, T>(*next, -r[c], &four[c][i]);
            }
        }
        r
    }
}
