//! Eigenvectors of a small pair in Schur form in each lane, by substitution, as `eigenvectors` has them for one pair.
//!
//! Those of one eigenvalue are computed in all lanes at once, and so is one of their elements: where a lane has a block
//! of order 2, its lower element waits for the upper one.

use lapax_core::{Items, ItemsMut, Real as _, Scalar as _};
use lapax_cpu_macros::apart;
use num_complex::Complex;
use pulp::Simd;

use crate::lanes::pack::Shape;
use crate::lanes::pack_double::{pack_as, unpack_as};
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::complex::ComplexVector;
use crate::simd::scalar::nan;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Mask, Reg, Vector};
use crate::{Scalar, Side};

/// The vectors of a group of row-major pairs that multiply S from this side, which is Xᴴ·S or S·X.
pub(crate) struct Eigenvectors {
    pub(crate) n: usize,
    pub(crate) side: Side,
}

/// What one thread reuses.
pub(crate) struct Scratch<D: Scalar> {
    /// S and T by rows, and the vectors.
    tiles: [Tile<D::Real>; 2],
    x: Tile<D::Real>,
    /// A group's matrices in the lanes' precision, where that is not their own.
    wide: Vec<D>,
    wide_vectors: Vec<Complex<f64>>,
}

pub(crate) type Operands<'a, T> =
    (Items<'a, T>, Items<'a, T>, ItemsMut<'a, <T as lapax_core::Scalar>::Complex>);

impl<T: Scalar, D: Scalar<Real = f64>> Kernel<D, Operands<'_, T>> for Eigenvectors {
    type Scratch = Scratch<D>;

    fn scratch(&self, lanes: usize) -> Scratch<D> {
        let size = self.n * self.n;
        Scratch {
            tiles: std::array::from_fn(|_| Tile::new::<D>(size, lanes)),
            x: Tile::new::<Complex<f64>>(size, lanes),
            wide: Vec::new(),
            wide_vectors: Vec::new(),
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Scratch<D>,
        (s, t, out): Operands<'_, T>,
        count: usize,
    ) {
        type Wide<S> = ComplexVector<S, f64>;
        let Self { n, side } = *self;
        let parts = <D::Lane<S> as Lane<S>>::PARTS;
        let Scratch { tiles, x, wide, wide_vectors } = scratch;
        let mut tiles = tiles.each_mut().map(|tile| &mut tile.registers::<S>()[..n * n * parts]);
        let x = &mut x.registers::<S>()[..n * n * 2];
        let straight = Shape { m: n, n, order: Layout::Columns };
        let zero = Vector::<S, f64>::splat(simd, 0.0);
        let mut failed = zero.less(zero);
        for (tile, from) in tiles.iter_mut().zip([s.data(), t.data()]) {
            pack_as::<S, T, D>(simd, from, count, straight, wide, tile);
            let mut extent = Extent::<S, D::Lane<S>>::new(simd);
            for x in tile.chunks_exact(parts) {
                extent.add(Lane::<S>::load(simd, x, 0));
            }
            let scaling = extent.scaling_to_one(simd);
            failed = failed.or(scaling.failed);
            let _ = scaling.apply(simd, tile);
            if side == Side::Left {
                flip(tile, n, parts);
            }
        }
        let [s, t] = &tiles;
        vectors::<S, D::Lane<S>, Wide<S>>(simd, s, t, n, x);
        if side == Side::Left {
            // The reverse of what belongs to the flipped pair; of a real one that has conjugates in each other's place.
            reverse(x, 2);
            if parts == 2 {
                for x in x.chunks_exact_mut(2) {
                    Wide::load(simd, x, 0).conj().store(x, 0);
                }
            }
        }
        if failed.any() {
            let nothing = Wide::splat(simd, nan());
            for x in x.chunks_exact_mut(2) {
                Wide::choose(failed, nothing, Wide::load(simd, x, 0)).store(x, 0);
            }
        }
        let by_rows = Shape { m: n, n, order: Layout::Rows };
        unpack_as(simd, x, count, by_rows, wide_vectors, out.into_data());
    }
}

/// A[i, j] ← A[n − 1 − j, n − 1 − i], for numbers of so many registers: what multiplied from the left does so from the
/// right, in reverse.
#[inline(always)]
fn flip<G: Copy>(a: &mut [G], n: usize, parts: usize) {
    for i in 0..n {
        for j in 0..n - 1 - i {
            let (from, to) = (i * n + j, (n - 1 - j) * n + n - 1 - i);
            for part in 0..parts {
                a.swap(from * parts + part, to * parts + part);
            }
        }
    }
}

/// The numbers of so many registers in reverse.
#[inline(always)]
fn reverse<G: Copy>(a: &mut [G], parts: usize) {
    let count = a.len() / parts;
    for from in 0..count / 2 {
        for part in 0..parts {
            a.swap(from * parts + part, (count - 1 - from) * parts + part);
        }
    }
}

/// The vectors of all eigenvalues, one after another: the largest |re| + |im| of each is 1.
#[apart]
fn vectors<S: Simd, X: Lane<S>, C: Lane<S, Real = X::Real>>(
    simd: S,
    s: &[Reg<S, X>],
    t: &[Reg<S, X>],
    n: usize,
    x: &mut [Reg<S, X>],
) {
    let form = Form::<S, X> { n, s, t };
    for k in 0..n {
        form.vector::<C>(simd, k, x);
    }
}

/// A pair in Schur form, by rows.
#[derive(Clone, Copy)]
struct Form<'a, S: Simd, X: Lane<S>> {
    n: usize,
    s: &'a [Reg<S, X>],
    t: &'a [Reg<S, X>],
}

