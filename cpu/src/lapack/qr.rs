//! QR factorisation A = Q·R or A·P = Q·R, and the use of such a Q. See [`crate::qr`].

use super::integers::{Int, Integers};
use super::routines::Routines;
use super::workspace::Lengths;
use super::{checked, each, finite, in_place};
use crate::matrix::layout::Factor;
use crate::qr::q::{orgqr_operands, ormqr_operands};
use crate::qr::{operands, pivoted, row_major};
use crate::{Error, InOut, Serial, Side, Threads};

/// [`crate::qr::geqrf`] by LAPACK's xGEQRF.
///
/// # Errors
/// As there, and where a dimension or the workspace exceeds the library's integers.
pub fn geqrf<T: Routines>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands = operands(batch, (m, n), a, tau)?;
    if k == 0 {
        return Ok(());
    }
    let (rows, columns) = (Int::new("m", m)?, Int::new("n", n)?);
    let lengths =
        Lengths::ask::<T>("geqrf", |work| T::geqrf(rows, columns, &mut [], &mut [], work))?;
    let products = m.saturating_mul(n).saturating_mul(k);
    let scratch = || lengths.allocate::<T>();
    each::<T, _, _>(batch, operands, products, threads, scratch, |work, (a, tau)| {
        if finite(&*a) {
            checked(T::geqrf(rows, columns, a, tau, work));
        } else {
            checked(crate::qr::geqrf(1, m, n, in_place(a), tau, &Serial));
        }
    });
    Ok(())
}

/// [`crate::qr::pivoted::geqp3`] by LAPACK's xGEQP3.
///
/// # Errors
/// As there, and where a dimension or the workspace exceeds the library's integers.
pub fn geqp3<T: Routines>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    jpvt: InOut<'_, i32>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    if k == 0 {
        // The permutation is wanted all the same.
        return pivoted::geqp3(batch, m, n, a, jpvt, tau, threads);
    }
    let operands = pivoted::operands(batch, (m, n), a, jpvt, tau)?;
    let (rows, columns) = (Int::new("m", m)?, Int::new("n", n)?);
    let lengths = Lengths::ask::<T>("geqp3", |work| {
        T::geqp3(rows, columns, &mut [], &mut Integers::with_room(0), &mut [], work)
    })?;
    let products = m.saturating_mul(n).saturating_mul(2 * k);
    let scratch = || (lengths.allocate::<T>(), Integers::with_room(n));
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, (a, jpvt, tau)| {
        let (work, pivots) = scratch;
        if finite(&*a) {
            pivots.store(jpvt);
            checked(T::geqp3(rows, columns, a, pivots, tau, work));
            pivots.load(jpvt);
        } else {
            checked(pivoted::geqp3(1, m, n, in_place(a), in_place(jpvt), tau, &Serial));
        }
    });
    Ok(())
}

/// [`crate::qr::q::orgqr`] by LAPACK's xORGQR or xUNGQR.
///
/// # Errors
/// As there, and where a dimension or the workspace exceeds the library's integers.
pub fn orgqr<T: Routines>(
    batch: usize,
    m: usize,
    n: usize,
    t: usize,
    a: InOut<'_, T>,
    tau: &[T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = orgqr_operands(batch, (m, n, t), a, tau)?;
    if n == 0 {
        return Ok(());
    }
    let (rows, columns, count) = (Int::new("m", m)?, Int::new("n", n)?, Int::new("t", t)?);
    let lengths =
        Lengths::ask::<T>("orgqr", |work| T::orgqr(rows, columns, count, &mut [], &[], work))?;
    let products = m.saturating_mul(n).saturating_mul(t.max(1));
    let scratch = || lengths.allocate::<T>();
    each::<T, _, _>(batch, operands, products, threads, scratch, |work, (a, tau)| {
        if t > 0 && reflectors_are_finite(a, m, tau) {
            checked(T::orgqr(rows, columns, count, a, tau, work));
        } else {
            checked(crate::qr::q::orgqr(1, m, n, t, in_place(a), tau, &Serial));
        }
    });
    Ok(())
}

/// [`crate::qr::q::ormqr`] by LAPACK's xORMQR or xUNMQR.
///
/// # Errors
/// As there, and where a dimension or the workspace exceeds the library's integers.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
pub fn ormqr<T: Routines>(
    side: Side,
    factor: Factor,
    batch: usize,
    m: usize,
    n: usize,
    p: usize,
    t: usize,
    a: &[T],
    tau: &[T],
    c: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (r, others) = if side == Side::Left { (m, n) } else { (n, m) };
    let operands = ormqr_operands(batch, (r, p, t), (m, n), a, tau, c)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let of = (side, factor);
    let (rows, columns, count) = (Int::new("m", m)?, Int::new("n", n)?, Int::new("t", t)?);
    let lengths = Lengths::ask::<T>("ormqr", |work| {
        T::ormqr(of, rows, columns, count, &mut [], &[], &mut [], work)
    })?;
    let products = r.saturating_mul(others).saturating_mul(2 * t.max(1));
    // LAPACK writes ones into the reflectors while it works, and the argument is not ours to write.
    let scratch = || (lengths.allocate::<T>(), vec![T::ZERO; r * t]);
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, (a, tau, c)| {
        let (work, reflectors) = scratch;
        if t > 0 && reflectors_are_finite(a, r, tau) && finite(&*c) {
            reflectors.copy_from_slice(&a[..r * t]);
            checked(T::ormqr(of, rows, columns, count, reflectors, tau, c, work));
        } else {
            let c = in_place(c);
            checked(crate::qr::q::ormqr(side, factor, 1, m, n, p, t, a, tau, c, &Serial));
        }
    });
    Ok(())
}

/// Whether the parts of `a`'s columns below the diagonal that have a factor are finite, and it, too.
fn reflectors_are_finite<T: Routines>(a: &[T], m: usize, tau: &[T]) -> bool {
    let mut columns = a.chunks_exact(m).zip(1..).take(tau.len());
    finite(tau) && columns.all(|(column, below)| finite(&column[below.min(m)..]))
}

/// [`crate::qr::qr`] by [`geqrf`] and [`orgqr`].
///
/// # Errors
/// As there.
pub fn qr<T: Routines>(
    batch: usize,
    sizes: (usize, usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::qr((geqrf, orgqr), batch, sizes, a, q, r, threads)
}

/// [`crate::qr::qr_r`] by [`geqrf`].
///
/// # Errors
/// As there.
pub fn qr_r<T: Routines>(
    batch: usize,
    sizes: (usize, usize, usize),
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    row_major::qr_r(geqrf, batch, sizes, a, r, threads)
}
