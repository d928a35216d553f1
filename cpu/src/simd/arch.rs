//! The kinds of registers that kernels are compiled for, and the choice between them when they run.
//!
//! All that the target has, or one alone where `LAPAX_SIMD` says so (build.rs): a kernel's body is
//! compiled for each, and a build for one machine runs one.

use pulp::WithSimd;

/// A kind of register that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arch {
    /// None: one number at a time.
    #[cfg(lapax_simd_scalar)]
    Scalar,
    /// AVX2 and FMA.
    #[cfg(lapax_simd_v3)]
    V3(pulp::x86::V3),
    /// AVX-512.
    #[cfg(lapax_simd_v4)]
    V4(pulp::x86::V4),
    /// Advanced SIMD.
    #[cfg(lapax_simd_neon)]
    Neon(pulp::aarch64::Neon),
}

impl Arch {
    /// The widest that this processor has.
    ///
    /// # Panics
    /// Where this build has none for it, which [`unfit`] says before.
    #[inline]
    pub(crate) fn new() -> Self {
        match Self::widest() {
            Some(widest) => widest,
            None => panic!("{LACKING}"),
        }
    }

    #[inline]
    fn widest() -> Option<Self> {
        #[cfg(lapax_simd_v4)]
        if let Some(simd) = pulp::x86::V4::try_new() {
            return Some(Self::V4(simd));
        }
        #[cfg(lapax_simd_v3)]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Some(Self::V3(simd));
        }
        #[cfg(lapax_simd_neon)]
        if let Some(simd) = pulp::aarch64::Neon::try_new() {
            return Some(Self::Neon(simd));
        }
        #[cfg(lapax_simd_scalar)]
        return Some(Self::Scalar);
        #[cfg(not(lapax_simd_scalar))]
        None
    }

    /// Those of this build that this processor has, the widest last.
    #[cfg(feature = "testing")]
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        [
            #[cfg(lapax_simd_scalar)]
            Some(Self::Scalar),
            #[cfg(lapax_simd_v3)]
            pulp::x86::V3::try_new().map(Self::V3),
            #[cfg(lapax_simd_v4)]
            pulp::x86::V4::try_new().map(Self::V4),
            #[cfg(lapax_simd_neon)]
            pulp::aarch64::Neon::try_new().map(Self::Neon),
        ]
        .into_iter()
        .flatten()
    }

    /// Runs an operation on registers of this kind.
    #[inline(always)]
    pub(crate) fn dispatch<Op: WithSimd>(self, op: Op) -> Op::Output {
        match self {
            #[cfg(lapax_simd_scalar)]
            Self::Scalar => pulp::Simd::vectorize(pulp::Scalar::new(), op),
            #[cfg(lapax_simd_v3)]
            Self::V3(simd) => pulp::Simd::vectorize(simd, op),
            #[cfg(lapax_simd_v4)]
            Self::V4(simd) => pulp::Simd::vectorize(simd, op),
            #[cfg(lapax_simd_neon)]
            Self::Neon(simd) => pulp::Simd::vectorize(simd, op),
        }
    }
}

/// The kinds of registers in this build, the widest last.
pub const LEVELS: &[&str] = &[
    #[cfg(lapax_simd_scalar)]
    "scalar",
    #[cfg(lapax_simd_v3)]
    "v3",
    #[cfg(lapax_simd_v4)]
    "v4",
    #[cfg(lapax_simd_neon)]
    "neon",
];

const LACKING: &str = "this build of lapax is for another processor: it was made with \
    LAPAX_SIMD=native, or LAPAX_SIMD names registers that this processor lacks; build it here, or \
    without LAPAX_SIMD for all processors";

/// Why this build's kernels cannot run on this processor; None where they can.
pub fn unfit() -> Option<&'static str> {
    Arch::widest().is_none().then_some(LACKING)
}
