//! Sparse matrices in compressed rows (CSR): products, and to and from dense ones. All row-major.

#[cfg(feature = "cuda")]
use lapax_core::Scalar;
#[cfg(feature = "cuda")]
use lapax_cuda::sparse::{self, Csr};
#[cfg(feature = "cuda")]
use xla_ffi::Bytes;

#[cfg(feature = "cuda")]
use super::{c32, c64, cuda as device, opaque};

super::ops! { csr;
    /// Product of a sparse matrix in compressed rows with a dense vector, y = A·x or y = Aᵀ·x.
    ///
    /// Row i of A has the values `data[indptr[i]..indptr[i + 1]]` in the columns
    /// `indices[indptr[i]..indptr[i + 1]]`, counted from 0, in any order; columns that repeat add. An
    /// index that is no column, and what `indptr` says beyond the values, count for nothing.
    /// With `transpose` the product is with Aᵀ, and x has as many elements as A has rows.
    csr_matvec: CsrMatvec<T> over [f32, f64, c32, c64], Row {
        dims { nnz, p, k, m }
        args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], x: T [k] }
        attrs { transpose: bool }
        rets { y: T [m] }
        require {
            (if transpose { k } else { m }) == p - 1
                => "one element more in indptr than rows of A",
        }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` in place of `transpose`, and a workspace, which is not used.
        "cusparse_csr_matvec_ffi" or {
            dims { nnz, p, k, m, w }
            args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], x: T [k] }
            attrs { opaque: &Bytes }
            rets { y: T [m], workspace: i8 [w] }
            require { p >= 1 => "at least one element in indptr" }
        },
        captured,
        load(sparse::load_csr_product::<T>),
        run(|call, gpu| {
            let (a, x) = (matrix(&call.data, &call.indices, &call.indptr), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, 1], device::output(&call.y));
            sparse::csr_product(gpu, call.transpose, call.batch, sizes, a, x, y)
        }),
        or(|call, gpu| {
            const FIELDS: usize = opaque::WITH_VECTOR;
            let sizes = [call.m, call.k];
            let transpose = opaque::transpose::<FIELDS>(call.opaque, sizes, call.nnz)?;
            let (a, x) = (matrix(&call.data, &call.indices, &call.indptr), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, 1], device::output(&call.y));
            sparse::csr_product(gpu, transpose, call.batch, sizes, a, x, y)
        }),
    };

    /// Product of a sparse matrix in compressed rows with a dense matrix, Y = A·X or Y = Aᵀ·X.
    ///
    /// A and `transpose` are as for csr_matvec.
    csr_matmat: CsrMatmat<T> over [f32, f64, c32, c64], Row {
        dims { nnz, p, k, m, n }
        args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], x: T [k, n] }
        attrs { transpose: bool }
        rets { y: T [m, n] }
        require {
            (if transpose { k } else { m }) == p - 1
                => "one element more in indptr than rows of A",
        }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` in place of `transpose`, and a workspace, which is not used.
        "cusparse_csr_matmat_ffi" or {
            dims { nnz, p, k, m, n, w }
            args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], x: T [k, n] }
            attrs { opaque: &Bytes }
            rets { y: T [m, n], workspace: i8 [w] }
            require { p >= 1 => "at least one element in indptr" }
        },
        captured,
        load(sparse::load_csr_product::<T>),
        run(|call, gpu| {
            let (a, x) = (matrix(&call.data, &call.indices, &call.indptr), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, call.n], device::output(&call.y));
            sparse::csr_product(gpu, call.transpose, call.batch, sizes, a, x, y)
        }),
        or(|call, gpu| {
            const FIELDS: usize = opaque::WITH_MATRIX;
            let sizes = [call.m, call.k];
            let transpose = opaque::transpose::<FIELDS>(call.opaque, sizes, call.nnz)?;
            let (a, x) = (matrix(&call.data, &call.indices, &call.indptr), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, call.n], device::output(&call.y));
            sparse::csr_product(gpu, transpose, call.batch, sizes, a, x, y)
        }),
    };

    /// The dense matrix of a sparse one in compressed rows.
    ///
    /// A is as for csr_matvec.
    csr_todense: CsrTodense<T> over [f32, f64, c32, c64], Row {
        dims { nnz, p, n, rows = p - 1 }
        args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p] }
        rets { dense: T [rows, n] }
        require { p >= 1 => "at least one element in indptr" }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` besides, and a workspace, which is not used.
        "cusparse_csr_todense_ffi" or {
            dims { nnz, p, n, rows = p - 1, w }
            args { data: T [nnz], indices: i32 [nnz], indptr: i32 [p] }
            attrs { opaque: &Bytes }
            rets { dense: T [rows, n], workspace: i8 [w] }
            require { p >= 1 => "at least one element in indptr" }
        },
        captured,
        load(sparse::load_csr_to_dense::<T>),
        run(|call, gpu| {
            let a = matrix(&call.data, &call.indices, &call.indptr);
            let (shape, dense) = ([call.rows, call.n], device::output(&call.dense));
            sparse::csr_to_dense(gpu, call.batch, shape, a, dense)
        }),
        or(|call, gpu| {
            opaque::matrix(call.opaque, [call.rows, call.n], call.nnz)?;
            let a = matrix(&call.data, &call.indices, &call.indptr);
            let (shape, dense) = ([call.rows, call.n], device::output(&call.dense));
            sparse::csr_to_dense(gpu, call.batch, shape, a, dense)
        }),
    };

    /// The sparse matrix in compressed rows of a dense one: its elements that are not zero.
    ///
    /// They are taken row by row, nnz at most. Places that are left get zeros in column 0; `indptr` counts
    /// what was taken.
    csr_fromdense: CsrFromdense<T> over [f32, f64, c32, c64], Row {
        dims { m, n, nnz, p = m + 1 }
        args { dense: T [m, n] }
        rets { data: T [nnz], indices: i32 [nnz], indptr: i32 [p] }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` besides, and a workspace, which is not used.
        "cusparse_csr_fromdense_ffi" or {
            dims { m, n, nnz, p = m + 1, w }
            args { dense: T [m, n] }
            attrs { opaque: &Bytes }
            rets { data: T [nnz], indices: i32 [nnz], indptr: i32 [p], workspace: i8 [w] }
        },
        captured,
        load(sparse::load_csr_from_dense::<T>),
        run(|call, gpu| {
            let (dense, data) = (device::input(&call.dense), device::output(&call.data));
            let (indices, indptr) = (device::output(&call.indices), device::output(&call.indptr));
            let shape = [call.m, call.n];
            sparse::csr_from_dense(gpu, call.batch, shape, dense, data, indices, indptr)
        }),
        or(|call, gpu| {
            opaque::matrix(call.opaque, [call.m, call.n], call.nnz)?;
            let (dense, data) = (device::input(&call.dense), device::output(&call.data));
            let (indices, indptr) = (device::output(&call.indices), device::output(&call.indptr));
            let shape = [call.m, call.n];
            sparse::csr_from_dense(gpu, call.batch, shape, dense, data, indices, indptr)
        }),
    };
}

/// A of a call's operands.
#[cfg(feature = "cuda")]
fn matrix<T>(
    data: &xla_ffi::Device<'_, T>,
    indices: &xla_ffi::Device<'_, i32>,
    indptr: &xla_ffi::Device<'_, i32>,
) -> Csr<T> {
    let (values, indices) = (device::input(data), device::input(indices));
    Csr { values, indices, indptr: device::input(indptr) }
}
