//! Compiles the kernels to fatbins, where there is an nvcc, and lists them for `src/module.rs`.
//!
//! LAPAX_CUDA = auto (default) | require | off; LAPAX_NVCC = path of nvcc; LAPAX_CUDA_ARCHS = for
//! example "90,120-ptx", for quick builds while developing.
#![allow(clippy::expect_used, reason = "a build script fails where it stands, with its message")]

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Machine code for the GPUs that CUDA 13 has, and PTX for later ones. A cubin runs on the same major
/// version with an equal or higher minor version, so that 8.6 and 8.9 run what is compiled for 8.0: a
/// cubin for each of them would make the wheel 2.5 MB larger, of 28.
const ARCHS: &str = "75,80,90,100,120,120-ptx";
/// Writes PTX that every driver of CUDA 13 reads; a later nvcc's needs later drivers.
const NEWEST_NVCC: (u32, u32) = (13, 0);
/// What brings nvcc where no CUDA is installed.
const PACKAGE: &str = "cuda-toolkit[nvcc,nvvm,crt,cudart]==13.0.2";

fn main() {
    println!("cargo:rustc-check-cfg=cfg(kernels)");
    for name in ["LAPAX_CUDA", "LAPAX_NVCC", "LAPAX_CUDA_ARCHS", "PYTHON", "VIRTUAL_ENV", "CXX"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=kernels");
    let mode = env::var("LAPAX_CUDA").unwrap_or_else(|_| "auto".to_owned());
    assert!(
        matches!(mode.as_str(), "auto" | "require" | "off"),
        "LAPAX_CUDA: expected auto, require or off, got {mode:?}"
    );
    if mode == "off" {
        return;
    }
    match &find_nvcc() {
        Ok((path, version)) => {
            if *version > NEWEST_NVCC {
                println!(
                    "cargo:warning=nvcc {}.{} writes PTX that drivers of CUDA {}.{} do not read: \
                     GPUs newer than {ARCHS} will need a newer driver",
                    version.0, version.1, NEWEST_NVCC.0, NEWEST_NVCC.1
                );
            }
            println!("cargo:rustc-cfg=kernels");
            compile(path);
        }
        Err(refused) => {
            let text = format!(
                "no nvcc that works was found{refused}, so this build has no CUDA kernels; `pip \
                 install '{PACKAGE}'` brings one, LAPAX_NVCC names one, LAPAX_CUDA=off asks for none"
            );
            assert!(mode == "auto", "{text} (LAPAX_CUDA=require)");
            // Where one would be found: pip gives its build an environment of its own, and the folder
            // `target` may be that of a build without one.
            for name in ["PATH", "PYTHONPATH"] {
                println!("cargo:rerun-if-env-changed={name}");
            }
            println!("cargo:warning={text}");
        }
    }
}

/// An nvcc that compiles, and its release: the one LAPAX_NVCC names, or of the Python that builds, or on
/// the path. `Err` says which were found and do not compile.
fn find_nvcc() -> Result<(PathBuf, (u32, u32)), String> {
    if let Some(path) = env::var_os("LAPAX_NVCC").filter(|path| !path.is_empty()) {
        let release = release(Path::new(&path));
        return Ok((PathBuf::from(&path), release.expect("LAPAX_NVCC names an nvcc that runs")));
    }
    let mut refused = String::new();
    for path in of_python().into_iter().chain([PathBuf::from("nvcc")]) {
        let Some(release) = release(&path) else { continue };
        match try_out(&path) {
            Ok(()) => return Ok((path, release)),
            Err(reason) => {
                let _ = write!(refused, " ({}: {reason})", path.display());
            }
        }
    }
    Err(refused)
}

/// Whether an nvcc compiles a file with nothing in it: it needs a compiler of C++ on this machine. `Err`
/// is the first line of what it says.
fn try_out(nvcc: &Path) -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = out.join("nothing.cu");
    std::fs::write(&source, "").expect("OUT_DIR is writable");
    let mut command = with_compiler(nvcc);
    let output = command.arg("--fatbin").arg(&source).arg("-o").arg(out.join("nothing.fatbin"));
    let output = output.output().map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let reason = || report.lines().next().unwrap_or("it fails").to_owned();
    if output.status.success() { Ok(()) } else { Err(reason()) }
}

