//! What CUDA's targets will find: the kernels of this build, their table of choices, the driver, NVIDIA's libraries.

use serde_json::{Value as Json, json};

/// `{"kernels": how many modules, "driver": {"version"} or {"error"}, "libraries": [{"name", "file"} or
/// {"name", "error"}]}`; opens the libraries. Null in a build without the feature `cuda`.
#[cfg(feature = "cuda")]
pub(crate) fn report() -> Json {
    let started = lapax_cuda::driver::present();
    let driver = match started.and_then(|()| lapax_cuda::driver::version()) {
        Ok(version) => json!({ "version": format!("{}.{}", version / 1000, version % 1000 / 10) }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let library = |library: &&lapax_cuda::Library| match library.file() {
        Ok(file) => json!({ "name": library.name, "file": file }),
        Err(error) => json!({ "name": library.name, "error": error.to_string() }),
    };
    let libraries: Vec<Json> = lapax_cuda::LIBRARIES.iter().map(library).collect();
    json!({ "kernels": lapax_cuda::MODULES.len(), "driver": driver, "libraries": libraries })
}

/// Nothing: this build has no targets on CUDA.
#[cfg(not(feature = "cuda"))]
pub(crate) fn report() -> Json {
    Json::Null
}

/// The table of choices for the `gpu` of a request; without ops in a build without the feature `cuda`.
pub(crate) fn choices(request: &Json) -> Result<Json, String> {
    #[cfg(feature = "cuda")]
    let found = lapax_cuda::choices::for_gpu(request["gpu"].as_str());
    #[cfg(not(feature = "cuda"))]
    let (found, _) = (Ok::<_, String>(json!({})), request);
    found.map(|choices| json!({ "choices": choices })).map_err(|error| error.to_string())
}

/// Number of modules of kernels in this build.
pub(crate) fn kernels() -> usize {
    #[cfg(feature = "cuda")]
    return lapax_cuda::MODULES.len();
    #[cfg(not(feature = "cuda"))]
    0
}

/// Why the driver of this machine cannot run the kernels of this build, if that is so.
pub(crate) fn unfit() -> Option<String> {
    #[cfg(feature = "cuda")]
    return if kernels() == 0 { None } else { lapax_cuda::driver::unfit() };
    #[cfg(not(feature = "cuda"))]
    None
}
