//! Panics of a handler: caught, silent, and reported with their place.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// How many `catch` calls are on this thread's stack, or `UNKNOWN` before its first one.
    static DEPTH: Cell<u32> = const { Cell::new(UNKNOWN) };
    /// What the hook saw last inside one.
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says that this thread has not asked yet whether the hook is there: one variable to look at for both.
const UNKNOWN: u32 = u32::MAX;

/// Runs `body`; a panic becomes its message and place instead of unwinding or printing.
#[inline(always)]
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    let depth = match DEPTH.get() {
        UNKNOWN => first(),
        depth => depth,
    };
    DEPTH.set(depth + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    // Counted down, not set back: nothing is kept in a register meanwhile.
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(caught)
}

/// What a panic said, and where.
#[cold]
#[inline(never)]
fn caught(payload: Box<dyn Any + Send>) -> String {
    // What the hook saw last may be another panic, one that the body caught itself: an unwind that is
    // resumed does not pass the hook.
    let text = message(&*payload);
    SEEN.with_borrow_mut(Option::take).filter(|seen| seen.starts_with(&text)).unwrap_or(text)
}

/// A thread's first `catch`: its depth.
#[cold]
fn first() -> u32 {
    static HOOK: Once = Once::new();
    HOOK.call_once(install_hook);
    0
}

/// Panics inside `catch` are remembered instead of printed; all others go on as before.
fn install_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if matches!(DEPTH.get(), 0 | UNKNOWN) {
            return before(info);
        }
        let text = message(info.payload());
        let text = match info.location() {
            Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
            None => text,
        };
        SEEN.with_borrow_mut(|seen| *seen = Some(text));
    }));
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
