//! The singular value decomposition A = U·diag(s)·Vᴴ. See [`crate::svd`].

use std::ops::Range;

use lapax_core::{ItemsInOut, index_fits_i32};

use super::integers::Int;
use super::routines::{Decomposed, Routines};
use super::workspace::{Lengths, Work};
use super::{checked, each, finite, in_place};
use crate::matrix::phase::{Leading, Turns};
use crate::svd::single::Svd;
use crate::svd::{factors, row_major};
use crate::{Error, InOut, Serial, SingularVectors, Threads};

/// [`crate::svd::gesdd`] by LAPACK's xGESDD.
///
/// # Errors
/// As there, and where a dimension or the workspace, of which there are 4·min(m, n)² numbers for
/// vectors, exceeds the library's integers.
pub fn gesdd<T: Routines>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let own = crate::svd::gesdd;
    let method = Method { name: "gesdd", leading: Leading::Left, library: T::gesdd, own };
    decompose_all(method, job, batch, (m, n), a, results, threads)
}

/// [`crate::svd::gesdd_of_transposes`] in the same way.
fn gesdd_of_transposes<T: Routines>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let own = crate::svd::gesdd_of_transposes;
    let method = Method { name: "gesdd", leading: Leading::Right, library: T::gesdd, own };
    decompose_all(method, job, batch, (m, n), a, results, threads)
}

/// [`crate::svd::gesvd`] by LAPACK's xGESVD.
///
/// # Errors
/// As there, and where a dimension or the workspace exceeds the library's integers.
pub fn gesvd<T: Routines>(
    job: SingularVectors,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let own = crate::svd::gesvd;
    let method = Method { name: "gesvd", leading: Leading::Left, library: T::gesvd, own };
    decompose_all(method, job, batch, (m, n), a, results, threads)
}

/// [`crate::svd::svd`] by [`gesdd`].
///
/// # Errors
/// As [`gesdd`].
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors")]
pub fn svd<T: Routines>(
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
    row_major::svd(gesdd_of_transposes, job, batch, (m, n), a, s, u, vt, threads)
}

type Library<T> =
    fn(SingularVectors, Int, Int, Decomposed<'_, T>, &mut Work<T>) -> Result<i32, Error>;
type Own<T> = fn(
    SingularVectors,
    usize,
    usize,
    usize,
    InOut<'_, T>,
    Svd<'_, T>,
    &dyn Threads,
) -> Result<(), Error>;

/// LAPACK's routine, and lapax's own.
struct Method<T: Routines> {
    name: &'static str,
    leading: Leading,
    library: Library<T>,
    own: Own<T>,
}

fn decompose_all<T: Routines>(
    method: Method<T>,
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: InOut<'_, T>,
    results: Svd<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    index_fits_i32("m", m)?;
    index_fits_i32("n", n)?;
    let k = m.min(n);
    if k == 0 {
        return (method.own)(job, batch, m, n, a, results, threads);
    }
    let (u_cols, vt_rows) = job.sides(m, n);
    let a = ItemsInOut::new("a", batch, &[m, n], a)?;
    let (s, u, vt, info) = factors(job, batch, (m, n), results)?;
    let operands = (a, s, u, vt, info);
    let (rows, columns) = (Int::new("m", m)?, Int::new("n", n)?);
    let lengths = Lengths::ask::<T>(method.name, |work| {
        let nothing = Decomposed { a: &mut [], s: &mut [], u: &mut [], vt: &mut [] };
        (method.library)(job, rows, columns, nothing, work)
    })?;
    let products = m.saturating_mul(n).saturating_mul(k).saturating_mul(10);
    let scratch = || (lengths.allocate::<T>(), vec![T::ZERO; m * n], Turns::new(vt_rows));
    each::<T, _, _>(batch, operands, products, threads, scratch, |scratch, (a, s, u, vt, info)| {
        let (work, copy, turns) = scratch;
        if finite(&*a) {
            copy.copy_from_slice(a);
            let of = Decomposed { a, s, u: &mut *u, vt: &mut *vt };
            info[0] = checked((method.library)(job, rows, columns, of, work));
            if info[0] == 0 {
                let (u, vt, pairs) = ((u, m), (vt, n), (&(0..k.min(vt_rows)), k.min(u_cols)));
                turns.singular(method.leading, u, vt, pairs, None);
                return;
            }
            a.copy_from_slice(copy);
        }
        let results = Svd { s, u, vt, info };
        checked((method.own)(job, 1, m, n, in_place(a), results, &Serial));
    });
    Ok(())
}

/// [`crate::svd::svd_subset`] by [`gesdd`].
///
/// # Errors
/// As there, and as [`gesdd`].
#[allow(clippy::too_many_arguments, reason = "a matrix and its factors, and the part")]
pub fn svd_subset<T: Routines>(
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
    row_major::svd_subset(gesdd_of_transposes, batch, (m, n), part, a, s, u, vt, threads)
}
