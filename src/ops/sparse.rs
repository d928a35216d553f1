//! Sparse matrices in compressed rows (CSR), all row-major: products and systems.

use lapax_cpu::sparse::{BadIndex, Csr, Sizes, csr_product};
use xla_ffi::Future;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64};

super::ops! { sparse;
    /// Product of a sparse matrix in compressed rows with a dense vector or matrix, Y = A·X.
    ///
    /// Row i of A has the values `data[indptr[i]..indptr[i + 1]]` in the columns
    /// `indices[indptr[i]..indptr[i + 1]]`, counted from 0, in any order; columns that repeat add.
    /// Entries past `indptr[rows]` are not read. Integers are computed modulo 2³² or 2⁶⁴.
    /// INVALID_ARGUMENT where `indptr` is negative, decreases or exceeds nnz, and where an index
    /// is no column (jaxlib reads outside of its buffers there). Asynchronous: the call returns
    /// while threads of XLA's pool compute the rest of the rows.
    csr_sparse_dense: CsrSparseDense<T, I> over [
        (f32, i32), (f64, i32), (c32, i32), (c64, i32), (i32, i32), (i64, i32),
        (f32, i64), (f64, i64), (c32, i64), (c64, i64), (i32, i64), (i64, i64),
    ], Row {
        dims { nnz, p, k, n, rows = p - 1 }
        args { data: T [nnz], indptr: I [p], indices: I [nnz], rhs: T [k, n?] }
        rets { out: T [rows, n?] }
        require { p >= 1 => "at least one element in indptr" }
    }
    cpu = any("cpu_csr_sparse_dense_ffi"), |call, threads| {
        let sizes = Sizes { batch: call.batch, rows: call.rows, k: call.k, n: call.n };
        let a = Csr { data: call.data, indptr: call.indptr, indices: call.indices };
        let parts = csr_product(sizes, a, call.rhs, call.out, threads.count()).map_err(bad_index)?;
        Ok(Future::each(parts, |part| part.run().map_err(bad_index)))
    };
    cuda = (none: "a name of the CPU alone: jaxlib's on CUDA are those of cuSPARSE");

    /// Solution of a sparse system A·x = b by a QR factorisation (cusolverSpXcsrlsvqr).
    ///
    /// A is square, in compressed rows counted from 0, as for csr_sparse_dense. `reorder` is how columns
    /// are ordered before: 0 not at all, 1 by symrcm, 2 by symamd, 3 by METIS. INVALID_ARGUMENT where A
    /// is singular, to `tol`. The call waits for the device; of a batch, one system after the other.
    csrlsvqr: Csrlsvqr<T> over [f32, f64, c32, c64], Row {
        dims { nnz, p, n = p - 1 }
        args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], b: T [n] }
        attrs { reorder: i32, tol: f64 }
        rets { x: T [n] }
        require {
            p >= 1 => "at least one element in indptr",
            (0..=3).contains(&reorder) => "reorder to be 0, 1, 2 or 3",
        }
    }
    cpu = none;
    cuda = {
        "cusolver_csrlsvqr_ffi", queued,
        load(lapax_cuda::sparse::load),
        run(|call, gpu| {
            let a = lapax_cuda::sparse::Csr {
                values: device::input(&call.data),
                indices: device::input(&call.indices),
                indptr: device::input(&call.indptr),
            };
            let (b, x) = (device::input(&call.b), device::output(&call.x));
            lapax_cuda::sparse::csrlsvqr(gpu, call.batch, a, b, x, call.tol, call.reorder)
        }),
    };
}

/// An index that is none is the caller's mistake.
fn bad_index(error: BadIndex) -> xla_ffi::Error {
    let argument = if error.operand == "indptr" { 1 } else { 2 };
    xla_ffi::Error::invalid_argument(format!("argument {argument} {error}"))
}
