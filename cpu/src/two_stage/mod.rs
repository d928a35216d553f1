//! Two stages on the way to tridiagonal and bidiagonal form: to a band, by products of matrices, and from there
//! by chasing bulges.
//!
//! For eigenvalues and singular values alone: what the reflectors of both stages would do to vectors costs more
//! than the band saves.

pub(crate) mod bulges;
pub(crate) mod hermitian_band;
pub(crate) mod hermitian_bulges;
pub(crate) mod triangular_band;
pub(crate) mod triangular_bulges;

use lapax_core::Serial;

use crate::simd::arch::Arch;
use crate::{Scalar, Threads};
use hermitian_bulges::Tridiagonalize;
use triangular_bulges::Bidiagonalize;

/// The order from which threads share the first stage: f64, eigenvalues by one and two, n = 384 4.6 and 4.8 ms, 512
/// 8.8 and 9.0, 1024 50 and 41; singular values 384 7.5 and 8.0, 512 15.4 and 14.7, 1024 87 and 72.
const SHARED_ORDER: usize = 512;

/// What Hermitian matrices of one order reuse.
pub(crate) struct Hermitian<T> {
    scratch: hermitian_band::Scratch<T>,
    band: Vec<T>,
}

impl<T: Scalar> Hermitian<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        let scratch = hermitian_band::Scratch::new(n);
        Self { scratch, band: vec![T::ZERO; bulges::storage(n)] }
    }

    /// Reduces the lower triangle of `a`, whose contents are lost, to the diagonal `d` and what is beside it, `e`;
    /// with the same bits on any number of threads.
    pub(crate) fn tridiagonalize(
        &mut self,
        a: &mut [T],
        d: &mut [T::Real],
        e: &mut [T::Real],
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) {
        let n = d.len();
        let Self { scratch, band } = self;
        hermitian_band::reduce_to_band(a, n, scratch, sharing(n, threads));
        hermitian_bulges::fill(band, a, n);
        arch.dispatch(Tridiagonalize { band, d, e });
    }
}

/// What m × n matrices, m >= n, reuse.
pub(crate) struct General<T> {
    scratch: triangular_band::Scratch<T>,
    band: Vec<T>,
}

impl<T: Scalar> General<T> {
    /// For m × n matrices.
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let scratch = triangular_band::Scratch::new(m, n);
        Self { scratch, band: vec![T::ZERO; bulges::storage(n)] }
    }

    /// Reduces `a`, whose contents are lost, to the diagonal `d` and what is above it, `e`; with the same bits on any
    /// number of threads.
    pub(crate) fn bidiagonalize(
        &mut self,
        a: &mut [T],
        d: &mut [T::Real],
        e: &mut [T::Real],
        threads: Option<&dyn Threads>,
        arch: Arch,
    ) {
        let n = d.len();
        let m = a.len() / n;
        let Self { scratch, band } = self;
        triangular_band::reduce_to_band(a, (m, n), scratch, sharing(n, threads));
        triangular_bulges::fill(band, a, m);
        arch.dispatch(Bidiagonalize { band, d, e });
    }
}

/// The threads that share the first stage of a matrix of order n.
fn sharing(n: usize, threads: Option<&dyn Threads>) -> &dyn Threads {
    threads.filter(|_| n >= SHARED_ORDER).unwrap_or(&Serial)
}
