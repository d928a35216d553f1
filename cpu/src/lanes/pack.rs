//! Tiles, and how matrices get into and out of them.
//!
//! Element p of a tile is a register (two for complex numbers) with element p of each matrix. A
//! tile is column-major; matrices that lie row-major are transposed as they are read and written.

use bytemuck::Pod;
use lapax_core::Scalar;
use pulp::Simd;

use crate::matrix::layout::Layout;
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::tile::parts;
use crate::simd::transpose::{Few, few, transpose};
use crate::simd::vector::MAX_LANES;

/// The m × n matrices of a tile, and the order in which they lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) order: Layout,
}

impl Shape {
    /// Reals of a matrix of T.
    #[inline(always)]
    fn reals<T: Scalar>(self) -> usize {
        self.m * self.n * parts::<T>()
    }

    /// Whether blocks of so many reals make whole lines of it, and each has whole elements.
    #[inline(always)]
    fn straight<T: Scalar>(self, lanes: usize) -> bool {
        let line = match self.order {
            Layout::Columns => self.m * self.n,
            Layout::Rows => self.n,
        };
        (line * parts::<T>()).is_multiple_of(lanes) && lanes.is_multiple_of(parts::<T>())
    }

    /// Where in a tile the reals of a matrix belong that lie in memory from number `from` on.
    #[inline(always)]
    fn places<T: Scalar>(self, from: usize) -> Places {
        let Self { m, n, order } = self;
        let element = from / parts::<T>();
        let part = from % parts::<T>();
        match order {
            Layout::Columns => {
                Places { element, part, step: 1, line: 0, left: usize::MAX, length: usize::MAX }
            }
            Layout::Rows => {
                let n = n.max(1);
                let (i, j) = (element / n, element % n);
                Places { element: j * m + i, part, step: m, line: i, left: n - j, length: n }
            }
        }
    }
}

/// A walk through a tile in the order of memory.
#[derive(Clone, Copy)]
struct Places {
    element: usize,
    part: usize,
    /// From one element to the next of a line.
    step: usize,
    /// Where the line starts in the tile.
    line: usize,
    /// Elements that are left of the line, and those of a whole one.
    left: usize,
    length: usize,
}

impl Places {
    /// The register of the next real.
    #[inline(always)]
    fn next<T: Scalar>(&mut self) -> usize {
        let place = self.element * parts::<T>() + self.part;
        self.part += 1;
        if self.part == parts::<T>() {
            self.part = 0;
            self.left -= 1;
            self.element += self.step;
            if self.left == 0 {
                self.left = self.length;
                self.line += 1;
                self.element = self.line;
            }
        }
        place
    }

    /// Writes the next reals, which are of one line, to their registers.
    #[inline(always)]
    fn write_line<T: Scalar, G: Copy>(&mut self, block: &[G], tile: &mut [G]) {
        for reals in block.chunks_exact(parts::<T>()) {
            let at = self.element * parts::<T>();
            tile[at..at + parts::<T>()].copy_from_slice(reals);
            self.element += self.step;
        }
        self.pass(block.len() / parts::<T>());
    }

    /// Reads the next reals, which are of one line, from their registers.
    #[inline(always)]
    fn read_line<T: Scalar, G: Copy>(&mut self, tile: &[G], block: &mut [G]) {
        let elements = block.len() / parts::<T>();
        for reals in block.chunks_exact_mut(parts::<T>()) {
            let at = self.element * parts::<T>();
            reals.copy_from_slice(&tile[at..at + parts::<T>()]);
            self.element += self.step;
        }
        self.pass(elements);
    }

    /// Goes on to the next line where so many elements were the last of theirs.
    #[inline(always)]
    fn pass(&mut self, elements: usize) {
        self.left -= elements;
        if self.left == 0 {
            self.left = self.length;
            self.line += 1;
            self.element = self.line;
        }
    }
}

/// Reads `count` matrices; lanes beyond them repeat the last one.
///
/// Square blocks of registers, of as many numbers of each matrix as there are lanes, are transposed in
/// registers: so no index into a block may depend on what is known at run time alone.
#[inline(always)]
pub(crate) fn pack<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    a: &[T],
    count: usize,
    shape: Shape,
    tile: &mut [<T::Real as Packed>::Reg<S>],
) {
    let lanes = T::Real::lanes::<S>();
    if count == lanes && pack_few::<S, T>(simd, bytemuck::cast_slice(a), shape, tile) {
        return;
    }
    pack_apart(simd, a, shape.m * shape.n, count, shape, tile);
}

