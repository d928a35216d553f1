//! QR with column pivoting of one matrix on one thread.

use pulp::{Simd, WithSimd};

use super::free::{Free, Norm, Norms, move_fixed};
use super::panel::{F_ROW, Panel, factor_panel};
use crate::blas::fused::reflect_columns;
use crate::blas::householder::{BlockScratch, Reflector, Reflectors, reflector};
use crate::matrix::layout::Factor;
use crate::matrix::panel;
use crate::qr::blocked::{TINY, WIDTH, factor, one_by_one};
use crate::qr::q::multiply;
use crate::simd::arch::Arch;
use crate::{Scalar, Side};

/// The smaller dimension up to which columns are updated one by one. Blocks halve what is read and
/// written, which matters once the matrix leaves the first caches.
const SMALL: usize = 64;

/// What a factorisation reuses.
pub(crate) struct Scratch<T: Scalar> {
    norms: Vec<Norm<T::Real>>,
    blocks: BlockScratch<T>,
    panel: Panel<T>,
    /// F of a panel.
    f: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let blocks = if one_by_one(m, n) {
            BlockScratch::new(0, 0, 0)
        } else {
            BlockScratch::new(m, WIDTH, n.max(WIDTH))
        };
        let (rows, columns) = if m.min(n) > SMALL { (m, n) } else { (0, 0) };
        Self {
            norms: vec![Norm::ZERO; n],
            blocks,
            panel: Panel::new(rows),
            f: vec![T::ZERO; columns * F_ROW],
        }
    }
}

/// Factors the fixed columns as they are, and the others by pivoting among them.
pub(crate) fn factor_pivoted<T: Scalar>(
    a: &mut [T],
    m: usize,
    jpvt: &mut [i32],
    tau: &mut [T],
    scratch: &mut Scratch<T>,
    arch: Arch,
) {
    let fixed = move_fixed(a, m, jpvt).min(tau.len());
    if tau.is_empty() {
        return;
    }
    let Scratch { norms, blocks, panel, f } = scratch;
    let all = Free { a, m, row: 0, jpvt, norms, tau };
    let (left, tau, free) = all.split(fixed);
    if fixed > 0 {
        factor(panel::Panel { a: &mut *left, lda: m, row: 0 }, tau, blocks, arch);
        let q = Reflectors { a: left, r: m, tau, factor: Factor::Adjoint };
        multiply(Side::Left, q, free.a, m, blocks, &mut [], arch);
    }
    arch.dispatch(Norms { a: free.a, m, row: fixed, norms: free.norms });
    factor_free(free, panel, f, arch);
}

/// Factors the free columns, whose norms are known. `f` holds [`F_ROW`] elements per column.
pub(crate) fn factor_free<T: Scalar>(
    mut free: Free<'_, T>,
    panel: &mut Panel<T>,
    f: &mut [T],
    arch: Arch,
) {
    while free.tau.len() > SMALL {
        factor_panel(&mut free, panel, f, arch);
        (_, _, free) = free.split(WIDTH);
    }
    let m = free.m;
    let columns = FactorFree(free);
    if m <= TINY { columns.with_simd(pulp::Scalar::new()) } else { arch.dispatch(columns) }
}

/// Reflectors one by one, each applied to all columns that are left.
struct FactorFree<'a, T: Scalar>(Free<'a, T>);

impl<T: Scalar> WithSimd for FactorFree<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(mut free) = self;
        for (j, tau) in std::mem::take(&mut free.tau).iter_mut().enumerate() {
            free.pivot(j);
            let Free { a, m, row, norms, .. } = &mut free;
            let (m, row) = (*m, *row + j);
            let (left, right) = a.split_at_mut((j + 1) * m);
            let Some((head, tail)) = left[j * m + row..].split_first_mut() else { return };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (*head, *tau) = (T::from_real(beta), factor);
            reflect_columns(simd, factor.conj(), tail, right, m, row);
            for (norm, column) in norms[j + 1..].iter_mut().zip(right.chunks_exact(m)) {
                if !norm.downdate(column[row].abs()) {
                    *norm = Norm::of::<S, T>(&column[row + 1..]);
                }
            }
        }
    }
}
