//! The Schur form of one matrix.

use lapax_core::{Real as _, Scalar as _, Serial};

use super::balance::{Balance, Scaling};
use super::francis::Iteration;
use super::multishift;
use crate::hessenberg::blocked;
use crate::hessenberg::reduce::{form_q, reduce};
use crate::lanes::schur::Finish;
use crate::matrix::layout::Layout;
use crate::matrix::phase;
use crate::matrix::transpose::transposed;
use crate::parallel::cost::nanoseconds;
use crate::simd::arch::Arch;
use crate::simd::range::all_finite;
use crate::simd::scalar::{Short, ShortRow, nan, narrow, widen, zeros};
use crate::{Scalar, Threads, Vectors};

/// Whether rounding, or a scaling, has taken a 2 × 2 block's form: its diagonal elements are equal
/// still, but an element beside them may have vanished.
fn broken<T: Scalar>(t: &[T], n: usize, order: Layout) -> bool {
    (1..n).any(|j| {
        let (by_columns, by_rows) = (t[j + (j - 1) * n], t[j - 1 + j * n]);
        let (below, above) = match order {
            Layout::Columns => (by_columns, by_rows),
            Layout::Rows => (by_rows, by_columns),
        };
        below != T::ZERO && above == T::ZERO
    })
}

/// Decomposes in double precision what is single.
pub(crate) struct Double<T: Scalar> {
    scratch: Scratch<T::Double>,
    /// T, Z and the eigenvalues.
    results: [Short<T::Double>; 4],
}

impl<T: Scalar> Double<T> {
    /// For matrices of order n, whose eigenvalues have so many imaginary parts of their own.
    pub(crate) fn new(n: usize, imaginary: usize) -> Self {
        Self { scratch: Scratch::new(n), results: [n * n, n * n, n, imaginary].map(zeros) }
    }

    /// Decomposes one matrix, which `t` is at first; returns its `info`.
    pub(crate) fn decompose(
        &mut self,
        vectors: Vectors,
        [t, z, w, wi]: [&mut [T]; 4],
        arch: Arch,
    ) -> i32 {
        let n = w.len();
        widen(&mut self.results[0], t);
        let results = self.results.each_mut().map(|x| &mut x[..]);
        let info = decompose(results, &mut self.scratch, &Serial, arch);
        let [double_t, double_z, double_w, double_wi] = &self.results;
        narrow(t, double_t);
        narrow(z, double_z);
        narrow(w, double_w);
        narrow(wi, double_wi);
        if n > 0 && all_finite(t) {
            standardise(t, n, Some(&mut *z));
            eigenvalues(t, n, w, wi);
        }
        turn(vectors, t, z, n);
        info
    }
}

/// What ends the work of lanes.
pub(crate) struct Lanes<T: Scalar> {
    pub(crate) double: Double<T>,
    pub(crate) vectors: Vectors,
    /// Of T and Z.
    pub(crate) order: Layout,
    pub(crate) arch: Arch,
}

impl<T: Scalar> Finish<T> for Lanes<T> {
    /// By rows nobody asks for the eigenvalues, and all for Z.
    fn finish(&mut self, [t, z, w, wi]: [&mut [T]; 4]) {
        let (n, by_rows) = (w.len(), self.order == Layout::Rows);
        if !T::IS_COMPLEX && broken(t, n, self.order) {
            if by_rows {
                transposed(t, n);
                transposed(z, n);
            }
            standardise(t, n, Some(&mut *z));
            phase::schur(t, z, n);
            if by_rows {
                transposed(t, n);
                transposed(z, n);
            }
        }
        if !by_rows {
            eigenvalues(t, n, w, wi);
        }
        if self.vectors == Vectors::None {
            z.fill(T::ZERO);
        }
    }

    fn single(&mut self, [t, z, w, wi]: [&mut [T]; 4]) -> i32 {
        let (n, by_rows) = (w.len(), self.order == Layout::Rows);
        if by_rows {
            transposed(t, n);
        }
        let info = self.double.decompose(self.vectors, [&mut *t, &mut *z, w, wi], self.arch);
        if by_rows {
            transposed(t, n);
            transposed(z, n);
        }
        info
    }
}

/// Gives Z and T the phases of the rule; Z becomes zero where it is not asked for.
pub(crate) fn turn<T: Scalar>(vectors: Vectors, t: &mut [T], z: &mut [T], n: usize) {
    // Without a result all is NaN.
    if z.first().is_none_or(|z| z.is_nan()) {
        return;
    }
    phase::schur(t, z, n);
    if vectors == Vectors::None {
        z.fill(T::ZERO);
    }
}

