//! The singular value decomposition A = U·diag(s)·Vᴴ.

use lapax_core::{Scalar, SingularVectors};
use lapax_cpu::svd::Svd;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out, unsigned};

/// What cuSOLVER's functions compute besides the values.
#[cfg(feature = "cuda")]
fn job(compute_uv: bool, full_matrices: bool) -> lapax_cuda::svd::Job {
    lapax_cuda::svd::Job { vectors: device::vectors(compute_uv), thin: !full_matrices }
}

/// The shape of jaxlib's `u`: U's, or with everything row-major and transposed Vᴴ's.
#[cfg(feature = "cuda")]
fn u_shape(transposed: bool, full_matrices: bool, m: i64, n: i64) -> [i64; 2] {
    let k = m.min(n);
    if transposed { [cut(full_matrices, n, k), n] } else { [m, cut(full_matrices, m, k)] }
}

/// The shape of jaxlib's `vt`: Vᴴ's, or with everything row-major and transposed U's.
#[cfg(feature = "cuda")]
fn vt_shape(transposed: bool, full_matrices: bool, m: i64, n: i64) -> [i64; 2] {
    let k = m.min(n);
    if transposed { [m, cut(full_matrices, m, k)] } else { [cut(full_matrices, n, k), n] }
}

/// Columns of a factor of `order` rows.
fn cut(full_matrices: bool, order: i64, k: i64) -> i64 {
    if full_matrices { order } else { k }
}

