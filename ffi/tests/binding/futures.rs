//! Futures of parts: borrowed operands, success and error, before and after the handler returns,
//! hosts without futures.

use std::cell::RefCell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use xla_ffi::fake::{Failure, Host, PoolMode};
use xla_ffi::sys::{XLA_FFI_Api, XLA_FFI_CallFrame};
use xla_ffi::{
    Call as _, Context, Error, ErrorCode, Frame, Future, Handler, Outcome, Promise, Signature,
    signature,
};

use crate::plan::{Operand, Plan};

signature! {
    /// y = 2 x, part by part.
    pub(crate) struct Double { dims { n } args { x: f64 [n] } rets { y: f64 [n] } }
}

/// What the next call on this thread returns, given its operands.
type Body = Box<dyn for<'f> Fn(Double<'f>) -> Future<'f>>;

thread_local! {
    static BODY: RefCell<Option<Body>> = const { RefCell::new(None) };
}

struct Later;

impl Handler for Later {
    const NAME: &'static str = "later";
    const SIGNATURES: &'static [&'static Signature] = &[Double::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, _: &Context<'f>) -> Outcome<'f> {
        let Some(call) = Double::decode(frame) else { return Outcome::Mismatch };
        Outcome::Future(BODY.take().expect("a body")(call))
    }
}

const LENGTH: usize = 1000;

/// Calls the handler in a frame that `change` has changed; its results, and whether it answered with
/// a future. `returned` runs when it has.
pub(crate) fn call_with(
    host: &Host,
    body: impl for<'f> Fn(Double<'f>) -> Future<'f> + 'static,
    change: impl FnOnce(&mut XLA_FFI_CallFrame),
    returned: impl FnOnce(),
) -> (Result<Vec<f64>, Failure>, bool) {
    BODY.set(Some(Box::new(body)));
    let dims = [i64::try_from(LENGTH).unwrap()];
    let x = Operand::new(&dims, |i| f64::from(u16::try_from(i).unwrap()));
    let y = Operand::unwritten(xla_ffi::DataType::F64, &dims);
    let mut plan = Plan { args: vec![x], rets: vec![y], ..Plan::default() };
    let (outcome, later) = plan.with_frame(host, |frame| {
        change(frame);
        let outcome = host.invoke_then(Some(xla_ffi::execute::<Later>), frame, returned);
        (outcome, !frame.future.is_null())
    });
    (outcome.map(|()| plan.rets[0].values().to_vec()), later)
}

pub(crate) fn call(
    host: &Host,
    body: impl for<'f> Fn(Double<'f>) -> Future<'f> + 'static,
) -> Result<Vec<f64>, Failure> {
    call_with(host, body, |_| (), || ()).0
}

pub(crate) fn failure(error: &Error) -> Failure {
    Failure { code: error.code() as u32, message: format!("later: {error}") }
}

fn doubled() -> Vec<f64> {
    (0..u16::try_from(LENGTH).unwrap()).map(|i| 2.0 * f64::from(i)).collect()
}

/// y = 2 x in so many parts; `also` runs in each, with the part's number.
fn double<'f>(
    call: Double<'f>,
    length: usize,
    also: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'f,
) -> Future<'f> {
    let parts: Vec<_> = call.x.chunks(length).zip(call.y.chunks_mut(length)).enumerate().collect();
    Future::each(parts, move |(part, (x, y))| {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        also(part)
    })
}

const MODES: [PoolMode; 3] = [PoolMode::Prompt, PoolMode::Stalled, PoolMode::Refusing];

/// Hosts of an API without futures: the table ends before or in their slots.
pub(crate) fn hosts_without() -> impl Iterator<Item = Host> {
    let slots = [
        offset_of!(XLA_FFI_Api, XLA_FFI_Future_Create),
        offset_of!(XLA_FFI_Api, XLA_FFI_Future_SetAvailable),
        offset_of!(XLA_FFI_Api, XLA_FFI_Future_SetError),
    ];
    slots.into_iter().map(|size| Host::with_pool(4, PoolMode::Prompt).aged(1, size))
}

#[test]
fn parts_fill_borrowed_results_on_any_pool() {
    for mode in MODES {
        for threads in [1, 2, 8] {
            for length in [1, 7, LENGTH] {
                let host = Host::with_pool(threads, mode);
                let outcome = call(&host, move |call| double(call, length, |_| Ok(())));
                assert_eq!(outcome, Ok(doubled()), "{mode:?} {threads} {length}");
            }
        }
    }
    for host in hosts_without() {
        let (outcome, later) = call_with(&host, |call| double(call, 7, |_| Ok(())), |_| (), || ());
        assert!(outcome == Ok(doubled()) && !later);
    }
}

