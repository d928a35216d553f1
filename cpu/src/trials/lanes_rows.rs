//! The kernels for row-major matrices at each level of SIMD, against the way through column-major ones.

use lapax_core::{InOut, Items, ItemsInOut, ItemsMut, Scalar as _, Serial};

use super::lanes::{BATCHES, ORDERS};
use crate::definite::{Kept, by_factor_kept};
use crate::lu::row_major;
use crate::matrix::triangle::Given;
use crate::simd::arch::Arch as Level;
use crate::testing::levels::{close, random};
use crate::{Real, Scalar, Trans, Uplo};

for_each_scalar!(
    lu,
    slogdet,
    slogdet_by_rows,
    solve,
    lu_solve,
    cholesky,
    qr,
    definite,
    hess,
    tridiagonal,
    tridiagonal_beside,
    tridiagonal_columns,
    cholesky_update
);

/// Compares, and takes NaN for equal to NaN.
fn alike<T: Scalar>(a: &[T], b: &[T], size: usize, what: &str) {
    let finite =
        |x: &[T]| x.iter().map(|x| if x.is_nan() { T::ZERO } else { *x }).collect::<Vec<_>>();
    for (a, b) in a.iter().zip(b) {
        assert_eq!(a.is_nan(), b.is_nan(), "{what}: {a:?} {b:?}");
    }
    close(&finite(a), &finite(b), size, what);
}

fn lu<T: Scalar>() {
    for ((m, n), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let k = m.min(n);
        let a = random::<T>(m * n * batch);
        let mut expected = (vec![T::ZERO; a.len()], vec![0; k * batch], vec![0; m * batch]);
        for i in 0..batch {
            let dst = &mut expected.0[i * m * n..(i + 1) * m * n];
            let one = InOut { src: Some(&a[i * m * n..(i + 1) * m * n]), dst };
            let pivots = &mut expected.1[i * k..(i + 1) * k];
            let rows = &mut expected.2[i * m..(i + 1) * m];
            crate::lu::lu(1, m, n, one, pivots, rows, &Serial).unwrap();
        }
        for level in Level::available() {
            let what = format!("{m}x{n}, batch {batch}, {level:?}");
            let mut found = (vec![T::ONE; a.len()], vec![7; k * batch], vec![7; m * batch]);
            let lu = InOut { src: Some(&a[..]), dst: &mut found.0[..] };
            let operands = (
                ItemsInOut::new("a", batch, &[m, n], lu).unwrap(),
                ItemsMut::new("pivots", batch, &[k], &mut found.1).unwrap(),
                ItemsMut::new("permutation", batch, &[m], &mut found.2).unwrap(),
            );
            let (order, output) =
                (crate::matrix::layout::Layout::Rows, crate::matrix::rows::Output::Permutation);
            level.run::<T, _>(batch, operands, &crate::lanes::lu::Factor { m, n, order, output });
            assert_eq!((&found.1, &found.2), (&expected.1, &expected.2), "{what}");
            close(&found.0, &expected.0, m.max(n), &what);
        }
    }
}

