//! Batches by groups of as many matrices as a register has lanes.

use lapax_core::{Batched, Threads, for_each_part};
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::simd::arch::Arch;
use crate::simd::lane::width;
use crate::simd::lane_real::LaneReal;
use crate::simd::prefetch::ask;
use crate::simd::vector::MAX_LANES;

/// The least batch that goes through lanes: fewer matrices leave most of a register idle.
pub(crate) const BATCH: usize = 4;

/// Whether a batch of matrices of an order goes through lanes, which pay up to order `limit`.
///
/// A matter of sizes alone, so that each matrix of a batch is computed in the same way.
pub(crate) fn pay(batch: usize, order: usize, limit: usize) -> bool {
    batch >= BATCH && (1..=limit).contains(&order)
}

/// [`pay`] of a batch that has to fill half of the widest registers where its matrices are large.
pub(crate) fn pay_filled(batch: usize, order: usize, limit: usize) -> bool {
    /// The order from which on they are.
    const LARGE: usize = 33;
    pay(batch, order, limit) && (order < LARGE || batch >= MAX_LANES / 2)
}

/// The bytes of an operand's next group that are asked for before work on a group starts; more do not
/// come in that time. From memory, f64: `lu` of order 8 160 against 138 ns, `inv` of order 16 1.74 against
/// 1.24 us.
const AHEAD: usize = 16 << 10;

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

pub(crate) struct Walk<'a, T, B, K> {
    pub(crate) kernel: &'a K,
    pub(crate) part: B,
    pub(crate) items: usize,
    pub(crate) scalar: std::marker::PhantomData<T>,
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
