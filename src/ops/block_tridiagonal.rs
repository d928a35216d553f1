//! Hermitian positive definite matrices of square blocks on and beside the diagonal: A = L·Lᴴ.
//!
//! `diagonal` has the blocks of A on its diagonal, of which the lower triangles are read; `off_diagonal` those below
//! them, A[i + 1, i]. L has blocks in the same places. Blocks lie by rows. The work grows linearly with their number.

use lapax_core::{Scalar, Sweeps};
use lapax_cpu::block_tridiagonal::{self, Band, BandMut, Blocks};

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
    cuda = none;

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
    cuda = none;

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
    cuda = none;

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
    cuda = none;
}
