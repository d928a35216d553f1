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
pub(crate) mod route;
pub(crate) mod row_major;
mod tall;

use lapax_core::{ItemsInOut, ItemsMut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::blas::householder::{Reflector, reflector};
use crate::matrix::layout::Layout;
use crate::matrix::panel::Panel;
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::{Error, InOut, Scalar, Serial, Threads};
use crate::{lanes, registers, unblocked};
use blocked::{factor, factor_scratch};
use parallel::factor_parallel;
use route::{Route, products, route};

pub use crate::matrix::layout::Factor;
pub use pivoted::geqp3;
pub use q::{orgqr, ormqr};

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
    let operands = operands(batch, (m, n), a, tau)?;
    if k == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(products(m, n, k));
    match route::geqrf(batch, m, n) {
        Route::Lanes => {
            let kernel = lanes::qr::Factor { m, n, order: Layout::Columns };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, tau), threads| {
            factor_parallel(a, m, tau, threads);
        }),
        // By columns there are no other ways.
        _ => {
            let (scratch, arch) = (|| factor_scratch(m, n), Arch::new());
            for_each(batch, operands, time, threads, scratch, |scratch, (a, tau)| {
                factor(Panel { a, lda: m, row: 0 }, tau, scratch, arch);
            });
        }
    }
    Ok(())
}

/// The operands of [`geqrf`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'a, T>,
    tau: &'a mut [T],
) -> Result<(ItemsInOut<'a, T>, ItemsMut<'a, T>), Error> {
    Ok((ItemsInOut::new("a", batch, &[m, n], a)?, ItemsMut::new("tau", batch, &[m.min(n)], tau)?))
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
    if k == 0 {
        return row_major::qr((geqrf, orgqr), batch, (m, n, c), a, q, r, threads);
    }
    let operands = row_major::operands(batch, (m, n, c), a, q, r)?;
    let time = nanoseconds::<T>(products(m, n + c, k));
    let route = route(Kind::of::<T>(), batch, (m, n, c));
    let outcome = Outcome::default();
    let one = |(a, q, r): (&[T], &mut [T], &mut [T]), threads: &dyn Threads| {
        if !(route.by_gram_matrix() && tall::decompose(n, a, q, r, threads)) {
            outcome.take(row_major::qr((geqrf, orgqr), 1, (m, n, c), a, q, r, threads));
        }
    };
    match route {
        Route::OneRow => {
            for_each(batch, operands, time, threads, || (), |(), (a, q, r)| q[0] = one_row(a, r));
        }
        Route::Unblocked => few::each(batch, operands, |(a, q, r)| {
            unblocked::qr::decompose((m, n, c), a, Some(q), r);
        }),
        Route::Lanes => {
            let kernel = lanes::qr::explicit::Decompose { m, n, c };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Registers => {
            let kernel = registers::qr::Explicit { m, n, c };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Tall | Route::Blocked => {
            for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
        }
        Route::TallParallel | Route::Parallel => for_each_large(batch, operands, threads, one),
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
    let operands = row_major::r_operands(batch, (m, n, c), a, r)?;
    if k == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(products(m, n, k));
    // That of qr with k columns of Q, however many rows of zeros R has.
    let route = route(Kind::of::<T>(), batch, (m, n, k));
    let outcome = Outcome::default();
    let one = |(a, r): (&[T], &mut [T]), threads: &dyn Threads| {
        let (top, below) = r.split_at_mut(k * n);
        below.fill(T::ZERO);
        if !(route.by_gram_matrix() && tall::decompose_r(n, a, top, threads)) {
            outcome.take(row_major::qr_r(geqrf, 1, (m, n, k), a, top, threads));
        }
    };
    match route {
        Route::OneRow => for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (a, r)| {
                one_row(a, r);
            },
        ),
        Route::Unblocked => {
            few::each(batch, operands, |(a, r)| unblocked::qr::decompose((m, n, c), a, None, r));
        }
        Route::Lanes => {
            let kernel = lanes::qr::explicit::Upper { m, n, c };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Registers => {
            let kernel = registers::qr::Upper { m, n, c };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Tall | Route::Blocked => {
            for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
        }
        Route::TallParallel | Route::Parallel => for_each_large(batch, operands, threads, one),
    }
    outcome.into_result()
}
