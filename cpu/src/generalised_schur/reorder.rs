//! Chosen eigenvalues of a pair in Schur form come first, by exchanges of neighbours.
//!
//! Van Dooren, "A generalized eigenvalue approach for solving Riccati equations" (SIAM J. Sci. Stat. Comput. 2, 1981)
//! for two eigenvalues; Kågström and Poromaa, "Computing eigenspaces with specified eigenvalues of a regular matrix pair
//! (A, B) and condition estimation" (Numer. Algorithms 12, 1996) for blocks: with S₁₁·R − L·S₂₂ = S₁₂ and
//! T₁₁·R − L·T₂₂ = T₁₂, the columns of [−R; I] and [−L; I] span what belongs to the second block.

use lapax_core::{Real as _, Scalar as _};

use super::pencil::{Pencil, eliminating};
use crate::Scalar;
use crate::blas::householder::reflector;

/// Roundings of a block that an exchange may leave below it: xTGEX2's.
const WEAK: f64 = 20.0;
/// The unknowns of the largest exchange.
const UNKNOWNS: usize = 8;

/// Neighbours whose eigenvalues could not be told apart.
#[derive(Debug)]
pub(crate) struct Rejected;

impl<T: Scalar> Pencil<'_, T> {
    /// Brings the eigenvalues with a number that is not zero to the front; either kind keeps its order.
    ///
    /// `ulp` is the rounding of the numbers that the pair came as.
    pub(crate) fn reorder(&mut self, chosen: &[i32], ulp: T::Real) -> Result<(), Rejected> {
        let (mut k, mut to) = (0, 0);
        while k < self.n {
            let width = self.width(k);
            if chosen[k..k + width].iter().any(|&chosen| chosen != 0) {
                self.move_up(k, width, to, ulp)?;
                to += width;
            }
            k += width;
        }
        Ok(())
    }

    fn move_up(
        &mut self,
        mut row: usize,
        width: usize,
        to: usize,
        ulp: T::Real,
    ) -> Result<(), Rejected> {
        while row > to {
            let pair = row >= to + 2 && self.s(row - 1, row - 2) != T::ZERO;
            let above = if pair { 2 } else { 1 };
            row -= above;
            match (above, width) {
                (1, 1) => self.swap_single(row, ulp),
                (2, 2) => self.swap_blocks::<4>(row, [above, width], ulp)?,
                _ => self.swap_blocks::<3>(row, [above, width], ulp)?,
            }
        }
        Ok(())
    }

    /// Exchanges the eigenvalues in rows k and k + 1.
    fn swap_single(&mut self, k: usize, ulp: T::Real) {
        let l = k + 1;
        let (zeros, after) = (self.zeros(k, 1), self.zeros(l, 1));
        let (s, t) = (self.s(l, l), self.t(l, l));
        // (t·S − s·T)·x = 0, of which only the first row is not zero.
        let (first, second) =
            (t * self.s(k, k) - s * self.t(k, k), t * self.s(k, l) - s * self.t(k, l));
        let largest = |x: [T; 3]| x.iter().fold(T::Real::ZERO, |size, x| size + x.abs1());
        let s_size = largest([self.s(k, k), self.s(k, l), s]);
        let t_size = largest([self.t(k, k), self.t(k, l), t]);
        // Where all vectors do, the second column comes first.
        let any = first == T::ZERO && second == T::ZERO;
        let g = if any { eliminating(T::ZERO, T::ONE) } else { eliminating(-second, first) };
        self.right(g, (k, l), l + 1, l + 1);
        self.left_by_larger(k, s_size, t_size);
        let limits = limits([s_size, t_size], ulp);
        self.keep_zeros(k, after, limits);
        self.keep_zeros(l, zeros, limits);
        for i in [k, l] {
            self.make_row_positive(i);
        }
    }

    /// Whether a block in row k has zero or an infinite eigenvalue: zeros in S or T.
    fn zeros(&self, k: usize, width: usize) -> [bool; 2] {
        [self.s(k, k), self.t(k, k)].map(|x| width == 1 && x == T::ZERO)
    }

    /// Makes it zero or infinite again, which it is but for roundings.
    fn keep_zeros(&mut self, k: usize, [of_s, of_t]: [bool; 2], [s_limit, t_limit]: [T::Real; 2]) {
        if of_s && self.s(k, k).abs1() <= s_limit {
            self.clear_s(k, k);
        }
        if of_t && self.t(k, k).abs1() <= t_limit {
            self.clear_t(k, k);
        }
    }

    /// Exchanges the blocks of order p in row k and of order q below it, of a real pair; M is their sum.
    fn swap_blocks<const M: usize>(
        &mut self,
        k: usize,
        [p, q]: [usize; 2],
        ulp: T::Real,
    ) -> Result<(), Rejected> {
        let (zeros, after) = (self.zeros(k, p), self.zeros(k + p, q));
        let copy = |a: &[T]| -> [[T; M]; M] {
            std::array::from_fn(|i| std::array::from_fn(|j| a[(k + i) * self.ld + k + j]))
        };
        let blocks = [copy(self.s), copy(self.t)];
        let sizes = blocks.map(|block| {
            let squares = block.as_flattened().iter().map(|x| x.re() * x.re());
            squares.fold(T::Real::ZERO, |sum, x| sum + x).sqrt()
        });
        let (r, l) = sylvester(&blocks, sizes, p, q);
        for (v, tau) in basis::<T, M>(&r, p, q) {
            self.reflect_right(v, tau, k, (k + M, k + M));
        }
        for (v, tau) in basis::<T, M>(&l, p, q) {
            self.reflect_left(v, tau, k, (k, k));
        }
        let limits = limits(sizes, ulp);
        for (i, j) in (0..p * q).map(|at| (k + q + at % p, k + at / p)) {
            // Not a number is rejected as well.
            if !(self.s(i, j).abs1() <= limits[0] && self.t(i, j).abs1() <= limits[1]) {
                return Err(Rejected);
            }
            self.clear_s(i, j);
            self.clear_t(i, j);
        }
        for (row, width) in [(k, q), (k + q, p)] {
            if width == 2 {
                self.standardise(row);
            }
        }
        self.keep_zeros(k, after, limits);
        self.keep_zeros(k + q, zeros, limits);
        (k..k + M).for_each(|i| self.make_row_positive(i));
        Ok(())
    }
}