/// The order of the square factor whose other side is `k` where the factors are thin.
fn sides(mode: SingularVectors, order: i64, k: i64) -> [i64; 2] {
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
    /// unwritten). On the CPU the first component of m with |u(i)|·√m ≥ 0.4869 of each column of U is
    /// real and positive, and A·v = s·u is V's phase, so that a matrix has the same vectors alone and in any
    /// batch, up to rounding. They are not unique where singular values are equal, or as near to each other
    /// as rounding is to ‖A‖; V's phase is not where one is zero; and those in columns of U or V after the
    /// first min(m, n) are any basis, each with that component of its own real and positive. `scratch` is what is left of `a`.
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
            sides(mode, m, k).contains(&u_cols)
                => "u with m columns for mode All, min(m, n) for Thin, either for None",
            sides(mode, n, k).contains(&vt_rows)
                => "vt with n rows for mode All, min(m, n) for Thin, either for None",
        }
    }
    cpu = lapack(gesdd), |call, threads| {
        let results = Svd { s: call.s, u: call.u, vt: call.vt, info: call.info };
        let a = in_out(call.scratch);
        dispatch!(svd::gesdd(call.mode, call.batch, call.m, call.n, a, results, threads))
    };
    cuda = (none: "a name of the CPU alone: jaxlib's on CUDA are gesvd, gesvdj and gesvdp");

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
            sides(mode, m, k).contains(&u_cols)
                => "u with m columns for mode All, min(m, n) for Thin, either for None",
            sides(mode, n, k).contains(&vt_rows)
                => "vt with n rows for mode All, min(m, n) for Thin, either for None",
        }
    }
    cpu = lapack(gesvd), |call, threads| {
        let results = Svd { s: call.s, u: call.u, vt: call.vt, info: call.info };
        let a = in_out(call.scratch);
        dispatch!(svd::gesvd(call.mode, call.batch, call.m, call.n, a, results, threads))
    };
    cuda = {
        /// On CUDA m ≥ n. With `transposed` all matrices are row-major: A has no more rows than columns
        /// then, its transpose is decomposed, `u` is what is Vᴴ and `vt` what is U in memory. Without
        /// `compute_uv` `u` and `vt` become zero, and may be one number each, whatever the batch.
        "cusolver_gesvd_ffi" over [f32, f64, c32, c64] where T: Scalar {
            dims { m, n, k = min(m, n), u_rows, u_cols, vt_rows, vt_cols }
            args { a: T [m, n] }
            attrs { compute_uv: bool, full_matrices: bool, transposed: bool }
            rets {
                scratch: T [m, n] = a,
                s: T::Real [k],
                u: T [u_rows, u_cols],
                vt: T [vt_rows, vt_cols],
                info: i32 [],
            }
            require {
                transposed || m >= n => "at least as many rows m as columns n",
                !transposed || n >= m => "at least as many columns n as rows m if transposed",
                [u_rows, u_cols] == u_shape(transposed, full_matrices, m, n)
                    => "u of the size of U, or of Vᴴ if transposed",
                [vt_rows, vt_cols] == vt_shape(transposed, full_matrices, m, n)
                    => "vt of the size of Vᴴ, or of U if transposed",
            }
        } or {
            dims { m, n, k = min(m, n) }
            args { a: T [m, n] }
            attrs { compute_uv: bool, full_matrices: bool, transposed: bool }
            rets { scratch: T [m, n] = a, s: T::Real [k], u: T, vt: T, info: i32 [] }
            require {
                !compute_uv => "u and vt to be matrices with compute_uv",
                transposed || m >= n => "at least as many rows m as columns n",
                !transposed || n >= m => "at least as many columns n as rows m if transposed",
            }
        },
        queued,
        load(lapax_cuda::svd::load::<T>),
        run(|call, gpu| {
            let (m, n) = if call.transposed { (call.n, call.m) } else { (call.m, call.n) };
            let sizes = lapax_cuda::svd::Sizes { batch: call.batch, m, n };
            let results = lapax_cuda::svd::Svd {
                s: device::output(&call.s),
                u: device::output(&call.u),
                v: device::output(&call.vt),
                info: device::output(&call.info),
            };
            let vectors = match (call.compute_uv, call.full_matrices) {
                (false, _) => SingularVectors::None,
                (true, false) => SingularVectors::Thin,
                (true, true) => SingularVectors::All,
            };
            let a = device::in_out(&call.scratch);
            lapax_cuda::svd::gesvd(gpu, vectors, sizes, a, results)
        }),
        or(|call, gpu| {
            let (m, n) = if call.transposed { (call.n, call.m) } else { (call.m, call.n) };
            let sizes = lapax_cuda::svd::Sizes { batch: call.batch, m, n };
            let results = lapax_cuda::svd::Svd {
                s: device::output(&call.s),
                u: device::output(&call.u),
                v: device::output(&call.vt),
                info: device::output(&call.info),
            };
            let a = device::in_out(&call.scratch);
            lapax_cuda::svd::gesvd(gpu, SingularVectors::None, sizes, a, results)
        }),
    };

    /// Singular value decomposition A = U·diag(s)·Vᴴ of row-major matrices.
    ///
    /// `gesdd` with vectors, row-major, without scratch, and with the same phases. With `full_matrices`, U is m × m and `vt` is the
    /// n × n matrix Vᴴ; else they have min(m, n) columns and rows. `s`, `u` and `vt` are NaN where A holds
    /// NaN or inf, or did not converge.
    svd: RowMajorSvd<T: Scalar> over [f32, f64, c32, c64], Row {
        dims {
            m, n, k = min(m, n),
            u_cols = cut(full_matrices, m, k), vt_rows = cut(full_matrices, n, k),
        }
        args { a: T [m, n] }
        attrs { full_matrices: bool }
        rets { s: T::Real [k], u: T [m, u_cols], vt: T [vt_rows, n] }
    }
    cpu = any("lapax_svd"), |call, threads| {
        let job = if call.full_matrices { SingularVectors::All } else { SingularVectors::Thin };
        let (batch, m, n) = (call.batch, call.m, call.n);
        dispatch!(svd::svd(job, batch, m, n, call.a, call.s, call.u, call.vt, threads))
    };
    cuda = {
        "lapax_svd", captured,
        load(lapax_cuda::jacobi::load::<T>),
        run(|call, gpu| {
            let (sizes, full, a) = ((call.m, call.n), call.full_matrices, device::input(&call.a));
            let (s, u, vt) =
                (device::output(&call.s), device::output(&call.u), device::output(&call.vt));
            lapax_cuda::jacobi::svd(gpu, call.batch, sizes, full, a, s, Some((u, vt)))
        }),
    };

    /// Some singular values of row-major matrices, and their vectors.
    ///
    /// Of what `svd` finds, phases included, the k singular values from place `start` on, counted from 0, in descending order, and
    /// their vectors. Of a large matrix less is done the fewer these are.
    svd_subset: SvdSubset<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { m, n, k }
        args { a: T [m, n] }
        attrs { start: i32 }
        rets { s: T::Real [k], u: T [m, k], vt: T [k, n] }
        require {
            start >= 0 && k <= m.min(n) - i64::from(start)
                => "start not to be negative, and start + k to be at most min(m, n)",
        }
    }
    cpu = any("lapax_svd_subset"), |call, threads| {
        let start = unsigned(call.start);
        let part = start..start + call.k;
        let (batch, m, n) = (call.batch, call.m, call.n);
        dispatch!(svd::svd_subset(batch, m, n, part, call.a, call.s, call.u, call.vt, threads))
    };
    cuda = (none: "`svd` and a cut serve it");

    /// Singular values of row-major matrices, descending.
    ///
    /// `gesdd` without vectors, and without scratch. `s` is NaN where A holds NaN or inf, or did not
    /// converge.
    svdvals: Svdvals<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { m, n, k = min(m, n) }
        args { a: T [m, n] }
        rets { s: T::Real [k] }
    }
    cpu = any("lapax_svdvals"), |call, threads| {
        let (batch, m, n) = (call.batch, call.m, call.n);
        let none = SingularVectors::None;
        dispatch!(svd::svd(none, batch, m, n, call.a, call.s, &mut [], &mut [], threads))
    };
    cuda = {
        "lapax_svdvals", captured,
        load(lapax_cuda::jacobi::load::<T>),
        run(|call, gpu| {
            let (sizes, a, s) =
                ((call.m, call.n), device::input(&call.a), device::output(&call.s));
            lapax_cuda::jacobi::svd(gpu, call.batch, sizes, false, a, s, None)
        }),
    };

    /// Singular value decomposition A = U·diag(s)·Vᴴ, by Jacobi's rotations (cusolverDnXgesvdj).
    ///
    /// `s` holds the singular values, descending. The columns of `u` and `v` are the singular vectors,
    /// as many as rows or columns with `full_matrices`, else min(m, n); without `compute_uv` they are
    /// zeros. `scratch` is what is left of `a`. `info = i > 0`: the rotations did not converge.
    /// `info = -4`: A holds NaN or inf, where an own kernel decomposes it; `s`, `u` and `v` are NaN then.
    gesvdj: Gesvdj<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n), u_cols = cut(full_matrices, m, k), v_cols = cut(full_matrices, n, k) }
        args { a: T [m, n] }
        attrs { compute_uv: bool, full_matrices: bool }
        rets {
            scratch: T [m, n] = a, s: T::Real [k], u: T [m, u_cols], v: T [n, v_cols], info: i32 []
        }
    }
    cpu = none;
    cuda = {
        "cusolver_gesvdj_ffi", queued,
        load(lapax_cuda::svd::load::<T>),
        run(|call, gpu| {
            let sizes = lapax_cuda::svd::Sizes { batch: call.batch, m: call.m, n: call.n };
            let results = lapax_cuda::svd::Svd {
                s: device::output(&call.s),
                u: device::output(&call.u),
                v: device::output(&call.v),
                info: device::output(&call.info),
            };
            let (job, a) = (job(call.compute_uv, call.full_matrices), device::in_out(&call.scratch));
            lapax_cuda::svd::gesvdj(gpu, job, sizes, a, results)
        }),
    };

    /// Singular value decomposition A = U·diag(s)·Vᴴ, by the polar decomposition (cusolverDnXgesvdp).
    ///
    /// The contract of `gesvdj`.
    gesvdp: Gesvdp<T: Scalar> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n), u_cols = cut(full_matrices, m, k), v_cols = cut(full_matrices, n, k) }
        args { a: T [m, n] }
        attrs { compute_uv: bool, full_matrices: bool }
        rets {
            scratch: T [m, n] = a, s: T::Real [k], u: T [m, u_cols], v: T [n, v_cols], info: i32 []
        }
    }
    cpu = none;
    cuda = {
        "cusolver_gesvdp_ffi", queued,
        load(lapax_cuda::svd::load::<T>),
        run(|call, gpu| {
            let sizes = lapax_cuda::svd::Sizes { batch: call.batch, m: call.m, n: call.n };
            let results = lapax_cuda::svd::Svd {
                s: device::output(&call.s),
                u: device::output(&call.u),
                v: device::output(&call.v),
                info: device::output(&call.info),
            };
            let (job, a) = (job(call.compute_uv, call.full_matrices), device::in_out(&call.scratch));
            lapax_cuda::svd::gesvdp(gpu, job, sizes, a, results)
        }),
    };
}
