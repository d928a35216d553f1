//! What is wrong with a call, or which shapes its results have: a signature read as data.
//!
//! The decoder that `signature!` generates says yes or no; this says why, and answers the same
//! question before there are buffers (`Given::rets` absent: infer the results).

use crate::data_type::DataType;
use crate::frame::{Frame, MISSING, dims};
use crate::signature::{Operand, Signature};
use crate::sys;
use crate::value::Value;

/// Element type and dimensions of a buffer, leading ones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The element type.
    pub dtype: DataType,
    /// All dimensions.
    pub dims: Vec<i64>,
}

/// A call as far as it is known.
#[derive(Default)]
pub struct Given<'a> {
    /// The arguments; None: not a buffer.
    pub args: Vec<Option<Shape>>,
    /// The results, or None to infer them.
    pub rets: Option<Vec<Option<Shape>>>,
    /// Names and values of the attributes.
    pub attrs: Vec<(String, Value<'a>)>,
    /// Values for dimensions that no argument fixes.
    pub dims: Vec<(String, i64)>,
}

impl<'f> Given<'f> {
    /// What a frame holds.
    pub fn from_frame(frame: Frame<'f>) -> Self {
        let shape = |buffer: &sys::XLA_FFI_Buffer| Shape {
            dtype: DataType::from_code(buffer.dtype),
            dims: dims(buffer).to_vec(),
        };
        let args = (0..frame.arg_count()).map(|index| frame.arg_buffer(index).map(shape));
        let rets = (0..frame.ret_count()).map(|index| frame.ret_buffer(index).map(shape));
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Given {
            args: args.collect(),
            rets: Some(rets.collect()),
            attrs: frame.dictionary().iter().map(|(key, value)| (name(key), value)).collect(),
            dims: Vec::new(),
        }
    }
}

impl Signature {
    /// The shapes of the results, or every mismatch, each a phrase that names the operand, what was
    /// expected and what came.
    pub fn check(&self, given: &Given<'_>) -> Result<Vec<Shape>, Vec<String>> {
        let mut check = Check {
            signature: self,
            given,
            leading: None,
            dims: vec![None; self.dims.len()],
            attrs: vec![None; self.attrs.len()],
            mismatches: Vec::new(),
        };
        check.counts();
        check.attributes();
        check.bind();
        check.operands();
        check.requirements();
        let rets = check.results();
        if check.mismatches.is_empty() { Ok(rets) } else { Err(check.mismatches) }
    }
}

struct Check<'a> {
    signature: &'a Signature,
    given: &'a Given<'a>,
    leading: Option<&'a [i64]>,
    dims: Vec<Option<i64>>,
    attrs: Vec<Option<Value<'a>>>,
    mismatches: Vec<String>,
}

impl<'a> Check<'a> {
    fn counts(&mut self) {
        let rets = self.given.rets.as_ref().map(Vec::len);
        let counts = [
            ("argument", self.signature.args, Some(self.given.args.len())),
            ("result", self.signature.rets, rets),
        ];
        for (what, expected, got) in counts {
            let Some(got) = got else { continue };
            if got != expected.len() {
                let names: Vec<&str> = expected.iter().map(|operand| operand.name).collect();
                let (count, names) = (expected.len(), names.join(", "));
                let plural = if count == 1 { "" } else { "s" };
                self.mismatches
                    .push(format!("expected {count} {what}{plural} ({names}), got {got}"));
            }
        }
    }

    fn attributes(&mut self) {
        for (index, attr) in self.signature.attrs.iter().enumerate() {
            let found = self.given.attrs.iter().find(|(name, _)| name == attr.name);
            match found {
                Some((_, value)) if (attr.accepts)(*value) => self.attrs[index] = Some(*value),
                None if attr.optional => {}
                _ => {
                    let got = found.map_or("nothing".to_owned(), |(_, value)| value.describe());
                    let (name, expected) = (attr.name, attr.expected());
                    self.mismatches
                        .push(format!("attribute `{name}`: expected {expected}, got {got}"));
                }
            }
        }
        let known: Vec<&str> = self.signature.attrs.iter().map(|attr| attr.name).collect();
        for (name, value) in &self.given.attrs {
            if !known.contains(&name.as_str()) {
                let expected = match known.as_slice() {
                    [] => "no attributes".to_owned(),
                    names => format!("only {}", names.join(", ")),
                };
                let got = value.describe();
                self.mismatches
                    .push(format!("attribute `{name}`: expected {expected}, got {got} as well"));
            }
        }
    }

