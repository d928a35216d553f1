//! Matrices of square blocks on and beside the diagonal without symmetry: A = L·U.
//!
//! With the blocks D on the diagonal, E below it and F above it, L has Sᵢ = Dᵢ − Eᵢ₋₁·Gᵢ₋₁ on its diagonal and E below it, and
//! U has ones on its diagonal and Gᵢ = Sᵢ⁻¹·Fᵢ above it: Golub and Van Loan, "Matrix computations", section 4.5. Each S is
//! factored with partial pivoting of its own rows; rows of different blocks do not change places. That is stable where
//! blocks on the diagonal dominate: Demmel, Higham and Schreiber, "Stability of block LU factorization" (Numer. Linear
//! Algebra Appl. 2, 1995). The factors of S lie as LAPACK's, by rows, with the row that each row was swapped with.

use lapax_core::{Items, ItemsMut, Scalar as _};
use lapax_cpu_macros::{apart, per_scalar};
use pulp::{Simd, WithSimd};

use super::each;
use super::route::{Route, general, general_products, solve_products};
use super::rows::{Coefficients, substitute, subtract_product};
use super::single::WIDE;
use crate::lanes::block_tridiagonal::general as lanes;
use crate::matrix::blocks::{Blocks, spoil};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::loops::{Divisor, sub_scaled};
use crate::simd::scalar::nan;
use crate::{Diag, Error, Scalar, Threads, Trans, Uplo};

/// The blocks of A: (count − 1) × n × n, count × n × n and (count − 1) × n × n.
#[derive(Clone, Copy, Debug)]
pub struct General<'a, T> {
    /// Block i is in block row i + 1.
    pub lower: &'a [T],
    /// Those on the diagonal.
    pub diagonal: &'a [T],
    /// Block i is in block row i.
    pub upper: &'a [T],
}

/// The factors, of which A's own blocks below the diagonal are a part.
#[derive(Clone, Copy, Debug)]
pub struct Factors<'a, T> {
    /// A's blocks below the diagonal.
    pub lower: &'a [T],
    /// The factors of each S.
    pub lu: &'a [T],
    /// The rows of its block, from 0 on, that each row was swapped with: itself or one below it.
    pub pivots: &'a [i32],
    /// G.
    pub upper: &'a [T],
}

/// The factors of each matrix of a batch, to `lu`, `pivots` and `upper` as [`Factors`] has them.
///
/// `lu` and `upper` are NaN where a pivot is zero, and no rows are swapped there.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn block_tridiagonal_lu<T: Scalar>(
    batch: usize,
    blocks: Blocks,
    a: General<'_, T>,
    lu: &mut [T],
    pivots: &mut [i32],
    upper: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let [on, off] = blocks.dims();
    let a = (
        Items::new("lower", batch, &off, a.lower)?,
        Items::new("diagonal", batch, &on, a.diagonal)?,
        Items::new("upper", batch, &off, a.upper)?,
    );
    let factors = (
        ItemsMut::new("lu", batch, &on, lu)?,
        ItemsMut::new("pivots", batch, &on[..2], pivots)?,
        ItemsMut::new("upper_factor", batch, &off, upper)?,
    );
    if on.contains(&0) {
        return Ok(());
    }
    let blocks = blocks.with_elements();
    let time = nanoseconds::<T>(general_products(blocks));
    match general(batch, blocks) {
        Route::Lanes => {
            let kernel = lanes::Factor { blocks };
            for_each_group::<T, _>(batch, (a, factors), time, threads, &kernel);
        }
        Route::Rows => {
            each(batch, (a, factors), time, threads, |arch, (a, (lu, pivots, g))| {
                let (lower, diagonal, upper) = a;
                let a = General { lower, diagonal, upper };
                let (to, rows, beside) = (&mut *lu, &mut *pivots, &mut *g);
                if !arch.dispatch(Factor { blocks, a, lu: to, pivots: rows, g: beside }) {
                    spoil(blocks.n, lu, pivots, g);
                }
            });
        }
    }
    Ok(())
}