/// Some matrices are singular or not finite; inverses are solutions with the identity.
fn solve<T: Scalar>() {
    let routines = crate::solve::Routines::own();
    for ((n, nrhs), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut a = random::<T>(n * n * batch);
        if batch > 7 {
            a[3 * n * n..3 * n * n + n].fill(T::ZERO);
            a[4 * n * n] = T::from_real(T::Real::from_f64(f64::NAN));
        }
        let b = random::<T>(n * nrhs * batch);
        let (mut x, mut inverse) = (vec![T::ZERO; b.len()], vec![T::ZERO; a.len()]);
        let by = crate::solve::by_factors;
        by(routines, batch, (n, nrhs), &a, Some(&b), &mut x, &Serial).unwrap();
        by(routines, batch, (n, n), &a, None, &mut inverse, &Serial).unwrap();
        for level in Level::available() {
            let what = format!("{n} x {nrhs}, batch {batch}, {level:?}");
            let (mut found, mut inverted) = (vec![T::ZERO; b.len()], vec![T::ZERO; a.len()]);
            let operands = (
                Items::new("a", batch, &[n, n], &a).unwrap(),
                Items::new("b", batch, &[n, nrhs], &b).unwrap(),
                ItemsMut::new("x", batch, &[n, nrhs], &mut found).unwrap(),
            );
            level.run::<T, _>(batch, operands, &crate::lanes::lu::solve::Solve { n, nrhs });
            let operands = (
                Items::new("a", batch, &[n, n], &a).unwrap(),
                ItemsMut::new("x", batch, &[n, n], &mut inverted).unwrap(),
            );
            level.run::<T, _>(batch, operands, &crate::lanes::lu::solve::Invert { n });
            for (found, expected) in [(&found, &x), (&inverted, &inverse)] {
                let systems =
                    found.chunks(found.len() / batch).zip(expected.chunks(found.len() / batch));
                for (i, (found, expected)) in systems.enumerate() {
                    if batch > 7 && i == 3 {
                        let finite = |x: &T| x.abs1() < T::Real::ONE / T::Real::ZERO;
                        assert!(!found.iter().all(finite), "{what}: {found:?}");
                        continue;
                    }
                    alike(found, expected, 1000 * n, &format!("{what}, {i}"));
                }
            }
        }
    }
}

/// Some matrices are not finite.
fn hess<T: Scalar>() {
    for (n, batch) in [1, 2, 3, 5, 8, 17].into_iter().flat_map(|n| BATCHES.map(|b| (n, b))) {
        let mut a = random::<T>(n * n * batch);
        if batch > 7 {
            a[4 * n * n] = T::from_real(T::Real::from_f64(f64::NAN));
        }
        let mut expected = (vec![T::ZERO; a.len()], vec![T::ZERO; a.len()]);
        let matrices = expected.0.chunks_mut(n * n).zip(expected.1.chunks_mut(n * n));
        for ((h, q), a) in matrices.zip(a.chunks(n * n)) {
            crate::hessenberg::hess(1, n, InOut { src: Some(a), dst: h }, q, &Serial).unwrap();
        }
        for level in Level::available() {
            let what = format!("{n}, batch {batch}, {level:?}");
            let mut found = (vec![T::ONE; a.len()], vec![T::ONE; a.len()]);
            let h = InOut { src: Some(&a[..]), dst: &mut found.0[..] };
            let operands = (
                ItemsInOut::new("h", batch, &[n, n], h).unwrap(),
                ItemsMut::new("q", batch, &[n, n], &mut found.1).unwrap(),
            );
            level.run::<T, _>(batch, operands, &crate::lanes::schur::hessenberg::Whole { n });
            alike(&found.0, &expected.0, 1000 * n, &what);
            alike(&found.1, &expected.1, 1000 * n, &what);
        }
    }
}

/// Determinants of n × n matrices, as sign and logarithm.
type Determinants<T> = (Vec<T>, Vec<<T as lapax_core::Scalar>::Real>);

/// A batch of matrices for determinants, and these by columns. In batches of more than 7 some matrices
/// are tiny, large, singular or not finite.
fn determinants<T: Scalar>(n: usize, batch: usize) -> (Vec<T>, Determinants<T>) {
    let mut a = random::<T>(n * n * batch);
    if batch > 7 {
        let factor = |x: f64| T::Real::from_f64(x);
        a[n * n..2 * n * n].iter_mut().for_each(|x| *x = x.scale(factor(1e-38)));
        a[2 * n * n..3 * n * n].iter_mut().for_each(|x| *x = x.scale(factor(1e30)));
        a[3 * n * n..3 * n * n + n].fill(T::ZERO);
        a[4 * n * n] = T::from_real(factor(f64::NAN));
    }
    let (mut sign, mut logabs) = (vec![T::ONE; batch], vec![T::Real::ZERO; batch]);
    let columns = crate::determinant::Factor::columns(crate::lu::getrf);
    crate::determinant::by_factors(columns, batch, n, &a, &mut sign, &mut logabs, &Serial).unwrap();
    (a, (sign, logabs))
}

