//! The singular value decomposition A = U·diag(s)·Vᴴ.
//!
//! A wide matrix is decomposed through its transpose, Aᵀ = conj(V)·diag(s)·Uᵀ, so that all below the
//! public functions has at least as many rows as columns.

pub(crate) mod divide;
pub(crate) mod qr_iteration;
pub(crate) mod reduction;
pub(crate) mod route;
pub(crate) mod row_major;
pub(crate) mod single;

use std::ops::Range;

use lapax_core::{
    Items, ItemsInOut, ItemsMut, Real as _, Scalar as _, for_each, for_each_large, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;
use smallvec::smallvec;

use crate::lanes;
use crate::lanes::svd::bidiagonal::is_lower_bidiagonal;
use crate::matrix::phase::{Leading, Turns};
use crate::matrix::results;
use crate::parallel::cost::nanoseconds;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::kind::Kind;
use crate::simd::range::{largest_part, power_to_normal};
use crate::simd::scalar::ShortRow;
use crate::{Error, InOut, Scalar, SingularVectors, Threads};
use route::{Method, Route, products, route};
use single::{Factors, Scratch};

pub use single::Svd;

/// Decomposes each m × n matrix of a batch, by divide and conquer where it is large.
///
/// `a` is scratch. With [`SingularVectors::None`] `u` and `vt` may have any size, and become zeros.
///
/// # Errors
/// Where m or n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn gesdd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Divide, Leading::Left);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

/// Decomposes each m × n matrix of a batch by implicit QR steps; otherwise as [`gesdd`].
///
/// # Errors
/// As [`gesdd`].
#[per_scalar]
pub fn gesvd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Qr, Leading::Left);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

/// [`gesdd`] of matrices of whose transposes the left singular vectors have the phases of the rule.
pub(crate) fn gesdd_of_transposes<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let how = (Method::Divide, Leading::Right);
    decompose_all(how, job, batch, (m, n), a, results, threads)
}

fn decompose_all<T: Scalar<Real: Scalar>>(
    (method, leading): (Method, Leading),
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let results = factors(job, batch, (m, n), results)?;
    let call = Call { method, leading, job, m, n, arch: Arch::new() };
    let route = route(Kind::of::<T>(), method, job, batch, m, n);
    if route == Route::Lanes {
        let InOut { src, dst } = a;
        let (a, left, length) = match src {
            Some(src) => (src, dst, m * n),
            None => (&*dst, &mut [][..], 0),
        };
        let left = ItemsMut::new("a", batch, &[length], left)?;
        return call.in_lanes(batch, a, (left, results), threads);
    }
    let a = ItemsInOut::new("a", batch, &[m, n], a)?;
    let (s, u, vt, info) = results;
    let operands = (a, s, u, vt, info);
    let scratch = || call.scratch();
    match route {
        Route::Lanes | Route::Iterated | Route::Divided => {
            let time = nanoseconds::<T>(products(job, m, n));
            for_each(batch, operands, time, threads, scratch, |scratch, (a, s, u, vt, info)| {
                info[0] = call.decompose(a, s, u, vt, None, scratch);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |item, threads| {
            let (a, s, u, vt, info) = item;
            info[0] = call.decompose(a, s, u, vt, Some(threads), &mut scratch());
        }),
    }
    Ok(())
}

/// s, U, Vᴴ and info.
type Results<'a, T> = (
    ItemsMut<'a, <T as lapax_core::Scalar>::Real>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, i32>,
);

/// The results of [`gesdd`]; where no vectors are asked for theirs become zeros, and have no elements.
pub(crate) fn factors<'a, T: Scalar>(
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    Svd { s, mut u, mut vt, info }: Svd<'a, T>,
) -> Result<Results<'a, T>, Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    if job == SingularVectors::None {
        u.fill(T::ZERO);
        vt.fill(T::ZERO);
        (u, vt) = (&mut [], &mut []);
    }
    let (u_cols, vt_rows) = job.sides(m, n);
    Ok((
        ItemsMut::new("s", batch, &[m.min(n)], s)?,
        ItemsMut::new("u", batch, &[m, u_cols], u)?,
        ItemsMut::new("vt", batch, &[vt_rows, n], vt)?,
        ItemsMut::new("info", batch, &[], info)?,
    ))
}

