//! Registers as numbers: one lane for each of several matrices.
//!
//! A [`Vector`] holds one real number of each matrix, a [`Complex`] one complex number as two
//! vectors. Arithmetic is lane by lane, so what a lane computes does not depend on its neighbours.

use std::ops::{Add, Div, Mul, Neg, Sub};

use lapax_core::{Real, Scalar};
use pulp::Simd;

use super::MAX_LANES;
use super::whole::whole;
use crate::packed::Packed;

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
fn bits<S: Simd, R, M: bytemuck::NoUninit>(simd: S, mask: M) -> u32 {
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

/// One truth value for each matrix.
pub struct Mask<S: Simd, R: LaneReal> {
    simd: S,
    mask: R::Mask<S>,
}

impl<S: Simd, R: LaneReal> Clone for Mask<S, R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Simd, R: LaneReal> Copy for Mask<S, R> {}

impl<S: Simd, R: LaneReal> Mask<S, R> {
    #[inline(always)]
    pub fn and(self, other: Self) -> Self {
        Self { simd: self.simd, mask: R::and(self.simd, self.mask, other.mask) }
    }
    #[inline(always)]
    pub fn or(self, other: Self) -> Self {
        Self { simd: self.simd, mask: R::or(self.simd, self.mask, other.mask) }
    }
    #[inline(always)]
    pub fn not(self) -> Self {
        Self { simd: self.simd, mask: R::not(self.simd, self.mask) }
    }
    #[inline(always)]
    pub fn any(self) -> bool {
        R::any(self.simd, self.mask)
    }
    /// Bit i is lane i.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        R::bits(self.simd, self.mask)
    }
    #[inline(always)]
    pub fn all(self) -> bool {
        !self.not().any()
    }
}

/// One real number of each matrix.
pub struct Vector<S: Simd, R: LaneReal> {
    simd: S,
    reg: R::Reg<S>,
}

impl<S: Simd, R: LaneReal> Clone for Vector<S, R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Simd, R: LaneReal> Copy for Vector<S, R> {}

impl<S: Simd, R: LaneReal> Vector<S, R> {
    /// The same number in each lane.
    #[inline(always)]
    pub fn splat(simd: S, x: R) -> Self {
        Self { simd, reg: R::splat(simd, x) }
    }
    #[inline(always)]
    pub fn from_reg(simd: S, reg: R::Reg<S>) -> Self {
        Self { simd, reg }
    }
    #[inline(always)]
    pub fn reg(self) -> R::Reg<S> {
        self.reg
    }
    #[inline(always)]
    fn with(self, reg: R::Reg<S>) -> Self {
        Self { simd: self.simd, reg }
    }
    #[inline(always)]
    fn mask(self, mask: R::Mask<S>) -> Mask<S, R> {
        Mask { simd: self.simd, mask }
    }
    #[inline(always)]
    pub fn abs(self) -> Self {
        self.with(<R as LaneReal>::abs(self.simd, self.reg))
    }
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.with(<R as LaneReal>::sqrt(self.simd, self.reg))
    }
    /// |self| with the sign of `sign`.
    #[inline(always)]
    pub fn with_sign(self, sign: Self) -> Self {
        self.with(R::with_sign(self.simd, self.reg, sign.reg))
    }
    #[inline(always)]
    pub fn less(self, other: Self) -> Mask<S, R> {
        self.mask(R::less(self.simd, self.reg, other.reg))
    }
    #[inline(always)]
    pub fn less_or_equal(self, other: Self) -> Mask<S, R> {
        self.mask(R::less_or_equal(self.simd, self.reg, other.reg))
    }
    #[inline(always)]
    pub fn equal(self, other: Self) -> Mask<S, R> {
        self.mask(R::equal(self.simd, self.reg, other.reg))
    }
    /// Lanes that are NaN.
    #[inline(always)]
    pub fn is_nan(self) -> Mask<S, R> {
        self.equal(self).not()
    }
    /// The larger of two; `other` where either is NaN.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::choose(other.less(self), self, other)
    }
    /// The smaller of two, neither of which is NaN.
    #[inline(always)]
    pub fn smaller(self, other: Self) -> Self {
        self.with(<R as LaneReal>::min(self.simd, self.reg, other.reg))
    }
    /// The larger of two, neither of which is NaN.
    #[inline(always)]
    pub fn larger(self, other: Self) -> Self {
        self.with(<R as LaneReal>::max(self.simd, self.reg, other.reg))
    }
    /// The largest of the lanes, none of which is NaN.
    #[inline(always)]
    pub fn largest(self) -> R {
        R::largest(self.simd, self.reg)
    }
    /// The sum of the lanes.
    #[inline(always)]
    pub fn sum(self) -> R {
        R::sum(self.simd, self.reg)
    }
    #[inline(always)]
    pub fn choose(mask: Mask<S, R>, a: Self, b: Self) -> Self {
        a.with(whole(a.simd, R::select(a.simd, mask.mask, a.reg, b.reg)))
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident;)+) => {$(
        impl<S: Simd, R: LaneReal> $trait for Vector<S, R> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.with(<R as LaneReal>::$method(self.simd, self.reg, other.reg))
            }
        }
    )+};
}

