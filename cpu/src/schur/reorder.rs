//! Swapping adjacent diagonal blocks of a Schur form.
//!
//! Bai and Demmel, "On swapping diagonal blocks in real Schur form" (Linear Algebra Appl. 186,
//! 1993). With A₁₁·X − X·A₂₂ = A₁₂, the columns of [−X; I] span what belongs to A₂₂; the Q of their
//! QR factorisation brings A₂₂'s eigenvalues to the front.

use lapax_core::{Real as _, Scalar as _};

use super::francis::Iteration;
use super::two_by_two::Rotation;
use crate::Scalar;
use crate::blas::householder::reflector;

/// The order of the largest matrix of two blocks, and of the linear system for X.
const LARGEST: usize = 4;

/// Moves a diagonal block up, from row `row` to row `to`; returns how far it came.
///
/// It stops where its eigenvalues and those of the block above cannot be told apart.
pub(crate) fn move_up<T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    mut row: usize,
    size: usize,
    to: usize,
) -> usize {
    while row > to {
        let above = row - 1 + (row.saturating_sub(2)) * iteration.n;
        let above = if row >= 2 && iteration.h[above] != T::ZERO { 2 } else { 1 };
        let swapped = if above == 1 && size == 1 {
            swap_single(iteration, row - 1);
            true
        } else {
            swap_blocks(iteration, row - above, above, size)
        };
        if !swapped {
            break;
        }
        row -= above;
    }
    row
}

/// Swaps the diagonal elements in rows j and j + 1.
fn swap_single<T: Scalar>(iteration: &mut Iteration<'_, T>, j: usize) {
    let (right, top) = (iteration.right(j + 2), iteration.top(j));
    let Iteration { h, n, q, rows, .. } = iteration;
    let n = *n;
    let (first, second) = (h[j + j * n], h[j + 1 + (j + 1) * n]);
    let g = Rotation::eliminating(h[j + (j + 1) * n], second - first);
    g.rows(&mut h[(j + 2) * n..right * n], n, j);
    let (x, y) = h[j * n..(j + 2) * n].split_at_mut(n);
    g.columns(&mut x[top..j], &mut y[top..j]);
    (h[j + j * n], h[j + 1 + (j + 1) * n]) = (second, first);
    if let Some(q) = q {
        let (x, y) = q[j * *rows..(j + 2) * *rows].split_at_mut(*rows);
        g.columns(x, y);
    }
}

/// Swaps the block of order p in row j with the one of order q below it, both of a real matrix.
/// Where rounding would couple them again, nothing is changed and the answer is false.
fn swap_blocks<T: Scalar>(iteration: &mut Iteration<'_, T>, j: usize, p: usize, q: usize) -> bool {
    let (n, m) = (iteration.n, p + q);
    let mut local = [T::ZERO; LARGEST * LARGEST];
    let mut size = T::Real::ZERO;
    for (column, to) in local.chunks_exact_mut(LARGEST).enumerate().take(m) {
        let from = j + (j + column) * n;
        to[..m].copy_from_slice(&iteration.h[from..from + m]);
        size = to.iter().fold(size, |size, x| if x.abs1() > size { x.abs1() } else { size });
    }
    let ulp = T::Real::EPSILON + T::Real::EPSILON;
    let (roundoff, floor) = (ulp * size, T::Real::SAFE_MIN / ulp);
    let smallest = if roundoff > floor { roundoff } else { floor };

    // The columns of [−X; I], then the reflectors of their QR factorisation.
    let x = sylvester(&local, p, q, smallest);
    let mut basis = [T::ZERO; LARGEST * 2];
    for (column, to) in basis.chunks_exact_mut(LARGEST).enumerate().take(q) {
        for (row, to) in to.iter_mut().enumerate().take(p) {
            *to = -x[row + column * p];
        }
        to[p + column] = T::ONE;
    }
    let mut reflectors = [([T::ZERO; LARGEST], T::ZERO); 2];
    for column in 0..q {
        let start = column * LARGEST;
        let (v, tau) = &mut reflectors[column];
        v[column..m].copy_from_slice(&basis[start + column..start + m]);
        if let Some((head, tail)) = v[column..m].split_first_mut() {
            *tau = reflector::<pulp::Scalar, T>(*head, tail).tau;
            *head = T::ONE;
        }
        reflect_rows(&v[..m], *tau, &mut basis, LARGEST, 0);
    }
    let reflectors = &reflectors[..q];
    for (v, tau) in reflectors {
        reflect_rows(&v[..m], *tau, &mut local[..m * LARGEST], LARGEST, 0);
        reflect_columns(&v[..m], *tau, &mut local, LARGEST, 0..m);
    }
    let ten = T::Real::from_f64(10.0);
    let coupled = |k: &usize| local[q + k % p + (k / p) * LARGEST].abs1() > ten * smallest;
    if (0..p * q).any(|k| coupled(&k)) {
        return false;
    }

    let (right, top) = (iteration.right(j + m), iteration.top(j));
    for (v, tau) in reflectors {
        reflect_rows(&v[..m], *tau, &mut iteration.h[j * n..right * n], n, j);
        reflect_columns(&v[..m], *tau, &mut iteration.h[j * n..], n, top..j + m);
        if let Some(vectors) = &mut iteration.q {
            let rows = iteration.rows;
            reflect_columns(&v[..m], *tau, &mut vectors[j * rows..], rows, 0..rows);
        }
    }
    for column in iteration.h[j * n..(j + q) * n].chunks_exact_mut(n) {
        column[j + q..j + m].fill(T::ZERO);
    }
    for (row, order) in [(j, q), (j + q, p)] {
        if order == 2 {
            iteration.split(row);
        }
    }
    true
}

