//! Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix by divide and conquer: Cuppen,
//! "A divide and conquer method for the symmetric tridiagonal eigenproblem" (Numer. Math. 36, 1981).
//!
//! The matrix is two half as large beside each other plus one of rank one, of which [`crate::secular`]
//! finds the eigensystem in the basis of theirs. What the rank-one matrix hardly touches is deflated,
//! and what is zero in the bases of the halves is not multiplied: Rutter, "A serial implementation of
//! Cuppen's divide and conquer algorithm" (LAPACK working note 69, 1994).
//!
//! Where a matrix is cut, and into which strips the work on one is, depends on its order alone, so that
//! the number of threads changes no bit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real, Serial};
use pulp::{Arch, Simd, WithSimd};

use crate::implicit_ql::{ImplicitQl, STEPS};
use crate::rotations::{Rotation, rotation_of, set_identity};
use crate::secular::{Eigenvectors, Roots, Secular, Weights};
use crate::{Scalar, Threads};

/// The order up to which a matrix is not divided. On one core with AVX-512, f64, with 32 and with 16: n = 64
/// 160 and 151 us, 128 616 and 561; from 256 on alike.
const LEAF: usize = 16;
/// The order from which threads share the work on one. On two cores, f64, eigh of n = 192: 3.6 ms alone
/// and 2.8 shared.
pub(crate) const SHARED_ORDER: usize = 192;
/// The columns, or rows, that are one piece of it.
const STRIP: usize = 64;

/// What a matrix of one order takes besides its operands.
#[derive(Debug)]
pub(crate) struct Scratch<R> {
    /// The columns of the two bases that take part in a product, and those that do not.
    columns: Vec<R>,
    /// The eigenvectors of the rank-one problem.
    vectors: Vec<R>,
    numbers: Vec<R>,
    indices: Vec<usize>,
    kinds: Vec<Kind>,
    /// Steps per eigenvalue after which the iteration on a block that is not divided is given up.
    pub(crate) steps: usize,
}

/// Numbers and indices that a merge works with, per row.
const NUMBERS: usize = 5;
const INDICES: usize = 4;

impl<R: Real + Scalar> Scratch<R> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        Self {
            columns: vec![R::ZERO; n * n],
            vectors: vec![R::ZERO; n * n],
            numbers: vec![R::ZERO; NUMBERS * n],
            indices: vec![0; INDICES * n],
            kinds: vec![Kind::Deflated; n],
            steps: STEPS,
        }
    }

    fn work(&mut self) -> Work<'_, R> {
        let Self { columns, vectors, numbers, indices, kinds, steps } = self;
        Work { columns, vectors, numbers, indices, kinds, steps: *steps }
    }
}

/// A part of [`Scratch`], for a part of the matrix.
struct Work<'a, R> {
    columns: &'a mut [R],
    vectors: &'a mut [R],
    numbers: &'a mut [R],
    indices: &'a mut [usize],
    kinds: &'a mut [Kind],
    steps: usize,
}

impl<R> Work<'_, R> {
    /// The parts for a matrix of order n and for what is behind it.
    fn split_at(&mut self, n: usize) -> (Work<'_, R>, Work<'_, R>) {
        let (columns, columns_behind) = self.columns.split_at_mut(n * n);
        let (vectors, vectors_behind) = self.vectors.split_at_mut(n * n);
        let (numbers, numbers_behind) = self.numbers.split_at_mut(NUMBERS * n);
        let (indices, indices_behind) = self.indices.split_at_mut(INDICES * n);
        let (kinds, kinds_behind) = self.kinds.split_at_mut(n);
        let behind = Work {
            columns: columns_behind,
            vectors: vectors_behind,
            numbers: numbers_behind,
            indices: indices_behind,
            kinds: kinds_behind,
            steps: self.steps,
        };
        (Work { columns, vectors, numbers, indices, kinds, steps: self.steps }, behind)
    }
}

/// Where a column of the bases of two halves is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// In the rows of the first half.
    First,
    /// Everywhere, since it was rotated with one of the other half.
    Both,
    /// In the rows of the second half.
    Second,
    /// It is an eigenvector.
    Deflated,
}

/// T = Z·diag(d)·Zᵀ, with d ascending, for the T of order 1 with this diagonal and `e` beside it, which
/// is lost. False where it failed; `d` and `z` have no meaning then.
pub(crate) fn decompose<R: Real + Scalar>(
    d: &mut [R],
    e: &mut [R],
    z: &mut [R],
    scratch: &mut Scratch<R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let n = d.len();
    z.fill(R::ZERO);
    let problem = Problem { d, e, z, rows: n, row: 0 };
    if !divide(problem, scratch.work(), threads, arch) {
        return false;
    }
    let Scratch { columns, numbers, indices, .. } = scratch;
    let order = &mut indices[..n];
    sort(order, d);
    columns.copy_from_slice(z);
    numbers[..n].copy_from_slice(d);
    for ((to, d), &from) in z.chunks_exact_mut(n).zip(d).zip(&*order) {
        *d = numbers[from];
        to.copy_from_slice(&columns[from * n..(from + 1) * n]);
    }
    true
}

