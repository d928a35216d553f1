//! Aggressive early deflation: eigenvalues of a trailing window that the rest of a Hessenberg
//! matrix does not perturb are split off, and the others are the next shifts.
//!
//! Braman, Byers and Mathias, "The multishift QR algorithm, part II" (SIAM J. Matrix Anal. Appl.
//! 23, 2002).

use std::ops::Range;

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real as _, Scalar as _, Serial};
use pulp::{Simd, WithSimd};

use super::apply::Room;
use super::francis::Iteration;
use super::reorder::move_up;
use crate::blas::fused::reflect_columns;
use crate::blas::householder::reflector;
use crate::hessenberg::blocked;
use crate::hessenberg::reduce::{form_q, reduce};
use crate::simd::arch::Arch;
use crate::simd::loops::sub_scaled;
use crate::{Scalar, Threads};

/// What a deflation reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    /// The window in Schur form, the factor that brought it there, and two more of its size.
    t: Vec<T>,
    v: Vec<T>,
    q: Vec<T>,
    product: Vec<T>,
    tau: Vec<T>,
    hessenberg: blocked::Scratch<T>,
    found: Vec<T::Complex>,
}

impl<T: Scalar> Scratch<T> {
    /// For windows up to this order.
    pub(crate) fn new(order: usize) -> Self {
        let square = || vec![T::ZERO; order * order];
        Self {
            t: square(),
            v: square(),
            q: square(),
            product: square(),
            tau: vec![T::ZERO; order],
            hessenberg: blocked::Scratch::new(order),
            found: Vec::with_capacity(order),
        }
    }
}

/// What became of a window.
pub(crate) struct Window<'a, C> {
    /// So many rows at its end are in Schur form, and done.
    pub(crate) deflated: usize,
    /// The eigenvalues of the rest.
    pub(crate) found: &'a [C],
}

/// Deflates what can be in a window at the end of an unreduced block, which begins above it.
pub(crate) fn deflate<'a, T: Scalar>(
    iteration: &mut Iteration<'_, T>,
    block: Range<usize>,
    order: usize,
    scratch: &'a mut Scratch<T>,
    room: &Room<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Window<'a, T::Complex> {
    let Scratch { t, v, q, product, tau, hessenberg, found } = scratch;
    let (n, m, window) = (iteration.n, order, block.end - order..block.end);
    let [t, v, q, product] = [t, v, q, product].map(|x| &mut x[..m * m]);
    found.clear();
    for (j, column) in t.chunks_exact_mut(m).enumerate() {
        let from = window.start + (window.start + j) * n;
        column.copy_from_slice(&iteration.h[from..from + m]);
    }
    v.fill(T::ZERO);
    v.iter_mut().step_by(m + 1).for_each(|x| *x = T::ONE);
    let mut inner = Iteration { h: &mut *t, n: m, q: Some(&mut *v), rows: m, schur: true };
    if inner.run(0..m, SWEEPS, arch).is_err() {
        return Window { deflated: 0, found };
    }
    let spike = iteration.h[window.start + (window.start - 1) * n];
    let kept = keep(&mut inner, spike);
    eigenvalues(t, m, kept, found);
    if kept == m && spike != T::ZERO {
        // Nothing was found: the matrix stays as it is.
        return Window { deflated: 0, found };
    }
    // What is left of the spike, s·Vᴴ·e₁, becomes one element again, and T Hessenberg.
    let mut coupling = T::ZERO;
    if kept > 0 && spike != T::ZERO {
        coupling = spike * v[0].conj();
        if kept > 1 {
            let tail = &mut product[..kept];
            for (j, x) in tail.iter_mut().enumerate() {
                *x = v[j * m].conj();
            }
            coupling =
                spike * arch.dispatch(Restore { t: &mut *t, v: &mut *v, m, tail, tau: &mut *tau });
            reduce(t, m, 0..kept, &mut tau[..m - 1], hessenberg, &Serial, arch);
            form_q(t, m, 0..kept, &tau[..m - 1], q, hessenberg, &Serial, arch);
            let [left, right] =
                [&*v, &*q].map(|x| (MatRef::from_column_major_slice(x, m, m), Conj::No));
            let out = MatMut::from_column_major_slice_mut(product, m, m);
            T::product(out, Accum::Replace, left, right, T::ONE);
            v.copy_from_slice(product);
            for (j, column) in t[..kept * m].chunks_exact_mut(m).enumerate() {
                column[(j + 2).min(m)..].fill(T::ZERO);
            }
        }
    }
    iteration.h[window.start + (window.start - 1) * n] = coupling;
    for (j, column) in t.chunks_exact(m).enumerate() {
        let to = window.start + (window.start + j) * n;
        iteration.h[to..to + m].copy_from_slice(column);
    }
    let factor = MatRef::from_column_major_slice(v, m, m);
    iteration.multiply(window, block, factor, room, threads);
    Window { deflated: m - kept, found }
}

