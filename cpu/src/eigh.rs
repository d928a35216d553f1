//! Eigenvalues and eigenvectors of Hermitian matrices, A = V·diag(w)·Vᴴ, and the first half of the
//! way there: A = Q·T·Qᴴ with T real and tridiagonal.

use std::ops::Range;

use faer::{MatMut, MatRef};
use lapax_core::{
    Items, ItemsInOut, ItemsMut, Real, Scalar as _, Serial, for_each, for_each_large,
    for_each_part, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;
use pulp::{Simd, WithSimd};
use smallvec::smallvec;

use crate::arch::Arch;
use crate::columns::reflect_columns;
use crate::householder::{BlockScratch, Factor};
use crate::implicit_ql::{self, ImplicitQl, STEPS};
use crate::lanes::{self, Order, for_each_group};
use crate::merge::{self, SHARED_ORDER};
use crate::normal_range::{largest_part, power_near_reciprocal, power_of_block, power_to_normal};
use crate::phase;
use crate::root_free_ql;
use crate::rotations::{Rotation, set_identity};
use crate::row_major;
use crate::scalar::{Short, ShortRow, nanoseconds, zeros};
use crate::tiled_qr::{multiply_strips, wide_strips};
use crate::tiled_tridiagonal::{TILED_ORDER, tridiagonalize_tiled};
use crate::transposition::transpose_columns;
use crate::trial::is_eigensystem;
use crate::tridiagonal_blocks::{block_from, largest, scale};
use crate::tridiagonal_eigen;
use crate::tridiagonalize::{self, triangle, tridiagonalize};
use crate::two_stage;
use crate::{Error, InOut, Scalar, Side, Threads, Uplo, Vectors};

pub use crate::tridiagonalize::sytrd;

/// `info` where the matrix, LAPACK's fourth argument, holds a NaN or an infinity.
const NOT_FINITE: i32 = -4;
/// Reflectors that are applied together.
const BLOCK: usize = 32;
/// The order of the squares that are turned.
const SQUARE: usize = 8;
/// The order up to which reflectors are applied one by one.
const SMALL: usize = 32;
/// The order from which a tridiagonal matrix is divided. On one core with AVX-512, f64, eigh by QL steps and
/// divided: n = 24 47 and 62 us, 33 106 and 92, 64 399 and 370.
const DIVIDED: usize = 33;
/// The order up to which a batch goes through lanes with vectors, and without. Two cores with AVX-512, us a
/// matrix in lanes and one by one, f64: with vectors n = 33 13 and 34, 48 36 and 72, 64 109 and 118, and of
/// eight matrices 220 and 148; without n = 33 6.5 and 13, 64 29 and 47, 128 144 and 232. f32: 7.4 and 27, 19 and 50,
/// 59 and 85, 205 and 96; 5.6 and 10, 16 and 31, 72 and 177.
const LANES_VECTORS: usize = 48;
const LANES_VALUES: usize = 128;
/// The order from which on a batch has to fill half of the widest registers.
const LARGE: usize = 33;

/// Whether a batch goes through lanes.
fn in_lanes(job: Vectors, batch: usize, n: usize) -> bool {
    let most = if job == Vectors::None { LANES_VALUES } else { LANES_VECTORS };
    (n < LARGE || batch >= lanes::MAX_LANES / 2) && lanes::pay(batch, n, most)
}

/// Eigenvalues of each n × n Hermitian matrix of a batch, and its eigenvectors if `job` says so.
///
/// Only the triangle `uplo` of `v`'s input is read, and of its diagonal the real parts. `w` holds n
/// eigenvalues per matrix, ascending. With [`Vectors::Wanted`] column j of `v` is a unit vector with
/// A·v = w(j)·v, and the columns are orthogonal; with [`Vectors::None`] `v` is scratch, and what it
/// holds afterwards has no meaning. `info` holds one number per matrix: 0; −4 where the triangle is
/// not finite, and `w` and `v` are NaN then; or i > 0 where i off-diagonal elements of an
/// intermediate tridiagonal matrix did not converge.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[allow(clippy::too_many_arguments, reason = "LAPACK's arguments, less the leading dimensions")]
#[per_scalar]
pub fn syevd<T: Scalar<Real: Scalar>>(
    job: Vectors,
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    if in_lanes(job, batch, n) {
        let call = Small { uplo, n, order: Order::Column };
        return match job {
            Vectors::Wanted => call.decompose(batch, v, w, info, threads),
            Vectors::None => call.values(batch, v, w, info, threads),
        };
    }
    let operands = (
        ItemsInOut::new("v", batch, &[n, n], v)?,
        ItemsMut::new("w", batch, &[n], w)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    let products = products(job, n);
    let arch = Arch::new();
    let scratch = || Scratch::new(job, n);
    if let (1, SHARED_ORDER..) = (batch, n) {
        for_each_large(batch, operands, threads, |(v, w, info), threads| {
            info[0] = decompose(uplo, (v, w), Order::Column, &mut scratch(), Some(threads), arch);
        });
        return Ok(());
    }
    for_each(
        batch,
        operands,
        nanoseconds::<T>(products),
        threads,
        scratch,
        |scratch, (v, w, info)| {
            info[0] = decompose(uplo, (v, w), Order::Column, scratch, None, arch);
        },
    );
    Ok(())
}

/// The Hermitian part of each n × n matrix of a batch, the mean of it and its adjoint; all lie by rows.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn symmetrize<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    s: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (Items::new("a", batch, &[n, n], a)?, ItemsMut::new("s", batch, &[n, n], s)?);
    if n == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(n.saturating_mul(n));
    row_major::by_strips(batch, n, operands, time, threads, |(a, s), threads| {
        row_major::each_strip(s, n, threads, |first, rows| {
            row_major::mean_of(true, a, n, first, rows);
        });
    });
    Ok(())
}

/// Decomposes each row-major n × n Hermitian matrix of a batch, as [`syevd`] does with vectors.
///
/// `v` holds the eigenvectors as columns, by rows. All results are NaN where the triangle is not finite, or
/// did not converge.
///
/// # Errors
/// As [`syevd`].
#[per_scalar]
pub fn eigh<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 1 {
        let operands =
            (ItemsInOut::new("v", batch, &[n, n], v)?, ItemsMut::new("w", batch, &[n], w)?);
        for_each_part(batch, 1, operands, row_major::OF_ORDER_ONE, threads, |(v, w), _| {
            let InOut { src, dst } = v.into_in_out();
            for (i, (v, w)) in dst.iter_mut().zip(w.into_data()).enumerate() {
                let (value, vector) = row_major::of_order_one(src.map_or(*v, |a| a[i]));
                (*w, *v) = (value.re(), vector);
            }
        });
        return Ok(());
    }
    index_fits_i32("n", n)?;
    if n == 0 || !in_lanes(Vectors::Wanted, batch, n) {
        return one_by_one(uplo, batch, n, v, w, threads);
    }
    let InOut { src, dst } = v;
    ItemsMut::new("v", batch, &[n, n], &mut *dst)?;
    let mut info = vec![0; batch];
    let v = InOut { src, dst: &mut *dst };
    Small { uplo, n, order: Order::Row }.decompose(batch, v, w, &mut info, threads)?;
    row_major::mark_failed(&info, w, [dst]);
    Ok(())
}

