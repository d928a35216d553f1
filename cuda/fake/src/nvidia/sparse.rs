//! Tridiagonal and sparse systems.

use std::ffi::{c_int, c_uint, c_void};

use lapax_core::{Serial, Trans};
use lapax_cpu::tridiagonal::Diagonals;

use super::handles::checked;
use super::{Number, at, four, place, size};
use crate::Slots;

type Handle = *mut c_void;

const BUFFER: usize = 96;

unsafe extern "C" fn gtsv2_size<T>(
    _: Handle,
    m: c_int,
    _: c_int,
    _: *const T,
    _: *const T,
    _: *const T,
    _: *const T,
    ldb: c_int,
    bytes: *mut usize,
) -> c_uint {
    assert!(m >= 3 && ldb >= m);
    // SAFETY: the library's contract.
    unsafe { *bytes = BUFFER };
    0
}

unsafe extern "C" fn gtsv2<T: Number>(
    handle: Handle,
    m: c_int,
    n: c_int,
    dl: *mut T,
    d: *mut T,
    du: *mut T,
    b: *mut T,
    ldb: c_int,
    buffer: *mut u8,
) -> c_uint {
    assert_eq!(ldb, m);
    let (m, n) = (size(m), size(n));
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        at(buffer, BUFFER).fill(0xee);
        let mut copies = [dl, d, du].map(|diagonal| at(diagonal, m).to_vec());
        let [dl, d, du] = &mut copies;
        let a = Diagonals { dl: place(dl), d: place(d), du: place(du) };
        let mut info = [0];
        lapax_cpu::tridiagonal::gtsv(1, m, n, a, place(at(b, m * n)), &mut info, &Serial)
            .expect("right sizes");
    }
    0
}

/// A·x = b by a dense factorisation; `singular` is −1 or the first zero pivot.
unsafe extern "C" fn csrlsvqr<T: Number>(
    handle: Handle,
    m: c_int,
    nnz: c_int,
    description: Handle,
    values: *mut T,
    indptr: *mut c_int,
    indices: *mut c_int,
    b: *mut T,
    _tolerance: T::Real,
    reorder: c_int,
    x: *mut T,
    singular: *mut c_int,
) -> c_uint {
    assert!(!description.is_null() && (0..=3).contains(&reorder));
    let (n, nnz) = (size(m), size(nnz));
    // SAFETY: the library's contract.
    unsafe {
        checked(handle);
        let (values, indices, indptr) = (at(values, nnz), at(indices, nnz), at(indptr, n + 1));
        let mut a = vec![T::ZERO; n * n];
        for i in 0..n {
            for entry in size(indptr[i])..size(indptr[i + 1]) {
                a[i * n + size(indices[entry])] += values[entry];
            }
        }
        let (mut pivots, mut permutation) = (vec![0; n], vec![0; n]);
        lapax_cpu::lu::lu(1, n, n, place(&mut a), &mut pivots, &mut permutation, &Serial)
            .expect("right sizes");
        let zero = (0..n).find(|i| a[i * n + i] == T::ZERO);
        *singular = zero.map_or(-1, |i| c_int::try_from(i).expect("a size"));
        if zero.is_none() {
            let (b, x) = (at(b, n), at(x, n));
            lapax_cpu::lu::lu_solve(Trans::None, 1, n, 1, &a, &permutation, b, x, &Serial)
                .expect("right sizes");
        }
    }
    0
}

pub(crate) fn list(slots: &mut Slots) {
    four!(slots, gtsv2_size: "cusparseSgtsv2_bufferSizeExt" "cusparseDgtsv2_bufferSizeExt"
        "cusparseCgtsv2_bufferSizeExt" "cusparseZgtsv2_bufferSizeExt");
    four!(slots, gtsv2: "cusparseSgtsv2" "cusparseDgtsv2" "cusparseCgtsv2" "cusparseZgtsv2");
    four!(slots, csrlsvqr: "cusolverSpScsrlsvqr" "cusolverSpDcsrlsvqr" "cusolverSpCcsrlsvqr"
        "cusolverSpZcsrlsvqr");
}
