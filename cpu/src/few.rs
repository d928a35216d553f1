//! LU and Cholesky factorisation and triangular solves of a few small matrices, and LU of many real ones, with nothing
//! prepared and next to nothing allocated.
//!
//! A call for one matrix comes after much other code, so that what it costs is above all the code it
//! has to fetch, and what it has to wait for. What is here is short, and takes memory as it lies: number by
//! number, which is the same for both layouts, or by rows, where a register holds neighbours in one.

use faer::Conj;
use lapax_core::{Batched, Scalar as _};
use pulp::{Scalar as Numbers, Simd, WithSimd};

use crate::arch::Arch;
use crate::cholesky::root;
use crate::lanes::{self, Lane, LaneReal, MAX_LANES, Order, Vector};
use crate::lu::permute;
use crate::packed::Packed;
use crate::row_major::{gather_rows, scatter_rows};
use crate::rows::{self, LaneNumbers};
use crate::simd::{Divisor, sub_mul};
use crate::triangular::System;
use crate::{Diag, Scalar, Trans, Uplo, trsv};

/// The largest order of a matrix, and that of a complex one, which goes number by number. Here and below: one core of
/// Zen 5, ns, as larger matrices go and so. `lu` of f64 and n = 9 820 and 230, 16 910 and 380, 24 2090 and 810, 32 2650 and
/// 1440; of a batch, two at once and one by one, 20 1140 and 720, 24 1250 and 800, 32 1790 and 1440, in f32 32 1280 and
/// 1010. With AVX2 alone 20 1450 and 640, 32 2450 and 1910. In c128 one of 9 1230 and 350, of 16 1590 and 1210.
pub(crate) const ORDER: usize = 32;
const COMPLEX_ORDER: usize = 20;
/// The largest order of a matrix that lies by columns, f64 of 16 1150 and 680, and of a system with a few right-hand
/// sides: both go number by number.
pub(crate) const NUMBERS: usize = 16;
/// The largest order of a real symmetric matrix to factor: f64 and f32 of 16 580 and 360, 550 and 320, 24 840 and 730, 840
/// and 630, 32 1090 and 1260, 870 and 1000; of a complex one c128 and c64 24 1850 and 1340, 2150 and 1140, 28 2920 and
/// 2000, 2530 and 1420, 32 2810 and 4980, 2630 and 3680; number by number c128 of 16 860 and so 590, 20 1650 and 1050.
const HERMITIAN: usize = 24;
const COMPLEX_HERMITIAN: usize = 28;
/// The largest order of a system with several right-hand sides. With n, f64 and c128: n = 9 380 and 110, 530 and 290,
/// 16 521 and 200, 1080 and 620, 20 820 and 450, 1890 and 1270, 24 640 and 580, 1630 and 1690, 32 940 and 1220, 2960 and
/// 3600.
const SYSTEM: usize = 24;
const COMPLEX_SYSTEM: usize = 20;
/// The largest order of a system whose right-hand sides lie by columns: f64, n of them, 12 490 and 390, 14 430 and 590.
const COLUMNS: usize = 12;
/// The unknowns from which on those of one right-hand side are found by registers: `lu_solve` of 12 220 and 270,
/// of 16 280 and 460.
const UNKNOWNS: usize = 11;
/// The right-hand sides from which on they are worth a register: as many, and unknowns, 4 60 and 80, 8 150 and
/// 80.
const WIDE: usize = 8;
/// The columns from which on a factorisation goes by rows, where it is as fast as number by number.
const WIDE_FACTOR: usize = 9;

/// Whether a batch of matrices of an order goes through what is here, which pays up to order `limit`.
pub(crate) fn pay(batch: usize, order: usize, limit: usize) -> bool {
    (1..=limit).contains(&order) && !lanes::pay(batch, order, limit)
}

/// The largest order of a matrix that lies by rows and that [`factor_rows`] pays for.
pub(crate) fn largest_factored<T: Scalar>() -> usize {
    if T::IS_COMPLEX { COMPLEX_ORDER } else { ORDER }
}

