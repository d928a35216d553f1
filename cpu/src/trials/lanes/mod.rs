//! Each kernel at each level of SIMD, against the kernel for single matrices.

pub(crate) mod neighbours;
pub(crate) mod perturbed;
pub(crate) mod reductions;
pub(crate) mod schur;
pub(crate) mod svd_bidiagonal;
pub(crate) mod tiles;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use lapax_core::{Batched, InOut, Items, ItemsInOut, ItemsMut, Scalar as _, Serial};

use crate::matrix::layout::Layout;
use crate::matrix::phase::Leading;
use crate::parallel::groups::{Kernel, Walk};
use crate::simd::lane::Lanes;
use crate::testing::levels::{close, random};
use crate::{Diag, Real, Scalar, Side, SingularVectors, Trans, Uplo};

/// A kind of register: those of this build that this processor has are tested.
pub(crate) use crate::simd::arch::Arch as Level;

/// Whole groups, ragged ones, and less than one.
pub(crate) const BATCHES: [usize; 3] = [1, 19, 32];
pub(crate) const ORDERS: [(usize, usize); 9] =
    [(1, 1), (2, 2), (3, 3), (4, 4), (7, 7), (16, 16), (5, 9), (9, 2), (32, 32)];

for_each_scalar!(lu, cholesky, triangular, qr, eigh, svd, tridiagonal);

impl Level {
    /// The numbers in a register.
    pub(crate) fn lanes<T: Scalar>(self) -> usize {
        self.dispatch(Lanes(std::marker::PhantomData::<T>))
    }

    pub(crate) fn run<T: Scalar, B: Batched>(
        self,
        items: usize,
        part: B,
        kernel: &impl Kernel<T, B>,
    ) {
        self.dispatch(Walk { kernel, part, items, scalar: std::marker::PhantomData::<T> });
    }
}

/// The matrices of a batch, each transposed.
fn transposed<T: Scalar>(a: &[T], (m, n): (usize, usize)) -> Vec<T> {
    let matrix = |a: &[T]| (0..m * n).map(|p| a[p % n * m + p / n]).collect::<Vec<_>>();
    a.chunks_exact(m * n).flat_map(matrix).collect()
}

fn lu<T: Scalar>() {
    for ((m, n), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let k = m.min(n);
        let a = random::<T>(m * n * batch);
        // One matrix at a time goes past the lanes.
        let (mut expected, mut expected_ipiv) = (a.clone(), vec![0; k * batch]);
        let matrices = expected.chunks_exact_mut(m * n).zip(expected_ipiv.chunks_exact_mut(k));
        for (dst, ipiv) in matrices {
            let a = InOut { src: None, dst };
            crate::lu::getrf(1, m, n, a, ipiv, &mut [0], &Serial).unwrap();
        }
        for (level, order) in Level::available()
            .flat_map(|level| [Layout::Columns, Layout::Rows].map(|order| (level, order)))
        {
            let what = format!("{m}x{n}, batch {batch}, {level:?}, {order:?}");
            let rows = order == Layout::Rows;
            let a = if rows { transposed(&a, (m, n)) } else { a.clone() };
            let (mut lu, mut ipiv, mut info) =
                (vec![T::ZERO; a.len()], vec![0; k * batch], vec![7; batch]);
            let operands = (
                ItemsInOut::new("a", batch, &[m, n], InOut { src: Some(&a), dst: &mut lu })
                    .unwrap(),
                ItemsMut::new("ipiv", batch, &[k], &mut ipiv).unwrap(),
                ItemsMut::new("info", batch, &[], &mut info).unwrap(),
            );
            level.run::<T, _>(
                batch,
                operands,
                &crate::lanes::lu::Factor {
                    m,
                    n,
                    order,
                    output: crate::matrix::rows::Output::Lapack,
                },
            );
            assert_eq!(ipiv, expected_ipiv, "{what}");
            assert_eq!(info, vec![0; batch], "{what}");
            let lu = if rows { transposed(&lu, (n, m)) } else { lu };
            close(&lu, &expected, m.max(n), &what);
        }
    }
}

