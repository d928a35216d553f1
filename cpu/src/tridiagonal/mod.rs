//! Tridiagonal systems A·X = B, A given by its three diagonals, each of length m.
//!
//! Row i of A is dl[i], d[i], du[i] in columns i − 1, i, i + 1: dl[0] and du[m − 1] lie outside and
//! are not read. Elimination with row interchanges gives U a second superdiagonal.

pub(crate) mod elimination;
pub(crate) mod route;
pub(crate) mod row_major;
mod twisted;

use lapax_core::{Items, ItemsInOut, ItemsMut, Serial, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::lanes::tridiagonal;
use crate::lanes::tridiagonal::columns::{AsItIs, Step};
use crate::lanes::tridiagonal::perturbed::Perturbed;
use crate::matrix::layout::Layout;
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::scalar::nan;
use crate::{Error, InOut, Scalar, Threads};
use elimination::{
    Upper, columns, eliminate, forward, lanes_work, perturbed_quotient, residue, solve_columns,
    work,
};
use route::{Route, route};

pub use elimination::Diagonals;

/// Solves A·X = B for each matrix of a batch, by Gaussian elimination with partial pivoting.
///
/// `b` is m × nrhs, column-major, and becomes X. `info` holds one number per matrix: 0, or the
/// first i > 0 for which U(i, i) is exactly zero; X is then not computed and `b` unchanged. The
/// diagonals are left as debris of the elimination.
///
/// # Errors
/// Where m exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn gtsv<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    a: Diagonals<'_, T>,
    b: InOut<'_, T>,
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, (m, nrhs), a, b, info)?;
    let route = route(Layout::Columns, batch, m, nrhs);
    if route == Route::Lanes {
        let kernel = lanes::tridiagonal::Solve { m, nrhs };
        for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one =
        |[dl, d, du]: [&mut [T]; 3], b: &mut [T], steps: &mut [Step<T>], threads: &dyn Threads| {
            match eliminate(dl, d, du, steps) {
                Ok(()) if route == Route::Sides => {
                    outcome.take(solve_columns([dl, d, du], steps, b, &AsItIs, threads));
                    0
                }
                Ok(()) => {
                    for b in columns(b, m) {
                        forward(steps, b);
                        for i in (0..m).rev() {
                            b[i] = residue(i, du, dl, b).divide(d[i]);
                        }
                    }
                    0
                }
                // At most m, which is an i32.
                Err(i) => i32::try_from(i + 1).unwrap_or(i32::MAX),
            }
        };
    let (time, steps) = (nanoseconds::<T>(work(m, nrhs)), || vec![Step::NONE; m]);
    if batch == 1 {
        for_each_large(batch, operands, threads, |(dl, d, du, b, info), threads| {
            info[0] = one([dl, d, du], b, &mut steps(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, steps, |steps, (dl, d, du, b, info)| {
            info[0] = one([dl, d, du], b, steps, &Serial);
        });
    }
    outcome.into_result()
}

/// The operands of [`gtsv`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    (m, nrhs): (usize, usize),
    a: Diagonals<'a, T>,
    b: InOut<'a, T>,
    info: &'a mut [i32],
) -> Result<tridiagonal::Operands<'a, T>, Error> {
    index_fits_i32("m", m)?;
    Ok((
        ItemsInOut::new("dl", batch, &[m], a.dl)?,
        ItemsInOut::new("d", batch, &[m], a.d)?,
        ItemsInOut::new("du", batch, &[m], a.du)?,
        ItemsInOut::new("b", batch, &[m, nrhs], b)?,
        ItemsMut::new("info", batch, &[], info)?,
    ))
}

/// Solves A·X = B for each matrix of a batch, with B and X by rows.
///
/// `b` and `x` are m × nrhs; X is NaN where A is singular: where an elimination with partial pivoting
/// finds a pivot that is exactly zero.
///
/// # Errors
/// As [`gtsv`].
#[per_scalar]
pub fn tridiagonal_solve<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let route = route(Layout::Rows, batch, m, nrhs);
    if let Route::Sides | Route::Unblocked = route {
        return row_major::tridiagonal_solve(gtsv, batch, (m, nrhs), [dl, d, du], b, x, threads);
    }
    let operands = solve_operands(batch, (m, nrhs), [dl, d, du], b, x)?;
    let (outcome, time) = (Outcome::default(), nanoseconds::<T>(work(m, nrhs)));
    match route {
        Route::Lanes => {
            let kernel = lanes::tridiagonal::SolveRows { m, nrhs };
            for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
        }
        Route::OrderOne => for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (_, d, _, b, x)| {
                x[0] = if d[0] == T::ZERO { nan() } else { b[0].divide(d[0]) };
            },
        ),
        Route::Twisted | Route::Sides | Route::Unblocked => {
            let arch = Arch::new();
            for_each(batch, operands, time, threads, Vec::new, |rows, (dl, d, du, b, x)| {
                let a = [dl, d, du];
                if !twisted::solve(a, b, x, rows, arch) {
                    outcome.take(row_major::tridiagonal_solve(gtsv, 1, (m, 1), a, b, x, &Serial));
                }
            });
        }
    }
    outcome.into_result()
}