/// Decomposes each row-major m × n matrix of a batch, as [`gesdd`] does.
///
/// U is m × m or m × min(m, n), and Vᴴ n × n or min(m, n) × n, by rows; with [`SingularVectors::None`] there
/// is neither. All results are NaN where the matrix is not finite, or did not converge.
///
/// # Errors
/// As [`gesdd`].
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors")]
#[per_scalar]
pub fn svd<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    // By columns it is Aᵀ = conj(V)·diag(s)·Uᵀ, whose U and Vᴴ are by rows Vᴴ and U.
    let k = m.min(n);
    if route(Kind::of::<T>(), Method::Divide, job, batch, n, m) != Route::Lanes {
        return row_major::svd(gesdd_of_transposes, job, batch, (m, n), a, s, u, vt, threads);
    }
    let (u_cols, vt_rows) = job.sides(m, n);
    let (_, values, left, right) =
        row_major::operands(batch, (m, n), [k, u_cols, vt_rows], a, &mut *s, &mut *u, &mut *vt)?;
    let mut info: ShortRow<i32> = smallvec![0; batch];
    let results = (values, right, left, ItemsMut::new("info", batch, &[], &mut info)?);
    let call = Call::of_transposes(job, (m, n));
    call.in_lanes(batch, a, (ItemsMut::new("left", batch, &[0], &mut [])?, results), threads)?;
    results::mark_failed(&info, s, [u, vt]);
    Ok(())
}

/// Some of the singular values of each row-major m × n matrix of a batch, and their vectors.
///
/// `s` holds those of the descending singular values that are at the places `part`, k of them; `u` is m × k and
/// `vt` k × n. It is for fewer vectors that less is done, from min(m, n) = 33 on and where a batch does not go
/// through lanes: the bidiagonal matrix is found as a whole, and so are its values and the vectors of its
/// halves. On two cores of Zen 5, f64, n = 1024, all take 109 ms, half of them 91, a quarter 81, a tenth 75 and
/// one 73.
///
/// # Errors
/// As [`gesdd`], and where the places are not among the min(m, n).
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors, and the part")]
#[per_scalar]
pub fn svd_subset<T: Scalar<Real: Scalar>>(
    batch: usize,
    m: usize,
    n: usize,
    part: Range<usize>,
    a: &[T],
    s: &mut [T::Real],
    u: &mut [T],
    vt: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (job, k) = (SingularVectors::Thin, m.min(n));
    let route = route(Kind::of::<T>(), Method::Divide, job, batch, n, m);
    if let Route::Lanes | Route::Iterated = route {
        return row_major::svd_subset(
            gesdd_of_transposes,
            batch,
            (m, n),
            part,
            a,
            s,
            u,
            vt,
            threads,
        );
    }
    let operands = row_major::part_operands(batch, (m, n), &part, a, s, u, vt)?;
    // By columns it is Aᵀ, whose factors of these names are by rows Vᴴ and U.
    let call = Call::of_transposes(job, (m, n));
    let scratch = || {
        let mut scratch = call.scratch();
        scratch.decomposition.part = part.clone();
        let zeros = |length| vec![T::ZERO; length];
        (scratch, zeros(m * n), vec![T::Real::ZERO; k], zeros(k * n), zeros(m * k))
    };
    type Whole<T, R> = (Reused<T>, Vec<T>, Vec<R>, Vec<T>, Vec<T>);
    let one = |(scratch, copy, values, right, left): &mut Whole<T, T::Real>,
               a: &[T],
               results: [&mut [T]; 2],
               s: &mut [T::Real],
               threads: Option<&dyn Threads>| {
        copy.copy_from_slice(a);
        let info = call.decompose(copy, values, right, left, threads, scratch);
        row_major::take_singular_part((values, left, right), info, part.clone(), s, results);
    };
    match route {
        Route::Lanes | Route::Iterated | Route::Divided => {
            let time = nanoseconds::<T>(products(job, m, n));
            for_each(batch, operands, time, threads, scratch, |scratch, (a, s, u, vt)| {
                one(scratch, a, [u, vt], s, None);
            });
        }
        Route::Parallel => for_each_large(batch, operands, threads, |(a, s, u, vt), threads| {
            one(&mut scratch(), a, [u, vt], s, Some(threads));
        }),
    }
    Ok(())
}

impl Method {
    /// `info` where the matrix holds a NaN or an infinity: the number of that argument in LAPACK.
    fn not_finite(self) -> i32 {
        match self {
            Method::Divide => -4,
            Method::Qr => -5,
        }
    }
}

