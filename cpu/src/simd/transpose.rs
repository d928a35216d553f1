//! A square of registers, transposed in registers where the processor is known, else in memory.
//!
//! Rows become columns in log₂(lanes) rounds. A round pairs rows that are some power of two apart
//! and exchanges what lies that far apart in them: first single numbers and pairs of numbers
//! within 128 bits, then whole pieces of 128 bits.
//!
//! Matrices of a few numbers, of which a register has several, take fewer exchanges than a square does.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

use bytemuck::Pod;
use pulp::Simd;

/// Transposes `regs`, as many registers as each has numbers of type R.
#[inline(always)]
pub(crate) fn transpose<S: Simd, R: Pod, G: Pod>(simd: S, regs: &mut [G]) {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &simd;
        #[cfg(feature = "avx512")]
        if let Some(&simd) = simd.downcast_ref::<pulp::x86::V4>() {
            return x86::transpose_512(simd, size_of::<R>(), regs);
        }
        if let Some(&simd) = simd.downcast_ref::<pulp::x86::V3>() {
            return x86::transpose_256(simd, size_of::<R>(), regs);
        }
    }
    let _ = simd;
    let lanes = regs.len();
    let numbers: &mut [R] = bytemuck::cast_slice_mut(regs);
    for i in 0..lanes {
        for j in 0..i {
            numbers.swap(i * lanes + j, j * lanes + i);
        }
    }
}

/// Which way matrices of a few numbers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Few {
    /// Registers of memory, in which the matrices lie one after the other, become one of each number.
    Apart,
    /// The other way.
    Together,
}

