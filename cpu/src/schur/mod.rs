//! Schur form: A = Z·T·Zᴴ, Z unitary, T upper triangular, or quasi-triangular for a real matrix.
//!
//! Quasi-triangular means 2 × 2 blocks for conjugate pairs of eigenvalues, in LAPACK's standard
//! form: equal diagonal elements, off-diagonal ones of opposite sign, so that the pair is the
//! diagonal element ± i·√|b|·√|c|.

mod apply;
pub(crate) mod balance;
pub(crate) mod bulge;
mod deflation;
mod francis;
pub(crate) mod multishift;
mod reorder;
pub(crate) mod route;
pub(crate) mod row_major;
pub(crate) mod single;
mod single_shift;
pub(crate) mod two_by_two;
pub(crate) mod values;

use lapax_core::{
    ItemsInOut, ItemsMut, Serial, for_each, for_each_large, for_each_part, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;

use crate::lanes;
use crate::lanes::schur::Operands;
use crate::matrix::layout::Layout;
use crate::parallel::groups::for_each_group;
use crate::simd::arch::Arch;
use crate::simd::elementary;
use crate::simd::kind::Kind;
use crate::{Error, InOut, Scalar, Threads, Vectors};
use route::{Route, route};
use single::{Double, Lanes, Scratch, cost, decompose, lanes_cost, turn};
use values::Parts;

pub use values::Eigenvalues;

/// The Schur form of each n × n matrix of a batch, T in place of A.
///
/// `z` holds Z, or zeros where vectors are not asked for. A conjugate pair of eigenvalues has the
/// one with positive imaginary part first. `info` holds one number per matrix: 0, or i > 0 where
/// only the eigenvalues after the i-th were found; its other results are then NaN, as they are,
/// with `info` 0, for a matrix with an element that is not finite. `sdim`, the number of
/// eigenvalues that were selected to come first, is zero.
///
/// # Errors
/// Where n exceeds `i32`, in which `info` counts, or a slice has another length than the
/// dimensions say.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's")]
#[per_scalar]
pub fn gees<T: Scalar>(
    vectors: Vectors,
    batch: usize,
    n: usize,
    a: InOut<'_, T>,
    z: &mut [T],
    w: Eigenvalues<'_, T>,
    sdim: &mut [i32],
    info: &mut [i32],
    threads: &dyn Threads,
) -> Result<(), Error> {
    let (operands, imaginary) = operands(batch, n, a, z, w, sdim, info)?;
    let arch = Arch::new();
    match route(Kind::of::<T>(), batch, n) {
        Route::OrderOne => {
            for_each(
                batch,
                operands,
                cost::<T>(n),
                threads,
                || (),
                |(), (t, z, w, wi, sdim, info)| {
                    let (value, vector) = elementary::of_order_one(t[0]);
                    let zero = if value.is_nan() { value } else { T::ZERO };
                    (t[0], w[0], sdim[0], info[0]) = (value, value, 0, 0);
                    z[0] = if vectors == Vectors::Wanted { vector } else { zero };
                    wi.fill(zero);
                },
            );
        }
        Route::Lanes => {
            by_lanes(vectors, Layout::Columns, batch, n, imaginary, operands, threads);
        }
        Route::Double => {
            for_each(
                batch,
                operands,
                cost::<T::Double>(n),
                threads,
                || Double::<T>::new(n, imaginary),
                |scratch, (t, z, w, wi, sdim, info)| {
                    (sdim[0], info[0]) = (0, scratch.decompose(vectors, [t, z, w, wi], arch));
                },
            );
        }
        Route::Blocked => {
            for_each(
                batch,
                operands,
                cost::<T>(n),
                threads,
                || Scratch::new(n),
                |scratch, (t, z, w, wi, sdim, info)| {
                    let results = [&mut *t, &mut *z, w, wi];
                    (sdim[0], info[0]) = (0, decompose(results, scratch, &Serial, arch));
                    turn(vectors, t, z, n);
                },
            );
        }
        Route::Parallel => {
            for_each_large(batch, operands, threads, |(t, z, w, wi, sdim, info), threads| {
                let (results, scratch) = ([&mut *t, &mut *z, w, wi], &mut Scratch::new(n));
                (sdim[0], info[0]) = (0, decompose(results, scratch, threads, arch));
                turn(vectors, t, z, n);
            });
        }
    }
    Ok(())
}

/// The operands of [`gees`], and how many imaginary parts a matrix's eigenvalues have of their own.
pub(crate) fn operands<'a, T: Scalar>(
    batch: usize,
    n: usize,
    a: InOut<'a, T>,
    z: &'a mut [T],
    w: Eigenvalues<'a, T>,
    sdim: &'a mut [i32],
    info: &'a mut [i32],
) -> Result<(Operands<'a, T>, usize), Error> {
    index_fits_i32("n", n)?;
    let (w, wi, imaginary) = w.parts(n);
    let operands = (
        ItemsInOut::new("a", batch, &[n, n], a)?,
        ItemsMut::new("z", batch, &[n, n], z)?,
        ItemsMut::new("w", batch, &[n], w)?,
        ItemsMut::new("wi", batch, &[imaginary], wi)?,
        ItemsMut::new("sdim", batch, &[], sdim)?,
        ItemsMut::new("info", batch, &[], info)?,
    );
    Ok((operands, imaginary))
}

/// The Schur form of each row-major n × n matrix of a batch, T in place of A, and Z by rows, as of [`gees`].
///
/// Both are NaN where the matrix is not finite, or did not converge.
///
/// # Errors
/// As [`gees`].
#[per_scalar]
pub fn schur<T: Scalar>(
    batch: usize,
    n: usize,
    t: InOut<'_, T>,
    z: &mut [T],
    threads: &dyn Threads,
) -> Result<(), Error> {
    match route(Kind::of::<T>(), batch, n) {
        Route::OrderOne => {
            let operands = row_major::operands(batch, n, t, z)?;
            for_each_part(batch, 1, operands, elementary::OF_ORDER_ONE, threads, |(t, z), _| {
                let InOut { src, dst } = t.into_in_out();
                for (i, (t, z)) in dst.iter_mut().zip(z.into_data()).enumerate() {
                    (*t, *z) = elementary::of_order_one(src.map_or(*t, |a| a[i]));
                }
            });
        }
        Route::Lanes => {
            let (t, z) = row_major::operands(batch, n, t, z)?;
            let mut parts = Parts::<T>::new(batch * n);
            let [sdim, info] = &mut [vec![0; batch], vec![0; batch]];
            let (t, z, w) = (t.into_in_out(), z.into_data(), parts.eigenvalues());
            let (operands, imaginary) = operands(batch, n, t, z, w, sdim, info)?;
            by_lanes(Vectors::Wanted, Layout::Rows, batch, n, imaginary, operands, threads);
        }
        Route::Double | Route::Blocked | Route::Parallel => {
            return row_major::schur(gees, batch, n, t, z, threads);
        }
    }
    Ok(())
}

/// [`gees`] and [`schur`] in lanes.
fn by_lanes<T: Scalar>(
    vectors: Vectors,
    order: Layout,
    batch: usize,
    n: usize,
    imaginary: usize,
    operands: Operands<'_, T>,
    threads: &dyn Threads,
) {
    let arch = Arch::new();
    let finish = || Lanes { double: Double::<T>::new(n, imaginary), vectors, order, arch };
    let kernel = lanes::schur::Decompose { n, order, finish };
    for_each_group::<T::Double, _>(batch, operands, lanes_cost(n), threads, &kernel);
}
