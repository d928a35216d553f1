//! The kernels by rows at each level of SIMD, against those with a matrix in each lane.

use faer::Conj;
use lapax_core::{InOut, Items, ItemsInOut, ItemsMut};

use super::parallel::apply_both_sides;
use crate::blas::rotations::set_identity;
use crate::hessenberg::columns;
use crate::hessenberg::reduce::only_hessenberg;
use crate::matrix::layout::Layout;
use crate::matrix::rows::Output;
use crate::matrix::triangle;
use crate::matrix::triangle::System;
use crate::registers::LANES;
use crate::simd::arch::Arch as Level;
use crate::testing::levels::{close, random};
use crate::testing::threads::transposed;
use crate::unblocked::triangular;
use crate::{Diag, Real, Scalar, Trans, Uplo};
use crate::{lanes, unblocked};

for_each_scalar!(
    lu,
    few_factors,
    systems,
    few_systems,
    one_right_hand_side,
    lu_systems,
    cho_solve,
    inverses,
    cholesky,
    few_hermitian,
    qr,
    hessenberg
);

/// Whole registers and ragged ones, tall and wide, up to the largest.
const ORDERS: [(usize, usize); 9] =
    [(9, 9), (16, 16), (17, 17), (32, 32), (33, 33), (64, 64), (9, 40), (64, 10), (1, 20)];

/// The levels whose registers hold enough.
fn levels<T: Scalar>() -> impl Iterator<Item = Level> {
    Level::available().filter(|level| level.lanes::<T>() >= LANES)
}

/// Matrices with nothing special, with ties, with zero columns, with tiny numbers, with NaN and
/// infinity.
fn matrices<T: Scalar>(m: usize, n: usize, order: Layout) -> Vec<T> {
    let plain = random::<T>(m * n);
    // Every column of every step has one size alone, and nothing is rounded.
    let width = if order == Layout::Rows { n } else { m };
    let smaller = |p: usize| T::Real::from_f64(((p / width).min(p % width) + 1) as f64);
    let tied = (0..m * n).map(|p| T::from_real(smaller(p))).collect::<Vec<_>>();
    let mut singular = plain.clone();
    for (p, x) in singular.iter_mut().enumerate() {
        let column = p % n;
        if column == n / 2 || column == n - 1 {
            *x = T::ZERO;
        }
    }
    let tiny = plain.iter().map(|x| x.scale(T::Real::SAFE_MIN)).collect::<Vec<_>>();
    let mut strange = plain.clone();
    strange[m * n / 2] = T::from_real(T::Real::from_f64(f64::NAN));
    let mut infinite = plain.clone();
    infinite[m * n / 3] = T::from_real(T::Real::from_f64(f64::INFINITY));
    [plain, tied, singular, tiny, strange, infinite].concat()
}

/// Compares, and takes what is no finite number for equal to what is none.
fn alike<T: Scalar>(a: &[T], b: &[T], size: usize, what: &str) {
    let finite = |x: &[T]| -> Vec<T> {
        x.iter().map(|x| if x.abs1().to_f64().is_finite() { *x } else { T::ZERO }).collect()
    };
    for (a, b) in a.iter().zip(b) {
        let finite = [a, b].map(|x| x.abs1().to_f64().is_finite());
        assert_eq!(finite[0], finite[1], "{what}: {a:?} {b:?}");
    }
    close(&finite(a), &finite(b), size, what);
}

fn lu<T: Scalar>() {
    for (m, n) in ORDERS {
        let k = m.min(n);
        for (order, output) in
            [(Layout::Rows, Output::Permutation), (Layout::Columns, Output::Lapack)]
        {
            let a = matrices::<T>(m, n, order);
            let batch = a.len() / (m * n);
            let others = if order == Layout::Rows { m } else { 1 };
            let run = |level: Level, by_rows: bool| {
                let mut found =
                    (vec![T::ONE; a.len()], vec![7; k * batch], vec![7; others * batch]);
                let lu = InOut { src: Some(&a[..]), dst: &mut found.0[..] };
                let operands = (
                    ItemsInOut::new("a", batch, &[m, n], lu).unwrap(),
                    ItemsMut::new("pivots", batch, &[k], &mut found.1).unwrap(),
                    ItemsMut::new("second", batch, &[others], &mut found.2).unwrap(),
                );
                if by_rows {
                    level.run::<T, _>(
                        batch,
                        operands,
                        &crate::registers::lu::Factor { m, n, order, output },
                    );
                } else {
                    level.run::<T, _>(batch, operands, &lanes::lu::Factor { m, n, order, output });
                }
                found
            };
            for level in levels::<T>() {
                let (expected, found) = (run(level, false), run(level, true));
                for (i, size) in (0..batch).map(|i| (i, m * n)) {
                    let what = format!("{m}x{n}, {order:?}, matrix {i}, {level:?}");
                    let of = |x: &[i32], width: usize| x[i * width..(i + 1) * width].to_vec();
                    assert_eq!(of(&found.1, k), of(&expected.1, k), "{what}");
                    assert_eq!(of(&found.2, others), of(&expected.2, others), "{what}");
                    let of = i * size..(i + 1) * size;
                    alike(&found.0[of.clone()], &expected.0[of], 10 * m.max(n), &what);
                }
            }
        }
    }
}

