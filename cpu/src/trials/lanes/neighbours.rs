//! A matrix has the same results, to the last bit and the signs of zeros, whatever shares its registers: every
//! batched operation, beside matrices that converge late or never, are graded, zero or not finite.

use lapax_core::{InOut, Scalar as _, Serial};

use crate::cholesky::update;
use crate::eig::single::Eigen;
use crate::matrix::layout::Factor;
use crate::qr::q;
use crate::schur::values::Eigenvalues;
use crate::simd::vector::MAX_LANES;
use crate::svd::single::Svd;
use crate::testing::levels::random;
use crate::tridiagonal::elimination::Diagonals;
use crate::{Diag, Real, Scalar, Side, SingularVectors, Trans, Uplo, Vectors};
use crate::{
    cholesky, determinant, eig, eigh, hessenberg, lu, qr, schur, solve, svd, triangular,
    tridiagonal,
};

for_each_scalar!(general, hermitian, singular, factors, systems);

/// Few rows and columns, and more than Jacobi rotations are for.
const ORDERS_HERE: [usize; 6] = [2, 3, 4, 6, 10, 17];
/// Copies that a matrix stands among at first: they fill the widest registers.
const COPIES: usize = MAX_LANES;

/// The bits of what an operation makes of each matrix of a batch; NaN is NaN.
struct Bits(Vec<Vec<u64>>);

impl Bits {
    fn new(batch: usize) -> Self {
        Self(vec![Vec::new(); batch])
    }

    fn and<X: lapax_core::Scalar>(mut self, results: &[X]) -> Self {
        let bits = |x: X::Real| if x.is_nan() { f64::NAN } else { x.to_f64() }.to_bits();
        let each = results.len() / self.0.len();
        for (all, results) in self.0.iter_mut().zip(results.chunks_exact(each.max(1))) {
            all.extend(results.iter().flat_map(|x| [bits(x.re()), bits(x.im())]));
        }
        self
    }

    fn integers(mut self, results: &[i32]) -> Self {
        let each = results.len() / self.0.len();
        for (all, results) in self.0.iter_mut().zip(results.chunks_exact(each)) {
            all.extend(results.iter().map(|&i| u64::from(i.cast_unsigned())));
        }
        self
    }
}

/// The matrices whose results are watched: of small integers with zeros of both signs, symmetric ones of those,
/// random, a cyclic shift, and one whose eigenvalues are found before those of most others.
fn watched<T: Scalar>(n: usize) -> Vec<Vec<T>> {
    let noise = random::<T>(40 * n * n);
    let mut noise = noise.chunks_exact(n * n);
    let real = |x: f64| T::from_real(T::Real::from_f64(x));
    let round = |x: T::Real| T::Real::from_f64((x.to_f64() * 5.0).trunc() / 2.0);
    let mut all = Vec::new();
    for kind in 0..20 {
        let (Some(x), Some(y)) = (noise.next(), noise.next()) else { return all };
        let (i, j) = (|p: usize| p % n, |p: usize| p / n);
        let integer = |p: usize| T::from_parts(round(x[p].re()), round(x[p].im()));
        let sparse = |p: usize| if y[p].re() < T::Real::ZERO { T::ZERO } else { integer(p) };
        let negative = |p: usize| if p.is_multiple_of(3) { -sparse(p) } else { sparse(p) };
        let matrix = |at: &dyn Fn(usize) -> T| (0..n * n).map(at).collect::<Vec<T>>();
        all.push(match kind {
            0..5 => matrix(&integer),
            5..9 => matrix(&negative),
            9..14 => matrix(&|p| sparse(p) + sparse(j(p) + i(p) * n).conj()),
            14 => matrix(&|p| real(if i(p) == (j(p) + 1) % n { -1.0 } else { -0.0 })),
            15 => {
                matrix(&|p| if i(p) / 2 == j(p) / 2 { x[p] } else { x[p].scale(T::Real::EPSILON) })
            }
            16 => matrix(&|p| if i(p) <= j(p) + 1 { sparse(p) } else { -T::ZERO }),
            _ => matrix(&|p| x[p]),
        });
    }
    // Its block of order 2 is finished before anything else is, and all of its elements are small or zero.
    let known = [[0, 2, 1, -2], [2, 0, -2, 0], [-4, -4, 2, 4], [2, 0, -2, 0]];
    let at = |p: usize| real(f64::from(known[p % n % 4][p / n % 4]));
    all.push((0..n * n).map(at).collect());
    all
}

