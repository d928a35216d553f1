//! Inverses from LU factors: A⁻¹ = U⁻¹·L⁻¹·P.
//!
//! Column j of L⁻¹ is zero above row j, so a strip of its columns takes only the part of L behind: a sixth less
//! work than both solves of a whole identity. P moves whole columns at the end.

use std::sync::PoisonError;

use faer::{Conj, MatMut, MatRef};
use lapax_core::{Items, ItemsMut, Serial, for_each, run_each};

use super::route;
use super::route::Inverse;
use crate::blas::trsm::solve;
use crate::blas::trsm_packed;
use crate::matrix::strips::strips;
use crate::matrix::triangle::System;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::registers;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::triangular::route::strip_width;
use crate::{Diag, Error, Scalar, Threads, Uplo};

/// The inverse of each matrix of a batch, by rows, from [`crate::lu::lu`]'s factors and permutation.
pub(crate) fn invert<T: Scalar>(
    batch: usize,
    n: usize,
    lu: &[T],
    permutation: &[i32],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let lus = Items::new("lu", batch, &[n, n], lu)?;
    let permutations = Items::new("permutation", batch, &[n], permutation)?;
    let threads = match route::inverse(Kind::of::<T>(), n) {
        Inverse::Registers => {
            let operands = (lus, permutations, ItemsMut::new("x", batch, &[n, n], x)?);
            let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(n));
            let kernel = registers::inverse::Invert { n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
            return Ok(());
        }
        Inverse::Blocked => &Serial,
        Inverse::Parallel => threads,
    };
    let matrices = lu.chunks_exact(n * n).zip(permutation.chunks_exact(n));
    for ((lu, permutation), x) in matrices.zip(x.chunks_exact_mut(n * n)) {
        one(n, lu, permutation, x, threads)?;
    }
    Ok(())
}

/// The inverse of one matrix.
fn one<T: Scalar>(
    n: usize,
    lu: &[T],
    permutation: &[i32],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (width, arch) = (strip_width(n), Arch::new());
    let lu = MatRef::from_row_major_slice(lu, n, n);
    let lower = System { uplo: Uplo::Lower, diag: Diag::Unit, conj: Conj::No };
    let upper = System { uplo: Uplo::Upper, diag: Diag::NonUnit, conj: Conj::No };
    {
        let strips = strips(MatMut::from_row_major_slice_mut(&mut *x, n, n), width);
        let scratch = || trsm_packed::Scratch::new(n, width);
        run_each(threads, strips.len(), scratch, |scratch, strip| {
            let first = strip * width;
            let mut strip = strips[strip].lock().unwrap_or_else(PoisonError::into_inner);
            strip.as_mut().fill(T::ZERO);
            let mut below = strip.as_mut().subrows_mut(first, n - first);
            for i in 0..below.ncols() {
                below[(i, i)] = T::ONE;
            }
            let behind = lu.submatrix(first, first, n - first, n - first);
            solve(lower, behind, below, scratch, arch);
            solve(upper, lu, strip.as_mut(), scratch, arch);
        });
    }
    let (rows, time) = (ItemsMut::new("x", n, &[n], x)?, nanoseconds::<T>(n));
    for_each(
        n,
        rows,
        time,
        threads,
        || vec![T::ZERO; n],
        |copy, row| {
            copy.copy_from_slice(row);
            for (&x, &column) in copy.iter().zip(permutation) {
                // A permutation counts from 0 and up to n − 1.
                if let Some(to) = usize::try_from(column).ok().and_then(|to| row.get_mut(to)) {
                    *to = x;
                }
            }
        },
    );
    Ok(())
}
