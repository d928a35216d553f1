//! Products of sparse matrices, and to and from dense ones: what the entries inside of the matrix give,
//! whatever the other integers are.

use lapax_core::Real as _;
use lapax_cuda::sparse::{self, Coo, Csr};
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, input, output, succeeds};
use crate::random::{Number, Random, distance};

/// How far rounding may take a sum of a few dozen products, in units of the roundoff.
const LIMIT: f64 = 60.0;

/// A matrix as it travels, and its entries that count: row, column, value.
struct Sparse<T> {
    shape: [usize; 2],
    values: Vec<T>,
    rows: Vec<i32>,
    columns: Vec<i32>,
    indptr: Vec<i32>,
    entries: Vec<(usize, usize, T)>,
}

fn int(value: usize) -> i32 {
    i32::try_from(value).unwrap()
}

/// By rows, `each` entries in most, columns in any order and repeated. Where it is `broken`, some indices
/// are outside of the matrix and the last offset is outside of the values.
fn sparse<T: Number>(
    random: &mut Random,
    shape: [usize; 2],
    each: usize,
    broken: bool,
) -> Sparse<T> {
    let [rows, columns] = shape;
    let (mut all, mut indptr) = (Vec::new(), vec![0]);
    for row in 0..rows {
        // Long rows, for the loops over more than a warp's entries, and empty ones.
        let count = if row % 7 == 3 { 3 * each } else { random.below(2 * each + 1) };
        for _ in 0..if columns == 0 { 0 } else { count } {
            all.push((row, random.below(columns), random.scalar::<T>()));
        }
        indptr.push(int(all.len()));
    }
    let values = all.iter().map(|entry| entry.2).collect();
    let mut row_indices: Vec<i32> = all.iter().map(|entry| int(entry.0)).collect();
    let mut indices: Vec<i32> = all.iter().map(|entry| int(entry.1)).collect();
    let mut counts = vec![true; all.len()];
    if broken {
        for at in (0..all.len()).step_by(5) {
            counts[at] = false;
            let wrong = [-1, i32::MIN, int(columns), i32::MAX][at % 4];
            indices[at] = wrong;
            if at % 2 == 0 && wrong > 0 {
                (indices[at], row_indices[at]) = (0, int(rows));
            }
        }
        *indptr.last_mut().unwrap() = i32::MAX;
    }
    let entries = all.iter().zip(&counts).filter(|(_, counts)| **counts).map(|(e, _)| *e).collect();
    Sparse { shape, values, rows: row_indices, columns: indices, indptr, entries }
}

impl<T: Number> Sparse<T> {
    /// Where an index of a row is wrong, that of the column is, too, in compressed rows.
    fn csr(&self, indices: &[i32]) -> Csr<T> {
        let (values, indptr) = (input(&self.values), input(&self.indptr));
        Csr { values, indices: input(indices), indptr }
    }

    fn indices(&self) -> Vec<i32> {
        let rows = int(self.shape[0]);
        let wrong = |(row, column): (&i32, &i32)| if *row == rows { -1 } else { *column };
        self.rows.iter().zip(&self.columns).map(wrong).collect()
    }

    /// The entries from the last to the first, unless they are to be `sorted`.
    fn coo(&self, sorted: bool) -> (Vec<T>, Vec<i32>, Vec<i32>) {
        let (mut values, mut rows) = (self.values.clone(), self.rows.clone());
        let mut columns = self.columns.clone();
        if !sorted {
            // Neighbours in different rows, and the same row again further on.
            let middle = values.len() / 2;
            for at in (0..middle).step_by(3) {
                values.swap(at, at + middle);
                rows.swap(at, at + middle);
                columns.swap(at, at + middle);
            }
        }
        (values, rows, columns)
    }

    fn product(&self, transpose: bool, n: usize, x: &[T]) -> Vec<T> {
        let mut y = vec![T::ZERO; self.shape[usize::from(transpose)] * n];
        for &(row, column, value) in &self.entries {
            let (to, from) = if transpose { (column, row) } else { (row, column) };
            for j in 0..n {
                y[to * n + j] += value * x[from * n + j];
            }
        }
        y
    }

    fn dense(&self) -> Vec<T> {
        let mut dense = vec![T::ZERO; self.shape[0] * self.shape[1]];
        for &(row, column, value) in &self.entries {
            dense[row * self.shape[1] + column] += value;
        }
        dense
    }
}

/// Where every kernel of compressed rows and of lists gives what the entries give.
fn check<T: Number>(random: &mut Random, shape: [usize; 2], each: usize, broken: bool) {
    let a = sparse::<T>(random, shape, each, broken);
    let indices = a.indices();
    for n in [1, 2, 5] {
        for transpose in [false, true] {
            let (m, k) = (shape[usize::from(transpose)], shape[usize::from(!transpose)]);
            let x = random.scalars::<T>(k * n);
            let expected = a.product(transpose, n, &x);
            let what = format!("{shape:?}, {n} columns, transposed {transpose}, broken {broken}");
            let mut y = vec![T::ONE; m * n];
            let sizes = [m, k, n];
            let (from, to) = (input(&x), output(&mut y));
            succeeds(sparse::csr_product(&gpu(), transpose, 1, sizes, a.csr(&indices), from, to));
            assert!(distance(&y, &expected) < LIMIT, "compressed rows, {what}");
            for sorted in [true, false] {
                let (values, rows, columns) = a.coo(sorted);
                let (values, rows) = (input(&values), input(&rows));
                let list = Coo { values, rows, columns: input(&columns) };
                y.fill(T::ONE);
                let (from, to) = (input(&x), output(&mut y));
                succeeds(sparse::coo_product(&gpu(), transpose, 1, sizes, list, from, to));
                assert!(distance(&y, &expected) < LIMIT, "list, sorted {sorted}, {what}");
            }
        }
    }
    let expected = a.dense();
    let mut dense = vec![T::ONE; expected.len()];
    succeeds(sparse::csr_to_dense(&gpu(), 1, shape, a.csr(&indices), output(&mut dense)));
    assert!(distance(&dense, &expected) < LIMIT, "compressed rows in full, {shape:?}");
    let (values, rows, columns) = a.coo(false);
    let (values, rows) = (input(&values), input(&rows));
    let list = Coo { values, rows, columns: input(&columns) };
    dense.fill(T::ONE);
    succeeds(sparse::coo_to_dense(&gpu(), 1, shape, list, output(&mut dense)));
    assert!(distance(&dense, &expected) < LIMIT, "a list in full, {shape:?}");
}

