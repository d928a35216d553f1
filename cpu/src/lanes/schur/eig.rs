//! The Schur form of a small balanced matrix in each lane, from which eigenvectors are computed one
//! matrix at a time.

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _};
use pulp::Simd;

use super::{form, isolated};
use crate::Scalar;
use crate::lanes::pack::{Shape, unpack};
use crate::lanes::pack_double::pack_as;
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::lane::{flags, numbers};
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Mask, Reg, Vector};

/// Decomposes a group in lanes of D, which is T or T in double precision.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    pub(crate) vectors: bool,
    /// Of the matrices.
    pub(crate) order: Layout,
    /// Makes what ends the work on one matrix after another.
    pub(crate) finish: F,
}

/// A balanced matrix A's Schur form: A/factor = D·Z·T·Zᴴ·D⁻¹.
pub(crate) struct Form<'a, D: Scalar> {
    pub(crate) t: &'a mut [D],
    /// Empty where vectors are not asked for; of T there are only the diagonal blocks then.
    pub(crate) z: &'a mut [D],
    /// D, powers of two.
    pub(crate) scale: &'a [D::Real],
    /// A power of two.
    pub(crate) factor: D::Real,
}

/// The results for one matrix: w, wi, and left and right eigenvectors.
pub(crate) type Results<'a, T> =
    ([&'a mut [T]; 2], [&'a mut [<T as lapax_core::Scalar>::Complex]; 2]);

/// What ends the work on a matrix.
pub(crate) trait Finish<T: Scalar, D: Scalar> {
    /// From its Schur form.
    fn finish(&mut self, form: Form<'_, D>, results: Results<'_, T>);
    /// From the matrix, which lanes leave aside; returns its `info`.
    fn single(&mut self, a: &[T], results: Results<'_, T>) -> i32;
}

/// What one thread reuses.
pub(crate) struct Scratch<D: Scalar, W> {
    a: Tile<D::Real>,
    z: Tile<D::Real>,
    tau: Tile<D::Real>,
    scale: Tile<D::Real>,
    wide: Vec<D>,
    /// T, Z and the scaling of each matrix of a group.
    t: Vec<D>,
    vectors: Vec<D>,
    scales: Vec<D::Real>,
    finish: W,
}

pub(crate) type Operands<'a, T> = (
    Items<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, T>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Complex>,
    ItemsMut<'a, <T as lapax_core::Scalar>::Complex>,
    ItemsMut<'a, i32>,
);

