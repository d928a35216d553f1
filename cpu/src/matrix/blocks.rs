//! Square blocks on the diagonal of a matrix, and those below them.

use crate::Scalar;
use crate::simd::scalar::nan;

/// How many blocks a diagonal has, and their order.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// How many.
    pub count: usize,
    /// Their order.
    pub n: usize,
}

/// The blocks on the diagonals of a batch of matrices, and those below them, by rows.
#[derive(Clone, Copy, Debug)]
pub struct Band<'a, T> {
    /// count × n × n.
    pub diagonal: &'a [T],
    /// (count − 1) × n × n, or nothing: block i is below block i of the diagonal.
    pub off_diagonal: &'a [T],
}

/// [`Band`], to be written.
#[derive(Debug)]
pub struct BandMut<'a, T> {
    /// count × n × n.
    pub diagonal: &'a mut [T],
    /// (count − 1) × n × n, or nothing.
    pub off_diagonal: &'a mut [T],
}

impl Blocks {
    /// The dimensions of the blocks on the diagonal, and of those below them.
    pub(crate) fn dims(self) -> [[usize; 3]; 2] {
        [self.count, self.count.saturating_sub(1)].map(|count| [count, self.n, self.n])
    }

    /// Those that have elements: there are none of order 0, however many, and none of any order.
    pub(crate) fn with_elements(self) -> Self {
        if self.count == 0 || self.n == 0 { Self { count: 0, n: 0 } } else { self }
    }

    /// Block i of a diagonal.
    #[inline(always)]
    pub(crate) fn of<T>(self, diagonal: &[T], i: usize) -> &[T] {
        let square = self.n * self.n;
        &diagonal[i * square..(i + 1) * square]
    }
}

/// What the LU factors of blocks of order n are where there are none: NaN, and rows that stay.
pub(crate) fn spoil<T: Scalar>(n: usize, lu: &mut [T], pivots: &mut [i32], upper: &mut [T]) {
    lu.fill(nan());
    upper.fill(nan());
    for pivots in pivots.chunks_exact_mut(n) {
        pivots.iter_mut().zip(0..).for_each(|(pivot, row)| *pivot = row);
    }
}
