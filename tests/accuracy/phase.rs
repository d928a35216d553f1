//! The phases of eigenvectors, singular and Schur vectors, one rule on every route: of a unit vector x of n
//! components the first with |x(i)|·√n ≥ 0.4869 is real and positive, of those of `eig` the largest. So the vectors of a matrix alone, in a batch of any
//! size, on threads, by columns and by rows are the same up to rounding, and those of eig and schur to the bit.

use lapax_core::{Real as _, Scalar};
use lapax_cpu::eig::Eigen;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;
use lapax_cpu::{InOut, Serial, SingularVectors, Spawned, Threads, Uplo, Vectors};
use num_complex::Complex;

use crate::backend::{Backend, call};
use crate::for_each_backend;
use crate::kinds::{Kind, matrix};
use crate::matrix::{Matrix, transposes};
use crate::sample::{Random, Sample, bits};

for_each_backend!(
    eigenvectors_of_hermitian_matrices,
    singular_vectors,
    vectors_of_a_matrix_of_rank_one,
    eigenvectors_of_general_matrices,
    schur_vectors
);

type Wide = Complex<f64>;

/// Whether a unit vector has the phase of the rule, or a component so near to the bound that rounding decides.
pub(crate) fn has_phase<T: Sample>(x: impl ExactSizeIterator<Item = Wide>) -> bool {
    const PART: f64 = 0.4869;
    let least = PART / (x.len() as f64).sqrt();
    let rounding = 16.0 * <T as Sample>::epsilon();
    for x in x {
        if x.norm() > least + rounding {
            return x.im == 0.0 && x.re > 0.0;
        }
        if x.norm() > least - rounding {
            return true;
        }
    }
    false
}

/// Whether an eigenvector of a general matrix has its phase: its first component of largest modulus, those within some
/// roundings of it included, is real and positive; or one is so near to that bound that rounding decides.
pub(crate) fn has_largest_real<T: Sample>(x: &[Wide]) -> bool {
    let epsilon = <T as Sample>::epsilon();
    let largest = x.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let (surely, perhaps) = (largest * (1.0 - 120.0 * epsilon), largest * (1.0 - 136.0 * epsilon));
    let first = x.iter().find(|x| x.norm() >= perhaps);
    first.is_some_and(|x| x.im == 0.0 && x.re > 0.0 || x.norm() < surely)
}

fn wide<C: Scalar>(x: &[C]) -> Vec<Wide> {
    x.iter().map(|x| Complex { re: x.re().to_f64(), im: x.im().to_f64() }).collect()
}

/// Asserts the rule for each of some vectors of n components.
fn assert_phases<T: Sample, C: Scalar>(vectors: &[C], n: usize, what: &str) {
    for (j, x) in wide(vectors).chunks_exact(n).enumerate() {
        assert!(has_phase::<T>(x.iter().copied()), "{what}: vector {j} is {x:?}");
    }
}

/// I − 2·v·vᴴ for a unit vector v.
fn reflector<T: Sample>(n: usize, seed: u64) -> Matrix<T::Wide> {
    let mut random = Random(seed);
    let v: Vec<T::Wide> = (0..n).map(|_| random.scalar()).collect();
    let square = v.iter().fold(0.0, |sum, v| sum + v.re() * v.re() + v.im() * v.im());
    Matrix::new(n, n, |i, j| {
        let one = if i == j { T::Wide::ONE } else { T::Wide::ZERO };
        one - (v[i] * v[j].conj()).scale(2.0 / square)
    })
}

/// The batches whose matrices are compared with those of a large one, and how many that has.
fn batches(order: usize) -> (&'static [usize], usize) {
    if order <= 48 { (&[1, 2, 3, 4, 5, 8], 33) } else { (&[1, 2], 5) }
}

/// Asserts that vectors are others' up to rounding; values are one apart, and not more than `order`.
fn assert_near<T: Sample>(found: &[T], expected: &[T], order: usize, what: &str) {
    let limit = 30.0 * (order * order) as f64 * <T as Sample>::epsilon();
    assert_eq!(found.len(), expected.len());
    for (x, y) in wide(found).into_iter().zip(wide(expected)) {
        assert!((x - y).norm() <= limit, "{what}: {x} and {y}");
    }
}

