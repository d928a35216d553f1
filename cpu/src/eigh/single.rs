//! The eigenproblem of one Hermitian matrix: reduction, eigenvalues, vectors.

use std::ops::Range;

use faer::{MatMut, MatRef};
use lapax_core::{Real, Scalar as _, Serial};
use pulp::{Simd, WithSimd};
use smallvec::smallvec;

use super::ql::{ImplicitQl, STEPS};
use super::reduction::blocked;
use super::reduction::blocked::tridiagonalize;
use super::reduction::parallel::tridiagonalize_parallel;
use super::reduction::route::PARALLEL;
use super::route::{DIVIDED, by_band};
use super::{divide, ql, root_free_ql};
use crate::blas::fused::reflect_columns;
use crate::blas::householder::BlockScratch;
use crate::blas::rotations::{Rotation, set_identity};
use crate::divide::blocks::{block_from, largest, scale};
use crate::divide::merge;
use crate::divide::verify::is_eigensystem;
use crate::matrix::layout::{Factor, Layout};
use crate::matrix::transpose::transpose_columns;
use crate::matrix::triangle::triangle;
use crate::matrix::{phase, transpose};
use crate::qr::parallel::{multiply_strips, wide_strips};
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::range::{largest_part, power_near_reciprocal, power_of_block, power_to_normal};
use crate::simd::scalar::{Short, ShortRow, zeros};
use crate::two_stage;
use crate::{Scalar, Side, Threads, Uplo, Vectors};

/// `info` where the matrix, LAPACK's fourth argument, holds a NaN or an infinity.
const NOT_FINITE: i32 = -4;
/// Reflectors that are applied together.
const BLOCK: usize = 32;
/// The order of the squares that are turned.
const SQUARE: usize = 8;
/// The order up to which reflectors are applied one by one.
const SMALL: usize = 32;

/// What decompositions of matrices of one order reuse.
pub(crate) struct Scratch<T: Scalar<Real: Scalar>> {
    /// Which of the eigenvectors are wanted, by the order of the values.
    pub(crate) part: Range<usize>,
    pub(crate) e: ShortRow<T::Real>,
    pub(crate) tau: ShortRow<T>,
    pub(crate) reduction: Reduction<T>,
    /// T's diagonal, and the squares of what is beside it, where no vectors are wanted.
    pub(crate) squares: ShortRow<f64>,
    pub(crate) rotations: ShortRow<Rotation<T::Real>>,
    /// Steps per eigenvalue after which an iteration is given up.
    pub(crate) steps: usize,
    pub(crate) vectors: Option<VectorScratch<T>>,
}

/// How T is come by.
#[allow(clippy::large_enum_variant, reason = "a thread has one")]
pub(crate) enum Reduction<T> {
    /// Column by column.
    Columns(blocked::Scratch<T>),
    /// By a band, which leaves no reflectors.
    Band(two_stage::Hermitian<T>),
}

/// What eigenvectors take besides.
pub(crate) struct VectorScratch<T: Scalar<Real: Scalar>> {
    /// The eigenvectors of T.
    pub(super) z: Short<T::Real>,
    /// A copy of T's diagonal, of what is beside it, and sums.
    t: Short<T::Real>,
    /// The matrix's eigenvectors, where they cannot take the place of T's.
    v: Vec<T>,
    block: BlockScratch<T>,
    divide: Option<merge::Scratch<T::Real>>,
}

impl<T: Scalar<Real: Scalar>> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(job: Vectors, n: usize) -> Self {
        let zero = T::Real::ZERO;
        let vectors = || VectorScratch {
            v: vec![T::ZERO; if T::IS_COMPLEX { n * n } else { 0 }],
            block: if n <= SMALL {
                BlockScratch::new(0, 0, 0)
            } else {
                BlockScratch::new(n, BLOCK, n)
            },
            ..VectorScratch::of_tridiagonal(n)
        };
        Self {
            part: 0..n,
            e: zeros(n.saturating_sub(1)),
            tau: zeros(n.saturating_sub(1)),
            reduction: if by_band(Kind::of::<T>(), job, n) {
                Reduction::Band(two_stage::Hermitian::new(n))
            } else {
                Reduction::Columns(blocked::Scratch::new(n))
            },
            squares: smallvec![0.0; if job == Vectors::None { 2 * n } else { 0 }],
            rotations: smallvec![Rotation { c: zero, s: zero }; n],
            steps: STEPS,
            vectors: (job == Vectors::Wanted).then(vectors),
        }
    }
}

