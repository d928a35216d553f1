//! Where eigenvalues go: complex numbers, or real and imaginary parts apart.

use crate::Scalar;
use crate::simd::scalar::{ShortRow, zeros};

/// Eigenvalues as LAPACK has them: real parts or whole numbers, and imaginary parts of a real matrix's.
pub(crate) struct Parts<T> {
    pub(crate) first: ShortRow<T>,
    pub(crate) imaginary: ShortRow<T>,
}

impl<T: Scalar> Parts<T> {
    /// So many.
    pub(crate) fn new(count: usize) -> Self {
        let imaginary = if T::IS_COMPLEX { 0 } else { count };
        Self { first: zeros(count), imaginary: zeros(imaginary) }
    }

    pub(crate) fn eigenvalues(&mut self) -> Eigenvalues<'_, T> {
        Eigenvalues::from_parts(&mut self.first, &mut self.imaginary)
    }

    /// All of them.
    pub(crate) fn write(&self, w: &mut [T::Complex]) {
        for (k, (w, &first)) in w.iter_mut().zip(&self.first).enumerate() {
            let imaginary = self.imaginary.get(k).map_or(first.im(), |x| x.re());
            *w = lapax_core::Scalar::from_parts(first.re(), imaginary);
        }
    }
}

/// Where eigenvalues go: a real matrix's as real and imaginary parts, a complex one's as they are.
#[derive(Debug)]
pub enum Eigenvalues<'a, T: Scalar> {
    /// n real parts and n imaginary parts for each matrix.
    Parts(&'a mut [T], &'a mut [T]),
    /// n numbers for each matrix.
    Whole(&'a mut [T]),
}

impl<'a, T: Scalar> Eigenvalues<'a, T> {
    /// Real parts or whole numbers, imaginary parts, and how many of these there are per matrix of
    /// order n.
    pub(crate) fn parts(self, n: usize) -> (&'a mut [T], &'a mut [T], usize) {
        match self {
            Self::Parts(re, im) => (re, im, n),
            Self::Whole(w) => (w, &mut [], 0),
        }
    }

    /// The inverse of [`Eigenvalues::parts`].
    pub(crate) fn from_parts(w: &'a mut [T], wi: &'a mut [T]) -> Self {
        if T::IS_COMPLEX { Self::Whole(w) } else { Self::Parts(w, wi) }
    }
}
