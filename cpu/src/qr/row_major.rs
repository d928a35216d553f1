//! Q and R that lie by rows, by routines for columns.

use lapax_core::{Items, ItemsMut};

use crate::matrix::strips::{by_strips, each_strip};
use crate::matrix::transpose::{transpose, transpose_in_place};
use crate::matrix::triangle::upper_rows;
use crate::parallel::cost::nanoseconds;
use crate::{Error, InOut, Scalar, Threads};

/// [`crate::qr::geqrf`], or another routine with its contract.
pub(crate) type Geqrf<T> =
    fn(usize, usize, usize, InOut<'_, T>, &mut [T], &dyn Threads) -> Result<(), Error>;

/// [`crate::qr::q::orgqr`], or another routine with its contract.
pub(crate) type Orgqr<T> =
    fn(usize, usize, usize, usize, InOut<'_, T>, &[T], &dyn Threads) -> Result<(), Error>;

type Operands<'a, T> = (Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T>);

/// A, Q and R.
pub(super) fn operands<'a, T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &'a [T],
    q: &'a mut [T],
    r: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    Ok((
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("q", batch, &[m, c], q)?,
        ItemsMut::new("r", batch, &[c, n], r)?,
    ))
}

/// [`crate::qr::qr`].
#[allow(clippy::too_many_arguments, reason = "those of qr, and the routines")]
pub(crate) fn qr<T: Scalar>(
    (geqrf, orgqr): (Geqrf<T>, Orgqr<T>),
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    operands(batch, (m, n, c), a, &mut *q, &mut *r)?;
    if m == 0 || c == 0 {
        return Ok(());
    }
    let mut tau = vec![T::ZERO; batch * k];
    // The reflectors lie where Q will, if there are as many.
    if c == n {
        transpose(batch, (m, n), a, q, threads)?;
        factor_apart(geqrf, batch, (m, n, c), (&mut *q, &mut tau, r), threads)?;
    } else {
        let mut factors = vec![T::ZERO; a.len()];
        transpose(batch, (m, n), a, &mut factors, threads)?;
        factor_apart(geqrf, batch, (m, n, c), (&mut factors, &mut tau, r), threads)?;
        if k > 0 {
            for (q, factors) in q.chunks_exact_mut(m * c).zip(factors.chunks_exact(m * n)) {
                q[..m * k].copy_from_slice(&factors[..m * k]);
            }
        }
    }
    orgqr(batch, m, c, k, InOut { src: None, dst: &mut *q }, &tau, threads)?;
    if m == c {
        return transpose_in_place(batch, m, q, threads);
    }
    let columns = q.to_vec();
    transpose(batch, (c, m), &columns, q, threads)
}

/// [`crate::qr::qr_r`].
pub(crate) fn qr_r<T: Scalar>(
    geqrf: Geqrf<T>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    r_operands(batch, (m, n, c), a, &mut *r)?;
    if k == 0 {
        return Ok(());
    }
    let (mut factors, mut tau) = (vec![T::ZERO; a.len()], vec![T::ZERO; batch * k]);
    transpose(batch, (m, n), a, &mut factors, threads)?;
    factor_apart(geqrf, batch, (m, n, c), (&mut factors, &mut tau, r), threads)
}

/// The operands of [`crate::qr::qr_r`].
pub(crate) fn r_operands<'a, T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &'a [T],
    r: &'a mut [T],
) -> Result<(Items<'a, T>, ItemsMut<'a, T>), Error> {
    Ok((Items::new("a", batch, &[m, n], a)?, ItemsMut::new("r", batch, &[c, n], r)?))
}

/// Factors column-major matrices in place, and writes the c rows of R by rows.
fn factor_apart<T: Scalar>(
    geqrf: Geqrf<T>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
    (factors, tau, r): (&mut [T], &mut [T], &mut [T]),
    threads: &dyn Threads,
) -> Result<(), Error> {
    geqrf(batch, m, n, InOut { src: None, dst: &mut *factors }, tau, threads)?;
    if n == 0 {
        return Ok(());
    }
    let operands =
        (Items::new("factors", batch, &[m, n], factors)?, ItemsMut::new("r", batch, &[c, n], r)?);
    let upper = |(factors, r): (&[T], &mut [T]), threads: &dyn Threads| {
        each_strip(r, n, threads, |first, rows| upper_rows((m, n), factors, first, rows));
    };
    by_strips(batch, c, operands, nanoseconds::<T>(m.saturating_mul(n)), threads, upper);
    Ok(())
}