/// Compares with [`determinants`].
fn same_determinants<T: Scalar>(
    n: usize,
    found: &mut Determinants<T>,
    expected: &mut Determinants<T>,
    what: &str,
) {
    let batch = found.0.len();
    for (i, (found, expected)) in found.1.iter().zip(&expected.1).enumerate() {
        let (found, expected) = (found.to_f64(), expected.to_f64());
        let limit = 1e4 * T::Real::EPSILON.to_f64() * (n as f64 + expected.abs());
        let same = found == expected || (found.is_nan() && expected.is_nan());
        assert!(same || f64::abs(found - expected) < limit, "{what}: {i}: {found} {expected}");
        assert!(batch <= 7 || i != 3 || found == f64::NEG_INFINITY, "{what}: {found}");
        assert!(batch <= 7 || i != 4 || found.is_nan(), "{what}: {found}");
    }
    if batch > 7 {
        (found.0[4], expected.0[4]) = (T::ONE, T::ONE);
    }
    alike(&found.0, &expected.0, 100 * n, what);
}

fn slogdet<T: Scalar>() {
    for (n, batch) in ORDERS.into_iter().flat_map(|(n, _)| BATCHES.map(|b| (n, b))) {
        let (a, mut expected) = determinants::<T>(n, batch);
        for level in Level::available() {
            let mut found = (vec![T::ONE; batch], vec![T::Real::ZERO; batch]);
            let operands = (
                Items::new("a", batch, &[n, n], &a).unwrap(),
                ItemsMut::new("sign", batch, &[], &mut found.0).unwrap(),
                ItemsMut::new("logabs", batch, &[], &mut found.1).unwrap(),
            );
            level.run::<T, _>(batch, operands, &crate::lanes::lu::determinant::Find { n });
            let what = format!("{n}, batch {batch}, {level:?}");
            same_determinants(n, &mut found, &mut expected, &what);
        }
    }
}

/// Of orders that do not go through lanes.
fn slogdet_by_rows<T: Scalar>() {
    for (n, batch) in [17, 40, 65, 130].into_iter().flat_map(|n| [1, 9].map(|b| (n, b))) {
        let (a, mut expected) = determinants::<T>(n, batch);
        let mut found = (vec![T::ONE; batch], vec![T::Real::ZERO; batch]);
        let (sign, logabs) = (&mut found.0, &mut found.1);
        crate::determinant::slogdet(batch, n, &a, sign, logabs, &Serial).unwrap();
        same_determinants(n, &mut found, &mut expected, &format!("{n}, batch {batch}"));
    }
}

/// Permutations with a row twice and a row that is none.
fn lu_solve<T: Scalar>() {
    for ((n, nrhs), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut lu = random::<T>(n * n * batch);
        for (p, x) in lu.iter_mut().enumerate() {
            *x = x.unscale(T::Real::from_f64(n as f64));
            if p % (n * n) % (n + 1) == 0 {
                *x += T::from_real(T::Real::from_f64(2.0));
            }
        }
        let b = random::<T>(n * nrhs * batch);
        let row = |i: usize| i32::try_from((i * 7 + i / n) % n).unwrap();
        let mut rows: Vec<i32> = (0..n * batch).map(row).collect();
        if batch > 7 {
            (rows[n], rows[7 * n]) = (-1, i32::MAX);
        }
        for trans in [Trans::None, Trans::Transpose, Trans::ConjTranspose] {
            let mut expected = vec![T::ZERO; b.len()];
            let trsm = crate::triangular::trsm;
            for i in 0..batch {
                let (lu, rows) = (&lu[i * n * n..(i + 1) * n * n], &rows[i * n..(i + 1) * n]);
                let of = i * n * nrhs..(i + 1) * n * nrhs;
                let (b, x) = (&b[of.clone()], &mut expected[of]);
                row_major::lu_solve(trsm, trans, 1, n, nrhs, lu, rows, b, x, &Serial).unwrap();
            }
            for level in Level::available() {
                let what = format!("{trans:?} {n}, {nrhs} columns, batch {batch}, {level:?}");
                let mut x = vec![T::ONE; b.len()];
                let operands = (
                    Items::new("lu", batch, &[n, n], &lu).unwrap(),
                    Items::new("permutation", batch, &[n], &rows).unwrap(),
                    Items::new("b", batch, &[n, nrhs], &b).unwrap(),
                    ItemsMut::new("x", batch, &[n, nrhs], &mut x).unwrap(),
                );
                level.run::<T, _>(
                    batch,
                    operands,
                    &crate::lanes::lu::lu_solve::Solve { trans, n, nrhs },
                );
                alike(&x, &expected, n, &what);
            }
        }
    }
}