fn few_factors<T: Scalar>() {
    let sizes =
        [(9, 9), (16, 16), (17, 17), (24, 24), (32, 32), (9, 30), (32, 10), (30, 9), (1, 20)];
    for ((m, n), level) in
        sizes.into_iter().flat_map(|size| Level::available().map(move |l| (size, l)))
    {
        let (k, size) = (m.min(n), m * n);
        let a = matrices::<T>(m, n, Layout::Rows);
        let batch = a.len() / size;
        let mut expected = (vec![T::ONE; a.len()], vec![7; k * batch], vec![7; m * batch]);
        let lu = InOut { src: Some(&a[..]), dst: &mut expected.0[..] };
        let operands = (
            ItemsInOut::new("a", batch, &[m, n], lu).unwrap(),
            ItemsMut::new("pivots", batch, &[k], &mut expected.1).unwrap(),
            ItemsMut::new("permutation", batch, &[m], &mut expected.2).unwrap(),
        );
        let (order, output) = (Layout::Rows, Output::Permutation);
        level.run::<T, _>(batch, operands, &lanes::lu::Factor { m, n, order, output });
        for (i, a) in a.chunks_exact(size).enumerate() {
            let what = format!("{m}x{n}, matrix {i}, {level:?}");
            let (mut found, mut pivots) = (a.to_vec(), vec![7; k]);
            let (a, pivots) = (&mut found[..], &mut pivots[..]);
            level.dispatch(unblocked::lu::FactorRows::<_, { unblocked::lu::LARGE }> {
                a,
                n,
                pivots,
            });
            assert_eq!(pivots, &expected.1[i * k..(i + 1) * k], "{what}");
            alike(&found, &expected.0[i * size..(i + 1) * size], 10 * m.max(n), &what);
        }
    }
}

/// Well-conditioned triangles, one with a tiny and one with a zero diagonal.
fn triangles<T: Scalar>(n: usize, batch: usize) -> Vec<T> {
    let mut a = random::<T>(n * n * batch);
    for (p, x) in a.iter_mut().enumerate() {
        *x = x.unscale(T::Real::from_f64(n as f64));
        if (p % (n * n)).is_multiple_of(n + 1) {
            *x += T::from_real(T::Real::from_f64(2.0));
        }
    }
    a[n * n..n * n * 2].iter_mut().for_each(|x| *x = x.scale(T::Real::SAFE_MIN));
    a[2 * n * n + (n / 2) * (n + 1)] = T::ZERO;
    a
}

fn few_systems<T: Scalar>() {
    for (n, nrhs) in [(1, 8), (9, 9), (16, 16), (17, 20), (32, 32), (24, 13)] {
        let (a, b) = (triangles::<T>(n, 3), random::<T>(n * nrhs));
        for (case, level) in (0..16).flat_map(|case| Level::available().map(move |l| (case, l))) {
            let uplo = if case & 1 == 0 { Uplo::Lower } else { Uplo::Upper };
            let diag = if case & 2 == 0 { Diag::Unit } else { Diag::NonUnit };
            let conj = case & 4 != 0;
            let a_order = if case & 8 == 0 { Layout::Rows } else { Layout::Columns };
            // The last one has a zero on its diagonal.
            for (i, a) in a.chunks_exact(n * n).enumerate() {
                let what = format!("{n} {nrhs} {uplo:?} {diag:?} {conj} {a_order:?} {i} {level:?}");
                let (mut found, mut expected) = (b.clone(), b.clone());
                let x = InOut { src: None, dst: &mut expected[..] };
                let operands = (
                    Items::new("a", 1, &[n, n], a).unwrap(),
                    ItemsInOut::new("b", 1, &[n, nrhs], x).unwrap(),
                );
                let b_order = Layout::Rows;
                let one = lanes::triangular::Solve { uplo, diag, conj, n, nrhs, a_order, b_order };
                level.run::<T, _>(1, operands, &one);
                let conj = if conj { Conj::Yes } else { Conj::No };
                let system = System { uplo, diag, conj };
                let b = &mut found[..];
                level.dispatch(triangular::SubstituteRows::<_, { unblocked::ORDER }> {
                    system,
                    n,
                    nrhs,
                    a,
                    a_order,
                    b,
                });
                alike(&found, &expected, 10 * n, &what);
            }
        }
    }
}

