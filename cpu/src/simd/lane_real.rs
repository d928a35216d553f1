//! Real numbers of which registers hold one in each lane.

use lapax_core::Real;
use pulp::Simd;

use super::packed::Packed;

/// A real number that has registers.
pub trait LaneReal: Real + bytemuck::Pod + Packed {
    /// One truth value for each lane.
    type Mask<S: Simd>: Copy;

    /// Twice the root of the smallest normal number: from there on squares are normal numbers.
    const ROOT_SAFE_MIN: Self;
    /// Sums of squares from `LOW` to `HIGH` are accurate; below, a factor of `UP` makes them so, and
    /// above, one of `DOWN`. All are powers of two.
    const LOW: Self;
    const HIGH: Self;
    const UP: Self;
    const DOWN: Self;
    /// A matrix with a norm from `SMALL` to its reciprocal needs no scaling: the square of what is
    /// negligible beside that norm is still a normal number.
    const SMALL: Self;

    /// Numbers in a register.
    fn lanes<S: Simd>() -> usize;
    fn add<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn sub<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn mul<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn div<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn mul_add<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>, c: Self::Reg<S>)
    -> Self::Reg<S>;
    fn sub_mul<S: Simd>(simd: S, c: Self::Reg<S>, a: Self::Reg<S>, b: Self::Reg<S>)
    -> Self::Reg<S>;
    fn neg<S: Simd>(simd: S, a: Self::Reg<S>) -> Self::Reg<S>;
    fn abs<S: Simd>(simd: S, a: Self::Reg<S>) -> Self::Reg<S>;
    fn sqrt<S: Simd>(simd: S, a: Self::Reg<S>) -> Self::Reg<S>;
    /// The magnitude of `a` with the sign of `sign`.
    fn with_sign<S: Simd>(simd: S, a: Self::Reg<S>, sign: Self::Reg<S>) -> Self::Reg<S>;
    fn less<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Mask<S>;
    fn less_or_equal<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Mask<S>;
    fn equal<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Mask<S>;
    fn select<S: Simd>(
        simd: S,
        mask: Self::Mask<S>,
        a: Self::Reg<S>,
        b: Self::Reg<S>,
    ) -> Self::Reg<S>;
    fn and<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    fn or<S: Simd>(simd: S, a: Self::Mask<S>, b: Self::Mask<S>) -> Self::Mask<S>;
    fn not<S: Simd>(simd: S, a: Self::Mask<S>) -> Self::Mask<S>;
    fn any<S: Simd>(simd: S, mask: Self::Mask<S>) -> bool;
    /// Bit i is lane i.
    fn bits<S: Simd>(simd: S, mask: Self::Mask<S>) -> u32;
    /// The smaller and the larger of two, neither of which is NaN.
    fn min<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    fn max<S: Simd>(simd: S, a: Self::Reg<S>, b: Self::Reg<S>) -> Self::Reg<S>;
    /// The largest number of a register, none of which is NaN.
    fn largest<S: Simd>(simd: S, a: Self::Reg<S>) -> Self;
}

macro_rules! lane_real {
    (
        $real:ident, [$root:expr, $low:expr, $high:expr, $up:expr, $down:expr, $small:expr], $reg:ident, $mask:ident, $lanes:ident,
        $splat:ident $add:ident $sub:ident $mul:ident $div:ident $mul_add:ident $sub_mul:ident
        $sqrt:ident $and_bits:ident $or_bits:ident $xor_bits:ident
        $less:ident $less_or_equal:ident $equal:ident $select:ident
        $and:ident $or:ident $not:ident $first_true:ident $min:ident $max:ident $largest:ident
    ) => {
        impl LaneReal for $real {
            type Mask<S: Simd> = S::$mask;
            const ROOT_SAFE_MIN: Self = $root;
            const LOW: Self = $low;
            const HIGH: Self = $high;
            const UP: Self = $up;
            const DOWN: Self = $down;
            const SMALL: Self = $small;

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn sub<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn mul<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn div<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$div(a, b)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$reg, b: S::$reg, c: S::$reg) -> S::$reg {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn sub_mul<S: Simd>(simd: S, c: S::$reg, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$sub_mul(a, b, c)
            }
            #[inline(always)]
            fn neg<S: Simd>(simd: S, a: S::$reg) -> S::$reg {
                simd.$xor_bits(simd.$splat(-0.0), a)
            }
            #[inline(always)]
            fn abs<S: Simd>(simd: S, a: S::$reg) -> S::$reg {
                // Pulp's own is a call in large functions.
                simd.$and_bits(simd.$splat($real::from_bits($real::to_bits(-0.0) - 1)), a)
            }
            #[inline(always)]
            fn sqrt<S: Simd>(simd: S, a: S::$reg) -> S::$reg {
                simd.$sqrt(a)
            }
            #[inline(always)]
            fn with_sign<S: Simd>(simd: S, a: S::$reg, sign: S::$reg) -> S::$reg {
                simd.$or_bits(
                    <Self as LaneReal>::abs(simd, a),
                    simd.$and_bits(simd.$splat(-0.0), sign),
                )
            }
            #[inline(always)]
            fn less<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$mask {
                simd.$less(a, b)
            }
            #[inline(always)]
            fn less_or_equal<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$mask {
                simd.$less_or_equal(a, b)
            }
            #[inline(always)]
            fn equal<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$mask {
                simd.$equal(a, b)
            }
            #[inline(always)]
            fn select<S: Simd>(simd: S, mask: S::$mask, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$select(mask, a, b)
            }
            #[inline(always)]
            fn and<S: Simd>(simd: S, a: S::$mask, b: S::$mask) -> S::$mask {
                simd.$and(a, b)
            }
            #[inline(always)]
            fn or<S: Simd>(simd: S, a: S::$mask, b: S::$mask) -> S::$mask {
                simd.$or(a, b)
            }
            #[inline(always)]
            fn not<S: Simd>(simd: S, a: S::$mask) -> S::$mask {
                simd.$not(a)
            }
            #[inline(always)]
            fn bits<S: Simd>(simd: S, mask: S::$mask) -> u32 {
                bits::<S, $real, S::$mask>(simd, mask)
            }
            #[inline(always)]
            fn any<S: Simd>(simd: S, mask: S::$mask) -> bool {
                simd.$first_true(mask) < S::$lanes
            }
            #[inline(always)]
            fn min<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$min(a, b)
            }
            #[inline(always)]
            fn max<S: Simd>(simd: S, a: S::$reg, b: S::$reg) -> S::$reg {
                simd.$max(a, b)
            }
            #[inline(always)]
            fn largest<S: Simd>(simd: S, a: S::$reg) -> Self {
                simd.$largest(a)
            }
        }
    };
}

