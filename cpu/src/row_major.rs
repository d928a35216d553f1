//! The operations on row-major matrices, by routines for column-major ones: lapax's own, or those
//! of a LAPACK library.
//!
//! A row-major matrix is its transpose, column-major. Where an operation on Aᵀ is not one on A, the
//! batch is transposed in memory before and after.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use lapax_core::{
    Batched, Items, ItemsMut, Scalar as _, Serial, for_each, for_each_large, index_fits_i32,
    run_each,
};
use smallvec::smallvec;

use crate::eig::Eigen;
use crate::scalar::{Short, ShortRow, nan, nanoseconds, zeros};
use crate::schur::Eigenvalues;
use crate::svd::Svd;
use crate::transposition::{MEANS, mean_with_transpose, transpose_columns, transposed};
use crate::tridiagonal::Diagonals;
use crate::{Diag, Error, InOut, Scalar, Side, SingularVectors, Threads, Trans, Uplo, Vectors};

/// The order from which strips of so many rows of one matrix go to all threads.
const STRIPS_ORDER: usize = 448;
const STRIP: usize = 64;
const _: () = assert!(STRIP.is_multiple_of(MEANS), "strips begin where means do");
/// The order of the squares of which a mean with the adjoint is made: as many rows as the nearest cache has
/// places for lines of a matrix whose rows lie a power of two apart.
const SQUARE: usize = 8;

