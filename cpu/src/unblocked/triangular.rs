//! Substitution with one small triangle.

use faer::Conj;
use pulp::{Scalar as Numbers, Simd, WithSimd};

use super::lu::HALF;
use super::{ORDER, WIDE};
use crate::blas::trsv;
use crate::matrix::layout::{Layout, Strides};
use crate::matrix::triangle::System;
use crate::simd::arch::Arch;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines;
use crate::simd::loops::{Divisor, sub_mul};
use crate::simd::vector::{Lane, MAX_LANES};
use crate::{Diag, Scalar, Uplo};

/// The unknowns from which on those of one right-hand side are found by registers: `lu_solve` of 12 220 and 270,
/// of 16 280 and 460.
const UNKNOWNS: usize = 11;

/// B ← A⁻¹·B for a triangular A of order n and so many right-hand sides.
pub(crate) fn substitute<T: Scalar>(
    system: System,
    (n, nrhs): (usize, usize),
    (a, a_order): (&[T], Layout),
    (b, b_order): (&mut [T], Layout),
) {
    let System { uplo, diag, conj } = system;
    let arch = Arch::new();
    if nrhs == 1 && n >= UNKNOWNS {
        let conj = system.conj == Conj::Yes;
        let (uplo, diag) = (system.uplo, system.diag);
        return arch.dispatch(trsv::Solve { uplo, diag, conj, order: a_order, a, x: b });
    }
    if b_order == Layout::Rows && nrhs >= WIDE {
        return if n <= HALF {
            arch.dispatch(SubstituteRows::<_, HALF> { system, n, nrhs, a, a_order, b })
        } else {
            arch.dispatch(SubstituteRows::<_, ORDER> { system, n, nrhs, a, a_order, b })
        };
    }
    let (of_a, of_b) = (Strides::new(a_order, n, n), Strides::new(b_order, n, nrhs));
    let read = |i, j| {
        let x = a[of_a.at(i, j)];
        if conj == Conj::Yes { x.conj() } else { x }
    };
    // The unknowns of an upper system are found from the last to the first.
    let unknown = |step: usize| if uplo == Uplo::Upper { n - 1 - step } else { step };
    for step in 0..n {
        let i = unknown(step);
        for k in (0..step).map(unknown) {
            let factor = read(i, k);
            for c in 0..nrhs {
                let x = b[of_b.at(k, c)];
                let sum = &mut b[of_b.at(i, c)];
                *sum = sub_mul::<Numbers, T>(*sum, factor, x);
            }
        }
        if diag == Diag::NonUnit {
            let divisor = Divisor::new(read(i, i));
            (0..nrhs).for_each(|c| divisor.divide(std::slice::from_mut(&mut b[of_b.at(i, c)])));
        }
    }
}

/// B ← A⁻¹·B for A of an order of at most N, with B by rows: a register holds neighbours in a row.
pub(crate) struct SubstituteRows<'a, T, const N: usize> {
    pub(crate) system: System,
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    pub(crate) a: &'a [T],
    pub(crate) a_order: Layout,
    pub(crate) b: &'a mut [T],
}

impl<T: Scalar, const N: usize> WithSimd for SubstituteRows<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { system: System { uplo, diag, conj }, n, nrhs, a, a_order, b } = self;
        let (strides, lanes) = (Strides::new(a_order, n, n), T::Real::lanes::<S>());
        let number = |i, j| {
            let x = a[strides.at(i, j)];
            if conj == Conj::Yes { x.conj() } else { x }
        };
        // The unknowns of an upper system are found from the last to the first.
        let unknown = |step: usize| if uplo == Uplo::Upper { n - 1 - step } else { step };
        let mut x = [T::Lane::<S>::splat(simd, T::ZERO); N];
        for from in (0..nrhs).step_by(lanes) {
            for step in 0..n {
                let i = unknown(step);
                let row = &mut b[i * nrhs..(i + 1) * nrhs];
                let mut sum = lines::read::<S, T>(simd, row, from);
                for (k, &x) in x[..step].iter().enumerate() {
                    sum = sum.sub_mul(T::Lane::<S>::splat(simd, number(i, unknown(k))), x);
                }
                if diag == Diag::NonUnit {
                    sum = match Divisor::new(number(i, i)) {
                        Divisor::One => sum,
                        Divisor::Reciprocal(x) => sum * T::Lane::<S>::splat(simd, x),
                        Divisor::Number(pivot) => {
                            let mut numbers = [T::ZERO; MAX_LANES];
                            sum.write(&mut numbers);
                            numbers.iter_mut().for_each(|x| *x = x.divide(pivot));
                            T::Lane::<S>::read(simd, &numbers)
                        }
                    };
                }
                x[step] = sum;
                let to = nrhs.min(from + lanes);
                lines::write::<S, T>(sum, &mut row[from..to]);
            }
        }
    }
}
