//! Writes libtorch's folder into the programs of this crate, so that they start without LD_LIBRARY_PATH: cargo does not pass
//! the engine's own linker arguments on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Told by the engine's build script.
    match std::env::var("DEP_SIMIC_ENGINE_LIBTORCH") {
        Ok(folder) => println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}"),
        Err(error) => panic!("the engine names no folder of libtorch: {error}"),
    }
}