/// What stands beside them, by turns.
fn neighbours<T: Scalar>(n: usize) -> Vec<(&'static str, Vec<T>)> {
    let real = |x: f64| T::from_real(T::Real::from_f64(x));
    let least = T::Real::SAFE_MIN.to_f64();
    let is = |yes: bool| if yes { 1.0 } else { 0.0 };
    // The coefficients of the product of x − root(k).
    let companion = |root: &dyn Fn(usize) -> f64| {
        let mut c = vec![1.0];
        for k in 0..n {
            c.push(0.0);
            (1..c.len()).rev().for_each(|p| c[p] -= root(k) * c[p - 1]);
        }
        c
    };
    let wilkinson = companion(&|k| k as f64 + 1.0);
    let multiple = companion(&|_| 1.0);
    let first_row = |c: &[f64], i: usize, j: usize| if i == 0 { -c[j + 1] } else { is(i == j + 1) };
    // From one end of the exponents' range to the other.
    let grade = |i: usize| least.powf(0.9 - 1.8 * i as f64 / (n - 1) as f64);
    let noise = random::<T>(n * n);
    let elements = |at: &dyn Fn(usize, usize) -> T| -> Vec<T> {
        (0..n * n).map(|p| at(p % n, p / n)).collect()
    };
    vec![
        ("identity", elements(&|i, j| real(is(i == j)))),
        ("cyclic", elements(&|i, j| real(is(i == (j + 1) % n)))),
        ("jordan", elements(&|i, j| real(is(i == j) + is(j == i + 1) + 1e-14 * is(i > j + 1)))),
        ("wilkinson", elements(&|i, j| real(first_row(&wilkinson, i, j)))),
        ("multiple", elements(&|i, j| real(first_row(&multiple, i, j)))),
        ("graded", elements(&|i, j| noise[i + j * n].scale(T::Real::from_f64(grade(i))))),
        (
            "symmetric",
            elements(&|i, j| {
                let size = grade(i.max(j)).max(least);
                (noise[i + j * n] + noise[j + i * n].conj()).scale(T::Real::from_f64(size))
            }),
        ),
        ("random", noise.clone()),
        ("zero", vec![T::ZERO; n * n]),
        ("tiny", elements(&|i, j| noise[i + j * n].scale(T::Real::SAFE_MIN))),
        ("infinite", elements(&|i, j| real(if i + j == 1 { f64::INFINITY } else { 1.0 }))),
        ("nan", vec![real(f64::NAN); n * n]),
    ]
}

/// What an operation makes of `batch` matrices of order n.
type Operation<T> = fn(n: usize, batch: usize, a: &[T]) -> Bits;

/// Compares the results of each matrix among copies of itself with those among others, at every place.
fn compare<T: Scalar>(operations: &[(&str, Operation<T>)]) {
    for n in ORDERS_HERE {
        let (watched, neighbours) = (watched::<T>(n), neighbours::<T>(n));
        for (name, operation) in operations {
            let expected: Vec<Vec<u64>> = (watched.iter())
                .map(|a| {
                    let Bits(mut all) = operation(n, COPIES, &a.repeat(COPIES));
                    let one = all.swap_remove(0);
                    assert!(all.iter().all(|other| *other == one), "{name} of {n}: by its place");
                    one
                })
                .collect();
            let compare = |first: usize, beside: &dyn Fn(usize) -> usize, what: &str| {
                let beside = |i: usize| &neighbours[beside(i)].1;
                let mut a: Vec<T> = (0..first).flat_map(beside).copied().collect();
                for (i, one) in watched.iter().enumerate() {
                    a.extend_from_slice(one);
                    a.extend_from_slice(beside(i));
                }
                let Bits(found) = operation(n, first + 2 * watched.len(), &a);
                for (i, expected) in expected.iter().enumerate() {
                    let place = first + 2 * i;
                    let differ = expected.iter().zip(&found[place]).filter(|(x, y)| x != y);
                    let differ: Vec<[f64; 2]> =
                        differ.map(|(x, y)| [*x, *y].map(f64::from_bits)).collect();
                    let one = &watched[i];
                    assert!(
                        differ.is_empty(),
                        "{name} of {n}: matrix {i}, {one:?}, beside {what}, {place}: {differ:?}"
                    );
                }
            };
            for (kind, (what, _)) in neighbours.iter().enumerate() {
                (0..2).for_each(|first| compare(first, &|_| kind, what));
            }
            let mixed = |i: usize| i % neighbours.len();
            (2..MAX_LANES).for_each(|first| compare(first, &mixed, "all kinds"));
        }
    }
}