impl<T: Scalar<Real: Scalar>> VectorScratch<T> {
    /// For T alone.
    pub(super) fn of_tridiagonal(n: usize) -> Self {
        Self {
            z: zeros(n * n),
            t: zeros(3 * n),
            v: Vec::new(),
            block: BlockScratch::new(0, 0, 0),
            divide: (n >= DIVIDED).then(|| merge::Scratch::new(n, STEPS)),
        }
    }
}

/// Decomposes one matrix, on threads where it is the only one and not small; returns its `info`.
///
/// The triangle `uplo` is that of the matrix by columns. Where `order` says so it lies by rows, and so do the eigenvectors.
pub(crate) fn decompose<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    (a, w): (&mut [T], &mut [T::Real]),
    order: Layout,
    scratch: &mut Scratch<T>,
    threads: Option<&dyn Threads>,
    arch: Arch,
) -> i32 {
    let n = w.len();
    if n == 0 {
        return 0;
    }
    let Some(size) = largest_part(triangle(a, n, uplo)) else {
        let nan = T::Real::from_f64(f64::NAN);
        a.fill(T::from_parts(nan, nan));
        w.fill(nan);
        return NOT_FINITE;
    };
    let power = power_to_normal(size);
    lower_triangle(a, n, (uplo, order), power);
    let Scratch { part, e, tau, reduction, squares, rotations, steps, vectors } = scratch;
    let steps = *steps;
    match (reduction, threads) {
        (Reduction::Band(scratch), _) => scratch.tridiagonalize(a, w, e, threads, arch),
        (Reduction::Columns(scratch), Some(threads)) if n >= PARALLEL => {
            tridiagonalize_parallel(a, w, e, tau, scratch, threads, arch);
        }
        (Reduction::Columns(scratch), _) => tridiagonalize(a, w, e, tau, scratch, arch),
    }
    let outcome = match vectors {
        None => eigenvalues((w, e), squares, (rotations, steps), arch),
        Some(vectors) => {
            let iteration = (&mut rotations[..], steps);
            let outcome = eigenvectors::<T>((w, e), part, vectors, iteration, threads, arch);
            multiply_by_q((a, tau), part, vectors, threads, arch);
            write_vectors(vectors, part, order, a, threads);
            outcome
        }
    };
    w.iter_mut().for_each(|w| *w = *w / power);
    // No more elements than n − 1, which is an i32.
    outcome.map_or_else(|count| i32::try_from(count).unwrap_or(i32::MAX), |()| 0)
}

/// The eigenvalues of T, block by block; `squares` has two numbers for each.
pub(super) fn eigenvalues<R: Real>(
    (d, e): (&mut [R], &mut [R]),
    squares: &mut [f64],
    (rotations, steps): (&mut [Rotation<R>], usize),
    arch: Arch,
) -> Result<(), usize> {
    let (mut first, mut left, mut blocks) = (0, 0, 0);
    while first < d.len() {
        let block = block_from(d, e, first);
        blocks += 1;
        let of_block = (&mut d[block.clone()], &mut e[first..block.end - 1]);
        let iteration = (&mut rotations[block.clone()], steps);
        left += block_values(of_block, squares, iteration, arch).err().unwrap_or(0);
        first = block.end;
    }
    if blocks > 1 {
        d.sort_unstable_by(|x, y| x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal));
    }
    if left == 0 { Ok(()) } else { Err(left) }
}

