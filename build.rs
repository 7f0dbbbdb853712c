//! Writes libtorch's folder into every binary of this package, and tells it to `simic-engine new` and to the crates above.

use std::env;
use std::path::PathBuf;

fn main() {
    // Otherwise every file of the repository, a document among them, would compile the engine again.
    println!("cargo:rerun-if-changed=build.rs");
    // Set by the build script of `simic-torch`.
    let Some(lib) = env::var_os("DEP_SIMIC_TORCH_LIBTORCH").map(PathBuf::from) else {
        panic!("simic-torch named no libtorch folder");
    };
    // So that binaries, tests, benches and examples start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // For crates that depend on this one, whose binaries do not get that argument: see docs/guide/src/extensions.md.
    println!("cargo:libtorch={}", lib.display());
    // For `simic-engine new`.
    println!(
        "cargo:rustc-env=SIMIC_ENGINE_LIBTORCH={}",
        lib.with_file_name("").display()
    );
}
