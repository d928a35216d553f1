//! One system on one thread, block after block, each in the cache: the neighbours in a row are in a register.

use lapax_core::Scalar as _;
use lapax_cpu_macros::apart;
use pulp::{Simd, WithSimd};

use super::rows::{Coefficients, Panel, TOGETHER, substitute, subtract_product};
use super::{Band, Blocks, Sweeps};
use crate::Scalar;
use crate::simd::elementary::root;
use crate::simd::lane_real::LaneReal;
use crate::simd::lines::number;
use crate::simd::loops::sub_mul;
use crate::simd::tile::{Tile, parts};
use crate::simd::vector::{Lane, Reg};

/// The right-hand sides, or the columns of a block of the inverse, from which on a register holds neighbours in a row:
/// fewer go one by one. `inverse` of f64 on one core of Zen 5, ns a block in registers and so: order 2 150 and 60, 3 240
/// and 110, 4 200 and 270.
pub(super) const WIDE: usize = 4;

/// The order of blocks up to which they are factored number by number: likewise order 2 53 and 37, 4 170 and 67, 8 230
/// and 250.
const TINY: usize = 8;

/// L of A = L·Lᴴ; whether there is one.
pub(super) struct Factor<'a, T> {
    pub(super) blocks: Blocks,
    pub(super) a: Band<'a, T>,
    pub(super) l_diagonal: &'a mut [T],
    pub(super) l_off: &'a mut [T],
}

impl<T: Scalar> WithSimd for Factor<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        if self.blocks.n <= TINY { self.by_numbers::<S>() } else { self.by_rows(simd) }
    }
}

impl<T: Scalar> Factor<'_, T> {
    /// Row after row of L, number by number.
    #[inline(always)]
    fn by_numbers<S: Simd>(self) -> bool {
        let Self { blocks, a, l_diagonal, l_off } = self;
        let Blocks { count, n } = blocks;
        let square = n * n;
        let mut reciprocals = [T::Real::ZERO; TINY];
        for i in 0..count {
            let (before, l_off) = l_off.split_at_mut(i * square);
            let before = &before[i.saturating_sub(1) * square..];
            let (a_own, l) = (blocks.of(a.diagonal, i), &mut l_diagonal[i * square..][..square]);
            for row in 0..n {
                for column in 0..=row {
                    let mut sum = a_own[row * n + column];
                    if i > 0 {
                        sum += minus_product::<S, T>(
                            &before[row * n..][..n],
                            &before[column * n..][..n],
                        );
                    }
                    let known = ..column;
                    sum += minus_product::<S, T>(&l[row * n..][known], &l[column * n..][known]);
                    l[row * n + column] = if column < row {
                        sum.scale(reciprocals[column])
                    } else {
                        let Some((root, reciprocal)) = root(sum.re()) else { return false };
                        reciprocals[row] = reciprocal;
                        T::from_real(root)
                    };
                }
                l[row * n + row + 1..(row + 1) * n].fill(T::ZERO);
            }
            if i + 1 < count {
                let (a_off, e) = (blocks.of(a.off_diagonal, i), &mut l_off[..square]);
                for row in 0..n {
                    for column in 0..n {
                        let (known, l) = (&e[row * n..][..column], &l[column * n..][..column]);
                        let sum = a_off[row * n + column] + minus_product::<S, T>(known, l);
                        e[row * n + column] = sum.scale(reciprocals[column]);
                    }
                }
            }
        }
        true
    }

    /// Row j of [Lᵢᵢᴴ Lᵢ₊₁ᵢᴴ] is row j of [Aᵢᵢ Aᵢ₊₁ᵢᴴ] less multiples of the rows before it, divided by its pivot; those
    /// of the block before are taken from Aᵢᵢ at once.
    #[inline(always)]
    fn by_rows<S: Simd>(self, simd: S) -> bool {
        let Self { blocks, a, l_diagonal, l_off } = self;
        let Blocks { count, n } = blocks;
        let (lanes, square) = (T::Real::lanes::<S>(), n * n);
        let panel = Panel::of_two(n, lanes);
        let mut tiles = [(); 2].map(|()| Tile::new::<T>(n * panel.pitch, lanes));
        for i in 0..count {
            let [current, before] = &mut tiles;
            let (rows, last) = (current.registers::<S>(), i + 1 == count);
            panel.read_adjoint::<S, T>(simd, blocks.of(a.diagonal, i), rows, 0);
            if !last {
                panel.read_adjoint::<S, T>(simd, blocks.of(a.off_diagonal, i), rows, panel.strips);
            }
            if i > 0 {
                complement::<S, T>(simd, panel, before.registers::<S>(), rows);
            }
            let width = if last { panel.strips } else { panel.pitch };
            if !eliminate::<S, T>(simd, panel, width, rows) {
                return false;
            }
            let at = i * square..(i + 1) * square;
            panel.write_adjoint::<S, T>(simd, rows, 0, true, &mut l_diagonal[at.clone()]);
            if !last {
                panel.write_adjoint::<S, T>(simd, rows, panel.strips, false, &mut l_off[at]);
            }
            tiles.swap(0, 1);
        }
        true
    }
}

