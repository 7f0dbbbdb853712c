//! Writes libtorch's folder into every binary of this package, and tells the engine what it was built from, for the
//! manifests of its runs.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What goes into the binary.
const INGREDIENTS: [&str; 7] = [
    "src",
    "crates",
    "assets",
    "scenarios",
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() {
    // Told by the build script of `simic-torch`.
    let Some(lib) = env::var_os("DEP_SIMIC_TORCH_LIBTORCH").map(PathBuf::from) else {
        panic!("simic-torch named no libtorch folder");
    };
    // So that binaries, tests, benches and examples start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // For crates that depend on this one, whose binaries do not get that argument: see docs/your-own-crate.md.
    println!("cargo:libtorch={}", lib.display());
    // For `simic-engine new`.
    println!(
        "cargo:rustc-env=SIMIC_ENGINE_LIBTORCH={}",
        lib.with_file_name("").display()
    );

    tell_provenance();
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
