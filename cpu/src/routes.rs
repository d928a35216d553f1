//! Which kernel serves a call of a routine, without calling it.

pub use crate::parallel::routes::{Routine, Way};
pub use crate::simd::kind::Kind;

use crate::{
    banded, block_tridiagonal, cholesky, definite, determinant, eig, eigh, functions,
    generalised_schur, hessenberg, lu, qr, schur, solve, svd, triangular, tridiagonal,
};

/// The choices of each family.
const FAMILIES: &[&[Routine]] = &[
    triangular::route::ROUTINES,
    lu::route::ROUTINES,
    cholesky::route::ROUTINES,
    tridiagonal::route::ROUTINES,
    banded::route::ROUTINES,
    block_tridiagonal::route::ROUTINES,
    qr::route::ROUTINES,
    solve::route::ROUTINES,
    determinant::route::ROUTINES,
    definite::route::ROUTINES,
    eigh::route::ROUTINES,
    svd::route::ROUTINES,
    hessenberg::route::ROUTINES,
    schur::route::ROUTINES,
    generalised_schur::route::ROUTINES,
    eig::route::ROUTINES,
    functions::route::ROUTINES,
];

/// The routines that have a choice.
pub fn routines() -> impl Iterator<Item = &'static Routine> {
    FAMILIES.iter().copied().flatten()
}

/// The routine with a name.
#[must_use]
pub fn routine(name: &str) -> Option<&'static Routine> {
    routines().find(|routine| routine.name == name)
}
