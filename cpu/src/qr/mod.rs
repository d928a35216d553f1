//! QR factorisation A = Q·R, with Q as reflectors below the diagonal, and products with that Q.
//!
//! Q = H₁·H₂⋯H_k, H_i = I − tau_i·v_i·v_iᴴ; v_i is zero above row i, one in it, and stored below it.
//! The diagonal of R is real and may be negative. Columns are factored in blocks, each by halves,
//! after Elmroth and Gustavson, "Applying recursion to serial and parallel QR factorization leads to
//! better performance" (IBM J. Res. Dev. 44, 2000).

pub(crate) mod blocked;
mod packed;
pub(crate) mod parallel;
pub(crate) mod pivoted;
pub(crate) mod q;
pub(crate) mod row_major;
mod tall;

use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::blas::householder::{Reflector, reflector};
use crate::matrix::layout::Layout;
use crate::matrix::panel::Panel;
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::parallel::{few, groups};
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::{Error, InOut, Scalar, Serial, Threads};
use crate::{lanes, registers, unblocked};
use blocked::{factor, factor_scratch};
use parallel::factor_parallel;

pub use crate::matrix::layout::Factor;
pub use pivoted::geqp3;
pub use q::{orgqr, ormqr};

/// The number of reflectors from which one matrix is shared out among all threads. On two cores with
/// AVX-512, f64, against one without panels: n = 256 0.76 ms and 0.58, n = 384 1.35 and 1.6, n = 1024 16 and
/// 27; `orgqr` 0.40 and 0.49, 1.0 and 1.4, 15 and 27. Serially panels cost 5 % more at n = 2048, 25 % at 384.
/// With AVX2, `qr` of n = 256, threads started for it: f64 2.1 and 1.9, f32 1.7 and 1.2, c64 3.7 and 3.5, c128
/// 6.5 and 8.5.
pub(crate) const PARALLEL_ORDER: usize = 320;
/// The number of rows and of columns up to which a batch goes through lanes.
pub(crate) const LANES_ORDER: usize = 32;

/// Factors each m × n matrix of a batch as A = Q·R, in place.
///
/// `a` holds R on and above the diagonal and the reflectors of Q below it; `tau` holds the
/// min(m, n) factors of each matrix. A tau is zero, and its reflector the identity, where the
/// column is zero below the diagonal and real on it.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn geqrf<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands =
        (ItemsInOut::new("a", batch, &[m, n], a)?, ItemsMut::new("tau", batch, &[k], tau)?);
    if k == 0 {
        return Ok(());
    }
    let products = m.saturating_mul(n).saturating_mul(k);
    if groups::pay(batch, m.max(n), LANES_ORDER) {
        let kernel = lanes::qr::Factor { m, n, order: Layout::Columns };
        for_each_group::<T, _>(batch, operands, nanoseconds::<T>(products), threads, &kernel);
        return Ok(());
    }
    if k > PARALLEL_ORDER {
        for_each_large(batch, operands, threads, |(a, tau), threads| {
            factor_parallel(a, m, tau, threads);
        });
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || factor_scratch(m, n);
    for_each(batch, operands, nanoseconds::<T>(products), threads, scratch, |scratch, (a, tau)| {
        factor(Panel { a, lda: m, row: 0 }, tau, scratch, arch);
    });
    Ok(())
}