/// The largest order of a Hermitian matrix to factor.
pub(crate) fn largest_hermitian<T: Scalar>() -> usize {
    if T::IS_COMPLEX { COMPLEX_HERMITIAN } else { HERMITIAN }
}

/// The largest order of a system that [`substitute`] pays for, and the most right-hand sides.
pub(crate) fn largest_system<T: Scalar>(nrhs: usize, b_order: Order) -> usize {
    let by_rows = if T::IS_COMPLEX { COMPLEX_SYSTEM } else { SYSTEM };
    match b_order {
        _ if nrhs == 1 => largest_factored::<T>(),
        Order::Row if nrhs >= WIDE => by_rows,
        Order::Row => NUMBERS,
        Order::Column => COLUMNS,
    }
}

/// Calls `kernel` for each item of such a batch.
pub(crate) fn each<B: Batched>(batch: usize, mut operands: B, mut kernel: impl FnMut(B::Item)) {
    (0..batch).for_each(|_| kernel(operands.take()));
}

/// A matrix whose lines lie one behind the other.
#[derive(Clone, Copy)]
struct Strides {
    row: usize,
    column: usize,
}

impl Strides {
    /// Of an m × n matrix.
    fn new(order: Order, m: usize, n: usize) -> Self {
        match order {
            Order::Row => Self { row: n, column: 1 },
            Order::Column => Self { row: 1, column: m },
        }
    }

    fn at(self, i: usize, j: usize) -> usize {
        i * self.row + j * self.column
    }
}

/// Factors an m × n matrix as P·A = L·U in place; returns the first row whose pivot is zero.
///
/// Pivots are those of [`crate::lu::getrf`], counted from `first`.
pub(crate) fn factor<T: Scalar>(
    a: &mut [T],
    (m, n): (usize, usize),
    order: Order,
    pivots: &mut [i32],
    first: usize,
) -> Option<usize> {
    let strides = Strides::new(order, m, n);
    let at = |i, j| strides.at(i, j);
    // The number of pivots where none is zero.
    let mut zero = pivots.len();
    for (j, swap) in pivots.iter_mut().enumerate() {
        let (mut other, mut largest) = (j, a[at(j, j)].abs1());
        for i in j + 1..m {
            let size = a[at(i, j)].abs1();
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (other, largest) = (i, size);
            }
        }
        // Rows are at most ORDER.
        *swap = i32::try_from(first + other).unwrap_or(i32::MAX);
        let pivot = a[at(other, j)];
        if pivot == T::ZERO {
            zero = zero.min(j);
            continue;
        }
        if other != j {
            (0..n).for_each(|c| a.swap(at(j, c), at(other, c)));
        }
        let divisor = Divisor::new(pivot);
        for i in j + 1..m {
            divisor.divide(std::slice::from_mut(&mut a[at(i, j)]));
            let l = a[at(i, j)];
            for c in j + 1..n {
                a[at(i, c)] = sub_mul::<Numbers, T>(a[at(i, c)], l, a[at(j, c)]);
            }
        }
    }
    (zero < pivots.len()).then_some(zero)
}

/// Room for L numbers, in rows of whole registers that lie in lines of the cache.
#[repr(align(64))]
struct Block<T, const L: usize>([T; L]);

/// The order from which on larger pieces of the stack serve, and the numbers of a block up to it and up to [`ORDER`].
const HALF: usize = 16;
const SMALL: usize = HALF * HALF;
pub(crate) const LARGE: usize = ORDER * ORDER;

/// [`factor`] by rows; pivots are counted from 0.
pub(crate) fn factor_rows<T: Scalar>(a: &mut [T], (m, n): (usize, usize), pivots: &mut [i32]) {
    let arch = Arch::new();
    if n < WIDE_FACTOR || T::IS_COMPLEX {
        factor(a, (m, n), Order::Row, pivots, 0);
    } else if m.max(n) <= HALF {
        arch.dispatch(FactorRows::<_, SMALL> { a, n, pivots });
    } else {
        arch.dispatch(FactorRows::<_, LARGE> { a, n, pivots });
    }
}

