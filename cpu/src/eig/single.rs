//! Eigenvalues and eigenvectors of one matrix.

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Scalar as _, Serial};

use super::eigenvectors::{eigenvectors, width};
use super::shifted::Which;
use crate::lanes::schur::eig::{Finish, Form, Results};
use crate::matrix::layout::Layout;
use crate::matrix::phase;
use crate::matrix::transpose::transposed;
use crate::schur::balance::{Balance, Scaling, norm};
use crate::schur::single;
use crate::schur::single::{eigenvalues, schur_form};
use crate::schur::values::Eigenvalues;
use crate::simd::arch::Arch;
use crate::simd::range::all_finite;
use crate::simd::scalar::{Short, ShortRow, nan, narrow, widen, zeros};
use crate::{Scalar, Threads, Vectors};

/// The results of [`geev`](super::geev).
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

/// How many columns a result for vectors has.
pub(crate) fn columns<T>(job: Vectors, v: &[T], n: usize) -> usize {
    if job == Vectors::None && v.is_empty() { 0 } else { n }
}

/// Decomposes in double precision: what is single, and what lanes do.
pub(crate) struct Double<T: Scalar> {
    scratch: Scratch<T::Double>,
    a: Short<T::Double>,
    /// The eigenvalues.
    w: [ShortRow<T::Double>; 2],
    /// Left and right eigenvectors, and which are asked for.
    vectors: [Short<<T::Double as lapax_core::Scalar>::Complex>; 2],
    wanted: [bool; 2],
    /// Of the matrices and of the vectors that are asked for.
    order: Layout,
    arch: Arch,
}

impl<T: Scalar> Double<T> {
    /// For matrices of order n, whose eigenvalues have so many imaginary parts of their own.
    pub(crate) fn new(
        n: usize,
        imaginary: usize,
        wanted: [bool; 2],
        order: Layout,
        arch: Arch,
    ) -> Self {
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
            if self.order == Layout::Rows && !v.is_empty() {
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
        if self.order == Layout::Rows {
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
pub(crate) fn decompose<T: Scalar>(
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
pub(crate) struct Scratch<T: Scalar> {
    schur: single::Scratch<T>,
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
    pub(crate) fn new(n: usize, vectors: bool) -> Self {
        let square = || zeros(if vectors { n * n } else { 0 });
        let sizes = zeros(if vectors { n } else { 0 });
        Self {
            schur: single::Scratch::new(n),
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

/// The vectors of one diagonal block, whose parts are the columns of x, with norm one and the phase of the rule for
/// general matrices.
fn normalise<T: Scalar>(x: &[T], v: &mut [T::Complex], n: usize, width: usize) {
    let (re, im) = x.split_at(n);
    let (v, conjugate) = v.split_at_mut(n);
    let (size, single) = (norm(x.iter().copied()), width == 1 && !T::IS_COMPLEX);
    // What is real stays so, without a zero of either sign beside it.
    let size = if single && phase::is_negative(re) { -size } else { size };
    for (i, v) in v.iter_mut().enumerate() {
        let re = re[i].unscale(size);
        let im = if width == 1 { re.im() } else { im[i].re() / size };
        *v = T::Complex::from_parts(re.re(), im);
    }
    if !single {
        phase::general(v);
    }
    for (conjugate, v) in conjugate.iter_mut().zip(v) {
        *conjugate = v.conj();
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {

    use lapax_core::Serial;
    use num_complex::Complex;

    use super::{Scratch, decompose};
    use crate::eig::shifted::Which;

    use crate::schur::multishift::Patience;
    use crate::simd::arch::Arch;

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
