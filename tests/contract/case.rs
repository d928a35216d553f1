//! Calls made from a signature: sizes for which its rules hold, attributes that it accepts, and
//! matrices on which every operation succeeds.

use std::collections::HashSet;

use num_complex::Complex;
use xla_ffi::fake::{Attr, Host};
use xla_ffi::{DataType, Frame, Given, Shape, Signature, Value};

use lapax::{Op, Platform, Target, targets};

use crate::device;
use crate::plan::{Memory, Operand, Plan};

/// One of a target's signatures.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    pub(crate) op: &'static Op,
    pub(crate) target: &'static Target,
    pub(crate) signature: &'static Signature,
}

/// A right call.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) variant: Variant,
    /// All dimensions, in the signature's order.
    pub(crate) dims: Vec<i64>,
    pub(crate) leading: Vec<i64>,
    pub(crate) plan: Plan,
}

/// All signatures of all targets that can be called here.
pub(crate) fn variants() -> impl Iterator<Item = Variant> {
    targets().filter(|(_, target)| device::callable(target)).flat_map(|(op, target)| {
        target.signatures.iter().map(move |signature| Variant { op, target, signature })
    })
}

/// Different sizes, small.
pub(crate) const SMALL: &[i64] = &[3, 4, 5, 6];

impl Variant {
    /// The element type that tells this signature from its siblings.
    pub(crate) fn dtype(&self) -> DataType {
        self.signature.args[0].dtype
    }