    /// Fixes the leading dimensions and every dimension, by its first operand or by its formula.
    fn bind(&mut self) {
        for (name, value) in &self.given.dims {
            match self.signature.dims.iter().position(|dim| dim.name == name) {
                Some(index) if *value >= 0 => self.dims[index] = Some(*value),
                Some(_) => self
                    .mismatches
                    .push(format!("dimension `{name}`: expected a size, got {value}")),
                None => {
                    let known: Vec<&str> = self.signature.dims.iter().map(|dim| dim.name).collect();
                    let known = known.join(", ");
                    self.mismatches.push(format!("dimension `{name}`: expected one of {known}"));
                }
            }
        }
        let rets = self.given.rets.iter().flatten();
        let operands = self.signature.args.iter().zip(&self.given.args);
        for (operand, shape) in operands.chain(self.signature.rets.iter().zip(rets)) {
            let Some(shape) = shape else { continue };
            let Some((outer, own)) = self.split(operand, shape) else { continue };
            // A negative number is no size: nothing is compared with it.
            if !operand.alone && outer.iter().all(|dim| *dim >= 0) {
                self.leading.get_or_insert(outer);
            }
            for (dim, value) in operand.dims.iter().zip(own) {
                if *value >= 0 && self.signature.dims[*dim].formula.is_none() {
                    self.dims[*dim].get_or_insert(*value);
                }
            }
            if let Some(missing) = operand.dims.get(own.len()) {
                self.dims[*missing].get_or_insert(MISSING);
            }
        }
        for (index, dim) in self.signature.dims.iter().enumerate() {
            if let Some(formula) = &dim.formula {
                // No formula overflows by less than a factor of two; no memory has so many elements.
                let size = |size: &Option<i64>| size.map(|size| size.min(i64::MAX / 4));
                let sizes: Vec<_> = self.dims.iter().map(size).collect();
                let value = (formula.evaluate)(&sizes, &self.attrs);
                if let (Some(given), Some(value)) = (self.dims[index], value)
                    && given != value
                {
                    let (name, text) = (dim.name, formula.text);
                    self.mismatches.push(format!(
                        "dimension `{name}`: expected {text} = {value}, got {given}"
                    ));
                }
                self.dims[index] = value.or(self.dims[index]);
            }
        }
    }

    fn operands(&mut self) {
        let lists = [
            ("argument", self.signature.args, Some(&self.given.args)),
            ("result", self.signature.rets, self.given.rets.as_ref()),
        ];
        for (what, operands, shapes) in lists {
            let shapes = shapes.into_iter().flatten();
            for (index, (operand, shape)) in operands.iter().zip(shapes).enumerate() {
                let name = operand.name;
                let expected = || self.expected(operand);
                let problem = match shape {
                    None => format!("expected {}, got no buffer", expected()),
                    Some(shape) if !self.fits(operand, shape) => {
                        format!("expected {}, got {}", expected(), shape_text(shape))
                    }
                    Some(shape) if !addressable(shape) => {
                        format!("{} is larger than an address space", shape_text(shape))
                    }
                    Some(_) => continue,
                };
                self.mismatches.push(format!("{what} {index} `{name}`: {problem}"));
            }
        }
    }

