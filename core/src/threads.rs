//! Threads: those of somebody else, such as XLA's pool, of our own, or none.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs numbered pieces of one job, on threads of its choice.
pub trait Threads: Sync {
    /// How many pieces can run at the same time; at least 1.
    fn count(&self) -> usize;

    /// Calls `body` once for each of `0..chunks`, on any thread and in any order, and returns when
    /// all calls have returned.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync));

    /// A body calls it between two pieces of its work: the thread may then be moved to a better processor.
    fn settle(&self) {}

    /// A body that waits for another sleeps by it: `sleep` returns when another has woken this thread.
    fn asleep(&self, sleep: &mut dyn FnMut()) {
        sleep();
    }

    /// A body calls it when it has woken others.
    fn woke(&self) {}
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Threads for Serial {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..chunks).for_each(body);
    }
}

/// So many threads, all but the calling one started for each job; each takes the next piece until none is
/// left.
#[derive(Clone, Copy, Debug)]
pub struct Spawned(pub usize);

impl Threads for Spawned {
    fn count(&self) -> usize {
        self.0.max(1)
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    break;
                }
                body(chunk);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.count().min(chunks) {
                // Where the system has no thread left, there are fewer.
                if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
    }
}
