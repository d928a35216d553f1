//! Batches of 100,000 tiny matrices, all different: the first, the last and some between have the
//! bits that they have in a batch of their own, whatever is beside them.

use lapax_cpu::eig::Eigen;
use lapax_cpu::qr::Factor;
use lapax_cpu::schur::Eigenvalues;
use lapax_cpu::svd::Svd;
use lapax_cpu::tridiagonal::{Diagonals, tridiagonal_solve_perturbed};
use lapax_cpu::{
    Diag, InOut, Serial, Side, SingularVectors, Spawned, Threads, Trans, Uplo, Vectors,
};
use lapax_cpu::{cholesky::cholesky_update, lu::lu_pivots_to_permutation};

use crate::backend::{Backend, call};
use crate::for_each_backend;
use crate::sample::{Random, Sample, bits};
use crate::sweep::FEW;

for_each_backend!(
    potrf, getrf, geqrf, orgqr, ormqr, geqp3, syevd, sytrd, gesdd, gesvd, geev, gees, gehrd, trsm,
    gtsv,
);
crate::for_each_scalar!(updates, perturbed);

const BATCH: usize = 100_000;

/// What a call returns: the bits of one result after another.
type Results = Vec<Vec<(u64, u64)>>;
/// A call on a batch of `a` and `b`, which have M·M elements each per matrix.
type Call<'a, T> = &'a dyn Fn(usize, Vec<T>, Vec<T>, &dyn Threads) -> Results;

/// The order of the matrices.
const M: usize = 2;

/// Compares matrices of the large batch with calls of their own.
fn compare<T: Sample>(call: Call<'_, T>) {
    let mut random = Random(17);
    let mut elements = || -> Vec<T> {
        (0..BATCH * M * M)
            .map(|k| {
                // Diagonally dominant, so that every family factors it.
                let diagonal = if (k % (M * M)).is_multiple_of(M + 1) { 3.0 } else { 0.0 };
                T::narrow(random.scalar(), 0) + T::from_f64(diagonal)
            })
            .collect()
    };
    let (mut a, b) = (elements(), elements());
    // One that is not finite, between two that are looked at.
    a[2 * M * M] = T::nan();
    let all = call(BATCH, a.clone(), b.clone(), &Spawned(2));
    let mut random = Random(18);
    let mut any = || usize::try_from(random.below(BATCH as u64)).unwrap();
    let some: Vec<usize> = [0, 1, 3, BATCH - 1].into_iter().chain((0..50).map(|_| any())).collect();
    for item in some {
        let of = |x: &[T]| x[item * M * M..(item + 1) * M * M].repeat(FEW);
        let few = call(FEW, of(&a), of(&b), &Serial);
        for (all, few) in all.iter().zip(&few) {
            let one = &few[..few.len() / FEW];
            assert!(!one.is_empty() && all[item * one.len()..][..one.len()] == *one, "{item}");
        }
    }
}

/// One column of each matrix.
fn column<T: Sample>(x: &[T], j: usize) -> Vec<T> {
    x.chunks_exact(M * M).flat_map(|x| x[j * M..(j + 1) * M].iter().copied()).collect()
}

fn integers(x: &[i32]) -> Vec<(u64, u64)> {
    x.iter().map(|&x| (u64::from(x.cast_unsigned()), 0)).collect()
}

fn inside<T>(x: &mut [T]) -> InOut<'_, T> {
    InOut { src: None, dst: x }
}

fn potrf<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let (mut info, x) = (vec![-7; batch], inside(&mut a));
        call!(backend, cholesky::potrf(Uplo::Lower, batch, M, x, &mut info, threads)).unwrap();
        vec![bits(&a), integers(&info)]
    });
}

fn getrf<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let (mut ipiv, mut info) = (vec![-7; batch * M], vec![-7; batch]);
        let x = inside(&mut a);
        call!(backend, lu::getrf(batch, M, M, x, &mut ipiv, &mut info, threads)).unwrap();
        let mut permutation = vec![-7; batch * M];
        let pivots: Vec<i32> = ipiv.iter().map(|pivot| pivot - 1).collect();
        lu_pivots_to_permutation(batch, M, M, &pivots, &mut permutation, threads).unwrap();
        vec![bits(&a), integers(&ipiv), integers(&info), integers(&permutation)]
    });
}

