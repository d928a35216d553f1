//! A square of registers, transposed in registers where the processor is known, else in memory.
//!
//! Rows become columns in log₂(lanes) rounds. A round pairs rows that are some power of two apart
//! and exchanges what lies that far apart in them: first single numbers and pairs of numbers
//! within 128 bits, then whole pieces of 128 bits.

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
