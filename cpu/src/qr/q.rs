//! Q = H₁·H₂⋯H_t from stored reflectors: its columns, and products of it with a matrix.

use faer::{MatMut, MatRef};
use lapax_core::{Items, ItemsInOut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};

use super::blocked::{PACKED, TINY, WIDTH, one_by_one};
use super::packed::GeneratePacked;
use super::parallel::{generate_parallel, multiply_parallel};
use super::route;
use super::route::{Route, products};
use crate::blas::fused::reflect_columns;
use crate::blas::householder::{BlockScratch, Reflectors};
use crate::lanes;
use crate::matrix::layout::{Factor, Layout};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::chunks::TOGETHER;
use crate::simd::loops::sub_scaled;
use crate::unblocked::qr::GenerateColumns;
use crate::{Error, InOut, Scalar, Side, Threads};

/// The number of reflectors, and of columns or rows to apply them to, that are too few for a block.
const FEW: usize = 8;

/// Forms the first n columns of Q = H₁⋯H_t for each matrix of a batch, in place of the reflectors.
///
/// Q is m × m, so n <= m, and t <= n. Reflector i has the factor `tau[i]` and the vector that is
/// one in row i and stored below it in column i of `a`; nothing else of `a` is read.
///
/// # Errors
/// Where m < n or n < t, or a slice has another length than the dimensions say.
#[per_scalar]
pub fn orgqr<T: Scalar>(
    batch: usize,
    m: usize,
    n: usize,
    t: usize,
    a: InOut<'_, T>,
    tau: &[T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = orgqr_operands(batch, (m, n, t), a, tau)?;
    if n == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(products(m, n, t.max(1)));
    match route::orgqr(batch, m, t) {
        Route::Lanes => {
            let kernel = lanes::qr::Form { m, n, t, order: Layout::Columns };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, tau), threads| {
            generate_parallel(a, m, tau, threads);
        }),
        // By columns there are no other ways.
        _ => {
            let (scratch, arch) = (|| block_scratch(m, n, t), Arch::new());
            for_each(batch, operands, time, threads, scratch, |scratch, (a, tau)| {
                generate(a, m, tau, scratch, arch);
            });
        }
    }
    Ok(())
}

/// The operands of [`orgqr`].
pub(crate) fn orgqr_operands<'a, T: Scalar>(
    batch: usize,
    (m, n, t): (usize, usize, usize),
    a: InOut<'a, T>,
    tau: &'a [T],
) -> Result<(ItemsInOut<'a, T>, Items<'a, T>), Error> {
    at_least(("m", m), ("n", n))?;
    at_least(("n", n), ("t", t))?;
    Ok((ItemsInOut::new("a", batch, &[m, n], a)?, Items::new("tau", batch, &[t], tau)?))
}

/// Multiplies each m × n matrix C of a batch by Q = H₁⋯H_t or by Qᴴ, in place.
///
/// C becomes Q·C (`side` left, `factor` Q), Qᴴ·C, C·Q or C·Qᴴ. Q has the order r of C on that side;
/// `a` is r × p and holds the reflectors in its first t columns, as [`geqrf`](crate::qr::geqrf)
/// leaves them, t <= min(r, p).
///
/// # Errors
/// Where r < t or p < t, or a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
#[per_scalar]
pub fn ormqr<T: Scalar>(
    side: Side,
    factor: Factor,
    batch: usize,
    m: usize,
    n: usize,
    p: usize,
    t: usize,
    a: &[T],
    tau: &[T],
    c: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (r, others) = match side {
        Side::Left => (m, n),
        Side::Right => (n, m),
    };
    let operands = ormqr_operands(batch, (r, p, t), (m, n), a, tau, c)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(products(m, n, 2 * t.max(1)));
    match route::ormqr(batch, r, others, p, t) {
        Route::Lanes => {
            let from_right = side == Side::Right;
            let kernel = lanes::qr::Apply { op: factor, from_right, m: r, n: others, p, t };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, tau, c), threads| {
            multiply_parallel(side, Reflectors { a: &a[..r * t], r, tau, factor }, c, m, threads);
        }),
        // By columns there are no other ways.
        _ => {
            let scratch = || (block_scratch(r, others, t), vec![T::ZERO; m]);
            let arch = Arch::new();
            for_each(batch, operands, time, threads, scratch, |(scratch, sums), (a, tau, c)| {
                let q = Reflectors { a: &a[..r * t], r, tau, factor };
                multiply(side, q, c, m, scratch, sums, arch);
            });
        }
    }
    Ok(())
}

/// The operands of [`ormqr`].
#[allow(clippy::type_complexity, reason = "a tuple of operands")]
pub(crate) fn ormqr_operands<'a, T: Scalar>(
    batch: usize,
    (r, p, t): (usize, usize, usize),
    (m, n): (usize, usize),
    a: &'a [T],
    tau: &'a [T],
    c: InOut<'a, T>,
) -> Result<(Items<'a, T>, Items<'a, T>, ItemsInOut<'a, T>), Error> {
    at_least(("r", r), ("t", t))?;
    at_least(("p", p), ("t", t))?;
    Ok((
        Items::new("a", batch, &[r, p], a)?,
        Items::new("tau", batch, &[t], tau)?,
        ItemsInOut::new("c", batch, &[m, n], c)?,
    ))
}

fn at_least(larger: (&'static str, usize), smaller: (&'static str, usize)) -> Result<(), Error> {
    let ((larger, larger_value), (smaller, smaller_value)) = (larger, smaller);
    if larger_value >= smaller_value {
        return Ok(());
    }
    Err(Error::Order { larger, larger_value, smaller, smaller_value })
}