/// β·S − α·T for one eigenvalue.
struct System<'a, S: Simd, X: Lane<S>, C> {
    form: Form<'a, S, X>,
    alpha: C,
    beta: Vector<S, X::Real>,
}

type Block<C> = [[C; 2]; 2];

impl<'a, S: Simd, X: Lane<S>> Form<'a, S, X> {
    #[inline(always)]
    fn s(&self, simd: S, i: usize, j: usize) -> X {
        X::load(simd, self.s, i * self.n + j)
    }

    #[inline(always)]
    fn t(&self, simd: S, i: usize, j: usize) -> X {
        X::load(simd, self.t, i * self.n + j)
    }

    /// The lanes with a block of order 2 in rows i and i + 1.
    #[inline(always)]
    fn pair(&self, simd: S, i: usize) -> Mask<S, X::Real> {
        let zero = Vector::splat(simd, X::Real::ZERO);
        if X::PARTS == 1 && i + 1 < self.n {
            self.s(simd, i + 1, i).re().equal(zero).not()
        } else {
            zero.less(zero)
        }
    }

    /// The lanes with a block of order 2 that ends in row i.
    #[inline(always)]
    fn pair_before(&self, simd: S, i: usize) -> Mask<S, X::Real> {
        self.pair(simd, if i == 0 { self.n } else { i - 1 })
    }

