//! Hermitian positive definite matrices of square blocks on and beside the diagonal: A = L·Lᴴ.
//!
//! A has `count` blocks of order n on its diagonal, of which the lower triangles are read, and below each but the last
//! the block Aᵢ₊₁ᵢ: `diagonal` is count × n × n, `off_diagonal` (count − 1) × n × n, by rows. L has blocks in the same
//! places: Lᵢᵢ·Lᵢᵢᴴ = Aᵢᵢ − Lᵢᵢ₋₁·Lᵢᵢ₋₁ᴴ and Lᵢ₊₁ᵢ = Aᵢ₊₁ᵢ·Lᵢᵢ⁻ᴴ. What is done grows linearly with `count`.

mod general;
pub(crate) mod route;
mod rows;
mod single;

use lapax_core::{Batched, Items, ItemsMut, Real as _, for_each};
use lapax_cpu_macros::per_scalar;

use crate::lanes::block_tridiagonal as lanes;
use crate::matrix::triangle;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::scalar::nan;
use crate::{Error, Scalar, Threads};
use route::{Route, factor_products, inverse_products, route, solve_products};

pub use crate::matrix::blocks::{Band, BandMut, Blocks};
pub use general::{Factors, General, block_tridiagonal_lu, block_tridiagonal_lu_solve};
pub use lapax_core::Sweeps;

/// L of each matrix of a batch.
///
/// L's diagonal blocks are zero above their diagonals. All of L else is NaN where A is not positive definite.
/// Imaginary parts on A's diagonal are taken as zero.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn block_tridiagonal_cholesky<T: Scalar>(
    batch: usize,
    blocks: Blocks,
    a: Band<'_, T>,
    l: BandMut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (read(batch, blocks, a)?, write(batch, blocks, l)?);
    let blocks = blocks.with_elements();
    let time = nanoseconds::<T>(factor_products(blocks));
    match route(batch, blocks, 1) {
        Route::Lanes => {
            let kernel = lanes::Factor { blocks };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Rows => each(batch, operands, time, threads, |arch, (a, l)| {
            factor_one(arch, blocks, of(a), l);
        }),
    }
    Ok(())
}

