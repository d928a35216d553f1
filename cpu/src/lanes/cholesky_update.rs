//! The Cholesky factor after a rank-one change, one in each lane.

use lapax_core::{ItemsInOut, Scalar as _};
use pulp::Simd;

use super::pack::{Shape, pack, unpack};
use crate::Scalar;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::elementary;
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, MAX_LANES, Mask, Reg, Vector};

/// Updates a group of row-major upper triangles of order n.
pub(crate) struct Update {
    pub(crate) n: usize,
}

type Operands<'a, T> = (ItemsInOut<'a, T>, ItemsInOut<'a, T>);

impl<T: Scalar> Kernel<T, Operands<'_, T>> for Update {
    /// The triangles and the vectors.
    type Scratch = (Tile<T::Real>, Tile<T::Real>);

    fn scratch(&self, lanes: usize) -> Self::Scratch {
        (Tile::new::<T>(self.n * self.n, lanes), Tile::new::<T>(self.n, lanes))
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        (triangles, vectors): &mut Self::Scratch,
        (r, w): Operands<'_, T>,
        count: usize,
    ) {
        // In the order of memory: a row of a triangle is a column of the tile.
        let shape = |n| Shape { m: self.n, n, order: Layout::Columns };
        let (triangles, vectors) = (triangles.registers::<S>(), vectors.registers::<S>());
        let [r, w] = [r, w].map(ItemsInOut::into_in_out);
        pack(simd, r.src.unwrap_or(r.dst), count, shape(self.n), triangles);
        pack(simd, w.src.unwrap_or(w.dst), count, shape(1), vectors);
        update::<S, T::Lane<S>>(simd, triangles, vectors, self.n);
        unpack(simd, triangles, count, shape(self.n), r.dst);
        unpack(simd, vectors, count, shape(1), w.dst);
    }
}

/// R' in place of R, and zeros in place of w.
#[inline(always)]
fn update<S: Simd, X: Lane<S>>(simd: S, r: &mut [Reg<S, X>], w: &mut [Reg<S, X>], n: usize) {
    // The row that is appended to R is wᴴ; each rotation brings its next element to zero.
    let mut w = &mut w[..n * X::PARTS];
    for w in w.chunks_exact_mut(X::PARTS) {
        X::load(simd, w, 0).conj().store(w, 0);
    }
    for (j, row) in r[..n * n * X::PARTS].chunks_exact_mut(n * X::PARTS).enumerate() {
        let (diagonal, row) = row[j * X::PARTS..].split_at_mut(X::PARTS);
        let (head, tail) = w.split_at_mut(X::PARTS);
        let rotation = Rotation::new(simd, X::load(simd, diagonal, 0), X::load(simd, head, 0));
        rotation.diagonal.store(diagonal, 0);
        X::splat(simd, X::Scalar::ZERO).store(head, 0);
        for (x, v) in row.chunks_exact_mut(X::PARTS).zip(tail.chunks_exact_mut(X::PARTS)) {
            rotation.rotate(simd, x, v);
        }
        w = tail;
    }
}

/// The rotation [c s; -s̄ c] of each lane that makes a diagonal element of [f; g].
struct Rotation<S: Simd, X: Lane<S>> {
    c: Vector<S, X::Real>,
    s: X,
    diagonal: X,
    /// Where g is zero, nothing is rotated.
    idle: Mask<S, X::Real>,
}

impl<S: Simd, X: Lane<S>> Rotation<S, X> {
    /// As `rotation` in `update` chooses it, which serves lanes whose squares are not accurate.
    #[inline(always)]
    fn new(simd: S, f: X, g: X) -> Self {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let (low, high) = (splat(X::Real::LOW), splat(X::Real::HIGH));
        let (none, idle) = (f.abs1().equal(zero), g.abs1().equal(zero));
        let (f_square, square) = (f.norm_squared(), f.norm_squared() + g.norm_squared());
        let mut safe = low.less_or_equal(square).and(square.less_or_equal(high));
        if X::PARTS > 1 {
            safe = safe.and(low.less_or_equal(f_square).or(none));
        }
        let norm = square.sqrt();
        let (f_size, phase) = if X::PARTS == 1 {
            (f.abs1(), X::from_real(one.with_sign(f.re())))
        } else {
            let size = f_square.sqrt();
            (size, f.scale(one / size))
        };
        let phase = X::choose(none, X::from_real(one), phase);
        let reciprocal = one / norm;
        let mut c = f_size * reciprocal;
        let mut s = (phase * g.conj()).scale(reciprocal);
        let mut diagonal = phase.scale(norm);
        if !safe.or(idle).all() {
            let (other_c, other_s, other) = one_by_one(simd, f, g);
            c = Vector::choose(safe, c, other_c);
            s = X::choose(safe, s, other_s);
            diagonal = X::choose(safe, diagonal, other);
        }
        Self { c, s, diagonal: X::choose(idle, f, diagonal), idle }
    }

    /// [c s; -s̄ c]·[x; v].
    #[inline(always)]
    fn rotate(&self, simd: S, x: &mut [Reg<S, X>], v: &mut [Reg<S, X>]) {
        let (old_x, old_v) = (X::load(simd, x, 0), X::load(simd, v, 0));
        let new_x = old_x.scale(self.c).add_mul(self.s, old_v);
        let new_v = old_v.scale(self.c).sub_mul(self.s.conj(), old_x);
        X::choose(self.idle, old_x, new_x).store(x, 0);
        X::choose(self.idle, old_v, new_v).store(v, 0);
    }
}

/// The rotations of all lanes, the slow way.
#[inline(never)]
fn one_by_one<S: Simd, X: Lane<S>>(simd: S, f: X, g: X) -> (Vector<S, X::Real>, X, X) {
    let mut lanes = [[X::Scalar::ZERO; MAX_LANES]; 3];
    let [a, b, c] = &mut lanes;
    f.write(a);
    g.write(b);
    for ((a, b), c) in a.iter_mut().zip(b).zip(c).take(X::Real::lanes::<S>()) {
        let (cosine, sine, diagonal) = elementary::rotation(*a, *b);
        (*a, *b, *c) = (X::Scalar::from_real(cosine), sine, diagonal);
    }
    let [c, s, diagonal] = lanes.each_ref().map(|x| X::read(simd, x));
    (c.re(), s, diagonal)
}
