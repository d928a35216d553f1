//! Reduction to Hessenberg form: A = Q·H·Qᴴ.

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
    cuda = (none: "a name of the CPU alone, as is `gehrd` in JAX");

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
    cuda = (none: "TODO");
}
