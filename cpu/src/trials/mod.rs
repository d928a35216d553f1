//! The tests of what is not public; see `testing`.

pub(crate) mod fused;
pub(crate) mod lanes;
pub(crate) mod lanes_rows;
mod parallel;
mod portable;
pub(crate) mod registers;
pub(crate) mod two_stage;

use crate::testing::Trial;

/// All of them.
pub fn trials() -> Vec<Trial> {
    [
        crate::svd::qr_iteration::tests::TRIALS,
        crate::svd::divide::tests::TRIALS,
        crate::schur::bulge::tests::TRIALS,
        crate::parallel::affinity::tests::TRIALS,
        crate::trials::fused::TRIALS,
        crate::eig::single::tests::TRIALS,
        crate::eigh::single::tests::TRIALS,
        crate::eigh::ql::tests::TRIALS,
        crate::trials::lanes_rows::TRIALS,
        crate::trials::lanes::TRIALS,
        crate::trials::lanes::neighbours::TRIALS,
        crate::trials::lanes::perturbed::TRIALS,
        crate::trials::lanes::reductions::TRIALS,
        crate::trials::lanes::schur::TRIALS,
        crate::trials::lanes::svd_bidiagonal::TRIALS,
        crate::trials::lanes::tiles::TRIALS,
        #[cfg(feature = "lapack")]
        crate::lapack::TRIALS,
        crate::simd::range::tests::TRIALS,
        crate::trials::portable::TRIALS,
        crate::eigh::root_free_ql::tests::TRIALS,
        crate::trials::registers::TRIALS,
        crate::schur::single::tests::TRIALS,
        crate::simd::loops::tests::TRIALS,
        crate::sparse::tests::TRIALS,
        crate::blas::trsm_packed::tests::TRIALS,
        crate::svd::single::tests::TRIALS,
        crate::trials::parallel::TRIALS,
        crate::matrix::transpose::tests::TRIALS,
        crate::eigh::divide::tests::TRIALS,
        crate::trials::two_stage::TRIALS,
    ]
    .concat()
}
