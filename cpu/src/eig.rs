//! Eigenvalues and eigenvectors of a general matrix: A·x = w·x and uᴴ·A = w·uᴴ.
//!
//! A vector has 2-norm one and the phase that `phase` gives it, with which that of a real eigenvalue of a real matrix is
//! real. A conjugate pair of a real matrix is adjacent, with the eigenvalue of positive imaginary part first, and has
//! conjugate vectors.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{
    Items, ItemsMut, Scalar as _, Serial, for_each, for_each_large, for_each_part, index_fits_i32,
};
use lapax_cpu_macros::per_scalar;

use crate::arch::Arch;
use crate::balance::{Balance, Scaling, norm};
use crate::eigenvectors::{Which, eigenvectors, width};
use crate::lanes::eig::{Finish, Form, Results};
use crate::lanes::{self, Order, for_each_group};
use crate::normal_range::all_finite;
use crate::phase;
use crate::row_major::{self, Parts};
use crate::scalar::{Short, ShortRow, nan, narrow, widen, zeros};
use crate::schur::{self, Eigenvalues, cost, eigenvalues, in_lanes, lanes_cost, schur_form};
use crate::tiled_hessenberg::TILED_ORDER;
use crate::transposition::transposed;
use crate::{Error, Scalar, Threads, Vectors};

/// The results of [`geev`].
#[derive(Debug)]
pub struct Eigen<'a, T: Scalar> {
    /// The eigenvalues.
    pub w: Eigenvalues<'a, T>,
    /// The left eigenvectors, in columns; where they are not asked for, zeros or no elements.
    pub left: &'a mut [T::Complex],
    /// The right eigenvectors, in columns; where they are not asked for, zeros or no elements.
    pub right: &'a mut [T::Complex],
    /// One number per matrix: 0, −4 for a matrix with an element that is not finite, or i > 0 where
    /// only the eigenvalues after the i-th were found. The other results are NaN unless it is 0.
    pub info: &'a mut [i32],
}

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
    let arch = Arch::new();
    let wanted = [left, right].map(|vectors| vectors == Vectors::Wanted);
    let any = wanted.contains(&true);
    let double = || Double::<T>::new(n, imaginary, wanted, Order::Column, arch);
    if n == 1 || in_lanes(batch, n) {
        let kernel =
            lanes::eig::Decompose { n, vectors: any, order: Order::Column, finish: double };
        for_each_group::<T::Double, _>(batch, operands, lanes_cost(n), threads, &kernel);
    } else if n >= TILED_ORDER {
        for_each_large(batch, operands, threads, |(a, w, wi, vl, vr, info), threads| {
            let [left, right] = wanted;
            let vectors = [(Which::Left, left, vl), (Which::Right, right, vr)];
            let scratch = &mut Scratch::new(n, any);
            info[0] = decompose(a, [w, wi], vectors, scratch, threads, arch);
        });
    } else {
        let scratch = || Scratch::new(n, any);
        let cost = cost::<T>(n);
        for_each(batch, operands, cost, threads, scratch, |scratch, (a, w, wi, vl, vr, info)| {
            let [left, right] = wanted;
            let vectors = [(Which::Left, left, vl), (Which::Right, right, vr)];
            info[0] = decompose(a, [w, wi], vectors, scratch, &Serial, arch);
        });
    }
    Ok(())
}

