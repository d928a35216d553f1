//! One pair of matrices, in double precision whatever it was, and of order 1: a power of two each is exact.

use lapax_core::{Real as _, Scalar as _};

use super::eigenvectors::{Form, Which};
use super::pencil::Pencil;
use crate::Scalar;
use crate::lanes;
use crate::lanes::generalised_schur::Finish;
use crate::simd::arch::Arch;
use crate::simd::cache_line::stride;
use crate::simd::range::{largest_part, power_near_reciprocal};
use crate::simd::scalar::{nan, narrow, widen};

/// The results for one pair: S and T, which are at first what is worked on, Q and Z, α and β.
pub(crate) struct Results<'a, T: Scalar> {
    pub(crate) s: &'a mut [T],
    pub(crate) t: &'a mut [T],
    pub(crate) q: &'a mut [T],
    pub(crate) z: &'a mut [T],
    pub(crate) alpha: &'a mut [T::Complex],
    pub(crate) beta: &'a mut [T::Real],
}

impl<T: Scalar> Results<'_, T> {
    /// There are none.
    fn refuse(self) {
        [self.s, self.t, self.q, self.z].into_iter().for_each(|x| x.fill(nan()));
        self.alpha.fill(nan());
        self.beta.fill(nan());
    }
}

/// What ends the work of lanes.
pub(crate) struct Lanes<D: Scalar> {
    pub(crate) work: Work<D>,
    pub(crate) arch: Arch,
}

impl<D: Scalar<Real = f64>, T: Scalar<Double = D>> Finish<T> for Lanes<D> {
    fn finish(&mut self, ([s, t, q, z], alpha, beta): lanes::generalised_schur::Results<'_, T>) {
        self.work.settle(Results { s, t, q, z, alpha, beta }, self.arch);
    }

    fn single(&mut self, ([s, t, q, z], alpha, beta): lanes::generalised_schur::Results<'_, T>) {
        self.work.decompose(Results { s, t, q, z, alpha, beta }, self.arch);
    }
}

/// What one pair after another reuses.
pub(crate) struct Work<D: Scalar> {
    n: usize,
    /// Of these four matrices.
    ld: usize,
    s: Vec<D>,
    t: Vec<D>,
    qh: Vec<D>,
    zt: Vec<D>,
    alpha: Vec<D::Complex>,
    beta: Vec<D::Real>,
    /// Two vectors.
    more: Vec<D>,
}

impl<D: Scalar<Real = f64>> Work<D> {
    /// For pairs of order n.
    pub(crate) fn new(n: usize) -> Self {
        let ld = stride::<D>(n);
        let square = || vec![D::ZERO; n * ld];
        Self {
            n,
            ld,
            s: square(),
            t: square(),
            qh: square(),
            zt: square(),
            alpha: vec![D::Complex::ZERO; n],
            beta: vec![0.0; n],
            more: vec![D::ZERO; 2 * n],
        }
    }

    /// The Schur form of a pair; NaN where it is not finite, or there was no convergence.
    pub(crate) fn decompose<T: Scalar<Double = D>>(&mut self, of: Results<'_, T>, arch: Arch) {
        self.run(of, arch, |work| {
            for a in [&mut work.qh, &mut work.zt] {
                a.fill(D::ZERO);
                a.iter_mut().step_by(work.ld + 1).for_each(|x| *x = D::ONE);
            }
            let (mut pencil, more) = work.pencil(arch);
            let (v, sums) = more.split_at_mut(pencil.n);
            pencil.reduce(v, sums);
            pencil.iterate().is_ok()
        });
    }

    /// The same pair with chosen eigenvalues first; NaN where an exchange was rejected.
    pub(crate) fn reorder<T: Scalar<Double = D>>(
        &mut self,
        chosen: &[i32],
        of: Results<'_, T>,
        arch: Arch,
    ) {
        let (q, z) = (&of.q, &of.z);
        let finite = largest_part([&**q, &**z]).is_some();
        read(&mut self.qh, self.ld, q, self.n);
        read(&mut self.zt, self.ld, z, self.n);
        adjoint(&mut self.qh, self.n, self.ld, D::conj);
        adjoint(&mut self.zt, self.n, self.ld, |x| x);
        let ulp = 2.0 * T::Real::EPSILON.to_f64();
        self.run(of, arch, |work| finite && work.pencil(arch).0.reorder(chosen, ulp).is_ok());
    }