/// An nvcc with the C++ compiler that CXX names, if any.
fn with_compiler(nvcc: &Path) -> Command {
    let mut command = Command::new(nvcc);
    command.arg("-std=c++17");
    if let Some(compiler) = env::var_os("CXX") {
        command.arg("-ccbin").arg(compiler);
    }
    command
}

/// Those of NVIDIA's wheels: a virtual environment's, or pip's for this build alone.
fn of_python() -> Vec<PathBuf> {
    const SEARCH: &str = "import glob, os, sys
for folder in sys.path:
    for path in sorted(glob.glob(os.path.join(folder, 'nvidia', '*', 'bin', 'nvcc')), reverse=True):
        print(path)";
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let Ok(output) = Command::new(python).args(["-c", SEARCH]).output() else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

fn release(nvcc: &Path) -> Option<(u32, u32)> {
    let output = Command::new(nvcc).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (major, minor) = text.split("release ").nth(1)?.split(',').next()?.split_once('.')?;
    Some((major.trim().parse().ok()?, minor.trim().parse().ok()?))
}

/// A fatbin for each `kernels/*.cu`, and OUT_DIR/modules.rs, which lists them.
fn compile(nvcc: &Path) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let archs = env::var("LAPAX_CUDA_ARCHS").ok().filter(|archs| !archs.is_empty());
    let archs = archs.as_deref().unwrap_or(ARCHS);
    let mut list = String::from("[\n");
    for source in sources() {
        let name = source.file_stem().expect("a .cu has a stem").to_string_lossy().into_owned();
        let (fatbin, kept) = (out.join(format!("{name}.fatbin")), out.join("kept"));
        std::fs::create_dir_all(&kept).expect("OUT_DIR is writable");
        let mut command = with_compiler(nvcc);
        command.arg("--keep").arg("--keep-dir").arg(&kept);
        command.args(["-O3", "--fatbin", "--compress-mode=size", "--threads", "2"]).args([
            "-Werror",
            "all-warnings",
            "-Xptxas",
            "-v",
        ]);
        for arch in archs.split(',').map(str::trim) {
            command.arg(match arch.strip_suffix("-ptx") {
                Some(arch) => format!("-gencode=arch=compute_{arch},code=compute_{arch}"),
                None => format!("-gencode=arch=compute_{arch},code=sm_{arch}"),
            });
        }
        let output = command.arg(&source).arg("-o").arg(&fatbin).output().expect("nvcc runs");
        let mut report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?} failed:\n{report}");
        for (kernel, threads) in threads_of_blocks(&kept) {
            let _ = writeln!(report, "{kernel}: at most {threads} threads in a block");
        }
        std::fs::remove_dir_all(&kept).expect("OUT_DIR is writable");
        std::fs::write(out.join(format!("{name}.ptxas")), &report).expect("OUT_DIR is writable");
        let _ = writeln!(
            list,
            "    Module {{ name: {name:?}, \
             image: &Image(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.fatbin\"))), \
             report: include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.ptxas\")) }},"
        );
    }
    list.push(']');
    std::fs::write(out.join("modules.rs"), list).expect("OUT_DIR is writable");
}

/// What the launch bounds of each kernel allow, by the PTX in a folder: ptxas does not report it.
fn threads_of_blocks(folder: &Path) -> BTreeMap<String, u32> {
    let files = std::fs::read_dir(folder).expect("what nvcc has kept");
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let mut all = BTreeMap::new();
    for path in files.filter(|path| path.extension().is_some_and(|kind| kind == "ptx")) {
        let text = std::fs::read_to_string(&path).expect("PTX is text");
        for entry in text.split(".entry ").skip(1) {
            let kernel = entry.split('(').next().expect("a kernel has parameters").trim();
            let (_, after) = entry.split_once(".maxntid ").expect("every kernel has launch bounds");
            let sides = after.lines().next().expect("three sides").split(',');
            let threads = sides.map(|side| side.trim().parse::<u32>().expect("a side of a block"));
            all.insert(kernel.to_owned(), threads.product());
        }
    }
    all
}

fn sources() -> Vec<PathBuf> {
    let folder = std::fs::read_dir("kernels").expect("the folder of kernels");
    let mut files: Vec<PathBuf> = folder.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cu"));
    files.sort();
    files
}
