//! Runs a StableHLO program with linear algebra in Rust, without Python: loads a PJRT plugin, registers
//! lapax's targets in it, compiles the program, runs it, and compares with stored answers.
//!
//! `cargo run --example host -- plugin.so program.mlirbc program.data`
//!
//! tests/hosts/programs.py describes program.data; `pjrt` holds what this needs of PJRT's C API.

mod pjrt;

use std::error::Error;
use std::process::ExitCode;

use pjrt::{Buffer, Plugin};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [plugin, program, data] = words.as_slice() else {
        eprintln!("usage: host plugin.so program.mlirbc program.data");
        return ExitCode::FAILURE;
    };
    match run(plugin, program, data) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all answers are right.
fn run(plugin: &str, program: &str, data: &str) -> Result<bool, Box<dyn Error>> {
    let plugin = Plugin::load(plugin)?;

    // The one thing that lapax needs.
    // SAFETY: `Plugin` never unloads what it loaded.
    let registry = unsafe { xla_ffi::Registry::of_plugin(plugin.api()) }?;
    lapax::Registration::all().register(registry)?;

    let client = plugin.client()?;
    let executable = client.compile(&std::fs::read(program)?)?;
    let (args, answers) = read(&std::fs::read(data)?).ok_or("the data ends too early")?;
    let args: Vec<Buffer<'_>> = args
        .iter()
        .map(|arg| client.buffer(arg.kind()?, &arg.dims, &arg.bytes))
        .collect::<Result<_, _>>()?;
    let outputs = executable.run(&args)?;
    if outputs.len() != answers.len() {
        return Err(format!("{} outputs, {} answers", outputs.len(), answers.len()).into());
    }
    let mut right = true;
    for (index, (output, answer)) in outputs.iter().zip(&answers).enumerate() {
        let off = answer.distance(&output.to_host()?)?;
        let good = off <= answer.tolerance;
        let mark = if good { "" } else { " WRONG" };
        println!("output {index}: off by {off:.1e}, limit {:.1e}{mark}", answer.tolerance);
        right &= good;
    }
    Ok(right)
}

/// An array as the data file has it.
struct Array {
    dtype: String,
    tolerance: f64,
    dims: Vec<i64>,
    bytes: Vec<u8>,
}

/// Arguments and answers.
fn read(data: &[u8]) -> Option<(Vec<Array>, Vec<Array>)> {
    let mut rest = data;
    let (args, answers) = (number(&mut rest)?, number(&mut rest)?);
    let args = (0..args).map(|_| Array::read(&mut rest)).collect::<Option<_>>()?;
    let answers = (0..answers).map(|_| Array::read(&mut rest)).collect::<Option<_>>()?;
    Some((args, answers))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

impl Array {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let dtype = String::from_utf8(take(rest, 8)?.to_vec()).ok()?.replace('\0', "");
        let tolerance = f64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
        let rank = number(rest)?;
        let dims: Vec<i64> = (0..rank).map(|_| number(rest)).collect::<Option<_>>()?;
        let count: i64 = dims.iter().product();
        let item = match dtype.as_str() {
            "f32" | "i32" => 4,
            "c128" => 16,
            _ => 8,
        };
        let bytes = take(rest, usize::try_from(count).ok()?.checked_mul(item)?)?.to_vec();
        Some(Array { dtype, tolerance, dims, bytes })
    }

    fn kind(&self) -> Result<pjrt::BufferType, String> {
        Ok(match self.dtype.as_str() {
            "f32" => pjrt::BufferType::F32,
            "f64" => pjrt::BufferType::F64,
            "c64" => pjrt::BufferType::C64,
            "c128" => pjrt::BufferType::C128,
            "i32" => pjrt::BufferType::S32,
            other => return Err(format!("unknown element type {other}")),
        })
    }

    /// The real numbers; a complex one is two.
    fn numbers(&self, bytes: &[u8]) -> Vec<f64> {
        let single = |word: &[u8]| <[u8; 4]>::try_from(word).unwrap_or_default();
        let double = |word: &[u8]| <[u8; 8]>::try_from(word).unwrap_or_default();
        match self.dtype.as_str() {
            "f32" | "c64" => {
                bytes.chunks(4).map(|word| f32::from_le_bytes(single(word)).into()).collect()
            }
            "i32" => bytes.chunks(4).map(|word| i32::from_le_bytes(single(word)).into()).collect(),
            _ => bytes.chunks(8).map(|word| f64::from_le_bytes(double(word))).collect(),
        }
    }

    /// The largest difference, relative to the largest expected entry; NaN is infinitely far.
    fn distance(&self, got: &[u8]) -> Result<f64, String> {
        if got.len() != self.bytes.len() {
            return Err(format!("expected {} bytes, got {}", self.bytes.len(), got.len()));
        }
        let (expected, got) = (self.numbers(&self.bytes), self.numbers(got));
        let scale = expected.iter().fold(0.0_f64, |scale, x| scale.max(x.abs()));
        let far = |off: f64| if off.is_nan() { f64::INFINITY } else { off };
        let largest = expected
            .iter()
            .zip(&got)
            .fold(0.0_f64, |largest, (x, y)| largest.max(far((x - y).abs())));
        Ok(if scale > 0.0 { largest / scale } else { largest })
    }
}