operator! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<S: Simd, R: LaneReal> Neg for Vector<S, R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.with(<R as LaneReal>::neg(self.simd, self.reg))
    }
}

/// One divisor of each matrix: a reciprocal where that loses nothing.
pub(crate) struct Divisor<S: Simd, X: Lane<S>> {
    simd: S,
    number: X,
    reciprocal: X,
    safe: Mask<S, X::Real>,
    slow: bool,
}

impl<S: Simd, X: Lane<S>> Divisor<S, X> {
    #[inline(always)]
    pub(crate) fn new(simd: S, number: X) -> Self {
        let (least, largest) = Self::bounds(simd);
        let size = number.abs1();
        let safe = least.less_or_equal(size).and(size.less_or_equal(largest));
        Self { simd, number, reciprocal: number.reciprocal(), safe, slow: !safe.all() }
    }

    /// The least and the largest size of a number whose reciprocal loses nothing.
    #[inline(always)]
    pub(crate) fn bounds(simd: S) -> (Vector<S, X::Real>, Vector<S, X::Real>) {
        let bound = if X::PARTS == 1 { X::Real::SAFE_MIN } else { X::Real::ROOT_SAFE_MIN };
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        (splat(bound), splat(X::Real::ONE / bound))
    }

    /// x / the divisor.
    #[inline(always)]
    pub(crate) fn divide(&self, x: X) -> X {
        let quotient = x * self.reciprocal;
        if self.slow {
            X::choose(self.safe, quotient, divide_lanes(self.simd, x, self.number))
        } else {
            quotient
        }
    }
}

/// x / y lane by lane as the scalar type divides: without needless overflow or underflow, and slow.
#[inline(never)]
fn divide_lanes<S: Simd, X: Lane<S>>(simd: S, x: X, y: X) -> X {
    let (mut a, mut b) = ([X::Scalar::ZERO; MAX_LANES], [X::Scalar::ZERO; MAX_LANES]);
    x.write(&mut a);
    y.write(&mut b);
    for (a, b) in a.iter_mut().zip(b) {
        *a = a.divide(b);
    }
    X::read(simd, &a)
}

/// One number, real or complex, of each matrix.
pub trait Lane<S: Simd>:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    type Real: LaneReal;
    type Scalar: Scalar<Real = Self::Real>;
    /// Registers that one number takes.
    const PARTS: usize;

    fn splat(simd: S, x: Self::Scalar) -> Self;
    /// Number `at` of a tile.
    fn load(simd: S, tile: &[Reg<S, Self>], at: usize) -> Self;
    fn store(self, tile: &mut [Reg<S, Self>], at: usize);
    fn from_real(re: Vector<S, Self::Real>) -> Self;
    /// A real number is its real part alone.
    fn from_parts(re: Vector<S, Self::Real>, im: Vector<S, Self::Real>) -> Self;
    fn re(self) -> Vector<S, Self::Real>;
    /// Zero for a real number.
    fn im(self) -> Vector<S, Self::Real>;
    fn conj(self) -> Self;
    /// |re| + |im|.
    fn abs1(self) -> Vector<S, Self::Real>;
    /// |re|² + |im|².
    fn norm_squared(self) -> Vector<S, Self::Real>;
    fn scale(self, factor: Vector<S, Self::Real>) -> Self;
    /// self + a·b.
    fn add_mul(self, a: Self, b: Self) -> Self;
    /// self − a·b.
    fn sub_mul(self, a: Self, b: Self) -> Self;
    /// self + a·b in some lanes, and self in others, to the signs of zeros.
    #[inline(always)]
    fn add_mul_in(self, lanes: Mask<S, Self::Real>, a: Self, b: Self) -> Self {
        Self::choose(lanes, self.add_mul(a, b), self)
    }
    /// self − a·b in some lanes, and self in others, to the signs of zeros.
    #[inline(always)]
    fn sub_mul_in(self, lanes: Mask<S, Self::Real>, a: Self, b: Self) -> Self {
        Self::choose(lanes, self.sub_mul(a, b), self)
    }
    /// 1 / self for numbers whose square neither overflows nor vanishes.
    fn reciprocal(self) -> Self;
    fn choose(mask: Mask<S, Self::Real>, a: Self, b: Self) -> Self;
    /// The number of each lane, from a slice that may be longer.
    fn read(simd: S, lanes: &[Self::Scalar]) -> Self;
    /// Writes each lane's number.
    fn write(self, lanes: &mut [Self::Scalar]);
    /// [`Lane::read`] from a slice that may be shorter: zeros behind.
    fn read_part(simd: S, lanes: &[Self::Scalar]) -> Self;
    /// [`Lane::write`] to a slice that may be shorter.
    fn write_part(self, lanes: &mut [Self::Scalar]);
}

