//! Tridiagonal systems whose right-hand sides lie by rows.

use lapax_core::{Items, ItemsMut};
use smallvec::smallvec;

use super::elimination::Diagonals;
use crate::matrix::transpose::transpose;
use crate::simd::scalar::{ShortRow, nan};
use crate::{Error, InOut, Scalar, Threads};

/// [`crate::tridiagonal::gtsv`], or another routine with its contract.
pub(crate) type Gtsv<T> = fn(
    usize,
    usize,
    usize,
    Diagonals<'_, T>,
    InOut<'_, T>,
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::tridiagonal::tridiagonal_solve`].
pub(crate) fn tridiagonal_solve<T: Scalar>(
    gtsv: Gtsv<T>,
    batch: usize,
    (m, nrhs): (usize, usize),
    [dl, d, du]: [&[T]; 3],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if nrhs == 0 || m == 0 {
        return ItemsMut::new("x", batch, &[m, nrhs], x).map(|_| ());
    }
    Items::new("b", batch, &[m, nrhs], b)?;
    let mut columns = vec![T::ZERO; x.len()];
    transpose(batch, (m, nrhs), b, &mut columns, threads)?;
    let mut copies = [dl, d, du].map(<[T]>::to_vec);
    let [dl, d, du] = copies.each_mut().map(|dst| InOut { src: None, dst: &mut dst[..] });
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let solved = InOut { src: None, dst: &mut columns };
    gtsv(batch, m, nrhs, Diagonals { dl, d, du }, solved, &mut info, threads)?;
    transpose(batch, (nrhs, m), &columns, x, threads)?;
    for (x, info) in x.chunks_exact_mut(m * nrhs).zip(info) {
        if info != 0 {
            x.fill(nan());
        }
    }
    Ok(())
}
