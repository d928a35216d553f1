//! Every feature of XLA's C++ binding, in ours: one test for each line of docs/ffi-features.md, which
//! names it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

mod attributes;
mod buffers;
mod collectives;
mod contexts;
mod listed;
mod patterns;
mod record;
mod stages;

use xla_ffi::StageFn;
use xla_ffi::fake::{Call, Failure, Host};
use xla_ffi::sys::XLA_FFI_Error_Code_INVALID_ARGUMENT as INVALID_ARGUMENT;

/// What a handler answers.
fn run(handler: StageFn, call: &Call<'_>) -> Result<(), Failure> {
    Host::new().execute(Some(handler), call)
}

/// The sentence with which a call is refused as INVALID_ARGUMENT.
fn refusal(handler: StageFn, call: &Call<'_>) -> String {
    let failure = run(handler, call).expect_err("a refusal");
    assert_eq!(failure.code, INVALID_ARGUMENT, "{}", failure.message);
    failure.message
}