fn cholesky<T: Scalar>() {
    for (n, batch) in ORDERS.into_iter().flat_map(|(n, _)| BATCHES.map(|b| (n, b))) {
        let mut a = random::<T>(n * n * batch);
        for (p, a) in a.iter_mut().enumerate() {
            if p % (n * n) % (n + 1) == 0 {
                *a = T::from_real(T::Real::from_f64(2.0 * n as f64));
            }
        }
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let mut expected = a.clone();
            for dst in expected.chunks_exact_mut(n * n) {
                let a = InOut { src: None, dst };
                crate::cholesky::potrf(uplo, 1, n, a, &mut [0], &Serial).unwrap();
            }
            let order = if uplo == Uplo::Lower { Layout::Columns } else { Layout::Rows };
            for level in Level::available() {
                let (mut l, mut info) = (a.clone(), vec![7; batch]);
                let operands = (
                    ItemsInOut::new("a", batch, &[n, n], InOut { src: None, dst: &mut l }).unwrap(),
                    ItemsMut::new("info", batch, &[], &mut info).unwrap(),
                );
                level.run::<T, _>(batch, operands, &crate::lanes::cholesky::Factor { n, order });
                assert_eq!(info, vec![0; batch]);
                close(&l, &expected, n, &format!("{uplo:?} {n}, batch {batch}, {level:?}"));
            }
        }
    }
}

fn triangular<T: Scalar>() {
    for ((n, nrhs), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut a = random::<T>(n * n * batch);
        for (p, a) in a.iter_mut().enumerate() {
            if p % (n * n) % (n + 1) == 0 {
                *a += T::from_real(T::Real::from_f64(2.0 * n as f64));
            } else {
                *a = a.unscale(T::Real::from_f64(n as f64));
            }
        }
        let b = random::<T>(n * nrhs * batch);
        for (uplo, diag, conj) in [
            (Uplo::Lower, Diag::NonUnit, false),
            (Uplo::Upper, Diag::NonUnit, true),
            (Uplo::Upper, Diag::Unit, false),
        ] {
            // conj(A)·X = B is the conjugate transpose of a transposed A.
            let (stored, trans, triangle) = match (conj, uplo) {
                (false, uplo) => (a.clone(), Trans::None, uplo),
                (true, Uplo::Upper) => (transposed(&a, (n, n)), Trans::ConjTranspose, Uplo::Lower),
                (true, Uplo::Lower) => (transposed(&a, (n, n)), Trans::ConjTranspose, Uplo::Upper),
            };
            let mut expected = b.clone();
            let systems = expected.chunks_exact_mut(n * nrhs).zip(stored.chunks_exact(n * n));
            for (dst, a) in systems {
                let b = InOut { src: None, dst };
                let side = Side::Left;
                crate::triangular::trsm(side, triangle, trans, diag, 1, n, nrhs, a, b, &Serial)
                    .unwrap();
            }
            for level in Level::available() {
                let mut x = b.clone();
                let operands = (
                    Items::new("a", batch, &[n, n], &a).unwrap(),
                    ItemsInOut::new("b", batch, &[n, nrhs], InOut { src: None, dst: &mut x })
                        .unwrap(),
                );
                let (a_order, b_order) = (Layout::Columns, Layout::Columns);
                let kernel =
                    crate::lanes::triangular::Solve { uplo, diag, conj, n, nrhs, a_order, b_order };
                level.run::<T, _>(batch, operands, &kernel);
                close(&x, &expected, n, &format!("{uplo:?} {n}x{nrhs}, batch {batch}, {level:?}"));
            }
        }
    }
}