/// The eigenvalues of a block: by steps without roots, or if those failed by rotations.
///
/// Without roots in f64 also where T is of f32, in which each of about two steps per eigenvalue leaves a rounding of
/// the norm. Values of f32 against those of f64, largest error over ε·‖A‖, and with steps in f32: n = 32 10.8,
/// 300 67, 700 96.
fn block_values<R: Real>(
    (d, e): (&mut [R], &mut [R]),
    squares: &mut [f64],
    (rotations, steps): (&mut [Rotation<R>], usize),
    arch: Arch,
) -> Result<(), usize> {
    if e.is_empty() {
        return Ok(());
    }
    let size = largest(d, e);
    let power = power_of_block(size.to_f64());
    let (values, squares) = squares.split_at_mut(d.len());
    values.iter_mut().zip(&*d).for_each(|(value, d)| *value = d.to_f64() * power);
    for (square, e) in squares.iter_mut().zip(&*e) {
        let e = e.to_f64() * power;
        *square = e * e;
    }
    if root_free_ql::eigenvalues(values, &mut squares[..e.len()], steps, R::EPSILON.to_f64()) {
        d.iter_mut().zip(values).for_each(|(d, value)| *d = R::from_f64(*value / power));
        return Ok(());
    }
    let power = power_of_block(size);
    scale(d, e, power);
    let outcome = arch.dispatch(ImplicitQl { d: &mut *d, e, z: None, rotations, steps });
    scale(d, &mut [], R::ONE / power);
    outcome
}

/// T = Z·diag(d)·Zᵀ, block by block where it has several. Of Z the columns `part` are found.
pub(super) fn eigenvectors<T: Scalar<Real: Scalar>>(
    (d, e): (&mut [T::Real], &mut [T::Real]),
    part: &Range<usize>,
    scratch: &mut VectorScratch<T>,
    (rotations, steps): (&mut [Rotation<T::Real>], usize),
    threads: Option<&dyn Threads>,
    arch: Arch,
) -> Result<(), usize> {
    let n = d.len();
    let VectorScratch { z, t, divide, .. } = scratch;
    let mut solve = |t_block: (&mut [T::Real], &mut [T::Real]), z: &mut [T::Real], part| {
        let iteration = (&mut rotations[..t_block.0.len()], steps);
        block_vectors(t_block, z, part, (&mut *t, divide.as_mut()), iteration, threads, arch)
    };
    if block_from(d, e, 0).len() == n {
        return solve((d, e), z, part.clone());
    }
    let (mut first, mut left) = (0, 0);
    z.fill(T::Real::ZERO);
    let mut own = Vec::new();
    while first < n {
        let block = block_from(d, e, first);
        let order = block.len();
        own.resize(order * order, T::Real::ZERO);
        let of_block = (&mut d[block.clone()], &mut e[first..block.end - 1]);
        left += solve(of_block, &mut own, 0..order).err().unwrap_or(0);
        let columns = z[first * n..block.end * n].chunks_exact_mut(n);
        for (to, from) in columns.zip(own.chunks_exact(order)) {
            to[block.clone()].copy_from_slice(from);
        }
        first = block.end;
    }
    ql::sort(d, Some(z));
    if left == 0 { Ok(()) } else { Err(left) }
}

/// The same for one block, whose Z is `z`: by divide and conquer where it is large, by QL steps otherwise or if that
/// failed.
fn block_vectors<R: Real + Scalar>(
    (d, e): (&mut [R], &mut [R]),
    z: &mut [R],
    part: Range<usize>,
    (t, divide): (&mut [R], Option<&mut merge::Scratch<R>>),
    (rotations, steps): (&mut [Rotation<R>], usize),
    threads: Option<&dyn Threads>,
    arch: Arch,
) -> Result<(), usize> {
    let n = d.len();
    let divide = divide.filter(|_| n >= DIVIDED);
    let size = largest(d, e);
    let power = if divide.is_some() { power_near_reciprocal(size) } else { power_of_block(size) };
    scale(d, e, power);
    let divided = divide.is_some_and(|divide| {
        let (copy, sums) = t[..3 * n].split_at_mut(2 * n);
        let (copy_d, copy_e) = copy.split_at_mut(n);
        let copy_e = &mut copy_e[..n - 1];
        copy_d.copy_from_slice(d);
        copy_e.copy_from_slice(e);
        let (threads, columns) = (threads.unwrap_or(&Serial), part.start * n..part.end * n);
        let found = divide::decompose(d, e, z, part.clone(), divide, threads, arch)
            && is_eigensystem(copy_d, copy_e, &d[part], &z[columns], sums);
        if !found {
            d.copy_from_slice(copy_d);
            e.copy_from_slice(copy_e);
        }
        found
    });
    let outcome = if divided {
        Ok(())
    } else {
        set_identity(z, n);
        arch.dispatch(ImplicitQl { d: &mut *d, e, z: Some(z), rotations, steps })
    };
    scale(d, &mut [], R::ONE / power);
    outcome
}

