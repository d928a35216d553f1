//! Determinants, as sign and logarithm, from LU factors that are not kept.

pub(crate) mod route;

use lapax_core::{Items, ItemsMut, Scalar as _, for_each_large, for_each_part, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::lanes::lu;
use crate::lanes::lu::determinant::{Operands, Product};
use crate::lu::route::products;
use crate::lu::row_major::Getrf;
use crate::lu::{getrf, lu};
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::{BATCH, for_each_group};
use crate::solve::repeated;
use crate::{Error, InOut, Scalar, Serial, Threads};
use route::{Route, route};

/// The matrices that are factored with one call where they do not go through lanes.
const TOGETHER: usize = 8;
/// The numbers of one call that need no allocation: `slogdet` of one matrix of order 4 takes 400 ns with, in a loop
/// inside a program, and 300 without.
const FEW: usize = 64;

/// The sign and the logarithm of the absolute value of the determinant of each n × n matrix of a batch.
///
/// det(A) = `sign`·exp(`logabs`), |`sign`| = 1; of a singular matrix `sign` is 0 and `logabs` −∞. By rows
/// or by columns, a matrix has the same determinant. The product of the pivots' sizes is kept as a
/// number from 1 to 2 and a power of two, so that neither overflows, and only one logarithm is
/// taken. NaN and infinity propagate to `logabs`; the sign of a real matrix is then that of the
/// pivots which have one.
///
/// # Errors
/// Where n exceeds `i32`, in which pivots are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn slogdet<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    sign: &mut [T],
    logabs: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let factor = match route(batch, n) {
        Route::Lanes => {
            let operands = operands(batch, n, a, sign, logabs)?;
            let (kernel, time) = (lu::determinant::Find { n }, nanoseconds::<T>(products(n, n)));
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
            return Ok(());
        }
        Route::Grouped => Factor::rows(lu, n),
        Route::Parallel => Factor::columns(getrf),
    };
    by_factors(factor, batch, n, a, sign, logabs, threads)
}

fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: &'a [T],
    sign: &'a mut [T],
    logabs: &'a mut [T::Real],
) -> Result<Operands<'a, T>, Error> {
    Ok((
        Items::new("a", batch, &[n, n], a)?,
        ItemsMut::new("sign", batch, &[], sign)?,
        ItemsMut::new("logabs", batch, &[], logabs)?,
    ))
}

/// A routine that factors square matrices, of which it is not told whether they lie by rows or by columns.
#[derive(Clone, Copy)]
pub(crate) struct Factor<T> {
    routine: Getrf<T>,
    /// What pivots are counted from.
    first: i32,
    /// What the routine returns besides for each matrix, as a number of numbers.
    others: usize,
}

impl<T: Scalar> Factor<T> {
    /// [`getrf`], or another routine with its contract: `info`.
    pub(crate) fn columns(getrf: Getrf<T>) -> Self {
        Self { routine: getrf, first: 1, others: 1 }
    }

    /// [`lu`](crate::lu::lu) of matrices of order n: a permutation.
    fn rows(lu: Getrf<T>, n: usize) -> Self {
        Self { routine: lu, first: 0, others: n }
    }

    /// The pivots of a matrix of order n, and what is returned besides.
    fn integers(self, n: usize) -> usize {
        n + self.others
    }
}

/// [`slogdet`] by a routine for the factors, which is called from all `threads`.
pub(crate) fn by_factors<T: Scalar>(
    factor: Factor<T>,
    batch: usize,
    n: usize,
    a: &[T],
    sign: &mut [T],
    logabs: &mut [T::Real],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let operands = operands(batch, n, a, sign, logabs)?;
    let (outcome, time) = (Outcome::default(), nanoseconds::<T>(products(n, n)));
    match route(batch, n) {
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, sign, logabs), threads| {
                let (mut factors, mut integers) =
                    (vec![T::ZERO; n * n], vec![0; factor.integers(n)]);
                let mut group = Group { factor, n, factors: &mut factors, integers: &mut integers };
                outcome.take(group.find(a, sign, logabs, threads));
            })
        }
        // Another routine has no kernel for determinants.
        Route::Lanes | Route::Grouped => {
            for_each_part(batch, TOGETHER, operands, time, threads, |(a, sign, logabs), items| {
                let together = batch.min(TOGETHER);
                let least = BATCH.min(together);
                let room = items.clamp(least, together);
                let mut few = ([T::ZERO; FEW], [0; 2 * FEW]);
                let mut many;
                let (numbers, integers) = (n * n * room, factor.integers(n) * room);
                let (factors, integers) = if numbers <= FEW {
                    (&mut few.0[..numbers], &mut few.1[..integers])
                } else {
                    many = (vec![T::ZERO; numbers], vec![0; integers]);
                    (&mut many.0[..], &mut many.1[..])
                };
                let mut group = Group { factor, n, factors, integers };
                let signs = sign.into_data().chunks_mut(together);
                let results = signs.zip(logabs.into_data().chunks_mut(together));
                // Of matrices of order 0 there are no elements.
                let mut matrices = a.data().chunks((together * n * n).max(1));
                for (sign, logabs) in results {
                    let a = matrices.next().unwrap_or_default();
                    let count = sign.len();
                    if count < least && n > 0 {
                        // As in `solve`: a call for so few would go another way than those for whole groups.
                        let a = repeated(a, n * n, least);
                        let (mut signs, mut logs) = ([T::ZERO; BATCH], [T::Real::ZERO; BATCH]);
                        let found =
                            group.find(&a, &mut signs[..least], &mut logs[..least], &Serial);
                        outcome.take(found);
                        sign.copy_from_slice(&signs[..count]);
                        logabs.copy_from_slice(&logs[..count]);
                    } else {
                        outcome.take(group.find(a, sign, logabs, &Serial));
                    }
                }
            })
        }
    }
    outcome.into_result()
}

/// What a few matrices take that are factored with one call.
struct Group<'a, T> {
    factor: Factor<T>,
    n: usize,
    factors: &'a mut [T],
    integers: &'a mut [i32],
}

impl<T: Scalar> Group<'_, T> {
    /// The determinants of as many matrices as there are results.
    fn find(
        &mut self,
        a: &[T],
        sign: &mut [T],
        logabs: &mut [T::Real],
        threads: &dyn Threads,
    ) -> Result<(), Error> {
        let Self { factor: Factor { routine, first, others }, n, factors, integers } = self;
        let (n, count) = (*n, sign.len());
        let lu = InOut { src: Some(a), dst: &mut factors[..count * n * n] };
        let (pivots, rest) = integers.split_at_mut(count * n);
        let others = &mut rest[..count * *others];
        routine(count, n, n, lu, &mut *pivots, others, threads)?;
        for (i, (sign, logabs)) in sign.iter_mut().zip(logabs).enumerate() {
            let mut product = Product::new();
            (0..n).for_each(|j| product.take(factors[(i * n + j) * n + j]));
            let swaps = (*first..).zip(&pivots[i * n..(i + 1) * n]);
            let odd = swaps.filter(|(row, pivot)| row != *pivot).count() % 2 == 1;
            (*sign, *logabs) = product.result(odd);
        }
        Ok(())
    }
}
