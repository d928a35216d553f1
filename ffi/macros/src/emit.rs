//! The code that `signature!` stands for: the struct, its signature as data, and its decoder.
//!
//! The decoder is straight-line code over literal names and types, so that a call with the right
//! shape costs a few comparisons. It says only yes or no; what is wrong with a call is worked out
//! from the data (`xla_ffi::Signature::check`).

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericParam, Ident, Lifetime, LifetimeParam, Result, Type, TypeParam, WherePredicate};

use crate::parse::{Attr, Declaration, Operand, mentions, text};

pub(crate) fn declaration(declaration: &Declaration) -> Result<TokenStream> {
    let structure = structure(declaration);
    let signature = signature(declaration);
    let decode = decode(declaration);
    let name = &declaration.name;
    let generics = with_lifetime(declaration);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #structure

        #[automatically_derived]
        #[allow(unsafe_code, clippy::undocumented_unsafe_blocks)]
        impl #impl_generics ::xla_ffi::Call<'f> for #name #type_generics #where_clause {
            const SIGNATURE: &'static ::xla_ffi::Signature = #signature;
            #decode
        }
    })
}

fn structure(declaration: &Declaration) -> TokenStream {
    let Declaration { attributes, visibility, device, name, dims, args, attrs, rets, .. } =
        declaration;
    let generics = with_lifetime(declaration);
    let (_, _, where_clause) = generics.split_for_impl();
    let dims = dims.iter().enumerate().map(|(index, dim)| {
        let doc = match &dim.formula {
            Some(formula) => format!("Dimension `{} = {}`.", dim.name, text(formula)),
            None if optional_dim(declaration, index) => {
                format!("Dimension `{}`; 1 where it is missing.", dim.name)
            }
            None => format!("Dimension `{}`.", dim.name),
        };
        let name = &dim.name;
        quote!(#[doc = #doc] pub #name: usize)
    });
    let args = args.iter().enumerate().filter(|(index, _)| shared_by(rets, *index).is_none()).map(
        |(_, arg)| {
            let (name, element) = (&arg.name, &arg.element);
            let doc = format!("Argument `{}`.", operand_text(declaration, arg));
            if *device {
                return quote!(#[doc = #doc] pub #name: ::xla_ffi::Device<'f, #element>);
            }
            quote!(#[doc = #doc] pub #name: &'f [#element])
        },
    );
    let attrs = attrs.iter().map(|attr| {
        let (name, value) = (&attr.name, attr_type(attr));
        let doc = format!("Attribute `{}`.", attr.name);
        quote!(#[doc = #doc] pub #name: #value)
    });
    let results = rets.iter().map(|ret| {
        let (name, element) = (&ret.name, &ret.element);
        let shape = operand_text(declaration, ret);
        match ret.alias {
            Some(index) => {
                let argument = &declaration.args[index].name;
                let doc = format!("Result `{shape}`, computed from argument `{argument}`.");
                let in_out = format_ident!("{}InOut", if *device { "Device" } else { "" });
                quote!(#[doc = #doc] pub #name: ::xla_ffi::#in_out<'f, #element>)
            }
            None => {
                let doc = format!("Result `{shape}`.");
                if *device {
                    return quote!(#[doc = #doc] pub #name: ::xla_ffi::DeviceMut<'f, #element>);
                }
                quote!(#[doc = #doc] pub #name: &'f mut [#element])
            }
        }
    });
    quote! {
        #(#attributes)*
        #visibility struct #name #generics #where_clause {
            /// Number of problems: the product of the leading dimensions.
            pub batch: usize,
            #(#dims,)*
            #(#args,)*
            #(#attrs,)*
            #(#results,)*
        }
    }
}

fn signature(declaration: &Declaration) -> TokenStream {
    let Declaration { dims, args, attrs, rets, requirements, .. } = declaration;
    let dims = dims.iter().map(|dim| {
        let name = dim.name.to_string();
        let formula = match &dim.formula {
            None => quote!(::core::option::Option::None),
            Some(expression) => {
                let text = text(expression);
                let bound = bindings(declaration, expression);
                quote! {
                    ::core::option::Option::Some(::xla_ffi::Formula {
                        text: #text,
                        evaluate: |dims, attrs| {
                            use ::core::cmp::{max, min};
                            let _ = (max::<i64>, min::<i64>, dims, attrs);
                            #bound
                            ::core::option::Option::Some(#expression)
                        },
                    })
                }
            }
        };
        quote!(::xla_ffi::Dim { name: #name, formula: #formula })
    });
    let args = args.iter().map(operand);
    let rets = rets.iter().map(operand);
    let attrs = attrs.iter().map(|attr| {
        let name = attr.name.to_string();
        let optional = attr.optional;
        let value = &attr.value;
        if attr.coded {
            quote!(::xla_ffi::Attr::coded::<#value>(#name, #optional))
        } else {
            let value = with_static(value);
            quote!(::xla_ffi::Attr::plain::<#value>(#name, #optional))
        }
    });
    let requirements = requirements.iter().map(|requirement| {
        let (condition, reason) = (&requirement.condition, &requirement.reason);
        let bound = bindings(declaration, condition);
        let names = declaration.dims.iter().enumerate();
        let used = names.filter(|(_, dim)| mentions(condition, &dim.name)).map(|(index, _)| index);
        let names = declaration.attrs.iter().enumerate();
        let used_attrs =
            names.filter(|(_, attr)| mentions(condition, &attr.name)).map(|(index, _)| index);
        quote! {
            ::xla_ffi::Requirement {
                reason: #reason,
                dims: &[#(#used),*],
                attrs: &[#(#used_attrs),*],
                holds: |dims, attrs| {
                    let _ = (dims, attrs);
                    #bound
                    ::core::option::Option::Some(#condition)
                },
            }
        }
    });
    quote! {
        &::xla_ffi::Signature {
            dims: &[#(#dims),*],
            args: &[#(#args),*],
            attrs: &[#(#attrs),*],
            rets: &[#(#rets),*],
            requirements: &[#(#requirements),*],
        }
    }
}

fn operand(operand: &Operand) -> TokenStream {
    let (name, element, dims) = (operand.name.to_string(), &operand.element, &operand.dims);
    let (optional, alone) = (operand.optional, operand.alone);
    let alias = match operand.alias {
        Some(index) => quote!(::core::option::Option::Some(#index)),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        ::xla_ffi::Operand {
            name: #name,
            dtype: <#element as ::xla_ffi::Element>::DTYPE,
            dims: &[#(#dims),*],
            optional: #optional,
            alone: #alone,
            alias: #alias,
        }
    }
}

/// `let` statements for the dims and attributes that an expression names, from the data.
fn bindings(declaration: &Declaration, expression: &syn::Expr) -> TokenStream {
    let dims = declaration.dims.iter().enumerate();
    let dims = dims.filter(|(_, dim)| mentions(expression, &dim.name)).map(|(index, dim)| {
        let name = &dim.name;
        quote!(let #name: i64 = dims[#index]?;)
    });
    let attrs = declaration.attrs.iter().enumerate();
    let attrs = attrs.filter(|(_, attr)| mentions(expression, &attr.name)).map(|(index, attr)| {
        let name = &attr.name;
        let convert = convert(attr, &quote!(value));
        if attr.optional {
            quote! {
                let #name = match attrs[#index] {
                    ::core::option::Option::Some(value) => ::core::option::Option::Some(#convert?),
                    ::core::option::Option::None => ::core::option::Option::None,
                };
            }
        } else {
            quote!(let #name = { let value = attrs[#index]?; #convert? };)
        }
    });
    quote!(#(#dims)* #(#attrs)*)
}

fn decode(declaration: &Declaration) -> TokenStream {
    let Declaration { dims, args, attrs, rets, requirements, .. } = declaration;
    let (arg_count, ret_count) = (args.len(), rets.len());
    let mut bound = vec![false; dims.len()];
    let read_args = args
        .iter()
        .enumerate()
        .map(|(index, arg)| read_operand(declaration, arg, index, "arg", &mut bound));
    let read_args: Vec<_> = read_args.collect();
    let read_rets = rets
        .iter()
        .enumerate()
        .map(|(index, ret)| read_operand(declaration, ret, index, "ret", &mut bound));
    let read_rets: Vec<_> = read_rets.collect();
    let read_attrs = attrs.iter().map(|attr| {
        let (name, key) = (&attr.name, attr.name.to_string());
        let convert = convert(attr, &quote!(value));
        if attr.optional {
            quote! {
                let #name = match attributes.optional(#key) {
                    ::core::option::Option::Some(value) => ::core::option::Option::Some(#convert?),
                    ::core::option::Option::None => ::core::option::Option::None,
                };
            }
        } else {
            quote!(let #name = { let value = attributes.required(#key)?; #convert? };)
        }
    });
    let attr_count = attrs.len();
    // To know the number first saves looking at it for each.
    let counted = attrs.iter().all(|attr| !attr.optional).then(|| {
        quote! {
            if !attributes.has_count(#attr_count) {
                return ::core::option::Option::None;
            }
        }
    });
    let formulas = dims.iter().filter_map(|dim| {
        let (name, formula) = (&dim.name, dim.formula.as_ref()?);
        Some(quote! {
            let expected: i64 = { use ::core::cmp::{max, min}; let _ = (max::<i64>, min::<i64>); #formula };
            if #name != expected { return ::core::option::Option::None; }
        })
    });
    let requirements = requirements.iter().map(|requirement| {
        let condition = &requirement.condition;
        quote!(if !(#condition) { return ::core::option::Option::None; })
    });
    let sizes = dims.iter().enumerate().map(|(index, dim)| {
        let name = &dim.name;
        if optional_dim(declaration, index) {
            return quote!(let #name = usize::try_from(
                if #name == ::xla_ffi::MISSING { 1 } else { #name }
            ).ok()?;);
        }
        quote!(let #name = usize::try_from(#name).ok()?;)
    });
    let arg_fields = args.iter().enumerate().filter_map(|(index, arg)| {
        let (name, raw) = (&arg.name, format_ident!("arg{index}"));
        shared_by(rets, index).is_none().then(|| {
            let (dims, batch) = extent(declaration, arg);
            if declaration.device {
                return quote!(#name: #raw.device(#dims, #batch)?);
            }
            quote!(#name: unsafe { #raw.slice(#dims, #batch) }?)
        })
    });
    let ret_fields = rets.iter().enumerate().map(|(index, ret)| {
        let (name, raw) = (&ret.name, format_ident!("ret{index}"));
        let (dims, batch) = extent(declaration, ret);
        let argument = ret.alias.map(|argument| format_ident!("arg{argument}"));
        match (argument, declaration.device) {
            (Some(argument), true) => quote!(#name: #raw.device_in_out(#argument, #dims, #batch)?),
            (None, true) => quote!(#name: #raw.device_mut(#dims, #batch)?),
            (Some(argument), false) => {
                quote!(#name: unsafe { #raw.in_out(#argument, #dims, #batch) }?)
            }
            (None, false) => quote!(#name: unsafe { #raw.slice_mut(#dims, #batch) }?),
        }
    });
    let dim_names = dims.iter().map(|dim| &dim.name);
    let attr_names = attrs.iter().map(|attr| &attr.name);
    quote! {
        #[inline(always)]
        fn decode(frame: ::xla_ffi::Frame<'f>) -> ::core::option::Option<Self> {
            // Attributes first: decoding one may call a function, for which operands would leave
            // their registers.
            let mut attributes = frame.attributes();
            #counted
            #(#read_attrs)*
            if !attributes.exhausted() {
                return ::core::option::Option::None;
            }
            let buffers = frame.buffers::<#arg_count, #ret_count>()?;
            let mut leading = ::xla_ffi::Leading::unbound();
            #(#read_args)*
            #(#read_rets)*
            #(#formulas)*
            #(#requirements)*
            #(#sizes)*
            let batch = leading.size()?;
            // SAFETY: every operand was checked against its element type and dimensions, and each
            // result is turned into a slice once; the rest is XLA's promise to a handler.
            ::core::option::Option::Some(Self {
                batch,
                #(#dim_names,)*
                #(#arg_fields,)*
                #(#attr_names,)*
                #(#ret_fields,)*
            })
        }
    }
}

/// Reads one operand, binds the dims it names first and compares those already bound.
fn read_operand(
    declaration: &Declaration,
    operand: &Operand,
    index: usize,
    prefix: &str,
    bound: &mut [bool],
) -> TokenStream {
    let raw = format_ident!("{prefix}{index}");
    if operand.alone {
        let (read, element) = (format_ident!("{prefix}_alone"), &operand.element);
        return quote!(let #raw = buffers.#read::<#element>(#index)?;);
    }
    let read = format_ident!("{prefix}{}", if operand.optional { "_or_less" } else { "" });
    let (element, rank) = (&operand.element, operand.dims.len());
    let dims = operand.dims.iter().enumerate().map(|(position, dim)| {
        let name = &declaration.dims[*dim].name;
        if bound[*dim] {
            quote!(if #raw.dims[#position] != #name { return ::core::option::Option::None; })
        } else {
            bound[*dim] = true;
            quote!(let #name: i64 = #raw.dims[#position];)
        }
    });
    let dims: Vec<_> = dims.collect();
    quote! {
        let #raw = buffers.#read::<#element, #rank>(#index, &mut leading)?;
        #(#dims)*
    }
}

/// An expression of type `Option<T>` that converts a `Value`.
fn convert(attr: &Attr, value: &TokenStream) -> TokenStream {
    let target = &attr.value;
    if attr.coded {
        quote!(::xla_ffi::decode_code::<#target>(#value))
    } else {
        quote!(<#target as ::xla_ffi::Attribute<'_>>::from_value(#value))
    }
}

/// The operand's dimensions as an array of the names that hold them, and how many problems it has.
fn extent(declaration: &Declaration, operand: &Operand) -> (TokenStream, TokenStream) {
    let names = operand.dims.iter().map(|dim| &declaration.dims[*dim].name);
    (quote!([#(#names),*]), if operand.alone { quote!(1) } else { quote!(batch) })
}

/// Whether a dimension may be missing; then it is so in all operands that have it.
fn optional_dim(declaration: &Declaration, dim: usize) -> bool {
    let mut operands = declaration.args.iter().chain(&declaration.rets);
    operands.any(|operand| operand.optional && operand.dims.ends_with(&[dim]))
}

fn shared_by(rets: &[Operand], argument: usize) -> Option<&Operand> {
    rets.iter().find(|ret| ret.alias == Some(argument))
}

fn attr_type(attr: &Attr) -> TokenStream {
    let value = with_lifetime_f(&attr.value);
    if attr.optional { quote!(::core::option::Option<#value>) } else { quote!(#value) }
}

fn operand_text(declaration: &Declaration, operand: &Operand) -> String {
    let dims: Vec<String> =
        operand.dims.iter().map(|dim| declaration.dims[*dim].name.to_string()).collect();
    let mark = if operand.optional { "?" } else { "" };
    if operand.alone {
        return format!("{}: {}", operand.name, text(&operand.element));
    }
    format!("{}: {} [{}{mark}]", operand.name, text(&operand.element), dims.join(", "))
}

/// The declared generics with `'f` in front and `Element` demanded of every generic element type.
fn with_lifetime(declaration: &Declaration) -> syn::Generics {
    let mut generics = declaration.generics.clone();
    let parameters: Vec<Ident> =
        generics.type_params().map(|TypeParam { ident, .. }| ident.clone()).collect();
    let lifetime = Lifetime::new("'f", Span::call_site());
    generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(lifetime)));
    let mut elements: Vec<&Type> = Vec::new();
    for operand in declaration.args.iter().chain(&declaration.rets) {
        let element = &operand.element;
        let generic = parameters.iter().any(|parameter| mentions(element, parameter));
        if generic && !elements.iter().any(|known| text(*known) == text(element)) {
            elements.push(element);
        }
    }
    let clause = generics.make_where_clause();
    for element in elements {
        let predicate: WherePredicate = syn::parse_quote!(#element: ::xla_ffi::Element);
        clause.predicates.push(predicate);
    }
    generics
}

fn with_lifetime_f(written: &Type) -> Type {
    set_lifetime(written, "'f")
}

fn with_static(written: &Type) -> Type {
    set_lifetime(written, "'static")
}

fn set_lifetime(written: &Type, name: &str) -> Type {
    let mut changed = written.clone();
    if let Type::Reference(reference) = &mut changed {
        reference.lifetime = Some(Lifetime::new(name, Span::call_site()));
    }
    changed
}
