//! Which LAPACK library is linked, where the feature `lapack` asks for one.
//!
//! Without a provider among the features, the environment variable LAPAX_LAPACK says which:
//! `reference` and `reference64` are Debian's builds of the reference, with 32-bit and with 64-bit
//! integers, linked statically, so that no other BLAS can take their names; anything else is a list
//! of `-L<folder>`, `-l<name>` and paths of library files, in the order of linking.

use std::env::var;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LAPAX_LAPACK";
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
