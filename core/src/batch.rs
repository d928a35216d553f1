//! The walk over a batch of matrices, item by item, on one thread or on several.
//!
//! The operands are split before they are shared, so each thread owns its part and nothing here is
//! unsafe.

use std::sync::{Mutex, PoisonError};

use crate::threads::{Serial, Threads};

/// The operands of a batch, cut into one item per matrix.
///
/// Tuples of operands are operands, whose items are the tuples of items.
pub trait Batched: Send + Sized {
    /// What a kernel gets for one matrix.
    type Item;

    /// Whether there is a result with elements to write.
    fn writes(&self) -> bool;

    /// The first `count` items, and the rest.
    fn split_at(self, count: usize) -> (Self, Self);

    /// Removes and returns the first item.
    fn take(&mut self) -> Self::Item;

    /// [`Self::take`], where an item is large and these threads have nothing else to do.
    fn take_by(&mut self, _threads: &dyn Threads) -> Self::Item {
        self.take()
    }

    /// Calls `each` with the start and the bytes of the memory of the first `count` items in each
    /// operand, or of as many as there are.
    fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize));
}

/// Calls `kernel` once for each of `batch` items.
///
/// `nanoseconds` is an estimate of one call's time. It decides how the batch is spread over
/// `threads`, never what is computed: an item's result depends on that item alone. `scratch` makes
/// what the calls of one thread reuse; their number is a small multiple of the threads.
pub fn for_each<B: Batched, S>(
    batch: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    scratch: impl Fn() -> S + Sync,
    kernel: impl Fn(&mut S, B::Item) + Sync,
) {
    for_each_part(batch, 1, operands, nanoseconds, threads, |mut part, items| {
        let mut scratch = scratch();
        for _ in 0..items {
            kernel(&mut scratch, part.take());
        }
    });
}

/// Calls `kernel` for consecutive parts of a batch, each with its number of items, at least 1; not
/// at all where there is nothing to write, however many items the batch has.
///
/// A part is a multiple of `group` items, but for the last one. `nanoseconds` is an estimate of one
/// item's time, as for [`for_each`]. Where the parts are cut depends on the threads: what is computed
/// for an item must not depend on the part it is in.
pub fn for_each_part<B: Batched>(
    batch: usize,
    group: usize,
    operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    kernel: impl Fn(B, usize) + Sync,
) {
    each_part(batch, group, operands, nanoseconds, threads, &kernel);
}

/// [`for_each_part`], compiled once for all kernels with such operands, of which there are hundreds: their
/// bodies would be in it twice.
fn each_part<B: Batched>(
    batch: usize,
    group: usize,
    mut operands: B,
    nanoseconds: usize,
    threads: &dyn Threads,
    kernel: &(dyn Fn(B, usize) + Sync),
) {
    if batch == 0 || !operands.writes() {
        return;
    }
    let groups = batch.div_ceil(group);
    let chunks = chunks(groups, nanoseconds.saturating_mul(group), threads.count());
    if chunks <= 1 {
        kernel(operands, batch);
        return;
    }
    // The first `longer` chunks hold one group more than the others.
    let (length, longer) = (groups / chunks, groups % chunks);
    let mut left = batch;
    let mut parts = Vec::with_capacity(chunks);
    for chunk in 0..chunks {
        let items = ((length + usize::from(chunk < longer)) * group).min(left);
        let (part, rest) = operands.split_at(items);
        (operands, left) = (rest, left - items);
        parts.push(Mutex::new(Some((part, items))));
    }
    threads.run(chunks, &|chunk| {
        let part = parts[chunk].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((part, items)) = part {
            kernel(part, items);
        }
    });
}

/// Calls `kernel` once for each of `batch` items that are work for several threads each, with those it
/// may use: a few items take them all, one after another; of many each has one.
pub fn for_each_large<B: Batched>(
    batch: usize,
    operands: B,
    threads: &dyn Threads,
    kernel: impl Fn(B::Item, &dyn Threads) + Sync,
) {
    each_large(batch, operands, threads, &kernel);
}

/// [`for_each_large`], compiled once for all kernels with such operands.
fn each_large<B: Batched>(
    batch: usize,
    mut operands: B,
    threads: &dyn Threads,
    kernel: &(dyn Fn(B::Item, &dyn Threads) + Sync),
) {
    if batch >= threads.count() {
        for_each(batch, operands, usize::MAX, threads, || (), |(), item| kernel(item, &Serial));
    } else if operands.writes() {
        (0..batch).for_each(|_| kernel(operands.take_by(threads), threads));
    }
}

