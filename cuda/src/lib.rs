//! lapax's linear algebra on NVIDIA GPUs: operations on a device's memory, queued on a stream.
//!
//! Own kernels (`kernels/*.cu`, contracts above each) are compiled by nvcc when this crate is, and
//! loaded through the driver. cuSOLVER, cuBLAS and cuSPARSE are opened at run time, by name, from
//! NVIDIA's wheels that JAX uses. Nothing is linked: without a GPU, a driver or a library, a call is an
//! [`Error`] that says which is missing.
//!
//! Every operation takes the same first arguments: the [`Gpu`], then sizes; operands are addresses of
//! the device ([`memory`]), batches of contiguous matrices, column-major unless it says otherwise.
//! Work is queued, not waited for, where it does not say otherwise. Nothing here knows XLA.

pub mod choices;
pub mod cholesky;
mod codes;
pub mod definite;
pub mod driver;
pub mod eig;
pub mod eigh;
mod error;
mod gpu;
mod handle;
pub mod hermitian;
pub mod jacobi;
mod library;
pub mod lu;
pub mod memory;
mod module;
pub mod orthogonal;
pub mod pivoted;
pub mod products;
pub mod qr;
mod rows;
mod scalar;
pub mod schur;
mod small;
pub mod solve;
pub mod sparse;
mod staging;
pub mod svd;
pub mod triangular;
pub mod tridiagonal;

pub use error::{Error, Kind};
pub use gpu::{Gpu, Lent, Memory};
pub use library::{LIBRARIES, Library};
pub use module::{Kernel, MODULES, Module};
pub use scalar::{Plain, Scalar};
pub use staging::Staging;