/// [`crate::lu::getrf`], or another routine with its contract.
pub(crate) type Getrf<T> = fn(
    usize,
    usize,
    usize,
    InOut<'_, T>,
    &mut [i32],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::cholesky::potrf`], or another routine with its contract.
pub(crate) type Potrf<T> =
    fn(Uplo, usize, usize, InOut<'_, T>, &mut [i32], &dyn Threads) -> Result<(), Error>;

/// [`crate::triangular::trsm`], or another routine with its contract.
pub(crate) type Trsm<T> = fn(
    Side,
    Uplo,
    Trans,
    Diag,
    usize,
    usize,
    usize,
    &[T],
    InOut<'_, T>,
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::qr::geqrf`], or another routine with its contract.
pub(crate) type Geqrf<T> =
    fn(usize, usize, usize, InOut<'_, T>, &mut [T], &dyn Threads) -> Result<(), Error>;

/// [`crate::qr::orgqr`], or another routine with its contract.
pub(crate) type Orgqr<T> =
    fn(usize, usize, usize, usize, InOut<'_, T>, &[T], &dyn Threads) -> Result<(), Error>;

/// [`crate::hessenberg::gehrd`], or another routine with its contract.
#[cfg(feature = "lapack")]
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

/// [`crate::eigh::syevd`], or another routine with its contract.
pub(crate) type Syevd<T> = fn(
    Vectors,
    Uplo,
    usize,
    usize,
    InOut<'_, T>,
    &mut [<T as lapax_core::Scalar>::Real],
    &mut [i32],
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::svd::gesdd`], or another routine with its contract.
pub(crate) type Gesdd<T> = fn(
    SingularVectors,
    usize,
    usize,
    usize,
    InOut<'_, T>,
    Svd<'_, T>,
    &dyn Threads,
) -> Result<(), Error>;

/// [`crate::eig::geev`], or another routine with its contract.
pub(crate) type Geev<T> =
    fn(Vectors, Vectors, usize, usize, &[T], Eigen<'_, T>, &dyn Threads) -> Result<(), Error>;

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

/// [`crate::lu::lu_solve`].
#[allow(clippy::too_many_arguments, reason = "those of lu_solve, and the routine")]
pub(crate) fn lu_solve<T: Scalar>(
    trsm: Trsm<T>,
    trans: Trans,
    batch: usize,
    n: usize,
    nrhs: usize,
    lu: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let rows = (Items::new("b", batch, &[n, nrhs], b)?, Items::new("lu", batch, &[n, n], lu)?);
    let permutations = Items::new("permutation", batch, &[n], permutation)?;
    let work = nanoseconds::<T>(n.saturating_mul(nrhs));
    let forward = trans == Trans::None;
    let operands = (rows.0, permutations, ItemsMut::new("x", batch, &[n, nrhs], &mut *x)?);
    for_each(
        batch,
        operands,
        work,
        threads,
        || (),
        |(), (b, permutation, x)| {
            if forward {
                gather_rows(b, permutation, x, nrhs);
            } else {
                x.copy_from_slice(b);
            }
        },
    );
    // The transposed system, X on the left, whose upper factor is Lᵀ.
    let lower = (Uplo::Upper, Diag::Unit);
    let upper = (Uplo::Lower, Diag::NonUnit);
    for (uplo, diag) in if forward { [lower, upper] } else { [upper, lower] } {
        let x = InOut { src: None, dst: &mut *x };
        trsm(Side::Right, uplo, trans, diag, batch, nrhs, n, lu, x, threads)?;
    }
    if forward {
        return Ok(());
    }
    let permutations = Items::new("permutation", batch, &[n], permutation)?;
    let operands = (permutations, ItemsMut::new("x", batch, &[n, nrhs], x)?);
    for_each(
        batch,
        operands,
        work,
        threads,
        || vec![T::ZERO; n * nrhs],
        |copy, (permutation, x)| {
            copy.copy_from_slice(x);
            scatter_rows(copy, permutation, x, nrhs);
        },
    );
    Ok(())
}

/// [`crate::definite::cho_solve`].
#[allow(clippy::too_many_arguments, reason = "those of cho_solve, and the routine")]
pub(crate) fn cho_solve<T: Scalar>(
    trsm: Trsm<T>,
    uplo: Uplo,
    batch: usize,
    (n, nrhs): (usize, usize),
    factor: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    Items::new("factor", batch, &[n, n], factor)?;
    Items::new("b", batch, &[n, nrhs], b)?;
    ItemsMut::new("x", batch, &[n, nrhs], &mut *x)?;
    // The transposed systems, X on the left, of the factor's transpose.
    let (as_it_is, adjoint) = (Trans::None, Trans::ConjTranspose);
    let both = if uplo == Uplo::Lower { [as_it_is, adjoint] } else { [adjoint, as_it_is] };
    let mut src = Some(b);
    for trans in both {
        let x = InOut { src: src.take(), dst: &mut *x };
        let (uplo, diag) = (uplo.other(), Diag::NonUnit);
        trsm(Side::Right, uplo, trans, diag, batch, nrhs, n, factor, x, threads)?;
    }
    Ok(())
}

/// Row i of `to` is row `rows[i]` of `from`, or NaN where there is none.
pub(crate) fn gather_rows<T: Scalar>(from: &[T], rows: &[i32], to: &mut [T], width: usize) {
    for (to, &row) in to.chunks_exact_mut(width).zip(rows) {
        match usize::try_from(row).ok().and_then(|row| from.chunks_exact(width).nth(row)) {
            Some(from) => to.copy_from_slice(from),
            None => to.fill(nan()),
        }
    }
}

/// Row `rows[i]` of `to` is row i of `from`, and NaN where no i names it.
pub(crate) fn scatter_rows<T: Scalar>(from: &[T], rows: &[i32], to: &mut [T], width: usize) {
    to.fill(nan());
    for (from, &row) in from.chunks_exact(width).zip(rows) {
        let to = usize::try_from(row).ok().and_then(|row| to.chunks_exact_mut(width).nth(row));
        if let Some(to) = to {
            to.copy_from_slice(from);
        }
    }
}

/// [`crate::cholesky::cholesky`].
pub(crate) fn cholesky<T: Scalar>(
    potrf: Potrf<T>,
    mean: bool,
    batch: usize,
    n: usize,
    InOut { src, dst }: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    ItemsMut::new("l", batch, &[n, n], &mut *dst)?;
    if n == 0 {
        // An empty matrix has no memory that would bound how many there are.
        return Ok(());
    }
    let elements = nanoseconds::<T>(n.saturating_mul(n) / 2);
    let src = if !mean {
        src
    } else if let Some(a) = src {
        let a = Items::new("a", batch, &[n, n], a)?;
        let operands = (a, ItemsMut::new("l", batch, &[n, n], &mut *dst)?);
        let mean = |(a, l): (&[T], &mut [T]), threads: &dyn Threads| {
            each_strip(l, n, threads, |first, rows| mean_of(false, a, n, first, rows));
        };
        by_strips(batch, n, operands, elements, threads, mean);
        None
    } else {
        let operands = ItemsMut::new("l", batch, &[n, n], &mut *dst)?;
        for_each(batch, operands, elements, threads, || (), |(), l| mean_with_adjoint(l, n));
        None
    };
    let mut info = vec![0; batch];
    potrf(Uplo::Upper, batch, n, InOut { src, dst: &mut *dst }, &mut info, threads)?;
    let operands =
        (ItemsMut::new("l", batch, &[n, n], dst)?, Items::new("info", batch, &[], &info)?);
    let only_lower = |(l, info): (&mut [T], &[i32]), threads: &dyn Threads| {
        each_strip(l, n, threads, |first, rows| only_lower(rows, n, first, info[0] == 0));
    };
    by_strips(batch, n, operands, elements, threads, only_lower);
    Ok(())
}

/// Calls `body` for each item of a batch of matrices of so many rows, with the threads for its strips.
pub(crate) fn by_strips<B: Batched>(
    batch: usize,
    rows: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    body: impl Fn(B::Item, &dyn Threads) + Sync,
) {
    if rows > STRIPS_ORDER {
        for_each_large(batch, operands, threads, body);
    } else {
        for_each(batch, operands, nanoseconds, threads, || (), |(), item| body(item, &Serial));
    }
}

/// Calls `body` with strips of a matrix's rows, each with the number of its first row.
pub(crate) fn each_strip<T: Scalar>(
    a: &mut [T],
    n: usize,
    threads: &dyn Threads,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    let strips: Vec<_> = a.chunks_mut(STRIP * n).map(Mutex::new).collect();
    run_each(
        threads,
        strips.len(),
        || (),
        |(), strip| {
            let mut rows = strips[strip].lock().unwrap_or_else(PoisonError::into_inner);
            body(strip * STRIP, &mut rows);
        },
    );
}

/// Zeros above the diagonal, and NaN in the rest where the matrix was not factored, of the rows of n
/// numbers from row `first` on.
pub(crate) fn only_lower<T: Scalar>(rows: &mut [T], n: usize, first: usize, factored: bool) {
    if !factored {
        rows.fill(nan());
    }
    for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
        row[i + 1..].fill(T::ZERO);
    }
}

/// A square of a matrix, or as much of it as there is.
type Square<T> = [[T; SQUARE]; SQUARE];

/// The lower triangle of (A + Aᴴ) / 2 in place of A's.
pub(crate) fn mean_with_adjoint<T: Scalar>(a: &mut [T], n: usize) {
    if n < SQUARE {
        for i in 0..n {
            for j in 0..=i {
                a[i * n + j] = mean(a[i * n + j], a[j * n + i]);
            }
        }
        return;
    }
    for i in (0..n).step_by(SQUARE) {
        for j in (0..=i).step_by(SQUARE) {
            let mean = mean_of_squares(square(a, n, (i, j)), &square(a, n, (j, i)));
            write_square(&mean, n, j, i, &mut a[i * n..]);
        }
    }
}

/// (A + Aᴴ) / 2, of its rows from `first` on as many as there is room for: whole ones, or up to the diagonal. What is
/// behind that has no meaning.
pub(crate) fn mean_of<T: Scalar>(whole: bool, a: &[T], n: usize, first: usize, rows: &mut [T]) {
    let done = if T::IS_COMPLEX {
        0
    } else {
        let rows = bytemuck::cast_slice_mut::<T, T::Real>(rows);
        mean_with_transpose(whole, bytemuck::cast_slice(a), n, first, rows)
    };
    for i in (first + done..first + rows.len() / n).step_by(SQUARE) {
        for j in (0..if whole { n } else { i + 1 }).step_by(SQUARE) {
            let mean = mean_of_squares(square(a, n, (i, j)), &square(a, n, (j, i)));
            let last = if whole { n - 1 } else { i };
            write_square(&mean, n, j, last, &mut rows[(i - first) * n..]);
        }
    }
}

/// The square from row i and column j on; zeros where there is no matrix.
fn square<T: Scalar>(a: &[T], n: usize, (i, j): (usize, usize)) -> Square<T> {
    let mut square = [[T::ZERO; SQUARE]; SQUARE];
    for (to, row) in square.iter_mut().zip(a.chunks_exact(n).skip(i)) {
        if let Some(whole) = row[j..].first_chunk() {
            *to = *whole;
        } else {
            to[..n - j].copy_from_slice(&row[j..]);
        }
    }
    square
}

/// (A + Bᴴ) / 2.
fn mean_of_squares<T: Scalar>(mut a: Square<T>, b: &Square<T>) -> Square<T> {
    for (i, row) in a.iter_mut().enumerate() {
        for (x, b) in row.iter_mut().zip(b) {
            *x = mean(*x, b[i]);
        }
    }
    a
}

/// The mean of a number and the conjugate of another.
fn mean<T: Scalar>(x: T, y: T) -> T {
    (x + y.conj()).unscale(T::Real::ONE + T::Real::ONE)
}

/// Writes a square into rows of n numbers, from column j on: into the first what does not go beyond column `last`, and
/// into each one column more.
fn write_square<T: Scalar>(square: &Square<T>, n: usize, j: usize, last: usize, rows: &mut [T]) {
    for (last, (from, row)) in (last..).zip(square.iter().zip(rows.chunks_exact_mut(n))) {
        let columns = SQUARE.min(last + 1 - j).min(n - j);
        row[j..j + columns].copy_from_slice(&from[..columns]);
    }
}

/// [`crate::qr::qr`].
#[allow(clippy::too_many_arguments, reason = "those of qr, and the routines")]
pub(crate) fn qr<T: Scalar>(
    (geqrf, orgqr): (Geqrf<T>, Orgqr<T>),
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    ItemsMut::new("q", batch, &[m, c], &mut *q)?;
    ItemsMut::new("r", batch, &[c, n], &mut *r)?;
    if m == 0 || c == 0 {
        return Items::new("a", batch, &[m, n], a).map(|_| ());
    }
    let mut tau = vec![T::ZERO; batch * k];
    // The reflectors lie where Q will, if there are as many.
    if c == n {
        transpose(batch, (m, n), a, q, threads)?;
        factor_apart(geqrf, batch, (m, n, c), (&mut *q, &mut tau, r), threads)?;
    } else {
        let mut factors = vec![T::ZERO; a.len()];
        transpose(batch, (m, n), a, &mut factors, threads)?;
        factor_apart(geqrf, batch, (m, n, c), (&mut factors, &mut tau, r), threads)?;
        if k > 0 {
            for (q, factors) in q.chunks_exact_mut(m * c).zip(factors.chunks_exact(m * n)) {
                q[..m * k].copy_from_slice(&factors[..m * k]);
            }
        }
    }
    orgqr(batch, m, c, k, InOut { src: None, dst: &mut *q }, &tau, threads)?;
    if m == c {
        return transpose_in_place(batch, m, q, threads);
    }
    let columns = q.to_vec();
    transpose(batch, (c, m), &columns, q, threads)
}

/// [`crate::qr::qr_r`].
pub(crate) fn qr_r<T: Scalar>(
    geqrf: Geqrf<T>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
    a: &[T],
    r: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let k = m.min(n);
    Items::new("a", batch, &[m, n], a)?;
    ItemsMut::new("r", batch, &[c, n], &mut *r)?;
    if k == 0 {
        return Ok(());
    }
    let (mut factors, mut tau) = (vec![T::ZERO; a.len()], vec![T::ZERO; batch * k]);
    transpose(batch, (m, n), a, &mut factors, threads)?;
    factor_apart(geqrf, batch, (m, n, c), (&mut factors, &mut tau, r), threads)
}

/// Factors column-major matrices in place, and writes the c rows of R by rows.
fn factor_apart<T: Scalar>(
    geqrf: Geqrf<T>,
    batch: usize,
    (m, n, c): (usize, usize, usize),
    (factors, tau, r): (&mut [T], &mut [T], &mut [T]),
    threads: &dyn Threads,
) -> Result<(), Error> {
    geqrf(batch, m, n, InOut { src: None, dst: &mut *factors }, tau, threads)?;
    if n == 0 {
        return Ok(());
    }
    let operands =
        (Items::new("factors", batch, &[m, n], factors)?, ItemsMut::new("r", batch, &[c, n], r)?);
    let upper = |(factors, r): (&[T], &mut [T]), threads: &dyn Threads| {
        each_strip(r, n, threads, |first, rows| upper_rows((m, n), factors, first, rows));
    };
    by_strips(batch, c, operands, nanoseconds::<T>(m.saturating_mul(n)), threads, upper);
    Ok(())
}

/// Rows of the upper triangle of an m × n column-major matrix, from one of them on, and zeros below it.
fn upper_rows<T: Scalar>((m, n): (usize, usize), a: &[T], first: usize, rows: &mut [T]) {
    transpose_columns((n, m), a, first, rows);
    for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
        row[..i.min(n)].fill(T::ZERO);
    }
}

/// A matrix of order one as its eigenvalue or its triangular form, and its vector; NaN where it is not finite.
///
/// What the routines allocate takes longer than all the rest: a call of `eigh` in a program took 0.63 us, of
/// `schur` 0.82, and of one that looks at an operand and returns 0.25.
pub(crate) fn of_order_one<T: lapax_core::Scalar>(a: T) -> (T, T) {
    if a.is_finite() { (a, T::ONE) } else { (nan(), nan()) }
}

/// Nanoseconds that a matrix of order one takes.
pub(crate) const OF_ORDER_ONE: usize = 2;

/// [`crate::eigh::eigh`].
#[cfg(feature = "lapack")]
pub(crate) fn eigh<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    use lapax_core::ItemsInOut;

    index_fits_i32("n", n)?;
    let InOut { src, dst } = v;
    ItemsMut::new("v", batch, &[n, n], &mut *dst)?;
    ItemsMut::new("w", batch, &[n], &mut *w)?;
    if n == 0 {
        return Ok(());
    }
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let a = InOut { src, dst: &mut *dst };
    syevd(Vectors::Wanted, uplo.other(), batch, n, a, &mut *w, &mut info, threads)?;
    let columns = ItemsInOut::new("v", batch, &[n, n], InOut { src: None, dst: &mut *dst })?;
    let time = nanoseconds::<T>(n.saturating_mul(n));
    for_each(batch, (columns,), time, threads, || (), |(), (v,)| adjoint(v, n));
    mark_failed(&info, w, [dst]);
    Ok(())
}

/// [`crate::eigh::eigh_subset`], of which all is found.
#[allow(clippy::too_many_arguments, reason = "those of eigh_subset, and the routine")]
pub(crate) fn eigh_subset<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    v: &mut [T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (a, v, w) = subset_operands(batch, n, &part, a, v, w)?;
    if n == 0 {
        return Ok(());
    }
    let mut columns = vec![T::ZERO; a.data().len()];
    let (mut values, mut info) = (vec![T::Real::ZERO; batch * n], vec![0; batch]);
    let all = InOut { src: Some(a.data()), dst: &mut columns[..] };
    syevd(Vectors::Wanted, uplo.other(), batch, n, all, &mut values, &mut info, threads)?;
    let operands = (
        Items::new("columns", batch, &[n, n], &columns)?,
        Items::new("values", batch, &[n], &values)?,
        Items::new("info", batch, &[], &info)?,
        v,
        w,
    );
    let time = nanoseconds::<T>(n.saturating_mul(part.len()));
    for_each(
        batch,
        operands,
        time,
        threads,
        || (),
        |(), (columns, values, info, v, w)| {
            take_part((columns, values), info[0], part.clone(), v, w);
        },
    );
    Ok(())
}

/// A, `v` and `w`, which have as many elements as their sizes and those of the part say.
#[allow(clippy::type_complexity, reason = "a tuple of operands")]
pub(crate) fn subset_operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    part: &Range<usize>,
    a: &'a [T],
    v: &'a mut [T],
    w: &'a mut [T::Real],
) -> Result<(Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T::Real>), Error> {
    index_fits_i32("n", n)?;
    is_part(part, ("n", n))?;
    Ok((
        Items::new("a", batch, &[n, n], a)?,
        ItemsMut::new("v", batch, &[n, part.len()], v)?,
        ItemsMut::new("w", batch, &[part.len()], w)?,
    ))
}

/// Whether all places are among so many.
fn is_part(part: &Range<usize>, all: (&'static str, usize)) -> Result<(), Error> {
    let (start, stop) = (("start", part.start), ("stop", part.end));
    for ((larger, larger_value), (smaller, smaller_value)) in [(all, stop), (stop, start)] {
        if larger_value < smaller_value {
            return Err(Error::Order { larger, larger_value, smaller, smaller_value });
        }
    }
    Ok(())
}

/// Part of the eigenvectors of a matrix's transpose, by columns, becomes part of its own, by rows.
pub(crate) fn take_part<T: Scalar>(
    (columns, values): (&[T], &[T::Real]),
    info: i32,
    part: Range<usize>,
    v: &mut [T],
    w: &mut [T::Real],
) {
    if info != 0 {
        v.fill(nan());
        w.fill(nan::<T>().re());
        return;
    }
    let (n, count) = (values.len(), part.len());
    w.copy_from_slice(&values[part.clone()]);
    for (column, j) in columns[part.start * n..part.end * n].chunks_exact(n).zip(0..) {
        for (v, x) in v[j..].iter_mut().step_by(count).zip(column) {
            *v = x.conj();
        }
    }
}

/// [`crate::eigh::eigvalsh`].
pub(crate) fn eigvalsh<T: Scalar>(
    syevd: Syevd<T>,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    Items::new("a", batch, &[n, n], a)?;
    ItemsMut::new("w", batch, &[n], &mut *w)?;
    if n == 0 {
        return Ok(());
    }
    let (mut info, mut scratch) = (vec![0; batch], vec![T::ZERO; a.len()]);
    let a = InOut { src: Some(a), dst: &mut scratch[..] };
    syevd(Vectors::None, uplo.other(), batch, n, a, &mut *w, &mut info, threads)?;
    mark_failed::<T, 0>(&info, w, []);
    Ok(())
}

/// [`crate::svd::svd`].
#[allow(clippy::too_many_arguments, reason = "those of svd, and the routine")]
pub(crate) fn svd<T: Scalar>(
    gesdd: Gesdd<T>,
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    Items::new("a", batch, &[m, n], a)?;
    let (u_cols, vt_rows) = job.sides(m, n);
    ItemsMut::new("s", batch, &[m.min(n)], &mut *s)?;
    ItemsMut::new("u", batch, &[m, u_cols], &mut *u)?;
    ItemsMut::new("vt", batch, &[vt_rows, n], &mut *vt)?;
    if s.is_empty() && u.is_empty() && vt.is_empty() {
        return Ok(());
    }
    let (mut info, mut scratch) = (vec![0; batch], vec![T::ZERO; a.len()]);
    // By columns it is Aᵀ = conj(V)·diag(s)·Uᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let turned = Svd { s: &mut *s, u: &mut *vt, vt: &mut *u, info: &mut info[..] };
    let a = InOut { src: Some(a), dst: &mut scratch[..] };
    gesdd(job, batch, n, m, a, turned, threads)?;
    mark_failed(&info, s, [u, vt]);
    Ok(())
}

/// [`crate::svd::svd_subset`], of which all is found.
#[allow(clippy::too_many_arguments, reason = "those of svd_subset, and the routine")]
pub(crate) fn svd_subset<T: Scalar>(
    gesdd: Gesdd<T>,
    batch: usize,
    (m, n): (usize, usize),
    part: Range<usize>,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (a, s, u, vt) = svd_operands(batch, (m, n), &part, a, s, u, vt)?;
    let k = m.min(n);
    if k == 0 {
        return Ok(());
    }
    let (mut values, mut info) = (vec![T::Real::ZERO; batch * k], vec![0; batch]);
    let zeros = |length| vec![T::ZERO; batch * length];
    let (mut scratch, mut left, mut right) = (zeros(m * n), zeros(m * k), zeros(k * n));
    // By columns it is Aᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let all = Svd { s: &mut values[..], u: &mut right[..], vt: &mut left[..], info: &mut info[..] };
    let matrices = InOut { src: Some(a.data()), dst: &mut scratch[..] };
    gesdd(SingularVectors::Thin, batch, n, m, matrices, all, threads)?;
    let found = (
        Items::new("values", batch, &[k], &values)?,
        Items::new("left", batch, &[m, k], &left)?,
        Items::new("right", batch, &[k, n], &right)?,
        Items::new("info", batch, &[], &info)?,
    );
    let time = nanoseconds::<T>(m.saturating_add(n).saturating_mul(part.len()));
    for_each(
        batch,
        (found, (s, u, vt)),
        time,
        threads,
        || (),
        |(), ((values, left, right, info), (s, u, vt))| {
            take_singular_part((values, left, right), info[0], part.clone(), s, [u, vt]);
        },
    );
    Ok(())
}

/// A, `s`, `u` and `vt`, which have as many elements as their sizes and those of the part say.
#[allow(clippy::type_complexity, reason = "a tuple of operands")]
pub(crate) fn svd_operands<'a, T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    part: &Range<usize>,
    a: &'a [T],
    s: &'a mut [T::Real],
    u: &'a mut [T],
    vt: &'a mut [T],
) -> Result<(Items<'a, T>, ItemsMut<'a, T::Real>, ItemsMut<'a, T>, ItemsMut<'a, T>), Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    is_part(part, ("min(m, n)", m.min(n)))?;
    Ok((
        Items::new("a", batch, &[m, n], a)?,
        ItemsMut::new("s", batch, &[part.len()], s)?,
        ItemsMut::new("u", batch, &[m, part.len()], u)?,
        ItemsMut::new("vt", batch, &[part.len(), n], vt)?,
    ))
}

/// Part of the factors of a matrix, both by rows.
pub(crate) fn take_singular_part<T: Scalar>(
    (values, left, right): (&[T::Real], &[T], &[T]),
    info: i32,
    part: Range<usize>,
    s: &mut [T::Real],
    [u, vt]: [&mut [T]; 2],
) {
    if info != 0 {
        s.fill(nan::<T>().re());
        [u, vt].into_iter().for_each(|x| x.fill(nan()));
        return;
    }
    let (k, n) = (values.len(), right.len() / values.len());
    s.copy_from_slice(&values[part.clone()]);
    vt.copy_from_slice(&right[part.start * n..part.end * n]);
    for (u, left) in u.chunks_exact_mut(part.len().max(1)).zip(left.chunks_exact(k)) {
        u.copy_from_slice(&left[part.clone()]);
    }
}

/// [`crate::eig::eig`], or [`crate::eig::eigvals`] where there is no `v`.
pub(crate) fn eig<T: Scalar>(
    geev: Geev<T>,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    v: Option<&mut [T::Complex]>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    Items::new("a", batch, &[n, n], a)?;
    ItemsMut::new("w", batch, &[n], &mut *w)?;
    let (job, v) = match v {
        Some(v) => (Vectors::Wanted, v),
        None => (Vectors::None, &mut [][..]),
    };
    if job == Vectors::Wanted {
        ItemsMut::new("v", batch, &[n, n], &mut *v)?;
    }
    if n == 0 {
        return Ok(());
    }
    let mut columns: Short<T> = zeros(a.len());
    transpose(batch, (n, n), a, &mut columns, threads)?;
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let mut parts = Parts::<T>::new(w.len());
    let right = &mut *v;
    let results = Eigen { w: parts.eigenvalues(), left: &mut [], right, info: &mut info };
    geev(Vectors::None, job, batch, n, &columns, results, threads)?;
    parts.write(w);
    if v.is_empty() { Ok(()) } else { transpose_in_place(batch, n, v, threads) }
}

/// Eigenvalues as LAPACK has them: real parts or whole numbers, and imaginary parts of a real matrix's.
pub(crate) struct Parts<T> {
    pub(crate) first: ShortRow<T>,
    pub(crate) imaginary: ShortRow<T>,
}

impl<T: Scalar> Parts<T> {
    /// So many.
    pub(crate) fn new(count: usize) -> Self {
        let imaginary = if T::IS_COMPLEX { 0 } else { count };
        Self { first: zeros(count), imaginary: zeros(imaginary) }
    }

    fn eigenvalues(&mut self) -> Eigenvalues<'_, T> {
        Eigenvalues::from_parts(&mut self.first, &mut self.imaginary)
    }

    /// All of them.
    pub(crate) fn write(&self, w: &mut [T::Complex]) {
        for (k, (w, &first)) in w.iter_mut().zip(&self.first).enumerate() {
            let imaginary = self.imaginary.get(k).map_or(first.im(), |x| x.re());
            *w = lapax_core::Scalar::from_parts(first.re(), imaginary);
        }
    }
}

/// [`crate::schur::schur`].
pub(crate) fn schur<T: Scalar>(
    gees: Gees<T>,
    batch: usize,
    n: usize,
    t: InOut<'_, T>,
    z: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let InOut { src, dst } = t;
    ItemsMut::new("t", batch, &[n, n], &mut *dst)?;
    ItemsMut::new("z", batch, &[n, n], &mut *z)?;
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

/// [`crate::hessenberg::hess`], by routines with the contracts of gehrd and orgqr.
#[cfg(feature = "lapack")]
pub(crate) fn hess<T: Scalar>(
    (gehrd, orgqr): (Gehrd<T>, Orgqr<T>),
    batch: usize,
    n: usize,
    h: InOut<'_, T>,
    q: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    use crate::hessenberg::{not_finite, only_hessenberg};

    let InOut { src, dst } = h;
    ItemsMut::new("h", batch, &[n, n], &mut *dst)?;
    ItemsMut::new("q", batch, &[n, n], &mut *q)?;
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

/// The transposes of n × n matrices, or in their place.
fn turn<T: Scalar>(
    batch: usize,
    n: usize,
    InOut { src, dst }: InOut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    match src {
        Some(src) => transpose(batch, (n, n), src, dst, threads),
        None => transpose_in_place(batch, n, dst, threads),
    }
}

/// Transposes each n × n matrix of a batch.
fn transpose_in_place<T: Pod + Send>(
    batch: usize,
    n: usize,
    a: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    /// Elements that one core moves, by estimate.
    const PER_NANOSECOND: usize = 2;
    let matrices = ItemsMut::new("a", batch, &[n, n], a)?;
    let time = n.saturating_mul(n) / PER_NANOSECOND;
    for_each(batch, (matrices,), time, threads, || (), |(), (a,)| transposed(a, n));
    Ok(())
}

/// Fills the results of matrices that did not converge with NaN; of those that are not finite they are.
pub(crate) fn mark_failed<T: Scalar, const RESULTS: usize>(
    info: &[i32],
    values: &mut [T::Real],
    mut others: [&mut [T]; RESULTS],
) {
    let nan = nan::<T>();
    for b in (0..info.len()).filter(|&b| info[b] > 0) {
        item(values, b, info.len()).fill(nan.re());
        for other in &mut others {
            item(other, b, info.len()).fill(nan);
        }
    }
}

/// One of `batch` items.
fn item<T>(items: &mut [T], b: usize, batch: usize) -> &mut [T] {
    let length = items.len() / batch;
    &mut items[b * length..(b + 1) * length]
}

/// Aᴴ in place of A, n × n.
pub(crate) fn adjoint<T: Scalar>(a: &mut [T], n: usize) {
    transposed(a, n);
    if T::IS_COMPLEX {
        a.iter_mut().for_each(|x| *x = x.conj());
    }
}

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

/// Writes an m × n row-major matrix column-major, by all threads.
pub(crate) fn transpose_one<T: Scalar>(
    (m, n): (usize, usize),
    src: &[T],
    dst: &mut [T],
    threads: &dyn Threads,
) {
    /// The columns that a thread writes at a time.
    const TOGETHER: usize = 64;
    let parts: Vec<_> = dst.chunks_mut(TOGETHER * m).map(Mutex::new).collect();
    run_each(
        threads,
        parts.len(),
        || (),
        |(), part| {
            let mut columns = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            transpose_columns((m, n), src, part * TOGETHER, &mut columns);
        },
    );
}

/// Writes each m × n row-major matrix of `src` column-major to `dst`.
fn transpose<T: Scalar>(
    batch: usize,
    (m, n): (usize, usize),
    src: &[T],
    dst: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    /// The bytes from which threads share a matrix.
    const LARGE: usize = 1 << 20;
    let operands =
        (Items::new("a", batch, &[m, n], src)?, ItemsMut::new("a", batch, &[m, n], dst)?);
    if batch == 1 && size_of_val(src) >= LARGE {
        transpose_one((m, n), src, dst, threads);
        return Ok(());
    }
    let elements = nanoseconds::<T>(m.saturating_mul(n));
    for_each(
        batch,
        operands,
        elements,
        threads,
        || (),
        |(), (src, dst)| {
            transpose_columns((m, n), src, 0, dst);
        },
    );
    Ok(())
}
