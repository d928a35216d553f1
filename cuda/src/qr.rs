//! QR factorisation A = Q·R with Q as Householder reflectors, and the use of such a Q.

use std::ffi::{CStr, c_int};

use lapax_core::Side;

use crate::Scalar;
use crate::choices::{Count, largest};
use crate::codes::{ADJOINT, PLAIN, TRANSPOSE, of_type, side_mode};
use crate::error::{Error, narrow, product};
use crate::gpu::{Gpu, Launch};
use crate::handle::{DENSE, parameters};
use crate::memory::{InOut, Input, Output};
use crate::module::kernel;
use crate::small::{self, THREADS_OF_A_VECTOR};

/// The largest order of a Q that an own kernel applies: its vectors are in a warp's registers.
const KERNEL_ORDER: usize = 256;

/// Factors each matrix of a batch as A = Q·R.
///
/// `a` is m × n and becomes R and the reflectors, as xGEQRF leaves them; `tau` has min(m, n) elements.
/// A batch of matrices that fit into a block's shared memory is one launch of an own kernel; others go
/// to cuSOLVER one by one.
///
/// # Errors
/// Where a size exceeds what a library takes, scratch or a library is not to be had, or the device
/// fails.
pub fn geqrf<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    m: usize,
    n: usize,
    a: InOut<T>,
    tau: Output<T>,
) -> Result<(), Error> {
    let k = m.min(n);
    if batch == 0 || k == 0 {
        return Ok(());
    }
    let a = gpu.initialized(a)?;
    let kernel = kernel!(T, "factor", "geqrf");
    if let Some(launch) =
        small::plan::<T>(gpu, "geqrf", batch, (m, n), THREADS_OF_A_VECTOR, kernel)?
    {
        let (batch, m, n): (i64, i32, i32) =
            (narrow("batch", batch)?, narrow("m", m)?, narrow("n", n)?);
        // SAFETY: the kernel's parameters; the operands have batch·m·n and batch·k elements.
        return unsafe { gpu.launch(&launch, (a.as_ptr(), tau.as_ptr(), batch, m, n)) };
    }
    let (size, rows, columns): (usize, i64, i64) =
        (product("a", &[m, n])?, narrow("m", m)?, narrow("n", n)?);
    let (dense, parameters) = (gpu.handle(&DENSE)?, parameters()?);
    let (solver, first, factors) = (dense.raw(), a.as_ptr(), tau.as_ptr());
    let mut space = gpu.workspace(|device, host| {
        // SAFETY: the function's arguments; a and tau are on the device.
        unsafe {
            dense.call(
                c"cusolverDnXgeqrf_bufferSize",
                (
                    solver,
                    parameters,
                    rows,
                    columns,
                    T::TYPE,
                    first,
                    rows,
                    T::TYPE,
                    factors,
                    T::TYPE,
                    device,
                    host,
                ),
            )
        }
    })?;
    let (on_device, device_bytes, on_host, host_bytes) = space.arguments();
    // Only an argument out of range makes it other than zero.
    let info = gpu.scratch::<c_int>(1)?;
    for index in 0..batch {
        let (a, tau) = (a.item(index, size), tau.item(index, k));
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            dense.call(
                c"cusolverDnXgeqrf",
                (
                    solver,
                    parameters,
                    rows,
                    columns,
                    T::TYPE,
                    a,
                    rows,
                    T::TYPE,
                    tau,
                    T::TYPE,
                    on_device,
                    device_bytes,
                    on_host,
                    host_bytes,
                    info.as_ptr(),
                ),
            )?;
        }
    }
    Ok(())
}

/// Loads what [`geqrf`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_geqrf<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "factor", "geqrf"))?;
    gpu.prepare(&DENSE)
}

