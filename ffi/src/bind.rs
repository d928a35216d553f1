//! What the macros `handler!` and `attribute!` are made of: decoding without a word where the call
//! fits, and a list of all mismatches where it does not.

use crate::context::Context;
use crate::error::{Error, push_number};
use crate::frame::Frame;
use crate::future::Future;
use crate::operands::shared;
use crate::state::{HostType, keep, type_id};
use crate::value::Attribute;
use crate::{ExecutionStage, IeeeMode, panics, sys};

pub use crate::dictionary::{Dictionary, distinct, positions};
pub use crate::handler::{About, TypeNumber};
pub use crate::operands::{Arity, FromArg, FromRet, Operands, has_rest, in_order, meet};

/// A decoded call: what `handler!` generates.
pub trait Bound<'f>: Sized {
    /// The call, where it fits. Unless its results are known to be `APART` from all other operands, only
    /// where a glance at the addresses shows that they are: not where some are equal, nor where there are
    /// more operands than the type says.
    ///
    /// # Safety
    /// One that succeeds in a call; where `APART` is said, no results share memory.
    unsafe fn decode<const APART: bool>(frame: Frame<'f>) -> Option<Self>;

    /// Why it does not fit.
    fn explain(frame: Frame<'f>, problems: &mut Problems);
}

/// A type that all attributes of a call, or all entries of a dictionary, decode to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold all attributes of a call",
    note = "Dictionary<'f> can, and structs declared by xla_ffi::attribute!"
)]
pub trait FromAttrs<'f>: Sized {
    /// The value, or None where an entry is missing, of another kind, or too many.
    fn from_attrs(attrs: Dictionary<'f>) -> Option<Self>;

    /// Why there is none.
    fn explain(attrs: Dictionary<'f>, problems: &mut Problems);
}

impl<'f> FromAttrs<'f> for Dictionary<'f> {
    #[inline(always)]
    fn from_attrs(attrs: Dictionary<'f>) -> Option<Self> {
        Some(attrs)
    }

    fn explain(_: Dictionary<'f>, _: &mut Problems) {}
}

/// Where an attribute is among those that a call passes.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "there are no others")]
pub enum Position {
    /// Here, or the call does not fit.
    Certain(usize),
    /// Here, or before, where an optional one is missing.
    Within(usize),
}

impl Position {
    /// The value of this name.
    #[inline(always)]
    fn value<'f, T: Attribute<'f>>(self, attrs: Dictionary<'f>, name: &str) -> Option<Option<T>> {
        let (Position::Certain(at) | Position::Within(at)) = self;
        match (attrs.at(at, name), self) {
            (Some(value), _) => Some(T::from_value(value)),
            (None, Position::Certain(_)) => None,
            (None, Position::Within(_)) => elsewhere(attrs, name),
        }
    }
}

/// An attribute, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no attribute",
    note = "attributes are bool, numbers, &'f str, &'f [number], Pointer<T>, Dictionary<'f>, types \
            declared by xla_ffi::attribute!, and Option of these"
)]
pub trait Field<'f>: Sized {
    /// Whether there must be one.
    const REQUIRED: bool;

    /// The value of this name, which is at this position where no attribute before it is missing;
    /// counts what it found.
    fn decode(
        attrs: Dictionary<'f>,
        position: Position,
        name: &str,
        found: &mut usize,
    ) -> Option<Self>;

    /// What must be there, for messages.
    fn expected() -> String;
}

impl<'f, T: Attribute<'f>> Field<'f> for T {
    const REQUIRED: bool = true;

    #[inline(always)]
    fn decode(
        attrs: Dictionary<'f>,
        position: Position,
        name: &str,
        found: &mut usize,
    ) -> Option<Self> {
        *found += 1;
        position.value(attrs, name)?
    }

    fn expected() -> String {
        <T as Attribute<'f>>::expected()
    }
}

impl<'f, T: Attribute<'f>> Field<'f> for Option<T> {
    const REQUIRED: bool = false;

    #[inline(always)]
    fn decode(
        attrs: Dictionary<'f>,
        position: Position,
        name: &str,
        found: &mut usize,
    ) -> Option<Self> {
        let Some(value) = position.value(attrs, name) else { return Some(None) };
        *found += 1;
        value.map(Some)
    }

    fn expected() -> String {
        format!("{} or nothing", <T as Attribute<'f>>::expected())
    }
}

