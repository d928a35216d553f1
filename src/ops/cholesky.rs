//! Cholesky factorisation of Hermitian positive definite matrices: A = L·Lᴴ or Uᴴ·U.

use lapax_core::{Scalar, Uplo};
use lapax_cpu::cholesky;
use lapax_cpu::definite::{Given, Kept};

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

super::ops! { cholesky;
    /// Cholesky factor of a Hermitian positive definite matrix, A = L·Lᴴ or A = Uᴴ·U (xPOTRF).
    ///
    /// Only the triangle that `uplo` names is read and written; the other one keeps the values that
    /// `a` has there. `info = i > 0`: the leading minor of order i is not positive definite, which
    /// includes that it is NaN (jaxlib's OpenBLAS reports 0 there).
    potrf: Potrf<T> over [f32, f64, c32, c64], Column {
        dims { n }
        args { a: T [n, n] }
        attrs { uplo: Uplo as u8 }
        rets { factor: T [n, n] = a, info: i32 [] }
    }
    cpu = lapack(potrf), |call, threads| {
        dispatch!(
            cholesky::potrf(call.uplo, call.batch, call.n, in_out(call.factor), call.info, threads)
        )
    };
    cuda = {
        /// On CUDA `lower` says which triangle.
        "cusolver_potrf_ffi" over [f32, f64, c32, c64] {
            dims { n }
            args { a: T [n, n] }
            attrs { lower: bool }
            rets { factor: T [n, n] = a, info: i32 [] }
        },
        queued,
        load(lapax_cuda::cholesky::load_potrf::<T>),
        run(|call, gpu| {
            let (uplo, a) = (device::triangle(call.lower), device::in_out(&call.factor));
            let info = device::output(&call.info);
            lapax_cuda::cholesky::potrf(gpu, uplo, call.batch, call.n, a, info)
        }),
    };

    /// Cholesky factor of a row-major Hermitian positive definite matrix, A = L·Lᴴ.
    ///
    /// Only the lower triangle of `a` is read; with `symmetrize`, A is the mean of `a` and its adjoint.
    /// `l` is zero above the diagonal, and NaN in the rest where A is not positive definite, as the
    /// result of JAX's `cholesky`.
    cholesky: Cholesky<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        attrs { symmetrize: bool }
        rets { l: T [n, n] = a }
    }
    cpu = any("lapax_cholesky"), |call, threads| {
        let (batch, n, l) = (call.batch, call.n, in_out(call.l));
        dispatch!(cholesky::cholesky(call.symmetrize, batch, n, l, threads))
    };
    cuda = {
        "lapax_cholesky", captured,
        load(lapax_cuda::definite::load::<T>),
        run(|call, gpu| {
            let (batch, n, l) = (call.batch, call.n, device::in_out(&call.l));
            lapax_cuda::definite::cholesky(gpu, call.symmetrize, batch, n, l)
        }),
    };

    /// Solution of A·X = B with a row-major Hermitian positive definite matrix A (xPOSV).
    ///
    /// Only the triangle of `a` that `uplo` names is read; with `symmetrize`, A is the mean of `a` and its
    /// adjoint. X is NaN where A is not positive definite. The factor is not kept: `cholesky` and
    /// `cho_solve` in one call.
    posv: Posv<T> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { a: T [n, n], b: T [n, nrhs] }
        attrs { uplo: Uplo as u8, symmetrize: bool }
        rets { x: T [n, nrhs] }
    }
    cpu = any("lapax_posv"), |call, threads| {
        let (batch, sizes) = (call.batch, (call.n, call.nrhs));
        let given = Given { uplo: call.uplo, mean: call.symmetrize };
        dispatch!(definite::posv(given, batch, sizes, call.a, call.b, call.x, threads))
    };
    cuda = {
        "lapax_posv", captured,
        load(lapax_cuda::definite::load::<T>),
        run(|call, gpu| {
            let given = lapax_cuda::definite::Given { uplo: call.uplo, mean: call.symmetrize };
            let (batch, sizes) = (call.batch, (call.n, call.nrhs));
            let operands = (device::input(&call.a), device::input(&call.b));
            lapax_cuda::definite::posv(gpu, given, batch, sizes, operands, device::output(&call.x))
        }),
    };

    /// Solution of A·X = B as by `posv`, with the factor and the logarithm of the determinant of A.
    ///
    /// `factor` is L of A = L·Lᴴ or U of A = Uᴴ·U, as `uplo` says, and zero in the other triangle; `logdet`
    /// is ln det(A), 2·Σ ln factor(i, i). The named triangle and `logdet` are NaN where A is not positive definite.
    posv_factor: PosvFactor<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { a: T [n, n], b: T [n, nrhs] }
        attrs { uplo: Uplo as u8, symmetrize: bool }
        rets { x: T [n, nrhs], factor: T [n, n], logdet: T::Real [] }
    }
    cpu = any("lapax_posv_factor"), |call, threads| {
        let (batch, sizes) = (call.batch, (call.n, call.nrhs));
        let given = Given { uplo: call.uplo, mean: call.symmetrize };
        let kept = Kept { factor: call.factor, logdet: call.logdet };
        dispatch!(
            definite::posv_factor(given, batch, sizes, call.a, call.b, call.x, kept, threads)
        )
    };
    cuda = {
        "lapax_posv_factor", captured,
        load(lapax_cuda::definite::load::<T>),
        run(|call, gpu| {
            let given = lapax_cuda::definite::Given { uplo: call.uplo, mean: call.symmetrize };
            let (batch, sizes) = (call.batch, (call.n, call.nrhs));
            let operands = (device::input(&call.a), device::input(&call.b));
            let kept = (device::output(&call.factor), device::output(&call.logdet));
            let x = device::output(&call.x);
            lapax_cuda::definite::posv_factor(gpu, given, batch, sizes, operands, x, kept)
        }),
    };

    /// Solution of A·X = B with the row-major Cholesky factor of A (xPOTRS).
    ///
    /// `factor` is L of A = L·Lᴴ or U of A = Uᴴ·U, as `uplo` says; its other triangle is not read. A zero on
    /// its diagonal is no error: its quotients are inf or NaN.
    cho_solve: ChoSolve<T> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { factor: T [n, n], b: T [n, nrhs] }
        attrs { uplo: Uplo as u8 }
        rets { x: T [n, nrhs] }
    }
    cpu = any("lapax_cho_solve"), |call, threads| {
        let (batch, sizes) = (call.batch, (call.n, call.nrhs));
        let (factor, b, x) = (call.factor, call.b, call.x);
        dispatch!(definite::cho_solve(call.uplo, batch, sizes, factor, b, x, threads))
    };
    cuda = {
        "lapax_cho_solve", captured,
        load(lapax_cuda::definite::load::<T>),
        run(|call, gpu| {
            let (batch, sizes) = (call.batch, (call.n, call.nrhs));
            let (operands, x) =
                ((device::input(&call.factor), device::input(&call.b)), device::output(&call.x));
            lapax_cuda::definite::cho_solve(gpu, call.uplo, batch, sizes, operands, x)
        }),
    };

    /// The Cholesky factor after a rank-1 update: from A = Rᴴ·R to A + w·wᴴ = R'ᴴ·R'.
    ///
    /// `r` is upper triangular; what lies below its diagonal is neither read nor changed. `r_out`
    /// is R'; `w_out` is the vector after its elimination, all zeros. Givens rotations, one per row.
    cholesky_update: CholeskyUpdate<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { r: T [n, n], w: T [n] }
        rets { r_out: T [n, n] = r, w_out: T [n] = w }
    }
    cpu = any("cu_cholesky_update_ffi"), |call, threads| {
        let (r, w) = (in_out(call.r_out), in_out(call.w_out));
        cholesky::cholesky_update(call.batch, call.n, r, w, threads)
    };
    cuda = {
        "cu_cholesky_update_ffi", captured,
        load(lapax_cuda::cholesky::load_cholesky_update::<T>),
        run(|call, gpu| {
            let (r, w) = (device::in_out(&call.r_out), device::in_out(&call.w_out));
            lapax_cuda::cholesky::cholesky_update(gpu, call.batch, call.n, r, w)
        }),
    };
}