/// The register that lanes of type X are stored in.
pub type Reg<S, X> = <<X as Lane<S>>::Real as Packed>::Reg<S>;

impl<S: Simd, R: LaneReal> Lane<S> for Vector<S, R> {
    type Real = R;
    type Scalar = R;
    const PARTS: usize = 1;

    #[inline(always)]
    fn splat(simd: S, x: R) -> Self {
        Vector::splat(simd, x)
    }
    #[inline(always)]
    fn load(simd: S, tile: &[R::Reg<S>], at: usize) -> Self {
        Self { simd, reg: tile[at] }
    }
    #[inline(always)]
    fn store(self, tile: &mut [R::Reg<S>], at: usize) {
        tile[at] = self.reg;
    }
    #[inline(always)]
    fn from_real(re: Self) -> Self {
        re
    }
    #[inline(always)]
    fn from_parts(re: Self, _: Self) -> Self {
        re
    }
    #[inline(always)]
    fn re(self) -> Self {
        self
    }
    #[inline(always)]
    fn im(self) -> Self {
        Self::splat(self.simd, R::ZERO)
    }
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    #[inline(always)]
    fn abs1(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn norm_squared(self) -> Self {
        self * self
    }
    #[inline(always)]
    fn scale(self, factor: Self) -> Self {
        self * factor
    }
    #[inline(always)]
    fn add_mul(self, a: Self, b: Self) -> Self {
        self.with(R::mul_add(self.simd, a.reg, b.reg, self.reg))
    }
    #[inline(always)]
    fn sub_mul(self, a: Self, b: Self) -> Self {
        self.with(R::sub_mul(self.simd, self.reg, a.reg, b.reg))
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self::splat(self.simd, R::ONE) / self
    }
    #[inline(always)]
    fn choose(mask: Mask<S, R>, a: Self, b: Self) -> Self {
        Vector::choose(mask, a, b)
    }
    #[inline(always)]
    fn read(simd: S, lanes: &[R]) -> Self {
        Self { simd, reg: R::register::<S>(lanes) }
    }
    #[inline(always)]
    fn write(self, lanes: &mut [R]) {
        R::write_register::<S>(self.reg, lanes);
    }
    #[inline(always)]
    fn read_part(simd: S, lanes: &[R]) -> Self {
        Self { simd, reg: R::part(simd, lanes) }
    }
    #[inline(always)]
    fn write_part(self, lanes: &mut [R]) {
        R::write_part(self.simd, self.reg, lanes);
    }
}

/// One complex number of each matrix.
pub struct ComplexVector<S: Simd, R: LaneReal> {
    re: Vector<S, R>,
    im: Vector<S, R>,
}

impl<S: Simd, R: LaneReal> Clone for ComplexVector<S, R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Simd, R: LaneReal> Copy for ComplexVector<S, R> {}

impl<S: Simd, R: LaneReal> Add for ComplexVector<S, R> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}
impl<S: Simd, R: LaneReal> Sub for ComplexVector<S, R> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}
impl<S: Simd, R: LaneReal> Mul for ComplexVector<S, R> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self {
            re: (self.re * other.re).sub_mul(self.im, other.im),
            im: (self.re * other.im).add_mul(self.im, other.re),
        }
    }
}
impl<S: Simd, R: LaneReal> Neg for ComplexVector<S, R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { re: -self.re, im: -self.im }
    }
}