/// [`factor_rows`], in a block of L numbers where rows are no whole registers.
pub(crate) struct FactorRows<'a, T, const L: usize> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) pivots: &'a mut [i32],
}

impl<T: Scalar, const L: usize> WithSimd for FactorRows<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, n, pivots } = self;
        let (m, lanes) = (a.len() / n, T::Real::lanes::<S>());
        let pitch = n.next_multiple_of(lanes);
        if pitch == n {
            return eliminate::<S, T>(simd, a, n, pivots);
        }
        let mut block = Block([T::ZERO; L]);
        let block = &mut block.0[..m * pitch];
        for (to, row) in block.chunks_exact_mut(pitch).zip(a.chunks_exact(n)) {
            for (to, from) in to.chunks_exact_mut(lanes).zip((0..n).step_by(lanes)) {
                rows::read::<S, T>(simd, row, from).write(to);
            }
        }
        eliminate::<S, T>(simd, block, pitch, pivots);
        for (row, to) in block.chunks_exact(pitch).zip(a.chunks_exact_mut(n)) {
            for (row, to) in row.chunks_exact(lanes).zip(to.chunks_mut(lanes)) {
                rows::write::<S, T>(T::Lane::<S>::read(simd, row), to);
            }
        }
    }
}

/// Factors a matrix with rows of whole registers.
///
/// A step leaves the columns before it as they are, so that it writes whole registers: a register of which
/// some lanes were written cannot be read before these are in the cache. So L is what is below the diagonal times the
/// reciprocals of the pivots, as which it is left at the end.
#[inline(always)]
fn eliminate<S: Simd, T: Scalar>(simd: S, block: &mut [T], pitch: usize, pivots: &mut [i32]) {
    let (m, lanes) = (block.len() / pitch, T::Real::lanes::<S>());
    let lane_numbers = LaneNumbers::<T::Real>::new();
    let numbers = lane_numbers.vector::<S>(simd);
    let zeros = T::Lane::<S>::splat(simd, T::ZERO);
    let (mut reciprocals, mut column) = ([T::ONE; ORDER], [T::ZERO; ORDER]);
    for (j, swap) in pivots.iter_mut().enumerate() {
        // The column, of which the largest number goes to the front: the first one, where a NaN is larger than any.
        let (mut other, mut largest) = (j, -T::Real::ONE);
        for (i, (x, row)) in column.iter_mut().zip(block.chunks_exact(pitch).skip(j)).enumerate() {
            *x = row[j];
            let size = x.abs1();
            if size > largest || (size.is_nan() && !largest.is_nan()) {
                (other, largest) = (j + i, size);
            }
        }
        // Rows are at most ORDER.
        *swap = i32::try_from(other).unwrap_or(i32::MAX);
        let pivot = column[other - j];
        if pivot == T::ZERO {
            continue;
        }
        column[other - j] = column[0];
        let l = &mut column[1..m - j];
        let (above, below) = block.split_at_mut((j + 1) * pitch);
        let row = &mut above[j * pitch..];
        if other != j {
            let other = &mut below[(other - j - 1) * pitch..(other - j) * pitch];
            for (x, y) in row.chunks_exact_mut(lanes).zip(other.chunks_exact_mut(lanes)) {
                let [old, new] = [&*x, &*y].map(|x| T::Lane::<S>::read(simd, x));
                new.write(x);
                old.write(y);
            }
        }
        let divisor = Divisor::new(pivot);
        divisor.divide(l);
        // No number of L is larger than about one then.
        let finite = if let Divisor::Reciprocal(reciprocal) = divisor {
            reciprocals[j] = reciprocal;
            true
        } else {
            for (l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
                row[j] = *l;
            }
            false
        };
        let strip = j / lanes * lanes;
        let this = Vector::<S, T::Real>::splat(simd, lane_numbers.get(j - strip));
        let behind = this.less(numbers);
        let u = T::Lane::<S>::read(simd, &row[strip..strip + lanes]);
        let u = T::Lane::<S>::choose(behind, u, zeros);
        for (&l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
            let row = &mut row[strip..strip + lanes];
            let old = T::Lane::<S>::read(simd, row);
            let mut new = old.sub_mul(T::Lane::<S>::splat(simd, l), u);
            // Infinity times zero is NaN.
            if !finite {
                new = T::Lane::<S>::choose(behind, new, old);
            }
            new.write(row);
        }
        for strip in (strip + lanes..pitch).step_by(lanes) {
            let u = T::Lane::<S>::read(simd, &row[strip..strip + lanes]);
            for (&l, row) in l.iter().zip(below.chunks_exact_mut(pitch)) {
                let row = &mut row[strip..strip + lanes];
                let x = T::Lane::<S>::read(simd, row);
                x.sub_mul(T::Lane::<S>::splat(simd, l), u).write(row);
            }
        }
    }
    for (i, row) in block.chunks_exact_mut(pitch).enumerate() {
        for (strip, x) in
            row[..i.next_multiple_of(lanes).min(pitch)].chunks_exact_mut(lanes).enumerate()
        {
            let first = strip * lanes;
            let factor = T::Lane::<S>::read(simd, &reciprocals[first..first + lanes]);
            let old = T::Lane::<S>::read(simd, x);
            let mut new = old * factor;
            if first + lanes > i {
                let diagonal = Vector::<S, T::Real>::splat(simd, lane_numbers.get(i - first));
                new = T::Lane::<S>::choose(numbers.less(diagonal), new, old);
            }
            new.write(x);
        }
    }
}

