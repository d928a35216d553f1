//! Columns of a small matrix in each lane rotated in the sequences that implicit QR steps make.

use std::ops::Range;

use pulp::Simd;

use crate::simd::lane_real::LaneReal;
use crate::simd::vector::{Lane, Vector};

/// Rows that are rotated together.
const ROWS: usize = 4;

/// Columns i and i + 1 of Z ← their rotation, for each of some steps from the first of its rows to
/// the last; that is number `WHICH` of the four that a row has.
#[inline(always)]
pub(crate) fn rotate<S: Simd, R: LaneReal, const WHICH: usize>(
    simd: S,
    z: &mut [R::Reg<S>],
    rotations: &[R::Reg<S>],
    ranges: &[(usize, usize)],
    n: usize,
) {
    let (together, alone) = z[..n * n].split_at_mut(n / ROWS * ROWS * n);
    for rows in together.chunks_exact_mut(ROWS * n) {
        for (&(first, last), rotations) in ranges.iter().zip(rotations.chunks_exact(4 * n)) {
            rotate_rows::<S, R, WHICH, ROWS>(simd, rows, rotations, first..last, n);
        }
    }
    for row in alone.chunks_exact_mut(n) {
        for (&(first, last), rotations) in ranges.iter().zip(rotations.chunks_exact(4 * n)) {
            rotate_rows::<S, R, WHICH, 1>(simd, row, rotations, first..last, n);
        }
    }
}

/// N rows, of which the element that the next rotation shares stays in a register.
#[inline(always)]
fn rotate_rows<S: Simd, R: LaneReal, const WHICH: usize, const N: usize>(
    simd: S,
    rows: &mut [R::Reg<S>],
    rotations: &[R::Reg<S>],
    range: Range<usize>,
    n: usize,
) {
    let rows = &mut rows[..N * n];
    let mut carried = [Vector::<S, R>::splat(simd, R::ZERO); N];
    for (x, row) in carried.iter_mut().zip(rows.chunks_exact(n)) {
        *x = Vector::from_reg(simd, row[range.start]);
    }
    let last = range.end;
    for i in range {
        let c = Vector::<S, R>::from_reg(simd, rotations[4 * i + WHICH]);
        let s = Vector::<S, R>::from_reg(simd, rotations[4 * i + WHICH + 1]);
        // With c = 1 a lane has none: 0·y would change signs of zeros.
        let some = s.equal(Vector::splat(simd, R::ZERO)).not();
        for (r, x) in carried.iter_mut().enumerate() {
            let y = Vector::from_reg(simd, rows[r * n + i + 1]);
            rows[r * n + i] = (*x * c).add_mul_in(some, s, y).reg();
            *x = (c * y).sub_mul_in(some, s, *x);
        }
    }
    for (r, x) in carried.iter().enumerate() {
        rows[r * n + last] = x.reg();
    }
}
