//! Tasks of a few kinds, each of which comes after all tasks of another kind that are before it.

use lapax_core::run_tasks;

use crate::Threads;

/// Tasks in an order in which they can be done, of so many kinds.
pub(crate) struct Schedule<W, const KINDS: usize> {
    tasks: Vec<Task<W>>,
    counts: [usize; KINDS],
}

struct Task<W> {
    work: W,
    kind: usize,
    /// The kind that comes before it, and how many of that.
    after: (usize, usize),
}

impl<W: Sync, const KINDS: usize> Schedule<W, KINDS> {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new(), counts: [0; KINDS] }
    }

    /// A task of a kind, after all of another kind that were added so far.
    pub(crate) fn add(&mut self, work: W, kind: usize, after: usize) {
        self.tasks.push(Task { work, kind, after: (after, self.counts[after]) });
        self.counts[kind] += 1;
    }

    /// Does all tasks on at most `width` threads.
    pub(crate) fn run(&self, threads: &dyn Threads, width: usize, body: impl Fn(&W) + Sync) {
        run_tasks(threads, width, self.tasks.len(), KINDS, |task, stages| {
            let Task { work, kind, after: (after, count) } = &self.tasks[task];
            if stages.wait(*after, *count) {
                body(work);
                stages.advance(*kind);
            }
        });
    }
}
