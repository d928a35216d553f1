//! Eigenvalues and eigenvectors of a diagonal matrix plus one of rank one, D + ρ·z·zᵀ; and singular
//! values and vectors of D with a row w added where D is zero, by the eigenvalues of D² + w·wᵀ.
//!
//! The eigenvalues are the roots of f(λ) = 1/ρ + Σ z²/(d − λ), one after each d. A root is found by
//! interpolating the sums over the poles on its left and on its right, each by one pole and a constant
//! ("the middle way" of R.-C. Li, LAPACK working note 89, 1993), as its distance from the nearer pole, so
//! that all d − λ have full relative precision. The eigenvectors are those of the matrix that has the
//! computed roots as eigenvalues exactly, which makes them orthogonal whatever their distance (Gu and
//! Eisenstat, "A stable and efficient algorithm for the rank-one modification of the symmetric
//! eigenproblem", SIAM J. Matrix Anal. Appl. 15, 1994, and for singular values "A divide-and-conquer
//! algorithm for the bidiagonal SVD", SIAM J. Matrix Anal. Appl. 16, 1995).

use lapax_core::Real;
use lapax_cpu_macros::apart;
use pulp::{Simd, WithSimd};

use crate::Scalar;
use crate::blas::householder::dot;
use crate::simd::loops::sub_mul;

/// Elements that go together: two registers of AVX-512 in double precision.
const PARTS: usize = 16;
/// Steps after which a root is given up; three to five are usual.
const STEPS: usize = 60;

/// The matrix D + ρ·z·zᵀ, or D² + ρ·z·zᵀ where it is `SQUARED`; ρ > 0, and z has no zero and length 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secular<'a, R, const SQUARED: bool> {
    /// The diagonal of D, in any order.
    pub(crate) d: &'a [R],
    /// The squares of z.
    pub(crate) squares: &'a [R],
    /// The numbers of the elements of d, which ascends strictly in this order.
    pub(crate) order: &'a [usize],
    pub(crate) rho: R,
}

/// Finds some roots, and what the d differ from each.
pub(crate) struct Roots<'a, R, const SQUARED: bool> {
    pub(crate) secular: Secular<'a, R, SQUARED>,
    /// The number of the first root.
    pub(crate) first: usize,
    /// The roots λ, or where D is squared their square roots.
    pub(crate) roots: &'a mut [R],
    /// A column for each root: d − λ, or d² − λ.
    pub(crate) differences: &'a mut [R],
}

impl<R: Real + Scalar, const SQUARED: bool> WithSimd for Roots<'_, R, SQUARED> {
    /// Whether all were found.
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { secular, first, roots, differences } = self;
        let columns = differences.chunks_exact_mut(secular.d.len());
        (first..).zip(roots).zip(columns).all(|((at, root), differences)| {
            let Some(Root { origin, distance }) = find(simd, secular, at) else { return false };
            *root = if SQUARED {
                let root = (origin * origin + distance).sqrt();
                origin + distance / (origin + root)
            } else {
                origin + distance
            };
            for (to, &d) in differences.iter_mut().zip(secular.d) {
                *to = difference::<R, SQUARED>(d, origin) - distance;
            }
            true
        })
    }
}

/// x − y, or x² − y², as accurate as x and y are.
#[inline(always)]
fn difference<R: Real, const SQUARED: bool>(x: R, y: R) -> R {
    if SQUARED { (x - y) * (x + y) } else { x - y }
}

/// A root as its distance from a pole: from d, or from d².
#[derive(Clone, Copy, Debug)]
struct Root<R> {
    origin: R,
    distance: R,
}

/// Σ z²/(d − λ) and Σ z²/(d − λ)² over poles.
#[derive(Clone, Copy, Debug)]
struct Sums<R> {
    value: R,
    slope: R,
}

/// f and what it consists of, at one place.
#[derive(Clone, Copy, Debug)]
struct Value<R> {
    f: R,
    left: Sums<R>,
    right: Sums<R>,
}

