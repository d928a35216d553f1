//! Block-tridiagonal positive definite matrices against dense ones: ‖A − L·Lᴴ‖ / (n·‖A‖·ε), the systems, the
//! determinant and the inverse, what is not read, and the same bits everywhere.

use lapax_core::{Scalar, Sweeps};
use lapax_cpu::block_tridiagonal::{
    Band, BandMut, Blocks, block_tridiagonal_cho_solve, block_tridiagonal_cholesky,
    block_tridiagonal_inverse, block_tridiagonal_solve,
};
use lapax_cpu::{Real as _, Serial, Spawned, Threads};

use crate::for_each_scalar;
use crate::matrix::{Matrix, ratio};
use crate::ratios::LIMIT;
use crate::sample::{Random, Sample, bits};

for_each_scalar!(residual, not_definite_or_not_finite, same_bits_everywhere);

/// On both sides of the orders that go number by number, of those that go through lanes, and of a register.
const ORDERS: [usize; 9] = [1, 2, 3, 4, 5, 8, 16, 17, 32];
const COUNTS: [usize; 5] = [0, 1, 2, 5, 40];
const BATCHES: [usize; 3] = [1, 3, 33];
/// The rows of the largest dense matrix.
const ROWS: usize = 170;

/// The blocks of one matrix, or of a batch.
#[derive(Clone)]
struct Pair<T> {
    diagonal: Vec<T>,
    off: Vec<T>,
}

impl<T: Sample> Pair<T> {
    fn nan(blocks: Blocks, batch: usize) -> Self {
        let (square, count) = (blocks.n * blocks.n, blocks.count);
        let of = |count: usize| vec![T::nan(); batch * count * square];
        Self { diagonal: of(count), off: of(count.saturating_sub(1)) }
    }

    fn band(&self) -> Band<'_, T> {
        Band { diagonal: &self.diagonal, off_diagonal: &self.off }
    }

    fn band_mut(&mut self) -> BandMut<'_, T> {
        BandMut { diagonal: &mut self.diagonal, off_diagonal: &mut self.off }
    }

    fn repeat(&self, times: usize) -> Self {
        Self { diagonal: self.diagonal.repeat(times), off: self.off.repeat(times) }
    }

    fn bits(&self) -> [Vec<(u64, u64)>; 2] {
        [bits(&self.diagonal), bits(&self.off)]
    }

    /// The dense matrix: of the blocks' lower triangles, or of all that they have.
    fn dense(&self, Blocks { count, n }: Blocks, lower: bool) -> Matrix<T::Wide> {
        Matrix::new(count * n, count * n, |i, j| {
            let ((p, i), (q, j)) = ((i / n, i % n), (j / n, j % n));
            let at = |i: usize, j: usize| i * n + j;
            match p {
                _ if p == q && lower && i < j => T::Wide::ZERO,
                _ if p == q => self.diagonal[p * n * n + at(i, j)].widen(0),
                _ if p == q + 1 => self.off[q * n * n + at(i, j)].widen(0),
                _ => T::Wide::ZERO,
            }
        })
    }
}

/// A dominant matrix, with NaN above the diagonals of its blocks; `grade` makes its rows smaller from one to the next.
fn definite<T: Sample>(Blocks { count, n }: Blocks, grade: f64, seed: u64) -> Pair<T> {
    let mut random = Random(seed);
    let size = |row: usize| (-grade * row as f64).exp2();
    let mut number = |i: usize, j: usize, shift: f64| {
        let x = random.scalar::<T::Wide>() + T::Wide::from_real(shift);
        T::narrow(x.scale(size(i) * size(j)), 0)
    };
    let mut pair = Pair { diagonal: Vec::new(), off: Vec::new() };
    for row in 0..count * n {
        for column in row / n * n..(row / n + 1) * n {
            let on = if row == column { 6.0 * n as f64 } else { 0.0 };
            let x = number(row, column, on);
            pair.diagonal.push(match column.cmp(&row) {
                std::cmp::Ordering::Less => x,
                std::cmp::Ordering::Equal => T::from_real(x.re()),
                std::cmp::Ordering::Greater => T::nan(),
            });
        }
    }
    for row in n..(count * n).max(n) {
        let first = (row / n - 1) * n;
        pair.off.extend((first..first + n).map(|column| number(row, column, 0.0)));
    }
    pair
}

fn hermitian<W: Scalar<Real = f64>>(lower: &Matrix<W>) -> Matrix<W> {
    Matrix::new(lower.rows, lower.rows, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => lower.at(j, i).conj(),
        std::cmp::Ordering::Equal => W::from_real(lower.at(i, i).re()),
        std::cmp::Ordering::Greater => lower.at(i, j),
    })
}