fn eigenvectors_of_hermitian_matrices<T: Sample>(backend: Backend) {
    for n in [1, 2, 3, 8, 17, 32, 33, 48, 49, 70, 130, 200] {
        let (sizes, count) = batches(n);
        let one = |seed| {
            let q = reflector::<T>(n, seed);
            let qd = Matrix::new(n, n, |i, j| q.at(i, j).scale(j as f64 - n as f64 / 3.0));
            qd.times(&q.adjoint()).narrowed::<T>(0)
        };
        let a: Vec<T> = (0..count as u64).flat_map(one).collect();
        let decompose = |batch: usize, uplo, threads: &dyn Threads| {
            let (mut v, mut info) = (a[..batch * n * n].to_vec(), vec![-7; batch]);
            let mut w = vec![T::nan().re(); batch * n];
            let (vs, job) = (InOut { src: None, dst: &mut v[..] }, Vectors::Wanted);
            call!(backend, eigh::syevd(job, uplo, batch, n, vs, &mut w, &mut info, threads))
                .unwrap();
            v
        };
        let all = decompose(count, Uplo::Lower, &Serial);
        assert_phases::<T, T>(&all, n, &format!("order {n}"));
        for (uplo, &batch) in
            [Uplo::Lower, Uplo::Upper].into_iter().flat_map(|u| sizes.iter().map(move |b| (u, b)))
        {
            let what = format!("{batch} of order {n}, {uplo:?}");
            let expected = &all[..batch * n * n];
            let some = decompose(batch, uplo, &Spawned(3));
            assert_phases::<T, T>(&some, n, &what);
            assert_near(&some, expected, n, &what);
            let rows = transposes(n, n, &a[..batch * n * n]);
            let mut v = vec![T::nan(); rows.len()];
            let mut w = vec![T::nan().re(); batch * n];
            let io = InOut { src: Some(&rows), dst: &mut v[..] };
            call!(backend, eigh::eigh(uplo, batch, n, io, &mut w, &Spawned(2))).unwrap();
            let v = transposes(n, n, &v);
            assert_phases::<T, T>(&v, n, &what);
            assert_near(&v, expected, n, &what);
            let part = n / 3..(n / 2 + 1).min(n);
            let k = part.len();
            let (mut v, mut w) = (vec![T::nan(); batch * n * k], vec![w[0]; batch * k]);
            let (vs, ws, places) = (&mut v[..], &mut w[..], part.clone());
            call!(backend, eigh::eigh_subset(uplo, batch, n, places, &rows, vs, ws, &Serial))
                .unwrap();
            let v = transposes(k, n, &v);
            assert_phases::<T, T>(&v, n, &what);
            for (v, all) in v.chunks_exact(n * k).zip(expected.chunks_exact(n * n)) {
                assert_near(v, &all[part.start * n..part.end * n], n, &what);
            }
        }
    }
}

/// U by columns, and the adjoint of Vᴴ, in which the columns are V's.
fn factors<T: Sample>(u: Vec<T>, vt: &[T], n: usize, rows: usize) -> [Vec<T>; 2] {
    let v = if rows == 0 { Vec::new() } else { transposes(rows, n, vt) };
    [u, v.into_iter().map(|x| x.conj()).collect()]
}

fn gesdd<T: Sample>(
    (backend, qr): (Backend, bool),
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
    threads: &dyn Threads,
) -> [Vec<T>; 2] {
    let (u_cols, vt_rows) = job.sides(m, n);
    let nan = T::nan();
    let (mut u, mut vt) = (vec![nan; batch * m * u_cols], vec![nan; batch * vt_rows * n]);
    let (mut s, mut info) = (vec![nan.re(); batch * m.min(n)], vec![-7; batch]);
    let mut scratch = a[..batch * m * n].to_vec();
    let a = InOut { src: None, dst: &mut scratch[..] };
    let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
    if qr {
        call!(backend, svd::gesvd(job, batch, m, n, a, results, threads)).unwrap();
    } else {
        call!(backend, svd::gesdd(job, batch, m, n, a, results, threads)).unwrap();
    }
    factors(u, &vt, n, vt_rows)
}

/// The same by rows.
fn svd<T: Sample>(
    backend: Backend,
    job: SingularVectors,
    batch: usize,
    (m, n): (usize, usize),
    a: &[T],
) -> [Vec<T>; 2] {
    let (u_cols, vt_rows) = job.sides(m, n);
    let rows = transposes(m, n, &a[..batch * m * n]);
    let nan = T::nan();
    let (mut u, mut vt) = (vec![nan; batch * m * u_cols], vec![nan; batch * vt_rows * n]);
    let mut s = vec![nan.re(); batch * m.min(n)];
    let (us, vts) = (&mut u[..], &mut vt[..]);
    call!(backend, svd::svd(job, batch, m, n, &rows, &mut s, us, vts, &Spawned(2))).unwrap();
    let u = transposes(u_cols, m, &u);
    [u, vt.into_iter().map(|x| x.conj()).collect()]
}

