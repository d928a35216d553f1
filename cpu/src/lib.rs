//! Linear-algebra kernels of lapax for the CPU, on slices.
//!
//! A matrix is column-major and contiguous unless its function says otherwise; a batch is such
//! matrices one after another. `batch` is an argument because an empty matrix leaves no trace of it
//! in a slice. Threads are the caller's; a matrix is worked on by one of them, so that results do
//! not depend on how many there are. The caller has set IEEE floating-point mode.
//!
//! The rooms, from the bottom up; each knows those before it, which `rooms.py` checks:
//!
//! - `simd`: scalars, and the registers that hold them. `parallel`: who works on what. `matrix`: how a matrix
//!   lies in memory, and how it is turned and cut. `blas`: products, reflections, substitutions.
//! - Kernels for all families: `lanes`, a small matrix in each lane of the registers; `registers`, one small
//!   matrix, whose neighbours a register holds; `unblocked`, one with nothing prepared.
//! - The families, from `triangular` to `eig`: in each, `mod.rs` has the routines, `route.rs` says which kernel
//!   serves, `blocked.rs` and `single.rs` work on one matrix, `parallel.rs` on one by all threads, and
//!   `row_major.rs` on matrices by rows through routines for columns, lapax's or a LAPACK's: such a matrix is its
//!   transpose, and is transposed in memory where an operation on Aᵀ is not one on A. `divide` and `two_stage`
//!   are shared by `eigh` and `svd`.
//! - `lapack`: the same routines on a LAPACK library. `testing` and `trials`: tests of what is not public.
#![deny(unsafe_code)]

#[cfg(feature = "testing")]
#[macro_use]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub mod testing;

pub mod banded;
mod blas;
pub mod block_tridiagonal;
pub mod cholesky;
pub mod definite;
pub mod determinant;
mod divide;
pub mod eig;
pub mod eigh;
pub mod functions;
pub mod generalised_schur;
pub mod hessenberg;
mod lanes;
#[cfg(feature = "lapack")]
pub mod lapack;
pub mod ldl;
pub mod lu;
mod matrix;
mod parallel;
pub mod qr;
mod registers;
pub mod routes;
pub mod schur;
mod simd;
pub mod solve;
pub mod sparse;
pub mod svd;
#[cfg(feature = "testing")]
#[allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#[allow(clippy::cast_precision_loss, reason = "sizes here are small")]
pub mod trials;
pub mod triangular;
pub mod tridiagonal;
mod two_stage;
mod unblocked;

pub use crate::simd::arch::{LEVELS, unfit};
pub use crate::simd::scalar::Scalar;
pub use lapax_core::{
    Diag, Error, InOut, Real, Serial, Side, SingularVectors, Spawned, Threads, Trans, Uplo, Vectors,
};
