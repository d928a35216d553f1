//! Threads that belong to somebody else: XLA's pool, a test's, or none.

/// Runs numbered pieces of one job, on threads of its choice.
pub trait Threads: Sync {
    /// How many pieces can run at the same time; at least 1.
    fn count(&self) -> usize;

    /// Calls `body` once for each of `0..chunks`, on any thread and in any order, and returns when
    /// all calls have returned.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync));
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
