//! Loops over a few columns together: what they share is loaded once, and their sums do not wait
//! for each other.

use pulp::Simd;

use crate::Scalar;
use crate::householder::dot;
use crate::simd::{sub_mul, sub_scaled};

/// The columns that go together. One column of a symmetric product took 1.48 us at n = 64 and 225 us
/// at n = 1024 in f64, four together 0.55 us and 162 us.
pub(crate) const TOGETHER: usize = 4;
/// Elements that go together: a compiler makes vectors of eight, of sixteen often not (f32 and
/// n = 256: 4.9 us and 13 us).
pub(crate) const PARTS: usize = 8;

/// The sums of the parts of each.
#[inline(always)]
pub(crate) fn totals<T: Scalar>(sums: [[T; PARTS]; TOGETHER]) -> [T; TOGETHER] {
    // All four at once, by loops: a closure that `map` calls would be compiled without wide registers (f64, n =
    // 64 to bidiagonal form: 139 us with it and 111 without).
    let mut parts = [[T::ZERO; TOGETHER]; PARTS];
    for (p, parts) in parts.iter_mut().enumerate() {
        for (part, sums) in parts.iter_mut().zip(&sums) {
            *part = sums[p];
        }
    }
    let mut count = PARTS;
    while count > 1 {
        count /= 2;
        let (low, high) = parts.split_at_mut(count);
        for (low, high) in low.iter_mut().zip(high) {
            for (low, high) in low.iter_mut().zip(high) {
                *low += *high;
            }
        }
    }
    parts[0]
}

/// xᴴ·y for each column x.
#[inline(always)]
pub(crate) fn dots<S: Simd, T: Scalar>(x: [&[T]; TOGETHER], y: &[T]) -> [T; TOGETHER] {
    let mut sums = [[T::ZERO; PARTS]; TOGETHER];
    let (parts, rest) = y.as_chunks::<PARTS>();
    let wholes = x.map(|x| x[..y.len()].as_chunks::<PARTS>());
    for (i, y) in parts.iter().enumerate() {
        for (sums, (x, _)) in sums.iter_mut().zip(&wholes) {
            for ((sum, &x), &y) in sums.iter_mut().zip(&x[i]).zip(y) {
                *sum = sub_mul::<S, T>(*sum, -x.conj(), y);
            }
        }
    }
    let mut totals = totals(sums);
    for (total, (_, x)) in totals.iter_mut().zip(wholes) {
        for (&x, &y) in x.iter().zip(rest) {
            *total = sub_mul::<S, T>(*total, -x.conj(), y);
        }
    }
    totals
}

/// y ← y − Σ a·x over the columns x.
#[inline(always)]
pub(crate) fn sub_columns<S: Simd, T: Scalar>(y: &mut [T], a: [T; TOGETHER], x: [&[T]; TOGETHER]) {
    let x = x.map(|x| &x[..y.len()]);
    for (i, y) in y.iter_mut().enumerate() {
        // In a register: else each term is stored.
        let mut sum = *y;
        for (&a, x) in a.iter().zip(x) {
            sum = sub_mul::<S, T>(sum, a, x[i]);
        }
        *y = sum;
    }
}

/// y ← y − a·x for each column y and its factor a.
#[inline(always)]
pub(crate) fn sub_multiples<S: Simd, T: Scalar>(
    y: [&mut [T]; TOGETHER],
    a: [T; TOGETHER],
    x: &[T],
) {
    let (parts, rest) = x.as_chunks::<PARTS>();
    let mut wholes = y.map(|y| y[..x.len()].as_chunks_mut::<PARTS>());
    for (i, x) in parts.iter().enumerate() {
        for ((y, _), &a) in wholes.iter_mut().zip(&a) {
            // In registers, whatever else the columns may overlap.
            let mut part = y[i];
            for (y, &x) in part.iter_mut().zip(x) {
                *y = sub_mul::<S, T>(*y, a, x);
            }
            y[i] = part;
        }
    }
    for ((_, y), &a) in wholes.iter_mut().zip(&a) {
        sub_scaled::<S, T>(y, a, rest);
    }
}