/// The factor, its Q, and C·Q, Qᴴ·C against the same of single matrices.
fn qr<T: Scalar>() {
    for ((m, n), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let (k, columns) = (m.min(n), m.min(n));
        let mut a = random::<T>(m * n * batch);
        // Well conditioned, so that the factors are as close as the residuals.
        for a in a.chunks_exact_mut(m * n).flat_map(|a| a.iter_mut().step_by(m + 1)) {
            *a += T::from_real(T::Real::from_f64(n as f64));
        }
        let (mut factored, mut tau) = (a.clone(), vec![T::ZERO; k * batch]);
        let matrices = factored.chunks_exact_mut(m * n).zip(tau.chunks_exact_mut(k));
        for (dst, tau) in matrices {
            crate::qr::geqrf(1, m, n, InOut { src: None, dst }, tau, &Serial).unwrap();
        }
        let reflectors: Vec<T> =
            factored.chunks_exact(m * n).flat_map(|a| a[..m * columns].to_vec()).collect();
        let mut q = reflectors.clone();
        for (dst, tau) in q.chunks_exact_mut(m * columns).zip(tau.chunks_exact(k)) {
            crate::qr::q::orgqr(1, m, columns, k, InOut { src: None, dst }, tau, &Serial).unwrap();
        }
        for level in Level::available() {
            let what = format!("{m}x{n}, batch {batch}, {level:?}");
            for order in [Layout::Columns, Layout::Rows] {
                let rows = order == Layout::Rows;
                let a = if rows { transposed(&a, (m, n)) } else { a.clone() };
                let (mut r, mut taus) = (vec![T::ZERO; a.len()], vec![T::ZERO; k * batch]);
                let operands = (
                    ItemsInOut::new("a", batch, &[m, n], InOut { src: Some(&a), dst: &mut r })
                        .unwrap(),
                    ItemsMut::new("tau", batch, &[k], &mut taus).unwrap(),
                );
                level.run::<T, _>(batch, operands, &crate::lanes::qr::Factor { m, n, order });
                let r = if rows { transposed(&r, (n, m)) } else { r };
                close(&r, &factored, m.max(n), &what);
                close(&taus, &tau, m.max(n), &what);
            }
            let mut x = reflectors.clone();
            let operands = (
                ItemsInOut::new("a", batch, &[m, columns], InOut { src: None, dst: &mut x })
                    .unwrap(),
                Items::new("tau", batch, &[k], &tau).unwrap(),
            );
            let form = crate::lanes::qr::Form { m, n: columns, t: k, order: Layout::Columns };
            level.run::<T, _>(batch, operands, &form);
            close(&x, &q, m, &what);
            for (side, op) in [
                (Side::Left, crate::matrix::layout::Factor::Q),
                (Side::Left, crate::matrix::layout::Factor::Adjoint),
                (Side::Right, crate::matrix::layout::Factor::Q),
                (Side::Right, crate::matrix::layout::Factor::Adjoint),
            ] {
                multiply_by_q(level, (side, op), (m, n, k, batch), (&factored, &tau));
            }
        }
    }
}

fn multiply_by_q<T: Scalar>(
    level: Level,
    (side, op): (Side, crate::matrix::layout::Factor),
    (m, p, t, batch): (usize, usize, usize, usize),
    (a, tau): (&[T], &[T]),
) {
    let others = 3;
    let (rows, columns) = if side == Side::Left { (m, others) } else { (others, m) };
    let c = random::<T>(m * others * batch);
    let mut expected = c.clone();
    let factors = a.chunks_exact(m * p).zip(tau.chunks_exact(t));
    for (dst, (a, tau)) in expected.chunks_exact_mut(m * others).zip(factors) {
        let c = InOut { src: None, dst };
        crate::qr::q::ormqr(side, op, 1, rows, columns, p, t, a, tau, c, &Serial).unwrap();
    }
    let mut x = c.clone();
    let operands = (
        Items::new("a", batch, &[m, p], a).unwrap(),
        Items::new("tau", batch, &[t], tau).unwrap(),
        ItemsInOut::new("c", batch, &[rows, columns], InOut { src: None, dst: &mut x }).unwrap(),
    );
    let from_right = side == Side::Right;
    let kernel = crate::lanes::qr::Apply { op, from_right, m, n: others, p, t };
    level.run::<T, _>(batch, operands, &kernel);
    close(&x, &expected, m, &format!("{side:?} {op:?} {m}x{p}, batch {batch}, {level:?}"));
}

