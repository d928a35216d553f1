//! QR factorisation with column pivoting, A·P = Q·R: of the columns that are left, the one of
//! largest norm comes next.
//!
//! Norms are downdated from row to row, and computed anew where that has lost digits: Drmač and
//! Bujanović, "On the failure of rank-revealing QR factorization software" (ACM TOMS 35, 2008;
//! LAPACK Working Note 176).

pub(crate) mod blocked;
mod free;
mod panel;
pub(crate) mod parallel;

use lapax_core::{ItemsInOut, ItemsMut, for_each, for_each_large, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::parallel::cost::nanoseconds;
use crate::qr::route;
use crate::qr::route::{Route, products};
use crate::simd::arch::Arch;
use crate::{Error, InOut, Scalar, Threads};
use blocked::{Scratch, factor_pivoted};
use parallel::factor_pivoted_parallel;

/// Factors each m × n matrix of a batch as A·P = Q·R, in place.
///
/// `a` and `tau` become what [`geqrf`](crate::qr::geqrf) makes of A·P. In `jpvt`, a number that is
/// not zero fixes its column: such columns come first, in order, and are not pivoted. It becomes
/// the permutation, counted from 1: column j of A·P is column `jpvt[j]` of A.
///
/// The first of equal norms wins, and a column that holds NaN is larger than any other.
///
/// # Errors
/// Where n exceeds `i32`, in which columns are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn geqp3<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    jpvt: InOut<'_, i32>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, (m, n), a, jpvt, tau)?;
    if n == 0 {
        return Ok(());
    }
    let arch = Arch::new();
    match route::geqp3(m, n) {
        Route::Parallel => for_each_large(batch, operands, threads, |(a, jpvt, tau), threads| {
            factor_pivoted_parallel(a, m, jpvt, tau, threads, arch);
        }),
        // With pivoting there are no other ways.
        _ => {
            let time = nanoseconds::<T>(products(m, n, 2 * m.min(n).max(1)));
            let scratch = || Scratch::new(m, n);
            for_each(batch, operands, time, threads, scratch, |scratch, (a, jpvt, tau)| {
                factor_pivoted(a, m, jpvt, tau, scratch, arch);
            });
        }
    }
    Ok(())
}

type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsInOut<'a, i32>, ItemsMut<'a, T>);

/// The operands of [`geqp3`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'a, T>,
    jpvt: InOut<'a, i32>,
    tau: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    index_fits_i32("n", n)?;
    Ok((
        ItemsInOut::new("a", batch, &[m, n], a)?,
        ItemsInOut::new("jpvt", batch, &[n], jpvt)?,
        ItemsMut::new("tau", batch, &[m.min(n)], tau)?,
    ))
}