/// Rows `first..` of A, as many as v has, times I − tau·v·vᵀ from the left.
fn reflect_rows<T: Scalar>(v: &[T], tau: T, a: &mut [T], ld: usize, first: usize) {
    for column in a.chunks_exact_mut(ld) {
        let x = &mut column[first..first + v.len()];
        let sum = x.iter().zip(v).fold(T::ZERO, |sum, (&x, &v)| sum + x * v);
        x.iter_mut().zip(v).for_each(|(x, &v)| *x -= tau * sum * v);
    }
}

/// The first columns of A, as many as v has, times I − tau·v·vᵀ from the right, for some rows.
fn reflect_columns<T: Scalar>(
    v: &[T],
    tau: T,
    a: &mut [T],
    ld: usize,
    rows: std::ops::Range<usize>,
) {
    for i in rows {
        let sum = v.iter().enumerate().fold(T::ZERO, |sum, (k, &v)| sum + a[i + k * ld] * v);
        for (k, &v) in v.iter().enumerate() {
            a[i + k * ld] -= tau * sum * v;
        }
    }
}

/// X with A₁₁·X − X·A₂₂ = A₁₂, by elimination with complete pivoting; a pivot is at least
/// `smallest`.
fn sylvester<T: Scalar>(
    a: &[T; LARGEST * LARGEST],
    p: usize,
    q: usize,
    smallest: T::Real,
) -> [T; LARGEST] {
    let order = p * q;
    let at = |i: usize, j: usize| a[i + j * LARGEST];
    // Row i + p·k is the equation for element (i, k), with its right-hand side at the end.
    let mut system = [[T::ZERO; LARGEST + 1]; LARGEST];
    for k in 0..q {
        for i in 0..p {
            let row = &mut system[i + p * k];
            (0..p).for_each(|s| row[s + p * k] += at(i, s));
            (0..q).for_each(|s| row[i + p * s] -= at(p + s, p + k));
            row[LARGEST] = at(i, p + k);
        }
    }
    let mut unknowns = [0, 1, 2, 3];
    for step in 0..order {
        let (mut best, mut row, mut column) = (-T::Real::ONE, step, step);
        for (i, elements) in system[..order].iter().enumerate().skip(step) {
            for (j, x) in elements[..order].iter().enumerate().skip(step) {
                if x.abs1() > best {
                    (best, row, column) = (x.abs1(), i, j);
                }
            }
        }
        system.swap(step, row);
        system[..order].iter_mut().for_each(|row| row.swap(step, column));
        unknowns.swap(step, column);
        if best < smallest {
            system[step][step] = T::from_real(smallest);
        }
        let pivot = system[step];
        for row in &mut system[step + 1..order] {
            let factor = row[step].divide(pivot[step]);
            row.iter_mut().zip(pivot).for_each(|(x, pivot)| *x -= factor * pivot);
        }
    }
    let mut x = [T::ZERO; LARGEST];
    for step in (0..order).rev() {
        let row = system[step];
        let known = (step + 1..order).fold(row[LARGEST], |sum, j| sum - row[j] * x[unknowns[j]]);
        x[unknowns[step]] = known.divide(row[step]);
    }
    x
}
