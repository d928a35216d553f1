//! Products, reflections and substitutions that several families are made of.

pub(crate) mod fused;
pub(crate) mod householder;
pub(crate) mod rank_k;
pub(crate) mod rotations;
pub(crate) mod trsm;
pub(crate) mod trsm_packed;
pub(crate) mod trsv;
