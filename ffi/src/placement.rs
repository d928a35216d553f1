//! Which processors the threads of one job run on, and that they are different ones.
//!
//! A processor of a virtual machine that has nothing to do is halted, and Linux, which asks the hypervisor,
//! does not count it as one that is idle. So a thread that is woken starts on the processor of the one that
//! woke it, behind it, for the milliseconds until the load is balanced, while the other processors rest: a
//! call that follows some milliseconds of rest ran at the speed of one thread. Here a thread that finds
//! another of its job on its processor moves to where there is none, and one that has woken others gives
//! them a chance to find that out.
//!
//! On a virtual machine of two processors, single calls after 12 ms of rest, ms: LU of 512 × 512 took 2.4 of
//! f64 and 7.0 of c128, 2.9 and 5.8 where threads move but do not yield, 2.2 and 4.4 where they do both; a
//! triangular solve of as many right-hand sides 2.3, 1.7 and 1.6. A second yield 20, 60 or 200 µs later,
//! where somebody had not come by then, changed nothing.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A move takes 30 to 60 us, a yield to a thread that then moves as long. Where one took longer than this,
/// another program was at work there, whose turns are of milliseconds, and to run beside it is of no use to
/// threads that wait for each other: it is let alone for so long, and for twice as long each time after.
/// In nanoseconds.
const TAKEN: u64 = 300_000;
const SHORTEST_TRUCE: u64 = 50_000_000;
const LONGEST_TRUCE: u64 = 800_000_000;

/// The processor of a thread that is at work on none.
const NOWHERE: usize = usize::MAX;

/// The processors of one job's threads.
#[derive(Debug)]
pub(crate) struct Placement {
    /// Of each thread, in the order in which they came.
    processors: Vec<AtomicUsize>,
    /// How many have come for the first time.
    come: AtomicUsize,
    /// There is no processor without one of these threads.
    full: AtomicBool,
}

impl Placement {
    /// Of at most so many threads.
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            processors: (0..threads).map(|_| AtomicUsize::new(NOWHERE)).collect(),
            come: AtomicUsize::new(0),
            full: AtomicBool::new(false),
        })
    }

    /// This thread is at work until what is returned is dropped.
    pub(crate) fn arrive(self: &Arc<Self>) -> Here {
        let number = self.come.fetch_add(1, Ordering::SeqCst);
        let place = Place { placement: Arc::clone(self), number };
        place.look();
        Here { outer: PLACE.replace(Some(place)) }
    }

    /// Whether a thread other than this one is at work on the processor.
    fn shared(&self, processor: usize, number: usize) -> bool {
        let mut others = self.processors.iter().enumerate().filter(|(other, _)| *other != number);
        others.any(|(_, other)| other.load(Ordering::SeqCst) == processor)
    }
}

/// A thread's place in the job that it is at work on.
struct Place {
    placement: Arc<Placement>,
    number: usize,
}

impl Place {
    fn leave(&self) {
        self.set(NOWHERE);
    }

    fn set(&self, processor: usize) {
        if let Some(mine) = self.placement.processors.get(self.number) {
            mine.store(processor, Ordering::SeqCst);
        }
    }

    /// Sees where this thread is, and moves it if another of the job is there.
    fn look(&self) {
        let Some(processor) = system::processor() else { return };
        self.set(processor);
        let placement = &*self.placement;
        if !placement.full.load(Ordering::SeqCst) && placement.shared(processor, self.number) {
            // It is out of the other one's way from now on, though not elsewhere yet.
            self.leave();
            TRUCE.unless(|| {
                let moved = system::leave(|processor| placement.shared(processor, self.number));
                placement.full.store(!moved, Ordering::SeqCst);
            });
            self.set(system::processor().unwrap_or(NOWHERE));
        }
    }
}

/// A thread that is at work.
pub(crate) struct Here {
    /// Its place in the job, a task of which this job is.
    outer: Option<Place>,
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some(place) = PLACE.replace(self.outer.take()) {
            place.leave();
        }
    }
}

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// When other programs are let alone.
struct Truce {
    /// When it ends, in nanoseconds since somebody first asked.
    ends: AtomicU64,
    /// How long the next one is.
    next: AtomicU64,
}

static TRUCE: Truce = Truce::new();

impl Truce {
    const fn new() -> Self {
        Self { ends: AtomicU64::new(0), next: AtomicU64::new(SHORTEST_TRUCE) }
    }

    /// Does what other programs may be met by, outside a truce.
    fn unless(&self, f: impl FnOnce()) {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let first = *FIRST.get_or_init(Instant::now);
        let now = || u64::try_from(first.elapsed().as_nanos()).unwrap_or(0);
        let began = now();
        if began < self.ends.load(Ordering::Relaxed) {
            return;
        }
        f();
        let ended = now();
        let next = if ended - began > TAKEN {
            let truce = self.next.load(Ordering::Relaxed);
            self.ends.store(ended + truce, Ordering::Relaxed);
            (2 * truce).min(LONGEST_TRUCE)
        } else {
            SHORTEST_TRUCE
        };
        self.next.store(next, Ordering::Relaxed);
    }
}

fn here(f: impl FnOnce(&Place)) {
    PLACE.with_borrow(|place| place.as_ref().map(f));
}

/// Between two pieces of work of a job.
pub(crate) fn settle() {
    here(Place::look);
}

/// This thread has woken others that are to take part.
pub(crate) fn woke() {
    here(|_| TRUCE.unless(system::give_way));
}