impl<S: Simd, R: LaneReal> Lane<S> for ComplexVector<S, R>
where
    num_complex::Complex<R>: Scalar<Real = R>,
{
    type Real = R;
    type Scalar = num_complex::Complex<R>;
    const PARTS: usize = 2;

    #[inline(always)]
    fn splat(simd: S, x: Self::Scalar) -> Self {
        Self { re: Vector::splat(simd, x.re), im: Vector::splat(simd, x.im) }
    }
    #[inline(always)]
    fn load(simd: S, tile: &[R::Reg<S>], at: usize) -> Self {
        let parts = &tile[2 * at..2 * at + 2];
        Self { re: Vector::from_reg(simd, parts[0]), im: Vector::from_reg(simd, parts[1]) }
    }
    #[inline(always)]
    fn store(self, tile: &mut [R::Reg<S>], at: usize) {
        let parts = &mut tile[2 * at..2 * at + 2];
        parts[0] = self.re.reg;
        parts[1] = self.im.reg;
    }
    #[inline(always)]
    fn from_real(re: Vector<S, R>) -> Self {
        Self { re, im: Vector::splat(re.simd, R::ZERO) }
    }
    #[inline(always)]
    fn from_parts(re: Vector<S, R>, im: Vector<S, R>) -> Self {
        Self { re, im }
    }
    #[inline(always)]
    fn re(self) -> Vector<S, R> {
        self.re
    }
    #[inline(always)]
    fn im(self) -> Vector<S, R> {
        self.im
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
    #[inline(always)]
    fn abs1(self) -> Vector<S, R> {
        self.re.abs() + self.im.abs()
    }
    #[inline(always)]
    fn norm_squared(self) -> Vector<S, R> {
        (self.re * self.re).add_mul(self.im, self.im)
    }
    #[inline(always)]
    fn scale(self, factor: Vector<S, R>) -> Self {
        Self { re: self.re * factor, im: self.im * factor }
    }
    #[inline(always)]
    fn add_mul(self, a: Self, b: Self) -> Self {
        Self {
            re: self.re.add_mul(a.re, b.re).sub_mul(a.im, b.im),
            im: self.im.add_mul(a.re, b.im).add_mul(a.im, b.re),
        }
    }
    #[inline(always)]
    fn sub_mul(self, a: Self, b: Self) -> Self {
        Self {
            re: self.re.sub_mul(a.re, b.re).add_mul(a.im, b.im),
            im: self.im.sub_mul(a.re, b.im).sub_mul(a.im, b.re),
        }
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.conj().scale(self.norm_squared().reciprocal())
    }
    #[inline(always)]
    fn choose(mask: Mask<S, R>, a: Self, b: Self) -> Self {
        Self { re: Vector::choose(mask, a.re, b.re), im: Vector::choose(mask, a.im, b.im) }
    }
    #[inline(always)]
    fn read(simd: S, lanes: &[Self::Scalar]) -> Self {
        let mut parts = [[R::ZERO; MAX_LANES]; 2];
        for (i, x) in lanes.iter().enumerate() {
            (parts[0][i], parts[1][i]) = (x.re, x.im);
        }
        let part = |part: &[R]| Vector { simd, reg: R::register::<S>(part) };
        Self { re: part(&parts[0]), im: part(&parts[1]) }
    }
    #[inline(always)]
    fn write(self, lanes: &mut [Self::Scalar]) {
        let mut parts = [[R::ZERO; MAX_LANES]; 2];
        self.re.write(&mut parts[0]);
        self.im.write(&mut parts[1]);
        for (i, x) in lanes.iter_mut().enumerate().take(R::lanes::<S>()) {
            *x = Self::Scalar::from_parts(parts[0][i], parts[1][i]);
        }
    }
    #[inline(always)]
    fn read_part(simd: S, lanes: &[Self::Scalar]) -> Self {
        let mut numbers = [Self::Scalar::ZERO; MAX_LANES];
        numbers[..lanes.len()].copy_from_slice(lanes);
        Self::read(simd, &numbers[..R::lanes::<S>()])
    }
    #[inline(always)]
    fn write_part(self, lanes: &mut [Self::Scalar]) {
        let mut numbers = [Self::Scalar::ZERO; MAX_LANES];
        self.write(&mut numbers);
        lanes.copy_from_slice(&numbers[..lanes.len()]);
    }
}
