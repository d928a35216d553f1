//! Dense products of a matrix with its transpose.

#[cfg(feature = "cuda")]
use super::cuda as device;
#[cfg(feature = "cuda")]
use super::{c32, c64};

/// The order of the product.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA has the operation"))]
fn order(transpose: bool, rows: i64, columns: i64) -> i64 {
    if transpose { columns } else { rows }
}

super::ops! { products;
    /// Product of a row-major matrix with its transpose, alpha·A·Aᵀ + beta·C, or alpha·Aᵀ·A + beta·C.
    ///
    /// The latter with `transpose`. Only the lower triangle of `product` is computed; the other one
    /// holds what `c` has there. Complex products are plain, without conjugation. `alpha` and `beta` are
    /// one number each, whatever the batch.
    syrk: Syrk<T> over [f32, f64, c32, c64], Row {
        dims { rows, columns, n = order(transpose, rows, columns) }
        args { a: T [rows, columns], c: T [n, n], alpha: T, beta: T }
        attrs { transpose: bool }
        rets { product: T [n, n] = c }
    }
    cpu = none;
    cuda = {
        "cusolver_syrk_ffi", queued,
        load(lapax_cuda::products::load::<T>),
        run(|call, gpu| {
            let (a, c) = (device::input(&call.a), device::in_out(&call.product));
            let (alpha, beta) = (device::input(&call.alpha), device::input(&call.beta));
            let (transpose, batch, sizes) = (call.transpose, call.batch, (call.rows, call.columns));
            lapax_cuda::products::syrk(gpu, transpose, batch, sizes, a, c, alpha, beta)
        }),
    };
}
