//! Linear-algebra kernels of lapax for the CPU, on slices.
//!
//! A matrix is column-major and contiguous unless its function says otherwise; a batch is such
//! matrices one after another. `batch` is an argument because an empty matrix leaves no trace of it
//! in a slice. Threads are the caller's; a matrix is worked on by one of them, so that results do
//! not depend on how many there are. The caller has set IEEE floating-point mode.
#![deny(unsafe_code)]

#[cfg(feature = "testing")]
#[macro_use]
pub mod testing;

mod arch;
mod balance;
mod bidiagonal_qr;
mod bidiagonal_svd;
mod bidiagonalize;
mod bulge;
pub mod cholesky;
mod cholesky_qr;
mod claims;
mod columns;
pub mod definite;
mod deflation;
pub mod determinant;
pub mod eig;
mod eigenvectors;
pub mod eigh;
mod few;
mod few_qr;
mod francis;
pub mod hessenberg;
mod hessenberg_columns;
mod householder;
mod implicit_ql;
mod inverse;
mod lanes;
#[cfg(feature = "lapack")]
pub mod lapack;
pub mod lu;
mod merge;
mod multishift;
mod normal_range;
mod outcome;
mod packed;
mod padded;
mod panels;
mod parts;
mod phase;
mod pivoted_panel;
mod pivoted_qr;
#[cfg(feature = "testing")]
mod portable;
pub mod qr;
mod reflectors;
mod reorder;
mod root_free_ql;
mod rotations;
mod row_lu;
mod row_major;
mod rows;
mod scalar;
pub mod schur;
mod secular;
mod shared_reduction;
mod shifted;
mod simd;
mod single_shift;
mod small_bidiagonal;
mod small_qr;
mod small_tridiagonal;
pub mod solve;
pub mod sparse;
mod sparse_row;
mod sparse_scalar;
mod standard;
mod substitution;
pub mod svd;
mod tall_svd;
mod tiled_bidiagonal;
mod tiled_cholesky;
mod tiled_hessenberg;
mod tiled_lu;
mod tiled_pivoted_qr;
mod tiled_qr;
#[cfg(feature = "testing")]
mod tiled_tests;
mod tiled_tridiagonal;
mod transposition;
mod trial;
pub mod triangular;
pub mod tridiagonal;
mod tridiagonal_blocks;
mod tridiagonal_eigen;
mod tridiagonalize;
mod trsv;
mod twisted;
mod two_stage;
mod update;

pub use arch::{LEVELS, unfit};
pub use lapax_core::{
    Diag, Error, InOut, Real, Serial, Side, SingularVectors, Spawned, Threads, Trans, Uplo, Vectors,
};
pub use scalar::Scalar;
