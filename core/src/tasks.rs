//! Tasks of one job that wait for each other: the pieces of one large matrix.
//!
//! They are begun in the order of their numbers, by the calling thread and by whichever others come
//! to help, and say themselves what they wait for: how far a stage has come, a stage being, for
//! instance, a block of columns. A task may wait only for what earlier tasks do, so that the earliest
//! one running never waits, and a job ends whatever the number of threads that serve it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::threads::Threads;

/// How far each stage of a job has come.
pub struct Stages<'a> {
    threads: &'a dyn Threads,
    steps: Vec<Steps>,
    failed: AtomicBool,
    sleepers: AtomicUsize,
    asleep: Mutex<()>,
    changed: Condvar,
}

/// The steps of one stage, in a cache line of their own: those who wait look at it all the time.
#[repr(align(64))]
#[derive(Default)]
struct Steps(AtomicUsize);

impl<'a> Stages<'a> {
    fn new(stages: usize, threads: &'a dyn Threads) -> Self {
        Self {
            threads,
            steps: (0..stages).map(|_| Steps::default()).collect(),
            failed: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            asleep: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Waits until a stage has made so many steps; `false` where it never will, because a task has
    /// panicked.
    #[must_use]
    pub fn wait(&self, stage: usize, steps: usize) -> bool {
        /// How often it looks before it sleeps: about as long as it takes to sleep and to be woken,
        /// 50 us.
        const LOOKS: usize = 1000;
        let over = || {
            self.steps[stage].0.load(Ordering::SeqCst) >= steps
                || self.failed.load(Ordering::SeqCst)
        };
        for _ in 0..LOOKS {
            if over() {
                return !self.failed.load(Ordering::SeqCst);
            }
            std::hint::spin_loop();
        }
        self.threads.asleep(&mut || {
            let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            while !over() {
                asleep = self.changed.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        });
        !self.failed.load(Ordering::SeqCst)
    }

    /// A stage has made one more step.
    pub fn advance(&self, stage: usize) {
        self.steps[stage].0.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// A sleeper counts itself before it looks for the last time, and all is in one order: either it
    /// sees the change, or it is counted here.
    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.asleep.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
            self.threads.woke();
        }
    }
}

/// Calls `body` once for each of `0..tasks`, begun in that order by at most `width` threads at the
/// same time, and returns when all calls have returned.
///
/// Where one panics, the tasks not yet begun are left out, and the panic goes on.
pub fn run_tasks(
    threads: &dyn Threads,
    width: usize,
    tasks: usize,
    stages: usize,
    body: impl Fn(usize, &Stages<'_>) + Sync,
) {
    struct Unfinished<'a>(&'a Stages<'a>);
    impl Drop for Unfinished<'_> {
        fn drop(&mut self) {
            self.0.fail();
        }
    }

    let stages = Stages::new(stages, threads);
    let next = AtomicUsize::new(0);
    threads.run(threads.count().min(width).min(tasks), &|_| {
        while !stages.failed.load(Ordering::SeqCst) {
            let task = next.fetch_add(1, Ordering::SeqCst);
            if task >= tasks {
                break;
            }
            let unfinished = Unfinished(&stages);
            body(task, &stages);
            std::mem::forget(unfinished);
            threads.settle();
        }
    });
}

/// Calls `body` once for each of `0..tasks`, none of which waits for another, each thread with scratch of its
/// own.
pub fn run_each<S>(
    threads: &dyn Threads,
    tasks: usize,
    scratch: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, usize) + Sync,
) {
    let next = AtomicUsize::new(0);
    threads.run(threads.count().min(tasks), &|_| {
        let mut scratch = scratch();
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            body(&mut scratch, task);
            threads.settle();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Serial;

    /// So many threads, started for each run; the last piece goes first.
    struct Spawned(usize);

    impl Threads for Spawned {
        fn count(&self) -> usize {
            self.0
        }

        fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            std::thread::scope(|scope| {
                for chunk in (0..chunks).rev() {
                    scope.spawn(move || body(chunk));
                }
            });
        }
    }

    #[test]
    fn each_task_runs_once_and_after_those_it_waits_for() {
        const STAGES: usize = 5;
        const STEPS: usize = 40;
        for threads in [&Serial as &dyn Threads, &Spawned(1), &Spawned(3), &Spawned(8)] {
            let log = Mutex::new(Vec::new());
            run_tasks(threads, 4, STAGES * STEPS, STAGES, |task, stages| {
                let (step, stage) = (task / STAGES, task % STAGES);
                // After its own last step, and after the step of the stage before.
                assert!(stages.wait(stage, step));
                assert!(stage == 0 || stages.wait(stage - 1, step + 1));
                if task % 7 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
                log.lock().unwrap_or_else(PoisonError::into_inner).push((step, stage));
                stages.advance(stage);
            });
            let log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(log.len(), STAGES * STEPS);
            for (at, (step, stage)) in log.iter().enumerate() {
                let before = |other: (usize, usize)| log[..at].contains(&other);
                assert!(*step == 0 || before((step - 1, *stage)));
                assert!(*stage == 0 || before((*step, stage - 1)));
            }
        }
    }

    #[test]
    fn a_panic_ends_the_job_and_those_who_wait() {
        for threads in [&Serial as &dyn Threads, &Spawned(3)] {
            let run = || {
                run_tasks(threads, 3, 6, 1, |task, stages| {
                    assert!(task != 1, "this one fails");
                    if task > 1 {
                        assert!(!stages.wait(0, 1));
                    }
                });
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        }
    }

    /// Two threads, and what they were told.
    #[derive(Default)]
    struct Told {
        settled: AtomicUsize,
        slept: AtomicUsize,
        woke: AtomicUsize,
    }

    impl Threads for Told {
        fn count(&self) -> usize {
            2
        }

        fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            Spawned(2).run(chunks, body);
        }

        fn settle(&self) {
            self.settled.fetch_add(1, Ordering::SeqCst);
        }

        fn asleep(&self, sleep: &mut dyn FnMut()) {
            self.slept.fetch_add(1, Ordering::SeqCst);
            sleep();
        }

        fn woke(&self) {
            self.woke.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn threads_are_told_of_sleep_and_of_each_end() {
        let threads = Told::default();
        run_tasks(&threads, 2, 2, 1, |task, stages| {
            if task == 1 {
                assert!(stages.wait(0, 1));
                return;
            }
            while stages.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            stages.advance(0);
        });
        run_each(&threads, 3, || (), |(), _| ());
        let told = [&threads.settled, &threads.slept, &threads.woke];
        assert_eq!(told.map(|times| times.load(Ordering::SeqCst)), [2 + 3, 1, 1]);
    }

    #[test]
    fn scratch_belongs_to_one_thread() {
        for threads in [&Serial as &dyn Threads, &Spawned(1), &Spawned(3)] {
            let log = Mutex::new(Vec::new());
            let scratches = AtomicUsize::new(0);
            let scratch = || (scratches.fetch_add(1, Ordering::SeqCst), 0);
            run_each(threads, 50, scratch, |(owner, calls), task| {
                *calls += 1;
                log.lock().unwrap_or_else(PoisonError::into_inner).push((task, *owner, *calls));
            });
            let mut log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
            for owner in 0..threads.count() {
                let calls: Vec<_> = log.iter().filter(|(_, of, _)| *of == owner).collect();
                assert!(calls.iter().zip(1..).all(|((.., call), count)| *call == count));
            }
            log.sort_unstable();
            assert!(log.iter().map(|&(task, ..)| task).eq(0..50));
            assert_eq!(scratches.into_inner(), threads.count());
        }
    }

    #[test]
    fn nothing_to_do() {
        run_tasks(&Serial, 1, 0, 0, |_, _| unreachable!("no task"));
        run_each(&Serial, 0, || (), |(), _| unreachable!("no task"));
    }
}
