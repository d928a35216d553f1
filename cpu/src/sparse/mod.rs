//! Products of sparse matrices in compressed rows (CSR) with dense vectors and matrices: Y = A·X.
//!
//! All is row-major. A product is checked and cut into parts, which may run on any threads: each
//! owns some rows of Y, and a row is summed in the order of its entries, so that the parts do not
//! change the result. Column indices are checked where they are used.

mod row;
pub(crate) mod scalar;
#[cfg(feature = "testing")]
pub(crate) mod tests;

use std::fmt::Debug;

use pulp::{Simd, WithSimd};

use crate::simd::arch::Arch;
use row::{add_row, dot_row};

pub use scalar::{Index, SparseScalar};

/// A batch of sparse matrices: row i of one has the values `data[indptr[i]..indptr[i + 1]]` in the
/// columns `indices[indptr[i]..indptr[i + 1]]`. Columns may repeat, which adds, and come in any
/// order; entries past the last row are not read.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, T, I> {
    /// The values, `nnz` for each matrix.
    pub data: &'a [T],
    /// Where rows begin and end, `rows + 1` for each matrix.
    pub indptr: &'a [I],
    /// The columns, `nnz` for each matrix.
    pub indices: &'a [I],
}

/// The sizes of a product: so many times rows × k times k × n.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of products.
    pub batch: usize,
    /// Rows of A and of Y.
    pub rows: usize,
    /// Columns of A and rows of X.
    pub k: usize,
    /// Columns of X and of Y.
    pub n: usize,
}

/// A number in `indptr` or `indices` that cannot be right. Nothing outside of a slice was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// `indptr` or `indices`.
    pub operand: &'static str,
    /// Its place in the operand, counted over the whole batch.
    pub place: usize,
    /// The smallest number allowed there.
    pub least: usize,
    /// The largest number allowed there.
    pub most: Option<usize>,
    /// What is there.
    pub got: i64,
}

/// Some rows of a product.
#[derive(Debug)]
pub struct Part<'a, T, I> {
    a: Csr<'a, T, I>,
    x: &'a [T],
    /// Its rows of Y.
    y: &'a mut [T],
    sizes: Sizes,
    /// The first of them, counted over the whole batch.
    first: usize,
}

/// Checks a product and cuts it into parts for so many threads; running all of them computes
/// `y` = A·`x`.
///
/// # Errors
/// [`BadIndex`] where `indptr` has a negative number, decreases, or exceeds the number of entries.
///
/// # Panics
/// If a slice is shorter than its sizes ask for.
pub fn csr_product<'a, T: SparseScalar, I: Index>(
    sizes: Sizes,
    a: Csr<'a, T, I>,
    x: &'a [T],
    y: &'a mut [T],
    threads: usize,
) -> Result<Vec<Part<'a, T, I>>, BadIndex> {
    if y.is_empty() {
        return Ok(Vec::new());
    }
    let Sizes { batch, rows, n, .. } = sizes;
    let per_row = ROW_NANOSECONDS + n * size_of::<T>() / BYTES_PER_NANOSECOND;
    let per_entry = 1 + n * size_of::<T>() / BYTES_PER_NANOSECOND;
    // No row has been looked at: the entries that no row has count too.
    let work = (batch * rows).saturating_mul(per_row);
    let work = work.saturating_add(a.data.len().saturating_mul(per_entry));
    let share = work / lapax_core::chunks(work, 1, threads).max(1);
    let (mut parts, mut left) = (Vec::new(), y);
    let (mut first, mut pending) = (0, 0);
    for (matrix, indptr) in a.indptr.chunks_exact(rows + 1).enumerate() {
        let nnz = a.data.len() / batch;
        for (row, ends) in (matrix * rows..).zip(indptr.windows(2)) {
            let entries = row_entries(ends, nnz)
                .map_err(|(end, bad)| BadIndex { place: row + matrix + end, ..bad })?;
            pending += per_row + entries * per_entry;
            let end = row + 1;
            if pending > share || end == batch * rows {
                let (rows, rest) = left.split_at_mut((end - first) * n);
                parts.push(Part { a, x, y: rows, sizes, first });
                (left, first, pending) = (rest, end, 0);
            }
        }
    }
    Ok(parts)
}

/// Time that a row takes beside its entries.
const ROW_NANOSECONDS: usize = 4;

/// How fast rows of X are added to one of Y, and these written: about a cache's rate.
const BYTES_PER_NANOSECOND: usize = 32;

/// The number of a row's entries; or which of the two ends is wrong, and how.
fn row_entries<I: Index>(ends: &[I], nnz: usize) -> Result<usize, (usize, BadIndex)> {
    let bad = |place, least, got: I| {
        let got = got.number();
        Err((place, BadIndex { operand: "indptr", place: 0, least, most: Some(nnz), got }))
    };
    let start = ends[0].position();
    if start > nnz {
        return bad(0, 0, ends[0]);
    }
    let end = ends[1].position();
    if end < start || end > nnz {
        return bad(1, start, ends[1]);
    }
    Ok(end - start)
}

impl<T: SparseScalar, I: Index> Part<'_, T, I> {
    /// Computes the rows.
    ///
    /// # Errors
    /// [`BadIndex`] where a column is negative or not below k.
    pub fn run(self) -> Result<(), BadIndex> {
        Arch::new().dispatch(self)
    }
}

impl<T: SparseScalar, I: Index> WithSimd for Part<'_, T, I> {
    type Output = Result<(), BadIndex>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let Self { a, x, y, sizes: Sizes { batch, rows, k, n }, first } = self;
        let nnz = a.data.len() / batch;
        let (mut matrix, mut row) = (first / rows, first % rows);
        for y in y.chunks_exact_mut(n) {
            let ends = &a.indptr[matrix * (rows + 1) + row..][..2];
            // Checked when the part was cut: 0 <= start <= end <= nnz.
            let (start, end) = (ends[0].position(), ends[1].position());
            let entries = matrix * nnz + start..matrix * nnz + end;
            let (data, indices) = (&a.data[entries.clone()], &a.indices[entries.clone()]);
            let x = &x[matrix * k * n..][..k * n];
            let done = match y {
                [y] => dot_row::<S, T, I>(data, indices, x, y),
                y => add_row::<S, T, I>(data, indices, x, y),
            };
            if !done {
                return Err(bad_column(indices, entries.start, k));
            }
            row += 1;
            if row == rows {
                (matrix, row) = (matrix + 1, 0);
            }
        }
        Ok(())
    }
}

/// The first index that is no column; there is one.
#[cold]
fn bad_column<I: Index>(indices: &[I], first: usize, k: usize) -> BadIndex {
    let bad = indices.iter().position(|index| index.position() >= k).unwrap_or(0);
    let got = indices.get(bad).map_or(0, |index| index.number());
    BadIndex { operand: "indices", place: first + bad, least: 0, most: k.checked_sub(1), got }
}

impl std::fmt::Display for BadIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BadIndex { operand, place, least, most, got } = self;
        match most {
            Some(most) => {
                write!(f, "`{operand}`: expected {least} to {most} at {place}, got {got}")
            }
            None => write!(f, "`{operand}`: expected no entries, as k=0, got {got} at {place}"),
        }
    }
}

impl std::error::Error for BadIndex {}
