//! Reduction to Hessenberg form, A = Q·H·Qᴴ. See [`crate::hessenberg`].

use super::integers::Int;
use super::routines::Routines;
use super::workspace::Lengths;
use super::{checked, each, finite, in_place, qr};
use crate::hessenberg::{operands, row_major};
use crate::{Error, InOut, Serial, Threads};

/// [`crate::hessenberg::gehrd`] by LAPACK's xGEHRD.
///
/// # Errors
/// As there, and where n or the workspace exceeds the library's integers.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn gehrd<T: Routines>(
    batch: usize,
    n: usize,
    low: usize,
    high: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 0 {
        return crate::hessenberg::gehrd(batch, n, low, high, a, tau, info, threads);
    }
    let operands = operands(batch, n, (low, high), a, tau, info)?;
    let order = Int::new("n", n)?;
    let active = [Int::new("low", low)?, Int::new("high", high)?];
    let lengths =
        Lengths::ask::<T>("gehrd", |work| T::gehrd(order, active, &mut [], &mut [], work))?;
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(2);
    let scratch = || lengths.allocate::<T>();
    each::<T, _, _>(batch, operands, products, threads, scratch, |work, (a, tau, info)| {
        if finite(&*a) {
            info[0] = checked(T::gehrd(order, active, a, tau, work));
        } else {
            let a = in_place(a);
            checked(crate::hessenberg::gehrd(1, n, low, high, a, tau, info, &Serial));
        }
    });
    Ok(())
}

/// [`crate::hessenberg::hess`] by [`gehrd`] and [`qr::orgqr`].
///
/// # Errors
/// As [`gehrd`].
pub fn hess<T: Routines>(
    batch: usize,
    n: usize,
    h: InOut<'_, T>,
    q: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::hess((gehrd, qr::orgqr), batch, n, h, q, threads)
}
