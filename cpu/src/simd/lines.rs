//! Lines of a small matrix in registers: parts of them read and written, squares transposed.

use lapax_core::Scalar as _;
use pulp::Simd;

use super::lane_real::LaneReal;
use super::transpose::transpose;
use super::vector::{Lane, MAX_LANES, Reg, Vector};
use crate::Scalar;

/// Number `lane` of register pair `at`.
#[inline(always)]
pub(crate) fn number<S: Simd, T: Scalar>(tile: &[Reg<S, T::Lane<S>>], at: usize, lane: usize) -> T {
    let lanes = T::Real::lanes::<S>();
    let numbers: &[T::Real] = bytemuck::cast_slice(tile);
    let parts = T::Lane::<S>::PARTS;
    let re = numbers[at * parts * lanes + lane];
    let im = if T::IS_COMPLEX { numbers[(at * parts + 1) * lanes + lane] } else { T::Real::ZERO };
    T::from_parts(re, im)
}

/// The numbers of a register's lanes: 0, 1, 2, …
pub(crate) struct LaneNumbers<R>([R; MAX_LANES]);

impl<R: LaneReal> LaneNumbers<R> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let mut numbers = [R::ZERO; MAX_LANES];
        for lane in 1..MAX_LANES {
            numbers[lane] = numbers[lane - 1] + R::ONE;
        }
        Self(numbers)
    }

    /// That of one.
    #[inline(always)]
    pub(crate) fn get(&self, lane: usize) -> R {
        self.0[lane]
    }

    /// Those of all.
    #[inline(always)]
    pub(crate) fn vector<S: Simd>(&self, simd: S) -> Vector<S, R> {
        <Vector<S, R> as Lane<S>>::read(simd, &self.0)
    }

    /// `x` behind lane `lane`, `head` in it, and `above` before it.
    #[inline(always)]
    pub(crate) fn behind<S: Simd, T: Scalar<Real = R>>(
        &self,
        simd: S,
        lane: usize,
        x: T::Lane<S>,
        [head, above]: [T::Lane<S>; 2],
    ) -> T::Lane<S> {
        let lanes = self.vector::<S>(simd);
        let lane = Vector::<S, R>::splat(simd, self.get(lane));
        let x = T::Lane::<S>::choose(lane.less(lanes), x, head);
        T::Lane::<S>::choose(lanes.less(lane), above, x)
    }
}

/// The register of a line's numbers from `from` on; zeros where the line has ended.
#[inline(always)]
pub(crate) fn read<S: Simd, T: Scalar>(simd: S, line: &[T], from: usize) -> T::Lane<S> {
    let lanes = T::Real::lanes::<S>();
    if from + lanes <= line.len() {
        return T::Lane::<S>::read(simd, &line[from..from + lanes]);
    }
    T::Lane::<S>::read_part(simd, &line[from..])
}

/// Writes a register to a line that may be shorter.
#[inline(always)]
pub(crate) fn write<S: Simd, T: Scalar>(x: T::Lane<S>, to: &mut [T]) {
    let lanes = T::Real::lanes::<S>();
    if to.len() >= lanes {
        return x.write(&mut to[..lanes]);
    }
    x.write_part(to);
}

/// Transposes a square of real or complex numbers.
#[inline(always)]
pub(crate) fn transpose_numbers<S: Simd, T: Scalar>(simd: S, square: &mut [T::Lane<S>]) {
    let lanes = square.len();
    let mut parts = [[square[0].re().reg(); MAX_LANES]; 2];
    for (i, x) in square.iter().enumerate() {
        parts[0][i] = x.re().reg();
        parts[1][i] = x.im().reg();
    }
    transpose::<S, T::Real, _>(simd, &mut parts[0][..lanes]);
    if T::IS_COMPLEX {
        transpose::<S, T::Real, _>(simd, &mut parts[1][..lanes]);
    }
    for (i, x) in square.iter_mut().enumerate() {
        let part = |p: usize| Vector::from_reg(simd, parts[p][i]);
        *x = T::Lane::<S>::from_parts(part(0), part(1));
    }
}
