//! Cholesky factorisation of one small matrix by rows.

use lapax_core::Scalar as _;
use pulp::{Simd, WithSimd};

use super::lu::{Block, HALF, LARGE, SMALL};
use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::elementary::root;
use crate::simd::lane_real::LaneReal;
use crate::simd::packed::Packed;
use crate::simd::vector::{Lane, Vector};

/// Factors the Hermitian matrix with a lower triangle, or where `mean` says so the mean of a matrix and its adjoint, as
/// A = L·Lᴴ in place, and leaves what is above it; whether there is an L.
pub(crate) fn factor_hermitian<T: Scalar>(a: &mut [T], n: usize, mean: bool) -> bool {
    let arch = Arch::new();
    if n <= HALF {
        arch.dispatch(FactorHermitian::<_, SMALL> { a, n, mean })
    } else {
        arch.dispatch(FactorHermitian::<_, LARGE> { a, n, mean })
    }
}

/// [`factor_hermitian`] by rows, of the adjoint of L in a block.
pub(crate) struct FactorHermitian<'a, T, const L: usize> {
    pub(crate) a: &'a mut [T],
    pub(crate) n: usize,
    pub(crate) mean: bool,
}

impl<T: Scalar, const L: usize> WithSimd for FactorHermitian<'_, T, L> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { a, n, mean } = self;
        let (lanes, parts) = (T::Real::lanes::<S>(), T::Lane::<S>::PARTS);
        // Of a complex row a register of real parts, one of imaginary parts, and so on.
        let (strips, pitch) = (n.div_ceil(lanes), n.next_multiple_of(lanes) * parts);
        let place = |i: usize| i / lanes * lanes * parts + i % lanes;
        let mut block = Block([T::ZERO; L]);
        let block = &mut bytemuck::cast_slice_mut::<T, T::Real>(&mut block.0)[..n * pitch];
        let half = T::Real::ONE / (T::Real::ONE + T::Real::ONE);
        for j in 0..n {
            let (above, below) = block.split_at_mut((j + 1) * pitch);
            let u = &mut above[j * pitch..];
            // What the rows before it ask for has been summed up from zero; see `SUMMED`.
            for i in j..n {
                let adjoint = a[i * n + j].conj();
                let x = if mean { (adjoint + a[j * n + i]).scale(half) } else { adjoint };
                u[place(i)] += x.re();
                if parts > 1 {
                    u[place(i) + lanes] += x.im();
                }
            }
            let Some((root, reciprocal)) = root(u[place(j)]) else { return false };
            let factor = Vector::<S, T::Real>::splat(simd, reciprocal);
            let registers = T::Real::registers_mut::<S>(u).0;
            for strip in j / lanes..strips {
                T::Lane::<S>::load(simd, registers, strip).scale(factor).store(registers, strip);
            }
            a[j * n + j] = T::from_real(root);
            for (row, i) in below.chunks_exact_mut(pitch).zip(j + 1..) {
                let at = place(i);
                let im = if parts > 1 { -u[at + lanes] } else { T::Real::ZERO };
                let l = T::from_parts(u[at], im);
                a[i * n + j] = l;
                let l = T::Lane::<S>::splat(simd, l);
                let (u, row) =
                    (T::Real::registers_mut::<S>(u).0, T::Real::registers_mut::<S>(row).0);
                for strip in i / lanes..strips {
                    let u = T::Lane::<S>::load(simd, u, strip);
                    T::Lane::<S>::load(simd, row, strip).sub_mul(l, u).store(row, strip);
                }
            }
        }
        true
    }
}
