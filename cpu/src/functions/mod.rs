//! Functions of matrices, exp(A) = Σ Aᵏ/k! by scaling and squaring, and the equation that others lead to.
//!
//! exp(A) = r(2⁻ˢA)^(2ˢ) with a diagonal Padé approximant r, its degree and s chosen for each matrix (Al-Mohy and Higham,
//! SIAM J. Matrix Anal. Appl. 31, 2009). Matrices lie by rows; a function of the transpose is the transpose of the
//! function, so that nothing is transposed.

mod elementwise;
mod exponential;
mod norms;
mod parlett;
pub(crate) mod route;
mod square_root;
mod sylvester;

use faer::{MatMut, MatRef};
use lapax_core::{Items, ItemsMut, for_each, for_each_large};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::parallel::cost::nanoseconds;
use crate::parallel::first_error::Outcome;
use crate::parallel::groups::for_each_group;
use crate::simd::kind::Kind;
use crate::{Error, Scalar, Serial, Threads};
use exponential::{SCRATCH, exponential};
use route::{
    Route, RouteOfTriangles, products, route, route_of_parlett, route_of_triangles,
    sylvester_products,
};
use sylvester::has_blocks;

/// exp(A) of each n × n matrix of a batch, by rows.
///
/// A matrix that is not finite gives NaN. Triangular ones have the exact exponentials of their diagonals, and of those
/// beside them.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn expm<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let operands = matrices(batch, n, a, x)?;
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let outcome = Outcome::default();
    let time = nanoseconds::<T>(products(n));
    let scratch = || vec![T::ZERO; SCRATCH * n * n];
    match route(Kind::of::<T>(), batch, n) {
        Route::Lanes => {
            let kernel = lanes::exponential::Exponential { n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        Route::Single => {
            for_each(batch, operands, time, threads, scratch, |scratch, (a, x)| {
                outcome.take(exponential(n, a, x, scratch, &Serial));
            });
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, x), threads| {
                outcome.take(exponential(n, a, x, &mut scratch(), threads));
            });
        }
    }
    outcome.into_result()
}

/// Y of R·Y ± Y·S = F for each equation of a batch, R and S upper triangular.
///
/// `r` is m × m, `s` n × n, `f` and `y` are m × n; all lie by rows. Real R and S may have blocks of order 2 on their
/// diagonals; else what is below these is not read. Y is infinite or NaN where a number on R's diagonal and one on ∓S's
/// are the same.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[allow(clippy::too_many_arguments, reason = "the operands of the routine, and its sizes")]
#[per_scalar]
pub fn triangular_sylvester<T: Scalar>(
    minus: bool,
    batch: usize,
    (m, n): (usize, usize),
    r: &[T],
    s: &[T],
    f: &[T],
    y: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if batch == 0 || m == 0 || n == 0 {
        return equations(batch, (m, n), (r, s, f), y).map(|_| ());
    }
    let time = nanoseconds::<T>(sylvester_products(m, n));
    let one = |(r, s, f, y): (&[T], &[T], &[T], &mut [T])| {
        y.copy_from_slice(f);
        let r = MatRef::from_row_major_slice(r, m, m);
        let s = MatRef::from_row_major_slice(s, n, n);
        let sign = if minus { -T::ONE } else { T::ONE };
        sylvester::solve(sign, r, s, MatMut::from_row_major_slice_mut(y, m, n));
    };
    match route_of_triangles(batch, m, n) {
        RouteOfTriangles::Lanes => {
            let kernel = lanes::sylvester::Sylvester { minus, m, n };
            for_each_group::<T, _>(
                batch,
                equations(batch, (m, n), (r, s, f), &mut *y)?,
                time,
                threads,
                &kernel,
            );
            for_each(
                batch,
                equations(batch, (m, n), (r, s, f), y)?,
                LOOK,
                threads,
                || (),
                |(), equation| {
                    if has_blocks(m, equation.0) || has_blocks(n, equation.1) {
                        one(equation);
                    }
                },
            );
        }
        RouteOfTriangles::Single => {
            for_each(
                batch,
                equations(batch, (m, n), (r, s, f), y)?,
                time,
                threads,
                || (),
                |(), equation| one(equation),
            );
        }
    }
    Ok(())
}

