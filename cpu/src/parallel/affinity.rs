//! Which thread works on which part of a matrix, step after step.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parts that are worked on in each of many steps. A thread takes those that it has had before, which are in the
/// caches near it, and others when none of its own is left: results do not depend on who does the work.
pub(crate) struct Claims(Vec<Part>);

#[derive(Default)]
struct Part {
    /// The steps in which the part has been taken.
    steps: AtomicUsize,
    /// The thread that had it last.
    owner: AtomicUsize,
}

impl Claims {
    pub(crate) fn new(parts: usize) -> Self {
        Self((0..parts).map(|_| Part::default()).collect())
    }

    /// Whether this thread had a part last.
    pub(crate) fn is_own(&self, part: usize) -> bool {
        self.0[part].owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Takes one of some parts, preferred ones first, each of which is taken once in each step: it must be called
    /// as often in step number `step`, counted from 0, as there are parts.
    pub(crate) fn take(
        &self,
        parts: Range<usize>,
        step: usize,
        prefers: impl Fn(usize) -> bool,
    ) -> usize {
        // What others would take last is taken first.
        let own = parts.clone().filter(|&part| prefers(part));
        loop {
            for part in own.clone().chain(parts.clone().rev()) {
                let Part { steps, owner } = &self.0[part];
                let taken =
                    steps.compare_exchange(step, step + 1, Ordering::SeqCst, Ordering::SeqCst);
                if taken.is_ok() {
                    owner.store(this_thread(), Ordering::Relaxed);
                    return part;
                }
            }
        }
    }
}

/// A number that no other thread has at the same time.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use std::sync::Mutex;

    use lapax_core::{Serial, Spawned, Threads};

    use super::Claims;

    trials!(each_part_is_taken_once_in_each_step, a_thread_takes_its_own_parts_first);

    fn each_part_is_taken_once_in_each_step() {
        const PARTS: usize = 7;
        for threads in [&Serial as &dyn Threads, &Spawned(3)] {
            let claims = Claims::new(PARTS);
            for step in 0..PARTS {
                let taken = Mutex::new(Vec::new());
                threads.run(PARTS - step, &|_| {
                    let part = claims.take(step..PARTS, step, |part| claims.is_own(part));
                    taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(part);
                });
                let mut taken =
                    taken.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
                taken.sort_unstable();
                assert!(taken.into_iter().eq(step..PARTS), "step {step}");
            }
        }
    }

    fn a_thread_takes_its_own_parts_first() {
        let claims = Claims::new(4);
        let take = |step| claims.take(0..4, step, |part| claims.is_own(part));
        assert_eq!([take(0), take(0), take(0), take(0)], [3, 2, 1, 0]);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!([take(1), take(1)], [3, 2]));
        });
        assert_eq!([take(1), take(1)], [0, 1]);
        assert_eq!([take(2), take(2)], [0, 1]);
    }
}
