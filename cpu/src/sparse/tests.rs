#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

use std::fmt::Debug;

use num_complex::Complex;

use super::scalar::{Index, SparseScalar};
use super::{BadIndex, Csr, Part, Sizes, csr_product};

trials!(
    products_of_integers_are_exact_in_every_type,
    integers_wrap,
    sums_are_accurate_and_do_not_depend_on_the_threads,
    stored_numbers_count_and_others_do_not,
    indices_that_are_none_are_named,
    nothing_asked_for_is_nothing_read
);

/// Numbers without pattern: xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(below).unwrap()).unwrap()
    }

    /// A small integer, exact in every type.
    fn small(&mut self) -> i16 {
        i16::try_from(self.next(41)).unwrap() - 20
    }
}

/// The types under test.
trait Number: SparseScalar + PartialEq {
    fn from_parts(re: i16, im: i16) -> Self;
}

macro_rules! numbers {
    ($($number:ty: |$re:ident, $im:ident| $value:expr;)*) => {$(
        impl Number for $number {
            fn from_parts($re: i16, $im: i16) -> Self { let _ = $im; $value }
        }
    )*};
}

numbers! {
    i32: |re, im| re.into();
    i64: |re, im| re.into();
    f32: |re, im| re.into();
    f64: |re, im| re.into();
    Complex<f32>: |re, im| Complex::new(re.into(), im.into());
    Complex<f64>: |re, im| Complex::new(re.into(), im.into());
}

/// A batch of products of small integers, with empty rows, repeated columns in no order, and
/// entries past the last row, whose columns do not exist.
struct Case<T, I> {
    sizes: Sizes,
    data: Vec<T>,
    indptr: Vec<I>,
    indices: Vec<I>,
    x: Vec<T>,
}

/// Entries that no row has.
const PADDING: usize = 3;

fn case<T: Number, I: Index + TryFrom<i64, Error: Debug>>(sizes: Sizes, seed: u64) -> Case<T, I> {
    let Sizes { batch, rows, k, n } = sizes;
    let (mut random, longest) = (Random(seed), 2 * k);
    let index = |number: usize| I::try_from(i64::try_from(number).unwrap()).unwrap();
    let lengths: Vec<Vec<usize>> = (0..batch)
        .map(|_| (0..rows).map(|_| random.next(longest + 1) * random.next(2)).collect())
        .collect();
    let nnz = lengths.iter().map(|rows| rows.iter().sum::<usize>()).max().unwrap_or(0) + PADDING;
    let (mut indptr, mut indices) = (Vec::new(), Vec::new());
    for lengths in &lengths {
        let mut end = 0;
        indptr.push(index(0));
        for length in lengths {
            end += length;
            indptr.push(index(end));
            indices.extend((0..*length).map(|_| index(random.next(k))));
        }
        indices.extend((end..nnz).map(|_| index(k + 7)));
    }
    let number = |_| T::from_parts(random.small(), random.small());
    let mut numbers = (0..batch * nnz + batch * k * n).map(number);
    let data = numbers.by_ref().take(batch * nnz).collect();
    Case { sizes, data, indptr, indices, x: numbers.collect() }
}