/// V = Q·Z, of which the columns `part` are wanted, with the phases of the rule.
fn multiply_by_q<T: Scalar<Real: Scalar>>(
    (q, tau): (&[T], &[T]),
    part: &Range<usize>,
    scratch: &mut VectorScratch<T>,
    threads: Option<&dyn Threads>,
    arch: Arch,
) {
    let VectorScratch { z, v, block, .. } = scratch;
    let n = tau.len() + 1;
    let wanted = part.start * n..part.end * n;
    v.iter_mut().zip(&**z).for_each(|(v, &z)| *v = T::from_real(z));
    let v = if T::IS_COMPLEX { v } else { bytemuck::cast_slice_mut(z) };
    let v = &mut v[wanted];
    reflect(q, tau, v, block, threads, arch);
    phase::columns(v, n, threads);
}

/// Writes the columns `part` of V to where they are in the result; by rows, all of them.
fn write_vectors<T: Scalar<Real: Scalar>>(
    scratch: &VectorScratch<T>,
    part: &Range<usize>,
    order: Layout,
    to: &mut [T],
    threads: Option<&dyn Threads>,
) {
    let VectorScratch { z, v, .. } = scratch;
    let v: &[T] = if T::IS_COMPLEX { v } else { bytemuck::cast_slice(z) };
    let n = to.len().isqrt();
    if order == Layout::Columns {
        let wanted = part.start * n..part.end * n;
        return to[wanted.clone()].copy_from_slice(&v[wanted]);
    }
    match threads {
        Some(threads) => transpose::transpose_one((n, n), v, to, threads),
        None => transpose_columns((n, n), v, 0, to),
    }
}

/// V ← Q·V for some columns.
fn reflect<T: Scalar>(
    q: &[T],
    tau: &[T],
    v: &mut [T],
    block: &mut BlockScratch<T>,
    threads: Option<&dyn Threads>,
    arch: Arch,
) {
    let n = tau.len() + 1;
    if n <= SMALL {
        return arch.dispatch(ReflectColumns { q, tau, v });
    }
    // The reflectors start below the diagonal.
    let q = MatRef::from_column_major_slice(q, n, n).submatrix(1, 0, n - 1, n - 1);
    let columns = v.len() / n;
    let mut v = MatMut::from_column_major_slice_mut(v, n, columns).subrows_mut(1, n - 1);
    let Some(threads) = threads else {
        for first in (0..n - 1).step_by(BLOCK).rev() {
            let width = BLOCK.min(n - 1 - first);
            let reflectors = q.submatrix(first, first, n - 1 - first, width);
            let mut block = block.block(reflectors, &tau[first..first + width]);
            block.apply_left(Factor::Q, v.as_mut().subrows_mut(first, n - 1 - first));
        }
        return;
    };
    multiply_strips(Side::Left, Factor::Q, true, (q, tau), wide_strips(v), threads);
}

/// V ← H₁⋯H_(n−1)·V, one reflector at a time.
struct ReflectColumns<'a, T> {
    q: &'a [T],
    tau: &'a [T],
    v: &'a mut [T],
}

