//! Q and R, or R alone, of a matrix much taller than wide, by its Gram matrix: RᴴR = AᴴA and Q = A·R⁻¹, twice.
//!
//! The first time Q loses orthogonality with the square of A's condition; where its own Gram matrix is near
//! the identity, the second time restores it (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, "Roundoff error
//! analysis of the CholeskyQR2 algorithm", Electron. Trans. Numer. Anal. 44, 2015), and elsewhere this is
//! left to reflectors. Nearly all work is in matrix products over blocks of rows, which any thread takes.
//! The blocks depend on the matrix's shape alone, and so do the results. A tree of small factorisations with
//! reflectors takes longer: on two cores of Zen 5, f64, 20000 × 128 20.7 ms with its best blocks and 12.6 so, 20000 ×
//! 64 7.6 and 3.9, 100000 × 16 7.0 and 3.1.
//!
//! A column of Q has the sign that LAPACK's reflector gives it. Those signs, and the reflectors' factors, are in
//! the LU factorisation without pivots of −V·T·V₁ᴴ = Q − I (Ballard, Demmel, Grigori, Jacquelin, Knight and
//! Nguyen, "Reconstructing Householder vectors from tall-skinny QR", J. Parallel Distrib. Comput. 85, 2015).

use std::sync::{Mutex, MutexGuard, PoisonError};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Diag, InOut, Real as _, Scalar as _, Serial, Uplo, run_each};
use pulp::{Simd, WithSimd};

use crate::blas::{trsm, trsm_packed};
use crate::cholesky::potrf;
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::loops::{Divisor, sub_scaled};
use crate::{Scalar, Threads};

/// The bytes of a block of rows, and its least rows over its columns: the blocks' Gram matrices take an eighth
/// of the matrix at most. On two cores, f64: 2000 x 16 93 us with 64 KiB and 157 with 256, 512 x 64 309 and 337,
/// 20000 x 64 5421 and 5427.
const BLOCK_BYTES: usize = 64 << 10;
const LEAST_ROWS: usize = 8;
/// The least columns of half a triangle that is found without the other.
const LEAST_HALF: usize = 16;
/// The largest sum of the absolute values in a row of QᴴQ − I the first time. In the paper's analysis
/// 5/64 bounds its norm wherever the second Q is orthogonal to rounding errors.
const NEAR: f64 = 5.0 / 64.0;
/// The distance of a reflector's factor from two, in units of ε, up to which the column may be zero below the
/// diagonal: 64 for each of the most columns.
const UNSURE: f64 = 64.0 * 128.0;

/// The rows of a block.
pub(crate) fn block_rows(kind: Kind, n: usize) -> usize {
    (BLOCK_BYTES / (n * kind.bytes())).max(LEAST_ROWS * n)
}