fn every_shape<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(3);
    let shapes =
        [([1, 1], 1), ([5, 3], 1), ([33, 70], 3), ([70, 33], 40), ([3, 0], 2), ([0, 3], 2)];
    for (shape, each) in shapes {
        for broken in [false, true] {
            for seed in SEEDS {
                driver::state().seed = seed;
                check::<T>(&mut random, shape, each, broken);
            }
        }
    }
    driver::state().seed = 0;
}

#[test]
fn products_and_dense_matrices_f32() {
    every_shape::<f32>();
}

#[test]
fn products_and_dense_matrices_f64() {
    every_shape::<f64>();
}

#[test]
fn products_and_dense_matrices_c64() {
    every_shape::<Complex<f32>>();
}

#[test]
fn products_and_dense_matrices_c128() {
    every_shape::<Complex<f64>>();
}

/// Takes `places` elements of a matrix, both ways, and compares with what a loop takes.
fn take<T: Number>([rows, columns]: [usize; 2], dense: &[T], places: usize) {
    let mut expected = Vec::new();
    let mut offsets = vec![0];
    for row in 0..rows {
        for column in 0..columns {
            let value = dense[row * columns + column];
            // Of NaN too.
            if value != T::ZERO && expected.len() < places {
                expected.push((value, int(row), int(column)));
            }
        }
        offsets.push(int(expected.len()));
    }
    expected.resize(places, (T::ZERO, 0, 0));
    // One place more, which must be left alone.
    let mut values = vec![T::ONE; places + 1];
    let (mut first, mut second) = (vec![-7; places + 1], vec![-7; places + 1]);
    let mut indptr = vec![-7; rows + 1];
    let shape = [rows, columns];
    let same = |values: &[T], columns: &[i32], what: &str| {
        for (at, (value, _, column)) in expected.iter().enumerate() {
            let equal = values[at] == *value || values[at].is_nan() && value.is_nan();
            assert!(equal && columns[at] == *column, "{what}, {shape:?}, place {at} of {places}");
        }
        assert!(values[places] == T::ONE && columns[places] == -7, "{what}: past the end");
    };
    let outs = (output(&mut values[..places]), output(&mut first[..places]));
    let taken =
        sparse::csr_from_dense(&gpu(), 1, shape, input(dense), outs.0, outs.1, output(&mut indptr));
    succeeds(taken);
    same(&values, &first, "compressed rows");
    assert_eq!(indptr, offsets, "{shape:?}, {places} places");

    values.fill(T::ONE);
    first.fill(-7);
    let outs = (output(&mut first[..places]), output(&mut second[..places]));
    let values_out = output(&mut values[..places]);
    succeeds(sparse::coo_from_dense(&gpu(), 1, shape, input(dense), values_out, outs.0, outs.1));
    same(&values, &second, "a list");
    let rows_of: Vec<i32> = expected.iter().map(|entry| entry.1).collect();
    assert_eq!(first[..places], rows_of, "{shape:?}, {places} places");
    assert_eq!(first[places], -7);
}

fn taken_from_dense<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(4);
    for shape in [[1, 1], [4, 70], [70, 4], [3, 33], [2100, 2], [0, 3], [3, 0]] {
        let mut dense: Vec<T> = (0..shape[0] * shape[1])
            .map(|_| if random.below(3) == 0 { random.scalar() } else { T::ZERO })
            .collect();
        if let Some(last) = dense.last_mut() {
            *last = T::from_real(T::Real::from_f64(f64::NAN));
        }
        let count = dense.iter().filter(|value| **value != T::ZERO).count();
        for places in [count, count / 2, count + 40, 0] {
            for seed in SEEDS {
                driver::state().seed = seed;
                take(shape, &dense, places);
            }
        }
    }
    driver::state().seed = 0;
}

#[test]
fn elements_of_dense_matrices_f32() {
    taken_from_dense::<f32>();
}

#[test]
fn elements_of_dense_matrices_f64() {
    taken_from_dense::<f64>();
}

#[test]
fn elements_of_dense_matrices_c64() {
    taken_from_dense::<Complex<f32>>();
}

#[test]
fn elements_of_dense_matrices_c128() {
    taken_from_dense::<Complex<f64>>();
}

#[test]
fn offsets_must_be_those_of_the_rows() {
    let Some(_device) = device() else { return };
    let (values, indices) = (input(&[1.0_f32]), input(&[0]));
    let a = Csr { values, indices, indptr: input(&[0, 1]) };
    let mut y = [0.0; 2];
    let refused =
        sparse::csr_product(&gpu(), false, 1, [2, 1, 1], a, input(&[1.0]), output(&mut y));
    let error = refused.unwrap_err();
    assert_eq!(error.message(), "expected 3 elements in indptr, got 2");
}
