//! Singular values and vectors of a real upper bidiagonal matrix by divide and conquer: Gu and Eisenstat,
//! "A divide-and-conquer algorithm for the bidiagonal SVD" (SIAM J. Matrix Anal. Appl. 16, 1995).
//!
//! The matrix is cut at a row. What is above it has one column more than rows, what is below is of the
//! kind of the whole, and the row touches the last column of the one and the first of the other. In the
//! basis of their singular vectors it is a row w beside a diagonal, which is zero there, and
//! [`crate::divide::merge`] finds the singular values of that as eigenvalues of D² + w·wᵀ.

use std::ops::Range;

use lapax_core::Real;

use super::qr_iteration::{BidiagonalQr, Pair};
use crate::blas::rotations::{Rotation, rotation_of, set_identity};
use crate::divide::merge::{Basis, Kind, Merge, Scratch, Solved, Towards, Work, halves, sort};
use crate::divide::secular::{Eigenvectors, LeftVectors};
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The number of rows up to which a matrix is not divided. On one core with AVX-512, f64, gesdd with vectors
/// at 8, 16 and 24: n = 33 152, 138 and 133 us, 64 504, 498 and 489, 256 10.6, 10.7 and 10.4 ms.
const LEAF: usize = 24;

/// B = U·diag(d)·Vᵀ, with d descending, for the B of order 1 with this diagonal and `e` above it. Of U and V
/// there are the columns `part` alone. False where it failed; `d`, `u` and `v` have no meaning then.
pub(crate) fn decompose<R: Real + Scalar>(
    d: &mut [R],
    e: &[R],
    [u, v]: [&mut [R]; 2],
    part: Range<usize>,
    scratch: &mut Scratch<R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let rows = d.len();
    let problem = Problem { d: &mut *d, e, u: &mut *u, v: &mut *v, rows, row: 0 };
    let ascending = rows - part.end..rows - part.start;
    if !divide(problem, ascending, scratch.work(), threads, arch) {
        return false;
    }
    scratch.sort(d, Towards::Zero, [u, v]);
    true
}

/// A block of B of n rows, and as many columns or one more; its n columns of U, its columns of V, both of
/// length `rows`, and the row from which on they are not zero.
struct Problem<'a, R> {
    d: &'a mut [R],
    e: &'a [R],
    u: &'a mut [R],
    v: &'a mut [R],
    rows: usize,
    row: usize,
}

impl<R> Problem<'_, R> {
    /// How many columns the block has.
    fn columns(&self) -> usize {
        self.v.len() / self.rows
    }

    /// The blocks above a row and below.
    fn split_around(&mut self, middle: usize) -> [Problem<'_, R>; 2] {
        let (rows, row) = (self.rows, self.row);
        let behind = middle + 1;
        let (d, d_behind) = self.d.split_at_mut(behind);
        let (u, u_behind) = self.u.split_at_mut(behind * rows);
        let (v, v_behind) = self.v.split_at_mut(behind * rows);
        let (d, u) = (&mut d[..middle], &mut u[..middle * rows]);
        let (e, e_behind) = (&self.e[..middle], &self.e[behind..]);
        [
            Problem { d, e, u, v, rows, row },
            Problem { d: d_behind, e: e_behind, u: u_behind, v: v_behind, rows, row: row + behind },
        ]
    }
}

/// The singular values of a block, in no order, and the vectors of those at these places when they are sorted,
/// ascending. Where there is one more column of V, the last one is what B makes zero.
fn divide<R: Real + Scalar>(
    mut problem: Problem<'_, R>,
    part: Range<usize>,
    mut work: Work<'_, R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let n = problem.d.len();
    if n <= LEAF {
        return leaf(problem, work, arch);
    }
    let middle = (n - 1) / 2;
    let row = Row { at: middle, alpha: problem.d[middle], beta: problem.e[middle] };
    let [first, second] = problem.split_around(middle);
    let (first_work, second_work) = work.split_at(middle + 1);
    let pieces = [(first, first_work), (second, second_work)];
    let whole = |(half, work): (Problem<'_, R>, Work<'_, R>), threads: &dyn Threads| {
        let all = 0..half.d.len();
        divide(half, all, work, threads, arch)
    };
    halves(n, pieces, threads, whole) && merge(problem, part, row, work.merge(n), threads, arch)
}