/// The attribute of this name, where optional ones before it are missing, so that it is not at its
/// position; None where there is none of this name. Apart, so that the usual way is short.
#[inline(never)]
fn elsewhere<'f, T: Attribute<'f>>(attrs: Dictionary<'f>, name: &str) -> Option<Option<T>> {
    attrs.find(name).map(T::from_value)
}

/// `{ hi: i64, lo: i64 }`.
pub fn fields_text(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    format!("dictionary {{ {} }}", fields.join(", "))
}

/// The mismatches of one call, in one text.
#[derive(Debug, Default)]
pub struct Problems(String);

impl Problems {
    /// The text, to which one more mismatch is added.
    fn next(&mut self) -> &mut String {
        /// Longer than most messages.
        const CAPACITY: usize = 240;
        if self.0.is_empty() {
            self.0.reserve(CAPACITY);
        } else {
            self.0.push_str("; ");
        }
        &mut self.0
    }

    /// Takes an argument; notes where it does not fit.
    pub fn arg<'f, T: FromArg<'f>>(&mut self, args: &mut Operands<'f>, name: &str) {
        let before = *args;
        if T::from_arg(args).is_none() {
            *args = before;
            self.operand("argument ", name, T::expected, args);
        }
    }

    /// Takes a result; notes where it does not fit.
    pub fn ret<'f, T: FromRet<'f>>(&mut self, rets: &mut Operands<'f>, name: &str) {
        let before = *rets;
        if T::from_ret(rets).is_none() {
            *rets = before;
            self.operand("result ", name, T::expected, rets);
        }
    }

    fn operand(
        &mut self,
        what: &str,
        name: &str,
        expected: fn(&mut String),
        operands: &mut Operands<'_>,
    ) {
        let text = self.next();
        text.push_str(what);
        push_number(text, operands.taken());
        for part in [" `", name, "`: expected "] {
            text.push_str(part);
        }
        expected(text);
        text.push_str(", got ");
        operands.describe(text);
    }

    /// Notes operands that nobody took.
    pub fn none_left(&mut self, what: &str, names: &[&str], operands: Operands<'_>) {
        if !operands.exhausted() {
            let (count, got) = (names.len(), operands.count());
            let plural = if count == 1 { "" } else { "s" };
            let text = match names {
                [] => format!("expected no {what}s, got {got}"),
                _ => format!("expected {count} {what}{plural} ({}), got {got}", names.join(", ")),
            };
            self.next().push_str(&text);
        }
    }

    /// Notes an attribute that is missing or of another kind.
    pub fn attribute<'f, T: Field<'f>>(&mut self, attrs: Dictionary<'f>, name: &str) {
        if T::decode(attrs, Position::Within(0), name, &mut 0).is_none() {
            let got = attrs.find(name).map_or("nothing".to_owned(), |value| value.describe());
            let text = format!("attribute `{name}`: expected {}, got {got}", T::expected());
            self.next().push_str(&text);
        }
    }

    /// Notes attributes besides these.
    pub fn only(&mut self, attrs: Dictionary<'_>, names: &[&str]) {
        for (name, value) in attrs.iter() {
            if !names.iter().any(|known| known.as_bytes() == name) {
                let expected = match names {
                    [] => "no attributes".to_owned(),
                    names => format!("only {}", names.join(", ")),
                };
                let (name, got) = (String::from_utf8_lossy(name), value.describe());
                let text = format!("attribute `{name}`: expected {expected}, got {got} as well");
                self.next().push_str(&text);
            }
        }
    }

    fn into_error(mut self, frame: &sys::XLA_FFI_CallFrame) -> Error {
        if self.0.is_empty() && shared(frame) {
            self.next().push_str(
                "a result shares memory with an argument or another result, though the handler \
                 does not say so",
            );
        }
        if self.0.is_empty() {
            self.next().push_str("a buffer is null or not aligned, though its shape is right");
        }
        Error::invalid_argument(self.0)
    }
}

/// What a handler may answer with.
#[diagnostic::on_unimplemented(
    message = "a handler cannot answer with `{Self}`",
    note = "it answers Ok(()) or Ok(a Future); one of the instantiate stage with the state"
)]
pub trait Reply<'f> {
    /// The call's end.
    fn reply(self) -> Option<Future<'f>>;
}