/// Reals of T.
fn reals<T: Scalar>(count: usize) -> Vec<T::Real> {
    vec![T::Real::ONE; count]
}

fn general<T: Scalar>() {
    compare::<T>(&[
        ("geev", |n, batch, a| {
            let (mut w, mut wi) = (vec![T::ONE; n * batch], vec![T::ONE; n * batch]);
            let [mut left, mut right] = [(), ()].map(|()| vec![T::Complex::ONE; n * n * batch]);
            let mut info = vec![7; batch];
            let eigenvalues = if T::IS_COMPLEX {
                Eigenvalues::Whole(&mut w)
            } else {
                Eigenvalues::Parts(&mut w, &mut wi)
            };
            let (left_out, right_out) = (&mut left[..], &mut right[..]);
            let results =
                Eigen { w: eigenvalues, left: left_out, right: right_out, info: &mut info };
            let wanted = Vectors::Wanted;
            eig::geev(wanted, wanted, batch, n, a, results, &Serial).unwrap();
            Bits::new(batch).and(&w).and(&wi).and(&left).and(&right).integers(&info)
        }),
        ("eig", |n, batch, a| {
            let [mut w, mut v] = [1, n].map(|rows| vec![T::Complex::ONE; rows * n * batch]);
            eig::eig(batch, n, a, &mut w, &mut v, &Serial).unwrap();
            Bits::new(batch).and(&w).and(&v)
        }),
        ("eigvals", |n, batch, a| {
            let mut w = vec![T::Complex::ONE; n * batch];
            eig::eigvals(batch, n, a, &mut w, &Serial).unwrap();
            Bits::new(batch).and(&w)
        }),
        ("gees", |n, batch, a| {
            let (mut w, mut wi) = (vec![T::ONE; n * batch], vec![T::ONE; n * batch]);
            let (mut t, mut z) = (vec![T::ONE; a.len()], vec![T::ONE; a.len()]);
            let [mut sdim, mut info] = [7; 2].map(|x| vec![x; batch]);
            let eigenvalues = if T::IS_COMPLEX {
                Eigenvalues::Whole(&mut w)
            } else {
                Eigenvalues::Parts(&mut w, &mut wi)
            };
            let in_out = InOut { src: Some(a), dst: &mut t[..] };
            let (sdim_out, info_out, wanted) = (&mut sdim[..], &mut info[..], Vectors::Wanted);
            schur::gees(wanted, batch, n, in_out, &mut z, eigenvalues, sdim_out, info_out, &Serial)
                .unwrap();
            Bits::new(batch).and(&t).and(&z).and(&w).and(&wi).integers(&sdim).integers(&info)
        }),
        ("schur", |n, batch, a| {
            let (mut t, mut z) = (vec![T::ONE; a.len()], vec![T::ONE; a.len()]);
            let in_out = InOut { src: Some(a), dst: &mut t[..] };
            schur::schur(batch, n, in_out, &mut z, &Serial).unwrap();
            Bits::new(batch).and(&t).and(&z)
        }),
        ("gehrd", |n, batch, a| {
            let (mut h, mut tau) = (vec![T::ONE; a.len()], vec![T::ONE; (n - 1) * batch]);
            let mut info = vec![7; batch];
            let in_out = InOut { src: Some(a), dst: &mut h[..] };
            let (low, high) = (1, n);
            hessenberg::gehrd(batch, n, low, high, in_out, &mut tau, &mut info, &Serial).unwrap();
            Bits::new(batch).and(&h).and(&tau).integers(&info)
        }),
        ("hess", |n, batch, a| {
            let (mut h, mut q) = (vec![T::ONE; a.len()], vec![T::ONE; a.len()]);
            let in_out = InOut { src: Some(a), dst: &mut h[..] };
            hessenberg::hess(batch, n, in_out, &mut q, &Serial).unwrap();
            Bits::new(batch).and(&h).and(&q)
        }),
    ]);
}

fn syevd<T: Scalar<Real: Scalar>>(
    job: Vectors,
    uplo: Uplo,
    n: usize,
    batch: usize,
    a: &[T],
) -> Bits {
    let (mut v, mut w) = (vec![T::ONE; a.len()], reals::<T>(n * batch));
    let mut info = vec![7; batch];
    let in_out = InOut { src: Some(a), dst: &mut v[..] };
    eigh::syevd(job, uplo, batch, n, in_out, &mut w, &mut info, &Serial).unwrap();
    Bits::new(batch).and(&v).and(&w).integers(&info)
}

