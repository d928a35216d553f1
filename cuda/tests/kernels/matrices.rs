//! Row-major matrices of the tests, and LAPACK's ratio of a residual.

use std::ops::{Index, IndexMut};

use lapax_core::Real as _;

use crate::random::Number;

#[derive(Clone, Debug)]
pub(crate) struct Matrix<T> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) data: Vec<T>,
}

impl<T: Number> Matrix<T> {
    pub(crate) fn from(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> T) -> Self {
        let data = (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
        Self { rows, columns, data }
    }

    /// That of this place in a batch.
    pub(crate) fn of(batch: &[T], place: usize, rows: usize, columns: usize) -> Self {
        let size = rows * columns;
        Self { rows, columns, data: batch[place * size..][..size].to_vec() }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        Self::from(self.rows, other.columns, |i, j| {
            (0..self.columns).fold(T::ZERO, |sum, k| sum + self[(i, k)] * other[(k, j)])
        })
    }

    pub(crate) fn adjoint(&self) -> Self {
        Self::from(self.columns, self.rows, |i, j| self[(j, i)].conj())
    }

    /// The largest sum of the sizes of a row's entries. A NaN is a NaN.
    pub(crate) fn size(&self) -> f64 {
        let sum = |row: &[T]| row.iter().map(|x| x.abs().to_f64()).sum::<f64>();
        let sums = self.data.chunks(self.columns.max(1)).map(sum);
        sums.fold(0.0, |a: f64, b| if b <= a { a } else { b })
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[i * self.columns + j]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[i * self.columns + j]
    }
}

/// ‖found − expected‖ in units of the roundoff and of `size`.
pub(crate) fn ratio<T: Number>(found: &Matrix<T>, expected: &Matrix<T>, size: f64) -> f64 {
    let difference =
        Matrix::from(found.rows, found.columns, |i, j| found[(i, j)] - expected[(i, j)]).size();
    if difference == 0.0 { 0.0 } else { difference / (size * T::Real::EPSILON.to_f64()) }
}

pub(crate) fn nan<T: Number>() -> T {
    T::from_real(T::Real::from_f64(f64::NAN))
}
