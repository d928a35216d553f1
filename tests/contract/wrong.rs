//! Every way of being wrong, made from the signature, with the exact message.
//!
//! `messages.golden` has the messages for one target of each operation; `{target}` and `{T}` stand
//! for what differs between an operation's targets.

use std::collections::BTreeMap;

use xla_ffi::fake::{Attr, Failure, Host};
use xla_ffi::{DataType, Signature};

use crate::case::{Case, Form, SMALL, Variant, arrangements, number, sane, variants};
use crate::inference::agrees;
use crate::plan::{Operand, Plan};

const INVALID_ARGUMENT: u32 = 3;

/// What is wrong, the call, and what its message must name.
struct Wrong {
    label: String,
    plan: Plan,
    /// The dimensions that inference is told.
    dims: Vec<i64>,
    names: Vec<String>,
}

/// The message of a call that must be refused.
fn refusal(variant: Variant, label: &str, plan: &mut Plan) -> String {
    let at = format!("{}, {label}", variant.label());
    let outcome = plan.execute(&Host::new(), variant.target.handler);
    let Failure { code, message } = outcome.expect_err(&at);
    assert_eq!(code, INVALID_ARGUMENT, "{at}: {message}");
    assert!(message.starts_with(&format!("{}: ", variant.target.name)), "{at}: {message}");
    message
}

/// What the titles of CUDA's operations end with.
const ON_CUDA: &str = " on CUDA |";

#[test]
fn every_way_of_being_wrong_has_its_message() {
    let (mut text, mut written) = (String::new(), Vec::new());
    let mut messages: BTreeMap<String, Vec<(Variant, String)>> = BTreeMap::new();
    let (mut count, mut asked) = (0, 0);
    for variant in variants() {
        let case = variant.plain(&[2], SMALL);
        let first = !written.contains(&variant.title());
        for Wrong { label, mut plan, dims, names } in ways(&case) {
            let message = refusal(variant, &label, &mut plan);
            let at = format!("{}, {label}: {message}", variant.label());
            assert!(message.contains("expected ") && message.contains(", got "), "{at}");
            assert!(names.iter().all(|name| message.contains(name)), "{at}: {names:?}");
            count += 1;
            asked += u32::from(agrees(variant, &dims, &plan, Some(&message)));
            let key = format!("{} | {label}", variant.title());
            if first {
                text += &format!("{key} => {}\n", template(variant, &message));
            }
            messages.entry(key).or_default().push((variant, message));
        }
        written.push(variant.title());
    }
    assert!(count > 300 && asked > count / 2, "{asked} of {count} put to inference");
    let golden = crate::golden("contract/messages.golden", &text);
    let golden: BTreeMap<&str, &str> =
        golden.lines().filter_map(|line| line.split_once(" => ")).collect();
    for (key, list) in &messages {
        let expected = golden.get(key.as_str());
        let expected = expected.unwrap_or_else(|| panic!("messages.golden has no {key}"));
        for (variant, message) in list {
            let expected = expected.replace("{target}", variant.target.name);
            let expected = each_operand(*variant, &expected, |phrase, dtype| {
                phrase.replace("{T} [", &format!("{dtype} ["))
            });
            assert_eq!(*message, expected, "{key}, {}", variant.label());
        }
    }
    let kernels = messages.keys().any(|key| key.contains(ON_CUDA));
    if !kernels {
        println!(
            "skipped: CUDA's messages, since this build has no kernels: LAPAX_NVCC names an nvcc"
        );
    }
    let known = |key: &&&str| kernels || !key.contains(ON_CUDA);
    let stale: Vec<_> =
        golden.keys().filter(known).filter(|key| !messages.contains_key(**key)).collect();
    assert!(stale.is_empty(), "messages.golden has cases that do not exist: {stale:?}");
}

