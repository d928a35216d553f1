//! Operands, and the comparison with the same call by the crate `lapack`: results must have the same
//! bits. Its integers have 32 bits, so that it is no oracle for a library with 64.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::Once;

use lapax_cpu::lapack::Width;
use lapax_cpu::{InOut, Real, Scalar};

/// A matrix taller and wider than a panel of LAPACK's blocked routines, and not square.
pub(crate) const M: usize = 70;
pub(crate) const N: usize = 50;
/// Workspace for the oracle, of each type: more than any routine asks for at this size.
pub(crate) const SPACE: usize = 40_000;

/// Elements between −1 and 1, the same for the same seed.
pub(crate) fn sample<T: Scalar>(length: usize, seed: u32) -> Vec<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::Real::from_f64(f64::from(state >> 8) / f64::from(1_u32 << 23) - 1.0)
    };
    (0..length).map(|_| T::from_parts(next(), next())).collect()
}

/// A Hermitian positive definite matrix.
pub(crate) fn positive<T: Scalar>(n: usize) -> Vec<T> {
    let mut a = sample::<T>(n * n, 5);
    for j in 0..n {
        for i in 0..j {
            a[j + i * n] = a[i + j * n].conj();
        }
        a[j + j * n] = T::from_real(T::Real::from_f64(100.0));
    }
    a
}

pub(crate) fn zeros<T: Clone + Default>(length: usize) -> Vec<T> {
    vec![T::default(); length]
}

/// An operand that lies where its result goes.
pub(crate) fn at<T>(dst: &mut [T]) -> InOut<'_, T> {
    InOut { src: None, dst }
}

pub(crate) fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(-1)
}

pub(crate) fn same<R: PartialEq + Debug>(what: &str, ours: &[R], theirs: &[R]) {
    let differing = ours.iter().zip(theirs).position(|(x, y)| x != y);
    assert_eq!((ours.len(), differing), (theirs.len(), None), "{what}");
}

/// The length of workspace with which a routine answered.
pub(crate) fn answer<T: Scalar>(work: &[T]) -> i32 {
    let length = work[0].re().to_f64();
    (1..int(SPACE)).find(|&i| f64::from(i) >= length).unwrap_or(0)
}

/// Whether the crate `lapack` can call this library; says why not.
pub(crate) fn applies() -> bool {
    static SAID: Once = Once::new();
    let applies = Width::of_library() == Width::Bits32;
    if !applies {
        SAID.call_once(|| {
            say("not compared with the crate lapack: its integers have 32 bits, the library's 64");
        });
    }
    applies
}

/// Prints a line that the test harness does not swallow.
pub(crate) fn say(line: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}
