//! Matrices in and out of tiles of their own precision, or of double precision.

use bytemuck::Pod;
use lapax_core::{Real as _, Scalar};
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;

/// [`pack`] for matrices of T into a tile of D, through `buffer` where they differ.
#[inline(always)]
pub(crate) fn pack_as<S: Simd, T: Scalar + Pod, D: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    a: &[T],
    count: usize,
    shape: Shape,
    buffer: &mut Vec<D>,
    tile: &mut [<D::Real as Packed>::Reg<S>],
) {
    if size_of::<T>() == size_of::<D>() {
        return pack(simd, bytemuck::cast_slice::<T, D>(a), count, shape, tile);
    }
    buffer.clear();
    buffer.extend(a.iter().map(|&x| convert::<T, D>(x)));
    pack(simd, buffer, count, shape, tile);
}

/// [`unpack`] for matrices of T from a tile of D, through `buffer` where they differ.
#[inline(always)]
pub(crate) fn unpack_as<S: Simd, T: Scalar + Pod, D: Scalar<Real: LaneReal> + Pod>(
    simd: S,
    tile: &[<D::Real as Packed>::Reg<S>],
    count: usize,
    shape: Shape,
    buffer: &mut Vec<D>,
    a: &mut [T],
) {
    if size_of::<T>() == size_of::<D>() {
        return unpack(simd, tile, count, shape, bytemuck::cast_slice_mut::<T, D>(a));
    }
    buffer.resize(a.len(), D::ZERO);
    unpack(simd, tile, count, shape, buffer);
    for (a, &x) in a.iter_mut().zip(&*buffer) {
        *a = convert::<D, T>(x);
    }
}

/// The same number in another precision.
#[inline(always)]
fn convert<T: Scalar, D: Scalar>(x: T) -> D {
    let part = |x: T::Real| D::Real::from_f64(x.to_f64());
    D::from_parts(part(x.re()), part(x.im()))
}
