//! Tridiagonal systems A·X = B, A given by its three diagonals.

use lapax_cpu::tridiagonal;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

super::ops! { tridiagonal;
    /// Solution of tridiagonal systems A·X = B by elimination with partial pivoting (xGTSV).
    ///
    /// Row i of A is dl[i], d[i], du[i] in columns i − 1, i, i + 1; `dl[0]` and `du[m - 1]` are not
    /// read. `info = i > 0`: U(i, i) is exactly zero, the first such i, and `x` is `b`. `dl_out`,
    /// `d_out` and `du_out` are what the elimination leaves. NaN and inf propagate, with `info` 0.
    gtsv: Gtsv<T> over [f32, f64, c32, c64], Column {
        dims { m, nrhs }
        args { dl: T [m], d: T [m], du: T [m], b: T [m, nrhs] }
        rets {
            dl_out: T [m] = dl, d_out: T [m] = d, du_out: T [m] = du, x: T [m, nrhs] = b,
            info: i32 []
        }
    }
    cpu = lapack(gtsv), |call, threads| {
        let (dl, d, du) = (in_out(call.dl_out), in_out(call.d_out), in_out(call.du_out));
        let a = tridiagonal::Diagonals { dl, d, du };
        dispatch!(
            tridiagonal::gtsv(call.batch, call.m, call.nrhs, a, in_out(call.x), call.info, threads)
        )
    };
    cuda = {
        /// On CUDA the solution alone is returned, and singular systems give what the divisions give.
        "cusparse_gtsv2_ffi" over [f32, f64, c32, c64] {
            dims { m, nrhs }
            args { dl: T [m], d: T [m], du: T [m], b: T [m, nrhs] }
            rets { x: T [m, nrhs] = b }
        },
        queued,
        load(lapax_cuda::tridiagonal::load_tridiagonal_solve::<T>),
        run(|call, gpu| {
            let a = [&call.dl, &call.d, &call.du].map(device::input);
            let (x, batch, m, nrhs) = (device::in_out(&call.x), call.batch, call.m, call.nrhs);
            lapax_cuda::tridiagonal::tridiagonal_solve(gpu, batch, m, nrhs, a, x)
        }),
    };

    /// Solution of tridiagonal systems A·X = B with row-major B and X.
    ///
    /// The diagonals are as for gtsv. X is NaN where A is singular: the contract of JAX's
    /// `tridiagonal_solve`.
    tridiagonal_solve: TridiagonalSolve<T> over [f32, f64, c32, c64], Row {
        dims { m, nrhs }
        args { dl: T [m], d: T [m], du: T [m], b: T [m, nrhs] }
        rets { x: T [m, nrhs] }
    }
    cpu = any("lapax_tridiagonal_solve"), |call, threads| {
        let (a, b, x) = ([call.dl, call.d, call.du], call.b, call.x);
        let (batch, m, nrhs) = (call.batch, call.m, call.nrhs);
        dispatch!(tridiagonal::tridiagonal_solve(batch, m, nrhs, a, b, x, threads))
    };
    cuda = {
        "lapax_tridiagonal_solve", queued,
        load(lapax_cuda::tridiagonal::load_tridiagonal_solve_rows::<T>),
        run(|call, gpu| {
            let a = [&call.dl, &call.d, &call.du].map(device::input);
            let (b, x) = (device::input(&call.b), device::output(&call.x));
            let (batch, m, nrhs) = (call.batch, call.m, call.nrhs);
            lapax_cuda::tridiagonal::tridiagonal_solve_rows(gpu, batch, m, nrhs, a, b, x)
        }),
    };

    /// Solution of tridiagonal systems A·X = B that is finite for any finite A and B.
    ///
    /// The diagonals are as for gtsv. A pivot by which a quotient would overflow is perturbed by
    /// multiples of ε·max|U| (after LAPACK's xLAGTF and xLAGTS); inverse iteration for eigenvectors
    /// solves such nearly singular systems.
    tridiagonal_solve_perturbed: TridiagonalSolvePerturbed<T> over [f32, f64, c32, c64], Column {
        dims { m, nrhs }
        args { dl: T [m], d: T [m], du: T [m], b: T [m, nrhs] }
        rets { x: T [m, nrhs] }
    }
    cpu = any("tridiagonal_solve_perturbed_ffi"), |call, threads| {
        let (a, b, x) = ([call.dl, call.d, call.du], call.b, call.x);
        let (batch, m, nrhs) = (call.batch, call.m, call.nrhs);
        tridiagonal::tridiagonal_solve_perturbed(batch, m, nrhs, a, b, x, threads)
    };
    cuda = {
        "cu_tridiagonal_solve_perturbed", queued,
        load(lapax_cuda::tridiagonal::load_tridiagonal_solve_perturbed::<T>),
        run(|call, gpu| {
            let a = [&call.dl, &call.d, &call.du].map(device::input);
            let (b, x) = (device::input(&call.b), device::output(&call.x));
            let (batch, m, nrhs) = (call.batch, call.m, call.nrhs);
            lapax_cuda::tridiagonal::tridiagonal_solve_perturbed(gpu, batch, m, nrhs, a, b, x)
        }),
    };
}
