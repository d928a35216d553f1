//! QR factorisation A = Q·R with Q as Householder reflectors, and the use of such a Q.

use lapax_core::Side;
use lapax_cpu::qr;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out};

/// The order of Q: the size of C on the side on which Q multiplies.
fn order(left: bool, m: i64, n: i64) -> i64 {
    if left { m } else { n }
}

super::ops! { qr;
    /// QR factorisation A = Q·R by Householder reflectors, in LAPACK's packed form (xGEQRF).
    ///
    /// `qr` holds R on and above the diagonal, which is real and may be negative. Q is H₁·H₂⋯H_k,
    /// H_i = I − tau[i]·v·vᴴ; v is zero above row i, one in it, and stored below it in column i. A
    /// tau is zero where a column has zeros below the diagonal and is real on it. NaN and inf
    /// propagate.
    geqrf: Geqrf<T> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n) }
        args { a: T [m, n] }
        rets { qr: T [m, n] = a, tau: T [k] }
    }
    cpu = lapack(geqrf), |call, threads| {
        dispatch!(qr::geqrf(call.batch, call.m, call.n, in_out(call.qr), call.tau, threads))
    };
    cuda = {
        "cusolver_geqrf_ffi", queued,
        load(lapax_cuda::qr::load_geqrf::<T>),
        run(|call, gpu| {
            let (a, tau) = (device::in_out(&call.qr), device::output(&call.tau));
            lapax_cuda::qr::geqrf(gpu, call.batch, call.m, call.n, a, tau)
        }),
    };

    /// QR factorisation A = Q·R of row-major matrices, with c columns of Q and c rows of R.
    ///
    /// c is min(m, n), or m for all of Q. R is zero below its diagonal, which is real and may be
    /// negative, as geqrf's. NaN and inf propagate.
    qr: Qr<T> over [f32, f64, c32, c64], Row {
        dims { m, n, c }
        args { a: T [m, n] }
        rets { q: T [m, c], r: T [c, n] }
        require { c == m.min(n) || c == m => "Q to have min(m, n) or m columns c" }
    }
    cpu = any("lapax_qr"), |call, threads| {
        let sizes = (call.m, call.n, call.c);
        dispatch!(qr::qr(call.batch, sizes, call.a, call.q, call.r, threads))
    };
    cuda = {
        "lapax_qr", captured,
        load(lapax_cuda::orthogonal::load::<T>),
        run(|call, gpu| {
            let (sizes, a) = ((call.m, call.n, call.c), device::input(&call.a));
            let (q, r) = (Some(device::output(&call.q)), device::output(&call.r));
            lapax_cuda::orthogonal::qr(gpu, call.batch, sizes, a, q, r)
        }),
    };

    /// R of the QR factorisation of row-major matrices, without Q.
    ///
    /// r is that of `qr` with min(m, n) columns of Q, and zeros below it where c is m.
    qr_r: QrR<T> over [f32, f64, c32, c64], Row {
        dims { m, n, c }
        args { a: T [m, n] }
        rets { r: T [c, n] }
        require { c == m.min(n) || c == m => "R to have min(m, n) or m rows c" }
    }
    cpu = any("lapax_qr_r"), |call, threads| {
        let sizes = (call.m, call.n, call.c);
        dispatch!(qr::qr_r(call.batch, sizes, call.a, call.r, threads))
    };
    cuda = {
        "lapax_qr_r", captured,
        load(lapax_cuda::orthogonal::load::<T>),
        run(|call, gpu| {
            let (sizes, a) = ((call.m, call.n, call.c), device::input(&call.a));
            lapax_cuda::orthogonal::qr(gpu, call.batch, sizes, a, None, device::output(&call.r))
        }),
    };

    /// QR factorisation with column pivoting, A·P = Q·R (xGEQP3).
    ///
    /// `qr` and `tau` are geqrf's for A·P. Where `jpvt` is not zero, the column is moved to the
    /// front and not pivoted; of the others, the one of largest remaining norm comes next.
    /// `jpvt_out` counts from 1: column j of A·P is column `jpvt_out[j]` of A. A column that holds
    /// NaN or inf comes before finite ones, so that they propagate.
    geqp3: Geqp3<T> over [f32, f64, c32, c64], Column {
        dims { m, n, k = min(m, n) }
        args { a: T [m, n], jpvt: i32 [n] }
        rets { qr: T [m, n] = a, jpvt_out: i32 [n] = jpvt, tau: T [k] }
    }
    cpu = lapack(geqp3), |call, threads| {
        let (a, jpvt) = (in_out(call.qr), in_out(call.jpvt_out));
        dispatch!(qr::geqp3(call.batch, call.m, call.n, a, jpvt, call.tau, threads))
    };
    cuda = {
        /// On CUDA own kernels factor them: cuSOLVER has no such routine. Sizes that the table of choices gives
        /// to the host are factored by the CPU, and the call waits for the device. `magma` is not followed:
        /// MAGMA is never used.
        "cuhybrid_geqp3" over [f32, f64, c32, c64] {
            dims { m, n, k = min(m, n) }
            args { a: T [m, n], jpvt: i32 [n] }
            attrs { magma: &str }
            rets { qr: T [m, n] = a, jpvt_out: i32 [n] = jpvt, tau: T [k] }
        },
        queued,
        load(lapax_cuda::pivoted::load::<T>),
        run(|call, gpu| {
            let _ = call.magma;
            let (a, jpvt) = (device::in_out(&call.qr), device::in_out(&call.jpvt_out));
            let (batch, m, n) = (call.batch, call.m, call.n);
            // As geqp3 itself, but before anything is read.
            lapax_core::index_fits_i32("n", n)?;
            if lapax_cuda::pivoted::chosen::<T>(gpu, batch, (m, n))? {
                let tau = device::output(&call.tau);
                return lapax_cuda::pivoted::geqp3(gpu, batch, (m, n), a, jpvt, tau);
            }
            let (mut matrices, mut columns) = (gpu.read(a.source())?, gpu.read(jpvt.source())?);
            let mut tau = vec![Default::default(); call.tau.len()];
            let a_host = lapax_core::InOut { src: None, dst: &mut matrices[..] };
            let jpvt_host = lapax_core::InOut { src: None, dst: &mut columns[..] };
            let tau_host = &mut tau[..];
            let threads = &device::host_threads();
            dispatch!(qr::geqp3(batch, m, n, a_host, jpvt_host, tau_host, threads))?;
            gpu.write(a.dst, &matrices)?;
            gpu.write(jpvt.dst, &columns)?;
            gpu.write(device::output(&call.tau), &tau)
        }),
    };

    /// The first n columns of Q = H₁·H₂⋯H_t from its reflectors (xORGQR, xUNGQR).
    ///
    /// The reflectors are stored as geqrf leaves them; what `a` holds on and above the diagonal and
    /// in its last n − t columns is not read.
    orgqr: Orgqr<T> over [f32, f64, c32, c64], Column {
        dims { m, n, t }
        args { a: T [m, n], tau: T [t] }
        rets { q: T [m, n] = a }
        require {
            m >= n => "at least as many rows m as columns n",
            n >= t => "at least as many columns n as reflectors t",
        }
    }
    cpu = lapack(orgqr, ungqr), |call, threads| {
        let (a, tau) = (in_out(call.q), call.tau);
        dispatch!(qr::orgqr(call.batch, call.m, call.n, call.t, a, tau, threads))
    };
    cuda = {
        "cusolver_orgqr_ffi", queued,
        load(lapax_cuda::qr::load_orgqr::<T>),
        run(|call, gpu| {
            let (a, tau) = (device::in_out(&call.q), device::input(&call.tau));
            lapax_cuda::qr::orgqr(gpu, call.batch, (call.m, call.n, call.t), a, tau)
        }),
    };

    /// A product with Q = H₁·H₂⋯H_t: Q·C, Qᴴ·C, C·Q or C·Qᴴ (xORMQR, xUNMQR).
    ///
    /// The reflectors are in the first t columns of `a`, as geqrf leaves them; the rest of `a` is
    /// not read. `left` is the side of Q. `transpose` takes Qᴴ, which is Qᵀ for real scalars.
    ormqr: Ormqr<T> over [f32, f64, c32, c64], Column {
        dims { m, n, p, t, r = order(left, m, n) }
        args { a: T [r, p], tau: T [t], c: T [m, n] }
        attrs { left: bool, transpose: bool }
        rets { product: T [m, n] = c }
        require {
            r >= t => "Q's order r to be at least its number of reflectors t",
            p >= t => "at least as many columns p as reflectors t",
        }
    }
    cpu = lapack(ormqr, unmqr), |call, threads| {
        let side = if call.left { Side::Left } else { Side::Right };
        let factor = if call.transpose { qr::Factor::Adjoint } else { qr::Factor::Q };
        let (batch, m, n, p, t) = (call.batch, call.m, call.n, call.p, call.t);
        let (a, tau, c) = (call.a, call.tau, in_out(call.product));
        dispatch!(qr::ormqr(side, factor, batch, m, n, p, t, a, tau, c, threads))
    };
    cuda = {
        "cusolver_ormqr_ffi", queued,
        load(lapax_cuda::qr::load_ormqr::<T>),
        run(|call, gpu| {
            let side = if call.left { Side::Left } else { Side::Right };
            let (batch, m, n, p, t) = (call.batch, call.m, call.n, call.p, call.t);
            let sizes = lapax_cuda::qr::Sizes { batch, m, n, p, t };
            let (a, tau) = (device::input(&call.a), device::input(&call.tau));
            let c = device::in_out(&call.product);
            lapax_cuda::qr::ormqr(gpu, side, call.transpose, sizes, a, tau, c)
        }),
    };
}
