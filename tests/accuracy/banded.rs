//! Banded systems, ‖A·X − B‖ / (‖A‖·‖X‖·ε), and Cholesky factors, ‖A − L·Lᴴ‖ / (n·‖A‖·ε); what is not read, what
//! has no solution, and the same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::banded::{
    Band, Definite, cho_solve_banded, cholesky_banded, solve_banded, solveh_banded,
};
use lapax_cpu::{Serial, Spawned, Threads, Uplo};

use crate::for_each_scalar;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, largest, ratio, transposed};
use crate::ratios::LIMIT;
use crate::sample::{Sample, bits};
use crate::sweep;

for_each_scalar!(
    general_residual,
    definite_residual,
    singular,
    not_definite,
    nan_stays_in_its_matrix,
    same_bits_everywhere,
    empty,
    wrong_sizes_are_named,
);

const ORDERS: [usize; 5] = [1, 2, 7, 33, 300];
const SIDES: [usize; 3] = [1, 3, 10];
/// Diagonals below and above: on both sides of a block of columns, and more than a small matrix has.
const BANDS: [(usize, usize); 7] = [(0, 0), (1, 1), (2, 1), (0, 3), (4, 0), (9, 8), (40, 33)];
const BESIDE: [usize; 5] = [0, 1, 2, 9, 40];
/// A batch by lanes, and those that are not.
const BATCHES: [usize; 3] = [1, 3, 33];

/// A in diagonal-ordered form, with NaN outside.
fn diagonals<T: Sample>(a: &Matrix<T::Wide>, (lower, upper): (usize, usize), e: i32) -> Vec<T> {
    let n = a.rows;
    let at = |p: usize, j: usize| {
        let i = (j + p).checked_sub(upper).filter(|&i| i < n);
        i.map_or(T::nan(), |i| T::narrow(a.at(i, j), e))
    };
    (0..=lower + upper).flat_map(|p| (0..n).map(move |j| (p, j))).map(|(p, j)| at(p, j)).collect()
}

/// The matrix with these diagonals.
fn banded<T: Sample>(ab: &[T], n: usize, upper: usize, e: i32) -> Matrix<T::Wide> {
    Matrix::new(n, n, |i, j| {
        let row = (upper + i).checked_sub(j).filter(|row| row * n < ab.len());
        row.map_or(T::Wide::ZERO, |row| ab[row * n + j].widen(e))
    })
}

fn solve<T: Sample>(
    batch: usize,
    band: Band,
    nrhs: usize,
    ab: &[T],
    b: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let mut x = vec![T::nan(); b.len()];
    solve_banded(batch, band, nrhs, ab, b, &mut x, threads).unwrap();
    x
}

fn solve_definite<T: Sample>(
    batch: usize,
    definite: Definite,
    nrhs: usize,
    ab: &[T],
    b: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let mut x = vec![T::nan(); b.len()];
    solveh_banded(batch, definite, nrhs, ab, b, &mut x, threads).unwrap();
    x
}

fn factor<T: Sample>(batch: usize, definite: Definite, ab: &[T], threads: &dyn Threads) -> Vec<T> {
    let mut factor = vec![T::nan(); ab.len()];
    cholesky_banded(batch, definite, ab, &mut factor, threads).unwrap();
    factor
}

fn by_factor<T: Sample>(
    batch: usize,
    definite: Definite,
    nrhs: usize,
    factor: &[T],
    b: &[T],
    threads: &dyn Threads,
) -> Vec<T> {
    let mut x = vec![T::nan(); b.len()];
    cho_solve_banded(batch, definite, nrhs, factor, b, &mut x, threads).unwrap();
    x
}