/// Factors each m × n row-major matrix of a batch as A = Q·R, with c columns of Q and c rows of R.
///
/// `q` is m × c and `r` is c × n, by rows; c is min(m, n), or m for all of Q. R is zero below its
/// diagonal, which is real and may be negative.
///
/// # Errors
/// Where c is neither, or a slice has another length than the dimensions say.
#[per_scalar]
pub fn qr<T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    if c == n && crate::qr::tall::pays::<T>(m, n) {
        return tall(batch, (m, n), a, q, r, threads);
    }
    let by_lanes = groups::pay(batch, m.max(n), LANES_ORDER);
    let by_columns = registers::qr::serve(Kind::of::<T>(), m, n);
    if k == 0 {
        return row_major::qr((geqrf, orgqr), batch, (m, n, c), a, q, r, threads);
    }
    let operands = (
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("q", batch, &[m, c], q)?,
        ItemsMut::new("r", batch, &[c, n], r)?,
    );
    let products = m.saturating_mul(n + c).saturating_mul(k);
    let time = nanoseconds::<T>(products);
    if m == 1 && !(T::IS_COMPLEX && by_lanes) {
        for_each(batch, operands, time, threads, || (), |(), (a, q, r)| q[0] = one_row(a, r));
        return Ok(());
    }
    if by_lanes {
        let kernel = lanes::qr::explicit::Decompose { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if unblocked::qr::pay(m, n) {
        few::each(batch, operands, |(a, q, r)| unblocked::qr::decompose((m, n, c), a, Some(q), r));
        return Ok(());
    }
    if by_columns {
        let kernel = registers::qr::Explicit { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |(a, q, r): (&[T], &mut [T], &mut [T]), threads: &dyn Threads| {
        outcome.take(row_major::qr((geqrf, orgqr), 1, (m, n, c), a, q, r, threads));
    };
    if k > PARALLEL_ORDER {
        for_each_large(batch, operands, threads, one);
    } else {
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}

/// R of one row, and the number that makes up Q: a real one is 1.
fn one_row<T: Scalar>(a: &[T], r: &mut [T]) -> T {
    let Reflector { beta, tau } = reflector::<pulp::Scalar, T>(a[0], &mut []);
    r.iter_mut().zip(a).for_each(|(r, &a)| *r = a * (T::ONE - tau.conj()));
    r[0] = T::from_real(beta);
    T::ONE - tau
}

/// R of each m × n row-major matrix of a batch, with c rows: that of [`qr`] with min(m, n) columns of Q, which is
/// not formed.
///
/// `r` is c × n, by rows; c is min(m, n), or m, with zeros in the rows beyond.
///
/// # Errors
/// Where c is neither, or a slice has another length than the dimensions say.
#[per_scalar]
pub fn qr_r<T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands = (Items::new("a", batch, &[m, n], a)?, ItemsMut::new("r", batch, &[c, n], r)?);
    if k == 0 {
        return Ok(());
    }
    let by_lanes = groups::pay(batch, m.max(n), LANES_ORDER);
    let time = nanoseconds::<T>(m.saturating_mul(n).saturating_mul(k));
    if m == 1 && !(T::IS_COMPLEX && by_lanes) {
        for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (a, r)| {
                one_row(a, r);
            },
        );
        return Ok(());
    }
    if by_lanes {
        let kernel = lanes::qr::explicit::Upper { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if unblocked::qr::pay(m, n) {
        few::each(batch, operands, |(a, r)| unblocked::qr::decompose((m, n, c), a, None, r));
        return Ok(());
    }
    let tall = crate::qr::tall::pays::<T>(m, n);
    if registers::qr::serve(Kind::of::<T>(), m, n) && !tall {
        let kernel = registers::qr::Upper { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |(a, r): (&[T], &mut [T]), threads: &dyn Threads| {
        let (top, below) = r.split_at_mut(k * n);
        below.fill(T::ZERO);
        if !(tall && crate::qr::tall::decompose_r(n, a, top, threads)) {
            outcome.take(row_major::qr_r(geqrf, 1, (m, n, k), a, top, threads));
        }
    };
    if k > PARALLEL_ORDER || (tall && m > crate::qr::tall::block_rows::<T>(n)) {
        for_each_large(batch, operands, threads, one);
    } else {
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}

/// [`qr`] of matrices much taller than wide, with n columns of Q.
fn tall<T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("q", batch, &[m, n], q)?,
        ItemsMut::new("r", batch, &[n, n], r)?,
    );
    let outcome = Outcome::default();
    let one = |(a, q, r): (&[T], &mut [T], &mut [T]), threads: &dyn Threads| {
        if !crate::qr::tall::decompose(n, a, q, r, threads) {
            outcome.take(row_major::qr((geqrf, orgqr), 1, (m, n, n), a, q, r, threads));
        }
    };
    if m > crate::qr::tall::block_rows::<T>(n) {
        for_each_large(batch, operands, threads, one);
    } else {
        let time = nanoseconds::<T>(m.saturating_mul(n).saturating_mul(n).saturating_mul(2));
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}