/// X of L·Lᴴ·X = B, or of one of the triangles, for each system of a batch with the factor L.
///
/// `b` and `x` are count × n × nrhs. The diagonal blocks of L are read up to their diagonals. A zero there gives
/// infinities or NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn block_tridiagonal_cho_solve<T: Scalar>(
    sweeps: Sweeps,
    batch: usize,
    blocks: Blocks,
    nrhs: usize,
    l: Band<'_, T>,
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let side = [blocks.count, blocks.n, nrhs];
    let b = Items::new("b", batch, &side, b)?;
    let operands = (read(batch, blocks, l)?, (b, ItemsMut::new("x", batch, &side, x)?));
    let blocks = blocks.with_elements();
    let time = nanoseconds::<T>(solve_products(blocks, nrhs));
    match route(batch, blocks, nrhs) {
        Route::Lanes => {
            let kernel = lanes::Solve { sweeps, blocks, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Rows => each(batch, operands, time, threads, |arch, (l, (b, x))| {
            x.copy_from_slice(b);
            arch.dispatch(single::Solve { sweeps, blocks, nrhs, l: of(l), x });
        }),
    }
    Ok(())
}

/// X of A·X = B, L and ln det(A) for each system of a batch: [`block_tridiagonal_cholesky`] and
/// [`block_tridiagonal_cho_solve`] in one call.
///
/// All of them are NaN where A is not positive definite.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn block_tridiagonal_solve<T: Scalar>(
    batch: usize,
    blocks: Blocks,
    nrhs: usize,
    a: Band<'_, T>,
    b: &[T],
    x: &mut [T],
    l: BandMut<'_, T>,
    logdet: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let side = [blocks.count, blocks.n, nrhs];
    let b = Items::new("b", batch, &side, b)?;
    let solution = (b, ItemsMut::new("x", batch, &side, x)?);
    let logdet = ItemsMut::new("logdet", batch, &[], logdet)?;
    let operands = (read(batch, blocks, a)?, write(batch, blocks, l)?, solution, logdet);
    let blocks = blocks.with_elements();
    let time =
        nanoseconds::<T>(factor_products(blocks).saturating_add(solve_products(blocks, nrhs)));
    match route(batch, blocks, nrhs) {
        Route::Lanes => {
            let kernel = lanes::Solve { sweeps: Sweeps::Both, blocks, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Rows => each(batch, operands, time, threads, |arch, (a, l, (b, x), logdet)| {
            let (l_diagonal, l_off) = l;
            factor_one(arch, blocks, of(a), (&mut *l_diagonal, &mut *l_off));
            x.copy_from_slice(b);
            let l = of((&*l_diagonal, &*l_off));
            arch.dispatch(single::Solve { sweeps: Sweeps::Both, blocks, nrhs, l, x });
            logdet[0] = log_determinant(blocks, l_diagonal);
        }),
    }
    Ok(())
}

/// The blocks of A⁻¹ in the places of those of A, for each matrix of a batch with the factor L.
///
/// Those on the diagonal are whole Hermitian blocks.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn block_tridiagonal_inverse<T: Scalar>(
    batch: usize,
    blocks: Blocks,
    l: Band<'_, T>,
    inverse: BandMut<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (read(batch, blocks, l)?, write(batch, blocks, inverse)?);
    let blocks = blocks.with_elements();
    let time = nanoseconds::<T>(inverse_products(blocks));
    match route(batch, blocks, 1) {
        Route::Lanes => {
            let kernel = lanes::Inverse { blocks };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Rows => {
            each(batch, operands, time, threads, |arch, (l, (diagonal, off_diagonal))| {
                arch.dispatch(single::Inverse { blocks, l: of(l), diagonal, off_diagonal });
            })
        }
    }
    Ok(())
}

type Read<'a, T> = (Items<'a, T>, Items<'a, T>);
type Write<'a, T> = (ItemsMut<'a, T>, ItemsMut<'a, T>);

fn read<T>(batch: usize, blocks: Blocks, a: Band<'_, T>) -> Result<Read<'_, T>, Error> {
    let [on, off] = blocks.dims();
    let diagonal = Items::new("diagonal", batch, &on, a.diagonal)?;
    Ok((diagonal, Items::new("off_diagonal", batch, &off, a.off_diagonal)?))
}

fn write<T>(batch: usize, blocks: Blocks, a: BandMut<'_, T>) -> Result<Write<'_, T>, Error> {
    let [on, off] = blocks.dims();
    let diagonal = ItemsMut::new("diagonal", batch, &on, a.diagonal)?;
    Ok((diagonal, ItemsMut::new("off_diagonal", batch, &off, a.off_diagonal)?))
}

/// The blocks of one matrix.
fn of<'a, T>((diagonal, off_diagonal): (&'a [T], &'a [T])) -> Band<'a, T> {
    Band { diagonal, off_diagonal }
}

/// Works on one matrix after the other.
fn each<B: Batched>(
    batch: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    kernel: impl Fn(Arch, B::Item) + Sync,
) {
    let arch = Arch::new();
    for_each(batch, operands, nanoseconds, threads, || (), |(), item| kernel(arch, item));
}

/// L of one matrix, NaN where there is none.
fn factor_one<T: Scalar>(
    arch: Arch,
    blocks: Blocks,
    a: Band<'_, T>,
    (l_diagonal, l_off): (&mut [T], &mut [T]),
) {
    let (diagonal, off) = (&mut *l_diagonal, &mut *l_off);
    if !arch.dispatch(single::Factor { blocks, a, l_diagonal: diagonal, l_off: off }) {
        let n = blocks.n;
        l_diagonal.chunks_exact_mut(n * n).for_each(|l| triangle::only_lower(l, n, 0, false));
        l_off.fill(nan());
    }
}

/// ln det(A) = 2·Σ ln L(j, j).
fn log_determinant<T: Scalar>(blocks: Blocks, l_diagonal: &[T]) -> T::Real {
    let n = blocks.n;
    let diagonal = l_diagonal.chunks_exact((n * n).max(1)).flat_map(|l| l.iter().step_by(n + 1));
    T::Real::from_f64(2.0 * diagonal.map(|l| l.re().to_f64().ln()).sum::<f64>())
}
