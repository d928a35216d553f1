//! Schur form: A = Z·T·Zᴴ, Z unitary, T upper triangular, or quasi-triangular for a real matrix.
//!
//! Quasi-triangular means 2 × 2 blocks for conjugate pairs of eigenvalues, in LAPACK's standard
//! form: equal diagonal elements, off-diagonal ones of opposite sign, so that the pair is the
//! diagonal element ± i·√|b|·√|c|.

use lapax_core::{ItemsInOut, ItemsMut, Real as _, Scalar as _, for_each, index_fits_i32};
use pulp::Arch;

use crate::balance::{Balance, Scaling};
use crate::francis::Iteration;
use crate::hessenberg::{self, form_q, nan, reduce};
use crate::multishift;
use crate::scalar::nanoseconds;
use crate::{Error, InOut, Scalar, Threads, Vectors};

/// Where eigenvalues go: a real matrix's as real and imaginary parts, a complex one's as they are.
#[derive(Debug)]
pub enum Eigenvalues<'a, T: Scalar> {
    /// n real parts and n imaginary parts for each matrix.
    Parts(&'a mut [T], &'a mut [T]),
    /// n numbers for each matrix.
    Whole(&'a mut [T]),
}

/// The Schur form of each n × n matrix of a batch, T in place of A.
///
/// `z` holds Z, or zeros where vectors are not asked for. A conjugate pair of eigenvalues has the
/// one with positive imaginary part first. `info` holds one number per matrix: 0, or i > 0 where
/// only the eigenvalues after the i-th were found; its other results are then NaN, as they are,
/// with `info` 0, for a matrix with an element that is not finite. `sdim`, the number of
/// eigenvalues that were selected to come first, is zero.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn gees<T: Scalar>(
    vectors: Vectors,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    z: &mut [T],
    w: Eigenvalues<'_, T>,
    sdim: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let (first, second, imaginary) = match w {
        Eigenvalues::Parts(re, im) => (re, im, n),
        Eigenvalues::Whole(w) => (w, &mut [][..], 0),
    };
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("z", batch, &[n, n], z)?,
        ItemsMut::new("w", batch, &[n], first)?,
        ItemsMut::new("wi", batch, &[imaginary], second)?,
        ItemsMut::new("sdim", batch, &[], sdim)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let arch = Arch::new();
    for_each(
        batch,
        operands,
        cost::<T>(n),
        threads,
        || Scratch::new(n),
        |scratch, (t, z, w, wi, sdim, info)| {
            (sdim[0], info[0]) = (0, 0);
            z.fill(T::ZERO);
            if n == 0 {
                return;
            }
            let finite = t.iter().all(|x| x.is_finite());
            let vectors = if vectors == Vectors::Wanted { Some(&mut *z) } else { None };
            let stop = if finite { factor(t, n, vectors, scratch, arch).err() } else { Some(0) };
            match stop {
                None => eigenvalues(t, n, w, wi),
                Some(stop) => {
                    info[0] = i32::try_from(stop).unwrap_or(i32::MAX);
                    for x in [t, z, w, wi] {
                        x.fill(nan());
                    }
                }
            }
        },
    );
    Ok(())
}

/// An estimate of one matrix's time: the iteration was counted to cost about ten reductions.
pub(crate) fn cost<T: Scalar>(n: usize) -> usize {
    nanoseconds::<T>(n.saturating_mul(n).saturating_mul(n).saturating_mul(25))
}

/// What one Schur decomposition after another reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    pub(crate) balance: Balance<T>,
    pub(crate) tau: Vec<T>,
    pub(crate) hessenberg: hessenberg::Scratch<T>,
    multishift: multishift::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        Self {
            balance: Balance::new(n),
            tau: vec![T::ZERO; n.saturating_sub(1)],
            hessenberg: hessenberg::Scratch::new(n),
            multishift: multishift::Scratch::new(n),
        }
    }
}

/// A finite matrix's Schur form. `Err(i)` where only the eigenvalues from the i-th on were found.
fn factor<T: Scalar>(
    a: &mut [T],
    n: usize,
    mut z: Option<&mut [T]>,
    scratch: &mut Scratch<T>,
    arch: Arch,
) -> Result<(), usize> {
    let scaling = Scaling::apply(a);
    scratch.balance.permute(a, n);
    schur_form(a, n, z.as_deref_mut(), true, scratch, arch)?;
    if let Some(z) = z.as_deref_mut() {
        scratch.balance.undo_right(z, n);
    }
    scaling.undo(a);
    // A block whose elements the scaling rounded can have lost its form.
    let mut iteration = Iteration { h: a, n, q: z, rows: n, schur: true };
    for k in 0..n - 1 {
        if iteration.h[k + 1 + k * n] != T::ZERO {
            iteration.split(k);
        }
    }
    Ok(())
}

/// T and Z of a balanced matrix; with `schur` false only T's diagonal blocks.
pub(crate) fn schur_form<T: Scalar>(
    a: &mut [T],
    n: usize,
    mut z: Option<&mut [T]>,
    schur: bool,
    scratch: &mut Scratch<T>,
    arch: Arch,
) -> Result<(), usize> {
    let Scratch { balance, tau, hessenberg, multishift } = scratch;
    let active = balance.active.clone();
    reduce(a, n, active.clone(), tau, hessenberg, arch);
    if let Some(z) = z.as_deref_mut() {
        form_q(a, n, active.clone(), tau, z, hessenberg, arch);
    }
    for (j, column) in a.chunks_exact_mut(n).enumerate() {
        column[(j + 2).min(n)..].fill(T::ZERO);
    }
    let mut iteration = Iteration { h: a, n, q: z, rows: n, schur };
    multishift::run(&mut iteration, active, multishift, arch)
}

/// The eigenvalues of a matrix in Schur form; `wi` is empty for a complex one.
pub(crate) fn eigenvalues<T: Scalar>(t: &[T], n: usize, w: &mut [T], wi: &mut [T]) {
    for (j, w) in w.iter_mut().enumerate() {
        *w = t[j + j * n];
    }
    wi.fill(T::ZERO);
    if wi.is_empty() {
        return;
    }
    for j in 1..n {
        let (b, c) = (t[j - 1 + j * n].re(), t[j + (j - 1) * n].re());
        if c != T::Real::ZERO {
            let size = b.abs().sqrt() * c.abs().sqrt();
            (wi[j - 1], wi[j]) = (T::from_real(size), T::from_real(-size));
        }
    }
}
