//! Reduction of Hermitian matrices to tridiagonal form, LAPACK's xSYTRD and xHETRD.

use lapax_core::{ItemsInOut, ItemsMut, Real as _, Scalar as _, Serial, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use super::reduction::blocked::{Scratch, tridiagonalize};
use super::reduction::parallel::tridiagonalize_parallel;
use super::reduction::route::{PARALLEL, Route, in_double, route};
use crate::lanes::eigh;
use crate::matrix::triangle::{triangle, triangle_ranges};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::range::{largest_part, power_near_reciprocal};
use crate::simd::scalar::{narrow, widen};
use crate::{Error, InOut, Scalar, Threads, Uplo};

/// Reduces each n × n Hermitian matrix of a batch to tridiagonal form, A = Q·T·Qᴴ.
///
/// LAPACK's storage: T's diagonal `d` and `e` beside it, both real, also replace those elements of
/// `a`. Q is H(1)⋯H(n−1) for `Lower`, where v of H(i) is zero up to row i and 1 in row i + 1, and
/// its tail lies in column i; for `Upper` it is H(n−1)⋯H(1), where v of H(i) is 1 in row i and zero
/// after it, and the rest lies in column i + 1. The other triangle is neither read nor written.
/// NaN and infinities propagate. `info` is 0.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "LAPACK's arguments, less the leading dimensions")]
#[per_scalar]
pub fn sytrd<T: Scalar>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = operands(batch, n, a, d, e, tau, info)?;
    let products = n.saturating_mul(n).saturating_mul(n);
    let (time, kind, arch) = (nanoseconds::<T>(products), Kind::of::<T>(), Arch::new());
    let scratch = || Whole::new(uplo, n);
    match route(kind, batch, n) {
        Route::Lanes => {
            let single = |a: &mut [T], d: &mut [T::Real], e: &mut [T::Real], tau: &mut [T]| {
                scratch().reduce(uplo, (a, d, e, tau), &Serial, arch);
            };
            let kernel = eigh::sytrd::Reduce { n, uplo, single };
            if in_double(kind, n) {
                for_each_group::<T::Double, _>(batch, operands, time, threads, &kernel);
            } else {
                for_each_group::<T, _>(batch, operands, time, threads, &kernel);
            }
        }
        Route::Double => {
            let (time, scratch) =
                (nanoseconds::<T::Double>(products), || Double::<T>::new(uplo, n));
            for_each(batch, operands, time, threads, scratch, |double, (a, d, e, tau, info)| {
                info[0] = 0;
                double.reduce(uplo, (a, d, e, tau), arch);
            });
        }
        Route::Blocked => {
            for_each(batch, operands, time, threads, scratch, |whole, (a, d, e, tau, info)| {
                info[0] = 0;
                whole.reduce(uplo, (a, d, e, tau), &Serial, arch);
            });
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, d, e, tau, info), threads| {
                info[0] = 0;
                scratch().reduce(uplo, (a, d, e, tau), threads, arch);
            });
        }
    }
    Ok(())
}

/// The operands of [`sytrd`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: InOut<'a, T>,
    d: &'a mut [T::Real],
    e: &'a mut [T::Real],
    tau: &'a mut [T],
    info: &'a mut [i32],
) -> Result<eigh::sytrd::Operands<'a, T>, Error> {
    Ok((
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("d", batch, &[n], d)?,
        ItemsMut::new("e", batch, &[n.saturating_sub(1)], e)?,
        ItemsMut::new("tau", batch, &[n.saturating_sub(1)], tau)?,
        ItemsMut::new("info", batch, &[], info)?,
    ))
}

/// A matrix and its results: a, d, e, tau.
type Parts<'a, T> = (
    &'a mut [T],
    &'a mut [<T as lapax_core::Scalar>::Real],
    &'a mut [<T as lapax_core::Scalar>::Real],
    &'a mut [T],
);

/// What the reduction of one matrix after another reuses.
struct Whole<T: Scalar> {
    /// A matrix, end for end: an upper triangle then is a lower one.
    turned: Vec<T>,
    scratch: Scratch<T>,
}

