//! Who computes: lapax's own kernels, or a LAPACK behind functions of the same signatures.

use std::sync::OnceLock;

/// A library that has the families under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    Native,
    #[cfg(feature = "lapack")]
    Lapack,
}

/// Every backend that is compiled.
pub(crate) const BACKENDS: &[Backend] = &[
    Backend::Native,
    #[cfg(feature = "lapack")]
    Backend::Lapack,
];

impl Backend {
    /// Whether more than ratios is asked of it: what libraries other than the reference do with extreme
    /// matrices is shown, not asserted about. (OpenBLAS multiplies by the reciprocal of a denormal pivot,
    /// which is infinite.)
    pub(crate) fn is_held(self) -> bool {
        self == Self::Native || Provider::of_this_process() == Provider::Reference
    }
}

/// `call!(backend, lu::getrf(…))`: that function of that backend.
macro_rules! call {
    ($backend:expr, $family:ident::$function:ident($($argument:expr),+ $(,)?)) => {
        match $backend {
            $crate::backend::Backend::Native => lapax_cpu::$family::$function($($argument),+),
            #[cfg(feature = "lapack")]
            $crate::backend::Backend::Lapack => {
                lapax_cpu::lapack::$family::$function($($argument),+)
            }
        }
    };
}
pub(crate) use call;

/// The LAPACK that this process calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "which of them can be found depends on the features")]
pub(crate) enum Provider {
    /// None: only native kernels are compiled.
    None,
    /// The reference LAPACK on the reference BLAS.
    Reference,
    OpenBlas,
    Other,
}

impl Provider {
    pub(crate) fn of_this_process() -> Self {
        static PROVIDER: OnceLock<Provider> = OnceLock::new();
        *PROVIDER.get_or_init(Self::find)
    }

    #[cfg(not(feature = "lapack"))]
    fn find() -> Self {
        Self::None
    }

    /// By the files that hold the functions which are called, whatever name they were linked by:
    /// Debian gives OpenBLAS's library the same names as the reference's.
    #[cfg(feature = "lapack")]
    fn find() -> Self {
        let lapax_cpu::lapack::Library { lapack, blas, .. } = lapax_cpu::lapack::library();
        let is = |part: &str| {
            [&lapack, &blas]
                .map(|file| file.as_ref().is_some_and(|file| file.to_string_lossy().contains(part)))
        };
        // Built in from the reference's archives, by their full paths.
        let program = std::env::current_exe().ok();
        let built_in = program.is_some() && lapack == program && blas == program;
        match option_env!("LAPAX_LAPACK") {
            Some("reference" | "reference64") if built_in => Self::Reference,
            _ if is("openblas") == [true; 2] => Self::OpenBlas,
            _ if is("/lapack/liblapack.so")[0] && is("/blas/libblas.so")[1] => Self::Reference,
            _ => Self::Other,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reference => "reference",
            Self::OpenBlas => "openblas",
            Self::Other => "other",
        }
    }
}

/// The comparison is with the LAPACK that was asked for, or it is said that there is none.
#[test]
fn provider_is_the_one_that_was_asked_for() {
    let provider = Provider::of_this_process();
    println!("LAPACK's ratios are those of: {}", provider.name());
    match option_env!("LAPAX_LAPACK") {
        Some(name) if name.starts_with("reference") => assert_eq!(provider, Provider::Reference),
        Some(name) if name.contains("openblas") => assert_eq!(provider, Provider::OpenBlas),
        _ => println!(
            "no comparison with reference LAPACK here: build with --features lapack and \
             LAPAX_LAPACK=reference, after apt-get install liblapack-dev libblas-dev"
        ),
    }
}
