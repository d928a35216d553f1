//! Registers that are written whole.
//!
//! Where a register was chosen lane by lane between something new and what lies where it goes, LLVM
//! writes the lanes of the new alone. With AVX2 on AMD's processors such a store takes longer than a blend
//! and a store of all lanes. Zen 3, one core, with such stores and without: f64, `lu` of order 8 182 and
//! 143 ns, of 32 by rows 5.0 and 4.1 us; f32, `lu` of order 16 0.73 and 0.42 us, `cholesky` 0.23 and 0.17.
//!
//! Hiding what is written and not what is chosen gained less, and cost small matrices registers. With
//! AVX-512, which has masks for every instruction, the compiler has its way: on Zen 4, one core, hiding what
//! is chosen made `lu` of order 16 a sixth faster, and `inv` of order 4 in c128 take 225 ns where it took
//! 79; hiding what `lu` writes changed nothing.

use bytemuck::Pod;
use pulp::Simd;

/// The same register, of which the compiler no longer knows that it was chosen.
#[inline(always)]
pub(crate) fn whole<S: Simd, G: Pod>(simd: S, reg: G) -> G {
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::{cast, f64x4};
        let any: &dyn std::any::Any = &simd;
        // SAFETY: a processor that `simd` is of has these registers.
        #[allow(unsafe_code, reason = "the compiler has no other way to say so")]
        unsafe {
            if any.is::<pulp::x86::V3>() {
                let reg = x86::whole_256(cast::<f64x4, _>(bytemuck::cast(reg)));
                return bytemuck::cast(cast::<_, f64x4>(reg));
            }
        }
    }
    let _ = simd;
    reg
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::__m256d;

    #[inline]
    #[target_feature(enable = "avx")]
    pub(super) fn whole_256(mut reg: __m256d) -> __m256d {
        // SAFETY: there is no instruction in it.
        #[allow(unsafe_code, reason = "an empty piece of assembly hides where a value is from")]
        unsafe {
            asm!("/* {0} */", inout(ymm_reg) reg, options(pure, nomem, nostack, preserves_flags));
        }
        reg
    }
}
