//! QR of one matrix on one thread: recursion down to panels.

use faer::{MatMut, MatRef};
use pulp::WithSimd;

use super::packed::FactorPacked;
use crate::Scalar;
use crate::blas::householder::BlockScratch;
use crate::matrix::layout::Factor;
use crate::matrix::panel::Panel;
use crate::simd::arch::Arch;
use crate::unblocked::qr::FactorColumns;

/// The number of reflectors that are applied to a large matrix together.
pub(crate) const WIDTH: usize = 32;
/// The number of columns up to which a block is factored column by column.
const NARROW: usize = 8;
/// The number of rows and of columns up to which a matrix is worked on in a packed copy, without
/// blocks; at 48, for f64 with AVX-512, blocks were measured to be faster already.
pub(crate) const PACKED: usize = 32;
/// The number of rows and of columns up to which loops are faster without wide registers.
pub(crate) const TINY: usize = 6;

/// What [`factor`] reuses for m × n matrices.
pub(crate) fn factor_scratch<T: Scalar>(m: usize, n: usize) -> BlockScratch<T> {
    if one_by_one(m, n) || m.min(n) <= NARROW {
        BlockScratch::new(0, 0, 0)
    } else {
        BlockScratch::new(m, WIDTH.min(m), n)
    }
}

/// Whether reflectors of m × n matrices are never applied in blocks.
pub(crate) fn one_by_one(m: usize, n: usize) -> bool {
    m.max(n) <= PACKED
}

/// Factors a panel, of which `tau` has the smaller dimension.
pub(crate) fn factor<T: Scalar>(
    panel: Panel<'_, T>,
    tau: &mut [T],
    scratch: &mut BlockScratch<T>,
    arch: Arch,
) {
    let Panel { mut a, lda, mut row } = panel;
    let mut tau = tau;
    loop {
        let (rows, k) = (lda - row, tau.len());
        let n = a.len() / lda;
        if k <= NARROW || one_by_one(rows, n) {
            let panel = Panel { a, lda, row };
            let order = rows.max(n);
            return if order <= TINY {
                FactorColumns { panel, tau }.with_simd(pulp::Scalar::new())
            } else if order <= PACKED / 2 {
                arch.dispatch(FactorPacked::<_, { PACKED / 2 }> { panel, tau })
            } else if order <= PACKED {
                arch.dispatch(FactorPacked::<_, PACKED> { panel, tau })
            } else {
                arch.dispatch(FactorColumns { panel, tau })
            };
        }
        let width = if k > WIDTH { WIDTH } else { k / 2 };
        let (left, right) = a.split_at_mut(width * lda);
        let (left_tau, right_tau) = tau.split_at_mut(width);
        factor(Panel { a: &mut *left, lda, row }, left_tau, scratch, arch);
        // The block's Qᴴ on what is right of it, whose first rows are then rows of R.
        let v = MatRef::from_column_major_slice(left, lda, width).subrows(row, rows);
        let a2 = MatMut::from_column_major_slice_mut(&mut *right, lda, n - width);
        let mut block = scratch.block(v, left_tau);
        block.apply_left(Factor::Adjoint, a2.subrows_mut(row, rows));
        (a, tau, row) = (right, right_tau, row + width);
    }
}
