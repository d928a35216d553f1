//! Errors of a body, and its bugs: INTERNAL with message and place, silence, and life goes on.

use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind};
use std::process::Command;

use xla_ffi::fake::{Failure, Host, PoolMode};
use xla_ffi::{
    Call as _, Context, Error, ErrorCode, Frame, Handler, Outcome, Signature, signature,
};

use crate::plan::{Operand, Plan};

signature! {
    /// No operands but one.
    struct Anything { dims {} args {} rets { out: i32 [] } }
}

type Body = Box<dyn Fn(&Context<'_>) -> Result<(), Error>>;

thread_local! {
    /// What the next call on this thread runs.
    static BODY: RefCell<Option<Body>> = const { RefCell::new(None) };
}

struct AnyBody;

impl Handler for AnyBody {
    const NAME: &'static str = "any";
    const SIGNATURES: &'static [&'static Signature] = &[Anything::SIGNATURE];

    fn call<'f>(frame: Frame<'f>, context: &Context<'f>) -> Outcome<'f> {
        let Some(_) = Anything::decode(frame) else { return Outcome::Mismatch };
        let body = BODY.take().expect("a body");
        Outcome::Done(body(context))
    }
}

/// Runs `body` as the body of a handler.
pub(crate) fn call(
    host: &Host,
    body: impl Fn(&Context<'_>) -> Result<(), Error> + 'static,
) -> Result<(), Failure> {
    call_with(host, body, |_| {})
}

/// The same, in a frame that `change` has changed.
pub(crate) fn call_with(
    host: &Host,
    body: impl Fn(&Context<'_>) -> Result<(), Error> + 'static,
    change: impl FnOnce(&mut xla_ffi::sys::XLA_FFI_CallFrame),
) -> Result<(), Failure> {
    BODY.set(Some(Box::new(body)));
    let mut plan =
        Plan { rets: vec![Operand::unwritten(xla_ffi::DataType::I32, &[])], ..Plan::default() };
    plan.with_frame(host, |frame| {
        change(frame);
        host.invoke(Some(xla_ffi::execute::<AnyBody>), frame)
    })
}

const INTERNAL: u32 = 13;

/// A panic with this text, here or in a chunk of a pool, is this failure.
fn assert_internal(outcome: Result<(), Failure>, text: &str, place: &str) {
    let Failure { code, message } = outcome.expect_err("a failure");
    let start = format!("any: a bug in this handler: {text}");
    assert!(code == INTERNAL && message.starts_with(&start), "{code} {message}");
    let rest = &message[start.len()..];
    if place.is_empty() {
        assert_eq!(rest, "");
    } else {
        let line = rest.strip_prefix(&format!(" ({place}:")).and_then(|it| it.strip_suffix(')'));
        assert!(line.is_some_and(|line| line.parse::<u32>().is_ok()), "no place: {message}");
    }
}

#[test]
fn a_panic_is_internal_and_the_next_call_works() {
    let host = Host::new();
    for _ in 0..2 {
        assert_internal(call(&host, |_| panic!("two {}", 2)), "two 2", file!());
        assert_internal(call(&host, |_| panic!("plain")), "plain", file!());
        let nothing = call(&host, |_| resume_unwind(Box::new(7)));
        assert_internal(nothing, "a panic without a message", "");
        let index =
            call(&host, |_| Err(Error::internal("no".repeat([1_usize][usize::from(!0_u8)]))));
        assert_internal(index, "index out of bounds: the len is 1 but the index is 255", file!());
        assert_eq!(call(&host, |_| Ok(())), Ok(()));
    }
}

/// What a body catches itself is forgotten: a later message is the later panic's.
#[test]
fn a_swallowed_panic_leaves_no_message() {
    let host = Host::new();
    let swallow = |_: &Context<'_>| {
        drop(catch_unwind(|| panic!("swallowed")));
        Ok(())
    };
    assert_eq!(call(&host, swallow), Ok(()));
    assert_internal(call(&host, |_| resume_unwind(Box::new("mine"))), "mine", "");
}

#[test]
fn a_panic_in_a_chunk_is_internal() {
    for (threads, mode) in [
        (1, PoolMode::Prompt),
        (4, PoolMode::Prompt),
        (4, PoolMode::Stalled),
        (4, PoolMode::Refusing),
    ] {
        let host = Host::with_pool(threads, mode);
        for bad in [0, 37, 99] {
            let outcome = call(&host, move |context| {
                context.thread_pool().run(100, &|chunk| assert!(chunk != bad, "chunk {chunk}"));
                Ok(())
            });
            assert_internal(outcome, &format!("chunk {bad}"), file!());
            let fine = call(&host, |context| {
                context.thread_pool().run(100, &|_| ());
                Ok(())
            });
            assert_eq!(fine, Ok(()));
        }
        // All at once: one of them is told.
        let outcome = call(&host, |context| {
            context.thread_pool().run(8, &|_| panic!("each"));
            Ok(())
        });
        assert_internal(outcome, "each", file!());
    }
}

/// Panics as above, in a process whose standard error is looked at.
#[test]
#[ignore = "run by panics_print_nothing, in a process of its own"]
fn panicking_child() {
    a_panic_is_internal_and_the_next_call_works();
    a_panic_in_a_chunk_is_internal();
    if std::env::var_os("BINDING_LOUD").is_some() {
        drop(catch_unwind(|| panic!("outside of a handler")));
    }
}

#[test]
fn panics_print_nothing() {
    let program = std::env::current_exe().unwrap();
    let listed = Command::new(&program).arg("--list").output();
    if !listed.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "skipped: this program cannot start itself, as one emulated by qemu-user without binfmt_misc"
        );
        return;
    }
    let child = |loud: bool| {
        let mut command = Command::new(&program);
        command.args(["--exact", "panics::panicking_child", "--ignored", "--nocapture"]);
        if loud {
            command.env("BINDING_LOUD", "1");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(child(false), "");
    // Panics outside of handlers are printed as before, also in the same process.
    assert!(child(true).contains("outside of a handler"));
}

#[test]
fn errors_keep_code_and_message() {
    let host = Host::new();
    for (code, number) in [
        (ErrorCode::Cancelled, 1),
        (ErrorCode::InvalidArgument, 3),
        (ErrorCode::ResourceExhausted, 8),
        (ErrorCode::Unavailable, 14),
        (ErrorCode::Unauthenticated, 16),
    ] {
        let outcome = call(&host, move |_| Err(Error::new(code, "a\0b – ü")));
        let message = "any: a\\0b – ü".to_owned();
        assert_eq!(outcome, Err(Failure { code: number, message }));
    }
    let outcome = call(&host, |_| panic!("a\0b"));
    assert_internal(outcome, "a\\0b", file!());
}