/// How many pieces a batch is cut into; 1 keeps it on the calling thread.
pub fn chunks(batch: usize, nanoseconds: usize, threads: usize) -> usize {
    /// Below this much work in all, a call stays on its thread: to wake XLA's pool and wait for it
    /// was measured to take 80 to 107 us.
    const PARALLEL_NANOSECONDS: usize = 300_000;
    /// The least work worth a piece of its own, well above the cost of handing it out.
    const CHUNK_NANOSECONDS: usize = 50_000;
    /// Pieces per thread, so that a thread that starts late leaves its share to the others.
    const CHUNKS_PER_THREAD: usize = 4;

    let work = batch.saturating_mul(nanoseconds);
    if threads <= 1 || batch <= 1 || work < PARALLEL_NANOSECONDS {
        return 1;
    }
    batch.min(threads.saturating_mul(CHUNKS_PER_THREAD)).min(work / CHUNK_NANOSECONDS)
}

/// Tuples of operands.
macro_rules! tuple {
    ($($operand:ident),+) => {
        #[allow(non_snake_case, reason = "a type parameter's name is also its field's name")]
        impl<$($operand: Batched),+> Batched for ($($operand,)+) {
            type Item = ($($operand::Item,)+);

            fn writes(&self) -> bool {
                let ($($operand,)+) = self;
                $($operand.writes())||+
            }

            fn split_at(self, count: usize) -> (Self, Self) {
                let ($($operand,)+) = self;
                $(let $operand = $operand.split_at(count);)+
                (($($operand.0,)+), ($($operand.1,)+))
            }

            fn take(&mut self) -> Self::Item {
                let ($($operand,)+) = self;
                ($($operand.take(),)+)
            }

            fn take_by(&mut self, threads: &dyn Threads) -> Self::Item {
                let ($($operand,)+) = self;
                ($($operand.take_by(threads),)+)
            }

            #[inline(always)]
            fn memory(&self, count: usize, each: &mut impl FnMut(*const u8, usize)) {
                let ($($operand,)+) = self;
                $($operand.memory(count, each);)+
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::items::{InOut, Items, ItemsInOut, ItemsMut};
    use crate::threads::Serial;

    /// Runs its pieces backwards, and claims to be three threads.
    struct Backwards;

    impl Threads for Backwards {
        fn count(&self) -> usize {
            3
        }

        fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            (0..chunks).rev().for_each(body);
        }
    }

    fn sums(threads: &dyn Threads, nanoseconds: usize) -> Result<Vec<i64>, Error> {
        let (batch, input) = (1000_usize, (0..2000).collect::<Vec<i64>>());
        let mut sums = vec![0; batch];
        let mut copy = vec![0; 2000];
        let a = Items::new("a", batch, &[2], &input)?;
        let sum = ItemsMut::new("sum", batch, &[], &mut sums)?;
        let c = ItemsInOut::new("c", batch, &[2], InOut { src: Some(&input), dst: &mut copy })?;
        for_each(
            batch,
            (a, sum, c),
            nanoseconds,
            threads,
            || (),
            |(), (a, sum, c)| {
                assert_eq!(a, c);
                sum[0] += a.iter().sum::<i64>();
            },
        );
        assert_eq!(copy, input);
        Ok(sums)
    }

    #[test]
    fn each_item_is_visited_once_on_any_threads() -> Result<(), Error> {
        let expected: Vec<i64> = (0..1000).map(|i| 4 * i + 1).collect();
        assert_eq!(sums(&Serial, 1_000_000)?, expected);
        assert_eq!(sums(&Backwards, 1)?, expected);
        assert_eq!(sums(&Backwards, 1_000_000)?, expected);
        Ok(())
    }

    #[test]
    fn nothing_to_write_is_no_work() -> Result<(), Error> {
        let empty = (
            Items::new("a", usize::MAX, &[0], &[0.0_f64; 0])?,
            ItemsMut::new("b", usize::MAX, &[0], &mut [0.0_f64; 0])?,
        );
        for_each(usize::MAX, empty, 1, &Backwards, || (), |(), _| panic!("nothing to do"));
        Ok(())
    }

    #[test]
    fn parts_are_whole_groups() -> Result<(), Error> {
        let mut numbers = vec![0; 30];
        let parts = Mutex::new(Vec::new());
        let results = (ItemsMut::new("a", 30, &[], &mut numbers)?,);
        for_each_part(30, 8, results, 1_000_000, &Backwards, |(part,), items| {
            assert_eq!(part.into_data().len(), items);
            parts.lock().unwrap_or_else(PoisonError::into_inner).push(items);
        });
        assert_eq!(parts.into_inner().unwrap_or_else(PoisonError::into_inner), [6, 8, 8, 8]);
        Ok(())
    }

    #[test]
    fn little_work_stays_on_its_thread() {
        assert_eq!(chunks(1000, 299, 8), 1);
        assert_eq!(chunks(1000, 300, 8), 6);
        assert_eq!(chunks(1000, 1_000_000, 8), 32);
        assert_eq!(chunks(3, usize::MAX, 8), 3);
        assert_eq!(chunks(1, usize::MAX, 8), 1);
        assert_eq!(chunks(0, 1, 8), 1);
    }
}