/// ‖A·X − B‖ / (size·‖A‖·‖X‖·ε), X and B by rows, A and B scaled by the exponents.
fn error_ratio<T: Sample>(
    a: &Matrix<T::Wide>,
    b: &[T],
    x: &[T],
    size: usize,
    (exponent, of_b): (i32, i32),
) -> f64 {
    let nrhs = b.len() / a.rows;
    let side = |x: &[T], e| Matrix::<T::Wide>::widened(a.rows, &transposed(nrhs, x), e);
    let (b, x) = (side(b, -of_b), side(x, exponent - of_b));
    let error = a.times(&x).minus(&b).norm();
    if error == 0.0 { 0.0 } else { ratio::<T>(error / x.norm(), size, a.norm(), -exponent) }
}

fn sides<T: Sample>(n: usize, nrhs: usize, exponent: i32) -> Vec<T> {
    matrix::<T>(Kind::Random, n, nrhs, 2).narrowed(exponent)
}

/// Kinds of which some diagonals can be those of a singular matrix in T.
fn may_be_singular(kind: Kind) -> bool {
    let singular = matches!(kind, Kind::RankDeficient | Kind::Kahan | Kind::Denormal);
    singular || matches!(kind, Kind::Wilkinson | Kind::Bidiagonal)
}

fn general_residual<T: Sample>() {
    let cases = ORDERS.into_iter().flat_map(|n| BANDS.map(|band| (n, band)));
    for (turn, (n, (lower, upper))) in cases.enumerate() {
        let (band, nrhs) = (Band { lower, upper, n }, SIDES[turn % SIDES.len()]);
        // With many diagonals partial pivoting doubles the last column of Wilkinson's matrix at each step.
        let kinds = sweep::kinds(n).into_iter();
        for kind in kinds.filter(|&kind| kind != Kind::Wilkinson || lower < 10) {
            let exponent = kind.exponent::<T>();
            let ab = diagonals::<T>(&matrix::<T>(kind, n, n, 1), (lower, upper), exponent);
            let b = sides::<T>(n, nrhs, exponent);
            for batch in if n < 100 { &BATCHES[..] } else { &BATCHES[..1] } {
                let what = format!("{kind:?} {band:?} x {nrhs}, {batch}");
                let all = solve(*batch, band, nrhs, &ab.repeat(*batch), &b.repeat(*batch), &Serial);
                let x = &all[..n * nrhs];
                assert!(bits(&all) == bits(x).repeat(*batch), "{what}");
                if !x.iter().all(|&x| Scalar::is_finite(x)) {
                    // Nothing is pivoted in a triangular matrix, and X grows from row to row.
                    let grows = lower.min(upper) == 0 && (exponent != 0 || n > 100);
                    assert!(grows || may_be_singular(kind), "{what}: not finite");
                    continue;
                }
                let a = banded(&ab, n, upper, -exponent);
                let ratio = error_ratio(&a, &b, x, 1, (exponent, exponent));
                assert!(ratio < LIMIT, "{what}: {ratio}");
            }
        }
    }
}

/// G·Gᴴ over its largest element for the lower band G of a matrix of the kind, plus what makes it definite in spite
/// of rounding to T.
fn definite<T: Sample>(kind: Kind, n: usize, beside: usize) -> Matrix<T::Wide> {
    let g = matrix::<T>(kind, n, n, 5).masked(|i, j| j <= i && i <= j + beside);
    let gram = g.times(&g.adjoint());
    let scale = Some(largest(&gram.data)).filter(|&scale| scale > 0.0).unwrap_or(1.0);
    let rounding = if kind == Kind::Denormal { 2.0_f64.powi(-20) } else { T::epsilon() };
    let shift = 20.0 * n as f64 * rounding;
    Matrix::new(n, n, |i, j| {
        let x = gram.at(i, j).unscale(scale);
        if i == j { <T::Wide as Scalar>::from_real(x.re() + shift) } else { x }
    })
}

/// The diagonals of one triangle.
fn triangle<T: Sample>(a: &Matrix<T::Wide>, uplo: Uplo, beside: usize, exponent: i32) -> Vec<T> {
    diagonals(a, if uplo == Uplo::Lower { (beside, 0) } else { (0, beside) }, exponent)
}

