//! LU factorisation with partial pivoting: A = P·L·U, L unit lower trapezoidal, U upper.

use lapax_core::{Scalar, Trans};
use lapax_cpu::lu;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

super::ops! { lu;
    /// LU factorisation with partial pivoting, A = P·L·U, in LAPACK's packed form (xGETRF).
    ///
    /// `lu` holds U on and above the diagonal and L, whose unit diagonal is not stored, below.
    /// `ipiv[j]` is the row that was swapped with row j in step j, both counted from 1. The pivot
    /// is the first entry of largest |re| + |im| in its column.
    /// `info = i > 0`: U(i, i) is exactly zero, the first such i; the factorisation is complete all
    /// the same. NaN and inf propagate, with `info` 0.
    getrf: Getrf<T> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n) }
        args { a: T [m, n] }
        rets { lu: T [m, n] = a, ipiv: i32 [k], info: i32 [] }
    }
    cpu = lapack(getrf), |call, threads| {
        dispatch!(
            lu::getrf(call.batch, call.m, call.n, in_out(call.lu), call.ipiv, call.info, threads)
        )
    };
    cuda = {
        "cusolver_getrf_ffi", queued,
        load(lapax_cuda::lu::load_getrf::<T>),
        run(|call, gpu| {
            let (batch, m, n, a) = (call.batch, call.m, call.n, device::in_out(&call.lu));
            let (ipiv, info) = (device::output(&call.ipiv), device::output(&call.info));
            lapax_cuda::lu::getrf(gpu, batch, m, n, a, ipiv, info)
        }),
    };

    /// LU factorisation with partial pivoting of row-major matrices, A = P·L·U, with its permutation.
    ///
    /// As getrf, but `pivots` counts rows from 0, and row i of P⁻¹·A is row `permutation[i]` of A: the
    /// contract of JAX's `lu`, in one call and without transposing.
    lu: Lu<T> over [f32, f64, c32, c64], Row {
        dims { m, n, k = min(m, n) }
        args { a: T [m, n] }
        rets { lu: T [m, n] = a, pivots: i32 [k], permutation: i32 [m] }
    }
    cpu = any("lapax_lu"), |call, threads| {
        let (pivots, permutation) = (call.pivots, call.permutation);
        dispatch!(
            lu::lu(call.batch, call.m, call.n, in_out(call.lu), pivots, permutation, threads)
        )
    };
    cuda = {
        "lapax_lu", captured,
        load(lapax_cuda::solve::load::<T>),
        run(|call, gpu| {
            let (sizes, a) = ((call.m, call.n), device::in_out(&call.lu));
            let (pivots, permutation) = (device::output(&call.pivots), device::output(&call.permutation));
            lapax_cuda::solve::lu(gpu, call.batch, sizes, a, pivots, permutation)
        }),
    };

    /// Sign and logarithm of the absolute value of the determinant, det(A) = sign·exp(logabs).
    ///
    /// By LU factorisation; the factors are not kept. Of a singular matrix `sign` is 0 and `logabs`
    /// −inf. NaN and inf propagate to `logabs`.
    slogdet: Slogdet<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { sign: T [], logabs: T::Real [] }
    }
    cpu = any("lapax_slogdet"), |call, threads| {
        let (sign, logabs) = (call.sign, call.logabs);
        dispatch!(determinant::slogdet(call.batch, call.n, call.a, sign, logabs, threads))
    };
    cuda = {
        "lapax_slogdet", captured,
        load(lapax_cuda::solve::load::<T>),
        run(|call, gpu| {
            let (sign, logabs) = (device::output(&call.sign), device::output(&call.logabs));
            lapax_cuda::solve::slogdet(gpu, call.batch, call.n, device::input(&call.a), sign, logabs)
        }),
    };

    /// Solution of A·X = B by LU factorisation with partial pivoting.
    ///
    /// The factors are not kept: `lu` and `lu_solve` in one call, with their arithmetic. A zero on the
    /// diagonal of U is no error: its quotients are inf or NaN.
    solve: Solve<T> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { a: T [n, n], b: T [n, nrhs] }
        rets { x: T [n, nrhs] }
    }
    cpu = any("lapax_solve"), |call, threads| {
        let (batch, n, nrhs) = (call.batch, call.n, call.nrhs);
        dispatch!(solve::solve(batch, n, nrhs, call.a, call.b, call.x, threads))
    };
    cuda = {
        "lapax_solve", captured,
        load(lapax_cuda::solve::load::<T>),
        run(|call, gpu| {
            let (batch, n, nrhs) = (call.batch, call.n, call.nrhs);
            let (operands, x) = ((device::input(&call.a), device::input(&call.b)), device::output(&call.x));
            lapax_cuda::solve::solve(gpu, batch, n, nrhs, operands, x)
        }),
    };

    /// Inverse, A·X = I, by LU factorisation with partial pivoting.
    ///
    /// `solve` with the identity on the right: of a singular matrix it has inf and NaN.
    inv: Inv<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { x: T [n, n] }
    }
    cpu = any("lapax_inv"), |call, threads| {
        dispatch!(solve::inv(call.batch, call.n, call.a, call.x, threads))
    };
    cuda = {
        "lapax_inv", captured,
        load(lapax_cuda::solve::load::<T>),
        run(|call, gpu| {
            let (a, x) = (device::input(&call.a), device::output(&call.x));
            lapax_cuda::solve::inv(gpu, call.batch, call.n, a, x)
        }),
    };

    /// Solution of op(A)·X = B with the row-major factors of A and their permutation.
    ///
    /// `lu` and `permutation` are those of the operation `lu`. `trans_x` is op: A, Aᵀ or Aᴴ. A zero
    /// on the diagonal of U is no error: its quotients are inf or NaN. X has NaN where
    /// `permutation`, which counts from 0, names no row.
    lu_solve: LuSolve<T> over [f32, f64, c32, c64], Row {
        dims { n, nrhs }
        args { lu: T [n, n], permutation: i32 [n], b: T [n, nrhs] }
        attrs { trans_x: Trans as u8 }
        rets { x: T [n, nrhs] }
    }
    cpu = any("lapax_lu_solve"), |call, threads| {
        let (batch, n, nrhs) = (call.batch, call.n, call.nrhs);
        let (factors, permutation) = (call.lu, call.permutation);
        let (trans, b, x) = (call.trans_x, call.b, call.x);
        dispatch!(lu::lu_solve(trans, batch, n, nrhs, factors, permutation, b, x, threads))
    };
    cuda = {
        "lapax_lu_solve", captured,
        load(lapax_cuda::solve::load::<T>),
        run(|call, gpu| {
            let (batch, sizes) = (call.batch, (call.n, call.nrhs));
            let factors = (device::input(&call.lu), device::input(&call.permutation));
            let (trans, b, x) = (call.trans_x, device::input(&call.b), device::output(&call.x));
            lapax_cuda::solve::lu_solve(gpu, trans, batch, sizes, factors, b, x)
        }),
    };

    /// The permutation that a sequence of row swaps makes.
    ///
    /// `pivots[j]` is the row swapped with row j in step j, counted from 0 (JAX's pivots; LAPACK's
    /// are one larger). `permutation` is 0, …, p − 1 after those swaps, in order: row i of P·A is
    /// row `permutation[i]` of A. A pivot outside 0, …, p − 1 swaps nothing. The attribute
    /// `permutation_size`, which early callers pass, may repeat p.
    lu_pivots_to_permutation: LuPivotsToPermutation<T> over [i32], Row {
        dims { k, p }
        args { pivots: T [k] }
        attrs { permutation_size: Option<i32> }
        rets { permutation: T [p] }
        require {
            p >= k => "at least as many rows p as pivots k",
            permutation_size.is_none_or(|size| i64::from(size) == p)
                => "a permutation of permutation_size rows",
        }
    }
    cpu = any("cu_lu_pivots_to_permutation"), |call, threads| {
        let (pivots, permutation) = (call.pivots, call.permutation);
        lu::lu_pivots_to_permutation(call.batch, call.k, call.p, pivots, permutation, threads)
    };
    cuda = {
        "cu_lu_pivots_to_permutation", captured,
        load(lapax_cuda::lu::load_lu_pivots_to_permutation),
        run(|call, gpu| {
            let (pivots, permutation) = (device::input(&call.pivots), device::output(&call.permutation));
            let (batch, k, p) = (call.batch, call.k, call.p);
            lapax_cuda::lu::lu_pivots_to_permutation(gpu, batch, k, p, pivots, permutation)
        }),
    };
}
