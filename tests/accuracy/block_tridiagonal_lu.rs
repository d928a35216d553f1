//! Block-tridiagonal matrices without symmetry: ‖A − L·U‖ / (n·‖A‖·ε), op(A)·X = B, singular and not finite ones, and the
//! same bits everywhere.

use lapax_core::Scalar;
use lapax_cpu::block_tridiagonal::{
    Blocks, Factors, General, block_tridiagonal_lu, block_tridiagonal_lu_solve,
};
use lapax_cpu::{Serial, Spawned, Threads, Trans};

use crate::for_each_scalar;
use crate::matrix::{Matrix, ratio};
use crate::ratios::LIMIT;
use crate::sample::{Random, Sample, bits};

for_each_scalar!(residual, singular_or_not_finite, same_bits_everywhere, wrong_pivots);

/// On both sides of the orders that go through lanes, and of a register.
const ORDERS: [usize; 9] = [1, 2, 3, 4, 5, 8, 16, 17, 33];
const COUNTS: [usize; 5] = [0, 1, 2, 5, 20];
const BATCHES: [usize; 3] = [1, 3, 19];
/// The rows of the largest dense matrix.
const ROWS: usize = 110;
const TRANS: [Trans; 3] = [Trans::None, Trans::Transpose, Trans::ConjTranspose];

/// The blocks of one matrix, or of a batch.
#[derive(Clone)]
struct Three<T> {
    lower: Vec<T>,
    diagonal: Vec<T>,
    upper: Vec<T>,
}

impl<T: Sample> Three<T> {
    /// Blocks on the diagonal dominate as a whole; their own rows are in no good order. `grade` makes rows smaller from
    /// one to the next.
    fn dominant(Blocks { count, n }: Blocks, grade: f64, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut numbers = |rows: usize, first: usize, size: f64, shift: bool| -> Vec<T> {
            let mut all = Vec::new();
            for row in 0..rows {
                let scale = (-grade * (first + row) as f64).exp2();
                for column in 0..n {
                    let far = shift && (row % n + n / 2) % n == column;
                    let on = if far { 4.0 * n as f64 } else { 0.0 };
                    let x = random.scalar::<T::Wide>().scale(size) + T::Wide::from_real(on);
                    all.push(T::narrow(x.scale(scale), 0));
                }
            }
            all
        };
        let beside = count.saturating_sub(1) * n;
        let lower = numbers(beside, n, 1.0, false);
        let upper = numbers(beside, 0, 1.0, false);
        Self { lower, diagonal: numbers(count * n, 0, 1.0, true), upper }
    }

    fn repeat(&self, times: usize) -> Self {
        let [lower, diagonal, upper] =
            [&self.lower, &self.diagonal, &self.upper].map(|part| part.repeat(times));
        Self { lower, diagonal, upper }
    }

    fn dense(&self, Blocks { count, n }: Blocks) -> Matrix<T::Wide> {
        Matrix::new(count * n, count * n, |i, j| {
            let ((p, i), (q, j)) = ((i / n, i % n), (j / n, j % n));
            let of = |part: &[T], block: usize| part[block * n * n + i * n + j].widen(0);
            match p {
                _ if p == q => of(&self.diagonal, p),
                _ if p == q + 1 => of(&self.lower, q),
                _ if p + 1 == q => of(&self.upper, p),
                _ => T::Wide::ZERO,
            }
        })
    }
}

struct Factored<T> {
    lu: Vec<T>,
    pivots: Vec<i32>,
    upper: Vec<T>,
}

impl<T: Sample> Factored<T> {
    fn of(batch: usize, blocks: Blocks, a: &Three<T>, threads: &dyn Threads) -> Self {
        let (mut lu, mut upper) = (vec![T::nan(); a.diagonal.len()], vec![T::nan(); a.upper.len()]);
        let mut pivots = vec![-7; batch * blocks.count * blocks.n];
        let Three { lower, diagonal, upper: above } = a;
        let a = General { lower, diagonal, upper: above };
        block_tridiagonal_lu(batch, blocks, a, &mut lu, &mut pivots, &mut upper, threads).unwrap();
        Self { lu, pivots, upper }
    }

