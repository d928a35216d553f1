//! The processor's floating-point mode: XLA calls handlers with denormals flushed to zero.

/// IEEE arithmetic (round to nearest, gradual underflow, no traps) until dropped; then the mode
/// found before. Where that is IEEE arithmetic, nothing is written: writing drains the pipeline.
#[derive(Debug)]
pub struct IeeeMode {
    found: Register,
}

impl IeeeMode {
    /// Switches this thread to IEEE arithmetic.
    #[inline(always)]
    pub fn enter() -> Self {
        let found = read();
        if mode(found) != IEEE {
            write(IEEE);
        }
        IeeeMode { found }
    }
}

impl Drop for IeeeMode {
    #[inline(always)]
    fn drop(&mut self) {
        if mode(self.found) != IEEE {
            write(self.found);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    //! MXCSR: all exceptions masked, round to nearest, neither FTZ nor DAZ.
    use std::arch::asm;
    use std::mem::MaybeUninit;

    pub(super) type Register = u32;
    pub(super) const IEEE: Register = 0x1f80;

    /// Without the exception flags, the low six bits.
    #[inline(always)]
    pub(super) fn mode(value: Register) -> Register {
        value & !0x3f
    }

    #[inline(always)]
    pub(super) fn read() -> Register {
        let mut value = MaybeUninit::<Register>::uninit();
        // SAFETY: stores MXCSR to a local.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) value.as_mut_ptr(), options(nostack, preserves_flags));
            value.assume_init()
        }
    }

    #[inline(always)]
    pub(super) fn write(value: Register) {
        // SAFETY: IEEE, or a value that this register held: no reserved bit is set.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags))
        };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    //! FPCR: zero is IEEE arithmetic.
    use std::arch::asm;

    pub(super) type Register = u64;
    pub(super) const IEEE: Register = 0;

    #[inline(always)]
    pub(super) fn mode(value: Register) -> Register {
        value
    }

    #[inline(always)]
    pub(super) fn read() -> Register {
        let value: Register;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    #[inline(always)]
    pub(super) fn write(value: Register) {
        // SAFETY: IEEE, or a value that this register held.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod register {
    //! Nothing is known of other processors' modes: left as found. Miri knows no assembly.
    pub(super) type Register = ();
    pub(super) const IEEE: Register = ();

    pub(super) fn mode(_: Register) -> Register {}

    pub(super) fn read() -> Register {}

    pub(super) fn write(_: Register) {}
}

use register::{IEEE, Register, mode, read, write};

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use std::hint::black_box;

    use super::{IeeeMode, read, write};

    /// FTZ and DAZ, as XLA sets them.
    const FLUSHING: u32 = 0x9fc0;

    #[test]
    fn denormals_survive_inside_and_the_mode_comes_back() {
        let before = read();
        write(FLUSHING);
        // Operands are hidden between the changes of mode, so that the product stays there too.
        let product = || {
            let (half, tiny) = (black_box(0.5_f64), black_box(f64::MIN_POSITIVE));
            black_box(tiny * half)
        };
        let outside = product();
        let inside = {
            let _mode = IeeeMode::enter();
            product()
        };
        // The product may have set exception flags, the low six bits.
        let after = read() & !0x3f;
        write(before);
        assert!(outside == 0.0, "the processor flushes in this mode: {outside:e}");
        assert!(inside == f64::MIN_POSITIVE / 2.0);
        assert!(after == FLUSHING & !0x3f);
    }
}
