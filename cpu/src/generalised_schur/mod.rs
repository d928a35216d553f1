//! Generalised Schur form of a pair of matrices: A = Q·S·Zᴴ and B = Q·T·Zᴴ with Q and Z unitary.
//!
//! T is upper triangular with a diagonal that is not negative, S upper triangular, or of a real pair quasi-triangular: a
//! conjugate pair of eigenvalues α/β has a block of order 2 in S and a diagonal one in T. Matrices lie by rows.

mod eigenvectors;
mod iteration;
mod pair;
mod pencil;
mod reduce;
mod reorder;
pub(crate) mod route;
mod single;

use lapax_core::{Items, ItemsInOut, ItemsMut, for_each};
use lapax_cpu_macros::per_scalar;

use crate::lanes::generalised_schur::vectors::Eigenvectors;
use crate::lanes::generalised_schur::{Decompose, Operands};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::{Error, InOut, Scalar, Side, Threads};
use route::{Route, route};
use single::{Lanes, Results, Work};

pub use eigenvectors::Which;

/// A pair, which becomes its Schur form, the vectors of that, and the eigenvalues α/β.
#[derive(Debug)]
pub struct Pair<'a, T: Scalar> {
    /// A, then S: n × n.
    pub s: InOut<'a, T>,
    /// B, then T: n × n.
    pub t: InOut<'a, T>,
    /// Q, n × n.
    pub q: InOut<'a, T>,
    /// Z, n × n.
    pub z: InOut<'a, T>,
    /// n numbers: the one with a positive imaginary part first of two that are conjugate.
    pub alpha: &'a mut [T::Complex],
    /// n numbers, not negative: zero for an infinite eigenvalue.
    pub beta: &'a mut [T::Real],
}

/// The generalised Schur form of each pair of a batch (xGGES). What `q` and `z` hold is not read.
///
/// All results are NaN for a pair that is not finite, or did not converge.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn generalised_schur<T: Scalar>(
    batch: usize,
    n: usize,
    pair: Pair<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (operands, arch) = (pair.operands(batch, n)?, Arch::new());
    if batch == 0 || n == 0 {
        return Ok(());
    }
    match route(batch, n) {
        Route::Lanes => {
            let finish = || Lanes { work: Work::new(n), arch };
            let kernel = Decompose { n, finish };
            for_each_group::<T::Double, _>(batch, operands, lanes_cost(n), threads, &kernel);
        }
        Route::Single => {
            for_each(
                batch,
                operands,
                cost::<T>(n, ITERATION),
                threads,
                || Work::new(n),
                |work, (s, t, q, z, alpha, beta)| {
                    work.decompose(Results::<T> { s, t, q, z, alpha, beta }, arch);
                },
            );
        }
    }
    Ok(())
}

/// The same forms with those eigenvalues first whose number in `chosen`, n for each pair, is not zero (xTGSEN); one of
/// two that are conjugate brings both. Either kind keeps its order.
///
/// All results are NaN for a pair that is not finite, or whose eigenvalues could not be told apart well enough.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn reorder_generalised_schur<T: Scalar>(
    batch: usize,
    n: usize,
    chosen: &[i32],
    pair: Pair<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (Items::new("chosen", batch, &[n], chosen)?, pair.operands(batch, n)?);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let (cost, arch) = (cost::<T>(n, EXCHANGES), Arch::new());
    for_each(
        batch,
        operands,
        cost,
        threads,
        || Work::new(n),
        |work, (chosen, one)| {
            let (s, t, q, z, alpha, beta) = one;
            work.reorder(chosen, Results::<T> { s, t, q, z, alpha, beta }, arch);
        },
    );
    Ok(())
}

/// Eigenvectors of each pair of a batch in Schur form, in the columns of x (xTGEVC).
///
/// The largest |re| + |im| of each is 1. Those of a pair that is not finite are NaN.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn generalised_eigenvectors<T: Scalar>(
    which: Which,
    batch: usize,
    n: usize,
    (s, t): (&[T], &[T]),
    x: &mut [T::Complex],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = (
        Items::new("s", batch, &[n, n], s)?,
        Items::new("t", batch, &[n, n], t)?,
        ItemsMut::new("x", batch, &[n, n], x)?,
    );
    if batch == 0 || n == 0 {
        return Ok(());
    }
    match route::vectors(batch, n) {
        Route::Lanes => {
            let side = match which {
                Which::Right => Side::Right,
                Which::Left => Side::Left,
            };
            let kernel = Eigenvectors { n, side };
            for_each_group::<T::Double, _>(batch, operands, vectors_cost(n), threads, &kernel);
        }
        Route::Single => {
            type Complex<T> = <<T as Scalar>::Double as lapax_core::Scalar>::Complex;
            let zeros = |count| vec![<Complex<T> as lapax_core::Scalar>::ZERO; count];
            let (cost, arch) = (cost::<T>(n, SUBSTITUTIONS), Arch::new());
            let scratch = || (Work::new(n), zeros(n * n), zeros(n));
            for_each(
                batch,
                operands,
                cost,
                threads,
                scratch,
                |(work, vectors, sums), (s, t, x)| {
                    work.eigenvectors::<T>(which, (s, t), x, (vectors, sums), arch);
                },
            );
        }
    }
    Ok(())
}

impl<'a, T: Scalar> Pair<'a, T> {
    fn operands(self, batch: usize, n: usize) -> Result<Operands<'a, T>, Error> {
        let Self { s, t, q, z, alpha, beta } = self;
        Ok((
            ItemsInOut::new("s", batch, &[n, n], s)?,
            ItemsInOut::new("t", batch, &[n, n], t)?,
            ItemsInOut::new("q", batch, &[n, n], q)?,
            ItemsInOut::new("z", batch, &[n, n], z)?,
            ItemsMut::new("alpha", batch, &[n], alpha)?,
            ItemsMut::new("beta", batch, &[n], beta)?,
        ))
    }
}

/// Products of numbers over n³: Golub and Van Loan count 33 with both factors; the other two are bounds.
const ITERATION: usize = 33;
const EXCHANGES: usize = 6;
const SUBSTITUTIONS: usize = 2;

/// An estimate of one pair's time.
fn cost<T: Scalar>(n: usize, products: usize) -> usize {
    nanoseconds::<T::Double>(n.saturating_mul(n).saturating_mul(n).saturating_mul(products))
}

/// The same in lanes, from the times at `route::LANES`: of forms, and of vectors.
fn lanes_cost(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(25 + n)
}

fn vectors_cost(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(5)
}