/// The first n columns of Q = H₁·H₂⋯H_t from its reflectors.
///
/// `a` is m × n, m ≥ n ≥ t, with the reflectors in its first t columns, and becomes Q. With m up to
/// 256 and reflectors that fit into a block's shared memory, one launch of an own kernel; others go to
/// cuSOLVER one by one.
///
/// # Errors
/// As [`geqrf`].
pub fn orgqr<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n, t): (usize, usize, usize),
    a: InOut<T>,
    tau: Input<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSorgqr_bufferSize",
            c"cusolverDnDorgqr_bufferSize",
            c"cusolverDnCungqr_bufferSize",
            c"cusolverDnZungqr_bufferSize",
        ],
        [c"cusolverDnSorgqr", c"cusolverDnDorgqr", c"cusolverDnCungqr", c"cusolverDnZungqr"],
    ];
    if batch == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    let a = gpu.initialized(a)?;
    let kernel = kernel!(T, "householder", "orgqr");
    if let Some(launch) = kernel_plan::<T>(gpu, "orgqr", batch, (m, t, n), kernel)? {
        let (batch, m): (i64, i32) = (narrow("batch", batch)?, narrow("m", m)?);
        let (n, t): (i32, i32) = (narrow("n", n)?, narrow("t", t)?);
        // SAFETY: the kernel's parameters; the operands have batch·m·n and batch·t elements.
        return unsafe { gpu.launch(&launch, (a.as_ptr(), tau.as_ptr(), batch, m, n, t)) };
    }
    let size = product("a", &[m, n])?;
    let (rows, columns): (c_int, c_int) = (narrow("m", m)?, narrow("n", n)?);
    let reflectors: c_int = narrow("t", t)?;
    let dense = gpu.handle(&DENSE)?;
    let (solver, mut elements) = (dense.raw(), 0);
    let (first, factors) = (a.as_ptr(), tau.as_ptr());
    // SAFETY: the function's arguments; a and tau are on the device.
    unsafe {
        let list = (solver, rows, columns, reflectors, first, rows, factors, &raw mut elements);
        dense.call(of_type::<T>(FUNCTIONS[0]), list)?;
    }
    let work = gpu.scratch::<T>(elements_of(elements))?;
    let info = gpu.scratch::<c_int>(1)?;
    for index in 0..batch {
        let (a, tau) = (a.item(index, size), tau.item(index, t));
        let (work, info) = (work.as_ptr(), info.as_ptr());
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            let list = (solver, rows, columns, reflectors, a, rows, tau, work, elements, info);
            dense.call(of_type::<T>(FUNCTIONS[1]), list)?;
        }
    }
    Ok(())
}

/// Loads what [`orgqr`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_orgqr<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "householder", "orgqr"))?;
    gpu.prepare(&DENSE)
}

/// The sizes of a product with Q: C is m × n, the reflectors' matrix has p columns, t of which count.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of problems.
    pub batch: usize,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of the matrix that holds the reflectors.
    pub p: usize,
    /// Number of reflectors.
    pub t: usize,
}

/// A product with Q = H₁·H₂⋯H_t: Q·C or C·Q, or with Qᴴ for `adjoint`.
///
/// The reflectors are in the first t columns of `a`, whose rows are as many as Q's; `c` becomes the
/// product. With Q of order up to 256 and reflectors that fit into a block's shared memory, one launch
/// of an own kernel; others go to cuSOLVER one by one.
///
/// # Errors
/// As [`geqrf`].
pub fn ormqr<T: Scalar>(
    gpu: &Gpu<'_>,
    side: Side,
    adjoint: bool,
    sizes: Sizes,
    a: Input<T>,
    tau: Input<T>,
    c: InOut<T>,
) -> Result<(), Error> {
    let Sizes { batch, m, n, p, t } = sizes;
    if batch == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    let (order, columns) = if side == Side::Left { (m, n) } else { (n, m) };
    let c = gpu.initialized(c)?;
    if t == 0 {
        return Ok(());
    }
    let kernel = kernel!(T, "householder", "ormqr");
    if let Some(launch) = kernel_plan::<T>(gpu, "ormqr", batch, (order, t, columns), kernel)? {
        let (a, tau, c) = (a.as_ptr(), tau.as_ptr(), c.as_ptr());
        let (left, adjoint) = (i32::from(side == Side::Left), i32::from(adjoint));
        let (batch, m, n): (i64, i32, i32) =
            (narrow("batch", batch)?, narrow("m", m)?, narrow("n", n)?);
        let (p, t): (i32, i32) = (narrow("p", p)?, narrow("t", t)?);
        // SAFETY: the kernel's parameters; the operands have batch times order·p, t and m·n elements.
        return unsafe { gpu.launch(&launch, (a, tau, c, batch, m, n, p, t, left, adjoint)) };
    }
    apply_one_by_one(gpu, side, adjoint, sizes, a, tau, c)
}