/// What the routines return; the factor of both calls is the same.
struct Solved<T: Scalar> {
    factor: Pair<T>,
    x: Vec<T>,
    logdet: Vec<T::Real>,
    sweeps: [Vec<T>; 3],
    inverse: Pair<T>,
}

const SWEEPS: [Sweeps; 3] = [Sweeps::Both, Sweeps::Forward, Sweeps::Backward];

fn solved<T: Sample>(
    batch: usize,
    blocks: Blocks,
    nrhs: usize,
    a: &Pair<T>,
    b: &[T],
    threads: &dyn Threads,
) -> Solved<T> {
    let nan = || Pair::nan(blocks, batch);
    let (mut factor, mut again, mut inverse) = (nan(), nan(), nan());
    let (mut x, mut logdet) = (vec![T::nan(); b.len()], vec![T::nan().re(); batch]);
    block_tridiagonal_cholesky(batch, blocks, a.band(), factor.band_mut(), threads).unwrap();
    let (l, det) = (again.band_mut(), &mut logdet);
    block_tridiagonal_solve(batch, blocks, nrhs, a.band(), b, &mut x, l, det, threads).unwrap();
    assert!(factor.bits() == again.bits(), "the factor depends on what else is computed");
    // What is above the diagonals is not read.
    let (n, mut spoiled) = (blocks.n, factor.clone());
    for (at, x) in spoiled.diagonal.iter_mut().enumerate() {
        if at % n > at / n % n {
            assert!(*x == T::ZERO, "zero above the diagonal");
            *x = T::nan();
        }
    }
    let l = spoiled.band();
    let sweeps = SWEEPS.map(|sweeps| {
        let mut x = vec![T::nan(); b.len()];
        block_tridiagonal_cho_solve(sweeps, batch, blocks, nrhs, l, b, &mut x, threads).unwrap();
        x
    });
    block_tridiagonal_inverse(batch, blocks, l, inverse.band_mut(), threads).unwrap();
    Solved { factor, x, logdet, sweeps, inverse }
}

fn residual<T: Sample>() {
    for (n, count) in ORDERS.into_iter().flat_map(|n| COUNTS.map(|count| (n, count))) {
        let (blocks, rows) = (Blocks { count, n }, n * count);
        if rows > ROWS {
            continue;
        }
        for (turn, batch) in BATCHES.into_iter().enumerate() {
            let nrhs = [1, 3, 9][(turn + n) % 3];
            let grade = [0.0, 10.0][(turn + count) % 2] / rows.max(1) as f64;
            let (a, mut random) = (definite::<T>(blocks, grade, 3), Random(4));
            let b: Vec<T> = (0..rows * nrhs).map(|_| T::narrow(random.scalar(), 0)).collect();
            let all = solved(batch, blocks, nrhs, &a.repeat(batch), &b.repeat(batch), &Serial);
            let what = format!("{count} blocks of {n}, {nrhs} sides, {batch} matrices");
            assert!(bits(&all.x) == bits(&all.x[..b.len()]).repeat(batch), "{what}");
            if rows > 0 {
                one::<T>(&what, blocks, nrhs, &a, &b, &all);
            } else {
                assert!(all.logdet.iter().all(|x| x.to_f64() == 0.0), "{what}");
            }
        }
    }
}

/// The first matrix of a batch.
fn one<T: Sample>(what: &str, blocks: Blocks, nrhs: usize, a: &Pair<T>, b: &[T], all: &Solved<T>) {
    let (n, rows) = (blocks.n, blocks.n * blocks.count);
    let below = |ratio: f64, of: &str| assert!(ratio < LIMIT, "{what}: {of} {ratio}");
    let a = hermitian(&a.dense(blocks, true));
    let l = all.factor.dense(blocks, true);
    let product = l.times(&l.adjoint());
    below(ratio::<T>(product.minus(&a).norm(), rows, a.norm(), 0), "factor");
    let by_rows = |x: &[T]| Matrix::new(rows, nrhs, |i, j| x[i * nrhs + j].widen(0));
    let b = by_rows(b);
    let twice = l.norm() * l.adjoint().norm();
    let systems = [(&product, twice), (&l, l.norm()), (&l.adjoint(), l.adjoint().norm())];
    for (x, (matrix, norm)) in all.sweeps.iter().zip(systems) {
        let x = by_rows(x);
        let error = matrix.times(&x).minus(&b).norm();
        below(ratio::<T>(error, rows, norm * x.norm(), 0), "sweeps");
    }
    let x = by_rows(&all.x);
    below(ratio::<T>(a.times(&x).minus(&b).norm(), rows, a.norm() * x.norm(), 0), "solution");
    let logs = (0..rows).map(|i| 2.0 * l.at(i, i).re().ln());
    let (logdet, size) = logs.fold((0.0, 1.0), |(sum, size), x| (sum + x, size + x.abs()));
    let error = (all.logdet[0].to_f64() - logdet).abs();
    assert!(error <= <T as Sample>::epsilon() * size, "{what}: {error} of {logdet}");
    // (A·S)(i, i) = 1 takes no more of S than what is inside the band.
    let s = all.inverse.dense(blocks, false);
    for i in 0..rows {
        let near = i.saturating_sub(2 * n)..rows.min(i + 2 * n);
        let (sum, size) = near.fold((-T::Wide::ONE, 0.0), |(sum, size), j| {
            let known = if i / n > j / n { s.at(i, j).conj() } else { s.at(j, i) };
            let product = a.at(i, j) * known;
            (sum + product, size + product.abs())
        });
        below(ratio::<T>(sum.abs(), rows, size, 0), "inverse");
    }
}

