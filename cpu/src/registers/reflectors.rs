//! Reflectors of small matrices whose columns are in registers.

use std::ops::Range;

use pulp::Simd;

use crate::Scalar;
use crate::blas::householder;
use crate::blas::householder::Reflector;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::{LaneNumbers, number};
use crate::simd::vector::{Lane, Reg};

/// The columns that a reflector is applied to at once.
const TOGETHER: usize = 4;
/// The registers of a product with the columns that are summed at once.
const MANY: usize = 8;
const FEW: usize = 4;

/// The columns of a matrix in work, one behind the other.
pub(crate) struct Columns<'a, S: Simd, T: Scalar> {
    pub(super) simd: S,
    pub(super) columns: &'a mut [Reg<S, T::Lane<S>>],
    pub(super) v: &'a mut [Reg<S, T::Lane<S>>],
    /// The registers of a column.
    pub(super) high: usize,
    pub(super) lane_numbers: LaneNumbers<T::Real>,
}

impl<S: Simd, T: Scalar> Columns<'_, S, T> {
    #[inline(always)]
    fn splat(&self, x: T) -> T::Lane<S> {
        T::Lane::<S>::splat(self.simd, x)
    }

    /// Register i of column j.
    #[inline(always)]
    fn load(&self, j: usize, i: usize) -> T::Lane<S> {
        T::Lane::<S>::load(self.simd, self.columns, j * self.high + i)
    }

    #[inline(always)]
    fn store(&mut self, x: T::Lane<S>, j: usize, i: usize) {
        x.store(self.columns, j * self.high + i);
    }

    /// Number i of column j.
    #[inline(always)]
    fn number(&self, j: usize, i: usize) -> T {
        number::<S, T>(self.columns, j * self.high + i / lanes::<S, T>(), i % lanes::<S, T>())
    }

    /// The vector of a reflector whose head is this row, from its tail in column j.
    #[inline(always)]
    pub(super) fn vector(&mut self, (head, j): (usize, usize)) {
        let (first, lane) = (head / lanes::<S, T>(), head % lanes::<S, T>());
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in first..self.high {
            let x = self.load(j, i);
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, x, [one, zero])
            } else {
                x
            };
            x.store(self.v, i);
        }
    }

    /// Finds the reflector of column j from row `head` on, of m rows. Its vector becomes v and, below the head, the
    /// column's rest; returns tau.
    #[inline(always)]
    pub(super) fn find(&mut self, (head, j): (usize, usize), m: usize) -> T {
        let (first, lane) = (head / lanes::<S, T>(), head % lanes::<S, T>());
        let zero = self.splat(T::ZERO);
        let mut sum = zero.re();
        for i in first..self.high {
            let x = self.load(j, i);
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, x, [zero, zero])
            } else {
                x
            };
            sum = sum + x.norm_squared();
        }
        let alpha = self.number(j, head);
        let Some((Reflector { beta, tau }, factor)) = householder::scaled(alpha, sum.sum()) else {
            if head + 1 < m {
                return self.find_slowly((head, j), m);
            }
            let Reflector { beta, tau } = householder::reflector::<pulp::Scalar, T>(alpha, &mut []);
            let (old, beta) = (self.load(j, first), self.splat(T::from_real(beta)));
            let x = self.lane_numbers.behind::<S, T>(self.simd, lane, old, [beta, old]);
            self.store(x, j, first);
            self.vector((head, j));
            return tau;
        };
        let (factor, beta) = (self.splat(factor), self.splat(T::from_real(beta)));
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in first..self.high {
            let old = self.load(j, i);
            let x = old * factor;
            let (v, x) = if i == first {
                (
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [one, zero]),
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [beta, old]),
                )
            } else {
                (x, x)
            };
            v.store(self.v, i);
            self.store(x, j, i);
        }
        tau
    }

    /// The same where squares overflow or underflow, or there is nothing to do.
    #[cold]
    #[inline(never)]
    fn find_slowly(&mut self, (head, j): (usize, usize), m: usize) -> T {
        let mut tail: Vec<T> = (head + 1..m).map(|i| self.number(j, i)).collect();
        let Reflector { beta, tau } =
            householder::reflector::<pulp::Scalar, T>(self.number(j, head), &mut tail);
        let lanes = lanes::<S, T>();
        let mut column: Vec<T> = (0..self.high * lanes)
            .map(|i| if i < m { self.number(j, i) } else { T::ZERO })
            .collect();
        column[head] = T::from_real(beta);
        column[head + 1..m].copy_from_slice(&tail);
        for (i, numbers) in column.chunks_exact(lanes).enumerate() {
            let x = T::Lane::<S>::read(self.simd, numbers);
            self.store(x, j, i);
        }
        self.vector((head, j));
        tau
    }

    /// Applies the reflector v, whose head is this row, with this factor to columns.
    #[inline(always)]
    pub(super) fn reflect(&mut self, head: usize, tau: T, columns: Range<usize>) {
        let first = head / lanes::<S, T>();
        let Range { start: mut column, end } = columns;
        while column + TOGETHER <= end {
            self.reflect_columns::<TOGETHER>(first, column, tau);
            column += TOGETHER;
        }
        while column < end {
            self.reflect_columns::<1>(first, column, tau);
            column += 1;
        }
    }

    #[inline(always)]
    fn reflect_columns<const C: usize>(&mut self, first: usize, column: usize, tau: T) {
        let (simd, parts) = (self.simd, T::Lane::<S>::PARTS);
        let (length, skipped) = (self.high * parts, first * parts);
        let v = &self.v[skipped..length];
        let mut columns = self.columns[column * length..].chunks_exact_mut(length);
        // Slices of one length, of which a compiler sees that they hold what is asked for.
        let mut columns: [&mut [Reg<S, T::Lane<S>>]; C] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[skipped..][..v.len()]);
        let mut sums = [T::Lane::<S>::splat(simd, T::ZERO); C];
        for i in 0..v.len() / parts {
            let v = T::Lane::<S>::load(simd, v, i).conj();
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = sum.add_mul(v, T::Lane::<S>::load(simd, column, i));
            }
        }
        let mut factors = sums;
        for (factor, sum) in factors.iter_mut().zip(&sums) {
            let sum = T::from_parts(sum.re().sum(), sum.im().sum());
            *factor = T::Lane::<S>::splat(simd, tau * sum);
        }
        for i in 0..v.len() / parts {
            let v = T::Lane::<S>::load(simd, v, i);
            for (column, &factor) in columns.iter_mut().zip(&factors) {
                T::Lane::<S>::load(simd, column, i).sub_mul(factor, v).store(column, i);
            }
        }
    }

    /// The vector of the last reflector becomes that of the first of two; the product of the second's, which
    /// is `v` by then, with it is [`Self::product`].
    #[inline(always)]
    pub(super) fn keep(&mut self) {
        let length = self.v.len() / 2;
        let (v, kept) = self.v.split_at_mut(length);
        kept[..length].copy_from_slice(v);
    }

    /// vᴴ·u, where u is the vector that was kept.
    #[inline(always)]
    pub(super) fn product(&self, head: usize) -> T {
        let (v, kept) = self.v.split_at(self.v.len() / 2);
        let mut sum = self.splat(T::ZERO);
        for i in head / lanes::<S, T>()..self.high {
            let v = T::Lane::<S>::load(self.simd, v, i).conj();
            sum = sum.add_mul(v, T::Lane::<S>::load(self.simd, kept, i));
        }
        T::from_parts(sum.re().sum(), sum.im().sum())
    }

    /// Applies two reflectors to columns: that with the vector u, which was kept, and then that with v.
    #[inline(always)]
    pub(super) fn reflect_twice(&mut self, head: usize, pair: Pair<T>, columns: Range<usize>) {
        let first = head / lanes::<S, T>();
        let Range { start: mut column, end } = columns;
        while column + TOGETHER <= end {
            self.reflect_columns_twice::<TOGETHER>(first, column, pair);
            column += TOGETHER;
        }
        while column < end {
            self.reflect_columns_twice::<1>(first, column, pair);
            column += 1;
        }
    }

    #[inline(always)]
    fn reflect_columns_twice<const C: usize>(
        &mut self,
        first: usize,
        column: usize,
        Pair { tau, product }: Pair<T>,
    ) {
        let (simd, parts) = (self.simd, T::Lane::<S>::PARTS);
        let (length, skipped) = (self.high * parts, first * parts);
        let (v, u) = self.v.split_at(self.v.len() / 2);
        let (v, u) = (&v[skipped..length], &u[skipped..length]);
        let mut columns = self.columns[column * length..].chunks_exact_mut(length);
        let mut columns: [&mut [Reg<S, T::Lane<S>>]; C] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[skipped..][..v.len()]);
        let zero = T::Lane::<S>::splat(simd, T::ZERO);
        let mut sums = [[zero; C]; 2];
        for i in 0..v.len() / parts {
            let u = T::Lane::<S>::load(simd, u, i).conj();
            let v = T::Lane::<S>::load(simd, v, i).conj();
            for (c, column) in columns.iter().enumerate() {
                let x = T::Lane::<S>::load(simd, column, i);
                sums[0][c] = sums[0][c].add_mul(u, x);
                sums[1][c] = sums[1][c].add_mul(v, x);
            }
        }
        let mut factors = [[zero; C]; 2];
        for c in 0..C {
            let sum = T::from_parts(sums[0][c].re().sum(), sums[0][c].im().sum());
            let of_u = tau[0] * sum;
            let sum = T::from_parts(sums[1][c].re().sum(), sums[1][c].im().sum());
            let of_v = tau[1] * (sum - of_u * product);
            factors[0][c] = T::Lane::<S>::splat(simd, of_u);
            factors[1][c] = T::Lane::<S>::splat(simd, of_v);
        }
        for i in 0..v.len() / parts {
            let u = T::Lane::<S>::load(simd, u, i);
            let v = T::Lane::<S>::load(simd, v, i);
            for (c, column) in columns.iter_mut().enumerate() {
                let x = T::Lane::<S>::load(simd, column, i).sub_mul(factors[0][c], u);
                x.sub_mul(factors[1][c], v).store(column, i);
            }
        }
    }

    /// Column j becomes that of the identity.
    #[inline(always)]
    pub(super) fn unit(&mut self, j: usize) {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let (one, zero) = (self.splat(T::ONE), self.splat(T::ZERO));
        for i in 0..self.high {
            let x = if i == first {
                self.lane_numbers.behind::<S, T>(self.simd, lane, zero, [one, zero])
            } else {
                zero
            };
            self.store(x, j, i);
        }
    }

    /// Applies one or two reflectors to the columns of Q that are known, up to `end`, and puts their own columns in
    /// their places: `taus` are theirs, and the first one is in column j with its head in row `head`, the second
    /// behind it. The heads of two must be in one register.
    #[inline(always)]
    pub(super) fn form(&mut self, (head, j): (usize, usize), taus: &[T], end: usize) {
        let first = taus[0];
        if let &[_, second] = taus {
            self.vector((head + 1, j + 1));
            self.keep();
            self.first_column(head + 1, second);
            self.vector((head, j));
            let pair = Pair { tau: [second, first], product: self.product(head) };
            self.reflect_twice(head, pair, head + 2..end);
            self.reflect(head, first, head + 1..head + 2);
        } else {
            self.vector((head, j));
            self.reflect(head, first, head + 1..end);
        }
        self.first_column(head, first);
    }

    /// Column j becomes that of reflector j with this factor, whose vector is v.
    #[inline(always)]
    pub(super) fn first_column(&mut self, j: usize, tau: T) {
        let (first, lane) = (j / lanes::<S, T>(), j % lanes::<S, T>());
        let (zero, factor) = (self.splat(T::ZERO), self.splat(-tau));
        let head = self.splat(T::ONE - tau);
        for i in 0..self.high {
            let x = if i < first {
                zero
            } else {
                let x = T::Lane::<S>::load(self.simd, self.v, i) * factor;
                if i == first {
                    self.lane_numbers.behind::<S, T>(self.simd, lane, x, [head, zero])
                } else {
                    x
                }
            };
            self.store(x, j, i);
        }
    }

    /// `sums` become A·v, for these columns, of which column 0 is multiplied by number `base` of v.
    #[inline(always)]
    fn multiply(&self, columns: &Range<usize>, base: usize, sums: &mut [Reg<S, T::Lane<S>>]) {
        let mut i = 0;
        while i + MANY <= self.high {
            self.multiply_registers::<MANY>(i, columns, base, sums);
            i += MANY;
        }
        if i + FEW <= self.high {
            self.multiply_registers::<FEW>(i, columns, base, sums);
            i += FEW;
        }
        while i < self.high {
            self.multiply_registers::<1>(i, columns, base, sums);
            i += 1;
        }
    }

    #[inline(always)]
    fn multiply_registers<const R: usize>(
        &self,
        i: usize,
        columns: &Range<usize>,
        base: usize,
        sums: &mut [Reg<S, T::Lane<S>>],
    ) {
        let (simd, parts, lanes) = (self.simd, T::Lane::<S>::PARTS, lanes::<S, T>());
        let length = self.high * parts;
        let rows = i * parts..(i + R) * parts;
        let mut products = [T::Lane::<S>::splat(simd, T::ZERO); R];
        let all = self.columns[columns.start * length..columns.end * length].chunks_exact(length);
        for (c, column) in (base + columns.start..).zip(all) {
            let v = self.splat(number::<S, T>(self.v, c / lanes, c % lanes));
            let column = &column[rows.clone()];
            for (r, product) in products.iter_mut().enumerate() {
                *product = product.add_mul(T::Lane::<S>::load(simd, column, r), v);
            }
        }
        for (r, product) in products.iter().enumerate() {
            product.store(sums, i + r);
        }
    }

    /// A ← Hᴴ·A·H for the reflector H = I − tau·v·vᴴ whose head is this row, and these columns, of which column 0
    /// is column `base` of A; `sums` has the registers of a column.
    #[inline(always)]
    pub(super) fn transform(
        &mut self,
        head: usize,
        tau: T,
        (columns, base): (Range<usize>, usize),
        sums: &mut [Reg<S, T::Lane<S>>],
    ) {
        self.multiply(&columns, base, sums);
        let first = head / lanes::<S, T>();
        let Range { start: mut column, end } = columns;
        while column + TOGETHER <= end {
            self.transform_columns::<TOGETHER>(first, (column, base), tau, sums);
            column += TOGETHER;
        }
        while column < end {
            self.transform_columns::<1>(first, (column, base), tau, sums);
            column += 1;
        }
    }

    #[inline(always)]
    fn transform_columns<const C: usize>(
        &mut self,
        first: usize,
        (column, base): (usize, usize),
        tau: T,
        sums: &[Reg<S, T::Lane<S>>],
    ) {
        let (simd, parts, lanes) = (self.simd, T::Lane::<S>::PARTS, lanes::<S, T>());
        let length = self.high * parts;
        let (v, sums) = (&self.v[..length], &sums[..length]);
        let mut factors = [T::Lane::<S>::splat(simd, T::ZERO); C];
        for (c, factor) in (base + column..).zip(&mut factors) {
            let v = number::<S, T>(v, c / lanes, c % lanes);
            *factor = T::Lane::<S>::splat(simd, tau * v.conj());
        }
        let mut columns = self.columns[column * length..].chunks_exact_mut(length);
        let mut columns: [&mut [Reg<S, T::Lane<S>>]; C] =
            std::array::from_fn(|_| &mut columns.next().unwrap_or_default()[..v.len()]);
        for i in 0..first {
            let sum = T::Lane::<S>::load(simd, sums, i);
            for (column, &factor) in columns.iter_mut().zip(&factors) {
                T::Lane::<S>::load(simd, column, i).sub_mul(factor, sum).store(column, i);
            }
        }
        let mut inner = [T::Lane::<S>::splat(simd, T::ZERO); C];
        for i in first..v.len() / parts {
            let sum = T::Lane::<S>::load(simd, sums, i);
            let v = T::Lane::<S>::load(simd, v, i).conj();
            for ((column, &factor), inner) in columns.iter_mut().zip(&factors).zip(&mut inner) {
                let x = T::Lane::<S>::load(simd, column, i).sub_mul(factor, sum);
                x.store(column, i);
                *inner = inner.add_mul(v, x);
            }
        }
        for (factor, inner) in factors.iter_mut().zip(&inner) {
            let inner = T::from_parts(inner.re().sum(), inner.im().sum());
            *factor = T::Lane::<S>::splat(simd, tau.conj() * inner);
        }
        for i in first..v.len() / parts {
            let v = T::Lane::<S>::load(simd, v, i);
            for (column, &factor) in columns.iter_mut().zip(&factors) {
                T::Lane::<S>::load(simd, column, i).sub_mul(factor, v).store(column, i);
            }
        }
    }
}

/// Two reflectors, the first with a vector u and the second with v.
#[derive(Clone, Copy)]
pub(crate) struct Pair<T> {
    pub(super) tau: [T; 2],
    /// vᴴ·u.
    pub(super) product: T,
}

#[inline(always)]
fn lanes<S: Simd, T: Scalar>() -> usize {
    T::Real::lanes::<S>()
}