fn geqrf<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let mut tau = vec![T::nan(); batch * M];
        call!(backend, qr::geqrf(batch, M, M, inside(&mut a), &mut tau, threads)).unwrap();
        vec![bits(&a), bits(&tau)]
    });
}

fn orgqr<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, b, threads| {
        let (x, tau) = (inside(&mut a), column(&b, 0));
        call!(backend, qr::orgqr(batch, M, M, M, x, &tau, threads)).unwrap();
        vec![bits(&a)]
    });
}

fn ormqr<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, a, mut b, threads| {
        let (tau, c) = (vec![T::from_f64(1.5); batch], inside(&mut b));
        let (side, q) = (Side::Left, Factor::Adjoint);
        call!(backend, qr::ormqr(side, q, batch, M, M, M, 1, &a, &tau, c, threads)).unwrap();
        vec![bits(&b)]
    });
}

fn geqp3<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let (mut jpvt, mut tau) = (vec![0; batch * M], vec![T::nan(); batch * M]);
        let (x, p) = (inside(&mut a), inside(&mut jpvt));
        call!(backend, qr::geqp3(batch, M, M, x, p, &mut tau, threads)).unwrap();
        vec![bits(&a), integers(&jpvt), bits(&tau)]
    });
}

fn syevd<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let (mut w, mut info) = (vec![T::nan().re(); batch * M], vec![-7; batch]);
        let (v, job, uplo) = (inside(&mut a), Vectors::Wanted, Uplo::Lower);
        call!(backend, eigh::syevd(job, uplo, batch, M, v, &mut w, &mut info, threads)).unwrap();
        let w: Vec<T> = w.into_iter().map(T::from_real).collect();
        vec![bits(&a), bits(&w), integers(&info)]
    });
}

fn sytrd<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let nan = T::nan().re();
        let (mut d, mut e) = (vec![nan; batch * M], vec![nan; batch * (M - 1)]);
        let (mut tau, mut info) = (vec![T::nan(); batch * (M - 1)], vec![-7; batch]);
        let (x, t, i) = (inside(&mut a), &mut tau, &mut info);
        call!(backend, eigh::sytrd(Uplo::Lower, batch, M, x, &mut d, &mut e, t, i, threads))
            .unwrap();
        let d: Vec<T> = d.into_iter().chain(e).map(T::from_real).collect();
        vec![bits(&a), bits(&d[..batch * M]), bits(&d[batch * M..]), bits(&tau), integers(&info)]
    });
}

fn gesdd<T: Sample>(backend: Backend) {
    svd::<T>(backend, false);
}

fn gesvd<T: Sample>(backend: Backend) {
    svd::<T>(backend, true);
}

fn svd<T: Sample>(backend: Backend, qr: bool) {
    compare::<T>(&|batch, mut a, _, threads| {
        let square = || vec![T::nan(); batch * M * M];
        let (mut s, mut u, mut vt) = (vec![T::nan().re(); batch * M], square(), square());
        let mut info = vec![-7; batch];
        let (x, job) = (inside(&mut a), SingularVectors::Thin);
        let results = Svd { s: &mut s, u: &mut u, vt: &mut vt, info: &mut info };
        if qr {
            call!(backend, svd::gesvd(job, batch, M, M, x, results, threads)).unwrap();
        } else {
            call!(backend, svd::gesdd(job, batch, M, M, x, results, threads)).unwrap();
        }
        let s: Vec<T> = s.into_iter().map(T::from_real).collect();
        vec![bits(&s), bits(&u), bits(&vt), integers(&info)]
    });
}

/// What eigenvalues are written to: of a real matrix their parts, of a complex one the first alone.
fn eigenvalues<'a, T: Sample>([wr, wi]: [&'a mut [T]; 2]) -> Eigenvalues<'a, T> {
    if T::IS_COMPLEX { Eigenvalues::Whole(wr) } else { Eigenvalues::Parts(wr, wi) }
}