/// A mask as bits, the first lane in the lowest.
#[inline(always)]
pub(crate) fn bits<S: Simd, R, M: bytemuck::NoUninit>(simd: S, mask: M) -> u32 {
    let bytes = bytemuck::bytes_of(&mask);
    #[cfg(target_arch = "x86_64")]
    if let Some(bits) = sign_bits(&simd, size_of::<R>(), bytes) {
        return bits;
    }
    let _ = simd;
    match *bytes {
        [bits] => u32::from(bits),
        [low, high] => u32::from(u16::from_le_bytes([low, high])),
        _ => {
            // A lane that is true has all bits set.
            let lanes = bytes.chunks_exact(size_of::<R>()).enumerate();
            lanes.fold(0, |bits, (i, lane)| bits | u32::from(lane[0] >> 7) << i)
        }
    }
}

/// The bits of AVX2's masks by one instruction: lane by lane `lu` of order 32, f32, spent a seventh of its
/// time here.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sign_bits(simd: &dyn std::any::Any, bytes_of_lane: usize, mask: &[u8]) -> Option<u32> {
    use std::arch::x86_64::{__m256, __m256d};
    let avx = simd.downcast_ref::<pulp::x86::V3>()?.avx;
    let mask = <[u8; 32]>::try_from(mask).ok()?;
    let bits = if bytes_of_lane == 4 {
        avx._mm256_movemask_ps(pulp::cast::<[u8; 32], __m256>(mask))
    } else {
        avx._mm256_movemask_pd(pulp::cast::<[u8; 32], __m256d>(mask))
    };
    Some(bits.cast_unsigned())
}

/// 2ᵉ, a normal number.
const fn power_f32(e: i32) -> f32 {
    f32::from_bits((127 + e).cast_unsigned() << 23)
}

/// 2ᵉ, a normal number.
const fn power_f64(e: i64) -> f64 {
    f64::from_bits((1023 + e).cast_unsigned() << 52)
}

lane_real!(
    f32, [power_f32(-62), power_f32(-78), power_f32(120), power_f32(96), power_f32(-70), power_f32(-4)], f32s, m32s, F32_LANES,
    splat_f32s add_f32s sub_f32s mul_f32s div_f32s mul_add_e_f32s negate_mul_add_e_f32s
    sqrt_f32s and_f32s or_f32s xor_f32s
    less_than_f32s less_than_or_equal_f32s equal_f32s select_f32s
    and_m32s or_m32s not_m32s first_true_m32s min_f32s max_f32s reduce_max_f32s
);
lane_real!(
    f64, [power_f64(-510), power_f64(-916), power_f64(1000), power_f64(900), power_f64(-600), power_f64(-200)], f64s, m64s, F64_LANES,
    splat_f64s add_f64s sub_f64s mul_f64s div_f64s mul_add_e_f64s negate_mul_add_e_f64s
    sqrt_f64s and_f64s or_f64s xor_f64s
    less_than_f64s less_than_or_equal_f64s equal_f64s select_f64s
    and_m64s or_m64s not_m64s first_true_m64s min_f64s max_f64s reduce_max_f64s
);
