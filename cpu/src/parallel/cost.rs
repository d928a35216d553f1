//! How long products take, by which work is shared out.

use crate::Scalar;

/// An estimate of the time that one matrix takes on one core, for spreading a batch over threads.
///
/// `products` counts multiplications of two scalars. Around n = 64, between the cost of a call and
/// the speed of a large matrix product, all kernels were measured to do about 6 real ones per
/// nanosecond with AVX-512.
pub(crate) fn nanoseconds<T: Scalar>(products: usize) -> usize {
    const CALL: usize = 50;
    const REAL_PRODUCTS: usize = 6;
    let real_products = products.saturating_mul(if T::IS_COMPLEX { 4 } else { 1 });
    CALL + real_products / REAL_PRODUCTS
}