/// X of op(A)·X = B for each system of a batch, by the factors of A.
///
/// One after the other, on one core of Zen 5, f64, 20 blocks of order 1, 3, 8 and 16, ns a block: 35, 88, 230 and 680; in
/// lanes 100, 240, 1050 and 4000, most of it for swaps that differ from lane to lane and for blocks to get there.
///
/// `b` and `x` are count × n × nrhs.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn block_tridiagonal_lu_solve<T: Scalar>(
    trans: Trans,
    batch: usize,
    blocks: Blocks,
    nrhs: usize,
    factors: Factors<'_, T>,
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let ([on, off], side) = (blocks.dims(), [blocks.count, blocks.n, nrhs]);
    let factors = (
        Items::new("lower", batch, &off, factors.lower)?,
        Items::new("lu", batch, &on, factors.lu)?,
        Items::new("pivots", batch, &on[..2], factors.pivots)?,
        Items::new("upper_factor", batch, &off, factors.upper)?,
    );
    let sides = (Items::new("b", batch, &side, b)?, ItemsMut::new("x", batch, &side, x)?);
    if side.contains(&0) {
        return Ok(());
    }
    let blocks = blocks.with_elements();
    let time = nanoseconds::<T>(solve_products(blocks, nrhs).saturating_mul(2));
    each(batch, (factors, sides), time, threads, |arch, (factors, (b, x))| {
        let (lower, lu, pivots, upper) = factors;
        let factors = Factors { lower, lu, pivots, upper };
        x.copy_from_slice(b);
        arch.dispatch(Solve { trans, blocks, nrhs, factors, x });
    });
    Ok(())
}

/// The factors of one matrix; whether no pivot is zero.
struct Factor<'a, T> {
    blocks: Blocks,
    a: General<'a, T>,
    lu: &'a mut [T],
    pivots: &'a mut [i32],
    g: &'a mut [T],
}

impl<T: Scalar> WithSimd for Factor<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { blocks, a, lu, pivots, g } = self;
        let Blocks { count, n } = blocks;
        for i in 0..count {
            let at = i * n * n..(i + 1) * n * n;
            let (lu, pivots) = (&mut lu[at.clone()], &mut pivots[i * n..(i + 1) * n]);
            lu.copy_from_slice(&a.diagonal[at.clone()]);
            if i > 0 {
                subtract::<S, T>(
                    simd,
                    blocks.of(a.lower, i - 1),
                    Trans::None,
                    blocks.of(g, i - 1),
                    (lu, n),
                );
            }
            if !eliminate::<S, T>(lu, n, pivots) {
                return false;
            }
            if i + 1 < count {
                let g = &mut g[at.clone()];
                g.copy_from_slice(&a.upper[at]);
                divide::<S, T>(simd, Trans::None, lu, pivots, (g, n));
            }
        }
        true
    }
}

/// P·S = L·U in place of S; whether no pivot is zero.
#[inline(always)]
fn eliminate<S: Simd, T: Scalar>(a: &mut [T], n: usize, pivots: &mut [i32]) -> bool {
    for (j, swap) in pivots.iter_mut().enumerate() {
        let (mut other, mut largest) = (j, -T::Real::ONE);
        for i in j..n {
            let size = a[i * n + j].abs1();
            // A NaN is larger than any number.
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (other, largest) = (i, size);
            }
        }
        // An order is an i32: JAX's pivots are.
        *swap = i32::try_from(other).unwrap_or(i32::MAX);
        let (above, below) = a.split_at_mut((j + 1) * n);
        let row = &mut above[j * n..];
        if other != j {
            row.swap_with_slice(&mut below[(other - j - 1) * n..(other - j) * n]);
        }
        let pivot = row[j];
        if pivot == T::ZERO {
            return false;
        }
        let (divisor, row) = (Divisor::new(pivot), &row[j + 1..]);
        for target in below.chunks_exact_mut(n) {
            let (l, target) = target[j..].split_at_mut(1);
            divisor.divide(l);
            sub_scaled::<S, T>(target, l[0], row);
        }
    }
    true
}

