//! Sparse matrices: systems, products, and to and from dense ones.

mod dense;
mod products;

pub use dense::{
    coo_from_dense, coo_to_dense, csr_from_dense, csr_to_dense, load_coo_from_dense,
    load_coo_to_dense, load_csr_from_dense, load_csr_to_dense,
};
pub use products::{coo_product, csr_product, load_coo_product, load_csr_product};

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use lapax_core::Real as _;

use crate::Scalar;
use crate::codes::of_type;
use crate::error::{Error, Kind, narrow};
use crate::gpu::Gpu;
use crate::handle::SPARSE_SOLVER;
use crate::library::CUSPARSE;
use crate::memory::{Input, Output};

/// A matrix in compressed rows, counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Csr<T> {
    /// The values.
    pub values: Input<T>,
    /// The columns of the values.
    pub indices: Input<i32>,
    /// Where each row begins in both, and where the last one ends.
    pub indptr: Input<i32>,
}

/// A matrix as a list of entries, in any order, counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Coo<T> {
    /// The values.
    pub values: Input<T>,
    /// The rows of the values.
    pub rows: Input<i32>,
    /// The columns of the values.
    pub columns: Input<i32>,
}

macro_rules! problem {
    ($matrix:ident { $($field:ident),* }) => {
        impl<T> $matrix<T> {
            /// Matrix `index` of a batch of so many.
            pub(crate) fn of(self, index: usize, batch: usize) -> Self {
                Self { $($field: self.$field.of(index, batch)),* }
            }
        }
    };
}

problem!(Csr { values, indices, indptr });
problem!(Coo { values, rows, columns });

/// Solves A·x = b for each square A of a batch by a sparse QR factorisation (cusolverSpXcsrlsvqr).
/// Waits for the device.
///
/// `reorder` is how columns are ordered before: 0 not at all, 1 to 3 by symrcm, symamd, METIS.
///
/// # Errors
/// INVALID_ARGUMENT where `reorder` is none of these, or A is singular to `tolerance`; else where a
/// library is not to be had, or the device fails.
pub fn csrlsvqr<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    a: Csr<T>,
    b: Input<T>,
    x: Output<T>,
    tolerance: f64,
    reorder: i32,
) -> Result<(), Error> {
    if !(0..=3).contains(&reorder) {
        let text = format!("attribute `reorder`: expected 0, 1, 2 or 3, got {reorder}");
        return Err(Error::new(Kind::InvalidArgument, text));
    }
    if x.is_empty() {
        return Ok(());
    }
    for index in 0..batch {
        let (b, x) = (b.of(index, batch), x.of(index, batch));
        solve(gpu, a.of(index, batch), b, x, tolerance, reorder)?;
    }
    Ok(())
}

fn solve<T: Scalar>(
    gpu: &Gpu<'_>,
    a: Csr<T>,
    b: Input<T>,
    x: Output<T>,
    tolerance: f64,
    reorder: i32,
) -> Result<(), Error> {
    const FUNCTIONS: [&CStr; 4] = [
        c"cusolverSpScsrlsvqr",
        c"cusolverSpDcsrlsvqr",
        c"cusolverSpCcsrlsvqr",
        c"cusolverSpZcsrlsvqr",
    ];
    let (n, nnz): (c_int, c_int) = (narrow("n", x.len())?, narrow("nnz", a.values.len())?);
    let solver = gpu.handle(&SPARSE_SOLVER)?;
    let (raw, description) = (solver.raw(), description()?);
    let (values, indices) = (a.values.as_ptr(), a.indices.as_ptr());
    let (indptr, b, x) = (a.indptr.as_ptr(), b.as_ptr(), x.as_ptr());
    let tolerance = T::Real::from_f64(tolerance);
    let mut singular: c_int = -1;
    // SAFETY: the function's arguments; the operands are on the device, and it waits for the answer.
    unsafe {
        let at = &raw mut singular;
        let list =
            (raw, n, nnz, description, values, indptr, indices, b, tolerance, reorder, x, at);
        solver.call(of_type::<T>(FUNCTIONS), list)?;
    }
    if singular < 0 {
        return Ok(());
    }
    let text =
        format!("the matrix is singular: R({singular}, {singular}) of its QR factorisation is 0");
    Err(Error::new(Kind::InvalidArgument, text))
}

/// A general matrix that counts from 0: cuSPARSE's default.
fn description() -> Result<*mut c_void, Error> {
    static DESCRIPTION: OnceLock<Result<usize, Error>> = OnceLock::new();
    let made = DESCRIPTION.get_or_init(|| {
        let mut description: *mut c_void = null_mut();
        // SAFETY: takes the place of a description.
        unsafe { CUSPARSE.call(c"cusparseCreateMatDescr", (&raw mut description,))? };
        Ok(description.expose_provenance())
    });
    made.clone().map(std::ptr::with_exposed_provenance_mut)
}

/// Makes the handle of [`csrlsvqr`].
///
/// # Errors
/// As there.
pub fn load(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.prepare(&SPARSE_SOLVER)
}
