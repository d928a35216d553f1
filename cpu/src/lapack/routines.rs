//! LAPACK's routines as functions of slices, one for each family of four.
//!
//! Sizes are not zero, and matrices finite. A routine with workspace answers a question for its
//! length (see [`Work`]) without touching its other operands. What is returned is `info`.

use lapax_core::Error;

use super::integers::{Int, Integers};
use super::workspace::Work;
use crate::matrix::layout::Factor;
use crate::{Diag, Scalar, Side, SingularVectors, Trans, Uplo, Vectors};

/// Where eigenvalues go; `im` is not used for a complex matrix.
#[derive(Debug)]
pub struct Values<'a, T> {
    pub(super) re: &'a mut [T],
    pub(super) im: &'a mut [T],
}

/// The operands of a singular value decomposition.
#[derive(Debug)]
pub struct Decomposed<'a, T: lapax_core::Scalar> {
    pub(super) a: &'a mut [T],
    pub(super) s: &'a mut [T::Real],
    pub(super) u: &'a mut [T],
    pub(super) vt: &'a mut [T],
}

/// The scalars that LAPACK serves: `f32`, `f64`, `Complex<f32>` and `Complex<f64>`.
#[allow(clippy::too_many_arguments, reason = "they are LAPACK's, less the leading dimensions")]
pub trait Routines: Scalar<Real: Scalar> {
    /// B ← op(A)⁻¹·B or B·op(A)⁻¹; B is m × n.
    #[doc(hidden)]
    fn trsm(of: (Side, Uplo, Trans, Diag), m: Int, n: Int, a: &[Self], b: &mut [Self]);

    /// P·A = L·U; A is m × n.
    #[doc(hidden)]
    fn getrf(m: Int, n: Int, a: &mut [Self], ipiv: &mut Integers) -> i32;

    /// A = L·Lᴴ or Uᴴ·U.
    #[doc(hidden)]
    fn potrf(uplo: Uplo, n: Int, a: &mut [Self]) -> i32;

    /// B ← A⁻¹·B; B is n × nrhs. `dl`, `d` and `du` are A's diagonals, two of length n − 1.
    #[doc(hidden)]
    fn gtsv(n: Int, nrhs: Int, a: [&mut [Self]; 3], b: &mut [Self]) -> i32;

    /// A = Q·R; A is m × n.
    #[doc(hidden)]
    fn geqrf(
        m: Int,
        n: Int,
        a: &mut [Self],
        tau: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A·P = Q·R; A is m × n.
    #[doc(hidden)]
    fn geqp3(
        m: Int,
        n: Int,
        a: &mut [Self],
        jpvt: &mut Integers,
        tau: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// The first n columns of Q from t reflectors of length m.
    #[doc(hidden)]
    fn orgqr(
        m: Int,
        n: Int,
        t: Int,
        a: &mut [Self],
        tau: &[Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// C ← Q·C, Qᴴ·C, C·Q or C·Qᴴ; C is m × n. The t reflectors in `a` are written, and restored.
    #[doc(hidden)]
    fn ormqr(
        of: (Side, Factor),
        m: Int,
        n: Int,
        t: Int,
        a: &mut [Self],
        tau: &[Self],
        c: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = U·diag(s)·Vᴴ by divide and conquer; A is m × n.
    #[doc(hidden)]
    fn gesdd(
        job: SingularVectors,
        m: Int,
        n: Int,
        of: Decomposed<'_, Self>,
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = U·diag(s)·Vᴴ by implicit QR steps; A is m × n.
    #[doc(hidden)]
    fn gesvd(
        job: SingularVectors,
        m: Int,
        n: Int,
        of: Decomposed<'_, Self>,
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = V·diag(w)·Vᴴ, V in place of A.
    #[doc(hidden)]
    fn syevd(
        job: Vectors,
        uplo: Uplo,
        n: Int,
        a: &mut [Self],
        w: &mut [Self::Real],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = Q·T·Qᴴ, T tridiagonal.
    #[doc(hidden)]
    fn sytrd(
        uplo: Uplo,
        n: Int,
        a: &mut [Self],
        d: &mut [Self::Real],
        e: &mut [Self::Real],
        tau: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// Eigenvalues, and left and right eigenvectors as LAPACK packs them; `a` is lost.
    #[doc(hidden)]
    fn geev(
        jobs: [Vectors; 2],
        n: Int,
        a: &mut [Self],
        w: Values<'_, Self>,
        vectors: [&mut [Self]; 2],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = Z·T·Zᴴ, T in place of A.
    #[doc(hidden)]
    fn gees(
        job: Vectors,
        n: Int,
        a: &mut [Self],
        w: Values<'_, Self>,
        z: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;

    /// A = Q·H·Qᴴ over rows and columns `low` to `high`, counted from 1.
    #[doc(hidden)]
    fn gehrd(
        n: Int,
        active: [Int; 2],
        a: &mut [Self],
        tau: &mut [Self],
        work: &mut Work<Self>,
    ) -> Result<i32, Error>;
}