/// Of a matrix that is not positive definite or has a NaN there is nothing, and its neighbours keep theirs, beside one
/// with denormal pivots, too.
fn not_definite_or_not_finite<T: Sample>() {
    for (n, batch) in [(1, 5), (3, 5), (3, 3), (17, 5), (20, 3)] {
        let blocks = Blocks { count: 4, n };
        let square = n * n;
        let clean = definite::<T>(blocks, 0.0, 3);
        let mut a = clean.repeat(batch);
        a.diagonal[4 * square + 2 * square + (n - 1) * (n + 1)] = T::from_f64(-1.0);
        a.off[2 * 3 * square + square] = T::nan();
        for x in a.diagonal.iter_mut().skip(4 * 4 * square) {
            *x = T::narrow(x.widen(0), T::DENORMAL_EXPONENT);
        }
        let b = vec![T::ONE; batch * 4 * n * 2];
        let all = solved_bad(batch, blocks, &a, &b, &Spawned(2));
        let alone = solved_bad(batch, blocks, &clean.repeat(batch), &b, &Serial);
        for (part, (all, alone)) in all.iter().zip(&alone).enumerate() {
            let size = all.len() / batch;
            for i in 0..batch {
                let (all, alone) = (&all[i * size..][..size], &alone[i * size..][..size]);
                let above = |at: usize| part == 0 && at % n > at / n % n;
                if [1, 2].contains(&i) {
                    let nan = |(at, x): (usize, &T)| above(at) || Scalar::is_nan(*x);
                    assert!(all.iter().enumerate().all(nan), "{n}, {i}, {part}");
                } else if i != 4 {
                    assert!(bits(all) == bits(alone), "{n}, {i}, {part}");
                    assert!(all.iter().all(|&x| Scalar::is_finite(x)), "{n}, {i}, {part}");
                }
            }
        }
    }
}

/// The factor, X and the logarithm of the determinant.
fn solved_bad<T: Sample>(
    batch: usize,
    blocks: Blocks,
    a: &Pair<T>,
    b: &[T],
    threads: &dyn Threads,
) -> [Vec<T>; 4] {
    let mut l = Pair::nan(blocks, batch);
    let (mut x, mut logdet) = (vec![T::ZERO; b.len()], vec![T::ZERO.re(); batch]);
    let (band, det) = (l.band_mut(), &mut logdet);
    block_tridiagonal_solve(batch, blocks, 2, a.band(), b, &mut x, band, det, threads).unwrap();
    [l.diagonal, l.off, x, logdet.into_iter().map(T::from_real).collect()]
}

/// Wherever a matrix stands in its batch, and on any number of threads.
fn same_bits_everywhere<T: Sample>() {
    for (n, count, batch) in [(2, 7, 3000), (5, 3, 900), (20, 3, 60)] {
        let blocks = Blocks { count, n };
        let (a, b) = (definite::<T>(blocks, 0.0, 3), vec![T::ONE; count * n]);
        let few = if n > 16 { 1 } else { 5 };
        let alone = solved(few, blocks, 1, &a.repeat(few), &b.repeat(few), &Serial);
        for threads in [1, 2, 7] {
            let threads = Spawned(threads);
            let all = solved(batch, blocks, 1, &a.repeat(batch), &b.repeat(batch), &threads);
            let same =
                |all: &[T], few_: &[T]| bits(all) == bits(&few_[..few_.len() / few]).repeat(batch);
            assert!(same(&all.factor.diagonal, &alone.factor.diagonal), "{n}: factor");
            assert!(same(&all.factor.off, &alone.factor.off), "{n}: factor");
            assert!(same(&all.inverse.diagonal, &alone.inverse.diagonal), "{n}: inverse");
            assert!(same(&all.inverse.off, &alone.inverse.off), "{n}: inverse");
            assert!(same(&all.x, &alone.x), "{n}: solution");
            for (all, alone) in all.sweeps.iter().zip(&alone.sweeps) {
                assert!(same(all, alone), "{n}: sweeps");
            }
        }
    }
}
