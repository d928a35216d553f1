//! The least workspace that LAPACK's documentation asks for, where it is not one dimension.
//!
//! m and n are a matrix's dimensions. Where versions of LAPACK differ, the largest counts.

use lapax_core::Scalar;

use super::workspace::Least;
use crate::{SingularVectors, Vectors};

/// A sum of products of dimensions, as large as a `usize` can say.
macro_rules! sum {
    ($($factor:literal $(* $dim:ident)*),+) => {
        0_usize$(.saturating_add(1_usize.saturating_mul($factor)$(.saturating_mul($dim))*))+
    };
}

/// Of xGEQP3.
pub(super) fn geqp3<T: Scalar>(n: usize) -> Least {
    if T::IS_COMPLEX {
        Least { work: sum!(1 * n, 1), rwork: sum!(2 * n), iwork: 0 }
    } else {
        Least { work: sum!(3 * n, 1), ..Least::default() }
    }
}

/// Of xGESDD.
pub(super) fn gesdd<T: Scalar>(job: SingularVectors, m: usize, n: usize) -> Least {
    let (k, l) = (m.min(n), m.max(n));
    let vectors = job != SingularVectors::None;
    let iwork = sum!(8 * k);
    if T::IS_COMPLEX {
        let work = if vectors { sum!(1 * k * k, 3 * k, 1 * l) } else { sum!(2 * k, 1 * l) };
        let rwork = if vectors {
            sum!(5 * k * k, 5 * k).max(sum!(2 * l * k, 2 * k * k, 1 * k))
        } else {
            sum!(7 * k)
        };
        Least { work, rwork, iwork }
    } else {
        let work = if vectors {
            sum!(4 * k * k, 7 * k, 1 * l)
        } else {
            sum!(3 * k, 1 * l).max(sum!(10 * k))
        };
        Least { work, rwork: 0, iwork }
    }
}

/// Of xGESVD.
pub(super) fn gesvd<T: Scalar>(m: usize, n: usize) -> Least {
    let (k, l) = (m.min(n), m.max(n));
    if T::IS_COMPLEX {
        Least { work: sum!(2 * k, 1 * l), rwork: sum!(5 * k), iwork: 0 }
    } else {
        Least { work: sum!(3 * k, 1 * l).max(sum!(5 * k)), ..Least::default() }
    }
}

/// Of xSYEVD and xHEEVD.
pub(super) fn syevd<T: Scalar>(job: Vectors, n: usize) -> Least {
    let work = match (job, T::IS_COMPLEX) {
        (Vectors::None, true) => sum!(1 * n, 1),
        (Vectors::None, false) => sum!(2 * n, 1),
        (Vectors::Wanted, true) => sum!(1 * n * n, 2 * n),
        (Vectors::Wanted, false) => sum!(2 * n * n, 6 * n, 1),
    };
    let (rwork, iwork) = match job {
        Vectors::None => (sum!(1 * n), 1),
        Vectors::Wanted => (sum!(2 * n * n, 5 * n, 1), sum!(5 * n, 3)),
    };
    Least { work, rwork: if T::IS_COMPLEX { rwork } else { 0 }, iwork }
}

/// Of xGEEV, with vectors or without.
pub(super) fn geev<T: Scalar>(n: usize) -> Least {
    if T::IS_COMPLEX {
        Least { work: sum!(2 * n), rwork: sum!(2 * n), iwork: 0 }
    } else {
        Least { work: sum!(4 * n), ..Least::default() }
    }
}

/// Of xGEES.
pub(super) fn gees<T: Scalar>(n: usize) -> Least {
    if T::IS_COMPLEX {
        Least { work: sum!(2 * n), rwork: sum!(1 * n), iwork: 0 }
    } else {
        Least { work: sum!(3 * n), ..Least::default() }
    }
}