fn singular_vectors<T: Sample>(backend: Backend) {
    let shapes =
        [(1, 1), (2, 2), (3, 3), (4, 4), (5, 3), (3, 5), (8, 8), (9, 9), (17, 20), (40, 18)];
    let large = [(18, 40), (33, 33), (70, 40), (40, 70), (160, 60), (140, 135), (200, 200)];
    for (m, n) in shapes.into_iter().chain(large) {
        let (sizes, count) = batches(m.max(n));
        let k = m.min(n);
        let one = |seed| {
            let (left, right) = (reflector::<T>(m, seed), reflector::<T>(n, seed + 100));
            let scaled = Matrix::new(m, k, |i, j| left.at(i, j).scale((k - j) as f64));
            scaled.times(&Matrix::new(k, n, |i, j| right.at(i, j))).narrowed::<T>(0)
        };
        let a: Vec<T> = (0..count as u64).flat_map(one).collect();
        let all = gesdd((backend, false), SingularVectors::Thin, count, (m, n), &a, &Serial);
        assert_phases::<T, T>(&all[0], m, &format!("{m} x {n}"));
        let jobs = [SingularVectors::Thin, SingularVectors::All];
        for (job, &batch) in jobs.into_iter().flat_map(|j| sizes.iter().map(move |b| (j, b))) {
            let what = format!("{batch} of {m} x {n}, {job:?}");
            let (u_cols, v_cols) = job.sides(m, n);
            let found = [
                gesdd((backend, false), job, batch, (m, n), &a, &Spawned(3)),
                gesdd((backend, true), job, batch, (m, n), &a, &Serial),
                svd(backend, job, batch, (m, n), &a),
            ];
            for ([u, v], way) in found.iter().zip(["gesdd", "gesvd", "svd"]) {
                let what = format!("{what} by {way}");
                assert_phases::<T, T>(u, m, &what);
                for b in 0..batch {
                    let u = &u[b * m * u_cols..(b + 1) * m * u_cols];
                    let v = &v[b * n * v_cols..(b + 1) * n * v_cols];
                    assert_near(&u[..m * k], &all[0][b * m * k..(b + 1) * m * k], k, &what);
                    assert_near(&v[..n * k], &all[1][b * n * k..(b + 1) * n * k], k, &what);
                    // What belongs to no singular value.
                    assert_phases::<T, T>(&v[n * k..], n, &what);
                }
            }
        }
        let part = k / 3..k / 2 + 1;
        let (width, nan) = (part.len(), T::nan());
        for &batch in sizes {
            let what = format!("{part:?} of {m} x {n}, {batch} of them");
            let rows = transposes(m, n, &a[..batch * m * n]);
            let (mut u, mut vt) = (vec![nan; batch * m * width], vec![nan; batch * width * n]);
            let mut s = vec![nan.re(); batch * width];
            let (p, us, vts) = (part.clone(), &mut u[..], &mut vt[..]);
            call!(backend, svd::svd_subset(batch, m, n, p, &rows, &mut s, us, vts, &Serial))
                .unwrap();
            let (u, v) = (transposes(width, m, &u), vt.iter().map(|x| x.conj()));
            let v: Vec<T> = v.collect();
            for b in 0..batch {
                for (x, all, rows) in [(&u, &all[0], m), (&v, &all[1], n)] {
                    let x = &x[b * rows * width..(b + 1) * rows * width];
                    let all = &all[(b * k + part.start) * rows..(b * k + part.end) * rows];
                    assert_near(x, all, k, &what);
                }
            }
        }
    }
}

/// Zero singular values, for which neither vector says what the other is: U has the rule all the same.
fn vectors_of_a_matrix_of_rank_one<T: Sample>(backend: Backend) {
    for (m, n) in [(3, 3), (4, 6), (12, 9), (40, 40), (50, 80)] {
        for value in [0.0, -1.0] {
            let a = vec![T::from_f64(value); 5 * m * n];
            for batch in [1, 5] {
                let what = format!("{batch} of {m} x {n}, all {value}");
                let all = SingularVectors::All;
                let [u, v] = gesdd((backend, false), all, batch, (m, n), &a, &Serial);
                assert_phases::<T, T>(&u, m, &what);
                let [row_u, _] = svd(backend, all, batch, (m, n), &a);
                assert_phases::<T, T>(&row_u, m, &what);
                if value != 0.0 {
                    let first = T::from_f64(1.0 / (m as f64).sqrt());
                    assert_near(&u[..m], &vec![first; m], 4, &what);
                    let first = T::from_f64(-1.0 / (n as f64).sqrt());
                    assert_near(&v[..n], &vec![first; n], 4, &what);
                }
            }
        }
    }
}

/// Whether Schur forms of so many matrices are found as those of a large batch are: one by one, an iteration may find
/// the eigenvalues in another order.
fn goes_one_way(batch: usize, n: usize) -> bool {
    batch >= 4 || !(17..=32).contains(&n)
}