/// Parts that helpers still run when this thread finds none are not waited for: the handler returns
/// and its future is completed by the last of them.
#[test]
fn the_handler_returns_before_the_last_part_ends() {
    let host = Host::with_pool(2, PoolMode::Prompt);
    let caller = std::thread::current().id();
    let returned = Arc::new(AtomicBool::new(false));
    let (taken, waiting) = mpsc::channel();
    let (taken, waiting) = (Mutex::new(taken), Arc::new(Mutex::new(waiting)));
    let seen = Arc::clone(&returned);
    let body = as_body(move |call| {
        let (seen, waiting) = (Arc::clone(&seen), Arc::clone(&waiting));
        let taken = Mutex::new(taken.lock().unwrap().clone());
        double(call, LENGTH / 2, move |_| {
            if std::thread::current().id() == caller {
                // Not before the helper has the other part.
                waiting.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
            } else {
                taken.lock().unwrap().send(()).unwrap();
                while !seen.load(SeqCst) {
                    std::thread::yield_now();
                }
            }
            Ok(())
        })
    });
    let (outcome, later) = call_with(&host, body, |_| (), || returned.store(true, SeqCst));
    assert_eq!(outcome, Ok(doubled()));
    assert!(later);
}

/// The closure, as one for any lifetime.
fn as_body<B: for<'f> Fn(Double<'f>) -> Future<'f>>(body: B) -> B {
    body
}

/// What parts own is gone when the call ends, and what comes late finds nothing.
#[test]
fn nothing_is_used_after_the_end() {
    struct Canary(Arc<AtomicUsize>);
    impl Drop for Canary {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for mode in MODES {
        for threads in [1, 8] {
            let dropped = Arc::new(AtomicUsize::new(0));
            let (runs, count) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&dropped));
            let host = Host::with_pool(threads, mode);
            let counted = Arc::clone(&runs);
            let outcome = call(&host, move |call| {
                let (canary, runs) = (Canary(Arc::clone(&count)), Arc::clone(&counted));
                double(call, 10, move |_| {
                    assert_eq!(canary.0.load(SeqCst), 0);
                    runs.fetch_add(1, SeqCst);
                    Ok(())
                })
            });
            assert_eq!(outcome, Ok(doubled()));
            assert_eq!(dropped.load(SeqCst), 1, "{mode:?} {threads}: dropped before the end");
            drop(host);
            assert_eq!(runs.load(SeqCst), LENGTH / 10);
        }
    }
}

/// The error of the first part that has one, on any number of threads; panics too.
#[test]
fn the_first_error_is_told() {
    let error = |part: usize| Error::new(ErrorCode::DataLoss, format!("part {part}"));
    for threads in [1, 2, 8] {
        for mode in MODES {
            for _ in 0..20 {
                let host = Host::with_pool(threads, mode);
                let fail =
                    move |part: usize| if part % 30 == 17 { Err(error(part)) } else { Ok(()) };
                let outcome = call(&host, move |call| double(call, 10, fail));
                assert_eq!(outcome, Err(failure(&error(17))), "{mode:?} {threads}");
            }
        }
        let host = Host::with_pool(threads, PoolMode::Prompt);
        let outcome = call(&host, |call| {
            double(call, 10, |part| {
                assert!(part < 50, "no part {part}");
                Ok(())
            })
        });
        let Failure { code, message } = outcome.unwrap_err();
        let start = format!("later: a bug in this handler: no part 50 ({}:", file!());
        assert!(code == 13 && message.starts_with(&start), "{message}");
    }
    for host in hosts_without() {
        let outcome = call(&host, move |call| double(call, 10, move |part| Err(error(part))));
        assert_eq!(outcome, Err(failure(&error(0))));
    }
}

#[test]
fn no_parts_are_no_work() {
    let (outcome, later) = call_with(
        &Host::new(),
        |call| double(call_empty(call), 1, |_| panic!("no part")),
        |_| (),
        || (),
    );
    assert!(outcome.is_ok() && !later);
}

fn call_empty(call: Double<'_>) -> Double<'_> {
    Double { x: &[], y: &mut [], ..call }
}

/// Parts run in IEEE arithmetic, wherever they run: XLA's threads flush denormals.
#[cfg(target_arch = "x86_64")]
#[test]
fn parts_keep_denormals() {
    for threads in [1, 4] {
        let host = Host::with_pool(threads, PoolMode::Prompt);
        let outcome = call(&host, |call| {
            let parts: Vec<&mut f64> = call.y.iter_mut().collect();
            Future::each(parts, |y| {
                *y = std::hint::black_box(f64::MIN_POSITIVE) / 2.0;
                Ok(())
            })
        });
        assert_eq!(outcome, Ok(vec![f64::MIN_POSITIVE / 2.0; LENGTH]));
    }
}

/// A handler that makes a future and answers otherwise has done nothing yet.
#[test]
fn work_that_is_not_returned_never_begins() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let outcome = call(&Host::with_pool(4, PoolMode::Prompt), move |call| {
        let count = Arc::clone(&counted);
        drop(double(call, 1, move |_| {
            count.fetch_add(1, SeqCst);
            Ok(())
        }));
        let (promise, future) = Promise::new();
        promise.resolve(Ok(()));
        future
    });
    assert!(outcome.is_ok());
    assert_eq!(runs.load(SeqCst), 0);
}
