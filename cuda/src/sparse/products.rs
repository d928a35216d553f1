//! Products of a sparse matrix with a dense vector or matrix, by own kernels.

use super::{Coo, Csr};
use crate::Scalar;
use crate::driver;
use crate::error::{Error, Kind, narrow, product};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{Input, Output};
use crate::module::{Kernel, kernel};

/// Lanes of a warp.
pub(super) const LANES: usize = 32;
/// Threads of a block.
const THREADS: usize = 256;

/// Y = A·X, or Aᵀ·X with `transpose`, for each A of a batch.
///
/// `sizes` are m, k, n: Y is m × n and X is k × n, row-major, so that A is m × k, or k × m if
/// transposed. Entries that repeat add; those outside of A or past the values count for nothing. What a
/// product with Aᵀ adds has no fixed order. May be captured.
///
/// # Errors
/// Where `indptr` is not for the rows of A, a size exceeds `i32`, or the device fails.
pub fn csr_product<T: Scalar>(
    gpu: &Gpu<'_>,
    transpose: bool,
    batch: usize,
    sizes: [usize; 3],
    a: Csr<T>,
    x: Input<T>,
    y: Output<T>,
) -> Result<(), Error> {
    if y.is_empty() {
        return Ok(());
    }
    for index in 0..batch {
        let (x, y) = (x.of(index, batch), y.of(index, batch));
        one_csr_product(gpu, transpose, sizes, a.of(index, batch), x, y)?;
    }
    Ok(())
}

fn one_csr_product<T: Scalar>(
    gpu: &Gpu<'_>,
    transpose: bool,
    [m, k, n]: [usize; 3],
    a: Csr<T>,
    x: Input<T>,
    y: Output<T>,
) -> Result<(), Error> {
    let rows = if transpose { k } else { m };
    if a.indptr.len() != rows + 1 {
        let text = format!("expected {} elements in indptr, got {}", rows + 1, a.indptr.len());
        return Err(Error::new(Kind::InvalidArgument, text));
    }
    let nnz = a.values.len();
    let [m_i32, k_i32, n_i32, nnz_i32] = narrowed([("m", m), ("k", k), ("n", n), ("nnz", nnz)])?;
    let (rows_i32, columns_i32) = if transpose { (k_i32, m_i32) } else { (m_i32, k_i32) };
    let (values, indices, indptr) = (a.values.as_ptr(), a.indices.as_ptr(), a.indptr.as_ptr());
    let (x, out) = (x.as_ptr(), y.as_ptr());
    if transpose {
        clear(gpu, y)?;
        let launch = plan(gpu, kernel!(T, "sparse", "csr_transposed"), rows, LANES)?;
        let list = (values, indices, indptr, x, out, rows_i32, columns_i32, n_i32, nnz_i32);
        // SAFETY: the kernel's parameters: nnz values and indices, rows + 1 offsets, X and Y of rows·n
        // and columns·n elements.
        return unsafe { gpu.launch(&launch, list) };
    }
    if n == 1 {
        let group = lanes_of_a_row(nnz, rows);
        let launch = plan(gpu, kernel!(T, "sparse", "csr_vector"), rows, group)?;
        let group: i32 = narrow("lanes", group)?;
        let list = (values, indices, indptr, x, out, rows_i32, columns_i32, nnz_i32, group);
        // SAFETY: as above, X and Y of columns and rows elements.
        return unsafe { gpu.launch(&launch, list) };
    }
    let count = product("y", &[rows, n])?;
    let launch = plan(gpu, kernel!(T, "sparse", "csr_matrix"), count, 1)?;
    let list = (values, indices, indptr, x, out, rows_i32, columns_i32, n_i32, nnz_i32);
    // SAFETY: as above, X and Y of columns·n and rows·n elements.
    unsafe { gpu.launch(&launch, list) }
}

