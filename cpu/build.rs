//! Which LAPACK library is linked, where the feature `lapack` asks for one.
//!
//! Without a provider among the features, the environment variable LAPAX_LAPACK says which:
//! `reference` and `reference64` are Debian's builds of the reference, with 32-bit and with 64-bit
//! integers, linked statically, so that no other BLAS can take their names; anything else is a list
//! of `-L<folder>`, `-l<name>` and paths of library files, in the order of linking.
//!
//! And which kinds of registers the kernels are compiled for: all that processors of the target may
//! need, or what LAPAX_SIMD says, `native` for the widest of the machine that builds, or the name of
//! one. Each kind is a third of the time that a build takes.

use std::env::var;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LAPAX_LAPACK";
const SIMD: &str = "LAPAX_SIMD";
const PROVIDERS: &[&str] = &[
    "ACCELERATE",
    "INTEL_MKL_DYNAMIC_PARALLEL",
    "INTEL_MKL_DYNAMIC_SEQUENTIAL",
    "INTEL_MKL_STATIC_PARALLEL",
    "INTEL_MKL_STATIC_SEQUENTIAL",
    "NETLIB",
    "OPENBLAS",
    "R",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    match levels() {
        Ok(levels) => {
            for level in levels {
                println!("cargo::rustc-cfg=lapax_simd_{level}");
            }
        }
        Err(message) => println!("cargo::error={message}"),
    }
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(lapax_reference)");
    println!("cargo::rustc-check-cfg=cfg(lapax_reference64)");
    if var("CARGO_FEATURE_LAPACK").is_err() {
        return;
    }
    let given = var(VARIABLE).ok().filter(|value| !value.trim().is_empty());
    let provider = PROVIDERS.iter().find(|name| var(format!("CARGO_FEATURE_{name}")).is_ok());
    let outcome = match (given, provider) {
        (None, Some(_)) => Ok(()),
        (None, None) => {
            println!(
                "cargo::warning=feature lapack without a LAPACK library: what is linked next will \
                 lack its symbols. Add a provider's feature (openblas, netlib, accelerate, \
                 intel-mkl-…, r), or set {VARIABLE} to `reference`, `reference64`, or linker \
                 arguments such as `-L/opt/lib -lopenblas`"
            );
            Ok(())
        }
        (Some(value), Some(provider)) => Err(format!(
            "{VARIABLE}={value} and the feature {} both name a LAPACK library: use one",
            provider.to_lowercase().replace('_', "-")
        )),
        (Some(value), None) => match value.trim() {
            "reference" => reference(""),
            "reference64" => reference("64"),
            arguments => link_arguments(arguments),
        },
    };
    if let Err(message) = outcome {
        println!("cargo::error={message}");
    }
}

/// The kinds of registers, the widest last, and the chosen ones.
fn levels() -> Result<Vec<&'static str>, String> {
    println!("cargo::rerun-if-env-changed={SIMD}");
    for level in ["scalar", "v3", "v4", "neon"] {
        println!("cargo::rustc-check-cfg=cfg(lapax_simd_{level})");
    }
    let all: &[&str] = match var("CARGO_CFG_TARGET_ARCH").unwrap_or_default().as_str() {
        "x86_64" if var("CARGO_FEATURE_AVX512").is_ok() => &["scalar", "v3", "v4"],
        "x86_64" => &["scalar", "v3"],
        "aarch64" => &["scalar", "neon"],
        _ => &["scalar"],
    };
    // What every processor of the target has leaves nothing to the kinds below it.
    let baseline = var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let least = all.iter().rposition(|level| baseline.split(',').any(|it| it == *level));
    let chosen = var(SIMD).unwrap_or_default();
    let one = match chosen.trim() {
        "" | "all" => return Ok(all[least.unwrap_or(0)..].to_vec()),
        "native" if var("HOST") != var("TARGET") => {
            return Err(format!("{SIMD}=native: the build is for another machine than this"));
        }
        "native" => all.iter().rev().find(|level| here(level)),
        name => all.iter().find(|level| **level == name),
    };
    let known = all.join(", ");
    one.map(|level| vec![*level])
        .ok_or_else(|| format!("{SIMD}={chosen}: expected all, native, or one of {known}"))
}

