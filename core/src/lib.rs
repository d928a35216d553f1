//! Words that lapax's backends share: the four scalars, the enums of LAPACK's character arguments,
//! batches of matrices in flat slices, threads that somebody else owns, and errors.
//!
//! Nothing here knows XLA, faer or CUDA, and nothing here is unsafe.
#![forbid(unsafe_code)]

mod batch;
mod division;
mod error;
mod items;
mod scalar;
mod tasks;
mod threads;
mod words;

pub use batch::{Batched, chunks, for_each, for_each_large, for_each_part};
pub use error::{Error, index_fits_i32, product};
pub use items::{InOut, Items, ItemsInOut, ItemsMut, ItemsUncopied};
pub use scalar::{Real, Scalar};
pub use tasks::{Stages, run_each, run_tasks};
pub use threads::{Serial, Spawned, Threads};
pub use words::{Diag, Side, SingularVectors, Sort, Sweeps, Trans, UnknownCode, Uplo, Vectors};