/// The sums over the poles on the left of λ, whose terms are negative, and over those on the right; λ is
/// `distance` away from the pole of `origin`.
#[apart]
fn sums<S: Simd, R: Real + Scalar, const SQUARED: bool>(
    _: S,
    d: &[R],
    squares: &[R],
    origin: R,
    distance: R,
) -> (Sums<R>, Sums<R>) {
    let zero = R::ZERO;
    // Values that are negative and their slopes, and those of the others.
    let mut parts = [[zero; PARTS]; 4];
    let mut add = |part: usize, d: R, square: R| {
        let reciprocal = R::ONE / (difference::<R, SQUARED>(d, origin) - distance);
        let value = square * reciprocal;
        let slope = value * reciprocal;
        let is_left = value < zero;
        parts[0][part] += if is_left { value } else { zero };
        parts[1][part] += if is_left { slope } else { zero };
        parts[2][part] += if is_left { zero } else { value };
        parts[3][part] += if is_left { zero } else { slope };
    };
    let (d_parts, d_rest) = d.as_chunks::<PARTS>();
    let (z_parts, z_rest) = squares.as_chunks::<PARTS>();
    for (d, z) in d_parts.iter().zip(z_parts) {
        for part in 0..PARTS {
            add(part, d[part], z[part]);
        }
    }
    for (part, (&d, &z)) in d_rest.iter().zip(z_rest).enumerate() {
        add(part, d, z);
    }
    let mut count = PARTS;
    while count > 1 {
        count /= 2;
        for parts in &mut parts {
            for part in 0..count {
                parts[part] += parts[part + count];
            }
        }
    }
    let [left, left_slope, right, right_slope] = parts.map(|parts| parts[0]);
    (Sums { value: left, slope: left_slope }, Sums { value: right, slope: right_slope })
}

impl<R: Real + Scalar, const SQUARED: bool> Secular<'_, R, SQUARED> {
    /// f at a distance from a pole. Where λ is on the right of all poles, the one of number `last` counts
    /// as right.
    #[inline(always)]
    fn at<S: Simd>(&self, simd: S, origin: R, distance: R, last: Option<usize>) -> Value<R> {
        let (d, z) = (self.d, self.squares);
        let (mut left, mut right) = sums::<S, R, SQUARED>(simd, d, z, origin, distance);
        if let Some(last) = last {
            let reciprocal = R::ONE / (difference::<R, SQUARED>(d[last], origin) - distance);
            let value = z[last] * reciprocal;
            right = Sums { value, slope: value * reciprocal };
            // Not by subtraction, since it may be nearly all of the sum.
            (left, _) = sums::<S, R, SQUARED>(simd, &d[..last], &z[..last], origin, distance);
            let (rest, _) =
                sums::<S, R, SQUARED>(simd, &d[last + 1..], &z[last + 1..], origin, distance);
            left = Sums { value: left.value + rest.value, slope: left.slope + rest.slope };
        }
        Value { f: R::ONE / self.rho + left.value + right.value, left, right }
    }

    /// What f may be where λ is as good as it gets: what rounding does to the sums, and to λ.
    #[inline(always)]
    fn noise(&self, value: &Value<R>, distance: R) -> R {
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let terms = R::from_f64((self.d.len() / PARTS + 8) as f64);
        let sizes = value.left.value.abs() + value.right.value.abs() + R::ONE / self.rho;
        let slope = value.left.slope + value.right.slope;
        R::EPSILON * (terms * sizes + distance.abs() * slope)
    }
}

/// The root x of c·x² − a·x + b that changes from b/a as c grows from zero; the other one.
#[inline(always)]
fn quadratic<R: Real>(a: R, b: R, c: R) -> (R, R) {
    let two = R::ONE + R::ONE;
    let discriminant = (a * a - two * two * b * c).abs().sqrt();
    if a <= R::ZERO {
        ((a - discriminant) / (two * c), two * b / (a - discriminant))
    } else {
        (two * b / (a + discriminant), (a + discriminant) / (two * c))
    }
}