    /// The vector of eigenvalue k, after those before it.
    #[inline(always)]
    fn vector<C: Lane<S, Real = X::Real>>(&self, simd: S, k: usize, x: &mut [Reg<S, X>]) {
        let n = self.n;
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one) = (splat(X::Real::ZERO), splat(X::Real::ONE));
        let limit = splat(X::Real::MAX.sqrt());
        let (before, x) = x.split_at_mut(k * n * 2);
        let x = &mut x[..n * 2];
        x.fill(zero.reg());
        let first = self.pair(simd, k);
        let system = self.system::<C>(simd, k, first);
        let end = if X::PARTS == 1 { (k + 2).min(n) } else { k + 1 };
        C::from_real(one).store(x, k);
        if first.any() {
            for (i, start) in system.start(simd, k).into_iter().enumerate() {
                C::choose(first, start, C::load(simd, x, k + i)).store(x, k + i);
            }
        }
        let mut below = C::from_real(zero);
        for i in (0..k).rev() {
            let b = system.known(simd, i, end, x);
            let mut value = b * pivot(simd, system.element(simd, i, i)).reciprocal();
            let mut size = value.abs1();
            let closes = self.pair(simd, i);
            if closes.any() {
                let [upper, lower] = solve(simd, system.block(simd, i), [b, below]);
                value = C::choose(closes, upper, value);
                C::choose(closes, lower, C::load(simd, x, i + 1)).store(x, i + 1);
                size = Vector::choose(closes, upper.abs1().max(lower.abs1()), size);
            }
            let waits = self.pair_before(simd, i);
            C::choose(waits, C::from_real(zero), value).store(x, i);
            below = b;
            let grown = limit.less(size).and(waits.not());
            if grown.any() {
                let factor = one / Vector::choose(grown, size, one);
                for x in x[i * 2..end * 2].chunks_exact_mut(2) {
                    C::load(simd, x, 0).scale(factor).store(x, 0);
                }
            }
        }
        let mut size = zero;
        for x in x[..end * 2].chunks_exact(2) {
            size = C::load(simd, x, 0).abs1().max(size);
        }
        let second = self.pair_before(simd, k);
        for (i, x) in x[..end * 2].chunks_exact_mut(2).enumerate() {
            let unit = C::load(simd, x, 0);
            let mut unit = C::from_parts(unit.re() / size, unit.im() / size);
            if second.any() {
                // The vector of the eigenvalue before.
                let other = C::load(simd, &before[before.len() - n * 2..], i).conj();
                unit = C::choose(second, other, unit);
            }
            unit.store(x, 0);
        }
    }

    /// The one of eigenvalue k, the first of a conjugate pair in some lanes; the larger of |α| and β is about 1.
    #[inline(always)]
    fn system<C: Lane<S, Real = X::Real>>(
        &self,
        simd: S,
        k: usize,
        first: Mask<S, X::Real>,
    ) -> System<'a, S, X, C> {
        let splat = |x| Vector::<S, X::Real>::splat(simd, x);
        let (zero, one, half) =
            (splat(X::Real::ZERO), splat(X::Real::ONE), splat(X::Real::from_f64(0.5)));
        let s = self.s(simd, k, k);
        let (mut alpha, mut beta) = (C::from_parts(s.re(), s.im()), self.t(simd, k, k).re());
        if first.any() {
            let l = k + 1;
            let (s11, s12) = (self.s(simd, k, k).re(), self.s(simd, k, l).re());
            let (s21, s22) = (self.s(simd, l, k).re(), self.s(simd, l, l).re());
            let size = s11.abs().max(s12.abs()).max(s21.abs().max(s22.abs()));
            let scale = one / Vector::choose(size.equal(zero), one, size);
            let (s11, s12, s21, s22) = (s11 * scale, s12 * scale, s21 * scale, s22 * scale);
            let some = beta.equal(zero).not();
            let b = self.t(simd, l, l).re() / Vector::choose(some, beta, one);
            // See the blocks of `generalised_schur::pair`: the product of both β is b.
            let (m, p) = ((b * s11 + s22) * half, (b * s11 - s22) * half);
            let square = (s12 * s21 * b).add_mul(p, p);
            let r = Vector::choose(square.less(zero), -square, zero).sqrt();
            alpha = C::choose(first, C::from_parts(m * size, r * size), alpha);
            beta = Vector::choose(first, b * beta, beta);
        }
        let size = alpha.abs1().max(beta);
        let size = Vector::choose(size.equal(zero), one, size);
        alpha = C::from_parts(alpha.re() / size, alpha.im() / size);
        System { form: *self, alpha, beta: beta / size }
    }
}

