//! What jaxlib's calls of cuSPARSE say in the attribute `opaque`: the bytes of C structs of 32-bit
//! integers. First comes the sparse matrix, which is A as its operands have it.

use lapax_cuda::{Error, Kind};
use xla_ffi::Bytes;

/// Value type, index type, rows, columns, entries, batch, stride of the batch.
const MATRIX: usize = 7;
/// The matrix, type and size of x and of y, the operation.
pub(crate) const WITH_VECTOR: usize = MATRIX + 2 * 2 + 1;
/// The matrix, type, rows, columns, batch and its stride of X and of Y, the operation.
pub(crate) const WITH_MATRIX: usize = MATRIX + 2 * 5 + 1;

/// Checks a matrix of this shape and of so many entries.
pub(crate) fn matrix(opaque: &Bytes, shape: [usize; 2], nnz: usize) -> Result<(), Error> {
    fits(&fields::<MATRIX>(opaque)?, shape, nnz)
}

/// Whether A is transposed in a product: Y has `m` rows and X has `k`.
pub(crate) fn transpose<const FIELDS: usize>(
    opaque: &Bytes,
    [m, k]: [usize; 2],
    nnz: usize,
) -> Result<bool, Error> {
    let fields = fields::<FIELDS>(opaque)?;
    let transpose = match fields[FIELDS - 1] {
        0 => false,
        1 => true,
        other => return Err(unfit(&format!("operation 0 (A) or 1 (Aᵀ), got {other}"))),
    };
    fits(&fields, if transpose { [k, m] } else { [m, k] }, nnz)?;
    Ok(transpose)
}

fn fields<const FIELDS: usize>(opaque: &Bytes) -> Result<[i32; FIELDS], Error> {
    let mut fields = [0; FIELDS];
    let bytes = opaque.as_slice();
    if bytes.len() != size_of_val(&fields) {
        let text = format!("{} bytes, got {}", size_of_val(&fields), bytes.len());
        return Err(unfit(&text));
    }
    for (field, bytes) in fields.iter_mut().zip(bytes.chunks_exact(size_of::<i32>())) {
        *field = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Ok(fields)
}

fn fits(fields: &[i32], [rows, columns]: [usize; 2], nnz: usize) -> Result<(), Error> {
    let names = ["rows", "columns", "entries", "batch"];
    for ((name, &got), expected) in names.iter().zip(&fields[2..]).zip([rows, columns, nnz, 1]) {
        if usize::try_from(got) != Ok(expected) {
            return Err(unfit(&format!("{name} = {expected}, as the operands, got {got}")));
        }
    }
    Ok(())
}

fn unfit(text: &str) -> Error {
    Error::new(Kind::InvalidArgument, format!("attribute `opaque`: expected {text}"))
}
