//! The Hermitian eigenproblem, A = V·diag(w)·Vᴴ, and its first half, A = Q·T·Qᴴ. See
//! [`crate::eigh`].

use std::ops::Range;

use super::integers::Int;
use super::routines::Routines;
use super::workspace::Lengths;
use super::{checked, each, finite, in_place};
use crate::eigh::{operands, row_major};
use crate::matrix::phase;
use crate::matrix::triangle::triangle;
use crate::{Error, InOut, Serial, Threads, Uplo, Vectors};

/// [`crate::eigh::syevd`] by LAPACK's xSYEVD or xHEEVD.
///
/// # Errors
/// As there, and where n or the workspace, of which there are 2·n² numbers for vectors, exceeds the
/// library's integers.
#[allow(clippy::too_many_arguments, reason = "LAPACK's arguments, less the leading dimensions")]
pub fn syevd<T: Routines>(
    job: Vectors,
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 {
        return crate::eigh::syevd(job, uplo, batch, n, v, w, info, threads);
    }
    let operands = operands(batch, n, v, w, info)?;
    let order = Int::new("n", n)?;
    let lengths =
        Lengths::ask::<T>("syevd", |work| T::syevd(job, uplo, order, &mut [], &mut [], work))?;
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(4);
    let scratch = || (lengths.allocate::<T>(), vec![T::ZERO; n * n]);
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, (v, w, info)| {
        let (work, copy) = scratch;
        if finite(triangle(v, n, uplo).flatten()) {
            copy.copy_from_slice(v);
            info[0] = checked(T::syevd(job, uplo, order, v, w, work));
            if info[0] == 0 {
                if job == Vectors::Wanted {
                    phase::columns(v, n, None);
                }
                return;
            }
            v.copy_from_slice(copy);
        }
        checked(crate::eigh::syevd(job, uplo, 1, n, in_place(v), w, info, &Serial));
    });
    Ok(())
}

/// [`crate::eigh::eigh`] by [`syevd`].
///
/// # Errors
/// As [`syevd`].
pub fn eigh<T: Routines>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::eigh(syevd, uplo, batch, n, v, w, threads)
}

/// [`crate::eigh::eigh_subset`] by [`syevd`].
///
/// # Errors
/// As there, and as [`syevd`].
#[allow(clippy::too_many_arguments, reason = "those of eigh, and the part")]
pub fn eigh_subset<T: Routines>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    v: &mut [T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::eigh_subset(syevd, uplo, batch, n, part, a, v, w, threads)
}

/// [`crate::eigh::eigvalsh`] by [`syevd`].
///
/// # Errors
/// As [`syevd`].
pub fn eigvalsh<T: Routines>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::eigvalsh(syevd, uplo, batch, n, a, w, threads)
}

/// [`crate::eigh::sytrd::sytrd`] by LAPACK's xSYTRD or xHETRD.
///
/// # Errors
/// As there, and where n or the workspace exceeds the library's integers.
#[allow(clippy::too_many_arguments, reason = "LAPACK's arguments, less the leading dimensions")]
pub fn sytrd<T: Routines>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 {
        return crate::eigh::sytrd::sytrd(uplo, batch, n, a, d, e, tau, info, threads);
    }
    let operands = crate::eigh::sytrd::operands(batch, n, a, d, e, tau, info)?;
    let order = Int::new("n", n)?;
    let lengths = Lengths::ask::<T>("sytrd", |work| {
        T::sytrd(uplo, order, &mut [], &mut [], &mut [], &mut [], work)
    })?;
    let products = n.saturating_mul(n).saturating_mul(n);
    let scratch = || lengths.allocate::<T>();
    each::<T, _, _>(batch, operands, products, threads, scratch, |work, (a, d, e, tau, info)| {
        if finite(triangle(a, n, uplo).flatten()) {
            info[0] = checked(T::sytrd(uplo, order, a, d, e, tau, work));
        } else {
            let a = in_place(a);
            checked(crate::eigh::sytrd::sytrd(uplo, 1, n, a, d, e, tau, info, &Serial));
        }
    });
    Ok(())
}