/// The same eigenvalues as of single matrices, and A·V = V·diag(w) with orthonormal V.
fn eigh<T: Scalar<Real: Scalar>>() {
    for (n, batch) in ORDERS.into_iter().flat_map(|(n, _)| BATCHES.map(|b| (n, b))) {
        let mut a = random::<T>(n * n * batch);
        // Far from 1 in some lanes, and not finite in one.
        for (b, a) in a.chunks_exact_mut(n * n).enumerate() {
            let power = [1.0, T::Real::SAFE_MIN.to_f64(), T::Real::MAX.to_f64() / 4096.0][b % 3];
            a.iter_mut().for_each(|a| *a = a.scale(T::Real::from_f64(power)));
            if b % 9 == 6 {
                make_split(a, n);
            }
        }
        if batch > 7 {
            a[7 * n * n] = T::from_real(T::Real::from_f64(f64::INFINITY));
        }
        for (uplo, order) in [Uplo::Lower, Uplo::Upper]
            .into_iter()
            .flat_map(|uplo| [Layout::Columns, Layout::Rows].map(|order| (uplo, order)))
        {
            for level in Level::available() {
                let what = format!("{uplo:?} {order:?} {n}, batch {batch}, {level:?}");
                // Left are what is not finite, and what has elements that scaling would make less of.
                let split = (0..batch).filter(|b| b % 9 == 6).count();
                let left = AtomicUsize::new(0);
                let single = |v: &mut [T], w: &mut [T::Real]| {
                    if !v[0].is_finite() {
                        w.fill(T::Real::from_f64(f64::NAN));
                        return -4;
                    }
                    assert!(left.fetch_add(1, Relaxed) < 2 * split, "{what}: more are left");
                    let v = InOut { src: None, dst: v };
                    if order == Layout::Rows {
                        crate::eigh::eigh(uplo, 1, n, v, w, &Serial).unwrap();
                    } else {
                        let job = crate::Vectors::Wanted;
                        crate::eigh::syevd(job, uplo, 1, n, v, w, &mut [0], &Serial).unwrap();
                    }
                    0
                };
                let kernel = crate::lanes::eigh::Decompose { n, uplo, order, single };
                let (mut v, mut w) = (a.clone(), vec![T::Real::ONE; n * batch]);
                let mut info = vec![7; batch];
                let operands = (
                    ItemsInOut::new("v", batch, &[n, n], InOut { src: None, dst: &mut v }).unwrap(),
                    ItemsMut::new("w", batch, &[n], &mut w).unwrap(),
                    ItemsMut::new("info", batch, &[], &mut info).unwrap(),
                );
                level.run::<T, _>(batch, operands, &kernel);
                let kernel = crate::lanes::eigh::Values(kernel);
                let (mut alone, mut info_alone) = (vec![T::Real::ONE; n * batch], vec![7; batch]);
                let mut left = vec![T::ZERO; if uplo == Uplo::Upper { a.len() } else { 0 }];
                let operands = (
                    Items::new("a", batch, &[n, n], &a).unwrap(),
                    ItemsMut::new("left", batch, &[left.len() / batch], &mut left).unwrap(),
                    ItemsMut::new("w", batch, &[n], &mut alone).unwrap(),
                    ItemsMut::new("info", batch, &[], &mut info_alone).unwrap(),
                );
                level.run::<T, _>(batch, operands, &kernel);
                for b in 0..batch {
                    let part = b * n * n..(b + 1) * n * n;
                    let (a, v) = (&a[part.clone()], &v[part]);
                    let expected = if b == 7 { -4 } else { 0 };
                    assert_eq!((info[b], info_alone[b]), (expected, expected), "{what}");
                    if b != 7 {
                        // By columns a row-major matrix is its transpose.
                        let by_rows = order == Layout::Rows;
                        let columns =
                            |x: &[T]| if by_rows { transposed(x, (n, n)) } else { x.to_vec() };
                        let (a, v) = (columns(a), columns(v));
                        is_eigensystem(uplo, &a, Some(&v), &w[b * n..(b + 1) * n], &what);
                        is_eigensystem(uplo, &a, None, &alone[b * n..(b + 1) * n], &what);
                    }
                }
            }
        }
    }
}

