//! Registers as numbers: one lane for each of several matrices.
//!
//! A [`Vector`] holds one real number of each matrix, a [`ComplexVector`](super::complex::ComplexVector) one complex number as two
//! vectors. Arithmetic is lane by lane, so what a lane computes does not depend on its neighbours.

use std::ops::{Add, Div, Mul, Neg, Sub};

use lapax_core::{Real, Scalar};
use pulp::Simd;

use super::lane_real::LaneReal;
use super::opaque::whole;
use super::packed::Packed;

/// The largest number of lanes: f32 in AVX-512.
pub(crate) const MAX_LANES: usize = 16;

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
    pub(crate) simd: S,
    pub(crate) reg: R::Reg<S>,
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
