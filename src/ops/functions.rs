//! Functions of matrices.

use lapax_cpu::functions;

use super::{c32, c64};

super::ops! { functions;
    /// Exponential of a row-major matrix, exp(A) = Σ Aᵏ/k!.
    ///
    /// Scaling and squaring, by Padé approximants whose degree is chosen for each matrix (Al-Mohy and Higham, 2009).
    /// Triangular matrices have the exact exponentials of their diagonals, and of those beside them. X is NaN where A is
    /// not finite.
    expm: Expm<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { x: T [n, n] }
    }
    cpu = any("lapax_expm"), |call, threads| {
        functions::expm(call.batch, call.n, call.a, call.x, threads)
    };
    cuda = (none: "a composition of products and a solve serves it");

    /// Solution of R·Y + Y·S = F, or with `minus` of R·Y − Y·S = F, for upper triangular R and S (xTRSYL).
    ///
    /// Real R and S may have blocks of order 2 on their diagonals; else what is below these is not read. Y is infinite or
    /// NaN where a number on R's diagonal and one on ∓S's are the same; a quotient of zeros is zero.
    triangular_sylvester: TriangularSylvester<T> over [f32, f64, c32, c64], Row {
        dims { m, n }
        args { r: T [m, m], s: T [n, n], f: T [m, n] }
        attrs { minus: bool }
        rets { y: T [m, n] }
    }
    cpu = any("lapax_triangular_sylvester"), |call, threads| {
        let (batch, sizes) = (call.batch, (call.m, call.n));
        functions::triangular_sylvester(
            call.minus, batch, sizes, call.r, call.s, call.f, call.y, threads,
        )
    };
    cuda = (none: "a composition of products serves it");

    /// Square root of an upper triangular matrix, X² = A, with eigenvalues in the right half plane.
    ///
    /// A real A may have blocks of order 2 on its diagonal; else what is below it is not read. A negative number on a real
    /// diagonal gives NaN. Where two numbers on the diagonal are zero, what is between them is zero if that is a root, and
    /// infinite or NaN if there is none.
    triangular_sqrtm: TriangularSqrtm<T> over [f32, f64, c32, c64], Row {
        dims { n }
        args { a: T [n, n] }
        rets { x: T [n, n] }
    }
    cpu = any("lapax_triangular_sqrtm"), |call, threads| {
        functions::triangular_sqrtm(call.batch, call.n, call.a, call.x, threads)
    };
    cuda = (none: "a composition of products serves it");

    /// f(T) of an upper triangular T by Parlett's recurrence, from its divided differences g_ij = f[t_ii, t_jj].
    ///
    /// x_ii = g_ii, and x_ij = t_ij·g_ij + (Σ x_ik·t_kj − t_ik·x_kj)/(t_ii − t_jj) over i < k < j; the quotient is zero
    /// where t_ii = t_jj. What is below the diagonals of T and G is not read, and zero in X.
    triangular_parlett: TriangularParlett<T> over [c32, c64], Row {
        dims { n }
        args { t: T [n, n], g: T [n, n] }
        rets { x: T [n, n] }
    }
    cpu = any("lapax_triangular_parlett"), |call, threads| {
        functions::triangular_parlett(call.batch, call.n, call.t, call.g, call.x, threads)
    };
    cuda = (none: "a composition of products serves it");
}
