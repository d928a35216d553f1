//! The singular value decomposition A = U·diag(s)·Vᴴ.

use lapax_core::{Scalar, SingularVectors};
use lapax_cpu::svd::Svd;

use super::{c32, c64, in_out};

/// The order of the square factor whose other side is `k` where the factors are thin.
fn cut(mode: SingularVectors, order: i64, k: i64) -> [i64; 2] {
    match mode {
        SingularVectors::All => [order; 2],
        SingularVectors::Thin => [k; 2],
        SingularVectors::None => [order, k],
    }
}

super::ops! { svd;
    /// Singular value decomposition A = U·diag(s)·Vᴴ, by divide and conquer (xGESDD).
    ///
    /// `s` holds the singular values, descending and not negative. With `mode` All, U is m × m and
    /// `vt` is the n × n matrix Vᴴ; with Thin they have min(m, n) columns and rows. With None no
    /// vectors are computed, `u` and `vt` may have either size and are zeros (jaxlib leaves them
    /// unwritten). `scratch` is what is left of `a`.
    /// `info = -4`: A holds NaN or inf, and `s`, `u` and `vt` are NaN (jaxlib's OpenBLAS returns
    /// finite vectors for inf). `info = i > 0`: i elements of an intermediate bidiagonal matrix did
    /// not converge, neither by divide and conquer nor by implicit QR steps.
    gesdd: Gesdd<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n), u_cols, vt_rows }
        args { a: T [m, n] }
        attrs { mode: SingularVectors as u8 }
        rets {
            scratch: T [m, n] = a,
            s: T::Real [k],
            u: T [m, u_cols],
            vt: T [vt_rows, n],
            info: i32 [],
        }
        require {
            cut(mode, m, k).contains(&u_cols)
                => "u with m columns for mode All, min(m, n) for Thin, either for None",
            cut(mode, n, k).contains(&vt_rows)
                => "vt with n rows for mode All, min(m, n) for Thin, either for None",
        }
    }
    cpu = lapack(gesdd), |call, threads| {
        let results = Svd { s: call.s, u: call.u, vt: call.vt, info: call.info };
        let a = in_out(call.scratch);
        dispatch!(svd::gesdd(call.mode, call.batch, call.m, call.n, a, results, threads))
    };
    cuda = none;

    /// Singular value decomposition A = U·diag(s)·Vᴴ, by implicit QR steps (xGESVD).
    ///
    /// The contract of `gesdd`, whose results are as accurate and sooner there for large matrices,
    /// but that `info` is −5 where A holds NaN or inf. `mode` is both JOBU and JOBVT.
    gesvd: Gesvd<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n), u_cols, vt_rows }
        args { a: T [m, n] }
        attrs { mode: SingularVectors as u8 }
        rets {
            scratch: T [m, n] = a,
            s: T::Real [k],
            u: T [m, u_cols],
            vt: T [vt_rows, n],
            info: i32 [],
        }
        require {
            cut(mode, m, k).contains(&u_cols)
                => "u with m columns for mode All, min(m, n) for Thin, either for None",
            cut(mode, n, k).contains(&vt_rows)
                => "vt with n rows for mode All, min(m, n) for Thin, either for None",
        }
    }
    cpu = lapack(gesvd), |call, threads| {
        let results = Svd { s: call.s, u: call.u, vt: call.vt, info: call.info };
        let a = in_out(call.scratch);
        dispatch!(svd::gesvd(call.mode, call.batch, call.m, call.n, a, results, threads))
    };
    cuda = none;
}
