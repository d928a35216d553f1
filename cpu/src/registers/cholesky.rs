//! Cholesky factorisation A = L·Lᴴ of one small matrix, by rows.
//!
//! A register holds neighbours in a column. A few columns at once take all that the columns before them ask for,
//! two registers of each at a time.

use lapax_core::{InOut, ItemsInOut, ItemsMut, Scalar as _};
use lapax_cpu_macros::apart;
use pulp::Simd;

use super::{LANES, Sides};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::matrix::triangle;
use crate::parallel::groups::Kernel;
use crate::simd::cache_line::Padded;
use crate::simd::elementary::{SUMMED, root};
use crate::simd::kind::Kind;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::{LaneNumbers, number, read};
use crate::simd::prefetch::Ahead;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Reg, Vector};

/// The least and the largest order. On one core with AVX-512, f64 and c128, against recursion: n = 16 0.8 us and 0.8, 1.3 and
/// 1.3, n = 32 1.7 and 2.3, 3.3 and 5.7, n = 64 6.8 and 12.6, 16 and 31, n = 128 43 and 53, 118 and 161.
const LEAST: usize = 17;
const LARGEST: usize = 128;
/// The columns, and the registers of each, that are in work at once.
const TOGETHER: usize = 4;
const REGISTERS: usize = 2;

/// Whether a matrix of order n goes this way.
pub(crate) fn serve(kind: Kind, n: usize) -> bool {
    (LEAST..=LARGEST).contains(&n) && kind.lanes >= LANES
}

/// What the factorisation of one matrix reuses.
pub(crate) struct Scratch<R> {
    /// Registers of a column, column after column.
    columns: Tile<R>,
    /// The columns in their order.
    in_order: Padded<usize>,
}

