//! Own kernels on the emulator, through the whole path that a GPU would take: plan, driver, launch.
//! What they compute is compared with lapax-cpu's results.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

mod device;
mod matrices;
mod random;

mod choices;
mod cholesky_update;
mod definite;
mod factor;
mod hermitian;
mod host;
mod lu_pivots;
mod orthogonal;
mod pivoted;
mod schur;
mod solve;
mod sparse;
mod svd;
mod syrk;
mod sytrd;
mod triangular;
mod tridiagonal;
