//! A typed Rust binding of XLA's FFI C API, for authors of custom-call handlers.
//!
//! A handler is declared once, as the shape of its call and its body:
//!
//! ```
//! use xla_ffi::{Buffer, BufferMut};
//!
//! xla_ffi::handler! {
//!     /// y = α x, for buffers of any shape.
//!     pub fn scale(call: Scale<'f>, _context) in Execute {
//!         args { x: Buffer<'f, f32> }
//!         rets { y: BufferMut<'f, f32> }
//!         attrs { alpha: f32 }
//!     } => {
//!         let Scale { x, mut y, alpha, .. } = call;
//!         y.iter_mut().zip(x.iter()).for_each(|(y, x)| *y = alpha * x);
//!         Ok(())
//!     }
//! }
//!
//! // Register `scale`: it is a plain XLA_FFI_Handler. `Registry` does so in any host.
//! let handler: xla_ffi::sys::XLA_FFI_Handler = Some(scale);
//! # assert!(handler.is_some());
//! ```
//!
//! [`handler!`] takes operands one by one; docs/ffi-features.md of the repository, which is the module
//! `features` here where the documentation is built, lists what it can decode. [`signature!`] is for
//! families of targets: operands whose dimensions depend on each other behind leading batch
//! dimensions, shape inference and tables from the same declaration, results in the memory of
//! arguments, several element types:
//!
//! ```
//! use xla_ffi::{Call, Context, Error, Frame, Handler, Outcome, Signature, signature};
//!
//! signature! {
//!     /// y = α x + y, for any number of leading batch dimensions.
//!     pub struct Axpy {
//!         dims  { n }
//!         args  { x: f32 [n], y: f32 [n] }
//!         attrs { alpha: f32 }
//!         rets  { out: f32 [n] = y }
//!     }
//! }
//!
//! struct AxpyHandler;
//!
//! impl Handler for AxpyHandler {
//!     const NAME: &'static str = "axpy";
//!     const SIGNATURES: &'static [&'static Signature] = &[Axpy::SIGNATURE];
//!
//!     fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
//!         let Some(call) = Axpy::decode(frame) else { return Outcome::Mismatch };
//!         let out = call.out.initialized();
//!         for (out, x) in out.iter_mut().zip(call.x) {
//!             *out += call.alpha * x;
//!         }
//!         Outcome::Done(Ok(()))
//!     }
//! }
//!
//! // Register `handler` under "axpy": it is a plain XLA_FFI_Handler.
//! let handler: xla_ffi::sys::XLA_FFI_Handler = Some(xla_ffi::execute::<AxpyHandler>);
//! # assert!(handler.is_some());
//! ```
//!
//! What the binding guarantees around the body:
//! - a call that does not fit is refused with one INVALID_ARGUMENT that lists every mismatch with
//!   target, operand, expected and got;
//! - a panic becomes INTERNAL with its message and place; nothing unwinds into XLA or is printed;
//! - the body runs in IEEE arithmetic (XLA calls with denormals flushed), and the caller's
//!   floating-point mode is restored;
//! - arguments that share memory with a result are one [`InOut`], never `&` and `&mut` of the same
//!   memory;
//! - one binary serves every host from API 0.1 on: the version announced is the smaller of ours and
//!   the host's, and structs that changed are passed in the host's layout.

/// What the binding covers, as docs/ffi-features.md has it: of the documentation alone.
#[cfg(doc)]
#[doc = include_str!("../docs/ffi-features.md")]
pub mod features {}

/// Builds the Rust of docs/writing-a-target.md as a reader would paste it.
#[cfg(doctest)]
#[doc = include_str!("../docs/writing-a-target.md")]
mod writing_a_target {}

mod attribute_macro;
pub mod bind;
mod buffer;
mod check;
mod chunks;
mod collectives;
mod context;
mod data_type;
mod device;
mod dictionary;
mod error;
#[cfg(feature = "fake")]
#[allow(clippy::expect_used, reason = "for tests: a wrong test panics")]
pub mod fake;
mod float_mode;
mod frame;
mod future;
mod handler;
mod handler_macro;
mod host_future;
mod invocation;
mod job;
mod operands;
mod panics;
mod pattern;
mod placement;
mod pool;
mod record;
mod registry;
mod signature;
mod state;
pub mod sys;
mod value;

pub use buffer::{ANY_RANK, AnyBuffer, AnyBufferMut, Buffer, BufferMut, Rest, Token};
pub use check::{Given, Shape};
pub use collectives::{Clique, Collectives, GroupMode, Region, Window};
pub use context::{Context, ExecutionStage};
pub use data_type::{Bf16, DataType, Element, F16, Pred};
pub use device::{Device, DeviceInOut, DeviceMut, Scratch};
pub use dictionary::{Dictionary, Pointer};
pub use error::{Error, ErrorCode};
pub use float_mode::IeeeMode;
pub use frame::{Attributes, Buffers, Frame, InOut, Leading, MISSING, Raw};
pub use future::{CountDown, Future, Promise};
pub use handler::{Handler, Outcome, execute, infer, initialize};
pub use invocation::Extension;
pub use pattern::{Pattern, Shaped, Size, Sizes};
pub use pool::ThreadPool;
pub use record::{Command, KernelArg, KernelCode, Launch, RecordAction, Recorder};
pub use registry::{Registry, StageFn, Stages};
pub use signature::{Attr, Call, Code, Dim, Formula, Operand, Requirement, Signature};
pub use state::{HostType, TypeIds};
pub use value::{Array, Attribute, Bytes, Scalar, Value, decode_code};
pub use xla_ffi_macros::signature;

/// The XLA FFI API version this crate was written against.
pub const API_VERSION: (i32, i32) = (0, 5);