/// One matrix in three is not positive definite.
fn cholesky<T: Scalar>() {
    for (n, batch) in ORDERS.into_iter().flat_map(|(n, _)| BATCHES.map(|b| (n, b))) {
        let mut a = random::<T>(n * n * batch);
        for (p, a) in a.iter_mut().enumerate() {
            if p % (n * n) % (n + 1) == 0 {
                let sign = if p / (n * n) % 3 == 2 { -2.0 } else { 2.0 };
                *a = T::from_real(T::Real::from_f64(sign * n as f64));
            }
        }
        for mean in [false, true] {
            let mut expected = a.clone();
            for dst in expected.chunks_exact_mut(n * n) {
                let a = InOut { src: None, dst };
                crate::cholesky::row_major::cholesky(
                    crate::cholesky::potrf,
                    mean,
                    1,
                    n,
                    a,
                    &Serial,
                )
                .unwrap();
            }
            for level in Level::available() {
                let mut l = a.clone();
                let dst = InOut { src: None, dst: &mut l[..] };
                let operands = (ItemsInOut::new("l", batch, &[n, n], dst).unwrap(),);
                level.run::<T, _>(batch, operands, &crate::lanes::cholesky::FactorRows { n, mean });
                alike(&l, &expected, n, &format!("{n}, mean {mean}, batch {batch}, {level:?}"));
                assert!(batch < 3 || l[2 * n * n].is_nan(), "not positive definite");
            }
        }
    }
}

fn qr<T: Scalar>() {
    for ((m, n), batch) in ORDERS.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let a = random::<T>(m * n * batch);
        for c in [m.min(n), m] {
            let (mut q, mut r) = (vec![T::ZERO; m * c * batch], vec![T::ZERO; c * n * batch]);
            for i in 0..batch {
                let a = &a[i * m * n..(i + 1) * m * n];
                let (q, r) =
                    (&mut q[i * m * c..(i + 1) * m * c], &mut r[i * c * n..(i + 1) * c * n]);
                crate::qr::row_major::qr(
                    (crate::qr::geqrf, crate::qr::q::orgqr),
                    1,
                    (m, n, c),
                    a,
                    q,
                    r,
                    &Serial,
                )
                .unwrap();
            }
            for level in Level::available() {
                let what = format!("{m}x{n}, {c} columns of Q, batch {batch}, {level:?}");
                let mut found = (vec![T::ONE; q.len()], vec![T::ONE; r.len()]);
                let operands = (
                    Items::new("a", batch, &[m, n], &a).unwrap(),
                    ItemsMut::new("q", batch, &[m, c], &mut found.0).unwrap(),
                    ItemsMut::new("r", batch, &[c, n], &mut found.1).unwrap(),
                );
                let kernel = crate::lanes::qr::explicit::Decompose { m, n, c };
                level.run::<T, _>(batch, operands, &kernel);
                close(&found.0, &q, 10 * m.max(n), &what);
                close(&found.1, &r, 10 * m.max(n), &what);
                let mut alone = vec![T::ONE; r.len()];
                let operands = (
                    Items::new("a", batch, &[m, n], &a).unwrap(),
                    ItemsMut::new("r", batch, &[c, n], &mut alone).unwrap(),
                );
                level.run::<T, _>(batch, operands, &crate::lanes::qr::explicit::Upper { m, n, c });
                close(&alone, &r, 10 * m.max(n), &what);
            }
        }
    }
}