/// X ← X − op(A)·B, where X has nrhs columns.
#[apart]
fn subtract<S: Simd, T: Scalar>(
    simd: S,
    a: &[T],
    trans: Trans,
    b: &[T],
    (x, nrhs): (&mut [T], usize),
) {
    let n = a.len().isqrt();
    subtract_product(simd, Coefficients::op(a, n, trans), b, x, nrhs);
}

/// Whether each row of a block changes places with itself or one below it.
fn names_rows(pivots: &[i32]) -> bool {
    let n = pivots.len();
    let partner = |pivot: i32| usize::try_from(pivot).ok();
    pivots.iter().enumerate().all(|(row, &p)| partner(p).is_some_and(|p| (row..n).contains(&p)))
}

/// X ← op(S)⁻¹·X by the factors of S, where X has nrhs columns.
#[apart]
fn divide<S: Simd, T: Scalar>(
    simd: S,
    trans: Trans,
    lu: &[T],
    pivots: &[i32],
    (x, nrhs): (&mut [T], usize),
) {
    let n = pivots.len();
    let swap = |row: usize, x: &mut [T]| {
        let other = usize::try_from(pivots[row]).unwrap_or(row);
        if other > row {
            let (above, below) = x.split_at_mut(other * nrhs);
            above[row * nrhs..(row + 1) * nrhs].swap_with_slice(&mut below[..nrhs]);
        }
    };
    let factor = |uplo, diag| Coefficients::triangle(lu, n, trans, uplo, diag);
    if trans == Trans::None {
        (0..n).for_each(|row| swap(row, x));
        substitute(simd, factor(Uplo::Lower, Diag::Unit), x, nrhs);
        substitute(simd, factor(Uplo::Upper, Diag::NonUnit), x, nrhs);
    } else {
        substitute(simd, factor(Uplo::Upper, Diag::NonUnit), x, nrhs);
        substitute(simd, factor(Uplo::Lower, Diag::Unit), x, nrhs);
        (0..n).rev().for_each(|row| swap(row, x));
    }
}

/// X of op(A)·X = B, in place of B.
struct Solve<'a, T> {
    trans: Trans,
    blocks: Blocks,
    nrhs: usize,
    factors: Factors<'a, T>,
    x: &'a mut [T],
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.nrhs < WIDE {
            self.sweeps(pulp::Scalar::new());
        } else {
            self.sweeps(simd);
        }
    }
}

impl<T: Scalar> Solve<'_, T> {
    #[inline(always)]
    fn sweeps<S: Simd>(self, simd: S) {
        let Self { trans, blocks, nrhs, factors, x } = self;
        let Blocks { count, n } = blocks;
        let side = n * nrhs;
        // What is below the diagonal of the factor that goes first, and above that of the other.
        let plain = trans == Trans::None;
        let Factors { lower, lu, pivots, upper } = factors;
        if !pivots.chunks_exact(n).all(names_rows) {
            x.fill(nan());
            return;
        }
        let (first, second) = if plain { (lower, upper) } else { (upper, lower) };
        let pivots = |i: usize| &pivots[i * n..(i + 1) * n];
        for i in 0..count {
            let (before, x) = x.split_at_mut(i * side);
            let x = &mut x[..side];
            if i > 0 {
                let before = &before[(i - 1) * side..];
                subtract::<S, T>(simd, blocks.of(first, i - 1), trans, before, (&mut *x, nrhs));
            }
            if plain {
                divide::<S, T>(simd, trans, blocks.of(lu, i), pivots(i), (x, nrhs));
            }
        }
        for i in (0..count).rev() {
            let (x, behind) = x[i * side..].split_at_mut(side);
            if i + 1 < count {
                let behind = &behind[..side];
                subtract::<S, T>(simd, blocks.of(second, i), trans, behind, (&mut *x, nrhs));
            }
            if !plain {
                divide::<S, T>(simd, trans, blocks.of(lu, i), pivots(i), (x, nrhs));
            }
        }
    }
}