impl<T: Number, I: Index> Case<T, I> {
    fn csr(&self) -> Csr<'_, T, I> {
        Csr { data: &self.data, indptr: &self.indptr, indices: &self.indices }
    }

    /// The product on so many threads, the last part first.
    fn product(&self, threads: usize) -> Result<Vec<T>, BadIndex> {
        let Sizes { batch, rows, n, .. } = self.sizes;
        let mut y = vec![T::from_parts(7, 7); batch * rows * n];
        let parts = csr_product(self.sizes, self.csr(), &self.x, &mut y, threads)?;
        assert!(threads > 1 || parts.len() <= 1);
        parts.into_iter().rev().try_for_each(Part::run)?;
        Ok(y)
    }

    /// The product by its definition, in the order of the entries; exact for small integers.
    fn expected(&self) -> Vec<T> {
        let Sizes { batch, rows, k, n } = self.sizes;
        let nnz = self.data.len() / batch;
        let mut y = vec![T::ZERO; batch * rows * n];
        for matrix in 0..batch {
            for row in 0..rows {
                let ends = &self.indptr[matrix * (rows + 1) + row..][..2];
                for entry in ends[0].position()..ends[1].position() {
                    let j = self.indices[matrix * nnz + entry].position();
                    for column in 0..n {
                        let y = &mut y[(matrix * rows + row) * n + column];
                        let x = self.x[(matrix * k + j) * n + column];
                        *y = y.add_mul::<pulp::Scalar>(self.data[matrix * nnz + entry], x);
                    }
                }
            }
        }
        y
    }
}

fn check<T: Number, I: Index + TryFrom<i64, Error: Debug>>() {
    for n in [1, 2, 3, 5, 8, 17, 31, 33, 64, 65, 127, 200] {
        for (batch, rows, k) in [(1, 1, 1), (1, 7, 5), (3, 4, 30), (2, 40, 9), (1, 0, 3)] {
            let sizes = Sizes { batch, rows, k, n };
            let case: Case<T, I> = case(sizes, 7 + u64::try_from(n).unwrap());
            let expected = case.expected();
            for threads in [1, 8] {
                assert_eq!(case.product(threads), Ok(expected.clone()), "{sizes:?}");
            }
        }
    }
}

fn products_of_integers_are_exact_in_every_type() {
    check::<i32, i32>();
    check::<i64, i64>();
    check::<f32, i32>();
    check::<f64, i64>();
    check::<Complex<f32>, i64>();
    check::<Complex<f64>, i32>();
}

fn integers_wrap() {
    let sizes = Sizes { batch: 1, rows: 1, k: 1, n: 1 };
    let a = Csr { data: &[i32::MAX, 1], indptr: &[0, 2], indices: &[0, 0] };
    let mut y = [0];
    for part in csr_product(sizes, a, &[2], &mut y, 1).unwrap() {
        part.run().unwrap();
    }
    assert_eq!(y, [0]);
}

/// Rounded sums: within nnz·ε·Σ|a||x| of the exact one, and the same bits on any number of threads.
fn sums_are_accurate_and_do_not_depend_on_the_threads() {
    for n in [1, 3, 40] {
        let (rows, k) = (4000, 50);
        let sizes = Sizes { batch: 2, rows, k, n };
        let mut case: Case<f64, i32> = case(sizes, 99);
        let mut random = Random(5);
        let numbers = case.data.iter_mut().chain(&mut case.x);
        numbers.for_each(|x| *x /= 1.0 + f64::from(random.small().abs()) / 3.0);
        let (y, exact) = (case.product(1).unwrap(), case.expected());
        let size = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).collect();
        let (data, x) = (size(&case.data), size(&case.x));
        let (indptr, indices) = (case.indptr.clone(), case.indices.clone());
        let scale = Case { sizes, data, indptr, indices, x }.expected();
        for ((y, exact), scale) in y.iter().zip(&exact).zip(&scale) {
            assert!((y - exact).abs() <= 100.0 * f64::EPSILON * scale, "{y:e} {exact:e}");
        }
        let mut unused = vec![0.0; y.len()];
        let parts = csr_product(sizes, case.csr(), &case.x, &mut unused, 8).unwrap();
        assert!(parts.len() > 8 || n < 40, "spread over the threads");
        for threads in [2, 3, 8, 64] {
            assert_eq!(case.product(threads).unwrap(), y);
        }
    }
}