/// −Σ x(k)·conj(y(k)).
#[inline(always)]
fn minus_product<S: Simd, T: Scalar>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).fold(T::ZERO, |sum, (&x, y)| sub_mul::<S, T>(sum, x, y.conj()))
}

/// Aᵢᵢ − Lᵢᵢ₋₁·Lᵢᵢ₋₁ᴴ on and above the diagonal, where `before` has Lᵢᵢ₋₁ᴴ in its second half.
#[inline(always)]
fn complement<S: Simd, T: Scalar>(
    simd: S,
    panel: Panel,
    before: &[Reg<S, T::Lane<S>>],
    rows: &mut [Reg<S, T::Lane<S>>],
) {
    let mut j = 0;
    while j + TOGETHER <= panel.n {
        complement_rows::<S, T, TOGETHER>(simd, panel, before, rows, j);
        j += TOGETHER;
    }
    while j < panel.n {
        complement_rows::<S, T, 1>(simd, panel, before, rows, j);
        j += 1;
    }
}

#[inline(always)]
fn complement_rows<S: Simd, T: Scalar, const N: usize>(
    simd: S,
    Panel { n, strips, pitch }: Panel,
    before: &[Reg<S, T::Lane<S>>],
    rows: &mut [Reg<S, T::Lane<S>>],
    first: usize,
) {
    let lanes = T::Real::lanes::<S>();
    for strip in first / lanes..strips {
        let mut sums = [T::Lane::<S>::splat(simd, T::ZERO); N];
        for k in 0..n {
            let at = k * pitch + strips;
            let x = T::Lane::<S>::load(simd, before, at + strip);
            for (sum, j) in sums.iter_mut().zip(first..) {
                let l = number::<S, T>(before, at + j / lanes, j % lanes).conj();
                *sum = sum.add_mul(T::Lane::<S>::splat(simd, l), x);
            }
        }
        for (sum, j) in sums.into_iter().zip(first..) {
            let at = j * pitch + strip;
            (T::Lane::<S>::load(simd, rows, at) - sum).store(rows, at);
        }
    }
}

/// Lᴴ in place of the upper triangle of a Hermitian block, and L⁻¹·B in that of what is beside it, so many registers in
/// all; whether all pivots are positive.
#[inline(always)]
fn eliminate<S: Simd, T: Scalar>(
    simd: S,
    Panel { n, pitch, .. }: Panel,
    width: usize,
    rows: &mut [Reg<S, T::Lane<S>>],
) -> bool {
    let (lanes, parts) = (T::Real::lanes::<S>(), parts::<T>());
    for j in 0..n {
        let (above, below) = rows.split_at_mut((j + 1) * pitch * parts);
        let row = &mut above[j * pitch * parts..];
        let Some((root, reciprocal)) = root(number::<S, T>(row, j / lanes, j % lanes).re()) else {
            return false;
        };
        let factor = T::Lane::<S>::splat(simd, T::from_real(reciprocal)).re();
        for strip in j / lanes..width {
            T::Lane::<S>::load(simd, row, strip).scale(factor).store(row, strip);
        }
        let numbers: &mut [T::Real] = bytemuck::cast_slice_mut(row);
        let place = j / lanes * parts * lanes + j % lanes;
        numbers[place] = root;
        if T::IS_COMPLEX {
            numbers[place + lanes] = T::Real::ZERO;
        }
        for (target, i) in below.chunks_exact_mut(pitch * parts).zip(j + 1..n) {
            let l = number::<S, T>(row, i / lanes, i % lanes).conj();
            let l = T::Lane::<S>::splat(simd, l);
            for strip in i / lanes..width {
                let x = T::Lane::<S>::load(simd, row, strip);
                T::Lane::<S>::load(simd, target, strip).sub_mul(l, x).store(target, strip);
            }
        }
    }
    true
}

