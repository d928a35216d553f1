//! Up to which order of its matrices an op on CUDA is done by a kernel of its own, or by the host for `geev_packed`:
//! `choices.json`, and rows of the file that LAPAX_GPU_CHOICES names after its own. What a kernel has no room for is no
//! choice, and stands beside the kernel. `python -m lapax tune-gpu` measures, and writes such a file.
//!
//! A row is for the GPUs of one compute capability, or for "any": an op's is the last one of the GPU's own, else the
//! last for any.

use std::sync::OnceLock;
use std::{env, fs};

use serde_json::{Map, Value as Json, json};

use crate::Scalar;
use crate::error::{Error, Kind};
use crate::gpu::Gpu;

const VARIABLE: &str = "LAPAX_GPU_CHOICES";
const OWN: &str = include_str!("../choices.json");
/// In the order of [`Scalar::INDEX`].
const DTYPES: [&str; 4] = ["f32", "f64", "c64", "c128"];
const ANY: &str = "any";

/// Whether a call has enough matrices for a block each to keep a GPU busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One, or as few as an op says.
    Alone,
    /// More.
    Batch,
}

impl Count {
    /// Of so many matrices.
    pub fn of(batch: usize) -> Self {
        if batch < 2 { Self::Alone } else { Self::Batch }
    }
}

/// By dtype, the largest order; None where the kernel's room alone is the limit.
type Orders = [Option<usize>; 4];

#[derive(Clone, Debug)]
struct Row {
    ops: Vec<String>,
    gpu: String,
    batches: Orders,
    alone: Orders,
    /// The row as it was read.
    text: Json,
}

/// The largest order of which the op's own kernel is taken on this GPU.
///
/// # Errors
/// INVALID_ARGUMENT where LAPAX_GPU_CHOICES names a file that is none of choices.
pub fn largest<T: Scalar>(gpu: &Gpu<'_>, op: &str, count: Count) -> Result<usize, Error> {
    let (major, minor) = gpu.limits()?.capability;
    let row = chosen(rows()?, op, &format!("{major}.{minor}"))
        .ok_or_else(|| Error::internal(format!("no choice is known for {op}")))?;
    let orders = match count {
        Count::Alone => row.alone,
        Count::Batch => row.batches,
    };
    Ok(orders[T::INDEX].unwrap_or(usize::MAX))
}

/// The rows of all ops by their names, for GPUs of this compute capability or for any: JSON with the orders written out
/// by dtype, null where the kernel's room is the limit.
///
/// # Errors
/// As [`largest`].
pub fn for_gpu(capability: Option<&str>) -> Result<Json, Error> {
    let rows = rows()?;
    let written = |orders: Orders| -> Json {
        DTYPES
            .iter()
            .zip(orders)
            .map(|(dtype, order)| ((*dtype).to_owned(), json!(order)))
            .collect()
    };
    let mut found = Map::new();
    for op in rows.iter().flat_map(|row| &row.ops) {
        if let Some(row) = chosen(rows, op, capability.unwrap_or(ANY)) {
            let mut text = row.text.clone();
            text["batches"] = written(row.batches);
            text["alone"] = written(row.alone);
            found.insert(op.clone(), text);
        }
    }
    Ok(Json::Object(found))
}

fn chosen<'a>(rows: &'a [Row], op: &str, capability: &str) -> Option<&'a Row> {
    let last_for = |gpu: &str| {
        rows.iter().rev().find(|row| row.gpu == gpu && row.ops.iter().any(|name| name == op))
    };
    last_for(capability).or_else(|| last_for(ANY))
}

/// What is built in and what the user has, read once.
fn rows() -> Result<&'static [Row], Error> {
    static ROWS: OnceLock<Result<Vec<Row>, Error>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let own = parsed(OWN, &[]).map_err(Error::internal)?;
        let Some(file) = env::var_os(VARIABLE).filter(|file| !file.is_empty()) else {
            return Ok(own);
        };
        let refused = |text: String| {
            let text = format!("{VARIABLE}: {}: {text}", file.display());
            Error::new(Kind::InvalidArgument, text)
        };
        let text = fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
        let known: Vec<String> = own.iter().flat_map(|row| row.ops.clone()).collect();
        let users = parsed(&text, &known).map_err(refused)?;
        Ok([own, users].concat())
    });
    rows.as_deref().map_err(Clone::clone)
}

/// The rows of a table, whose ops are among those `known`, if any are.
fn parsed(text: &str, known: &[String]) -> Result<Vec<Row>, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let rows = json.as_array().ok_or("expected a JSON array of rows")?;
    let numbered = rows.iter().enumerate();
    numbered
        .map(|(at, row)| parsed_row(row, known).map_err(|text| format!("row {}: {text}", at + 1)))
        .collect()
}