/// [`eigh`] of a batch that does not go through lanes.
fn one_by_one<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    v: InOut<'_, T>,
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (ItemsInOut::new("v", batch, &[n, n], v)?, ItemsMut::new("w", batch, &[n], w)?);
    let arch = Arch::new();
    let scratch = || Scratch::new(Vectors::Wanted, n);
    let one = |v: &mut [T],
               w: &mut [T::Real],
               scratch: &mut Scratch<T>,
               threads: Option<&dyn Threads>| {
        // By columns it is Aᵀ.
        let info = decompose(uplo.other(), (&mut *v, &mut *w), Order::Row, scratch, threads, arch);
        row_major::mark_failed(&[info], w, [v]);
    };
    if let (1, SHARED_ORDER..) = (batch, n) {
        for_each_large(batch, operands, threads, |(v, w), threads| {
            one(v, w, &mut scratch(), Some(threads));
        });
        return Ok(());
    }
    let time = nanoseconds::<T>(products(Vectors::Wanted, n));
    for_each(batch, operands, time, threads, scratch, |scratch, (v, w)| one(v, w, scratch, None));
    Ok(())
}

/// The eigenvalues of each row-major n × n Hermitian matrix of a batch, ascending, of which the triangle
/// `uplo` is read; NaN where that is not finite, or did not converge.
///
/// # Errors
/// As [`syevd`].
#[per_scalar]
pub fn eigvalsh<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if n == 1 {
        let operands = (Items::new("a", batch, &[n, n], a)?, ItemsMut::new("w", batch, &[n], w)?);
        for_each_part(batch, 1, operands, row_major::OF_ORDER_ONE, threads, |(a, w), _| {
            for (w, &a) in w.into_data().iter_mut().zip(a.data()) {
                *w = row_major::of_order_one(a).0.re();
            }
        });
        return Ok(());
    }
    if n == 0 || !in_lanes(Vectors::None, batch, n) {
        return row_major::eigvalsh(syevd, uplo, batch, n, a, w, threads);
    }
    Items::new("a", batch, &[n, n], a)?;
    let mut info = vec![0; batch];
    let a = InOut { src: Some(a), dst: &mut [] };
    Small { uplo, n, order: Order::Row }.values(batch, a, w, &mut info, threads)?;
    row_major::mark_failed::<T, 0>(&info, w, []);
    Ok(())
}

