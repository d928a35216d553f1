//! The singular value decomposition of one matrix that has at least as many rows as columns.
//!
//! A much taller one is first reduced to its triangular factor, A = Q·R (Chan, "An improved
//! algorithm for computing the singular value decomposition", ACM Trans. Math. Softw. 8, 1982).

use std::ops::Range;

use faer::{MatMut, MatRef};
use lapax_core::{Real, Scalar as _, Serial};

use super::divide;
use super::qr_iteration::{BidiagonalQr, Pair, STEPS, block_before, refine};
use super::reduction::apply::{BLOCK, multiply_by_p, multiply_by_q};
use super::reduction::blocked::bidiagonalize;
use super::reduction::parallel::bidiagonalize_parallel;
use super::reduction::{Bidiagonal, blocked, parallel};
use super::route::{DIVIDED, Method, by_band, divided};
use crate::blas::householder::BlockScratch;
use crate::blas::rotations::set_identity;
use crate::divide::blocks::{largest, scale};
use crate::divide::merge;
use crate::divide::verify::is_svd;
use crate::lanes::svd::by_bidiagonal::{by_qr, scratch_of_one, values_of_one};
use crate::matrix::panel::Panel;
use crate::matrix::transpose::transposed;
use crate::qr::parallel::factor_parallel;
use crate::qr::route::PARALLEL;
use crate::simd::arch::Arch;
use crate::simd::range::power_near_reciprocal;
use crate::{Scalar, SingularVectors, Threads};
use crate::{qr, two_stage};

/// The results of a decomposition, one of each per matrix.
#[derive(Debug)]
pub struct Svd<'a, T: Scalar> {
    /// The min(m, n) singular values, descending.
    pub s: &'a mut [T::Real],
    /// U, m × m for [`SingularVectors::All`] and m × min(m, n) for [`SingularVectors::Thin`].
    pub u: &'a mut [T],
    /// Vᴴ, n × n for [`SingularVectors::All`] and min(m, n) × n for [`SingularVectors::Thin`].
    pub vt: &'a mut [T],
    /// 0; −4 (of `gesdd`) or −5 (of `gesvd`) where the matrix is not finite, and all results are NaN
    /// then; or i > 0 where i elements of an intermediate bidiagonal matrix did not converge.
    pub info: &'a mut [i32],
}

/// Where the factors of A = U·diag(s)·Vᴴ go.
pub(crate) struct Factors<'a, T> {
    /// U, of which there are all m columns, or n.
    pub(crate) u: &'a mut [T],
    /// Vᴴ, n × n.
    pub(crate) vt: &'a mut [T],
    /// By columns; otherwise by rows, and A is not square.
    pub(crate) by_columns: bool,
}

impl<'a, T> Factors<'a, T> {
    fn matrices(self, m: usize, n: usize) -> [MatMut<'a, T>; 2] {
        let Self { u, vt, by_columns } = self;
        let cols = u.len() / m;
        if by_columns {
            let u = MatMut::from_column_major_slice_mut(u, m, cols);
            [u, MatMut::from_column_major_slice_mut(vt, n, n)]
        } else {
            let u = MatMut::from_row_major_slice_mut(u, m, cols);
            [u, MatMut::from_row_major_slice_mut(vt, n, n)]
        }
    }
}

/// What decompositions of matrices of one shape reuse.
pub(crate) struct Scratch<T: Scalar> {
    /// Which of the n singular vectors are wanted, in the order of the values; all where U has all columns.
    pub(crate) part: Range<usize>,
    triangle: Option<TriangleScratch<T>>,
    square: SquareScratch<T>,
    /// The left and right singular vectors of the bidiagonal matrix, unless they are real ones of a square matrix
    /// and lie in U and V.
    vectors: Option<[Vec<T::Real>; 2]>,
    /// For the products with Q and P.
    block: BlockScratch<T>,
}

/// What it takes to replace A by its triangular factor.
struct TriangleScratch<T> {
    tau: Vec<T>,
    r: Vec<T>,
    factor: BlockScratch<T>,
}

/// What it takes to decompose A, or its triangular factor.
struct SquareScratch<T: Scalar> {
    e: Vec<T::Real>,
    tau_q: Vec<T>,
    tau_p: Vec<T>,
    reduction: Reduction<T>,
    rotations: Vec<Pair<T::Real>>,
    /// A copy of the bidiagonal matrix, where vectors are wanted.
    copy: [Vec<T::Real>; 2],
    /// Steps per singular value after which an iteration is given up.
    steps: usize,
    /// For the singular values alone, by transforms that do without rotations.
    values: Option<Vec<f64>>,
    divide: Option<DivideScratch<T::Real>>,
}

