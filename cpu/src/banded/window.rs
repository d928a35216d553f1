//! A dense window that slides along a band, block of columns by block of columns.
//!
//! Element t of a line is that of row or column `first + t` of the matrix whichever line it is, so that lines are
//! combined register by register, each at the place where it was written: what is read again at other places, as a
//! kernel that shifts its lines does, waits until it is in the cache.

use crate::Scalar;
use crate::simd::cache_line::LINE;

/// The columns of a block: with 16 diagonals the window of a definite matrix then takes 18 KiB in f64, about half of the
/// nearest cache.
pub(super) const BLOCK: usize = 32;

/// Lines of equal length, each in cache lines of its own.
#[derive(Debug)]
pub(crate) struct Window<T> {
    data: Vec<T>,
    start: usize,
    stride: usize,
}

impl<T: Scalar> Window<T> {
    pub(super) fn new(lines: usize, length: usize) -> Self {
        let line = LINE / size_of::<T>();
        let stride = length.next_multiple_of(line);
        let data = vec![T::ZERO; lines * stride + line];
        // What malloc has aligned to less than a number stays where it is.
        let start = Some(data.as_ptr().align_offset(LINE)).filter(|&start| start < line);
        Self { data, start: start.unwrap_or(0), stride }
    }

    /// Zeros in the first lines.
    #[inline(always)]
    pub(super) fn clear(&mut self, lines: usize) {
        self.data[self.start..][..lines * self.stride].fill(T::ZERO);
    }

    #[inline(always)]
    pub(super) fn line(&self, at: usize) -> &[T] {
        &self.data[self.start + at * self.stride..][..self.stride]
    }

    #[inline(always)]
    pub(super) fn line_mut(&mut self, at: usize) -> &mut [T] {
        &mut self.data[self.start + at * self.stride..][..self.stride]
    }

    /// A line, and those behind it.
    #[inline(always)]
    pub(super) fn line_and_rest(&mut self, at: usize) -> (&[T], impl Iterator<Item = &mut [T]>) {
        let lines = &mut self.data[self.start + at * self.stride..];
        let (line, rest) = lines.split_at_mut(self.stride);
        (line, rest.chunks_exact_mut(self.stride))
    }

    /// The elements from one on, each in the line behind and one further.
    #[inline(always)]
    pub(super) fn diagonal_mut(&mut self, line: usize, at: usize) -> impl Iterator<Item = &mut T> {
        self.data[self.start + line * self.stride + at..].iter_mut().step_by(self.stride + 1)
    }
}
