//! Batches of so few and so small matrices that nothing is prepared for them.

use lapax_core::Batched;

/// Calls `kernel` for each item of such a batch.
pub(crate) fn each<B: Batched>(batch: usize, mut operands: B, mut kernel: impl FnMut(B::Item)) {
    (0..batch).for_each(|_| kernel(operands.take()));
}