/// How the bidiagonal matrix is come by.
#[allow(clippy::large_enum_variant, reason = "a thread has one")]
enum Reduction<T> {
    /// Column by column, with the right reflectors, n × n.
    Columns { scratch: blocked::Scratch<T>, right: Vec<T> },
    /// By a band, which leaves no reflectors.
    Band(two_stage::General<T>),
}

struct DivideScratch<R> {
    /// A copy of the diagonal, and sums.
    copy: [Vec<R>; 2],
    merge: merge::Scratch<R>,
}

impl<T: Scalar<Real: Scalar>> Scratch<T> {
    /// For m × n matrices, m >= n.
    pub(crate) fn new(method: Method, job: SingularVectors, m: usize, n: usize) -> Self {
        let zeros = |length| vec![T::ZERO; length];
        let vectors = job != SingularVectors::None;
        let u_cols = if job == SingularVectors::All { m } else { n };
        let triangle = by_qr(m, n).then(|| TriangleScratch {
            tau: zeros(n),
            r: zeros(n * n),
            factor: qr::blocked::factor_scratch(m, n),
        });
        let block = if vectors {
            BlockScratch::new(m, BLOCK.min(n), u_cols)
        } else {
            BlockScratch::new(0, 0, 0)
        };
        // The rows that are left for the square part.
        let rows = if triangle.is_some() { n } else { m };
        let zero = T::Real::ZERO;
        let square = SquareScratch {
            e: vec![zero; n.saturating_sub(1)],
            tau_q: zeros(n),
            tau_p: zeros(n.saturating_sub(1)),
            reduction: if by_band(job, n) {
                Reduction::Band(two_stage::General::new(rows, n))
            } else {
                let scratch = blocked::Scratch::new(rows, n);
                Reduction::Columns { scratch, right: zeros(n * n) }
            },
            rotations: vec![Pair::none(); n],
            copy: if vectors {
                [vec![zero; n], vec![zero; n.saturating_sub(1)]]
            } else {
                [vec![], vec![]]
            },
            steps: STEPS,
            values: (!vectors).then(|| vec![0.0; scratch_of_one(n)]),
            divide: divided(method, job, n).then(|| DivideScratch {
                copy: [vec![zero; n], vec![zero; n]],
                merge: merge::Scratch::new(n, STEPS),
            }),
        };
        let apart = vectors && (T::IS_COMPLEX || m != n);
        let vectors = apart.then(|| [vec![zero; n * n], vec![zero; n * n]]);
        Self { part: 0..n, triangle, square, vectors, block }
    }

    /// Decomposes `a`, which is scratch, into `s` and the factors that are asked for. `Err` is the
    /// number of elements above the diagonal of a bidiagonal matrix that did not converge. Threads share
    /// the work where there are any.
    pub(crate) fn decompose(
        &mut self,
        a: &mut [T],
        s: &mut [T::Real],
        factors: Option<Factors<'_, T>>,
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) -> Result<(), usize> {
        let n = s.len();
        let Self { part, triangle, square, vectors, block } = self;
        if n == 0 {
            if let Some(Factors { u, .. }) = factors {
                let m = u.len().isqrt();
                set_ones(&mut MatMut::from_column_major_slice_mut(u, m, m), 0);
            }
            return Ok(());
        }
        let m = a.len() / n;
        // A itself, or R of A = Q·R and that Q.
        let (a_or_r, outer) = match triangle {
            None => (a, None),
            Some(TriangleScratch { tau, r, factor }) => {
                match threads {
                    Some(threads) if n >= PARALLEL => factor_parallel(a, m, tau, threads),
                    _ => qr::blocked::factor(Panel { a, lda: m, row: 0 }, tau, factor, arch),
                }
                for (j, (r, column)) in r.chunks_exact_mut(n).zip(a.chunks_exact(m)).enumerate() {
                    r[..=j].copy_from_slice(&column[..=j]);
                    r[j + 1..].fill(T::ZERO);
                }
                (&mut r[..], Some((MatRef::from_column_major_slice(a, m, n), &tau[..])))
            }
        };
        let Some(factors) = factors else {
            return square.decompose(a_or_r, s, None, part, threads, arch);
        };
        // U = Q·X, with ones below X on the diagonal, and Vᴴ = Yᵀ·Pᴴ.
        let (outcome, [mut u, vt]) = if let Some([x, y]) = vectors {
            let both = Some([&mut x[..], &mut y[..]]);
            let outcome = square.decompose(a_or_r, s, both, part, threads, arch);
            let [mut u, mut vt] = factors.matrices(m, n);
            for j in 0..n {
                for i in 0..n {
                    u[(i, j)] = T::from_real(x[i + j * n]);
                    vt[(i, j)] = T::from_real(y[j + i * n]);
                }
            }
            (outcome, [u, vt])
        } else {
            let both = [&mut *factors.u, &mut *factors.vt].map(bytemuck::cast_slice_mut);
            let outcome = square.decompose(a_or_r, s, Some(both), part, threads, arch);
            transposed(factors.vt, n);
            (outcome, factors.matrices(m, n))
        };
        set_ones(&mut u, n);
        if let Some((q, tau)) = outer {
            let top = u.as_mut().submatrix_mut(0, 0, n, n);
            square.multiply(a_or_r, top, vt, part, block, threads);
            multiply_by_q(q, tau, wanted(u, part, n), block, threads);
        } else {
            square.multiply(a_or_r, u, vt, part, block, threads);
        }
        outcome
    }
}

