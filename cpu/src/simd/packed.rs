//! Registers of neighbouring elements, real numbers or complex ones as they lie in a column.
//!
//! Loops over several columns that a compiler makes vectors of by itself come out across the columns, with more
//! shuffles than products: of `eigh` of 512 in f64 a product of the matrix with a vector took 30 us where
//! registers that are written out take 18 (one core with AVX-512).

use bytemuck::Pod;
use num_complex::Complex;
use pulp::{MemMask, Simd};

/// A number whose neighbours fill registers.
pub trait Packed: Copy {
    /// The register.
    type Reg<S: Simd>: Pod;

    /// A slice as whole registers, and what is left over.
    fn registers<S: Simd>(slice: &[Self]) -> (&[Self::Reg<S>], &[Self]);
    fn registers_mut<S: Simd>(slice: &mut [Self]) -> (&mut [Self::Reg<S>], &mut [Self]);
    /// The register that a slice of that length or more begins with.
    #[inline(always)]
    fn register<S: Simd>(slice: &[Self]) -> Self::Reg<S> {
        Self::registers::<S>(slice).0[0]
    }
    /// Writes a register to the front of a slice of that length or more.
    #[inline(always)]
    fn write_register<S: Simd>(a: Self::Reg<S>, slice: &mut [Self]) {
        Self::registers_mut::<S>(slice).0[0] = a;
    }
    /// The register that a shorter slice begins to fill: with zeros behind.
    fn part<S: Simd>(simd: S, slice: &[Self]) -> Self::Reg<S>;
    /// Writes the numbers for which a slice has room.
    fn write_part<S: Simd>(simd: S, a: Self::Reg<S>, slice: &mut [Self]);
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Reg<S>;
    /// sum + a·x.
    fn add_multiple<S: Simd>(
        simd: S,
        sum: Self::Reg<S>,
        a: Self::Reg<S>,
        x: Self::Reg<S>,
    ) -> Self::Reg<S>;
    /// The sum of a register's numbers.
    fn sum<S: Simd>(simd: S, a: Self::Reg<S>) -> Self;
    /// sum + conj(y)·x; that way round, what is made of y is made once for several x.
    fn add_product<S: Simd>(
        simd: S,
        sum: Self::Reg<S>,
        x: Self::Reg<S>,
        y: Self::Reg<S>,
    ) -> Self::Reg<S>;
}

/// Whether parts of registers are read and written by instructions that leave words out. pulp's own jump to a piece of
/// assembly for each length. On one core of Zen 4, reduction to tridiagonal form with these and with masks, ms: n = 160
/// and 256 in f32 0.316 and 0.85, 0.200 and 0.59; in f64 0.388 and 1.18, 0.304 and 0.98; in c128 0.785 and 2.85, 0.760
/// and 2.77; with AVX2 in f32 0.288 and 0.79, 0.205 and 0.60.
const MASKED: bool = cfg!(target_arch = "x86_64");

/// The first words of a register.
#[inline(always)]
fn first_words<S: Simd>(simd: S, count: usize) -> MemMask<S::m32s> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    MemMask::new(simd.mask_between_m32s(0, count).mask())
}

/// The register that a slice begins to fill, with zeros behind.
#[inline(always)]
fn read_words<S: Simd>(simd: S, slice: &[u32]) -> S::u32s {
    let mask = first_words(simd, slice.len());
    // SAFETY: only words of the slice are read, as many as it has or a register if that has fewer.
    #[allow(unsafe_code, reason = "pulp has no safe form of the instruction")]
    unsafe {
        simd.mask_load_ptr_u32s(mask, slice.as_ptr())
    }
}

/// Writes the words for which a slice has room.
#[inline(always)]
fn write_words<S: Simd>(simd: S, a: S::u32s, slice: &mut [u32]) {
    let mask = first_words(simd, slice.len());
    // SAFETY: only words of the slice are written, as many as it has or a register if that has fewer.
    #[allow(unsafe_code, reason = "pulp has no safe form of the instruction")]
    unsafe {
        simd.mask_store_ptr_u32s(mask, slice.as_mut_ptr(), a);
    }
}

macro_rules! packed {
    ($($scalar:ty: $reg:ident, $registers:ident $registers_mut:ident $part:ident $write_part:ident $splat:ident
        $add_multiple:ident $sum:ident $add_product:ident;)+) => {$(
        impl Packed for $scalar {
            type Reg<S: Simd> = S::$reg;

            #[inline(always)]
            fn registers<S: Simd>(slice: &[Self]) -> (&[S::$reg], &[Self]) {
                S::$registers(slice)
            }
            #[inline(always)]
            fn registers_mut<S: Simd>(slice: &mut [Self]) -> (&mut [S::$reg], &mut [Self]) {
                S::$registers_mut(slice)
            }
            #[inline(always)]
            fn part<S: Simd>(simd: S, slice: &[Self]) -> S::$reg {
                if MASKED && !S::IS_SCALAR {
                    return bytemuck::cast(read_words(simd, bytemuck::cast_slice(slice)));
                }
                simd.$part(slice)
            }
            #[inline(always)]
            fn write_part<S: Simd>(simd: S, a: S::$reg, slice: &mut [Self]) {
                if MASKED && !S::IS_SCALAR {
                    return write_words(simd, bytemuck::cast(a), bytemuck::cast_slice_mut(slice));
                }
                simd.$write_part(slice, a);
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$reg {
                simd.$splat(x)
            }
            #[inline(always)]
            fn add_multiple<S: Simd>(simd: S, sum: S::$reg, a: S::$reg, x: S::$reg) -> S::$reg {
                simd.$add_multiple(a, x, sum)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$reg) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn add_product<S: Simd>(simd: S, sum: S::$reg, x: S::$reg, y: S::$reg) -> S::$reg {
                simd.$add_product(y, x, sum)
            }
        }
    )+};
}

packed! {
    f32: f32s, as_simd_f32s as_mut_simd_f32s partial_load_f32s partial_store_f32s splat_f32s
        mul_add_e_f32s reduce_sum_f32s mul_add_e_f32s;
    f64: f64s, as_simd_f64s as_mut_simd_f64s partial_load_f64s partial_store_f64s splat_f64s
        mul_add_e_f64s reduce_sum_f64s mul_add_e_f64s;
    Complex<f32>: c32s, as_simd_c32s as_mut_simd_c32s partial_load_c32s partial_store_c32s splat_c32s
        mul_add_e_c32s reduce_sum_c32s conj_mul_add_e_c32s;
    Complex<f64>: c64s, as_simd_c64s as_mut_simd_c64s partial_load_c64s partial_store_c64s splat_c64s
        mul_add_e_c64s reduce_sum_c64s conj_mul_add_e_c64s;
}