    /// L·U of the first matrix.
    fn product(&self, blocks: Blocks, lower: &[T]) -> Matrix<T::Wide> {
        let Blocks { count, n } = blocks;
        let s: Vec<Matrix<T::Wide>> = (0..count).map(|i| self.pivot_block(n, i)).collect();
        let of =
            |part: &[T], block: usize, i: usize, j: usize| part[block * n * n + i * n + j].widen(0);
        let rows = count * n;
        let l = Matrix::new(rows, rows, |i, j| match (i / n, j / n) {
            (p, q) if p == q => s[p].at(i % n, j % n),
            (p, q) if p == q + 1 => of(lower, q, i % n, j % n),
            _ => T::Wide::ZERO,
        });
        let u = Matrix::new(rows, rows, |i, j| match (i / n, j / n) {
            _ if i == j => T::Wide::ONE,
            (p, q) if p + 1 == q => of(&self.upper, p, i % n, j % n),
            _ => T::Wide::ZERO,
        });
        l.times(&u)
    }

    /// S of block i.
    fn pivot_block(&self, n: usize, i: usize) -> Matrix<T::Wide> {
        let at = |r: usize, c: usize| self.lu[i * n * n + r * n + c].widen(0);
        let l = Matrix::new(n, n, |r, c| match r.cmp(&c) {
            std::cmp::Ordering::Less => T::Wide::ZERO,
            std::cmp::Ordering::Equal => T::Wide::ONE,
            std::cmp::Ordering::Greater => {
                assert!(at(r, c).abs() <= 1.5, "pivots are the largest: {:?}", at(r, c));
                at(r, c)
            }
        });
        let u = Matrix::new(n, n, |r, c| if r <= c { at(r, c) } else { T::Wide::ZERO });
        let product = l.times(&u);
        let mut order: Vec<usize> = (0..n).collect();
        for j in (0..n).rev() {
            order.swap(j, usize::try_from(self.pivots[i * n + j]).unwrap());
        }
        Matrix::new(n, n, |r, c| product.at(order[r], c))
    }

    fn solve(
        &self,
        trans: Trans,
        (batch, blocks, nrhs): (usize, Blocks, usize),
        lower: &[T],
        b: &[T],
        threads: &dyn Threads,
    ) -> Vec<T> {
        let mut x = vec![T::nan(); b.len()];
        let factors = Factors { lower, lu: &self.lu, pivots: &self.pivots, upper: &self.upper };
        block_tridiagonal_lu_solve(trans, batch, blocks, nrhs, factors, b, &mut x, threads)
            .unwrap();
        x
    }
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
            let (a, mut random) = (Three::<T>::dominant(blocks, grade, 3), Random(4));
            let b: Vec<T> = (0..rows * nrhs).map(|_| T::narrow(random.scalar(), 0)).collect();
            let (all, sides) = (a.repeat(batch), b.repeat(batch));
            let factors = Factored::of(batch, blocks, &all, &Serial);
            let what = format!("{count} blocks of {n}, {nrhs} sides, {batch} matrices");
            let dense = a.dense(blocks);
            if rows > 0 {
                let error = factors.product(blocks, &a.lower).minus(&dense).norm();
                let ratio = ratio::<T>(error, rows, dense.norm(), 0);
                assert!(ratio < LIMIT, "{what}: factors {ratio}");
            }
            for trans in TRANS {
                let sizes = (batch, blocks, nrhs);
                let x = factors.solve(trans, sizes, &all.lower, &sides, &Serial);
                assert!(bits(&x) == bits(&x[..b.len()]).repeat(batch), "{what}");
                let dense = match trans {
                    Trans::None => dense.clone(),
                    Trans::Transpose => dense.transposed(),
                    Trans::ConjTranspose => dense.adjoint(),
                };
                let by_rows = |x: &[T]| Matrix::new(rows, nrhs, |i, j| x[i * nrhs + j].widen(0));
                if rows > 0 {
                    let (x, b) = (by_rows(&x), by_rows(&b));
                    let error = dense.times(&x).minus(&b).norm();
                    let ratio = ratio::<T>(error, rows, dense.norm() * x.norm(), 0);
                    assert!(ratio < LIMIT, "{what}: {trans:?} {ratio}");
                }
            }
        }
    }
}