    /// For messages.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.target.name, self.dtype())
    }

    /// The operation, and the platform where it is not the CPU.
    pub(crate) fn title(&self) -> String {
        match self.target.platform {
            Platform::Cpu => self.op.name.to_owned(),
            platform => format!("{} on {}", self.op.name, platform.name()),
        }
    }

    /// Runs `body` with the attributes as XLA would hand them over, in the signature's order.
    pub(crate) fn with_values<R>(
        &self,
        attrs: &[(String, Attr)],
        body: impl FnOnce(&[Option<Value<'_>>], &Given<'_>) -> R,
    ) -> R {
        let mut plan = Plan { attrs: attrs.to_vec(), ..Plan::default() };
        plan.with_frame(&Host::new(), |frame| {
            // SAFETY: the plan's frame.
            let given = Given::from_frame(unsafe { Frame::new(frame) });
            let find = |attr: &xla_ffi::Attr| {
                given.attrs.iter().find(|(name, _)| name == attr.name).map(|(_, value)| *value)
            };
            let values: Vec<Option<Value<'_>>> = self.signature.attrs.iter().map(find).collect();
            body(&values, &given)
        })
    }

    /// The dimensions with no formula, as indices.
    pub(crate) fn free(&self) -> Vec<usize> {
        let dims = self.signature.dims.iter().enumerate();
        dims.filter(|(_, dim)| dim.formula.is_none()).map(|(index, _)| index).collect()
    }

    /// All dimensions, from values for the free ones; and which requirements fail.
    pub(crate) fn complete(
        &self,
        free: &[i64],
        attrs: &[(String, Attr)],
    ) -> (Vec<i64>, Vec<&'static str>) {
        let mut dims = vec![None; self.signature.dims.len()];
        self.free().iter().zip(free).for_each(|(index, value)| dims[*index] = Some(*value));
        self.with_values(attrs, |values, _| {
            for (index, dim) in self.signature.dims.iter().enumerate() {
                if let Some(formula) = &dim.formula {
                    dims[index] = (formula.evaluate)(&dims, values);
                }
            }
            let rules = self.signature.requirements.iter();
            let failing = rules.filter(|rule| (rule.holds)(&dims, values) != Some(true));
            let failing = failing.map(|rule| rule.reason).collect();
            (
                dims.iter().map(|dim| dim.expect("a value for each free dimension")).collect(),
                failing,
            )
        })
    }

    /// The dimensions that only results have; a caller of shape inference must pass them.
    pub(crate) fn unfixed(&self) -> Vec<usize> {
        let fixed: Vec<usize> =
            self.signature.args.iter().flat_map(|arg| arg.dims).copied().collect();
        self.free().into_iter().filter(|index| !fixed.contains(index)).collect()
    }

    /// Every combination of codes and of optional attributes, with sizes from `pool` that satisfy
    /// the requirements and differ from each other as far as these let them. The first is the
    /// plainest.
    pub(crate) fn cases(&self, leading: &[i64], pool: &[i64]) -> Vec<Case> {
        let mut cases = Vec::new();
        let all = arrangements(pool, self.free().len());
        for choice in self.codes() {
            let fits = |free: &Vec<i64>| Some((free.clone(), self.numbers(&choice, free)?));
            // Codes may exclude each other, whatever the sizes.
            let Some((free, attrs)) = all.iter().find_map(fits) else { continue };
            cases.push(self.case(leading, &free, attrs.clone()));
            for attr in self.signature.attrs.iter().filter(|attr| attr.optional) {
                let codes = attr.codes.map_or(Vec::new(), |codes| codes());
                let coded = codes.iter().map(|code| Attr::U8(code.code));
                let plain = (0..64).filter_map(|value| number(attr.kind, value));
                let plain = plain.filter(|_| codes.is_empty());
                let values = coded.chain(plain);
                let with = |value| {
                    let mut with = attrs.clone();
                    with.push((attr.name.to_owned(), value));
                    with
                };
                let attrs = values.map(with).find(|attrs| self.complete(&free, attrs).1.is_empty());
                cases.push(self.case(leading, &free, attrs.expect("a value that fits")));
            }
        }
        assert!(!cases.is_empty(), "{}: no sizes and numbers fit", self.label());
        cases
    }

    /// The plainest right call.
    pub(crate) fn plain(&self, leading: &[i64], pool: &[i64]) -> Case {
        self.cases(leading, pool).swap_remove(0)
    }

    /// All combinations of the codes and predicates of required attributes.
    pub(crate) fn codes(&self) -> Vec<Vec<(String, Attr)>> {
        let coded = |attr: &&xla_ffi::Attr| attr.codes.is_some() || attr.kind == "bool";
        self.combinations(&[], coded, |attr| match attr.codes {
            Some(codes) => codes().iter().map(|code| Attr::U8(code.code)).collect(),
            None => vec![Attr::Bool(false), Attr::Bool(true)],
        })
    }

    /// A choice of codes with the first numbers for all other required attributes that fit the
    /// sizes.
    pub(crate) fn numbers(
        &self,
        choice: &[(String, Attr)],
        free: &[i64],
    ) -> Option<Vec<(String, Attr)>> {
        let other = |attr: &&xla_ffi::Attr| attr.codes.is_none() && attr.kind != "bool";
        let all = self.combinations(choice, other, |attr| {
            (0..8).map(|value| number(attr.kind, value).expect("a kind known here")).collect()
        });
        all.into_iter().find(|attrs| self.complete(free, attrs).1.is_empty())
    }

    /// `start` with every combination of values of the required attributes that are `chosen`.
    fn combinations(
        &self,
        start: &[(String, Attr)],
        chosen: impl Fn(&&xla_ffi::Attr) -> bool,
        values: impl Fn(&xla_ffi::Attr) -> Vec<Attr>,
    ) -> Vec<Vec<(String, Attr)>> {
        let mut choices = vec![start.to_vec()];
        for attr in self.signature.attrs.iter().filter(|attr| !attr.optional).filter(&chosen) {
            let with = |choice: &Vec<(String, Attr)>| {
                let extended = |value: Attr| {
                    let mut choice = choice.clone();
                    choice.push((attr.name.to_owned(), value));
                    choice
                };
                values(attr).into_iter().map(extended).collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(with).collect();
        }
        choices
    }

    /// Arguments of these shapes on which the operation succeeds.
    pub(crate) fn arguments(
        &self,
        shapes: &[Shape],
        dims: &[i64],
        attrs: &[(String, Attr)],
    ) -> Vec<Operand> {
        let args = self.signature.args.iter().zip(shapes);
        let dim = |name: &str| {
            let index = self.signature.dims.iter().position(|dim| dim.name == name);
            dims[index.expect("a dimension of this name")]
        };
        args.map(|(arg, shape)| match (self.op.family, arg.name) {
            // Without columns, rows have no entries; else all columns have some.
            ("sparse", "indptr") => {
                let most = if dim("k") == 0 { 0 } else { dim("nnz") };
                numbers(shape, |i| (i64::try_from(i).unwrap() % dim("p").max(1)).min(most))
            }
            ("sparse", "indices") => {
                numbers(shape, |i| i64::try_from(i).unwrap() % dim("k").max(1))
            }
            ("lu" | "ldl", "permutation") => {
                let n = dim("n");
                numbers(shape, |i| n - 1 - i64::try_from(i).unwrap() % n.max(1))
            }
            ("banded", "ab" | "factor") => {
                let last = usize::try_from(dim("bands")).unwrap().saturating_sub(1);
                let main = attrs.iter().find_map(|(_, value)| match value {
                    Attr::U8(b'L') => Some(0),
                    Attr::I32(below) => Some(last.saturating_sub(usize::try_from(*below).ok()?)),
                    _ => None,
                });
                sane(shape, arg.dims.len(), Form::Diagonals(main.unwrap_or(last)))
            }
            ("functions", "r" | "t") => sane(shape, arg.dims.len(), Form::Triangular),
            ("functions", "a") if self.op.name == "triangular_sqrtm" => {
                sane(shape, arg.dims.len(), Form::Triangular)
            }
            ("functions", "s") => sane(shape, arg.dims.len(), Form::Smaller),
            ("generalised_schur", "s" | "t") => sane(shape, arg.dims.len(), Form::Triangular),
            (
                "block_tridiagonal",
                "off_diagonal" | "l_off_diagonal" | "lower" | "upper" | "upper_factor",
            ) => sane(shape, arg.dims.len(), Form::Beside),
            ("block_tridiagonal", "pivots") => {
                let n = dim("n");
                numbers(shape, |i| i64::try_from(i).unwrap() % n.max(1))
            }
            _ => sane(shape, arg.dims.len(), Form::Plain),
        })
        .collect()
    }

    /// A right call: the results' shapes are those that the signature infers.
    pub(crate) fn case(&self, leading: &[i64], free: &[i64], attrs: Vec<(String, Attr)>) -> Case {
        let (dims, _) = self.complete(free, &attrs);
        let shape = |operand: &xla_ffi::Operand| Shape {
            dtype: operand.dtype,
            dims: (leading.iter().copied().filter(|_| !operand.alone))
                .chain(operand.dims.iter().map(|dim| dims[*dim]))
                .collect(),
        };
        let args: Vec<Shape> = self.signature.args.iter().map(shape).collect();
        let rets = self.with_values(&attrs, |_, given| {
            let name = |index: &usize| (self.signature.dims[*index].name.to_owned(), dims[*index]);
            let given = Given {
                args: args.iter().cloned().map(Some).collect(),
                rets: None,
                attrs: given.attrs.clone(),
                dims: self.unfixed().iter().map(name).collect(),
            };
            self.signature.check(&given).expect("a right call")
        });
        assert_eq!(rets, self.signature.rets.iter().map(shape).collect::<Vec<_>>());
        let args = self.arguments(&args, &dims, &attrs);
        let rets = rets.iter().map(|shape| Operand::unwritten(shape.dtype, &shape.dims)).collect();
        let plan = Plan { args, rets, attrs, shared: Vec::new() };
        Case { variant: *self, dims, leading: leading.to_vec(), plan }
    }
}

impl Case {
    /// The (argument, result) pairs that may share memory.
    pub(crate) fn aliases(&self) -> Vec<(usize, usize)> {
        let rets = self.variant.signature.rets.iter().enumerate();
        rets.filter_map(|(ret, operand)| Some((operand.alias?, ret))).collect()
    }

    /// Makes the call and returns the results' bytes.
    pub(crate) fn results(&mut self, host: &Host) -> Vec<Vec<u8>> {
        let outcome = self.plan.execute(host, self.variant.target.handler);
        assert_eq!(outcome, Ok(()), "{} {:?}", self.variant.label(), self.plan.attrs);
        self.plan.rets.iter().map(bytes).collect()
    }
}

/// An attribute of this kind from a small number.
pub(crate) fn number(kind: &str, value: i16) -> Option<Attr> {
    Some(match kind {
        "bool" => Attr::Bool(value != 0),
        "u8" => Attr::U8(u8::try_from(value).ok()?),
        "i32" => Attr::I32(value.into()),
        "i64" => Attr::I64(value.into()),
        "f32" => Attr::F32(value.into()),
        "f64" => Attr::F64(value.into()),
        "string" => Attr::String(value.to_string()),
        _ => return None,
    })
}

/// All ways to choose `count` values; those that differ most from each other first.
pub(crate) fn arrangements(pool: &[i64], count: usize) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let extend = |start: &Vec<i64>| {
            pool.iter().map(|value| [&start[..], &[*value]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    let different = |values: &Vec<i64>| values.iter().collect::<HashSet<_>>().len();
    all.sort_by_key(|values| std::cmp::Reverse(different(values)));
    all
}

/// What the numbers of an argument stand for.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// A vector, a matrix, or several on which a matrix's diagonal stands.
    Plain,
    /// Diagonals of a matrix in its rows; the main one is in this row.
    Diagonals(usize),
    /// What stands beside the blocks on a diagonal.
    Beside,
    /// An upper triangular matrix.
    Triangular,
    /// One whose eigenvalues are smaller than those of all other matrices.
    Smaller,
}

/// An argument on which every operation succeeds. Matrices are Hermitian, diagonally dominant and
/// differ from problem to problem; vectors grow; integers are indices that a swap may name.
pub(crate) fn sane(shape: &Shape, own: usize, form: Form) -> Operand {
    let (_, own) = shape.dims.split_at(shape.dims.len() - own);
    let sizes: Vec<usize> = own.iter().map(|dim| usize::try_from(*dim).unwrap()).collect();
    let problem = sizes.iter().product::<usize>().max(1);
    // In 64ths: exact in every float type.
    let entry = |index: usize| -> (i16, i16) {
        let (batch, index) = (short(index / problem % 7), index % problem);
        match (form, &sizes[..]) {
            (Form::Diagonals(main), &[_, columns]) if columns > 0 => {
                let (line, j) = (index / columns, short(index % columns % 1000));
                if line == main { (2048 + 16 * j + batch, 0) } else { (48 / (2 + j), j % 2) }
            }
            (Form::Beside, _) => (16 + batch, short(index % 5)),
            (_, &[.., _, columns]) if columns > 0 => {
                let rows = sizes[sizes.len() - 2];
                let (i, j) = (short(index / columns % rows), short(index % columns));
                if matches!(form, Form::Triangular | Form::Smaller) && i > j {
                    (0, 0)
                } else if i == j {
                    let first = if matches!(form, Form::Smaller) { 512 } else { 2048 };
                    (first + 16 * i + batch, 0)
                } else {
                    (48 / (1 + i + j), i - j)
                }
            }
            _ => (16 + short(index % 1000) + batch, short(index % 5)),
        }
    };
    let dims = &shape.dims;
    let real = |index| f32::from(entry(index).0) / 64.0;
    let imaginary = |index| f32::from(entry(index).1) / 64.0;
    match shape.dtype {
        DataType::F32 => Operand::new(dims, real),
        DataType::F64 => Operand::new(dims, |i| f64::from(real(i))),
        DataType::C64 => Operand::new(dims, |i| Complex::new(real(i), imaginary(i))),
        DataType::C128 => {
            Operand::new(dims, |i| Complex::new(f64::from(real(i)), f64::from(imaginary(i))))
        }
        DataType::I32 => {
            // As pivots, the first swaps nothing; as jpvt, the first column is free.
            let last = i32::try_from(problem - 1).unwrap();
            let entry = |j: usize| if j == 0 { 0 } else { i32::from(short(j) + 1).min(last) };
            Operand::new(dims, |i| entry(i % problem))
        }
        DataType::I64 => Operand::new(dims, |i| i64::from(entry(i).0)),
        other => panic!("say here what a sane argument of {other} is"),
    }
}

/// Integers of the shape's type.
fn numbers(shape: &Shape, number: impl Fn(usize) -> i64) -> Operand {
    match shape.dtype {
        DataType::I32 => Operand::new(&shape.dims, |i| i32::try_from(number(i)).unwrap()),
        DataType::I64 => Operand::new(&shape.dims, number),
        other => panic!("an index of {other}"),
    }
}

fn short(index: usize) -> i16 {
    i16::try_from(index).unwrap()
}

/// Bytes of one element.
pub(crate) fn width(dtype: DataType) -> usize {
    match dtype {
        DataType::I32 | DataType::F32 => 4,
        DataType::F64 | DataType::C64 | DataType::I64 => 8,
        DataType::C128 => 16,
        other => panic!("say here how many bytes {other} has"),
    }
}

/// The bytes of a buffer.
pub(crate) fn bytes(operand: &Operand) -> Vec<u8> {
    let Memory::Owned(memory) = &operand.memory else { return Vec::new() };
    let len = crate::plan::elements(&operand.dims) * width(operand.dtype);
    memory.iter().flat_map(|word| word.to_ne_bytes()).take(len).collect()
}