/// A block that is not divided: one more column makes it square with a row of zeros.
fn leaf<R: Real + Scalar>(problem: Problem<'_, R>, work: Work<'_, R>, arch: Arch) -> bool {
    let columns = problem.columns();
    let Problem { d, e, u, v, rows, row } = problem;
    let n = d.len();
    let mut diagonal = [R::ZERO; LEAF + 1];
    let mut beside = [R::ZERO; LEAF];
    let mut rotations = [Pair::none(); LEAF + 1];
    let (diagonal, beside) = (&mut diagonal[..columns], &mut beside[..e.len()]);
    diagonal[..n].copy_from_slice(d);
    beside.copy_from_slice(e);
    let left = &mut work.columns[..columns * columns];
    let right = &mut work.vectors[..columns * columns];
    set_identity(left, columns);
    set_identity(right, columns);
    let iteration = BidiagonalQr {
        d: diagonal,
        e: beside,
        vectors: Some((&mut *left, &mut *right)),
        rotations: &mut rotations[..columns],
        steps: work.steps,
    };
    if arch.dispatch(iteration).is_err() {
        return false;
    }
    // The singular value that the row of zeros brings is the last one, and its left vector that row:
    // no step touches a last row of zeros, and zeros are sorted behind all that is larger.
    d.copy_from_slice(&diagonal[..n]);
    for (to, from) in u.chunks_exact_mut(rows).zip(left.chunks_exact(columns)) {
        to.fill(R::ZERO);
        to[row..row + n].copy_from_slice(&from[..n]);
    }
    for (to, from) in v.chunks_exact_mut(rows).zip(right.chunks_exact(columns)) {
        to.fill(R::ZERO);
        to[row..row + columns].copy_from_slice(from);
    }
    true
}

/// The row at which a block is cut: `alpha` on the diagonal, and `beta` beside it.
#[derive(Clone, Copy, Debug)]
struct Row<R> {
    at: usize,
    alpha: R,
    beta: R,
}

/// Makes one SVD of those of two blocks and of the row between them.
fn merge<R: Real + Scalar>(
    problem: Problem<'_, R>,
    part: Range<usize>,
    middle: Row<R>,
    mut merge: Merge<'_, R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let columns = problem.columns();
    let Problem { d, u, v, rows, row, .. } = problem;
    let n = d.len();
    let Row { at: zero, alpha, beta } = middle;
    let mut u = Basis { q: u, rows, range: row..row + n };
    let mut v = Basis { q: v, rows, range: row..row + columns };
    // w is alpha times the last row of the first V, and beta times the first one of the second V.
    for j in 0..n {
        let column = v.column(j);
        (merge.z[j], merge.kinds[j]) = if j <= zero {
            (alpha * column[zero], Kind::First)
        } else {
            (beta * column[zero + 1], Kind::Second)
        };
    }
    // What the first block makes zero meets w, and what the second block makes zero if it is not square:
    // one combination of them takes all of w.
    merge.kinds[zero] = Kind::Both;
    if columns > n {
        let (rotation, both) = rotation_of(merge.z[zero], beta * v.column(n)[zero + 1]);
        merge.z[zero] = both;
        v.rotate(rotation, zero, n, arch);
    }
    u.q[zero * rows..(zero + 1) * rows].fill(R::ZERO);
    u.q[zero * rows + row + zero] = R::ONE;
    d[zero] = R::ZERO;
    sort(merge.order, d);
    deflate((&mut u, &mut v), d, zero, &mut merge, arch);
    let Some(rho) = merge.normalize() else { return false };
    if !merge.solve::<true>(d, rho, threads, arch) {
        return false;
    }
    if part.len() < n {
        merge.want(d, part);
    }
    merge.multiply(v, zero + 1, d, threads, |solved, vectors| {
        arch.dispatch(Eigenvectors { z: solved.weights, differences: vectors });
    });
    merge.multiply(u, zero, d, threads, |solved, vectors| {
        let Solved { poles, weights, places, values } = solved;
        let zero = places[0];
        let weight = weights[zero];
        arch.dispatch(LeftVectors { d: poles, zero, weight, values, vectors });
    });
    true
}

