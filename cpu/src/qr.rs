//! QR factorisation A = Q·R, with Q as reflectors below the diagonal, and products with that Q.
//!
//! Q = H₁·H₂⋯H_k, H_i = I − tau_i·v_i·v_iᴴ; v_i is zero above row i, one in it, and stored below it.
//! The diagonal of R is real and may be negative. Columns are factored in blocks, each by halves,
//! after Elmroth and Gustavson, "Applying recursion to serial and parallel QR factorization leads to
//! better performance" (IBM J. Res. Dev. 44, 2000).

use faer::{MatMut, MatRef};
use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use crate::arch::Arch;
use crate::cholesky_qr;
use crate::columns::reflect_columns;
use crate::few;
use crate::few_qr;
use crate::householder::{BlockScratch, Reflector, reflector};
use crate::lanes::{self, Order, for_each_group};
use crate::outcome::Outcome;
use crate::row_major;
use crate::rows;
use crate::scalar::nanoseconds;
use crate::small_qr::FactorPacked;
use crate::tiled_qr::factor_tiled;
use crate::{Error, InOut, Scalar, Serial, Threads};

pub use crate::householder::Factor;
pub use crate::pivoted_qr::geqp3;
pub use crate::reflectors::{orgqr, ormqr};

/// The number of reflectors that are applied to a large matrix together.
pub(crate) const WIDTH: usize = 32;
/// The number of columns up to which a block is factored column by column.
const NARROW: usize = 8;
/// The number of rows and of columns up to which a matrix is worked on in a packed copy, without
/// blocks; at 48, for f64 with AVX-512, blocks were measured to be faster already.
pub(crate) const PACKED: usize = 32;
/// The number of rows and of columns up to which loops are faster without wide registers.
pub(crate) const TINY: usize = 6;

/// The number of reflectors from which one matrix is shared out among all threads. On two cores with
/// AVX-512, f64, against one without panels: n = 256 0.76 ms and 0.58, n = 384 1.35 and 1.6, n = 1024 16 and
/// 27; `orgqr` 0.40 and 0.49, 1.0 and 1.4, 15 and 27. Serially panels cost 5 % more at n = 2048, 25 % at 384.
/// With AVX2, `qr` of n = 256, threads started for it: f64 2.1 and 1.9, f32 1.7 and 1.2, c64 3.7 and 3.5, c128
/// 6.5 and 8.5.
pub(crate) const TILED_ORDER: usize = 320;
/// The number of rows and of columns up to which a batch goes through lanes.
pub(crate) const LANES_ORDER: usize = 32;

/// Factors each m × n matrix of a batch as A = Q·R, in place.
///
/// `a` holds R on and above the diagonal and the reflectors of Q below it; `tau` holds the
/// min(m, n) factors of each matrix. A tau is zero, and its reflector the identity, where the
/// column is zero below the diagonal and real on it.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn geqrf<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    tau: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands =
        (ItemsInOut::new("a", batch, &[m, n], a)?, ItemsMut::new("tau", batch, &[k], tau)?);
    if k == 0 {
        return Ok(());
    }
    let products = m.saturating_mul(n).saturating_mul(k);
    if lanes::pay(batch, m.max(n), LANES_ORDER) {
        let kernel = lanes::qr::Factor { m, n, order: Order::Column };
        for_each_group::<T, _>(batch, operands, nanoseconds::<T>(products), threads, &kernel);
        return Ok(());
    }
    if k > TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, tau), threads| {
            factor_tiled(a, m, tau, threads);
        });
        return Ok(());
    }
    let arch = Arch::new();
    let scratch = || factor_scratch(m, n);
    for_each(batch, operands, nanoseconds::<T>(products), threads, scratch, |scratch, (a, tau)| {
        factor(Panel { a, lda: m, row: 0 }, tau, scratch, arch);
    });
    Ok(())
}

