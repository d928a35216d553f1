//! Eigenvalues and eigenvectors of real symmetric matrices that are tridiagonal as they come, T = V·diag(w)·Vᵀ.
//!
//! What follows the reduction of a full matrix: QL steps, or divide and conquer.

use std::ops::Range;

use lapax_core::{Items, ItemsMut, for_each, for_each_large, for_each_part, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use super::ql::STEPS;
use super::route::{Route, tridiagonal, tridiagonal_products};
use super::single::{VectorScratch, eigenvalues, eigenvectors};
use crate::blas::rotations::Rotation;
use crate::lanes;
use crate::matrix::phase;
use crate::matrix::results::is_part;
use crate::matrix::transpose::transpose_columns;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::elementary;
use crate::simd::range::all_finite;
use crate::simd::scalar::nan;
use crate::{Error, Scalar, Threads, Vectors};

/// Some of the eigenvalues of each symmetric tridiagonal matrix of a batch, and their eigenvectors.
///
/// T has the diagonal `d` and the n − 1 numbers `e` beside it. `w` holds those of the ascending eigenvalues that are at the
/// places `part`, k of them, and `v`, n × k by rows, their eigenvectors as columns, with the phases of [`super::eigh()`].
/// Both are NaN where T is not finite, or did not converge. Where T does not fall into blocks and is large, less is done
/// the fewer vectors are wanted.
///
/// # Errors
/// Where the places are not among the n, or a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands, and their sizes")]
#[per_scalar(real)]
pub fn tridiagonal_eigh<T: Scalar<Real = T>>(
    batch: usize,
    n: usize,
    part: Range<usize>,
    d: &[T],
    e: &[T],
    v: &mut [T],
    w: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    is_part(&part, ("n", n))?;
    decompose(Vectors::Wanted, (batch, n), &part, (d, e), (v, w), threads)
}

/// The eigenvalues of each symmetric tridiagonal matrix of a batch, ascending: see [`tridiagonal_eigh`].
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar(real)]
pub fn tridiagonal_eigvalsh<T: Scalar<Real = T>>(
    batch: usize,
    n: usize,
    d: &[T],
    e: &[T],
    w: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    decompose(Vectors::None, (batch, n), &(0..n), (d, e), (&mut [], w), threads)
}

/// Both routines; `v` has no elements where no vectors are wanted.
fn decompose<T: Scalar<Real = T>>(
    job: Vectors,
    (batch, n): (usize, usize),
    part: &Range<usize>,
    (d, e): (&[T], &[T]),
    (v, w): (&mut [T], &mut [T]),
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let vectors = job == Vectors::Wanted;
    let operands = (
        Items::new("d", batch, &[n], d)?,
        Items::new("e", batch, &[n.saturating_sub(1)], e)?,
        ItemsMut::new("v", batch, &[n, if vectors { part.len() } else { 0 }], v)?,
        ItemsMut::new("w", batch, &[part.len()], w)?,
    );
    if batch == 0 || part.is_empty() {
        return Ok(());
    }
    let scratch = || Scratch::new(job, n, part.clone());
    let time = nanoseconds::<T>(tridiagonal_products(job, n));
    match tridiagonal(job, batch, n) {
        Route::OrderOne => {
            let time = elementary::OF_ORDER_ONE;
            for_each_part(batch, 1, operands, time, threads, |(d, _, v, w), _| {
                let (v, w) = (v.into_data(), w.into_data());
                for (i, &d) in d.data().iter().enumerate() {
                    let (value, vector) = elementary::of_order_one(d);
                    w[i] = value;
                    v.iter_mut().skip(i).take(1).for_each(|v| *v = vector);
                }
            });
        }
        Route::Lanes => {
            let single = |d: &[T], e: &[T], v: &mut [T], w: &mut [T]| {
                scratch().decompose((d, e), (v, w), None);
            };
            let part = part.clone();
            let kernel = lanes::eigh::tridiagonal::Decompose { n, part, vectors, single };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Iterated | Route::Divided => {
            for_each(batch, operands, time, threads, scratch, |scratch, (d, e, v, w)| {
                scratch.decompose((d, e), (v, w), None);
            });
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(d, e, v, w), threads| {
                scratch().decompose((d, e), (v, w), Some(threads));
            });
        }
    }
    Ok(())
}

/// What decompositions of matrices of order n reuse.
struct Scratch<T: Scalar<Real = T>> {
    part: Range<usize>,
    d: Vec<T>,
    e: Vec<T>,
    squares: Vec<f64>,
    rotations: Vec<Rotation<T>>,
    vectors: Option<VectorScratch<T>>,
}

impl<T: Scalar<Real = T>> Scratch<T> {
    fn new(job: Vectors, n: usize, part: Range<usize>) -> Self {
        let wanted = job == Vectors::Wanted;
        Self {
            part,
            d: vec![T::ZERO; n],
            e: vec![T::ZERO; n - 1],
            squares: vec![0.0; if wanted { 0 } else { 2 * n }],
            rotations: vec![Rotation { c: T::ZERO, s: T::ZERO }; n],
            vectors: wanted.then(|| VectorScratch::of_tridiagonal(n)),
        }
    }

    /// Decomposes one matrix.
    fn decompose(
        &mut self,
        (d, e): (&[T], &[T]),
        (v, w): (&mut [T], &mut [T]),
        threads: Option<&dyn Threads>,
    ) {
        let (n, arch) = (d.len(), Arch::new());
        let found = all_finite(d) && all_finite(e) && {
            self.d.copy_from_slice(d);
            self.e.copy_from_slice(e);
            let t = (&mut self.d[..], &mut self.e[..]);
            let iteration = (&mut self.rotations[..], STEPS);
            let outcome = match &mut self.vectors {
                None => eigenvalues(t, &mut self.squares, iteration, arch),
                Some(vectors) => {
                    eigenvectors::<T>(t, &self.part, vectors, iteration, threads, arch)
                }
            };
            outcome.is_ok()
        };
        if !found {
            v.fill(nan());
            w.fill(nan());
            return;
        }
        w.copy_from_slice(&self.d[self.part.clone()]);
        if let Some(vectors) = &mut self.vectors {
            let columns = &mut vectors.z[self.part.start * n..self.part.end * n];
            phase::columns(columns, n, threads);
            transpose_columns((self.part.len(), n), columns, 0, v);
        }
    }
}