fn systems<T: Scalar>() {
    let batch = 5;
    for (n, nrhs) in ORDERS {
        let (a, b) = (triangles::<T>(n, batch), random::<T>(n * nrhs * batch));
        let of = |k: usize| if k == 0 { Layout::Rows } else { Layout::Columns };
        for case in 0..32 {
            let uplo = if case & 1 == 0 { Uplo::Lower } else { Uplo::Upper };
            let diag = if case & 2 == 0 { Diag::Unit } else { Diag::NonUnit };
            let (conj, a_order, b_order) = (case & 4 != 0, of(case & 8), of(case & 16));
            for level in levels::<T>() {
                let what =
                    format!("{n} {nrhs} {uplo:?} {diag:?} {a_order:?} {b_order:?} {level:?}");
                let run = |by_rows: bool| {
                    let mut x = b.clone();
                    let operands = (
                        Items::new("a", batch, &[n, n], &a).unwrap(),
                        ItemsInOut::new("b", batch, &[n, nrhs], InOut { src: None, dst: &mut x })
                            .unwrap(),
                    );
                    if by_rows {
                        level.run::<T, _>(
                            batch,
                            operands,
                            &crate::registers::substitution::Solve {
                                uplo,
                                diag,
                                conj,
                                n,
                                nrhs,
                                a_order,
                                b_order,
                            },
                        );
                    } else {
                        level.run::<T, _>(
                            batch,
                            operands,
                            &lanes::triangular::Solve {
                                uplo,
                                diag,
                                conj,
                                n,
                                nrhs,
                                a_order,
                                b_order,
                            },
                        );
                    }
                    x
                };
                alike(&run(true), &run(false), n, &what);
            }
        }
    }
}

/// Sizes around the unknowns that are found at once, and longer than the widest register.
fn one_right_hand_side<T: Scalar>() {
    let batch = 3;
    for n in [1, 3, 4, 5, 9, 16, 33, 70] {
        let (a, b) = (triangles::<T>(n, batch), random::<T>(n * batch));
        for case in 0..16 {
            let uplo = if case & 1 == 0 { Uplo::Lower } else { Uplo::Upper };
            let diag = if case & 2 == 0 { Diag::Unit } else { Diag::NonUnit };
            let (conj, order) =
                (case & 4 != 0, if case & 8 == 0 { Layout::Rows } else { Layout::Columns });
            for level in Level::available() {
                let mut expected = b.clone();
                let x = InOut { src: None, dst: &mut expected[..] };
                let operands = (
                    Items::new("a", batch, &[n, n], &a).unwrap(),
                    ItemsInOut::new("b", batch, &[n, 1], x).unwrap(),
                );
                let (a_order, b_order) = (order, Layout::Columns);
                let kernel =
                    lanes::triangular::Solve { uplo, diag, conj, n, nrhs: 1, a_order, b_order };
                level.run::<T, _>(batch, operands, &kernel);
                let mut found = b.clone();
                for (a, x) in a.chunks_exact(n * n).zip(found.chunks_exact_mut(n)) {
                    level.dispatch(crate::blas::trsv::Solve { uplo, diag, conj, order, a, x });
                }
                let what = format!("{n} {uplo:?} {diag:?} {conj} {order:?} {level:?}");
                alike(&found, &expected, n, &what);
            }
        }
    }
}