/// Loads what [`csr_product`] launches.
///
/// # Errors
/// As there.
pub fn load_csr_product<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sparse", "csr_vector"))?;
    gpu.load(kernel!(T, "sparse", "csr_matrix"))?;
    gpu.load(kernel!(T, "sparse", "csr_transposed"))
}

/// The same for a list of entries. What is added has no fixed order. May be captured.
///
/// # Errors
/// As [`csr_product`].
pub fn coo_product<T: Scalar>(
    gpu: &Gpu<'_>,
    transpose: bool,
    batch: usize,
    sizes: [usize; 3],
    a: Coo<T>,
    x: Input<T>,
    y: Output<T>,
) -> Result<(), Error> {
    if y.is_empty() {
        return Ok(());
    }
    for index in 0..batch {
        let (x, y) = (x.of(index, batch), y.of(index, batch));
        one_coo_product(gpu, transpose, sizes, a.of(index, batch), x, y)?;
    }
    Ok(())
}

fn one_coo_product<T: Scalar>(
    gpu: &Gpu<'_>,
    transpose: bool,
    [m, k, n]: [usize; 3],
    a: Coo<T>,
    x: Input<T>,
    y: Output<T>,
) -> Result<(), Error> {
    let nnz = a.values.len();
    let [m, k, n_i32, nnz_i32] = narrowed([("m", m), ("k", k), ("n", n), ("nnz", nnz)])?;
    clear(gpu, y)?;
    let (to, from) = if transpose { (a.columns, a.rows) } else { (a.rows, a.columns) };
    let (values, to, from) = (a.values.as_ptr(), to.as_ptr(), from.as_ptr());
    let (x, y) = (x.as_ptr(), y.as_ptr());
    if n == 1 {
        let launch = plan(gpu, kernel!(T, "sparse", "coo_vector"), nnz, 1)?;
        let list = (values, to, from, x, y, m, k, nnz_i32);
        // SAFETY: the kernel's parameters: nnz values, rows and columns; X and Y of k and m elements.
        return unsafe { gpu.launch(&launch, list) };
    }
    let pieces = product("x", &[nnz.div_ceil(LANES), n])?;
    let launch = plan(gpu, kernel!(T, "sparse", "coo_matrix"), pieces, 1)?;
    let list = (values, to, from, x, y, m, k, n_i32, nnz_i32);
    // SAFETY: as above, n columns of each.
    unsafe { gpu.launch(&launch, list) }
}

/// Loads what [`coo_product`] launches.
///
/// # Errors
/// As there.
pub fn load_coo_product<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "sparse", "coo_vector"))?;
    gpu.load(kernel!(T, "sparse", "coo_matrix"))
}

/// Sets a result to zero.
pub(super) fn clear<T>(gpu: &Gpu<'_>, operand: Output<T>) -> Result<(), Error> {
    driver::fill(gpu.stream(), operand.as_ptr().cast(), 0, size_of::<T>() * operand.len())
}

/// Blocks for so many pieces of work, each for so many threads.
pub(super) fn plan(
    gpu: &Gpu<'_>,
    kernel: Kernel,
    pieces: usize,
    threads: usize,
) -> Result<Launch, Error> {
    let grid = blocks(pieces.div_ceil(THREADS / threads), gpu.limits()?);
    let block = [u32::try_from(THREADS).unwrap_or(u32::MAX), 1, 1];
    Ok(Launch { kernel, grid, block, shared: 0 })
}

/// Sizes as kernels take them, with their names.
pub(super) fn narrowed<const N: usize>(sizes: [(&str, usize); N]) -> Result<[i32; N], Error> {
    let mut narrowed = [0; N];
    for (narrowed, (name, size)) in narrowed.iter_mut().zip(sizes) {
        *narrowed = narrow(name, size)?;
    }
    Ok(narrowed)
}

/// Lanes that share a row: about one for each of its entries. Not measured on a GPU yet.
fn lanes_of_a_row(nnz: usize, rows: usize) -> usize {
    nnz.div_ceil(rows).next_power_of_two().min(LANES)
}