/// y ← y + A·x, for the rows from `row` on of columns of length `ld`.
#[inline(always)]
pub(crate) fn add_product<S: Simd, T: Scalar>(
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    accumulate::<S, T, true>(y, columns, ld, row, x);
}

/// y ← y − A·x, likewise.
#[inline(always)]
pub(crate) fn sub_product<S: Simd, T: Scalar>(
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    accumulate::<S, T, false>(y, columns, ld, row, x);
}

/// y ← y ± A·x.
#[inline(always)]
fn accumulate<S: Simd, T: Scalar, const ADD: bool>(
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    let subtracted = |x: T| if ADD { -x } else { x };
    let rows = row..row + y.len();
    let (fours, rest) = x.as_chunks::<TOGETHER>();
    let mut columns = columns.chunks_exact(ld).map(|column| &column[rows.clone()]);
    for &x in fours {
        let four = std::array::from_fn(|_| columns.next().unwrap_or_default());
        sub_columns::<S, T>(y, x.map(subtracted), four);
    }
    for (column, &x) in columns.zip(rest) {
        sub_scaled::<S, T>(y, subtracted(x), column);
    }
}

/// The adjoint of row `row` of columns of length `ld`.
#[inline(always)]
pub(crate) fn row_adjoint<'a, T: Scalar>(
    to: &'a mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
) -> &'a [T] {
    for (to, column) in to.iter_mut().zip(columns.chunks_exact(ld)) {
        *to = column[row].conj();
    }
    to
}

/// y ← Aᴴ·x, for the rows from `row` on of columns of length `ld`.
#[inline(always)]
pub(crate) fn adjoint_product<S: Simd, T: Scalar>(
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    let rows = row..row + x.len();
    let mut columns = columns.chunks_exact(ld).map(|column| &column[rows.clone()]);
    let (fours, rest) = y.as_chunks_mut::<TOGETHER>();
    for y in fours {
        let four = std::array::from_fn(|_| columns.next().unwrap_or_default());
        *y = dots::<S, T>(four, x);
    }
    for (y, column) in rest.iter_mut().zip(columns) {
        *y = dot::<S, T>(column, x);
    }
}

/// column ← H·column, for each column of length `ld` from row `row` on and H = I − tau·v·vᴴ with
/// v = [1; tail]; conj(tau) gives Hᴴ.
#[inline(always)]
pub(crate) fn reflect_columns<S: Simd, T: Scalar>(
    tau: T,
    tail: &[T],
    columns: &mut [T],
    ld: usize,
    row: usize,
) {
    let rows = row..row + 1 + tail.len();
    let mut fours = columns.chunks_exact_mut(TOGETHER * ld);
    for four in &mut fours {
        let mut parts = four.chunks_exact_mut(ld);
        let mut four: [&mut [T]; TOGETHER] =
            std::array::from_fn(|_| &mut parts.next().unwrap_or_default()[rows.clone()]);
        let sums = dots::<S, T>(four.each_ref().map(|column| &column[1..]), tail);
        let mut factors = [T::ZERO; TOGETHER];
        for ((column, sum), factor) in four.iter_mut().zip(sums).zip(&mut factors) {
            // (vᴴ·x)ᴴ = xᴴ·v.
            *factor = tau * (column[0] + sum.conj());
            column[0] -= *factor;
        }
        sub_multiples::<S, T>(four.map(|column| &mut column[1..]), factors, tail);
    }
    for column in fours.into_remainder().chunks_exact_mut(ld) {
        let Some((head, rest)) = column[rows.clone()].split_first_mut() else { return };
        let factor = tau * (*head + dot::<S, T>(tail, rest));
        *head -= factor;
        sub_scaled::<S, T>(rest, factor, tail);
    }
}

