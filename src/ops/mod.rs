//! The families, and `ops!`, which turns a target's facts, stated once, into everything derived.

/// The families: one file each, in the order in which tables list them.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*

        /// The operations of each family. A static, as are they: whoever reads a constant compiles its
        /// handlers anew, at other addresses.
        pub(crate) static FAMILIES: &[&[crate::table::Op]] = &[$($family::OPS),*];
    };
}

/// Declares the operations of a family: for each its contract, the element types, how matrices lie
/// in memory, the shape of the call, and for each platform the wire names and what runs.
///
/// ```text
/// ops! { family;
///     /// The contract.
///     op: Call<T> over [f32, f64, c32, c64], Column { the sections of xla_ffi::signature! }
///     cpu = lapack(op), |call, threads| kernel(…);   // or: any("one_name_for_all_types"), …
///     cuda = { … };                                  // see `cuda!`; or: host; or: (none: "why")
/// }
/// ```
///
/// `lapack(op)` names one target for each element type, `lapack_{s,d,c,z}op_ffi`, and
/// `lapack(orgqr, ungqr)` spells the complex ones otherwise; `any(name)` is one target for all
/// types, told apart by the first argument's. A bound on `T` gives its associated types:
/// `Call<T: Scalar>` can have operands of type `T::Real`.
macro_rules! ops {
    ($family:ident; $(
        $(#[doc = $doc:literal])+
        $op:ident: $call:ident<$t:ident $(: $bound:ident)? $(, $u:ident)?>
            over [$($scalar:tt),+ $(,)?], $layout:ident {
            $($signature:tt)*
        }
        cpu = $wire:ident $(($($name:tt)+), $run:expr)?;
        cuda = $cuda:tt;
    )+) => {
        $(
            xla_ffi::signature! {
                $(#[doc = $doc])+
                #[allow(dead_code, reason = "an operation that the CPU lacks has no such call")]
                pub(crate) struct $call<$t $(: $bound)? $(, $u)?> { $($signature)* }
            }
        )+

        /// The operations of this family.
        pub(crate) static OPS: &[crate::table::Op] = &[$(crate::table::Op {
            name: stringify!($op),
            family: stringify!($family),
            doc: concat!($($doc, "\n"),+),
            layout: crate::table::Layout::$layout,
            cpu: crate::ops::cpu!(
                $call, [$($scalar),+], $wire $(($($name)+), $run)?
            ),
            cuda: crate::ops::cuda!(
                $cuda, [$($scalar),+], {
                    $(#[doc = $doc])+
                    device struct OnDevice<$t $(: $bound)? $(, $u)?> { $($signature)* }
                }, { $call, $wire $(($($name)+), $run)? }
            ),
            not_on_cuda: crate::ops::reason!($cuda),
        }),+];
    };
}

/// The targets of one operation on the CPU.
macro_rules! cpu {
    ($call:ident, [$($scalar:tt),+], none) => {
        &[]
    };
    ($call:ident, [$($scalar:tt),+], $wire:ident($($name:tt)+), $run:expr) => {
        crate::ops::targets!($wire($($name)+), $call, [$($scalar),+], $run)
    };
}

/// The targets of one operation on the CPU, where it has any.
macro_rules! targets {
    (lapack($name:ident), $call:ident, [$($scalar:tt),+], $run:expr) => {
        crate::ops::targets!(lapack($name, $name), $call, [$($scalar),+], $run)
    };
    (lapack($real:ident, $complex:ident), $call:ident, [$($scalar:tt),+], $run:expr) => {
        &[$(crate::ops::target!(
            concat!("lapack_", crate::ops::routine!($scalar, $real, $complex), "_ffi"),
            $call, [$scalar], $run
        )),+]
    };
    (any($name:literal), $call:ident, [$($scalar:tt),+], $run:expr) => {
        &[crate::ops::target!($name, $call, [$($scalar),+], $run)]
    };
}

/// A routine's full name in LAPACK: the precision letter, and the spelling for that scalar.
macro_rules! routine {
    (f32, $real:ident, $complex:ident) => {
        concat!("s", stringify!($real))
    };
    (f64, $real:ident, $complex:ident) => {
        concat!("d", stringify!($real))
    };
    (c32, $real:ident, $complex:ident) => {
        concat!("c", stringify!($complex))
    };
    (c64, $real:ident, $complex:ident) => {
        concat!("z", stringify!($complex))
    };
}

/// One routine on the backend in force: lapax's own of a family, or the LAPACK library's, which have
/// the same name and the same arguments. `ops!` calls by their own names the few that LAPACK lacks.
macro_rules! dispatch {
    ($family:ident::$routine:ident($($argument:expr),* $(,)?)) => {
        match crate::backend::in_force() {
            #[cfg(feature = "lapack")]
            Ok(crate::backend::Backend::Lapack) => {
                lapax_cpu::lapack::$family::$routine($($argument),*)
            }
            // A choice that cannot be followed was refused before the call was decoded.
            _ => lapax_cpu::$family::$routine($($argument),*),
        }
    };
}

/// A call of one element type, or of two.
macro_rules! of {
    ($call:ident, $f:lifetime, ($t:ident, $u:ident)) => { $call<$f, $t, $u> };
    ($call:ident, $f:lifetime, $t:ident) => { $call<$f, $t> };
}

/// Whether the first arguments' element types are these.
macro_rules! is {
    ($dtypes:ident, ($t:ident, $u:ident)) => {
        crate::ops::is!($dtypes, $t) && $dtypes[1] == Some(<$u as xla_ffi::Element>::DTYPE)
    };
    ($dtypes:ident, $t:ident) => {
        $dtypes[0] == Some(<$t as xla_ffi::Element>::DTYPE)
    };
}

/// One target: its handler, monomorphic in each element type.
macro_rules! target {
    ($name:expr, $call:ident, [$($scalar:tt),+], $run:expr) => {{
        struct Handler;

        impl xla_ffi::Handler for Handler {
            const NAME: &'static str = $name;
            const SIGNATURES: &'static [&'static xla_ffi::Signature] =
                &[$(<crate::ops::of!($call, 'static, $scalar) as xla_ffi::Call<'static>>::SIGNATURE),+];

            fn call<'f>(
                frame: xla_ffi::Frame<'f>,
                context: &xla_ffi::Context<'f>,
            ) -> xla_ffi::Outcome<'f> {
                if let Err(refusal) = crate::backend::in_force() {
                    return xla_ffi::Outcome::Done(Err(refusal.into()));
                }
                let dtypes = [frame.arg_dtype(0), frame.arg_dtype(1)];
                $(if Self::SIGNATURES.len() == 1 || crate::ops::is!(dtypes, $scalar) {
                    type Call<'f> = crate::ops::of!($call, 'f, $scalar);
                    let run: fn(Call<'f>, &dyn lapax_core::Threads) -> _ = $run;
                    return match <Call<'f> as xla_ffi::Call<'f>>::decode(frame) {
                        Some(call) => {
                            let answer = run(call, &crate::ops::XlaThreads(context));
                            crate::ops::Answer::outcome(answer)
                        }
                        None => xla_ffi::Outcome::Mismatch,
                    };
                })+
                xla_ffi::Outcome::Mismatch
            }
        }

        crate::table::Target {
            name: $name,
            platform: crate::table::Platform::Cpu,
            doc: "",
            handler: Some(xla_ffi::execute::<Handler>),
            initialize: None,
            captured: false,
            signatures: <Handler as xla_ffi::Handler>::SIGNATURES,
        }
    }};
}

/// Why an operation has no targets on CUDA; empty where it has.
macro_rules! reason {
    ((none: $why:literal)) => {
        $why
    };
    ($any:tt) => {
        ""
    };
}

pub(crate) use {cpu, is, of, ops, reason, routine, target, targets};

// Everything that only CUDA's targets need, in one place, as it may be left out.
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "cuda")]
pub(crate) mod on_host;
#[cfg(feature = "cuda")]
mod opaque;
#[cfg(feature = "cuda")]
pub(crate) use cuda::{cuda, cuda_target, host_target};
/// Without the feature no operation has a target on CUDA.
#[cfg(not(feature = "cuda"))]
macro_rules! cuda {
    ($($any:tt)*) => {
        &[]
    };
}
#[cfg(not(feature = "cuda"))]
pub(crate) use cuda;