/// The triangular matrix L, whichever form it has.
fn lower_factor<T: Sample>(f: &[T], Definite { uplo, beside, n }: Definite) -> Matrix<T::Wide> {
    match uplo {
        Uplo::Lower => banded(f, n, 0, 0),
        Uplo::Upper => banded(f, n, beside, 0).adjoint(),
    }
}

fn definite_residual<T: Sample>() {
    let cases = ORDERS.into_iter().flat_map(|n| BESIDE.map(|beside| (n, beside)));
    for (turn, (n, beside)) in cases.enumerate() {
        let nrhs = SIDES[turn % SIDES.len()];
        for kind in sweep::kinds(n) {
            let exponent = kind.exponent::<T>();
            let full = definite::<T>(kind, n, beside);
            // L·y has terms as large as X/ε: they are to be finite.
            let of_b = if kind == Kind::NearOverflow { exponent - 60 } else { exponent };
            let b = sides::<T>(n, nrhs, of_b);
            for uplo in [Uplo::Lower, Uplo::Upper] {
                let ab = triangle::<T>(&full, uplo, beside, exponent);
                let a = match uplo {
                    Uplo::Lower => banded(&ab, n, 0, -exponent),
                    Uplo::Upper => banded(&ab, n, beside, -exponent).adjoint(),
                };
                let a =
                    Matrix::new(n, n, |i, j| if i >= j { a.at(i, j) } else { a.at(j, i).conj() });
                let definite = Definite { uplo, beside, n };
                for batch in if n < 100 { &BATCHES[..] } else { &BATCHES[..1] } {
                    let what = format!("{kind:?} {definite:?} x {nrhs}, {batch}");
                    let (ab, b) = (ab.repeat(*batch), b.repeat(*batch));
                    let x = solve_definite(*batch, definite, nrhs, &ab, &b, &Serial);
                    let one = n * nrhs;
                    assert!(bits(&x) == bits(&x[..one]).repeat(*batch), "{what}");
                    let solution = error_ratio(&a, &b[..one], &x[..one], n, (exponent, of_b));
                    assert!(solution < LIMIT, "{what}: {solution}");
                    if exponent == 0 {
                        let f = factor(*batch, definite, &ab, &Serial);
                        let size = ab.len() / batch;
                        assert!(bits(&f) == bits(&f[..size]).repeat(*batch), "{what}");
                        factored(definite, &a, &f[..size], &what);
                        let x = by_factor(*batch, definite, nrhs, &f, &b, &Serial);
                        assert!(bits(&x) == bits(&x[..one]).repeat(*batch), "{what}");
                        let solution = error_ratio(&a, &b[..one], &x[..one], n, (0, 0));
                        assert!(solution < LIMIT, "{what}: by the factor {solution}");
                    }
                }
            }
        }
    }
}

fn factored<T: Sample>(definite: Definite, a: &Matrix<T::Wide>, f: &[T], what: &str) {
    let Definite { uplo, beside, n } = definite;
    let l = lower_factor(f, definite);
    let error = ratio::<T>(l.times(&l.adjoint()).minus(a).norm(), n, a.norm(), 0);
    assert!(error < LIMIT, "{what}: the factor {error}");
    for (at, &x) in f.iter().enumerate() {
        let (p, j) = (at / n, at % n);
        let inside = if uplo == Uplo::Lower { j + p < n } else { j + p >= beside };
        assert!(inside || x == T::ZERO, "{what}: {x:?} outside at {p}, {j}");
    }
}

