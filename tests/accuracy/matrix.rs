//! Column-major matrices in the wide type, with just enough algebra to form residuals.

use lapax_core::{Real, Scalar};

use crate::sample::Sample;

#[derive(Clone, Debug)]
pub(crate) struct Matrix<W> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<W>,
}

impl<W: Scalar<Real = f64>> Matrix<W> {
    pub(crate) fn new(
        rows: usize,
        cols: usize,
        mut element: impl FnMut(usize, usize) -> W,
    ) -> Self {
        let data = (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j)));
        let data = data.map(|(i, j)| element(i, j)).collect();
        Self { rows, cols, data }
    }

    /// The matrix behind a result, times 2 to the power `exponent`.
    pub(crate) fn widened<T: Sample<Wide = W>>(rows: usize, data: &[T], exponent: i32) -> Self {
        let cols = data.len().checked_div(rows).unwrap_or(0);
        Self { rows, cols, data: data.iter().map(|x| x.widen(exponent)).collect() }
    }

    /// The nearest matrix in T to this one times 2 to the power `exponent`.
    pub(crate) fn narrowed<T: Sample<Wide = W>>(&self, exponent: i32) -> Vec<T> {
        self.data.iter().map(|&x| T::narrow(x, exponent)).collect()
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> W {
        self.data[i + j * self.rows]
    }

    /// The elements for which `keep(i, j)`, and zeros.
    pub(crate) fn masked(&self, keep: impl Fn(usize, usize) -> bool) -> Self {
        let element = |i, j| if keep(i, j) { self.at(i, j) } else { W::ZERO };
        Self::new(self.rows, self.cols, element)
    }

    pub(crate) fn transposed(&self) -> Self {
        Self::new(self.cols, self.rows, |i, j| self.at(j, i))
    }

    pub(crate) fn adjoint(&self) -> Self {
        Self::new(self.cols, self.rows, |i, j| self.at(j, i).conj())
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        assert_eq!(self.cols, other.rows);
        let mut product = Self::new(self.rows, other.cols, |_, _| W::ZERO);
        if self.rows == 0 {
            return product;
        }
        for (j, column) in product.data.chunks_exact_mut(self.rows).enumerate() {
            for (k, factor) in self.data.chunks_exact(self.rows).enumerate() {
                let x = other.at(k, j);
                for (sum, &f) in column.iter_mut().zip(factor) {
                    *sum += f * x;
                }
            }
        }
        product
    }

    /// A ← (I − tau·v·vᴴ)·A.
    pub(crate) fn reflect(&mut self, tau: W, v: &[W]) {
        for column in self.data.chunks_exact_mut(self.rows.max(1)) {
            let dot = v.iter().zip(&*column).fold(W::ZERO, |dot, (v, &x)| dot + v.conj() * x);
            column.iter_mut().zip(v).for_each(|(x, &v)| *x -= tau * dot * v);
        }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        Self::new(self.rows, self.cols, |i, j| self.at(i, j) - other.at(i, j))
    }

    /// The 1-norm: the largest sum of a column's moduli. NaN if an element is.
    pub(crate) fn norm(&self) -> f64 {
        let columns = self.data.chunks_exact(self.rows.max(1));
        columns
            .map(|column| column.iter().map(|x| x.abs()).sum::<f64>())
            .fold(0.0, |norm, sum| if sum.is_nan() || sum > norm { sum } else { norm })
    }
}

pub(crate) fn identity<W: Scalar<Real = f64>>(n: usize) -> Matrix<W> {
    Matrix::new(n, n, |i, j| if i == j { W::ONE } else { W::ZERO })
}

/// The rows of a column-major matrix with so many of them, one behind the other; of its rows and the number of
/// columns, its columns.
pub(crate) fn transposed<T: Copy>(rows: usize, a: &[T]) -> Vec<T> {
    let cols = a.len().checked_div(rows).unwrap_or(0);
    (0..a.len()).map(|p| a[p / cols + p % cols * rows]).collect()
}

/// The same of each matrix of a batch, of so many rows and columns.
pub(crate) fn transposes<T: Copy>(rows: usize, columns: usize, a: &[T]) -> Vec<T> {
    a.chunks_exact((rows * columns).max(1)).flat_map(|a| transposed(rows, a)).collect()
}

/// ‖QᴴQ − I‖ / (rows·ε).
pub(crate) fn departure<T: Sample>(q: &Matrix<T::Wide>) -> f64 {
    ratio::<T>(q.adjoint().times(q).minus(&identity(q.cols)).norm(), q.rows, 1.0, 0)
}

/// residual / (size · norm · ε): LAPACK's test ratio. An exact zero over zero is zero.
///
/// `exponent` is the power of two that the operands were widened by; it says where in that scale
/// the smallest positive number of T lies, below which no rounding error can be.
pub(crate) fn ratio<T: Sample>(residual: f64, size: usize, norm: f64, exponent: i32) -> f64 {
    let denormal = 2.0_f64.powi((T::DENORMAL_EXPONENT + exponent).max(-1000));
    if residual == 0.0 {
        return 0.0;
    }
    let unit = <T as Sample>::epsilon() * norm;
    residual / (size.max(1) as f64 * if unit < denormal { denormal } else { unit })
}

/// The largest modulus; zero for an empty matrix.
pub(crate) fn largest<W: Scalar<Real = f64>>(x: &[W]) -> f64 {
    x.iter().map(|x| Real::to_f64(x.abs())).fold(0.0, f64::max)
}