fn eigenvectors_of_general_matrices<T: Sample>(backend: Backend) {
    for n in [1, 2, 3, 5, 8, 16, 17, 32, 33, 60, 130] {
        let (sizes, count) = batches(n);
        let one = |seed| matrix::<T>(Kind::Random, n, n, seed).narrowed::<T>(0);
        let a: Vec<T> = (0..count as u64).flat_map(one).collect();
        let decompose = |batch: usize, threads: &dyn Threads| {
            let nan = T::Complex::from_parts(T::nan().re(), T::nan().re());
            let (mut left, mut right) = (vec![nan; batch * n * n], vec![nan; batch * n * n]);
            let (mut wr, mut wi) = (vec![T::nan(); batch * n], vec![T::nan(); batch * n]);
            let mut info = vec![-7; batch];
            let w = if T::IS_COMPLEX {
                Eigenvalues::Whole(&mut wr)
            } else {
                Eigenvalues::Parts(&mut wr, &mut wi)
            };
            let results = Eigen { w, left: &mut left, right: &mut right, info: &mut info };
            let (a, wanted) = (&a[..batch * n * n], Vectors::Wanted);
            call!(backend, eig::geev(wanted, wanted, batch, n, a, results, threads)).unwrap();
            [wide(&wr), wide(&wi), wide(&left), wide(&right)]
        };
        let all = decompose(count, &Serial);
        for x in all[2..].iter().flat_map(|v| v.chunks_exact(n)) {
            assert!(has_largest_real::<T>(x), "order {n}: {x:?}");
        }
        for &batch in sizes.iter().filter(|&&batch| goes_one_way(batch, n)) {
            let some = decompose(batch, &Spawned(3));
            for (some, all) in some.iter().zip(&all) {
                let same = some.iter().zip(all).all(|(x, y)| x == y || x.is_nan() && y.is_nan());
                assert!(same, "{batch} of order {n} are not as those of {count}");
            }
        }
    }
}

fn schur_vectors<T: Sample>(backend: Backend) {
    for n in [1, 2, 3, 5, 8, 16, 17, 32, 33, 60, 130, 150] {
        let (sizes, count) = batches(n);
        let one = |seed| matrix::<T>(Kind::Random, n, n, seed).narrowed::<T>(0);
        let a: Vec<T> = (0..count as u64).flat_map(one).collect();
        let decompose = |vectors, batch: usize, threads: &dyn Threads| {
            let (mut t, mut z) = (a[..batch * n * n].to_vec(), vec![T::nan(); batch * n * n]);
            let (mut wr, mut wi) = (vec![T::nan(); batch * n], vec![T::nan(); batch * n]);
            let (mut sdim, mut info) = (vec![-7; batch], vec![-7; batch]);
            let w = if T::IS_COMPLEX {
                Eigenvalues::Whole(&mut wr)
            } else {
                Eigenvalues::Parts(&mut wr, &mut wi)
            };
            let (a, zs) = (InOut { src: None, dst: &mut t[..] }, &mut z[..]);
            let (sdims, infos) = (&mut sdim[..], &mut info[..]);
            call!(backend, schur::gees(vectors, batch, n, a, zs, w, sdims, infos, threads))
                .unwrap();
            [t, z]
        };
        let all = decompose(Vectors::Wanted, count, &Serial);
        assert_phases::<T, T>(&all[1], n, &format!("order {n}"));
        for &batch in sizes.iter().filter(|&&batch| goes_one_way(batch, n)) {
            let what = format!("{batch} of order {n}");
            let [t, z] = decompose(Vectors::Wanted, batch, &Spawned(3));
            assert!(bits(&t) == bits(&all[0][..t.len()]), "{what}: T");
            assert!(bits(&z) == bits(&all[1][..z.len()]), "{what}: Z");
            let [t, z] = decompose(Vectors::None, batch, &Serial);
            assert!(bits(&t) == bits(&all[0][..t.len()]), "{what}: T alone");
            assert!(z.iter().all(|&z| z == T::ZERO), "{what}: not asked for");
            let mut t = transposes(n, n, &a[..batch * n * n]);
            let mut z = vec![T::nan(); t.len()];
            let io = InOut { src: None, dst: &mut t[..] };
            call!(backend, schur::schur(batch, n, io, &mut z, &Spawned(2))).unwrap();
            let [t, z] = [t, z].map(|x| bits(&transposes(n, n, &x)));
            assert!(t == bits(&all[0][..batch * n * n]), "{what}: T by rows");
            assert!(z == bits(&all[1][..batch * n * n]), "{what}: Z by rows");
        }
    }
}