impl<T: Scalar<Real: Scalar>> SquareScratch<T> {
    /// A = Q·B·Pᴴ for a bidiagonal B = X·diag(s)·Yᵀ, with X and Y where they are asked for.
    fn decompose(
        &mut self,
        a: &mut [T],
        s: &mut [T::Real],
        vectors: Option<[&mut [T::Real]; 2]>,
        part: &Range<usize>,
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) -> Result<(), usize> {
        let n = s.len();
        let Self { e, tau_q, tau_p, reduction, rotations, values, copy: [d_copy, e_copy], .. } =
            self;
        let steps = self.steps;
        match reduction {
            Reduction::Columns { scratch, right } => {
                let mut bidiagonal = Bidiagonal { d: s, e, tau_q, tau_p };
                let b = &mut bidiagonal;
                match threads {
                    Some(threads) if n >= parallel::PARALLEL_ORDER => {
                        bidiagonalize_parallel(a, right, b, scratch, threads, arch);
                    }
                    _ => bidiagonalize(a, right, b, scratch, arch),
                }
            }
            Reduction::Band(scratch) => scratch.bidiagonalize(a, s, e, threads, arch),
        }
        let Some([x, y]) = vectors else {
            if let Some(values) = values
                && values_of_one(s, e, values)
            {
                return Ok(());
            }
            return arch.dispatch(BidiagonalQr { d: s, e, vectors: None, rotations, steps });
        };
        let divided = |divide: &mut DivideScratch<T::Real>| {
            divide.vectors(s, e, [&mut *x, &mut *y], part, threads, arch)
        };
        if self.divide.as_mut().is_some_and(divided) {
            return Ok(());
        }
        set_identity(x, n);
        set_identity(y, n);
        d_copy.copy_from_slice(s);
        e_copy.copy_from_slice(e);
        let vectors = Some((&mut *x, &mut *y));
        arch.dispatch(BidiagonalQr { d: &mut *s, e, vectors, rotations, steps })?;
        refine((d_copy, e_copy), s, x, y);
        Ok(())
    }

    /// U ← Q·U and Vᴴ ← Vᴴ·Pᴴ, after [`Self::decompose`] of `a`.
    fn multiply(
        &self,
        a: &[T],
        u: MatMut<'_, T>,
        vt: MatMut<'_, T>,
        part: &Range<usize>,
        block: &mut BlockScratch<T>,
        threads: Option<&dyn Threads>,
    ) {
        let (m, n) = (u.nrows(), vt.nrows());
        let q = MatRef::from_column_major_slice(a, m, n);
        multiply_by_q(q, &self.tau_q, wanted(u, part, n), block, threads);
        if let Reduction::Columns { right, .. } = &self.reduction {
            let p = MatRef::from_column_major_slice(right, n, n);
            let vt = vt.subrows_mut(part.start, part.len());
            multiply_by_p(p, &self.tau_p, vt, block, threads);
        }
    }
}

