//! Numbers and the registers that hold them: what a kernel is written in.

pub(crate) mod arch;
pub(crate) mod cache_line;
pub(crate) mod chunks;
#[allow(unreachable_pub, reason = "the public trait Scalar names them")]
pub(crate) mod complex;
pub(crate) mod elementary;
pub(crate) mod exponential;
pub(crate) mod kind;
pub(crate) mod lane;
#[allow(unreachable_pub, reason = "the public trait Scalar names them")]
pub(crate) mod lane_real;
pub(crate) mod lines;
pub(crate) mod loops;
pub(crate) mod opaque;
pub(crate) mod packed;
pub(crate) mod prefetch;
pub(crate) mod range;
pub(crate) mod scalar;
pub(crate) mod tile;
pub(crate) mod transpose;
#[allow(unreachable_pub, reason = "the public trait Scalar names them")]
pub(crate) mod vector;