/// One matrix is not positive definite.
fn definite<T: Scalar>() {
    let sizes = [(1, 1), (2, 1), (3, 4), (4, 1), (5, 9), (20, 2)];
    for ((n, nrhs), batch) in sizes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut a = random::<T>(n * n * batch);
        for a in a.chunks_exact_mut(n * n) {
            a.iter_mut()
                .step_by(n + 1)
                .for_each(|x| *x += T::from_real(T::Real::from_f64(n as f64)));
        }
        if batch > 2 {
            a[3 * n * n - 1] = T::from_real(-T::Real::ONE);
        }
        let b = random::<T>(n * nrhs * batch);
        for (uplo, mean) in
            [(Uplo::Lower, false), (Uplo::Upper, false), (Uplo::Lower, true), (Uplo::Upper, true)]
        {
            let (given, sizes) = (Given { uplo, mean }, (n, nrhs));
            let routines = crate::definite::Routines {
                cholesky: crate::cholesky::cholesky,
                cho_solve: crate::definite::cho_solve,
            };
            let mut x = vec![T::ZERO; b.len()];
            let (mut factor, mut logdet) = (vec![T::ZERO; a.len()], vec![T::Real::ZERO; batch]);
            let kept = Kept { factor: &mut factor, logdet: &mut logdet };
            by_factor_kept(routines, given, batch, sizes, &a, &b, &mut x, kept, &Serial).unwrap();
            for level in Level::available() {
                let what =
                    format!("{n}, {nrhs} right-hand sides, batch {batch}, {given:?}, {level:?}");
                let inputs = || {
                    let a = Items::new("a", batch, &[n, n], &a).unwrap();
                    (a, Items::new("b", batch, &[n, nrhs], &b).unwrap())
                };
                let (mut found, mut alone) = (vec![T::ONE; b.len()], vec![T::ONE; b.len()]);
                let (mut f, mut logs) = (vec![T::ONE; a.len()], vec![T::Real::ZERO; batch]);
                let kernel = crate::lanes::definite::Solve { given, n, nrhs };
                let to = ItemsMut::new("x", batch, &[n, nrhs], &mut found).unwrap();
                let f_to = ItemsMut::new("factor", batch, &[n, n], &mut f).unwrap();
                let logs_to = ItemsMut::new("logdet", batch, &[], &mut logs).unwrap();
                let (a, b) = inputs();
                level.run::<T, _>(batch, (a, b, to, f_to, logs_to), &kernel);
                alike(&found, &x, 100 * n, &what);
                alike(&f, &factor, 100 * n, &what);
                for (found, expected) in logs.iter().zip(&logdet) {
                    let limit = T::Real::from_f64(100.0 * n as f64) * T::Real::EPSILON;
                    let same = (*found - *expected).abs() <= limit;
                    assert!(same || found.is_nan() && expected.is_nan(), "{what}");
                }
                let (a, b) = inputs();
                let to = ItemsMut::new("x", batch, &[n, nrhs], &mut alone).unwrap();
                level.run::<T, _>(batch, (a, b, to), &kernel);
                alike(&alone, &x, 100 * n, &what);
                let kernel = crate::lanes::definite::Substitute { uplo, n, nrhs };
                let f = Items::new("factor", batch, &[n, n], &factor).unwrap();
                let b = inputs().1;
                let to = ItemsMut::new("x", batch, &[n, nrhs], &mut alone).unwrap();
                level.run::<T, _>(batch, (f, b, to), &kernel);
                alike(&alone, &x, 100 * n, &what);
            }
        }
    }
}

