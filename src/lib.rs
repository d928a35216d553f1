//! lapax: XLA's linear-algebra custom calls in Rust.
//!
//! A program compiled by XLA calls a *target* by name (`lapack_dgetrf_ffi`) with buffers and
//! attributes. This library serves such targets; [`TARGETS`](targets) lists them.
//!
//! ```text
//! python/lapax --reads--> table <-- ops/*.rs   one file per family: every fact about a target, once
//!                           |          |
//!                       C exports      +--> cpu/   kernels on slices   (crate lapax-cpu)
//!                           v          v
//! XLA runtime --frame--> ffi/   decode, check, context, errors, panics (crate xla-ffi)
//! ```
//!
//! Conventions that all targets share:
//! - every operand may have the same leading batch dimensions in front of its own;
//! - a numerical outcome is `info`, LAPACK's meaning, per matrix; misuse is INVALID_ARGUMENT with
//!   target, operand, expected and got;
//! - results have the same bits whatever the number of threads, and wherever a matrix stands in its
//!   batch; batches too small to fill SIMD lanes are computed one by one, and may round otherwise;
//! - an argument and a result that XLA declares to share memory may do so or not.

pub mod backend;
pub mod callback;
mod cuda_report;
pub mod exports;
mod ops;
mod registration;
mod table;

pub use callback::Callback;
pub use registration::Registration;
pub use table::{Layout, Op, Platform, Target, ops, targets};