    /// A shape's leading dimensions and the operand's own, of which an optional one may be missing.
    fn split<'s>(&self, operand: &Operand, shape: &'s Shape) -> Option<(&'s [i64], &'s [i64])> {
        let (rank, own) = (shape.dims.len(), operand.dims.len());
        if operand.alone {
            return (rank == 0).then_some((&[], &[]));
        }
        let less =
            self.leading.filter(|leading| operand.optional && rank + 1 == leading.len() + own);
        let outer = less.map_or_else(|| rank.checked_sub(own), |leading| Some(leading.len()))?;
        Some(shape.dims.split_at(outer))
    }

    fn fits(&self, operand: &Operand, shape: &Shape) -> bool {
        let Some((outer, own)) = self.split(operand, shape) else { return false };
        let missing = operand.dims.get(own.len()).map(|_| &MISSING);
        shape.dtype == operand.dtype
            && (operand.alone || self.leading.is_none_or(|leading| leading == outer))
            && shape.dims.iter().all(|dim| *dim >= 0)
            && operand
                .dims
                .iter()
                .zip(own.iter().chain(missing))
                .all(|(dim, value)| self.dims[*dim].is_none_or(|expected| expected == *value))
    }

    /// `f64 [5, m=4, n=3]`, as far as the dimensions are known; `n?` may be missing.
    fn expected(&self, operand: &Operand) -> String {
        let mut parts: Vec<String> = match self.leading {
            _ if operand.alone => Vec::new(),
            Some(leading) => leading.iter().map(i64::to_string).collect(),
            None => vec!["…".to_owned()],
        };
        for (index, dim) in operand.dims.iter().enumerate() {
            let name = self.signature.dims[*dim].name;
            parts.push(match (self.dims[*dim], &self.signature.dims[*dim].formula) {
                (Some(MISSING), _) if operand.may_miss(index) => continue,
                (None, _) if operand.may_miss(index) => format!("{name}?"),
                (Some(value), None) => format!("{name}={value}"),
                (Some(value), Some(formula)) => format!("{name}={}={value}", formula.text),
                (None, _) => name.to_owned(),
            });
        }
        format!("{} [{}]", operand.dtype, parts.join(", "))
    }

    fn requirements(&mut self) {
        for requirement in self.signature.requirements {
            if (requirement.holds)(&self.dims, &self.attrs) == Some(false) {
                let dims = requirement.dims.iter().filter_map(|dim| {
                    Some(format!("{}={}", self.signature.dims[*dim].name, self.dims[*dim]?))
                });
                let attrs = requirement.attrs.iter().filter_map(|attr| {
                    let (name, value) = (self.signature.attrs[*attr].name, self.attrs[*attr]?);
                    Some(format!("{name}={}", value.describe()))
                });
                let got: Vec<String> = dims.chain(attrs).collect();
                self.mismatches.push(format!(
                    "expected {}, got {}",
                    requirement.reason,
                    got.join(", ")
                ));
            }
        }
    }

    /// The shapes that the results must have.
    fn results(&mut self) -> Vec<Shape> {
        let leading = self.leading.unwrap_or(&[]);
        let mut shapes = Vec::new();
        for ret in self.signature.rets {
            let mut dims = if ret.alone { Vec::new() } else { leading.to_vec() };
            for (index, dim) in ret.dims.iter().enumerate() {
                match self.dims[*dim] {
                    Some(MISSING) if ret.may_miss(index) => {}
                    Some(value) => dims.push(value),
                    None if self.mismatches.is_empty() => {
                        let (name, result) = (self.signature.dims[*dim].name, ret.name);
                        self.mismatches.push(format!(
                            "dimension `{name}` of result `{result}`: no argument fixes it, pass it"
                        ));
                    }
                    None => {}
                }
            }
            let shape = Shape { dtype: ret.dtype, dims };
            // Those that a call passes are looked at as operands.
            if self.given.rets.is_none() && self.mismatches.is_empty() && !addressable(&shape) {
                let negative = shape.dims.iter().any(|dim| *dim < 0);
                let problem =
                    if negative { "is no shape" } else { "is larger than an address space" };
                let (name, text) = (ret.name, shape_text(&shape));
                self.mismatches.push(format!("result `{name}`: {text} {problem}"));
            }
            shapes.push(shape);
        }
        shapes
    }
}

fn shape_text(shape: &Shape) -> String {
    let dims: Vec<String> = shape.dims.iter().map(i64::to_string).collect();
    format!("{} [{}]", shape.dtype, dims.join(", "))
}

/// Whether a slice can hold this shape, multiplied in the decoder's order.
fn addressable(shape: &Shape) -> bool {
    let mut dims = shape.dims.iter();
    let len = dims.try_fold(1_usize, |len, dim| len.checked_mul(usize::try_from(*dim).ok()?));
    len.is_some_and(|len| len <= isize::MAX.unsigned_abs() / shape.dtype.size())
}
