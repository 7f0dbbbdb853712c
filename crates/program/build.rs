//! The sources that the program was built from, for the manifests of its runs, and libtorch's folder.
//!
//! Only this package asks for the commit: a commit compiles the program's few lines again and nothing else.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The sources that determine the numbers of a run, below the root of the repository.
const INGREDIENTS: [&str; 5] = ["crates", "src/prior_art", "assets", "Cargo.toml", "Cargo.lock"];

fn main() {
    let Some(lib) = env::var_os("DEP_SIMIC_ENGINE_LIBTORCH").map(PathBuf::from) else {
        panic!("simic-engine named no libtorch folder");
    };
    // So that the program and its tests start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
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

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize();
    let Some(root) = root.ok().filter(|root| env::set_current_dir(root).is_ok()) else {
        return;
    };
    // A copy of the sources inside somebody else's repository has no commit of its own.
    let repository = output_of("git", &["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    if repository
        .and_then(|repository| repository.canonicalize().ok())
        .as_ref()
        != Some(&root)
    {
        return;
    }
    tell("GIT_COMMIT", output_of("git", &["rev-parse", "HEAD"]));
    for ingredient in INGREDIENTS {
        println!("cargo:rerun-if-changed={}", root.join(ingredient).display());
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
        Path::new(&path).exists().then(|| root.join(path))
    });
    if let Some(path) = watched {
        println!("cargo:rerun-if-changed={}", path.display());
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
