//! QR with column pivoting: a block for each matrix, and panels of larger ones.

use lapax_core::{InOut, Real as _, Serial, Side};
use lapax_cpu::qr::{Factor, ormqr};
use lapax_cuda::pivoted;
use lapax_cuda_fake::driver;
use num_complex::Complex;

use crate::device::{SEEDS, device, gpu, in_out, output, succeeds};
use crate::matrices::nan;
use crate::random::{Number, Random, distance};

/// Rows, columns and matrices: in shared memory, of one and of several warps, and more than there are blocks.
const SIZES: [(usize, usize, usize); 11] = [
    (1, 1, 3),
    (3, 2, 2),
    (2, 5, 2),
    (7, 7, 5),
    (31, 33, 2),
    (33, 31, 1),
    (40, 40, 3),
    (65, 20, 2),
    (20, 65, 2),
    (1, 9, 300),
    (35, 3, 140),
];

/// Too large for a block's shared memory: several panels, of which the last is not whole.
const LARGE: [(usize, usize, usize); 2] = [(1900, 33, 1), (650, 90, 1)];

/// Likewise, with all rows in the last panel; it takes as long as the others together.
const WIDE: (usize, usize, usize) = (33, 1800, 1);

/// The same bytes for every scalar: these are sizes of f32.
fn of_bytes<T>((m, n, batch): (usize, usize, usize)) -> (usize, usize, usize) {
    let by = size_of::<T>() / size_of::<f32>();
    if m > n { (m / by, n, batch) } else { (m, n / by, batch) }
}

/// What the columns of a matrix are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Random,
    /// All near one, so that norms lose their digits in the first step.
    Close,
    /// The later half are sums of the earlier.
    Deficient,
}

const KINDS: [Kind; 3] = [Kind::Random, Kind::Close, Kind::Deficient];

fn real<T: Number>(value: f64) -> T {
    T::from_real(T::Real::from_f64(value))
}

fn matrix<T: Number>(random: &mut Random, kind: Kind, m: usize, n: usize) -> Vec<T> {
    let mut a: Vec<T> = random.scalars(m * n);
    let first: Vec<T> = a[..m].to_vec();
    for c in 1..n {
        for i in 0..m {
            let here = a[i + c * m];
            a[i + c * m] = match kind {
                Kind::Random => here,
                Kind::Close => first[i] + real::<T>(1e-3) * here,
                Kind::Deficient if c > n / 2 => a[i + (c - 1 - n / 2) * m] - a[i],
                Kind::Deficient => here,
            };
        }
    }
    a
}

struct Factored<T> {
    qr: Vec<T>,
    jpvt: Vec<i32>,
    tau: Vec<T>,
}

fn factor<T: Number>(batch: usize, (m, n): (usize, usize), a: &[T], jpvt: &[i32]) -> Factored<T> {
    let mut out = Factored {
        qr: vec![nan(); a.len()],
        jpvt: vec![-1; jpvt.len()],
        tau: vec![nan(); batch * m.min(n)],
    };
    let (a, jpvt) = (in_out(Some(a), &mut out.qr), in_out(Some(jpvt), &mut out.jpvt));
    succeeds(pivoted::geqp3(&gpu(), batch, (m, n), a, jpvt, output(&mut out.tau)));
    out
}

/// The columns from 0, which are all of them.
fn columns(jpvt: &[i32]) -> Vec<usize> {
    let columns: Vec<usize> = jpvt.iter().map(|&j| usize::try_from(j).unwrap() - 1).collect();
    let mut sorted = columns.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..jpvt.len()), "{jpvt:?}");
    columns
}

/// ‖A·P − Q·R‖, by LAPACK's Q.
fn residual<T: Number>((m, n): (usize, usize), a: &[T], qr: &[T], jpvt: &[i32], tau: &[T]) -> f64 {
    let order = columns(jpvt);
    let permuted: Vec<T> = (0..m * n).map(|at| a[at % m + order[at / m] * m]).collect();
    let mut product: Vec<T> =
        (0..m * n).map(|at| if at % m <= at / m { qr[at] } else { T::ZERO }).collect();
    let c = InOut { src: None, dst: &mut product };
    ormqr(Side::Left, Factor::Q, 1, m, n, n, m.min(n), qr, tau, c, &Serial).unwrap();
    distance(&product, &permuted)
}

/// The most that a column's part from row k on is larger than the k-th of R's diagonal, for k from `fixed` on.
fn growth<T: Number>((m, n): (usize, usize), fixed: usize, qr: &[T]) -> f64 {
    let size = |i: usize, j: usize| qr[i + j * m].abs().to_f64();
    let mut most = 0.0_f64;
    for k in fixed..m.min(n) {
        for j in k..n {
            let norm = (k..m.min(j + 1)).map(|i| size(i, j).powi(2)).sum::<f64>().sqrt();
            let least = 1e3 * T::Real::EPSILON.to_f64() * size(0, 0);
            most = most.max(norm / size(k, k).max(least));
        }
    }
    most
}

