//! Loops over a few columns together: what they share is loaded once, and their sums do not wait
//! for each other.

use pulp::Simd;

use super::householder::dot;
use crate::Scalar;
use crate::simd::chunks::{PARTS, TOGETHER};
use crate::simd::loops::sub_scaled;

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
pub(crate) fn dots<S: Simd, T: Scalar>(simd: S, x: [&[T]; TOGETHER], y: &[T]) -> [T; TOGETHER] {
    let (whole, rest) = T::registers::<S>(y);
    let columns = x.map(|x| T::registers::<S>(&x[..y.len()]));
    // Two sums for each, which do not wait for each other.
    let zero = T::splat(simd, T::ZERO);
    let mut sums = [[zero; TOGETHER]; 2];
    let (pairs, odd) = whole.as_chunks::<2>();
    for (i, pair) in pairs.iter().enumerate() {
        for (k, (sums, &y)) in sums.iter_mut().zip(pair).enumerate() {
            for (sum, (x, _)) in sums.iter_mut().zip(&columns) {
                *sum = T::add_product(simd, *sum, x[2 * i + k], y);
            }
        }
    }
    let [mut sums, others] = sums;
    for &y in odd {
        for (sum, (x, _)) in sums.iter_mut().zip(&columns) {
            *sum = T::add_product(simd, *sum, x[whole.len() - 1], y);
        }
    }
    if !rest.is_empty() {
        let y = T::part(simd, rest);
        for (sum, (_, x)) in sums.iter_mut().zip(&columns) {
            *sum = T::add_product(simd, *sum, T::part(simd, x), y);
        }
    }
    let one = T::splat(simd, T::ONE);
    let mut totals = [T::ZERO; TOGETHER];
    for ((total, &sum), &other) in totals.iter_mut().zip(&sums).zip(&others) {
        *total = T::sum(simd, T::add_multiple(simd, sum, one, other)).conj();
    }
    totals
}

/// y ← y + Σ a·x over the columns x.
#[inline(always)]
pub(crate) fn add_columns<S: Simd, T: Scalar>(
    simd: S,
    y: &mut [T],
    a: [T; TOGETHER],
    x: [&[T]; TOGETHER],
) {
    let columns = x.map(|x| T::registers::<S>(&x[..y.len()]));
    let factors = splats(simd, a);
    let (whole, rest) = T::registers_mut::<S>(y);
    for (i, y) in whole.iter_mut().enumerate() {
        let mut sum = *y;
        for (&a, (x, _)) in factors.iter().zip(&columns) {
            sum = T::add_multiple(simd, sum, a, x[i]);
        }
        *y = sum;
    }
    if !rest.is_empty() {
        let mut sum = T::part(simd, rest);
        for (&a, (_, x)) in factors.iter().zip(&columns) {
            sum = T::add_multiple(simd, sum, a, T::part(simd, x));
        }
        T::write_part(simd, sum, rest);
    }
}

/// y ← y + a·x for each column y and its factor a.
#[inline(always)]
pub(crate) fn add_multiples<S: Simd, T: Scalar>(
    simd: S,
    y: [&mut [T]; TOGETHER],
    a: [T; TOGETHER],
    x: &[T],
) {
    let mut columns = y.map(|y| T::registers_mut::<S>(&mut y[..x.len()]));
    let factors = splats(simd, a);
    let (whole, rest) = T::registers::<S>(x);
    for (i, &x) in whole.iter().enumerate() {
        for ((y, _), &a) in columns.iter_mut().zip(&factors) {
            y[i] = T::add_multiple(simd, y[i], a, x);
        }
    }
    if !rest.is_empty() {
        let x = T::part(simd, rest);
        for ((_, y), &a) in columns.iter_mut().zip(&factors) {
            let part = T::add_multiple(simd, T::part(simd, y), a, x);
            T::write_part(simd, part, y);
        }
    }
}

/// Registers full of each number.
#[inline(always)]
fn splats<S: Simd, T: Scalar>(simd: S, x: [T; TOGETHER]) -> [T::Reg<S>; TOGETHER] {
    let mut registers = [T::splat(simd, T::ZERO); TOGETHER];
    for (register, x) in registers.iter_mut().zip(x) {
        *register = T::splat(simd, x);
    }
    registers
}

/// y ← y + A·x, for the rows from `row` on of columns of length `ld`.
#[inline(always)]
pub(crate) fn add_product<S: Simd, T: Scalar>(
    simd: S,
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    accumulate::<S, T, true>(simd, y, columns, ld, row, x);
}

/// y ← y − A·x, likewise.
#[inline(always)]
pub(crate) fn sub_product<S: Simd, T: Scalar>(
    simd: S,
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    accumulate::<S, T, false>(simd, y, columns, ld, row, x);
}

/// y ← y ± A·x.
#[inline(always)]
fn accumulate<S: Simd, T: Scalar, const ADD: bool>(
    simd: S,
    y: &mut [T],
    columns: &[T],
    ld: usize,
    row: usize,
    x: &[T],
) {
    let factor = |x: T| if ADD { x } else { -x };
    let rows = row..row + y.len();
    let (fours, rest) = x.as_chunks::<TOGETHER>();
    let mut columns = columns.chunks_exact(ld).map(|column| &column[rows.clone()]);
    for &x in fours {
        let four = std::array::from_fn(|_| columns.next().unwrap_or_default());
        add_columns(simd, y, x.map(factor), four);
    }
    for (column, &x) in columns.zip(rest) {
        sub_scaled::<S, T>(y, -factor(x), column);
    }
}

