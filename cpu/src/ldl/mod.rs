//! Factorisation Pᵀ·A·P = L·D·Lᴴ of Hermitian matrices that need not be definite, and L·D·Lᵀ of symmetric ones.
//!
//! L is unit lower triangular, D has blocks of order 1 and 2, P is a permutation. Pivots are chosen by the rook's moves
//! of Ashcraft, Grimes & Lewis, "Accurate symmetric indefinite linear equation solvers" (SIAM J. Matrix Anal. Appl. 20,
//! 1998), which bound the elements of L. Stored as LAPACK's xSYTRF_RK stores it: the rows of L have their last places.

mod factor;
mod solve;

use lapax_core::{Items, ItemsInOut, ItemsMut, for_each, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::parallel::cost::nanoseconds;
use crate::simd::arch::Arch;
use crate::{Error, InOut, Scalar, Threads, Uplo};
use factor::Factors;
use solve::{Known, Substitution};

/// Which matrix the triangle that is read stands for, and whether D and L's transpose are conjugated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// A = Aᵀ.
    Symmetric,
    /// A = Aᴴ; imaginary parts on the diagonal are taken as zero.
    Hermitian,
}

impl Symmetry {
    /// The element across the diagonal from x.
    #[inline(always)]
    fn across<T: Scalar>(self, x: T) -> T {
        if self == Self::Hermitian { x.conj() } else { x }
    }

    /// What stands on the diagonal where x does.
    #[inline(always)]
    fn diagonal<T: Scalar>(self, x: T) -> T {
        if self == Self::Hermitian { T::from_real(x.re()) } else { x }
    }
}

/// Factors each n × n matrix of a batch, by rows, of which the triangle `uplo` is read.
///
/// `a` becomes L below its diagonal, D's diagonal on it and zero above. `e` holds n numbers for each matrix:
/// D(i + 1, i), or 0 where a block of order 1 is; `permutation` n rows, counted from 0: row i of L belongs to row
/// `permutation[i]` of A. A singular matrix has blocks of D that are zero, or nearly so.
///
/// # Errors
/// Where n exceeds `i32`, in which rows are counted, or a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn ldl<T: Scalar>(
    symmetry: Symmetry,
    uplo: Uplo,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    e: &mut [T],
    permutation: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("e", batch, &[n], e)?,
        ItemsMut::new("permutation", batch, &[n], permutation)?,
    );
    let (scratch, arch) = (|| Factors::new(n), Arch::new());
    let time = nanoseconds::<T>(products(n));
    for_each(batch, operands, time, threads, scratch, |factors, (a, e, permutation)| {
        factors.read(symmetry, uplo, a);
        factors.factor(symmetry, arch);
        factors.write(a, e, permutation);
    });
    Ok(())
}

/// Solves A·X = B for each system of a batch, by what [`ldl`] has left of A.
///
/// `factors` is n × n, `b` and `x` are n × nrhs; all lie by rows. A block of D that is zero gives infinities or NaN, as
/// does a row of the permutation that A does not have.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn ldl_solve<T: Scalar>(
    symmetry: Symmetry,
    batch: usize,
    (n, nrhs): (usize, usize),
    factors: &[T],
    e: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        Items::new("factors", batch, &[n, n], factors)?,
        Items::new("e", batch, &[n], e)?,
        Items::new("permutation", batch, &[n], permutation)?,
        Items::new("b", batch, &[n, nrhs], b)?,
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    );
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let (scratch, arch) = (|| Substitution::new(n, nrhs), Arch::new());
    let time = nanoseconds::<T>(n.saturating_mul(n).saturating_mul(nrhs));
    let one = |scratch: &mut Substitution<T>, (factors, e, permutation, b, x): Operands<'_, T>| {
        scratch.solve(symmetry, Known { factors, e, permutation }, b, x, arch);
    };
    for_each(batch, operands, time, threads, scratch, one);
    Ok(())
}

type Operands<'a, T> = (&'a [T], &'a [T], &'a [i32], &'a [T], &'a mut [T]);

/// The products of numbers that a factorisation takes.
fn products(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(n) / 6
}