fn stored_numbers_count_and_others_do_not() {
    let sizes = Sizes { batch: 1, rows: 3, k: 2, n: 2 };
    let a = Csr { data: &[0.0, 1.0, 2.0], indptr: &[0, 1, 1, 3], indices: &[0_i64, 1, 1] };
    let x = [f64::NAN, 1.0, f64::INFINITY, -0.5];
    let mut y = [9.0; 6];
    csr_product(sizes, a, &x, &mut y, 1).unwrap().into_iter().try_for_each(Part::run).unwrap();
    assert!(y[0].is_nan(), "0·NaN");
    assert_eq!(y[1..], [0.0, 0.0, 0.0, f64::INFINITY, -1.5]);
}

/// What is wrong with these row ends and columns, in words.
fn refusal(indptr: &[i32], indices: &[i32], k: usize) -> String {
    let sizes = Sizes { batch: 2, rows: 2, k, n: 1 };
    let data = vec![1.0_f32; indices.len()];
    let a = Csr { data: &data, indptr, indices };
    let (x, mut y) = (vec![1.0; 2 * k], [0.0; 4]);
    let outcome = csr_product(sizes, a, &x, &mut y, 4)
        .and_then(|parts| parts.into_iter().try_for_each(Part::run));
    outcome.expect_err("a refusal").to_string()
}

fn indices_that_are_none_are_named() {
    let fine = [0, 1, 2, 0, 2, 3];
    let sizes = Sizes { batch: 2, rows: 2, k: 2, n: 1 };
    let a = Csr { data: &[1.0; 6], indptr: &fine, indices: &[0, 1, 9, 1, 0, 1] };
    assert!(csr_product(sizes, a, &[1.0; 4], &mut [0.0; 4], 1).is_ok());
    for (indptr, text) in [
        ([-1, 1, 2, 0, 2, 3], "`indptr`: expected 0 to 3 at 0, got -1"),
        ([0, -5, 2, 0, 2, 3], "`indptr`: expected 0 to 3 at 1, got -5"),
        ([0, 1, 4, 0, 2, 3], "`indptr`: expected 1 to 3 at 2, got 4"),
        ([4, 4, 4, 0, 2, 3], "`indptr`: expected 0 to 3 at 0, got 4"),
        ([0, 1, 2, 0, 2, 1], "`indptr`: expected 2 to 3 at 5, got 1"),
        ([0, 1, 2, -2, 2, 3], "`indptr`: expected 0 to 3 at 3, got -2"),
    ] {
        assert_eq!(refusal(&indptr, &[0, 1, 0, 1, 0, 1], 2), text);
    }
    for (indices, text) in [
        ([-1, 1, 9, 1, 0, 1], "`indices`: expected 0 to 1 at 0, got -1"),
        ([0, 2, 9, 1, 0, 1], "`indices`: expected 0 to 1 at 1, got 2"),
        ([0, 1, 9, 1, i32::MIN, 1], "`indices`: expected 0 to 1 at 4, got -2147483648"),
        ([0, 1, 9, 1, 0, i32::MAX], "`indices`: expected 0 to 1 at 5, got 2147483647"),
    ] {
        assert_eq!(refusal(&fine, &indices, 2), text);
    }
    let text = "`indices`: expected no entries, as k=0, got 0 at 0";
    assert_eq!(refusal(&fine, &[0; 6], 0), text);
}

fn nothing_asked_for_is_nothing_read() {
    for (rows, n) in [(0, 3), (3, 0), (0, 0)] {
        let sizes = Sizes { batch: 1, rows, k: 2, n };
        let a = Csr { data: &[1.0_f32], indptr: &[i64::MAX; 4][..=rows], indices: &[-1] };
        assert_eq!(csr_product(sizes, a, &[], &mut [], 8).unwrap().len(), 0);
    }
    let sizes = Sizes { batch: 1, rows: 2, k: 0, n: 2 };
    let a = Csr::<f32, i64> { data: &[], indptr: &[0; 3], indices: &[] };
    let mut y = [1.0; 4];
    csr_product(sizes, a, &[], &mut y, 1).unwrap().into_iter().try_for_each(Part::run).unwrap();
    assert_eq!(y, [0.0; 4]);
}
