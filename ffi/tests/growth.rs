//! Calls, refusals and registrations, millions of them: what is allocated is freed.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use xla_ffi::fake::{Attr, Call, Host, end_program};
use xla_ffi::sys::{XLA_FFI_CallFrame, XLA_FFI_Error};
use xla_ffi::{Buffer, BufferMut, ExecutionStage, Future, Registry, StageFn, Stages};

/// The system's allocator, which counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(signed(layout.size()), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(signed(layout.size()), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

xla_ffi::handler! {
    fn add(call: Add<'f>, _context) in Execute {
        args { x: Buffer<'f, f32> }
        rets { y: BufferMut<'f, f32> }
        attrs { a: f32 }
    } => {
        let Add { x, mut y, a, .. } = call;
        y[0] = x[0] + a;
        Ok(())
    }
}

xla_ffi::handler! {
    fn later(call: Later<'f>, _context) in Execute {
        args { x: Buffer<'f, f32> }
        rets { y: BufferMut<'f, f32> }
        attrs { a: f32 }
    } => {
        let _ = call.a;
        Ok(Future::each(vec![(call.x, call.y)], |(x, mut y)| {
            y.copy_from_slice(&x);
            Ok(())
        }))
    }
}

xla_ffi::handler! {
    fn panicking(call: Panicking<'f>, _context) in Execute { args { x: Buffer<'f, f32> } } => {
        let index = call.x.len();
        std::hint::black_box(call.x[index]);
        Ok(())
    }
}

struct Plan(#[expect(dead_code, reason = "its memory is what is counted")] Vec<u8>);

xla_ffi::host_type!(Plan, "growth.Plan");

xla_ffi::handler! {
    fn plan(_call: MakePlan<'f>, _context) in Instantiate keeping {} => { Ok(Plan(vec![0; 1000])) }
}

unsafe extern "C" fn other(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    frame.cast()
}

/// Bytes in use after `times` more than after a few: the least of some rounds, since the test harness and
/// threads that end allocate and free meanwhile, and what is lost is lost in each round.
fn growth(times: usize, mut step: impl FnMut()) -> isize {
    const ROUNDS: usize = 5;
    let mut round = || {
        (0..10).for_each(|_| step());
        let before = IN_USE.load(Relaxed);
        (0..times).for_each(|_| step());
        (IN_USE.load(Relaxed) - before).abs()
    };
    (0..ROUNDS).map(|_| round()).find(|grown| *grown == 0).unwrap_or_else(round)
}

/// One test: allocations of others would be counted.
#[test]
fn nothing_grows() {
    let host = Host::new();
    let (x, mut y) = ([1.0_f32], [0.0_f32]);
    let right = Call::new().arg(&[1], &x).ret(&[1], &mut y).attr("a", Attr::F32(1.0));
    let call = |handler: StageFn, call: &Call<'_>, good: bool, times: usize| {
        call.with_frame(&host, |frame| {
            growth(times, || assert_eq!(host.invoke(Some(handler), frame).is_ok(), good))
        })
    };
    assert_eq!(call(add, &right, true, 10_000_000), 0, "calls");
    assert_eq!(call(later, &right, true, 100_000), 0, "futures");
    assert_eq!(call(add, &Call::new().arg(&[1], &x), false, 100_000), 0, "refusals");
    assert_eq!(call(panicking, &Call::new().arg(&[1], &x), false, 10_000), 0, "panics");
    let instantiate = Call::new().stage(ExecutionStage::Instantiate.code());
    let programs = growth(100_000, || {
        assert_eq!(host.execute(Some(plan), &instantiate), Ok(()));
        end_program();
    });
    assert_eq!(programs, 0, "programs and their state");
    // SAFETY: the host outlives the registry.
    let registry = unsafe { Registry::of_api(host.api()) }.unwrap();
    let registrations = growth(1_000_000, || {
        // SAFETY: the host calls none of them.
        unsafe {
            registry.register("growth", "Host", Stages::execute(add)).unwrap();
            registry.register("growth", "Host", Stages::execute(other)).unwrap_err();
        }
    });
    assert_eq!(registrations, 0, "registrations, taken and refused");
}
