//! Triangular systems: op(A)·X = B or X·op(A) = B.

use lapax_core::{Diag, Side, Trans, Uplo};

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

/// The order of A: that of the side on which it multiplies the m × n matrix X.
fn order(side: Side, m: i64, n: i64) -> i64 {
    match side {
        Side::Left => m,
        Side::Right => n,
    }
}

/// Row-major operands are column-major ones of the transposed system, op(A)ᵀ on the other side.
fn transposed(side: Side, uplo: Uplo) -> (Side, Uplo) {
    let side = if side == Side::Left { Side::Right } else { Side::Left };
    (side, if uplo == Uplo::Lower { Uplo::Upper } else { Uplo::Lower })
}

super::ops! { triangular;
    /// Solution of a triangular system, op(A)·X = B or X·op(A) = B (xTRSM with alpha = 1).
    ///
    /// `side` is the side of A; `uplo` its triangle, the only one read; `trans_x` is op: A, Aᵀ or
    /// Aᴴ. With `diag` Unit the diagonal is taken as ones and not read. A zero on the diagonal is
    /// no error: its quotients are inf or NaN.
    trsm: Trsm<T> over [f32, f64, c32, c64], Column {
        dims { m, n, q = order(side, m, n) }
        args { a: T [q, q], b: T [m, n] }
        attrs { side: Side as u8, uplo: Uplo as u8, trans_x: Trans as u8, diag: Diag as u8 }
        rets { x: T [m, n] = b }
    }
    cpu = lapack(trsm), |call, threads| {
        let (side, uplo, trans, diag) = (call.side, call.uplo, call.trans_x, call.diag);
        let (a, b) = (call.a, in_out(call.x));
        dispatch!(
            triangular::trsm(side, uplo, trans, diag, call.batch, call.m, call.n, a, b, threads)
        )
    };
    cuda = (none: "a name of the CPU alone: on CUDA XLA has a triangular solve of its own");

    /// Solution of a triangular system of row-major matrices, op(A)·X = B or X·op(A) = B.
    ///
    /// As trsm, with the attributes' meaning that of the matrices, however they lie.
    triangular_solve: TriangularSolve<T> over [f32, f64, c32, c64], Row {
        dims { m, n, q = order(side, m, n) }
        args { a: T [q, q], b: T [m, n] }
        attrs { side: Side as u8, uplo: Uplo as u8, trans_x: Trans as u8, diag: Diag as u8 }
        rets { x: T [m, n] = b }
    }
    cpu = any("lapax_triangular_solve"), |call, threads| {
        let (side, uplo) = transposed(call.side, call.uplo);
        let (trans, diag, a, b) = (call.trans_x, call.diag, call.a, in_out(call.x));
        dispatch!(
            triangular::trsm(side, uplo, trans, diag, call.batch, call.n, call.m, a, b, threads)
        )
    };
    cuda = {
        "lapax_triangular_solve", captured,
        load(lapax_cuda::triangular::load::<T>),
        run(|call, gpu| {
            let (side, uplo, trans, diag) = (call.side, call.uplo, call.trans_x, call.diag);
            let system = lapax_cuda::triangular::System { side, uplo, trans, diag };
            let (batch, sizes) = (call.batch, (call.m, call.n));
            let (a, x) = (device::input(&call.a), device::in_out(&call.x));
            lapax_cuda::triangular::triangular_solve(gpu, system, batch, sizes, a, x)
        }),
    };
}
