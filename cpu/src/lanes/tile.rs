//! Tiles, and how matrices get into and out of them.
//!
//! Element p of a tile is a register (two for complex numbers) with element p of each matrix. A
//! tile is column-major; matrices that lie row-major are transposed as they are read and written.

use bytemuck::Pod;
use lapax_core::Scalar;
use pulp::Simd;

use super::MAX_LANES;
use super::transpose::transpose;
use super::vector::LaneReal;

/// Memory for one matrix of each lane, aligned to a cache line: a register that lies across two
/// lines takes two accesses.
#[derive(Debug)]
pub(crate) struct Tile<R> {
    data: Vec<R>,
    start: usize,
}

impl<R: LaneReal> Tile<R> {
    /// Bytes.
    const CACHE_LINE: usize = 64;

    /// For `elements` numbers of type T in each of so many lanes.
    pub(crate) fn new<T: Scalar<Real = R>>(elements: usize, lanes: usize) -> Self {
        let parts = if T::IS_COMPLEX { 2 } else { 1 };
        let data = vec![R::ZERO; elements * parts * lanes + Self::CACHE_LINE / size_of::<R>()];
        let start = data.as_ptr().align_offset(Self::CACHE_LINE);
        Self { data, start }
    }

    #[inline(always)]
    pub(crate) fn registers<S: Simd>(&mut self) -> &mut [R::Reg<S>] {
        R::registers::<S>(&mut self.data[self.start..]).0
    }
}

/// How the matrices of a batch lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Column,
    Row,
}

/// The m × n matrices of a tile, and the order in which they lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) order: Order,
}

impl Shape {
    /// Calls `f(p, q)` for real p of a matrix in memory and real q of the tile.
    #[inline(always)]
    fn walk<T: Scalar>(self, from: usize, to: usize, mut f: impl FnMut(usize, usize)) {
        let Self { m, n, order } = self;
        if order == Order::Column {
            (from..to).for_each(|p| f(p, p));
            return;
        }
        let parts = if T::IS_COMPLEX { 2 } else { 1 };
        let element = from / parts;
        let (mut part, mut i, mut j) = (from % parts, element / n, element % n);
        for p in from..to {
            f(p, (j * m + i) * parts + part);
            part += 1;
            if part == parts {
                (part, j) = (0, j + 1);
                if j == n {
                    (j, i) = (0, i + 1);
                }
            }
        }
    }
}

/// Reads `count` matrices; lanes beyond them repeat the last one.
#[inline(always)]
pub(crate) fn pack<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    a: &[T],
    count: usize,
    shape: Shape,
    tile: &mut [<T::Real as LaneReal>::Reg<S>],
) {
    let lanes = T::Real::lanes::<S>();
    let a: &[T::Real] = bytemuck::cast_slice(a);
    let size = a.len() / count;
    let mut rows: [&[T::Real]; MAX_LANES] = [&[]; MAX_LANES];
    for (lane, row) in rows[..lanes].iter_mut().enumerate() {
        *row = &a[lane.min(count - 1) * size..][..size];
    }
    let rows = &rows[..lanes];
    let mut p = 0;
    while size >= lanes && p < size {
        // The last block overlaps the one before it.
        let from = p.min(size - lanes);
        let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
        let block = &mut block[..lanes];
        for (reg, row) in block.iter_mut().zip(rows) {
            *reg = T::Real::register::<S>(&row[from..from + lanes]);
        }
        transpose::<S, T::Real, _>(simd, block);
        shape.walk::<T>(p, from + lanes, |p, q| tile[q] = block[p - from]);
        p = from + lanes;
    }
    shape.walk::<T>(p, size, |p, q| {
        let mut numbers = [T::Real::ZERO; MAX_LANES];
        for (number, row) in numbers.iter_mut().zip(rows) {
            *number = row[p];
        }
        tile[q] = T::Real::register::<S>(&numbers);
    });
}

/// Writes the first `count` matrices of a tile.
#[inline(always)]
pub(crate) fn unpack<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    tile: &[<T::Real as LaneReal>::Reg<S>],
    count: usize,
    shape: Shape,
    a: &mut [T],
) {
    let lanes = T::Real::lanes::<S>();
    let a: &mut [T::Real] = bytemuck::cast_slice_mut(a);
    let size = a.len() / count;
    let mut p = 0;
    while size >= lanes && p < size {
        let from = p.min(size - lanes);
        let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
        let block = &mut block[..lanes];
        shape.walk::<T>(from, from + lanes, |p, q| block[p - from] = tile[q]);
        transpose::<S, T::Real, _>(simd, block);
        for (reg, row) in block.iter().zip(a.chunks_exact_mut(size)) {
            T::Real::registers::<S>(&mut row[from..from + lanes]).0[0] = *reg;
        }
        p = from + lanes;
    }
    shape.walk::<T>(p, size, |p, q| {
        let mut numbers = [T::Real::ZERO; MAX_LANES];
        T::Real::registers::<S>(&mut numbers).0[0] = tile[q];
        for (number, row) in numbers.iter().zip(a.chunks_exact_mut(size)) {
            row[p] = *number;
        }
    });
}
