//! Eigenvalues and eigenvectors of a general matrix: A·x = w·x and uᴴ·A = w·uᴴ.
//!
//! A vector has 2-norm one and the phase that `phase` gives it, with which that of a real eigenvalue of a real matrix is
//! real. A conjugate pair of a real matrix is adjacent, with the eigenvalue of positive imaginary part first, and has
//! conjugate vectors.

mod eigenvectors;
pub(crate) mod route;
pub(crate) mod row_major;
mod shifted;
pub(crate) mod single;

use lapax_core::{
    Items, ItemsMut, Scalar as _, Serial, for_each, for_each_large, for_each_part, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;

use crate::lanes::schur;
use crate::matrix::layout::Layout;
use crate::parallel::groups::for_each_group;
use crate::schur::single::{cost, lanes_cost};
use crate::schur::values::Parts;
use crate::simd::arch::Arch;
use crate::simd::elementary;
use crate::{Error, Scalar, Threads, Vectors};
use route::{Route, route};
use shifted::Which;
use single::{Double, Scratch, columns, decompose};

pub use single::Eigen;

/// The eigenvalues of each n × n matrix of a batch, and its left and right eigenvectors.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[per_scalar]
pub fn geev<T: Scalar>(
    left: Vectors,
    right: Vectors,
    batch: usize,
    n: usize,
    a: &[T],
    results: Eigen<'_, T>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (operands, imaginary) = operands([left, right], batch, n, a, results)?;
    let arch = Arch::new();
    let wanted = [left, right].map(|vectors| vectors == Vectors::Wanted);
    let any = wanted.contains(&true);
    match route(Layout::Columns, batch, n) {
        Route::OrderOne | Route::Lanes => {
            by_lanes(wanted, Layout::Columns, batch, n, imaginary, operands, threads);
        }
        Route::Blocked => {
            let (scratch, cost) = (|| Scratch::new(n, any), cost::<T>(n));
            for_each(
                batch,
                operands,
                cost,
                threads,
                scratch,
                |scratch, (a, w, wi, vl, vr, info)| {
                    let [left, right] = wanted;
                    let vectors = [(Which::Left, left, vl), (Which::Right, right, vr)];
                    info[0] = decompose(a, [w, wi], vectors, scratch, &Serial, arch);
                },
            );
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(a, w, wi, vl, vr, info), threads| {
                let [left, right] = wanted;
                let vectors = [(Which::Left, left, vl), (Which::Right, right, vr)];
                let scratch = &mut Scratch::new(n, any);
                info[0] = decompose(a, [w, wi], vectors, scratch, threads, arch);
            });
        }
    }
    Ok(())
}

/// The operands of [`geev`], and how many imaginary parts a matrix's eigenvalues have of their own.
pub(crate) fn operands<'a, T: Scalar>(
    [left, right]: [Vectors; 2],
    batch: usize,
    n: usize,
    a: &'a [T],
    results: Eigen<'a, T>,
) -> Result<(schur::eig::Operands<'a, T>, usize), Error> {
    index_fits_i32("n", n)?;
    let (w, wi, imaginary) = results.w.parts(n);
    let (vl, vr) = (results.left, results.right);
    let [left_columns, right_columns] = [columns(left, vl, n), columns(right, vr, n)];
    let operands = (
        Items::new("a", batch, &[n, n], a)?,
        ItemsMut::new("w", batch, &[n], w)?,
        ItemsMut::new("wi", batch, &[imaginary], wi)?,
        ItemsMut::new("vl", batch, &[n, left_columns], vl)?,
        ItemsMut::new("vr", batch, &[n, right_columns], vr)?,
        ItemsMut::new("info", batch, &[], results.info)?,
    );
    Ok((operands, imaginary))
}

/// The eigenvalues and right eigenvectors of each row-major n × n matrix of a batch.
///
/// `v` holds the vectors as columns, by rows. All results are NaN where the matrix is not finite, or did
/// not converge.
///
/// # Errors
/// As [`geev`].
#[per_scalar]
pub fn eig<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    v: &mut [T::Complex],
    threads: &dyn Threads,
) -> Result<(), Error> {
    by_rows(batch, n, a, w, Some(v), threads)
}

/// The eigenvalues of each row-major n × n matrix of a batch; NaN where it is not finite, or they did not
/// converge.
///
/// # Errors
/// As [`geev`].
#[per_scalar]
pub fn eigvals<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    threads: &dyn Threads,
) -> Result<(), Error> {
    by_rows(batch, n, a, w, None, threads)
}

/// Eigenvalues of row-major matrices, and right eigenvectors where there is a `v`.
fn by_rows<T: Scalar>(
    batch: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Complex],
    v: Option<&mut [T::Complex]>,
    threads: &dyn Threads,
) -> Result<(), Error> {
    let route = route(Layout::Rows, batch, n);
    if let Route::Blocked | Route::Parallel = route {
        return row_major::eig(geev, batch, n, a, w, v, threads);
    }
    let job = if v.is_some() { Vectors::Wanted } else { Vectors::None };
    let (a, w, v) = row_major::operands(batch, n, a, w, v)?;
    if route == Route::OrderOne {
        for_each_part(batch, 1, (a, w, v), elementary::OF_ORDER_ONE, threads, |(a, w, v), _| {
            let v = v.into_data();
            for (i, (w, a)) in w.into_data().iter_mut().zip(a.data()).enumerate() {
                let complex = T::Complex::from_parts(a.re(), a.im());
                let (value, vector) = elementary::of_order_one(complex);
                *w = value;
                v.get_mut(i).into_iter().for_each(|v| *v = vector);
            }
        });
        return Ok(());
    }
    let (w, right) = (w.into_data(), v.into_data());
    let (mut parts, mut info) = (Parts::<T>::new(w.len()), vec![0; batch]);
    let results = Eigen { w: parts.eigenvalues(), left: &mut [], right, info: &mut info };
    let (operands, imaginary) = operands([Vectors::None, job], batch, n, a.data(), results)?;
    by_lanes([false, job == Vectors::Wanted], Layout::Rows, batch, n, imaginary, operands, threads);
    parts.write(w);
    Ok(())
}

/// [`geev`] and [`eig`] in lanes, left and right eigenvectors where they are wanted.
fn by_lanes<T: Scalar>(
    wanted: [bool; 2],
    order: Layout,
    batch: usize,
    n: usize,
    imaginary: usize,
    operands: schur::eig::Operands<'_, T>,
    threads: &dyn Threads,
) {
    let (vectors, arch) = (wanted.contains(&true), Arch::new());
    let finish = || Double::<T>::new(n, imaginary, wanted, order, arch);
    let kernel = schur::eig::Decompose { n, vectors, order, finish };
    for_each_group::<T::Double, _>(batch, operands, lanes_cost(n), threads, &kernel);
}