impl<T: Scalar> Whole<T> {
    /// For triangles of order n.
    fn new(uplo: Uplo, n: usize) -> Self {
        let turned = if uplo == Uplo::Upper { n } else { 0 };
        Self { turned: vec![T::ZERO; turned * turned], scratch: Scratch::new(n) }
    }

    fn reduce(
        &mut self,
        uplo: Uplo,
        (a, d, e, tau): Parts<'_, T>,
        threads: &dyn Threads,
        arch: Arch,
    ) {
        let Self { turned, scratch } = self;
        let n = d.len();
        if uplo == Uplo::Lower {
            return reduce((a, d, e, tau), scratch, threads, arch);
        }
        // End for end, an upper triangle is a lower one, and H(1)⋯H(n−1) is H(n−1)⋯H(1).
        copy_turned(triangle_ranges(n, Uplo::Upper), a, turned);
        reduce((turned, d, e, tau), scratch, threads, arch);
        copy_turned(triangle_ranges(n, Uplo::Lower), turned, a);
        d.reverse();
        e.reverse();
        tau.reverse();
    }
}

/// Reduces in double precision what is single: for the reason why Schur forms are, and as fast.
struct Double<T: Scalar> {
    whole: Whole<T::Double>,
    a: Vec<T::Double>,
    d: Vec<f64>,
    e: Vec<f64>,
    tau: Vec<T::Double>,
}

impl<T: Scalar> Double<T> {
    /// For triangles of order n.
    fn new(uplo: Uplo, n: usize) -> Self {
        let beside = n.saturating_sub(1);
        Self {
            whole: Whole::new(uplo, n),
            a: vec![T::Double::ZERO; n * n],
            d: vec![0.0; n],
            e: vec![0.0; beside],
            tau: vec![T::Double::ZERO; beside],
        }
    }

    fn reduce(&mut self, uplo: Uplo, (a, d, e, tau): Parts<'_, T>, arch: Arch) {
        widen(&mut self.a, a);
        let parts = (&mut self.a[..], &mut self.d[..], &mut self.e[..], &mut self.tau[..]);
        self.whole.reduce(uplo, parts, &Serial, arch);
        for range in triangle_ranges(d.len(), uplo) {
            narrow(&mut a[range.clone()], &self.a[range]);
        }
        narrow(d, &self.d);
        narrow(e, &self.e);
        narrow(tau, &self.tau);
    }
}

/// A matrix whose largest element is off from one by no more than this factor stays as it is: its squares are far
/// from overflow, and one pass over it is saved.
const NEAR_ONE: f64 = 65536.0;

/// Reduces a lower triangle that is first brought to where nothing overflows.
fn reduce<T: Scalar>(
    (a, d, e, tau): Parts<'_, T>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) {
    let n = d.len();
    let power =
        largest_part(triangle(a, n, Uplo::Lower)).map_or(T::Real::ONE, power_near_reciprocal);
    let near_one = T::Real::from_f64(NEAR_ONE);
    let power =
        if power * near_one >= T::Real::ONE && power <= near_one { T::Real::ONE } else { power };
    if power != T::Real::ONE {
        for range in triangle_ranges(n, Uplo::Lower) {
            a[range].iter_mut().for_each(|x| *x = x.scale(power));
        }
    }
    if n >= PARALLEL {
        tridiagonalize_parallel(a, d, e, tau, scratch, threads, arch);
    } else {
        tridiagonalize(a, d, e, tau, scratch, arch);
    }
    d.iter_mut().chain(&mut *e).for_each(|x| *x = *x / power);
    for (j, &d) in d.iter().enumerate() {
        a[j * n + j] = T::from_real(d);
    }
    for (j, &e) in e.iter().enumerate() {
        a[j * n + j + 1] = T::from_real(e);
    }
}

/// Copies ranges of a square matrix to where they are when it is turned end for end.
fn copy_turned<T: Copy>(
    ranges: impl Iterator<Item = std::ops::Range<usize>>,
    from: &[T],
    to: &mut [T],
) {
    let length = from.len();
    for range in ranges {
        let target = &mut to[length - range.end..length - range.start];
        target.iter_mut().rev().zip(&from[range]).for_each(|(to, &from)| *to = from);
    }
}
