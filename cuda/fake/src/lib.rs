//! For lapax's tests: the CUDA kernels on the CPU, and a driver and NVIDIA libraries that run them.
//!
//! [`install`] puts shared libraries of NVIDIA's names into the process, so that whoever opens
//! `libcuda` afterwards gets this driver: its device's memory is the process's own, a launch runs the
//! kernel's unmodified source on the emulator (`emulator/emulator.h`), at once ([`driver`]); cuSOLVER,
//! cuBLAS and cuSPARSE compute with lapax's CPU code (`nvidia`).
//!
//! Where a real driver is in the process already, nothing of this takes effect: [`install`] says so.

#[allow(clippy::expect_used, reason = "for tests: a wrong test panics")]
pub mod driver;
mod emulator;
mod libraries;
#[allow(clippy::expect_used, reason = "for tests: a wrong test panics")]
mod nvidia;

use libraries::Slots;
pub use libraries::install;
