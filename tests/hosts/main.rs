//! lapax in hosts outside Python: registration through the C exports, and programs exported from JAX
//! that a C and a Rust program run on a PJRT plugin (`make test` names it; see the Makefile).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

mod callback;
mod header;
mod plugin;
mod registration;