/// What a call asks for.
#[derive(Clone, Copy)]
struct Call {
    method: Method,
    leading: Leading,
    job: SingularVectors,
    m: usize,
    n: usize,
    arch: Arch,
}

/// What one decomposition after another reuses.
struct Reused<T: Scalar> {
    /// A copy of a wide matrix.
    transposed: Vec<T>,
    decomposition: Scratch<T>,
    turns: Turns<T>,
}

impl Call {
    /// For row-major m × n matrices, which by columns are their transposes.
    fn of_transposes(job: SingularVectors, (m, n): (usize, usize)) -> Self {
        let (method, leading) = (Method::Divide, Leading::Right);
        Self { method, leading, job, m: n, n: m, arch: Arch::new() }
    }

    /// Decomposes a batch of small matrices; a copy of each goes to `left`, unless that is empty.
    fn in_lanes<T: Scalar<Real: Scalar>>(
        self,
        batch: usize,
        a: &[T],
        (left, (s, u, vt, info)): (ItemsMut<'_, T>, Results<'_, T>),
        threads: &dyn Threads,
    ) -> Result<(), Error> {
        let Self { leading, job, m, n, .. } = self;
        let operands = (Items::new("a", batch, &[m, n], a)?, left, s, u, vt, info);
        // What lanes leave has values that halves would lose.
        let careful = Self { method: Method::Qr, ..self };
        let single = |a: &mut [T], s: &mut [T::Real], u: &mut [T], vt: &mut [T]| {
            self.decompose(a, s, u, vt, None, &mut careful.scratch())
        };
        let kernel = lanes::svd::Decompose { job, m, n, leading, single };
        let time = nanoseconds::<T>(products(job, m, n));
        for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        Ok(())
    }

    fn scratch<T: Scalar<Real: Scalar>>(self) -> Reused<T> {
        let Self { method, job, m, n, .. } = self;
        let transposed = if m < n { m * n } else { 0 };
        Reused {
            transposed: vec![T::ZERO; transposed],
            decomposition: Scratch::new(method, job, m.max(n), m.min(n)),
            turns: Turns::new(job.sides(m, n).1),
        }
    }

    /// Decomposes one matrix, on threads where there are any; returns its `info`.
    fn decompose<T: Scalar<Real: Scalar>>(
        self,
        a: &mut [T],
        s: &mut [T::Real],
        u: &mut [T],
        vt: &mut [T],
        threads: Option<&dyn Threads>,
        scratch: &mut Reused<T>,
    ) -> i32 {
        let Self { method, leading, job, m, n, arch } = self;
        let Reused { transposed, decomposition, turns } = scratch;
        let Some(largest) = largest_part([&*a]) else {
            let nan = T::Real::from_f64(f64::NAN);
            s.fill(nan);
            for x in [a, u, vt] {
                x.fill(T::from_parts(nan, nan));
            }
            return method.not_finite();
        };
        let power = power_to_normal(largest);
        let vectors = job != SingularVectors::None;
        // End for end it is upper bidiagonal, and reflectors have nothing to do.
        let turned = m == n && is_lower_bidiagonal(a, n);
        if turned {
            a.reverse();
        }
        let outcome = if m >= n {
            a.iter_mut().for_each(|x| *x = x.scale(power));
            let factors = Factors { u: &mut *u, vt: &mut *vt, by_columns: true };
            decomposition.decompose(a, s, vectors.then_some(factors), threads, arch)
        } else {
            for (j, row) in transposed.chunks_exact_mut(n).enumerate() {
                for (x, column) in row.iter_mut().zip(a.chunks_exact(m)) {
                    *x = column[j].scale(power);
                }
            }
            let turned = Factors { u: &mut *vt, vt: &mut *u, by_columns: false };
            decomposition.decompose(transposed, s, vectors.then_some(turned), threads, arch)
        };
        if turned && vectors {
            // J·A·J = U·S·Vᴴ is A = (J·U)·S·(Vᴴ·J).
            u.chunks_exact_mut(n).for_each(<[T]>::reverse);
            vt.reverse();
            vt.chunks_exact_mut(n).for_each(<[T]>::reverse);
        }
        if vectors {
            let pairs = (&decomposition.part, s.len());
            turns.singular(leading, (u, m), (vt, n), pairs, threads);
        }
        s.iter_mut().for_each(|s| *s = *s / power);
        // No more elements than k − 1, which is an i32.
        outcome.map_or_else(|count| i32::try_from(count).unwrap_or(i32::MAX), |()| 0)
    }
}