/// Permutations with a row that is none.
fn lu_systems<T: Scalar>() {
    let batch = 4;
    for (n, nrhs) in ORDERS {
        let (lu, b) = (triangles::<T>(n, batch), random::<T>(n * nrhs * batch));
        let row = |i: usize| i32::try_from((i * 7 + i / n) % n).unwrap();
        let mut rows: Vec<i32> = (0..n * batch).map(row).collect();
        (rows[0], rows[3 * n]) = (-1, i32::MAX);
        for trans in [Trans::None, Trans::Transpose, Trans::ConjTranspose] {
            for level in levels::<T>() {
                let run = |by_rows: bool| {
                    let mut x = vec![T::ONE; b.len()];
                    let operands = (
                        Items::new("lu", batch, &[n, n], &lu).unwrap(),
                        Items::new("permutation", batch, &[n], &rows).unwrap(),
                        Items::new("b", batch, &[n, nrhs], &b).unwrap(),
                        ItemsMut::new("x", batch, &[n, nrhs], &mut x).unwrap(),
                    );
                    if by_rows {
                        level.run::<T, _>(
                            batch,
                            operands,
                            &crate::registers::lu_solve::Solve { trans, n, nrhs },
                        );
                    } else {
                        let kernel = lanes::lu::lu_solve::Solve { trans, n, nrhs };
                        level.run::<T, _>(batch, operands, &kernel);
                    }
                    x
                };
                alike(&run(true), &run(false), n, &format!("{n} {nrhs} {trans:?} {level:?}"));
            }
        }
    }
}

fn cho_solve<T: Scalar>() {
    let batch = 3;
    for (n, nrhs) in [(9, 16), (17, 40), (33, 3), (64, 64)] {
        let factor = triangles::<T>(n, batch)[..n * n].repeat(batch);
        let b = random::<T>(n * nrhs * batch);
        for (uplo, level) in
            [Uplo::Lower, Uplo::Upper].into_iter().flat_map(|u| levels::<T>().map(move |l| (u, l)))
        {
            let run = |by_rows: bool| {
                let mut x = vec![T::ONE; b.len()];
                let operands = (
                    Items::new("factor", batch, &[n, n], &factor).unwrap(),
                    Items::new("b", batch, &[n, nrhs], &b).unwrap(),
                    ItemsMut::new("x", batch, &[n, nrhs], &mut x).unwrap(),
                );
                if by_rows {
                    level.run::<T, _>(
                        batch,
                        operands,
                        &crate::registers::cho_solve::Solve { uplo, n, nrhs },
                    );
                } else {
                    let kernel = lanes::definite::Substitute { uplo, n, nrhs };
                    level.run::<T, _>(batch, operands, &kernel);
                }
                x
            };
            alike(&run(true), &run(false), n, &format!("{n} {nrhs} {uplo:?} {level:?}"));
        }
    }
}

/// Whole strips and ragged ones; one matrix is tiny and one is singular.
fn inverses<T: Scalar>() {
    let batch = 3;
    for n in [9, 16, 17, 33, 64] {
        let lu = triangles::<T>(n, batch);
        let row = |i: usize| i32::try_from((i * 7 + i / n) % n).unwrap();
        let rows: Vec<i32> = (0..n * batch).map(row).collect();
        let mut identities = vec![T::ZERO; n * n * batch];
        for identity in identities.chunks_exact_mut(n * n) {
            identity.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
        }
        for level in levels::<T>() {
            let (mut found, mut expected) = (identities.clone(), identities.clone());
            let factors = || {
                (
                    Items::new("lu", batch, &[n, n], &lu).unwrap(),
                    Items::new("permutation", batch, &[n], &rows).unwrap(),
                )
            };
            let (a, permutation) = factors();
            let x = ItemsMut::new("x", batch, &[n, n], &mut found).unwrap();
            let kernel = crate::registers::inverse::Invert { n };
            level.run::<T, _>(batch, (a, permutation, x), &kernel);
            let (a, permutation) = factors();
            let b = Items::new("b", batch, &[n, n], &identities).unwrap();
            let x = ItemsMut::new("x", batch, &[n, n], &mut expected).unwrap();
            let kernel = lanes::lu::lu_solve::Solve { trans: Trans::None, n, nrhs: n };
            level.run::<T, _>(batch, (a, permutation, b, x), &kernel);
            alike(&found, &expected, n, &format!("{n} {level:?}"));
        }
    }
}