/// A zero pivot leaves nothing, a NaN no solution; their neighbours keep theirs.
fn singular_or_not_finite<T: Sample>() {
    for (n, batch) in [(1, 5), (3, 5), (3, 3), (17, 5), (20, 3)] {
        let blocks = Blocks { count: 3, n };
        let square = n * n;
        let clean = Three::<T>::dominant(blocks, 0.0, 3);
        let alone = Factored::of(batch, blocks, &clean.repeat(batch), &Serial);
        let b = vec![T::ONE; batch * 3 * n];
        let lower = clean.repeat(batch).lower;
        let expected = alone.solve(Trans::None, (batch, blocks, 1), &lower, &b, &Serial);
        let mut a = clean.repeat(batch);
        // Without its neighbours, a block of zeros is singular.
        a.diagonal[4 * square..5 * square].fill(T::ZERO);
        a.lower[2 * square..3 * square].fill(T::ZERO);
        a.upper[2 * 2 * square + 1] = T::nan();
        let found = Factored::of(batch, blocks, &a, &Spawned(2));
        let x = found.solve(Trans::None, (batch, blocks, 1), &a.lower, &b, &Spawned(2));
        let part =
            |all: &[T], i: usize| all[i * all.len() / batch..(i + 1) * all.len() / batch].to_vec();
        for i in 0..batch {
            let own = [&found.lu, &found.upper, &x].map(|all| part(all, i));
            if i == 1 {
                assert!(own.iter().flatten().all(|x| Scalar::is_nan(*x)), "{n}, {batch}");
                let rows = found.pivots[3 * n..6 * n].iter().zip((0..3).flat_map(|_| 0..));
                assert!(rows.take(n).all(|(&pivot, row)| pivot == row), "{n}, {batch}");
            } else if i == 2 {
                assert!(own[2].iter().all(|x| Scalar::is_nan(*x)), "{n}, {batch}");
            } else {
                let alone = [&alone.lu, &alone.upper, &expected].map(|all| part(all, i));
                assert!(own.iter().zip(&alone).all(|(x, y)| bits(x) == bits(y)), "{n}, {i}");
            }
        }
    }
}

/// Wherever a matrix stands in its batch, and on any number of threads.
fn same_bits_everywhere<T: Sample>() {
    for (n, count, batch) in [(2, 7, 1000), (5, 3, 300), (20, 3, 40)] {
        let blocks = Blocks { count, n };
        let (a, b) = (Three::<T>::dominant(blocks, 0.0, 3), vec![T::ONE; count * n]);
        let few = if n > 16 { 1 } else { 5 };
        let of = |times: usize, threads: &dyn Threads| {
            let all = a.repeat(times);
            let factors = Factored::of(times, blocks, &all, threads);
            let sizes = (times, blocks, 1);
            let x = factors.solve(Trans::Transpose, sizes, &all.lower, &b.repeat(times), threads);
            (factors, x)
        };
        let (alone, alone_x) = of(few, &Serial);
        for threads in [1, 2, 7] {
            let (all, x) = of(batch, &Spawned(threads));
            let same = |all: &[T], some: &[T]| bits(all) == bits(some).repeat(batch / few);
            assert!(same(&all.lu, &alone.lu) && same(&all.upper, &alone.upper), "{n}");
            assert!(all.pivots == alone.pivots.repeat(batch / few) && same(&x, &alone_x), "{n}");
        }
    }
}

/// The solution of the matrix whose pivots name a row that there is not, or one above, is NaN; those beside it are right.
fn wrong_pivots<T: Sample>() {
    let blocks = Blocks { count: 1, n: 3 };
    let right = [4.0, 2.0, 1.0].map(T::from_f64);
    for batch in [1, 6] {
        let lu = [2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 8.0].map(T::from_f64).repeat(batch);
        let b = vec![T::from_f64(8.0); 3 * batch];
        for wrong in [[-1, 1, 2], [0, 1, i32::MAX], [i32::MIN, 3, 2], [0, 0, 2]] {
            let mut pivots = [0, 1, 2].repeat(batch);
            pivots[3 * (batch - 1)..].copy_from_slice(&wrong);
            let factors = Factored { lu: lu.clone(), pivots, upper: vec![] };
            let x = factors.solve(Trans::None, (batch, blocks, 1), &[], &b, &Serial);
            let (beside, spoiled) = x.split_at(3 * (batch - 1));
            assert!(beside == right.repeat(batch - 1), "{wrong:?}: {x:?}");
            assert!(spoiled.iter().all(|&x| Scalar::is_nan(x)), "{wrong:?}: {x:?}");
        }
    }
}