/// Tridiagonal, with elements whose squares underflow on the diagonal and every third time beside it: steps
/// split it in their middle.
fn make_split<T: Scalar>(a: &mut [T], n: usize) {
    let tiny = T::Real::from_f64(T::Real::SAFE_MIN.to_f64().powf(0.45));
    for (p, x) in a.iter_mut().enumerate() {
        let (i, j) = (p % n, p / n);
        *x = match i.abs_diff(j) {
            0 => x.scale(tiny),
            1 if i.max(j) % 3 == 0 => x.scale(tiny),
            1 => *x,
            _ => T::ZERO,
        };
    }
}

fn is_eigensystem<T: Scalar>(uplo: Uplo, a: &[T], v: Option<&[T]>, w: &[T::Real], what: &str) {
    let n = w.len();
    assert!(w.is_sorted_by(|a, b| a <= b), "{what}: {w:?}");
    let element = |i: usize, j: usize| match (uplo, i.cmp(&j)) {
        (_, std::cmp::Ordering::Equal) => T::from_real(a[i * n + i].re()),
        (Uplo::Lower, std::cmp::Ordering::Greater) | (Uplo::Upper, std::cmp::Ordering::Less) => {
            a[j * n + i]
        }
        _ => a[i * n + j].conj(),
    };
    let scale = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
    let limit = 30.0 * n as f64 * T::Real::EPSILON.to_f64();
    // The sum of the eigenvalues is the trace.
    let trace: f64 = (0..n).map(|i| element(i, i).re().to_f64()).sum();
    let sum: f64 = w.iter().map(|w| w.to_f64()).sum();
    assert!((trace - sum).abs() <= limit * scale * n as f64, "{what}: {trace:e} {sum:e}");
    let Some(v) = v else { return };
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let dot = (0..n).fold(T::ZERO, |s, k| s + v[i * n + k].conj() * v[j * n + k]);
        let unit = if i == j { T::ONE } else { T::ZERO };
        assert!((dot - unit).abs().to_f64() < limit, "{what}: columns {i} and {j}: {dot:?}");
        let scaled = |x: T| x.unscale(T::Real::from_f64(scale.max(T::Real::SAFE_MIN.to_f64())));
        let av = (0..n).fold(T::ZERO, |s, k| s + scaled(element(i, k)) * v[j * n + k]);
        let error = (av - scaled(v[j * n + i].scale(w[j]))).abs().to_f64();
        assert!(error < limit, "{what}: A·v({j}): {error:e}");
    }
}

