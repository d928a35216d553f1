//! Reduction to Hessenberg form: A = Q·H·Qᴴ.

#[cfg(feature = "cuda")]
use lapax_cuda::schur::Form;

#[cfg(feature = "cuda")]
use super::cuda as device;
use super::{c32, c64, in_out, unsigned};

super::ops! { hessenberg;
    /// Reduction to upper Hessenberg form by reflectors, A = Q·H·Qᴴ (xGEHRD).
    ///
    /// Rows and columns `low` to `high`, counted from 1, are reduced; outside of them `a` must be
    /// upper triangular already. `h` holds H on and above its first subdiagonal and the reflectors
    /// below, whose factors `tau` holds: Q is their product, as orgqr forms it from `h[1:, :-1]`.
    /// `info` is 0. NaN or inf anywhere in a matrix makes its `h` and `tau` NaN.
    gehrd: Gehrd<T> over [f32, f64, c32, c64], Column {
        dims { n, t = (n - 1).max(0) }
        args { a: T [n, n] }
        attrs { low: i32, high: i32 }
        rets { h: T [n, n] = a, tau: T [t], info: i32 [] }
        require {
            low >= 1 && i64::from(low) <= n.max(1) => "low between 1 and max(n, 1)",
            i64::from(high) <= n && i64::from(high) >= n.min(i64::from(low))
                => "high between min(low, n) and n",
        }
    }
    cpu = lapack(gehrd), |call, threads| {
        let (low, high) = (unsigned(call.low), unsigned(call.high));
        let (h, tau) = (in_out(call.h), call.tau);
        dispatch!(hessenberg::gehrd(call.batch, call.n, low, high, h, tau, call.info, threads))
    };
    cuda = {
        /// On CUDA the matrices are reduced by the CPU, and the call waits for the device.
        "lapax_gehrd", queued,
        load(device::nothing),
        run(|call, gpu| {
            let (low, high) = (unsigned(call.low), unsigned(call.high));
            let h = device::in_out(&call.h);
            let (mut form, mut tau) = (gpu.read(h.source())?, device::zeros(&call.tau));
            let mut info = device::zeros(&call.info);
            let in_place = lapax_core::InOut { src: None, dst: &mut form[..] };
            let (batch, n, threads) = (call.batch, call.n, &device::host_threads());
            let (tau_host, info_host) = (&mut tau[..], &mut info[..]);
            dispatch!(hessenberg::gehrd(
                batch, n, low, high, in_place, tau_host, info_host, threads
            ))?;
            gpu.write(h.dst, &form)?;
            gpu.write(device::output(&call.tau), &tau)?;
            gpu.write(device::output(&call.info), &info)
        }),
    };

    /// Upper Hessenberg form of row-major matrices, A = Q·H·Qᴴ, with Q.
    ///
    /// `gehrd` of the whole of A and the product of its reflectors in one call, both by rows: H is zero below its
    /// first subdiagonal, Q is the identity in its first row and column. NaN or inf anywhere in a matrix makes the
    /// rest of its `h` and `q` NaN.
    hess: Hess<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { h: T [n, n] = a, q: T [n, n] }
    }
    cpu = any("lapax_hess"), |call, threads| {
        dispatch!(hessenberg::hess(call.batch, call.n, in_out(call.h), call.q, threads))
    };
    cuda = {
        /// On CUDA matrices up to order 64 are the device's; larger ones are the CPU's, for which the call waits
        /// for the device.
        "lapax_hess", queued,
        load(lapax_cuda::schur::load::<T>),
        run(|call, gpu| {
            let (h, q) = (device::in_out(&call.h), device::output(&call.q));
            let (batch, n) = (call.batch, call.n);
            if lapax_cuda::schur::decompose(gpu, Form::Hessenberg, batch, n, h, q)? {
                return Ok(());
            }
            let (mut form, mut factor) = (gpu.read(h.source())?, device::zeros(&call.q));
            let in_place = lapax_core::InOut { src: None, dst: &mut form[..] };
            let threads = &device::host_threads();
            dispatch!(hessenberg::hess(batch, n, in_place, &mut factor[..], threads))?;
            gpu.write(h.dst, &form)?;
            gpu.write(q, &factor)
        }),
    };
}
