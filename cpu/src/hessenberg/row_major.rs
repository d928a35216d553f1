//! Hessenberg forms that lie by rows, by routines for columns.

use super::hess_operands;
use super::reduce::{not_finite, only_hessenberg};
use crate::matrix::transpose::{transpose_in_place, turn};
use crate::qr::row_major::Orgqr;
use crate::{Error, InOut, Scalar, Threads};

/// [`crate::hessenberg::gehrd`], or another routine with its contract.
pub(crate) type Gehrd<T> = fn(
    usize,
    usize,
    usize,
    usize,
    InOut<'_, T>,
    &mut [T],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::hessenberg::hess`], by routines with the contracts of gehrd and orgqr.
pub(crate) fn hess<T: Scalar>(
    (gehrd, orgqr): (Gehrd<T>, Orgqr<T>),
    batch: usize,
    n: usize,
    h: InOut<'_, T>,
    q: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let InOut { src, dst } = h;
    hess_operands(batch, n, InOut { src: None, dst: &mut *dst }, &mut *q)?;
    if n == 0 {
        return Ok(());
    }
    turn(batch, n, InOut { src, dst: &mut *dst }, threads)?;
    // Q less its first row and column is the product of the reflectors, which lie below the diagonal.
    let rows = n - 1;
    let (mut tau, mut info) = (vec![T::ZERO; batch * rows], vec![0; batch]);
    let a = InOut { src: None, dst: &mut *dst };
    gehrd(batch, n, 1, n, a, &mut tau, &mut info, threads)?;
    let mut product = vec![T::ZERO; batch * rows * rows];
    if rows > 0 {
        for (to, a) in product.chunks_exact_mut(rows * rows).zip(dst.chunks_exact(n * n)) {
            for (to, a) in to.chunks_exact_mut(rows).zip(a.chunks_exact(n)) {
                to.copy_from_slice(&a[1..]);
            }
        }
    }
    let reflectors = InOut { src: None, dst: &mut product[..] };
    orgqr(batch, rows, rows, rows, reflectors, &tau, threads)?;
    for (b, q) in q.chunks_exact_mut(n * n).enumerate() {
        q[..n].fill(T::ZERO);
        q[0] = T::ONE;
        let product = product[b * rows * rows..].chunks_exact(rows.max(1));
        for (to, column) in q[n..].chunks_exact_mut(n).zip(product) {
            to[0] = T::ZERO;
            to[1..].copy_from_slice(column);
        }
    }
    transpose_in_place(batch, n, dst, threads)?;
    transpose_in_place(batch, n, q, threads)?;
    for (h, q) in dst.chunks_exact_mut(n * n).zip(q.chunks_exact_mut(n * n)) {
        if h[0].is_nan() {
            not_finite(h, q, n);
        }
        only_hessenberg(h, n);
    }
    Ok(())
}