/// U·diag(s)·Vᴴ = A with orthonormal U and V, also of deficient matrices and far from 1.
fn svd<T: Scalar>() {
    let shapes = [(1, 1), (2, 2), (3, 3), (7, 7), (16, 16), (5, 9), (9, 2)];
    for ((m, n), batch) in shapes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut a = random::<T>(m * n * batch);
        for (b, a) in a.chunks_exact_mut(m * n).enumerate() {
            let power = [1.0, T::Real::SAFE_MIN.to_f64(), T::Real::MAX.to_f64() / 4096.0][b % 3];
            a.iter_mut().for_each(|a| *a = a.scale(T::Real::from_f64(power)));
            match b % 5 {
                3 if n > 1 => a.copy_within(0..m, m),
                4 => a.fill(T::ZERO),
                _ => {}
            }
        }
        if batch > 7 {
            a[7 * m * n] = T::from_real(T::Real::from_f64(f64::NAN));
        }
        let (k, jobs) =
            (m.min(n), [SingularVectors::All, SingularVectors::Thin, SingularVectors::None]);
        for (level, job) in Level::available().flat_map(|l| jobs.map(|job| (l, job))) {
            let what = format!("{m}x{n}, batch {batch}, {level:?}, {job:?}");
            let (u_cols, vt_rows) = job.sides(m, n);
            let wants_copy = job == SingularVectors::Thin;
            let mut left = vec![T::ZERO; if wants_copy { m * n * batch } else { 0 }];
            let mut s = vec![T::Real::ONE; k * batch];
            let (mut u, mut vt) =
                (vec![T::ONE; m * u_cols * batch], vec![T::ONE; vt_rows * n * batch]);
            let mut info = vec![7; batch];
            let operands = (
                Items::new("a", batch, &[m, n], &a).unwrap(),
                ItemsMut::new("left", batch, &[left.len() / batch], &mut left).unwrap(),
                ItemsMut::new("s", batch, &[k], &mut s).unwrap(),
                ItemsMut::new("u", batch, &[m, u_cols], &mut u).unwrap(),
                ItemsMut::new("vt", batch, &[vt_rows, n], &mut vt).unwrap(),
                ItemsMut::new("info", batch, &[], &mut info).unwrap(),
            );
            let single = |a: &mut [T], _: &mut [T::Real], _: &mut [T], _: &mut [T]| {
                assert!(a[0].is_nan(), "{what}: only one matrix is not finite");
                -4
            };
            let leading = if batch % 2 == 0 { Leading::Left } else { Leading::Right };
            let kernel = crate::lanes::svd::Decompose { job, m, n, leading, single };
            level.run::<T, _>(batch, operands, &kernel);
            for b in 0..batch {
                assert_eq!(info[b], if b == 7 { -4 } else { 0 }, "{what}");
                if b != 7 {
                    let a = &a[b * m * n..(b + 1) * m * n];
                    let s = &s[b * k..(b + 1) * k];
                    let u = &u[b * m * u_cols..(b + 1) * m * u_cols];
                    let vt = &vt[b * vt_rows * n..(b + 1) * vt_rows * n];
                    is_svd((m, n), a, s, u, vt, &what);
                }
            }
        }
    }
}

