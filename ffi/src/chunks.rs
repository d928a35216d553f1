//! Chunks of work that a caller and its helpers claim one by one: what `ThreadPool::run` shares.
//!
//! A model checker runs this file, with loom's locks and atomics in the place of the standard library's
//! (`make model`).

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, atomic::AtomicUsize};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, atomic::AtomicUsize};

use crate::float_mode::IeeeMode;
use crate::panics;

/// The work, and how far it is.
pub(crate) struct Chunks {
    body: &'static (dyn Fn(usize) + Sync),
    chunks: usize,
    /// The next chunk to be claimed.
    next: AtomicUsize,
    progress: Mutex<Progress>,
    all_ended: Condvar,
}

struct Progress {
    ended: usize,
    panic: Option<String>,
}

impl Chunks {
    pub(crate) fn new(body: &'static (dyn Fn(usize) + Sync), chunks: usize) -> Self {
        Chunks {
            body,
            chunks,
            next: AtomicUsize::new(0),
            progress: Mutex::new(Progress { ended: 0, panic: None }),
            all_ended: Condvar::new(),
        }
    }

    /// Whether there are chunks that nobody has claimed.
    pub(crate) fn any_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.chunks
    }

    /// Claims and runs chunks until there are none, and calls `between` after each.
    pub(crate) fn work(&self, between: impl Fn()) {
        let _mode = IeeeMode::enter();
        let mut ended = 0;
        let mut panic = None;
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunks {
                break;
            }
            if let Err(message) = panics::catch(|| (self.body)(chunk)) {
                panic = Some(message);
            }
            ended += 1;
            between();
        }
        if ended > 0 {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.ended += ended;
            progress.panic = progress.panic.take().or(panic);
            if progress.ended == self.chunks {
                self.all_ended.notify_all();
            }
        }
    }

    /// Waits for the chunks that helpers have claimed; the first panic's message, if any.
    ///
    /// A chunk is some ten microseconds of work, as long as it takes to put a thread to sleep and to
    /// wake it: so at first it looks again and again.
    pub(crate) fn wait(&self) -> Option<String> {
        /// How often it looks, about 0.7 us apart on current x86-64 processors.
        const LOOKS: usize = if cfg!(loom) { 0 } else { 64 };
        const PAUSES: usize = 16;
        for _ in 0..LOOKS {
            if let Ok(mut progress) = self.progress.try_lock()
                && progress.ended == self.chunks
            {
                return progress.panic.take();
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        while progress.ended < self.chunks {
            progress = self.all_ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.panic.take()
    }
}

#[cfg(all(test, loom))]
mod model {
    //! Every interleaving of a caller and two helpers, one of which may come late.

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;
    use std::sync::atomic::Ordering::Relaxed;

    use super::Chunks;

    /// What the body touches: gone, as a call's buffers are, once the caller has returned.
    struct Buffers {
        runs: [AtomicUsize; 2],
        gone: AtomicUsize,
    }

    #[test]
    fn each_chunk_runs_once_and_none_after_the_caller_has_returned() {
        loom::model(|| {
            // Leaked, so that a late chunk would be seen and not be undefined.
            let buffers: &'static Buffers = Box::leak(Box::new(Buffers {
                runs: [AtomicUsize::new(0), AtomicUsize::new(0)],
                gone: AtomicUsize::new(0),
            }));
            let body = Box::leak(Box::new(move |chunk: usize| {
                assert_eq!(buffers.gone.load(Relaxed), 0, "a chunk runs after the call");
                buffers.runs[chunk].fetch_add(1, Relaxed);
            }));
            let chunks = Arc::new(Chunks::new(body, 2));
            let helpers: Vec<_> = (0..2)
                .map(|_| {
                    let chunks = Arc::clone(&chunks);
                    thread::spawn(move || chunks.work(|| ()))
                })
                .collect();
            chunks.work(|| ());
            assert!(chunks.wait().is_none());
            for runs in &buffers.runs {
                assert_eq!(runs.load(Relaxed), 1);
            }
            buffers.gone.store(1, Relaxed);
            for helper in helpers {
                helper.join().expect("no panic");
            }
        });
    }
}