/// y ← y − A·x for two pairs of y and x, whose y are of one length; likewise.
#[inline(always)]
pub(crate) fn sub_products<S: Simd, T: Scalar>(
    simd: S,
    [y, z]: [&mut [T]; 2],
    columns: &[T],
    ld: usize,
    row: usize,
    [x, u]: [&[T]; 2],
) {
    let rows = row..row + y.len();
    let (fours, rest) = x.as_chunks::<TOGETHER>();
    let (other_fours, other_rest) = u.as_chunks::<TOGETHER>();
    let mut columns = columns.chunks_exact(ld).map(|column| &column[rows.clone()]);
    for (&x, &u) in fours.iter().zip(other_fours) {
        let four = std::array::from_fn(|_| columns.next().unwrap_or_default());
        sub_columns(simd, [&mut *y, &mut *z], [x, u], four);
    }
    for ((column, &x), &u) in columns.zip(rest).zip(other_rest) {
        sub_scaled::<S, T>(y, x, column);
        sub_scaled::<S, T>(z, u, column);
    }
}

/// y ← y − Σ a·x over the columns x, for two pairs of y and a.
#[inline(always)]
fn sub_columns<S: Simd, T: Scalar>(
    simd: S,
    [y, z]: [&mut [T]; 2],
    [a, b]: [[T; TOGETHER]; 2],
    x: [&[T]; TOGETHER],
) {
    let columns = x.map(|x| T::registers::<S>(&x[..y.len()]));
    let [a, b] = [splats(simd, a.map(|a| -a)), splats(simd, b.map(|b| -b))];
    let (y, y_rest) = T::registers_mut::<S>(y);
    let (z, z_rest) = T::registers_mut::<S>(z);
    for (i, (y, z)) in y.iter_mut().zip(z).enumerate() {
        let (mut y_sum, mut z_sum) = (*y, *z);
        for ((x, _), (&a, &b)) in columns.iter().zip(a.iter().zip(&b)) {
            y_sum = T::add_multiple(simd, y_sum, a, x[i]);
            z_sum = T::add_multiple(simd, z_sum, b, x[i]);
        }
        (*y, *z) = (y_sum, z_sum);
    }
    if !y_rest.is_empty() {
        let (mut y_sum, mut z_sum) = (T::part(simd, y_rest), T::part(simd, z_rest));
        for ((_, x), (&a, &b)) in columns.iter().zip(a.iter().zip(&b)) {
            let x = T::part(simd, x);
            y_sum = T::add_multiple(simd, y_sum, a, x);
            z_sum = T::add_multiple(simd, z_sum, b, x);
        }
        T::write_part(simd, y_sum, y_rest);
        T::write_part(simd, z_sum, z_rest);
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
    simd: S,
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
        *y = dots(simd, four, x);
    }
    for (y, column) in rest.iter_mut().zip(columns) {
        *y = dot::<S, T>(column, x);
    }
}

/// column ← H·column, for each column of length `ld` from row `row` on and H = I − tau·v·vᴴ with
/// v = [1; tail]; conj(tau) gives Hᴴ.
#[inline(always)]
pub(crate) fn reflect_columns<S: Simd, T: Scalar>(
    simd: S,
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
        let sums = dots(simd, four.each_ref().map(|column| &column[1..]), tail);
        let mut factors = [T::ZERO; TOGETHER];
        for ((column, sum), factor) in four.iter_mut().zip(sums).zip(&mut factors) {
            // (vᴴ·x)ᴴ = xᴴ·v.
            *factor = tau * (column[0] + sum.conj());
            column[0] -= *factor;
            *factor = -*factor;
        }
        add_multiples(simd, four.map(|column| &mut column[1..]), factors, tail);
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
pub(crate) fn hermitian_product<S: Simd, T: Scalar>(
    simd: S,
    columns: &[T],
    n: usize,
    x: &[T],
    y: &mut [T],
) {
    y.fill(T::ZERO);
    add_hermitian_product(simd, columns, n, 0, x, y);
}

/// What some columns of a lower triangle, from its column `first` on, add to y = A·x for the Hermitian A
/// whose order is that of x; a column of length n ends with the triangle's.
#[inline(always)]
pub(crate) fn add_hermitian_product<S: Simd, T: Scalar>(
    simd: S,
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
        let sums = both_products(simd, four.map(|it| &it[next..]), factors, &x[next..], below);
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
pub(crate) fn both_products<S: Simd, T: Scalar>(
    simd: S,
    a: [&[T]; TOGETHER],
    x: [T; TOGETHER],
    z: &[T],
    y: &mut [T],
) -> [T; TOGETHER] {
    let columns = a.map(|a| T::registers::<S>(&a[..z.len()]));
    let factors = splats(simd, x);
    let mut sums = splats(simd, [T::ZERO; TOGETHER]);
    let (z, z_rest) = T::registers::<S>(z);
    let (y, y_rest) = T::registers_mut::<S>(y);
    for (i, (&z, y)) in z.iter().zip(y).enumerate() {
        let mut product = *y;
        for ((sum, (a, _)), &x) in sums.iter_mut().zip(&columns).zip(&factors) {
            product = T::add_multiple(simd, product, x, a[i]);
            *sum = T::add_product(simd, *sum, a[i], z);
        }
        *y = product;
    }
    if !z_rest.is_empty() {
        let (z, mut product) = (T::part(simd, z_rest), T::part(simd, y_rest));
        for ((sum, (_, a)), &x) in sums.iter_mut().zip(&columns).zip(&factors) {
            let a = T::part(simd, a);
            product = T::add_multiple(simd, product, x, a);
            *sum = T::add_product(simd, *sum, a, z);
        }
        T::write_part(simd, product, y_rest);
    }
    let mut totals = [T::ZERO; TOGETHER];
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total = T::sum(simd, sum).conj();
    }
    totals
}
