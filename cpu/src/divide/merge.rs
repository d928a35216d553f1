//! What divide and conquer does with the bases of two halves of a matrix, for eigenvalues and for
//! singular values alike.
//!
//! The eigenvectors of a rank-one problem ([`crate::divide::secular`]) are multiplied by the columns that take part
//! in it; what is zero in the bases of the halves is not multiplied: Rutter, "A serial implementation of
//! Cuppen's divide and conquer algorithm" (LAPACK working note 69, 1994).
//!
//! Where a matrix is cut, and into which strips the work on one is, depends on its order alone, so that
//! the number of threads changes no bit.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use faer::{Accum, Conj, MatMut, MatRef};
use lapax_core::{Real, Serial};

use super::secular::{Roots, Secular, Weights};
use crate::blas::rotations::{RotateColumns, Rotation, rotation_of};
use crate::simd::arch::Arch;
use crate::{Scalar, Threads};

/// The order from which threads share the work on one matrix. On two cores, f64, eigh of n = 192: 3.6 ms
/// alone and 2.8 shared.
pub(crate) const SHARED_ORDER: usize = 192;
/// The columns, or rows, that are one piece of it.
const STRIP: usize = 64;

/// What a matrix of one order takes besides its operands.
#[derive(Debug)]
pub(crate) struct Scratch<R> {
    /// The columns of a basis that take part in a product, and those that do not.
    columns: Vec<R>,
    /// The eigenvectors of the rank-one problem.
    vectors: Vec<R>,
    numbers: Vec<R>,
    indices: Vec<usize>,
    kinds: Vec<Kind>,
    /// Steps per value after which the iteration on a block that is not divided is given up.
    pub(crate) steps: usize,
}

/// Numbers and indices that a merge works with, per row.
const NUMBERS: usize = 5;
const INDICES: usize = 4;

/// Where values that are sorted tend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Towards {
    Infinity,
    Zero,
}

impl<R: Real + Scalar> Scratch<R> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize, steps: usize) -> Self {
        Self {
            columns: vec![R::ZERO; n * n],
            vectors: vec![R::ZERO; n * n],
            numbers: vec![R::ZERO; NUMBERS * n],
            indices: vec![0; INDICES * n],
            kinds: vec![Kind::Deflated; n],
            steps,
        }
    }

    pub(crate) fn work(&mut self) -> Work<'_, R> {
        let Self { columns, vectors, numbers, indices, kinds, steps } = self;
        Work { columns, vectors, numbers, indices, kinds, steps: *steps }
    }

    /// Puts values in order, and the columns of their bases.
    pub(crate) fn sort<const BASES: usize>(
        &mut self,
        values: &mut [R],
        towards: Towards,
        bases: [&mut [R]; BASES],
    ) {
        let n = values.len();
        let Self { columns, numbers, indices, .. } = self;
        let order = &mut indices[..n];
        sort(order, values);
        if towards == Towards::Zero {
            order.reverse();
        }
        numbers[..n].copy_from_slice(values);
        values.iter_mut().zip(&*order).for_each(|(to, &from)| *to = numbers[from]);
        let (order, places) = indices.split_at_mut(n);
        for basis in bases {
            places[..n].copy_from_slice(order);
            permute_columns(basis, &mut places[..n], &mut columns[..n]);
        }
    }
}

/// Column i becomes column order(i), cycle by cycle; `order` becomes the identity, and `column` has room for one.
fn permute_columns<R: Copy>(basis: &mut [R], order: &mut [usize], column: &mut [R]) {
    let n = column.len();
    for first in 0..order.len() {
        if order[first] == first {
            continue;
        }
        column.copy_from_slice(&basis[first * n..(first + 1) * n]);
        let mut to = first;
        loop {
            let from = std::mem::replace(&mut order[to], to);
            if from == first {
                break;
            }
            basis.copy_within(from * n..(from + 1) * n, to * n);
            to = from;
        }
        basis[to * n..(to + 1) * n].copy_from_slice(column);
    }
}

/// A part of [`Scratch`], for a part of the matrix.
pub(crate) struct Work<'a, R> {
    pub(crate) columns: &'a mut [R],
    pub(crate) vectors: &'a mut [R],
    numbers: &'a mut [R],
    indices: &'a mut [usize],
    kinds: &'a mut [Kind],
    pub(crate) steps: usize,
}

