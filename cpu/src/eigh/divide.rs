//! Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix by divide and conquer: Cuppen,
//! "A divide and conquer method for the symmetric tridiagonal eigenproblem" (Numer. Math. 36, 1981).
//!
//! The matrix is two half as large beside each other plus one of rank one, of which [`crate::divide::merge`] finds
//! the eigensystem in the basis of theirs. What the rank-one matrix hardly touches is deflated: Rutter,
//! "A serial implementation of Cuppen's divide and conquer algorithm" (LAPACK working note 69, 1994).

use std::ops::Range;

use lapax_core::Real;

use super::ql::ImplicitQl;
use crate::blas::rotations::{Rotation, set_identity};
use crate::divide::merge::{Basis, Kind, Merge, Scratch, Towards, Work, halves, sort};
use crate::divide::secular::Eigenvectors;
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The order up to which a matrix is not divided. On one core with AVX-512, f64, with 32 and with 16: n = 64
/// 160 and 151 us, 128 616 and 561; from 256 on alike.
const LEAF: usize = 16;

/// T = Z·diag(d)·Zᵀ, with d ascending, for the T of order 1 with this diagonal and `e` beside it, which
/// is lost. Of Z there are the columns `part` alone. False where it failed; `d` and `z` have no meaning then.
pub(crate) fn decompose<R: Real + Scalar>(
    d: &mut [R],
    e: &mut [R],
    z: &mut [R],
    part: Range<usize>,
    scratch: &mut Scratch<R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let rows = d.len();
    let problem = Problem { d: &mut *d, e, z: &mut *z, rows, row: 0 };
    if !divide(problem, part, scratch.work(), threads, arch) {
        return false;
    }
    scratch.sort(d, Towards::Infinity, [z]);
    true
}

/// A diagonal block of T, and its columns of Z, of which it has as many rows, from one on; the others
/// become zero.
struct Problem<'a, R> {
    d: &'a mut [R],
    e: &'a mut [R],
    z: &'a mut [R],
    rows: usize,
    row: usize,
}

impl<R> Problem<'_, R> {
    /// The blocks of the first n rows and of the others.
    fn split_at(&mut self, n: usize) -> [Problem<'_, R>; 2] {
        let (rows, row) = (self.rows, self.row);
        let (d, d_behind) = self.d.split_at_mut(n);
        let (e, e_behind) = self.e.split_at_mut(n);
        let (z, z_behind) = self.z.split_at_mut(n * rows);
        let e = &mut e[..n - 1];
        let behind = Problem { d: d_behind, e: e_behind, z: z_behind, rows, row: row + n };
        [Problem { d, e, z, rows, row }, behind]
    }
}

/// The eigensystem of a block, in no order, with the vectors of these values when they are sorted.
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
    let half = n / 2;
    let coupling = problem.e[half - 1];
    for i in [half - 1, half] {
        problem.d[i] -= coupling.abs();
    }
    let [first, second] = problem.split_at(half);
    let (first_work, second_work) = work.split_at(half);
    let pieces = [(first, first_work), (second, second_work)];
    let whole = |(half, work): (Problem<'_, R>, Work<'_, R>), threads: &dyn Threads| {
        let all = 0..half.d.len();
        divide(half, all, work, threads, arch)
    };
    halves(n, pieces, threads, whole)
        && merge(problem, part, coupling, work.merge(n), threads, arch)
}

/// A block that is not divided.
fn leaf<R: Real + Scalar>(problem: Problem<'_, R>, work: Work<'_, R>, arch: Arch) -> bool {
    let Problem { d, e, z, rows, row } = problem;
    let n = d.len();
    let vectors = &mut work.vectors[..n * n];
    set_identity(vectors, n);
    let mut rotations = [Rotation { c: R::ZERO, s: R::ZERO }; LEAF];
    let rotations = &mut rotations[..n];
    let iteration = ImplicitQl { d, e, z: Some(&mut *vectors), rotations, steps: work.steps };
    if arch.dispatch(iteration).is_err() {
        return false;
    }
    for (to, from) in z.chunks_exact_mut(rows).zip(vectors.chunks_exact(n)) {
        to.fill(R::ZERO);
        to[row..row + n].copy_from_slice(from);
    }
    true
}

/// Makes one eigensystem of those of two halves.
fn merge<R: Real + Scalar>(
    problem: Problem<'_, R>,
    part: Range<usize>,
    coupling: R,
    mut merge: Merge<'_, R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let Problem { d, z: q, rows, row, .. } = problem;
    let n = d.len();
    let half = n / 2;
    // T is the halves and |e|·u·uᵀ, where u is 1 in the last row of the first and ±1 in the first row of
    // the second; z is u in the basis of their eigenvectors, of length 1.
    let scale = R::from_f64(std::f64::consts::FRAC_1_SQRT_2);
    for (j, (z, column)) in merge.z.iter_mut().zip(q.chunks_exact(rows)).enumerate() {
        (*z, merge.kinds[j]) = if j < half {
            (column[row + half - 1] * scale, Kind::First)
        } else {
            (column[row + half] * (scale * coupling.signum()), Kind::Second)
        };
    }
    let rho = coupling.abs() + coupling.abs();
    sort(merge.order, d);
    let mut basis = Basis { q, rows, range: row..row + n };
    deflate(&mut basis, d, rho, &mut merge, arch);
    if !merge.solve::<false>(d, rho, threads, arch) {
        return false;
    }
    if part.len() < n {
        merge.want(d, part);
    }
    merge.multiply(basis, half, d, threads, |solved, vectors| {
        arch.dispatch(Eigenvectors { z: solved.weights, differences: vectors });
    });
    true
}

