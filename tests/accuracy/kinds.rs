//! Matrices by name: the ordinary and the adversarial ones that every factorisation meets.

use lapax_core::Scalar;

use crate::matrix::{Matrix, largest};
use crate::sample::{Random, Sample};
use crate::spectrum::{self, Signs, Spectrum};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Uniform elements.
    Random,
    /// Rows and columns fall in size by 2⁻⁴⁰ from the first to the last.
    Graded,
    /// The last column is within rounding of a combination of the others.
    NearlySingular,
    /// Elimination with partial pivoting doubles the last column at each step, for 40 steps: the
    /// factors are exact, and f64 still holds their product exactly.
    Wilkinson,
    /// Upper triangular; every leading block is well conditioned, the whole is not.
    Kahan,
    /// Toeplitz with eigenvalues that are sensitive to perturbation.
    Grcar,
    /// Twice the identity plus rank one: all eigenvalues but one are equal.
    RepeatedEigenvalues,
    /// Every element is below the smallest normal number.
    Denormal,
    /// Just below overflow.
    NearOverflow,
    /// Just above underflow.
    NearUnderflow,
    /// Half the rank, of small integers.
    RankDeficient,
    /// Upper bidiagonal, with elements of all sizes on the diagonal and beside it, and zeros.
    Bidiagonal,
    /// Prescribed singular values, or eigenvalues.
    Spectrum(Spectrum),
}

/// The kinds that have a name of their own.
pub(crate) const KINDS: [Kind; 12] = [
    Kind::Random,
    Kind::Graded,
    Kind::NearlySingular,
    Kind::Wilkinson,
    Kind::Kahan,
    Kind::Grcar,
    Kind::RepeatedEigenvalues,
    Kind::Denormal,
    Kind::NearOverflow,
    Kind::NearUnderflow,
    Kind::RankDeficient,
    Kind::Bidiagonal,
];

impl Kind {
    /// The power of two that brings the elements of [`matrix`] where this kind has them.
    pub(crate) fn exponent<T: Sample>(self) -> i32 {
        /// Room for the growth of elements during elimination.
        const GROWTH: i32 = 16;
        /// Denormal elements are integers of this many bits.
        const DENORMAL_BITS: i32 = 20;
        match self {
            Kind::NearOverflow => T::MAX_EXPONENT - GROWTH,
            Kind::NearUnderflow => T::MIN_EXPONENT + GROWTH,
            Kind::Denormal => T::DENORMAL_EXPONENT + DENORMAL_BITS,
            _ => 0,
        }
    }
}

/// A matrix of the kind before scaling: elements of order 1.
pub(crate) fn matrix<T: Sample>(kind: Kind, m: usize, n: usize, seed: u64) -> Matrix<T::Wide> {
    let mut random = Random(seed);
    let real = <T::Wide as Scalar>::from_real;
    let position = |i: usize, j: usize| (i + j) as f64 / (m + n) as f64;
    match kind {
        Kind::Random | Kind::Denormal | Kind::NearOverflow | Kind::NearUnderflow => {
            Matrix::new(m, n, |_, _| random.scalar())
        }
        Kind::Graded => Matrix::new(m, n, |i, j| {
            random.scalar::<T::Wide>().scale((-40.0 * position(i, j)).exp2())
        }),
        Kind::NearlySingular => {
            let mut a = Matrix::new(m, n, |_, _| random.scalar::<T::Wide>());
            for i in 0..if n > 1 { m } else { 0 } {
                let sum = (0..n - 1).fold(T::Wide::ZERO, |sum, j| sum + a.at(i, j));
                let noise = random.scalar::<T::Wide>().scale(<T as Sample>::epsilon());
                a.data[i + (n - 1) * m] = sum.unscale(n as f64) + noise;
            }
            a
        }
        Kind::Wilkinson => Matrix::new(m, n, |i, j| match i.cmp(&j) {
            _ if j + 1 == n => real(1.0),
            std::cmp::Ordering::Less => real(0.0),
            std::cmp::Ordering::Equal => real(1.0),
            std::cmp::Ordering::Greater => real(if j < 40 { -1.0 } else { 0.0 }),
        }),
        Kind::Kahan => {
            let (sine, cosine) = 1.2_f64.sin_cos();
            Matrix::new(m, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Less => real(-cosine * sine.powf(i as f64)),
                std::cmp::Ordering::Equal => real(sine.powf(i as f64)),
                std::cmp::Ordering::Greater => real(0.0),
            })
        }
        Kind::Grcar => Matrix::new(m, n, |i, j| match (i, j) {
            _ if i == j + 1 => real(-1.0),
            _ if i <= j && j <= i + 3 => real(1.0),
            _ => real(0.0),
        }),
        Kind::RepeatedEigenvalues => {
            let u: Vec<T::Wide> = (0..m.max(n)).map(|_| random.scalar()).collect();
            let identity = |i, j| real(if i == j { 2.0 } else { 0.0 });
            Matrix::new(m, n, |i, j| identity(i, j) + (u[i] * u[j].conj()).unscale(u.len() as f64))
        }
        Kind::Bidiagonal => Matrix::new(m, n, |i, j| {
            let kept = random.below(5) > 0 && (i == j || i + 1 == j);
            // Down to where a square underflows, every other time.
            let size = random.below(200) as f64 / 300.0 * f64::from(T::MIN_EXPONENT);
            let size = if random.below(2) > 0 { 1.0 } else { size.exp2() };
            if kept { random.scalar::<T::Wide>().scale(size) } else { real(0.0) }
        }),
        Kind::Spectrum(spectrum) => spectrum::general::<T>(spectrum, m, n, &mut random),
        Kind::RankDeficient => {
            let rank = m.min(n).div_ceil(2);
            let mut digit = |_, _| real(random.below(7) as f64 - 3.0);
            Matrix::new(m, rank, &mut digit).times(&Matrix::new(rank, n, &mut digit))
        }
    }
}