/// Rearranges `SIZE` registers, from two to four, the numbers of as many matrices as a register has of them;
/// `false`, and nothing done, where the processor has no exchange of any two registers.
///
/// It takes SIZE·(SIZE − 1) exchanges, where a square has 24 of f64 and 64 of f32. One core of Zen 5, ns a matrix,
/// by a square and so: `solve` of 3 in f64 6.0 and 4.7, in f32 4.9 and 3.6, `lu` of 3 15.1 and 12.7, 12.8 and 8.9,
/// `tridiagonal_solve` of 3 12.1 and 10.8, 8.4 and 6.0.
#[inline(always)]
pub(crate) fn few<S: Simd, R: Pod, G: Pod, const SIZE: usize>(
    simd: S,
    way: Few,
    regs: &mut [G; SIZE],
) -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    {
        let simd: &dyn Any = &simd;
        if let Some(&simd) = simd.downcast_ref::<pulp::x86::V4>() {
            match size_of::<R>() {
                8 => x86::few_f64(simd, way, regs),
                _ => x86::few_f32(simd, way, regs),
            }
            return true;
        }
    }
    let _ = (simd, way, regs, size_of::<R>());
    false
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::__m256d;

    use bytemuck::Pod;
    use pulp::x86::V3;
    use pulp::{cast, f64x4};

    /// The rounds within 128 bits, for one group of rows: 2 of 64 bits or 4 of 32.
    macro_rules! within_128 {
        ($isa:expr, $bytes:expr, $rows:expr,
         $lo64:ident $hi64:ident $lo32:ident $hi32:ident $ps:ident $pd:ident) => {
            if $bytes == 8 {
                for pair in $rows.chunks_exact_mut(2) {
                    let (a, b) = (pair[0], pair[1]);
                    pair[0] = $isa.$lo64(a, b);
                    pair[1] = $isa.$hi64(a, b);
                }
            } else {
                for four in $rows.chunks_exact_mut(4) {
                    let single = |i: usize| $isa.$ps(four[i]);
                    let (a, b, c, d) = (single(0), single(1), single(2), single(3));
                    let ab = [$isa.$pd($isa.$lo32(a, b)), $isa.$pd($isa.$hi32(a, b))];
                    let cd = [$isa.$pd($isa.$lo32(c, d)), $isa.$pd($isa.$hi32(c, d))];
                    four[0] = $isa.$lo64(ab[0], cd[0]);
                    four[1] = $isa.$hi64(ab[0], cd[0]);
                    four[2] = $isa.$lo64(ab[1], cd[1]);
                    four[3] = $isa.$hi64(ab[1], cd[1]);
                }
            }
        };
    }

    #[cfg(feature = "avx512")]
    #[inline(always)]
    pub(super) fn transpose_512<G: Pod>(isa: pulp::x86::V4, bytes: usize, regs: &mut [G]) {
        use std::arch::x86_64::__m512d;

        use pulp::f64x8;

        let group = 16 / bytes;
        let mut rows = [isa.avx512f._mm512_setzero_pd(); 16];
        let rows = &mut rows[..4 * group];
        for (row, reg) in rows.iter_mut().zip(&*regs) {
            *row = cast::<f64x8, __m512d>(bytemuck::cast(*reg));
        }
        let f = isa.avx512f;
        within_128!(f, bytes, rows, _mm512_unpacklo_pd _mm512_unpackhi_pd
            _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_castpd_ps _mm512_castps_pd);
        // Piece c of row i of group g holds column group·c + i of the rows of that group.
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        for i in 0..group {
            let row = |g: usize| rows[g * group + i];
            let low = [row(0), row(1), row(2), row(3)];
            let even = [
                f._mm512_shuffle_f64x2::<EVEN>(low[0], low[1]),
                f._mm512_shuffle_f64x2::<EVEN>(low[2], low[3]),
            ];
            let odd = [
                f._mm512_shuffle_f64x2::<ODD>(low[0], low[1]),
                f._mm512_shuffle_f64x2::<ODD>(low[2], low[3]),
            ];
            rows[i] = f._mm512_shuffle_f64x2::<EVEN>(even[0], even[1]);
            rows[group + i] = f._mm512_shuffle_f64x2::<EVEN>(odd[0], odd[1]);
            rows[2 * group + i] = f._mm512_shuffle_f64x2::<ODD>(even[0], even[1]);
            rows[3 * group + i] = f._mm512_shuffle_f64x2::<ODD>(odd[0], odd[1]);
        }
        for (reg, row) in regs.iter_mut().zip(rows) {
            *reg = bytemuck::cast(cast::<__m512d, f64x8>(*row));
        }
    }

    /// From where register `TO` of `SIZE` has its numbers.
    #[cfg(feature = "avx512")]
    struct Source<const LANES: usize, const SIZE: usize, const TO: usize>;

    #[cfg(feature = "avx512")]
    impl<const LANES: usize, const SIZE: usize, const TO: usize> Source<LANES, SIZE, TO> {
        const APART: ([u32; LANES], [u16; SIZE]) = Self::of(crate::simd::transpose::Few::Apart);
        const TOGETHER: ([u32; LANES], [u16; SIZE]) =
            Self::of(crate::simd::transpose::Few::Together);

        /// For each number its place in its register, plus the number of lanes where that is register 1;
        /// and for each register, as bits, which of them it gives.
        const fn of(way: crate::simd::transpose::Few) -> ([u32; LANES], [u16; SIZE]) {
            let (mut places, mut given) = ([0; LANES], [0; SIZE]);
            let mut lane = if TO < SIZE { 0 } else { LANES };
            while lane < LANES {
                let (register, place) = match way {
                    crate::simd::transpose::Few::Apart => {
                        let number = lane * SIZE + TO;
                        (number / LANES, number % LANES)
                    }
                    crate::simd::transpose::Few::Together => {
                        let number = TO * LANES + lane;
                        (number % SIZE, number / SIZE)
                    }
                };
                let place = place + if register == 1 { LANES } else { 0 };
                #[allow(clippy::cast_possible_truncation, reason = "less than two registers")]
                {
                    places[lane] = place as u32;
                }
                given[register] |= 1 << lane;
                lane += 1;
            }
            (places, given)
        }
    }

    macro_rules! few {
        ($name:ident, $one:ident, $lanes:literal, $reg:ident, $arch:ident, $index:ident, $integer:ident, $mask:ident,
         $two_registers:ident $one_register:ident) => {
            #[cfg(feature = "avx512")]
            #[inline(always)]
            pub(super) fn $name<G: Pod, const SIZE: usize>(
                isa: pulp::x86::V4,
                way: crate::simd::transpose::Few,
                regs: &mut [G; SIZE],
            ) {
                let from = *regs;
                regs[0] = $one::<G, SIZE, 0>(isa, way, &from);
                regs[1] = $one::<G, SIZE, 1>(isa, way, &from);
                if SIZE > 2 {
                    regs[2] = $one::<G, SIZE, 2>(isa, way, &from);
                }
                if SIZE > 3 {
                    regs[3] = $one::<G, SIZE, 3>(isa, way, &from);
                }
            }

            /// Register `TO`: by one exchange from two of those that have its numbers, and by one from each of
            /// the others.
            #[cfg(feature = "avx512")]
            #[inline(always)]
            fn $one<G: Pod, const SIZE: usize, const TO: usize>(
                isa: pulp::x86::V4,
                way: crate::simd::transpose::Few,
                from: &[G; SIZE],
            ) -> G {
                use std::arch::x86_64::{__m512i, $arch};

                use pulp::{$index, $reg};

                const { assert!(1 < SIZE && SIZE <= 4) };
                let (places, given) = match way {
                    crate::simd::transpose::Few::Apart => {
                        const { Source::<$lanes, SIZE, TO>::APART }
                    }
                    crate::simd::transpose::Few::Together => {
                        const { Source::<$lanes, SIZE, TO>::TOGETHER }
                    }
                };
                let reg = |at: usize| cast::<$reg, $arch>(bytemuck::cast(from[at]));
                let places: [$integer; $lanes] = places.map(Into::into);
                let places = cast::<$index, __m512i>(bytemuck::cast(places));
                let f = isa.avx512f;
                let mut made = f.$two_registers(reg(0), places, reg(1));
                #[allow(clippy::cast_possible_truncation, reason = "a bit for each lane")]
                {
                    if SIZE > 2 {
                        made = f.$one_register(made, given[2] as $mask, places, reg(2));
                    }
                    if SIZE > 3 {
                        made = f.$one_register(made, given[3] as $mask, places, reg(3));
                    }
                }
                bytemuck::cast(cast::<$arch, $reg>(made))
            }
        };
    }

    few!(few_f64, one_f64, 8, f64x8, __m512d, u64x8, u64, u8,
        _mm512_permutex2var_pd _mm512_mask_permutexvar_pd);

    few!(few_f32, one_f32, 16, f32x16, __m512, u32x16, u32, u16,
        _mm512_permutex2var_ps _mm512_mask_permutexvar_ps);

    #[inline(always)]
    pub(super) fn transpose_256<G: Pod>(isa: V3, bytes: usize, regs: &mut [G]) {
        let group = 16 / bytes;
        let mut rows = [isa.avx._mm256_setzero_pd(); 8];
        let rows = &mut rows[..2 * group];
        for (row, reg) in rows.iter_mut().zip(&*regs) {
            *row = cast::<f64x4, __m256d>(bytemuck::cast(*reg));
        }
        let f = isa.avx;
        within_128!(f, bytes, rows, _mm256_unpacklo_pd _mm256_unpackhi_pd
            _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_castpd_ps _mm256_castps_pd);
        const LOW: i32 = 0x20;
        const HIGH: i32 = 0x31;
        for i in 0..group {
            let (a, b) = (rows[i], rows[group + i]);
            rows[i] = f._mm256_permute2f128_pd::<LOW>(a, b);
            rows[group + i] = f._mm256_permute2f128_pd::<HIGH>(a, b);
        }
        for (reg, row) in regs.iter_mut().zip(rows) {
            *reg = bytemuck::cast(cast::<__m256d, f64x4>(*row));
        }
    }
}