impl<'a, R> Work<'a, R> {
    /// The parts for a matrix of order n and for what is behind it.
    pub(crate) fn split_at(&mut self, n: usize) -> (Work<'_, R>, Work<'_, R>) {
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

    /// What the merge of n columns takes.
    pub(crate) fn merge(self, n: usize) -> Merge<'a, R> {
        let mut numbers = self.numbers[..NUMBERS * n].chunks_exact_mut(n);
        let mut indices = self.indices[..INDICES * n].chunks_exact_mut(n);
        let [z, poles, weights, squares, products] =
            std::array::from_fn(|_| numbers.next().unwrap_or_default());
        let [order, kept, deflated, places] =
            std::array::from_fn(|_| indices.next().unwrap_or_default());
        let Self { columns, vectors, kinds, .. } = self;
        let kinds = &mut kinds[..n];
        let (keeps, deflates) = (0, 0);
        Merge {
            z,
            kinds,
            order,
            kept,
            keeps,
            deflated,
            deflates,
            places,
            wanted: None,
            poles,
            weights,
            squares,
            products,
            columns,
            vectors,
        }
    }
}

/// Where a column of the bases of two halves is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In the rows of the first half.
    First,
    /// Everywhere, since it was rotated with one of the other half.
    Both,
    /// In the rows of the second half.
    Second,
    /// It is a column of the new basis.
    Deflated,
}

/// One merge: D + ρ·z·zᵀ in the basis of two halves, or D² + ρ·z·zᵀ.
pub(crate) struct Merge<'a, R> {
    /// z, by column.
    pub(crate) z: &'a mut [R],
    pub(crate) kinds: &'a mut [Kind],
    /// For the numbers of the columns by ascending d.
    pub(crate) order: &'a mut [usize],
    /// The columns that take part, by ascending d, and those that do not.
    kept: &'a mut [usize],
    keeps: usize,
    deflated: &'a mut [usize],
    deflates: usize,
    /// The numbers of those that take part in the rank-one problem, where they are sorted by kind.
    places: &'a mut [usize],
    /// Those of the vectors that are wanted, where not all are.
    wanted: Option<Range<usize>>,
    /// The rank-one problem.
    poles: &'a mut [R],
    weights: &'a mut [R],
    squares: &'a mut [R],
    products: &'a mut [R],
    columns: &'a mut [R],
    vectors: &'a mut [R],
}

/// The indices of these numbers, ascending.
pub(crate) fn sort<R: Real>(order: &mut [usize], numbers: &[R]) {
    order.iter_mut().enumerate().for_each(|(at, index)| *index = at);
    let compare = |&i: &usize, &j: &usize| numbers[i].partial_cmp(&numbers[j]);
    order.sort_by(|i, j| compare(i, j).unwrap_or(std::cmp::Ordering::Equal));
}

/// Solves the two halves of a problem of order n, on threads where it is worth it.
pub(crate) fn halves<P: Send>(
    n: usize,
    halves: [P; 2],
    threads: &dyn Threads,
    solve: impl Fn(P, &dyn Threads) -> bool + Sync,
) -> bool {
    let threads = if n < SHARED_ORDER { &Serial } else { threads };
    // While there are more threads than halves, they share those, too.
    if threads.count() > 2 && n / 2 >= SHARED_ORDER {
        halves.into_iter().all(|half| solve(half, threads))
    } else {
        each(threads, halves, |half| solve(half, &Serial))
    }
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

/// Columns of a basis, of length `rows`, and the rows of a block in them.
pub(crate) struct Basis<'a, R> {
    pub(crate) q: &'a mut [R],
    pub(crate) rows: usize,
    pub(crate) range: Range<usize>,
}

impl<R: Real + Scalar> Basis<'_, R> {
    /// The part of a column in the block.
    pub(crate) fn column(&self, j: usize) -> &[R] {
        &self.q[j * self.rows..(j + 1) * self.rows][self.range.clone()]
    }

    /// Rotates columns x and y.
    pub(crate) fn rotate(&mut self, rotation: Rotation<R>, x: usize, y: usize, arch: Arch) {
        let start = x.min(y) * self.rows;
        let (left, right) = self.q[start..].split_at_mut(x.max(y) * self.rows - start);
        let (left, right) = (&mut left[self.range.clone()], &mut right[self.range.clone()]);
        let (x, y) = if x < y { (left, right) } else { (right, left) };
        arch.dispatch(RotateColumns { rotation, x, y });
    }
}

