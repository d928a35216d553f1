//! Functions of matrices.

use lapax_cpu::functions;

use super::{c32, c64};

super::ops! { functions;
    /// Exponential of a row-major matrix, exp(A) = Σ Aᵏ/k!.
    ///
    /// Scaling and squaring, by Padé approximants whose degree is chosen for each matrix (Al-Mohy and Higham, 2009).
    /// Triangular matrices have the exact exponentials of their diagonals, and of those beside them. X is NaN where A is
    /// not finite.
    expm: Expm<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { x: T [n, n] }
    }
    cpu = any("lapax_expm"), |call, threads| {
        functions::expm(call.batch, call.n, call.a, call.x, threads)
    };
    cuda = none;
}