/// Where a pivot is zero X is NaN, in that matrix alone.
fn singular<T: Sample>() {
    for (n, (lower, upper)) in [2, 7, 33, 300].into_iter().flat_map(|n| BANDS.map(|b| (n, b))) {
        let band = Band { lower, upper, n };
        // What is beside the diagonal is small, as X of a triangular matrix would overflow.
        let a = matrix::<T>(Kind::Random, n, n, 1);
        let small = |i, j| a.at(i, j).scale(0.1);
        let a = Matrix::new(n, n, |i, j| if i == j { T::Wide::ONE } else { small(i, j) });
        // The last column is zero.
        let good = diagonals::<T>(&a, (lower, upper), 0);
        let bad = diagonals::<T>(&a.masked(|_, j| j + 1 < n), (lower, upper), 0);
        let b = vec![T::ONE; n];
        for batch in [3, 5] {
            let mut ab = good.repeat(batch);
            ab[good.len()..2 * good.len()].copy_from_slice(&bad);
            let x = solve(batch, band, 1, &ab, &b.repeat(batch), &Serial);
            for (i, x) in x.chunks(n).enumerate() {
                let (nan, finite) =
                    (x.iter().all(|&x| Scalar::is_nan(x)), x.iter().all(|x| x.is_finite()));
                assert!(if i == 1 { nan } else { finite }, "{band:?}, {i} of {batch}");
            }
        }
    }
}

/// Where a minor is not positive, all is NaN, in that matrix alone.
fn not_definite<T: Sample>() {
    for (n, beside) in [1, 2, 7, 33, 300].into_iter().flat_map(|n| BESIDE.map(|b| (n, b))) {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            let definite = Definite { uplo, beside, n };
            let good =
                triangle::<T>(&self::definite::<T>(Kind::Random, n, beside), uplo, beside, 0);
            let main = if uplo == Uplo::Lower { 0 } else { beside };
            for value in [T::ZERO, T::from_f64(-1.0), T::nan()] {
                for batch in [3, 5] {
                    let mut ab = good.repeat(batch);
                    ab[good.len() + main * n + n / 2] = value;
                    let x =
                        solve_definite(batch, definite, 1, &ab, &vec![T::ONE; n * batch], &Serial);
                    let f = factor(batch, definite, &ab, &Serial);
                    let what = format!("{definite:?} {value:?}");
                    for (i, (x, f)) in x.chunks(n).zip(f.chunks(good.len())).enumerate() {
                        if i != 1 {
                            assert!(x.iter().chain(f).all(|&x| Scalar::is_finite(x)), "{what}");
                            continue;
                        }
                        // On a diagonal a NaN is in its row alone.
                        let nans = x.iter().filter(|&&x| Scalar::is_nan(x)).count();
                        assert!(nans == n || (beside == 0 && nans == 1), "{what}: {nans} of {n}");
                        let diagonal = &f[main * n..(main + 1) * n];
                        assert!(diagonal.iter().all(|&x| Scalar::is_nan(x)), "{what}");
                    }
                }
            }
        }
    }
}

/// A NaN in A or B reaches X, and no neighbour.
fn nan_stays_in_its_matrix<T: Sample>() {
    for (n, (lower, upper)) in [7, 33, 100].into_iter().flat_map(|n| BANDS.map(|b| (n, b))) {
        let (band, nrhs) = (Band { lower, upper, n }, 2);
        let one = diagonals::<T>(&matrix::<T>(Kind::Random, n, n, 1), (lower, upper), 0);
        for batch in [3, 33] {
            let (clean, b) = (one.repeat(batch), sides::<T>(n, nrhs, 0).repeat(batch));
            let expected = solve(batch, band, nrhs, &clean, &b, &Serial);
            let (mut ab, mut other) = (clean.clone(), b.clone());
            ab[one.len() + upper * n + n / 2] = T::nan();
            other[n * nrhs + n / 2] = T::nan();
            for (ab, b) in [(&ab, &b), (&clean, &other)] {
                let x = solve(batch, band, nrhs, ab, b, &Serial);
                for (i, (x, expected)) in
                    x.chunks(n * nrhs).zip(expected.chunks(n * nrhs)).enumerate()
                {
                    if i == 1 {
                        assert!(x.iter().any(|&x| Scalar::is_nan(x)), "{band:?}");
                    } else {
                        assert!(bits(x) == bits(expected), "{band:?}, {i} of {batch}");
                    }
                }
            }
        }
    }
}