    /// Vectors of a pair in Schur form, in the columns of x; NaN where it is not finite.
    pub(crate) fn eigenvectors<T: Scalar<Double = D>>(
        &mut self,
        which: Which,
        (s, t): (&[T], &[T]),
        x: &mut [T::Complex],
        (vectors, sums): (&mut [D::Complex], &mut [D::Complex]),
        arch: Arch,
    ) {
        let n = self.n;
        if self.load(s, t).is_none() {
            return x.fill(nan());
        }
        self.find_values(arch);
        let form = Form { n, ld: self.ld, s: &self.s, t: &self.t };
        form.eigenvectors(which, (&self.alpha, &self.beta), vectors, sums);
        for (row, x) in x.chunks_exact_mut(n).enumerate() {
            for (x, vector) in x.iter_mut().zip(vectors.chunks_exact(n)) {
                narrow(std::slice::from_mut(x), &vector[row..=row]);
            }
        }
    }

    /// Takes S and T, does what is to be done and writes the results.
    fn run<T: Scalar<Double = D>>(
        &mut self,
        of: Results<'_, T>,
        arch: Arch,
        work: impl FnOnce(&mut Self) -> bool,
    ) {
        let Results { s, t, q, z, alpha, beta } = of;
        let done = self.load(s, t).filter(|_| work(self));
        if let Some([of_s, of_t]) = done {
            self.s.iter_mut().for_each(|x| *x = x.scale(of_s));
            self.t.iter_mut().for_each(|x| *x = x.scale(of_t));
            self.write(s, &self.s);
            self.write(t, &self.t);
        }
        let of = Results { s, t, q, z, alpha, beta };
        if done.is_none() {
            return of.refuse();
        }
        adjoint(&mut self.qh, self.n, self.ld, D::conj);
        adjoint(&mut self.zt, self.n, self.ld, |x| x);
        self.write(of.q, &self.qh);
        self.write(of.z, &self.zt);
        self.settle(of, arch);
    }

    /// The values of the form as it was rounded: those that its vectors belong to.
    fn settle<T: Scalar<Double = D>>(&mut self, of: Results<'_, T>, arch: Arch) {
        let Some([of_s, of_t]) = self.load(of.s, of.t) else { return of.refuse() };
        self.find_values(arch);
        self.alpha.iter_mut().for_each(|x| *x = x.scale(of_s));
        self.beta.iter_mut().for_each(|x| *x *= of_t);
        narrow(of.alpha, &self.alpha);
        narrow(of.beta, &self.beta);
    }

    /// S and T of order 1, and by what they are multiplied again; `None` where they are not finite.
    fn load<T: Scalar<Double = D>>(&mut self, s: &[T], t: &[T]) -> Option<[f64; 2]> {
        let mut powers = [1.0; 2];
        for ((to, from), power) in [(&mut self.s, s), (&mut self.t, t)].into_iter().zip(&mut powers)
        {
            read(to, self.ld, from, self.n);
            let factor = power_near_reciprocal(largest_part([&to[..]])?);
            to.iter_mut().for_each(|x| *x = x.scale(factor));
            *power = factor.recip();
        }
        Some(powers)
    }

    fn write<T: Scalar<Double = D>>(&self, to: &mut [T], from: &[D]) {
        for (to, from) in to.chunks_exact_mut(self.n).zip(from.chunks_exact(self.ld)) {
            narrow(to, from);
        }
    }

    fn find_values(&mut self, arch: Arch) {
        let (mut alpha, mut beta) =
            (std::mem::take(&mut self.alpha), std::mem::take(&mut self.beta));
        self.pencil(arch).0.values(&mut alpha, &mut beta);
        (self.alpha, self.beta) = (alpha, beta);
    }

    fn pencil(&mut self, arch: Arch) -> (Pencil<'_, D>, &mut [D]) {
        let Self { n, ld, s, t, qh, zt, more, .. } = self;
        (Pencil { n: *n, ld: *ld, s, t, qh, zt, arch }, more)
    }
}

/// A matrix into rows that are `ld` apart.
fn read<D: Scalar<Real = f64>, T: Scalar>(to: &mut [D], ld: usize, from: &[T], n: usize) {
    for (to, from) in to.chunks_exact_mut(ld).zip(from.chunks_exact(n)) {
        widen(to, from);
    }
}

/// The transpose of a square matrix in its place, of elements that were changed.
fn adjoint<T: Copy>(a: &mut [T], n: usize, ld: usize, change: impl Fn(T) -> T) {
    for i in 0..n {
        for j in 0..i {
            a.swap(i * ld + j, j * ld + i);
        }
    }
    a.iter_mut().for_each(|x| *x = change(*x));
}