/// Some matrices are not positive definite; one has a NaN.
fn few_hermitian<T: Scalar>() {
    for n in [1, 8, 9, 15, 16, 17, 24, 31, 32] {
        let mut a = random::<T>(n * n);
        for i in 0..n {
            a[i * (n + 1)] = T::from_real(T::Real::from_f64(2.0 * n as f64));
        }
        let mut indefinite = a.clone();
        indefinite[n * n - 1] = T::from_real(T::Real::from_f64(-1.0));
        for (mean, level) in [false, true]
            .into_iter()
            .flat_map(|mean| Level::available().map(move |level| (mean, level)))
        {
            let factor = |a: &[T]| {
                let mut l = a.to_vec();
                let a = &mut l[..];
                let factor = unblocked::cholesky::FactorHermitian::<_, { unblocked::lu::LARGE }> {
                    a,
                    n,
                    mean,
                };
                let found = level.dispatch(factor);
                triangle::only_lower(&mut l, n, 0, found);
                l
            };
            let mut expected = a.clone();
            let l = InOut { src: None, dst: &mut expected[..] };
            let operands = (ItemsInOut::new("l", 1, &[n, n], l).unwrap(),);
            level.run::<T, _>(1, operands, &lanes::cholesky::FactorRows { mean, n });
            close(&factor(&a), &expected, n, &format!("{n}, mean {mean}, {level:?}"));
            assert!(factor(&indefinite)[n * n - 1].is_nan(), "{n}, mean {mean}, {level:?}");
        }
    }
}

fn cholesky<T: Scalar>() {
    let batch = 4;
    for n in [9, 16, 17, 33, 64, 65, 100] {
        let mut a = random::<T>(n * n * batch);
        for (p, a) in a.iter_mut().enumerate() {
            if p % (n * n) % (n + 1) == 0 {
                let sign = if p / (n * n) == 2 && p % n == n / 2 { -2.0 } else { 2.0 };
                *a = T::from_real(T::Real::from_f64(sign * n as f64));
            }
        }
        a[3 * n * n + n * n - n] = T::from_real(T::Real::from_f64(f64::NAN));
        for (mean, level) in
            [false, true].into_iter().flat_map(|m| levels::<T>().map(move |l| (m, l)))
        {
            let run = |by_columns: bool| {
                let mut l = vec![T::ONE; a.len()];
                let operand = InOut { src: Some(&a[..]), dst: &mut l[..] };
                let operands = (ItemsInOut::new("l", batch, &[n, n], operand).unwrap(),);
                if by_columns {
                    level.run::<T, _>(
                        batch,
                        operands,
                        &crate::registers::cholesky::Factor { mean, n },
                    );
                } else {
                    level.run::<T, _>(batch, operands, &lanes::cholesky::FactorRows { mean, n });
                }
                l
            };
            let (found, expected) = (run(true), run(false));
            alike(&found, &expected, n, &format!("{n}, mean {mean}, {level:?}"));
            assert!(found[2 * n * n].is_nan() && !found[n * n].is_nan(), "{n}, mean {mean}");
        }
    }
}

/// Columns that are zero below the diagonal, one of them not real on it, and numbers whose squares vanish or
/// overflow among others.
fn qr<T: Scalar>() {
    for (m, n) in [
        (9, 9),
        (16, 16),
        (33, 33),
        (64, 64),
        (65, 70),
        (9, 40),
        (64, 10),
        (100, 5),
        (130, 140),
        (2, 9),
        (3, 17),
        (8, 40),
        (5, 4),
        (8, 8),
        (4, 2),
    ] {
        let plain = random::<T>(m * n);
        let mut diagonal = plain.clone();
        diagonal.iter_mut().enumerate().for_each(|(p, x)| {
            *x = if p / n > p % n { T::ZERO } else { *x };
        });
        let power = |e: f64| T::Real::from_f64(e);
        let tiny = plain.iter().map(|x| x.scale(T::Real::SAFE_MIN)).collect::<Vec<_>>();
        let huge = plain.iter().map(|x| x.scale(T::Real::MAX / power(1e4))).collect::<Vec<_>>();
        let a = [plain, diagonal, tiny, huge].concat();
        for (c, level) in [m.min(n), m].into_iter().flat_map(|c| levels::<T>().map(move |l| (c, l)))
        {
            let run = |by_columns: bool| {
                let mut found = (vec![T::ONE; m * c * 4], vec![T::ONE; c * n * 4]);
                let operands = (
                    Items::new("a", 4, &[m, n], &a).unwrap(),
                    ItemsMut::new("q", 4, &[m, c], &mut found.0).unwrap(),
                    ItemsMut::new("r", 4, &[c, n], &mut found.1).unwrap(),
                );
                if by_columns {
                    level.run::<T, _>(4, operands, &crate::registers::qr::Explicit { m, n, c });
                } else {
                    level.run::<T, _>(4, operands, &lanes::qr::explicit::Decompose { m, n, c });
                }
                found
            };
            let (found, expected) = (run(true), run(false));
            let mut alone = vec![T::ONE; c * n * 4];
            let operands = (
                Items::new("a", 4, &[m, n], &a).unwrap(),
                ItemsMut::new("r", 4, &[c, n], &mut alone).unwrap(),
            );
            level.run::<T, _>(4, operands, &crate::registers::qr::Upper { m, n, c });
            assert!(alone == found.1, "{m}x{n}, {c} rows of R alone, {level:?}");
            for i in 0..4 {
                let what = format!("{m}x{n}, {c} columns of Q, matrix {i}, {level:?}");
                let (q, r) = (i * m * c..(i + 1) * m * c, i * c * n..(i + 1) * c * n);
                close(&found.0[q.clone()], &expected.0[q], 10 * m.max(n), &what);
                close(&found.1[r.clone()], &expected.1[r], 10 * m.max(n), &what);
            }
        }
    }
}