/// Moves the eigenvalues that the spike couples to the front; returns how many rows they have.
fn keep<T: Scalar>(inner: &mut Iteration<'_, T>, spike: T) -> usize {
    let m = inner.n;
    let ulp = T::Real::EPSILON + T::Real::EPSILON;
    let order = T::Real::from_f64(f64::from(u32::try_from(m).unwrap_or(u32::MAX)));
    let smallest = T::Real::SAFE_MIN * (order / ulp);
    let (mut front, mut end) = (0, m);
    while front < end {
        let at = |i: usize, j: usize| inner.h[i + j * m].abs1();
        let pair = end >= 2 && at(end - 1, end - 2) != T::Real::ZERO;
        let size = if pair { 2 } else { 1 };
        let first = |j: usize| match &inner.q {
            Some(v) => (spike * v[j * m]).abs1(),
            None => T::Real::ZERO,
        };
        let mut value = at(end - 1, end - 1);
        let mut coupled = first(end - 1);
        if pair {
            value += at(end - 1, end - 2).sqrt() * at(end - 2, end - 1).sqrt();
            coupled = if first(end - 2) > coupled { first(end - 2) } else { coupled };
        }
        if value == T::Real::ZERO {
            value = spike.abs1();
        }
        if coupled <= smallest || coupled <= ulp * value {
            end -= size;
        } else {
            front = move_up(inner, end - size, size, front) + size;
        }
    }
    end
}

/// The eigenvalues of the leading part of a matrix in Schur form.
fn eigenvalues<T: Scalar>(t: &[T], m: usize, kept: usize, found: &mut Vec<T::Complex>) {
    let mut j = 0;
    while j < kept {
        let diagonal = t[j + j * m];
        if j + 1 < kept && t[j + 1 + j * m] != T::ZERO {
            let (b, c) = (t[j + (j + 1) * m].abs1(), t[j + 1 + j * m].abs1());
            let imaginary = b.sqrt() * c.sqrt();
            found.push(T::Complex::from_parts(diagonal.re(), imaginary));
            found.push(T::Complex::from_parts(diagonal.re(), -imaginary));
            j += 2;
        } else {
            found.push(T::Complex::from_parts(diagonal.re(), diagonal.im()));
            j += 1;
        }
    }
}

/// Reflects a spike onto its first element, which is returned, in T and V.
struct Restore<'a, T> {
    t: &'a mut [T],
    v: &'a mut [T],
    m: usize,
    /// The spike.
    tail: &'a mut [T],
    tau: &'a mut [T],
}

impl<T: Scalar> WithSimd for Restore<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> T {
        let Self { t, v, m, tail: spike, tau: sums } = self;
        let kept = spike.len();
        let Some((head, tail)) = spike.split_first_mut() else { return T::ZERO };
        let reflector = reflector::<S, T>(*head, tail);
        let factor = reflector.tau;
        reflect_columns(simd, factor.conj(), tail, t, m, 0);
        for (a, rows) in [(t, kept), (v, m)] {
            let sums = &mut sums[..rows];
            let mut columns = a.chunks_exact(m);
            if let Some(column) = columns.next() {
                sums.copy_from_slice(&column[..rows]);
            }
            for (column, &x) in columns.zip(&*tail) {
                sub_scaled::<S, T>(sums, -x, &column[..rows]);
            }
            let mut columns = a.chunks_exact_mut(m);
            if let Some(column) = columns.next() {
                sub_scaled::<S, T>(&mut column[..rows], factor, sums);
            }
            for (column, &x) in columns.zip(&*tail) {
                sub_scaled::<S, T>(&mut column[..rows], factor * x.conj(), sums);
            }
        }
        T::from_real(reflector.beta)
    }
}

/// Sweeps per row before an iteration is given up; about three are usual.
pub(crate) const SWEEPS: usize = 30;
