//! `handler!`: a handler of one stage, from the shape of its call and its body.

/// Declares a handler: what its call holds, and what it does.
///
/// ```
/// use xla_ffi::{Buffer, BufferMut};
///
/// xla_ffi::handler! {
///     /// y = α x, of any shape.
///     pub fn scale(call: Scale<'f>, _context) in Execute {
///         args { x: Buffer<'f, f32> }
///         rets { y: BufferMut<'f, f32> }
///         attrs { alpha: f32 }
///     } => {
///         let Scale { x, mut y, alpha, .. } = call;
///         y.iter_mut().zip(x.iter()).for_each(|(y, x)| *y = alpha * x);
///         Ok(())
///     }
/// }
/// ```
///
/// `scale` is an `XLA_FFI_Handler`, `Scale` the struct of its operands and attributes. The stages are
/// those of [`ExecutionStage`](crate::ExecutionStage); a handler of `Instantiate`, `Prepare` or
/// `Initialize` that answers with state says `in Instantiate keeping`. A section that is left out
/// stands for operands that are not looked at; an empty one for none. `all attrs: T;` takes all
/// attributes as one [`Dictionary`](crate::Dictionary) or [`attribute!`](crate::attribute) struct.
/// `traits FLAGS;` states what the handler promises to the host. Errors begin with the function's name;
/// where the target has another, or is registered under several, `target NAME;` as the first line says
/// which.
///
/// The body ends with `Ok(())`, `Ok(`[`Future`](crate::Future)`)`, the state, or an
/// [`Error`](crate::Error). Results never share memory with arguments here; `signature!` has in-out
/// operands.
#[macro_export]
macro_rules! handler {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($call:ident: $bound:ident<$f:lifetime>, $context:tt)
            in $stage:ident $($keeping:ident)? {
            $(target $target:expr;)?
            $(args { $($arg:ident: $arg_type:ty),* $(,)? })?
            $(rets { $($ret:ident: $ret_type:ty),* $(,)? })?
            $(attrs { $($attr:ident: $attr_type:ty),* $(,)? })?
            $(all $all:ident: $all_type:ty;)?
            $(traits $traits:expr;)?
        } => $body:block
    ) => {
        /// The operands and attributes of a call.
        #[allow(missing_docs, dead_code)]
        $vis struct $bound<$f> {
            $($(pub $arg: $arg_type,)*)?
            $($(pub $ret: $ret_type,)*)?
            $($(pub $attr: $attr_type,)*)?
            $(pub $all: $all_type,)?
            #[doc(hidden)]
            pub lifetime: ::core::marker::PhantomData<&$f ()>,
        }

        const _: () = assert!(
            <[&str]>::is_empty(&[$(stringify!($all))?]) || <[&str]>::is_empty(&[$($(stringify!($attr)),*)?]),
            "either attributes by name or all of them"
        );
        $(const _: () = {
            const fn in_order<$f>() -> bool {
                $crate::bind::in_order(&[$(<$arg_type as $crate::bind::FromArg<$f>>::ARITY),*])
            }
            assert!(
                in_order(),
                "arguments that may be missing come last, and one Rest after all others"
            );
        };)?
        $(const _: () = {
            const fn in_order<$f>() -> bool {
                $crate::bind::in_order(&[$(<$ret_type as $crate::bind::FromRet<$f>>::ARITY),*])
            }
            assert!(
                in_order(),
                "results that may be missing come last, and one Rest after all others"
            );
        };)?

        #[allow(clippy::undocumented_unsafe_blocks)]
        impl<$f> $crate::bind::Bound<$f> for $bound<$f> {
            #[inline(always)]
            unsafe fn decode<const APART: bool>(
                frame: $crate::Frame<$f>,
            ) -> ::core::option::Option<Self> {
                let rest =
                    $crate::bind::has_rest(
                        &[$($(<$arg_type as $crate::bind::FromArg<$f>>::ARITY),*)?]
                    ) || $crate::bind::has_rest(
                        &[$($(<$ret_type as $crate::bind::FromRet<$f>>::ARITY),*)?]
                    );
                if !APART && rest {
                    return ::core::option::Option::None;
                }
                $(
                    let attrs = frame.dictionary();
                    $crate::bind_attributes!(attrs, $f; $($attr: $attr_type),*);
                )?
                $(
                    let $all =
                        <$all_type as $crate::bind::FromAttrs<$f>>::from_attrs(frame.dictionary())?;
                )?
                $(
                    let mut args = frame.args();
                    if !args.fit(&[$(<$arg_type as $crate::bind::FromArg<$f>>::ARITY),*]) {
                        return ::core::option::Option::None;
                    }
                    $(let $arg = <$arg_type as $crate::bind::FromArg<$f>>::from_arg(&mut args)?;)*
                    if !args.exhausted() {
                        return ::core::option::Option::None;
                    }
                )?
                $(
                    let mut rets = unsafe { frame.rets() };
                    if !rets.fit(&[$(<$ret_type as $crate::bind::FromRet<$f>>::ARITY),*]) {
                        return ::core::option::Option::None;
                    }
                    $(let $ret = <$ret_type as $crate::bind::FromRet<$f>>::from_ret(&mut rets)?;)*
                    if !rets.exhausted() {
                        return ::core::option::Option::None;
                    }
                )?
                let meet = $crate::bind::meet(
                    [$($(<$arg_type as $crate::bind::FromArg<$f>>::address(&$arg)),*)?],
                    [$($(<$ret_type as $crate::bind::FromRet<$f>>::address(&$ret)),*)?],
                );
                if !APART && meet {
                    return ::core::option::Option::None;
                }
                ::core::option::Option::Some(Self {
                    $($($arg,)*)?
                    $($($ret,)*)?
                    $($($attr,)*)?
                    $($all,)?
                    lifetime: ::core::marker::PhantomData,
                })
            }

            fn explain(frame: $crate::Frame<$f>, problems: &mut $crate::bind::Problems) {
                let _ = (&frame, &problems);
                $(
                    let mut args = frame.args();
                    $(problems.arg::<$arg_type>(&mut args, stringify!($arg));)*
                    problems.none_left("argument", &[$(stringify!($arg)),*], args);
                )?
                $(
                    let mut rets = unsafe { frame.rets() };
                    $(problems.ret::<$ret_type>(&mut rets, stringify!($ret));)*
                    problems.none_left("result", &[$(stringify!($ret)),*], rets);
                )?
                $(
                    let attrs = frame.dictionary();
                    $(problems.attribute::<$attr_type>(attrs, stringify!($attr));)*
                    problems.only(attrs, &[$(stringify!($attr)),*]);
                )?
                $(<$all_type as $crate::bind::FromAttrs<$f>>::explain(frame.dictionary(), problems);)?
            }
        }

        $(#[$meta])*
        ///
        /// # Safety
        /// XLA calls this, or someone who keeps the C API's promises about the frame.
        #[allow(clippy::undocumented_unsafe_blocks)]
        $vis unsafe extern "C" fn $name(
            frame: *mut $crate::sys::XLA_FFI_CallFrame,
        ) -> *mut $crate::sys::XLA_FFI_Error {
            const ABOUT: $crate::bind::About = $crate::bind::About {
                name: $crate::handler!(@target $name $($target)?),
                traits: 0 $(| $traits)?,
                state: ::core::option::Option::None,
            };
            const STAGE: $crate::ExecutionStage = $crate::ExecutionStage::$stage;
            $crate::handler!(@body [$($keeping)?] $f $call $bound $context $body);
            $crate::handler!(@enter [$($keeping)?] frame)
        }
    };
    (@target $name:ident) => { stringify!($name) };
    (@target $name:ident $target:expr) => { $target };
    (@body [] $f:lifetime $call:ident $bound:ident $context:tt $body:block) => {
        #[inline(always)]
        fn run<$f>(
            $call: $bound<$f>,
            $context: &$crate::Context<$f>,
        ) -> ::core::result::Result<impl $crate::bind::Reply<$f> + use<$f>, $crate::Error> $body
    };
    (@body [keeping] $f:lifetime $call:ident $bound:ident $context:tt $body:block) => {
        #[inline(always)]
        fn run<$f>(
            $call: $bound<$f>,
            $context: &$crate::Context<$f>,
        ) -> ::core::result::Result<impl $crate::HostType + use<$f>, $crate::Error> $body
    };
    (@enter [] $frame:ident) => {
        unsafe { $crate::bind::enter($frame, &ABOUT, STAGE, run) }
    };
    (@enter [keeping] $frame:ident) => {
        unsafe { $crate::bind::enter_keeping($frame, &ABOUT, STAGE, run) }
    };
}
