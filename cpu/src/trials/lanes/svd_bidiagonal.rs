//! Decompositions by way of bidiagonal matrices, whose values are found to high relative accuracy.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use lapax_core::{InOut, Items, ItemsMut, Scalar as _, Serial};
use pulp::Simd;

use super::{BATCHES, is_svd};
use crate::lanes::pack;
use crate::lanes::pack::Shape;
use crate::lanes::svd::dqds::{Dqds, ROW};
use crate::matrix::layout::Layout;
use crate::matrix::phase::Leading;
use crate::parallel::groups::Kernel;
use crate::simd::arch::Arch as Level;
use crate::simd::lane::flags;
use crate::simd::lane_real::LaneReal;
use crate::simd::tile::Tile;
use crate::simd::vector::Vector;
use crate::svd::gesdd;
use crate::svd::single::Svd;
use crate::testing::levels::random;
use crate::{Real, Scalar, SingularVectors};

for_each_scalar!(decompositions; bidiagonal);

/// The square roots of what [`Dqds`] finds, and whether it converged.
struct Values {
    n: usize,
}

impl<R: Scalar<Real = R> + LaneReal> Kernel<R, (Items<'_, R>, ItemsMut<'_, R>, ItemsMut<'_, i32>)>
    for Values
{
    type Scratch = [Tile<R>; 2];

    fn scratch(&self, lanes: usize) -> [Tile<R>; 2] {
        [2 * self.n, (ROW + 1) * self.n].map(|size| Tile::new::<R>(size, lanes))
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        [b, scratch]: &mut [Tile<R>; 2],
        (rows, s, info): (Items<'_, R>, ItemsMut<'_, R>, ItemsMut<'_, i32>),
        count: usize,
    ) {
        let n = self.n;
        let b = b.registers::<S>();
        let shape = Shape { m: 2 * n, n: 1, order: Layout::Columns };
        pack::pack(simd, rows.data(), count, shape, b);
        for x in &mut *b {
            let number = Vector::<S, R>::from_reg(simd, *x);
            *x = (number * number).reg();
        }
        let (q, e) = b[..2 * n].split_at_mut(n);
        let (next, shifts) = scratch.registers::<S>().split_at_mut(ROW * n);
        let failed = flags(simd, Dqds::<S, R> { q, e, next, shifts }.values(simd));
        for x in &mut *q {
            *x = Vector::<S, R>::from_reg(simd, *x).sqrt().reg();
        }
        let shape = Shape { m: n, n: 1, order: Layout::Columns };
        pack::unpack(simd, q, count, shape, s.into_data());
        for (info, failed) in info.into_data().iter_mut().zip(failed) {
            *info = i32::from(failed);
        }
    }
}

/// Diagonals d and e of bidiagonal matrices that are hard in one way each.
fn hard(n: usize) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let noise: Vec<f64> = random::<f64>(2 * n);
    let of = |f: &dyn Fn(i32) -> f64| (0..n).map(|i| f(i32::try_from(i).unwrap())).collect();
    let (ones, last): (Vec<f64>, i32) = (vec![1.0; n], i32::try_from(n - 1).unwrap());
    let near = |i: i32| noise[usize::try_from(i).unwrap()].abs() * 1e-7;
    vec![
        ("random", of(&|i| noise[usize::try_from(i).unwrap()]), noise[n..].to_vec()),
        ("falling", of(&|i| 0.3_f64.powi(i)), of(&|i| 0.3_f64.powi(i))),
        ("rising", of(&|i| 0.3_f64.powi(last - i)), of(&|i| 0.3_f64.powi(last - i))),
        ("falling fast", of(&|i| 0.01_f64.powi(i % 6)), of(&|i| 0.01_f64.powi(i % 6))),
        ("equal", ones.clone(), ones.clone()),
        ("clustered", of(&|i| 1.0 + near(i)), of(&near)),
        ("diagonal", of(&|i| f64::from(1 + i % 3)), vec![0.0; n]),
        ("split", ones.clone(), of(&|i| if i % 3 == 1 { 0.0 } else { 0.7 })),
        ("split below rounding", ones.clone(), of(&|i| if i % 4 == 1 { 1e-18 } else { 0.7 })),
        ("singular", of(&|i| if i % 5 == 2 { 0.0 } else { 1.0 }), ones.clone()),
        ("small in the middle", of(&|i| if i == 3 { 1e-7 } else { 1.0 }), ones.clone()),
        ("zero", vec![0.0; n], vec![0.0; n]),
        ("small beside", vec![1e-6; n], ones),
    ]
}

fn bidiagonal<R: Scalar<Real = R> + LaneReal>() {
    for n in [1, 2, 3, 7, 16, 32, 100] {
        let cases = hard(n);
        let rows: Vec<R> = (cases.iter())
            .flat_map(|(_, d, e)| d.iter().chain(e))
            .map(|&x| R::from_f64(x))
            .collect();
        for level in Level::available() {
            let mut s = vec![R::ONE; n * cases.len()];
            let mut info = vec![7; cases.len()];
            let operands = (
                Items::new("b", cases.len(), &[2 * n], &rows).unwrap(),
                ItemsMut::new("s", cases.len(), &[n], &mut s).unwrap(),
                ItemsMut::new("info", cases.len(), &[], &mut info).unwrap(),
            );
            level.run::<R, _>(cases.len(), operands, &Values { n });
            for (b, (kind, ..)) in cases.iter().enumerate() {
                let what = format!("{kind}, n = {n}, {level:?}");
                assert_eq!(info[b], 0, "{what}");
                let part = &rows[2 * n * b..2 * n * (b + 1)];
                let exact = by_bisection(&part[..n], &part[n..]);
                let mut found: Vec<f64> =
                    s[n * b..n * (b + 1)].iter().map(|s| s.to_f64()).collect();
                found.sort_by(|a, b| b.total_cmp(a));
                let limit = 30.0 * n as f64 * R::EPSILON.to_f64();
                for (found, exact) in found.into_iter().zip(exact) {
                    // Squares of what lies below this are not normal numbers.
                    let floor = R::SAFE_MIN.to_f64().sqrt() / limit;
                    let error = (found - exact).abs();
                    assert!(error <= limit * exact.max(floor), "{what}: {found:e} {exact:e}");
                }
            }
        }
    }
}

/// The singular values, descending, by bisection in double precision: the pivots of BᵀB − σ² that
/// the stationary quotient-difference transform gives are negative as often as values are below σ.
fn by_bisection<R: Scalar<Real = R>>(d: &[R], e: &[R]) -> Vec<f64> {
    let n = d.len();
    let squared = |x: &R| x.to_f64() * x.to_f64();
    let q: Vec<f64> = d.iter().map(squared).collect();
    let e: Vec<f64> = e[..n - 1].iter().map(squared).chain([0.0]).collect();
    let below = |sigma: f64| {
        let shift = sigma * sigma;
        let (mut s, mut count) = (-shift, 0);
        for (&q, &e) in q.iter().zip(&e) {
            let pivot = if q + s == 0.0 { -f64::MIN_POSITIVE } else { q + s };
            count += usize::from(pivot < 0.0);
            s = s / pivot * e - shift;
        }
        count
    };
    let largest = q.iter().chain(&e).copied().fold(0.0, f64::max).sqrt();
    let value = |k: usize| {
        let (mut low, mut high) = (0.0, 2.0 * largest + f64::MIN_POSITIVE);
        // From the range of the exponents to the last bit.
        for _ in 0..1100 {
            let middle = if low > 0.0 { 0.5 * (low + high) } else { 0.25 * high };
            if below(middle) > k {
                high = middle
            } else {
                low = middle
            }
            if low > 0.0 && high - low <= f64::EPSILON * low {
                break;
            }
        }
        high
    };
    (0..n).rev().map(value).collect()
}

/// U·diag(s)·Vᴴ = A, and the values are those that one matrix has in double precision.
fn decompositions<T: Scalar<Real: Scalar>>() {
    let shapes = [(1, 4), (7, 7), (9, 20), (17, 16), (32, 32), (70, 13), (5, 100), (40, 37)];
    let jobs = [SingularVectors::All, SingularVectors::Thin, SingularVectors::None];
    for ((m, n), batch) in shapes.into_iter().flat_map(|s| BATCHES.map(|b| (s, b))) {
        let mut a = random::<T>(m * n * batch);
        for (b, a) in a.chunks_exact_mut(m * n).enumerate() {
            make_hard(b, m, a);
        }
        for (level, job) in Level::available().flat_map(|l| jobs.map(|job| (l, job))) {
            let what = format!("{m}x{n}, batch {batch}, {level:?}, {job:?}");
            decompose(level, job, (m, n, batch), &a, &what);
        }
    }
}

fn decompose<T: Scalar<Real: Scalar>>(
    level: Level,
    job: SingularVectors,
    (m, n, batch): (usize, usize, usize),
    a: &[T],
    what: &str,
) {
    let k = m.min(n);
    let (u_cols, vt_rows) = job.sides(m, n);
    let mut s = vec![T::Real::ONE; k * batch];
    let (mut u, mut vt) = (vec![T::ONE; m * u_cols * batch], vec![T::ONE; vt_rows * n * batch]);
    let mut info = vec![7; batch];
    let operands = (
        Items::new("a", batch, &[m, n], a).unwrap(),
        ItemsMut::new("left", batch, &[0], &mut []).unwrap(),
        ItemsMut::new("s", batch, &[k], &mut s).unwrap(),
        ItemsMut::new("u", batch, &[m, u_cols], &mut u).unwrap(),
        ItemsMut::new("vt", batch, &[vt_rows, n], &mut vt).unwrap(),
        ItemsMut::new("info", batch, &[], &mut info).unwrap(),
    );
    // Left are what is not finite, and some whose values are of many sizes, with zeros among them.
    let hard = (0..batch).filter(|b| matches!(b % 10, 1 | 2 | 5 | 8 | 9)).count();
    let left = AtomicUsize::new(0);
    let single = |a: &mut [T], s: &mut [T::Real], u: &mut [T], vt: &mut [T]| {
        if a.iter().any(|a| !a.is_finite()) {
            return -4;
        }
        assert!(left.fetch_add(1, Relaxed) < hard, "{what}: more are left");
        let (a, mut info) = (InOut { src: None, dst: a }, [0]);
        let results = Svd { s, u, vt, info: &mut info };
        gesdd(job, 1, m, n, a, results, &Serial).unwrap();
        info[0]
    };
    let leading = if batch % 2 == 0 { Leading::Left } else { Leading::Right };
    let kernel = crate::lanes::svd::Decompose { job, m, n, leading, single };
    level.run::<T, _>(batch, operands, &kernel);
    for (b, a) in a.chunks_exact(m * n).enumerate() {
        let (what, finite) = (format!("{what}, {b}"), a.iter().all(|a| a.is_finite()));
        assert_eq!(info[b], if finite { 0 } else { -4 }, "{what}");
        if finite {
            let s = &s[b * k..(b + 1) * k];
            let u = &u[b * m * u_cols..(b + 1) * m * u_cols];
            let vt = &vt[b * vt_rows * n..(b + 1) * vt_rows * n];
            is_svd((m, n), a, s, u, vt, &what);
            same_values(s, a, (m, n), &what);
        }
    }
}

/// Changes matrix b of a batch into one of a kind.
fn make_hard<T: Scalar>(b: usize, m: usize, a: &mut [T]) {
    let power = |a: &mut [T], x: f64| {
        a.iter_mut().for_each(|a| *a = a.scale(T::Real::from_f64(x)));
    };
    match b % 10 {
        1 => power(a, T::Real::SAFE_MIN.to_f64() / 8.0),
        2 => power(a, T::Real::MAX.to_f64() / 4096.0),
        3 => (0..a.len() / m).for_each(|j| a.copy_within(0..m, j * m)),
        4 => a.fill(T::ZERO),
        5 => (a.chunks_exact_mut(m).zip(0..)).for_each(|(a, j)| power(a, 0.1_f64.powi(j))),
        6 => a.fill(T::ONE),
        7 => a[a.len() / 2] = T::from_real(T::Real::from_f64(f64::INFINITY)),
        8 => a.iter_mut().enumerate().for_each(|(p, a)| {
            *a = if p % (m + 1) == 0 { T::ONE } else { a.scale(T::Real::EPSILON) };
        }),
        // Upper bidiagonal, with zeros on the diagonal.
        9 => a.iter_mut().enumerate().for_each(|(p, a)| {
            let (i, j) = (p % m, p / m);
            if !(i == j && i % 4 != 2 || i + 1 == j) {
                *a = T::ZERO;
            }
        }),
        _ => {}
    }
}

fn same_values<T: Scalar>(s: &[T::Real], a: &[T], (m, n): (usize, usize), what: &str) {
    type Wide = num_complex::Complex<f64>;
    let k = m.min(n);
    let largest = a.iter().map(|a| a.abs1().to_f64()).fold(0.0, f64::max);
    let scale = largest.max(T::Real::SAFE_MIN.to_f64());
    let wide = |a: &T| Wide::new(a.re().to_f64() / scale, a.im().to_f64() / scale);
    let (mut a, mut exact): (Vec<Wide>, _) = (a.iter().map(wide).collect(), vec![0.0; k]);
    let (mut u, mut vt) = (vec![Wide::ZERO; m * k], vec![Wide::ZERO; k * n]);
    let results = Svd { s: &mut exact, u: &mut u, vt: &mut vt, info: &mut [0] };
    let a = InOut { src: None, dst: &mut a[..] };
    gesdd(SingularVectors::Thin, 1, m, n, a, results, &Serial).unwrap();
    let limit = 30.0 * m.max(n) as f64 * T::Real::EPSILON.to_f64() * exact[0].max(1.0);
    assert!(
        s.is_sorted_by(|a, b| a >= b) && s.iter().all(|&s| s >= T::Real::ZERO),
        "{what}: {s:?}"
    );
    for (s, exact) in s.iter().zip(exact) {
        let s = s.to_f64() / scale;
        assert!((s - exact).abs() <= limit, "{what}: {s:e} {exact:e}");
    }
}
