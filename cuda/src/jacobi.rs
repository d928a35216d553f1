//! Singular values of matrices that fit into a block's shared memory, by one-sided Jacobi rotations: of
//! column-major matrices for cuSOLVER's names, and of row-major ones, without scratch.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::Scalar;
use crate::error::{Error, Kind, narrow};
use crate::gpu::{Gpu, Launch, blocks};
use crate::memory::{Input, Output};
use crate::module::{Kernel, kernel};
use crate::svd::{Sizes, Svd};

/// The decomposition A = U·diag(s)·Vᴴ of each row-major m × n matrix of a batch, in one launch.
///
/// `s` has the min(m, n) values, descending. `vectors` are U, m × m with `full` and else m × min(m, n), and
/// Vᴴ, n × n or min(m, n) × n, both by rows, with the phases of the CPU's; without them the values alone are
/// computed. A matrix that is not finite, or does not converge, has NaN for results.
///
/// # Errors
/// Where a matrix does not fit into a block's shared memory, or the device fails.
pub fn svd<T: Scalar>(
    gpu: &Gpu<'_>,
    batch: usize,
    (m, n): (usize, usize),
    full: bool,
    a: Input<T>,
    s: Output<T::Real>,
    vectors: Option<(Output<T>, Output<T>)>,
) -> Result<(), Error> {
    let k = m.min(n);
    let (u_columns, vt_rows) = match vectors {
        Some(_) if full => (m, n),
        Some(_) => (k, k),
        None => (0, 0),
    };
    if batch == 0 || k == 0 && u_columns + vt_rows == 0 {
        return Ok(());
    }
    // By columns this memory is Aᵀ = V̄·diag(s)·Uᵀ: its left vectors are Vᴴ's rows, its right ones are
    // conjugates of U's columns, and their adjoint by columns is U by rows.
    let sizes = Sizes { batch, m: n, n: m };
    let wanted = vectors.is_some();
    let form = Form {
        vectors: wanted,
        columns: (vt_rows, u_columns),
        adjoint: true,
        turned: wanted,
        not_finite: 0,
    };
    let Some(plan) = plan::<T>(gpu, sizes, form)? else {
        let room = gpu.shared_memory(kernel::<T>())?;
        let needed = shared_memory::<T>(m.max(n), k, wanted);
        let text = format!(
            "expected a matrix that fits into a block's shared memory, {room} bytes, and no square factor of \
             more than {COMPLETED_ROWS} rows of another, got {m} × {n}, which takes {needed}"
        );
        return Err(Error::new(Kind::InvalidArgument, text));
    };
    let (u, vt) = vectors.map_or((null_mut(), null_mut()), |(u, vt)| (u.as_ptr(), vt.as_ptr()));
    let operands = Operands { a: a.as_ptr(), s: s.as_ptr(), u: vt, v: u, info: null_mut() };
    launch(gpu, &plan, sizes, form, operands)
}

/// Loads what [`svd`] launches.
///
/// # Errors
/// Where the driver or the kernels are missing, or the device fails.
pub fn load<T: Scalar>(gpu: &Gpu<'_>) -> Result<(), Error> {
    gpu.load(kernel::<T>())
}

/// Rows up to which U or V may be square where A is not: a vector that A does not determine is made
/// orthogonal to all that are there, 4 rows³ operations by one block in all. By estimate.
const COMPLETED_ROWS: usize = 256;

/// What the kernel is to leave.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Whether vectors are computed.
    pub(crate) vectors: bool,
    /// Columns of U and of V.
    pub(crate) columns: (usize, usize),
    /// Whether Vᴴ is written instead of V.
    pub(crate) adjoint: bool,
    /// Whether V's columns have the phases of the rule, and U's follow; not without vectors.
    pub(crate) turned: bool,
    /// `info` of a matrix that is not finite.
    pub(crate) not_finite: c_int,
}

/// How decompositions of one size are launched.
pub(crate) struct Plan {
    launch: Launch,
    /// Lanes that share a pair of columns.
    group: c_int,
}

