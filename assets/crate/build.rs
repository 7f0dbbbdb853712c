//! Writes libtorch's folder into the programs of this crate, so they start without LD_LIBRARY_PATH. Cargo doesn't pass on the
//! engine's own linker arguments.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The engine's build script sets this.
    match std::env::var("DEP_SIMIC_ENGINE_LIBTORCH") {
        Ok(folder) => println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}"),
        Err(error) => panic!("the engine's build script doesn't name libtorch's folder: {error}"),
    }
}
