//! The thread pool: each chunk once, no hang, nothing touched after the handler, IEEE arithmetic.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use xla_ffi::ThreadPool;
use xla_ffi::fake::{Host, PoolMode};

use crate::panics::call;

const MODES: [PoolMode; 3] = [PoolMode::Prompt, PoolMode::Stalled, PoolMode::Refusing];

/// Runs `test` on a thread and fails if it hangs: a pool that waits for helpers that never start
/// would otherwise stop the whole run without a word.
fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match finished.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the pool hangs"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn each_chunk_runs_once() {
    within_a_minute(|| {
        for mode in MODES {
            for threads in [1, 2, 8] {
                for chunks in [0, 1, 2, 1000] {
                    once(mode, threads, chunks);
                }
            }
        }
    });
}

fn once(mode: PoolMode, threads: i64, chunks: usize) {
    let host = Host::with_pool(threads, mode);
    let counts: Arc<Vec<AtomicU32>> = Arc::new((0..chunks).map(|_| AtomicU32::new(0)).collect());
    let seen = Arc::clone(&counts);
    let outcome = call(&host, move |context| {
        let pool = context.thread_pool();
        assert_eq!(i64::try_from(pool.threads()), Ok(threads));
        pool.run(seen.len(), &|chunk| {
            seen[chunk].fetch_add(1, SeqCst);
        });
        // All have ended by now.
        assert!(seen.iter().all(|count| count.load(SeqCst) == 1));
        Ok(())
    });
    assert_eq!(outcome, Ok(()), "{mode:?}, {threads} threads, {chunks} chunks");
    // Helpers that start only now find nothing to do.
    drop(host);
    assert!(counts.iter().all(|count| count.load(SeqCst) == 1), "{mode:?} {threads} {chunks}");
}

/// What a body captures: it says so if it is used after its end.
struct Canary {
    ended: &'static AtomicBool,
    late: &'static AtomicU32,
}

impl Canary {
    fn sing(&self) {
        if self.ended.load(SeqCst) {
            self.late.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.ended.store(true, SeqCst);
    }
}

#[test]
fn late_helpers_touch_nothing() {
    within_a_minute(|| {
        for mode in [PoolMode::Stalled, PoolMode::Prompt] {
            for chunks in [2, 100] {
                // Leaked, so that a late helper can be seen whatever else it does.
                let ended: &AtomicBool = Box::leak(Box::default());
                let late: &AtomicU32 = Box::leak(Box::default());
                let host = Host::with_pool(8, mode);
                let outcome = call(&host, move |context| {
                    let canary = Canary { ended, late };
                    context.thread_pool().run(chunks, &|_| canary.sing());
                    Ok(())
                });
                assert_eq!(outcome, Ok(()));
                assert!(ended.load(SeqCst));
                drop(host);
                assert_eq!(late.load(SeqCst), 0, "{mode:?}, {chunks} chunks");
            }
        }
    });
}

/// A helper that has claimed a chunk is waited for, also where the caller has nothing left to do.
#[test]
fn claimed_chunks_are_waited_for() {
    within_a_minute(|| {
        let host = Host::with_pool(4, PoolMode::Prompt);
        let caller = std::thread::current().id();
        let finished = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&finished);
        let outcome = call(&host, move |context| {
            context.thread_pool().run(4, &|_| {
                if std::thread::current().id() != caller {
                    std::thread::sleep(Duration::from_millis(50));
                }
                count.fetch_add(1, SeqCst);
            });
            assert_eq!(count.load(SeqCst), 4);
            Ok(())
        });
        assert_eq!((outcome, finished.load(SeqCst)), (Ok(()), 4));
    });
}