families![
    lu,
    cholesky,
    ldl,
    triangular,
    tridiagonal,
    banded,
    block_tridiagonal,
    eig,
    schur,
    generalised_schur,
    hessenberg,
    qr,
    eigh,
    svd,
    functions,
    products,
    sparse,
    csr,
    coo
];

use lapax_core::{InOut, Threads};
#[allow(non_camel_case_types, reason = "the names that LAPACK's Rust users know")]
type c32 = num_complex::Complex<f32>;
#[allow(non_camel_case_types, reason = "the names that LAPACK's Rust users know")]
type c64 = num_complex::Complex<f64>;

/// XLA's pool as the kernels see it. The host is asked for its size only by calls that are large
/// enough to want it.
struct XlaThreads<'c, 'f>(&'c xla_ffi::Context<'f>);

impl Threads for XlaThreads<'_, '_> {
    fn count(&self) -> usize {
        self.0.thread_pool().threads()
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.thread_pool().run(chunks, body);
    }

    fn settle(&self) {
        xla_ffi::ThreadPool::settle();
    }

    fn asleep(&self, sleep: &mut dyn FnMut()) {
        xla_ffi::ThreadPool::asleep(sleep);
    }

    fn woke(&self) {
        xla_ffi::ThreadPool::woke();
    }
}

/// What a kernel gets for a number that was checked not to be negative.
fn unsigned(value: i32) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// The binding's in-out operand as the kernels see it.
fn in_out<T>(operand: xla_ffi::InOut<'_, T>) -> InOut<'_, T> {
    InOut { src: operand.src, dst: operand.dst }
}

/// What the expression of a platform may give.
trait Answer<'f> {
    /// What the handler answers.
    fn outcome(self) -> xla_ffi::Outcome<'f>;
}

impl<'f> Answer<'f> for Result<(), lapax_core::Error> {
    fn outcome(self) -> xla_ffi::Outcome<'f> {
        xla_ffi::Outcome::Done(self.map_err(misuse))
    }
}

impl<'f> Answer<'f> for Result<xla_ffi::Future<'f>, xla_ffi::Error> {
    fn outcome(self) -> xla_ffi::Outcome<'f> {
        match self {
            Ok(future) => xla_ffi::Outcome::Future(future),
            Err(error) => xla_ffi::Outcome::Done(Err(error)),
        }
    }
}

/// Sizes that a kernel cannot serve are the caller's mistake.
fn misuse(error: lapax_core::Error) -> xla_ffi::Error {
    xla_ffi::Error::invalid_argument(error.to_string())
}
