//! Eigenvalues and eigenvectors of Hermitian matrices, A = V·diag(w)·Vᴴ, and the first half of the
//! way there: A = Q·T·Qᴴ with T real and tridiagonal.

pub(crate) mod divide;
pub(crate) mod ql;
pub(crate) mod reduction;
pub(crate) mod root_free_ql;
pub(crate) mod route;
pub(crate) mod row_major;
pub(crate) mod single;
pub(crate) mod sytrd;
pub(crate) mod tridiagonal;

use std::ops::Range;

use lapax_core::{
    Items, ItemsInOut, ItemsMut, Scalar as _, for_each, for_each_large, for_each_part,
};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::matrix::layout::Layout;
use crate::matrix::{hermitian, results, strips};
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::elementary;
use crate::{Error, InOut, Scalar, Threads, Uplo, Vectors};
use route::{Route, products, route};
use single::{Scratch, decompose};

pub use sytrd::sytrd;
pub use tridiagonal::{tridiagonal_eigh, tridiagonal_eigvalsh};

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
    let route = route(Layout::Columns, job, batch, n);
    let small = Small { uplo, n, order: Layout::Columns };
    if route == Route::Lanes && job == Vectors::None {
        return small.values(batch, v, w, info, threads);
    }
    let operands = operands(batch, n, v, w, info)?;
    let (scratch, arch) = (|| Scratch::new(job, n), Arch::new());
    match route {
        Route::Lanes => small.decompose(batch, operands, threads),
        Route::OrderOne | Route::Iterated | Route::Divided => {
            let time = nanoseconds::<T>(products(job, n));
            for_each(batch, operands, time, threads, scratch, |scratch, (v, w, info)| {
                info[0] = decompose(uplo, (v, w), Layout::Columns, scratch, None, arch);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(v, w, info), threads| {
            info[0] = decompose(uplo, (v, w), Layout::Columns, &mut scratch(), Some(threads), arch);
        }),
    }
    Ok(())
}

/// The operands of [`syevd`].
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    v: InOut<'a, T>,
    w: &'a mut [T::Real],
    info: &'a mut [i32],
) -> Result<Operands<'a, T>, Error> {
    let (v, w) = row_major::eigh_operands(batch, n, v, w)?;
    Ok((v, w, ItemsMut::new("info", batch, &[], info)?))
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
    strips::by_strips(batch, n, operands, time, threads, |(a, s), threads| {
        strips::each_strip(s, n, threads, |first, rows| {
            hermitian::mean_of(true, a, n, first, rows);
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
    let (v, w) = row_major::eigh_operands(batch, n, v, w)?;
    let job = Vectors::Wanted;
    let route = route(Layout::Rows, job, batch, n);
    if route == Route::Lanes {
        let (InOut { src, dst }, w, mut info) = (v.into_in_out(), w.into_data(), vec![0; batch]);
        let v = InOut { src, dst: &mut *dst };
        let operands = operands(batch, n, v, &mut *w, &mut info)?;
        Small { uplo, n, order: Layout::Rows }.decompose(batch, operands, threads);
        results::mark_failed(&info, w, [dst]);
        return Ok(());
    }
    let operands = (v, w);
    let (scratch, arch) = (|| Scratch::new(job, n), Arch::new());
    let one = |v: &mut [T],
               w: &mut [T::Real],
               scratch: &mut Scratch<T>,
               threads: Option<&dyn Threads>| {
        // By columns it is Aᵀ.
        let info =
            decompose(uplo.other(), (&mut *v, &mut *w), Layout::Rows, scratch, threads, arch);
        results::mark_failed(&[info], w, [v]);
    };
    match route {
        Route::OrderOne => {
            for_each_part(batch, 1, operands, elementary::OF_ORDER_ONE, threads, |(v, w), _| {
                let InOut { src, dst } = v.into_in_out();
                for (i, (v, w)) in dst.iter_mut().zip(w.into_data()).enumerate() {
                    let (value, vector) = elementary::of_order_one(src.map_or(*v, |a| a[i]));
                    (*w, *v) = (value.re(), vector);
                }
            });
        }
        Route::Lanes | Route::Iterated | Route::Divided => {
            let time = nanoseconds::<T>(products(job, n));
            for_each(batch, operands, time, threads, scratch, |scratch, (v, w)| {
                one(v, w, scratch, None);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(v, w), threads| {
            one(v, w, &mut scratch(), Some(threads));
        }),
    }
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
    match route(Layout::Rows, Vectors::None, batch, n) {
        Route::OrderOne => {
            let operands = row_major::eigvalsh_operands(batch, n, a, w)?;
            for_each_part(batch, 1, operands, elementary::OF_ORDER_ONE, threads, |(a, w), _| {
                for (w, &a) in w.into_data().iter_mut().zip(a.data()) {
                    *w = elementary::of_order_one(a).0.re();
                }
            });
            Ok(())
        }
        Route::Lanes => {
            row_major::eigvalsh_operands(batch, n, a, &mut *w)?;
            let mut info = vec![0; batch];
            let a = InOut { src: Some(a), dst: &mut [] };
            Small { uplo, n, order: Layout::Rows }.values(batch, a, w, &mut info, threads)?;
            results::mark_failed::<T, 0>(&info, w, []);
            Ok(())
        }
        Route::Iterated | Route::Divided | Route::Parallel => {
            row_major::eigvalsh(syevd, uplo, batch, n, a, w, threads)
        }
    }
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
    let route = route(Layout::Columns, job, batch, n);
    if let Route::OrderOne | Route::Lanes | Route::Iterated = route {
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
        let info = decompose(uplo.other(), whole, Layout::Columns, scratch, threads, arch);
        row_major::take_part((columns, values), info, scratch.part.clone(), v, w);
    };
    let scratch = || {
        let scratch = Scratch { part: part.clone(), ..Scratch::new(job, n) };
        (scratch, vec![T::ZERO; n * n], vec![T::Real::ZERO; n])
    };
    match route {
        Route::OrderOne | Route::Lanes | Route::Iterated | Route::Divided => {
            let time = nanoseconds::<T>(products(job, n));
            for_each(batch, operands, time, threads, scratch, |scratch, (a, v, w)| {
                one(scratch, a, v, w, None);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, v, w), threads| {
            one(&mut scratch(), a, v, w, Some(threads));
        }),
    }
    Ok(())
}

type Operands<'a, T> =
    (ItemsInOut<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Real>, ItemsMut<'a, i32>);

/// A call that goes through lanes.
#[derive(Clone, Copy)]
struct Small {
    uplo: Uplo,
    n: usize,
    order: Layout,
}

impl Small {
    fn decompose<T: Scalar<Real: Scalar>>(
        self,
        batch: usize,
        operands: Operands<'_, T>,
        threads: &dyn Threads,
    ) {
        let Self { uplo, n, order } = self;
        let single = |v: &mut [T], w: &mut [T::Real]| self.single(Vectors::Wanted, v, w);
        let kernel = lanes::eigh::Decompose { n, uplo, order, single };
        let time = nanoseconds::<T>(products(Vectors::Wanted, n));
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
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
        let uplo = if self.order == Layout::Rows { self.uplo.other() } else { self.uplo };
        decompose(uplo, (v, w), self.order, scratch, None, Arch::new())
    }
}