/// From the first column and from a later one; a column that is zero below its head, and numbers whose squares
/// vanish or overflow among others.
fn hessenberg<T: Scalar>() {
    for (n, start) in [(9, 0), (10, 0), (16, 0), (33, 0), (64, 0), (65, 20), (100, 3)] {
        let mut plain = random::<T>(n * n);
        (0..start * n).filter(|p| p % n > p / n + 1).for_each(|p| plain[p] = T::ZERO);
        let mut reduced = plain.clone();
        let column = n / 2 * n..(n / 2 + 1) * n;
        reduced[column].iter_mut().skip(n / 2 + 2).for_each(|x| *x = T::ZERO);
        let power = |e: f64| T::Real::from_f64(e);
        let tiny = plain.iter().map(|x| x.scale(T::Real::SAFE_MIN)).collect::<Vec<_>>();
        let huge = plain.iter().map(|x| x.scale(T::Real::MAX / power(1e4))).collect::<Vec<_>>();
        for (i, a) in [plain, reduced, tiny, huge].iter().enumerate() {
            for level in levels::<T>() {
                let (mut x, mut tau) = (a.clone(), vec![T::ZERO; n - 1]);
                let mut scratch =
                    crate::registers::hessenberg::Scratch::new::<T>(n, level.lanes::<T>());
                level.dispatch(crate::registers::hessenberg::Reduce {
                    a: &mut x,
                    n,
                    start,
                    tau: &mut tau,
                    scratch: &mut scratch,
                });
                let what = format!("{n} from {start}, matrix {i}, {level:?}");
                assert!(tau[..start].iter().all(|&tau| tau == T::ZERO), "{what}");
                assert!(x[..start * n] == a[..start * n], "{what}");
                let mut product: Vec<T> =
                    (0..n * n).map(|p| if p % n > p / n + 1 { T::ZERO } else { x[p] }).collect();
                let h = transposed(&product, n, n);
                apply_both_sides(&mut product, &x, &tau);
                close(&product, a, 100 * n, &what);
                if start > 0 {
                    continue;
                }
                let [mut q, mut reference] = [vec![T::ZERO; n * n], vec![T::ZERO; n * n]];
                let (reflectors, factors) = (&x, &tau[..]);
                level.dispatch(crate::registers::hessenberg::FormQ {
                    a: reflectors,
                    n,
                    tau: factors,
                    q: &mut q,
                    scratch: &mut scratch,
                });
                set_identity(&mut reference, n);
                level.dispatch(columns::FormQ {
                    a: reflectors,
                    n,
                    active: 0..n,
                    tau: factors,
                    q: &mut reference,
                });
                close(&q, &reference, 100 * n, &what);
                // The same by rows.
                let (mut by_rows, mut whole_q) = (transposed(a, n, n), vec![T::ZERO; n * n]);
                level.dispatch(crate::registers::hessenberg::Whole {
                    h: &mut by_rows,
                    n,
                    tau: &mut vec![T::ZERO; n - 1],
                    q: &mut whole_q,
                    scratch: &mut scratch,
                });
                only_hessenberg(&mut by_rows, n);
                assert!(by_rows == h && whole_q == transposed(&q, n, n), "{what}");
            }
        }
    }
}