/// Decomposes one matrix, which `t` is at first, up to the phases; returns its `info`.
pub(crate) fn decompose<T: Scalar>(
    [t, z, w, wi]: [&mut [T]; 4],
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> i32 {
    let n = w.len();
    z.fill(T::ZERO);
    if n == 0 {
        return 0;
    }
    let q = Some(&mut *z);
    let stop = if all_finite(t) { factor(t, n, q, scratch, threads, arch).err() } else { Some(0) };
    let Some(stop) = stop else {
        eigenvalues(t, n, w, wi);
        return 0;
    };
    for x in [t, z, w, wi] {
        x.fill(nan());
    }
    i32::try_from(stop).unwrap_or(i32::MAX)
}

/// An estimate of one matrix's time: the iteration was counted to cost about ten reductions.
pub(crate) fn cost<T: Scalar>(n: usize) -> usize {
    nanoseconds::<T>(n.saturating_mul(n).saturating_mul(n).saturating_mul(25))
}

/// The same in lanes, per matrix, from the times at `route::LANES`.
pub(crate) fn lanes_cost(n: usize) -> usize {
    n.saturating_mul(n).saturating_mul(15 + n / 2)
}

/// What one Schur decomposition after another reuses.
#[derive(Debug)]
pub(crate) struct Scratch<T: Scalar> {
    pub(crate) balance: Balance<T>,
    pub(crate) tau: ShortRow<T>,
    pub(crate) hessenberg: blocked::Scratch<T>,
    pub(crate) multishift: multishift::Scratch<T>,
}

impl<T: Scalar> Scratch<T> {
    /// For matrices of order n.
    pub(crate) fn new(n: usize) -> Self {
        Self {
            balance: Balance::new(n),
            tau: zeros(n.saturating_sub(1)),
            hessenberg: blocked::Scratch::new(n),
            multishift: multishift::Scratch::new(n),
        }
    }
}

/// A finite matrix's Schur form. `Err(i)` where only the eigenvalues from the i-th on were found.
fn factor<T: Scalar>(
    a: &mut [T],
    n: usize,
    mut z: Option<&mut [T]>,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    let scaling = Scaling::apply(a);
    scratch.balance.permute(a, n);
    schur_form(a, n, z.as_deref_mut(), true, scratch, threads, arch)?;
    if let Some(z) = z.as_deref_mut() {
        scratch.balance.undo_right(z, n);
    }
    scaling.undo(a);
    standardise(a, n, z);
    Ok(())
}

/// Restores the form of 2 × 2 blocks that rounding has taken an element from.
fn standardise<T: Scalar>(t: &mut [T], n: usize, z: Option<&mut [T]>) {
    let mut iteration = Iteration { h: t, n, q: z, rows: n, schur: true };
    for k in 0..n - 1 {
        if iteration.h[k + 1 + k * n] != T::ZERO {
            iteration.split(k);
        }
    }
}

/// T and Z of a balanced matrix; with `schur` false only T's diagonal blocks.
pub(crate) fn schur_form<T: Scalar>(
    a: &mut [T],
    n: usize,
    mut z: Option<&mut [T]>,
    schur: bool,
    scratch: &mut Scratch<T>,
    threads: &dyn Threads,
    arch: Arch,
) -> Result<(), usize> {
    let Scratch { balance, tau, hessenberg, multishift } = scratch;
    let active = balance.active.clone();
    reduce(a, n, active.clone(), tau, hessenberg, threads, arch);
    if let Some(z) = z.as_deref_mut() {
        form_q(a, n, active.clone(), tau, z, hessenberg, threads, arch);
    }
    for (j, column) in a.chunks_exact_mut(n).enumerate() {
        column[(j + 2).min(n)..].fill(T::ZERO);
    }
    let mut iteration = Iteration { h: a, n, q: z, rows: n, schur };
    multishift::run(&mut iteration, active, multishift, threads, arch)
}

/// The eigenvalues of a matrix in Schur form; `wi` is empty for a complex one.
pub(crate) fn eigenvalues<T: Scalar>(t: &[T], n: usize, w: &mut [T], wi: &mut [T]) {
    for (j, w) in w.iter_mut().enumerate() {
        *w = t[j + j * n];
    }
    wi.fill(T::ZERO);
    if wi.is_empty() {
        return;
    }
    for j in 1..n {
        let (b, c) = (t[j - 1 + j * n].re(), t[j + (j - 1) * n].re());
        if c != T::Real::ZERO {
            let size = b.abs().sqrt() * c.abs().sqrt();
            (wi[j - 1], wi[j]) = (T::from_real(size), T::from_real(-size));
        }
    }
}

#[cfg(feature = "testing")]
pub(crate) mod tests {
    use lapax_core::Serial;

    use super::{Scratch, broken, decompose};

    use crate::matrix::layout::Layout;
    use crate::schur::multishift::Patience;
    use crate::schur::values::Eigenvalues;
    use crate::schur::{gees, schur};
    use crate::simd::arch::Arch;
    use crate::{Error, InOut, Vectors};

    trials!(
        the_plain_iteration_goes_on_where_the_fast_one_gives_up,
        a_pair_whose_block_rounding_breaks_is_real,
        what_does_not_converge_is_reported
    );

    /// Cyclic shifts of order n and a little noise; the patience of each iteration; `info`, and T·Zᴴ
    /// against Zᴴ·A in units of ε.
    fn decompose_with(n: usize, patience: Patience) -> (i32, f64) {
        let noise = |k: usize| f64::from(u32::try_from(k * 7919 % 101).unwrap_or(0)) * 1e-3;
        let one = |k: usize| if k % n == (k / n + 1) % n { 1.0 } else { 0.0 };
        let a: Vec<f64> = (0..n * n).map(|k| one(k) + noise(k)).collect();
        let (mut t, mut z) = (a.clone(), a.clone());
        let (mut w, mut wi) = (vec![0.0; n], vec![0.0; n]);
        let mut scratch = Scratch::new(n);
        scratch.multishift.patience = patience;
        let results = [&mut t, &mut z, &mut w, &mut wi].map(|x| &mut x[..]);
        let info = decompose(results, &mut scratch, &Serial, Arch::new());
        if info > 0 {
            assert!([t, z, w, wi].iter().flatten().all(|x| x.is_nan()), "info and NaN");
            return (info, 0.0);
        }
        let mut largest: f64 = 0.0;
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let az: f64 = (0..n).map(|k| a[i + k * n] * z[k + j * n]).sum();
            let zt: f64 = (0..n).map(|k| z[i + k * n] * t[k + j * n]).sum();
            largest = largest.max((az - zt).abs() / f64::EPSILON);
        }
        (info, largest)
    }

    fn the_plain_iteration_goes_on_where_the_fast_one_gives_up() {
        for n in [100, 160] {
            for many in [0, 1] {
                let (info, error) = decompose_with(n, Patience { many, two: 30 });
                assert!(info == 0 && error < 1000.0, "n = {n}: info {info}, error {error}");
            }
        }
    }

    /// b·c, below zero by 2⁻¹⁶², is exact in double precision, and c is below the denormal numbers.
    fn a_pair_whose_block_rounding_breaks_is_real() -> Result<(), Error> {
        let half = 2.0_f32.powi(-70) * (1.0 + 2.0_f32.powi(-10) - 2.0_f32.powi(-20));
        let c = -2.0_f32.powi(-140) * (1.0 + 2.0_f32.powi(-9));
        let mut t = [half, c, 1.0, -half];
        let (mut z, mut w, mut wi) = ([0.0; 4], [0.0; 2], [1.0; 2]);
        let (mut sdim, mut info) = ([1], [1]);
        gees(
            Vectors::Wanted,
            1,
            2,
            InOut { src: None, dst: &mut t },
            &mut z,
            Eigenvalues::Parts(&mut w, &mut wi),
            &mut sdim,
            &mut info,
            &lapax_core::Serial,
        )?;
        assert_eq!((sdim, info), ([0], [0]));
        let [first, below, above, second] = t;
        let pair = below != 0.0 && below * above <= 0.0 && first == second;
        assert!(below == 0.0 || pair, "{t:?}");
        assert_eq!(wi[0] > 0.0, below != 0.0, "{t:?} {wi:?}");
        assert!((above.abs() - 1.0).abs() < 1e-6, "{t:?}");
        // In lanes, which finish a matrix in its own precision, by columns and by rows.
        let one = [half, c, 1.0, -half];
        let mut columns = one.repeat(4);
        let mut rows = [half, 1.0, c, -half].repeat(4);
        let (mut z, mut w, mut wi) = (vec![0.0; 16], vec![0.0; 8], vec![0.0; 8]);
        let (values, mut counts) = (Eigenvalues::Parts(&mut w, &mut wi), [[1; 4]; 2]);
        let ([sdim, info], serial) = (&mut counts, &lapax_core::Serial);
        let t = InOut { src: None, dst: &mut columns };
        gees(Vectors::Wanted, 4, 2, t, &mut z, values, sdim, info, serial)?;
        schur(4, 2, InOut { src: None, dst: &mut rows }, &mut z, serial)?;
        for (t, by_rows) in columns.chunks_exact(4).zip(rows.chunks_exact(4)) {
            let [first, below, above, second] = t else { unreachable!("{t:?}") };
            assert!(!broken(t, 2, Layout::Columns) && (*below == 0.0 || first == second), "{t:?}");
            assert_eq!(by_rows, [*first, *above, *below, *second]);
        }
        Ok(())
    }

    fn what_does_not_converge_is_reported() {
        for n in [3, 20, 100] {
            let (info, _) = decompose_with(n, Patience { many: 0, two: 0 });
            assert_eq!(usize::try_from(info), Ok(n), "no eigenvalue was found");
        }
    }
}
