//! Tests of fused loops.

use std::cmp::Ordering;

use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::fused::{
    add_columns, add_multiples, both_products, dots, hermitian_product, sub_products,
};
use crate::simd::arch::Arch as Level;
use crate::simd::chunks::TOGETHER;
use crate::simd::scalar::nan;
use crate::testing::levels::{close, random};

for_each_scalar!(all_lengths_on_all_levels, hermitian_products_on_all_levels);
/// Longer than two of the widest registers, for whole ones by twos, an odd one and a part.
const LENGTHS: std::ops::Range<usize> = 0..70;
/// What four columns give with four factors and another column.
struct Products<'a, T> {
    columns: &'a [T],
    length: usize,
    factors: [T; TOGETHER],
    y: &'a [T],
}
impl<T: Scalar> WithSimd for Products<'_, T> {
    type Output = Vec<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<T> {
        let Self { columns, length, factors, y } = self;
        let four = || std::array::from_fn(|c| &columns[c * length..(c + 1) * length]);
        let mut found = dots(simd, four(), y).to_vec();
        let mut sum = y.to_vec();
        add_columns(simd, &mut sum, factors, four());
        found.extend(sum);
        let mut multiples = columns.to_vec();
        let mut parts = multiples.chunks_exact_mut(length.max(1));
        let outs = std::array::from_fn(|_| parts.next().unwrap_or_default());
        add_multiples(simd, outs, factors, y);
        found.extend(multiples);
        let mut sum = y.to_vec();
        found.extend(both_products(simd, four(), factors, y, &mut sum));
        found.extend(sum);
        // Four columns, and the last three of them by turns.
        let mut turned = factors;
        turned.reverse();
        for skipped in [0, 1] {
            let (mut sum, mut other) = (y.to_vec(), y.to_vec());
            let factors = [&factors[skipped..], &turned[skipped..]];
            let columns = &columns[skipped * length..];
            let outs = [&mut sum[..], &mut other[..]];
            sub_products(simd, outs, columns, length.max(1), 0, factors);
            found.extend(sum);
            found.extend(other);
        }
        found
    }
}
fn all_lengths_on_all_levels<T: Scalar>() {
    for length in LENGTHS {
        let numbers = random::<T>((TOGETHER + 1) * length + TOGETHER);
        let (columns, rest) = numbers.split_at(TOGETHER * length);
        let (y, factors) = rest.split_at(length);
        let factors = std::array::from_fn(|k| factors[k]);
        let column = |c: usize| &columns[c * length..(c + 1) * length];
        let dot = |c| column(c).iter().zip(y).fold(T::ZERO, |sum, (&x, &y)| sum + x.conj() * y);
        let dots: Vec<T> = (0..TOGETHER).map(dot).collect();
        let added = |i: usize| (0..TOGETHER).fold(y[i], |sum, c| sum + factors[c] * column(c)[i]);
        let sum: Vec<T> = (0..length).map(added).collect();
        let multiple = |k: usize| columns[k] + factors[k / length] * y[k % length];
        let multiples: Vec<T> = (0..TOGETHER * length).map(multiple).collect();
        let mut expected = [&dots[..], &sum, &multiples, &dots, &sum].concat();
        for skipped in [0, 1] {
            let less = |factor: &dyn Fn(usize) -> T| -> Vec<T> {
                let less = |i: usize| {
                    (skipped..TOGETHER).fold(y[i], |sum, c| sum - factor(c) * column(c)[i])
                };
                (0..length).map(less).collect()
            };
            expected.extend(less(&|c| factors[c]));
            expected.extend(less(&|c| factors[TOGETHER - 1 - c]));
        }
        for level in Level::available() {
            let found = level.dispatch(Products { columns, length, factors, y });
            close(&found, &expected, length.max(1), &format!("{length} on {level:?}"));
        }
    }
}
/// A·x for the Hermitian A that ends the columns of length n.
struct Hermitian<'a, T> {
    columns: &'a [T],
    n: usize,
    x: &'a [T],
}
impl<T: Scalar> WithSimd for Hermitian<'_, T> {
    type Output = Vec<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<T> {
        let mut y = vec![T::ONE; self.x.len()];
        hermitian_product(simd, self.columns, self.n, self.x, &mut y);
        y
    }
}
fn hermitian_products_on_all_levels<T: Scalar>() {
    for (order, above) in LENGTHS.flat_map(|order| [0, 3].map(|above| (order, above))).skip(2) {
        let n = above + order;
        let numbers = random::<T>(order * (n + 1));
        let (columns, x) = numbers.split_at(order * n);
        let mut columns = columns.to_vec();
        for (j, column) in columns.chunks_exact_mut(n).enumerate() {
            column[..above + j].fill(nan());
        }
        let element = |i: usize, j: usize| match i.cmp(&j) {
            Ordering::Greater => columns[j * n + above + i],
            Ordering::Equal => T::from_real(columns[j * n + above + i].re()),
            Ordering::Less => columns[i * n + above + j].conj(),
        };
        let row = |i| (0..order).fold(T::ZERO, |sum, j| sum + element(i, j) * x[j]);
        let expected: Vec<T> = (0..order).map(row).collect();
        for level in Level::available() {
            let found = level.dispatch(Hermitian { columns: &columns, n, x });
            close(&found, &expected, order, &format!("{order} of {n} on {level:?}"));
        }
    }
}
