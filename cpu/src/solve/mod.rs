//! Systems A·X = B, and inverses, by LU factors that are not kept.

mod inverse;
pub(crate) mod route;

use lapax_core::{Items, ItemsMut, for_each, for_each_large, for_each_part, index_fits_i32};
use lapax_cpu_macros::per_scalar;

use crate::lu::row_major::Getrf;
use crate::parallel::cost::nanoseconds;
use crate::parallel::few;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::{BATCH, for_each_group};
use crate::simd::kind::Kind;
use crate::simd::vector::MAX_LANES;
use crate::{Error, InOut, Scalar, Serial, Threads, Trans};
use crate::{lanes, lu, registers, unblocked};
use inverse::invert;
use route::{Route, products, route};

/// The matrices that are factored with one call where they do not go through lanes: at least as many
/// as a call that does so takes at once, unless the bytes of their factors are more than the nearest cache
/// holds.
const TOGETHER: usize = MAX_LANES;
const FACTORS: usize = 64 << 10;

/// [`crate::lu::lu`], [`crate::lu::lu_solve`] and [`invert`], or other routines with their contracts.
#[derive(Clone, Copy)]
pub(crate) struct Routines<T> {
    pub(crate) lu: Getrf<T>,
    pub(crate) lu_solve: Solve<T>,
    pub(crate) invert: Invert<T>,
}

type Solve<T> =
    fn(Trans, usize, usize, usize, &[T], &[i32], &[T], &mut [T], &dyn Threads) -> Result<(), Error>;

type Invert<T> = fn(usize, usize, &[T], &[i32], &mut [T], &dyn Threads) -> Result<(), Error>;

impl<T: Scalar> Routines<T> {
    /// Ours.
    pub(crate) fn own() -> Self {
        Self { lu: lu::lu, lu_solve: lu::lu_solve, invert }
    }
}

/// The solution of A·X = B for each system of a batch.
///
/// `a` is n × n, `b` and `x` are n × nrhs; all lie by rows. The arithmetic is that of
/// [`crate::lu::lu`] followed by [`crate::lu::lu_solve`]: a zero on the diagonal of U is no error, its
/// quotients are inf or NaN.
///
/// # Errors
/// Where n exceeds `i32`, in which pivots are counted, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn solve<T: Scalar>(
    batch: usize,
    n: usize,
    nrhs: usize,
    a: &[T],
    b: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Unblocked => {
            few::each(batch, operands(batch, (n, nrhs), a, Some(b), x)?, |(a, b, x)| {
                unblocked::solve::solve((n, nrhs), a, Some(b), x);
            });
        }
        Route::Lanes => {
            let operands = operands(batch, (n, nrhs), a, Some(b), x)?;
            let time = nanoseconds::<T>(products(n, nrhs));
            let kernel = lanes::lu::solve::Solve { n, nrhs };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Grouped | Route::Factors | Route::Parallel => {
            return by_factors(Routines::own(), batch, (n, nrhs), a, Some(b), x, threads);
        }
    }
    Ok(())
}

/// The inverse of each n × n matrix of a batch, by rows.
///
/// [`solve`] with the identity on the right: the inverse of a singular matrix has inf and NaN.
///
/// # Errors
/// As [`solve`].
#[per_scalar]
pub fn inv<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    match route(Kind::of::<T>(), batch, n, n) {
        Route::Unblocked => {
            few::each(batch, operands(batch, (n, n), a, None, x)?, |(a, _, x)| {
                unblocked::solve::solve((n, n), a, None, x);
            });
        }
        Route::Lanes => {
            let (a, _, x) = operands(batch, (n, n), a, None, x)?;
            let (kernel, time) = (lanes::lu::solve::Invert { n }, nanoseconds::<T>(products(n, n)));
            for_each_group::<T, _>(batch, (a, x), time, threads, &kernel);
        }
        Route::Grouped | Route::Factors | Route::Parallel => {
            return by_factors(Routines::own(), batch, (n, n), a, None, x, threads);
        }
    }
    Ok(())
}

type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>);

/// A, B and X by rows; each B is empty where there is none.
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &'a [T],
    b: Option<&'a [T]>,
    x: &'a mut [T],
) -> Result<Operands<'a, T>, Error> {
    Ok((
        Items::new("a", batch, &[n, n], a)?,
        match b {
            Some(b) => Items::new("b", batch, &[n, nrhs], b)?,
            None => Items::new("b", batch, &[0], &[])?,
        },
        ItemsMut::new("x", batch, &[n, nrhs], x)?,
    ))
}

