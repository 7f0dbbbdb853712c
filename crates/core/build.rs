//! Writes libtorch's folder into the tests of this package.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // From the build script of `simic-torch`.
    let Some(lib) = env::var_os("DEP_SIMIC_TORCH_LIBTORCH").map(PathBuf::from) else {
        panic!("simic-torch named no libtorch folder");
    };
    // So that tests start without LD_LIBRARY_PATH from any folder.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
}