/// This thread sleeps, on no processor, until the call returns.
pub(crate) fn asleep(sleep: &mut dyn FnMut()) {
    here(Place::leave);
    sleep();
    here(Place::look);
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    //! What Linux says and does.

    /// The processor of this thread.
    pub(super) fn processor() -> Option<usize> {
        // SAFETY: it has no conditions.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    pub(super) fn give_way() {
        std::thread::yield_now();
    }

    /// Moves this thread to one of the processors that it may use and that are not `taken`; `false` where
    /// there is none. Afterwards it may use the same as before.
    pub(super) fn leave(taken: impl Fn(usize) -> bool) -> bool {
        // SAFETY: plain bits, for which zero is a value.
        let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the set is ours, and of that size.
        if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
            return false;
        }
        let mut free = allowed;
        let mut any = false;
        for processor in 0..8 * size {
            // SAFETY: the numbers are below those that a set has bits for.
            unsafe {
                if libc::CPU_ISSET(processor, &allowed) {
                    if taken(processor) {
                        libc::CPU_CLR(processor, &mut free);
                    } else {
                        any = true;
                    }
                }
            }
        }
        // SAFETY: the sets are ours, and of that size. The second call cannot fail where the first did not,
        // unless the processors have been taken from the process meanwhile.
        any && unsafe {
            let moved = libc::sched_setaffinity(0, size, &raw const free) == 0;
            moved && libc::sched_setaffinity(0, size, &raw const allowed) == 0
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    //! Elsewhere nothing is known of where threads are, nor is it under Miri.

    pub(super) fn processor() -> Option<usize> {
        None
    }

    pub(super) fn give_way() {}

    pub(super) fn leave(_: impl Fn(usize) -> bool) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The processors that this thread may use.
    fn allowed() -> Vec<usize> {
        // SAFETY: plain bits, for which zero is a value; the set is ours, and of that size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
            (0..8 * size_of_val(&set)).filter(|&at| libc::CPU_ISSET(at, &set)).collect()
        }
    }

    fn processor_of(placement: &Placement, number: usize) -> usize {
        placement.processors[number].load(Ordering::SeqCst)
    }

    /// Settles until it is so: there may be a truce.
    fn eventually(so: impl Fn() -> bool) {
        let began = Instant::now();
        while !so() {
            assert!(began.elapsed() < Duration::from_secs(60), "it never comes to be so");
            std::thread::sleep(Duration::from_millis(1));
            settle();
        }
    }

    #[test]
    fn a_thread_leaves_another_ones_processor() {
        let before = allowed();
        if before.len() == 1 {
            eprintln!("not tested that threads move: there is one processor, and it takes two");
            return;
        }
        for _ in 0..50 {
            let placement = Placement::new(2);
            let here = placement.arrive();
            let taken = processor_of(&placement, 0);
            assert!(before.contains(&taken));
            placement.processors[1].store(taken, Ordering::SeqCst);
            eventually(|| processor_of(&placement, 0) != taken);
            assert!(before.contains(&processor_of(&placement, 0)));
            assert!(!placement.full.load(Ordering::SeqCst));
            assert_eq!(allowed(), before);
            drop(here);
            assert_eq!(processor_of(&placement, 0), NOWHERE);
        }
    }

    #[test]
    fn a_thread_stays_where_all_processors_are_taken() {
        let before = allowed();
        let placement = Placement::new(1 + before.len());
        for (taken, processor) in placement.processors[1..].iter().zip(&before) {
            taken.store(*processor, Ordering::SeqCst);
        }
        let _here = placement.arrive();
        eventually(|| placement.full.load(Ordering::SeqCst));
        assert!(before.contains(&processor_of(&placement, 0)));
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_job_within_a_job_has_places_of_its_own() {
        let (outer, inner) = (Placement::new(1), Placement::new(1));
        let _outer = outer.arrive();
        let within = inner.arrive();
        asleep(&mut || {
            assert_eq!(processor_of(&inner, 0), NOWHERE);
            assert_ne!(processor_of(&outer, 0), NOWHERE);
        });
        assert_ne!(processor_of(&inner, 0), NOWHERE);
        drop(within);
        assert_eq!(processor_of(&inner, 0), NOWHERE);
        asleep(&mut || assert_eq!(processor_of(&outer, 0), NOWHERE));
    }

    #[test]
    fn more_threads_than_were_expected() {
        let placement = Placement::new(1);
        let _first = placement.arrive();
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let _here = placement.arrive();
                settle();
                woke();
                asleep(&mut || ());
            });
            second.join()
        });
        assert!(second.is_ok());
    }

    #[test]
    fn what_took_long_is_not_done_again_for_a_while() {
        let truce = Truce::new();
        let mut done = 0;
        for round in 1..=3 {
            truce.unless(|| {
                std::thread::sleep(Duration::from_nanos(2 * TAKEN));
                done += 1;
            });
            assert_eq!(done, round);
            truce.unless(|| done += 1);
            assert_eq!(done, round, "in the truce");
            let longer = SHORTEST_TRUCE << round;
            assert_eq!(truce.next.load(Ordering::Relaxed), longer);
            std::thread::sleep(Duration::from_nanos(longer / 2));
        }
        // One time is not enough: this thread may lose its processor.
        let is_short = |_| {
            truce.ends.store(0, Ordering::Relaxed);
            truce.unless(|| ());
            truce.next.load(Ordering::Relaxed) == SHORTEST_TRUCE
        };
        assert!((0..100).any(is_short));
    }

    #[test]
    fn without_a_job_nothing_happens() {
        settle();
        woke();
        let mut slept = false;
        asleep(&mut || slept = true);
        assert!(slept);
    }
}
