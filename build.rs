//! Compiles the C++ shim against libtorch's headers, writes libtorch's folder into every binary of this package, and
//! tells the engine what it was built from, for the manifests of its runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// What goes into the binary.
const INGREDIENTS: [&str; 6] = ["src", "assets", "scenarios", "build.rs", "Cargo.toml", "Cargo.lock"];
/// The unit that is compiled, and what it includes.
const SOURCES: [&str; 3] = [
    "src/torch/native.cpp",
    "src/torch/narrow_conv.cpp",
    "src/torch/shim.cpp",
];

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

    compile_shim(&include);
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    // Absolute, so that binaries, tests, benches and examples start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());

    tell_provenance();
}

/// Compiles the shim, unless the one at hand was made from the same text: this script also runs where only Rust changed.
fn compile_shim(include: &Path) {
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        panic!("cargo names no OUT_DIR");
    };
    let sources = SOURCES.map(|source| fs::read_to_string(source).unwrap_or_default());
    let recipe = format!("{}\n{}", include.display(), sources.concat());
    let made_from = out.join("shim.recipe");
    let is_made = out.join("libsimic_shim.a").exists();
    if !(is_made && fs::read_to_string(&made_from).is_ok_and(|made| made == recipe)) {
        cc::Build::new()
            .cpp(true)
            .pic(true)
            .warnings(false)
            .include(include)
            .include(include.join("torch/csrc/api/include"))
            .flag("-std=c++17")
            // Norms and clipping run here on CPU: vectorised whatever the Rust profile is.
            .opt_level(3)
            .define("_GLIBCXX_USE_CXX11_ABI", "1")
            .file(SOURCES[0])
            .cargo_metadata(false)
            .compile("simic_shim");
        // Without it the shim is compiled again, no more.
        let _ = fs::write(&made_from, recipe);
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=simic_shim");
    let is_apple = env::var("TARGET").is_ok_and(|target| target.contains("apple"));
    println!("cargo:rustc-link-lib={}", if is_apple { "c++" } else { "stdc++" });
}

/// Commit, compiler and target. What cannot be found out is left out.
fn tell_provenance() {
    let tell = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            println!("cargo:rustc-env=SIMIC_ENGINE_{name}={value}");
        }
    };
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    tell("RUSTC", output_of(&compiler, &["--version"]));
    tell("TARGET", env::var("TARGET").ok());

    let Some(package) = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else {
        return;
    };
    // A copy of the sources inside somebody else's repository has no commit of its own.
    let root = output_of("git", &["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    if root.and_then(|root| root.canonicalize().ok()) != package.canonicalize().ok() {
        return;
    }
    tell("GIT_COMMIT", output_of("git", &["rev-parse", "HEAD"]));
    for ingredient in INGREDIENTS {
        println!("cargo:rerun-if-changed={ingredient}");
    }
    let status = [&["status", "--porcelain", "--"][..], &INGREDIENTS].concat();
    tell(
        "GIT_DIRTY",
        all_output_of("git", &status).map(|changes| (!changes.is_empty()).to_string()),
    );
    tell("GIT_DIFF", difference());
    // The reflog grows with every commit and checkout; HEAD itself changes only with the branch.
    let watched = ["logs/HEAD", "HEAD"].iter().find_map(|file| {
        let path = output_of("git", &["rev-parse", "--git-path", file])?;
        Path::new(&path).exists().then_some(path)
    });
    if let Some(path) = watched {
        println!("cargo:rerun-if-changed={path}");
    }
}

/// Hash of what differs from the commit, as git would name it; `None` if nothing does.
fn difference() -> Option<String> {
    let diff = [&["diff", "HEAD", "--"][..], &INGREDIENTS].concat();
    let diff = all_output_of("git", &diff).filter(|diff| !diff.is_empty())?;
    let mut git = Command::new("git");
    git.args(["hash-object", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut git = git.spawn().ok()?;
    git.stdin.take()?.write_all(diff.as_bytes()).ok()?;
    let hash = String::from_utf8(git.wait_with_output().ok()?.stdout).ok()?;
    hash.lines().next().map(str::to_owned)
}

/// The first line that a program prints; `None` if it is missing or fails.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    all_output_of(program, arguments)?.lines().next().map(str::to_owned)
}

fn all_output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())
}