/// [`solve`], and where there is no `b` [`inv`], by other routines.
///
/// A large system without others has all threads.
pub(crate) fn by_factors<T: Scalar>(
    routines: Routines<T>,
    batch: usize,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: Option<&[T]>,
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    let operands = operands(batch, (n, nrhs), a, b, x)?;
    if n == 0 || nrhs == 0 {
        return Ok(());
    }
    let (outcome, time) = (Outcome::default(), nanoseconds::<T>(products(n, nrhs)));
    let system = |(a, given, x): (&[T], &[T], &mut [T]), threads: &dyn Threads| {
        outcome.take(one(routines, (n, nrhs), a, b.map(|_| given), x, threads));
    };
    match route(Kind::of::<T>(), batch, n, nrhs) {
        Route::Parallel => for_each_large(batch, operands, threads, system),
        Route::Factors => {
            for_each(batch, operands, time, threads, || (), |(), items| system(items, &Serial));
        }
        // Other routines have no kernels for whole systems.
        Route::Unblocked | Route::Lanes | Route::Grouped => {
            for_each_part(batch, TOGETHER, operands, time, threads, |(a, given, x), items| {
                let fit = (FACTORS / (n * n * size_of::<T>())).max(registers::lu::MATRICES);
                let together = batch.min(TOGETHER).min(fit);
                let least = BATCH.min(together);
                let (size, sides) = (n * n, n * nrhs);
                let mut group = Group::new(routines, (n, nrhs), items.clamp(least, together));
                let systems = a.data().chunks(size * together).enumerate();
                for ((number, a), x) in systems.zip(x.into_data().chunks_mut(sides * together)) {
                    let b = b.map(|_| &given.data()[number * sides * together..][..x.len()]);
                    outcome.take(if a.len() < least * size {
                        // A call for so few would go another way than those for whole groups, and its roundings be others.
                        let (a, b) =
                            (repeated(a, size, least), b.map(|b| repeated(b, sides, least)));
                        let mut copy = vec![T::ZERO; sides * least];
                        let solved = group.solve(&a, b.as_deref(), &mut copy);
                        x.copy_from_slice(&copy[..x.len()]);
                        solved
                    } else {
                        group.solve(a, b, x)
                    });
                }
            })
        }
    }
    outcome.into_result()
}

/// The items of so many numbers each that there are, and the last one again as often as makes `count` of them.
pub(crate) fn repeated<T: Scalar>(items: &[T], size: usize, count: usize) -> Vec<T> {
    let last = &items[items.len() - size..];
    items.iter().copied().chain(last.iter().copied().cycle()).take(count * size).collect()
}

/// What the systems of one group after another are solved with.
struct Group<T> {
    routines: Routines<T>,
    n: usize,
    nrhs: usize,
    factors: Vec<T>,
    pivots: Vec<i32>,
    permutation: Vec<i32>,
}

impl<T: Scalar> Group<T> {
    /// For up to `count` systems.
    fn new(routines: Routines<T>, (n, nrhs): (usize, usize), count: usize) -> Self {
        let rows = || vec![0; n * count];
        let (factors, pivots, permutation) = (vec![T::ZERO; n * n * count], rows(), rows());
        Self { routines, n, nrhs, factors, pivots, permutation }
    }

    /// The solutions, or where there is no `b` the inverses.
    fn solve(&mut self, a: &[T], b: Option<&[T]>, x: &mut [T]) -> Result<(), Error> {
        let Self { routines, n, nrhs, factors, pivots, permutation } = self;
        let (n, nrhs, count) = (*n, *nrhs, a.len() / (*n * *n));
        let (factors, pivots) = (&mut factors[..a.len()], &mut pivots[..count * n]);
        let (permutation, trans) = (&mut permutation[..count * n], Trans::None);
        let lu = InOut { src: Some(a), dst: &mut *factors };
        (routines.lu)(count, n, n, lu, pivots, permutation, &Serial)?;
        if let Some(b) = b {
            (routines.lu_solve)(trans, count, n, nrhs, factors, permutation, b, x, &Serial)
        } else {
            (routines.invert)(count, n, factors, permutation, x, &Serial)
        }
    }
}

/// One system, or inverse.
fn one<T: Scalar>(
    routines: Routines<T>,
    (n, nrhs): (usize, usize),
    a: &[T],
    b: Option<&[T]>,
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (mut factors, mut pivots, mut permutation) = (vec![T::ZERO; n * n], vec![0; n], vec![0; n]);
    let lu = InOut { src: Some(a), dst: &mut factors[..] };
    (routines.lu)(1, n, n, lu, &mut pivots, &mut permutation, threads)?;
    match b {
        Some(b) => {
            (routines.lu_solve)(Trans::None, 1, n, nrhs, &factors, &permutation, b, x, threads)
        }
        None => (routines.invert)(1, n, &factors, &permutation, x, threads),
    }
}
