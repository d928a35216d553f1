//! `signature!`: from the shape of a call to the code that decodes it.
//!
//! The grammar is in `parse`, the generated code in `emit`. See `xla_ffi::signature` for its use.

mod emit;
mod parse;

use proc_macro::TokenStream;

/// Declares a struct that is one decoded call, and how to decode it. See `xla_ffi::signature`.
#[proc_macro]
pub fn signature(input: TokenStream) -> TokenStream {
    syn::parse::<parse::Declaration>(input)
        .and_then(|declaration| emit::declaration(&declaration))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
