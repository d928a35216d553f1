//! Eigenvalues and eigenvectors of a small matrix in each lane that is tridiagonal as it comes.

use std::ops::Range;

use lapax_core::{Items, ItemsMut};
use pulp::Simd;

use super::{in_f64, sort, spectrum};
use crate::Scalar;
use crate::lanes::pack::{Shape, pack, unpack};
use crate::lanes::phase;
use crate::lanes::scaling::Extent;
use crate::matrix::layout::Layout;
use crate::parallel::groups::Kernel;
use crate::simd::tile::Tile;
use crate::simd::vector::{Lane, Vector};

/// Decomposes a group; a matrix that is not finite or does not converge goes to `single`.
pub(crate) struct Decompose<F> {
    pub(crate) n: usize,
    /// The places of the ascending eigenvalues that are wanted.
    pub(crate) part: Range<usize>,
    /// Whether their vectors are, too.
    pub(crate) vectors: bool,
    /// Decomposes one matrix: (d, e, v, w).
    pub(crate) single: F,
}

/// What one thread reuses.
pub(crate) struct Tiles<R> {
    /// d, e and two numbers for each rotation.
    real: Tile<R>,
    z: Tile<R>,
    /// d and e² where eigenvalues alone of f32 are found in f64.
    wide: Tile<f64>,
    /// All values of a group, and all vectors where some are wanted.
    values: Vec<R>,
    columns: Vec<R>,
}

/// d, e, v and w; v has no elements where no vectors are wanted.
type Operands<'a, T> = (Items<'a, T>, Items<'a, T>, ItemsMut<'a, T>, ItemsMut<'a, T>);

impl<T: Scalar<Real = T>, F> Kernel<T, Operands<'_, T>> for Decompose<F>
where
    F: Fn(&[T], &[T], &mut [T], &mut [T]) + Sync,
{
    type Scratch = Tiles<T>;

    fn scratch(&self, lanes: usize) -> Tiles<T> {
        let n = self.n;
        let some = self.vectors && self.part.len() < n;
        Tiles {
            real: Tile::new::<T>(4 * n, lanes),
            z: Tile::new::<T>(if self.vectors { n * n } else { 0 }, lanes),
            wide: Tile::new::<f64>(if in_f64::<T>(self.vectors) { 2 * n } else { 0 }, lanes),
            values: vec![T::ZERO; n * lanes],
            columns: vec![T::ZERO; if some { n * n * lanes } else { 0 }],
        }
    }

    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        scratch: &mut Tiles<T>,
        (d_in, e_in, v, w): Operands<'_, T>,
        count: usize,
    ) {
        let Self { n, ref part, vectors, ref single } = *self;
        let (d_in, e_in, v, w) = (d_in.data(), e_in.data(), v.into_data(), w.into_data());
        let Tiles { real, z, wide, values, columns } = scratch;
        let column = |m| Shape { m, n: 1, order: Layout::Columns };
        let (t, rotations) = real.registers::<S>()[..4 * n].split_at_mut(2 * n);
        pack(simd, d_in, count, column(n), &mut t[..n]);
        pack(simd, e_in, count, column(n - 1), &mut t[n..2 * n - 1]);
        let mut extent = Extent::<S, Vector<S, T>>::new(simd);
        for i in 0..2 * n - 1 {
            extent.add(Vector::load(simd, t, i));
        }
        let (failed, powers) = extent.normalize(simd, &mut t[..2 * n - 1]);
        let (d, e) = t.split_at_mut(n);
        let mut z = vectors.then(|| {
            let z = &mut z.registers::<S>()[..n * n];
            let [zero, one] = [T::ZERO, T::ONE].map(|x| Vector::<S, T>::splat(simd, x).reg());
            z.fill(zero);
            z.iter_mut().step_by(n + 1).for_each(|z| *z = one);
            z
        });
        let (t, wide) = ((&mut *d, e, rotations), wide.registers::<S>());
        let failed = spectrum::<S, Vector<S, T>>(simd, t, z.as_deref_mut(), wide, failed);
        for d in &mut *d {
            *d = (Vector::<S, T>::from_reg(simd, *d) / powers).reg();
        }
        unpack(simd, &*d, count, column(n), values);
        let k = part.len();
        let all = if k < n { &mut columns[..] } else { &mut *v };
        if let Some(z) = z {
            phase::columns::<S, Vector<S, T>>(simd, z, n);
            let rows = Shape { m: n, n, order: Layout::Rows };
            unpack(simd, z, count, rows, &mut all[..count * n * n]);
        }
        for (i, (values, w)) in values.chunks_exact_mut(n).zip(w.chunks_exact_mut(k)).enumerate() {
            let wanted = if vectors { i * n * k..(i + 1) * n * k } else { 0..0 };
            if failed[i] {
                let (d, e) = (&d_in[i * n..(i + 1) * n], &e_in[i * (n - 1)..(i + 1) * (n - 1)]);
                single(d, e, &mut v[wanted], w);
                continue;
            }
            let whole = i * n * n..(i + 1) * n * n;
            let all = if k < n { &mut columns[..] } else { &mut *v };
            let vectors = vectors.then(|| &mut all[whole.clone()]);
            sort(values, vectors.map(|v| (v, Layout::Rows)));
            w.copy_from_slice(&values[part.clone()]);
            if k < n && !wanted.is_empty() {
                let rows = columns[whole].chunks_exact(n);
                for (row, all) in v[wanted].chunks_exact_mut(k).zip(rows) {
                    row.copy_from_slice(&all[part.clone()]);
                }
            }
        }
    }
}