fn sytrd<T: Scalar>(uplo: Uplo, n: usize, batch: usize, a: &[T]) -> Bits {
    let (mut q, mut tau) = (vec![T::ONE; a.len()], vec![T::ONE; (n - 1) * batch]);
    let (mut d, mut e) = (reals::<T>(n * batch), reals::<T>((n - 1) * batch));
    let mut info = vec![7; batch];
    let in_out = InOut { src: Some(a), dst: &mut q[..] };
    eigh::sytrd::sytrd(uplo, batch, n, in_out, &mut d, &mut e, &mut tau, &mut info, &Serial)
        .unwrap();
    Bits::new(batch).and(&q).and(&d).and(&e).and(&tau).integers(&info)
}

fn hermitian<T: Scalar<Real: Scalar>>() {
    compare::<T>(&[
        ("syevd L", |n, batch, a| syevd(Vectors::Wanted, Uplo::Lower, n, batch, a)),
        ("syevd U", |n, batch, a| syevd(Vectors::Wanted, Uplo::Upper, n, batch, a)),
        ("syevd N", |n, batch, a| syevd(Vectors::None, Uplo::Lower, n, batch, a)),
        ("sytrd L", |n, batch, a| sytrd(Uplo::Lower, n, batch, a)),
        ("sytrd U", |n, batch, a| sytrd(Uplo::Upper, n, batch, a)),
        ("eigh", |n, batch, a| {
            let (mut v, mut w) = (vec![T::ONE; a.len()], reals::<T>(n * batch));
            let in_out = InOut { src: Some(a), dst: &mut v[..] };
            eigh::eigh(Uplo::Lower, batch, n, in_out, &mut w, &Serial).unwrap();
            Bits::new(batch).and(&v).and(&w)
        }),
        ("eigvalsh", |n, batch, a| {
            let mut w = reals::<T>(n * batch);
            eigh::eigvalsh(Uplo::Upper, batch, n, a, &mut w, &Serial).unwrap();
            Bits::new(batch).and(&w)
        }),
    ]);
}

/// Of m × n matrices, which are the first columns or rows of each, and zeros below or beside them if there are not
/// as many.
fn svd_of<T: Scalar<Real: Scalar>>(
    job: SingularVectors,
    by_rows: bool,
    (m, n): (usize, usize),
    order: usize,
    batch: usize,
    a: &[T],
) -> Bits {
    let at = |a: &[T], p: usize| a.get(p % m + p / m * order).copied().unwrap_or(T::ZERO);
    let mut cut: Vec<T> =
        a.chunks_exact(order * order).flat_map(|a| (0..m * n).map(|p| at(a, p))).collect();
    let (k, (rows, columns)) = (m.min(n), job.sides(m, n));
    let mut s = reals::<T>(k * batch);
    let (mut u, mut vt) = (vec![T::ONE; m * rows * batch], vec![T::ONE; columns * n * batch]);
    let mut info = vec![7; batch];
    if by_rows {
        svd::svd(job, batch, m, n, &cut, &mut s, &mut u, &mut vt, &Serial).unwrap();
    } else {
        let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
        let in_out = InOut { src: None, dst: &mut cut[..] };
        svd::gesdd(job, batch, m, n, in_out, results, &Serial).unwrap();
    }
    Bits::new(batch).and(&s).and(&u).and(&vt).integers(&info)
}

fn singular<T: Scalar<Real: Scalar>>() {
    use SingularVectors::{All, None, Thin};
    compare::<T>(&[
        ("gesdd all", |n, batch, a| svd_of(All, false, (n, n), n, batch, a)),
        ("gesdd none", |n, batch, a| svd_of(None, false, (n, n), n, batch, a)),
        ("gesdd thin tall", |n, batch, a| svd_of(Thin, false, (3 * n, n), n, batch, a)),
        ("gesdd all wide", |n, batch, a| svd_of(All, false, (n, n + 1), n, batch, a)),
        ("gesdd none wide", |n, batch, a| svd_of(None, false, (n, 2 * n), n, batch, a)),
        ("svd thin", |n, batch, a| svd_of(Thin, true, (n, n), n, batch, a)),
        ("svd none", |n, batch, a| svd_of(None, true, (n, n), n, batch, a)),
    ]);
}

