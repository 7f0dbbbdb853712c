//! The program as the wheel carries it. `simic-engine` is there the launcher, which says where torch has libtorch.

use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::prelude::Extension;

fn main() -> ExitCode {
    cli::main(Extension::default())
}
