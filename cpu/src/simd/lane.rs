//! What kernels that hold one matrix in each lane know of lanes: their number, sizes that a compiler
//! knows, and numbers that count.

use pulp::{Simd, WithSimd};

use super::arch::Arch;
use super::lane_real::LaneReal;
use super::vector::{MAX_LANES, Mask, Vector};
use crate::Scalar;

/// A size that a compiler may know: loops over constants are unrolled, which keeps a small tile in
/// registers.
pub(crate) trait Size: Copy {
    fn get(self) -> usize;

    /// Takes as many steps.
    fn each(self, steps: &mut impl Steps);
}

/// What a kernel does step by step. A step of a known number, inlined, has loops of known length, which
/// keep a small tile in registers: `lu` of order 4, f64, AVX2, 44 and 33 ns.
pub(crate) trait Steps {
    fn step(&mut self, number: usize);
}

/// A size that it knows.
#[derive(Clone, Copy)]
pub(crate) struct Constant<const N: usize>;

pub(crate) const ONE: Constant<1> = Constant;
pub(crate) const TWO: Constant<2> = Constant;
pub(crate) const THREE: Constant<3> = Constant;
pub(crate) const FOUR: Constant<4> = Constant;

impl<const N: usize> Size for Constant<N> {
    #[inline(always)]
    fn get(self) -> usize {
        N
    }

    #[inline(always)]
    fn each(self, steps: &mut impl Steps) {
        const { assert!(N <= 4, "more steps than are written out") };
        if N > 0 {
            steps.step(0);
        }
        if N > 1 {
            steps.step(1);
        }
        if N > 2 {
            steps.step(2);
        }
        if N > 3 {
            steps.step(3);
        }
    }
}

impl Size for usize {
    #[inline(always)]
    fn get(self) -> usize {
        self
    }

    #[inline(always)]
    fn each(self, steps: &mut impl Steps) {
        for number in 0..self {
            steps.step(number);
        }
    }
}

/// How many lanes a register of this processor has.
pub(crate) fn width<T: Scalar>() -> usize {
    Arch::new().dispatch(Lanes(std::marker::PhantomData::<T>))
}

pub(crate) struct Lanes<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: Scalar> WithSimd for Lanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        T::Real::lanes::<S>()
    }
}

/// The numbers of one register, one for each matrix.
#[inline(always)]
pub(crate) fn numbers<S: Simd, R: LaneReal>(x: Vector<S, R>) -> [R; MAX_LANES] {
    let mut lanes = [R::ZERO; MAX_LANES];
    R::write_register::<S>(x.reg(), &mut lanes);
    lanes
}

/// The truth values of one mask, one for each matrix.
#[inline(always)]
pub(crate) fn flags<S: Simd, R: LaneReal>(simd: S, mask: Mask<S, R>) -> [bool; MAX_LANES] {
    let splat = |x| Vector::<S, R>::splat(simd, x);
    numbers(Vector::choose(mask, splat(R::ONE), splat(R::ZERO))).map(|x| x == R::ONE)
}

/// A row number as a real number, which is what lanes count with.
#[inline(always)]
pub(crate) fn row<R: LaneReal>(i: usize) -> R {
    R::from_f64(f64::from(u32::try_from(i).unwrap_or(u32::MAX)))
}

/// The count that a lane holds as a real number: of rows or of steps.
#[inline(always)]
pub(crate) fn integer<R: LaneReal>(x: R) -> i32 {
    /// Its last bit counts ones, so that the sum with a count ends in its bits. A conversion that
    /// cares for NaN and range takes six instructions, and registers do it one number at a time.
    const TWO_TO_52: f64 = 4_503_599_627_370_496.0;
    #[allow(clippy::cast_possible_truncation, reason = "counts are fewer than an i32 holds")]
    {
        (x.to_f64() + TWO_TO_52).to_bits() as i32
    }
}