/// How many columns a result for vectors has.
pub(crate) fn columns<T>(job: Vectors, v: &[T], n: usize) -> usize {
    if job == Vectors::None && v.is_empty() { 0 } else { n }
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
    if n != 1 && !in_lanes(batch, n) {
        return row_major::eig(geev, batch, n, a, w, v, threads);
    }
    let vectors = v.is_some();
    let a = Items::new("a", batch, &[n, n], a)?;
    let w = ItemsMut::new("w", batch, &[n], w)?;
    let v = ItemsMut::new("v", batch, &[n, if vectors { n } else { 0 }], v.unwrap_or_default())?;
    if n == 1 {
        for_each_part(batch, 1, (a, w, v), row_major::OF_ORDER_ONE, threads, |(a, w, v), _| {
            let v = v.into_data();
            for (i, (w, a)) in w.into_data().iter_mut().zip(a.data()).enumerate() {
                let complex = T::Complex::from_parts(a.re(), a.im());
                let (value, vector) = row_major::of_order_one(complex);
                *w = value;
                v.get_mut(i).into_iter().for_each(|v| *v = vector);
            }
        });
        return Ok(());
    }
    let w = w.into_data();
    let (mut parts, mut info) = (Parts::<T>::new(w.len()), vec![0; batch]);
    let imaginary = if T::IS_COMPLEX { 0 } else { n };
    let operands = (
        a,
        ItemsMut::new("w", batch, &[n], &mut parts.first)?,
        ItemsMut::new("wi", batch, &[imaginary], &mut parts.imaginary)?,
        ItemsMut::new("vl", batch, &[n, 0], &mut [])?,
        v,
        ItemsMut::new("info", batch, &[], &mut info)?,
    );
    let order = Order::Row;
    let finish = || Double::<T>::new(n, imaginary, [false, vectors], order, Arch::new());
    let kernel = lanes::eig::Decompose { n, vectors, order, finish };
    for_each_group::<T::Double, _>(batch, operands, lanes_cost(n), threads, &kernel);
    parts.write(w);
    Ok(())
}

/// Decomposes in double precision: what is single, and what lanes do.
struct Double<T: Scalar> {
    scratch: Scratch<T::Double>,
    a: Short<T::Double>,
    /// The eigenvalues.
    w: [ShortRow<T::Double>; 2],
    /// Left and right eigenvectors, and which are asked for.
    vectors: [Short<<T::Double as lapax_core::Scalar>::Complex>; 2],
    wanted: [bool; 2],
    /// Of the matrices and of the vectors that are asked for.
    order: Order,
    arch: Arch,
}

impl<T: Scalar> Double<T> {
    /// For matrices of order n, whose eigenvalues have so many imaginary parts of their own.
    fn new(n: usize, imaginary: usize, wanted: [bool; 2], order: Order, arch: Arch) -> Self {
        Self {
            scratch: Scratch::new(n, wanted.contains(&true)),
            a: zeros(n * n),
            w: [n, imaginary].map(zeros),
            vectors: wanted.map(|wanted| zeros(if wanted { n * n } else { 0 })),
            wanted,
            order,
            arch,
        }
    }

    /// Writes the results in the precision that is asked for.
    fn round(&self, (w, vectors): Results<'_, T>) {
        for (w, double) in w.into_iter().zip(&self.w) {
            narrow(w, double);
        }
        for (v, double) in vectors.into_iter().zip(&self.vectors) {
            v[double.len()..].fill(T::Complex::ZERO);
            narrow(v, double);
            if self.order == Order::Row && !v.is_empty() {
                transposed(v, self.w[0].len());
            }
        }
    }
}

impl<T: Scalar> Finish<T, T::Double> for Double<T> {
    fn finish(&mut self, form: Form<'_, T::Double>, results: Results<'_, T>) {
        let Form { t, z, scale, factor } = form;
        let n = scale.len();
        let [w, wi] = self.w.each_mut().map(|w| &mut w[..]);
        eigenvalues(t, n, w, wi);
        for w in [w, wi].into_iter().flatten() {
            *w = w.unscale(factor);
        }
        self.scratch.schur.balance.set_scale(scale);
        let [left, right] = &mut self.vectors;
        let Scratch { schur, substitution, .. } = &mut self.scratch;
        for (which, wanted, v) in
            [(Which::Left, self.wanted[0], left), (Which::Right, self.wanted[1], right)]
        {
            if wanted {
                substitution.vectors(which, (t, z), &schur.balance, v, self.arch);
            }
        }
        self.round(results);
    }

