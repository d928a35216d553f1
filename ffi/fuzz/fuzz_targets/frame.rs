//! Frames from bytes. All memory is kept in a list and has the size that the frame says it has.

#![allow(non_upper_case_globals, reason = "the C API's constants in patterns")]

use std::ffi::c_void;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use xla_ffi::StageFn;
use xla_ffi::fake::{Call, Host};
use xla_ffi::sys::*;

/// Buffers of more bytes than this have no memory; handlers do not touch them.
pub(crate) const MEMORY: usize = 1 << 14;

/// What a frame points to.
#[derive(Default)]
struct Kept {
    /// Exact: AddressSanitizer sees a byte too many. Aligned as XLA's buffers and attributes are.
    memory: Vec<Box<[u128]>>,
    bytes: Vec<Box<[u8]>>,
    dims: Vec<Box<[i64]>>,
    buffers: Vec<Box<XLA_FFI_Buffer>>,
    scalars: Vec<Box<XLA_FFI_Scalar>>,
    spans: Vec<Box<XLA_FFI_ByteSpan>>,
    arrays: Vec<Box<XLA_FFI_Array>>,
    attrs: Vec<Box<XLA_FFI_Attrs>>,
    types: Vec<Box<[u32]>>,
    pointers: Vec<Box<[*mut c_void]>>,
    names: Vec<Box<[*mut XLA_FFI_ByteSpan]>>,
}

/// Calls one of the handlers with a frame made of the bytes.
pub(crate) fn call(source: &mut Unstructured<'_>, handlers: &[StageFn]) -> Result<()> {
    let mut kept = Kept::default();
    let handler = *source.choose(handlers)?;
    let minor = source.int_in_range(0..=6)?;
    let host = Host::new().aged(minor, source.int_in_range(80..=size_of::<XLA_FFI_Api>())?);
    let (args, arg_types) = operands(source, &mut kept)?;
    let (rets, ret_types) = operands(source, &mut kept)?;
    let attrs = attributes(source, &mut kept, 0)?;
    let stage = if source.ratio(7, 8)? { 3 } else { source.int_in_range(0..=9)? };
    let size = if source.ratio(15, 16)? { 168 } else { source.int_in_range(0..=400)? };
    let (no_api, metadata) = (source.ratio(1, 16)?, source.ratio(1, 16)?);
    let metadata_size = source.int_in_range(0..=48)?;
    Call::new().with_frame(&host, |frame| {
        frame.struct_size = size;
        frame.stage = stage;
        (frame.args.size, frame.args.types, frame.args.args) =
            (length(args.len()), arg_types.as_ptr().cast_mut(), args.as_ptr().cast_mut());
        (frame.rets.size, frame.rets.types, frame.rets.rets) =
            (length(rets.len()), ret_types.as_ptr().cast_mut(), rets.as_ptr().cast_mut());
        frame.attrs = attrs;
        let mut answer = vec![0_u64; 6].into_boxed_slice();
        answer[0] = metadata_size;
        let mut extension = XLA_FFI_Metadata_Extension {
            extension_base: XLA_FFI_InternalExtension {
                struct_size: size_of::<XLA_FFI_Metadata_Extension>(),
                type_: if stage == 3 { XLA_FFI_Extension_Metadata } else { 77 },
                next: std::ptr::null_mut(),
            },
            metadata: answer.as_mut_ptr().cast(),
        };
        if metadata {
            frame.extension_start = (&raw mut extension).cast();
        }
        if no_api {
            // A handler then has no way to make an error, and is not asked for one.
            frame.api = std::ptr::null();
            // SAFETY: the frame obeys the C API.
            unsafe { handler(frame) };
            return;
        }
        let _ = host.invoke(Some(handler), frame);
    });
    drop(kept);
    Ok(())
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(0)
}

type Operands = (Vec<*mut c_void>, Vec<u32>);

fn operands(source: &mut Unstructured<'_>, kept: &mut Kept) -> Result<Operands> {
    let count = source.int_in_range(0..=4)?;
    let (mut list, mut types) = (Vec::new(), Vec::new());
    for _ in 0..count {
        list.push(buffer(source, kept)?);
        types.push(if source.ratio(15, 16)? { 1 } else { source.int_in_range(0..=9)? });
    }
    Ok((list, types))
}

fn dtype(source: &mut Unstructured<'_>) -> Result<u32> {
    const USUAL: [u32; 9] = [4, 5, 6, 11, 12, 15, 17, 18, 1];
    if source.ratio(7, 8)? { Ok(*source.choose(&USUAL)?) } else { source.arbitrary() }
}

/// Bytes of an element; the most that one has where the type is unknown.
fn width(dtype: u32) -> usize {
    match dtype {
        1 | 2 | 6 => 1,
        3 | 7 | 10 | 16 => 2,
        4 | 8 | 11 => 4,
        5 | 9 | 12 | 15 => 8,
        _ => 16,
    }
}

/// Memory of so many bytes, and not one more.
fn memory(bytes: usize, kept: &mut Kept) -> *mut c_void {
    if bytes % 16 == 0 {
        kept.memory.push(vec![0; bytes / 16].into_boxed_slice());
        return kept.memory.last_mut().map_or(std::ptr::null_mut(), |it| it.as_mut_ptr().cast());
    }
    // Its end is exact; malloc aligns its beginning as XLA does.
    kept.bytes.push(vec![0; bytes].into_boxed_slice());
    kept.bytes.last_mut().map_or(std::ptr::null_mut(), |it| it.as_mut_ptr().cast())
}

