//! Work that goes on after its handler has returned: parts taken from one queue by helpers on the
//! host's pool and by the calling thread, which does not wait for them.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::error::Error;
use crate::float_mode::IeeeMode;
use crate::future::{Slot, locked};
use crate::panics;
use crate::pool::{ThreadPool, Work};

/// Runs the next part and gives its number and result; None when there is none left.
pub(crate) type Next<'f> = Box<dyn Fn() -> Option<(usize, Result<(), Error>)> + Send + Sync + 'f>;

/// The work, shared by all who help. A helper that comes late finds it gone.
pub(crate) struct Job {
    next: RwLock<Option<Next<'static>>>,
    parts: usize,
    progress: Mutex<Progress>,
    slot: Arc<Slot>,
}

struct Progress {
    ended: usize,
    /// The first part that failed, and how.
    failure: Option<(usize, Error)>,
}

impl Job {
    /// Begins, and returns when this thread finds no part to begin; the slot is resolved when all
    /// parts have ended.
    ///
    /// # Safety
    /// `'f` lasts until the slot is resolved.
    pub(crate) unsafe fn start(parts: usize, next: Next<'_>, pool: &ThreadPool<'_>) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        if parts == 0 {
            slot.resolve(Ok(()));
            return slot;
        }
        // SAFETY: only the lifetime changes. `end` drops the work before it resolves the slot, and
        // until then the caller keeps 'f alive.
        let next = unsafe { std::mem::transmute::<Next<'_>, Next<'static>>(next) };
        let job = Arc::new(Job {
            next: RwLock::new(Some(next)),
            parts,
            progress: Mutex::new(Progress { ended: 0, failure: None }),
            slot: Arc::clone(&slot),
        });
        for _ in 1..pool.threads().min(parts) {
            pool.schedule(&job);
        }
        job.work();
        slot
    }

    /// Runs parts until there are none; how many, and the first that failed.
    fn share(&self) -> Progress {
        let mut share = Progress { ended: 0, failure: None };
        let next = self.next.read().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = &*next else { return share };
        let _mode = IeeeMode::enter();
        while let Some((part, result)) = next() {
            share.ended += 1;
            share.failure = first(share.failure, result.err().map(|error| (part, error)));
        }
        share
    }

    /// All parts have ended.
    fn end(&self, failure: Option<(usize, Error)>) {
        let next = self.next.write().unwrap_or_else(PoisonError::into_inner).take();
        let dropped = panics::catch(|| drop(next));
        let result = match (failure, dropped) {
            (Some((_, error)), _) => Err(error),
            (None, Err(panic)) => Err(Error::internal(format!("a bug in this handler: {panic}"))),
            (None, Ok(())) => Ok(()),
        };
        self.slot.resolve(result);
    }
}

impl Work for Job {
    fn work(&self) {
        let share = self.share();
        if share.ended == 0 {
            return;
        }
        let failure = {
            let mut progress = locked(&self.progress);
            progress.ended += share.ended;
            progress.failure = first(progress.failure.take(), share.failure);
            if progress.ended < self.parts {
                return;
            }
            progress.failure.take()
        };
        self.end(failure);
    }
}

/// The failure of the earlier part.
fn first(a: Option<(usize, Error)>, b: Option<(usize, Error)>) -> Option<(usize, Error)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
        (a, b) => a.or(b),
    }
}