/// Factors the Hermitian matrix with a lower triangle, or where `mean` says so the mean of a matrix and its adjoint, as
/// A = L·Lᴴ in place, and leaves what is above it; whether there is an L.
pub(crate) fn factor_hermitian<T: Scalar>(a: &mut [T], n: usize, mean: bool) -> bool {
    let arch = Arch::new();
    if n <= HALF {
        arch.dispatch(FactorHermitian::<_, SMALL> { a, n, mean })
    } else {
        arch.dispatch(FactorHermitian::<_, LARGE> { a, n, mean })
    }
}

/// [`factor_hermitian`] by rows, of the adjoint of L in a block.
pub(crate) struct FactorHermitian<'a, T, const L: usize> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) mean: bool,
}

impl<T: Scalar, const L: usize> WithSimd for FactorHermitian<'_, T, L> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { a, n, mean } = self;
        let (lanes, parts) = (T::Real::lanes::<S>(), T::Lane::<S>::PARTS);
        // Of a complex row a register of real parts, one of imaginary parts, and so on.
        let (strips, pitch) = (n.div_ceil(lanes), n.next_multiple_of(lanes) * parts);
        let place = |i: usize| i / lanes * lanes * parts + i % lanes;
        let mut block = Block([T::ZERO; L]);
        let block = &mut bytemuck::cast_slice_mut::<T, T::Real>(&mut block.0)[..n * pitch];
        let half = T::Real::ONE / (T::Real::ONE + T::Real::ONE);
        for j in 0..n {
            let (above, below) = block.split_at_mut((j + 1) * pitch);
            let u = &mut above[j * pitch..];
            // What the rows before it ask for has been summed up from zero; see `SUMMED`.
            for i in j..n {
                let adjoint = a[i * n + j].conj();
                let x = if mean { (adjoint + a[j * n + i]).scale(half) } else { adjoint };
                u[place(i)] += x.re();
                if parts > 1 {
                    u[place(i) + lanes] += x.im();
                }
            }
            let Some((root, reciprocal)) = root(u[place(j)]) else { return false };
            let factor = Vector::<S, T::Real>::splat(simd, reciprocal);
            let registers = T::Real::registers_mut::<S>(u).0;
            for strip in j / lanes..strips {
                T::Lane::<S>::load(simd, registers, strip).scale(factor).store(registers, strip);
            }
            a[j * n + j] = T::from_real(root);
            for (row, i) in below.chunks_exact_mut(pitch).zip(j + 1..) {
                let at = place(i);
                let im = if parts > 1 { -u[at + lanes] } else { T::Real::ZERO };
                let l = T::from_parts(u[at], im);
                a[i * n + j] = l;
                let l = T::Lane::<S>::splat(simd, l);
                let (u, row) =
                    (T::Real::registers_mut::<S>(u).0, T::Real::registers_mut::<S>(row).0);
                for strip in i / lanes..strips {
                    let u = T::Lane::<S>::load(simd, u, strip);
                    T::Lane::<S>::load(simd, row, strip).sub_mul(l, u).store(row, strip);
                }
            }
        }
        true
    }
}

