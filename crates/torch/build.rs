//! Compiles the C++ against libtorch's headers, and tells the crates above in which folder libtorch is.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The unit that knows libtorch; it includes the others.
const SHIM: &str = "src/kernels/native.cpp";
/// The unit that knows libtorch's CUDA part: a library of its own, whose bytes are in the engine.
const GRAPHS: &str = "src/torch/graphs.cpp";
/// The kernels, compiled once for each set of instructions: the unit, and the compiler's flags for x86-64. `-march` leaves
/// standing what a flag of its own has asked for, as `-mavx2`: wider vectors are taken back by name.
const LEVELS: [(&str, &[&str]); 3] = [
    ("avx512", &["-march=x86-64-v4"]),
    ("avx2", &["-march=x86-64-v3", "-mno-avx512f"]),
    ("plain", &["-march=x86-64", "-mno-sse3"]),
];

/// A product and a sum are one rounding where the code says so, and nowhere else: the same bits on every machine.
const ROUNDING: [&str; 2] = ["-fno-fast-math", "-ffp-contract=off"];

fn main() {
    let sources = sources();
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
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

    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        panic!("cargo names no OUT_DIR");
    };
    let include = lib.with_file_name("include");
    compile(&include, &sources, &out);
    compile_graphs(&include, &out);
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    // Absolute, so that the tests start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // For the crates above, whose programs and tests do not get that argument.
    println!("cargo:libtorch={}", lib.display());
}

/// All C++ of the engine, in the order of paths.
fn sources() -> Vec<PathBuf> {
    let files = |folder: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder} cannot be listed: {error}"));
        entries.flatten().map(|entry| entry.path()).collect()
    };
    let is_cpp = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "cpp" || extension == "hpp")
    };
    let mut all = ["src/torch", "src/kernels", "src/kernels/arithmetic"]
        .map(files)
        .concat();
    all.retain(is_cpp);
    all.sort();
    all
}

/// Compiles the C++, unless what is at hand was made from the same text: this script also runs where only Rust changed.
fn compile(include: &Path, sources: &[PathBuf], out: &Path) {
    let text: String = sources
        .iter()
        .filter(|source| !source.ends_with(GRAPHS))
        .map(|source| fs::read_to_string(source).unwrap_or_default())
        .collect();
    let recipe = format!("{}\n{LEVELS:?}\n{ROUNDING:?}\n{text}", include.display());
    let made_from = out.join("shim.recipe");
    let is_made = out.join("libsimic_shim.a").exists();
    if !(is_made && fs::read_to_string(&made_from).is_ok_and(|made| made == recipe)) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut build = compiler();
                build
                    .include(include)
                    .include(include.join("torch/csrc/api/include"))
                    .define("_GLIBCXX_USE_CXX11_ABI", "1");
                compile_unit(build, SHIM, "simic_shim", out, &[]);
            });
            for (level, flags) in levels() {
                let unit = format!("src/kernels/arithmetic/{level}.cpp");
                scope.spawn(move || {
                    let mut build = compiler();
                    // On x86-64 for processors of before 2013, and the slowest to compile: optimised less, to the same bits.
                    if level == "plain" && !flags.is_empty() {
                        build.opt_level(if is_debug() { 0 } else { 1 });
                    }
                    compile_unit(build, &unit, &format!("simic_kernels_{level}"), out, flags);
                });
            }
        });
        // Without it the shim is compiled again, no more.
        let _ = fs::write(&made_from, recipe);
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=simic_shim");
    for (level, _) in levels() {
        println!("cargo:rustc-link-lib=static=simic_kernels_{level}");
    }
    let is_apple = env::var("TARGET").is_ok_and(|target| target.contains("apple"));
    println!("cargo:rustc-link-lib={}", if is_apple { "c++" } else { "stdc++" });
}

/// Compiles [`GRAPHS`], unless what is at hand was made from the same text; an empty file stands for it where CUDA's headers are
/// missing. Nothing of CUDA is linked, as machines that build have none: what the library takes from it is looked for when it
/// is opened.
fn compile_graphs(include: &Path, out: &Path) {
    let has = |folder: &Path, headers: [&str; 2]| headers.iter().all(|header| folder.join(header).exists());
    // The second is made where libtorch is compiled with CUDA.
    let is_for_cuda = has(include, ["ATen/cuda/CUDAGraph.h", "c10/cuda/impl/cuda_cmake_macros.h"]);
    let bundled = include.join("../../nvidia/cu13/include");
    let cuda = [bundled, "/usr/local/cuda/include".into()]
        .into_iter()
        .filter(|folder| is_for_cuda && folder.exists())
        .inspect(|folder| println!("cargo:rerun-if-changed={}", folder.display()))
        .find(|folder| has(folder, ["cuda_runtime_api.h", "crt/host_defines.h"]));
    let text = fs::read_to_string(GRAPHS).unwrap_or_default();
    let recipe = format!("{}\n{cuda:?}\n{text}", include.display());
    let (library, made_from) = (out.join("libsimic_graphs.so"), out.join("graphs.recipe"));
    let is_made = library.metadata().is_ok_and(|file| file.len() > 0);
    if is_made && fs::read_to_string(&made_from).is_ok_and(|made| made == recipe) {
        return;
    }
    let is_compiled = cuda.is_some_and(|cuda| {
        let mut build = compiler();
        build.include(include).include(cuda).opt_level(1);
        let mut command = build.define("_GLIBCXX_USE_CXX11_ABI", "1").get_compiler().to_command();
        command.args(["-shared", "-Wl,-z,now", GRAPHS, "-o"]).arg(&library);
        let is_compiled = command.status().is_ok_and(|status| status.success());
        if !is_compiled {
            println!("cargo:warning=the engine is built without CUDA graphs, as {command:?} failed");
        }
        is_compiled
    });
    let written = if is_compiled {
        fs::write(&made_from, recipe)
    } else {
        fs::write(&library, "")
    };
    if let Err(error) = written {
        panic!("{} cannot be written: {error}", out.display());
    }
}

/// Optimised under every Rust profile, for tests and debug builds a little less: it compiles twice as fast, to the same bits.
/// Lines for a debugger would double the time again.
fn compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .pic(true)
        .warnings(false)
        .flag("-std=c++17")
        .opt_level(if is_debug() { 1 } else { 3 })
        .debug(false)
        .cargo_metadata(false);
    build
}

fn is_debug() -> bool {
    env::var("PROFILE").is_ok_and(|profile| profile == "debug")
}

/// The levels that the target's architecture has: elsewhere than on x86-64 the plain kernels are written for its vectors.
fn levels() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let is_x86 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    LEVELS
        .into_iter()
        .filter(move |(level, _)| is_x86 || *level == "plain")
        .map(move |(level, flags)| (level, if is_x86 { flags } else { &[] }))
}

/// One unit as a library. `cc` puts the flags of `CXXFLAGS` last, where they win; rounding and instructions are not for them
/// to choose, so the compiler is called from here.
fn compile_unit(mut build: cc::Build, unit: &str, library: &str, out: &Path, level: &[&str]) {
    let object = out.join(format!("{library}.o"));
    let mut command = build.get_compiler().to_command();
    command.args(ROUNDING).args(level);
    command.arg("-c").arg(unit).arg("-o").arg(&object);
    match command.status() {
        Ok(status) if status.success() => build.object(object).compile(library),
        Ok(status) => panic!("{command:?} failed: {status}"),
        Err(error) => panic!("{command:?} could not be started: {error}"),
    }
}
