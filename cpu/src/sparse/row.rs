//! One row of a sparse product: what the processor spends its time on. False: an index is no row of
//! X, and the result is not whole.

use pulp::Simd;

use super::scalar::{Index, SparseScalar};

/// y = Σ aᵢ·x[jᵢ], in sums that take turns, so that one addition need not wait for the other.
#[inline(always)]
pub(crate) fn dot_row<S: Simd, T: SparseScalar, I: Index>(
    data: &[T],
    indices: &[I],
    x: &[T],
    y: &mut T,
) -> bool {
    /// As many additions as an arithmetic unit has under way at once.
    const SUMS: usize = 4;
    let mut sums = [T::ZERO; SUMS];
    let (data, last_data) = data.as_chunks::<SUMS>();
    let (indices, last_indices) = indices.as_chunks::<SUMS>();
    for (a, j) in data.iter().zip(indices) {
        for lane in 0..SUMS {
            let Some(x) = x.get(j[lane].position()) else { return false };
            sums[lane] = sums[lane].add_mul::<S>(a[lane], *x);
        }
    }
    for (lane, (a, j)) in last_data.iter().zip(last_indices).enumerate() {
        let Some(x) = x.get(j.position()) else { return false };
        sums[lane] = sums[lane].add_mul::<S>(*a, *x);
    }
    *y = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]));
    true
}

/// y = Σ aᵢ·(row jᵢ of X), in blocks of columns whose sums stay in registers.
#[inline(always)]
pub(crate) fn add_row<S: Simd, T: SparseScalar, I: Index>(
    data: &[T],
    indices: &[I],
    x: &[T],
    y: &mut [T],
) -> bool {
    let row = Row { data, indices, x, n: y.len(), k: x.len() / y.len() };
    // Widths: four registers of AVX-512, one, a quarter of one.
    match size_of::<T>() {
        4 => row.add::<S, 64, 16, 4>(y),
        8 => row.add::<S, 32, 8, 2>(y),
        _ => row.add::<S, 16, 4, 1>(y),
    }
}

/// A row of A, and X.
struct Row<'a, T, I> {
    data: &'a [T],
    indices: &'a [I],
    x: &'a [T],
    n: usize,
    k: usize,
}

impl<T: SparseScalar, I: Index> Row<'_, T, I> {
    /// All columns: blocks of `A` of them, of what is left blocks of `B`, then of `C`, then single.
    #[inline(always)]
    fn add<S: Simd, const A: usize, const B: usize, const C: usize>(&self, y: &mut [T]) -> bool {
        let (wide, y) = y.as_chunks_mut::<A>();
        let (middle, y) = y.as_chunks_mut::<B>();
        let (narrow, y) = y.as_chunks_mut::<C>();
        let (single, _) = y.as_chunks_mut::<1>();
        let first = wide.len() * A;
        let second = first + middle.len() * B;
        let third = second + narrow.len() * C;
        self.blocks::<S, A>(0, wide)
            && self.blocks::<S, B>(first, middle)
            && self.blocks::<S, C>(second, narrow)
            && self.blocks::<S, 1>(third, single)
    }

    /// The columns from `column` on.
    #[inline(always)]
    fn blocks<S: Simd, const W: usize>(&self, mut column: usize, blocks: &mut [[T; W]]) -> bool {
        for y in blocks {
            let mut sums = [T::ZERO; W];
            for (a, j) in self.data.iter().zip(self.indices) {
                let j = j.position();
                if j >= self.k {
                    return false;
                }
                let Some(x) = self.x[j * self.n + column..].first_chunk::<W>() else {
                    return false;
                };
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = sum.add_mul::<S>(*a, *x);
                }
            }
            *y = sums;
            column += W;
        }
        true
    }
}
