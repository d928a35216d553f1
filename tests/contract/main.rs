//! Every target of the table, against its own signature: right calls, every way of being wrong,
//! empty and huge operands, the same bits whatever the threads, and the C exports.
//!
//! All calls are derived from the table, so a new target is tested as soon as it is listed.
//! `LAPAX_BLESS=1 cargo test --test contract` rewrites the golden files.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail where it stands")]

mod backend;
mod bits;
mod case;
mod device;
mod exports;
mod inference;
#[path = "../../ffi/tests/binding/plan.rs"]
mod plan;
mod right;
mod sizes;
mod sparse;
mod table;
mod wrong;

use std::path::{Path, PathBuf};

/// Compares with a golden file, or writes it where LAPAX_BLESS is set.
fn golden(name: &str, text: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    if std::env::var_os("LAPAX_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    std::fs::read_to_string(&path).unwrap_or_default()
}
