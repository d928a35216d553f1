//! Factorisation of symmetric and Hermitian matrices that need not be definite: Pᵀ·A·P = L·D·Lᴴ or L·D·Lᵀ.

use lapax_core::Uplo;
use lapax_cpu::ldl;
use lapax_cpu::ldl::Symmetry;

use super::{c32, c64, in_out};

super::ops! { ldl;
    /// L and D of a row-major symmetric or, with `hermitian`, Hermitian matrix A, so that Pᵀ·A·P = L·D·Lᴴ (xSYTRF_RK).
    ///
    /// Only the triangle that `uplo` names is read. `factors` has L, unit lower triangular, below its diagonal, D's
    /// diagonal on it, and zeros above. `e[i]` is D(i + 1, i), not zero where rows i and i + 1 share a block. Row i of L
    /// belongs to row `permutation[i]` of A. Rook pivoting; a singular A has blocks of D that are zero or nearly so.
    ldl: Ldl<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        attrs { uplo: Uplo as u8, hermitian: bool }
        rets { factors: T [n, n] = a, e: T [n], permutation: i32 [n] }
    }
    cpu = any("lapax_ldl"), |call, threads| {
        let (symmetry, a) = (symmetry(call.hermitian), in_out(call.factors));
        let (batch, n, e, permutation) = (call.batch, call.n, call.e, call.permutation);
        ldl::ldl(symmetry, call.uplo, batch, n, a, e, permutation, threads)
    };
    cuda = host;

    /// Solution of A·X = B with the results of `ldl` for A (xSYTRS_3).
    ///
    /// A zero block of D is no error: its quotients are inf or NaN. X is NaN where `permutation` names no row.
    ldl_solve: LdlSolve<T> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { factors: T [n, n], e: T [n], permutation: i32 [n], b: T [n, nrhs] }
        attrs { hermitian: bool }
        rets { x: T [n, nrhs] }
    }
    cpu = any("lapax_ldl_solve"), |call, threads| {
        let (symmetry, batch, sizes) = (symmetry(call.hermitian), call.batch, (call.n, call.nrhs));
        let (factors, e, permutation) = (call.factors, call.e, call.permutation);
        ldl::ldl_solve(symmetry, batch, sizes, factors, e, permutation, call.b, call.x, threads)
    };
    cuda = host;
}

fn symmetry(hermitian: bool) -> Symmetry {
    if hermitian { Symmetry::Hermitian } else { Symmetry::Symmetric }
}