/// [`pack`] of matrices that begin so many numbers after each other.
#[inline(always)]
pub(crate) fn pack_apart<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    a: &[T],
    pitch: usize,
    count: usize,
    shape: Shape,
    tile: &mut [<T::Real as Packed>::Reg<S>],
) {
    let (lanes, size) = (T::Real::lanes::<S>(), shape.reals::<T>());
    let a: &[T::Real] = bytemuck::cast_slice(a);
    let mut starts = [0; MAX_LANES];
    for (lane, start) in starts[..lanes].iter_mut().enumerate() {
        *start = lane.min(count - 1) * pitch * parts::<T>();
    }
    let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
    let block = &mut block[..lanes];
    let mut places = shape.places::<T>(0);
    if size >= lanes {
        if shape.straight::<T>(lanes) {
            for number in 0..size / lanes {
                read_block(simd, a, &starts, number * lanes, block);
                places.write_line::<T, _>(block, tile);
            }
            return;
        }
        for number in 0..size / lanes {
            read_block(simd, a, &starts, number * lanes, block);
            for reg in &*block {
                tile[places.next::<T>()] = *reg;
            }
        }
        // The last block overlaps the one before.
        let left = size % lanes;
        if left > 0 {
            read_block(simd, a, &starts, size - lanes, block);
            for (k, reg) in block.iter().enumerate() {
                if k >= lanes - left {
                    tile[places.next::<T>()] = *reg;
                }
            }
        }
    } else if a.len() >= lanes {
        // A register has more than a matrix, and for the last ones more than there is.
        let last = a.len() - lanes;
        let mut tail = [T::Real::ZERO; 2 * MAX_LANES];
        tail[..lanes].copy_from_slice(&a[last..]);
        for (reg, start) in block.iter_mut().zip(starts) {
            let from = if start <= last { &a[start..] } else { &tail[start - last..] };
            *reg = T::Real::register::<S>(&from[..lanes]);
        }
        transpose::<S, T::Real, _>(simd, block);
        for (k, reg) in block.iter().enumerate() {
            if k < size {
                tile[places.next::<T>()] = *reg;
            }
        }
    } else {
        for p in 0..size {
            let mut numbers = [T::Real::ZERO; MAX_LANES];
            for (number, start) in numbers.iter_mut().zip(&starts[..lanes]) {
                *number = a[start + p];
            }
            tile[places.next::<T>()] = T::Real::register::<S>(&numbers);
        }
    }
}

/// Reads a whole group of matrices of a few numbers; `false` where these are more, or this processor cannot.
#[inline(always)]
fn pack_few<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    a: &[T::Real],
    shape: Shape,
    tile: &mut [<T::Real as Packed>::Reg<S>],
) -> bool {
    match shape.reals::<T>() {
        1 => {
            tile[0] = T::Real::register::<S>(a);
            true
        }
        2 => pack_known::<S, T, 2>(simd, a, shape, tile),
        3 => pack_known::<S, T, 3>(simd, a, shape, tile),
        4 => pack_known::<S, T, 4>(simd, a, shape, tile),
        _ => false,
    }
}

#[inline(always)]
fn pack_known<S: Simd, T: Scalar<Real: LaneReal> + Pod, const SIZE: usize>(
    simd: S,
    a: &[T::Real],
    shape: Shape,
    tile: &mut [<T::Real as Packed>::Reg<S>],
) -> bool {
    let lanes = T::Real::lanes::<S>();
    let mut regs: [_; SIZE] =
        std::array::from_fn(|at| T::Real::register::<S>(&a[at * lanes..][..lanes]));
    let known = few::<S, T::Real, _, SIZE>(simd, Few::Apart, &mut regs);
    if known {
        let mut places = shape.places::<T>(0);
        for reg in regs {
            tile[places.next::<T>()] = reg;
        }
    }
    known
}

/// Writes a whole group of matrices of a few numbers; `false` where these are more, or this processor cannot.
#[inline(always)]
fn unpack_few<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    tile: &[<T::Real as Packed>::Reg<S>],
    shape: Shape,
    a: &mut [T::Real],
) -> bool {
    match shape.reals::<T>() {
        1 => {
            T::Real::write_register::<S>(tile[0], a);
            true
        }
        2 => unpack_known::<S, T, 2>(simd, tile, shape, a),
        3 => unpack_known::<S, T, 3>(simd, tile, shape, a),
        4 => unpack_known::<S, T, 4>(simd, tile, shape, a),
        _ => false,
    }
}

#[inline(always)]
fn unpack_known<S: Simd, T: Scalar<Real: LaneReal> + Pod, const SIZE: usize>(
    simd: S,
    tile: &[<T::Real as Packed>::Reg<S>],
    shape: Shape,
    a: &mut [T::Real],
) -> bool {
    let mut places = shape.places::<T>(0);
    let mut regs: [_; SIZE] = std::array::from_fn(|_| tile[places.next::<T>()]);
    let known = few::<S, T::Real, _, SIZE>(simd, Few::Together, &mut regs);
    if known {
        let lanes = T::Real::lanes::<S>();
        for (reg, a) in regs.into_iter().zip(a.chunks_exact_mut(lanes)) {
            T::Real::write_register::<S>(reg, a);
        }
    }
    known
}

