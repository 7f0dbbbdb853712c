//! The program as the wheel carries it. `simic-engine` is there the launcher, which says where torch has libtorch.

#[path = "main.rs"]
mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
