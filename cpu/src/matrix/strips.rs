//! Strips of a matrix, for one thread after the other or for all.

use std::sync::{Mutex, PoisonError};

use faer::{ColMut, MatMut};
use lapax_core::{Batched, Serial, for_each, for_each_large, run_each};

use super::transpose::MEANS;
use crate::{Scalar, Threads};

/// The order from which strips of so many rows of one matrix go to all threads.
const STRIPS_ORDER: usize = 448;
const STRIP: usize = 64;
const _: () = assert!(STRIP.is_multiple_of(MEANS), "strips begin where means do");

/// Calls `body` for each item of a batch of matrices of so many rows, with the threads for its strips.
pub(crate) fn by_strips<B: Batched>(
    batch: usize,
    rows: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    body: impl Fn(B::Item, &dyn Threads) + Sync,
) {
    if rows > STRIPS_ORDER {
        for_each_large(batch, operands, threads, body);
    } else {
        for_each(batch, operands, nanoseconds, threads, || (), |(), item| body(item, &Serial));
    }
}

/// Calls `body` with strips of a matrix's rows, each with the number of its first row.
pub(crate) fn each_strip<T: Scalar>(
    a: &mut [T],
    n: usize,
    threads: &dyn Threads,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    let strips: Vec<_> = a.chunks_mut(STRIP * n).map(Mutex::new).collect();
    run_each(
        threads,
        strips.len(),
        || (),
        |(), strip| {
            let mut rows = strips[strip].lock().unwrap_or_else(PoisonError::into_inner);
            body(strip * STRIP, &mut rows);
        },
    );
}

/// The elements of a column, or transposed row, of which the matrix says that they lie together.
pub(crate) fn contiguous<T>(column: ColMut<'_, T>) -> &mut [T] {
    match column.try_as_col_major_mut() {
        Some(column) => column.as_slice_mut(),
        None => unreachable!("neither rows nor columns are contiguous"),
    }
}

/// Cuts a matrix into strips of so many columns; the last may be narrower.
pub(crate) fn strips<T>(a: MatMut<'_, T>, width: usize) -> Vec<Mutex<MatMut<'_, T>>> {
    let mut strips = Vec::with_capacity(a.ncols().div_ceil(width));
    let mut rest = a;
    while rest.ncols() > 0 {
        let columns = width.min(rest.ncols());
        let (strip, right) = rest.split_at_col_mut(columns);
        strips.push(Mutex::new(strip));
        rest = right;
    }
    strips
}
