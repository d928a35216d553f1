//! The calls of the library, and nothing else: the one module that is unsafe.
//!
//! Every argument is one that LAPACK's documentation allows, so that XERBLA, which prints and may
//! end the process, is never reached. `CHARACTER` arguments are single letters, whose hidden lengths
//! no routine looks at; `lapack-sys` declares none.

mod factorisations;
mod spectral;

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use lapax_core::{Error, Scalar as _, Sort};
use num_complex::Complex;

use factorisations::factorisations;
use spectral::spectral;

use super::integers::{Int, Integers, written};
use super::least;
use super::routines::{Decomposed, Routines, Values};
use super::workspace::{Least, Work, at, at_input};
use crate::qr::Factor;
use crate::{Diag, Side, SingularVectors, Trans, Uplo, Vectors};

/// The four that BLAS has and lapack-sys does not declare.
mod blas {
    use super::{Complex, c_char, c_int};

    macro_rules! trsm {
        ($($name:ident $scalar:ty),+) => {
            unsafe extern "C" {
                $(pub(super) fn $name(
                    side: *const c_char,
                    uplo: *const c_char,
                    trans: *const c_char,
                    diag: *const c_char,
                    m: *const c_int,
                    n: *const c_int,
                    alpha: *const $scalar,
                    a: *const $scalar,
                    lda: *const c_int,
                    b: *mut $scalar,
                    ldb: *const c_int,
                );)+
            }
        };
    }

    trsm!(strsm_ f32, dtrsm_ f64, ctrsm_ Complex<f32>, ztrsm_ Complex<f64>);
}

impl Routines for f32 {
    factorisations!([] strsm_ sgetrf_ spotrf_ sgtsv_ sgeqrf_ sgeqp3_ sorgqr_ sormqr_);
    spectral!([im] [] sgesdd_ sgesvd_ ssyevd_ ssytrd_ sgeev_ sgees_ sgehrd_);
}

impl Routines for f64 {
    factorisations!([] dtrsm_ dgetrf_ dpotrf_ dgtsv_ dgeqrf_ dgeqp3_ dorgqr_ dormqr_);
    spectral!([im] [] dgesdd_ dgesvd_ dsyevd_ dsytrd_ dgeev_ dgees_ dgehrd_);
}

impl Routines for Complex<f32> {
    factorisations!([rwork] ctrsm_ cgetrf_ cpotrf_ cgtsv_ cgeqrf_ cgeqp3_ cungqr_ cunmqr_);
    spectral!([] [rwork lrwork] cgesdd_ cgesvd_ cheevd_ chetrd_ cgeev_ cgees_ cgehrd_);
}

impl Routines for Complex<f64> {
    factorisations!([rwork] ztrsm_ zgetrf_ zpotrf_ zgtsv_ zgeqrf_ zgeqp3_ zungqr_ zunmqr_);
    spectral!([] [rwork lrwork] zgesdd_ zgesvd_ zheevd_ zhetrd_ zgeev_ zgees_ zgehrd_);
}

/// A letter as C has it.
fn letter(code: u8) -> c_char {
    c_char::from_ne_bytes([code])
}

/// LAPACK's letter for Q or Qᴴ, which real routines call Qᵀ.
fn factor_code<T: lapax_core::Scalar>(factor: Factor) -> u8 {
    let trans = match factor {
        Factor::Q => Trans::None,
        Factor::Adjoint if T::IS_COMPLEX => Trans::ConjTranspose,
        Factor::Adjoint => Trans::Transpose,
    };
    trans.code()
}

/// The columns of U and the rows of Vᴴ.
fn factors(job: SingularVectors, m: Int, n: Int) -> (Int, Int) {
    match job {
        SingularVectors::All => (m, n),
        SingularVectors::Thin => (m.min(n), m.min(n)),
        SingularVectors::None => (Int::ZERO, Int::ZERO),
    }
}

/// Where a routine of the BLAS lies.
pub(super) fn dtrsm() -> *const () {
    blas::dtrsm_ as *const ()
}
