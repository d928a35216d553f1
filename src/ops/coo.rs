//! Sparse matrices as lists of entries (COO): products, and to and from dense ones. All row-major.

#[cfg(feature = "cuda")]
use lapax_core::Scalar;
#[cfg(feature = "cuda")]
use lapax_cuda::sparse::{self, Coo};
#[cfg(feature = "cuda")]
use xla_ffi::Bytes;

#[cfg(feature = "cuda")]
use super::{c32, c64, cuda as device, opaque};

super::ops! { coo;
    /// Product of a sparse matrix as a list of entries with a dense vector, y = A·x or y = Aᵀ·x.
    ///
    /// A has the values `data` in the rows `row` and columns `col`, counted from 0, in any order; entries
    /// that repeat add, and those outside of A count for nothing.
    /// With `transpose` the product is with Aᵀ, and x has as many elements as A has rows.
    coo_matvec: CooMatvec<T> over [f32, f64, c32, c64], Row {
        dims { nnz, k, m }
        args { data: T [nnz], row: i32 [nnz], col: i32 [nnz], x: T [k] }
        attrs { transpose: bool }
        rets { y: T [m] }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` in place of `transpose`, and a workspace, which is not used.
        "cusparse_coo_matvec_ffi" or {
            dims { nnz, k, m, w }
            args { data: T [nnz], row: i32 [nnz], col: i32 [nnz], x: T [k] }
            attrs { opaque: &Bytes }
            rets { y: T [m], workspace: i8 [w] }
        },
        captured,
        load(sparse::load_coo_product::<T>),
        run(|call, gpu| {
            let (a, x) = (matrix(&call.data, &call.row, &call.col), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, 1], device::output(&call.y));
            sparse::coo_product(gpu, call.transpose, call.batch, sizes, a, x, y)
        }),
        or(|call, gpu| {
            const FIELDS: usize = opaque::WITH_VECTOR;
            let sizes = [call.m, call.k];
            let transpose = opaque::transpose::<FIELDS>(call.opaque, sizes, call.nnz)?;
            let (a, x) = (matrix(&call.data, &call.row, &call.col), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, 1], device::output(&call.y));
            sparse::coo_product(gpu, transpose, call.batch, sizes, a, x, y)
        }),
    };

    /// Product of a sparse matrix as a list of entries with a dense matrix, Y = A·X or Y = Aᵀ·X.
    ///
    /// A and `transpose` are as for coo_matvec.
    coo_matmat: CooMatmat<T> over [f32, f64, c32, c64], Row {
        dims { nnz, k, m, n }
        args { data: T [nnz], row: i32 [nnz], col: i32 [nnz], x: T [k, n] }
        attrs { transpose: bool }
        rets { y: T [m, n] }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` in place of `transpose`, and a workspace, which is not used.
        "cusparse_coo_matmat_ffi" or {
            dims { nnz, k, m, n, w }
            args { data: T [nnz], row: i32 [nnz], col: i32 [nnz], x: T [k, n] }
            attrs { opaque: &Bytes }
            rets { y: T [m, n], workspace: i8 [w] }
        },
        captured,
        load(sparse::load_coo_product::<T>),
        run(|call, gpu| {
            let (a, x) = (matrix(&call.data, &call.row, &call.col), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, call.n], device::output(&call.y));
            sparse::coo_product(gpu, call.transpose, call.batch, sizes, a, x, y)
        }),
        or(|call, gpu| {
            const FIELDS: usize = opaque::WITH_MATRIX;
            let sizes = [call.m, call.k];
            let transpose = opaque::transpose::<FIELDS>(call.opaque, sizes, call.nnz)?;
            let (a, x) = (matrix(&call.data, &call.row, &call.col), device::input(&call.x));
            let (sizes, y) = ([call.m, call.k, call.n], device::output(&call.y));
            sparse::coo_product(gpu, transpose, call.batch, sizes, a, x, y)
        }),
    };

    /// The dense matrix of a sparse one as a list of entries.
    ///
    /// A is as for coo_matvec.
    coo_todense: CooTodense<T> over [f32, f64, c32, c64], Row {
        dims { nnz, m, n }
        args { data: T [nnz], row: i32 [nnz], col: i32 [nnz] }
        rets { dense: T [m, n] }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` besides, and a workspace, which is not used.
        "cusparse_coo_todense_ffi" or {
            dims { nnz, m, n, w }
            args { data: T [nnz], row: i32 [nnz], col: i32 [nnz] }
            attrs { opaque: &Bytes }
            rets { dense: T [m, n], workspace: i8 [w] }
        },
        captured,
        load(sparse::load_coo_to_dense::<T>),
        run(|call, gpu| {
            let (a, dense) = (matrix(&call.data, &call.row, &call.col), device::output(&call.dense));
            sparse::coo_to_dense(gpu, call.batch, [call.m, call.n], a, dense)
        }),
        or(|call, gpu| {
            opaque::matrix(call.opaque, [call.m, call.n], call.nnz)?;
            let (a, dense) = (matrix(&call.data, &call.row, &call.col), device::output(&call.dense));
            sparse::coo_to_dense(gpu, call.batch, [call.m, call.n], a, dense)
        }),
    };

    /// The sparse matrix as a list of entries of a dense one: its elements that are not zero.
    ///
    /// They are taken row by row, nnz at most. Places that are left get zeros in row 0 and column 0.
    coo_fromdense: CooFromdense<T> over [f32, f64, c32, c64], Row {
        dims { m, n, nnz }
        args { dense: T [m, n] }
        rets { data: T [nnz], row: i32 [nnz], col: i32 [nnz] }
    }
    cpu = none;
    cuda = {
        /// jaxlib's call has `opaque` besides, and a workspace, which is not used.
        "cusparse_coo_fromdense_ffi" or {
            dims { m, n, nnz, w }
            args { dense: T [m, n] }
            attrs { opaque: &Bytes }
            rets { data: T [nnz], row: i32 [nnz], col: i32 [nnz], workspace: i8 [w] }
        },
        queued,
        load(sparse::load_coo_from_dense::<T>),
        run(|call, gpu| {
            let (dense, data) = (device::input(&call.dense), device::output(&call.data));
            let (row, col) = (device::output(&call.row), device::output(&call.col));
            let shape = [call.m, call.n];
            sparse::coo_from_dense(gpu, call.batch, shape, dense, data, row, col)
        }),
        or(|call, gpu| {
            opaque::matrix(call.opaque, [call.m, call.n], call.nnz)?;
            let (dense, data) = (device::input(&call.dense), device::output(&call.data));
            let (row, col) = (device::output(&call.row), device::output(&call.col));
            let shape = [call.m, call.n];
            sparse::coo_from_dense(gpu, call.batch, shape, dense, data, row, col)
        }),
    };
}

/// A of a call's operands.
#[cfg(feature = "cuda")]
fn matrix<T>(
    data: &xla_ffi::Device<'_, T>,
    row: &xla_ffi::Device<'_, i32>,
    col: &xla_ffi::Device<'_, i32>,
) -> Coo<T> {
    let (values, rows) = (device::input(data), device::input(row));
    Coo { values, rows, columns: device::input(col) }
}
