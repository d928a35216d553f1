//! Threads for tests.

use lapax_core::{Serial, Spawned, Threads};

use crate::Scalar;

/// The same result for each number of threads.
pub(crate) fn on_threads<R: PartialEq + std::fmt::Debug>(
    what: &str,
    run: impl Fn(&dyn Threads) -> R,
) -> R {
    let alone = run(&Serial);
    for threads in [1, 2, 5] {
        let found = run(&Spawned(threads));
        assert!(found == alone, "{what}: {threads} threads have another result than one");
    }
    alone
}

pub(crate) fn transposed<T: Scalar>(a: &[T], m: usize, n: usize) -> Vec<T> {
    (0..m * n).map(|p| a[p % n * m + p / n]).collect()
}