/// X of L·Lᴴ·X = B, or of one of the triangles, in place of B.
pub(super) struct Solve<'a, T> {
    pub(super) sweeps: Sweeps,
    pub(super) blocks: Blocks,
    pub(super) nrhs: usize,
    pub(super) l: Band<'a, T>,
    pub(super) x: &'a mut [T],
}

impl<T: Scalar> WithSimd for Solve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.nrhs < WIDE {
            self.sweep(pulp::Scalar::new());
        } else {
            self.sweep(simd);
        }
    }
}

impl<T: Scalar> Solve<'_, T> {
    #[inline(always)]
    fn sweep<S: Simd>(self, simd: S) {
        let Self { sweeps, blocks, nrhs, l, x } = self;
        let Blocks { count, n } = blocks;
        let side = n * nrhs;
        if sweeps != Sweeps::Backward {
            for i in 0..count {
                let (before, x) = x.split_at_mut(i * side);
                let x = &mut x[..side];
                if i > 0 {
                    let off = Coefficients::of(blocks.of(l.off_diagonal, i - 1), n);
                    subtract_product(simd, off, &before[(i - 1) * side..], x, nrhs);
                }
                substitute(simd, Coefficients::of(blocks.of(l.diagonal, i), n), x, nrhs);
            }
        }
        if sweeps != Sweeps::Forward {
            for i in (0..count).rev() {
                let (x, behind) = x[i * side..].split_at_mut(side);
                if i + 1 < count {
                    let off = Coefficients::adjoint(blocks.of(l.off_diagonal, i), n);
                    subtract_product(simd, off, &behind[..side], x, nrhs);
                }
                substitute(simd, Coefficients::adjoint(blocks.of(l.diagonal, i), n), x, nrhs);
            }
        }
    }
}

/// The blocks of A⁻¹ inside the band, by L.
pub(super) struct Inverse<'a, T> {
    pub(super) blocks: Blocks,
    pub(super) l: Band<'a, T>,
    pub(super) diagonal: &'a mut [T],
    pub(super) off_diagonal: &'a mut [T],
}

impl<T: Scalar> WithSimd for Inverse<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.blocks.n < WIDE {
            inverse(pulp::Scalar::new(), self);
        } else {
            inverse(simd, self);
        }
    }
}

/// For S = A⁻¹ and G = Lᵢ₊₁ᵢ·Lᵢᵢ⁻¹, from the last block to the first: Sᵢ₊₁ᵢ = −Sᵢ₊₁ᵢ₊₁·G and
/// Sᵢᵢ = Lᵢᵢ⁻ᴴ·Lᵢᵢ⁻¹ − Gᴴ·Sᵢ₊₁ᵢ (Takahashi, Fagan and Chin 1973).
#[apart]
fn inverse<S: Simd, T: Scalar>(simd: S, operands: Inverse<'_, T>) {
    let Inverse { blocks, l, diagonal, off_diagonal } = operands;
    let Blocks { count, n } = blocks;
    let square = n * n;
    let mut tiles = [(); 2].map(|()| Tile::new::<T>(square, 1));
    let [inverse, g] = tiles
        .each_mut()
        .map(|tile| -> &mut [T] { &mut bytemuck::cast_slice_mut(tile.registers::<S>())[..square] });
    for i in (0..count).rev() {
        inverse.fill(T::ZERO);
        inverse.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
        substitute(simd, Coefficients::of(blocks.of(l.diagonal, i), n), inverse, n);
        let (s, behind) = diagonal[i * square..].split_at_mut(square);
        s.fill(T::ZERO);
        subtract_product(simd, Coefficients::adjoint(inverse, n).negated(), inverse, s, n);
        if i + 1 < count {
            let l_off = Coefficients::of(blocks.of(l.off_diagonal, i), n);
            let s_off = &mut off_diagonal[i * square..][..square];
            g.fill(T::ZERO);
            subtract_product(simd, l_off.negated(), inverse, g, n);
            s_off.fill(T::ZERO);
            subtract_product(simd, Coefficients::of(&behind[..square], n), g, s_off, n);
            subtract_product(simd, Coefficients::adjoint(g, n), s_off, s, n);
        }
        // Both triangles are the lower one's.
        for i in 0..n {
            s[i * n + i] = T::from_real(s[i * n + i].re());
            for j in 0..i {
                s[j * n + i] = s[i * n + j].conj();
            }
        }
    }
}