fn parsed_row(row: &Json, known: &[String]) -> Result<Row, String> {
    const KEYS: [&str; 6] = ["ops", "gpu", "batches", "alone", "measured", "why"];
    let wrong =
        |key: &str, expected: &str| format!("`{key}`: expected {expected}, got {}", row[key]);
    let fields = row.as_object().ok_or_else(|| format!("expected an object, got {row}"))?;
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("`{key}` is none of {}", KEYS.join(", ")));
    }
    let names = row["ops"].as_array().filter(|names| !names.is_empty());
    let ops =
        names.and_then(|names| names.iter().map(|it| it.as_str().map(str::to_owned)).collect());
    let ops: Vec<String> = ops.ok_or_else(|| wrong("ops", "an array of names"))?;
    if let Some(op) = ops.iter().find(|op| !known.is_empty() && !known.contains(op)) {
        return Err(format!("no choice is known for {op}, but for {}", known.join(", ")));
    }
    let gpu = row["gpu"].as_str().filter(|gpu| *gpu == ANY || is_capability(gpu));
    let gpu = gpu.ok_or_else(|| wrong("gpu", "\"any\" or a compute capability such as \"9.0\""))?;
    let orders = |key| {
        let expected = "an order, one for each of f32, f64, c64 and c128, or null";
        if fields.contains_key(key) { parsed_orders(&row[key]) } else { None }
            .ok_or_else(|| wrong(key, expected))
    };
    let (batches, alone) = (orders("batches")?, orders("alone")?);
    let measured = &row["measured"];
    let card = ["card", "date"].iter().all(|key| measured[key].is_string());
    if !measured.is_null() && !card {
        return Err(wrong("measured", "{\"card\", \"date\"}, or null"));
    }
    Ok(Row { ops, gpu: gpu.to_owned(), batches, alone, text: row.clone() })
}

fn parsed_orders(json: &Json) -> Option<Orders> {
    let order = |json: &Json| match json {
        Json::Null => Some(None),
        _ => json.as_u64().and_then(|order| usize::try_from(order).ok()).map(Some),
    };
    let Some(by_dtype) = json.as_object() else { return order(json).map(|order| [order; 4]) };
    let mut orders = Orders::default();
    for (dtype, found) in DTYPES.iter().zip(&mut orders) {
        *found = order(by_dtype.get(*dtype)?)?;
    }
    (by_dtype.len() == DTYPES.len()).then_some(orders)
}

fn is_capability(text: &str) -> bool {
    let parts = text.split_once('.');
    parts.is_some_and(|(major, minor)| [major, minor].iter().all(|it| it.parse::<u8>().is_ok()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed")]
mod tests {
    use super::{OWN, chosen, parsed};

    #[test]
    fn the_built_in_rows_are_for_any_gpu_and_name_no_op_twice() {
        let rows = parsed(OWN, &[]).unwrap();
        assert!(rows.iter().all(|row| row.gpu == "any"));
        let mut ops: Vec<&String> = rows.iter().flat_map(|row| &row.ops).collect();
        let all = ops.len();
        ops.sort();
        ops.dedup();
        assert_eq!(ops.len(), all);
    }

    #[test]
    fn the_last_row_of_the_gpus_own_goes_before_those_for_any() {
        let text = r#"[
            {"ops": ["lu"], "gpu": "any", "batches": 1, "alone": null},
            {"ops": ["lu"], "gpu": "9.0", "batches": 2, "alone": 2},
            {"ops": ["lu", "qr"], "gpu": "9.0", "alone": 3,
             "batches": {"f32": 3, "f64": 4, "c64": 5, "c128": null}},
            {"ops": ["lu"], "gpu": "any", "batches": 6, "alone": 6}
        ]"#;
        let rows = parsed(text, &[]).unwrap();
        let batches = |op, gpu| chosen(&rows, op, gpu).map(|row| row.batches);
        assert_eq!(batches("lu", "9.0"), Some([Some(3), Some(4), Some(5), None]));
        assert_eq!(batches("lu", "8.6"), Some([Some(6); 4]));
        assert_eq!(batches("lu", "any"), Some([Some(6); 4]));
        assert_eq!(batches("qr", "8.6"), None);
    }

    #[test]
    fn what_is_no_table_is_refused_with_the_row_and_the_key() {
        let row = |keys: &str| format!("[{{\"ops\": [\"lu\"], \"gpu\": \"9.0\", {keys}}}]");
        let cases = [
            ("{}".to_owned(), "expected a JSON array of rows"),
            ("[3]".to_owned(), "row 1: expected an object, got 3"),
            (r#"[{"ops": []}]"#.to_owned(), "row 1: `ops`: expected an array of names, got []"),
            (r#"[{"ops": ["lo"]}]"#.to_owned(), "row 1: no choice is known for lo, but for lu"),
            (
                r#"[{"ops": ["lu"], "gpu": "H200"}]"#.to_owned(),
                "row 1: `gpu`: expected \"any\" or a compute capability such as \"9.0\", got \"H200\"",
            ),
            (
                row(r#""batches": 1"#),
                "row 1: `alone`: expected an order, one for each of f32, f64, c64 and c128, or null, got null",
            ),
            (
                row(r#""batches": {"f32": 1}"#),
                "row 1: `batches`: expected an order, one for each of f32, f64, c64 and c128, or null, got {\"f32\":1}",
            ),
            (
                row(r#""batch": 1"#),
                "row 1: `batch` is none of ops, gpu, batches, alone, measured, why",
            ),
            (
                row(r#""batches": 1, "alone": 1, "measured": "today""#),
                "row 1: `measured`: expected {\"card\", \"date\"}, or null, got \"today\"",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parsed(&text, &["lu".to_owned()]).err().as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert!(parsed("[", &[]).err().is_some_and(|text| text.contains("line 1")));
    }
}
