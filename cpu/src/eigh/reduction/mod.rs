//! Reduction of one Hermitian matrix to tridiagonal form.

pub(crate) mod blocked;
mod one_pass;
pub(crate) mod parallel;
pub(crate) mod route;