/// Sorts out what is a singular value with its vectors already, or is when two columns of equal d have
/// been rotated, or one of small d and that of the row `zero`.
fn deflate<R: Real + Scalar>(
    (u, v): (&mut Basis<'_, R>, &mut Basis<'_, R>),
    d: &mut [R],
    zero: usize,
    merge: &mut Merge<'_, R>,
    arch: Arch,
) {
    // B is of order 1, and squares of what this leaves are normal numbers.
    let larger = |x: R, y: &R| if y.abs() > x { y.abs() } else { x };
    let scale = d.iter().chain(&*merge.z).fold(R::ONE, larger);
    let tolerance = R::from_f64(8.0) * R::EPSILON * scale;
    merge.keep(zero);
    let mut candidate: Option<usize> = None;
    for at in 0..d.len() {
        let next = merge.order[at];
        if next == zero {
            continue;
        }
        if merge.z[next].abs() <= tolerance {
            merge.deflate(next);
            continue;
        }
        if let Some(last) = candidate {
            if let Some(rotation) = merge.join(d, (last, next), tolerance) {
                u.rotate(rotation, next, last, arch);
                v.rotate(rotation, next, last, arch);
            } else {
                merge.keep(last);
            }
        } else {
            // The rotation of V alone that takes all of w to `zero`, and s·d with it.
            let (rotation, both) = rotation_of(merge.z[zero], merge.z[next]);
            if (rotation.s * d[next]).abs() <= tolerance {
                let turn = rotation.c.signum();
                let rotation = Rotation { c: rotation.c * turn, s: rotation.s * turn };
                (merge.z[zero], merge.z[next]) = (both * turn, R::ZERO);
                d[next] *= rotation.c;
                v.rotate(rotation, zero, next, arch);
                merge.deflate(next);
                continue;
            }
        }
        candidate = Some(next);
    }
    if let Some(last) = candidate {
        merge.keep(last);
    }
    // Without it, the others would not be separate.
    if merge.z[zero].abs() <= tolerance {
        merge.z[zero] = tolerance * merge.z[zero].signum();
    }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {

    use lapax_core::{Real, Serial, Spawned};

    use super::{LEAF, decompose};
    use crate::divide::merge::{SHARED_ORDER, Scratch};
    use crate::divide::verify::is_svd;
    use crate::divide::verify::tests::random;
    use crate::simd::arch::Arch;
    use crate::svd::qr_iteration::STEPS;
    use crate::{Scalar, Threads};

    trials!(every_order_and_every_deflation, threads_change_no_bit);

    /// Matrices of order n that deflate not at all, in part, and as a whole.
    fn matrices(n: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
        let numbers = |seed| random(seed).take(n).collect::<Vec<f64>>();
        let scaled = |seed, factor| random(seed).take(n).map(|x| x * factor).collect::<Vec<f64>>();
        let sparse = |seed: usize, every: usize| {
            let zero = |i: usize| (i + seed).is_multiple_of(every);
            let numbers = random(seed).take(n).enumerate();
            numbers.map(|(i, x)| if zero(i) { 0.0 } else { x }).collect::<Vec<f64>>()
        };
        let graded = |base: f64| (0..n).map(|i| base.powf(i as f64)).collect::<Vec<f64>>();
        let turned = |base: f64| graded(base).into_iter().rev().collect::<Vec<f64>>();
        let (equal, zero) = (vec![0.5; n], vec![0.0; n]);
        vec![
            (numbers(1), numbers(2)),
            (equal.clone(), scaled(3, 1e-9)),
            (equal.clone(), equal.clone()),
            (numbers(4), zero.clone()),
            (zero.clone(), zero.clone()),
            (zero.clone(), equal.clone()),
            (zero, numbers(5)),
            (sparse(6, 3), numbers(7)),
            (sparse(8, 7), sparse(9, 5)),
            (graded(0.7), graded(0.6)),
            (turned(0.7), turned(0.6)),
            (numbers(10), scaled(11, 1e-300)),
            (scaled(12, 1e-12), equal.clone()),
            (scaled(13, 1e-300), equal),
        ]
    }

    fn solve<R: Real + Scalar>(d: &[f64], e: &[f64], threads: &dyn Threads) -> Option<[Vec<R>; 3]> {
        let n = d.len();
        let convert = |x: &[f64]| x.iter().map(|&x| R::from_f64(x)).collect::<Vec<R>>();
        let (d, e) = (convert(d), convert(&e[1..]));
        let mut s = d.clone();
        let mut vectors = [(); 2].map(|()| vec![R::from_f64(f64::NAN); n * n]);
        let [u, v] = &mut vectors;
        let scratch = &mut Scratch::new(n, STEPS);
        if !decompose(&mut s, &e, [u, v], 0..n, scratch, threads, Arch::new()) {
            return None;
        }
        let accepted = |[u, v]: &[Vec<R>; 2]| is_svd((&d, &e), &s, u, v, &mut vec![R::ZERO; n]);
        assert!(accepted(&vectors), "n = {n}: {d:?} {e:?}");
        // An element that is wrong shows.
        let at = (n * n / 2 + 1).min(n * n - 1);
        for wrong in [R::EPSILON * R::from_f64(1e5 * n as f64), R::from_f64(f64::NAN)] {
            for side in 0..2 {
                let element = vectors[side][at];
                vectors[side][at] += wrong;
                assert!(!accepted(&vectors), "n = {n}");
                vectors[side][at] = element;
            }
        }
        let [u, v] = vectors;
        for part in [0..n / 3, n / 3..n / 2, n / 2..n] {
            let (mut some, mut x, mut y) = (d.clone(), u.clone(), v.clone());
            let both = [&mut x[..], &mut y[..]];
            let found = decompose(&mut some, &e, both, part.clone(), scratch, threads, Arch::new());
            assert!(found && some == s, "n = {n}, {part:?}");
            let [x, y] = [&x, &y].map(|x| &x[part.start * n..part.end * n]);
            let sums = &mut vec![R::ZERO; n];
            assert!(is_svd((&d, &e), &s[part.clone()], x, y, sums), "n = {n}, {part:?}");
        }
        Some([s, u, v])
    }

    fn every_order_and_every_deflation() {
        for n in [1, 2, 3, LEAF, LEAF + 1, 33, 34, 50, 101, SHARED_ORDER, 300] {
            for (at, (d, e)) in matrices(n).into_iter().enumerate() {
                assert!(solve::<f64>(&d, &e, &Serial).is_some(), "n = {n}, matrix {at}");
                assert!(solve::<f32>(&d, &e, &Serial).is_some(), "n = {n}, matrix {at}, f32");
            }
        }
    }

    fn threads_change_no_bit() {
        for n in [SHARED_ORDER, 2 * SHARED_ORDER + 3] {
            for (d, e) in matrices(n) {
                let alone = solve::<f64>(&d, &e, &Serial);
                assert!(alone.is_some());
                for threads in [2, 5] {
                    assert!(solve::<f64>(&d, &e, &Spawned(threads)) == alone, "{threads} threads");
                }
            }
        }
    }
}
