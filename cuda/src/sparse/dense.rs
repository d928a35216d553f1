//! Sparse matrices as dense ones, and dense ones as sparse, by own kernels.

use super::products::{LANES, clear, narrowed, plan};
use super::{Coo, Csr};
use crate::Scalar;
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch};
use crate::memory::{Input, Output};
use crate::module::kernel;

/// Each A of a batch in full: `dense` is rows × columns, row-major.
///
/// Entries that repeat add; those outside of A or past the values count for nothing. May be captured.
///
/// # Errors
/// Where a size exceeds `i32`, or the device fails.
pub fn csr_to_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    shape: [usize; 2],
    a: Csr<T>,
    dense: Output<T>,
) -> Result<(), Error> {
    if dense.is_empty() {
        return Ok(());
    }
    for index in 0..batch {
        one_csr_to_dense(gpu, shape, a.of(index, batch), dense.of(index, batch))?;
    }
    Ok(())
}

fn one_csr_to_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    [rows, columns]: [usize; 2],
    a: Csr<T>,
    dense: Output<T>,
) -> Result<(), Error> {
    let count = a.values.len();
    let [rows_i32, columns, nnz] = narrowed([("m", rows), ("n", columns), ("nnz", count)])?;
    clear(gpu, dense)?;
    let launch = plan(gpu, kernel!(T, "sparse", "csr_dense"), rows, LANES)?;
    let (values, indices, indptr) = (a.values.as_ptr(), a.indices.as_ptr(), a.indptr.as_ptr());
    let list = (values, indices, indptr, dense.as_ptr(), rows_i32, columns, nnz);
    // SAFETY: the kernel's parameters: nnz values and indices, rows + 1 offsets, the dense matrix.
    unsafe { gpu.launch(&launch, list) }
}

/// Loads what [`csr_to_dense`] launches.
///
/// # Errors
/// As there.
pub fn load_csr_to_dense<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sparse", "csr_dense"))
}

/// The same for a list of entries.
///
/// # Errors
/// As [`csr_to_dense`].
pub fn coo_to_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    shape: [usize; 2],
    a: Coo<T>,
    dense: Output<T>,
) -> Result<(), Error> {
    if dense.is_empty() {
        return Ok(());
    }
    for index in 0..batch {
        one_coo_to_dense(gpu, shape, a.of(index, batch), dense.of(index, batch))?;
    }
    Ok(())
}

fn one_coo_to_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    [rows, columns]: [usize; 2],
    a: Coo<T>,
    dense: Output<T>,
) -> Result<(), Error> {
    let count = a.values.len();
    let [rows, columns, nnz] = narrowed([("m", rows), ("n", columns), ("nnz", count)])?;
    clear(gpu, dense)?;
    let launch = plan(gpu, kernel!(T, "sparse", "coo_dense"), count, 1)?;
    let (values, row, column) = (a.values.as_ptr(), a.rows.as_ptr(), a.columns.as_ptr());
    let list = (values, row, column, dense.as_ptr(), rows, columns, nnz);
    // SAFETY: the kernel's parameters: nnz values, rows and columns, the dense matrix.
    unsafe { gpu.launch(&launch, list) }
}

/// Loads what [`coo_to_dense`] launches.
///
/// # Errors
/// As there.
pub fn load_coo_to_dense<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sparse", "coo_dense"))
}

/// The elements of each dense matrix of a batch that are not zero, in compressed rows.
///
/// `dense` is rows × columns, row-major. The first elements are taken, row by row, as many as there
/// are `values`; places that are left become zeros in column 0. `indptr` counts what was taken, so
/// that a smaller number than there are elements loses the last ones, and nothing is written past the
/// results. May be captured.
///
/// # Errors
/// Where a size exceeds `i32`, or the device fails.
pub fn csr_from_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    shape: [usize; 2],
    dense: Input<T>,
    values: Output<T>,
    indices: Output<i32>,
    indptr: Output<i32>,
) -> Result<(), Error> {
    for index in 0..batch {
        let (dense, values) = (dense.of(index, batch), values.of(index, batch));
        let (indices, indptr) = (indices.of(index, batch), indptr.of(index, batch).as_ptr());
        take(gpu, shape, dense, indptr, values, std::ptr::null_mut(), indices)?;
    }
    Ok(())
}

/// Loads what [`csr_from_dense`] launches.
///
/// # Errors
/// As there.
pub fn load_csr_from_dense<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sparse", "count_entries"))?;
    gpu.load(kernel!("sparse", "add_up"))?;
    gpu.load(kernel!(T, "sparse", "take_entries"))
}

/// The same as a list of entries, with zeros in row 0 and column 0 in the places that are left. Takes
/// scratch of rows + 1 integers.
///
/// # Errors
/// As [`csr_from_dense`], or where scratch is not to be had.
pub fn coo_from_dense<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    shape: [usize; 2],
    dense: Input<T>,
    values: Output<T>,
    rows: Output<i32>,
    columns: Output<i32>,
) -> Result<(), Error> {
    if values.is_empty() {
        return Ok(());
    }
    narrowed([("m", shape[0])])?;
    let offsets = gpu.scratch::<i32>(shape[0] + 1)?;
    for index in 0..batch {
        let (dense, values) = (dense.of(index, batch), values.of(index, batch));
        let (rows, columns) = (rows.of(index, batch).as_ptr(), columns.of(index, batch));
        take(gpu, shape, dense, offsets.as_ptr(), values, rows, columns)?;
    }
    Ok(())
}

/// Loads what [`coo_from_dense`] launches.
///
/// # Errors
/// As there.
pub fn load_coo_from_dense<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    load_csr_from_dense::<T>(gpu)
}

/// Counts, adds up, and takes. `offsets` has rows + 1 places; `row` as many as `values`, or is null.
fn take<T: Scalar>(
    gpu: &Gpu<'_>,
    [rows, columns]: [usize; 2],
    dense: Input<T>,
    offsets: *mut i32,
    values: Output<T>,
    row: *mut i32,
    column: Output<i32>,
) -> Result<(), Error> {
    /// Threads that add up the counts, in one block. Not measured on a GPU yet.
    const ADDERS: usize = 1024;
    product("dense", &[rows, columns])?;
    let count = values.len();
    let [rows_i32, columns_i32, nnz] = narrowed([("m", rows), ("n", columns), ("nnz", count)])?;
    let (dense, values, column) = (dense.as_ptr(), values.as_ptr(), column.as_ptr());
    let counts = plan(gpu, kernel!(T, "sparse", "count_entries"), rows, LANES)?;
    let threads = rows.clamp(1, ADDERS);
    let add_up = Launch {
        kernel: kernel!("sparse", "add_up"),
        grid: 1,
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", threads * size_of::<i64>())?,
    };
    // Without rows there are still places to fill.
    let all = plan(gpu, kernel!(T, "sparse", "take_entries"), rows.max(1), LANES)?;
    // SAFETY: the kernels' parameters: a dense matrix, offsets of rows + 1 places, as many values, rows
    // if any, and columns as each other.
    unsafe {
        gpu.launch(&counts, (dense, offsets, rows_i32, columns_i32))?;
        gpu.launch(&add_up, (offsets, rows_i32, nnz))?;
        let list = (dense, offsets, values, row, column, rows_i32, columns_i32, nnz);
        gpu.launch(&all, list)
    }
}