/// Some of the eigenvalues of each row-major n × n Hermitian matrix of a batch, and their eigenvectors.
///
/// `w` holds those of the ascending eigenvalues that are at the places `part`, k of them, and `v` is n × k. It
/// is for fewer vectors that less is done, from order 33 on and where a batch does not go through lanes: T is
/// found as a whole, and so are its eigenvalues and the vectors of its halves. On two cores of Zen 5, f64,
/// n = 1024, all take 53 ms, half of them 45, a quarter 39, a tenth 36 and one 35.
///
/// # Errors
/// As [`syevd`], and where the places are not among the n.
#[allow(clippy::too_many_arguments, reason = "those of eigh, and the part")]
#[per_scalar]
pub fn eigh_subset<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    batch: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    v: &mut [T],
    w: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (job, arch) = (Vectors::Wanted, Arch::new());
    if n < DIVIDED || in_lanes(job, batch, n) {
        return row_major::eigh_subset(syevd, uplo, batch, n, part, a, v, w, threads);
    }
    let operands = row_major::subset_operands(batch, n, &part, a, v, w)?;
    // By columns it is Aᵀ.
    let one = |(scratch, columns, values): &mut (Scratch<T>, Vec<T>, Vec<T::Real>),
               a: &[T],
               v: &mut [T],
               w: &mut [T::Real],
               threads: Option<&dyn Threads>| {
        columns.copy_from_slice(a);
        let whole = (&mut columns[..], &mut values[..]);
        let info = decompose(uplo.other(), whole, Order::Column, scratch, threads, arch);
        row_major::take_part((columns, values), info, scratch.part.clone(), v, w);
    };
    let scratch = || {
        let scratch = Scratch { part: part.clone(), ..Scratch::new(job, n) };
        (scratch, vec![T::ZERO; n * n], vec![T::Real::ZERO; n])
    };
    if let (1, SHARED_ORDER..) = (batch, n) {
        for_each_large(batch, operands, threads, |(a, v, w), threads| {
            one(&mut scratch(), a, v, w, Some(threads));
        });
        return Ok(());
    }
    let time = nanoseconds::<T>(products(job, n));
    for_each(batch, operands, time, threads, scratch, |scratch, (a, v, w)| {
        one(scratch, a, v, w, None);
    });
    Ok(())
}

