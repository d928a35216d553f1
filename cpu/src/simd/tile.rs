//! Tiles: as many small matrices as a register has lanes, interleaved.

use lapax_core::Scalar;
use pulp::Simd;

use super::cache_line::LINE;
use super::lane_real::LaneReal;

/// Memory for one matrix of each lane, in whole cache lines: a register that lies across two of them takes
/// two accesses, and a line that another thread writes has to be fetched again.
#[derive(Debug)]
pub(crate) struct Tile<R> {
    data: Vec<R>,
    start: usize,
}

impl<R: LaneReal> Tile<R> {
    /// For `elements` numbers of type T in each of so many lanes.
    pub(crate) fn new<T: Scalar<Real = R>>(elements: usize, lanes: usize) -> Self {
        let line = LINE / size_of::<R>();
        let numbers = (elements * parts::<T>() * lanes).next_multiple_of(line);
        let data = vec![R::ZERO; numbers + line];
        let start = data.as_ptr().align_offset(LINE);
        Self { data, start }
    }

    #[inline(always)]
    pub(crate) fn registers<S: Simd>(&mut self) -> &mut [R::Reg<S>] {
        R::registers_mut::<S>(&mut self.data[self.start..]).0
    }
}

/// Real numbers in a scalar.
#[inline(always)]
pub(crate) fn parts<T: Scalar>() -> usize {
    if T::IS_COMPLEX { 2 } else { 1 }
}
