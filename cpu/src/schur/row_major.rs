//! Schur forms that lie by rows, by a routine for columns.

use lapax_core::{ItemsInOut, ItemsMut, index_fits_i32};
use smallvec::smallvec;

use super::values::{Eigenvalues, Parts};
use crate::matrix::transpose::{transpose_in_place, turn};
use crate::simd::scalar::ShortRow;
use crate::{Error, InOut, Scalar, Threads, Vectors};

/// [`crate::schur::gees`], or another routine with its contract.
pub(crate) type Gees<T> = fn(
    Vectors,
    usize,
    usize,
    InOut<'_, T>,
    &mut [T],
    Eigenvalues<'_, T>,
    &mut [i32],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::schur::schur`].
pub(crate) fn schur<T: Scalar>(
    gees: Gees<T>,
    batch: usize,
    n: usize,
    t: InOut<'_, T>,
    z: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let InOut { src, dst } = t;
    operands(batch, n, InOut { src: None, dst: &mut *dst }, &mut *z)?;
    if n == 0 {
        return Ok(());
    }
    turn(batch, n, InOut { src, dst: &mut *dst }, threads)?;
    let (mut sdim, mut info): (ShortRow<i32>, ShortRow<i32>) =
        (smallvec![0; batch], smallvec![0; batch]);
    let mut parts = Parts::<T>::new(batch * n);
    let (t, w) = (InOut { src: None, dst: &mut *dst }, parts.eigenvalues());
    gees(Vectors::Wanted, batch, n, t, &mut *z, w, &mut sdim, &mut info, threads)?;
    transpose_in_place(batch, n, dst, threads)?;
    transpose_in_place(batch, n, z, threads)
}

/// The operands of [`crate::schur::schur`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    t: InOut<'a, T>,
    z: &'a mut [T],
) -> Result<(ItemsInOut<'a, T>, ItemsMut<'a, T>), Error> {
    index_fits_i32("n", n)?;
    Ok((ItemsInOut::new("t", batch, &[n, n], t)?, ItemsMut::new("z", batch, &[n, n], z)?))
}