/// The indices of these numbers, ascending.
fn sort<R: Real>(order: &mut [usize], numbers: &[R]) {
    order.iter_mut().enumerate().for_each(|(at, index)| *index = at);
    let compare = |&i: &usize, &j: &usize| numbers[i].partial_cmp(&numbers[j]);
    order.sort_by(|i, j| compare(i, j).unwrap_or(std::cmp::Ordering::Equal));
}

/// A diagonal block of T, and its columns of Z, of which it has as many rows, from one on; the others
/// are zero.
struct Problem<'a, R> {
    d: &'a mut [R],
    e: &'a mut [R],
    z: &'a mut [R],
    rows: usize,
    row: usize,
}

impl<R> Problem<'_, R> {
    /// The blocks of the first n rows and of the others.
    fn split_at(&mut self, n: usize) -> (Problem<'_, R>, Problem<'_, R>) {
        let (rows, row) = (self.rows, self.row);
        let (d, d_behind) = self.d.split_at_mut(n);
        let (e, e_behind) = self.e.split_at_mut(n);
        let (z, z_behind) = self.z.split_at_mut(n * rows);
        let e = &mut e[..n - 1];
        let behind = Problem { d: d_behind, e: e_behind, z: z_behind, rows, row: row + n };
        (Problem { d, e, z, rows, row }, behind)
    }
}

/// The eigensystem of a block, in no order. The columns of Z are zero before.
fn divide<R: Real + Scalar>(
    mut problem: Problem<'_, R>,
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
    let (first, second) = problem.split_at(half);
    let (first_work, second_work) = work.split_at(half);
    let threads = if n < SHARED_ORDER { &Serial } else { threads };
    // While there are more threads than halves, they share those, too.
    let halves = if threads.count() > 2 && half >= SHARED_ORDER {
        divide(first, first_work, threads, arch) && divide(second, second_work, threads, arch)
    } else {
        let halves = [(first, first_work), (second, second_work)];
        each(threads, halves, |(half, work)| divide(half, work, &Serial, arch))
    };
    halves && merge(problem, coupling, work, threads, arch)
}

/// Whether a body says so of all pieces, on any threads.
fn each<P: Send>(
    threads: &dyn Threads,
    pieces: impl IntoIterator<Item = P>,
    body: impl Fn(P) -> bool + Sync,
) -> bool {
    if threads.count() <= 1 {
        return pieces.into_iter().all(body);
    }
    let pieces: Vec<_> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
    let all = AtomicBool::new(true);
    threads.run(pieces.len(), &|piece| {
        let piece = pieces[piece].lock().unwrap_or_else(PoisonError::into_inner).take();
        if !piece.is_none_or(&body) {
            all.store(false, Ordering::Relaxed);
        }
    });
    all.into_inner()
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
        to[row..row + n].copy_from_slice(from);
    }
    true
}