impl<T, D, W, F> Kernel<D, Operands<'_, T>> for Decompose<F>
where
    T: Scalar,
    D: Scalar,
    W: Finish<T, D>,
    F: Fn() -> W + Sync,
{
    type Scratch = Scratch<D, W>;

    fn scratch(&self, lanes: usize) -> Scratch<D, W> {
        let (n, size) = (self.n, self.n * self.n);
        Scratch {
            a: Tile::new::<D>(size, lanes),
            z: Tile::new::<D>(size, lanes),
            tau: Tile::new::<D>(n, lanes),
            scale: Tile::new::<D::Real>(n, lanes),
            wide: Vec::new(),
            t: vec![D::ZERO; size * lanes],
            vectors: vec![D::ZERO; if self.vectors { size * lanes } else { 0 }],
            scales: vec![D::Real::ZERO; n * lanes],
            finish: (self.finish)(),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<D, W>,
        (a, w, wi, left, right, info): Operands<'_, T>,
        count: usize,
    ) {
        let (n, size) = (self.n, self.n * self.n);
        let parts = <D::Lane<S> as Lane<S>>::PARTS;
        let tile = &mut scratch.a.registers::<S>()[..size * parts];
        let z = &mut scratch.z.registers::<S>()[..size * parts];
        let scale = &mut scratch.scale.registers::<S>()[..n];
        let given = Shape { m: n, n, order: self.order };
        pack_as::<S, T, D>(simd, a.data(), count, given, &mut scratch.wide, tile);
        let mut aside = isolated::<S, D::Lane<S>>(simd, tile, n);
        let mut extent = Extent::<S, D::Lane<S>>::new(simd);
        for x in tile.chunks_exact(parts) {
            extent.add(Lane::<S>::load(simd, x, 0));
        }
        let scaling = extent.scaling(simd);
        aside = aside.or(scaling.failed);
        let _ = scaling.apply(simd, tile);
        aside = aside.or(balance::<S, D::Lane<S>>(simd, tile, n, scale));
        let vectors = self.vectors.then_some(&mut *z);
        let taus = scratch.tau.registers::<S>();
        let failed = form::<S, D::Lane<S>>(simd, tile, n, vectors, taus, self.vectors);
        let aside = flags(simd, aside.or(failed));
        let factors = numbers(scaling.powers);
        let square = Shape { order: Layout::Columns, ..given };
        unpack(simd, tile, count, square, &mut scratch.t[..count * size]);
        if self.vectors {
            unpack(simd, z, count, square, &mut scratch.vectors[..count * size]);
        }
        let column = Shape { m: n, n: 1, order: Layout::Columns };
        unpack::<S, D::Real>(simd, scale, count, column, &mut scratch.scales[..count * n]);
        let (info, finish) = (info.into_data(), &mut scratch.finish);
        let (w, wi) = (w.into_data(), wi.into_data());
        let (left, right) = (left.into_data(), right.into_data());
        let imaginary = wi.len() / count;
        let (left_size, right_size) = (left.len() / count, right.len() / count);
        for b in 0..count {
            let results = (
                [&mut w[b * n..(b + 1) * n], &mut wi[b * imaginary..(b + 1) * imaginary]],
                [
                    &mut left[b * left_size..(b + 1) * left_size],
                    &mut right[b * right_size..(b + 1) * right_size],
                ],
            );
            info[b] = if aside[b] {
                finish.single(&a.data()[b * size..(b + 1) * size], results)
            } else {
                let vectors = if self.vectors { size } else { 0 };
                let form = Form {
                    t: &mut scratch.t[b * size..(b + 1) * size],
                    z: &mut scratch.vectors[b * vectors..(b + 1) * vectors],
                    scale: &scratch.scales[b * n..(b + 1) * n],
                    factor: factors[b],
                };
                finish.finish(form, results);
                0
            };
        }
    }
}

/// Brings the 2-norms of rows and columns together by powers of two, as `balance` does for single
/// matrices: A ← D⁻¹·A·D. Returns the lanes where the square of a norm vanishes.
#[inline(always)]
fn balance<S: Simd, X: Lane<S>>(
    simd: S,
    a: &mut [Reg<S, X>],
    n: usize,
    scale: &mut [Reg<S, Vector<S, X::Real>>],
) -> Mask<S, X::Real> {
    /// Passes over the rows; two or three are usual.
    const PASSES: usize = 50;
    let splat = |x| Vector::<S, X::Real>::splat(simd, x);
    let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
    let (two, half) = (splat(X::Real::from_f64(2.0)), splat(X::Real::from_f64(0.5)));
    let (four, quarter) = (splat(X::Real::from_f64(4.0)), splat(X::Real::from_f64(0.25)));
    let least_gain = splat(X::Real::from_f64(0.95));
    let (lowest, highest) = (splat(X::Real::SMALL), splat(X::Real::ONE / X::Real::SMALL));
    scale.fill(one.reg());
    let mut lost = zero.less(zero);
    for _ in 0..PASSES {
        let mut changed = zero.less(zero);
        for (i, scale) in scale.iter_mut().enumerate() {
            let (mut column, mut row) = (zero, zero);
            for j in 0..n {
                column = column + X::load(simd, a, i * n + j).norm_squared();
                row = row + X::load(simd, a, j * n + i).norm_squared();
            }
            // The factor, from the squares: c·f and r/f come together.
            let (mut f, mut c, mut r) = (one, column, row);
            let usable = zero.less(c).and(zero.less(r));
            lost = lost.or(usable.not());
            loop {
                let grow = usable.and(c.less(r * quarter)).and(f.less(highest));
                if !grow.any() {
                    break;
                }
                f = Vector::choose(grow, f * two, f);
                c = Vector::choose(grow, c * four, c);
                r = Vector::choose(grow, r * quarter, r);
            }
            loop {
                let shrink = usable.and(r.less_or_equal(c * quarter)).and(lowest.less(f));
                if !shrink.any() {
                    break;
                }
                f = Vector::choose(shrink, f * half, f);
                c = Vector::choose(shrink, c * quarter, c);
                r = Vector::choose(shrink, r * four, r);
            }
            let total = f * Vector::from_reg(simd, *scale);
            let gains = (c.sqrt() + r.sqrt()).less(least_gain * (column.sqrt() + row.sqrt()));
            let gains = gains.and(usable).and(lowest.less(total)).and(total.less(highest));
            if !gains.any() {
                continue;
            }
            changed = changed.or(gains);
            let f = Vector::choose(gains, f, one);
            *scale = (f * Vector::from_reg(simd, *scale)).reg();
            let reciprocal = one / f;
            for j in 0..n {
                X::load(simd, a, i * n + j).scale(f).store(a, i * n + j);
            }
            for j in 0..n {
                X::load(simd, a, j * n + i).scale(reciprocal).store(a, j * n + i);
            }
        }
        if !changed.any() {
            break;
        }
    }
    lost
}
