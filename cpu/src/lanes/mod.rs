//! Batches of small matrices: one matrix in each lane of the registers.
//!
//! A group is as many matrices as a register has lanes. It is read into a tile, transposed so that
//! a register holds the same element of each, worked on as if it were one matrix, and written back.
//! Every operation is lane by lane and every decision is a mask, so that a matrix's result depends
//! neither on its neighbours nor on where it stands in its batch.

mod bidiagonal;
mod bidiagonal_qr;
mod blocks;
pub(crate) mod cholesky;
pub(crate) mod definite;
pub(crate) mod determinant;
mod dqds;
mod dqds_shift;
pub(crate) mod eig;
pub(crate) mod eigh;
pub(crate) mod explicit_qr;
mod francis;
pub(crate) mod hessenberg;
mod implicit_ql;
mod jacobi;
pub(crate) mod lu;
pub(crate) mod lu_solve;
pub(crate) mod perturbed;
mod phase;
pub(crate) mod qr;
mod reflector;
mod root_free_ql;
mod rotations;
#[cfg(feature = "testing")]
pub(crate) mod row_tests;
mod scaling;
pub(crate) mod schur;
mod single_shift;
pub(crate) mod solve;
mod standard;
pub(crate) mod svd;
pub(crate) mod svd_bidiagonal;
pub(crate) mod sytrd;
#[cfg(feature = "testing")]
pub(crate) mod tests;
mod tile;
mod transpose;
pub(crate) mod triangular;
pub(crate) mod tridiagonal;
pub(crate) mod update;
#[allow(unreachable_pub, reason = "the public trait Scalar names them")]
mod vector;
mod whole;
mod wide;

use lapax_core::{Batched, Threads, for_each_part};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::arch::Arch;
use crate::simd::ask;

pub(crate) use tile::{Order, Shape, Tile};
pub(crate) use transpose::transpose;
#[allow(unreachable_pub, reason = "the public trait Scalar names them")]
pub use vector::{ComplexVector, Lane, LaneReal, Mask, Vector};
pub(crate) use vector::{Divisor, Reg};

/// The least batch that goes through lanes: fewer matrices leave most of a register idle.
pub(crate) const BATCH: usize = 4;

/// Whether a batch of matrices of an order goes through lanes, which pay up to order `limit`.
///
/// A matter of sizes alone, so that each matrix of a batch is computed in the same way.
pub(crate) fn pay(batch: usize, order: usize, limit: usize) -> bool {
    batch >= BATCH && (1..=limit).contains(&order)
}

/// The bytes of an operand's next group that are asked for before work on a group starts; more do not
/// come in that time. From memory, f64: `lu` of order 8 160 against 138 ns, `inv` of order 16 1.74 against
/// 1.24 us.
const AHEAD: usize = 16 << 10;

/// The largest number of lanes: f32 in AVX-512.
pub(crate) const MAX_LANES: usize = 16;

/// The work on one group.
pub(crate) trait Kernel<T: Scalar, B>: Sync {
    /// What one thread reuses.
    type Scratch;

    /// The groups that are worked on at once, where there are as many: more than one pay where a group's steps
    /// wait for each other.
    fn groups(&self) -> usize {
        1
    }

    /// Makes it, for registers of so many lanes.
    fn scratch(&self, lanes: usize) -> Self::Scratch;

    /// Works on `count` matrices, from one to the number of lanes in so many groups.
    fn run<S: Simd>(&self, simd: S, scratch: &mut Self::Scratch, group: B, count: usize);
}

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

/// Runs a kernel over a batch, whose matrices take about so many nanoseconds each.
pub(crate) fn for_each_group<T: Scalar, B: Batched>(
    batch: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    kernel: &impl Kernel<T, B>,
) {
    let arch = Arch::new();
    let group = width::<T>();
    for_each_part(batch, group, operands, nanoseconds, threads, |part, items| {
        arch.dispatch(Walk { kernel, part, items, scalar: std::marker::PhantomData::<T> });
    });
}

/// How many lanes a register of this processor has.
pub(crate) fn width<T: Scalar>() -> usize {
    Arch::new().dispatch(Lanes(std::marker::PhantomData::<T>))
}

struct Lanes<T>(std::marker::PhantomData<T>);

impl<T: Scalar> WithSimd for Lanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        T::Real::lanes::<S>()
    }
}

struct Walk<'a, T, B, K> {
    kernel: &'a K,
    part: B,
    items: usize,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Scalar, B: Batched, K: Kernel<T, B>> WithSimd for Walk<'_, T, B, K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { kernel, mut part, mut items, .. } = self;
        let lanes = T::Real::lanes::<S>();
        let together = lanes * kernel.groups();
        let mut scratch = kernel.scratch(lanes);
        while items > 0 {
            let count = items.min(together);
            let (group, rest) = part.split_at(count);
            rest.memory(together, &mut |from, bytes| ask(from, bytes.min(AHEAD)));
            kernel.run(simd, &mut scratch, group, count);
            (part, items) = (rest, items - count);
        }
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