/// 4/3·n³ products and sums for T, about 4·n³ for its vectors and 2·n³ for Q's part in them.
fn products(job: Vectors, n: usize) -> usize {
    let products = n.saturating_mul(n).saturating_mul(n);
    if job == Vectors::None { products } else { products.saturating_mul(4) }
}

/// A call that goes through lanes.
#[derive(Clone, Copy)]
struct Small {
    uplo: Uplo,
    n: usize,
    order: Order,
}

impl Small {
    fn decompose<T: Scalar<Real: Scalar>>(
        self,
        batch: usize,
        v: InOut<'_, T>,
        w: &mut [T::Real],
        info: &mut [i32],
        threads: &dyn Threads,
    ) -> Result<(), Error> {
        let Self { uplo, n, order } = self;
        let operands = (
            ItemsInOut::new("v", batch, &[n, n], v)?,
            ItemsMut::new("w", batch, &[n], w)?,
            ItemsMut::new("info", batch, &[], info)?,
        );
        let single = |v: &mut [T], w: &mut [T::Real]| self.single(Vectors::Wanted, v, w);
        let kernel = lanes::eigh::Decompose { n, uplo, order, single };
        let time = nanoseconds::<T>(products(Vectors::Wanted, n));
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        Ok(())
    }

    /// The values alone; where input and result are apart, a copy is left in the latter if it has elements.
    fn values<T: Scalar<Real: Scalar>>(
        self,
        batch: usize,
        a: InOut<'_, T>,
        w: &mut [T::Real],
        info: &mut [i32],
        threads: &dyn Threads,
    ) -> Result<(), Error> {
        let Self { uplo, n, order } = self;
        let InOut { src, dst } = a;
        let (a, left) = match src {
            Some(src) => (src, dst),
            None => (&*dst, &mut [][..]),
        };
        let length = if left.is_empty() { 0 } else { n * n };
        let operands = (
            Items::new("v", batch, &[n, n], a)?,
            ItemsMut::new("v", batch, &[length], left)?,
            ItemsMut::new("w", batch, &[n], w)?,
            ItemsMut::new("info", batch, &[], info)?,
        );
        let single = |a: &mut [T], w: &mut [T::Real]| self.single(Vectors::None, a, w);
        let kernel = lanes::eigh::Values(lanes::eigh::Decompose { n, uplo, order, single });
        let time = nanoseconds::<T>(products(Vectors::None, n));
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        Ok(())
    }

    /// One matrix, without lanes; returns its `info`.
    fn single<T: Scalar<Real: Scalar>>(self, job: Vectors, v: &mut [T], w: &mut [T::Real]) -> i32 {
        let scratch = &mut Scratch::new(job, self.n);
        let uplo = if self.order == Order::Row { self.uplo.other() } else { self.uplo };
        decompose(uplo, (v, w), self.order, scratch, None, Arch::new())
    }
}

/// What decompositions of matrices of one order reuse.
struct Scratch<T: Scalar<Real: Scalar>> {
    /// Which of the eigenvectors are wanted, by the order of the values.
    part: Range<usize>,
    e: ShortRow<T::Real>,
    tau: ShortRow<T>,
    reduction: Reduction<T>,
    /// T's diagonal, and the squares of what is beside it, where no vectors are wanted.
    squares: ShortRow<f64>,
    rotations: ShortRow<Rotation<T::Real>>,
    /// Steps per eigenvalue after which an iteration is given up.
    steps: usize,
    vectors: Option<VectorScratch<T>>,
}

