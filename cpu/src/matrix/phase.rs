//! The phase of a vector that its equation leaves free: an eigenvector times any number of modulus one is one, too.
//!
//! The rule, for each x of norm one that has n components: the first of them with |x(i)|·√n ≥ [`PART`] is real and
//! positive. There is one, since the largest has |x(i)|·√n ≥ 1; it is large beside what rounding makes of it, and which
//! one it is does not hang on a comparison of components, of which symmetric matrices have many equal ones. Another way
//! to the same vector leads to the same phase, unless a component before it is within rounding of the bound.
//!
//! Singular vectors go in pairs, A·v = s·u, and it is u that has the rule. In lanes see `lanes::phase`.
//!
//! Eigenvectors of general matrices have another: their component of largest modulus is real and positive, the first where
//! others are as large but for [`TIE`] roundings. LAPACK's xGEEV makes that of complex ones real, and JAX's derivative of
//! eigenvectors is that of vectors for which it is.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use lapax_core::{Real, Scalar, Threads, run_each};

use crate::simd::scalar::{ShortRow, zeros};

/// Of the root of a vector's mean square, the least modulus of the component that says its phase: no ratio that
/// structured matrices are known to give vectors, such as a half or a third, and low enough that of vectors without
/// structure six in ten have it in their first component.
const PART: f64 = 0.4869;

/// The roundings that moduli of components may differ by and be taken for equal: those of vectors with ties in exact
/// arithmetic, as symmetric and circulant matrices have, differ by some.
const TIE: f64 = 128.0;

/// The columns of a large matrix that a thread turns at a time.
const TOGETHER: usize = 64;

/// Which singular vectors have the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leading {
    /// Those in U.
    Left,
    /// Those in V: the matrix is the transpose of one whose U they are.
    Right,
}

/// The least modulus of the component that says the phase of a vector of n.
pub(crate) fn least<R: Real>(n: usize) -> R {
    R::from_f64(PART / f64::from(u32::try_from(n).unwrap_or(u32::MAX)).sqrt())
}

/// The number of modulus one that makes x real and positive; none where x is smaller than that, or NaN.
#[inline(always)]
fn factor<T: Scalar>(x: T, least: T::Real) -> Option<T> {
    if !T::IS_COMPLEX {
        return (x.abs1() >= least).then(|| T::from_real(x.re().signum()));
    }
    let square = x.re() * x.re() + x.im() * x.im();
    (square >= least * least).then(|| x.conj().unscale(square.sqrt()))
}

/// The first component of modulus `least`, and the factor that makes it real and positive.
fn first<T: Scalar>(x: impl Iterator<Item = T>, least: T::Real) -> Option<(usize, T)> {
    x.enumerate().find_map(|(i, x)| factor(x, least).map(|factor| (i, factor)))
}

/// Turns a vector; returns what it was multiplied by.
fn turn<T: Scalar>(x: &mut [T], least: T::Real) -> T {
    let Some((place, factor)) = first(x.iter().copied(), least) else { return T::ONE };
    multiply(x, factor);
    x[place] = T::from_real(x[place].re());
    factor
}

/// x ← factor·x.
fn multiply<T: Scalar>(x: &mut [T], factor: T) {
    if factor == T::ONE {
    } else if T::IS_COMPLEX {
        x.iter_mut().for_each(|x| *x *= factor);
    } else {
        x.iter_mut().for_each(|x| *x = -*x);
    }
}

/// Turns vectors of n components each, one behind the other.
pub(crate) fn columns<T: Scalar>(v: &mut [T], n: usize, threads: Option<&dyn Threads>) {
    let least = least(n);
    in_parts(v, n, threads, |_, v| {
        for x in v.chunks_exact_mut(n) {
            turn(x, least);
        }
    });
}

/// Turns an eigenvector of a general matrix.
pub(crate) fn general<T: Scalar>(x: &mut [T]) {
    let least = nearly_largest(x);
    if least > T::Real::ZERO {
        turn(x, least);
    }
}

/// Whether a real eigenvector of a general matrix has the other sign.
pub(crate) fn is_negative<T: Scalar>(x: &[T]) -> bool {
    first(x.iter().copied(), nearly_largest(x)).is_some_and(|(_, factor)| factor != T::ONE)
}

/// The least modulus that is taken for the largest one of a vector.
fn nearly_largest<T: Scalar>(x: &[T]) -> T::Real {
    let size = |x: &T| {
        if T::IS_COMPLEX { x.re() * x.re() + x.im() * x.im() } else { x.abs1() }
    };
    // A NaN is none of them.
    let larger = |largest: T::Real, size| if size > largest { size } else { largest };
    let largest = x.iter().map(size).fold(T::Real::ZERO, larger);
    let largest = if T::IS_COMPLEX { largest.sqrt() } else { largest };
    largest * (T::Real::ONE - T::Real::from_f64(TIE) * T::Real::EPSILON)
}

