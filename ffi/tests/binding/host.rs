//! Hosts of all ages: the version handshake, short structs, short function tables.

use std::mem::offset_of;

use xla_ffi::fake::{Host, Metadata, PoolMode};
use xla_ffi::sys::{self, XLA_FFI_Api, XLA_FFI_CallFrame, XLA_FFI_Metadata};

use crate::panics::{call, call_with};
use crate::plan::Plan;
use crate::sample::HANDLER;

/// Where the function table of API 0.1 had the pool, and where it may end.
const SCHEDULE: usize = offset_of!(XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule);
const NUM_THREADS: usize = offset_of!(XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads);

#[test]
fn the_version_announced_is_the_smaller_one() {
    let whole = size_of::<XLA_FFI_Api>();
    for (minor, expected) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 5), (7, 5)] {
        let host = Host::new().aged(minor, whole);
        let metadata = host.metadata(HANDLER, true);
        assert_eq!(metadata, Metadata { version: (0, expected), traits: 0, state: None });
        let metadata = host.metadata(HANDLER, false);
        assert_eq!(metadata, Metadata { version: (0, 1), traits: 0, state: None });
    }
}

/// Asks for metadata with a struct that says it has `size` bytes.
fn query(metadata: *mut XLA_FFI_Metadata) -> Result<(), String> {
    let mut extension = sys::XLA_FFI_Metadata_Extension {
        extension_base: sys::XLA_FFI_InternalExtension {
            struct_size: size_of::<sys::XLA_FFI_Metadata_Extension>(),
            type_: sys::XLA_FFI_Extension_Metadata,
            next: std::ptr::null_mut(),
        },
        metadata,
    };
    let host = Host::new();
    let outcome = Plan::default().with_frame(&host, |frame| {
        frame.extension_start = (&raw mut extension).cast();
        host.invoke(HANDLER, frame)
    });
    outcome.map_err(|failure| failure.message)
}

#[test]
fn metadata_is_written_within_its_size() {
    // The struct of API 0.1 ends after the traits.
    let needed = offset_of!(XLA_FFI_Metadata, traits) + size_of::<u32>();
    for size in [0, 8, needed - 1, needed, size_of::<XLA_FFI_Metadata>()] {
        let mut memory = [0x55_u8; size_of::<XLA_FFI_Metadata>()];
        memory[..8].copy_from_slice(&size.to_ne_bytes());
        let before = memory;
        let outcome = query(memory.as_mut_ptr().cast());
        if size < needed {
            let message =
                format!("expected an XLA_FFI_Metadata of at least {needed} bytes, got {size}");
            assert!(outcome.unwrap_err().contains(&message));
            assert_eq!(memory, before, "written though refused");
        } else {
            assert_eq!(outcome, Ok(()));
            assert_eq!(memory[needed..], before[needed..], "written past the end");
            assert_ne!(memory[..needed], before[..needed]);
        }
    }
    assert!(query(std::ptr::null_mut()).unwrap_err().contains("got 0"));
}

/// An unknown extension is passed over.
#[test]
fn other_extensions_do_not_matter() {
    let mut extension = sys::XLA_FFI_InternalExtension {
        struct_size: size_of::<sys::XLA_FFI_InternalExtension>(),
        type_: 4711,
        next: std::ptr::null_mut(),
    };
    let extension = &raw mut extension;
    let change = |frame: &mut XLA_FFI_CallFrame| frame.extension_start = extension;
    assert_eq!(call_with(&Host::new(), |_| Ok(()), change), Ok(()));
}

/// The number of threads that a handler sees.
fn threads(host: &Host, change: impl FnOnce(&mut XLA_FFI_CallFrame)) -> usize {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (body, relaxed) = (seen.clone(), std::sync::atomic::Ordering::Relaxed);
    let run = move |context: &xla_ffi::Context<'_>| {
        body.store(context.thread_pool().threads(), relaxed);
        context.thread_pool().run(3, &|_| ());
        Ok(())
    };
    assert_eq!(call_with(host, run, change), Ok(()));
    seen.load(relaxed)
}

