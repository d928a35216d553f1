//! Every batched kernel on several threads, for a race detector: `docs/memory-and-races.md`.
//!
//! Valgrind's DRD knows `pthread_create` and `pthread_join`, and no futex, of which std makes its
//! locks. So here a thread is started for its share of the pieces, and joined, and waits for nothing
//! else. Each result is compared with that of one thread.
#![allow(clippy::unwrap_used, reason = "a program that checks: a panic is its report")]

use lapax_cpu::eig::{self, Eigen};
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;
use lapax_cpu::tridiagonal::Diagonals;
use lapax_cpu::{
    Diag, InOut, Serial, Side, SingularVectors, Threads, Trans, Uplo, Vectors, cholesky,
    determinant, eigh, hessenberg, lu, qr, schur, solve, svd, triangular, tridiagonal,
};
use num_complex::Complex;

/// Three threads, each of which takes every third piece.
struct Joined;

impl Threads for Joined {
    fn count(&self) -> usize {
        3
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            let share = |first: usize| move || (first..chunks).step_by(3).for_each(body);
            let started: Vec<_> = (0..3).map(|first| scope.spawn(share(first))).collect();
            started.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// The operands of one size, and results of every kind.
struct Problem {
    n: usize,
    batch: usize,
    /// Symmetric and positive definite.
    a: Vec<f64>,
    /// One of each per matrix: n × n, n, and integers.
    matrices: [Vec<f64>; 3],
    vectors: [Vec<f64>; 4],
    integers: [Vec<i32>; 2],
    info: Vec<i32>,
    complex: [Vec<Complex<f64>>; 2],
}

impl Problem {
    fn new(n: usize, batch: usize) -> Self {
        let entry = |p: usize| {
            let (b, i, j) = (p / (n * n), p % n, p / n % n);
            let real = |k: usize| f64::from(u32::try_from(k).unwrap());
            let small = real((i * j + b) % 7) / 64.0;
            if i == j { 4.0 + small } else { small / real(1 + i.abs_diff(j)) }
        };
        Self {
            n,
            batch,
            a: (0..n * n * batch).map(entry).collect(),
            matrices: std::array::from_fn(|_| vec![0.0; n * n * batch]),
            vectors: std::array::from_fn(|_| vec![1.0; n * batch]),
            integers: std::array::from_fn(|_| vec![0; n * batch]),
            info: vec![0; batch],
            complex: std::array::from_fn(|_| vec![Complex::ZERO; n * n * batch]),
        }
    }

    /// The bits of all results.
    fn bits(&self) -> Vec<u64> {
        let reals = self.matrices.iter().chain(&self.vectors).flatten().map(|x| x.to_bits());
        let complex = self.complex.iter().flatten().flat_map(|z| [z.re.to_bits(), z.im.to_bits()]);
        let integers = self.integers.iter().chain([&self.info]).flatten();
        reals.chain(complex).chain(integers.map(|i| u64::from(i.cast_unsigned()))).collect()
    }
}

type Run = fn(&mut Problem, &dyn Threads) -> Result<(), lapax_cpu::Error>;

/// `InOut` of an operand and its result.
fn to<'a, T>(src: &'a [T], dst: &'a mut [T]) -> InOut<'a, T> {
    InOut { src: Some(src), dst }
}

const RUNS: &[(&str, Run)] = &[
    ("getrf", |p, threads| {
        let [m, ..] = &mut p.matrices;
        let [pivots, _] = &mut p.integers;
        lu::getrf(p.batch, p.n, p.n, to(&p.a, m), pivots, &mut p.info, threads)
    }),
    ("lu and lu_solve", |p, threads| {
        let [m, x, _] = &mut p.matrices;
        let [pivots, rows] = &mut p.integers;
        lu::lu(p.batch, p.n, p.n, to(&p.a, m), pivots, rows, threads)?;
        lu::lu_solve(Trans::Transpose, p.batch, p.n, p.n, m, rows, &p.a, x, threads)
    }),
    ("solve, inv and slogdet", |p, threads| {
        let ([x, inverse, _], [sign, logabs, ..]) = (&mut p.matrices, &mut p.vectors);
        let (sign, logabs) = (&mut sign[..p.batch], &mut logabs[..p.batch]);
        solve::solve(p.batch, p.n, p.n, &p.a, &p.a, x, threads)?;
        solve::inv(p.batch, p.n, &p.a, inverse, threads)?;
        determinant::slogdet(p.batch, p.n, &p.a, sign, logabs, threads)
    }),
    ("potrf", |p, threads| {
        let [m, ..] = &mut p.matrices;
        cholesky::potrf(Uplo::Lower, p.batch, p.n, to(&p.a, m), &mut p.info, threads)
    }),
    ("cholesky and cholesky_update", |p, threads| {
        let ([l, r, _], [w, v, ..]) = (&mut p.matrices, &mut p.vectors);
        cholesky::cholesky(true, p.batch, p.n, to(&p.a, l), threads)?;
        cholesky::cholesky_update(p.batch, p.n, to(&p.a, r), to(w, v), threads)
    }),
    ("trsm", |p, threads| {
        let [m, ..] = &mut p.matrices;
        let (side, uplo, trans, diag) = (Side::Right, Uplo::Lower, Trans::None, Diag::NonUnit);
        triangular::trsm(side, uplo, trans, diag, p.batch, p.n, p.n, &p.a, to(&p.a, m), threads)
    }),
    ("geqrf, orgqr and ormqr", |p, threads| {
        let ([m, q, c], [tau, ..]) = (&mut p.matrices, &mut p.vectors);
        let (batch, n) = (p.batch, p.n);
        qr::geqrf(batch, n, n, to(&p.a, m), tau, threads)?;
        qr::orgqr(batch, n, n, n, to(m, q), tau, threads)?;
        let adjoint = qr::Factor::Adjoint;
        qr::ormqr(Side::Left, adjoint, batch, n, n, n, n, m, tau, to(&p.a, c), threads)
    }),
    ("qr", |p, threads| {
        let [q, r, _] = &mut p.matrices;
        qr::qr(p.batch, (p.n, p.n, p.n), &p.a, q, r, threads)
    }),
    ("geqp3", |p, threads| {
        let ([m, ..], [tau, ..], [jpvt, _]) = (&mut p.matrices, &mut p.vectors, &mut p.integers);
        let jpvt = InOut { src: None, dst: &mut jpvt[..] };
        qr::geqp3(p.batch, p.n, p.n, to(&p.a, m), jpvt, tau, threads)
    }),
    ("syevd", |p, threads| {
        let ([v, ..], [w, ..]) = (&mut p.matrices, &mut p.vectors);
        let (job, uplo) = (Vectors::Wanted, Uplo::Lower);
        eigh::syevd(job, uplo, p.batch, p.n, to(&p.a, v), w, &mut p.info, threads)
    }),
    ("eigh and eigvalsh", |p, threads| {
        let ([v, ..], [w, alone, ..]) = (&mut p.matrices, &mut p.vectors);
        eigh::eigh(Uplo::Lower, p.batch, p.n, to(&p.a, v), w, threads)?;
        eigh::eigvalsh(Uplo::Upper, p.batch, p.n, &p.a, alone, threads)
    }),
    ("sytrd", |p, threads| {
        let ([m, ..], [d, e, tau, _]) = (&mut p.matrices, &mut p.vectors);
        let beside = (p.n - 1) * p.batch;
        let (e, tau) = (&mut e[..beside], &mut tau[..beside]);
        eigh::sytrd(Uplo::Upper, p.batch, p.n, to(&p.a, m), d, e, tau, &mut p.info, threads)
    }),
    ("gesdd and gesvd", |p, threads| {
        let ([m, u, vt], [s, ..]) = (&mut p.matrices, &mut p.vectors);
        let (batch, n, all) = (p.batch, p.n, SingularVectors::All);
        let results = Svd { s, u, vt, info: &mut p.info };
        svd::gesdd(all, batch, n, n, to(&p.a, m), results, threads)?;
        let results = Svd { s, u, vt, info: &mut p.info };
        svd::gesvd(SingularVectors::None, batch, n, n, to(&p.a, m), results, threads)
    }),
    ("svd", |p, threads| {
        let ([u, vt, _], [s, alone, ..]) = (&mut p.matrices, &mut p.vectors);
        let (batch, n, all, none) = (p.batch, p.n, SingularVectors::All, SingularVectors::None);
        svd::svd(all, batch, n, n, &p.a, s, u, vt, threads)?;
        svd::svd(none, batch, n, n, &p.a, alone, &mut [], &mut [], threads)
    }),
    ("gehrd", |p, threads| {
        let ([m, ..], [tau, ..]) = (&mut p.matrices, &mut p.vectors);
        let tau = &mut tau[..(p.n - 1) * p.batch];
        hessenberg::gehrd(p.batch, p.n, 1, p.n, to(&p.a, m), tau, &mut p.info, threads)
    }),
    ("gees", |p, threads| {
        let ([t, z, _], [w, wi, ..]) = (&mut p.matrices, &mut p.vectors);
        let [sdim, _] = &mut p.integers;
        let (w, sdim) = (Eigenvalues::Parts(w, wi), &mut sdim[..p.batch]);
        schur::gees(Vectors::Wanted, p.batch, p.n, to(&p.a, t), z, w, sdim, &mut p.info, threads)
    }),
    ("geev", |p, threads| {
        let ([w, wi, ..], [left, right]) = (&mut p.vectors, &mut p.complex);
        let results = Eigen { w: Eigenvalues::Parts(w, wi), left, right, info: &mut p.info };
        eig::geev(Vectors::Wanted, Vectors::Wanted, p.batch, p.n, &p.a, results, threads)
    }),
    ("gtsv", |p, threads| {
        let [dl, d, du, x] = &mut p.vectors;
        let a = &p.a[..p.n * p.batch];
        let a = Diagonals { dl: to(a, dl), d: to(a, d), du: to(a, du) };
        let x = InOut { src: None, dst: &mut x[..] };
        tridiagonal::gtsv(p.batch, p.n, 1, a, x, &mut p.info, threads)
    }),
    ("tridiagonal_solve, perturbed and not", |p, threads| {
        let [b, x, y, _] = &mut p.vectors;
        let a = [&p.a[..p.n * p.batch]; 3];
        tridiagonal::tridiagonal_solve(p.batch, p.n, 1, a, b, x, threads)?;
        tridiagonal::tridiagonal_solve_perturbed(p.batch, p.n, 1, a, b, y, threads)
    }),
];

fn main() {
    for (name, run) in RUNS {
        // Through lanes; alone; in blocks. Enough of each to be cut into pieces.
        for (n, batch) in [(4, 6000), (40, 40), (130, 6)] {
            let results = |threads: &dyn Threads| {
                let mut problem = Problem::new(n, batch);
                run(&mut problem, threads).unwrap();
                problem.bits()
            };
            assert!(results(&Serial) == results(&Joined), "{name}: {n} x {n}, {batch} matrices");
        }
        println!("{name}: the same bits on three threads as on one");
    }
}