/// Root `at`, which lies between the pole of that number and the next, or behind the last.
#[inline(always)]
fn find<S: Simd, R: Real + Scalar, const SQUARED: bool>(
    simd: S,
    secular: Secular<'_, R, SQUARED>,
    at: usize,
) -> Option<Root<R>> {
    let Secular { d, squares: z, order, rho } = secular;
    let half = R::from_f64(0.5);
    if let [only] = order {
        return Some(Root { origin: d[*only], distance: rho * z[*only] });
    }
    let is_last = at + 1 == order.len();
    // The poles that f is interpolated by, and how far the root may be from the first one.
    let near = order[at];
    let far = if is_last { order[at - 1] } else { order[at + 1] };
    let between_poles = difference::<R, SQUARED>(d[far], d[near]);
    let gap = if is_last { rho } else { between_poles };
    let last = is_last.then_some(near);
    let middle = secular.at(simd, d[near], gap * half, last);
    let on_left = middle.f >= R::ZERO;
    let origin = d[if is_last || on_left { near } else { far }];
    let (mut low, mut high) = match (on_left, is_last) {
        (true, _) => (R::ZERO, gap * half),
        (false, true) => (gap * half, gap * (R::ONE + R::from_f64(8.0) * R::EPSILON)),
        (false, false) => (-gap * half, R::ZERO),
    };
    let [to_near, to_far] = [near, far].map(|at| difference::<R, SQUARED>(d[at], origin));
    // The root, where the sum over the other poles is what it is in the middle.
    let mut distance = {
        let others = middle.f + z[near] / (gap * half) - z[far] / (between_poles - gap * half);
        // others + z(near)/(near − x) + z(far)/(far − x) = 0.
        let a = others * (to_near + to_far) + z[near] + z[far];
        let b = others * to_near * to_far + z[near] * to_far + z[far] * to_near;
        let (small, large) = quadratic(a, b, others);
        if is_last { large } else { small }
    };
    let mut before = R::MAX;
    for _ in 0..STEPS {
        if !(distance > low && distance < high) {
            distance = between(low, high);
        }
        let value = secular.at(simd, origin, distance, last);
        if !value.f.finite() {
            return None;
        }
        if value.f.abs() <= secular.noise(&value, distance) {
            return Some(Root { origin, distance });
        }
        if value.f <= R::ZERO {
            low = distance;
        } else {
            high = distance;
        }
        let middle = low + (high - low) * half;
        if !(middle > low && middle < high) {
            // There is nothing between them.
            return Some(Root { origin, distance });
        }
        let slow = value.f.abs() > before * half;
        before = if slow { R::MAX } else { value.f.abs() };
        if slow {
            distance = between(low, high);
            continue;
        }
        let (left, right) = if is_last { (to_far, to_near) } else { (to_near, to_far) };
        let (left, right) = (left - distance, right - distance);
        let slope = value.left.slope + value.right.slope;
        let c = value.f - left * value.left.slope - right * value.right.slope;
        let a = (left + right) * value.f - left * right * slope;
        let (small, large) = quadratic(a, left * right * value.f, c);
        let step = if is_last { large } else { small };
        // Towards the root, or Newton's.
        distance += if value.f * step < R::ZERO { step } else { -value.f / slope };
    }
    None
}

/// A place well inside of an interval, whose ends may be of different orders of magnitude.
#[inline(always)]
fn between<R: Real>(low: R, high: R) -> R {
    let half = R::from_f64(0.5);
    let (x, y) = (low.abs(), high.abs());
    let (small, large) = if x < y { (x, y) } else { (y, x) };
    if small == R::ZERO || large <= R::from_f64(8.0) * small {
        // A root that is still nearer to the pole comes closer by more and more.
        return if small == R::ZERO {
            (low + high) * R::from_f64(1.0 / 64.0)
        } else {
            (low + high) * half
        };
    }
    (small.sqrt() * large.sqrt()) * if high > R::ZERO { R::ONE } else { -R::ONE }
}