/// Each matrix with so much added to its diagonal.
fn shifted<T: Scalar>(n: usize, a: &[T], shift: usize) -> Vec<T> {
    let shift = T::from_real(T::Real::from_f64(shift as f64));
    let is_diagonal = |p: usize| (p % (n * n)).is_multiple_of(n + 1);
    let each = a.iter().enumerate();
    each.map(|(p, &x)| if is_diagonal(p) { x + shift } else { x }).collect()
}

/// Some columns of each matrix.
fn columns<T: Scalar>(n: usize, a: &[T], count: usize) -> Vec<T> {
    a.chunks_exact(n * n).flat_map(|a| a[..n * count].to_vec()).collect()
}

fn potrf<T: Scalar>(uplo: Uplo, n: usize, batch: usize, a: &[T]) -> Bits {
    let (mut l, mut info) = (shifted(n, a, 4 * n), vec![7; batch]);
    let in_out = InOut { src: Option::None, dst: &mut l[..] };
    cholesky::potrf(uplo, batch, n, in_out, &mut info, &Serial).unwrap();
    Bits::new(batch).and(&l).integers(&info)
}

fn factors<T: Scalar>() {
    compare::<T>(&[
        ("getrf", |n, batch, a| {
            let (mut lu, mut ipiv, mut info) = (a.to_vec(), vec![7; n * batch], vec![7; batch]);
            let in_out = InOut { src: None, dst: &mut lu[..] };
            lu::getrf(batch, n, n, in_out, &mut ipiv, &mut info, &Serial).unwrap();
            Bits::new(batch).and(&lu).integers(&ipiv).integers(&info)
        }),
        ("lu and lu_solve", |n, batch, a| {
            let mut lu = vec![T::ONE; a.len()];
            let [mut pivots, mut permutation] = [7; 2].map(|x| vec![x; n * batch]);
            let in_out = InOut { src: Some(a), dst: &mut lu[..] };
            lu::lu(batch, n, n, in_out, &mut pivots, &mut permutation, &Serial).unwrap();
            let bits = Bits::new(batch).and(&lu).integers(&pivots).integers(&permutation);
            let systems = [(Trans::None, 1), (Trans::ConjTranspose, 1), (Trans::Transpose, 2)];
            systems.into_iter().fold(bits, |bits, (trans, nrhs)| {
                let (b, mut x) = (columns(n, a, nrhs), vec![T::ONE; n * nrhs * batch]);
                lu::lu_solve(trans, batch, n, nrhs, &lu, &permutation, &b, &mut x, &Serial)
                    .unwrap();
                bits.and(&x)
            })
        }),
        ("potrf L", |n, batch, a| potrf(Uplo::Lower, n, batch, a)),
        ("potrf U", |n, batch, a| potrf(Uplo::Upper, n, batch, a)),
        ("cholesky", |n, batch, a| {
            let mut l = shifted(n, a, 4 * n);
            let in_out = InOut { src: None, dst: &mut l[..] };
            cholesky::cholesky(true, batch, n, in_out, &Serial).unwrap();
            Bits::new(batch).and(&l)
        }),
        ("cholesky_update", |n, batch, a| {
            let (mut r, mut w) = (shifted(n, a, 4 * n), columns(n, a, 1));
            let [r_out, w_out] = [&mut r, &mut w].map(|x| InOut { src: None, dst: &mut x[..] });
            update::cholesky_update(batch, n, r_out, w_out, &Serial).unwrap();
            Bits::new(batch).and(&r)
        }),
        ("geqrf, orgqr and ormqr", |n, batch, a| {
            let (mut f, mut tau) = (a.to_vec(), vec![T::ONE; n * batch]);
            let in_out = InOut { src: None, dst: &mut f[..] };
            qr::geqrf(batch, n, n, in_out, &mut tau, &Serial).unwrap();
            let (mut q, mut c) = (f.clone(), a.to_vec());
            let q_out = InOut { src: None, dst: &mut q[..] };
            q::orgqr(batch, n, n, n, q_out, &tau, &Serial).unwrap();
            let c_out = InOut { src: None, dst: &mut c[..] };
            let (side, adjoint) = (Side::Left, Factor::Adjoint);
            q::ormqr(side, adjoint, batch, n, n, n, n, &f, &tau, c_out, &Serial).unwrap();
            Bits::new(batch).and(&f).and(&tau).and(&q).and(&c)
        }),
        ("qr", |n, batch, a| {
            let (mut q, mut r) = (vec![T::ONE; a.len()], vec![T::ONE; a.len()]);
            qr::qr(batch, (n, n, n), a, &mut q, &mut r, &Serial).unwrap();
            Bits::new(batch).and(&q).and(&r)
        }),
        ("slogdet", |n, batch, a| {
            let (mut sign, mut logabs) = (vec![T::ONE; batch], reals::<T>(batch));
            determinant::slogdet(batch, n, a, &mut sign, &mut logabs, &Serial).unwrap();
            Bits::new(batch).and(&sign).and(&logabs)
        }),
    ]);
}