/// B ← A⁻¹·B for a triangular A of order n and so many right-hand sides.
pub(crate) fn substitute<T: Scalar>(
    system: System,
    (n, nrhs): (usize, usize),
    (a, a_order): (&[T], Order),
    (b, b_order): (&mut [T], Order),
) {
    let System { uplo, diag, conj } = system;
    let arch = Arch::new();
    if nrhs == 1 && n >= UNKNOWNS {
        let conj = system.conj == Conj::Yes;
        let (uplo, diag) = (system.uplo, system.diag);
        return arch.dispatch(trsv::Solve { uplo, diag, conj, order: a_order, a, x: b });
    }
    if b_order == Order::Row && nrhs >= WIDE {
        return if n <= HALF {
            arch.dispatch(SubstituteRows::<_, HALF> { system, n, nrhs, a, a_order, b })
        } else {
            arch.dispatch(SubstituteRows::<_, ORDER> { system, n, nrhs, a, a_order, b })
        };
    }
    let (of_a, of_b) = (Strides::new(a_order, n, n), Strides::new(b_order, n, nrhs));
    let read = |i, j| {
        let x = a[of_a.at(i, j)];
        if conj == Conj::Yes { x.conj() } else { x }
    };
    // The unknowns of an upper system are found from the last to the first.
    let unknown = |step: usize| if uplo == Uplo::Upper { n - 1 - step } else { step };
    for step in 0..n {
        let i = unknown(step);
        for k in (0..step).map(unknown) {
            let factor = read(i, k);
            for c in 0..nrhs {
                let x = b[of_b.at(k, c)];
                let sum = &mut b[of_b.at(i, c)];
                *sum = sub_mul::<Numbers, T>(*sum, factor, x);
            }
        }
        if diag == Diag::NonUnit {
            let divisor = Divisor::new(read(i, i));
            (0..nrhs).for_each(|c| divisor.divide(std::slice::from_mut(&mut b[of_b.at(i, c)])));
        }
    }
}

/// B ← A⁻¹·B for A of an order of at most N, with B by rows: a register holds neighbours in a row.
pub(crate) struct SubstituteRows<'a, T, const N: usize> {
    pub(crate) system: System,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a: &'a [T],
    pub(crate) a_order: Order,
    pub(crate) b: &'a mut [T],
}