impl Reply<'_> for () {
    #[inline(always)]
    fn reply(self) -> Option<Future<'static>> {
        None
    }
}

impl<'f> Reply<'f> for Future<'f> {
    #[inline(always)]
    fn reply(self) -> Option<Future<'f>> {
        Some(self)
    }
}

/// The entry point of a stage that answers with a [`Reply`].
///
/// # Safety
/// XLA calls this, or someone who keeps the C API's promises about the frame.
#[inline(always)]
pub unsafe fn enter<'f, C: Bound<'f>, R: Reply<'f>>(
    raw: *mut sys::XLA_FFI_CallFrame,
    about: &About,
    stage: ExecutionStage,
    body: impl FnOnce(C, &Context<'f>) -> Result<R, Error>,
) -> *mut sys::XLA_FFI_Error {
    // SAFETY: the caller's promise.
    unsafe {
        let frame = match crate::handler::open(raw, stage.code(), about) {
            Ok(frame) => frame,
            Err(answer) => return answer,
        };
        let context = Context::of(frame.raw()).of_stage(stage);
        let mut error = None;
        let outcome = panics::catch(|| {
            let _mode = IeeeMode::enter();
            let call = match C::decode::<false>(frame) {
                Some(call) => call,
                None => decode_closely::<C>(frame)?,
            };
            match body(call, &context) {
                Ok(reply) => Some(reply),
                Err(why) => keep_error(&mut error, why),
            }
        });
        let failed = match outcome {
            Ok(Some(reply)) => {
                return match reply.reply() {
                    None => std::ptr::null_mut(),
                    Some(future) => crate::handler::answer_later(about.name, future, raw, &context),
                };
            }
            Ok(None) => error.map_or(Failed::Decoding, Failed::Body),
            Err(panic) => Failed::Panic(panic),
        };
        crate::handler::refuse(about.name, failed.into_error::<C>(frame), (*raw).api)
    }
}

/// Decodes a call for which a glance was not enough, as empty buffers have equal addresses. Decoding all
/// of it again here leaves the handler without a call for which it would keep what it decoded in memory
/// (23 against 19 ns for five buffers).
///
/// # Safety
/// As for [`Bound::decode`].
#[cold]
#[inline(never)]
unsafe fn decode_closely<'f, C: Bound<'f>>(frame: Frame<'f>) -> Option<C> {
    // SAFETY: the caller's promise, and a look at all operands.
    if frame.has_shared_memory() { None } else { unsafe { C::decode::<true>(frame) } }
}

/// Apart from the handler, as all that is seldom.
#[cold]
#[inline(never)]
fn keep_error<R>(kept: &mut Option<Error>, error: Error) -> Option<R> {
    *kept = Some(error);
    None
}

/// Why a handler did not succeed.
enum Failed {
    Decoding,
    Body(Error),
    Panic(String),
}

impl Failed {
    /// Apart from the handler, whose usual way stays short.
    #[cold]
    #[inline(never)]
    fn into_error<'f, C: Bound<'f>>(self, frame: Frame<'f>) -> Error {
        let explain = || {
            let mut problems = Problems::default();
            C::explain(frame, &mut problems);
            problems.into_error(frame.raw())
        };
        match self {
            Failed::Decoding => panics::catch(explain).unwrap_or_else(|panic| bug(&panic)),
            Failed::Body(error) => error,
            Failed::Panic(panic) => bug(&panic),
        }
    }
}

/// The entry point of a stage that answers with state for later stages.
///
/// # Safety
/// As for [`enter`].
pub unsafe fn enter_keeping<'f, C: Bound<'f>, S: HostType>(
    raw: *mut sys::XLA_FFI_CallFrame,
    about: &About,
    stage: ExecutionStage,
    body: impl FnOnce(C, &Context<'f>) -> Result<S, Error>,
) -> *mut sys::XLA_FFI_Error {
    let keep = |call, context: &Context<'f>| keep(context, body(call, context)?);
    let about = &About { state: Some(type_id::<S>), ..*about };
    // SAFETY: the caller's promise.
    unsafe { enter(raw, about, stage, keep) }
}

fn bug(panic: &str) -> Error {
    Error::internal(format!("a bug in this handler: {panic}"))
}