/// Makes one eigensystem of those of two halves.
fn merge<R: Real + Scalar>(
    problem: Problem<'_, R>,
    coupling: R,
    work: Work<'_, R>,
    threads: &dyn Threads,
    arch: Arch,
) -> bool {
    let Problem { d, z: q, rows, row, .. } = problem;
    let n = d.len();
    let half = n / 2;
    let Work { columns, vectors, numbers, indices, kinds, .. } = work;
    let mut numbers = numbers[..NUMBERS * n].chunks_exact_mut(n);
    let [z, poles, weights, squares, products] =
        std::array::from_fn(|_| numbers.next().unwrap_or_default());
    let mut indices = indices[..INDICES * n].chunks_exact_mut(n);
    let [order, kept, deflated, places] =
        std::array::from_fn(|_| indices.next().unwrap_or_default());
    let kinds = &mut kinds[..n];
    // T is the halves and |e|·u·uᵀ, where u is 1 in the last row of the first and ±1 in the first row of
    // the second; z is u in the basis of their eigenvectors, of length 1.
    let scale = R::from_f64(std::f64::consts::FRAC_1_SQRT_2);
    for (j, (z, column)) in z.iter_mut().zip(q.chunks_exact(rows)).enumerate() {
        (*z, kinds[j]) = if j < half {
            (column[row + half - 1] * scale, Kind::First)
        } else {
            (column[row + half] * (scale * coupling.signum()), Kind::Second)
        };
    }
    let rho = coupling.abs() + coupling.abs();
    sort(order, d);
    let basis = Basis { q: &mut *q, rows, range: row..row + n };
    let (keeps, deflates) = deflate(basis, (d, z, kinds), rho, order, (kept, deflated), arch);
    if keeps == 0 {
        return true;
    }
    let (kept, deflated) = (&kept[..keeps], &deflated[..deflates]);
    // The first half's rows of the columns that are not zero there, the second half's likewise, and the
    // columns that stay. A place is a row of the vectors to come, by kind.
    let count = |kind| kept.iter().filter(|&&j| kinds[j] == kind).count();
    let firsts = count(Kind::First);
    let above = firsts + count(Kind::Both);
    let (top, rest) = columns.split_at_mut(half * above);
    let (bottom, stay) = rest.split_at_mut((n - half) * (keeps - firsts));
    let mut next = [0, firsts, above];
    for (place, &j) in places.iter_mut().zip(kept) {
        let kind = match kinds[j] {
            Kind::First => 0,
            Kind::Both => 1,
            Kind::Second | Kind::Deflated => 2,
        };
        *place = next[kind];
        next[kind] += 1;
        let (upper, lower) = q[j * rows + row..][..n].split_at(half);
        if kind < 2 {
            top[*place * half..][..half].copy_from_slice(upper);
        }
        if kind > 0 {
            bottom[(*place - firsts) * (n - half)..][..n - half].copy_from_slice(lower);
        }
        (poles[*place], weights[*place], squares[*place]) = (d[j], z[j], z[j] * z[j]);
    }
    for ((stay, value), &j) in stay.chunks_exact_mut(n).zip(&mut *products).zip(deflated) {
        stay.copy_from_slice(&q[j * rows + row..][..n]);
        *value = d[j];
    }
    let (now, stayed) = q.split_at_mut(keeps * rows);
    let (values, rest) = d.split_at_mut(keeps);
    rest.copy_from_slice(&products[..deflates]);
    for (to, from) in stayed.chunks_exact_mut(rows).zip(stay.chunks_exact(n)) {
        to[row..row + n].copy_from_slice(from);
    }
    let rank_one = RankOne {
        secular: Secular {
            d: &poles[..keeps],
            squares: &squares[..keeps],
            order: &places[..keeps],
            rho,
        },
        z: &mut weights[..keeps],
        products: &mut products[..keeps],
        vectors: &mut vectors[..keeps * keeps],
    };
    let bases = [
        (MatRef::from_column_major_slice(top, half, above), 0),
        (MatRef::from_column_major_slice(bottom, n - half, keeps - firsts), firsts),
    ];
    rank_one.solve(values, Target { columns: now, rows, row }, bases, threads, arch)
}

/// Columns of Z, of length `rows`, and the rows of a block in them.
struct Basis<'a, R> {
    q: &'a mut [R],
    rows: usize,
    range: std::ops::Range<usize>,
}

/// Sorts out eigenvectors of D + ρ·z·zᵀ that are columns of the basis already, or are when two of equal
/// d have been rotated. Writes the indices of the others, by ascending d, and theirs, and returns how
/// many there are of each.
fn deflate<R: Real + Scalar>(
    basis: Basis<'_, R>,
    (d, z, kinds): (&mut [R], &mut [R], &mut [Kind]),
    rho: R,
    order: &[usize],
    (kept, deflated): (&mut [usize], &mut [usize]),
    arch: Arch,
) -> (usize, usize) {
    let larger = |x: R, y: &R| if y.abs() > x { y.abs() } else { x };
    let scale = d.iter().chain(&*z).fold(R::ZERO, larger);
    let tolerance = R::from_f64(8.0) * R::EPSILON * scale;
    let (mut keeps, mut deflates) = (0, 0);
    let mut candidate: Option<usize> = None;
    for &next in order {
        if rho * z[next].abs() <= tolerance {
            kinds[next] = Kind::Deflated;
            deflated[deflates] = next;
            deflates += 1;
            continue;
        }
        if let Some(last) = candidate {
            // The rotation that takes all of z to `next`.
            let (rotation, both) = rotation_of(z[next], z[last]);
            let Rotation { c, s } = rotation;
            let (x, y) = (d[last], d[next]);
            if ((y - x) * c * s).abs() <= tolerance {
                (z[next], z[last]) = (both, R::ZERO);
                (d[last], d[next]) = (x * (c * c) + y * (s * s), x * (s * s) + y * (c * c));
                if kinds[next] != kinds[last] {
                    kinds[next] = Kind::Both;
                }
                kinds[last] = Kind::Deflated;
                let start = last.min(next) * basis.rows;
                let (left, right) =
                    basis.q[start..].split_at_mut((last.max(next) * basis.rows) - start);
                let (left, right) =
                    (&mut left[basis.range.clone()], &mut right[basis.range.clone()]);
                let (x, y) = if last < next { (left, right) } else { (right, left) };
                arch.dispatch(Rotate { x, y, rotation });
                deflated[deflates] = last;
                deflates += 1;
            } else {
                kept[keeps] = last;
                keeps += 1;
            }
        }
        candidate = Some(next);
    }
    if let Some(last) = candidate {
        kept[keeps] = last;
        keeps += 1;
    }
    (keeps, deflates)
}

