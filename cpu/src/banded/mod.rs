//! Banded systems A·X = B, A in diagonal-ordered form: one row of `ab` for each diagonal, from the uppermost down.
//!
//! A(i, j) stands in column j of `ab`, at row `upper + i − j`; what lies outside of A is not read. Of a Hermitian
//! matrix the diagonals of one triangle are given, and its Cholesky factor has the same form: L of A = L·Lᴴ for
//! `Lower`, U of A = Uᴴ·U for `Upper`. `b` and `x` are n × nrhs by rows.

mod cholesky;
mod elimination;
pub(crate) mod route;
mod substitution;
mod twisted;
mod window;

use lapax_core::{Items, ItemsMut, Scalar as _, Serial, for_each, for_each_large, for_each_part};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::{BATCH, for_each_group};
use crate::simd::arch::Arch;
use crate::simd::scalar::nan;
use crate::tridiagonal::tridiagonal_solve;
use crate::{Error, Scalar, Threads, Uplo};
use cholesky::{Block, Factor};
use route::{Factor as By, Route};
use substitution::{Substitute, repack};

/// The tridiagonal systems of a batch whose diagonals are copied at a time: four groups of f32 in the widest registers,
/// which of order 32 take half of the nearest cache in f64.
const TOGETHER: usize = 64;

/// A matrix of order n with so many diagonals below and above the main one.
#[derive(Clone, Copy, Debug)]
pub struct Band {
    /// Diagonals below the main one.
    pub lower: usize,
    /// Diagonals above it.
    pub upper: usize,
    /// The order.
    pub n: usize,
}

impl Band {
    fn width(self) -> usize {
        self.lower + self.upper + 1
    }

    /// Without the diagonals that lie outside of the matrix, and the part of `ab` with the others.
    fn inside<T>(self, ab: &[T]) -> (Self, &[T]) {
        let Self { lower, upper, n } = self;
        let most = n.saturating_sub(1);
        let band = Self { lower: lower.min(most), upper: upper.min(most), n };
        (band, &ab[(upper - band.upper) * n..][..band.width() * n])
    }
}

/// A Hermitian matrix of order n, of which one triangle is given.
#[derive(Clone, Copy, Debug)]
pub struct Definite {
    /// The triangle.
    pub uplo: Uplo,
    /// Its diagonals beside the main one.
    pub beside: usize,
    /// The order.
    pub n: usize,
}

impl Definite {
    /// Without the diagonals that lie outside of the matrix, and the part of `ab` with the others.
    fn inside<T>(self, ab: &[T]) -> (Self, &[T]) {
        let beside = self.beside.min(self.n.saturating_sub(1));
        let first = if self.uplo == Uplo::Upper { self.beside - beside } else { 0 };
        (Self { beside, ..self }, &ab[first * self.n..][..(beside + 1) * self.n])
    }
}

/// Solves A·X = B for each matrix of a batch, by Gaussian elimination with partial pivoting in the band (xGBSV).
///
/// `ab` is (lower + upper + 1) × n. X is NaN where A is singular: where a pivot is exactly zero.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn solve_banded<T: Scalar>(
    batch: usize,
    band: Band,
    nrhs: usize,
    ab: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Band { lower, upper, n } = band;
    let operands = operands(batch, [band.width(), n, nrhs], ("ab", ab), b, x)?;
    let products =
        n.saturating_mul(band.width().saturating_add(nrhs)).saturating_mul(lower.saturating_add(1));
    let time = nanoseconds::<T>(products);
    let outcome = Outcome::default();
    match route::solve(batch, (lower, upper), (n, nrhs)) {
        Route::Lanes => {
            let kernel = lanes::banded::elimination::Solve { lower, upper, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Diagonal => {
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (ab, b, x)| {
                    divide(ab, b, x, nrhs, |d| d != T::ZERO);
                },
            );
        }
        Route::Copied => {
            for_each_part(batch, TOGETHER, operands, time, threads, |part, items| {
                outcome.take(copied(n, nrhs, part, items));
            });
        }
        Route::Tridiagonal => for_each_large(batch, operands, threads, |(ab, b, x), threads| {
            // Row i is dl[i], d[i], du[i]: dl[0] and du[n − 1] lie outside, and are what stands beside.
            let a = [&ab[2 * n - 1..3 * n - 1], &ab[n..2 * n], &ab[1..=n]];
            outcome.take(tridiagonal_solve(1, n, nrhs, a, b, x, threads));
        }),
        Route::Window => {
            let arch = Arch::new();
            let scratch = || elimination::Scratch::new(band.inside(ab).0, nrhs);
            for_each(batch, operands, time, threads, scratch, |scratch, (ab, b, x)| {
                let (band, ab) = band.inside(ab);
                let solve = elimination::Solve { band, nrhs, ab, b, x: &mut *x, scratch };
                if !arch.dispatch(solve) {
                    x.fill(nan());
                }
            });
        }
    }
    outcome.into_result()
}