/// Factors each m × n row-major matrix of a batch as A = Q·R, with c columns of Q and c rows of R.
///
/// `q` is m × c and `r` is c × n, by rows; c is min(m, n), or m for all of Q. R is zero below its
/// diagonal, which is real and may be negative.
///
/// # Errors
/// Where c is neither, or a slice has another length than the dimensions say.
#[per_scalar]
pub fn qr<T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    if c == n && cholesky_qr::pays::<T>(m, n) {
        return tall(batch, (m, n), a, q, r, threads);
    }
    let by_lanes = lanes::pay(batch, m.max(n), LANES_ORDER);
    let by_columns = rows::qr::pay::<T>(m, n);
    if k == 0 {
        return row_major::qr((geqrf, orgqr), batch, (m, n, c), a, q, r, threads);
    }
    let operands = (
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("q", batch, &[m, c], q)?,
        ItemsMut::new("r", batch, &[c, n], r)?,
    );
    let products = m.saturating_mul(n + c).saturating_mul(k);
    let time = nanoseconds::<T>(products);
    if m == 1 && !(T::IS_COMPLEX && by_lanes) {
        for_each(batch, operands, time, threads, || (), |(), (a, q, r)| q[0] = one_row(a, r));
        return Ok(());
    }
    if by_lanes {
        let kernel = lanes::explicit_qr::Decompose { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if few_qr::pay(m, n) {
        few::each(batch, operands, |(a, q, r)| few_qr::decompose((m, n, c), a, Some(q), r));
        return Ok(());
    }
    if by_columns {
        let kernel = rows::qr::Explicit { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |(a, q, r): (&[T], &mut [T], &mut [T]), threads: &dyn Threads| {
        outcome.take(row_major::qr((geqrf, orgqr), 1, (m, n, c), a, q, r, threads));
    };
    if k > TILED_ORDER {
        for_each_large(batch, operands, threads, one);
    } else {
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}

/// R of one row, and the number that makes up Q: a real one is 1.
fn one_row<T: Scalar>(a: &[T], r: &mut [T]) -> T {
    let Reflector { beta, tau } = reflector::<pulp::Scalar, T>(a[0], &mut []);
    r.iter_mut().zip(a).for_each(|(r, &a)| *r = a * (T::ONE - tau.conj()));
    r[0] = T::from_real(beta);
    T::ONE - tau
}

/// R of each m × n row-major matrix of a batch, with c rows: that of [`qr`] with min(m, n) columns of Q, which is
/// not formed.
///
/// `r` is c × n, by rows; c is min(m, n), or m, with zeros in the rows beyond.
///
/// # Errors
/// Where c is neither, or a slice has another length than the dimensions say.
#[per_scalar]
pub fn qr_r<T: Scalar>(
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    let operands = (Items::new("a", batch, &[m, n], a)?, ItemsMut::new("r", batch, &[c, n], r)?);
    if k == 0 {
        return Ok(());
    }
    let by_lanes = lanes::pay(batch, m.max(n), LANES_ORDER);
    let time = nanoseconds::<T>(m.saturating_mul(n).saturating_mul(k));
    if m == 1 && !(T::IS_COMPLEX && by_lanes) {
        for_each(
            batch,
            operands,
            time,
            threads,
            || (),
            |(), (a, r)| {
                one_row(a, r);
            },
        );
        return Ok(());
    }
    if by_lanes {
        let kernel = lanes::explicit_qr::Upper { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    if few_qr::pay(m, n) {
        few::each(batch, operands, |(a, r)| few_qr::decompose((m, n, c), a, None, r));
        return Ok(());
    }
    let tall = cholesky_qr::pays::<T>(m, n);
    if rows::qr::pay::<T>(m, n) && !tall {
        let kernel = rows::qr::Upper { m, n, c };
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        return Ok(());
    }
    let outcome = Outcome::default();
    let one = |(a, r): (&[T], &mut [T]), threads: &dyn Threads| {
        let (top, below) = r.split_at_mut(k * n);
        below.fill(T::ZERO);
        if !(tall && cholesky_qr::decompose_r(n, a, top, threads)) {
            outcome.take(row_major::qr_r(geqrf, 1, (m, n, k), a, top, threads));
        }
    };
    if k > TILED_ORDER || (tall && m > cholesky_qr::block_rows::<T>(n)) {
        for_each_large(batch, operands, threads, one);
    } else {
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}

/// [`qr`] of matrices much taller than wide, with n columns of Q.
fn tall<T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("q", batch, &[m, n], q)?,
        ItemsMut::new("r", batch, &[n, n], r)?,
    );
    let outcome = Outcome::default();
    let one = |(a, q, r): (&[T], &mut [T], &mut [T]), threads: &dyn Threads| {
        if !cholesky_qr::decompose(n, a, q, r, threads) {
            outcome.take(row_major::qr((geqrf, orgqr), 1, (m, n, n), a, q, r, threads));
        }
    };
    if m > cholesky_qr::block_rows::<T>(n) {
        for_each_large(batch, operands, threads, one);
    } else {
        let time = nanoseconds::<T>(m.saturating_mul(n).saturating_mul(n).saturating_mul(2));
        for_each(batch, operands, time, threads, || (), |(), item| one(item, &Serial));
    }
    outcome.into_result()
}

/// Whole columns of a matrix, of which the rows from `row` on are to be factored.
pub(crate) struct Panel<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) lda: usize,
    pub(crate) row: usize,
}

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

/// Reflectors one by one, each applied to all columns to its right.
pub(crate) struct FactorColumns<'a, T> {
    pub(crate) panel: Panel<'a, T>,
    pub(crate) tau: &'a mut [T],
}

impl<T: Scalar> WithSimd for FactorColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Panel { a, lda, row } = self.panel;
        for (j, tau) in self.tau.iter_mut().enumerate() {
            let (left, right) = a.split_at_mut((j + 1) * lda);
            let row = row + j;
            let Some((head, tail)) = left[j * lda + row..].split_first_mut() else { return };
            let Reflector { beta, tau: factor } = reflector::<S, T>(*head, tail);
            (*head, *tau) = (T::from_real(beta), factor);
            reflect_columns(simd, factor.conj(), tail, right, lda, row);
        }
    }
}