/// Solves A·X = B for each matrix of a batch, perturbing a pivot wherever the quotient by it would
/// overflow, so that X is finite for any finite A and B: what inverse iteration needs.
///
/// `b` is m × nrhs, column-major, as is `x`. After LAPACK's xLAGTF and xLAGTS: rows are compared
/// for pivoting relative to their sizes; a pivot p too small for its right-hand side becomes
/// p + sign(re p)·δ, with δ doubled from ε·max|U| until the quotient is safe.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn tridiagonal_solve_perturbed<T: Scalar>(
    batch: usize,
    m: usize,
    nrhs: usize,
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = solve_operands(batch, (m, nrhs), [dl, d, du], b, x)?;
    if nrhs == 0 {
        return Ok(());
    }
    let route = route(Layout::Columns, batch, m, nrhs);
    if route == Route::Lanes {
        let kernel = tridiagonal::perturbed::Solve { m, nrhs, quotient: perturbed_quotient::<T> };
        for_each_group::<T, _>(batch, operands, lanes_work(m, nrhs), threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |[dl, d, du]: [&[T]; 3], x: &mut [T], upper: &mut Upper<T>, threads: &dyn Threads| {
        upper.eliminate(dl, d, du);
        let least = upper.least_perturbation();
        let Upper { diagonal, first, second, steps } = upper;
        if route == Route::Sides {
            let division = Perturbed { least, quotient: perturbed_quotient::<T> };
            let upper = [&**second, diagonal, first];
            outcome.take(solve_columns(upper, steps, x, &division, threads));
            return;
        }
        for x in columns(x, m) {
            forward(steps, x);
            for i in (0..m).rev() {
                let rhs = residue(i, first, second, x);
                x[i] = perturbed_quotient(rhs, diagonal[i], least);
            }
        }
    };
    let (time, upper) =
        (nanoseconds::<T>(work(m, nrhs).saturating_mul(2)), || Upper::with_order(m));
    if batch == 1 {
        for_each_large(batch, operands, threads, |(dl, d, du, b, x), threads| {
            x.copy_from_slice(b);
            one([dl, d, du], x, &mut upper(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, upper, |upper, (dl, d, du, b, x)| {
            x.copy_from_slice(b);
            one([dl, d, du], x, upper, &Serial);
        });
    }
    outcome.into_result()
}

/// The operands of [`tridiagonal_solve`], and of [`tridiagonal_solve_perturbed`].
fn solve_operands<'a, T: Scalar>(
    batch: usize,
    (m, nrhs): (usize, usize),
    [dl, d, du]: [&'a [T]; 3],
    b: &'a [T],
    x: &'a mut [T],
) -> Result<tridiagonal::RowOperands<'a, T>, Error> {
    Ok((
        Items::new("dl", batch, &[m], dl)?,
        Items::new("d", batch, &[m], d)?,
        Items::new("du", batch, &[m], du)?,
        Items::new("b", batch, &[m, nrhs], b)?,
        ItemsMut::new("x", batch, &[m, nrhs], x)?,
    ))
}
