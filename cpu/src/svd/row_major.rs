//! Singular vectors that lie by rows, by a routine for columns.

use std::ops::Range;

use lapax_core::{Items, ItemsMut, Scalar as _, for_each, index_fits_i32};

use super::single::Svd;
use crate::matrix::results::{is_part, mark_failed};
use crate::parallel::cost::nanoseconds;
use crate::simd::scalar::nan;
use crate::{Error, InOut, Scalar, SingularVectors, Threads};

/// [`crate::svd::gesdd`], or another routine with its contract.
pub(crate) type Gesdd<T> = fn(
    SingularVectors,
    usize,
    usize,
    usize,
    InOut<'_, T>,
    Svd<'_, T>,
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::svd::svd`].
#[allow(clippy::too_many_arguments, reason = "those of svd, and the routine")]
pub(crate) fn svd<T: Scalar>(
    gesdd: Gesdd<T>,
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (u_cols, vt_rows) = job.sides(m, n);
    operands(batch, (m, n), [m.min(n), u_cols, vt_rows], a, &mut *s, &mut *u, &mut *vt)?;
    if s.is_empty() && u.is_empty() && vt.is_empty() {
        return Ok(());
    }
    let (mut info, mut scratch) = (vec![0; batch], vec![T::ZERO; a.len()]);
    // By columns it is Aᵀ = conj(V)·diag(s)·Uᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let turned = Svd { s: &mut *s, u: &mut *vt, vt: &mut *u, info: &mut info[..] };
    let a = InOut { src: Some(a), dst: &mut scratch[..] };
    gesdd(job, batch, n, m, a, turned, threads)?;
    mark_failed(&info, s, [u, vt]);
    Ok(())
}

/// [`crate::svd::svd_subset`], of which all is found.
#[allow(clippy::too_many_arguments, reason = "those of svd_subset, and the routine")]
pub(crate) fn svd_subset<T: Scalar>(
    gesdd: Gesdd<T>,
    batch: usize,
    (m, n): (usize, usize),
    part: Range<usize>,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (a, s, u, vt) = part_operands(batch, (m, n), &part, a, s, u, vt)?;
    let k = m.min(n);
    if k == 0 {
        return Ok(());
    }
    let (mut values, mut info) = (vec![T::Real::ZERO; batch * k], vec![0; batch]);
    let zeros = |length| vec![T::ZERO; batch * length];
    let (mut scratch, mut left, mut right) = (zeros(m * n), zeros(m * k), zeros(k * n));
    // By columns it is Aᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let all = Svd { s: &mut values[..], u: &mut right[..], vt: &mut left[..], info: &mut info[..] };
    let matrices = InOut { src: Some(a.data()), dst: &mut scratch[..] };
    gesdd(SingularVectors::Thin, batch, n, m, matrices, all, threads)?;
    let found = (
        Items::new("values", batch, &[k], &values)?,
        Items::new("left", batch, &[m, k], &left)?,
        Items::new("right", batch, &[k, n], &right)?,
        Items::new("info", batch, &[], &info)?,
    );
    let time = nanoseconds::<T>(m.saturating_add(n).saturating_mul(part.len()));
    for_each(
        batch,
        (found, (s, u, vt)),
        time,
        threads,
        || (),
        |(), ((values, left, right, info), (s, u, vt))| {
            take_singular_part((values, left, right), info[0], part.clone(), s, [u, vt]);
        },
    );
    Ok(())
}

type Operands<'a, T> =
    (Items<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Real>, ItemsMut<'a, T>, ItemsMut<'a, T>);

/// A, `s`, `u` and `vt`, of which there are `values`, `u_cols` and `vt_rows` a matrix.
pub(super) fn operands<'a, T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    [values, u_cols, vt_rows]: [usize; 3],
    a: &'a [T],
    s: &'a mut [T::Real],
    u: &'a mut [T],
    vt: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    Ok((
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("s", batch, &[values], s)?,
        ItemsMut::new("u", batch, &[m, u_cols], u)?,
        ItemsMut::new("vt", batch, &[vt_rows, n], vt)?,
    ))
}

/// The same of a part.
pub(super) fn part_operands<'a, T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    part: &Range<usize>,
    a: &'a [T],
    s: &'a mut [T::Real],
    u: &'a mut [T],
    vt: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    is_part(part, ("min(m, n)", m.min(n)))?;
    operands(batch, (m, n), [part.len(); 3], a, s, u, vt)
}

/// Part of the factors of a matrix, both by rows.
pub(crate) fn take_singular_part<T: Scalar>(
    (values, left, right): (&[T::Real], &[T], &[T]),
    info: i32,
    part: Range<usize>,
    s: &mut [T::Real],
    [u, vt]: [&mut [T]; 2],
) {
    if info != 0 {
        s.fill(nan::<T>().re());
        [u, vt].into_iter().for_each(|x| x.fill(nan()));
        return;
    }
    let (k, n) = (values.len(), right.len() / values.len());
    s.copy_from_slice(&values[part.clone()]);
    vt.copy_from_slice(&right[part.start * n..part.end * n]);
    for (u, left) in u.chunks_exact_mut(part.len().max(1)).zip(left.chunks_exact(k)) {
        u.copy_from_slice(&left[part.clone()]);
    }
}
