//! Registers of neighbouring elements, real numbers or complex ones as they lie in a column.
//!
//! Loops over several columns that a compiler makes vectors of by itself come out across the columns, with more
//! shuffles than products: of `eigh` of 512 in f64 a product of the matrix with a vector took 30 us where
//! registers that are written out take 18 (one core with AVX-512).

use bytemuck::Pod;
use num_complex::Complex;
use pulp::Simd;

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
                simd.$part(slice)
            }
            #[inline(always)]
            fn write_part<S: Simd>(simd: S, a: S::$reg, slice: &mut [Self]) {
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
