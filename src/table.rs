//! The table of targets: what `ops` states, as data. Everything that lists targets reads it.

use xla_ffi::{Signature, sys::XLA_FFI_Handler};

/// One operation: what its targets on all platforms have in common.
#[derive(Debug)]
pub struct Op {
    /// LAPACK's routine name without its precision letter, or JAX's name where LAPACK has none.
    pub name: &'static str,
    /// The family: the stem of the file that defines it.
    pub family: &'static str,
    /// The contract, in sentences.
    pub doc: &'static str,
    /// How matrices lie in memory.
    pub layout: Layout,
    /// Its targets on the CPU.
    pub cpu: &'static [Target],
    /// Its targets on CUDA.
    pub cuda: &'static [Target],
    /// Why it has none there; empty where it has.
    pub not_on_cuda: &'static str,
}

impl Op {
    /// Its targets on all platforms.
    pub fn targets(&self) -> impl Iterator<Item = &'static Target> + use<> {
        self.cpu.iter().chain(self.cuda)
    }
}

/// One custom-call target.
#[derive(Debug)]
pub struct Target {
    /// The name under which XLA programs call it.
    pub name: &'static str,
    /// The platform that it runs on.
    pub platform: Platform,
    /// What is to be known of it besides the operation's contract; mostly nothing.
    pub doc: &'static str,
    /// The handler of its execute stage.
    pub handler: XLA_FFI_Handler,
    /// The handler of its initialize stage, where it has one.
    pub initialize: XLA_FFI_Handler,
    /// Whether XLA may record it into a command buffer, a CUDA graph.
    pub captured: bool,
    /// The calls that it accepts, one for each element type of its first argument.
    pub signatures: &'static [&'static Signature],
}

/// Where a target runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// XLA's `Host`, JAX's `cpu`.
    Cpu,
    /// NVIDIA's GPUs.
    Cuda,
}

impl Platform {
    /// All platforms.
    pub const ALL: &'static [Self] = &[Self::Cpu, Self::Cuda];

    /// JAX's name.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Cpu => "cpu",
            Platform::Cuda => "CUDA",
        }
    }

    /// XLA's name, under which it looks handlers up.
    pub const fn xla_name(self) -> &'static str {
        match self {
            Platform::Cpu => "Host",
            Platform::Cuda => "CUDA",
        }
    }

    /// The platform of this name, JAX's or XLA's, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(|it| is(it.name()) || is(it.xla_name()))
    }
}

/// How the operands of rank 2 (not counting batch dimensions) lie in memory. All others, and the
/// batch dimensions, are row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each matrix column-major, as LAPACK has it.
    Column,
    /// Row-major.
    Row,
}

/// All operations, by family.
pub fn ops() -> impl Iterator<Item = &'static Op> {
    crate::ops::FAMILIES.iter().flat_map(|family| family.iter())
}

/// All targets, by family and operation.
pub fn targets() -> impl Iterator<Item = (&'static Op, &'static Target)> {
    ops().flat_map(|op| op.targets().map(move |target| (op, target)))
}