/// Decomposes a row-major matrix of n columns, with n columns of Q and n rows of R, as [`crate::qr::qr`] does.
///
/// `false`, and neither Q nor R, where rounding errors decide too much: A is too ill-conditioned, or a column may be
/// zero below the diagonal.
pub(crate) fn decompose<T: Scalar>(
    n: usize,
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> bool {
    let blocks: Vec<_> = q.chunks_mut(rows_at_once(n, a) * n).map(Mutex::new).collect();
    let Some(w) = triangle(n, a, Some(&blocks), r, threads) else { return false };
    let w = MatRef::from_column_major_slice(&w, n, n);
    run_each(threads, blocks.len(), Vec::new, |copied, block| {
        let mut q = lock(&blocks[block]);
        copied.clear();
        copied.extend_from_slice(&q);
        let rows = q.len() / n;
        let copied = MatRef::from_row_major_slice(copied, rows, n);
        multiply_upper(MatMut::from_row_major_slice_mut(&mut q, rows, n), copied, w);
    });
    true
}

/// [`decompose`] without Q: the same R.
pub(crate) fn decompose_r<T: Scalar>(
    n: usize,
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> bool {
    triangle(n, a, None, r, threads).is_some()
}

/// Blocks of rows of a matrix; tasks have different ones.
type Blocks<'a, 'b, T> = &'a [Mutex<&'b mut [T]>];

/// R, and the upper triangular W of Q = Q₁·W; the blocks become those of Q₁ = A·R₁⁻¹, where they are wanted.
fn triangle<T: Scalar>(
    n: usize,
    a: &[T],
    quotients: Option<Blocks<'_, '_, T>>,
    r: &mut [T],
    threads: &dyn Threads,
) -> Option<Vec<T>> {
    let (blocks, arch): (Vec<_>, _) = (a.chunks(rows_at_once(n, a) * n).collect(), Arch::new());
    let gram = gram((n, blocks.len()), threads, |_, block, to| multiply_adjoint(blocks[block], to));
    let first = factor(gram, n)?;
    let first = MatRef::from_column_major_slice(&first, n, n);
    let system = System { uplo: Uplo::Lower, diag: Diag::NonUnit, conj: Conj::No };
    // The first n rows of Q₁, which the first block has.
    let top = Mutex::new(vec![T::ZERO; n * n]);
    let gram = crate::qr::tall::gram((n, blocks.len()), threads, |scratch, block, to| {
        let a = blocks[block];
        let mut kept = quotients.map(|blocks| lock(&blocks[block]));
        let q = if let Some(kept) = &mut kept {
            kept.copy_from_slice(a);
            &mut kept[..]
        } else {
            scratch.clear();
            scratch.extend_from_slice(a);
            &mut scratch[..]
        };
        let rows = q.len() / n;
        let columns = MatMut::from_column_major_slice_mut(&mut *q, n, rows);
        let mut scratch = trsm_packed::Scratch::new(n, rows);
        trsm::solve(system, first.transpose(), columns, &mut scratch, arch);
        multiply_adjoint(q, to);
        if block == 0 {
            lock(&top).copy_from_slice(&q[..n * n]);
        }
    });
    // What is not a number is not near.
    let near = distance_to_identity(&gram, n) <= NEAR;
    if !near {
        return None;
    }
    let second = factor(gram, n)?;
    let second = MatRef::from_column_major_slice(&second, n, n);

    // Q = Q₁·W with W = R₂⁻¹·S and R = S·R₂·R₁, for signs S.
    let mut w = vec![T::ZERO; n * n];
    w.iter_mut().step_by(n + 1).for_each(|one| *one = T::ONE);
    let system = System { uplo: Uplo::Upper, ..system };
    let columns = MatMut::from_column_major_slice_mut(&mut w, n, n);
    trsm::solve(system, second, columns, &mut trsm_packed::Scratch::new(n, n), arch);
    let mut product = vec![T::ZERO; n * n];
    multiply_upper(
        MatMut::from_column_major_slice_mut(&mut product, n, n),
        MatRef::from_row_major_slice(&lock(&top), n, n),
        MatRef::from_column_major_slice(&w, n, n),
    );
    let signs = arch.dispatch(Signs { top: &mut product, n })?;
    for (column, &sign) in w.chunks_exact_mut(n).zip(&signs) {
        column.iter_mut().for_each(|w| *w = w.scale(sign));
    }
    multiply(MatMut::from_row_major_slice_mut(r, n, n), second, first);
    for (i, (row, &sign)) in r.chunks_exact_mut(n).zip(&signs).enumerate() {
        row[..i].fill(T::ZERO);
        row[i..].iter_mut().for_each(|r| *r = r.scale(sign));
    }
    Some(w)
}

/// The rows of a block of this matrix.
fn rows_at_once<T: Scalar>(n: usize, a: &[T]) -> usize {
    block_rows(Kind::of::<T>(), n).min(a.len() / n)
}

/// The sum, in their order, of the Gram matrices of order n that `find` writes for so many blocks; what it gets
/// first it may use as it likes.
fn gram<T: Scalar>(
    (n, count): (usize, usize),
    threads: &dyn Threads,
    find: impl Fn(&mut Vec<T>, usize, MatMut<'_, T>) + Sync,
) -> Vec<T> {
    let mut grams = vec![T::ZERO; count * n * n];
    {
        let grams: Vec<_> = grams.chunks_mut(n * n).map(Mutex::new).collect();
        run_each(threads, count, Vec::new, |scratch, block| {
            let mut gram = lock(&grams[block]);
            find(scratch, block, MatMut::from_column_major_slice_mut(&mut gram, n, n));
        });
    }
    let (sum, others) = grams.split_at_mut(n * n);
    for other in others.chunks_exact(n * n) {
        sum.iter_mut().zip(other).for_each(|(sum, &x)| *sum += x);
    }
    grams.truncate(n * n);
    grams
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The upper triangle of `to` ← AᴴA, and some of the other.
fn multiply_adjoint<T: Scalar>(a: &[T], to: MatMut<'_, T>) {
    let n = to.ncols();
    adjoint_product(MatRef::from_row_major_slice(a, a.len() / n, n), to);
}

fn adjoint_product<T: Scalar>(a: MatRef<'_, T>, mut to: MatMut<'_, T>) {
    let n = to.ncols();
    let product = |to: MatMut<'_, T>, a: MatRef<'_, T>, b| {
        T::product(to, Accum::Replace, (a.transpose(), Conj::Yes), (b, Conj::No), T::ONE);
    };
    if n < 2 * LEAST_HALF {
        product(to, a, a);
        return;
    }
    let (left, right) = a.split_at_col(n / 2);
    let (first, across, _, second) = to.as_mut().split_at_mut(n / 2, n / 2);
    adjoint_product(left, first);
    product(across, left, right);
    adjoint_product(right, second);
}

/// to ← A·B for an upper triangular B, whose zeros are there.
fn multiply_upper<T: Scalar>(to: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    let n = b.ncols();
    if n < 2 * LEAST_HALF {
        multiply(to, a, b);
        return;
    }
    let (left, right) = to.split_at_col_mut(n / 2);
    multiply_upper(left, a.subcols(0, n / 2), b.submatrix(0, 0, n / 2, n / 2));
    multiply(right, a, b.subcols(n / 2, n - n / 2));
}

/// to ← A·B.
fn multiply<T: Scalar>(to: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    T::product(to, Accum::Replace, (a, Conj::No), (b, Conj::No), T::ONE);
}

/// R of RᴴR, with a positive diagonal and zeros below it; `None` where a rounding error is in the way.
fn factor<T: Scalar>(mut gram: Vec<T>, n: usize) -> Option<Vec<T>> {
    let (aliased, mut info) = (InOut { src: None, dst: &mut gram[..] }, [0]);
    potrf(Uplo::Upper, 1, n, aliased, &mut info, &Serial).ok()?;
    for (j, column) in gram.chunks_exact_mut(n).enumerate() {
        column[j + 1..].fill(T::ZERO);
    }
    (info == [0]).then_some(gram)
}

/// The largest sum of absolute values in a column of a Hermitian matrix, of which there is the upper triangle, less
/// the identity.
fn distance_to_identity<T: Scalar>(gram: &[T], n: usize) -> f64 {
    let mut sums = vec![0.0; n];
    for (j, column) in gram.chunks_exact(n).enumerate() {
        for (i, &x) in column[..j].iter().enumerate() {
            let size = x.abs().to_f64();
            sums[i] += size;
            sums[j] += size;
        }
        sums[j] += (column[j] - T::ONE).abs().to_f64();
    }
    // Not `f64::max`, which leaves NaN out.
    sums.into_iter().fold(0.0, |most, sum| if sum <= most { most } else { sum })
}

/// The signs that LAPACK's reflectors give the columns of a matrix with orthonormal columns, of which `top` are
/// the first n rows, n × n; `None` where one of them may be the identity, which gives another sign than the
/// reflector near it.
struct Signs<'a, T> {
    top: &'a mut [T],
    n: usize,
}

impl<T: Scalar> WithSimd for Signs<'_, T> {
    type Output = Option<Vec<T::Real>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let Self { top, n } = self;
        let one = T::Real::ONE;
        let unsure = T::Real::EPSILON * T::Real::from_f64(UNSURE);
        let mut signs = Vec::with_capacity(n);
        for j in 0..n {
            // The columns of L before this one are finished.
            let (left, right) = top.split_at_mut(j * n);
            let column = &mut right[..n];
            for (k, factors) in left.chunks_exact(n).enumerate() {
                let known = column[k];
                sub_scaled::<S, T>(&mut column[k + 1..], known, &factors[k + 1..]);
            }
            // The pivot −tau is minus one, and as much less as the sign can make it.
            let sign = if column[j].re() > T::Real::ZERO { -one } else { one };
            column.iter_mut().for_each(|x| *x = x.scale(sign));
            let pivot = column[j] - T::ONE;
            let sure = (pivot + T::ONE + T::ONE).abs1() > unsure;
            if !sure {
                return None;
            }
            Divisor::new(pivot).divide(&mut column[j + 1..]);
            signs.push(sign);
        }
        Some(signs)
    }
}
