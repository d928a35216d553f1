//! Banded systems, one in each lane.

pub(crate) mod cholesky;
pub(crate) mod elimination;