/// Reads a block from number `from` of each matrix on.
#[inline(always)]
fn read_block<S: Simd, R: LaneReal>(
    simd: S,
    a: &[R],
    starts: &[usize],
    from: usize,
    block: &mut [R::Reg<S>],
) {
    let lanes = block.len();
    for (reg, start) in block.iter_mut().zip(starts) {
        *reg = R::register::<S>(&a[start + from..][..lanes]);
    }
    transpose::<S, R, _>(simd, block);
}

/// Writes a block to the first `count` matrices, which begin so many numbers after each other, from number `from` of
/// each on; its registers are transposed.
#[inline(always)]
fn write_block<S: Simd, R: LaneReal>(
    simd: S,
    block: &mut [R::Reg<S>],
    a: &mut [R],
    (count, pitch): (usize, usize),
    from: usize,
) {
    transpose::<S, R, _>(simd, block);
    let lanes = block.len();
    for (lane, reg) in block.iter().enumerate() {
        if lane < count {
            R::write_register::<S>(*reg, &mut a[lane * pitch + from..][..lanes]);
        }
    }
}

/// Writes the first `count` matrices of a tile.
#[inline(always)]
pub(crate) fn unpack<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    tile: &[<T::Real as Packed>::Reg<S>],
    count: usize,
    shape: Shape,
    a: &mut [T],
) {
    let (lanes, size) = (T::Real::lanes::<S>(), shape.reals::<T>());
    if size >= lanes {
        return unpack_apart(simd, tile, shape.m * shape.n, count, shape, a);
    }
    let a: &mut [T::Real] = bytemuck::cast_slice_mut(a);
    if count == lanes && unpack_few::<S, T>(simd, tile, shape, a) {
        return;
    }
    let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
    let block = &mut block[..lanes];
    let mut places = shape.places::<T>(0);
    if a.len() >= lanes {
        for (k, reg) in block.iter_mut().enumerate() {
            if k < size {
                *reg = tile[places.next::<T>()];
            }
        }
        transpose::<S, T::Real, _>(simd, block);
        // What a register has more than its matrix is overwritten by the next one; the last of them
        // are put together first.
        let last = a.len() - lanes;
        let mut tail = [T::Real::ZERO; 3 * MAX_LANES];
        for (lane, reg) in block.iter().enumerate() {
            let start = lane * size;
            if lane < count && start <= last {
                T::Real::write_register::<S>(*reg, &mut a[start..][..lanes]);
            }
            if lane < count && start + size > last {
                T::Real::write_register::<S>(*reg, &mut tail[lanes + start - last..][..lanes]);
            }
        }
        a[last..].copy_from_slice(&tail[lanes..2 * lanes]);
    } else {
        for p in 0..size {
            let mut numbers = [T::Real::ZERO; MAX_LANES];
            T::Real::write_register::<S>(tile[places.next::<T>()], &mut numbers);
            for (row, number) in a.chunks_exact_mut(size).zip(numbers) {
                row[p] = number;
            }
        }
    }
}

/// [`unpack`] of matrices that begin so many numbers after each other, to what is between them no number.
#[inline(always)]
pub(crate) fn unpack_apart<S: Simd, T: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    tile: &[<T::Real as Packed>::Reg<S>],
    pitch: usize,
    count: usize,
    shape: Shape,
    a: &mut [T],
) {
    let (lanes, size) = (T::Real::lanes::<S>(), shape.reals::<T>());
    let (a, pitch): (&mut [T::Real], _) = (bytemuck::cast_slice_mut(a), pitch * parts::<T>());
    let mut block = [T::Real::splat(simd, T::Real::ZERO); MAX_LANES];
    let block = &mut block[..lanes];
    let mut places = shape.places::<T>(0);
    if size < lanes {
        for reg in &mut block[..size] {
            *reg = tile[places.next::<T>()];
        }
        transpose::<S, T::Real, _>(simd, block);
        for (lane, reg) in block.iter().enumerate().take(count) {
            T::Real::write_part(simd, *reg, &mut a[lane * pitch..][..size]);
        }
        return;
    }
    if shape.straight::<T>(lanes) {
        for number in 0..size / lanes {
            places.read_line::<T, _>(tile, block);
            write_block(simd, block, a, (count, pitch), number * lanes);
        }
        return;
    }
    for number in 0..size / lanes {
        for reg in &mut *block {
            *reg = tile[places.next::<T>()];
        }
        write_block(simd, block, a, (count, pitch), number * lanes);
    }
    if !size.is_multiple_of(lanes) {
        let from = size - lanes;
        let mut places = shape.places::<T>(from);
        for reg in &mut *block {
            *reg = tile[places.next::<T>()];
        }
        write_block(simd, block, a, (count, pitch), from);
    }
}
