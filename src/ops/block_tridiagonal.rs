//! Matrices of square blocks on and beside the diagonal: Hermitian positive definite ones, A = L·Lᴴ, and any, A = L·U.
//!
//! Of the former `diagonal` has the blocks of A on its diagonal, of which the lower triangles are read; `off_diagonal` those below
//! them, A[i + 1, i]. L has blocks in the same places. Blocks lie by rows. The work grows linearly with their number.

use lapax_core::{Scalar, Sweeps, Trans};
use lapax_cpu::block_tridiagonal::{self, Band, BandMut, Blocks, Factors, General};

use super::{c32, c64};

super::ops! { block_tridiagonal;
    /// Cholesky factor of a block-tridiagonal Hermitian positive definite matrix, A = L·Lᴴ.
    ///
    /// `l_diagonal` is zero above the diagonals of its blocks; all of L else is NaN where A is not positive definite.
    block_tridiagonal_cholesky: BlockTridiagonalCholesky<T> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nlinks = max(nblocks - 1, 0) }
        args { diagonal: T [nblocks, n, n], off_diagonal: T [nlinks, n, n] }
        rets { l_diagonal: T [nblocks, n, n], l_off_diagonal: T [nlinks, n, n] }
    }
    cpu = any("lapax_block_tridiagonal_cholesky"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let a = Band { diagonal: call.diagonal, off_diagonal: call.off_diagonal };
        let l = BandMut { diagonal: call.l_diagonal, off_diagonal: call.l_off_diagonal };
        block_tridiagonal::block_tridiagonal_cholesky(call.batch, blocks, a, l, threads)
    };
    cuda = host;

    /// Solution of A·X = B by the Cholesky factor of A, or of one of the two triangular systems that it consists of.
    ///
    /// `sweeps` says which: L·Lᴴ·X = B, L·X = B or Lᴴ·X = B. What is above the diagonals of L's blocks is not read.
    block_tridiagonal_cho_solve: BlockTridiagonalChoSolve<T> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nrhs, nlinks = max(nblocks - 1, 0) }
        args {
            l_diagonal: T [nblocks, n, n], l_off_diagonal: T [nlinks, n, n], b: T [nblocks, n, nrhs]
        }
        attrs { sweeps: Sweeps as u8 }
        rets { x: T [nblocks, n, nrhs] }
    }
    cpu = any("lapax_block_tridiagonal_cho_solve"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let l = Band { diagonal: call.l_diagonal, off_diagonal: call.l_off_diagonal };
        let (batch, nrhs, sweeps) = (call.batch, call.nrhs, call.sweeps);
        block_tridiagonal::block_tridiagonal_cho_solve(
            sweeps, batch, blocks, nrhs, l, call.b, call.x, threads,
        )
    };
    cuda = host;

    /// Solution of A·X = B with a block-tridiagonal Hermitian positive definite A, its Cholesky factor, and ln det(A).
    ///
    /// All results are NaN where A is not positive definite, but for the zeros of `l_diagonal`.
    block_tridiagonal_solve: BlockTridiagonalSolve<T: Scalar> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nrhs, nlinks = max(nblocks - 1, 0) }
        args {
            diagonal: T [nblocks, n, n], off_diagonal: T [nlinks, n, n], b: T [nblocks, n, nrhs]
        }
        rets {
            x: T [nblocks, n, nrhs], l_diagonal: T [nblocks, n, n],
            l_off_diagonal: T [nlinks, n, n], logdet: T::Real []
        }
    }
    cpu = any("lapax_block_tridiagonal_solve"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let a = Band { diagonal: call.diagonal, off_diagonal: call.off_diagonal };
        let l = BandMut { diagonal: call.l_diagonal, off_diagonal: call.l_off_diagonal };
        let (batch, nrhs) = (call.batch, call.nrhs);
        block_tridiagonal::block_tridiagonal_solve(
            batch, blocks, nrhs, a, call.b, call.x, l, call.logdet, threads,
        )
    };
    cuda = host;

    /// The blocks of A⁻¹ in the places of the blocks of A, by the Cholesky factor of A.
    ///
    /// `diagonal` has whole Hermitian blocks. What is above the diagonals of L's blocks is not read. Recurrence of
    /// Takahashi, Fagan and Chin (1973).
    block_tridiagonal_inverse: BlockTridiagonalInverse<T> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nlinks = max(nblocks - 1, 0) }
        args { l_diagonal: T [nblocks, n, n], l_off_diagonal: T [nlinks, n, n] }
        rets { diagonal: T [nblocks, n, n], off_diagonal: T [nlinks, n, n] }
    }
    cpu = any("lapax_block_tridiagonal_inverse"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let l = Band { diagonal: call.l_diagonal, off_diagonal: call.l_off_diagonal };
        let inverse = BandMut { diagonal: call.diagonal, off_diagonal: call.off_diagonal };
        block_tridiagonal::block_tridiagonal_inverse(call.batch, blocks, l, inverse, threads)
    };
    cuda = host;

    /// LU factors of a block-tridiagonal matrix without symmetry, pivoted inside of its blocks.
    ///
    /// With the blocks D on the diagonal, E below it and F above it, A = L·U: L has Sᵢ = Dᵢ − Eᵢ₋₁·Gᵢ₋₁ on its diagonal and E
    /// below it, U has ones on its diagonal and Gᵢ = Sᵢ⁻¹·Fᵢ above it. `lu` has the factors of each S, and `pivots` the row
    /// of the block, from 0 on, that each row was swapped with; `upper_factor` is G. Rows of different blocks do not change
    /// places, which is stable where blocks on the diagonal dominate, not for any matrix (Golub and Van Loan, section 4.5).
    /// `lu` and `upper_factor` are NaN, and no rows are swapped, where a pivot is zero.
    block_tridiagonal_lu: BlockTridiagonalLu<T> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nlinks = max(nblocks - 1, 0) }
        args { lower: T [nlinks, n, n], diagonal: T [nblocks, n, n], upper: T [nlinks, n, n] }
        rets { lu: T [nblocks, n, n], pivots: i32 [nblocks, n], upper_factor: T [nlinks, n, n] }
    }
    cpu = any("lapax_block_tridiagonal_lu"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let a = General { lower: call.lower, diagonal: call.diagonal, upper: call.upper };
        let (lu, pivots, upper) = (call.lu, call.pivots, call.upper_factor);
        block_tridiagonal::block_tridiagonal_lu(call.batch, blocks, a, lu, pivots, upper, threads)
    };
    cuda = host;

    /// Solution of op(A)·X = B by the LU factors of a block-tridiagonal A.
    ///
    /// `lower` has the blocks of A below its diagonal, the others are the results of `block_tridiagonal_lu`. X is
    /// NaN where a pivot names neither its own row nor a later one of its block.
    block_tridiagonal_lu_solve: BlockTridiagonalLuSolve<T> over [f32, f64, c32, c64], Row {
        dims { nblocks, n, nrhs, nlinks = max(nblocks - 1, 0) }
        args {
            lower: T [nlinks, n, n], lu: T [nblocks, n, n], pivots: i32 [nblocks, n],
            upper_factor: T [nlinks, n, n], b: T [nblocks, n, nrhs]
        }
        attrs { trans: Trans as u8 }
        rets { x: T [nblocks, n, nrhs] }
    }
    cpu = any("lapax_block_tridiagonal_lu_solve"), |call, threads| {
        let blocks = Blocks { count: call.nblocks, n: call.n };
        let (lower, lu, pivots, upper) = (call.lower, call.lu, call.pivots, call.upper_factor);
        let factors = Factors { lower, lu, pivots, upper };
        let (trans, batch, nrhs) = (call.trans, call.batch, call.nrhs);
        block_tridiagonal::block_tridiagonal_lu_solve(
            trans, batch, blocks, nrhs, factors, call.b, call.x, threads,
        )
    };
    cuda = host;
}