/// y ← A·x for the Hermitian matrix whose lower triangle ends the given columns of length n.
#[inline(always)]
pub(crate) fn hermitian_product<S: Simd, T: Scalar>(columns: &[T], n: usize, x: &[T], y: &mut [T]) {
    y.fill(T::ZERO);
    add_hermitian_product::<S, T>(columns, n, 0, x, y);
}

/// What some columns of a lower triangle, from its column `first` on, add to y = A·x for the Hermitian A
/// whose order is that of x; a column of length n ends with the triangle's.
#[inline(always)]
pub(crate) fn add_hermitian_product<S: Simd, T: Scalar>(
    columns: &[T],
    n: usize,
    first: usize,
    x: &[T],
    y: &mut [T],
) {
    let order = x.len();
    let end = first + columns.len() / n;
    let column = |j: usize| &columns[(j - first) * n + n - order..(j - first + 1) * n];
    let fours = end - (end - first) % TOGETHER;
    for j in (first..fours).step_by(TOGETHER) {
        let next = j + TOGETHER;
        let four: [&[T]; TOGETHER] = std::array::from_fn(|c| column(j + c));
        for (c, column) in four.iter().enumerate() {
            triangle_product(column, j + c, next, x, y);
        }
        let factors = std::array::from_fn(|c| x[j + c]);
        let (above, below) = y.split_at_mut(next);
        let sums = both_products::<S, T>(four.map(|it| &it[next..]), factors, &x[next..], below);
        for (y, sum) in above[j..].iter_mut().zip(sums) {
            *y += sum;
        }
    }
    // Number by number, where each sum waits for memory, these took up to a third of the time of a large matrix
    // shared in groups, as the compiler happened to lay them out: `eigh` of 1024, f64, 57 or 70 ms, and 53 so.
    for j in fours..end {
        let below = j + 1..order;
        let column = column(j);
        triangle_product(column, j, j + 1, x, y);
        y[j] += dot::<S, T>(&column[below.clone()], &x[below.clone()]);
        sub_scaled::<S, T>(&mut y[below.clone()], -x[j], &column[below]);
    }
}

/// What rows j to `end` of column j, and the same part of row j, add to a product.
#[inline(always)]
fn triangle_product<T: Scalar>(column: &[T], j: usize, end: usize, x: &[T], y: &mut [T]) {
    y[j] += x[j].scale(column[j].re());
    for i in j + 1..end {
        y[i] += column[i] * x[j];
        y[j] += column[i].conj() * x[i];
    }
}

/// y ← y + Σ a·x over the columns a, with a factor x for each; returns aᴴ·z for each.
#[inline(always)]
fn both_products<S: Simd, T: Scalar>(
    a: [&[T]; TOGETHER],
    x: [T; TOGETHER],
    z: &[T],
    y: &mut [T],
) -> [T; TOGETHER] {
    let mut sums = [[T::ZERO; PARTS]; TOGETHER];
    let wholes = a.map(|a| a[..z.len()].as_chunks::<PARTS>());
    let (z, z_rest) = z.as_chunks::<PARTS>();
    let (y, y_rest) = y.as_chunks_mut::<PARTS>();
    for (i, (z, y)) in z.iter().zip(y).enumerate() {
        let mut products = *y;
        for ((sums, (a, _)), &x) in sums.iter_mut().zip(&wholes).zip(&x) {
            let a = a[i];
            for (product, &a) in products.iter_mut().zip(&a) {
                *product = sub_mul::<S, T>(*product, -x, a);
            }
            for ((sum, &a), &z) in sums.iter_mut().zip(&a).zip(z) {
                *sum = sub_mul::<S, T>(*sum, -a.conj(), z);
            }
        }
        *y = products;
    }
    let mut totals = totals(sums);
    for ((total, (_, a)), &x) in totals.iter_mut().zip(wholes).zip(&x) {
        for ((&a, &z), y) in a.iter().zip(z_rest).zip(&mut *y_rest) {
            *y = sub_mul::<S, T>(*y, -x, a);
            *total = sub_mul::<S, T>(*total, -a.conj(), z);
        }
    }
    totals
}