/// A message with what differs between an operation's targets left open: `{T}` is the element type
/// of the operand that a phrase is about.
fn template(variant: Variant, message: &str) -> String {
    let open = message.replace(variant.target.name, "{target}");
    each_operand(variant, &open, |phrase, dtype| phrase.replace(&format!("{dtype} ["), "{T} ["))
}

/// The message with each phrase about an operand changed by what knows that operand's type.
fn each_operand(
    variant: Variant,
    message: &str,
    change: impl Fn(&str, DataType) -> String,
) -> String {
    let Signature { args, rets, .. } = variant.signature;
    let operands =
        || args.iter().map(|it| ("argument", it)).chain(rets.iter().map(|it| ("result", it)));
    let changed = message.split("; ").map(|phrase| {
        let about = operands().find(|(what, operand)| {
            phrase.contains(&format!("`{}`: ", operand.name))
                && phrase.contains(&format!("{what} "))
        });
        about.map_or(phrase.to_owned(), |(_, operand)| change(phrase, operand.dtype))
    });
    changed.collect::<Vec<_>>().join("; ")
}

fn ways(case: &Case) -> Vec<Wrong> {
    let mut ways = counts(case);
    ways.extend(operands(case));
    ways.extend(attributes(case));
    ways.extend(requirements(case));
    ways.push(several(case));
    ways
}

fn wrong(case: &Case, label: String, names: &[&str], change: impl FnOnce(&mut Plan)) -> Wrong {
    let mut plan = case.plan.clone();
    change(&mut plan);
    let dims = case.dims.clone();
    Wrong { label, plan, dims, names: names.iter().map(|name| format!("`{name}`")).collect() }
}

fn counts(case: &Case) -> Vec<Wrong> {
    let extra = || Operand::unwritten(DataType::F32, &[2]);
    // Without its first argument, a target of several element types cannot say more.
    vec![
        wrong(case, "an argument too few".to_owned(), &[], |plan| drop(plan.args.pop())),
        wrong(case, "an argument too many".to_owned(), &[], |plan| plan.args.push(extra())),
        wrong(case, "a result too few".to_owned(), &[], |plan| drop(plan.rets.pop())),
        wrong(case, "a result too many".to_owned(), &[], |plan| plan.rets.push(extra())),
    ]
}

fn operands(case: &Case) -> Vec<Wrong> {
    let signature = case.variant.signature;
    let mut ways = Vec::new();
    for (result, list) in [(false, signature.args), (true, signature.rets)] {
        for (index, operand) in list.iter().enumerate() {
            let kind = if result { "result" } else { "argument" };
            let right = if result { &case.plan.rets[index] } else { &case.plan.args[index] };
            let mut add = |what: String, name: &str, dtype: DataType, dims: Vec<i64>| {
                let label = format!("{kind} {}: {what}", operand.name);
                let names: &[&str] = if name.is_empty() { &[] } else { &[name] };
                ways.push(wrong(case, label, names, |plan| {
                    let list = if result { &mut plan.rets } else { &mut plan.args };
                    list[index] = Operand::unwritten(dtype, &dims);
                }));
            };
            let (dtype, dims) = (right.dtype, &right.dims);
            add("another element type".to_owned(), operand.name, DataType::F16, dims.clone());
            if operand.alone {
                add("a dimension".to_owned(), operand.name, dtype, vec![1]);
                continue;
            }
            let rank = dims.len() - case.leading.len();
            if rank > 0 {
                let own = dims[case.leading.len() + 1..].to_vec();
                add("too few dimensions".to_owned(), operand.name, dtype, own);
            }
            // The first operand fixes the leading dimensions: then all others are named.
            let name = if result || index > 0 { operand.name } else { "" };
            add("no leading dimension".to_owned(), name, dtype, dims[1..].to_vec());
            add("another leading dimension".to_owned(), name, dtype, changed(dims, 0, 1));
            add("a leading dimension more".to_owned(), name, dtype, [&[1], &dims[..]].concat());
            for (position, dim) in operand.dims.iter().enumerate() {
                let dims = changed(dims, case.leading.len() + position, 1);
                if !unconstrained(case, *dim) {
                    let dim = signature.dims[*dim].name;
                    add(format!("own dimension {position}, {dim}"), "", dtype, dims);
                }
            }
        }
    }
    ways
}