/// The three diagonals of each matrix, to whose main one `shift` is added.
fn diagonals<T: Scalar>(n: usize, a: &[T], shift: usize) -> [Vec<T>; 3] {
    let a = shifted(n, a, shift);
    [1, 0, -1].map(|below: isize| {
        let at = |a: &[T], j: usize| {
            let i = j.checked_add_signed(-below).filter(|&i| i < n);
            i.map_or(T::ZERO, |i| a[j + i * n])
        };
        a.chunks_exact(n * n).flat_map(|a| (0..n).map(|j| at(a, j)).collect::<Vec<T>>()).collect()
    })
}

fn tridiagonal_solve<T: Scalar>(
    shift: usize,
    nrhs: usize,
    n: usize,
    batch: usize,
    a: &[T],
) -> Bits {
    let [mut dl, mut d, mut du] = diagonals(n, a, shift);
    let (mut b, mut info) = (columns(n, a, nrhs), vec![7; batch]);
    let [mut x, mut y] = [(), ()].map(|()| vec![T::ONE; n * nrhs * batch]);
    let given = [&dl[..], &d, &du];
    tridiagonal::tridiagonal_solve(batch, n, nrhs, given, &b, &mut x, &Serial).unwrap();
    tridiagonal::tridiagonal_solve_perturbed(batch, n, nrhs, given, &b, &mut y, &Serial).unwrap();
    let in_out = |x| InOut { src: None, dst: x };
    let a = Diagonals { dl: in_out(&mut dl[..]), d: in_out(&mut d), du: in_out(&mut du) };
    tridiagonal::gtsv(batch, n, nrhs, a, in_out(&mut b), &mut info, &Serial).unwrap();
    let bits = Bits::new(batch).and(&x).and(&y).and(&b);
    bits.and(&dl).and(&d).and(&du).integers(&info)
}

fn trsm<T: Scalar>(uplo: Uplo, trans: Trans, n: usize, batch: usize, a: &[T]) -> Bits {
    let (triangle, mut x) = (shifted(n, a, 1), columns(n, a, 1));
    let in_out = InOut { src: None, dst: &mut x[..] };
    let (side, diag) = (Side::Left, Diag::NonUnit);
    triangular::trsm(side, uplo, trans, diag, batch, n, 1, &triangle, in_out, &Serial).unwrap();
    Bits::new(batch).and(&x)
}

fn systems<T: Scalar>() {
    compare::<T>(&[
        // Larger ones are factored some at once, and not in lanes.
        ("solve", |n, batch, a| {
            if n > lu::route::LANES {
                return Bits::new(batch);
            }
            [1, n].into_iter().fold(Bits::new(batch), |bits, nrhs| {
                let (b, mut x) = (columns(n, a, nrhs), vec![T::ONE; n * nrhs * batch]);
                solve::solve(batch, n, nrhs, a, &b, &mut x, &Serial).unwrap();
                bits.and(&x)
            })
        }),
        ("inv", |n, batch, a| {
            if n > lu::route::LANES {
                return Bits::new(batch);
            }
            let mut x = vec![T::ONE; a.len()];
            solve::inv(batch, n, a, &mut x, &Serial).unwrap();
            Bits::new(batch).and(&x)
        }),
        ("trsm L", |n, batch, a| trsm(Uplo::Lower, Trans::None, n, batch, a)),
        ("trsm U", |n, batch, a| trsm(Uplo::Upper, Trans::ConjTranspose, n, batch, a)),
        ("tridiagonal", |n, batch, a| tridiagonal_solve(0, 1, n, batch, a)),
        ("tridiagonal shifted", |n, batch, a| tridiagonal_solve(3, 1, n, batch, a)),
        ("tridiagonal, two", |n, batch, a| tridiagonal_solve(3, 2, n, batch, a)),
    ]);
}