/// Whether t reflectors of r elements are applied to that many columns or rows one by one.
fn apart(r: usize, others: usize, t: usize) -> bool {
    one_by_one(r, others) || t <= FEW || others <= FEW
}

/// What a call reuses.
fn block_scratch<T: Scalar>(r: usize, others: usize, t: usize) -> BlockScratch<T> {
    if apart(r, others, t) {
        BlockScratch::new(0, 0, 0)
    } else {
        BlockScratch::new(r, WIDTH.min(t), others.max(WIDTH))
    }
}

/// The columns of `a`, which hold reflectors, become those of Q.
pub(crate) fn generate<T: Scalar>(
    a: &mut [T],
    m: usize,
    tau: &[T],
    scratch: &mut BlockScratch<T>,
    arch: Arch,
) {
    let (n, t) = (a.len() / m, tau.len());
    for (j, column) in a.chunks_exact_mut(m).enumerate().skip(t) {
        column.fill(T::ZERO);
        column[j] = T::ONE;
    }
    if apart(m, n, t) {
        return if m <= TINY {
            GenerateColumns { a, m, tau }.with_simd(pulp::Scalar::new())
        } else if m <= PACKED / 2 {
            arch.dispatch(GeneratePacked::<_, { PACKED / 2 }> { a, m, tau })
        } else if m <= PACKED {
            arch.dispatch(GeneratePacked::<_, PACKED> { a, m, tau })
        } else {
            arch.dispatch(GenerateColumns { a, m, tau })
        };
    }
    for first in (0..t).step_by(WIDTH).rev() {
        let width = WIDTH.min(t - first);
        let (left, right) = a.split_at_mut((first + width) * m);
        let panel = &mut left[first * m..];
        let mut panel = MatMut::from_column_major_slice_mut(panel, m, width);
        let below = panel.as_ref().subrows(first, m - first);
        let mut block = scratch.block(below, &tau[first..first + width]);
        // Q's later columns are those of the later reflectors' product, times this block.
        let later = MatMut::from_column_major_slice_mut(right, m, n - first - width);
        block.apply_left(Factor::Q, later.subrows_mut(first, m - first));
        block.first_columns(panel.as_mut().subrows_mut(first, m - first));
        panel.subrows_mut(0, first).fill(T::ZERO);
    }
}

/// C ← Q·C, Qᴴ·C, C·Q or C·Qᴴ for C of m rows; `sums` has m elements where Q is on the right.
pub(crate) fn multiply<T: Scalar>(
    side: Side,
    q: Reflectors<'_, T>,
    c: &mut [T],
    m: usize,
    scratch: &mut BlockScratch<T>,
    sums: &mut [T],
    arch: Arch,
) {
    let (n, t) = (c.len() / m, q.tau.len());
    let others = if side == Side::Left { n } else { m };
    if apart(q.r, others, t) {
        return match side {
            Side::Left if m <= TINY => MultiplyLeft { q, c }.with_simd(pulp::Scalar::new()),
            Side::Left => arch.dispatch(MultiplyLeft { q, c }),
            Side::Right => arch.dispatch(MultiplyRight { q, c, sums }),
        };
    }
    let mut c = MatMut::from_column_major_slice_mut(c, m, n);
    let v = MatRef::from_column_major_slice(q.a, q.r, t);
    let blocks = t.div_ceil(WIDTH);
    for step in 0..blocks {
        let first = WIDTH * if q.last_first(side) { blocks - 1 - step } else { step };
        let width = WIDTH.min(t - first);
        let below = v.submatrix(first, first, q.r - first, width);
        let mut block = scratch.block(below, &q.tau[first..first + width]);
        match side {
            Side::Left => block.apply_left(q.factor, c.as_mut().subrows_mut(first, m - first)),
            Side::Right => block.apply_right(q.factor, c.as_mut().subcols_mut(first, n - first)),
        }
    }
}

/// Each column of C meets all reflectors in turn.
struct MultiplyLeft<'a, T> {
    q: Reflectors<'a, T>,
    c: &'a mut [T],
}

impl<T: Scalar> WithSimd for MultiplyLeft<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { q, c } = self;
        let (t, last_first) = (q.tau.len(), q.last_first(Side::Left));
        for columns in c.chunks_mut(TOGETHER * q.r) {
            for step in 0..t {
                let i = if last_first { t - 1 - step } else { step };
                let (tau, tail) = q.at(i);
                reflect_columns(simd, tau, tail, columns, q.r, i);
            }
        }
    }
}

/// Each reflector meets all columns of C: w = C·v, then C − tau·w·vᴴ.
struct MultiplyRight<'a, T> {
    q: Reflectors<'a, T>,
    c: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for MultiplyRight<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { q, c, sums: w } = self;
        let (m, t, last_first) = (w.len(), q.tau.len(), q.last_first(Side::Right));
        for step in 0..t {
            let i = if last_first { t - 1 - step } else { step };
            let (tau, tail) = q.at(i);
            let (head, rest) = c[i * m..].split_at_mut(m);
            w.copy_from_slice(head);
            for (&v, column) in tail.iter().zip(rest.chunks_exact(m)) {
                sub_scaled::<S, T>(w, -v, column);
            }
            sub_scaled::<S, T>(head, tau, w);
            for (&v, column) in tail.iter().zip(rest.chunks_exact_mut(m)) {
                sub_scaled::<S, T>(column, tau * v.conj(), w);
            }
        }
    }
}
