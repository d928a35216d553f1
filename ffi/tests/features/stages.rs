//! Stages and state, on hosts of every API version; registration of types and of bundles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use xla_ffi::fake::{Attr, Call, Host, end_program};
use xla_ffi::sys::{XLA_FFI_Api, XLA_FFI_ExecutionStage};
use xla_ffi::{BufferMut, ErrorCode, ExecutionStage, Future, Registry, StageFn, Stages};

/// Counts its drops.
struct Plan {
    factor: i64,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
    }
}

xla_ffi::host_type!(Plan, "features.Plan");

struct Prepared(i64);

xla_ffi::host_type!(Prepared, "features.Prepared");

static DROPPED: std::sync::LazyLock<Arc<AtomicUsize>> = std::sync::LazyLock::new(Arc::default);

xla_ffi::handler! {
    /// Makes the plan.
    pub(crate) fn instantiate(call: Instantiate<'f>, _context) in Instantiate keeping {
        attrs { factor: i64 }
    } => {
        if call.factor < 0 {
            return Err(xla_ffi::Error::invalid_argument("a negative factor"));
        }
        Ok(Plan { factor: call.factor, dropped: Arc::clone(&DROPPED) })
    }
}

xla_ffi::handler! {
    /// Keeps state of its own.
    pub(crate) fn prepare(_call: Prepare<'f>, context) in Prepare keeping {} => {
        Ok(Prepared(context.state::<Plan>()?.factor + 1))
    }
}

xla_ffi::handler! {
    pub(crate) fn initialize(_call: Initialize<'f>, context) in Initialize {} => {
        assert_eq!(context.stage(), ExecutionStage::Initialize);
        context.state::<Plan>().map(drop)
    }
}