/// How T is come by.
#[allow(clippy::large_enum_variant, reason = "a thread has one")]
enum Reduction<T> {
    /// Column by column.
    Columns(tridiagonalize::Scratch<T>),
    /// By a band, which leaves no reflectors.
    Band(two_stage::Hermitian<T>),
}

/// What eigenvectors take besides.
struct VectorScratch<T: Scalar<Real: Scalar>> {
    /// The eigenvectors of T.
    z: Short<T::Real>,
    /// A copy of T's diagonal, of what is beside it, and sums.
    t: Short<T::Real>,
    /// The matrix's eigenvectors, where they cannot take the place of T's.
    v: Vec<T>,
    block: BlockScratch<T>,
    divide: Option<merge::Scratch<T::Real>>,
}

impl<T: Scalar<Real: Scalar>> Scratch<T> {
    /// For matrices of order n.
    fn new(job: Vectors, n: usize) -> Self {
        let zero = T::Real::ZERO;
        let vectors = || VectorScratch {
            z: zeros(n * n),
            t: zeros(3 * n),
            v: vec![T::ZERO; if T::IS_COMPLEX { n * n } else { 0 }],
            block: if n <= SMALL {
                BlockScratch::new(0, 0, 0)
            } else {
                BlockScratch::new(n, BLOCK, n)
            },
            divide: (n >= DIVIDED).then(|| merge::Scratch::new(n, STEPS)),
        };
        Self {
            part: 0..n,
            e: zeros(n.saturating_sub(1)),
            tau: zeros(n.saturating_sub(1)),
            reduction: if job == Vectors::None && two_stage::pays_for_eigenvalues::<T>(n) {
                Reduction::Band(two_stage::Hermitian::new(n))
            } else {
                Reduction::Columns(tridiagonalize::Scratch::new(n))
            },
            squares: smallvec![0.0; if job == Vectors::None { 2 * n } else { 0 }],
            rotations: smallvec![Rotation { c: zero, s: zero }; n],
            steps: STEPS,
            vectors: (job == Vectors::Wanted).then(vectors),
        }
    }
}

/// Decomposes one matrix, on threads where it is the only one and not small; returns its `info`.
///
/// The triangle `uplo` is that of the matrix by columns. Where `order` says so it lies by rows, and so do the eigenvectors.
fn decompose<T: Scalar<Real: Scalar>>(
    uplo: Uplo,
    (a, w): (&mut [T], &mut [T::Real]),
    order: Order,
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
        (Reduction::Columns(scratch), Some(threads)) if n >= TILED_ORDER => {
            tridiagonalize_tiled(a, w, e, tau, scratch, threads, arch);
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

/// The eigenvalues of T, block by block.
fn eigenvalues<R: Real>(
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
fn eigenvectors<T: Scalar<Real: Scalar>>(
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
    implicit_ql::sort(d, Some(z));
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
        let found = tridiagonal_eigen::decompose(d, e, z, part.clone(), divide, threads, arch)
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
    order: Order,
    to: &mut [T],
    threads: Option<&dyn Threads>,
) {
    let VectorScratch { z, v, .. } = scratch;
    let v: &[T] = if T::IS_COMPLEX { v } else { bytemuck::cast_slice(z) };
    let n = to.len().isqrt();
    if order == Order::Column {
        let wanted = part.start * n..part.end * n;
        return to[wanted.clone()].copy_from_slice(&v[wanted]);
    }
    match threads {
        Some(threads) => row_major::transpose_one((n, n), v, to, threads),
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
fn lower_triangle<T: Scalar>(a: &mut [T], n: usize, (uplo, order): (Uplo, Order), power: T::Real) {
    // By columns a matrix that lies by rows is its conjugate.
    let conjugate = (uplo == Uplo::Upper) != (order == Order::Row);
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
    use super::*;

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
        let info = decompose(Uplo::Lower, matrix, Order::Column, scratch, None, Arch::new());
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