    fn single(&mut self, a: &[T], results: Results<'_, T>) -> i32 {
        widen(&mut self.a, a);
        if self.order == Order::Row {
            transposed(&mut self.a, self.w[0].len());
        }
        let [left, right] = &mut self.vectors;
        let vectors =
            [(Which::Left, self.wanted[0], &mut left[..]), (Which::Right, self.wanted[1], right)];
        let w = self.w.each_mut().map(|w| &mut w[..]);
        let info = decompose(&self.a, w, vectors, &mut self.scratch, &Serial, self.arch);
        self.round(results);
        info
    }
}

/// Decomposes one matrix; returns its `info`.
fn decompose<T: Scalar>(
    a: &[T],
    [w, wi]: [&mut [T]; 2],
    mut vectors: [(Which, bool, &mut [T::Complex]); 2],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> i32 {
    /// LAPACK's number of the argument A, as jaxlib reports it.
    const NOT_FINITE: i32 = -4;
    let failure = if all_finite(a) {
        let stop = factor(a, w.len(), w, wi, &mut vectors, scratch, threads, arch).err();
        stop.map(|stop| i32::try_from(stop).unwrap_or(i32::MAX))
    } else {
        Some(NOT_FINITE)
    };
    let Some(failure) = failure else { return 0 };
    w.fill(nan());
    wi.fill(nan());
    for (_, wanted, v) in vectors {
        v.fill(if wanted { nan() } else { T::Complex::ZERO });
    }
    failure
}

/// What one matrix after another reuses.
struct Scratch<T: Scalar> {
    schur: schur::Scratch<T>,
    /// The matrix, and T.
    t: Short<T>,
    z: Short<T>,
    substitution: Substitution<T>,
}

/// What vectors are computed in: the eigenvectors of T, and their products with Z.
struct Substitution<T: Scalar> {
    x: Short<T>,
    product: Short<T>,
    sizes: ShortRow<T::Real>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n, with vectors or without.
    fn new(n: usize, vectors: bool) -> Self {
        let square = || zeros(if vectors { n * n } else { 0 });
        let sizes = zeros(if vectors { n } else { 0 });
        Self {
            schur: schur::Scratch::new(n),
            t: zeros(n * n),
            z: square(),
            substitution: Substitution { x: square(), product: square(), sizes },
        }
    }
}

/// Everything for one finite matrix. `Err(i)` where only the eigenvalues after the i-th were found.
#[allow(clippy::too_many_arguments, reason = "a matrix, its results and what they take")]
fn factor<T: Scalar>(
    a: &[T],
    n: usize,
    w: &mut [T],
    wi: &mut [T],
    vectors: &mut [(Which, bool, &mut [T::Complex]); 2],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    if n == 0 {
        return Ok(());
    }
    let Scratch { schur, t, z, substitution } = scratch;
    let any = vectors.iter().any(|(_, wanted, _)| *wanted);
    t.copy_from_slice(a);
    let scaling = Scaling::apply(t);
    schur.balance.permute(t, n);
    schur.balance.scale(t, n);
    let q = if any { Some(&mut z[..]) } else { None };
    schur_form(t, n, q, any, schur, threads, arch)?;
    eigenvalues(t, n, w, wi);
    scaling.undo(w);
    scaling.undo(wi);
    for (which, wanted, v) in vectors {
        if *wanted {
            substitution.vectors(*which, (t, z), &schur.balance, v, arch);
        } else {
            v.fill(T::Complex::ZERO);
        }
    }
    Ok(())
}

impl<T: Scalar> Substitution<T> {
    /// The vectors of a matrix from the Schur form (T, Z) of the balanced one.
    fn vectors(
        &mut self,
        which: Which,
        (t, z): (&[T], &[T]),
        balance: &Balance<T>,
        v: &mut [T::Complex],
        arch: Arch,
    ) {
        let Self { x, product, sizes } = self;
        let n = sizes.len();
        eigenvectors(which, t, n, x, sizes, arch);
        multiply(which, z, x, product, n);
        match which {
            Which::Left => balance.undo_left(product, n),
            Which::Right => balance.undo_right(product, n),
        }
        let mut j = 0;
        while j < n {
            let width = width(t, n, j);
            let columns = j * n..(j + width) * n;
            normalise(&product[columns.clone()], &mut v[columns], n, width);
            j += width;
        }
    }
}

/// Z·X, where the X of right eigenvectors has nothing below its diagonal blocks, and that of left
/// ones nothing above.
fn multiply<T: Scalar>(which: Which, z: &[T], x: &[T], product: &mut [T], n: usize) {
    const COLUMNS: usize = 64;
    let z = MatRef::from_column_major_slice(z, n, n);
    let x = MatRef::from_column_major_slice(x, n, n);
    let mut product = MatMut::from_column_major_slice_mut(product, n, n);
    for first in (0..n).step_by(COLUMNS) {
        let width = COLUMNS.min(n - first);
        // A diagonal block can begin one column earlier, or end one later.
        let rows = match which {
            Which::Right => 0..(first + width + 1).min(n),
            Which::Left => first.saturating_sub(1)..n,
        };
        let z = z.subcols(rows.start, rows.len());
        let x = x.submatrix(rows.start, first, rows.len(), width);
        let columns = product.as_mut().subcols_mut(first, width);
        T::product(columns, Accum::Replace, (z, Conj::No), (x, Conj::No), T::ONE);
    }
}

/// The vectors of one diagonal block, whose parts are the columns of x, with norm one and the phase of the rule.
fn normalise<T: Scalar>(x: &[T], v: &mut [T::Complex], n: usize, width: usize) {
    let (re, im) = x.split_at(n);
    let (v, conjugate) = v.split_at_mut(n);
    let (size, single) = (norm(x.iter().copied()), width == 1 && !T::IS_COMPLEX);
    // What is real stays so, without a zero of either sign beside it.
    let size = if single && phase::is_negative(re, size) { -size } else { size };
    for (i, v) in v.iter_mut().enumerate() {
        let re = re[i].unscale(size);
        let im = if width == 1 { re.im() } else { im[i].re() / size };
        *v = T::Complex::from_parts(re.re(), im);
    }
    if !single {
        phase::columns(v, n, None);
    }
    for (conjugate, v) in conjugate.iter_mut().zip(v) {
        *conjugate = v.conj();
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::multishift::Patience;

    trials!(what_does_not_converge_is_reported);

    fn what_does_not_converge_is_reported() {
        let n = 9;
        // Cyclic shifts.
        let a: Vec<f64> =
            (0..n * n).map(|k| if k % n == (k / n + 1) % n { 1.0 } else { 0.0 }).collect();
        let found = |patience| {
            let (mut w, mut wi) = (vec![0.0; n], vec![0.0; n]);
            let mut v = [vec![Complex::ZERO; n * n], vec![Complex::ZERO; n * n]];
            let [left, right] = &mut v;
            let vectors = [(Which::Left, false, &mut left[..]), (Which::Right, true, right)];
            let mut scratch = Scratch::new(n, true);
            scratch.schur.multishift.patience = patience;
            let info =
                decompose(&a, [&mut w, &mut wi], vectors, &mut scratch, &Serial, Arch::new());
            (info, w, v)
        };
        let (info, w, [left, right]) = found(Patience { many: 0, two: 0 });
        assert_eq!(usize::try_from(info), Ok(n));
        assert!(w.iter().all(|w| w.is_nan()) && right.iter().all(|v| v.re.is_nan()));
        assert!(left.iter().all(|&v| v == Complex::ZERO), "not asked for");
        let (info, w, _) = found(Patience { many: 30, two: 30 });
        assert!(info == 0 && w.iter().all(|w| w.is_finite()));
    }
}
