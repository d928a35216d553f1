//! The same families on a LAPACK library of the user's choice, with the signatures and the contracts
//! of the modules beside this one.
//!
//! The library is given finite, non-empty matrices only. Where a matrix holds NaN or inf LAPACKs
//! differ, from each other and from version to version, so that such a matrix is left to lapax's own
//! code, as is one for which an iteration of LAPACK's did not converge. `info` and what NaN does to
//! the results are therefore the same on both backends. What LAPACK does not have (the permutation
//! of pivots, the update of a Cholesky factor, the perturbed tridiagonal solve) has no counterpart
//! here.
//!
//! Workspace is allocated once for the matrices that one thread works on. Batches run on the calling
//! thread, since a LAPACK may have threads of its own or may not be reentrant; only the reference
//! LAPACK, linked by that name, is known to have neither trouble, and is called from all threads.
//!
//! The library's integers may have 32 or 64 bits, which is found out at the first call.

pub mod cholesky;
pub mod definite;
pub mod determinant;
pub mod eig;
pub mod eigh;
pub mod hessenberg;
pub(crate) mod integers;
mod least;
pub(crate) mod library;
pub mod lu;
pub mod qr;
#[allow(unsafe_code, reason = "calls of a foreign library")]
pub(crate) mod raw;
pub(crate) mod routines;
pub mod schur;
pub mod solve;
pub mod svd;
pub mod triangular;
pub mod tridiagonal;
mod workspace;

// Whose build script links the provider.
use lapack_src as _;
use lapax_core::{Batched, for_each_part};

use crate::parallel::cost::nanoseconds;
use crate::{Error, Scalar, Serial, Threads};
use integers::with_stack;

pub use integers::Width;
#[cfg(feature = "testing")]
pub(crate) use integers::tests::TRIALS;
pub use library::{Library, library};
pub use routines::Routines;

/// Whether the library may be called from several threads at once, and has none of its own: Debian's
/// build of the reference has no writable static data in the routines that are called here.
const REENTRANT: bool = cfg!(lapax_reference);

/// Calls `kernel` for each matrix of a batch, on one thread unless the library is reentrant.
fn each<T: Scalar, B: Batched, S>(
    batch: usize,
    operands: B,
    products: usize,
    threads: &dyn Threads,
    scratch: impl Fn() -> S + Sync,
    kernel: impl Fn(&mut S, B::Item) + Sync,
) {
    let nanoseconds = nanoseconds::<T>(products);
    for_each_part(batch, 1, operands, nanoseconds, callers(threads), |mut part, items| {
        // Once, not for each call in it: 100,000 calls took five seconds to get theirs.
        with_stack(|| {
            let mut scratch = scratch();
            for _ in 0..items {
                kernel(&mut scratch, part.take());
            }
        });
    });
}

/// The threads from which the library may be called.
fn callers(threads: &dyn Threads) -> &dyn Threads {
    if REENTRANT { threads } else { &Serial }
}

/// Whether no element is NaN or infinite.
fn finite<'a, T: Scalar>(elements: impl IntoIterator<Item = &'a T>) -> bool {
    elements.into_iter().all(|x| x.is_finite())
}

/// What a call returned whose sizes were checked for the whole batch.
fn checked<R>(outcome: Result<R, Error>) -> R {
    match outcome {
        Ok(value) => value,
        Err(error) => unreachable!("the batch passed this check: {error}"),
    }
}

/// A matrix that lies where its result goes.
fn in_place<T>(dst: &mut [T]) -> crate::InOut<'_, T> {
    crate::InOut { src: None, dst }
}