fn check<T: Number>(
    random: &mut Random,
    kind: Kind,
    (m, n, batch): (usize, usize, usize),
) -> (Vec<T>, Factored<T>) {
    let (size, k) = ((m, n), m.min(n));
    let a: Vec<T> = (0..batch).flat_map(|_| matrix(random, kind, m, n)).collect();
    let found = factor(batch, size, &a, &vec![0; batch * n]);
    for at in 0..batch {
        let label = || format!("{kind:?} {m} × {n}, {at} of {batch}");
        let (a, qr) = (&a[at * m * n..][..m * n], &found.qr[at * m * n..][..m * n]);
        let (jpvt, tau) = (&found.jpvt[at * n..][..n], &found.tau[at * k..][..k]);
        let ratio = residual(size, a, qr, jpvt, tau);
        assert!(ratio < 30.0 * to_f64(m.max(n)), "{}: {ratio}", label());
        // √ε is what downdated norms may be wrong by.
        let limit = 1.0 + 30.0 * T::Real::EPSILON.to_f64().sqrt();
        let growth = growth(size, 0, qr);
        assert!(growth < limit, "{}: {growth}", label());
    }
    (a, found)
}

/// In another place of a batch: the same bits.
fn check_places<T: Number>(a: &[T], found: &Factored<T>, (m, n, batch): (usize, usize, usize)) {
    let (size, k) = ((m, n), m.min(n));
    let again = factor(batch + 1, size, &[&a[..m * n], a].concat(), &vec![0; (batch + 1) * n]);
    assert_eq!(again.jpvt[n..], found.jpvt);
    assert!(again.qr[m * n..] == found.qr && again.tau[k..] == found.tau, "{m} × {n}");
}

fn to_f64(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

fn check_fixed<T: Number>(random: &mut Random, (m, n): (usize, usize)) {
    for every in [1, 2, 3] {
        let a: Vec<T> = matrix(random, Kind::Random, m, n);
        let jpvt: Vec<i32> = (0..n).map(|j| if j % every == 0 { -5 } else { 0 }).collect();
        let found = factor(1, (m, n), &a, &jpvt);
        let fixed: Vec<usize> = (0..n).step_by(every).collect();
        assert_eq!(columns(&found.jpvt)[..fixed.len()], fixed);
        let ratio = residual((m, n), &a, &found.qr, &found.jpvt, &found.tau);
        assert!(ratio < 30.0 * to_f64(m.max(n)), "{m} × {n}, {every}: {ratio}");
        assert!(growth((m, n), fixed.len(), &found.qr) < 1.01, "{m} × {n}, {every}");
    }
}

/// The bad column comes first, and spoils its matrix alone.
fn check_bad<T: Number>(random: &mut Random, (m, n): (usize, usize)) {
    let one: Vec<T> = matrix(random, Kind::Random, m, n);
    let expected = factor(1, (m, n), &one, &vec![0; n]);
    for bad in [f64::NAN, f64::INFINITY] {
        let mut a = one.repeat(2);
        a[(n - 1) * m + m / 2] = real(bad);
        let found = factor(2, (m, n), &a, &vec![0; 2 * n]);
        assert_eq!(usize::try_from(found.jpvt[0]).unwrap(), n, "{m} × {n}");
        columns(&found.jpvt[..n]);
        assert!(found.tau[0].is_nan(), "{m} × {n}: {:?}", found.tau[0]);
        assert!(found.qr[m * n..] == expected.qr, "{m} × {n}");
        assert_eq!(found.jpvt[n..], expected.jpvt);
    }
}

fn check_all<T: Number>() {
    let Some(_device) = device() else { return };
    let mut random = Random(17);
    let large = LARGE.map(of_bytes::<T>);
    for (size, seed) in SIZES.into_iter().chain(large).zip(SEEDS.cycle()) {
        driver::state().seed = seed;
        for kind in KINDS {
            let (a, found) = check::<T>(&mut random, kind, size);
            check_places(&a, &found, size);
        }
    }
    check::<T>(&mut random, Kind::Close, of_bytes::<T>(WIDE));
    for (m, n, _) in [(6, 6, 1), (4, 9, 1), (9, 4, 1), large[0]] {
        check_fixed::<T>(&mut random, (m, n));
        check_bad::<T>(&mut random, (m, n));
    }
}

#[test]
fn columns_are_pivoted_f32() {
    check_all::<f32>();
}

#[test]
fn columns_are_pivoted_f64() {
    check_all::<f64>();
}

#[test]
fn columns_are_pivoted_c64() {
    check_all::<Complex<f32>>();
}

#[test]
fn columns_are_pivoted_c128() {
    check_all::<Complex<f64>>();
}

#[test]
fn the_first_of_equal_columns_comes_first() {
    let Some(_device) = device() else { return };
    for (m, n) in [(5, 4), (60, 40), (1900, 33)] {
        let a: Vec<f64> = (0..m * n).map(|at| f64::from(u8::from(at % m == at / m))).collect();
        let numbers: Vec<i32> = (1..=i32::try_from(n).unwrap()).collect();
        assert_eq!(factor(1, (m, n), &a, &vec![0; n]).jpvt, numbers);
    }
}

#[test]
fn empty_ones_have_their_permutation() {
    let Some(_device) = device() else { return };
    assert_eq!(factor::<f64>(1, (0, 4), &[], &[0, 1, 0, 7]).jpvt, [2, 4, 3, 1]);
    assert!(factor::<f64>(3, (4, 0), &[], &[]).jpvt.is_empty());
    assert!(factor::<f64>(0, (4, 4), &[], &[]).qr.is_empty());
}
