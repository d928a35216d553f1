//! Call frames of any content that the C API allows, against handlers of both macros: sizes, nulls,
//! wrong tags, unknown types, truncated and nested dictionaries. What a handler reads lies in memory of
//! exactly its size, so that AddressSanitizer sees a byte too many.
#![no_main]

mod frame;
mod handlers;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut source = Unstructured::new(data);
    // Nothing is asked of the answer: a handler may refuse or not, and must not err.
    let _ = frame::call(&mut source, &handlers::ALL);
});
