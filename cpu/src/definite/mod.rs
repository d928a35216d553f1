//! Systems A·X = B with a Hermitian positive definite A, by its Cholesky factor: A = L·Lᴴ = Uᴴ·U.
//!
//! A matrix of which the upper triangle is given is turned to its adjoint, whose lower triangle that is, and U is Lᴴ
//! then: there is one arithmetic, and it is that of [`crate::cholesky::cholesky`] and two triangular solves.

pub(crate) mod route;

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::blas::trsv;
use crate::cholesky::row_major;
use crate::matrix::layout::Layout;
use crate::matrix::transpose::{adjoint, transpose_one};
use crate::matrix::triangle;
use crate::matrix::triangle::{Triangle, triangles};
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::scalar::nan;
use crate::solve::operands;
use crate::triangular::route::{Route as System, route as by_triangles};
use crate::triangular::trsm;
use crate::unblocked::{solve, triangular};
use crate::{Diag, Error, InOut, Scalar, Serial, Threads, Uplo};
use crate::{cholesky, lanes, registers};
use route::{Route, fit_lanes, products, route};

pub use crate::matrix::triangle::Given;

/// [`cholesky::cholesky`] and [`cho_solve`], or other routines with their contracts.
#[derive(Clone, Copy)]
pub(crate) struct Routines<T> {
    pub(crate) cholesky: Cholesky<T>,
    pub(crate) cho_solve: ChoSolve<T>,
}

type Cholesky<T> = fn(bool, usize, usize, InOut<'_, T>, &dyn Threads) -> Result<(), Error>;

type ChoSolve<T> =
    fn(Uplo, usize, (usize, usize), &[T], &[T], &mut [T], &dyn Threads) -> Result<(), Error>;

/// The factor and the logarithm of the determinant of each matrix.
#[derive(Debug)]
pub struct Kept<'a, T: Scalar> {
    /// L or U, by rows; zero in the other triangle.
    pub factor: &'a mut [T],
    /// ln det(A).
    pub logdet: &'a mut [T::Real],
}

/// The solution of A·X = B for each system of a batch, A Hermitian positive definite.
///
/// `a` is n × n, `b` and `x` are n × nrhs; all lie by rows. The imaginary parts on A's diagonal are taken as zero. X is
/// NaN where A is not positive definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn posv<T: Scalar>(
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = Routines { cholesky: cholesky::cholesky, cho_solve };
    if nrhs == 0 {
        return operands(batch, (n, nrhs), a, Some(b), x).map(|_| ());
    }
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Unblocked => {
            few::each(batch, operands(batch, (n, nrhs), a, Some(b), x)?, |(a, b, x)| {
                few_solve(given, (n, nrhs), a, b, x, |_| ());
            });
        }
        Route::Lanes => {
            let operands = operands(batch, (n, nrhs), a, Some(b), x)?;
            let time = nanoseconds::<T>(products(n, nrhs));
            let kernel = lanes::definite::Solve { given, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Factors | Route::Parallel => {
            return by_factor(routines, given, batch, (n, nrhs), a, b, x, threads);
        }
    }
    Ok(())
}

/// [`posv`], and the factor and the logarithm of the determinant: NaN where A is not positive definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "those of posv, and what is kept")]
#[per_scalar]
pub fn posv_factor<T: Scalar>(
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    kept: Kept<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let routines = Routines { cholesky: cholesky::cholesky, cho_solve };
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Unblocked => {
            let operands = kept_operands(batch, (n, nrhs), a, b, x, kept)?;
            few::each(batch, operands, |(a, b, x, factor, logdet)| {
                few_solve(given, (n, nrhs), a, b, x, |l| {
                    factor.copy_from_slice(l);
                    finish(given, n, factor, logdet);
                });
            });
        }
        Route::Lanes => {
            let operands = kept_operands(batch, (n, nrhs), a, b, x, kept)?;
            let time = nanoseconds::<T>(products(n, nrhs));
            let kernel = lanes::definite::Solve { given, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Factors | Route::Parallel => {
            return by_factor_kept(routines, given, batch, (n, nrhs), a, b, x, kept, threads);
        }
    }
    Ok(())
}

/// The solution of A·X = B for each system of a batch, by the factor of A that `uplo` says: L or U.
///
/// `factor` is n × n, `b` and `x` are n × nrhs; all lie by rows. The other triangle of `factor` is not read. A zero on
/// its diagonal gives infinities or NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cho_solve<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let route = by_triangles(Kind::of::<T>(), Layout::Rows, batch, n, nrhs);
    let by_trsm = match route {
        System::Unblocked | System::Registers | System::OneSide => false,
        System::Lanes => !fit_lanes(n, nrhs),
        System::Blocked | System::Parallel => true,
    };
    if by_trsm {
        return row_major::cho_solve(trsm, uplo, batch, (n, nrhs), factor, b, x, threads);
    }
    let operands = row_major::solve_operands(batch, (n, nrhs), factor, b, x)?;
    let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(nrhs));
    match route {
        System::Unblocked => few::each(batch, operands, |(factor, b, x)| {
            x.copy_from_slice(b);
            few_substitute(uplo, (n, nrhs), factor, x);
        }),
        System::Registers => {
            let kernel = registers::cho_solve::Solve { uplo, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        System::Lanes => {
            let kernel = lanes::definite::Substitute { uplo, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        System::OneSide | System::Blocked | System::Parallel => {
            let arch = Arch::new();
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (a, b, x)| {
                    x.copy_from_slice(b);
                    for Triangle { uplo, conj, order } in triangles(uplo) {
                        let x = &mut *x;
                        arch.dispatch(trsv::Solve { uplo, diag: Diag::NonUnit, conj, order, a, x });
                    }
                },
            );
        }
    }
    Ok(())
}

type KeptOperands<'a, T> = (
    Items<'a, T>,
    Items<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
);

/// [`operands`], and what is kept.
fn kept_operands<'a, T: Scalar>(
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
    kept: Kept<'a, T>,
) -> Result<KeptOperands<'a, T>, Error> {
    let (a, b, x) = operands(batch, (n, nrhs), a, Some(b), x)?;
    let factor = ItemsMut::new("factor", batch, &[n, n], kept.factor)?;
    Ok((a, b, x, factor, ItemsMut::new("logdet", batch, &[], kept.logdet)?))
}

