//! Complex numbers in registers, the real and the imaginary parts apart.

use std::ops::{Add, Mul, Neg, Sub};

use lapax_core::Scalar;
use pulp::Simd;

use super::lane_real::LaneReal;
use super::vector::{Lane, MAX_LANES, Mask, Vector};

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
