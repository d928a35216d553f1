//! Reduction of one matrix to bidiagonal form.

pub(crate) mod apply;
pub(crate) mod blocked;
mod one_pass;
pub(crate) mod parallel;

use crate::Scalar;

/// B's two diagonals and the factors of the reflectors.
#[derive(Debug)]
pub(crate) struct Bidiagonal<'a, T: Scalar> {
    /// n elements.
    pub(crate) d: &'a mut [T::Real],
    /// n − 1 elements.
    pub(crate) e: &'a mut [T::Real],
    /// n elements.
    pub(crate) tau_q: &'a mut [T],
    /// n − 1 elements.
    pub(crate) tau_p: &'a mut [T],
}
