//! LU factorisation and triangular solves of a few tiny matrices: number by number, with nothing
//! allocated.
//!
//! A call for one matrix comes after much other code, so that what it costs is above all the code it
//! has to fetch. What is here is short, the same for both layouts, and makes no use of registers.

use faer::Conj;
use lapax_core::{Batched, Scalar as _};
use pulp::Scalar as Numbers;

use crate::lanes::{self, Order};
use crate::lu::permute;
use crate::row_major::{gather_rows, scatter_rows};
use crate::simd::{Divisor, sub_mul};
use crate::triangular::System;
use crate::{Diag, Scalar, Trans, Uplo};

/// The largest order. Nanoseconds for f64 and n = 2, 4, 8 on one core, beside those of the ways that
/// larger matrices go: `lu` 95 of 365, 113 of 546, 330 of 763, `solve` with one right-hand side 144 of
/// 1116, 168 of 1411, 514 of 2014, `inv` 124 of 1406, 194 of 1636, 896 of 2247, `cholesky` 75 of 155,
/// 98 of 182, 206 of 307.
pub(crate) const ORDER: usize = 8;

/// Whether a batch of matrices whose larger side is `order` goes through what is here.
pub(crate) fn pay(batch: usize, order: usize) -> bool {
    (1..=ORDER).contains(&order) && !lanes::pay(batch, order, ORDER)
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

/// B ← A⁻¹·B for a triangular A of order n and so many right-hand sides.
pub(crate) fn substitute<T: Scalar>(
    System { uplo, diag, conj }: System,
    (n, nrhs): (usize, usize),
    (a, a_order): (&[T], Order),
    (b, b_order): (&mut [T], Order),
) {
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
    let mut permuted = [T::ZERO; ORDER * ORDER];
    let permuted = &mut permuted[..b.len()];
    permuted.copy_from_slice(b);
    for (uplo, diag) in [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::Unit)] {
        let (lu, b) = ((lu, Order::Column), (&mut *permuted, Order::Row));
        substitute(System { uplo, diag, conj }, (n, nrhs), lu, b);
    }
    scatter_rows(permuted, permutation, x, nrhs);
}

/// The solution of A·X = B, or where there is no `b` the inverse of A: [`factor`] and [`lu_solve`].
pub(crate) fn solve<T: Scalar>((n, nrhs): (usize, usize), a: &[T], b: Option<&[T]>, x: &mut [T]) {
    let mut factors = [T::ZERO; ORDER * ORDER];
    let (mut pivots, mut permutation) = ([0; ORDER], [0; ORDER]);
    let (lu, pivots, permutation) =
        (&mut factors[..n * n], &mut pivots[..n], &mut permutation[..n]);
    lu.copy_from_slice(a);
    factor(lu, (n, n), Order::Row, pivots, 0);
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
}

/// X ← U⁻¹·L⁻¹·X by the factors of [`factor`], by rows.
fn substitute_twice<T: Scalar>(sizes: (usize, usize), lu: &[T], x: &mut [T]) {
    for (uplo, diag) in [(Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::NonUnit)] {
        let system = System { uplo, diag, conj: Conj::No };
        substitute(system, sizes, (lu, Order::Row), (&mut *x, Order::Row));
    }
}