/// A body may wait for another by [`ThreadPool::asleep`], which says so by [`ThreadPool::woke`].
#[test]
fn a_body_sleeps_until_another_wakes_it() {
    within_a_minute(|| {
        let host = Host::with_pool(2, PoolMode::Prompt);
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&log);
        let outcome = call(&host, move |context| {
            let (state, changed) = (Mutex::new((false, false)), Condvar::new());
            context.thread_pool().run(2, &|chunk| {
                let mut now = state.lock().unwrap();
                if chunk == 0 {
                    // Until the other one sleeps.
                    while !now.0 {
                        now = changed.wait(now).unwrap();
                    }
                    seen.lock().unwrap().push("woken");
                    now.1 = true;
                    drop(now);
                    changed.notify_all();
                    ThreadPool::woke();
                    ThreadPool::settle();
                } else {
                    drop(now);
                    ThreadPool::asleep(&mut || {
                        let mut now = state.lock().unwrap();
                        now.0 = true;
                        changed.notify_all();
                        while !now.1 {
                            now = changed.wait(now).unwrap();
                        }
                        seen.lock().unwrap().push("awake");
                    });
                }
            });
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(*log.lock().unwrap(), ["woken", "awake"]);
    });
}

/// A body may itself use the pool.
#[test]
fn runs_may_be_nested() {
    within_a_minute(|| {
        for mode in MODES {
            let host = Host::with_pool(3, mode);
            let total = Arc::new(AtomicU32::new(0));
            let sum = Arc::clone(&total);
            let outcome = call(&host, move |context| {
                let pool = context.thread_pool();
                pool.run(5, &|_| {
                    pool.run(7, &|_| {
                        sum.fetch_add(1, SeqCst);
                    });
                });
                Ok(())
            });
            assert_eq!((outcome, total.load(SeqCst)), (Ok(()), 35), "{mode:?}");
        }
    });
}

#[cfg(target_arch = "x86_64")]
mod float_mode {
    //! A host whose threads flush denormals, as XLA's do.

    use std::arch::asm;
    use std::collections::HashSet;
    use std::hint::black_box;
    use std::sync::Mutex;
    use std::thread::{self, JoinHandle};
    use std::time::Instant;

    use xla_ffi::sys::{XLA_FFI_CallFrame, XLA_FFI_Error, XLA_FFI_ThreadPool_Schedule_Args};

    use super::*;
    use crate::panics::call_with;

    /// All exceptions masked, round to nearest; flush-to-zero and denormals-are-zero.
    const FLUSHING: u32 = 0x9fc0;
    /// The exception flags, which arithmetic sets.
    const FLAGS: u32 = 0x3f;

    fn mode() -> u32 {
        let mut value = 0_u32;
        // SAFETY: stores MXCSR to a local.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
        value & !FLAGS
    }

    fn set(value: u32) {
        // SAFETY: only defined bits are set in the values used here.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
    }

    fn flushes() -> bool {
        black_box(black_box(f64::MIN_POSITIVE) * black_box(0.5)) == 0.0
    }

    /// The pool's threads; each says whether its mode came back.
    static THREADS: Mutex<Vec<JoinHandle<bool>>> = Mutex::new(Vec::new());

    unsafe extern "C" fn schedule(
        args: *mut XLA_FFI_ThreadPool_Schedule_Args,
    ) -> *mut XLA_FFI_Error {
        struct Task(XLA_FFI_ThreadPool_Schedule_Args);
        // SAFETY: a task and its data are made to be run on another thread.
        unsafe impl Send for Task {}
        // SAFETY: the caller's struct.
        let task = Task(unsafe { args.read() });
        let run = move || {
            let task = task;
            set(FLUSHING);
            assert!(flushes());
            // SAFETY: scheduled once, run once.
            unsafe { task.0.task.unwrap()(task.0.data) };
            mode() == FLUSHING
        };
        THREADS.lock().unwrap().push(thread::spawn(run));
        std::ptr::null_mut()
    }

    #[test]
    fn helpers_and_caller_compute_in_ieee_arithmetic() {
        within_a_minute(|| {
            let host = Host::with_pool(4, PoolMode::Prompt);
            let found: Arc<Mutex<Vec<(thread::ThreadId, bool)>>> = Arc::default();
            let seen = Arc::clone(&found);
            let body = move |context: &xla_ffi::Context<'_>| {
                let start = Instant::now();
                context.thread_pool().run(4, &|_| {
                    seen.lock().unwrap().push((thread::current().id(), flushes()));
                    // The first thread stays until a second one has come.
                    while threads(&seen.lock().unwrap()) < 2 {
                        assert!(start.elapsed() < Duration::from_secs(30), "no helper came");
                        thread::yield_now();
                    }
                });
                Ok(())
            };
            let before = mode();
            set(FLUSHING);
            let mut table = std::mem::MaybeUninit::uninit();
            let outcome = call_with(&host, body, |frame: &mut XLA_FFI_CallFrame| {
                // SAFETY: a copy of the host's table with another function in one slot, which
                // outlives the call.
                unsafe {
                    let table = table.write(frame.api.read());
                    table.XLA_FFI_ThreadPool_Schedule = Some(schedule);
                    frame.api = table;
                }
            });
            let after = mode();
            set(before);
            assert_eq!((outcome, after), (Ok(()), FLUSHING), "the caller's mode comes back");
            let threads_back = std::mem::take(&mut *THREADS.lock().unwrap());
            assert!(threads_back.into_iter().all(|thread| thread.join().unwrap()), "the helpers'");
            let found = found.lock().unwrap();
            assert!(threads(&found) >= 2);
            assert!(found.iter().all(|(_, flushes)| !flushes), "{found:?}");
        });
    }

    fn threads(found: &[(thread::ThreadId, bool)]) -> usize {
        found.iter().map(|(id, _)| id).collect::<HashSet<_>>().len()
    }

    /// Also after a refusal and after a panic.
    #[test]
    fn the_mode_comes_back_whatever_happens() {
        let before = mode();
        for body in [|| (), || panic!("a bug")] {
            set(FLUSHING);
            let outcome = call(&Host::new(), move |_| {
                assert!(!flushes());
                body();
                Ok(())
            });
            let after = mode();
            set(before);
            assert_eq!(after, FLUSHING, "{outcome:?}");
        }
    }
}