impl<R: Real + Scalar> DivideScratch<R> {
    /// B = X·diag(s)·Yᵀ by divide and conquer, with part of the columns of X and Y; false where it failed, or blocks of
    /// B are too small for it, and `s` and `e` are what they were.
    fn vectors(
        &mut self,
        s: &mut [R],
        e: &mut [R],
        [x, y]: [&mut [R]; 2],
        part: &Range<usize>,
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) -> bool {
        let mut end = s.len();
        while end >= DIVIDED {
            let block = block_before(e, end);
            if block.len() >= DIVIDED {
                break;
            }
            end = block.start;
        }
        if end < DIVIDED {
            return false;
        }
        let Self { copy: [d, sums], merge } = self;
        let power = power_near_reciprocal(largest(s, e));
        scale(s, e, power);
        d.copy_from_slice(s);
        let threads = threads.unwrap_or(&Serial);
        let both = [&mut *x, &mut *y];
        let found = divide::decompose(s, e, both, part.clone(), merge, threads, arch) && {
            let [x, y] = [x, y].map(|x| &x[part.start * d.len()..part.end * d.len()]);
            is_svd((d, e), &s[part.clone()], x, y, sums)
        };
        if !found {
            s.copy_from_slice(d);
        }
        scale(s, e, R::ONE / power);
        found
    }
}

/// Zeros in the rows from `n` on and in the columns from `n` on, but ones on the diagonal there.
fn set_ones<T: Scalar>(u: &mut MatMut<'_, T>, n: usize) {
    let (m, cols) = (u.nrows(), u.ncols());
    u.as_mut().submatrix_mut(n, 0, m - n, n.min(cols)).fill(T::ZERO);
    u.as_mut().subcols_mut(n, cols - n).fill(T::ZERO);
    (n..cols).for_each(|j| u[(j, j)] = T::ONE);
}

/// The columns of U that are wanted, of which n may be wanted in part.
fn wanted<'a, T>(u: MatMut<'a, T>, part: &Range<usize>, n: usize) -> MatMut<'a, T> {
    if part.len() == n { u } else { u.subcols_mut(part.start, part.len()) }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {

    use super::{Factors, Method, Scratch};
    use crate::SingularVectors;
    use crate::simd::arch::Arch;

    trials!(
        what_cannot_be_divided_is_iterated_on,
        values_alone_are_found_by_transforms_and_by_steps,
        what_does_not_converge_is_reported
    );

    const N: usize = 70;

    /// Ones on the diagonal and beside it, whose singular values are 2·cos(kπ/(2·n + 1)).
    fn decompose_with(
        job: SingularVectors,
        change: impl Fn(&mut Scratch<f64>),
    ) -> (Vec<f64>, Result<(), usize>) {
        let one = |k: usize| k / N == k % N || k / N == k % N + 1;
        let mut a: Vec<f64> = (0..N * N).map(|k| if one(k) { 1.0 } else { 0.0 }).collect();
        let (mut s, mut u, mut vt) = (vec![f64::NAN; N], a.clone(), a.clone());
        let mut scratch = Scratch::new(Method::Divide, job, N, N);
        change(&mut scratch);
        let factors = Factors { u: &mut u, vt: &mut vt, by_columns: true };
        let factors = (job != SingularVectors::None).then_some(factors);
        let outcome = scratch.decompose(&mut a, &mut s, factors, None, Arch::new());
        (s, outcome)
    }

    fn assert_right((s, outcome): (Vec<f64>, Result<(), usize>)) {
        assert_eq!(outcome, Ok(()));
        let order = f64::from(u32::try_from(2 * N + 1).unwrap_or(0));
        for (k, s) in (1..).zip(s) {
            let exact = 2.0 * (std::f64::consts::PI * f64::from(k) / order).cos();
            assert!((s - exact).abs() < 1e-13, "{s} is not {exact}");
        }
    }

    fn what_cannot_be_divided_is_iterated_on() {
        assert_right(decompose_with(SingularVectors::All, |_| ()));
        // Where what is not divided does not converge, divide and conquer fails.
        assert_right(decompose_with(SingularVectors::All, |scratch| {
            let divide = scratch.square.divide.as_mut();
            assert!(divide.map(|it| it.merge.steps = 0).is_some(), "order {N} is divided");
        }));
    }

    fn values_alone_are_found_by_transforms_and_by_steps() {
        assert_right(decompose_with(SingularVectors::None, |scratch| {
            assert!(scratch.square.values.is_some());
        }));
        assert_right(decompose_with(SingularVectors::None, |scratch| scratch.square.values = None));
    }

    fn what_does_not_converge_is_reported() {
        for job in [SingularVectors::All, SingularVectors::None] {
            let give_up = |steps| {
                move |scratch: &mut Scratch<f64>| {
                    (scratch.square.steps, scratch.square.divide) = (steps, None);
                    scratch.square.values = None;
                }
            };
            assert_eq!(decompose_with(job, give_up(0)).1, Err(N - 1));
            let (_, outcome) = decompose_with(job, give_up(1));
            assert!(outcome.is_err_and(|count| 0 < count && count < N - 1), "{outcome:?}");
        }
    }
}
