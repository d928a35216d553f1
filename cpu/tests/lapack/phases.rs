//! The phases of results: those of LAPACK's vectors, turned by the rule that lapax promises.

use lapax_cpu::{Real, Scalar};

use crate::sample::{M, N, int};

/// What makes the first component real and positive whose modulus is this part of the root of the mean square.
const PART: f64 = 0.4869;

fn factor<T: Scalar>(x: &[T]) -> T {
    let least = PART / f64::from(int(x.len())).sqrt();
    let Some(first) = x.iter().find(|x| modulus(**x) >= least) else {
        panic!("no vector of norm one: {x:?}");
    };
    let length = (first.re() * first.re() + first.im() * first.im()).sqrt();
    first.conj().unscale(length)
}

fn modulus<T: Scalar>(x: T) -> f64 {
    x.re().to_f64().hypot(x.im().to_f64())
}

/// Turns eigenvectors of a general matrix, columns of `rows` numbers of which none are equally large: the largest becomes
/// real and positive.
pub(crate) fn turn_general<T: Scalar>(vectors: &mut [T], rows: usize) {
    for column in vectors.chunks_exact_mut(rows) {
        let larger = |a: T, b: &T| if modulus(*b) > modulus(a) { *b } else { a };
        let largest = column.iter().fold(T::ZERO, larger);
        let length = (largest.re() * largest.re() + largest.im() * largest.im()).sqrt();
        let factor = largest.conj().unscale(length);
        column.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Turns columns of `rows` numbers.
pub(crate) fn turn<T: Scalar>(vectors: &mut [T], rows: usize) {
    for column in vectors.chunks_exact_mut(rows) {
        let factor = factor(column);
        column.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Turns the columns of U, m × any, and with them the rows of Vᴴ, any × n.
pub(crate) fn turn_pairs<T: Scalar>(u: &mut [T], vt: &mut [T]) {
    let rows = vt.len() / N;
    for (j, column) in u.chunks_exact_mut(M).enumerate() {
        let factor = factor(column);
        column.iter_mut().for_each(|x| *x *= factor);
        vt.iter_mut().skip(j).step_by(rows).take(N).filter(|_| j < rows).for_each(|x| {
            *x *= factor.conj();
        });
    }
}

/// Turns Schur vectors, the columns of Z, and T = Zᴴ·A·Z with them.
pub(crate) fn turn_schur<T: Scalar>(t: &mut [T], z: &mut [T]) {
    let factors: Vec<T> = z.chunks_exact(N).map(factor).collect();
    turn(z, N);
    for (column, right) in t.chunks_exact_mut(N).zip(&factors) {
        column.iter_mut().zip(&factors).for_each(|(x, left)| *x *= left.conj() * *right);
    }
}

/// Real numbers of the same bits; complex ones that differ by the rounding of two products.
pub(crate) fn near<T: Scalar>(what: &str, ours: &[T], theirs: &[T]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let bound = if T::IS_COMPLEX { 8.0 * T::Real::EPSILON.to_f64() } else { 0.0 };
    for (at, (&x, &y)) in ours.iter().zip(theirs).enumerate() {
        let (distance, size) = (modulus(x - y), modulus(y));
        assert!(distance <= bound * size, "{what}, at {at}: {x:?} for {y:?}");
    }
}
