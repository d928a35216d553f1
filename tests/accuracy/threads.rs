//! Threads for the tests: as many as asked for, started for each job.

use std::sync::atomic::{AtomicUsize, Ordering};

use lapax_cpu::Threads;

/// A pool of this many threads, each of which takes the next piece until none is left.
pub(crate) struct Spawned(pub(crate) usize);

impl Threads for Spawned {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    loop {
                        let chunk = next.fetch_add(1, Ordering::Relaxed);
                        if chunk >= chunks {
                            break;
                        }
                        body(chunk);
                    }
                });
            }
        });
    }
}