fn changed(dims: &[i64], index: usize, by: i64) -> Vec<i64> {
    let mut dims = dims.to_vec();
    dims[index] += by;
    dims
}

/// Whether one more in this dimension of its only operand is as right as before.
fn unconstrained(case: &Case, dim: usize) -> bool {
    let Variant { signature, .. } = case.variant;
    let uses = signature.args.iter().chain(signature.rets).flat_map(|operand| operand.dims);
    let free = case.variant.free();
    let Some(place) = free.iter().position(|index| *index == dim) else { return false };
    let mut values: Vec<i64> = free.iter().map(|index| case.dims[*index]).collect();
    values[place] += 1;
    let (dims, failing) = case.variant.complete(&values, &case.plan.attrs);
    let others = |dims: &[i64]| -> Vec<i64> {
        dims.iter().enumerate().filter(|(index, _)| *index != dim).map(|(_, it)| *it).collect()
    };
    uses.filter(|index| **index == dim).count() == 1
        && failing.is_empty()
        && others(&dims) == others(&case.dims)
}

/// Values of all kinds, of which an attribute accepts one at most.
fn values() -> [(&'static str, Attr); 9] {
    [
        ("bool", Attr::Bool(true)),
        ("u8", Attr::U8(7)),
        ("i32", Attr::I32(-7)),
        ("i64", Attr::I64(1 << 40)),
        ("f32", Attr::F32(1.5)),
        ("f64", Attr::F64(2.5)),
        ("string", Attr::String("L".to_owned())),
        ("array of i64", Attr::I64s(vec![1, 2])),
        ("array of f64", Attr::F64s(vec![])),
    ]
}

fn attributes(case: &Case) -> Vec<Wrong> {
    let mut ways = Vec::new();
    for attr in case.variant.signature.attrs {
        let name = attr.name;
        if !attr.optional {
            let label = format!("attribute {name}: missing");
            ways.push(wrong(case, label, &[name], |plan| plan.unset(name)));
        }
        for (kind, value) in values() {
            if kind != attr.kind {
                let label = format!("attribute {name}: {kind}");
                ways.push(wrong(case, label, &[name], |plan| plan.set(name, value)));
            }
        }
        if let Some(codes) = attr.codes {
            let label = format!("attribute {name}: a code of something else");
            ways.push(wrong(case, label, &[name], |plan| plan.set(name, Attr::U8(b'X'))));
            let lower = codes()[0].code.to_ascii_lowercase();
            // Numbers are codes, too, and have no case.
            if lower != codes()[0].code {
                let label = format!("attribute {name}: a lower-case code");
                ways.push(wrong(case, label, &[name], |plan| plan.set(name, Attr::U8(lower))));
            }
        }
    }
    for name in ["aaa", "zzz"] {
        let extra = |plan: &mut Plan| plan.set(name, Attr::Bool(true));
        ways.push(wrong(case, format!("attribute {name}: unknown"), &[name], extra));
    }
    ways
}

/// For each requirement a call that breaks it and nothing else.
fn requirements(case: &Case) -> Vec<Wrong> {
    let Case { variant, leading, .. } = case;
    let mut ways = Vec::new();
    for rule in variant.signature.requirements {
        let mut choices = vec![case.plan.attrs.clone()];
        for attr in variant.signature.attrs.iter().filter(|attr| attr.codes.is_none()) {
            for value in (0..64).filter_map(|value| number(attr.kind, value)) {
                let mut choice = case.plan.attrs.clone();
                choice.retain(|(name, _)| name != attr.name);
                choice.push((attr.name.to_owned(), value));
                choices.push(choice);
            }
        }
        // Some rules only an empty operand breaks.
        let pools = [SMALL, &[0, 3]].map(|pool| arrangements(pool, variant.free().len()));
        let calls = pools.iter().flat_map(|sizes| {
            choices.iter().flat_map(move |attrs| sizes.iter().map(move |free| (attrs, free)))
        });
        let breaks = |(attrs, free): &(&Vec<(String, Attr)>, &Vec<i64>)| {
            variant.complete(free, attrs).1 == [rule.reason]
        };
        let (attrs, free) = calls.into_iter().find(breaks).expect("a call that breaks the rule");
        let (dims, _) = variant.complete(free, attrs);
        let shape = |operand: &xla_ffi::Operand| xla_ffi::Shape {
            dtype: operand.dtype,
            // A dimension may be negative by its formula only.
            dims: (leading.iter().copied().filter(|_| !operand.alone))
                .chain(operand.dims.iter().map(|it| dims[*it].max(0)))
                .collect(),
        };
        let list = |operands: &[xla_ffi::Operand]| {
            let filled =
                |operand: &xla_ffi::Operand| sane(&shape(operand), operand.dims.len(), Form::Plain);
            operands.iter().map(filled).collect::<Vec<_>>()
        };
        let (args, rets) = (list(variant.signature.args), list(variant.signature.rets));
        let plan = Plan { args, rets, attrs: attrs.clone(), shared: Vec::new() };
        let label = format!("requirement: {}", rule.reason);
        ways.push(Wrong { label, plan, dims, names: vec![rule.reason.to_owned()] });
    }
    ways
}

/// Mismatches of every sort in one call give one message.
fn several(case: &Case) -> Wrong {
    let required = case.variant.signature.attrs.iter().find(|attr| !attr.optional);
    let names: Vec<&str> = required.iter().map(|attr| attr.name).chain(["zzz"]).collect();
    wrong(case, "several at once".to_owned(), &names, |plan| {
        required.iter().for_each(|attr| plan.unset(attr.name));
        plan.set("zzz", Attr::I32(1));
        if plan.args.len() > 1 {
            let last = plan.args.last_mut().unwrap();
            *last = Operand::unwritten(DataType::BF16, &last.dims);
        }
        let first = &mut plan.rets[0];
        *first = Operand::unwritten(first.dtype, &changed(&first.dims, 0, 1));
        plan.rets.push(Operand::unwritten(DataType::I32, &[]));
    })
}

/// Every code that is not accepted, by every target.
#[test]
fn every_other_code_is_refused() {
    for variant in variants() {
        let case = variant.plain(&[], SMALL);
        for attr in variant.signature.attrs {
            let Some(codes) = attr.codes else { continue };
            for code in 0..=u8::MAX {
                if codes().iter().any(|known| known.code == code) {
                    continue;
                }
                let mut plan = case.plan.clone();
                plan.set(attr.name, Attr::U8(code));
                let message = refusal(variant, attr.name, &mut plan);
                let shown = if code.is_ascii_graphic() {
                    format!("u8 {code} ('{}')", char::from(code))
                } else {
                    format!("u8 {code}")
                };
                let (target, name) = (variant.target.name, attr.name);
                let (known, expected) = (codes().len(), attr.expected());
                let message_expected =
                    format!("{target}: attribute `{name}`: expected {expected}, got {shown}");
                assert_eq!(message, message_expected);
                assert_eq!(expected.matches(" or ").count() + 1, known);
                assert!(agrees(variant, &case.dims, &plan, Some(&message)));
            }
        }
    }
}

/// Right calls: inference gives the shapes of their results.
#[test]
fn inference_gives_the_results_of_right_calls() {
    for variant in variants() {
        for leading in [&[][..], &[2], &[2, 3], &[0], &[1 << 40, 0]] {
            for case in variant.cases(leading, SMALL) {
                assert!(agrees(variant, &case.dims, &case.plan, None), "{}", variant.label());
            }
        }
    }
}