/// Solves one small system; `keep` gets L, with zeros above its diagonal.
fn few_solve<T: Scalar>(
    given: Given,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    keep: impl FnOnce(&mut [T]),
) {
    solve::with_copy(a, |l| {
        if given.turned() {
            adjoint(l, n);
        }
        let factored = cholesky::factor_few(l, n, given.mean);
        if factored {
            x.copy_from_slice(b);
            few_substitute(Uplo::Lower, (n, nrhs), l, x);
        } else {
            x.fill(nan());
        }
        triangle::only_lower(l, n, 0, factored);
        keep(l);
    });
}

/// X ← A⁻¹·X.
fn few_substitute<T: Scalar>(uplo: Uplo, sizes: (usize, usize), factor: &[T], x: &mut [T]) {
    for Triangle { uplo, conj, order } in triangles(uplo) {
        let conj = if conj { faer::Conj::Yes } else { faer::Conj::No };
        let system = triangle::System { uplo, diag: Diag::NonUnit, conj };
        triangular::substitute(system, sizes, (factor, order), (&mut *x, Layout::Rows));
    }
}

/// The logarithm of the determinant, by L, which becomes the factor that is meant.
fn finish<T: Scalar>(given: Given, n: usize, factor: &mut [T], logdet: &mut [T::Real]) {
    // ln det(A) = 2·Σ ln L(i, i).
    let sum: f64 = factor.iter().step_by(n + 1).map(|l| l.re().to_f64().ln()).sum();
    logdet[0] = T::Real::from_f64(2.0 * sum);
    if given.uplo == Uplo::Upper {
        adjoint(factor, n);
    }
}

/// [`posv`] by other routines, matrix by matrix. A large one has all threads.
#[allow(clippy::too_many_arguments, reason = "those of posv, and the routines")]
pub(crate) fn by_factor<T: Scalar>(
    routines: Routines<T>,
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, (n, nrhs), a, Some(b), x)?;
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |factor: &mut Vec<T>, (a, b, x): (&[T], &[T], &mut [T]), threads: &dyn Threads| {
        factor.resize(n * n, T::ZERO);
        outcome.take(factor_and_solve(routines, given, (n, nrhs), (a, b), x, factor, threads));
    };
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Parallel => for_each_large(batch, operands, threads, |item, threads| {
            one(&mut Vec::new(), item, threads);
        }),
        // Other routines have no kernels for whole systems.
        Route::Unblocked | Route::Lanes | Route::Factors => {
            let time = nanoseconds::<T>(products(n, nrhs));
            for_each(batch, operands, time, threads, Vec::new, |factor, item| {
                one(factor, item, &Serial);
            });
        }
    }
    outcome.into_result()
}

/// A, B, X, and what is kept.
type Item<'a, T, R> = (&'a [T], &'a [T], &'a mut [T], &'a mut [T], &'a mut [R]);

/// [`posv_factor`], likewise.
#[allow(clippy::too_many_arguments, reason = "those of posv_factor, and the routines")]
pub(crate) fn by_factor_kept<T: Scalar>(
    routines: Routines<T>,
    given: Given,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
    kept: Kept<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = kept_operands(batch, (n, nrhs), a, b, x, kept)?;
    if n == 0 {
        operands.4.into_data().fill(T::Real::ZERO);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |(a, b, x, factor, logdet): Item<'_, T, T::Real>, threads: &dyn Threads| {
        let sizes = (n, nrhs);
        outcome.take(factor_and_solve(routines, given, sizes, (a, b), x, factor, threads));
        finish(given, n, factor, logdet);
    };
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Parallel => for_each_large(batch, operands, threads, one),
        Route::Unblocked | Route::Lanes | Route::Factors => {
            let time = nanoseconds::<T>(products(n, nrhs));
            for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
        }
    }
    outcome.into_result()
}

/// L and X of one system.
fn factor_and_solve<T: Scalar>(
    routines: Routines<T>,
    given: Given,
    (n, nrhs): (usize, usize),
    (a, b): (&[T], &[T]),
    x: &mut [T],
    factor: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if given.turned() {
        transpose_one((n, n), a, factor, threads);
        if T::IS_COMPLEX {
            factor.iter_mut().for_each(|x| *x = x.conj());
        }
    }
    let src = if given.turned() { None } else { Some(a) };
    (routines.cholesky)(given.mean, 1, n, InOut { src, dst: &mut *factor }, threads)?;
    (routines.cho_solve)(Uplo::Lower, 1, (n, nrhs), factor, b, x, threads)
}