fn same_bits_everywhere<T: Sample>() {
    for (n, beside, batch) in [(3, 1, 4000), (30, 4, 300), (2000, 1, 9), (3000, 6, 7)] {
        let a = matrix::<T>(Kind::Random, 40, 40, 3);
        let wide = |i: usize, j: usize| a.at(i % 40, j % 40).scale(if i == j { 3.0 } else { 0.1 });
        let at = |i: usize, j: usize| T::narrow(wide(i, j), 0);
        let (band, nrhs) = (Band { lower: beside, upper: beside, n }, 2);
        let general: Vec<T> = (0..band_rows(band))
            .flat_map(|p| (0..n).map(move |j| (p, j)))
            .map(|(p, j)| at(p + j, j))
            .collect();
        let definite = Definite { uplo: Uplo::Upper, beside, n };
        let mut hermitian = general[..(beside + 1) * n].to_vec();
        hermitian[beside * n..].fill(T::from_f64(9.0));
        let b: Vec<T> = (0..n * nrhs).map(|i| at(i, 7)).collect();
        let run = |batch: usize, threads: &dyn Threads| {
            let (general, hermitian, b) =
                (general.repeat(batch), hermitian.repeat(batch), b.repeat(batch));
            let f = factor(batch, definite, &hermitian, threads);
            [
                bits(&solve(batch, band, nrhs, &general, &b, threads)),
                bits(&solve_definite(batch, definite, nrhs, &hermitian, &b, threads)),
                bits(&by_factor(batch, definite, nrhs, &f, &b, threads)),
                bits(&f),
            ]
        };
        let few = run(sweep::FEW, &Serial);
        for threads in [1, 2, 7] {
            let many = run(batch, &Spawned(threads));
            for (many, few) in many.iter().zip(&few) {
                assert!(*many == few[..few.len() / sweep::FEW].repeat(batch), "{n}, {threads}");
            }
        }
    }
}

fn band_rows(band: Band) -> usize {
    band.lower + band.upper + 1
}

fn empty<T: Sample>() {
    let (band, definite) =
        (|n| Band { lower: 1, upper: 2, n }, |n| Definite { uplo: Uplo::Lower, beside: 2, n });
    for batch in [0, 1, 3, 9] {
        assert!(solve::<T>(batch, band(0), 2, &[], &[], &Serial).is_empty());
        assert!(solve_definite::<T>(batch, definite(0), 2, &[], &[], &Serial).is_empty());
        assert!(factor::<T>(batch, definite(0), &[], &Serial).is_empty());
        let a = vec![T::ONE; 20 * batch];
        assert!(solve(batch, band(5), 0, &a, &[], &Serial).is_empty());
        let a = vec![T::ONE; 15 * batch];
        assert!(solve_definite(batch, definite(5), 0, &a, &[], &Serial).is_empty());
        assert!(by_factor(batch, definite(5), 0, &a, &[], &Serial).is_empty());
    }
    let mut x = [T::ONE; 3];
    let short = solve_banded(1, band(3), 1, &[T::ONE; 11], &[T::ONE; 3], &mut x, &Serial);
    let expected = "operand ab holds 11 elements, but its dimensions ask for 12";
    assert_eq!(short.map_err(|e| e.to_string()), Err(expected.to_owned()));
}

fn wrong_sizes_are_named<T: Sample>() {
    let definite = Definite { uplo: Uplo::Lower, beside: 1, n: 3 };
    let (short, b, mut x) = ([T::ONE; 5], [T::ONE; 3], [T::ONE; 3]);
    let error = cho_solve_banded(1, definite, 1, &short, &b, &mut x, &Serial).unwrap_err();
    assert!(error.to_string().contains("factor"), "{error}");
    let error = solveh_banded(1, definite, 1, &short, &b, &mut x, &Serial).unwrap_err();
    assert!(error.to_string().contains("ab"), "{error}");
}