fn geev<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, a, _, threads| {
        let zero = <T::Complex as lapax_core::Scalar>::ZERO;
        let (mut left, mut right) = (vec![zero; a.len()], vec![zero; a.len()]);
        let (mut wr, mut wi) = (vec![T::ZERO; batch * M], vec![T::ZERO; batch * M]);
        let mut info = vec![-7; batch];
        let w = eigenvalues([&mut wr, &mut wi]);
        let results = Eigen { w, left: &mut left, right: &mut right, info: &mut info };
        let both = Vectors::Wanted;
        call!(backend, eig::geev(both, both, batch, M, &a, results, threads)).unwrap();
        let parts = |x: &[T::Complex]| -> Vec<(u64, u64)> {
            use lapax_core::{Real as _, Scalar as _};
            x.iter().map(|x| (x.re().to_f64().to_bits(), x.im().to_f64().to_bits())).collect()
        };
        vec![bits(&wr), bits(&wi), parts(&left), parts(&right), integers(&info)]
    });
}

fn gees<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, mut z, threads| {
        let (mut wr, mut wi) = (vec![T::ZERO; batch * M], vec![T::ZERO; batch * M]);
        let (mut sdim, mut info) = (vec![-7; batch], vec![-7; batch]);
        let (w, x) = (eigenvalues([&mut wr, &mut wi]), inside(&mut a));
        let (job, s, i) = (Vectors::Wanted, &mut sdim, &mut info);
        call!(backend, schur::gees(job, batch, M, x, &mut z, w, s, i, threads)).unwrap();
        vec![bits(&a), bits(&z), bits(&wr), bits(&wi), integers(&sdim), integers(&info)]
    });
}

fn gehrd<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, mut a, _, threads| {
        let (mut tau, mut info) = (vec![T::nan(); batch * (M - 1)], vec![-7; batch]);
        let (x, t) = (inside(&mut a), &mut tau);
        call!(backend, hessenberg::gehrd(batch, M, 1, M, x, t, &mut info, threads)).unwrap();
        vec![bits(&a), bits(&tau), integers(&info)]
    });
}

fn trsm<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, a, mut b, threads| {
        let (side, uplo, x) = (Side::Right, Uplo::Upper, inside(&mut b));
        let (trans, diag) = (Trans::ConjTranspose, Diag::NonUnit);
        call!(backend, triangular::trsm(side, uplo, trans, diag, batch, M, M, &a, x, threads))
            .unwrap();
        vec![bits(&b)]
    });
}

fn gtsv<T: Sample>(backend: Backend) {
    compare::<T>(&|batch, a, b, threads| {
        let (mut dl, mut du, mut x) = (column(&a, 0), column(&a, 1), column(&b, 0));
        let (mut d, mut info) = (vec![T::from_f64(4.0); batch * M], vec![-7; batch]);
        let diagonals = Diagonals { dl: inside(&mut dl), d: inside(&mut d), du: inside(&mut du) };
        let (rhs, i) = (inside(&mut x), &mut info);
        call!(backend, tridiagonal::gtsv(batch, M, 1, diagonals, rhs, i, threads)).unwrap();
        vec![bits(&x), integers(&info)]
    });
}

fn perturbed<T: Sample>() {
    compare::<T>(&|batch, a, b, threads| {
        let (dl, du, rhs) = (column(&a, 0), column(&a, 1), column(&b, 0));
        let (d, mut x) = (vec![T::from_f64(4.0); batch * M], vec![T::nan(); batch * M]);
        tridiagonal_solve_perturbed(batch, M, 1, [&dl, &d, &du], &rhs, &mut x, threads).unwrap();
        vec![bits(&x)]
    });
}

fn updates<T: Sample>() {
    compare::<T>(&|batch, mut a, b, threads| {
        let mut w = column(&b, 0);
        cholesky_update(batch, M, inside(&mut a), inside(&mut w), threads).unwrap();
        vec![bits(&a), bits(&w)]
    });
}
