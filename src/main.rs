use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::prelude::Extension;

fn main() -> ExitCode {
    cli::main(Extension::default())
}