/// [x y] ← [x y]·[c s; −s c].
struct Rotate<'a, R> {
    x: &'a mut [R],
    y: &'a mut [R],
    rotation: Rotation<R>,
}

impl<R: Real + Scalar> WithSimd for Rotate<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { x, y, rotation: Rotation { c, s } } = self;
        for (x, y) in x.iter_mut().zip(y) {
            (*x, *y) = (c * *x - s * *y, c * *y + s * *x);
        }
    }
}

/// D + ρ·z·zᵀ, and memory for its eigenvectors.
struct RankOne<'a, R> {
    secular: Secular<'a, R>,
    z: &'a mut [R],
    products: &'a mut [R],
    vectors: &'a mut [R],
}

/// Columns of Z of length `rows`, in which a block starts at a row.
struct Target<'a, R> {
    columns: &'a mut [R],
    rows: usize,
    row: usize,
}

impl<R: Real + Scalar> RankOne<'_, R> {
    /// Its eigenvalues, and its eigenvectors in the basis of T: the rows from some number on of the
    /// vectors, multiplied by what is not zero of the basis, for the upper and the lower rows.
    fn solve(
        self,
        values: &mut [R],
        target: Target<'_, R>,
        bases: [(MatRef<'_, R>, usize); 2],
        threads: &dyn Threads,
        arch: Arch,
    ) -> bool {
        let Self { secular, z, products, vectors } = self;
        let Target { columns, rows, row } = target;
        let order = values.len();
        let strips = values.chunks_mut(STRIP).zip(vectors.chunks_mut(STRIP * order));
        let found = each(threads, strips.enumerate(), |(strip, (roots, differences))| {
            arch.dispatch(Roots { secular, first: strip * STRIP, roots, differences })
        });
        if !found {
            return false;
        }
        let differences = &*vectors;
        let strips = z.chunks_mut(STRIP).zip(products.chunks_mut(STRIP));
        let weights = each(threads, strips.enumerate(), |(strip, (z, products))| {
            arch.dispatch(Weights { secular, differences, first: strip * STRIP, z, products });
            true
        });
        let strips = vectors.chunks_mut(STRIP * order).zip(columns.chunks_mut(STRIP * rows));
        weights
            && each(threads, strips, |(vectors, columns)| {
                arch.dispatch(Eigenvectors { z, differences: vectors });
                let count = vectors.len() / order;
                let vectors = MatRef::from_column_major_slice(vectors, order, count);
                let to = MatMut::from_column_major_slice_mut(columns, rows, count);
                let height = bases[0].0.nrows() + bases[1].0.nrows();
                let to = to.subrows_mut(row, height).split_at_row_mut(bases[0].0.nrows());
                for (to, (basis, first)) in [to.0, to.1].into_iter().zip(bases) {
                    let rows = vectors.subrows(first, basis.ncols());
                    R::product(to, Accum::Replace, (basis, Conj::No), (rows, Conj::No), R::ONE);
                }
                true
            })
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
mod tests {
    use lapax_core::Spawned;

    use super::*;
    use crate::divide_and_conquer::tests::random;
    use crate::eigensystem::is_eigensystem;

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
        let mut scratch = Scratch::new(n);
        if !decompose(&mut w, &mut off, &mut z, &mut scratch, threads, Arch::new()) {
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
        Some((w, z))
    }

    #[test]
    fn every_order_and_every_deflation() {
        for n in [1, 2, 3, LEAF, LEAF + 1, 33, 50, 101, SHARED_ORDER, 300] {
            for (at, (d, e)) in matrices(n).into_iter().enumerate() {
                assert!(solve::<f64>(&d, &e, &Serial).is_some(), "n = {n}, matrix {at}");
                assert!(solve::<f32>(&d, &e, &Serial).is_some(), "n = {n}, matrix {at}, f32");
            }
        }
    }

    #[test]
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
