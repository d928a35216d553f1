//! Linear-algebra kernels of lapax for the CPU, on slices.
//!
//! A matrix is column-major and contiguous unless its function says otherwise; a batch is such
//! matrices one after another. `batch` is an argument because an empty matrix leaves no trace of it
//! in a slice. Threads are the caller's; a matrix is worked on by one of them, so that results do
//! not depend on how many there are. The caller has set IEEE floating-point mode.
#![forbid(unsafe_code)]

pub mod cholesky;
pub mod lu;
mod scalar;
mod simd;
mod substitution;
pub mod triangular;
mod update;

pub use lapax_core::{Diag, Error, InOut, Real, Serial, Side, Threads, Trans, Uplo};
pub use scalar::Scalar;