xla_ffi::handler! {
    pub(crate) fn execute(call: Execute<'f>, context) in Execute {
        args {}
        rets { y: BufferMut<'f, i64> }
        attrs { factor: i64 }
    } => {
        let Execute { mut y, .. } = call;
        y[0] = context.state::<Plan>()?.factor * 10;
        let wrong = context.state::<Prepared>().err().map(|error| error.code());
        assert_eq!(wrong, Some(ErrorCode::InvalidArgument), "of another type");
        if let Ok(prepared) = context.state_of::<Prepared>(ExecutionStage::Prepare) {
            y[0] += prepared.0;
        }
        Ok(Future::each(vec![y], |mut y| {
            y[0] += 1000;
            Ok(())
        }))
    }
}

xla_ffi::handler! {
    pub(crate) fn record(_call: Record<'f>, context) in Record {} => {
        assert_eq!(context.stage(), ExecutionStage::Record);
        Ok(())
    }
}

fn call<'a>(stage: ExecutionStage) -> Call<'a> {
    Call::new().stage(stage.code()).attr("factor", Attr::I64(7))
}

fn at(host: &Host, handler: StageFn, stage: ExecutionStage) {
    assert_eq!(host.execute(Some(handler), &call(stage)), Ok(()), "{stage:?}");
}

#[test]
fn state_by_stage_on_every_version_of_the_api() {
    for minor in 1..=5 {
        let host = Host::new().aged(minor, size_of::<XLA_FFI_Api>());
        let before = DROPPED.load(SeqCst);
        at(&host, instantiate, ExecutionStage::Instantiate);
        at(&host, initialize, ExecutionStage::Initialize);
        let staged = minor >= 3;
        if staged {
            at(&host, prepare, ExecutionStage::Prepare);
        }
        for _ in 0..2 {
            let mut y = [0_i64];
            let run = call(ExecutionStage::Execute).ret(&[1], &mut y);
            assert_eq!(host.execute(Some(execute), &run), Ok(()), "API 0.{minor}");
            drop(run);
            assert_eq!(y, [if staged { 1078 } else { 1070 }]);
        }
        assert_eq!(DROPPED.load(SeqCst), before);
        end_program();
        assert_eq!(DROPPED.load(SeqCst), before + 1, "dropped with the program");
    }
}

#[test]
fn a_state_that_cannot_be_kept_is_dropped() {
    let host = Host::new();
    at(&host, instantiate, ExecutionStage::Instantiate);
    let before = DROPPED.load(SeqCst);
    let again = host.execute(Some(instantiate), &call(ExecutionStage::Instantiate)).unwrap_err();
    assert_eq!(again.code, ErrorCode::AlreadyExists as u32);
    assert_eq!(again.message, "instantiate: State is already set");
    assert_eq!(DROPPED.load(SeqCst), before + 1);
    end_program();
}

#[test]
fn errors_begin_with_the_target() {
    xla_ffi::handler! {
        fn of_another_name(_call: OfAnotherName<'f>, _context) in Execute {
            target "a_target";
            attrs { factor: i64 }
        } => { Ok(()) }
    }
    let refused = Host::new().execute(Some(of_another_name), &Call::new()).unwrap_err();
    assert_eq!(refused.message, "a_target: attribute `factor`: expected i64, got nothing");
}

#[test]
fn errors_of_the_instantiate_stage_and_missing_state() {
    let host = Host::new();
    let wrong = call(ExecutionStage::Instantiate).attr("factor", Attr::I64(-1));
    let refused = host.execute(Some(instantiate), &wrong).unwrap_err();
    assert_eq!(refused.message, "instantiate: a negative factor");
    let missing = host.execute(Some(initialize), &call(ExecutionStage::Initialize)).unwrap_err();
    assert_eq!(missing.code, ErrorCode::NotFound as u32);
}

#[test]
fn each_stage_refuses_the_others() {
    let stages: [(StageFn, &str, ExecutionStage); 5] = [
        (instantiate, "instantiate", ExecutionStage::Instantiate),
        (prepare, "prepare", ExecutionStage::Prepare),
        (initialize, "initialize", ExecutionStage::Initialize),
        (execute, "execute", ExecutionStage::Execute),
        (record, "record", ExecutionStage::Record),
    ];
    let host = Host::new();
    for (handler, name, stage) in stages {
        for (_, other, got) in stages.iter().filter(|(_, _, other)| *other != stage) {
            let refused = host.execute(Some(handler), &call(*got)).unwrap_err();
            let text = format!("{name}: expected execution stage {name}, got {other}");
            assert_eq!(refused.message, text);
        }
        let number: XLA_FFI_ExecutionStage = 99;
        let refused = host.execute(Some(handler), &Call::new().stage(number)).unwrap_err();
        assert!(refused.message.ends_with("got stage 99"));
    }
    at(&host, record, ExecutionStage::Record);
}

#[test]
fn a_bundle_of_all_stages_is_registered() {
    let host = Host::new();
    // SAFETY: the host outlives the registry.
    let registry = unsafe { Registry::of_api(host.api()) }.unwrap();
    let stages = Stages {
        instantiate: Some(instantiate),
        prepare: Some(prepare),
        initialize: Some(initialize),
        execute,
        record: Some(record),
    };
    // SAFETY: handlers of this crate's making.
    let twice = [(); 2].map(|()| unsafe { registry.register("bundle", "Host", stages) });
    assert_eq!(twice, [Ok(()), Ok(())]);
}

xla_ffi::handler! {
    pub(crate) fn panicking(_call: Panicking<'f>, _context) in Execute {} => {
        if std::hint::black_box(true) {
            panic!("out of {}", "order");
        }
        Ok(())
    }
}

xla_ffi::handler! {
    pub(crate) fn capturable(_call: Capturable<'f>, _context) in Execute {
        traits xla_ffi::sys::XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
    } => { Ok(()) }
}

#[test]
fn traits_and_version_are_announced() {
    let host = Host::new();
    let metadata = host.metadata(Some(capturable), true);
    assert_eq!((metadata.version, metadata.traits), ((0, 5), 1));
    assert_eq!(host.metadata(Some(record), false).version, (0, 1));
}

/// C++ refuses to be registered where the type has no number yet.
#[test]
fn the_type_of_state_is_announced() {
    let host = Host::new();
    let [plan, prepared] = [instantiate as StageFn, prepare].map(|handler| {
        let announced = host.metadata(Some(handler), true).state;
        assert_eq!(host.metadata(Some(handler), true).state, announced, "the same each time");
        announced.unwrap()
    });
    assert_ne!(plan, prepared);
    assert_eq!(host.metadata(Some(execute), true).state, None);
    let old = Host::new().aged(1, size_of::<XLA_FFI_Api>());
    assert_eq!(old.metadata(Some(instantiate), true).state, None);
    assert_eq!(old.metadata(Some(instantiate), false).state, None);
}

#[test]
fn a_panic_is_internal() {
    let failure = Host::new().execute(Some(panicking), &Call::new()).unwrap_err();
    assert_eq!(failure.code, ErrorCode::Internal as u32);
    assert!(failure.message.starts_with("panicking: a bug in this handler: out of order ("));
}
