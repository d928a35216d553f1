//! `#[per_scalar]`: a generic function that is compiled in its own crate.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, FnArg, GenericParam, ItemFn, ReturnType};

/// Compiles a function of one type parameter, a scalar, where it stands, once for each scalar; a crate
/// that calls it would otherwise compile it anew, and the kernels take minutes. The function stays
/// generic for its callers.
///
/// Under `cfg(test)` the function is left as it is: tests call few of them.
#[proc_macro_attribute]
pub fn per_scalar(
    _: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    syn::parse::<ItemFn>(item)
        .and_then(|function| expand(&function))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

fn expand(function: &ItemFn) -> Result<TokenStream, Error> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let generics = &sig.generics;
    let parameter = match generics.params.iter().collect::<Vec<_>>()[..] {
        [GenericParam::Type(parameter)] => &parameter.ident,
        _ => return Err(Error::new_spanned(generics, "per_scalar wants one type parameter")),
    };
    let (name, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
    let mut types = Vec::new();
    for input in inputs {
        match input {
            FnArg::Typed(input) => types.push(&input.ty),
            FnArg::Receiver(_) => {
                return Err(Error::new_spanned(input, "per_scalar wants a free function"));
            }
        }
    }
    let arguments: Vec<_> = (0..types.len()).map(|i| format_ident!("argument_{i}")).collect();
    let outcome = match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, outcome) => quote!(#outcome),
    };
    Ok(quote! {
        #[cfg(test)]
        #function

        #[cfg(not(test))]
        #(#attrs)*
        #vis fn #name #generics(#(#arguments: #types),*) #output {
            use ::std::any::Any;
            type Entry = Box<dyn Any + Send + Sync>;

            #[allow(clippy::too_many_arguments, reason = "as the function itself")]
            fn compiled #generics(#inputs) #output #block

            fn entry #generics() -> Entry {
                let entry: fn(#(#types),*) -> #outcome = compiled::<#parameter>;
                Box::new(entry)
            }

            static ENTRIES: ::std::sync::LazyLock<[Entry; 4]> = ::std::sync::LazyLock::new(|| [
                entry::<f32>(),
                entry::<f64>(),
                entry::<::num_complex::Complex<f32>>(),
                entry::<::num_complex::Complex<f64>>(),
            ]);
            let found = ENTRIES
                .iter()
                .find_map(|entry| entry.downcast_ref::<fn(#(#types),*) -> #outcome>());
            match found {
                Some(entry) => entry(#(#arguments),*),
                None => unreachable!("{} is no scalar", ::std::any::type_name::<#parameter>()),
            }
        }
    })
}
