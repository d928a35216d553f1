//! How the kernels are compiled: `#[per_scalar]`, once and in their own crate; `#[apart]`, in pieces.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::visit_mut::{VisitMut, visit_type_reference_mut};
use syn::{Error, FnArg, GenericParam, ItemFn, Lifetime, ReturnType, TypeReference, parse_quote};

/// Compiles a function of one type parameter, a scalar, where it stands, once for each scalar; a crate
/// that calls it would otherwise compile it anew, and the kernels take minutes. The function stays
/// generic for its callers.
///
/// Under the feature `generic` the function is left as it is, so that a crate that calls few of them
/// compiles these alone: a test of one kernel is built in seconds.
///
/// `#[per_scalar(real)]` and `#[per_scalar(complex)]` are for functions of these scalars alone.
#[proc_macro_attribute]
pub fn per_scalar(
    which: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let scalars = if which.is_empty() {
        Ok(quote! { f32, f64, ::num_complex::Complex<f32>, ::num_complex::Complex<f64> })
    } else {
        syn::parse::<Ident>(which).and_then(|which| match which {
            real if real == "real" => Ok(quote! { f32, f64 }),
            complex if complex == "complex" => {
                Ok(quote! { ::num_complex::Complex<f32>, ::num_complex::Complex<f64> })
            }
            other => Err(Error::new(other.span(), "per_scalar takes nothing, `real` or `complex`")),
        })
    };
    function(item, |function| expand(function, &scalars?))
}

/// What an attribute makes of a function, or the error.
fn function(
    item: proc_macro::TokenStream,
    change: impl FnOnce(&ItemFn) -> Result<TokenStream, Error>,
) -> proc_macro::TokenStream {
    let changed = syn::parse::<ItemFn>(item).and_then(|function| change(&function));
    changed.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Names for so many arguments, which may be patterns.
fn names(count: usize) -> Vec<Ident> {
    (0..count).map(|i| format_ident!("argument_{i}")).collect()
}

/// The type of what a function returns.
fn outcome(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, outcome) => quote!(#outcome),
    }
}

fn expand(function: &ItemFn, scalars: &TokenStream) -> Result<TokenStream, Error> {
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
    let (arguments, outcome) = (names(types.len()), outcome(output));
    Ok(quote! {
        #[cfg(feature = "generic")]
        #function

        #[cfg(not(feature = "generic"))]
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

            macro_rules! entries {
                ($($scalar:ty),*) => { vec![$(entry::<$scalar>()),*] };
            }
            static ENTRIES: ::std::sync::LazyLock<Vec<Entry>> =
                ::std::sync::LazyLock::new(|| entries![#scalars]);
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

/// Compiles a function for the vectors of its first argument, a [`pulp::Simd`], apart from its callers:
/// one copy serves them all, where `#[inline(always)]` makes one for each, and a compiler's time grows
/// faster than what it has in one piece (all of lapax-cpu: 8.8 minutes of it, and 6.8 with the SVD and
/// the constant orders of small kernels apart). A call takes a few nanoseconds.
///
/// The result holds no elided lifetime.
#[proc_macro_attribute]
pub fn apart(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    function(item, call_apart)
}

fn call_apart(function: &ItemFn) -> Result<TokenStream, Error> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let (mut types, mut patterns, mut elided) = (Vec::new(), Vec::new(), Elided::default());
    for input in &sig.inputs {
        match input {
            FnArg::Typed(input) => {
                let mut kind = (*input.ty).clone();
                elided.visit_type_mut(&mut kind);
                types.push(kind);
                patterns.push(&input.pat);
            }
            FnArg::Receiver(_) => {
                return Err(Error::new_spanned(input, "apart wants a free function"));
            }
        }
    }
    if types.is_empty() {
        return Err(Error::new_spanned(sig, "apart wants a Simd as first argument"));
    }
    let mut generics = sig.generics.clone();
    for lifetime in elided.lifetimes.into_iter().rev() {
        generics.params.insert(0, parse_quote!(#lifetime));
    }
    let (arguments, outcome) = (names(types.len()), outcome(&sig.output));
    let kinds = sig.generics.type_params().map(|parameter| &parameter.ident);
    let phantom = quote!(::std::marker::PhantomData<(#(fn(#kinds),)*)>);
    let (for_impl, for_type, bounds) = generics.split_for_impl();
    let (turbofish, name, first) = (for_type.as_turbofish(), &sig.ident, &arguments[0]);
    Ok(quote! {
        #(#attrs)*
        #[allow(clippy::too_many_arguments, reason = "as the function itself")]
        #[inline(always)]
        #vis fn #name #for_impl(#(#arguments: #types),*) -> #outcome #bounds {
            struct Call #for_impl #bounds {
                #(#arguments: #types,)*
                phantom: #phantom,
            }
            impl #for_impl ::pulp::WithSimd for Call #for_type #bounds {
                type Output = #outcome;

                #[inline(always)]
                fn with_simd<Registers: ::pulp::Simd>(self, _: Registers) -> #outcome {
                    let Self { #(#arguments,)* .. } = self;
                    #(let #patterns = #arguments;)*
                    #block
                }
            }
            let call = Call #turbofish { #(#arguments,)* phantom: ::std::marker::PhantomData };
            ::pulp::Simd::vectorize(#first, call)
        }
    })
}

/// Names the lifetimes that a type leaves out.
#[derive(Default)]
struct Elided {
    lifetimes: Vec<Lifetime>,
}

impl Elided {
    fn next(&mut self) -> Lifetime {
        let name = format!("'elided_{}", self.lifetimes.len());
        let lifetime = Lifetime::new(&name, Span::call_site());
        self.lifetimes.push(lifetime.clone());
        lifetime
    }
}

impl VisitMut for Elided {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.next());
        }
        visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.next();
        }
    }
}
