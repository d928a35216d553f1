//! Tests of what is not public, as functions of the library.
//!
//! `#[cfg(test)]` would compile all kernels a second time, for each type of number and each kind of
//! register, which takes as long as all of the library. With the feature `testing` these are part of the
//! library that all other tests link, and `tests/inside.rs` runs them.

use std::fmt::Debug;

/// A test's path, and what to run: it panics, or says what went wrong.
pub type Trial = (&'static str, fn() -> Result<(), String>);

/// All of them.
pub fn trials() -> Vec<Trial> {
    [
        crate::bidiagonal_qr::tests::TRIALS,
        crate::bidiagonal_svd::tests::TRIALS,
        crate::bulge::tests::TRIALS,
        crate::claims::tests::TRIALS,
        crate::columns::tests::TRIALS,
        crate::eig::tests::TRIALS,
        crate::eigh::tests::TRIALS,
        crate::implicit_ql::tests::TRIALS,
        crate::lanes::row_tests::TRIALS,
        crate::lanes::tests::TRIALS,
        crate::lanes::tests::neighbours::TRIALS,
        crate::lanes::tests::perturbed::TRIALS,
        crate::lanes::tests::reductions::TRIALS,
        crate::lanes::tests::schur::TRIALS,
        crate::lanes::tests::svd_bidiagonal::TRIALS,
        crate::lanes::tests::tiles::TRIALS,
        #[cfg(feature = "lapack")]
        crate::lapack::TRIALS,
        crate::normal_range::tests::TRIALS,
        crate::portable::TRIALS,
        crate::root_free_ql::tests::TRIALS,
        crate::rows::tests::TRIALS,
        crate::schur::tests::TRIALS,
        crate::simd::tests::TRIALS,
        crate::sparse::tests::TRIALS,
        crate::substitution::tests::TRIALS,
        crate::tall_svd::tests::TRIALS,
        crate::tiled_tests::TRIALS,
        crate::transposition::tests::TRIALS,
        crate::tridiagonal_eigen::tests::TRIALS,
        crate::two_stage::tests::TRIALS,
    ]
    .concat()
}

/// What a test may return.
pub(crate) trait Outcome {
    fn into_result(self) -> Result<(), String>;
}

impl Outcome for () {
    fn into_result(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Debug> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), String> {
        self.map_err(|error| format!("{error:?}"))
    }
}

macro_rules! trial {
    ($test:expr, $($name:expr),+) => {
        (
            concat!(module_path!() $(, "::", $name)+),
            || $crate::testing::Outcome::into_result($test()),
        )
    };
}

/// The tests of a module.
macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        pub(crate) const TRIALS: &[$crate::testing::Trial] =
            &[$(trial!($test, stringify!($test))),+];
    };
}

/// The tests of a module: some that are generic in a scalar, for all four, and some for reals.
macro_rules! for_each_scalar {
    ($($test:ident),+ $(; $($real:ident),+)? $(,)?) => {
        pub(crate) const TRIALS: &[$crate::testing::Trial] = &[
            $(
                trial!($test::<f32>, stringify!($test), "f32"),
                trial!($test::<f64>, stringify!($test), "f64"),
                trial!($test::<num_complex::Complex<f32>>, stringify!($test), "c64"),
                trial!($test::<num_complex::Complex<f64>>, stringify!($test), "c128"),
            )+
            $($(
                trial!($real::<f32>, stringify!($real), "f32"),
                trial!($real::<f64>, stringify!($real), "f64"),
            )+)?
        ];
    };
}
