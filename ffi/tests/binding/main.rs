//! The binding from the outside: handlers of its own, called through frames of a fake host.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

mod accepted;
mod agreement;
mod device;
mod futures;
mod host;
mod optional;
mod panics;
mod plan;
mod pool;
mod promises;
mod refused;
mod registry;
mod sample;