impl<S: Simd, X: Lane<S>, C: Lane<S, Real = X::Real>> System<'_, S, X, C> {
    #[inline(always)]
    fn element(&self, simd: S, i: usize, j: usize) -> C {
        let s = self.form.s(simd, i, j).scale(self.beta);
        C::from_parts(s.re(), s.im()) - times::<S, X, C>(self.form.t(simd, i, j), self.alpha)
    }

    /// The diagonal block of rows k and k + 1.
    #[inline(always)]
    fn block(&self, simd: S, k: usize) -> Block<C> {
        let l = k + 1;
        [
            [self.element(simd, k, k), self.element(simd, k, l)],
            [self.element(simd, l, k), self.element(simd, l, l)],
        ]
    }

    /// The part of x in the eigenvalue's own block B is that with B·x = 0.
    #[inline(always)]
    fn start(&self, simd: S, k: usize) -> [C; 2] {
        let [[a, b], [c, d]] = self.block(simd, k);
        let upper = (c.abs1() + d.abs1()).less(a.abs1() + b.abs1());
        [C::choose(upper, -b, -d), C::choose(upper, a, c)]
    }

    /// Row i's right-hand side, from the elements of x behind it, and before `end`.
    #[inline(always)]
    fn known(&self, simd: S, i: usize, end: usize, x: &[Reg<S, C>]) -> C {
        let nothing = C::from_real(Vector::splat(simd, X::Real::ZERO));
        let (mut of_s, mut of_t) = (nothing, nothing);
        for j in i + 1..end {
            let x = C::load(simd, x, j);
            of_s = add_times(of_s, self.form.s(simd, i, j), x);
            of_t = add_times(of_t, self.form.t(simd, i, j), x);
        }
        self.alpha * of_t - of_s.scale(self.beta)
    }
}

/// a·x.
#[inline(always)]
fn times<S: Simd, X: Lane<S>, C: Lane<S, Real = X::Real>>(a: X, x: C) -> C {
    if X::PARTS == 1 { x.scale(a.re()) } else { C::from_parts(a.re(), a.im()) * x }
}

/// sum + a·x.
#[inline(always)]
fn add_times<S: Simd, X: Lane<S>, C: Lane<S, Real = X::Real>>(sum: C, a: X, x: C) -> C {
    if X::PARTS == 1 {
        let a = a.re();
        C::from_parts(sum.re().add_mul(a, x.re()), sum.im().add_mul(a, x.im()))
    } else {
        sum.add_mul(C::from_parts(a.re(), a.im()), x)
    }
}

/// The number, or what it is replaced by where it is nothing beside S and T.
#[inline(always)]
fn pivot<S: Simd, C: Lane<S>>(simd: S, x: C) -> C {
    let smallest = Vector::splat(simd, C::Real::EPSILON + C::Real::EPSILON);
    C::choose(smallest.less_or_equal(x.abs1()), x, C::from_real(smallest))
}

/// x of a·x = b, by elimination with the largest element as the pivot.
#[inline(always)]
fn solve<S: Simd, C: Lane<S>>(simd: S, [[a, b], [c, d]]: Block<C>, [e, f]: [C; 2]) -> [C; 2] {
    let largest = a.abs1().max(b.abs1());
    let row = largest.less(c.abs1()).or(largest.less(d.abs1()));
    let upper = row.not().and(a.abs1().less(b.abs1()));
    let column = row.and(c.abs1().less(d.abs1())).or(upper);
    let ([a, b], [c, d]) = (exchanged(column, [a, b]), exchanged(column, [c, d]));
    let ([a, c], [b, d], [e, f]) =
        (exchanged(row, [a, c]), exchanged(row, [b, d]), exchanged(row, [e, f]));
    let head = pivot(simd, a).reciprocal();
    let factor = c * head;
    let tail = pivot(simd, d.sub_mul(factor, b)).reciprocal();
    let second = f.sub_mul(factor, e) * tail;
    exchanged(column, [e.sub_mul(b, second) * head, second])
}

/// [y, x] in some lanes, [x, y] in others.
#[inline(always)]
fn exchanged<S: Simd, C: Lane<S>>(lanes: Mask<S, C::Real>, [x, y]: [C; 2]) -> [C; 2] {
    [C::choose(lanes, y, x), C::choose(lanes, x, y)]
}