/// X with X² = A for each upper triangular n × n matrix of a batch, by rows, with eigenvalues in the right half plane.
///
/// A real A may have blocks of order 2 on its diagonal; else what is below it is not read, and zero in X. A negative
/// number on a real diagonal gives NaN, on a complex one a root with positive imaginary part. Where two numbers on the
/// diagonal are zero, what is between them is zero if that is a root, and infinite or NaN if there is none.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar]
pub fn triangular_sqrtm<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    if batch == 0 || n == 0 {
        return matrices(batch, n, a, x).map(|_| ());
    }
    let time = nanoseconds::<T>(sylvester_products(n, n) / 3);
    let one = |(a, x): (&[T], &mut [T])| {
        x.copy_from_slice(a);
        for (i, row) in x.chunks_exact_mut(n).enumerate() {
            let zeros = if T::IS_COMPLEX { i } else { i.saturating_sub(1) };
            row[..zeros].fill(T::ZERO);
        }
        square_root::root(MatMut::from_row_major_slice_mut(x, n, n));
    };
    match route_of_triangles(batch, n, n) {
        RouteOfTriangles::Lanes => {
            let kernel = lanes::square_root::SquareRoot { n };
            for_each_group::<T, _>(batch, matrices(batch, n, a, &mut *x)?, time, threads, &kernel);
            for_each(
                batch,
                matrices(batch, n, a, x)?,
                LOOK,
                threads,
                || (),
                |(), (a, x)| {
                    if has_blocks(n, a) {
                        one((a, x));
                    }
                },
            );
        }
        RouteOfTriangles::Single => {
            for_each(
                batch,
                matrices(batch, n, a, x)?,
                time,
                threads,
                || (),
                |(), matrix| one(matrix),
            );
        }
    }
    Ok(())
}

/// X of Parlett's recurrence for each upper triangular n × n matrix T of a batch: f(T) of the divided differences
/// g_ij = f[t_ii, t_jj] above the diagonal and g_ii = f(t_ii), all by rows.
///
/// x_ii = g_ii, and x_ij = t_ij·g_ij + (Σ x_ik·t_kj − t_ik·x_kj)/(t_ii − t_jj) over i < k < j, the quotient zero where
/// t_ii = t_jj. What is below the diagonals of T and G is not read, and zero in X.
///
/// # Errors
/// Where a slice has another length than the dimensions say.
#[per_scalar(complex)]
pub fn triangular_parlett<T: Scalar>(
    batch: usize,
    n: usize,
    t: &[T],
    g: &[T],
    x: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (t, g) = (Items::new("t", batch, &[n, n], t)?, Items::new("g", batch, &[n, n], g)?);
    let operands = (t, g, ItemsMut::new("x", batch, &[n, n], x)?);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let time = nanoseconds::<T>(sylvester_products(n, n) / 3);
    match route_of_parlett(batch, n) {
        RouteOfTriangles::Lanes => {
            let kernel = lanes::parlett::Parlett { n };
            for_each_group::<T, _>(batch, operands, time, threads, &kernel);
        }
        RouteOfTriangles::Single => {
            let scratch = || vec![T::ZERO; parlett::scratch(n)];
            for_each(batch, operands, time, threads, scratch, |scratch, (t, g, x)| {
                parlett::function(n, t, g, x, scratch);
            });
        }
    }
    Ok(())
}

/// A matrix and its function.
fn matrices<'a, T>(
    batch: usize,
    n: usize,
    of: &'a [T],
    to: &'a mut [T],
) -> Result<(Items<'a, T>, ItemsMut<'a, T>), Error> {
    Ok((Items::new("a", batch, &[n, n], of)?, ItemsMut::new("x", batch, &[n, n], to)?))
}

/// R, S, F and Y.
fn equations<'a, T>(
    batch: usize,
    (m, n): (usize, usize),
    (r, s, f): (&'a [T], &'a [T], &'a [T]),
    y: &'a mut [T],
) -> Result<lanes::sylvester::Operands<'a, T>, Error> {
    let (r, s) = (Items::new("r", batch, &[m, m], r)?, Items::new("s", batch, &[n, n], s)?);
    let (f, y) = (Items::new("f", batch, &[m, n], f)?, ItemsMut::new("y", batch, &[m, n], y)?);
    Ok((r, s, f, y))
}

/// Nanoseconds to see whether a small matrix has blocks of order 2.
const LOOK: usize = 10;