/// What an exchange may leave in S and T of these sizes.
fn limits<R: lapax_core::Real>(sizes: [R; 2], ulp: R) -> [R; 2] {
    sizes.map(|size| R::from_f64(WEAK) * ulp * size)
}

/// The reflectors of the QR factorisation of [−X; I], X of p rows and q columns.
fn basis<T: Scalar, const M: usize>(
    x: &[[T; 2]; 2],
    p: usize,
    q: usize,
) -> impl Iterator<Item = ([T; M], T)> {
    let mut columns = [[T::ZERO; M]; 2];
    for (j, column) in columns.iter_mut().enumerate().take(q) {
        (0..p).for_each(|i| column[i] = -x[i][j]);
        column[p + j] = T::ONE;
    }
    let reflectors: [([T; M], T); 2] = std::array::from_fn(|j| {
        let mut v = columns[j];
        v[..j].fill(T::ZERO);
        let tau = match v[j..].split_first_mut() {
            Some((head, tail)) => {
                let tau = reflector::<pulp::Scalar, T>(*head, tail).tau;
                *head = T::ONE;
                tau
            }
            None => T::ZERO,
        };
        for column in &mut columns {
            let sum = column.iter().zip(v).fold(T::ZERO, |sum, (&x, v)| sum + v * x) * tau;
            column.iter_mut().zip(v).for_each(|(x, v)| *x -= v * sum);
        }
        (v, tau)
    });
    reflectors.into_iter().take(q)
}

/// R and L of the generalised Sylvester equation of two blocks, by elimination with complete pivoting; no pivot is
/// smaller than the roundoff of S and T, which are divided by their sizes.
fn sylvester<T: Scalar, const M: usize>(
    blocks: &[[[T; M]; M]; 2],
    sizes: [T::Real; 2],
    p: usize,
    q: usize,
) -> ([[T; 2]; 2], [[T; 2]; 2]) {
    let (unknowns, half) = (2 * p * q, p * q);
    // Unknown i + p·k is element (i, k) of R, and as many later that of L; the right-hand side stands at the end.
    let mut system = [[T::ZERO; UNKNOWNS + 1]; UNKNOWNS];
    for (which, (a, size)) in blocks.iter().zip(sizes).enumerate() {
        let at = |i: usize, j: usize| {
            if size == T::Real::ZERO { T::ZERO } else { a[i][j].unscale(size) }
        };
        for (i, k) in (0..half).map(|at| (at % p, at / p)) {
            let row = &mut system[which * half + i + p * k];
            (0..p).for_each(|s| row[s + p * k] += at(i, s));
            (0..q).for_each(|s| row[half + i + p * s] -= at(p + s, p + k));
            row[UNKNOWNS] = at(i, p + k);
        }
    }
    let smallest = T::Real::EPSILON + T::Real::EPSILON;
    let mut places: [usize; UNKNOWNS] = std::array::from_fn(|i| i);
    for step in 0..unknowns {
        let (mut best, mut row, mut column) = (-T::Real::ONE, step, step);
        for (i, elements) in system[..unknowns].iter().enumerate().skip(step) {
            for (j, x) in elements[..unknowns].iter().enumerate().skip(step) {
                if x.abs1() > best {
                    (best, row, column) = (x.abs1(), i, j);
                }
            }
        }
        system.swap(step, row);
        system.iter_mut().for_each(|row| row.swap(step, column));
        places.swap(step, column);
        if best < smallest {
            system[step][step] = T::from_real(smallest);
        }
        let pivot = system[step];
        for row in &mut system[step + 1..unknowns] {
            let factor = row[step].divide(pivot[step]);
            row.iter_mut().zip(pivot).for_each(|(x, pivot)| *x -= factor * pivot);
        }
    }
    let mut x = [T::ZERO; UNKNOWNS];
    for step in (0..unknowns).rev() {
        let row = system[step];
        let known = (step + 1..unknowns).fold(row[UNKNOWNS], |sum, j| sum - row[j] * x[places[j]]);
        x[places[step]] = known.divide(row[step]);
    }
    let part = |first: usize| {
        std::array::from_fn(|i| {
            std::array::from_fn(|k| if i < p && k < q { x[first + i + p * k] } else { T::ZERO })
        })
    };
    (part(0), part(half))
}
