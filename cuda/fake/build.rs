//! Compiles the kernels for the host, on the emulator, and libraries of NVIDIA's names whose functions
//! jump to wherever `src/libraries.rs` says.
#![allow(clippy::expect_used, reason = "a build script fails where it stands, with its message")]

use std::env;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// lapax's kernels.
const KERNELS: &str = "../kernels";
/// Those of the example of a user's own target.
const EXAMPLE: &str = "../../examples/custom-target/kernels";
/// Names a folder of other kernels in the place of lapax's, such as `mutants.py` makes.
const FOLDER: &str = "LAPAX_EMULATED_KERNELS";

fn main() {
    for path in ["build.rs", "emulator", "symbols", KERNELS, EXAMPLE] {
        println!("cargo:rerun-if-changed={path}");
    }
    println!("cargo:rerun-if-env-changed={FOLDER}");
    kernels();
    libraries();
}

fn kernels() {
    let mut build = cc::Build::new();
    let others = env::var_os(FOLDER);
    build.cpp(true).std("c++20").opt_level(2).include("emulator");
    // What is left of a kernel may well be unused.
    build.warnings_into_errors(others.is_none());
    build.flag("-Wno-unknown-pragmas");
    let mut on_emulator = build.clone();
    on_emulator.flag("-include").flag("emulator.h").flag("-x").flag("c++");
    let folder = others.map_or(PathBuf::from(KERNELS), PathBuf::from);
    let objects = compiled(&mut on_emulator, &folder);
    let mut library = build.clone();
    library.objects(objects).link_lib_modifier("+whole-archive").compile("lapax_kernels");
    build.file("emulator/emulator.cpp").compile("lapax_emulator");
}

/// The objects of a folder's kernels and of the example's. Those that an earlier build made of the same
/// text are still there: a mutant takes the time of the file that it changes.
fn compiled(build: &mut cc::Build, folder: &Path) -> Vec<PathBuf> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("objects");
    std::fs::create_dir_all(&out).expect("OUT_DIR is writable");
    let mut common = DefaultHasher::new();
    format!("{:?}", build.get_compiler().to_command()).hash(&mut common);
    hash_text(Path::new("emulator/emulator.h"), &mut common);
    let mut objects = Vec::new();
    let mut missing = Vec::new();
    for file in files(folder, "cu").into_iter().chain(files(Path::new(EXAMPLE), "cu")) {
        let mut hasher = common.clone();
        hash_text(&file, &mut hasher);
        let object = out.join(format!("{:x}.o", hasher.finish()));
        if !object.exists() {
            build.file(&file);
            missing.push(object.clone());
        }
        objects.push(object);
    }
    if !missing.is_empty() {
        for (made, object) in build.compile_intermediates().iter().zip(missing) {
            std::fs::rename(made, object).expect("OUT_DIR is writable");
        }
    }
    objects
}

/// Of a source and of what it includes from beside it.
fn hash_text(file: &Path, hasher: &mut DefaultHasher) {
    let text = std::fs::read_to_string(file).expect("a source of this package");
    text.hash(hasher);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("#include \"") {
            hash_text(&file.with_file_name(name.trim_end_matches('"')), hasher);
        }
    }
}

/// For each `symbols/*.txt`, whose first line is a soname and whose others are functions: a shared
/// library where function i jumps to the address in slot i of the table `lapax_fake_table`.
fn libraries() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    for list in files(Path::new("symbols"), "txt") {
        let text = std::fs::read_to_string(&list).expect("a list of symbols");
        let mut lines = text.lines();
        let soname = lines.next().expect("the soname");
        let mut assembly = String::new();
        for (index, symbol) in lines.enumerate() {
            let jump = match arch.as_str() {
                "x86_64" => format!("jmp *slots+{}(%rip)", 8 * index),
                "aarch64" => format!(
                    "adrp x16, slots\n add x16, x16, :lo12:slots\n \
                     ldr x16, [x16, #{}]\n br x16",
                    8 * index
                ),
                other => panic!("say here how {other} jumps"),
            };
            let _ = write!(
                assembly,
                ".globl {symbol}\n.type {symbol},%function\n{symbol}:\n {jump}\n.size {symbol},.-{symbol}\n"
            );
        }
        let bytes = 8 * text.lines().count();
        let source = out.join(format!("{soname}.s"));
        let table = format!(
            ".bss\n.balign 16\n.globl lapax_fake_table\n.type lapax_fake_table,%object\n\
             lapax_fake_table:\nslots:\n.zero {bytes}\n.size lapax_fake_table,{bytes}\n\
             .section .note.GNU-stack,\"\",%progbits\n"
        );
        std::fs::write(&source, format!(".text\n{assembly}{table}")).expect("OUT_DIR is writable");
        let mut command = cc::Build::new().opt_level(0).get_compiler().to_command();
        command.arg("-shared").arg("-nostdlib").arg(format!("-Wl,-soname,{soname},-Bsymbolic"));
        let status = command.arg(&source).arg("-o").arg(out.join(soname)).status();
        assert!(status.expect("the compiler runs").success(), "{command:?} failed");
    }
    println!("cargo:rustc-env=LAPAX_FAKE_FOLDER={}", out.display());
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of this package");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == extension));
    files.sort();
    files
}