/// Makes some elements of the √ρ·z of which the computed roots are exact.
pub(crate) struct Weights<'a, R, const SQUARED: bool> {
    pub(crate) secular: Secular<'a, R, SQUARED>,
    pub(crate) differences: &'a [R],
    /// The number of the first element.
    pub(crate) first: usize,
    /// In: elements of z. Out: what they are replaced by.
    pub(crate) z: &'a mut [R],
    pub(crate) products: &'a mut [R],
}

impl<R: Real + Scalar, const SQUARED: bool> WithSimd for Weights<'_, R, SQUARED> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { secular: Secular { d, order, .. }, differences, first, z, products } = self;
        let rows = first..first + z.len();
        products.fill(R::ONE);
        for (&at, column) in order.iter().zip(differences.chunks_exact(d.len())) {
            let (pole, column) = (d[at], &column[rows.clone()]);
            let own = rows.contains(&at).then(|| (at - first, products[at - first]));
            for ((product, &d), &to_root) in products.iter_mut().zip(&d[rows.clone()]).zip(column) {
                *product *= to_root / difference::<R, SQUARED>(d, pole);
            }
            if let Some((at, product)) = own {
                // There it was divided by zero.
                products[at] = product * column[at];
            }
        }
        for (z, &product) in z.iter_mut().zip(&*products) {
            // Not positive, but for rounding.
            let size = if product < R::ZERO { (-product).sqrt() } else { R::ZERO };
            *z = if *z < R::ZERO { -size } else { size };
        }
    }
}

/// Turns differences into unit eigenvectors.
pub(crate) struct Eigenvectors<'a, R> {
    pub(crate) z: &'a [R],
    pub(crate) differences: &'a mut [R],
}

impl<R: Real + Scalar> WithSimd for Eigenvectors<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { z, differences } = self;
        let (z_parts, z_rest) = z.as_chunks::<PARTS>();
        for vector in differences.chunks_exact_mut(z.len()) {
            let mut sums = [R::ZERO; PARTS];
            let (parts, rest) = vector.as_chunks_mut::<PARTS>();
            for (z, x) in z_parts.iter().zip(parts) {
                for part in 0..PARTS {
                    x[part] = z[part] / x[part];
                    sums[part] = sub_mul::<S, R>(sums[part], -x[part], x[part]);
                }
            }
            for ((sum, &z), x) in sums.iter_mut().zip(z_rest).zip(rest) {
                *x = z / *x;
                *sum = sub_mul::<S, R>(*sum, -*x, *x);
            }
            let square = sums.iter().fold(R::ZERO, |sum, &part| sum + part);
            let factor = R::ONE / square.sqrt();
            vector.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

/// Turns unit right singular vectors of D with a row w added where D is zero into the left ones.
pub(crate) struct LeftVectors<'a, R> {
    pub(crate) d: &'a [R],
    /// Where D is zero, and the element of w there.
    pub(crate) zero: usize,
    pub(crate) weight: R,
    /// The singular values of these vectors.
    pub(crate) values: &'a [R],
    pub(crate) vectors: &'a mut [R],
}

impl<R: Real + Scalar> WithSimd for LeftVectors<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { d, zero, weight, values, vectors } = self;
        for (vector, &value) in vectors.chunks_exact_mut(d.len()).zip(values) {
            // There the right vector is w/(0 − σ²), and w times the vector is −1, before they are scaled.
            let at_zero = vector[zero] * (value / weight) * value;
            vector.iter_mut().zip(d).for_each(|(x, &d)| *x *= d);
            vector[zero] = at_zero;
            let factor = R::ONE / dot::<S, R>(vector, vector).sqrt();
            vector.iter_mut().for_each(|x| *x *= factor);
        }
    }
}
