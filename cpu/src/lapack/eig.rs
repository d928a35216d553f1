//! Eigenvalues and eigenvectors of general matrices, A·x = w·x and uᴴ·A = w·uᴴ. See [`crate::eig`].

use lapax_core::Scalar as _;

use super::integers::Int;
use super::routines::{Routines, Values};
use super::workspace::{Lengths, Work};
use super::{checked, each, finite};
use crate::eig::single::Eigen;
use crate::eig::{operands, row_major};
use crate::matrix::phase;
use crate::schur::values::Eigenvalues;
use crate::{Error, Serial, Threads, Vectors};

/// [`crate::eig::geev`] by LAPACK's xGEEV.
///
/// # Errors
/// As there, and where n or the workspace exceeds the library's integers.
pub fn geev<T: Routines>(
    left: Vectors,
    right: Vectors,
    batch: usize,
    n: usize,
    a: &[T],
    results: Eigen<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 {
        return crate::eig::geev(left, right, batch, n, a, results, threads);
    }
    let (operands, _) = operands([left, right], batch, n, a, results)?;
    let (order, jobs) = (Int::new("n", n)?, [left, right]);
    let lengths = Lengths::ask::<T>("geev", |work| {
        let nothing = Values { re: &mut [], im: &mut [] };
        T::geev(jobs, order, &mut [], nothing, [&mut [], &mut []], work)
    })?;
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(25);
    let scratch = || Scratch::new(n, lengths.allocate::<T>());
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, item| {
        let (a, w, wi, vl, vr, info) = item;
        if finite(a) {
            let Scratch { work, copy, left, right } = scratch;
            copy.copy_from_slice(a);
            let values = Values { re: &mut *w, im: &mut *wi };
            info[0] = checked(T::geev(jobs, order, copy, values, [left, right], work));
            if info[0] == 0 {
                for (job, packed, v) in [(jobs[0], left, vl), (jobs[1], right, vr)] {
                    if job == Vectors::Wanted {
                        unpack(packed, wi, v, n);
                    } else {
                        v.fill(T::Complex::ZERO);
                    }
                }
                return;
            }
        }
        let w = Eigenvalues::from_parts(w, wi);
        let results = Eigen { w, left: vl, right: vr, info };
        checked(crate::eig::geev(left, right, 1, n, a, results, &Serial));
    });
    Ok(())
}

/// [`crate::eig::eig`] by [`geev`].
///
/// # Errors
/// As [`geev`].
pub fn eig<T: Routines>(
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    v: &mut [T::Complex],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::eig(geev, batch, n, a, w, Some(v), threads)
}

/// [`crate::eig::eigvals`] by [`geev`].
///
/// # Errors
/// As [`geev`].
pub fn eigvals<T: Routines>(
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::eig(geev, batch, n, a, w, None, threads)
}

/// What one matrix after another reuses.
struct Scratch<T: Routines> {
    work: Work<T>,
    /// The matrix, which LAPACK overwrites.
    copy: Vec<T>,
    /// Vectors as LAPACK packs them.
    left: Vec<T>,
    right: Vec<T>,
}

impl<T: Routines> Scratch<T> {
    fn new(n: usize, work: Work<T>) -> Self {
        let zeros = || vec![T::ZERO; n * n];
        Self { work, copy: zeros(), left: zeros(), right: zeros() }
    }
}

/// Of a real matrix, the vectors of a conjugate pair in columns j and j + 1 are x(j) ± i·x(j + 1).
/// `wi` is empty for a complex matrix. The phases become those of the rule.
fn unpack<T: Routines>(packed: &[T], wi: &[T], v: &mut [T::Complex], n: usize) {
    let mut j = 0;
    while j < n {
        let pair = wi.get(j).is_some_and(|&im| im != T::ZERO) && j + 1 < n;
        let (re, im) = packed[j * n..].split_at(n);
        let (v, conjugate) = v[j * n..].split_at_mut(n);
        let single = !pair && !T::IS_COMPLEX;
        let negative = single && phase::is_negative(re);
        for i in 0..n {
            let im = if pair { im[i].re() } else { re[i].im() };
            v[i] = T::Complex::from_parts(if negative { -re[i].re() } else { re[i].re() }, im);
        }
        if !single {
            phase::general(v);
        }
        if pair {
            conjugate.iter_mut().zip(v).for_each(|(conjugate, v)| *conjugate = v.conj());
        }
        j += if pair { 2 } else { 1 };
    }
}