/// One system is singular.
fn tridiagonal<T: Scalar>() {
    let sizes = [(1, 1), (2, 3), (5, 2), (33, 1)];
    for ((m, nrhs), batch) in sizes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let [dl, mut d, du] = [0, 1, 2].map(|k| random::<T>(m * batch + k)[k..].to_vec());
        d.iter_mut().for_each(|d| *d += T::from_real(T::Real::from_f64(3.0)));
        let mut diagonals = [dl, d, du];
        if batch > 7 {
            diagonals.iter_mut().for_each(|d| d[7 * m..8 * m].fill(T::ZERO));
        }
        let b = random::<T>(m * nrhs * batch);
        let mut expected = vec![T::ZERO; b.len()];
        for i in 0..batch {
            let a = diagonals.each_ref().map(|d| &d[i * m..(i + 1) * m]);
            let of = i * m * nrhs..(i + 1) * m * nrhs;
            let (b, x) = (&b[of.clone()], &mut expected[of]);
            let gtsv = crate::tridiagonal::gtsv;
            crate::tridiagonal::row_major::tridiagonal_solve(gtsv, 1, (m, nrhs), a, b, x, &Serial)
                .unwrap();
        }
        for level in Level::available() {
            let what = format!("{m} rows, {nrhs} right-hand sides, batch {batch}, {level:?}");
            let [dl, d, du] =
                diagonals.each_ref().map(|d| Items::new("d", batch, &[m], d).unwrap());
            let mut x = vec![T::ONE; b.len()];
            let b = Items::new("b", batch, &[m, nrhs], &b).unwrap();
            let operands = (dl, d, du, b, ItemsMut::new("x", batch, &[m, nrhs], &mut x).unwrap());
            level.run::<T, _>(batch, operands, &crate::lanes::tridiagonal::SolveRows { m, nrhs });
            alike(&x, &expected, m, &what);
            assert!(batch <= 7 || x[7 * m * nrhs].is_nan(), "{what}: singular");
        }
    }
}

/// A system's solution has the same bits beside systems whose pivots are zero, NaN, or too small or too
/// large for their reciprocals.
fn tridiagonal_beside<T: Scalar>() {
    for (m, level) in
        [1, 2, 3, 5, 33].into_iter().flat_map(|m| Level::available().map(move |level| (m, level)))
    {
        let batch = 2 * level.lanes::<T>() + 1;
        let [dl, mut d, du, b] = [0, 1, 2, 3].map(|k| random::<T>(m * batch + k)[k..].to_vec());
        // Some rows are swapped.
        d.iter_mut().step_by(2).for_each(|d| *d += T::from_real(T::Real::from_f64(3.0)));
        let solved = |d: &[T]| {
            let mut x = vec![T::ONE; b.len()];
            let [dl, d, du, b] =
                [&dl, d, &du, &b].map(|d| Items::new("d", batch, &[m], d).unwrap());
            let operands = (dl, d, du, b, ItemsMut::new("x", batch, &[m], &mut x).unwrap());
            let kernel = crate::lanes::tridiagonal::SolveRows { m, nrhs: 1 };
            level.run::<T, _>(batch, operands, &kernel);
            x
        };
        let expected = solved(&d);
        let small = T::Real::SAFE_MIN * T::Real::from_f64(0.1);
        let nan = T::Real::from_f64(f64::NAN);
        let places = [0, level.lanes::<T>()];
        for (odd, at) in [T::Real::ZERO, nan, small, T::Real::MAX]
            .into_iter()
            .flat_map(|odd| places.map(|at| (odd, at)))
        {
            // The first system of a group.
            let (mut d, first) = (d.clone(), at * m);
            d[first] = T::from_real(odd);
            let found = solved(&d);
            let what = format!("{m} rows, {odd:?} at {at}, {level:?}");
            assert_eq!(found[..first], expected[..first], "{what}");
            assert_eq!(found[first + m..], expected[first + m..], "{what}");
            if m == 1 && (odd == small || odd == T::Real::MAX) {
                assert_eq!(found[at], b[at].divide(d[at]), "{what}");
            } else if m == 1 {
                assert!(found[at].is_nan(), "{what}");
            }
        }
    }
}

