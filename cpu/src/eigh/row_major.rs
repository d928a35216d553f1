//! Eigenvectors that lie by rows, by a routine for columns.

use std::ops::Range;

use lapax_core::{Items, ItemsInOut, ItemsMut, Scalar as _, for_each, index_fits_i32};
#[cfg(feature = "lapack")]
use smallvec::smallvec;

use crate::matrix::results::{is_part, mark_failed};
#[cfg(feature = "lapack")]
use crate::matrix::transpose::adjoint;
use crate::parallel::cost::nanoseconds;
#[cfg(feature = "lapack")]
use crate::simd::scalar::ShortRow;
use crate::simd::scalar::nan;
use crate::{Error, InOut, Scalar, Threads, Uplo, Vectors};

/// [`crate::eigh::syevd`], or another routine with its contract.
pub(crate) type Syevd<T> = fn(
    Vectors,
    Uplo,
    usize,
    usize,
    InOut<'_, T>,
    &mut [<T as lapax_core::Scalar>::Real],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::eigh::eigh`].
#[cfg(feature = "lapack")]
pub(crate) fn eigh<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let InOut { src, dst } = v;
    eigh_operands(batch, n, InOut { src: None, dst: &mut *dst }, &mut *w)?;
    if n == 0 {
        return Ok(());
    }
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let a = InOut { src, dst: &mut *dst };
    syevd(Vectors::Wanted, uplo.other(), batch, n, a, &mut *w, &mut info, threads)?;
    let columns = ItemsMut::new("v", batch, &[n, n], &mut *dst)?;
    let time = nanoseconds::<T>(n.saturating_mul(n));
    for_each(batch, columns, time, threads, || (), |(), v| adjoint(v, n));
    mark_failed(&info, w, [dst]);
    Ok(())
}

/// The operands of [`crate::eigh::eigh`].
pub(crate) fn eigh_operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    v: InOut<'a, T>,
    w: &'a mut [T::Real],
) -> Result<(ItemsInOut<'a, T>, ItemsMut<'a, T::Real>), Error> {
    index_fits_i32("n", n)?;
    Ok((ItemsInOut::new("v", batch, &[n, n], v)?, ItemsMut::new("w", batch, &[n], w)?))
}

/// [`crate::eigh::eigh_subset`], of which all is found.
#[allow(clippy::too_many_arguments, reason = "those of eigh_subset, and the routine")]
pub(crate) fn eigh_subset<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    v: &mut [T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (a, v, w) = subset_operands(batch, n, &part, a, v, w)?;
    if n == 0 {
        return Ok(());
    }
    let mut columns = vec![T::ZERO; a.data().len()];
    let (mut values, mut info) = (vec![T::Real::ZERO; batch * n], vec![0; batch]);
    let all = InOut { src: Some(a.data()), dst: &mut columns[..] };
    syevd(Vectors::Wanted, uplo.other(), batch, n, all, &mut values, &mut info, threads)?;
    let operands = (
        Items::new("columns", batch, &[n, n], &columns)?,
        Items::new("values", batch, &[n], &values)?,
        Items::new("info", batch, &[], &info)?,
        v,
        w,
    );
    let time = nanoseconds::<T>(n.saturating_mul(part.len()));
    for_each(
        batch,
        operands,
        time,
        threads,
        || (),
        |(), (columns, values, info, v, w)| {
            take_part((columns, values), info[0], part.clone(), v, w);
        },
    );
    Ok(())
}

/// A, `v` and `w`, which have as many elements as their sizes and those of the part say.
#[allow(clippy::type_complexity, reason = "a tuple of operands")]
pub(crate) fn subset_operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    part: &Range<usize>,
    a: &'a [T],
    v: &'a mut [T],
    w: &'a mut [T::Real],
) -> Result<(Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T::Real>), Error> {
    index_fits_i32("n", n)?;
    is_part(part, ("n", n))?;
    Ok((
        Items::new("a", batch, &[n, n], a)?,
        ItemsMut::new("v", batch, &[n, part.len()], v)?,
        ItemsMut::new("w", batch, &[part.len()], w)?,
    ))
}

/// Part of the eigenvectors of a matrix's transpose, by columns, becomes part of its own, by rows.
pub(crate) fn take_part<T: Scalar>(
    (columns, values): (&[T], &[T::Real]),
    info: i32,
    part: Range<usize>,
    v: &mut [T],
    w: &mut [T::Real],
) {
    if info != 0 {
        v.fill(nan());
        w.fill(nan::<T>().re());
        return;
    }
    let (n, count) = (values.len(), part.len());
    w.copy_from_slice(&values[part.clone()]);
    for (column, j) in columns[part.start * n..part.end * n].chunks_exact(n).zip(0..) {
        for (v, x) in v[j..].iter_mut().step_by(count).zip(column) {
            *v = x.conj();
        }
    }
}

/// [`crate::eigh::eigvalsh`].
pub(crate) fn eigvalsh<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    eigvalsh_operands(batch, n, a, &mut *w)?;
    if n == 0 {
        return Ok(());
    }
    let (mut info, mut scratch) = (vec![0; batch], vec![T::ZERO; a.len()]);
    let a = InOut { src: Some(a), dst: &mut scratch[..] };
    syevd(Vectors::None, uplo.other(), batch, n, a, &mut *w, &mut info, threads)?;
    mark_failed::<T, 0>(&info, w, []);
    Ok(())
}

/// The operands of [`crate::eigh::eigvalsh`].
pub(crate) fn eigvalsh_operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: &'a [T],
    w: &'a mut [T::Real],
) -> Result<(Items<'a, T>, ItemsMut<'a, T::Real>), Error> {
    index_fits_i32("n", n)?;
    Ok((Items::new("a", batch, &[n, n], a)?, ItemsMut::new("w", batch, &[n], w)?))
}