/// Calls `body` for columns of n numbers, for some at a time where there are threads, with the number of the first.
fn in_parts<T: Scalar>(
    a: &mut [T],
    n: usize,
    threads: Option<&dyn Threads>,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    if a.is_empty() {
        return;
    }
    let Some(threads) = threads else { return body(0, a) };
    let parts: Vec<_> = a.chunks_mut(TOGETHER * n).map(Mutex::new).collect();
    run_each(
        threads,
        parts.len(),
        || (),
        |(), part| {
            let mut columns = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            body(part * TOGETHER, &mut columns);
        },
    );
}

/// Turns Schur vectors, the columns of Z, and T = Zᴴ·A·Z with them: n × n.
pub(crate) fn schur<T: Scalar>(t: &mut [T], z: &mut [T], n: usize) {
    let least = least(n);
    let mut factors: ShortRow<T> = zeros(n);
    for (x, factor) in z.chunks_exact_mut(n).zip(&mut factors) {
        *factor = turn(x, least);
    }
    for (j, column) in t.chunks_exact_mut(n).enumerate() {
        for (x, factor) in column.iter_mut().zip(&factors[..j]) {
            *x *= factor.conj() * factors[j];
        }
        if let Some(below) = column.get_mut(j + 1)
            && *below != T::ZERO
        {
            *below *= factors[j] * factors[j + 1];
        }
    }
}

/// What singular vectors are multiplied by, and where they have the component that says so.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    /// Of the rows of Vᴴ.
    factors: Vec<T>,
    /// A row of U, or a column of Vᴴ.
    places: Vec<usize>,
}

impl<T: Scalar> Turns<T> {
    /// For so many rows of Vᴴ.
    pub(crate) fn new(rows: usize) -> Self {
        Self { factors: vec![T::ONE; rows], places: vec![0; rows] }
    }

    /// Turns the columns of U, of m numbers each, and the rows of Vᴴ, which has n columns: together those of the pairs
    /// `part` of the first k, and alone those from k on, which A or Aᴴ maps to zero.
    pub(crate) fn singular(
        &mut self,
        leading: Leading,
        (u, m): (&mut [T], usize),
        (vt, n): (&mut [T], usize),
        (part, k): (&Range<usize>, usize),
        threads: Option<&dyn Threads>,
    ) {
        let rows = self.factors.len();
        self.factors.fill(T::ONE);
        let (pairs, alone) = u.split_at_mut(k * m);
        let pairs = &mut pairs[part.start * m..part.end * m];
        match leading {
            Leading::Left => self.find_columns(pairs, m, part),
            Leading::Right => self.find_rows(vt, n, part.clone()),
        }
        self.find_rows(vt, n, k..rows);
        let factors = &self.factors[part.clone()];
        in_parts(pairs, m, threads, |first, columns| {
            for (x, factor) in columns.chunks_exact_mut(m).zip(&factors[first..]) {
                multiply(x, factor.conj());
            }
        });
        columns(alone, m, threads);
        let factors = &self.factors;
        in_parts(vt, rows, threads, |_, columns| {
            for column in columns.chunks_exact_mut(rows) {
                column.iter_mut().zip(factors).for_each(|(x, &factor)| *x *= factor);
            }
        });
        if !T::IS_COMPLEX {
            return;
        }
        for row in part.clone().chain(k..rows) {
            let place = self.places[row];
            let x = match leading {
                Leading::Left if row < k => &mut pairs[(row - part.start) * m + place],
                _ => &mut vt[place * rows + row],
            };
            *x = T::from_real(x.re());
        }
    }

    /// What rows of Vᴴ are multiplied by beside columns of U that have the rule.
    fn find_columns(&mut self, u: &[T], m: usize, part: &Range<usize>) {
        let least = least(m);
        for (row, x) in part.clone().zip(u.chunks_exact(m.max(1))) {
            if let Some((place, factor)) = first(x.iter().copied(), least) {
                (self.factors[row], self.places[row]) = (factor.conj(), place);
            }
        }
    }

    /// What some rows of Vᴴ are multiplied by of which the columns of V have the rule: by one column of Vᴴ after the other,
    /// since what is beside each other in a row is far apart in memory.
    fn find_rows(&mut self, vt: &[T], n: usize, some: Range<usize>) {
        let (rows, least) = (self.factors.len(), least(n));
        let mut left = some.len();
        self.factors[some.clone()].fill(T::ZERO);
        for (place, column) in vt.chunks_exact(rows.max(1)).enumerate() {
            if left == 0 {
                break;
            }
            for row in some.clone() {
                if self.factors[row] == T::ZERO
                    && let Some(factor) = factor(column[row], least)
                {
                    (self.factors[row], self.places[row]) = (factor, place);
                    left -= 1;
                }
            }
        }
        // Of what is not finite, or not a unit vector.
        self.factors[some].iter_mut().filter(|x| **x == T::ZERO).for_each(|x| *x = T::ONE);
    }
}