/// D's part in a rank-one problem that is solved, for the vectors of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solved<'a, R> {
    pub(crate) poles: &'a [R],
    /// What √ρ·z was replaced by.
    pub(crate) weights: &'a [R],
    /// The numbers of the poles, ascending.
    pub(crate) places: &'a [usize],
    /// The vectors' values.
    pub(crate) values: &'a [R],
}

impl<R: Real + Scalar> Merge<'_, R> {
    /// The column takes part; those of smaller d are known already.
    pub(crate) fn keep(&mut self, column: usize) {
        self.kept[self.keeps] = column;
        self.keeps += 1;
    }

    /// The column does not.
    pub(crate) fn deflate(&mut self, column: usize) {
        self.kinds[column] = Kind::Deflated;
        self.deflated[self.deflates] = column;
        self.deflates += 1;
    }

    /// The rotation of columns `next` and `last`, in this order, that takes all of z to `next`, where it
    /// leaves D within the tolerance diagonal: z and d are rotated, and `last` takes no part then.
    pub(crate) fn join(
        &mut self,
        d: &mut [R],
        (last, next): (usize, usize),
        tolerance: R,
    ) -> Option<Rotation<R>> {
        let (rotation, both) = rotation_of(self.z[next], self.z[last]);
        let Rotation { c, s } = rotation;
        let (x, y) = (d[last], d[next]);
        let negligible = ((y - x) * c * s).abs() <= tolerance;
        if !negligible {
            return None;
        }
        (self.z[next], self.z[last]) = (both, R::ZERO);
        (d[last], d[next]) = (x * (c * c) + y * (s * s), x * (s * s) + y * (c * c));
        if self.kinds[next] != self.kinds[last] {
            self.kinds[next] = Kind::Both;
        }
        self.deflate(last);
        Some(rotation)
    }

    /// Makes z of the columns that take part a vector of length 1; returns the square of what its length
    /// was, unless that is not finite.
    pub(crate) fn normalize(&mut self) -> Option<R> {
        let kept = &self.kept[..self.keeps];
        let square = kept.iter().fold(R::ZERO, |sum, &j| sum + self.z[j] * self.z[j]);
        let length = square.sqrt();
        kept.iter().for_each(|&j| self.z[j] = self.z[j] / length);
        square.finite().then_some(square)
    }

    /// How many columns that take part are not zero in the first half alone, and in the first half at all.
    fn counts(&self) -> (usize, usize) {
        let kept = &self.kept[..self.keeps];
        let count = |kind| kept.iter().filter(|&&j| self.kinds[j] == kind).count();
        let firsts = count(Kind::First);
        (firsts, firsts + count(Kind::Both))
    }

    /// Finds the eigenvalues: d becomes those, and behind them the d of the columns that do not take
    /// part.
    pub(crate) fn solve<const SQUARED: bool>(
        &mut self,
        d: &mut [R],
        rho: R,
        threads: &dyn Threads,
        arch: Arch,
    ) -> bool {
        let (kept, deflated) = (&self.kept[..self.keeps], &self.deflated[..self.deflates]);
        let (firsts, above) = self.counts();
        let mut next = [0, firsts, above];
        for (place, &j) in self.places.iter_mut().zip(kept) {
            let next = match self.kinds[j] {
                Kind::First => &mut next[0],
                Kind::Both => &mut next[1],
                Kind::Second | Kind::Deflated => &mut next[2],
            };
            *place = *next;
            *next += 1;
            let z = self.z[j];
            (self.poles[*place], self.weights[*place], self.squares[*place]) = (d[j], z, z * z);
        }
        for (value, &j) in self.products.iter_mut().zip(deflated) {
            *value = d[j];
        }
        let order = kept.len();
        let (values, rest) = d.split_at_mut(order);
        rest[..deflated.len()].copy_from_slice(&self.products[..deflated.len()]);
        if order == 0 {
            return true;
        }
        let secular: Secular<'_, R, SQUARED> = Secular {
            d: &self.poles[..order],
            squares: &self.squares[..order],
            order: &self.places[..order],
            rho,
        };
        let differences = &mut self.vectors[..order * order];
        let strips = values.chunks_mut(STRIP).zip(differences.chunks_mut(STRIP * order));
        let found = each(threads, strips.enumerate(), |(strip, (roots, differences))| {
            arch.dispatch(Roots { secular, first: strip * STRIP, roots, differences })
        });
        let differences = &*differences;
        let products = self.products[..order].chunks_mut(STRIP);
        let strips = self.weights[..order].chunks_mut(STRIP).zip(products);
        found
            && each(threads, strips.enumerate(), |(strip, (z, products))| {
                arch.dispatch(Weights { secular, differences, first: strip * STRIP, z, products });
                true
            })
    }

    /// Of all values, which d holds now, those at these places are wanted when they are sorted, ascending: the
    /// other vectors are not found.
    pub(crate) fn want(&mut self, d: &[R], places: Range<usize>) {
        sort(self.order, d);
        let found = self.order[places].iter().copied().filter(|&column| column < self.keeps);
        let first = found.clone().min();
        let last = found.max();
        self.wanted = Some(first.zip(last).map_or(0..0, |(first, last)| first..last + 1));
    }

    /// Multiplies a basis, of whose block the first half has `upper` rows, by the vectors, which are made
    /// by `vectors` in strips of columns; what comes behind are the columns that do not take part. Columns of
    /// vectors that are not wanted have no meaning then.
    pub(crate) fn multiply(
        &mut self,
        basis: Basis<'_, R>,
        upper: usize,
        values: &[R],
        threads: &dyn Threads,
        vectors: impl Fn(Solved<'_, R>, &mut [R]) + Sync,
    ) {
        let order = self.keeps;
        let (kept, deflated) = (&self.kept[..order], &self.deflated[..self.deflates]);
        let (firsts, above) = self.counts();
        // The first half's rows of the columns that are not zero there, the second half's likewise, and
        // the columns that stay.
        let height = basis.range.len();
        let lower = height - upper;
        let (top, rest) = self.columns.split_at_mut(upper * above);
        let (bottom, stay) = rest.split_at_mut(lower * (order - firsts));
        for (&place, &j) in self.places.iter().zip(kept) {
            let (first, second) = basis.column(j).split_at(upper);
            if place < above {
                top[place * upper..][..upper].copy_from_slice(first);
            }
            if place >= firsts {
                bottom[(place - firsts) * lower..][..lower].copy_from_slice(second);
            }
        }
        for (stay, &j) in stay.chunks_exact_mut(height).zip(deflated) {
            stay.copy_from_slice(basis.column(j));
        }
        let Basis { q, rows, range } = basis;
        let (now, stayed) = q.split_at_mut(order * rows);
        let stay = stay.chunks_exact(height).take(deflated.len());
        for (to, from) in stayed.chunks_exact_mut(rows).zip(stay) {
            to[range.clone()].copy_from_slice(from);
        }
        if order == 0 {
            return;
        }
        let bases = [
            (MatRef::from_column_major_slice(top, upper, above), 0),
            (MatRef::from_column_major_slice(bottom, lower, order - firsts), firsts),
        ];
        let solved = Solved {
            poles: &self.poles[..order],
            weights: &self.weights[..order],
            places: &self.places[..order],
            values,
        };
        let Range { start, end } = self.wanted.clone().unwrap_or(0..order);
        let strips = self.vectors[start * order..end * order].chunks_mut(STRIP * order);
        let columns = now[start * rows..end * rows].chunks_mut(STRIP * rows);
        let strips = strips.zip(values[start..end].chunks(STRIP)).zip(columns);
        each(threads, strips, |((strip, values), columns)| {
            vectors(Solved { values, ..solved }, strip);
            let count = values.len();
            let strip = MatRef::from_column_major_slice(strip, order, count);
            let to = MatMut::from_column_major_slice_mut(columns, rows, count);
            let to = to.subrows_mut(range.start, height).split_at_row_mut(upper);
            for (to, (basis, first)) in [to.0, to.1].into_iter().zip(bases) {
                let rows = strip.subrows(first, basis.ncols());
                R::product(to, Accum::Replace, (basis, Conj::No), (rows, Conj::No), R::ONE);
            }
            true
        });
    }
}
