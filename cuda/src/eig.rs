//! Eigenvalues and right eigenvectors of general matrices, A·x = w·x.

use lapax_core::{Vectors, index_fits_i32};

use crate::Scalar;
use crate::codes::eigen_mode;
use crate::driver;
use crate::error::{Error, narrow, product};
use crate::gpu::Gpu;
use crate::handle::{DENSE, parameters};
use crate::memory::{Input, Output};

/// The results of a decomposition.
#[derive(Debug)]
pub struct Eigen<T: Scalar> {
    /// Scratch, n × n.
    pub scratch: Output<T>,
    /// For left eigenvectors, n × n: zeros, as cuSOLVER has none.
    pub left: Output<T>,
    /// The eigenvalues, n complex numbers.
    pub w: Output<T::Complex>,
    /// The right eigenvectors; of a real matrix, those of a conjugate pair are x ± i·y with x and y in
    /// two adjacent columns; zeros where they are not asked for.
    pub right: Output<T>,
    /// 0, or i > 0 where only the eigenvalues after the i-th were found.
    pub info: Output<i32>,
}

/// Eigenvalues, and right eigenvectors if asked for, of each matrix of a batch. cuSOLVER, one by one.
///
/// # Errors
/// Where n exceeds `i32`, scratch or a library is not to be had, which includes cuSOLVER before 11.7.1,
/// or the device fails.
pub fn geev<T: Scalar>(
    gpu: &Gpu<'_>,
    vectors: Vectors,
    batch: usize,
    n: usize,
    a: Input<T>,
    Eigen { scratch, left, w, right, info }: Eigen<T>,
) -> Result<(), Error> {
    index_fits_i32("n", n)?;
    if batch == 0 {
        return Ok(());
    }
    if n == 0 {
        return driver::fill(gpu.stream(), info.as_ptr().cast(), 0, info.len() * size_of::<i32>());
    }
    let (size, order): (usize, i64) = (product("a", &[n, n])?, narrow("n", n)?);
    let (to, from) = (scratch.as_ptr().cast(), a.as_ptr().cast());
    driver::copy(gpu.stream(), to, from, size_of::<T>() * a.len())?;
    for (unwanted, vectors) in [(left, Vectors::None), (right, vectors)] {
        if vectors == Vectors::None {
            let bytes = size_of::<T>() * unwanted.len();
            driver::fill(gpu.stream(), unwanted.as_ptr().cast(), 0, bytes)?;
        }
    }
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let (solver, none, mode) = (dense.raw(), eigen_mode(Vectors::None), eigen_mode(vectors));
    let complex = <T::Complex as lapax_core::Scalar>::IS_COMPLEX;
    debug_assert!(complex, "w is complex for every scalar");
    let w_type = complex_type::<T>();
    let nothing: *mut T = std::ptr::null_mut();
    let mut space = gpu.workspace(|device, host| {
        let (a, w, right) = (scratch.as_ptr(), w.as_ptr(), right.as_ptr());
        // SAFETY: the function's arguments; the operands are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXgeev_bufferSize",
                (
                    solver,
                    parameters,
                    none,
                    mode,
                    order,
                    T::TYPE,
                    a,
                    order,
                    w_type,
                    w,
                    T::TYPE,
                    nothing,
                    order,
                    T::TYPE,
                    right,
                    order,
                    T::TYPE,
                    device,
                    host,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    for index in 0..batch {
        let (a, w) = (scratch.item(index, size), w.item(index, n));
        let (right, info) = (right.item(index, size), info.item(index, 1));
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXgeev",
                (
                    solver,
                    parameters,
                    none,
                    mode,
                    order,
                    T::TYPE,
                    a,
                    order,
                    w_type,
                    w,
                    T::TYPE,
                    nothing,
                    order,
                    T::TYPE,
                    right,
                    order,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info,
                ),
            )?;
        }
    }
    Ok(())
}

/// CUDA's code for complex numbers of T's precision.
fn complex_type<T: Scalar>() -> cudarc::cusolver::sys::cudaDataType_t {
    use cudarc::cusolver::sys::cudaDataType_t as Type;
    if size_of::<T::Real>() == size_of::<f32>() { Type::CUDA_C_32F } else { Type::CUDA_C_64F }
}

/// Makes the handle of [`geev`].
///
/// # Errors
/// As there.
pub fn load(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.prepare(&DENSE)
}