fn buffer(source: &mut Unstructured<'_>, kept: &mut Kept) -> Result<*mut c_void> {
    let rank = source.int_in_range(0..=4)?;
    let mut dims = Vec::new();
    for _ in 0..rank {
        let small = source.ratio(7, 8)?;
        dims.push(if small { source.int_in_range(0..=5)? } else { source.arbitrary()? });
    }
    let dtype = dtype(source)?;
    let count =
        dims.iter().try_fold(1_usize, |count, dim| count.checked_mul(usize::try_from(*dim).ok()?));
    let bytes = count.and_then(|count| count.checked_mul(width(dtype)));
    let data = match bytes {
        Some(0) if source.arbitrary()? => std::ptr::null_mut(),
        Some(bytes @ 0..=MEMORY) => memory(bytes, kept),
        _ => std::ptr::without_provenance_mut(64),
    };
    kept.dims.push(dims.into_boxed_slice());
    let dims = kept.dims.last_mut().map_or(std::ptr::null_mut(), |dims| dims.as_mut_ptr());
    let rank =
        if rank == 0 && source.arbitrary()? { (0, std::ptr::null_mut()) } else { (rank, dims) };
    kept.buffers.push(Box::new(XLA_FFI_Buffer {
        struct_size: 48,
        extension_start: std::ptr::null_mut(),
        dtype,
        data,
        rank: rank.0,
        dims: rank.1,
    }));
    Ok(last(&mut kept.buffers))
}

fn last<T>(list: &mut [Box<T>]) -> *mut c_void {
    list.last_mut().map_or(std::ptr::null_mut(), |it| (&raw mut **it).cast())
}

fn span(source: &mut Unstructured<'_>, kept: &mut Kept) -> Result<XLA_FFI_ByteSpan> {
    const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "n", "lo", "hi", "name", "mode"];
    let text: Vec<u8> = if source.ratio(7, 8)? {
        source.choose(&NAMES)?.as_bytes().to_vec()
    } else {
        let length = source.int_in_range(0..=20)?;
        source.bytes(length.min(source.len()))?.to_vec()
    };
    let length = text.len();
    kept.bytes.push(text.into_boxed_slice());
    let ptr = kept.bytes.last().map_or(std::ptr::null(), |text| text.as_ptr().cast());
    Ok(XLA_FFI_ByteSpan { ptr: if length == 0 { std::ptr::null() } else { ptr }, len: length })
}

fn attributes(
    source: &mut Unstructured<'_>,
    kept: &mut Kept,
    depth: usize,
) -> Result<XLA_FFI_Attrs> {
    let count = source.int_in_range(0..=6)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let name = span(source, kept)?;
        entries.push((name, attribute(source, kept, depth)?));
    }
    // SAFETY: spans made above.
    let text = |span: &XLA_FFI_ByteSpan| unsafe {
        if span.len == 0 {
            Vec::new()
        } else {
            std::slice::from_raw_parts(span.ptr.cast::<u8>(), span.len).to_vec()
        }
    };
    entries.sort_by_key(|(name, _)| text(name));
    let mut names = Vec::new();
    for (name, _) in &entries {
        kept.spans.push(Box::new(*name));
        names.push(last(&mut kept.spans).cast());
    }
    kept.names.push(names.into_boxed_slice());
    kept.types.push(entries.iter().map(|(_, (kind, _))| *kind).collect());
    kept.pointers.push(entries.iter().map(|(_, (_, value))| *value).collect());
    Ok(XLA_FFI_Attrs {
        struct_size: 48,
        extension_start: std::ptr::null_mut(),
        size: length(entries.len()),
        types: kept.types.last_mut().map_or(std::ptr::null_mut(), |it| it.as_mut_ptr()),
        names: kept.names.last_mut().map_or(std::ptr::null_mut(), |it| it.as_mut_ptr()),
        attrs: kept.pointers.last_mut().map_or(std::ptr::null_mut(), |it| it.as_mut_ptr()),
    })
}

fn attribute(
    source: &mut Unstructured<'_>,
    kept: &mut Kept,
    depth: usize,
) -> Result<(u32, *mut c_void)> {
    let kind = source.int_in_range(1..=5)?;
    let value = match kind {
        XLA_FFI_AttrType_ARRAY => {
            let (dtype, size) = (dtype(source)?, source.int_in_range(0..=9)?);
            let data = memory(size * width(dtype), kept);
            let data = if size == 0 && source.arbitrary()? { std::ptr::null_mut() } else { data };
            kept.arrays.push(Box::new(XLA_FFI_Array { dtype, size, data }));
            last(&mut kept.arrays)
        }
        XLA_FFI_AttrType_DICTIONARY if depth < 3 => {
            let inner = attributes(source, kept, depth + 1)?;
            kept.attrs.push(Box::new(inner));
            last(&mut kept.attrs)
        }
        XLA_FFI_AttrType_STRING => {
            let text = span(source, kept)?;
            kept.spans.push(Box::new(text));
            last(&mut kept.spans)
        }
        XLA_FFI_AttrType_SCALAR => {
            let dtype = dtype(source)?;
            let value = memory(width(dtype), kept);
            kept.scalars.push(Box::new(XLA_FFI_Scalar { dtype, value }));
            last(&mut kept.scalars)
        }
        // A kind that is unknown, of a struct that is unknown.
        _ => return Ok((77, memory(16, kept))),
    };
    Ok((kind, value))
}
