//! Promises and count-downs: resolved, dropped, on hosts with futures, without, and that refuse one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use xla_ffi::fake::{Failure, Host};
use xla_ffi::sys::{self, XLA_FFI_Api, XLA_FFI_CallFrame};
use xla_ffi::{CountDown, Error, ErrorCode, Future, Promise};

use crate::futures::{Double, call, call_with, failure, hosts_without};

/// When a promise is resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Before,
    After,
}

fn promised(host: &Host, when: When, result: &Result<(), Error>) -> Result<Vec<f64>, Failure> {
    let result = result.clone();
    call(host, move |_| {
        let (promise, future) = Promise::new();
        let result = result.clone();
        let resolve = move || promise.resolve(result);
        if when == When::Before {
            resolve();
        } else {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(10));
                resolve();
            });
        }
        future
    })
}

#[test]
fn promises_resolve_futures_at_any_time() {
    let lost = Error::new(ErrorCode::DataLoss, "async failure\0");
    let hosts = || hosts_without().chain([Host::new()]);
    for host in hosts() {
        for when in [When::Before, When::After] {
            assert!(promised(&host, when, &Ok(())).is_ok(), "{when:?}");
            let outcome = promised(&host, when, &Err(lost.clone()));
            let message = "later: async failure\\0".to_owned();
            assert_eq!(outcome, Err(Failure { code: 15, message }), "{when:?}");
        }
    }
}

#[test]
fn a_dropped_promise_is_internal() {
    let dropped = Failure {
        code: 13,
        message: "later: a bug in this handler: it dropped its promise without resolving it"
            .to_owned(),
    };
    for host in hosts_without().chain([Host::new()]) {
        assert_eq!(call(&host, |_| Promise::new().1), Err(dropped.clone()));
        let outcome = call(&host, |_| {
            let (promise, future) = Promise::new();
            std::thread::spawn(move || {
                let _promise = promise;
                std::panic::resume_unwind(Box::new("quietly"));
            });
            future
        });
        assert_eq!(outcome, Err(dropped.clone()));
        assert_eq!(call(&host, |_| CountDown::new(2).1), Err(dropped.clone()));
    }
}

#[test]
fn a_count_down_resolves_with_its_last() {
    let error = |number: usize| Error::new(ErrorCode::Aborted, format!("result {number}"));
    for count in [0, 1, 2, 20] {
        for bad in [None, Some(0), Some(count / 2)] {
            let last = Arc::new(AtomicUsize::new(0));
            let lasts = Arc::clone(&last);
            let outcome = call(&Host::new(), move |_| {
                let (counter, future) = CountDown::new(count);
                let threads = (0..count).map(|number| {
                    let (counter, lasts) = (counter.clone(), Arc::clone(&lasts));
                    std::thread::spawn(move || {
                        let failed = bad == Some(number);
                        let result = if failed { Err(error(number)) } else { Ok(()) };
                        lasts.fetch_add(usize::from(counter.count_down(result)), SeqCst);
                    })
                });
                threads.for_each(|thread| thread.join().unwrap());
                assert!(!counter.count_down(Err(error(99))), "beyond the count");
                future
            });
            match bad.filter(|bad| *bad < count) {
                Some(bad) => assert_eq!(outcome, Err(failure(&error(bad)))),
                None => assert!(outcome.is_ok()),
            }
            assert_eq!(last.load(SeqCst), count.min(1));
        }
    }
}

/// A host that refuses to make a future: the call waits.
#[test]
fn a_refused_future_is_waited_for() {
    unsafe extern "C" fn refuse(
        _: *mut sys::XLA_FFI_Future_Create_Args,
    ) -> *mut sys::XLA_FFI_Error {
        let mut args = sys::XLA_FFI_Error_Create_Args {
            struct_size: size_of::<sys::XLA_FFI_Error_Create_Args>(),
            extension_start: std::ptr::null_mut(),
            message: c"no future".as_ptr(),
            errc: 8,
        };
        // SAFETY: the host's function with its struct.
        unsafe { CREATE.get().unwrap()(&raw mut args) }
    }
    unsafe extern "C" fn nothing(
        _: *mut sys::XLA_FFI_Future_Create_Args,
    ) -> *mut sys::XLA_FFI_Error {
        std::ptr::null_mut()
    }
    static CREATE: std::sync::OnceLock<
        unsafe extern "C" fn(*mut sys::XLA_FFI_Error_Create_Args) -> *mut sys::XLA_FFI_Error,
    > = std::sync::OnceLock::new();
    let host = Host::new();
    for create in [refuse, nothing] {
        fn body(_: Double<'_>) -> Future<'_> {
            let (promise, future) = Promise::new();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(10));
                promise.resolve(Ok(()));
            });
            future
        }
        let mut table = std::mem::MaybeUninit::<XLA_FFI_Api>::uninit();
        let change = |frame: &mut XLA_FFI_CallFrame| {
            // SAFETY: a copy of the host's table, which outlives the call.
            let table = unsafe { table.write(frame.api.read()) };
            CREATE.get_or_init(|| table.XLA_FFI_Error_Create.unwrap());
            table.XLA_FFI_Future_Create = Some(create);
            frame.api = table;
        };
        let (outcome, later) = call_with(&host, body, change, || ());
        assert!(outcome.is_ok() && !later);
    }
}
