//! The grammar of `signature!`, parsed and checked; nothing here generates code.
//!
//! ```text
//! #[attributes] vis struct Name<T: Bounds> {           // or: device struct, for a device's memory
//!     dims    { m, n, k = min(m, n) }
//!     args    { a: T [m, n] }
//!     attrs   { uplo: Uplo as u8, size: Option<i32> }
//!     rets    { lu: T [m, n] = a, info: i32 [] }      // or [m, n?]: n may be missing, as if it were 1; or no
//!                                                     // brackets: one number for all problems
//!     require { p >= k => "why" }
//! }
//! ```

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, GenericArgument, Generics, Ident, LitStr, PathArguments, Result, Token,
    Type, Visibility, braced, bracketed,
};

pub(crate) struct Declaration {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    /// Whether the operands lie in a device's memory.
    pub(crate) device: bool,
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) dims: Vec<Dim>,
    pub(crate) args: Vec<Operand>,
    pub(crate) attrs: Vec<Attr>,
    pub(crate) rets: Vec<Operand>,
    pub(crate) requirements: Vec<Requirement>,
}

pub(crate) struct Dim {
    pub(crate) name: Ident,
    pub(crate) formula: Option<Expr>,
}

pub(crate) struct Operand {
    pub(crate) name: Ident,
    pub(crate) element: Type,
    /// Indices into `Declaration::dims`.
    pub(crate) dims: Vec<usize>,
    /// Whether the last of them may be missing.
    pub(crate) optional: bool,
    /// Whether it has neither own nor leading dimensions: `alpha: T`.
    pub(crate) alone: bool,
    /// For a result: the argument whose memory it may share.
    pub(crate) alias: Option<usize>,
}

pub(crate) struct Attr {
    pub(crate) name: Ident,
    /// The type without `Option`.
    pub(crate) value: Type,
    pub(crate) optional: bool,
    /// `as u8`: an enum that travels as a code.
    pub(crate) coded: bool,
}

pub(crate) struct Requirement {
    pub(crate) condition: Expr,
    pub(crate) reason: LitStr,
}

impl Parse for Declaration {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let place: Option<Ident> = if input.peek(Token![struct]) { None } else { input.parse()? };
        if let Some(place) = place.as_ref().filter(|place| *place != "device") {
            return Err(Error::new(place.span(), "expected `struct` or `device struct`"));
        }
        input.parse::<Token![struct]>()?;
        let name = input.parse()?;
        let generics = input.parse()?;
        let body;
        braced!(body in input);
        let mut raw = Sections::default();
        while !body.is_empty() {
            raw.section(&body)?;
        }
        let declaration = raw.resolve(attributes, visibility, name, generics)?;
        Ok(Declaration { device: place.is_some(), ..declaration })
    }
}

/// The sections as written, before names are looked up.
#[derive(Default)]
struct Sections {
    dims: Vec<Dim>,
    args: Vec<RawOperand>,
    attrs: Vec<Attr>,
    rets: Vec<RawOperand>,
    requirements: Vec<Requirement>,
}

struct RawOperand {
    name: Ident,
    element: Type,
    dims: Vec<DimUse>,
    alone: bool,
    alias: Option<Ident>,
}

/// `n`, or `n?` for a dimension that may be missing.
struct DimUse {
    name: Ident,
    optional: bool,
}

impl Sections {
    fn section(&mut self, body: ParseStream<'_>) -> Result<()> {
        let keyword: Ident = body.parse()?;
        let content;
        braced!(content in body);
        match keyword.to_string().as_str() {
            "dims" => self.dims = list(&content)?,
            "args" => self.args = list(&content)?,
            "attrs" => self.attrs = list(&content)?,
            "rets" => self.rets = list(&content)?,
            "require" => self.requirements = list(&content)?,
            other => {
                let message = format!(
                    "unknown section `{other}`: expected dims, args, attrs, rets or require"
                );
                return Err(Error::new(keyword.span(), message));
            }
        }
        Ok(())
    }

