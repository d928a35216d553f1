//! Plane rotations of real columns, in the sequences that implicit QR steps make.

use lapax_core::{Real, Scalar};
use pulp::{Simd, WithSimd};

/// [x y] ← [x y]·[c −s; s c]: x ← c·x + s·y and y ← c·y − s·x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation<R> {
    pub(crate) c: R,
    pub(crate) s: R,
}

/// The rotation with c·f + s·g = r and c·g − s·f = 0, and r.
#[inline(always)]
pub(crate) fn rotation_of<R: Real>(f: R, g: R) -> (Rotation<R>, R) {
    if g == R::ZERO {
        return (Rotation { c: R::ONE, s: R::ZERO }, f);
    }
    let square = f * f + g * g;
    let safe = square >= R::SAFE_MIN / R::EPSILON && square <= R::MAX * R::EPSILON;
    if safe {
        let r = square.sqrt();
        return (Rotation { c: f / r, s: g / r }, r);
    }
    // Of denormal numbers r has few digits, and c and s would be those of no rotation.
    let tiny = square < R::ONE;
    let (f, g) = if tiny { (f / R::SAFE_MIN, g / R::SAFE_MIN) } else { (f, g) };
    let r = f.hypot(g);
    (Rotation { c: f / r, s: g / r }, if tiny { r * R::SAFE_MIN } else { r })
}

/// Which of two neighbouring columns a rotation calls x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The one with the smaller index.
    Forward,
    /// The one with the larger index.
    Backward,
}

/// Rotates columns `column` and `column` + 1 of a matrix with `rows` rows.
#[inline(always)]
pub(crate) fn rotate<S: Simd, R: Real>(
    rotation: Rotation<R>,
    z: &mut [R],
    rows: usize,
    column: usize,
    order: Direction,
) {
    let (first, second) = z[column * rows..(column + 2) * rows].split_at_mut(rows);
    let (x, y) = if order == Direction::Forward { (first, second) } else { (second, first) };
    rotate_columns::<S, R>(rotation, x, y);
}

#[inline(always)]
fn rotate_columns<S: Simd, R: Real>(Rotation { c, s }: Rotation<R>, x: &mut [R], y: &mut [R]) {
    for (x, y) in x.iter_mut().zip(y) {
        let (old_x, old_y) = (*x, *y);
        *x = sum::<S, R>(c * old_x, s, old_y);
        *y = sum::<S, R>(c * old_y, -s, old_x);
    }
}

/// Rotates any two columns.
pub(crate) struct RotateColumns<'a, R> {
    pub(crate) rotation: Rotation<R>,
    pub(crate) x: &'a mut [R],
    pub(crate) y: &'a mut [R],
}

impl<R: Real> WithSimd for RotateColumns<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        rotate_columns::<S, R>(self.rotation, self.x, self.y);
    }
}

/// a + b·c; fused where S has vectors, because those processors fuse.
#[inline(always)]
fn sum<S: Simd, R: Real>(a: R, b: R, c: R) -> R {
    if S::IS_SCALAR { a + b * c } else { a.fused_add(b, c) }
}

/// Swaps two columns of a matrix with `rows` rows.
pub(crate) fn swap_columns<T>(z: &mut [T], rows: usize, i: usize, j: usize) {
    if i != j {
        let (head, tail) = z.split_at_mut(i.max(j) * rows);
        head[i.min(j) * rows..][..rows].swap_with_slice(&mut tail[..rows]);
    }
}

/// The identity in the columns of a square matrix.
pub(crate) fn set_identity<T: Scalar>(z: &mut [T], n: usize) {
    z.fill(T::ZERO);
    z.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
}
