//! Eigenvectors of matrices that lie by rows, by a routine for columns.

use lapax_core::{Items, ItemsMut, index_fits_i32};
use smallvec::smallvec;

use super::single::Eigen;
use crate::matrix::transpose::{transpose, transpose_in_place};
use crate::schur::values::Parts;
use crate::simd::scalar::{Short, ShortRow, zeros};
use crate::{Error, Scalar, Threads, Vectors};

/// [`crate::eig::geev`], or another routine with its contract.
pub(crate) type Geev<T> =
    fn(Vectors, Vectors, usize, usize, &[T], Eigen<'_, T>, &dyn Threads) -> Result<(), Error>;

/// [`crate::eig::eig`], or [`crate::eig::eigvals`] where there is no `v`.
pub(crate) fn eig<T: Scalar>(
    geev: Geev<T>,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    v: Option<&mut [T::Complex]>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let job = if v.is_some() { Vectors::Wanted } else { Vectors::None };
    let (_, w, v) = operands(batch, n, a, w, v)?;
    let (w, v) = (w.into_data(), v.into_data());
    if n == 0 {
        return Ok(());
    }
    let mut columns: Short<T> = zeros(a.len());
    transpose(batch, (n, n), a, &mut columns, threads)?;
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let mut parts = Parts::<T>::new(w.len());
    let right = &mut *v;
    let results = Eigen { w: parts.eigenvalues(), left: &mut [], right, info: &mut info };
    geev(Vectors::None, job, batch, n, &columns, results, threads)?;
    parts.write(w);
    if v.is_empty() { Ok(()) } else { transpose_in_place(batch, n, v, threads) }
}

/// A, `w`, and `v` without elements where there is none.
#[allow(clippy::type_complexity, reason = "a tuple of operands")]
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: &'a [T],
    w: &'a mut [T::Complex],
    v: Option<&'a mut [T::Complex]>,
) -> Result<(Items<'a, T>, ItemsMut<'a, T::Complex>, ItemsMut<'a, T::Complex>), Error> {
    index_fits_i32("n", n)?;
    let columns = if v.is_some() { n } else { 0 };
    Ok((
        Items::new("a", batch, &[n, n], a)?,
        ItemsMut::new("w", batch, &[n], w)?,
        ItemsMut::new("v", batch, &[n, columns], v.unwrap_or_default())?,
    ))
}