fn apply_one_by_one<T: Scalar>(
    gpu: &Gpu<'_>,
    side: Side,
    adjoint: bool,
    Sizes { batch, m, n, p, t }: Sizes,
    a: Input<T>,
    tau: Input<T>,
    c: Output<T>,
) -> Result<(), Error> {
    const FUNCTIONS: [[&CStr; 4]; 2] = [
        [
            c"cusolverDnSormqr_bufferSize",
            c"cusolverDnDormqr_bufferSize",
            c"cusolverDnCunmqr_bufferSize",
            c"cusolverDnZunmqr_bufferSize",
        ],
        [c"cusolverDnSormqr", c"cusolverDnDormqr", c"cusolverDnCunmqr", c"cusolverDnZunmqr"],
    ];
    let order = if side == Side::Left { m } else { n };
    let (size, a_size) = (product("c", &[m, n])?, product("a", &[order, p])?);
    let (rows, columns): (c_int, c_int) = (narrow("m", m)?, narrow("n", n)?);
    let (reflectors, lda): (c_int, c_int) = (narrow("t", t)?, narrow("rows of a", order)?);
    let operation = match (adjoint, T::IS_COMPLEX) {
        (false, _) => PLAIN,
        (true, false) => TRANSPOSE,
        (true, true) => ADJOINT,
    };
    let dense = gpu.handle(&DENSE)?;
    let (solver, side, mut elements) = (dense.raw(), side_mode(side), 0);
    let (first, factors, product) = (a.as_ptr(), tau.as_ptr(), c.as_ptr());
    // SAFETY: the function's arguments; the operands are on the device.
    unsafe {
        let list = (
            solver,
            side,
            operation,
            rows,
            columns,
            reflectors,
            first,
            lda,
            factors,
            product,
            rows,
            &raw mut elements,
        );
        dense.call(of_type::<T>(FUNCTIONS[0]), list)?;
    }
    let work = gpu.scratch::<T>(elements_of(elements))?;
    let info = gpu.scratch::<c_int>(1)?;
    for index in 0..batch {
        let (a, tau, c) = (a.item(index, a_size), tau.item(index, t), c.item(index, size));
        let (work, info) = (work.as_ptr(), info.as_ptr());
        // SAFETY: the function's arguments; the matrices are on the device, batch of each.
        unsafe {
            let list = (
                solver, side, operation, rows, columns, reflectors, a, lda, tau, c, rows, work,
                elements, info,
            );
            dense.call(of_type::<T>(FUNCTIONS[1]), list)?;
        }
    }
    Ok(())
}

/// Loads what [`ormqr`] launches, and makes its handle.
///
/// # Errors
/// As there.
pub fn load_ormqr<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel!(T, "householder", "ormqr"))?;
    gpu.prepare(&DENSE)
}

/// The launch that has `t` reflectors of this order in shared memory, where that can be.
fn kernel_plan<T: Scalar>(
    gpu: &Gpu<'_>,
    op: &str,
    batch: usize,
    (order, t, columns): (usize, usize, usize),
    kernel: crate::Kernel,
) -> Result<Option<Launch>, Error> {
    if order > KERNEL_ORDER.min(largest::<T>(gpu, op, Count::of(batch))?) {
        return Ok(None);
    }
    small::shared::<T>(gpu, batch, (order, t), columns * THREADS_OF_A_VECTOR, kernel)
}

/// Elements of a workspace as a 32-bit function of cuSOLVER asks for them.
pub(crate) fn elements_of(elements: c_int) -> usize {
    usize::try_from(elements).unwrap_or(0)
}
