//! Batches of small matrices: one matrix in each lane of the registers.
//!
//! A group is as many matrices as a register has lanes. It is read into a tile, transposed so that
//! a register holds the same element of each, worked on as if it were one matrix, and written back.
//! Every operation is lane by lane and every decision is a mask, so that a matrix's result depends
//! neither on its neighbours nor on where it stands in its batch.

pub(crate) mod banded;
pub(crate) mod block_tridiagonal;
mod bulge;
pub(crate) mod cholesky;
pub(crate) mod cholesky_update;
pub(crate) mod definite;
pub(crate) mod eigh;
pub(crate) mod exponential;
pub(crate) mod generalised_schur;
pub(crate) mod lu;
pub(crate) mod pack;
mod pack_double;
pub(crate) mod parlett;
mod phase;
pub(crate) mod qr;
mod reflector;
mod rotation;
mod rotations;
mod scaling;
pub(crate) mod schur;
pub(crate) mod square_root;
pub(crate) mod svd;
pub(crate) mod sylvester;
pub(crate) mod triangular;
pub(crate) mod tridiagonal;
