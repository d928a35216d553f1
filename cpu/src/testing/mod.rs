//! Tests of what is not public, as functions of the library.
//!
//! `#[cfg(test)]` would compile all kernels a second time, for each type of number and each kind of
//! register, which takes as long as all of the library. With the feature `testing` these are part of the
//! library that all other tests link, and `tests/inside.rs` runs them.

pub(crate) mod levels;
pub(crate) mod threads;

use std::fmt::Debug;

/// A test's path, and what to run: it panics, or says what went wrong.
pub type Trial = (&'static str, fn() -> Result<(), String>);

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