impl<T: Scalar> WithSimd for ReflectColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { q, tau, v } = self;
        let n = tau.len() + 1;
        for (j, &tau) in tau.iter().enumerate().rev() {
            let tail = &q[j * n + j + 2..(j + 1) * n];
            reflect_columns(simd, tau, tail, v, n, j + 1);
        }
    }
}

/// Writes the lower triangle by columns of the Hermitian matrix of which a triangle is named as [`decompose`] has it,
/// times a power of two.
fn lower_triangle<T: Scalar>(a: &mut [T], n: usize, (uplo, order): (Uplo, Layout), power: T::Real) {
    // By columns a matrix that lies by rows is its conjugate.
    let conjugate = (uplo == Uplo::Upper) != (order == Layout::Rows);
    let element = |x: T| if conjugate { x.conj() } else { x }.scale(power);
    if uplo == Uplo::Lower {
        (0..n).for_each(|j| a[j * n + j..(j + 1) * n].iter_mut().for_each(|x| *x = element(*x)));
        return;
    }
    // Square by square, since each number of a row is in another line of the cache.
    for first in (0..n).step_by(SQUARE) {
        for top in (first..n).step_by(SQUARE) {
            for j in first..(first + SQUARE).min(n) {
                for i in top.max(j)..(top + SQUARE).min(n) {
                    a[j * n + i] = element(a[i * n + j]);
                }
            }
        }
    }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {

    use super::{Scratch, decompose};
    use crate::matrix::layout::Layout;
    use crate::simd::arch::Arch;
    use crate::{Uplo, Vectors};

    trials!(what_cannot_be_divided_is_iterated_on, what_does_not_converge_is_reported);

    const N: usize = 60;

    /// The second difference, whose eigenvalues are 2 − 2·cos(kπ/(n + 1)).
    fn decompose_with(job: Vectors, change: impl Fn(&mut Scratch<f64>)) -> (Vec<f64>, i32) {
        let element = |i: usize, j: usize| [2.0, -1.0, 0.0][i.abs_diff(j).min(2)];
        let mut a: Vec<f64> = (0..N * N).map(|k| element(k % N, k / N)).collect();
        let (mut w, mut scratch) = (vec![f64::NAN; N], Scratch::new(job, N));
        change(&mut scratch);
        let scratch = &mut scratch;
        let matrix = (&mut a[..], &mut w[..]);
        let info = decompose(Uplo::Lower, matrix, Layout::Columns, scratch, None, Arch::new());
        (w, info)
    }

    fn assert_right((w, info): (Vec<f64>, i32)) {
        assert_eq!(info, 0);
        for (k, w) in (1..).zip(w) {
            let exact = 2.0 - 2.0 * (std::f64::consts::PI * f64::from(k) / (N + 1) as f64).cos();
            assert!((w - exact).abs() < 1e-13, "{w} is not {exact}");
        }
    }

    fn what_cannot_be_divided_is_iterated_on() {
        assert_right(decompose_with(Vectors::Wanted, |_| ()));
        // Where what is not divided does not converge, divide and conquer fails.
        assert_right(decompose_with(Vectors::Wanted, |scratch| {
            if let Some(vectors) = &mut scratch.vectors {
                let divide = vectors.divide.as_mut();
                assert!(divide.map(|divide| divide.steps = 0).is_some(), "order {N} is divided");
            }
        }));
    }

    fn what_does_not_converge_is_reported() {
        for job in [Vectors::Wanted, Vectors::None] {
            let (_, info) = decompose_with(job, |scratch| {
                scratch.steps = 0;
                if let Some(vectors) = &mut scratch.vectors {
                    vectors.divide = None;
                }
            });
            assert_eq!(usize::try_from(info), Ok(N - 1), "no element was made zero");
            let (_, info) = decompose_with(job, |scratch| {
                scratch.steps = 1;
                if let Some(vectors) = &mut scratch.vectors {
                    vectors.divide = None;
                }
            });
            assert!(0 < info && usize::try_from(info).is_ok_and(|info| info < N - 1), "{info}");
        }
    }
}
