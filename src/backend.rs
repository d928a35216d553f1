//! The choice between lapax's own code on the CPU and a LAPACK library: one for the process, read by
//! every call, so that changing it recompiles nothing.

use std::env::{self, VarError};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value as Json, json};
use xla_ffi::ErrorCode;

/// The environment variable that holds the choice until another is made.
const VARIABLE: &str = "LAPAX_CPU_BACKEND";

/// What computes the families that LAPACK has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Backend {
    /// lapax's own code, on faer.
    Faer = 1,
    /// A LAPACK library.
    #[cfg(feature = "lapack")]
    Lapack = 2,
}

/// A choice that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No backend has the name.
    Unknown(String),
    /// This build does not have the backend.
    NotBuilt(String),
}

impl Backend {
    /// Those that are compiled in.
    pub const ALL: &'static [Self] = &[
        Self::Faer,
        #[cfg(feature = "lapack")]
        Self::Lapack,
    ];
    /// The names of all backends, compiled in or not.
    const NAMES: [&'static str; 2] = ["faer", "lapack"];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faer => Self::NAMES[0],
            #[cfg(feature = "lapack")]
            Self::Lapack => Self::NAMES[1],
        }
    }

    /// The backend with that name.
    ///
    /// # Errors
    /// [`Refusal`] where there is none, or this build lacks it.
    fn named(name: &str) -> Result<Self, Refusal> {
        let known = Self::ALL.iter().copied().find(|backend| backend.name() == name);
        known.ok_or_else(|| {
            let refusal =
                if Self::NAMES.contains(&name) { Refusal::NotBuilt } else { Refusal::Unknown };
            refusal(name.to_owned())
        })
    }
}

/// 0 until a choice is made, then a [`Backend`].
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Makes the choice for all calls that begin afterwards.
///
/// # Errors
/// [`Refusal`] where no backend has the name, or this build lacks it.
pub fn choose(name: &str) -> Result<(), Refusal> {
    let backend = Backend::named(name)?;
    // Nothing else is published with it.
    CHOSEN.store(backend as u8, Ordering::Relaxed);
    Ok(())
}

/// The backend in force: the one chosen last, or the one that LAPAX_CPU_BACKEND names, or faer.
///
/// # Errors
/// [`Refusal`] where no choice was made and LAPAX_CPU_BACKEND cannot be followed.
pub fn in_force() -> Result<Backend, Refusal> {
    static INITIAL: OnceLock<Result<Backend, Refusal>> = OnceLock::new();
    let code = CHOSEN.load(Ordering::Relaxed);
    if let Some(&chosen) = Backend::ALL.iter().find(|&&backend| backend as u8 == code) {
        return Ok(chosen);
    }
    INITIAL
        .get_or_init(|| match env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => Backend::named(&name),
            Err(VarError::NotUnicode(name)) => Err(Refusal::Unknown(name.display().to_string())),
            _ => Ok(Backend::Faer),
        })
        .clone()
}

/// The backends compiled in, and what is known about each.
pub(crate) fn list() -> Json {
    let describe = |backend: &Backend| match backend {
        Backend::Faer => json!({ "name": backend.name() }),
        #[cfg(feature = "lapack")]
        Backend::Lapack => {
            let library = lapax_cpu::lapack::library();
            json!({
                "name": backend.name(),
                "lapack": library.lapack,
                "blas": library.blas,
                "integer_bits": library.integers.bits(),
            })
        }
    };
    Backend::ALL.iter().map(describe).collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(
                f,
                "{name:?} is no backend; the backends are {} (chosen by {VARIABLE} or \
                 lapax.set_backend)",
                Backend::NAMES.join(" and ")
            ),
            Self::NotBuilt(name) => write!(
                f,
                "this build of lapax has no backend {name:?}; build it with `cargo build --release \
                 --features openblas`, or with another LAPACK (README, \"LAPACK backend\")"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for xla_ffi::Error {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Unknown(_) => ErrorCode::InvalidArgument,
            Refusal::NotBuilt(_) => ErrorCode::Unavailable,
        };
        Self::new(code, refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_is_known_by_its_name() {
        for &backend in Backend::ALL {
            assert_eq!(Backend::named(backend.name()), Ok(backend));
        }
    }

    #[test]
    fn a_choice_that_cannot_be_followed_says_why() {
        let unknown = Backend::named("mkl").err().map(xla_ffi::Error::from);
        let unknown = unknown.map(|error| (error.code(), error.message().to_owned()));
        assert!(matches!(&unknown, Some((ErrorCode::InvalidArgument, text))
            if text.starts_with("\"mkl\" is no backend; the backends are faer and lapack")));
        #[cfg(not(feature = "lapack"))]
        {
            let missing = Backend::named("lapack").err().map(xla_ffi::Error::from);
            let missing = missing.map(|error| (error.code(), error.message().to_owned()));
            assert!(matches!(&missing, Some((ErrorCode::Unavailable, text))
                if text.contains("--features openblas")));
        }
    }
}
