//! QR factorisations, the use of their Q, and reduction to tridiagonal form.

use std::ffi::{c_int, c_uint, c_void};

use lapax_core::{Serial, Side};
use lapax_cpu::qr::Factor;

use super::handles::checked;
use super::{
    Code, Number, answer_elements, answer_sizes, at, four, place, size, spoil, spoil_elements,
    uplo, with_type,
};
use crate::Slots;

type Handle = *mut c_void;
type Bytes = *mut c_void;

unsafe extern "C" fn geqrf_sizes(
    _: Handle,
    _: Handle,
    m: i64,
    _: i64,
    _: Code,
    _: *const c_void,
    lda: i64,
    _: Code,
    _: *const c_void,
    _: Code,
    device: *mut usize,
    host: *mut usize,
) -> c_uint {
    assert!(lda >= m.max(1));
    // SAFETY: the library's contract.
    unsafe { answer_sizes(device, host) }
}

unsafe extern "C" fn geqrf(
    handle: Handle,
    _: Handle,
    m: i64,
    n: i64,
    code: Code,
    a: Bytes,
    lda: i64,
    tau_code: Code,
    tau: Bytes,
    compute: Code,
    device: Bytes,
    device_bytes: usize,
    host: Bytes,
    host_bytes: usize,
    info: *mut c_int,
) -> c_uint {
    assert!(lda == m && compute == code && tau_code == code);
    let (m, n) = (size(m), size(n));
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil(device, device_bytes, host, host_bytes);
        with_type!(code, T => {
            let (a, tau) = (place(at(a.cast::<T>(), m * n)), at(tau.cast::<T>(), m.min(n)));
            lapax_cpu::qr::geqrf(1, m, n, a, tau, &Serial).expect("right sizes");
        });
        *info = 0;
    }
    0
}

unsafe extern "C" fn orgqr_size<T>(
    _: Handle,
    m: c_int,
    n: c_int,
    k: c_int,
    _: *const T,
    lda: c_int,
    _: *const T,
    elements: *mut c_int,
) -> c_uint {
    assert!(m >= n && n >= k && lda >= m);
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn orgqr<T: Number>(
    handle: Handle,
    m: c_int,
    n: c_int,
    k: c_int,
    a: *mut T,
    lda: c_int,
    tau: *mut T,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
) -> c_uint {
    assert_eq!(lda, m);
    let (m, n, k) = (size(m), size(n), size(k));
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil_elements(work, elements);
        let (a, tau) = (place(at(a, m * n)), at(tau, k));
        lapax_cpu::qr::orgqr(1, m, n, k, a, tau, &Serial).expect("right sizes");
        *info = 0;
    }
    0
}

unsafe extern "C" fn ormqr_size<T>(
    _: Handle,
    _: c_int,
    _: c_int,
    m: c_int,
    _: c_int,
    _: c_int,
    _: *const T,
    _: c_int,
    _: *const T,
    _: *const T,
    ldc: c_int,
    elements: *mut c_int,
) -> c_uint {
    assert!(ldc >= m);
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn ormqr<T: Number>(
    handle: Handle,
    side: c_int,
    operation: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    a: *mut T,
    lda: c_int,
    tau: *mut T,
    c: *mut T,
    ldc: c_int,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
) -> c_uint {
    let adjoint = if T::IS_COMPLEX { 2 } else { 1 };
    assert!(ldc == m && (operation == 0 || operation == adjoint), "Q or its adjoint");
    let (m, n, k) = (size(m), size(n), size(k));
    let side = if side == 0 { Side::Left } else { Side::Right };
    let order = if side == Side::Left { m } else { n };
    assert_eq!(size(lda), order);
    let factor = if operation == 0 { Factor::Q } else { Factor::Adjoint };
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil_elements(work, elements);
        let (a, tau, c) = (at(a, order * k), at(tau, k), place(at(c, m * n)));
        lapax_cpu::qr::ormqr(side, factor, 1, m, n, k, k, a, tau, c, &Serial).expect("right sizes");
        *info = 0;
    }
    0
}

unsafe extern "C" fn sytrd_size<T: Number>(
    _: Handle,
    _: c_int,
    n: c_int,
    _: *const T,
    lda: c_int,
    _: *const T::Real,
    _: *const T::Real,
    _: *const T,
    elements: *mut c_int,
) -> c_uint {
    assert!(lda >= n);
    // SAFETY: the library's contract.
    unsafe { answer_elements(elements) }
}

unsafe extern "C" fn sytrd<T: Number>(
    handle: Handle,
    fill: c_int,
    n: c_int,
    a: *mut T,
    lda: c_int,
    d: *mut T::Real,
    e: *mut T::Real,
    tau: *mut T,
    work: *mut T,
    elements: c_int,
    info: *mut c_int,
) -> c_uint {
    assert_eq!(lda, n);
    let n = size(n);
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        spoil_elements(work, elements);
        let (a, d, info) = (place(at(a, n * n)), at(d, n), at(info, 1));
        let (e, tau) = (at(e, n - 1), at(tau, n - 1));
        lapax_cpu::eigh::sytrd(uplo(fill), 1, n, a, d, e, tau, info, &Serial).expect("right sizes");
    }
    0
}

pub(crate) fn list(slots: &mut Slots) {
    slots.extend([
        ("cusolverDnXgeqrf_bufferSize", geqrf_sizes as *const c_void),
        ("cusolverDnXgeqrf", geqrf as *const c_void),
    ]);
    four!(slots, orgqr_size: "cusolverDnSorgqr_bufferSize" "cusolverDnDorgqr_bufferSize"
        "cusolverDnCungqr_bufferSize" "cusolverDnZungqr_bufferSize");
    four!(slots, orgqr: "cusolverDnSorgqr" "cusolverDnDorgqr" "cusolverDnCungqr" "cusolverDnZungqr");
    four!(slots, ormqr_size: "cusolverDnSormqr_bufferSize" "cusolverDnDormqr_bufferSize"
        "cusolverDnCunmqr_bufferSize" "cusolverDnZunmqr_bufferSize");
    four!(slots, ormqr: "cusolverDnSormqr" "cusolverDnDormqr" "cusolverDnCunmqr" "cusolverDnZunmqr");
    four!(slots, sytrd_size: "cusolverDnSsytrd_bufferSize" "cusolverDnDsytrd_bufferSize"
        "cusolverDnChetrd_bufferSize" "cusolverDnZhetrd_bufferSize");
    four!(slots, sytrd: "cusolverDnSsytrd" "cusolverDnDsytrd" "cusolverDnChetrd" "cusolverDnZhetrd");
}
