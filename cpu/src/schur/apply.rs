//! Rotations gathered in blocks, and their products with the rest of a matrix.

use std::sync::{Mutex, MutexGuard, PoisonError};

use faer::{Accum, Conj, MatMut, MatRef};

use crate::matrix::panel::copy;
use crate::simd::arch::Arch;
use crate::{Scalar, Side};

/// What products with a window's factor pass through: buffers for as many threads as have been at work.
#[derive(Debug)]
pub(crate) struct Room<T>(Mutex<Vec<Vec<T>>>);

impl<T> Default for Room<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// A buffer, which goes back when it is dropped.
pub(crate) struct Buffer<'a, T> {
    room: &'a Room<T>,
    pub(crate) buffer: Vec<T>,
}

impl<T> Room<T> {
    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Buffer<'_, T> {
        Buffer { room: self, buffer: self.buffers().pop().unwrap_or_default() }
    }
}

impl<T> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        self.room.buffers().push(std::mem::take(&mut self.buffer));
    }
}

/// Fᴴ times a block; or F times it from the right, of which the transpose is given.
pub(crate) fn multiply<T: Scalar>(
    factor: MatRef<'_, T>,
    side: Side,
    block: MatMut<'_, T>,
    buffer: &mut Vec<T>,
) {
    let mut block = if side == Side::Left { block } else { block.transpose_mut() };
    let (rows, columns) = (block.nrows(), block.ncols());
    buffer.resize(buffer.len().max(rows * columns), T::ZERO);
    let buffer = &mut buffer[..rows * columns];
    let product = MatMut::from_column_major_slice_mut(&mut *buffer, rows, columns);
    let used = (block.as_ref(), Conj::No);
    let (lhs, rhs) = match side {
        Side::Left => ((factor.transpose(), Conj::Yes), used),
        Side::Right => (used, (factor, Conj::No)),
    };
    T::product(product, Accum::Replace, lhs, rhs, T::ONE);
    copy(block.as_mut(), buffer, false, Arch::new());
}