/// A Hermitian positive definite matrix before scaling: Aᴴ·A over its largest element, for the A of
/// that kind, plus what makes it definite in spite of rounding to T.
pub(crate) fn definite<T: Sample>(kind: Kind, n: usize, seed: u64) -> Matrix<T::Wide> {
    let gram = if let Kind::Spectrum(spectrum) = kind {
        spectrum::hermitian::<T>(spectrum, n, Signs::Positive, &mut Random(seed))
    } else {
        let a = matrix::<T>(kind, n, n, seed);
        a.adjoint().times(&a)
    };
    // A matrix of integers can be zero.
    let scale = Some(largest(&gram.data)).filter(|&scale| scale > 0.0).unwrap_or(1.0);
    // Rounding to a few bits moves a denormal matrix by as much.
    let rounding = if kind == Kind::Denormal { 2.0_f64.powi(-20) } else { T::epsilon() };
    let shift = 20.0 * n as f64 * rounding;
    Matrix::new(n, n, |i, j| {
        let x = gram.at(i, j).unscale(scale);
        if i == j { <T::Wide as Scalar>::from_real(x.re() + shift) } else { x }
    })
}

/// The Hermitian part of a matrix of the kind, or one with prescribed eigenvalues of both signs.
pub(crate) fn hermitian<T: Sample>(kind: Kind, n: usize, seed: u64) -> Matrix<T::Wide> {
    if let Kind::Spectrum(spectrum) = kind {
        return spectrum::hermitian::<T>(spectrum, n, Signs::Both, &mut Random(seed));
    }
    let a = matrix::<T>(kind, n, n, seed);
    Matrix::new(n, n, |i, j| (a.at(i, j) + a.at(j, i).conj()).scale(0.5))
}

/// Random square matrices, of which the second one is not finite.
pub(crate) fn some_bad<T: Sample>(n: usize, batch: usize) -> Vec<T> {
    let mut a: Vec<T> = (0..batch as u64)
        .flat_map(|seed| square::<T>(Kind::Random, n, seed).narrowed::<T>(0))
        .collect();
    if batch > 1 {
        a[2 * n * n - 1] = T::from_f64(f64::INFINITY);
    }
    a
}

/// A square matrix of the kind, or one with eigenvalues of prescribed moduli.
pub(crate) fn square<T: Sample>(kind: Kind, n: usize, seed: u64) -> Matrix<T::Wide> {
    if let Kind::Spectrum(spectrum) = kind {
        return spectrum::not_normal::<T>(spectrum, n, &mut Random(seed));
    }
    matrix::<T>(kind, n, n, seed)
}
