//! Reduction to Hessenberg form: A = Q·H·Qᴴ, H zero below its first subdiagonal.
//!
//! Q = H(low)·…·H(high − 1) is a product of reflectors H(i) = I − tau(i)·v·vᴴ; v is zero in rows 1
//! to i, one in row i + 1, and lies below the first subdiagonal of column i, as LAPACK stores it.
//! Panels are aggregated as I − V·T·Vᴴ after Quintana-Ortí and van de Geijn, "Improving the
//! performance of reduction to Hessenberg form" (ACM TOMS 32, 2006).

pub(crate) mod blocked;
pub(crate) mod columns;
pub(crate) mod parallel;
pub(crate) mod reduce;
pub(crate) mod route;
#[cfg(feature = "lapack")]
pub(crate) mod row_major;

use lapax_core::{ItemsInOut, ItemsMut, Serial, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::blas::rotations::set_identity;
use crate::lanes::schur;
use crate::matrix::transpose::transposed;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::registers;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::lane::width;
use crate::simd::range::all_finite;
use crate::simd::scalar::{ShortRow, nan, zeros};
use crate::{Error, InOut, Scalar, Threads};
use blocked::Scratch;
use reduce::{active_range, form_q, not_finite, only_hessenberg, reduce};
use route::{Route, route};

/// The number of columns that are reduced between two updates of the rest.
pub(crate) const PANEL: usize = 32;

/// Reduces each n × n matrix of a batch, in place.
///
/// `low` and `high`, counted from 1, say that the matrix is already upper triangular outside rows
/// and columns low..=high. `a` holds H on and above its first subdiagonal and the reflectors below;
/// `tau` holds n − 1 factors per matrix, zero outside low..high. `info` is zero. A matrix with an
/// element that is not finite becomes NaN throughout, as does its `tau`.
///
/// # Errors
/// Where `low` and `high` are no range of an n × n matrix (n = 0: 1 and 0), or a slice has another
/// length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
#[per_scalar]
pub fn gehrd<T: Scalar>(
    batch: usize,
    n: usize,
    low: usize,
    high: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, n, (low, high), a, tau, info)?;
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(2);
    let time = nanoseconds::<T>(products);
    let (active, arch) = (low - 1..high, Arch::new());
    let one = |a: &mut [T], tau: &mut [T], scratch: &mut Scratch<T>, threads: &dyn Threads| {
        if all_finite(a) {
            reduce(a, n, active.clone(), tau, scratch, threads, arch);
        } else {
            a.fill(nan());
            tau.fill(nan());
        }
    };
    match route(Kind::of::<T>(), batch, n, active.len()) {
        Route::Lanes => {
            let kernel = schur::hessenberg::Reduce { n, active };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Reduced => {
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (a, tau, info)| {
                    if all_finite(a) {
                        tau.fill(T::ZERO);
                    } else {
                        a.fill(nan());
                        tau.fill(nan());
                    }
                    info[0] = 0;
                },
            );
        }
        // `reduce` finds the registers by itself: they serve the last columns of a larger matrix, too.
        Route::Registers | Route::Blocked => {
            let scratch = || Scratch::new(n);
            for_each(batch, operands, time, threads, scratch, |scratch, (a, tau, info)| {
                one(a, tau, scratch, &Serial);
                info[0] = 0;
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, tau, info), threads| {
            one(a, tau, &mut Scratch::new(n), threads);
            info[0] = 0;
        }),
    }
    Ok(())
}

type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, i32>);

/// The operands of [`gehrd`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    (low, high): (usize, usize),
    a: InOut<'a, T>,
    tau: &'a mut [T],
    info: &'a mut [i32],
) -> Result<Operands<'a, T>, Error> {
    active_range(n, low, high)?;
    Ok((
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("tau", batch, &[n.saturating_sub(1)], tau)?,
        ItemsMut::new("info", batch, &[], info)?,
    ))
}

/// H and Q of each row-major n × n matrix of a batch, H in place of A, as [`gehrd`] has them: MATLAB's `hess`.
///
/// H has zeros below its first subdiagonal, and Q those of the identity in its first row and column. The rest of
/// both is NaN where the matrix has an element that is not finite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn hess<T: Scalar>(
    batch: usize,
    n: usize,
    h: InOut<'_, T>,
    q: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = hess_operands(batch, n, h, q)?;
    if n == 0 {
        return Ok(());
    }
    // A reduction takes 10/3·n³ operations, Q 4/3·n³.
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(3);
    let (time, arch) = (nanoseconds::<T>(products), Arch::new());
    let scratch = || (zeros(n - 1), Scratch::new(n));
    type Reuse<T> = (ShortRow<T>, Scratch<T>);
    let one = |(h, q): (&mut [T], &mut [T]), scratch: &mut Reuse<T>, threads: &dyn Threads| {
        let (tau, scratch) = scratch;
        if all_finite(h) {
            transposed(h, n);
            reduce(h, n, 0..n, tau, scratch, threads, arch);
            form_q(h, n, 0..n, tau, q, scratch, threads, arch);
            transposed(h, n);
            transposed(q, n);
        } else {
            not_finite(h, q, n);
        }
        only_hessenberg(h, n);
    };
    match route(Kind::of::<T>(), batch, n, n) {
        Route::Lanes => {
            let kernel = schur::hessenberg::Whole { n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Reduced => {
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (h, q)| {
                    if all_finite(h) {
                        set_identity(q, n);
                    } else {
                        not_finite(h, q, n);
                    }
                },
            );
        }
        Route::Registers => {
            let scratch = || {
                let tau: ShortRow<T> = zeros(n - 1);
                (tau, registers::hessenberg::Scratch::new::<T>(n, width::<T>()))
            };
            for_each(batch, operands, time, threads, scratch, |(tau, scratch), (h, q)| {
                if all_finite(h) {
                    arch.dispatch(registers::hessenberg::Whole { h, n, tau, q, scratch });
                } else {
                    not_finite(h, q, n);
                }
                only_hessenberg(h, n);
            });
        }
        Route::Blocked => {
            for_each(batch, operands, time, threads, scratch, |scratch, item| {
                one(item, scratch, &Serial);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |item, threads| {
            one(item, &mut scratch(), threads);
        }),
    }
    Ok(())
}

/// The operands of [`hess`].
fn hess_operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    h: InOut<'a, T>,
    q: &'a mut [T],
) -> Result<(ItemsInOut<'a, T>, ItemsMut<'a, T>), Error> {
    Ok((ItemsInOut::new("h", batch, &[n, n], h)?, ItemsMut::new("q", batch, &[n, n], q)?))
}
