//! Batches of so few and so small matrices that nothing is prepared for them.

use lapax_core::Batched;

use super::groups;

/// Whether a batch of matrices of an order goes through what is here, which pays up to order `limit`.
pub(crate) fn pay(batch: usize, order: usize, limit: usize) -> bool {
    (1..=limit).contains(&order) && !groups::pay(batch, order, limit)
}

/// Calls `kernel` for each item of such a batch.
pub(crate) fn each<B: Batched>(batch: usize, mut operands: B, mut kernel: impl FnMut(B::Item)) {
    (0..batch).for_each(|_| kernel(operands.take()));
}