/// Solves A·X = B for each Hermitian positive definite matrix of a batch, by Cholesky factorisation in the band
/// (xPBSV). The factor is not kept.
///
/// `ab` is (beside + 1) × n. Imaginary parts on the diagonal are taken as zero. X is NaN where A is not positive
/// definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn solveh_banded<T: Scalar>(
    batch: usize,
    definite: Definite,
    nrhs: usize,
    ab: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Definite { uplo, beside, n } = definite;
    let operands = operands(batch, [beside + 1, n, nrhs], ("ab", ab), b, x)?;
    let time = nanoseconds::<T>(products(definite, nrhs));
    match route::definite(batch, beside, (n, nrhs)) {
        Route::Lanes => {
            let kernel = lanes::banded::cholesky::Solve { uplo, beside, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Diagonal => {
            for_each(
                batch,
                operands,
                time,
                threads,
                || (),
                |(), (ab, b, x)| {
                    divide(ab, b, x, nrhs, |d| d.re() > T::Real::ZERO);
                },
            );
        }
        route @ (Route::Copied | Route::Tridiagonal | Route::Window) => {
            let scratch = || Scratch::new(definite.inside(ab).0);
            for_each(batch, operands, time, threads, scratch, |scratch, (ab, b, x)| {
                let (definite, ab) = definite.inside(ab);
                let solved = route == Route::Tridiagonal && scratch.twisted(definite, ab, b, x);
                if !solved && !scratch.solve(definite, nrhs, ab, b, x) {
                    x.fill(nan());
                }
            });
        }
    }
    Ok(())
}

/// Factors each Hermitian positive definite matrix of a batch as A = L·Lᴴ or Uᴴ·U (xPBTRF).
///
/// `ab` and `factor` are (beside + 1) × n. Imaginary parts on the diagonal are taken as zero. The factor is NaN where
/// A is not positive definite; what lies outside of the matrix is zero.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cholesky_banded<T: Scalar>(
    batch: usize,
    definite: Definite,
    ab: &[T],
    factor: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Definite { uplo, beside, n } = definite;
    let operands = (
        Items::new("ab", batch, &[beside + 1, n], ab)?,
        ItemsMut::new("factor", batch, &[beside + 1, n], factor)?,
    );
    let time = nanoseconds::<T>(products(definite, 0));
    match route::factor(batch, beside, (n, 0)) {
        By::Lanes => {
            let kernel = lanes::banded::cholesky::Factor { uplo, beside, n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        By::Rows => {
            let arch = Arch::new();
            let scratch = || cholesky::Scratch::new(definite.inside(ab).0);
            for_each(batch, operands, time, threads, scratch, |scratch, (ab, factor)| {
                let (inner, ab) = definite.inside(ab);
                let mut take = |block: Block<'_, T>| {
                    for c in 0..=inner.beside {
                        store_diagonal(definite, c, &block, factor);
                    }
                };
                let factored = {
                    let (rhs, take) = (None, &mut take);
                    arch.dispatch(Factor { definite: inner, ab, rhs, scratch, take })
                };
                finish(definite, factor, factored);
            });
        }
    }
    Ok(())
}

/// Solves A·X = B for each matrix of a batch by its Cholesky factor, as [`cholesky_banded`] gives it (xPBTRS).
///
/// A zero on the factor's diagonal gives infinities or NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn cho_solve_banded<T: Scalar>(
    batch: usize,
    definite: Definite,
    nrhs: usize,
    factor: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let Definite { uplo, beside, n } = definite;
    let operands = operands(batch, [beside + 1, n, nrhs], ("factor", factor), b, x)?;
    let time = nanoseconds::<T>(products(definite, nrhs));
    match route::factor(batch, beside, (n, nrhs)) {
        By::Lanes => {
            let kernel = lanes::banded::cholesky::Substitute { uplo, beside, n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        By::Rows => {
            let arch = Arch::new();
            for_each(batch, operands, time, threads, Vec::new, |upper, (factor, b, x)| {
                let (definite, factor) = definite.inside(factor);
                repack(definite, factor, upper);
                x.copy_from_slice(b);
                let width = definite.beside + 1;
                arch.dispatch(Substitute { upper, width, x, nrhs, half: false });
            });
        }
    }
    Ok(())
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

/// The operands of a solver, of which the diagonals have a name.
fn operands<'a, T: Scalar>(
    batch: usize,
    [bands, n, nrhs]: [usize; 3],
    (name, ab): (&'static str, &'a [T]),
    b: &'a [T],
    x: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    Ok((
        Items::new(name, batch, &[bands, n], ab)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    ))
}

/// Solves tridiagonal systems of a batch by [`tridiagonal_solve`], a few at a time, with copies of their diagonals.
fn copied<T: Scalar>(
    n: usize,
    nrhs: usize,
    part: Operands<'_, T>,
    items: usize,
) -> Result<(), Error> {
    let (ab, b, x) = (part.0.data(), part.1.data(), part.2.into_data());
    let most = items.clamp(BATCH, TOGETHER);
    // What fills up the last ones is solvable.
    let [mut dl, mut d, mut du] = [T::ZERO, T::ONE, T::ZERO].map(|x| vec![x; most * n]);
    let (mut sides, mut found) = (Vec::new(), Vec::new());
    let chunks = x.chunks_mut(TOGETHER * n * nrhs).zip(b.chunks(TOGETHER * n * nrhs));
    for ((x, b), ab) in chunks.zip(ab.chunks(TOGETHER * 3 * n)) {
        let rows = dl.chunks_exact_mut(n).zip(d.chunks_exact_mut(n)).zip(du.chunks_exact_mut(n));
        for (((dl, d), du), ab) in rows.zip(ab.chunks_exact(3 * n)) {
            dl[1..].copy_from_slice(&ab[2 * n..3 * n - 1]);
            d.copy_from_slice(&ab[n..2 * n]);
            du[..n - 1].copy_from_slice(&ab[1..n]);
        }
        let count = b.len() / (n * nrhs);
        let a = |count: usize| [&dl[..count * n], &d[..count * n], &du[..count * n]];
        if count >= BATCH {
            tridiagonal_solve(count, n, nrhs, a(count), b, x, &Serial)?;
            continue;
        }
        // Fewer would go another way than the others of their batch.
        sides.resize(BATCH * n * nrhs, T::ZERO);
        found.resize(BATCH * n * nrhs, T::ZERO);
        sides[..b.len()].copy_from_slice(b);
        tridiagonal_solve(BATCH, n, nrhs, a(BATCH), &sides, &mut found, &Serial)?;
        x.copy_from_slice(&found[..x.len()]);
    }
    Ok(())
}

/// The products of numbers that a factorisation and substitutions take.
fn products(Definite { beside, n, .. }: Definite, nrhs: usize) -> usize {
    let column = beside.saturating_mul(beside) / 2 + beside.saturating_mul(nrhs).saturating_mul(2);
    n.saturating_mul(column.saturating_add(1))
}

/// X of a diagonal matrix; NaN where a number on the diagonal is not as it must be.
fn divide<T: Scalar>(diagonal: &[T], b: &[T], x: &mut [T], nrhs: usize, valid: impl Fn(T) -> bool) {
    let rows = x.chunks_exact_mut(nrhs).zip(b.chunks_exact(nrhs));
    for ((x, b), &d) in rows.zip(diagonal) {
        x.iter_mut().zip(b).for_each(|(x, b)| *x = b.divide(d));
    }
    // A NaN stays in its row.
    if !diagonal.iter().all(|&d| valid(d) || d.is_nan()) {
        x.fill(nan());
    }
}

/// Diagonal c of a block of L, or of Lᴴ, in the form that `definite` says.
fn store_diagonal<T: Scalar>(definite: Definite, c: usize, block: &Block<'_, T>, factor: &mut [T]) {
    let Definite { uplo, beside, n } = definite;
    if block.first + c >= n {
        return;
    }
    match uplo {
        Uplo::Lower => {
            let row = &mut factor[c * n + block.first..(c + 1) * n - c];
            block.diagonal(c, |k, l| {
                if let Some(x) = row.get_mut(k) {
                    *x = l;
                }
            });
        }
        Uplo::Upper => {
            let from = (beside - c) * n;
            let row = &mut factor[from + block.first + c..from + n];
            block.diagonal(c, |k, l| {
                if let Some(x) = row.get_mut(k) {
                    *x = l.conj();
                }
            });
        }
    }
}

/// Zeros outside of the matrix, and NaN inside where it is not positive definite.
fn finish<T: Scalar>(definite: Definite, factor: &mut [T], factored: bool) {
    let Definite { uplo, beside, n } = definite;
    for (p, row) in factor.chunks_exact_mut(n.max(1)).enumerate() {
        let outside = match uplo {
            Uplo::Lower => n.saturating_sub(p)..n,
            Uplo::Upper => 0..n.min(beside - p),
        };
        if !factored {
            row.fill(nan());
        }
        row[outside].fill(T::ZERO);
    }
}

/// What definite systems of one thread reuse.
struct Scratch<T: Scalar> {
    arch: Arch,
    factor: cholesky::Scratch<T>,
    upper: Vec<T>,
    rows: Vec<twisted::Row<T>>,
}

impl<T: Scalar> Scratch<T> {
    fn new(definite: Definite) -> Self {
        let factor = cholesky::Scratch::new(definite);
        Self { arch: Arch::new(), factor, upper: Vec::new(), rows: Vec::new() }
    }

    /// Solves a tridiagonal system; `false` where that takes a factorisation.
    fn twisted(&mut self, definite: Definite, ab: &[T], b: &[T], x: &mut [T]) -> bool {
        let n = definite.n;
        let (main, beside) = if definite.uplo == Uplo::Lower { (0, 1) } else { (1, 0) };
        let conjugate = definite.uplo == Uplo::Upper;
        // A(i, i + 1) stands in column i + 1.
        let beside = &ab[beside * n + usize::from(conjugate)..][..n - 1];
        self.rows.resize(n, twisted::Row::ZERO);
        let (diagonal, rows) = (&ab[main * n..][..n], &mut self.rows[..]);
        self.arch.dispatch(twisted::Solve { diagonal, beside, conjugate, b, x, rows })
    }

    /// Solves a system; `false` where A is not positive definite.
    fn solve(&mut self, definite: Definite, nrhs: usize, ab: &[T], b: &[T], x: &mut [T]) -> bool {
        let Self { arch, factor: scratch, upper, .. } = self;
        let (width, n) = (definite.beside + 1, definite.n);
        if upper.len() != n * width {
            // Fresh zeros are not written twice.
            *upper = vec![T::ZERO; n * width];
        }
        x.copy_from_slice(b);
        let half = nrhs == 1;
        let mut take = |block: Block<'_, T>| {
            for c in 0..width {
                let rows = &mut upper[block.first * width + c..];
                block.diagonal(c, |k, l| rows[k * width] = l.conj());
            }
        };
        let (rhs, take) = (half.then_some(&mut *x), &mut take);
        if !arch.dispatch(Factor { definite, ab, rhs, scratch, take }) {
            return false;
        }
        arch.dispatch(Substitute { upper, width, x, nrhs, half });
        true
    }
}
