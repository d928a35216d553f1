//! Generalised Schur form of a pair of matrices: A = Q·S·Zᴴ, B = Q·T·Zᴴ.

use lapax_core::Scalar;
use lapax_cpu::generalised_schur;
use lapax_cpu::generalised_schur::{Pair, Which};

use super::{c32, c64, in_out};

super::ops! { generalised_schur;
    /// Schur form of row-major pairs, A = Q·S·Zᴴ and B = Q·T·Zᴴ, by the QZ iteration (xGGES).
    ///
    /// Q and Z are unitary, T upper triangular with a diagonal that is not negative. S is upper triangular, of a real
    /// pair quasi-triangular: a conjugate pair of eigenvalues has a 2 × 2 block in S and a diagonal one in T. The
    /// eigenvalues are `alpha / beta`, of two that are conjugate the one with positive imaginary part first; `beta` is
    /// not negative, and zero for an infinite one. All results are NaN where `a` or `b` holds NaN or inf, or where
    /// there was no convergence.
    generalised_schur: GeneralisedSchur<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n], b: T [n, n] }
        rets {
            s: T [n, n] = a, t: T [n, n] = b, q: T [n, n], z: T [n, n],
            alpha: T::Complex [n], beta: T::Real [n]
        }
    }
    cpu = any("lapax_generalised_schur"), |call, threads| {
        let [s, t] = [call.s, call.t].map(in_out);
        let [q, z] = [call.q, call.z].map(|dst| lapax_core::InOut { src: None, dst });
        let pair = Pair { s, t, q, z, alpha: call.alpha, beta: call.beta };
        generalised_schur::generalised_schur(call.batch, call.n, pair, threads)
    };
    cuda = host;

    /// The results of `generalised_schur` with those eigenvalues first for which `chosen` is not zero (xTGSEN).
    ///
    /// One of two that are conjugate brings both; either kind keeps its order. All results are NaN where an operand
    /// holds NaN or inf, or where neighbours are too near to each other to be exchanged.
    reorder_generalised_schur: ReorderGeneralisedSchur<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { s: T [n, n], t: T [n, n], q: T [n, n], z: T [n, n], chosen: i32 [n] }
        rets {
            s_out: T [n, n] = s, t_out: T [n, n] = t, q_out: T [n, n] = q, z_out: T [n, n] = z,
            alpha: T::Complex [n], beta: T::Real [n]
        }
    }
    cpu = any("lapax_reorder_generalised_schur"), |call, threads| {
        let [s, t, q, z] = [call.s_out, call.t_out, call.q_out, call.z_out].map(in_out);
        let pair = Pair { s, t, q, z, alpha: call.alpha, beta: call.beta };
        let (batch, n, chosen) = (call.batch, call.n, call.chosen);
        generalised_schur::reorder_generalised_schur(batch, n, chosen, pair, threads)
    };
    cuda = host;

    /// Eigenvectors of row-major pairs in generalised Schur form, in the columns of `x` (xTGEVC).
    ///
    /// S·x = λ·T·x, or with `left` xᴴ·S = λ·xᴴ·T; those of A and B are Z·x and Q·x. The largest |re| + |im| of each is
    /// 1. Both matrices are as `generalised_schur` leaves them. `x` is NaN where they hold NaN or inf.
    generalised_eigenvectors: GeneralisedEigenvectors<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { s: T [n, n], t: T [n, n] }
        attrs { left: bool }
        rets { x: T::Complex [n, n] }
    }
    cpu = any("lapax_generalised_eigenvectors"), |call, threads| {
        let which = if call.left { Which::Left } else { Which::Right };
        let (batch, n, form) = (call.batch, call.n, (call.s, call.t));
        generalised_schur::generalised_eigenvectors(which, batch, n, form, call.x, threads)
    };
    cuda = host;
}