fn is_svd<T: Scalar>(
    (m, n): (usize, usize),
    a: &[T],
    s: &[T::Real],
    u: &[T],
    vt: &[T],
    what: &str,
) {
    let limit = 30.0 * m.max(n) as f64 * T::Real::EPSILON.to_f64();
    let largest = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
    let scale = T::Real::from_f64(largest.max(T::Real::SAFE_MIN.to_f64()));
    assert!(s.is_sorted_by(|a, b| a >= b) && s.iter().all(|&s| s >= T::Real::ZERO), "{what} {s:?}");
    // The squares of the singular values sum to those of the elements.
    let squares: f64 = s.iter().map(|&s| (s / scale).to_f64().powi(2)).sum();
    let expected: f64 = a.iter().map(|a| a.unscale(scale).abs().to_f64().powi(2)).sum();
    let error = (squares - expected).abs();
    assert!(error <= limit * n as f64 * expected.max(1.0), "{what}: {error:e} of {expected:e}");
    let (u_cols, vt_rows) = (u.len() / m, vt.len() / n);
    let unit = |i: usize, j: usize| if i == j { T::ONE } else { T::ZERO };
    for (i, j) in (0..u_cols).flat_map(|i| (0..u_cols).map(move |j| (i, j))) {
        let dot = (0..m).fold(T::ZERO, |sum, r| sum + u[i * m + r].conj() * u[j * m + r]);
        assert!((dot - unit(i, j)).abs().to_f64() < limit, "{what}: U {i} {j}: {dot:?}");
    }
    for (i, j) in (0..vt_rows).flat_map(|i| (0..vt_rows).map(move |j| (i, j))) {
        let row = |i: usize, c: usize| vt[c * vt_rows + i];
        let dot = (0..n).fold(T::ZERO, |sum, c| sum + row(i, c) * row(j, c).conj());
        assert!((dot - unit(i, j)).abs().to_f64() < limit, "{what}: V {i} {j}: {dot:?}");
    }
    if u_cols > 0 {
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let product = (0..m.min(n)).fold(T::ZERO, |sum, k| {
                sum + (u[k * m + i] * vt[j * vt_rows + k]).scale(s[k] / scale)
            });
            let error = (product - a[j * m + i].unscale(scale)).abs().to_f64();
            assert!(error < limit, "{what}: A({i}, {j}): {error:e}");
        }
    }
}

/// The same solutions as one by one, and singular systems left as they are.
fn tridiagonal<T: Scalar>() {
    let sizes = [(1, 1), (2, 3), (5, 2), (33, 1), (4, 0)];
    for ((m, nrhs), batch) in sizes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let [dl, mut d, du] = [0, 1, 2].map(|k| random::<T>(m * batch + k)[k..].to_vec());
        for (i, d) in d.iter_mut().enumerate() {
            // Some rows want to be swapped, and one system is singular.
            *d += T::from_real(T::Real::from_f64(if i % 3 == 0 { 0.0 } else { 3.0 }));
        }
        let mut diagonals = [dl, d, du];
        if batch > 7 {
            diagonals.iter_mut().for_each(|d| d[7 * m..8 * m].fill(T::ZERO));
        }
        let b = random::<T>(m * nrhs * batch);
        let [dl, d, du] = &diagonals;
        let (mut expected, mut expected_info) = (b.clone(), vec![0; batch]);
        for i in 0..batch {
            let mut one = [dl, d, du].map(|d| d[i * m..(i + 1) * m].to_vec());
            let [dl, d, du] = one.each_mut().map(|d| InOut { src: None, dst: &mut d[..] });
            let a = crate::tridiagonal::elimination::Diagonals { dl, d, du };
            let dst = &mut expected[i * m * nrhs..(i + 1) * m * nrhs];
            let info = &mut expected_info[i..=i];
            let b = InOut { src: None, dst };
            crate::tridiagonal::gtsv(1, m, nrhs, a, b, info, &Serial).unwrap();
        }
        for level in Level::available() {
            let what = format!("{m} rows, {nrhs} right-hand sides, batch {batch}, {level:?}");
            let mut debris = diagonals.clone();
            let [dl, d, du] = debris.each_mut().map(|d| {
                ItemsInOut::new("d", batch, &[m], InOut { src: None, dst: &mut d[..] }).unwrap()
            });
            let (mut x, mut info) = (vec![T::ONE; b.len()], vec![7; batch]);
            let rhs = InOut { src: Some(&b[..]), dst: &mut x[..] };
            let operands = (
                dl,
                d,
                du,
                ItemsInOut::new("b", batch, &[m, nrhs], rhs).unwrap(),
                ItemsMut::new("info", batch, &[], &mut info).unwrap(),
            );
            level.run::<T, _>(batch, operands, &crate::lanes::tridiagonal::Solve { m, nrhs });
            assert_eq!(info, expected_info, "{what}");
            // Forward errors grow with the condition of these random systems.
            close(&x, &expected, 1000 * m, &what);
        }
    }
}