/// Sorts out eigenvectors of D + ρ·z·zᵀ that are columns of the basis already, or are when two of equal
/// d have been rotated.
fn deflate<R: Real + Scalar>(
    basis: &mut Basis<'_, R>,
    d: &mut [R],
    rho: R,
    merge: &mut Merge<'_, R>,
    arch: Arch,
) {
    let larger = |x: R, y: &R| if y.abs() > x { y.abs() } else { x };
    let scale = d.iter().chain(&*merge.z).fold(R::ZERO, larger);
    let tolerance = R::from_f64(8.0) * R::EPSILON * scale;
    let mut candidate: Option<usize> = None;
    for at in 0..d.len() {
        let next = merge.order[at];
        if rho * merge.z[next].abs() <= tolerance {
            merge.deflate(next);
            continue;
        }
        if let Some(last) = candidate {
            if let Some(rotation) = merge.join(d, (last, next), tolerance) {
                basis.rotate(rotation, next, last, arch);
            } else {
                merge.keep(last);
            }
        }
        candidate = Some(next);
    }
    if let Some(last) = candidate {
        merge.keep(last);
    }
}

#[cfg(feature = "testing")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub(crate) mod tests {

    use lapax_core::{Real, Serial, Spawned};

    use super::{LEAF, decompose};
    use crate::divide::merge::{SHARED_ORDER, Scratch};
    use crate::divide::verify::is_eigensystem;
    use crate::divide::verify::tests::random;
    use crate::eigh::ql::STEPS;
    use crate::simd::arch::Arch;
    use crate::{Scalar, Threads};

    trials!(every_order_and_every_deflation, threads_change_no_bit);

    /// Matrices of order n that deflate not at all, in part, and as a whole.
    fn matrices(n: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
        let numbers = |seed| random(seed).take(n).collect::<Vec<f64>>();
        let equal = vec![0.5; n];
        let wilkinson: Vec<f64> = (0..n).map(|i| (i % 21).abs_diff(10) as f64 / 10.0).collect();
        let glue = |i: usize| if i % 21 == 20 { 1e-9 } else { 0.1 };
        let graded = |base: f64| (0..n).map(|i| base.powf(i as f64)).collect::<Vec<f64>>();
        vec![
            (numbers(1), numbers(2)),
            (equal.clone(), numbers(3).iter().map(|x| x * 1e-9).collect()),
            (equal.clone(), equal.clone()),
            (numbers(4), vec![0.0; n]),
            (vec![0.0; n], vec![0.0; n]),
            (vec![0.0; n], equal.iter().map(|x| -x).collect()),
            (wilkinson, (0..n).map(glue).collect()),
            (graded(0.7), graded(0.6)),
            (graded(0.7).into_iter().rev().collect(), graded(0.6).into_iter().rev().collect()),
            (numbers(5), numbers(6).iter().map(|x| x * 1e-300).collect()),
        ]
    }

    fn solve<R: Real + Scalar>(
        d: &[f64],
        e: &[f64],
        threads: &dyn Threads,
    ) -> Option<(Vec<R>, Vec<R>)> {
        let n = d.len();
        let convert = |x: &[f64]| x.iter().map(|&x| R::from_f64(x)).collect::<Vec<R>>();
        let (d, e) = (convert(d), convert(&e[1..]));
        let (mut w, mut off, mut z) = (d.clone(), e.clone(), vec![R::from_f64(f64::NAN); n * n]);
        let mut scratch = Scratch::new(n, STEPS);
        if !decompose(&mut w, &mut off, &mut z, 0..n, &mut scratch, threads, Arch::new()) {
            return None;
        }
        let sums = &mut vec![R::ZERO; n];
        assert!(is_eigensystem(&d, &e, &w, &z, sums), "n = {n}: {d:?} {e:?}");
        // An element that is wrong shows.
        let at = (n * n / 2 + 1).min(n * n - 1);
        let element = z[at];
        for wrong in [element + R::EPSILON * R::from_f64(1e5 * n as f64), R::from_f64(f64::NAN)] {
            z[at] = wrong;
            assert!(!is_eigensystem(&d, &e, &w, &z, sums), "n = {n}");
        }
        z[at] = element;
        for part in [0..n / 3, n / 3..n / 2, n / 2..n] {
            let (mut some, mut off, mut x) = (d.clone(), e.clone(), z.clone());
            let whole = part.start * n..part.end * n;
            let found = decompose(
                &mut some,
                &mut off,
                &mut x,
                part.clone(),
                &mut scratch,
                threads,
                Arch::new(),
            );
            assert!(found && some == w, "n = {n}, {part:?}");
            assert!(is_eigensystem(&d, &e, &w[part], &x[whole], sums), "n = {n}");
        }
        Some((w, z))
    }

    fn every_order_and_every_deflation() {
        for n in [1, 2, 3, LEAF, LEAF + 1, 33, 50, 101, SHARED_ORDER, 300] {
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