    fn resolve(
        self,
        attributes: Vec<Attribute>,
        visibility: Visibility,
        name: Ident,
        generics: Generics,
    ) -> Result<Declaration> {
        let Sections { dims, args, mut attrs, rets, requirements } = self;
        let names = dims.iter().map(|dim| &dim.name);
        let fields = names
            .chain(args.iter().map(|arg| &arg.name))
            .chain(attrs.iter().map(|attr| &attr.name))
            .chain(rets.iter().map(|ret| &ret.name));
        refuse_duplicates(fields)?;
        let mut resolved_args = Vec::new();
        for arg in &args {
            if let Some(alias) = &arg.alias {
                return Err(Error::new(alias.span(), "only a result can share memory: `= a`"));
            }
            resolved_args.push(arg.resolve(&dims, &args)?);
        }
        if let Some(first) = args.first().filter(|first| first.alone) {
            let message = "the first argument tells how many problems there are: `[]`";
            return Err(Error::new(first.name.span(), message));
        }
        let mut resolved_rets: Vec<Operand> = Vec::new();
        for ret in &rets {
            let resolved = ret.resolve(&dims, &args)?;
            if let (Some(index), Some(alias)) = (resolved.alias, &ret.alias) {
                if resolved_rets.iter().any(|earlier| earlier.alias == Some(index)) {
                    let message = format!("two results share the memory of `{alias}`");
                    return Err(Error::new(alias.span(), message));
                }
                let argument = &resolved_args[index];
                let same = text(&argument.element) == text(&resolved.element)
                    && argument.dims == resolved.dims;
                if !same {
                    let message = format!("`{alias}` has another type or shape than this result");
                    return Err(Error::new(alias.span(), message));
                }
            }
            resolved_rets.push(resolved);
        }
        let used: Vec<usize> =
            resolved_args.iter().chain(&resolved_rets).flat_map(|op| op.dims.clone()).collect();
        for (index, dim) in dims.iter().enumerate() {
            if !used.contains(&index) {
                let message = format!("no operand has the dimension `{}`", dim.name);
                return Err(Error::new(dim.name.span(), message));
            }
        }
        refuse_fixed_optionals(&dims, &resolved_args, &resolved_rets, &requirements)?;
        // XLA hands a handler its attributes sorted by name.
        attrs.sort_by_key(|attr| attr.name.to_string());
        Ok(Declaration {
            attributes,
            visibility,
            device: false,
            name,
            generics,
            dims,
            args: resolved_args,
            attrs,
            rets: resolved_rets,
            requirements,
        })
    }
}

impl RawOperand {
    fn resolve(&self, dims: &[Dim], args: &[RawOperand]) -> Result<Operand> {
        let mut indices = Vec::new();
        let mut optional = false;
        for DimUse { name, optional: may_be_missing } in &self.dims {
            if optional {
                return Err(Error::new(name.span(), "only the last dimension may be optional"));
            }
            optional = *may_be_missing;
            let index = dims.iter().position(|dim| dim.name == *name).ok_or_else(|| {
                Error::new(name.span(), format!("`{name}` is not among the declared dims"))
            })?;
            indices.push(index);
        }
        let alias = match &self.alias {
            None => None,
            Some(name) => Some(args.iter().position(|arg| arg.name == *name).ok_or_else(|| {
                Error::new(name.span(), format!("`{name}` is not among the arguments"))
            })?),
        };
        let (name, element) = (self.name.clone(), self.element.clone());
        Ok(Operand { name, element, dims: indices, optional, alone: self.alone, alias })
    }
}

impl Parse for Dim {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let formula = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Dim { name, formula })
    }
}

impl Parse for DimUse {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        Ok(DimUse { name, optional: input.parse::<Option<Token![?]>>()?.is_some() })
    }
}