/// Factors matrices of order n, or where `mean` says so their means with their adjoints.
pub(crate) struct Factor {
    pub(crate) mean: bool,
    pub(crate) n: usize,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>,)> for Factor {
    type Scratch = Scratch<T::Real>;

    fn scratch(&self, lanes: usize) -> Scratch<T::Real> {
        // Registers are in work two at a time.
        let high = self.n.div_ceil(lanes).next_multiple_of(REGISTERS);
        let columns = high * lanes;
        Scratch {
            columns: Tile::new::<T>(columns * high, lanes),
            in_order: Padded::count_to(columns),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<T::Real>,
        (l,): (ItemsInOut<'_, T>,),
        _: usize,
    ) {
        let Self { mean, n } = *self;
        let InOut { src, dst } = l.into_in_out();
        for (i, l) in dst.chunks_exact_mut(n * n).enumerate() {
            let a = src.map(|src| &src[i * n * n..(i + 1) * n * n]);
            let factored = factor::<S, T>(simd, (n, mean), Layout::Rows, scratch, a, l);
            triangle::only_lower(l, n, 0, factored.is_ok());
        }
    }
}

/// Factors the lower triangles of matrices in an order, and leaves the others: `info` is LAPACK's, and
/// a matrix that has no factor stays as it is.
pub(crate) struct FactorTriangle {
    pub(crate) n: usize,
    pub(crate) order: Layout,
}

impl<T: Scalar> Kernel<T, (ItemsInOut<'_, T>, ItemsMut<'_, i32>)> for FactorTriangle {
    /// Besides, all that is written of one matrix.
    type Scratch = (Scratch<T::Real>, Vec<T>);

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        let Self { n, .. } = *self;
        let factor = Factor { mean: false, n };
        (Kernel::<T, (ItemsInOut<'_, T>,)>::scratch(&factor, lanes), vec![T::ZERO; n * n])
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        (scratch, l): &mut Self::Scratch,
        (a, info): (ItemsInOut<'_, T>, ItemsMut<'_, i32>),
        _: usize,
    ) {
        let Self { n, order } = *self;
        let InOut { src, dst } = a.into_in_out();
        if let Some(src) = src {
            dst.copy_from_slice(src);
        }
        for (a, info) in dst.chunks_exact_mut(n * n).zip(info.into_data()) {
            let factored = factor::<S, T>(simd, (n, false), order, scratch, Some(a), l);
            // Orders are at most n, which is an i32.
            *info = factored.err().map_or(0, |j| i32::try_from(j + 1).unwrap_or(i32::MAX));
            if factored.is_ok() {
                for (i, (a, l)) in a.chunks_exact_mut(n).zip(l.chunks_exact(n)).enumerate() {
                    let triangle = if order == Layout::Rows { 0..i + 1 } else { i..n };
                    a[triangle.clone()].copy_from_slice(&l[triangle]);
                }
            }
        }
    }
}

/// The lower triangle of `l` becomes L; `Err(j)` where row j has no positive pivot, and then nothing is written.
#[apart]
fn factor<S: Simd, T: Scalar>(
    simd: S,
    (n, mean): (usize, bool),
    order: Layout,
    scratch: &mut Scratch<T::Real>,
    a: Option<&[T]>,
    l: &mut [T],
) -> Result<(), usize> {
    let lanes = T::Real::lanes::<S>();
    let high = n.div_ceil(lanes).next_multiple_of(REGISTERS);
    let mut work = Work::<S, T> {
        simd,
        columns: scratch.columns.registers::<S>(),
        high,
        lane_numbers: LaneNumbers::new(),
    };
    // The rows of the transposed matrix.
    let order = if order == Layout::Rows { Layout::Columns } else { Layout::Rows };
    let sides = Sides { wide: high, ..Sides::new(n, n, lanes) };
    let mut next = Ahead::behind(a.unwrap_or(l), n * n, n / TOGETHER);
    sides.read::<S, T>(simd, a.unwrap_or(l), order, work.columns);
    if mean {
        work.mean_with_adjoint(a.unwrap_or(l), n);
    }
    for first in (0..n).step_by(TOGETHER) {
        work.subtract(first);
        for j in first..(first + TOGETHER).min(n) {
            if !work.finish(first, j) {
                return Err(j);
            }
        }
        next.next();
    }
    sides.write::<S, T>(simd, work.columns, order, &scratch.in_order, l);
    Ok(())
}

/// A matrix in work.
struct Work<'a, S: Simd, T: Scalar> {
    simd: S,
    columns: &'a mut [Reg<S, T::Lane<S>>],
    /// The registers of a column.
    high: usize,
    lane_numbers: LaneNumbers<T::Real>,
}

impl<S: Simd, T: Scalar> Work<'_, S, T> {
    /// Register i of column j.
    #[inline(always)]
    fn load(&self, j: usize, i: usize) -> T::Lane<S> {
        T::Lane::<S>::load(self.simd, self.columns, j * self.high + i)
    }

    #[inline(always)]
    fn store(&mut self, x: T::Lane<S>, j: usize, i: usize) {
        x.store(self.columns, j * self.high + i);
    }

    /// Columns of the mean of a matrix, which was read, with its adjoint: from the diagonal on.
    #[inline(always)]
    fn mean_with_adjoint(&mut self, a: &[T], n: usize) {
        let lanes = T::Real::lanes::<S>();
        let half = T::Real::ONE / (T::Real::ONE + T::Real::ONE);
        let half = Vector::<S, T::Real>::splat(self.simd, half);
        for (j, row) in a.chunks_exact(n).enumerate() {
            for i in j / lanes..n.div_ceil(lanes) {
                let adjoint = read::<S, T>(self.simd, row, i * lanes).conj();
                self.store((self.load(j, i) + adjoint).scale(half), j, i);
            }
        }
    }

    /// Number i of column j.
    #[inline(always)]
    fn number(&self, j: usize, i: usize) -> T {
        let lanes = T::Real::lanes::<S>();
        number::<S, T>(self.columns, j * self.high + i / lanes, i % lanes)
    }

    /// Takes from a few columns, `first` and the next, L(:, k)·conj(L(j, k)) for each column k before them.
    #[inline(always)]
    fn subtract(&mut self, first: usize) {
        let (simd, lanes, parts) = (self.simd, T::Real::lanes::<S>(), T::Lane::<S>::PARTS);
        let length = self.high * parts;
        let (known, rest) = self.columns.split_at_mut(first * length);
        // A register's lanes are a multiple of the columns.
        let (register, lane) = (first / lanes, first % lanes);
        let re = register * parts * lanes + lane;
        let im = if T::IS_COMPLEX { re + lanes } else { re };
        for i in (register / REGISTERS * REGISTERS..self.high).step_by(REGISTERS) {
            let rows = i * parts..(i + REGISTERS) * parts;
            for known in known.chunks(SUMMED * length) {
                let mut sums = [[T::Lane::<S>::splat(simd, T::ZERO); REGISTERS]; TOGETHER];
                for column in known.chunks_exact(length) {
                    let numbers: &[T::Real] = bytemuck::cast_slice(column);
                    let (re, im) = (&numbers[re..re + TOGETHER], &numbers[im..im + TOGETHER]);
                    let column = &column[rows.clone()];
                    let mut l = [T::Lane::<S>::splat(simd, T::ZERO); REGISTERS];
                    for (r, l) in l.iter_mut().enumerate() {
                        *l = T::Lane::<S>::load(simd, column, r);
                    }
                    for (c, sums) in sums.iter_mut().enumerate() {
                        let im = if T::IS_COMPLEX { -im[c] } else { T::Real::ZERO };
                        let factor = T::Lane::<S>::splat(simd, T::from_parts(re[c], im));
                        for (sum, &l) in sums.iter_mut().zip(&l) {
                            *sum = sum.add_mul(factor, l);
                        }
                    }
                }
                for (sums, column) in sums.iter().zip(rest.chunks_exact_mut(length)) {
                    for (r, &sum) in sums.iter().enumerate() {
                        let column = &mut column[rows.clone()];
                        (T::Lane::<S>::load(simd, column, r) - sum).store(column, r);
                    }
                }
            }
        }
    }

    /// Column j, which has yet to take what the columns from `first` on ask for; whether its pivot is positive.
    #[inline(always)]
    fn finish(&mut self, first: usize, j: usize) -> bool {
        let lanes = T::Real::lanes::<S>();
        let whole = j / lanes;
        for k in first..j {
            let factor = T::Lane::<S>::splat(self.simd, self.number(k, j).conj());
            for i in whole..self.high {
                self.store(self.load(j, i).sub_mul(factor, self.load(k, i)), j, i);
            }
        }
        let Some((root, reciprocal)) = root(self.number(j, j).re()) else { return false };
        let factor = Vector::<S, T::Real>::splat(self.simd, reciprocal);
        let root = T::Lane::<S>::splat(self.simd, T::from_real(root));
        for i in whole..self.high {
            let x = self.load(j, i).scale(factor);
            let x = if i == whole {
                self.lane_numbers.behind::<S, T>(self.simd, j % lanes, x, [root, x])
            } else {
                x
            };
            self.store(x, j, i);
        }
        true
    }
}
