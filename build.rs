//! Compiles the C++ shim against libtorch's headers and writes libtorch's folder into every binary of this package.

use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 2] = ["src/torch/shim.cpp", "src/torch/narrow_conv.cpp"];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    // Set by torch-sys (`links = "tch"`): the folder in which it found libtorch's libraries.
    let Some(folder) = env::var_os("DEP_TCH_LIBTORCH_LIB") else {
        panic!("torch-sys named no libtorch folder; run `make setup` or set LIBTORCH");
    };
    let lib = PathBuf::from(&folder).canonicalize().unwrap_or_else(|error| {
        panic!(
            "libtorch's folder {} cannot be opened ({error}); run `make setup` or set LIBTORCH",
            folder.display()
        )
    });
    let include = lib.with_file_name("include");

    cc::Build::new()
        .cpp(true)
        .pic(true)
        .warnings(false)
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .flag("-std=c++17")
        // Norms and clipping run here on CPU: vectorised whatever the Rust profile is.
        .opt_level(3)
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .files(SOURCES)
        .compile("simic_shim");

    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    // Absolute, so that binaries, tests, benches and examples start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
}