/// The launch for these sizes, a block for each matrix; None where one does not fit into a block's shared
/// memory, or wants more vectors than one block should make.
pub(crate) fn plan<T: Scalar>(
    gpu: &Gpu<'_>,
    Sizes { batch, m, n }: Sizes,
    form: Form,
) -> Result<Option<Plan>, Error> {
    /// As the kernel is built.
    const THREADS: usize = 512;
    /// Lanes that share a pair of columns. Few have less to agree on: where there are enough matrices to
    /// keep the device busy, or two elements for each lane. In f32 on an H200, with 8 and 32 lanes, 1000
    /// of 49 × 32 take 0.74 and 1.44 ms, 256 of 97 × 64 2.64 and 2.70, 64 of 128 × 128 10.9 and 8.9; one
    /// of 33 × 33 0.59 and 0.35.
    const GROUPS: [usize; 2] = [8, 32];
    /// Columns up to which many matrices do.
    const FEW_COLUMNS: usize = 64;
    /// Two elements for each lane.
    const FEW_ROWS: usize = 2 * GROUPS[0];
    let (rows, columns) = (m.max(n), m.min(n));
    let limits = gpu.limits()?;
    let kernel = kernel::<T>();
    let more = form.vectors && form.columns.0.max(form.columns.1) > columns;
    let bytes = shared_memory::<T>(rows, columns, form.vectors);
    if bytes > gpu.shared_memory(kernel)? || more && rows > COMPLETED_ROWS {
        return Ok(None);
    }
    let few = rows <= FEW_ROWS || batch > limits.processors && columns <= FEW_COLUMNS;
    let group = GROUPS[usize::from(!few)];
    let threads = (columns.div_ceil(2) * group).next_multiple_of(32).clamp(32, THREADS);
    let launch = Launch {
        kernel,
        grid: blocks(batch, limits),
        block: [narrow("threads", threads)?, 1, 1],
        shared: narrow("shared memory", bytes)?,
    };
    Ok(Some(Plan { launch, group: narrow("group", group)? }))
}

/// What the kernel's contract asks for.
fn shared_memory<T: Scalar>(rows: usize, columns: usize, vectors: bool) -> usize {
    let of_vectors = (columns | 1).saturating_mul(columns).saturating_add(2 * rows);
    let elements =
        (rows | 1).saturating_mul(columns).saturating_add(if vectors { of_vectors } else { 0 });
    elements
        .saturating_mul(size_of::<T>())
        .saturating_add(2 * rows.max(32) * size_of::<T::Real>())
        .saturating_add(2 * columns * size_of::<i32>())
}

/// Decomposes each matrix of a batch, of which `a` has the values.
pub(crate) fn rotate<T: Scalar>(
    gpu: &Gpu<'_>,
    plan: &Plan,
    sizes: Sizes,
    form: Form,
    a: Output<T>,
    &Svd { s, u, v, info }: &Svd<T>,
) -> Result<(), Error> {
    let operands = Operands {
        a: a.as_ptr(),
        s: s.as_ptr(),
        u: u.as_ptr(),
        v: v.as_ptr(),
        info: info.as_ptr(),
    };
    launch(gpu, plan, sizes, form, operands)
}

/// The kernel's, of which u and v are null where vectors are not wanted, info where nobody reads it.
struct Operands<T: Scalar> {
    a: *const T,
    s: *mut T::Real,
    u: *mut T,
    v: *mut T,
    info: *mut i32,
}

fn launch<T: Scalar>(
    gpu: &Gpu<'_>,
    plan: &Plan,
    Sizes { batch, m, n }: Sizes,
    form: Form,
    Operands { a, s, u, v, info }: Operands<T>,
) -> Result<(), Error> {
    let batch: i64 = narrow("batch", batch)?;
    let (m, n): (c_int, c_int) = (narrow("m", m)?, narrow("n", n)?);
    let u_columns: c_int = narrow("columns of u", form.columns.0)?;
    let v_columns: c_int = narrow("columns of v", form.columns.1)?;
    let flags = [form.vectors, form.adjoint, form.turned].map(c_int::from);
    let ([vectors, adjoint, turned], group) = (flags, plan.group);
    let list = (
        a,
        s,
        u,
        v,
        info,
        batch,
        m,
        n,
        u_columns,
        v_columns,
        vectors,
        adjoint,
        turned,
        form.not_finite,
        group,
    );
    // SAFETY: the kernel's parameters; the operands have so many elements, u and v where vectors are wanted.
    unsafe { gpu.launch(&plan.launch, list) }
}

/// The kernel, for its file's and its own name.
pub(crate) fn kernel<T: Scalar>() -> Kernel {
    kernel!(T, "svd", "gesvdj")
}
