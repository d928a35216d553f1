//! Banded systems A·X = B, A in diagonal-ordered form: one row of `ab` for each diagonal.

use lapax_core::Uplo;
use lapax_cpu::banded;
use lapax_cpu::banded::{Band, Definite};

use super::{c32, c64, unsigned};

super::ops! { banded;
    /// Solution of banded systems A·X = B by elimination with partial pivoting in the band (xGBSV).
    ///
    /// A has l diagonals below the main one, and u above it: `bands` is l + u + 1, and A(i, j) is
    /// `ab[u + i - j, j]`. What lies outside of A is not read. X is NaN where A is singular: where a
    /// pivot is exactly zero. NaN and inf propagate.
    solve_banded: SolveBanded<T> over [f32, f64, c32, c64], Row {
        dims { bands, n, nrhs }
        args { ab: T [bands, n], b: T [n, nrhs] }
        attrs { l: i32 }
        rets { x: T [n, nrhs] }
        require {
            l >= 0 && i64::from(l) < bands => "l not to be negative, and less than the number of bands",
        }
    }
    cpu = any("lapax_solve_banded"), |call, threads| {
        let (bands, lower) = (call.bands, unsigned(call.l));
        let band = Band { lower, upper: bands - 1 - lower, n: call.n };
        banded::solve_banded(call.batch, band, call.nrhs, call.ab, call.b, call.x, threads)
    };
    cuda = host;

    /// Solution of A·X = B with a banded Hermitian positive definite matrix (xPBSV).
    ///
    /// `ab` has the diagonals of the triangle that `uplo` names: A(i, j) is `ab[bands - 1 + i - j, j]` for
    /// Upper, and `ab[i - j, j]` for Lower. What lies outside of A is not read, nor are imaginary parts on
    /// its diagonal. X is NaN where A is not positive definite. The factor is not kept.
    solveh_banded: SolvehBanded<T> over [f32, f64, c32, c64], Row {
        dims { bands, n, nrhs }
        args { ab: T [bands, n], b: T [n, nrhs] }
        attrs { uplo: Uplo as u8 }
        rets { x: T [n, nrhs] }
        require { bands >= 1 => "at least one band" }
    }
    cpu = any("lapax_solveh_banded"), |call, threads| {
        let definite = Definite { uplo: call.uplo, beside: call.bands - 1, n: call.n };
        let (batch, nrhs) = (call.batch, call.nrhs);
        banded::solveh_banded(batch, definite, nrhs, call.ab, call.b, call.x, threads)
    };
    cuda = host;

    /// Cholesky factor of a banded Hermitian positive definite matrix, A = L·Lᴴ or Uᴴ·U (xPBTRF).
    ///
    /// `ab` is as for `solveh_banded`, and `factor` has the same form: L for Lower, U for Upper. It is
    /// zero outside of the matrix, and NaN inside where A is not positive definite.
    cholesky_banded: CholeskyBanded<T> over [f32, f64, c32, c64], Row {
        dims { bands, n }
        args { ab: T [bands, n] }
        attrs { uplo: Uplo as u8 }
        rets { factor: T [bands, n] }
        require { bands >= 1 => "at least one band" }
    }
    cpu = any("lapax_cholesky_banded"), |call, threads| {
        let definite = Definite { uplo: call.uplo, beside: call.bands - 1, n: call.n };
        banded::cholesky_banded(call.batch, definite, call.ab, call.factor, threads)
    };
    cuda = host;

    /// Solution of A·X = B by the banded Cholesky factor of A (xPBTRS).
    ///
    /// `factor` is as `cholesky_banded` gives it. A zero on its diagonal is no error: its quotients are
    /// inf or NaN.
    cho_solve_banded: ChoSolveBanded<T> over [f32, f64, c32, c64], Row {
        dims { bands, n, nrhs }
        args { factor: T [bands, n], b: T [n, nrhs] }
        attrs { uplo: Uplo as u8 }
        rets { x: T [n, nrhs] }
        require { bands >= 1 => "at least one band" }
    }
    cpu = any("lapax_cho_solve_banded"), |call, threads| {
        let definite = Definite { uplo: call.uplo, beside: call.bands - 1, n: call.n };
        let (batch, nrhs) = (call.batch, call.nrhs);
        banded::cho_solve_banded(batch, definite, nrhs, call.factor, call.b, call.x, threads)
    };
    cuda = host;
}
