//! Divide and conquer: what the tridiagonal eigenproblem and the bidiagonal singular value problem
//! share.

pub(crate) mod blocks;
pub(crate) mod merge;
pub(crate) mod secular;
pub(crate) mod verify;