/// Whether the machine that builds has such registers: what pulp asks for before it uses them.
fn here(level: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! all {
            ($($feature:tt),+) => { $(std::arch::is_x86_feature_detected!($feature))&&+ };
        }
        let v3 = all!("sse4.2", "popcnt", "avx", "avx2", "bmi1", "bmi2", "fma", "lzcnt");
        let v4 = v3 && all!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl");
        match level {
            "v3" => return v3,
            "v4" => return v4,
            _ => {}
        }
    }
    level == "scalar" || level == "neon"
}

/// Links Debian's reference LAPACK and BLAS by their full paths.
fn reference(suffix: &str) -> Result<(), String> {
    let folders = libraries_of(&var("TARGET").unwrap_or_default());
    for (folder, package) in [("lapack", "liblapack"), ("blas", "libblas")] {
        let file = format!("{folder}{suffix}/{package}{suffix}.a");
        let path = find(&folders, &file).ok_or_else(|| {
            format!(
                "{VARIABLE}=reference{suffix}: no {file} in {}. On Debian and Ubuntu: \
                 apt-get install liblapack{suffix}-dev libblas{suffix}-dev",
                list(&folders)
            )
        })?;
        // Not bundled into the rlib, which would be tens of megabytes larger.
        link("static:+verbatim,-bundle", &path);
    }
    let fortran = find(&folders, "libgfortran.so.5").ok_or_else(|| {
        format!("no libgfortran.so.5 in {}: apt-get install libgfortran5", list(&folders))
    })?;
    link("dylib:+verbatim", &fortran);
    println!("cargo::rustc-cfg=lapax_reference");
    if suffix == "64" {
        println!("cargo::rustc-cfg=lapax_reference64");
    }
    Ok(())
}

/// The folders in which Debian keeps a target's libraries.
fn libraries_of(target: &str) -> Vec<PathBuf> {
    let architecture = match target.split('-').next().unwrap_or_default() {
        "i586" | "i686" => "i386",
        "powerpc64le" => "powerpc64le",
        other => other,
    };
    let triple = format!("{architecture}-linux-gnu");
    ["/usr/lib", "/lib"].iter().map(|root| Path::new(root).join(&triple)).collect()
}

fn find(folders: &[PathBuf], file: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(file)).find(|path| path.exists())
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(" or ")
}

/// Links one library file by name, from its folder.
fn link(kind: &str, path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib={kind}={}", name.display());
}

/// Links what the user's arguments name. The folders of shared libraries become run paths, of this
/// package's own programs here, and by way of the metadata of what depends on it.
fn link_arguments(arguments: &str) -> Result<(), String> {
    let mut folders = Vec::new();
    for argument in arguments.split_whitespace() {
        let path = Path::new(argument);
        if let Some(name) = argument.strip_prefix("-l") {
            println!("cargo::rustc-link-lib={name}");
        } else if let Some(folder) = argument.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={folder}");
            folders.push(folder.to_owned());
        } else if !(path.is_absolute() && path.is_file()) {
            return Err(format!(
                "{VARIABLE}: {argument} is none of `reference`, `reference64`, -L<folder>, \
                 -l<name>, and the full path of a library that exists"
            ));
        } else if path.extension().is_some_and(|extension| extension == "a") {
            link("static:+verbatim,-bundle", path);
        } else {
            link("dylib:+verbatim", path);
            folders.extend(path.parent().map(|folder| folder.display().to_string()));
        }
    }
    for folder in folders.iter().filter(|_| var("CARGO_CFG_UNIX").is_ok()) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo::metadata=rpath={}", folders.join(":"));
    Ok(())
}
