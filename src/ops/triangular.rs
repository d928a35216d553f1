//! Triangular systems: op(A)·X = B or X·op(A) = B.

use lapax_core::{Diag, Side, Trans, Uplo};
use lapax_cpu::triangular;

use super::{c32, c64, in_out};

/// The order of A: that of the side on which it multiplies the m × n matrix X.
fn order(side: Side, m: i64, n: i64) -> i64 {
    match side {
        Side::Left => m,
        Side::Right => n,
    }
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
        triangular::trsm(side, uplo, trans, diag, call.batch, call.m, call.n, a, b, threads)
    };
    cuda = none;
}