impl Parse for RawOperand {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let element = input.parse()?;
        let alone = !input.peek(syn::token::Bracket);
        let dims = if alone {
            Vec::new()
        } else {
            let content;
            bracketed!(content in input);
            list(&content)?
        };
        let alias = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(RawOperand { name, element, dims, alone, alias })
    }
}

impl Parse for Attr {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let written: Type = input.parse()?;
        let coded = input.parse::<Option<Token![as]>>()?.is_some();
        if coded {
            let wire: Ident = input.parse()?;
            if wire != "u8" {
                return Err(Error::new(wire.span(), "an enum travels `as u8`"));
            }
        }
        let (value, optional) = match option_argument(&written) {
            Some(inner) => (inner, true),
            None => (written, false),
        };
        Ok(Attr { name, value, optional, coded })
    }
}

impl Parse for Requirement {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let condition = input.parse()?;
        input.parse::<Token![=>]>()?;
        Ok(Requirement { condition, reason: input.parse()? })
    }
}

/// Whether the expression names this identifier anywhere.
pub(crate) fn mentions(expression: &impl ToTokens, name: &Ident) -> bool {
    fn search(tokens: TokenStream, name: &Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => ident == *name,
            proc_macro2::TokenTree::Group(group) => search(group.stream(), name),
            _ => false,
        })
    }
    search(expression.to_token_stream(), name)
}

/// The source text of a piece of syntax, for comparisons and messages.
pub(crate) fn text(syntax: &impl ToTokens) -> String {
    let mut spaced = syntax.to_token_stream().to_string();
    for (wide, narrow) in [
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        (" . ", "."),
        (" :: ", "::"),
        ("& ", "&"),
    ] {
        spaced = spaced.replace(wide, narrow);
    }
    spaced
}

fn list<T: Parse>(input: ParseStream<'_>) -> Result<Vec<T>> {
    Ok(Punctuated::<T, Token![,]>::parse_terminated(input)?.into_iter().collect())
}

fn option_argument(written: &Type) -> Option<Type> {
    let Type::Path(path) = written else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner.clone()),
        _ => None,
    }
}

/// A dimension that may be missing is so in all operands that have it, and nothing is computed from
/// it. The first operand tells how many leading dimensions there are, so it has none.
fn refuse_fixed_optionals(
    dims: &[Dim],
    args: &[Operand],
    rets: &[Operand],
    requirements: &[Requirement],
) -> Result<()> {
    let operands = || args.iter().chain(rets);
    if let Some(first) = operands().next().filter(|first| first.optional) {
        return Err(Error::new(first.name.span(), "the first operand has a fixed rank"));
    }
    for (index, dim) in dims.iter().enumerate() {
        let is_optional = |operand: &&Operand| operand.optional && operand.dims.ends_with(&[index]);
        if !operands().any(|operand| is_optional(&operand)) {
            continue;
        }
        let uses = operands().filter(|operand| operand.dims.contains(&index));
        let formulas = dims.iter().filter_map(|dim| dim.formula.as_ref());
        let mut expressions = formulas.chain(requirements.iter().map(|rule| &rule.condition));
        let once = |operand: &Operand| operand.dims.iter().filter(|it| **it == index).count() == 1;
        let fixed = uses.clone().any(|operand| !is_optional(&operand) || !once(operand));
        if fixed || dim.formula.is_some() || expressions.any(|it| mentions(it, &dim.name)) {
            let message = format!("`{}` is optional here and not elsewhere", dim.name);
            return Err(Error::new(dim.name.span(), message));
        }
    }
    Ok(())
}

fn refuse_duplicates<'a>(names: impl Iterator<Item = &'a Ident>) -> Result<()> {
    let mut seen: Vec<&Ident> = Vec::new();
    for name in names {
        if name == "batch" {
            return Err(Error::new(name.span(), "`batch` is the product of the leading dims"));
        }
        if seen.contains(&name) {
            return Err(Error::new(name.span(), format!("`{name}` is declared twice")));
        }
        seen.push(name);
    }
    Ok(())
}