/// Right-hand sides of one system whose elimination swapped every third row, against one at a time.
fn tridiagonal_columns<T: Scalar>() {
    use crate::lanes::tridiagonal::columns::AsItIs;
    use crate::lanes::tridiagonal::columns::SolveColumns;
    use crate::lanes::tridiagonal::columns::Step;
    for (m, columns) in [(1, 1), (2, 4), (5, 3), (33, 4)] {
        let [dl, mut d, du] = [0, 1, 2].map(|k| random::<T>(m + k)[k..].to_vec());
        d.iter_mut().for_each(|d| *d += T::from_real(T::Real::from_f64(3.0)));
        let step = |(i, &multiplier): (usize, &T)| Step { multiplier, swapped: i % 3 == 1 };
        let steps: Vec<_> = random::<T>(m + 3)[3..].iter().enumerate().map(step).collect();
        for (level, items) in Level::available().flat_map(|l| BATCHES.map(|b| (l, b))) {
            let b = random::<T>(m * columns * items);
            let mut expected = b.clone();
            for x in expected.chunks_exact_mut(m) {
                for i in 1..m {
                    if steps[i - 1].swapped {
                        x.swap(i - 1, i);
                    }
                    let above = x[i - 1];
                    x[i] -= steps[i - 1].multiplier * above;
                }
                for i in (0..m).rev() {
                    let next = if i + 1 < m { du[i] * x[i + 1] } else { T::ZERO };
                    let second = if i + 2 < m { dl[i + 1] * x[i + 2] } else { T::ZERO };
                    x[i] = (x[i] - next - second).divide(d[i]);
                }
            }
            let mut x = vec![T::ONE; b.len()];
            let rhs = InOut { src: Some(&b[..]), dst: &mut x[..] };
            let rhs = ItemsInOut::new("b", items, &[m, columns], rhs).unwrap();
            let upper = [&dl[..], &d[..], &du[..]];
            let kernel = SolveColumns { columns, steps: &steps, upper, division: &AsItIs };
            level.run::<T, _>(items, (rhs,), &kernel);
            close(&x, &expected, 10 * m, &format!("{m} rows, {columns} x {items}, {level:?}"));
        }
    }
}

/// Some elements are zero, small or large, and one matrix is not finite.
fn cholesky_update<T: Scalar>() {
    for (n, batch) in [1, 2, 3, 5, 17].into_iter().flat_map(|n| BATCHES.map(|b| (n, b))) {
        let real = |x| T::from_real(T::Real::from_f64(x));
        let mut r = random::<T>(n * n * batch);
        let mut w = random::<T>(n * batch + 1)[1..].to_vec();
        r.iter_mut().step_by(5).for_each(|r| *r = T::ZERO);
        w.iter_mut().step_by(3).for_each(|w| *w = T::ZERO);
        let odd = [(8, T::Real::SAFE_MIN.to_f64()), (9, T::Real::MAX.to_f64() / 8.0)];
        for (i, factor) in odd.into_iter().filter(|&(i, _)| i < batch) {
            r[i * n * n..(i + 1) * n * n].iter_mut().for_each(|r| *r *= real(factor));
            w[i * n..(i + 1) * n].iter_mut().for_each(|w| *w *= real(factor));
        }
        if batch > 7 {
            w[7 * n] = real(f64::NAN);
        }
        let (mut expected, mut rest) = (r.clone(), w.clone());
        for (r, w) in expected.chunks_mut(n * n).zip(rest.chunks_mut(n)) {
            let [r, w] = [r, w].map(|dst| InOut { src: None, dst });
            crate::cholesky::update::cholesky_update(1, n, r, w, &Serial).unwrap();
        }
        for level in Level::available() {
            let (mut found, mut left) = (vec![T::ONE; r.len()], vec![T::ONE; w.len()]);
            let operand = |src, dst, shape: &[usize]| {
                ItemsInOut::new("r", batch, shape, InOut { src: Some(src), dst }).unwrap()
            };
            let operands = (operand(&r, &mut found, &[n, n]), operand(&w, &mut left, &[n]));
            level.run::<T, _>(batch, operands, &crate::lanes::cholesky_update::Update { n });
            let matrices = found.chunks(n * n).zip(expected.chunks(n * n));
            for (i, (found, expected)) in matrices.enumerate() {
                let what = format!("{n}, batch {batch}, matrix {i}, {level:?}");
                let factor = odd.iter().find(|odd| odd.0 == i).map_or(1.0, |odd| odd.1);
                let [found, expected] =
                    [found, expected].map(|x| x.iter().map(|x| x.divide(real(factor))).collect());
                let (found, expected): (Vec<T>, Vec<T>) = (found, expected);
                alike(&found, &expected, n, &what);
            }
            assert!(left.iter().zip(&rest).all(|(x, y)| x == y || y.is_nan()));
        }
    }
}
