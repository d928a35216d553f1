//! Products with the unitary factors of a bidiagonal form.

use faer::{MatMut, MatRef};

use crate::blas::householder::BlockScratch;
use crate::matrix::layout::Factor;
use crate::qr::parallel::{multiply_strips, wide_strips};
use crate::{Scalar, Side, Threads};

/// Reflectors that are applied together.
pub(crate) const BLOCK: usize = 32;

/// U ← Q·U.
pub(crate) fn multiply_by_q<T: Scalar>(
    q: MatRef<'_, T>,
    tau: &[T],
    mut u: MatMut<'_, T>,
    scratch: &mut BlockScratch<T>,
    threads: Option<&dyn Threads>,
) {
    if let Some(threads) = threads {
        return multiply_strips(Side::Left, Factor::Q, true, (q, tau), wide_strips(u), threads);
    }
    let (m, n) = (q.nrows(), q.ncols());
    for first in (0..n).step_by(BLOCK).rev() {
        let width = BLOCK.min(n - first);
        let reflectors = q.submatrix(first, first, m - first, width);
        let mut block = scratch.block(reflectors, &tau[first..first + width]);
        block.apply_left(Factor::Q, u.as_mut().subrows_mut(first, m - first));
    }
}

/// Vᴴ ← Vᴴ·Pᴴ, where P leaves the first row alone.
pub(crate) fn multiply_by_p<T: Scalar>(
    p: MatRef<'_, T>,
    tau: &[T],
    vt: MatMut<'_, T>,
    scratch: &mut BlockScratch<T>,
    threads: Option<&dyn Threads>,
) {
    let n = p.nrows();
    let mut vt = vt.subcols_mut(1, n - 1);
    let p = p.submatrix(1, 0, n - 1, n - 1);
    if let Some(threads) = threads {
        let strips = wide_strips(vt.transpose_mut());
        return multiply_strips(Side::Right, Factor::Adjoint, true, (p, tau), strips, threads);
    }
    for first in (0..n - 1).step_by(BLOCK).rev() {
        let width = BLOCK.min(n - 1 - first);
        let reflectors = p.submatrix(first, first, n - 1 - first, width);
        let mut block = scratch.block(reflectors, &tau[first..first + width]);
        block.apply_right(Factor::Adjoint, vt.as_mut().subcols_mut(first, n - 1 - first));
    }
}
