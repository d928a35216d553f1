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
#[cfg(feature = "lapack")]
pub(crate) mod row_major;

use lapax_core::{ItemsInOut, ItemsMut, Serial, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::blas::rotations::set_identity;
use crate::lanes::schur;
use crate::matrix::transpose::transposed;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups;
use crate::parallel::groups::for_each_group;
use crate::registers;
use crate::simd::arch::Arch;
use crate::simd::range::all_finite;
use crate::simd::scalar;
use crate::simd::scalar::{ShortRow, nan};
use crate::{Error, InOut, Scalar, Threads};
use blocked::Scratch;
use parallel::PARALLEL_ORDER;
use reduce::{active_range, form_q, not_finite, only_hessenberg, reduce, reduced};

/// The number of columns that are reduced between two updates of the rest.
pub(crate) const PANEL: usize = 32;
/// The order up to which columns are reduced one by one.
const UNBLOCKED: usize = 96;
/// The order up to which a batch goes through lanes.
const LANES_ORDER: usize = 32;

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
    active_range(n, low, high)?;
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("tau", batch, &[n.saturating_sub(1)], tau)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(2);
    if groups::pay(batch, n, LANES_ORDER) {
        let kernel = schur::hessenberg::Reduce { n, active: low - 1..high };
        for_each_group::<T, _>(batch, operands, nanoseconds::<T>(products), threads, &kernel);
        return Ok(());
    }
    let (active, arch) = (low - 1..high, Arch::new());
    let reduced = reduced::<T>(active.len());
    let one = |a: &mut [T], tau: &mut [T], scratch: &mut Scratch<T>, threads: &dyn Threads| {
        if !all_finite(a) {
            a.fill(nan());
            tau.fill(nan());
        } else if reduced {
            tau.fill(T::ZERO);
        } else {
            reduce(a, n, active.clone(), tau, scratch, threads, arch);
        }
    };
    if active.len() >= PARALLEL_ORDER {
        for_each_large(batch, operands, threads, |(a, tau, info), threads| {
            one(a, tau, &mut Scratch::new(n), threads);
            info[0] = 0;
        });
        return Ok(());
    }
    let scratch = || Scratch::new(if reduced { 0 } else { n });
    let time = nanoseconds::<T>(products);
    for_each(batch, operands, time, threads, scratch, |scratch, (a, tau, info)| {
        one(a, tau, scratch, &Serial);
        info[0] = 0;
    });
    Ok(())
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
    let operands =
        (ItemsInOut::new("h", batch, &[n, n], h)?, ItemsMut::new("q", batch, &[n, n], q)?);
    if n == 0 {
        return Ok(());
    }
    // A reduction takes 10/3·n³ operations, Q 4/3·n³.
    let products = n.saturating_mul(n).saturating_mul(n).saturating_mul(3);
    let time = nanoseconds::<T>(products);
    if groups::pay(batch, n, LANES_ORDER) {
        let kernel = schur::hessenberg::Whole { n };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if reduced::<T>(n) {
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
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || (scalar::zeros(n - 1), Scratch::new(n));
    type Reuse<T> = (ShortRow<T>, Scratch<T>);
    let one = |(h, q): (&mut [T], &mut [T]), scratch: &mut Reuse<T>, threads: &dyn Threads| {
        let (tau, scratch) = scratch;
        if !all_finite(h) {
            not_finite(h, q, n);
        } else if let Some(scratch) = &mut scratch.rows
            && n <= registers::hessenberg::LARGEST_Q
        {
            arch.dispatch(registers::hessenberg::Whole { h, n, tau, q, scratch });
        } else {
            transposed(h, n);
            reduce(h, n, 0..n, tau, scratch, threads, arch);
            form_q(h, n, 0..n, tau, q, scratch, threads, arch);
            transposed(h, n);
            transposed(q, n);
        }
        only_hessenberg(h, n);
    };
    if n >= PARALLEL_ORDER {
        for_each_large(batch, operands, threads, |item, threads| {
            one(item, &mut scratch(), threads);
        });
    } else {
        for_each(batch, operands, time, threads, scratch, |scratch, item| {
            one(item, scratch, &Serial);
        });
    }
    Ok(())
}