impl<T: Scalar, const N: usize> WithSimd for SubstituteRows<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { system: System { uplo, diag, conj }, n, nrhs, a, a_order, b } = self;
        let (strides, lanes) = (Strides::new(a_order, n, n), T::Real::lanes::<S>());
        let number = |i, j| {
            let x = a[strides.at(i, j)];
            if conj == Conj::Yes { x.conj() } else { x }
        };
        // The unknowns of an upper system are found from the last to the first.
        let unknown = |step: usize| if uplo == Uplo::Upper { n - 1 - step } else { step };
        let mut x = [T::Lane::<S>::splat(simd, T::ZERO); N];
        for from in (0..nrhs).step_by(lanes) {
            for step in 0..n {
                let i = unknown(step);
                let row = &mut b[i * nrhs..(i + 1) * nrhs];
                let mut sum = rows::read::<S, T>(simd, row, from);
                for (k, &x) in x[..step].iter().enumerate() {
                    sum = sum.sub_mul(T::Lane::<S>::splat(simd, number(i, unknown(k))), x);
                }
                if diag == Diag::NonUnit {
                    sum = match Divisor::new(number(i, i)) {
                        Divisor::One => sum,
                        Divisor::Reciprocal(x) => sum * T::Lane::<S>::splat(simd, x),
                        Divisor::Number(pivot) => {
                            let mut numbers = [T::ZERO; MAX_LANES];
                            sum.write(&mut numbers);
                            numbers.iter_mut().for_each(|x| *x = x.divide(pivot));
                            T::Lane::<S>::read(simd, &numbers)
                        }
                    };
                }
                x[step] = sum;
                let to = nrhs.min(from + lanes);
                rows::write::<S, T>(sum, &mut row[from..to]);
            }
        }
    }
}

/// [`crate::lu::lu_solve`] of one system.
pub(crate) fn lu_solve<T: Scalar>(
    trans: Trans,
    (n, nrhs): (usize, usize),
    lu: &[T],
    permutation: &[i32],
    b: &[T],
    x: &mut [T],
) {
    if trans == Trans::None {
        gather_rows(b, permutation, x, nrhs);
        return substitute_twice((n, nrhs), lu, x);
    }
    // The transposed factors, of which Uᵀ is the lower one.
    let conj = if trans == Trans::ConjTranspose { Conj::Yes } else { Conj::No };
    with_copy(b, |permuted| {
        for (uplo, diag) in [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::Unit)] {
            let (lu, b) = ((lu, Order::Column), (&mut *permuted, Order::Row));
            substitute(System { uplo, diag, conj }, (n, nrhs), lu, b);
        }
        scatter_rows(permuted, permutation, x, nrhs);
    });
}

/// The solution of A·X = B, or where there is no `b` the inverse of A: [`factor`] and [`lu_solve`].
pub(crate) fn solve<T: Scalar>((n, nrhs): (usize, usize), a: &[T], b: Option<&[T]>, x: &mut [T]) {
    with_copy(a, |lu| {
        let (mut pivots, mut permutation) = ([0; ORDER], [0; ORDER]);
        let (pivots, permutation) = (&mut pivots[..n], &mut permutation[..n]);
        factor_rows(lu, (n, n), pivots);
        permute(pivots, permutation);
        if let Some(b) = b {
            gather_rows(b, permutation, x, nrhs);
        } else {
            for (x, &row) in x.chunks_exact_mut(nrhs).zip(&*permutation) {
                for (x, column) in x.iter_mut().zip(0..) {
                    *x = if column == row { T::ONE } else { T::ZERO };
                }
            }
        }
        substitute_twice((n, nrhs), lu, x);
    });
}

/// Calls `work` with a copy of a matrix: that of a tiny one is not allocated.
pub(crate) fn with_copy<T: Scalar>(a: &[T], work: impl FnOnce(&mut [T])) {
    const TINY: usize = 64;
    let mut tiny = [T::ZERO; TINY];
    if let Some(copy) = tiny.get_mut(..a.len()) {
        copy.copy_from_slice(a);
        return work(copy);
    }
    work(&mut a.to_vec());
}

/// X ← U⁻¹·L⁻¹·X by the factors of [`factor`], by rows.
fn substitute_twice<T: Scalar>(sizes: (usize, usize), lu: &[T], x: &mut [T]) {
    for (uplo, diag) in [(Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::NonUnit)] {
        let system = System { uplo, diag, conj: Conj::No };
        substitute(system, sizes, (lu, Order::Row), (&mut *x, Order::Row));
    }
}