#[test]
fn a_pool_that_the_table_does_not_reach_is_no_pool() {
    for (size, expected) in [
        (SCHEDULE, 1),
        (NUM_THREADS, 1),
        (NUM_THREADS + 7, 1),
        (NUM_THREADS + 8, 8),
        (size_of::<XLA_FFI_Api>(), 8),
        (size_of::<XLA_FFI_Api>() + 64, 8),
    ] {
        let host = Host::with_pool(8, PoolMode::Prompt).aged(1, size);
        assert_eq!(threads(&host, |_| ()), expected, "a table of {size} bytes");
    }
    let host = Host::with_pool(8, PoolMode::Prompt);
    assert_eq!(threads(&host, |frame| frame.ctx = std::ptr::null_mut()), 1);
    assert_eq!(threads(&host, |frame| frame.api = std::ptr::null()), 1);
    for odd in [0, -3, 1] {
        assert_eq!(threads(&Host::with_pool(odd, PoolMode::Prompt), |_| ()), 1);
    }
}

/// Without a function table an error cannot be told, but nothing is followed or printed either.
#[test]
fn errors_without_a_table_are_dropped() {
    let null = |frame: &mut XLA_FFI_CallFrame| frame.api = std::ptr::null();
    let outcome = call_with(&Host::new(), |_| panic!("untold"), null);
    assert_eq!(outcome, Ok(()));
    let host = Host::new().aged(1, offset_of!(XLA_FFI_Api, XLA_FFI_Error_Create));
    assert_eq!(call(&host, |_| panic!("untold")), Ok(()));
}

#[cfg(target_os = "linux")]
mod guarded {
    //! Memory that ends where nothing can be read.

    use std::ffi::c_void;

    use super::*;

    /// A multiple of every page size in use.
    const PAGE: usize = 1 << 16;

    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            len: usize,
            prot: i32,
            flags: i32,
            fd: i32,
            off: i64,
        ) -> *mut c_void;
        fn mprotect(at: *mut c_void, len: usize, prot: i32) -> i32;
    }

    /// A copy of the bytes, to the last of which a page that faults is next. Never freed.
    fn before_a_wall(bytes: &[u8]) -> *mut u8 {
        const PROT_READ_WRITE: i32 = 3;
        const MAP_PRIVATE_ANONYMOUS: i32 = 0x22;
        // SAFETY: new pages, of which the second half is closed and the bytes fill the end of the
        // first.
        unsafe {
            let null = std::ptr::null_mut();
            let pages = mmap(null, 2 * PAGE, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
            assert!(pages.addr() != usize::MAX, "mmap failed");
            let wall = pages.cast::<u8>().add(PAGE);
            assert_eq!(mprotect(wall.cast(), PAGE, 0), 0);
            let start = wall.sub(bytes.len());
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            start
        }
    }

    /// The table of an old host, cut where it ends: a read past it ends this process.
    #[test]
    fn nothing_is_read_past_a_short_table() {
        for size in [SCHEDULE, NUM_THREADS] {
            let host = Host::with_pool(8, PoolMode::Prompt).aged(1, size);
            let cut = |frame: &mut XLA_FFI_CallFrame| {
                // SAFETY: the host's table is whole.
                let table = unsafe { std::slice::from_raw_parts(frame.api.cast::<u8>(), size) };
                frame.api = before_a_wall(table).cast();
            };
            assert_eq!(threads(&host, cut), 1);
            let failure = call_with(&host, |_| panic!("told"), cut).unwrap_err();
            assert!(failure.message.contains("told"));
        }
    }

    #[test]
    fn nothing_is_written_past_short_metadata() {
        let mut bytes = [0_u8; 40];
        // Rounded up to the alignment of the struct, whose size is 36.
        bytes[..8].copy_from_slice(&36_usize.to_ne_bytes());
        assert_eq!(query(before_a_wall(&bytes).cast()), Ok(()));
    }
}
